"""certificate.json appears only where a run is certified, and goes where it no longer is."""

from __future__ import annotations

import os
from pathlib import Path

from tripos.certify.seal import dump
from tripos.contracts.certificate import Certificate
from tripos.errors import InputError, OutputError
from tripos.files.streams import open_bytes, whole

_MARK = b'"tripos/certificate@1"'


def published(certificate: Certificate, path: str) -> bool:
    """Write the certificate of a certified run; returns whether it was."""
    if certificate.verdict.status != "certified":
        return False
    with whole(path) as stream:
        stream.write(dump(certificate))
    return True


def withdrawn(path: str) -> bool:
    """Remove an earlier certificate, which would look valid; returns whether there was one. Other files stay.

    A link is followed, as in writing: it is the certificate that goes. Raises OutputError where it cannot be removed.
    """
    place = Path(os.path.realpath(path))
    if _MARK not in _held(path):
        return False
    try:
        place.unlink()
    except OSError as error:
        raise OutputError(f"{path}: an earlier certificate that no longer holds cannot be removed: {error.strerror}") from None
    return True


def _held(path: str) -> bytes:
    """What stands there, unpacked; nothing where it is no file that can be read."""
    if not Path(path).is_file():
        return b""
    try:
        with open_bytes(path) as stream:
            return stream.read()
    except (InputError, OSError):
        return b""
