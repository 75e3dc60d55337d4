"""What must hold of every retrieval measure on any world: bounds, monotony, and what a report may not depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.builders import Row, World, evaluated, judgment
from tests.worlds import worlds
from tripos.checks.evidence import natural
from tripos.contracts.fragments import source_of
from tripos.contracts.reports import Aggregate, Curve, RetrievalReport
from tripos.fingerprint import round12
from tripos.measures import block
from tripos.measures.aggregate import per_row, population
from tripos.measures.exact import ExactSum
from tripos.measures.record import Measure
from tripos.measures.retrieval import RETRIEVAL

MONOTONE = {"hit@k", "recall@k", "rr@k", "ap@k", "group_recall@k", "evidence_hit@k", "evidence_recall@k", "forbidden@k"}
"""Measures that a longer list can only raise."""

QUICK = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def with_(world: World, **changes: Any) -> World:
    return World(**{**vars(world), **changes})


def figures(found: Aggregate | Curve) -> list[tuple[float | None, float | None]]:
    """(value, worst) at each cutoff, or the one pair."""
    if isinstance(found, Curve):
        return list(zip(found.value, found.worst, strict=True))
    return [(found.value, found.worst)]


def records(report: RetrievalReport) -> Iterator[tuple[str, Measure, Aggregate | Curve]]:
    """Every figure of a report with its measure's record, "…@case" among them."""
    for name, record in RETRIEVAL.items():
        yield name, record, report.measures[name]
        if record.is_curve:
            yield record.at("case"), record, report.measures[record.at("case")]


def figured(report: RetrievalReport) -> dict[str, Any]:
    """All that was measured, without digests and what follows from them."""
    return report.model_dump(include={"measures", "slices", "ties", "leak_exam", "rows", "counts", "missed", "misses"})


# ---- the measures themselves


@given(worlds())
@QUICK
def test_bounds(world: World) -> None:
    for name, record, found in records(evaluated(world).report):
        for value, worst in figures(found):
            for figure in (value, worst):
                assert figure is None or 0 <= figure <= (1 if record.aggregate == "mean" else float("inf")), name
            if value is not None and worst is not None:
                assert worst <= value if record.direction == "higher" else worst >= value, name
            assert (value is None) == (found.n == 0), name
        intervals = found.ci.values() if isinstance(found, Curve) else [found.ci] if found.ci else []
        assert all(0 <= interval.low <= interval.high <= 1 for interval in intervals), name


@given(worlds())
@QUICK
def test_every_row_is_accounted_for(world: World) -> None:
    evaluation = evaluated(world)
    for name, record, found in records(evaluation.report):
        rows = int(population(record, evaluation.columns.positive).sum())
        assert found.n + found.n_undefined + found.incomplete == rows, name


@given(worlds())
@QUICK
def test_monotone_in_k(world: World) -> None:
    columns = evaluated(world).columns
    for name in MONOTONE:
        values = per_row(columns, RETRIEVAL[name])
        asked = (values.undefined == 0) & population(RETRIEVAL[name], columns.positive)
        assert (np.diff(values.value[asked], axis=1) >= 0).all(), name


def test_the_rest_is_not_monotone() -> None:
    # precision sinks with each place without gain, and nDCG where the ideal grows: so no measure is missing from MONOTONE
    curves = {name for name, record in RETRIEVAL.items() if record.is_curve}
    assert curves - MONOTONE == {"precision@k", "ndcg@k", "ndcg_exp@k", "judged@k"}


@given(worlds())
@QUICK
def test_aggregates_are_the_exact_means_and_sums_of_the_rows(world: World) -> None:
    evaluation = evaluated(world)
    columns = evaluation.columns
    for name, record in RETRIEVAL.items():
        values = per_row(columns, record)
        scored = (values.undefined == 0) & columns.complete & population(record, columns.positive)
        table = values.value[scored] if record.is_curve else values.value[scored][:, None]
        for k, (value, _) in enumerate(figures(evaluation.report.measures[name])):
            total = sum((Fraction(v) for v in table[:, k].tolist()), Fraction())
            divisor = len(table) if record.aggregate == "mean" else 1
            assert value == (round12(float(total / divisor)) if len(table) else None), name


@given(worlds(), st.data())
@settings(QUICK, max_examples=80)
def test_losing_a_result_never_improves_the_worst(world: World, data: st.DataObject) -> None:
    query = data.draw(st.sampled_from([row["query_id"] for row in world.judgments]))
    before = evaluated(world).report
    after = evaluated(with_(world, results=[row for row in world.results if row["query_id"] != query])).report
    for (name, record, found), (_, _, less) in zip(records(before), records(after), strict=True):
        for (_, worst), (_, now) in zip(figures(found), figures(less), strict=True):
            if worst is not None and now is not None:
                assert now <= worst if record.direction == "higher" else now >= worst, name


# ---- what a report may not depend on


@given(worlds(max_rows=5), st.randoms(use_true_random=False))
@QUICK
def test_the_order_of_lines_does_not_matter(world: World, random: Any) -> None:
    judgments, results = list(world.judgments), list(world.results)
    random.shuffle(judgments)
    random.shuffle(results)
    # a flat file's lines carry their ranks, the other forms have one line a query
    one, other = evaluated(world).report, evaluated(with_(world, judgments=judgments, results=results)).report
    assert one.model_dump(exclude={"provenance"}) == other.model_dump(exclude={"provenance"})


@given(worlds())
@QUICK
def test_evaluating_twice_gives_the_same_bytes(world: World) -> None:
    one, other = (evaluated(world).report.model_dump_json(exclude={"provenance"}) for _ in range(2))
    assert one == other


@given(worlds(max_rows=6), st.integers(1, 3))
@QUICK
def test_the_size_of_blocks_does_not_matter(world: World, rows: int) -> None:
    whole = evaluated(world)
    with patch.object(block, "ROWS", rows):
        cut = evaluated(world)
        parts = per_row(cut.columns, RETRIEVAL["ndcg@k"])
    assert cut.report.run_id == whole.report.run_id
    assert (parts.value == per_row(whole.columns, RETRIEVAL["ndcg@k"]).value).all()


def renamed(world: World, query: Callable[[str], str], source: Callable[[str], str]) -> World:
    """The world with other ids; a fragment id keeps naming its source by the text before its last "::"."""

    def fragment(name: str) -> str:
        head, separator, tail = name.rpartition("::")
        return f"{source(head)}::{tail}" if separator else source(name)

    def judged(row: Row) -> Row:
        new: Row = {name: list(map(source, value)) for name, value in row.items() if name.endswith("_sources")}
        new["expected_fragments"] = list(map(fragment, row.get("expected_fragments", [])))
        new["expected_groups"] = [list(map(source, group)) for group in row.get("expected_groups", [])]
        new["expected_evidence"] = [e | {"source_id": source(e["source_id"])} for e in row.get("expected_evidence", [])]
        grades = {source(name): grade for name, grade in row.get("relevance", {}).items()}
        return row | new | {"query_id": query(row["query_id"]), "relevance": grades or None}

    def named(item: Row) -> Row:
        item = item | {"fragment_id": fragment(item["fragment_id"])}
        return item | {"source_id": source(item["source_id"])} if "source_id" in item else item

    def answered(row: Row) -> Row:
        row = row | {"query_id": query(row["query_id"])}
        if "results" in row:
            return row | {"results": list(map(named, row["results"]))}
        if "fragment_ids" in row:
            return row | {"fragment_ids": list(map(fragment, row["fragment_ids"]))}
        return named(row)

    return with_(
        world,
        judgments=list(map(judged, world.judgments)),
        results=list(map(answered, world.results)),
        fragments=list(map(named, world.fragments)),
    )


def anonymous(report: RetrievalReport) -> dict[str, Any]:
    """What was measured, without the ids of incomplete rows."""
    dumped = figured(report)
    dumped["rows"]["incomplete"] = len(dumped["rows"]["incomplete"])
    return dumped


@given(worlds())
@QUICK
def test_renaming_ids_in_order_changes_no_figure(world: World) -> None:
    # a common prefix keeps the byte order, which decides the ties of trec order and the rows of a resample
    other = renamed(world, "q·{}".format, "é·{}".format)
    assert anonymous(evaluated(other).report) == anonymous(evaluated(world).report)


def neighbours(world: World) -> set[tuple[int, ...]]:
    """The fragments of each source, as places in the file, in order of their ids: what a quote cut by a boundary goes by."""
    sources: dict[str, list[int]] = {}
    in_order = sorted(enumerate(world.fragments), key=lambda pair: natural(pair[1]["fragment_id"]))
    for place, row in in_order:
        sources.setdefault(row.get("source_id") or source_of(row["fragment_id"]), []).append(place)
    return set(map(tuple, sources.values()))


@given(worlds())
@QUICK
def test_renaming_ids_out_of_order_changes_no_value(world: World) -> None:
    assume(world.order != "trec")
    numbers = {row["query_id"]: f"{100 - i}" for i, row in enumerate(sorted(world.judgments, key=lambda r: str(r["query_id"])))}
    other = renamed(world, lambda name: numbers.get(name, name), lambda name: name[::-1] + "~")
    assume(neighbours(other) == neighbours(world))
    one, two = evaluated(world).report, evaluated(other).report
    for (name, _, found), (_, _, again) in zip(records(one), records(two), strict=True):
        assert figures(found) == figures(again), name
        assert found.model_dump(exclude={"ci"}) == again.model_dump(exclude={"ci"}), name


# ---- exact sums

VALUES = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.1, 1 / 3, 2.0**-11, 2.0**-40, 5e-324]) | st.integers(0, 1000).map(float)


def total_of(parts: list[np.typing.NDArray[np.float64]], width: int) -> list[Fraction]:
    total = ExactSum(width)
    for part in parts:
        total.add(part)
    return total.totals()


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 30), st.integers(1, 3)), elements=VALUES),
    st.lists(st.integers(0, 30), max_size=4),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_exact_sums_whatever_the_split_and_the_order(table: Any, cuts: list[int], random: Any) -> None:
    order = list(range(len(table)))
    random.shuffle(order)
    parts = np.split(table[order], sorted(min(cut, len(table)) for cut in cuts))
    assert total_of(parts, table.shape[1]) == total_of([table], table.shape[1])


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 30), st.just(2)), elements=VALUES))
@settings(deadline=None)
def test_exact_sums_are_the_sums_of_fractions(table: Any) -> None:
    for column, total in zip(table.T.tolist(), total_of([table], 2), strict=True):
        wanted = sum(map(Fraction, column), Fraction())
        tiny = sum(0 < value < 2.0**-11 for value in column)
        # each value below 2^-11 is rounded to a multiple of 2^-64: off by half of that at most
        assert abs(total - wanted) <= tiny * Fraction(1, 2**65)
        assert tiny or total == wanted


def test_float_sums_would_not_do() -> None:
    # .1 + .2 + .3 and .3 + .2 + .1 differ as floats; the exact sums agree
    values = np.array([[0.1], [0.2], [0.3]])
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    assert total_of([values], 1) == total_of([values[::-1]], 1)


# ---- the bad end


def test_a_world_without_results_is_at_the_bad_end_everywhere() -> None:
    row = judgment("q", "a", nonrelevant_sources=["n"], forbidden_sources=["f"], required_sources=["a"])
    row |= {"expected_groups": [["a"]], "expected_fragments": ["a"]}
    report = evaluated(World([row, judgment("none")], [], limit=3)).report
    assert report.verdict.status == "incomplete"
    for name, record, found in records(report):
        end = record.worst_end if name not in ("leaks", "filter_violations", "denied") else None  # undefined: no corpus
        assert set(figures(found)) == {(None, end)}, name
