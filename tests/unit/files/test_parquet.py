"""Flat Parquet checked as whole columns gives the rows, and the faults, of the reader that looks at every result."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tripos.contracts.retrieval import RankedRow
from tripos.errors import Findings
from tripos.files.formats import parquet_rows
from tripos.files.ranked import read_ranked

Line = tuple[str | None, str | None, int | None, float | None]
COLUMNS = ("query_id", "fragment_id", "rank", "score")


def written(path: Path, lines: list[Line], *, with_score: bool = True, rank_type: str = "BIGINT") -> str:
    """The lines as flat Parquet, in their order."""
    columns = COLUMNS if with_score else COLUMNS[:3]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (query_id VARCHAR, fragment_id VARCHAR, rank {rank_type}, score DOUBLE)")
        if lines:
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", lines)
        connection.execute(f"COPY (SELECT {', '.join(columns)} FROM t) TO '{path}' (FORMAT parquet)")
    return str(path)


def told(row: RankedRow) -> Any:
    """What a row says; −0 and 0 are apart."""
    scores = None if row.scores is None else [repr(score) for score in row.scores]
    return row.place, row.query_id, list(row.fragment_ids), scores, None if row.ranks is None else list(row.ranks)


def read(path: str) -> tuple[list[Any], list[str]]:
    findings = Findings()
    rows = [told(row) for row in read_ranked(path, findings)]
    return rows, [f"{f.kind} {f}" for f in findings.errors]


def both(path: str) -> tuple[Any, Any]:
    quick = read(path)
    with mock.patch.object(parquet_rows, "_quick_queries", return_value=None):
        return quick, read(path)


def query(name: str, *ids: str, scores: tuple[float, ...] = ()) -> list[Line]:
    given: tuple[float | None, ...] = scores or (None,) * len(ids)
    return [(name, i, rank, score) for rank, (i, score) in enumerate(zip(ids, given, strict=True), 1)]


ids = st.sampled_from(["a", "b", "c::f1", "é", "😀", "", "x\0y", "\0", None])
scores = st.sampled_from([0.9, 0.5, 0.5, 0.0, -0.0, -1.0, 5e-324, 1e308, float("nan"), float("inf"), float("-inf"), None])
plain = st.integers(0, 6).flatmap(
    lambda n: st.builds(
        lambda name, found, given: query(name, *found, scores=tuple(sorted(given, reverse=True))),
        st.sampled_from(["q1", "q2", "q3", "q4", "é"]),
        st.lists(st.sampled_from(["a", "b", "c::f1", "é", "😀"]), min_size=n, max_size=n),
        st.lists(st.floats(-10, 10), min_size=n, max_size=n),
    )
)
odd = st.lists(
    st.tuples(
        st.sampled_from(["q1", "q5", "", None, "q\0"]), ids, st.sampled_from([1, 2, 3, 0, -1, None, 60_000, 2**62]), scores
    ),
    min_size=1,
    max_size=3,
)
files = st.lists(st.one_of(plain, plain, plain, odd), max_size=5).map(lambda parts: [line for part in parts for line in part])


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(files, st.booleans())
@example(query("q1", "a", "b", scores=(0.5, -0.0)) + query("q2", "b", "a", scores=(0.0, 0.0)), True)
@example([*query("q1", "a", "b"), ("q1", "c", 2, None)], False)
@example([("q1", "a", 2, 0.5), ("q1", "b", 1, 0.9)], True)
@example([("q1", "a", 2, 0.5), ("q1", "b", 3, 0.4)], True)
@example([("q1", "a", 1, 0.5), ("q2", "b", 1, 0.4), ("q1", "b", 2, 0.4)], True)
def test_whole_columns_say_what_every_result_says(tmp_path: Path, lines: list[Line], with_score: bool) -> None:
    quick, slow = both(written(tmp_path / "r.parquet", lines, with_score=with_score))
    assert quick == slow


def test_plain_files_take_the_quick_way(tmp_path: Path) -> None:
    lines = [line for n in range(50) for line in query(f"q{n}", "a", f"b{n}", "é", scores=(3.0, 3.0, -n))]
    path = written(tmp_path / "r.parquet", lines)
    with mock.patch.object(parquet_rows, "_read_queries", None):  # which only the slow way calls
        rows, faults = read(path)
    assert (len(rows), faults) == (50, [])
    assert rows[7][1:] == ("q7", ["a", "b7", "é"], ["3.0", "3.0", "-7.0"], None)
    assert rows[7][0].line == 22


@pytest.mark.parametrize("rank_type", ["UTINYINT", "INTEGER", "UBIGINT"])
def test_ranks_of_every_kind(rank_type: str, tmp_path: Path) -> None:
    lines = query("q1", "a", "b", "c") + query("q2", "b")
    quick, slow = both(written(tmp_path / "r.parquet", lines, rank_type=rank_type))
    assert quick == slow == ([*quick[0]], [])


def test_ids_joined_out_of_order_are_noticed(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", query("q1", "a", "b", "c", scores=(3, 2, 1)))
    expected = read(path)
    with (
        mock.patch.object(parquet_rows, "_RANKS", "\3\2\1"),  # as if DuckDB had joined ids, and ranks with them, backwards
        mock.patch.object(parquet_rows, "_read_queries", side_effect=parquet_rows._read_queries) as every_result,
    ):
        assert read(path) == expected
    assert every_result.call_count == 1
