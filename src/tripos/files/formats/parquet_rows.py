"""Rows of ranked results in Parquet: whole columns checked at once, and each result looked at wherever that leaves a doubt."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import duckdb
import orjson

from tripos.contracts.retrieval import ColumnarResults, FlatResult, RankedRow
from tripos.errors import Findings, Place
from tripos.files.formats.parquet import SORTED_FROM, Table, connect, literal, query_end
from tripos.files.jsonl import validated
from tripos.fingerprint import eight_bytes_each

_CHUNK = 200_000
_QUERIES = 2_000
_MOST = 1 << 50


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
        end = end if end == stop else min(query_end(connection, part.file, end, part.table.rows), stop)
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
