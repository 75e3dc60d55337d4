"""Whether every file is as its certificate says: bytes against digests, without a clock and without any scoring."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from tripos.certify.inventory import bytes_digest
from tripos.certify.seal import dump, own_digest
from tripos.contracts.certificate import Artifact, Certificate, Deviation, Verification
from tripos.errors import InputError
from tripos.files.reports import no_such
from tripos.files.streams import open_bytes


def verified(path: str) -> Verification:
    """Compare a certificate with itself and with every file that it names.

    What can no longer be read as a certificate has changed, which is a deviation. Raises InputError where there is no file.
    """
    raw = _bytes(path)
    try:
        certificate, told = Certificate.model_validate_json(raw), list[Deviation]()
        told += _itself(certificate, path, raw)
    except ValidationError as error:
        certificate, told = None, [_own(path, "changed", f"is no certificate: {_why(raw, error)}")]
    deviations = [*told, *_files(certificate, path)]
    return Verification(
        certificate=path,
        name=None if certificate is None else certificate.name,
        status="not_intact" if deviations else "intact",
        files=0 if certificate is None else len(certificate.artifacts),
        deviations=tuple(deviations),
    )


def _bytes(path: str) -> bytes:
    with open_bytes(path) as stream:
        return stream.read()


def _why(raw: bytes, error: ValidationError) -> str:
    """What the file is instead, or the first fault of a certificate that was one."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return no_such(raw, Certificate) or f"{where}: {first['msg']}"


def _itself(certificate: Certificate, path: str, raw: bytes) -> Iterator[Deviation]:
    """What the certificate says of itself."""
    if certificate.verdict.status != "certified":
        yield _own(path, "changed", "certifies nothing: its verdict is not_certified")
    if own_digest(certificate) != certificate.digest:
        yield _own(path, "changed", "its content does not make the digest that it states")
    elif dump(certificate) != raw:
        yield _own(path, "not_canonical", "holds the same content in other bytes than tripos certify writes")


def _own(path: str, what: str, told: str) -> Deviation:
    return Deviation.model_validate({"path": path, "role": "certificate", "what": what, "told": told})


def _files(certificate: Certificate | None, path: str) -> Iterator[Deviation]:
    for artifact in () if certificate is None else certificate.artifacts:
        place = str(Path(path).parent / artifact.path)
        if not os.path.isfile(place):  # noqa: PTH113 - of any text: also of what can be no path
            yield _deviation(artifact, "missing", "no such file")
            continue
        try:
            found = bytes_digest(place)
        except InputError as fault:
            yield _deviation(artifact, "unreadable", fault.findings[0].message)
            continue
        if found != artifact.sha256:
            yield _deviation(artifact, "changed", f"sha256 {found[:12]}, the certificate has {artifact.sha256[:12]}")


def _deviation(artifact: Artifact, what: str, told: str) -> Deviation:
    return Deviation.model_validate({"path": artifact.path, "role": artifact.role, "what": what, "told": told})
