"""The quick way through alignment, beside the long one: the same columns, stories and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from unittest import mock

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builders import judgment
from tripos.columns import quick
from tripos.columns.align import Aligner, Reading
from tripos.columns.judged import Judged
from tripos.columns.misses import miss_lines
from tripos.columns.retrieval import EXPECTED, FIRST, GRADED
from tripos.columns.ties import packed_runs, straddled, tied_runs
from tripos.contracts.config import DepthConfig, Options
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import Findings, Place
from tripos.files.judgments import JudgmentTable
from tripos.files.quick import quick_row
from tripos.fingerprint import eight_bytes_each

IDS = [f"d{n}" for n in range(6)]
PLACE = Place("results.jsonl", 1)


def judged_row(listed: dict[str, Any]) -> RetrievalJudgment:
    return RetrievalJudgment.model_validate(judgment("q", *listed.pop("expected"), **listed))


@st.composite
def judgments(draw: st.DrawFn) -> RetrievalJudgment:
    """Rows of graded sources, some of which are not expected, in any order; now and then with something finer."""
    expected: list[str] = draw(st.lists(st.sampled_from(IDS), max_size=4))
    given_grades = bool(expected) and draw(st.booleans())
    more: list[str] = draw(st.lists(st.sampled_from(IDS), max_size=2 if given_grades else 0))
    named = draw(st.permutations(list(dict.fromkeys([*expected, *more]))))
    row: dict[str, Any] = {"expected": expected, "k": draw(st.none() | st.integers(1, 4))}
    if given_grades:
        row["relevance"] = {name: draw(st.sampled_from([0.5, 1, 2, 3])) for name in named}
    if draw(st.integers(0, 5)) == 0:
        row["required_sources"] = draw(st.lists(st.sampled_from(IDS), max_size=2, unique=True))
    return judged_row(row)


@st.composite
def lists(draw: st.DrawFn) -> RankedRow:
    """A list as the quick reader gives it: few ids and fewer scores, so that results stand twice and scores are equal."""
    ids = draw(st.lists(st.sampled_from([*IDS, "d1::2"]), max_size=6, unique=draw(st.integers(0, 5)) > 0))
    scores = draw(st.lists(st.sampled_from([-1.0, -0.0, 0, 0.5, 2, 3]), min_size=len(ids), max_size=len(ids)))
    line: dict[str, Any] = {"query_id": "q", "fragment_ids": ids}
    if draw(st.booleans()) and ids:
        line["scores"] = sorted(scores, reverse=True)
    if draw(st.integers(0, 5)) == 0:
        line |= {"latency_ms": 3.5}
    row = quick_row(orjson.dumps(line), PLACE)
    assert row is not None
    return row


def aligned(judgment: RetrievalJudgment, row: RankedRow, options: Options) -> dict[str, Any]:
    """All that alignment tells of one row."""
    findings = Findings()
    aligner = Aligner([judgment], Reading(None, DepthConfig(limit=4, top_k=2), None, options, findings, (1, 2, 4)))
    aligner.take(row)
    columns = aligner.columns()
    tables = {name: getattr(columns, name) for name in ("hits", "ideal", "groups", "evidence")}
    tables |= {f"ends {n}": hits for n, hits in enumerate(columns.ends)}
    told: dict[str, Any] = {name: [column.tolist() for column in table] for name, table in tables.items()}
    for f in fields(columns):
        if isinstance(column := getattr(columns, f.name), np.ndarray):
            told[f.name] = [str(value) for value in column.tolist()]
    tally = aligner.tally
    counts = (tally.results, tally.beyond_limit, tally.result_rows, tally.results_digest)
    return {
        **told,
        "counts": counts,
        "misses": list(miss_lines(columns, "", "")),
        "faults": [str(f) for f in findings.errors],
    }


def plain_list(*ids: str) -> RankedRow:
    row = quick_row(orjson.dumps({"query_id": "q", "fragment_ids": ids}), PLACE)
    assert row is not None
    return row


@settings(max_examples=500, deadline=None)
@example(judged_row({"expected": ["d3", "d4"]}), plain_list(*IDS), "strict", False)
@given(judgments(), lists(), st.sampled_from(["strict", "list"]), st.booleans())
def test_the_quick_way_is_the_long_one(judgment: RetrievalJudgment, row: RankedRow, order: Any, lenient: bool) -> None:
    options = Options(order=order, lenient=lenient)
    quickly = aligned(judgment, row, options)
    with mock.patch.object(quick, "is_plain", return_value=False):
        assert aligned(judgment, row, options) == quickly


def test_plain_rows_go_the_quick_way() -> None:
    row = quick_row(b'{"query_id":"q","fragment_ids":["d1","d2"],"scores":[2,1]}', PLACE)
    assert row is not None
    with mock.patch.object(Aligner, "_place", side_effect=AssertionError("the long way")):
        told = aligned(judged_row({"expected": ["d2", "d7"], "k": 1}), row, Options())
    assert told["hits"] == [[0], [2], [1.0], [GRADED | EXPECTED | FIRST]]
    assert told["counts"][:3] == (2, 0, 1)
    assert told["misses"] != []


@pytest.mark.parametrize(
    ("finer", "sources"),
    [
        ({"expected": ["a", "b"]}, ["a", "b"]),
        ({"expected": []}, []),
        ({"expected": ["a"], "relevance": {"a": 2, "z": 1}}, ["a", "z"]),
        ({"expected": ["a"], "relevance": {"z": 1, "a": 2}}, None),
        ({"expected": ["a", "a"]}, None),
        ({"expected": ["a"], "required_sources": ["b"]}, None),
        ({"expected": ["a"], "filters": {"lang": "en"}}, None),
        ({"expected": ["a"], "principal": {"groups": []}}, None),
        ({"expected": ["a"], "forbidden_sources": ["b"]}, None),
    ],
)
def test_which_rows_ask_for_sources_alone(finer: dict[str, Any], sources: list[str] | None) -> None:
    assert JudgmentTable.of([judged_row(finer)]).sources(0) == sources


def test_sources_of_tables_that_came_together() -> None:
    first, second = (
        JudgmentTable.of([RetrievalJudgment.model_validate(judgment(name, *expected)) for name, expected in rows])
        for rows in ([("q1", ["ä", "b"]), ("q2", [])], [("q3", ["c"]), ("q4", ["d", "e"])])
    )
    assert first.extend(second, 2)
    assert [first.sources(row) for row in range(4)] == [["ä", "b"], [], ["c"], ["d", "e"]]
    wanted = Judged(first, range(4)).wanted(3)
    assert wanted is not None
    assert (wanted.n_expected, list(wanted.grades), wanted.k) == (2, [1.0, 1.0], 0)


@given(st.lists(st.sampled_from([-1.0, -0.0, 0.0, 1.0, 2.0])))
@example([])
def test_packed_scores_tie_as_scores_do(scores: Sequence[float]) -> None:
    assert packed_runs(eight_bytes_each(scores)) == tied_runs(scores)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), max_size=8))
def test_straddled_cutoffs(scores: Sequence[float]) -> None:
    cutoffs = range(1, 10)
    by_definition = [k for k in cutoffs if k < len(scores) and scores[k - 1] == scores[k]]
    told = straddled(tied_runs(scores), cutoffs)
    assert [k for bit, k in enumerate(cutoffs) if told >> bit & 1] == by_definition
