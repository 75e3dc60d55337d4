"""Ranked results as Parquet, read and written by DuckDB: flat (a row a result) or columnar (a row a query, with lists)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import duckdb
import orjson

from tripos.contracts.retrieval import ColumnarResults, FlatResult, RankedRow
from tripos.errors import Findings, InputError, Place, UsageError, suggest
from tripos.files.jsonl import dump_line, validated
from tripos.files.streams import open_bytes
from tripos.fingerprint import eight_bytes_each

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
            edges.add(edge if table.layout == "columnar" else _query_end(connection, path, edge, table.rows))
    return list(itertools.pairwise(sorted(edges)))


def _query_end(connection: duckdb.DuckDBPyConnection, path: str, row: int, rows: int) -> int:
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


class Slice(NamedTuple):
    """A row range of a file, and what the user calls the file."""

    file: str
    shown: str
    table: Table
    start: int
    stop: int

    @property
    def is_sorted_copy(self) -> bool:
        """Whether the file is a sorted copy of the user's."""
        return self.file != self.shown

    @property
    def range(self) -> list[Any]:
        """The parameters of `select`."""
        return [literal(self.file), self.start, self.stop]

    def select(self, columns: str) -> str:
        """SQL for these columns of rows $2..$3−1 of file $1."""
        source = "read_parquet($1, file_row_number = true)"
        return f"SELECT {columns} FROM {source} WHERE file_row_number >= $2 AND file_row_number < $3"


def read_table(part: Slice, findings: Findings) -> Iterator[RankedRow]:
    """The ranked rows of a row range; messages count rows from 1."""
    with connect() as connection:
        yield from (_columnar if part.table.layout == "columnar" else _flat)(connection, part, findings)


def _flat(connection: duckdb.DuckDBPyConnection, part: Slice, findings: Findings) -> Iterator[RankedRow]:
    """Rows of a flat file, in chunks that end where a query ends."""
    start, stop = part.start, part.stop
    while start < stop:
        end = min(start + _CHUNK, stop)
        end = end if end == stop else min(_query_end(connection, part.file, end, part.table.rows), stop)
        chunk = part._replace(start=start, stop=end)
        rows = _quick_queries(connection, chunk)
        yield from _read_queries(connection, chunk, findings) if rows is None else rows
        start = end


def _read_queries(connection: duckdb.DuckDBPyConnection, part: Slice, findings: Findings) -> Iterator[RankedRow]:
    """The queries of one chunk, every result looked at."""
    own = [SORTED_FROM] if part.is_sorted_copy else []
    found = connection.execute(part.select(", ".join([*map(_typed, part.table.columns), *own])), part.range).fetchnumpy()
    columns = {name: array.tolist() for name, array in found.items()}
    return _queries(columns, Place(part.shown, part.start + 1), findings)


class _Run(NamedTuple):
    """A query's rows in a chunk: where they begin and the number that the user knows, how many, and what they hold.

    `joined` is the ids with NUL between them, `ranks` one character a rank: in one order, whatever it is.
    """

    query_id: str
    first: int
    number: int
    n: int
    is_plain: bool
    joined: str
    ranks: str


def _quick_queries(connection: duckdb.DuckDBPyConnection, part: Slice) -> Iterator[RankedRow] | None:
    """The queries of one chunk, checked as whole columns; None where one is not plain, for the row reader to look at."""
    runs = _runs(connection, part)
    if runs is None:
        return None
    scores = None
    if "score" in part.table.columns:
        scores = connection.execute(part.select("score::DOUBLE AS score"), part.range).fetchnumpy()["score"]
    return (_quick_row(run, scores, run.first - part.start, part.shown) for run in runs)


def _quick_row(run: _Run, scores: Any, at: int, shown: str) -> RankedRow:
    """One query's row; its scores are those from `at` on."""
    place, ids = Place(shown, run.number + 1), run.joined.split("\0")
    if scores is None:
        return RankedRow(place, run.query_id, ids, in_order=True, joined=run.joined)
    own = scores[at : at + run.n]
    given = own.tolist()
    in_order, packed = given == sorted(given, reverse=True), eight_bytes_each(own.tobytes())
    return RankedRow(place, run.query_id, ids, given, in_order=in_order, joined=run.joined, packed=packed)


_MOST_RANKS = 50_000
_RANKS = "".join(map(chr, range(1, _MOST_RANKS)))
"""Ranks 1, 2, 3 … as characters."""

_PLAIN = """
    count(fragment_id) = count(*) AND min(strlen(fragment_id)) > 0
    AND min(try_cast(rank AS BIGINT) - file_row_number) = max(try_cast(rank AS BIGINT) - file_row_number)
"""
_FINITE = "AND count(score) = count(*) AND min(score::DOUBLE) > '-inf'::DOUBLE AND max(score::DOUBLE) < 'inf'::DOUBLE"
"""NaN is the greatest of all in DuckDB."""


def _runs(connection: duckdb.DuckDBPyConnection, part: Slice) -> list[_Run] | None:
    """The runs of one query each that make up a chunk; None where one is not plain, or they are no runs.

    DuckDB need not join strings in the order of rows: that the ranks, joined beside the ids, come as 1, 2, 3 … shows that it
    did, and that they fall behind the row numbers by the same everywhere that scores stand in that order, too.
    """
    number = f"arg_min({SORTED_FROM}, file_row_number)" if part.is_sorted_copy else "min(file_row_number)"
    plain = _PLAIN + (_FINITE if "score" in part.table.columns else "")
    ranks = f"string_agg(chr(greatest(0, least(rank, {_MOST_RANKS}))::INTEGER), '')"
    sql = part.select(
        f"query_id, min(file_row_number) AS first, {number}, count(*), {plain}, string_agg(fragment_id, chr(0)), {ranks}"
    )
    runs = [_Run(*row) for row in connection.execute(f"{sql} GROUP BY query_id ORDER BY first", part.range).fetchall()]
    at = part.start
    for run in runs:
        if not run.is_plain or run.first != at or not run.query_id or "\0" in run.query_id:
            return None
        if run.ranks != _RANKS[: run.n] or run.joined.count("\0") != run.n - 1:
            return None
        at += run.n
    return runs if at == part.stop else None


def _typed(column: str) -> str:
    """SQL of one column; scores as doubles, whatever numbers they are stored as."""
    return {"score": "score::DOUBLE AS score", "scores": "scores::DOUBLE[] AS scores"}.get(column, column)


def _queries(columns: Mapping[str, list[Any]], place: Place, findings: Findings) -> Iterator[RankedRow]:
    """The queries of one chunk; `place` is that of its first row."""
    names, ids, ranks = columns["query_id"], columns["fragment_id"], columns["rank"]
    scores, numbers = columns.get("score"), columns.get(SORTED_FROM)
    first = 0
    for name, group in itertools.groupby(names):
        last = first + sum(1 for _ in group)
        own = None if scores is None else scores[first:last]
        line = place.line + first if numbers is None else int(numbers[first]) + 1
        where = Place(place.file, line)
        row = _row(RankedRow(where, name, ids[first:last], own), ranks[first:last], findings)
        if row is not None:
            yield row
        first = last


def _row(row: RankedRow, ranks: list[Any], findings: Findings) -> RankedRow | None:
    """One query's row in order of rank, checked as the row reader would."""
    if ranks != list(range(1, len(ranks) + 1)):
        if None in ranks or min(ranks) < 1:
            findings.error("rank", row.place, "rank", "is null or below 1: ranks count from 1")
            return None
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        row.fragment_ids = [row.fragment_ids[i] for i in order]
        row.scores = None if row.scores is None else [row.scores[i] for i in order]
        row.ranks = [ranks[i] for i in order]
    return _checked(row, findings)


def _checked(row: RankedRow, findings: Findings) -> RankedRow | None:
    """The row, or None where an id or a score breaks the contract."""
    for field, values in (("query_id", [row.query_id]), ("fragment_id", row.fragment_ids)):
        if None in values or "" in values:
            findings.error("id", row.place, field, "is null or empty: ids are non-empty strings")
            return None
        if any("\0" in value for value in values):
            findings.error("id", row.place, field, "holds a NUL character, which no store, shell or TREC file can carry")
            return None
    scores = row.scores
    if scores is not None and all(score is None for score in scores):
        row.scores = scores = None
    if scores is not None and None in scores:
        given = sum(score is not None for score in scores)
        findings.error("scores", row.place, "score", f"given for {given} of {len(scores)} results: give all or none")
        return None
    if scores and not all(-float("inf") < score < float("inf") for score in scores):
        findings.error("not_finite", row.place, "score", "is NaN or Infinity: write null for none")
        return None
    return row


def _columnar(connection: duckdb.DuckDBPyConnection, part: Slice, findings: Findings) -> Iterator[RankedRow]:
    """Rows of a columnar file, query by query."""
    for number, row in _records(connection, part):
        if (made := _sound(row, Place(part.shown, number), findings)) is not None:
            yield made


_BESIDE = ("latency_ms", "error", "corpus_digest", "policy_digest")
_LISTS = ("scores", "ranks", "source_ids", "collections")


def _sound(row: Mapping[str, Any], place: Place, findings: Findings) -> RankedRow | None:
    """The ranked row of a columnar record, or None with its first fault noted."""
    ids = row["fragment_ids"]
    if ids is None:
        findings.error("missing", place, "fragment_ids", "is null: [] says that nothing was found")
    elif odd := [name for name in _LISTS if row.get(name) is not None and len(row[name]) != len(ids)]:
        findings.error("length", place, odd[0], f"has not one value for each of {len(ids)} fragment_ids")
    elif odd := [name for name in ("source_ids", "collections") if not all(map(_is_id, row.get(name) or ()))]:
        findings.error("id", place, odd[0], "holds an empty id, or one with NUL")
    elif any(rank is not None and rank < 1 for rank in row.get("ranks") or ()):
        findings.error("rank", place, "ranks", "holds a rank below 1: ranks count from 1")
    elif not _is_object(row.get("metadata")):
        findings.error("metadata", place, "metadata", "is no JSON object")
    else:
        beside = {name: row[name] for name in _BESIDE if row.get(name) is not None}
        made = RankedRow(
            place, row["query_id"], ids, row.get("scores") or None, row.get("ranks"), row.get("source_ids"), **beside
        )
        plain = {"query_id": "q", "fragment_ids": [], **beside}
        if not beside or validated(plain, ColumnarResults, place, findings) is not None:
            return _checked(made, findings)
    return None


def _is_id(name: str | None) -> bool:
    return name is None or (name != "" and "\0" not in name)


def _is_object(text: str | None) -> bool:
    try:
        return text is None or isinstance(orjson.loads(text), dict)
    except ValueError:
        return False


def _records(connection: duckdb.DuckDBPyConnection, part: Slice) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a file as dictionaries, each with its number from 1."""
    columns, number = part.table.columns, part.start
    found = connection.execute(part.select(", ".join(map(_typed, columns))), part.range)
    while rows := found.fetchmany(_QUERIES):
        for row in rows:
            number += 1
            yield number, dict(zip(columns, row, strict=True))


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


def _without_partial_scores(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "scores": None} if None in (row.get("scores") or ()) else row


def stored_rows(path: str, table: Table, form: str, findings: Findings) -> Iterator[dict[str, Any]]:
    """Every row of a file as it was before conversion, without what was not given; faulty ones are noted.

    Nested rows may score some results alone: converting judges no ranking.
    """
    with connect() as connection:
        for number, row in _records(connection, Slice(path, path, table, 0, table.rows)):
            given = {name: value for name, value in row.items() if value is not None}
            place = Place(path, number)
            if table.layout == "flat":
                if validated(given, FlatResult, place, findings) is not None:
                    yield given
            elif _sound(_without_partial_scores(row) if form == "nested" else row, place, findings) is not None:
                if "metadata" in given:
                    given["metadata"] = orjson.loads(given["metadata"])
                yield given
