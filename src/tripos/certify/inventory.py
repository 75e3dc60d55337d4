"""The files of a run by role: what the certificate names, and what must be there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tripos.certify.dossier import Dossier
from tripos.certify.recompute import EVIDENCE
from tripos.certify.record import CannotTell
from tripos.contracts.base import Contract
from tripos.contracts.certificate import Artifact
from tripos.contracts.config import Config, LayerName
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.judges import ApprovedJudges
from tripos.contracts.reports import InputFile
from tripos.errors import InputError, printable
from tripos.files.configs import read_model
from tripos.files.streams import STDIN
from tripos.fingerprint import digest

BESIDE: dict[LayerName, dict[str, str]] = {
    "retrieval": {"retrieval_misses": "misses.jsonl"},
    "generation": {"generation_results": "generation-results.jsonl", "generation_misses": "generation-misses.jsonl"},
    "corpus": {"corpus_misses": "corpus-misses.jsonl"},
}
"""Files of rows that stand beside each report."""

_ROLES = {"judgments": "{layer}_judgments", "input": "generation_input"}
_ELSEWHERE = ("retrieval_report", "approved_judges")


class Item(NamedTuple):
    """One file and what it is."""

    role: str
    path: str


def inventory(dossier: Dossier) -> list[Item]:
    """Every file of the demanded layers, each once, in the order of roles in which a run comes about."""
    found = dict.fromkeys(_items(dossier))
    return list(found)


def _items(dossier: Dossier) -> Iterator[Item]:
    for layer in dossier.layers:
        if layer in dossier.reports:
            yield from _inputs(dossier, layer)
    if "generation" in dossier.layers and (path := Path(dossier.folder) / EVIDENCE).is_file():
        yield Item("generation_evidence", str(path))
    for layer in (layer for layer in dossier.layers if layer in dossier.reports or layer in dossier.faults):
        yield Item(f"{layer}_report", dossier.path(layer))
        yield from (Item(role, str(Path(dossier.path(layer)).parent / name)) for role, name in BESIDE[layer].items())
    if dossier.demands.config_path is not None:
        yield Item("configuration", dossier.demands.config_path)
    if "generation" in dossier.layers and (listed := dossier.approved_judges) is not None:
        yield Item("approved_judges", listed)


def _inputs(dossier: Dossier, layer: LayerName) -> Iterator[Item]:
    for entry in dossier.reports[layer].provenance.inputs:
        if entry.role not in _ELSEWHERE:
            role = _ROLES.get(entry.role, entry.role).format(layer=layer)
            yield Item(role, located(entry, dossier.path(layer)))


def located(entry: InputFile, report: str) -> str:
    """Where an input of a report stands, seen from here."""
    return STDIN if entry.path == STDIN else os.path.normpath(Path(report).parent / entry.path)


def missing(dossier: Dossier) -> list[str]:
    """Each file that is not there, or came from standard input."""
    told = []
    for role, path in inventory(dossier):
        what = role.replace("_", " ")
        if path == STDIN:
            told.append(f"{what}: came from standard input, which cannot be read again: evaluate from a file")
        elif not is_file(path):
            told.append(f"{printable(path, keep='')}: {_absence(path)} ({what})")
    return told


def is_file(path: str) -> bool:
    """Whether there is an ordinary file: a pipe gives its bytes once, and what can be no path names none."""
    return os.path.isfile(path)  # noqa: PTH113 - unlike Path.is_file, raises nothing for any text


def _absence(path: str) -> str:
    return "is no ordinary file, and cannot be read again" if os.path.exists(path) else "no such file"  # noqa: PTH110


def artifacts(dossier: Dossier, certificate: str) -> list[Artifact]:
    """Every file that is there, as the certificate names it, by path relative to it."""
    found = [(role, relative(path, certificate), path) for role, path in inventory(dossier) if is_file(path)]
    return [
        Artifact(role=role, path=shown, sha256=bytes_digest(path), digest=_digest(dossier, role, path))
        for role, shown, path in sorted(found)
    ]


def relative(path: str, certificate: str) -> str:
    """A path as seen from the certificate; folders that are links are followed, since ".." is taken from where they lead."""
    folder = Path(certificate).parent.resolve()
    return Path(os.path.relpath(Path(path).parent.resolve() / Path(path).name, folder)).as_posix()


def bytes_digest(path: str) -> str:
    """sha256 of a file's bytes; raises InputError where it cannot be read, or only once."""
    if not is_file(path):
        raise InputError.at(printable(path, keep=""), _absence(path))
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror or error}") from None


def _digest(dossier: Dossier, role: str, path: str) -> str | None:
    """The digest of a file's meaning; None where it has none, or, in a run that fails, where it could not be read."""
    try:
        return _meaning(dossier, role, path)
    except (CannotTell, InputError):
        return None


def _meaning(dossier: Dossier, role: str, path: str) -> str | None:
    if role in _SETTINGS:
        return _model_digest(path, _SETTINGS[role])
    if role in ("answers", "generation_input"):
        return _answers(dossier, role)
    if role == "generation_evidence":
        evidence = dossier.anew("generation").shown.evidence
        return None if evidence is None else evidence.digest
    if role in ("fragments", "ranked_results"):
        report = dossier.retrieval
        return report.results_digest if role == "ranked_results" else report.fingerprint.components["A"].digest
    layer, _, what = role.partition("_")
    return _of_layer(dossier, layer, what, role)


_SETTINGS: dict[str, type[Contract]] = {"configuration": Config, "approved_judges": ApprovedJudges}


def _of_layer(dossier: Dossier, layer: str, what: str, role: str) -> str | None:
    if layer not in ("retrieval", "generation", "corpus"):
        return None  # timings: clock readings
    again = dossier.anew(layer)  # type: ignore[arg-type]
    if role in again.beside:
        return again.beside[role].digest
    digests = {"judgments": again.judgments_digest, "results": again.results_digest}
    return again.report.run_id if what == "report" and again.report is not None else digests.get(what)


def _answers(dossier: Dossier, role: str) -> str | None:
    report = dossier.generation
    if not isinstance(report, GenerationReport):
        return None
    if role == "answers":
        return report.answers_digest
    return digest({"judgments": report.judgments_digest, "answers": report.answers_digest})


def _model_digest(path: str, model: type[Contract]) -> str:
    """Of a file of settings: what it states, whatever its order, comments and white space."""
    return digest(read_model(path, model).model_dump(mode="json", exclude_unset=True, by_alias=True))
