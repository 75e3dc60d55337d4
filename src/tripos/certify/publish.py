"""certificate.json appears only where a run is certified, and goes where it no longer is."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tripos.certify.seal import dump
from tripos.contracts.certificate import Certificate
from tripos.errors import OutputError
from tripos.files.streams import whole

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

    Raises OutputError where it cannot be removed.
    """
    place, held = Path(path), b""
    with contextlib.suppress(OSError):
        held = place.read_bytes()
    if _MARK not in held:
        return False
    try:
        place.unlink()
    except OSError as error:
        raise OutputError(f"{path}: an earlier certificate that no longer holds cannot be removed: {error.strerror}") from None
    return True
