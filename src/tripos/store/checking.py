"""Whether every file of a store is what it says, and what killed processes left behind."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import zstandard

from tripos.errors import Findings, Place
from tripos.fingerprint import digest
from tripos.store.layout import CERTIFICATES, DRAFTS, EXECUTIONS, FILES, LATENCIES, PLACES, REPORT, RUNS, entries, escaped
from tripos.store.tables import MEASURE_TYPE, TABLES, Table
from tripos.store.views import existing
from tripos.store.writer import text
from tripos.store.writing import sha256

if TYPE_CHECKING:
    import duckdb

_ABANDONED_S = 3600
_AGAIN = "copy the run's folder again, or remove it and evaluate again"
_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True)
class Checked:
    """What a store holds; what is wrong with it stands in the findings."""

    runs: int = 0
    executions: int = 0
    certificates: int = 0
    files: int = 0
    never_executed: int = 0
    loose_latencies: int = 0
    removed: int = 0
    in_progress: int = 0


def check_store(path: str | Path, findings: Findings) -> Checked:
    """Verify every file, note what is wrong, and remove drafts that no process can be writing any more."""
    store, found = existing(path), Checked()
    from tripos.files.formats.parquet import connect

    with connect() as connection:
        runs = _runs(store, found, findings)
        _tables(store, connection, findings)
        executed = _executions(store, connection, found, findings)
        _latencies(store, executed.keys(), found)
        _certificates(store, connection, found, findings)
    for name, run in executed.items():
        if run not in runs:
            place = Place(str(store / EXECUTIONS / f"{name}.*.parquet"))
            findings.error("no_run", place, "run_id", f"{run[:12]}… is not in the store: copy its folder under runs/ too")
    found.never_executed = len(runs - set(executed.values()))
    _strays(store, findings)
    _drafts(store, found)
    return found


def _runs(store: Path, found: Checked, findings: Findings) -> set[str]:
    """Every run whose folder is there, each of its files verified."""
    runs: set[str] = set()
    for folder in entries(store / RUNS):
        if not _ID.fullmatch(folder.name) or not folder.is_dir():
            findings.error("stray", Place(str(folder)), "", "is no run: a folder named by a run id is expected; remove it")
            continue
        runs.add(folder.name)
        found.files += _run_files(folder, findings)
        _report(folder, findings)
    found.runs = len(runs)
    return runs


def _run_files(folder: Path, findings: Findings) -> int:
    """The files of one run against their digests."""
    listing = folder / FILES
    try:
        listed: dict[str, dict[str, Any]] = orjson.loads(listing.read_bytes())
        digests = {name: entry["sha256"] for name, entry in listed.items()}
    except (OSError, orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        findings.error("unlisted", Place(str(listing)), "", f"is missing or unreadable: {_AGAIN}")
        return 0
    for name, expected in digests.items():
        path = folder / name
        if not path.is_file():
            findings.error("missing", Place(str(path)), "", f"is missing: {_AGAIN}")
        elif (now := _digest(path)) != expected:
            text_ = "is not what was written" if now else "cannot be read"
            findings.error("damaged", Place(str(path)), "", f"{text_}: {_AGAIN}")
    for path in entries(folder):
        if path.name not in digests and path.name != FILES:
            findings.error("stray", Place(str(path)), "", f"belongs to no run ({FILES} does not list it): remove it")
    return len(digests) + 1


def _digest(path: Path) -> str | None:
    """The digest of a file; None where it cannot be read."""
    try:
        return sha256(path)
    except OSError:
        return None


def _report(folder: Path, findings: Findings) -> None:
    """The run id is the digest of the report."""
    path = folder / REPORT
    if not path.is_file():
        return
    try:
        content = orjson.loads(zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read())
        stated = content.pop("run_id")
    except (OSError, zstandard.ZstdError, orjson.JSONDecodeError, AttributeError, KeyError):
        findings.error("damaged", Place(str(path)), "", f"cannot be read: {_AGAIN}")
        return
    if folder.name != stated or digest(content) != folder.name:
        findings.error("other_run", Place(str(path)), "run_id", "the report's content is not the one that this run id names")


def _tables(store: Path, connection: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    """Every file of a run's tables: readable, of the run whose folder it is in, with columns of the right types."""
    import duckdb

    for table in (table for table in TABLES.values() if table.place == RUNS):
        files = sorted(store.glob(f"{RUNS}/*/{table.name}.*.parquet"))
        try:
            if files:
                _table(connection, table, f"{escaped(str(store))}/{RUNS}/*/{table.name}.*.parquet", findings)
        except duckdb.Error:
            for path in files:
                _one(connection, table, path, findings)


def _one(connection: duckdb.DuckDBPyConnection, table: Table, path: Path, findings: Findings) -> None:
    import duckdb

    try:
        _table(connection, table, escaped(str(path)), findings)
    except duckdb.Error as error:
        findings.error("damaged", Place(str(path)), "", f"is no readable Parquet: {str(error).splitlines()[0][:160]}")


def _table(connection: duckdb.DuckDBPyConnection, table: Table, files: str, findings: Findings) -> None:
    """The files that a glob names: types by column, and the run."""
    types = {column.name: column.type for column in table.columns}
    own: dict[str, list[tuple[str, str | None]]] = {}
    for name, column, kind in connection.execute(f"SELECT file_name, name, type FROM parquet_schema({text(files)})").fetchall():
        own.setdefault(name, []).append((column, kind))
        wanted = types.get(column) or (MEASURE_TYPE if "@" in column else None)
        if wanted and kind != _stored_as(wanted):
            findings.error("type", Place(name), column, f"is stored as {kind or 'a list'}: {wanted} is expected")
    _same_in_a_shape(own, findings)
    if "run_id" in types:
        source = f"read_parquet({text(files)}, union_by_name = true, filename = true)"
        sql = f"SELECT filename, min(run_id), max(run_id) FROM {source} GROUP BY filename"
        for name, low, high in connection.execute(sql).fetchall():
            if not low == high == Path(name).parent.name:
                findings.error("other_run", Place(name), "run_id", "names another run than its folder")


def _same_in_a_shape(own: Mapping[str, Sequence[object]], findings: Findings) -> None:
    """Files of one shape have the same columns, since they are read as one."""
    first: dict[str, tuple[str, Sequence[object]]] = {}
    for name, columns in sorted(own.items()):
        other, expected = first.setdefault(Path(name).suffixes[-2], (name, columns))
        if columns != expected:
            findings.error("shape", Place(name), "", f"has other columns than {other}, though its name says the same: {_AGAIN}")


_PHYSICAL = {"VARCHAR": "BYTE_ARRAY", "BIGINT": "INT64", "TIMESTAMP": "INT64", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN"}


def _stored_as(kind: str) -> str | None:
    """Parquet's own type of a column; None for a list, which is a group."""
    return None if kind.endswith("[]") else _PHYSICAL[kind]


def _executions(store: Path, connection: duckdb.DuckDBPyConnection, found: Checked, findings: Findings) -> dict[str, str]:
    """The run of each execution whose file holds."""
    executed = {}
    for path, row in _rows(store / EXECUTIONS, connection, "execution_id, run_id", findings):
        if row[0] == _entry(path):
            executed[_entry(path)] = str(row[1])
        else:
            findings.error("renamed", Place(str(path)), "execution_id", f"is {row[0]}: the file was renamed")
    found.executions = len(executed)
    found.files += len(executed)
    return executed


def _latencies(store: Path, executed: Collection[str], found: Checked) -> None:
    files = entries(store / LATENCIES)
    found.files += len(files)
    found.loose_latencies = sum(_entry(path) not in executed for path in files)


def _certificates(store: Path, connection: duckdb.DuckDBPyConnection, found: Checked, findings: Findings) -> None:
    for path, (name, content) in _rows(store / CERTIFICATES, connection, "certificate_id, content", findings):
        found.certificates += 1
        found.files += 1
        if name != _entry(path) or digest(orjson.loads(content)) != name:
            findings.error("damaged", Place(str(path)), "", "its content is not the one that its name says")


def _rows(
    folder: Path, connection: duckdb.DuckDBPyConnection, columns: str, findings: Findings
) -> Iterator[tuple[Path, tuple[Any, ...]]]:
    """The one row of each file in a folder."""
    import duckdb

    for path in entries(folder):
        try:
            rows = connection.execute(f"SELECT {columns} FROM read_parquet({text(escaped(str(path)))})").fetchall()
        except duckdb.Error as error:
            findings.error("damaged", Place(str(path)), "", f"is no readable Parquet: {str(error).splitlines()[0][:160]}")
            continue
        if len(rows) == 1:
            yield path, rows[0]
        else:
            findings.error("rows", Place(str(path)), "", f"holds {len(rows)} rows: one is expected")


def _entry(path: Path) -> str:
    """The execution or certificate that a file is named by."""
    return path.name.partition(".")[0]


def _strays(store: Path, findings: Findings) -> None:
    for path in entries(store):
        if path.name not in PLACES:
            findings.warn("stray", Place(str(path)), "", "is no part of a store; nothing reads it")


def _drafts(store: Path, found: Checked) -> None:
    """Drafts that were not touched for an hour are removed; a younger one may be another process at work."""
    for path in entries(store / DRAFTS):
        if time.time() - path.stat().st_mtime > _ABANDONED_S:
            shutil.rmtree(path, ignore_errors=True)
            found.removed += 1
        else:
            found.in_progress += 1
