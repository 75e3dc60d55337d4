"""Ranked results as Parquet, read and written by DuckDB: flat (a row a result) or columnar (a row a query, with lists)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import duckdb

from tripos.errors import Findings, InputError, Place, UsageError, suggest
from tripos.files.jsonl import dump_line
from tripos.files.streams import open_bytes

Layout = Literal["flat", "columnar"]

FLAT = {"query_id": "VARCHAR", "fragment_id": "VARCHAR", "rank": "BIGINT", "score": "DOUBLE"}
COLUMNAR = {
    "query_id": "VARCHAR",
    "fragment_ids": "VARCHAR[]",
    "scores": "DOUBLE[]",
    "ranks": "BIGINT[]",
    "source_ids": "VARCHAR[]",
    "collections": "VARCHAR[]",
    "latency_ms": "DOUBLE",
    "error": "VARCHAR",
    "corpus_digest": "VARCHAR",
    "policy_digest": "VARCHAR",
    "metadata": "VARCHAR",
}
"""Columns and their types; `metadata` is JSON text. Lists of items that gave nothing are null."""

SORTED_FROM = "tripos_row"
"""Column of a sorted copy: the row's number in the user's file, from 0."""

_REQUIRED = {"flat": ("query_id", "fragment_id", "rank"), "columnar": ("query_id", "fragment_ids")}
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_NUMBERS = {*_INTEGERS, "DOUBLE", "FLOAT"}
_CHUNK = 200_000
_QUERIES = 2_000
_MAX_LINE = 1 << 30
_MOST = 1 << 50


class Table(NamedTuple):
    """A Parquet file's layout, its columns of ours, and its rows."""

    layout: Layout
    columns: list[str]
    rows: int


def literal(path: str) -> str:
    """The path for DuckDB, which reads *, ? and [ as patterns."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def connect(memory_limit: int = 0, folder: str | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB of one thread that fetches nothing, and may spill into `folder` alone, beyond `memory_limit` bytes."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET temp_directory = $1", [folder or ""])
    if memory_limit:
        connection.execute(f"SET memory_limit = '{max(min(memory_limit, _MOST) >> 20, 1)}MiB'")
    return connection


def table_of(path: str, *, relaxed: bool = False) -> Table:
    """The layout of a file of ranked results; raises InputError naming every column that does not fit.

    With `relaxed`, columns that are none of ours are passed over.
    """
    open_bytes(path).close()  # a missing file is told with the nearest name
    with connect() as connection:
        try:
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet($1)", [literal(path)]).fetchall()
            rows = connection.execute("SELECT count(*) FROM read_parquet($1)", [literal(path)]).fetchone()
        except duckdb.Error as error:
            raise InputError.at(path, f"is no readable Parquet: {_said(error)}") from None
    types = {name: kind for name, kind, *_ in described}
    layout: Layout = "columnar" if "fragment_ids" in types else "flat"
    findings = Findings()
    _check_columns(path, layout, types, findings, relaxed)
    findings.raise_errors()
    known = FLAT if layout == "flat" else COLUMNAR
    return Table(layout, [name for name in known if name in types], rows[0] if rows else 0)


def _check_columns(path: str, layout: Layout, types: Mapping[str, str], findings: Findings, relaxed: bool) -> None:
    known, place = FLAT if layout == "flat" else COLUMNAR, Place(path)
    for name in _REQUIRED[layout]:
        if name not in types:
            findings.error("missing", place, name, f"no such column: a {layout} file has {', '.join(known)}")
    for name, kind in types.items():
        if name not in known:
            if not relaxed:
                findings.error("extra_forbidden", place, name, f"unknown column{suggest(name, known)}")
        elif not _fits(kind, known[name]):
            findings.error("type", place, name, f"is {kind}: {known[name]} is expected")


def _fits(kind: str, wanted: str) -> bool:
    inner, is_list = kind.removesuffix("[]"), wanted.endswith("[]")
    if kind == '"NULL"' or inner == '"NULL"':
        return True
    allowed = {"VARCHAR": {"VARCHAR"}, "BIGINT": _INTEGERS, "DOUBLE": _NUMBERS}[wanted.removesuffix("[]")]
    return inner in allowed and kind.endswith("[]") == is_list


def _said(error: Exception) -> str:
    return str(error).splitlines()[0][:160]


def cuts(path: str, table: Table, n: int) -> list[tuple[int, int]]:
    """Row ranges of about equal size, at most n; in flat files cut where a query ends."""
    edges = {0, table.rows}
    with connect() as connection:
        for part in range(1, n):
            edge = table.rows * part // n
            edges.add(edge if table.layout == "columnar" else query_end(connection, path, edge, table.rows))
    return list(itertools.pairwise(sorted(edges)))


def query_end(connection: duckdb.DuckDBPyConnection, path: str, row: int, rows: int) -> int:
    """The first row at or after `row` that begins another query."""
    sql = "SELECT query_id FROM read_parquet($1, file_row_number = true) WHERE file_row_number BETWEEN $2 AND $3"
    while 0 < row < rows:
        window = [name for (name,) in connection.execute(sql, [literal(path), row - 1, row + 2_000]).fetchall()]
        for offset, (before, after) in enumerate(itertools.pairwise(window)):
            if before != after:
                return row + offset
        row += 2_001
    return min(row, rows)


def is_clustered(path: str) -> bool:
    """Whether the rows of each query of a flat file stand together."""
    sql = """
        SELECT count(*) FROM (
            SELECT max(file_row_number) - min(file_row_number) + 1 AS width, count(*) AS n
            FROM read_parquet($1, file_row_number = true) GROUP BY query_id
        ) WHERE width <> n
    """
    with connect() as connection:
        found = connection.execute(sql, [literal(path)]).fetchone()
    return found is None or found[0] == 0


def clustered(path: str, target: str, memory_limit: int) -> None:
    """Write a flat file sorted by query and rank, spilling beside the target beyond the memory limit."""
    with connect(memory_limit, str(Path(target).parent)) as connection:
        ordered = f"SELECT *, file_row_number AS {SORTED_FROM} FROM read_parquet($1, file_row_number = true)"
        ordered = ordered.replace("SELECT *,", "SELECT * EXCLUDE (file_row_number),") + " ORDER BY query_id, rank"
        try:
            connection.execute(f"COPY ({ordered}) TO '{_escaped(target)}' (FORMAT parquet)", [literal(path)])
        except duckdb.OutOfMemoryException:
            raise UsageError(f"--memory-limit is too little to sort {path}: give more, or sort it by query_id") from None


def _escaped(path: str) -> str:
    return path.replace("'", "''")


def write_parquet(target: str, rows: Iterable[Mapping[str, Any]], form: str, folder: str) -> int:
    """Write rows of one form (nested, columnar or flat) as Parquet in their order; returns how many.

    The rows pass through a temporary file in `folder`; the form is kept in the file, for the way back.
    """
    columns = FLAT if form == "flat" else COLUMNAR
    passing = Path(folder) / "rows.jsonl"
    n = 0
    with passing.open("wb") as stream:
        for n, row in enumerate(rows, 1):  # noqa: B007 - the count is the result
            stream.write(dump_line(row))
    typed = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    settings = f"format = 'newline_delimited', columns = {{{typed}}}, maximum_object_size = {_MAX_LINE}"
    rows_sql = f"SELECT * FROM read_json('{_escaped(str(passing))}', {settings})"
    output = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{tripos_form: '{form}'}}"
    with connect(folder=folder) as connection:
        connection.execute(f"COPY ({rows_sql}) TO '{_escaped(target)}' ({output})")
    passing.unlink()
    return n


def stored_form(path: str) -> str | None:
    """The form that a file was converted from, where it says so."""
    with connect() as connection:
        found = connection.execute(
            "SELECT value FROM parquet_kv_metadata($1) WHERE key = 'tripos_form'", [literal(path)]
        ).fetchone()
    return None if found is None else bytes(found[0]).decode()
