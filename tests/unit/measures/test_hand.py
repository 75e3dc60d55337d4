"""Figures worked out by hand, through files and the runner unless the pure function is the point."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.builders import World, at, by_query, curve, evaluated, fragment, graded, judgment, listed, scored, single
from tripos.columns.groups import Group
from tripos.contracts.reports import Interval, Ties
from tripos.errors import UsageError
from tripos.measures.block import discounts, exponential_gain
from tripos.measures.exact import ExactSum
from tripos.measures.intervals import RESAMPLES, Z, mean_intervals, normal_of_sums, quantile, wilson
from tripos.measures.totals import Members

FOUR = 5e-5
"""Half of the fourth decimal: for figures quoted to four."""


def value(world: World, name: str) -> float | None:
    return at(evaluated(world).report, name)


def one(row: dict[str, object], *ranking: str, limit: int = 5) -> World:
    """A single query."""
    return World([row], [listed(str(row["query_id"]), *ranking)], limit=limit)


# ---- nDCG


def test_ndcg_of_other_g3_g1() -> None:
    # got 3/log2(3) + 1/log2(4) = 1.8928 + .5 = 2.3928; ideal 3/log2(2) + 1/log2(3) = 3 + .6309 = 3.6309; ratio .6590
    world = one(graded("q", {"g3": 3, "g1": 1}), "other", "g3", "g1")
    assert value(world, "ndcg@3") == pytest.approx(0.6590, abs=FOUR)
    # at 1 nothing; at 2: 1.8928 / 3.6309 = .5213
    assert value(world, "ndcg@1") == 0
    assert value(world, "ndcg@2") == pytest.approx(0.5213, abs=FOUR)


def test_ndcg_of_e_before_d() -> None:
    # linear: (1 + 3 · .6309) / (3 + .6309) = 2.8928 / 3.6309 = .7967; at 1: 1/3
    # exponential, gains 7 and 1: (1 + 7 · .6309) / (7 + .6309) = 5.4165 / 7.6309 = .7098; at 1: 1/7
    world = one(graded("q", {"d": 3, "e": 1}), "e", "d")
    assert value(world, "ndcg@2") == pytest.approx(0.7967, abs=FOUR)
    assert value(world, "ndcg@1") == pytest.approx(1 / 3)
    assert value(world, "ndcg_exp@2") == pytest.approx(0.7098, abs=FOUR)
    assert value(world, "ndcg_exp@1") == pytest.approx(1 / 7)


def test_the_ideal_is_cut_at_k_and_counts_what_was_not_found() -> None:
    # one of three sources of grade 1 found, at rank 1: at 1 the ideal is 1 → 1; at 3 it is 1 + .6309 + .5 = 2.1309 → .4693
    world = one(judgment("q", "a", "b", "c"), "a", "x", "y")
    assert value(world, "ndcg@1") == 1
    assert value(world, "ndcg@3") == pytest.approx(0.4693, abs=FOUR)


def test_a_grade_without_expectation_gains_and_is_no_hit() -> None:
    # b is graded 1 and not expected, as with trec_eval -l 2: gain (1 + 2 · .6309) / (2 + .6309) = .8597, hit only at 2
    row = judgment("q", "a", relevance={"a": 2, "b": 1}, nonrelevant_sources=["b"])
    world = one(row, "b", "a")
    assert value(world, "ndcg@2") == pytest.approx(0.8597, abs=FOUR)
    assert curve(evaluated(world).report, "hit@k").value[:2] == (0, 1)


def test_discounts_are_within_one_ulp_of_the_logarithm() -> None:
    for rank, discount in enumerate(discounts(1000).tolist(), 1):
        wanted = 1 / math.log2(rank + 1)
        assert abs(discount - wanted) <= math.ulp(wanted), rank
    # exact where log2 is: ranks 1, 3, 7 … 1023
    assert [discounts(1023)[2**n - 2] for n in range(1, 11)] == [1 / n for n in range(1, 11)]


def test_exponential_gain_is_exact_for_whole_grades() -> None:
    # 2^g − 1; 2^.5 − 1 = .41421356…
    assert exponential_gain(np.array([1.0, 2.0, 4.0, 10.0, 0.5])).tolist() == [1, 3, 15, 1023, pytest.approx(math.sqrt(2) - 1)]


# ---- AP, RR, precision, recall


def test_ranked_measures_by_hand() -> None:
    # expected a, b, c; ranked x, a, y, b: a at 2, b at 4, c nowhere
    world = one(judgment("q", "a", "b", "c"), "x", "a", "y", "b")
    report = evaluated(world).report
    third = 1 / 3
    assert curve(report, "hit@k").value == (0, 1, 1, 1, 1)
    assert curve(report, "rr@k").value == (0, 0.5, 0.5, 0.5, 0.5)
    assert curve(report, "recall@k").value == pytest.approx((0, third, third, 2 * third, 2 * third))
    assert curve(report, "precision@k").value == pytest.approx((0, 1 / 2, 1 / 3, 2 / 4, 2 / 5))
    # AP: (1/2) / 3 from rank 2 on, (1/2 + 2/4) / 3 = 1/3 from rank 4 on
    assert curve(report, "ap@k").value == pytest.approx((0, 1 / 6, 1 / 6, third, third))


def test_a_source_is_credited_once_at_its_first_fragment() -> None:
    # ranked a::1, a::2, b::1, a::3: a counts at 1, b at 3, and a::2 and a::3 take places without gain
    world = one(judgment("q", "a", "b"), "a::1", "a::2", "b::1", "a::3", limit=4)
    report = evaluated(world).report
    assert curve(report, "precision@k").value == pytest.approx((1 / 1, 1 / 2, 2 / 3, 2 / 4))
    assert curve(report, "recall@k").value == (0.5, 0.5, 1, 1)
    # AP: (1/1 + 2/3) / 2 = 5/6; nDCG: (1 + 1/log2(4)) / (1 + .6309) = 1.5 / 1.6309 = .9197
    assert at(report, "ap@4") == pytest.approx(5 / 6)
    assert at(report, "ndcg@4") == pytest.approx(0.9197, abs=FOUR)


def test_unit_source_collapses_each_source_to_its_first_fragment() -> None:
    # fragments a::1, b::1, a::2, c::1 → sources a, b, c; c moves up to 3, and a stays first though it came again
    world = World(
        [judgment("first", "a"), judgment("last", "c")],
        [listed("first", "a::1", "b::1", "a::2", "c::1"), listed("last", "a::1", "b::1", "a::2", "c::1")],
        unit="source",
        limit=3,
    )
    rows = by_query(evaluated(World(**{**vars(world), "cutoffs": [1, 3]})))
    assert (rows["first"]["hit@1"], rows["first"]["rr@3"]) == (1, 1)
    assert (rows["last"]["hit@3"], rows["last"]["rr@3"]) == (1, pytest.approx(1 / 3))


def test_a_name_given_twice_counts_once() -> None:
    # a, a, b are two sources: recall 1/2, AP (1/1) / 2
    world = one(judgment("q", "a", "a", "b"), "a")
    report = evaluated(world).report
    assert (at(report, "recall@1"), at(report, "ap@1")) == (0.5, 0.5)
    # and denied: the one source that a short list lacks
    row = judgment("q", "a", "a", principal={"groups": ["staff"]})
    secured = World([row], [listed("q")], [fragment("a", acl=["staff"])])
    assert value(secured, "denied") == 1


# ---- cutoffs


def test_beyond_the_list_the_curve_stays_and_precision_sinks() -> None:
    # a list of 3 read at 50: nothing more is found; precision 1/3 at 3, 1/50 at 50; nDCG and AP stay at rank 2's figures
    report = evaluated(one(judgment("q", "a"), "x", "a", "y", limit=50)).report
    for name in ("hit@k", "recall@k", "rr@k", "ap@k", "ndcg@k"):
        figures = curve(report, name).value
        assert len(figures) == 50
        assert set(figures[2:]) == {figures[1]}
    assert at(report, "precision@3") == pytest.approx(1 / 3)
    assert at(report, "precision@50") == 1 / 50


@pytest.mark.parametrize("cutoff", [0, -1, 6])
def test_a_cutoff_outside_the_curve_is_refused(cutoff: int) -> None:
    world = World([judgment("q", "a")], [listed("q", "a")], limit=5, cutoffs=[cutoff])
    with pytest.raises(UsageError, match=r"outside 1\.\.5"):
        evaluated(world)


def test_case_reads_each_row_at_its_own_depth() -> None:
    # a at rank 3 in each list. own k 2: miss; own k 3: hit; none: top_k 2: miss → hit@case 1/3, rr@case (0 + 1/3 + 0) / 3
    rows = [judgment("q1", "a", k=2), judgment("q2", "a", k=3), judgment("q3", "a")]
    world = World(rows, [listed(q, "x", "y", "a") for q in ("q1", "q2", "q3")], limit=5, top_k=2)
    report = evaluated(world).report
    assert at(report, "hit@case") == pytest.approx(1 / 3)
    assert at(report, "rr@case") == pytest.approx(1 / 9)
    assert at(report, "hit@3") == 1
    assert at(report, "hit@2") == 0


def test_the_limit_cuts_and_min_score_drops_before_it() -> None:
    # min_score .5 takes x and a of both; the positive row loses its hit, the other one is left with nothing
    rows = [judgment("no"), judgment("yes", "a")]
    results = [scored("no", {"x": 0.4}), scored("yes", {"x": 0.7, "y": 0.5, "a": 0.4})]
    report = evaluated(World(rows, results, limit=3, min_score=0.5)).report
    assert (at(report, "hit@3"), at(report, "expected_empty")) == (0, 1)
    assert report.counts.below_min_score == 2
    report = evaluated(World(rows, results, limit=2)).report
    assert (at(report, "hit@2"), at(report, "expected_empty")) == (0, 0)
    assert report.counts.beyond_limit == 1


# ---- bpref, judged


def test_bpref_by_hand() -> None:
    # R = 3 (a, b, c), N = 2 (m, n); ranked m, a, u, n, b: a has 1 above: 1 − 1/2; b has 2 above: 1 − 2/2; c unfound: 0
    # (.5 + 0 + 0) / 3 = 1/6; u is unjudged and counts nowhere
    row = judgment("q", "a", "b", "c", nonrelevant_sources=["m", "n"])
    assert value(one(row, "m", "a", "u", "n", "b"), "bpref") == pytest.approx(1 / 6)


def test_bpref_counts_no_more_non_relevant_than_there_are_relevant() -> None:
    # R = 1, N = 3: bound min(N, R) = 1, so one above is already the whole penalty; none above: 1
    row = judgment("q", "a", nonrelevant_sources=["m", "n", "o"])
    assert value(one(row, "m", "a"), "bpref") == 0
    assert value(one(row, "u", "a", "m"), "bpref") == 1


def test_forbidden_sources_are_non_relevant_to_bpref() -> None:
    # R = 2, N = 2 (n and the forbidden f); ranked f, a, b: one above each, 1 − 1/2 twice: (1/2 + 1/2) / 2
    row = judgment("q", "a", "b", nonrelevant_sources=["n"], forbidden_sources=["f"])
    assert value(one(row, "f", "a", "b"), "bpref") == pytest.approx(0.5)


def test_judged_by_hand() -> None:
    # ranked a (expected), u (unjudged), n (non-relevant), f (forbidden): 1/1, 1/2, 2/3, 3/4, and of 4 results at 5 still 3/4
    row = judgment("q", "a", nonrelevant_sources=["n"], forbidden_sources=["f"])
    report = evaluated(one(row, "a", "u", "n", "f")).report
    assert curve(report, "judged@k").value == pytest.approx((1, 1 / 2, 2 / 3, 3 / 4, 3 / 4))


# ---- evidence and groups


def quoted(texts: list[str], quote: str, *ranking: int) -> list[float | None]:
    """evidence_hit@1..3 of a quote, source a having the texts as fragments a::0, a::1 …, ranked by number."""
    corpus = [fragment(f"a::{i}", text=text) for i, text in enumerate(texts)]
    row = judgment("q", "a", expected_evidence=[{"source_id": "a", "quote": quote}])
    world = World([row], [listed("q", *(f"a::{i}" for i in ranking))], corpus, limit=3)
    return list(curve(evaluated(world).report, "evidence_hit@k").value)


def test_a_quote_within_a_fragment_is_met_by_that_fragment_alone() -> None:
    # the source itself is hit at 1, the passage at 2; white space and composition (e + accent) do not matter
    assert quoted(["one two", "the cafe\u0301\n  opens"], "café opens", 0, 1) == [0, 1, 1]


def test_a_quote_cut_by_a_boundary_is_met_by_its_pieces_together() -> None:
    # the last piece comes at 3, after a stranger; between words and within one
    assert quoted(["it is alpha", "beta and on", "no"], "alpha beta", 1, 2, 0) == [0, 0, 1]
    assert quoted(["it is alp", "ha and on", "no"], "is alpha and", 1, 0) == [0, 1, 1]


def test_pieces_do_not_count_where_a_fragment_holds_the_quote() -> None:
    # a::2 alone holds it, so a::0 and a::1 together are no other way
    assert quoted(["it is alpha", "beta and on", "alpha beta"], "alpha beta", 0, 1) == [0, 0, 0]
    assert quoted(["it is alpha", "beta and on", "alpha beta"], "alpha beta", 0, 2) == [0, 1, 1]


def test_evidence_and_groups_are_shares_of_their_own_units() -> None:
    # fragments a::1 (at 2) and b::1 (nowhere): hit from 2 on, recall 1/2. Groups (a or b) at 1, (c) at 3: 1/2, 1/2, 1
    row = judgment("q", "a", "b", "c", expected_fragments=["a::1", "b::1"], expected_groups=[["a", "b"], ["c"]])
    report = evaluated(one(row, "a::0", "a::1", "c::0", limit=3)).report
    assert curve(report, "evidence_hit@k").value == (0, 1, 1)
    assert curve(report, "evidence_recall@k").value == (0, 0.5, 0.5)
    assert curve(report, "group_recall@k").value == (0.5, 0.5, 1)


def test_quotes_without_texts_are_undefined() -> None:
    row = judgment("q", "a", expected_evidence=[{"source_id": "a", "quote": "x"}])
    assert curve(evaluated(one(row, "a")).report, "evidence_hit@k").undefined_rows == {"no_text": 1}


# ---- required


def test_required_sources_are_looked_for_whether_or_not_they_are_expected() -> None:
    # q1: the disclaimer, named nowhere else, stands at 2 of depth 2: present. q2: at 3: absent, and named. q3, expecting
    # nothing, has it at 1. Present in 2 of 3
    rows = [judgment(q, "a", required_sources=["disclaimer"]) for q in ("q1", "q2")]
    rows.append(judgment("q3", required_sources=["disclaimer"]))
    results = [listed("q1", "a", "disclaimer"), listed("q2", "a", "x", "disclaimer"), listed("q3", "disclaimer")]
    evaluation = evaluated(World(rows, results, limit=3, top_k=2))
    assert at(evaluation.report, "required") == pytest.approx(2 / 3)
    assert evaluation.report.misses["required_absent"] == 1


# ---- rows that cannot be scored


def test_worst_puts_incomplete_rows_at_the_bad_end() -> None:
    # three rows, one with a hit and nothing forbidden, one failed, one missing: hit 1 of 1 and 1/3 at worst;
    # forbidden 0 of 1 and (0 + 1 + 1) / 3 at worst; leaks have no worst
    rows = [judgment(q, "a", forbidden_sources=["f"], principal={"groups": []}) for q in ("q1", "q2", "q3")]
    results = [listed("q1", "a"), listed("q2", error="timeout")]
    world = World(rows, results, [fragment("a"), fragment("f")], limit=2, acl_default="public")
    report = evaluated(world).report
    hit, forbidden, leaks = curve(report, "hit@k"), curve(report, "forbidden@k"), single(report, "leaks")
    assert (hit.n, hit.incomplete) == (1, 2)
    assert (hit.value[0], hit.worst[0]) == pytest.approx((1, 1 / 3))
    assert (forbidden.value[0], forbidden.worst[0]) == pytest.approx((0, 2 / 3))
    assert (leaks.value, leaks.worst) == (0, None)


def test_incomplete_rows_are_in_the_worst_of_groups_and_evidence() -> None:
    # two rows, one missing: each of these is 1 over the row that came, and 1/2 at worst; no row lacks groups or evidence
    rows = [judgment(q, "a", expected_groups=[["a"]], expected_fragments=["a"]) for q in ("q1", "q2")]
    report = evaluated(World(rows, [listed("q1", "a")], limit=1)).report
    for name in ("group_recall@k", "evidence_hit@k", "evidence_recall@k"):
        found = curve(report, name)
        assert (found.value[0], found.worst[0], found.incomplete, found.n_undefined) == (1, 0.5, 1, 0), name


def test_an_empty_list_is_a_measurement() -> None:
    # 0 of 1, complete: value 0, not undefined; only judged@k, a share of results, has nothing to be a share of
    report = evaluated(one(judgment("q", "a", nonrelevant_sources=["n"]))).report
    assert (at(report, "hit@5"), curve(report, "hit@k").incomplete) == (0, 0)
    assert curve(report, "judged@k").undefined_rows == {"no_results": 1}


def test_the_mean_of_nothing_is_undefined() -> None:
    report = evaluated(World([judgment("q")], [listed("q")])).report
    hit = curve(report, "hit@k")
    assert set(hit.value) == set(hit.worst) == {None}
    assert (hit.undefined, hit.n) == ("no_rows", 0)
    assert at(report, "expected_empty") == 1


def test_denied_is_what_a_short_list_lacks() -> None:
    # the list of 1 had room for 3: b is missing for another reason than its rank; a is there. A full list proves nothing
    corpus = [fragment(name, acl=["staff"]) for name in ("a", "b", "x", "y", "z")]
    row = judgment("q", "a", "b", principal={"groups": ["staff"]})
    assert value(World([row], [listed("q", "a")], corpus, limit=3), "denied") == 1
    assert value(World([row], [listed("q", "x", "y", "z")], corpus, limit=3), "denied") == 0


def test_what_min_score_drops_was_not_denied() -> None:
    # the search did return a: no filter took it
    row = judgment("q", "a", principal={"groups": ["staff"]})
    world = World([row], [scored("q", {"a": 0.2})], [fragment("a", acl=["staff"])], limit=3, min_score=0.5)
    assert value(world, "denied") == 0


def test_leaks_and_violations_are_counted_before_any_cut() -> None:
    # secret and foreign stand below min_score and beyond limit 1, and are counted all the same
    corpus = [
        fragment("a", metadata={"lang": "de"}),
        fragment("secret", acl=["board"], metadata={"lang": "de"}),
        fragment("foreign", metadata={"lang": "en"}),
        fragment("bare"),
    ]
    row = judgment("q", "a", principal={"groups": ["staff"]}, filters={"lang": "de"})
    results = [scored("q", {"a": 0.9, "secret": 0.3, "foreign": 0.2, "bare": 0.1})]
    report = evaluated(World([row], results, corpus, limit=1, min_score=0.5, acl_default="public")).report
    # one fragment that staff may not read; two that are not lang de: one says en, one says nothing
    assert (at(report, "leaks"), at(report, "filter_violations")) == (1, 2)


# ---- ties


def ties(world: World) -> list[Ties]:
    return list(evaluated(world).report.ties)


def test_ties_best_and_worst_by_hand() -> None:
    # x, y and a share .5 behind w: a may stand at 2, 3 or 4. Straddled: 2 and 3; at 1 and 4 the scores differ on both sides
    row = judgment("q", "a")
    world = World([row], [scored("q", {"w": 0.9, "x": 0.5, "a": 0.5, "y": 0.5, "z": 0.1})], limit=5, cutoffs=[1, 2, 3, 4])
    second, third = ties(world)
    assert (second.k, second.rows, third.k, third.rows) == (2, 1, 3, 1)
    half, discount = 1 / 2, 1 / math.log2(3)
    assert second.best == pytest.approx({"hit@2": 1, "recall@2": 1, "rr@2": half, "ndcg@2": discount})
    assert second.worst == {"hit@2": 0, "recall@2": 0, "rr@2": 0, "ndcg@2": 0}
    assert third.best == pytest.approx({"hit@3": 1, "recall@3": 1, "rr@3": half, "ndcg@3": discount})
    assert third.worst == {"hit@3": 0, "recall@3": 0, "rr@3": 0, "ndcg@3": 0}


def test_ties_with_grades_by_hand() -> None:
    # a (3) and b (1) and x share one score. Best a, b, x: 3 + .6309 of the same: 1. Worst at 2: x, b: .6309 / 3.6309 = .1738
    world = World([graded("q", {"a": 3, "b": 1})], [scored("q", {"a": 1, "b": 1, "x": 1})], limit=3, cutoffs=[2])
    (second,) = ties(world)
    assert second.best["ndcg@2"] == 1
    assert second.worst["ndcg@2"] == pytest.approx(0.1738, abs=FOUR)
    assert (second.best["recall@2"], second.worst["recall@2"]) == (1, 0.5)


def test_ties_are_32_bit_ones_in_trec_order_alone() -> None:
    rows, results = [judgment("q", "a")], [scored("q", {"x": 0.5 + 1e-9, "a": 0.5})]
    assert ties(World(rows, results, cutoffs=[1])) == []
    assert [t.k for t in ties(World(rows, results, cutoffs=[1], order="trec"))] == [1]


def test_constant_scores_tie_at_every_cutoff() -> None:
    # one score for all of four: straddled at 1, 2 and 3; nothing stands beyond 4
    world = World([judgment("q", "a")], [scored("q", dict.fromkeys("xyaz", 0.5))], limit=4, cutoffs=[1, 2, 3, 4])
    assert [(t.k, t.rows, t.best[f"hit@{t.k}"], t.worst[f"hit@{t.k}"]) for t in ties(world)] == [
        (1, 1, 1, 0),
        (2, 1, 1, 0),
        (3, 1, 1, 0),
    ]
    # and without scores nothing is known of ties
    assert ties(World([judgment("q", "a")], [listed("q", *"xyaz")], limit=4, cutoffs=[1])) == []


def test_the_best_order_of_ties_spends_no_place_on_a_source_twice() -> None:
    # a::1, a::2, b::1 share one score, a and b are expected. Best at 2: a::1, b::1, recall 1; worst: a::1, a::2, recall 1/2
    world = World([judgment("q", "a", "b")], [scored("q", {"a::1": 1, "a::2": 1, "b::1": 1})], limit=3, cutoffs=[2])
    (second,) = ties(world)
    assert (second.best["recall@2"], second.worst["recall@2"]) == (1, 0.5)


def test_ties_of_sources_are_between_sources() -> None:
    # unit source: a .9 (and again), then b: no tie at 1. And a .9, a .8, b .7, c .7: sources 2 and 3 tie, fragments 2, 3 do not
    first = World([judgment("q", "b")], [scored("q", {"a::1": 0.9, "a::2": 0.9, "b::1": 0.5})], unit="source", cutoffs=[1])
    assert ties(first) == []
    results = [scored("q", {"a::1": 0.9, "a::2": 0.8, "b::1": 0.7, "c::1": 0.7})]
    assert [t.k for t in ties(World([judgment("q", "c")], results, unit="source", cutoffs=[2]))] == [2]


def test_ties_inside_the_cutoff_move_ranks_too() -> None:
    # q1 straddles 2 (a and y), which lists the ties at 2; in q2, x and a tie at 1 and 2. rr@2: best (1/2 + 1) / 2, worst
    # (0 + 1/2) / 2; hit@2 of q2 is 1 in any order
    rows = [judgment("q1", "a"), judgment("q2", "a")]
    results = [scored("q1", {"x": 0.9, "a": 0.5, "y": 0.5}), scored("q2", {"x": 0.9, "a": 0.9, "y": 0.1})]
    (second,) = ties(World(rows, results, cutoffs=[2]))
    assert second.rows == 1
    assert (second.best["rr@2"], second.worst["rr@2"]) == (0.75, 0.25)
    assert (second.best["hit@2"], second.worst["hit@2"]) == (1, 0.5)


def test_ties_keep_to_the_list_where_the_list_is_trusted() -> None:
    # order list: x .1 stands first and stays there; a and y tie behind it. a is at 2 or 3, never at 1
    results = [scored("q", {"x": 0.1, "a": 0.9, "y": 0.9})]
    (second,) = ties(World([judgment("q", "a")], results, order="list", limit=3, cutoffs=[2]))
    assert (second.best["rr@2"], second.worst["rr@2"]) == (0.5, 0)


# ---- intervals


def test_wilson_by_hand() -> None:
    # z² = 3.8415. 8 of 10: centre (.8 + z²/20) / (1 + z²/10) = .99207 / 1.38415 = .71674;
    # spread z √(.8 · .2 / 10 + z²/400) / 1.38415 = 1.95996 · .16001 / 1.38415 = .22658 → [.4902, .9433]
    ten = wilson(8, 10)
    assert (ten.low, ten.high) == pytest.approx((0.4902, 0.9433), abs=FOUR)
    assert ten.method == "wilson"
    # nothing of n: [0, z² / (n + z²)]; 10: 3.8415 / 13.8415 = .2775. All of n: the mirror image
    none, every = wilson(0, 10), wilson(10, 10)
    assert (none.low, none.high) == pytest.approx((0, 0.2775), abs=FOUR)
    assert (every.low, every.high) == pytest.approx((1 - 0.2775, 1), abs=FOUR)
    assert (none.low, every.high) == (0, 1)
    # half of 100: centre .5, spread z √(1/400 + z²/40000) / 1.038415 = .0962 → [.4038, .5962]
    half = wilson(50, 100)
    assert (half.low, half.high) == pytest.approx((0.4038, 0.5962), abs=FOUR)


def test_bootstrap_of_two_rows_by_hand() -> None:
    # rows 0 and 1: a resample's mean is 0, 1/2 or 1 with chance 1/4, 1/2, 1/4, so 2.5 % and 97.5 % lie at 0 and 1
    (interval,) = mean_intervals(np.array([[0.0], [1.0]]), None)
    assert interval is not None
    assert (interval.low, interval.high, interval.method) == (0, 1, "bootstrap")
    assert RESAMPLES == 2000


def test_bootstrap_of_constant_values_has_no_width() -> None:
    (interval,) = mean_intervals(np.full((7, 1), 0.25), None)
    assert interval is not None
    assert (interval.low, interval.high) == (0.25, 0.25)


def test_fewer_than_two_clusters_have_no_interval() -> None:
    values = np.array([[0.0], [1.0], [1.0]])
    assert mean_intervals(values, np.zeros(3, dtype=np.int64)) == [None]
    assert mean_intervals(values[:1], None) == [None]
    # through the runner: one cluster of two rows has none, also for a proportion; two clusters have one, by bootstrap
    rows = [judgment(f"q{i}", "a", cluster="c") for i in range(2)]
    results = [listed(f"q{i}", "a") for i in range(2)]
    assert curve(evaluated(World(rows, results)).report, "hit@k").ci == {}
    rows[1]["cluster"] = "d"
    rows.append(judgment("q2", "a", cluster="d"))
    report = evaluated(World(rows, [*results, listed("q2", "a")])).report
    assert curve(report, "hit@k").ci["1"].method == "bootstrap"


def test_rows_that_are_their_own_clusters_are_not_clustered() -> None:
    rows = [judgment("q0", "a", cluster="c"), judgment("q1", "a")]
    report = evaluated(World(rows, [listed("q0", "a"), listed("q1", "b")])).report
    assert curve(report, "hit@k").ci["1"] == wilson(1, 2)


def test_whole_clusters_are_resampled() -> None:
    # cluster c: 0, 0, 0; cluster d: 1. A resample of two clusters is c c, c d or d d: means 0, 1/4 and 1, chances 1/4, 1/2, 1/4
    (interval,) = mean_intervals(np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([0, 0, 0, 1]))
    assert interval is not None
    assert (interval.low, interval.high) == (0, 1)


def test_normal_interval_above_ten_thousand_rows_by_hand() -> None:
    # 5,001 ones in 10,002 rows: mean 1/2, variance n/(n−1)/4, error √(1 / (4 · 10,001)) = .0049998
    values = np.tile([[0.0], [1.0]], (5001, 1))
    (interval,) = mean_intervals(values, None)
    assert interval is not None
    error = Z * math.sqrt(1 / (4 * 10_001))
    assert (interval.low, interval.high) == pytest.approx((0.5 - error, 0.5 + error))
    assert interval.method == "normal"


def test_quantiles_are_interpolated() -> None:
    # of 10, 20, 40: place .5 · 2 = 1 → 20; place .75 · 2 = 1.5 → 20 + .5 · 20 = 30; nothing has none
    assert (quantile([10, 20, 40], 0.5), quantile([10, 20, 40], 0.75)) == (20, 30)
    assert (quantile([7], 0.99), quantile([], 0.5)) == (7, None)


def test_normal_interval_from_sums() -> None:
    # values 0, 1/2, 1 in units of 2^-30: mean 1/2, deviations squared 1/4 + 0 + 1/4 = 1/2; variance 1/4, standard error
    # sqrt(1/4 / 3) = .288675; 1.96 times that is .565793
    half = 1 << 29
    interval = normal_of_sums(3, 3 * half, half**2 + (2 * half) ** 2)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.5 - 0.5657927, 0.5 + 0.5657927), abs=1e-6)
    assert interval.method == "normal"
    assert normal_of_sums(1, half, half**2) is None, "one row has no deviation"
    assert normal_of_sums(2, 2 * half, 2 * half**2) == Interval(low=0.5, high=0.5, method="normal")


# ---- groups


def test_groups_of_one_kind_that_share_rows() -> None:
    # a row is in one group of a kind at most, but nothing breaks where a caller has it otherwise
    groups = [Group("all", "all", np.arange(4)), Group("x", 1, np.array([0, 1])), Group("x", 2, np.array([1, 3]))]
    members = Members.of(groups, 4)
    found = [{int(codes[row]) for codes in members.codes} - {3} for row in range(4)]
    assert found == [{0, 1}, {0, 1, 2}, {0}, {0, 2}]


# ---- exact sums


def test_exact_sums_by_hand() -> None:
    # .1 as a double is 3602879701896397 / 2^55; ten of them are not 1, and the sum says so exactly
    total = ExactSum(1)
    total.add(np.full((10, 1), 0.1))
    assert total.totals() == [10 * Fraction(3602879701896397, 2**55)]
    # a value below 2^-11 is rounded to a multiple of 2^-64
    tiny = ExactSum(2)
    tiny.add(np.array([[2.0**-70, 2.0**-64]]))
    assert tiny.totals() == [0, Fraction(1, 2**64)]
