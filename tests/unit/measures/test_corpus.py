"""Corpus measures by hand: every stage, every loss, each with its arithmetic."""

from __future__ import annotations

import pytest

from tests.corpus_worlds import CorpusWorld, collection, evaluated, expects, fan, library, link, own, result, value
from tripos.contracts.config import GateConfig
from tripos.contracts.corpus import LOSSES
from tripos.contracts.reports import Aggregate

LIBRARY = library(a=["a1", "a2", "a3", "a4"], b=["b1", "b2", "b3"], c=["c1", "c2"])


def test_routing_figures_of_one_row() -> None:
    """Expected {a, b}, routed [c, a, x]: 1 right of 2 expected and 2 routed."""
    world = CorpusWorld([expects("q", {"a": ["a1"], "b": ["b1"]})], [result("q", fan("c"), fan("a", "a1::f1"))], LIBRARY)
    report = evaluated(world).report
    assert value(report, "routing_exact") == 0
    assert value(report, "routing_precision") == 1 / 2
    assert value(report, "routing_recall") == 1 / 2
    assert value(report, "routing_f1") == 1 / 2  # 2·1 / (2 + 2)
    assert value(report, "first_choice") == 0  # c comes first
    assert value(report, "extra_fan_out") == 1
    assert value(report, "extra_fan_out_share") == 1 / 2


def test_nothing_routed_has_no_precision_and_is_no_zero_there() -> None:
    report = evaluated(CorpusWorld([expects("q", {"a": ["a1"]})], [result("q")], LIBRARY)).report
    precision = report.measures["routing_precision"]
    assert isinstance(precision, Aggregate)
    assert (precision.value, precision.undefined, precision.n_undefined) == (None, "no_results", 1)
    assert [value(report, name) for name in ("routing_recall", "routing_f1", "first_choice", "kept_final")] == [0, 0, 0, 0]
    assert report.evidence.lost["lost_by_routing"] == 1


def test_expected_none_rows_stand_apart() -> None:
    judgments = [expects("p", {"a": ["a1"]}), expects("n1", {}), expects("n2", {})]
    results = [result("p", fan("a", "a1::f1")), result("n1"), result("n2", fan("b", "b1::f1"))]
    report = evaluated(CorpusWorld(judgments, results, LIBRARY)).report
    assert value(report, "routing_exact") == 1
    assert value(report, "expected_none") == 1 / 2
    assert value(report, "extra_fan_out") == 0
    assert report.over_fan_out.model_dump() == {"searches": 2, "in_vain": 1, "rows": 1}
    assert report.misses == {"not_empty": 1}


def losing_world(**more: object) -> CorpusWorld:
    """Five expected sources, one lost at each place, top K 3.

    c1: c is not routed to. b2: b returns b1 alone. a2: fourth in the merged list. a3: third in it, and pushed out by c2,
    which expansion adds and which is expected (recovered from routing). a1 is kept.
    """
    sources = {"a": ["a1", "a2", "a3"], "b": ["b2"], "c": ["c1", "c2"]}
    did = result(
        "q",
        fan("a", "a1::f1", "a3::f1", "a2::f1", k=5),
        fan("b", "b1::f1", k=1),
        merged=["a1::f1", "b1::f1", "a3::f1", "a2::f1"],
        expansion={"relationships": [link("a1", "sees", "c2")], "added_fragment_ids": ["c2::f1"]},
        final=["a1::f1", "b1::f1", "c2::f1", "a3::f1"],
    )
    return CorpusWorld([expects("q", sources)], [did], LIBRARY, top_k=3, options=more)


def test_each_lost_source_is_charged_once() -> None:
    outcome = evaluated(losing_world())
    evidence = outcome.report.evidence
    assert evidence.expected == 6
    assert evidence.kept == {"routed": 4, "retrieved": 3, "merged": 2, "final": 2}
    assert evidence.lost == {"lost_by_routing": 1, "lost_by_rank": 1, "lost_by_merge": 1, "displaced_by_expansion": 1}
    assert (evidence.recovered_by_expansion, evidence.recovered_from) == (1, {"lost_by_routing": 1})
    (miss,) = outcome.misses
    charged = {lost.source_id: (lost.charged_to, lost.rank, lost.merged_rank) for lost in miss.lost}
    assert charged == {
        "a2": ("lost_by_merge", 3, 4),
        "a3": ("displaced_by_expansion", 2, 3),
        "b2": ("lost_by_rank", None, None),
        "c1": ("lost_by_routing", None, None),
    }
    assert miss.recovered == ("c2",)
    assert (miss.merged, miss.final) == (("a1::f1", "b1::f1", "a3::f1"), ("a1::f1", "b1::f1", "c2::f1"))


def test_losses_and_what_is_kept_add_up() -> None:
    report = evaluated(losing_world()).report
    shares = [value(report, name) or 0 for name in (*LOSSES, "kept_final")]
    assert sum(shares) == pytest.approx(1, abs=1e-11)
    assert value(report, "recovered_by_expansion") == pytest.approx(1 / 6, abs=1e-11)


def test_expansion_on_and_off_side_by_side() -> None:
    """Merged keeps a1 and a3, final a1 and c2: 2 of 6 either way, for as many fragments."""
    side = evaluated(losing_world()).report.expansion
    assert side is not None
    assert (side.rows, side.better, side.worse) == (1, 0, 0)
    assert side.off.kept.value == side.on.kept.value == pytest.approx(1 / 3, abs=1e-11)
    assert side.off.fragments.value == side.on.fragments.value == 3
    assert evaluated(CorpusWorld([expects("q", {"a": ["a1"]})], [result("q", fan("a"))], LIBRARY)).report.expansion is None


def test_final_defaults_to_merged_then_added_cut_at_top_k() -> None:
    did = result("q", fan("a", "a1::f1", "a2::f1"), expansion={"added_fragment_ids": ["a1::f1", "b1::f1", "b2::f1"]})
    world = CorpusWorld([expects("q", {"b": ["b1", "b2"]})], [did], LIBRARY, top_k=3)
    outcome = evaluated(world)
    assert outcome.misses[0].final == ("a1::f1", "a2::f1", "b1::f1")
    assert outcome.report.evidence.recovered_by_expansion == 1


def test_the_curve_of_a_collection_and_its_sufficient_k() -> None:
    """a1 at rank 2 (k 3), a2 at rank 1 and a3 at rank 4 (k 5): hit .5 1 1 1 1, recall .25 .75 .75 1 1, enough k 4."""
    judgments = [expects("p", {"a": ["a1"]}), expects("q", {"a": ["a2", "a3"]}), expects("r", {"a": ["a1"]})]
    results = [
        result("p", fan("a", "a4::f1", "a1::f1", k=3)),
        result("q", fan("a", "a2::f1", "a1::f1", "a4::f1", "a3::f1", k=5)),
        result("r", fan("b", "b1::f1")),
    ]
    report = evaluated(CorpusWorld(judgments, results, LIBRARY)).report
    assert own(report, "a", "hit@k") == [0.5, 1, 1, 1, 1]
    assert own(report, "a", "recall@k") == [0.25, 0.75, 0.75, 1, 1]
    assert own(report, "a", "hit@case") == own(report, "a", "recall@case") == 1
    assert own(report, "a", "routed") == pytest.approx(2 / 3, abs=1e-11)
    part = collection(report, "a")
    assert (part.sufficient_k, part.plateau_k, part.beyond_k) == (4, 4, 0)
    assert (part.rows, part.routed_rightly, part.not_routed, part.in_vain) == (3, 2, 1, 0)
    assert part.own_k == {"3": 1, "5": 1}
    assert part.measures["hit@k"].undefined_rows == {"not_searched": 1}
    assert collection(report, "b").in_vain == 1


def test_a_source_outside_its_list_leaves_no_sufficient_k() -> None:
    judgments = [expects("q", {"a": ["a1", "a2"]})]
    report = evaluated(CorpusWorld(judgments, [result("q", fan("a", "a3::f1", "a1::f1"))], LIBRARY)).report
    part = collection(report, "a")
    assert (part.sufficient_k, part.beyond_k, part.plateau_k) == (None, 1, 2)


def test_relationships_and_chains() -> None:
    """q follows 1 of its 2 links and a wrong one; r its only link, but loses a source."""
    links = [link("a1", "sees", "b1"), link("b1", "cites", "c1")]
    judgments = [
        expects("q", {"a": ["a1"], "b": ["b1"]}, expected_relationships=links),
        expects("r", {"a": ["a1"], "b": ["b2"]}, expected_relationships=links[:1]),
        expects("s", {"a": ["a1"]}),
    ]
    results = [
        result(
            "q",
            fan("a", "a1::f1"),
            fan("b", "b1::f1"),
            expansion={"relationships": [links[0], link("b1", "cites", "c2"), link("a1", "sees", "c1")]},
        ),
        result("r", fan("a", "a1::f1"), expansion={"relationships": links[:1]}),
        result("s", fan("a", "a1::f1")),
    ]
    outcome = evaluated(CorpusWorld(judgments, results, LIBRARY))
    report = outcome.report
    assert value(report, "relationship_coverage") == (1 / 2 + 1) / 2
    assert value(report, "relationship_precision") == pytest.approx((1 / 3 + 1) / 2, abs=1e-11)
    assert value(report, "chain") == 0
    assert value(report, "all_hops") == 1 / 2
    assert outcome.misses[0].absent_relationships == (("b1", "cites", "c1"),)
    assert {part.value: part.rows for part in report.slices if part.by == "hops"} == {}


def test_declared_hops_decide_and_slice() -> None:
    judgments = [expects("q", {"a": ["a1"]}, hops=2), expects("r", {"a": ["a1", "a2"]}, hops=1)]
    results = [result("q", fan("a", "a1::f1")), result("r", fan("a", "a1::f1"))]
    report = evaluated(CorpusWorld(judgments, results, LIBRARY)).report
    assert value(report, "all_hops") == 1
    assert {part.value: part.rows for part in report.slices if part.by == "hops"} == {1: 1, 2: 1}


def test_leaks_are_counted_at_each_stage() -> None:
    shelf = [*LIBRARY, {"fragment_id": "b9::f1", "text": "secret", "collection": "b", "acl": ["staff"]}]
    shelf.append({"fragment_id": "c9::f1", "text": "secret", "collection": "c", "acl": ["staff"]})
    judgments = [expects("q", {"b": ["b1"]}, principal={"groups": ["everyone"]}), expects("r", {"b": ["b1"]})]
    did = fan("b", "b9::f1", "b1::f1")
    results = [
        result("q", did, merged=["b1::f1"], expansion={"added_fragment_ids": ["c9::f1"]}),
        result("r", did),
    ]
    report = evaluated(CorpusWorld(judgments, results, shelf)).report
    stages = {stage: value(report, f"leaks_{stage}") for stage in ("retrieved", "merged", "expansion", "final")}
    assert stages == {"retrieved": 1, "merged": 0, "expansion": 1, "final": 1}
    assert value(report, "leaks") == 2
    assert report.verdict.exit_code == 1
    assert [gate.status for gate in report.gates if gate.name == "leaks"] == ["failed"]


def test_incomplete_rows_are_at_their_worst_and_not_dropped() -> None:
    judgments = [expects("p", {"a": ["a1"]}), expects("q", {"a": ["a1"]}), expects("r", {"a": ["a1"]})]
    results = [result("p", fan("a", "a1::f1")), {"query_id": "q", "error": "timeout"}]
    report = evaluated(CorpusWorld(judgments, results, LIBRARY, gates={"kept_final": GateConfig(min=0.5)})).report
    kept, lost = report.measures["kept_final"], report.measures["lost_by_routing"]
    assert isinstance(kept, Aggregate)
    assert isinstance(lost, Aggregate)
    assert (kept.value, kept.incomplete, lost.value) == (1, 2, 0)
    assert [kept.worst, lost.worst] == pytest.approx([1 / 3, 2 / 3], abs=1e-11)
    assert {row.query_id: row.because for row in report.rows.incomplete} == {
        "q": "timeout",
        "r": "no row in the corpus results",
    }
    assert (report.verdict.status, report.verdict.exit_code) == ("incomplete", 6)
    assert [gate.status for gate in report.gates] == ["failed", "failed"]


def test_positions_count_sources_where_d_says_so() -> None:
    shelf = [*LIBRARY, {"fragment_id": "a1::f2", "text": "more", "collection": "a", "acl": ["everyone"]}]
    did = result("q", fan("a", "a1::f1", "a1::f2", "a2::f1"))
    by_fragment = CorpusWorld([expects("q", {"a": ["a2"]})], [did], shelf, top_k=2)
    assert evaluated(by_fragment).report.evidence.lost["lost_by_merge"] == 1
    by_source = CorpusWorld([expects("q", {"a": ["a2"]})], [did], shelf, top_k=2, unit="source")
    report = evaluated(by_source).report
    assert report.evidence.kept["final"] == 1
    assert own(report, "a", "hit@k") == [0, 1, 1]


def test_gates_on_one_collection() -> None:
    judgments = [expects("q", {"a": ["a1"]})]
    gates = {"hit@1": GateConfig(min=0.9, slice={"collection": "a"}), "recall": GateConfig(min=0.9, slice={"collection": "a"})}
    world = CorpusWorld(judgments, [result("q", fan("a", "a2::f1", "a1::f1"))], LIBRARY, gates=gates)
    report = evaluated(world).report
    told = {gate.name: (gate.status, gate.slice) for gate in report.gates if gate.asked}
    assert told == {"hit@1": ("failed", "collection=a"), "recall@3": ("passed", "collection=a")}


def test_without_fragments_ids_tell_the_source() -> None:
    report = evaluated(CorpusWorld([expects("q", {"a": ["a1"]})], [result("q", fan("a", "a1::f1"))])).report
    assert value(report, "kept_final") == 1
    assert report.binding == "unbound"
    leaks = report.measures["leaks"]
    assert isinstance(leaks, Aggregate)
    assert leaks.undefined == "no_corpus"


def test_latency_by_collection_and_the_cost_of_searching_in_vain() -> None:
    judgments = [expects("p", {"a": ["a1"]}), expects("q", {"a": ["a1"]})]
    results = [
        result("p", fan("a", "a1::f1", latency_ms=10), fan("b", latency_ms=30), latency_ms=45),
        result("q", fan("a", "a1::f1", latency_ms=20), fan("b", latency_ms=5)),
    ]
    told = evaluated(CorpusWorld(judgments, results, LIBRARY)).report.provenance
    assert told.fan_out_latency_ms["a"].p50 == 15
    assert told.over_fan_out.model_dump() == {"timed": 4, "latency_ms": 65, "in_vain_ms": 35, "slowest_in_vain": 1}
    assert told.latency_ms.n == 1
