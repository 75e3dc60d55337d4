"""Evaluations and certificates into a store: a run once, an execution each time."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import rfc8785
import zstandard

from tripos.contracts.base import Contract
from tripos.files.git import head
from tripos.files.reports import plain
from tripos.fingerprint import digest
from tripos.store.content import Content, Report
from tripos.store.layout import (
    CERTIFICATES,
    EXECUTIONS,
    FILES,
    LATENCIES,
    REPORT,
    RUNS,
    draft,
    file_name,
    publish_file,
    publish_folder,
)
from tripos.store.tables import TABLES, Table, shape
from tripos.store.writer import Writer

_LEVEL = 10


class Stored(NamedTuple):
    """What became of an evaluation: its run, whether that is new to the store, and the execution."""

    run_id: str
    is_new: bool
    execution_id: str


def store(content: Content, folder: str | Path, labels: Sequence[str] = (), *, now: datetime | None = None) -> Stored:
    """Put one evaluation into a store: the run's folder by one rename, then the execution.

    A process that is killed leaves the run whole or absent; left-overs lie under `drafts`.

    Args:
        content: The tables of the run.
        folder: The store; made where it is not there.
        labels: Names for this execution, by which it can be found.
        now: The time of the execution; default: this moment.

    Raises:
        OutputError: The store cannot be written.
    """
    place, report = Path(folder), content.report
    when = now or datetime.now(UTC)
    execution_id = f"{when.astimezone(UTC):%Y%m%dT%H%M%S%fZ}-{report.run_id[:12]}-{secrets.token_hex(4)}"
    with draft(place) as made:
        target = place / RUNS / report.run_id
        is_new = not target.is_dir() and _publish_run(content, made, target)
        _publish_execution(content, place, made, _execution(report, content.layer, execution_id, when, labels))
    return Stored(report.run_id, is_new, execution_id)


def _publish_run(content: Content, made: Path, target: Path) -> bool:
    """Write every table of the run, and give the folder its name; False where another process was first."""
    run = made / "run"
    run.mkdir()
    tables = {"runs": [run_row(content)], **content.tables}
    written: dict[str, dict[str, Any]] = {}
    with Writer(run) as writer:
        for name, rows in tables.items():
            own = TABLES[name]
            path, n = writer.write(own, rows, content.measures if own.has_measures else ())
            written[path.name] = {"sha256": sha256(path), "rows": n}
    report = run / REPORT
    report.write_bytes(packed(content.report))
    written[REPORT] = {"sha256": sha256(report), "rows": 1}
    (run / FILES).write_bytes(rfc8785.dumps({name: written[name] for name in sorted(written)}) + b"\n")
    return publish_folder(run, target)


def packed(report: Contract) -> bytes:
    """The report without provenance as canonical JSON, compressed."""
    content = report.model_dump(mode="json", exclude={"provenance"})
    return zstandard.ZstdCompressor(level=_LEVEL).compress(rfc8785.dumps(content))


def sha256(path: Path) -> str:
    """The digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def run_row(content: Content) -> dict[str, Any]:
    """The row of `runs`."""
    report = content.report
    own, parts = report.fingerprint, report.fingerprint.components
    names = {"A": "a_corpus", "B": "b_judgments", "C": "c_policy", "D": "d_depth"}
    return {
        "run_id": report.run_id,
        "layer": content.layer,
        "name": report.name,
        "scope": report.scope,
        "configuration": own.configuration,
        "system": own.system,
        "measurement": own.measurement,
        **{name: parts[letter].digest for letter, name in names.items()},
        "judgments_digest": report.judgments_digest,
        "scored": report.rows.scored,
        "missed": report.missed,
        "verdict": report.verdict.status,
        "exit_code": report.verdict.exit_code,
        "because": report.verdict.because,
        "exploratory": report.exploratory,
        "components": _json({letter: plain(part) for letter, part in parts.items()}),
        "reading": _json(report.reading),
        "measures": content.measures,
        **content.facts,
    }


def _json(value: Any) -> str:
    return rfc8785.dumps(value).decode()


def _execution(report: Report, layer: str, execution_id: str, when: datetime, labels: Sequence[str]) -> dict[str, Any]:
    """The row of `executions`."""
    git, told = head(), report.provenance
    return {
        "execution_id": execution_id,
        "time": when.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds"),
        "run_id": report.run_id,
        "layer": layer,
        "name": report.name,
        "labels": list(labels),
        "git_commit": None if git is None else git.commit,
        "git_dirty": None if git is None else git.is_dirty,
        "verdict": report.verdict.status,
        "tool": told.tool,
        "latency_n": told.latency_ms.n,
        **{f"latency_{q}": getattr(told.latency_ms, q) for q in ("p50", "p95", "p99")},
        "inputs": orjson.dumps([plain(entry) for entry in told.inputs]).decode(),
    }


def _publish_execution(content: Content, place: Path, made: Path, row: Mapping[str, Any]) -> None:
    """The latencies, where there are any, then the execution: it stands for a run that is whole."""
    own = {name: row[name] for name in ("execution_id", "run_id", "layer")}
    latencies = ({**own, "query_id": name, "latency_ms": ms} for name, ms in sorted(content.latencies.items()))
    if content.latencies:
        _publish(TABLES["latencies"], latencies, made, place / LATENCIES, row["execution_id"])
    _publish(TABLES["executions"], [row], made, place / EXECUTIONS, row["execution_id"])


def _publish(table: Table, rows: Iterable[Mapping[str, Any]], made: Path, folder: Path, name: str) -> None:
    with Writer(made) as writer:
        path, _ = writer.write(table, rows)
    publish_file(path, folder / file_name(name, shape(table.columns)))


def store_certificate(folder: str | Path, certificate: Contract, row: Mapping[str, Any]) -> tuple[str, bool]:
    """Put a certificate into a store, granted or refused; returns its id, the digest of its content, and whether it is new.

    Args:
        folder: The store; made where it is not there.
        certificate: The document itself.
        row: Values for the columns of `certificates` that only its maker knows: certified, name, configuration, run_ids,
            failed_checks.

    Raises:
        OutputError: The store cannot be written.
    """
    content = plain(certificate)
    name = digest(content)
    place = Path(folder) / CERTIFICATES
    is_new = not any(place.glob(f"{name}.*"))
    if is_new:
        with draft(Path(folder)) as made:
            _publish(TABLES["certificates"], [{**row, "certificate_id": name, "content": _json(content)}], made, place, name)
    return name, is_new
