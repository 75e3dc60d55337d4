"""Corpus measures on random worlds: bounds, shares that add up, curves that rise, and nothing that line order decides."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Row
from tests.corpus_worlds import CorpusWorld, collection, evaluated, expects, fan, library, link, result, value
from tripos.contracts.corpus import LOSSES
from tripos.contracts.reports import Aggregate, Curve
from tripos.measures.corpus import CORPUS

SHELVES = {"a": ["a1", "a2", "a3"], "b": ["b1", "b2"], "c": ["c1", "c2", "c3", "c4"]}
NAMES = sorted(SHELVES)
FRAGMENTS = [f"{source}::f1" for sources in SHELVES.values() for source in sources]
LINKS = [link(one, "sees", other) for one, other in (("a1", "b1"), ("b1", "c1"), ("a2", "c2"))]


def _some(values: list[Any], **sizes: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), unique_by=str, **sizes)


@st.composite
def _pair(draw: st.DrawFn, number: int) -> tuple[Row, Row | None]:
    """A judgment and its result, which may be missing or failed."""
    homes = draw(_some(NAMES))
    sources = {name: draw(_some(SHELVES[name], min_size=1)) for name in homes}
    more: Row = {"expected_relationships": draw(_some(LINKS)) if homes else []}
    judged = expects(f"q{number}", sources, **more, slices=draw(st.sampled_from([{}, {"kind": "x"}])))
    if (fate := draw(st.integers(0, 9))) == 0:
        return judged, None
    if fate == 1:
        return judged, {"query_id": f"q{number}", "error": "down"}
    routed = draw(_some(NAMES))
    fans = [_fan(draw, name) for name in routed]
    came = [hit["fragment_id"] for one in fans for hit in one["results"]]
    row = result(f"q{number}", *fans, merged=draw(st.permutations(came))[: draw(st.integers(0, len(came)))])
    if draw(st.booleans()):
        row["expansion"] = {"relationships": draw(_some(LINKS)), "added_fragment_ids": draw(_some(FRAGMENTS, max_size=3))}
        if draw(st.booleans()):
            there = list(dict.fromkeys([*row["merged"], *row["expansion"]["added_fragment_ids"]]))
            row["final"] = draw(st.permutations(there))
    return judged, row


def _fan(draw: st.DrawFn, name: str) -> Row:
    k = draw(st.integers(1, 4))
    return fan(name, *(f"{source}::f1" for source in draw(_some(SHELVES[name], max_size=k))), k=k)


@st.composite
def worlds(draw: st.DrawFn) -> CorpusWorld:
    """Up to six queries over three collections."""
    pairs = [draw(_pair(n)) for n in range(draw(st.integers(1, 6)))]
    return CorpusWorld(
        [judged for judged, _ in pairs],
        [row for _, row in pairs if row is not None],
        library(**SHELVES),
        top_k=draw(st.integers(1, 5)),
        unit=draw(st.sampled_from(["fragment", "source"])),
    )


@settings(deadline=None, max_examples=60)
@given(worlds())
def test_bounds_and_sums(world: CorpusWorld) -> None:
    report = evaluated(world).report
    for name, measure in CORPUS.items():
        found = report.measures[name]
        assert isinstance(found, Aggregate)
        assert found.n + found.n_undefined + found.incomplete <= report.rows.scored
        if found.value is not None and measure.aggregate == "mean":
            assert 0 <= found.value <= 1
            assert found.worst is not None
            assert found.worst <= found.value if measure.direction == "higher" else found.worst >= found.value
    flow = report.evidence
    assert sum(flow.lost.values()) + flow.kept["final"] == flow.expected
    assert flow.kept["routed"] >= flow.kept["retrieved"] >= flow.kept["merged"]
    assert flow.kept["final"] == flow.kept["merged"] - flow.lost["displaced_by_expansion"] + flow.recovered_by_expansion
    if value(report, "kept_final") is not None:
        shares = [value(report, name) or 0 for name in (*LOSSES, "kept_final")]
        assert abs(sum(shares) - 1) < 1e-9


@settings(deadline=None, max_examples=60)
@given(worlds())
def test_collections_add_up_and_their_curves_rise(world: CorpusWorld) -> None:
    report = evaluated(world).report
    for stage in ("routed", "retrieved", "merged", "final"):
        assert sum(part.evidence.kept[stage] for part in report.collections) == report.evidence.kept[stage]
    assert sum(part.in_vain for part in report.collections) == report.over_fan_out.in_vain
    for part in report.collections:
        for name in ("hit@k", "recall@k"):
            curve = collection(report, part.collection).measures[name]
            assert isinstance(curve, Curve)
            values = [v for v in curve.value if v is not None]
            assert values == sorted(values)
            case = part.measures[name.replace("@k", "@case")]
            assert isinstance(case, Aggregate)
            assert not values or case.value == values[-1]
        if part.sufficient_k is not None and part.plateau_k is not None:
            assert part.sufficient_k >= part.plateau_k
            assert part.beyond_k == 0


@settings(deadline=None, max_examples=40)
@given(worlds(), st.randoms(use_true_random=False))
def test_line_order_decides_nothing(world: CorpusWorld, dice: Any) -> None:
    judged, did, shelf = list(world.judgments), list(world.results), list(world.fragments)
    for rows in (judged, did, shelf):
        dice.shuffle(rows)
    other = CorpusWorld(judged, did, shelf, top_k=world.top_k, unit=world.unit)
    one, two = evaluated(world), evaluated(other)
    assert one.report.model_dump(exclude={"provenance"}) == two.report.model_dump(exclude={"provenance"})
    assert one.misses == two.misses


@settings(deadline=None, max_examples=40)
@given(worlds())
def test_a_miss_is_written_exactly_where_something_was_lost(world: CorpusWorld) -> None:
    outcome = evaluated(world)
    assert outcome.report.missed == len(outcome.misses)
    lost = sum(len(miss.lost) for miss in outcome.misses)
    assert lost == sum(outcome.report.evidence.lost.values())
    assert sum(outcome.report.misses.values()) == sum(len(miss.reasons) for miss in outcome.misses)
