"""compare, by hand: small worlds of which every difference is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.builders import Row, World, evaluated, judgment, listed
from tripos.across.compare import Request, compare
from tripos.across.pairs import Pairing, differences
from tripos.across.reach import Assumed, of_run, of_two
from tripos.across.repeated import repeats
from tripos.across.sides import PASSED, UNDECIDED, Side
from tripos.across.tables import retrieval_rows
from tripos.contracts.comparison import Candidate, Cell, Comparison
from tripos.errors import ConfigError, NotComparable, UsageError
from tripos.measures.drops import Band

N = 40
NAMES = [f"q{n:02d}" for n in range(N)]


def judgments(**more: Any) -> list[Row]:
    return [judgment(name, f"s{name}", **more) for name in NAMES]


def results(*, lost: int = 0, gone: tuple[str, ...] = ()) -> list[Row]:
    """Every query finds its source first, but for the first `lost`, which find another; those in `gone` have no result."""
    found = [listed(name, "other::f1" if n < lost else f"s{name}::f1") for n, name in enumerate(NAMES)]
    return [row for row in found if row["query_id"] not in gone]


def side(given: str, rows: list[Row], judged: list[Row] | None = None, **world: Any) -> Side:
    own = {"limit": 5, **world}
    return Side(given, (retrieval_rows(evaluated(World(judged or judgments(), rows, **own))),))


def hits(base: Side, candidate: Side, **request: Any) -> tuple[Comparison, Candidate, Cell]:
    found = compare(base, [candidate], Request(**{"measures": ("hit@5",), **request}))
    (one,) = found.candidates
    return found, one, one.cells[0]


@pytest.mark.parametrize(("lost", "p", "verdict"), [(5, 0.0625, "no difference seen"), (6, 0.03125, "worse")])
def test_six_lost_of_forty_are_evidence_and_five_are_not(lost: int, p: float, verdict: str) -> None:
    found, one, cell = hits(side("base", results()), side("now", results(lost=lost)))
    assert (cell.base, cell.value, cell.difference) == (1.0, 1 - lost / N, -lost / N)
    assert (cell.p, cell.p_holm, cell.verdict) == (p, p, verdict)
    assert one.lost == tuple(NAMES[:lost])
    assert one.gained == ()
    assert (found.family, found.verdict.exit_code) == (1, 0)


def test_queries_gained_are_named() -> None:
    _, one, cell = hits(side("base", results(lost=7)), side("now", results()))
    assert (one.gained, one.lost, cell.verdict) == (tuple(NAMES[:7]), (), "better")


def test_holm_is_over_all_cells_of_all_candidates() -> None:
    """Three runs, two measures each: six cells; six lost give .03125 four times, and the base's own figures are no cells."""
    base, same, worse = side("base", results()), side("same", results()), side("worse", results(lost=6))
    found = compare(base, [same, worse, worse], Request(measures=("hit@5", "rr@5")))
    assert found.family == 6
    assert [cell.p_holm for cell in found.candidates[0].cells] == [1.0, 1.0]
    assert {cell.p_holm for one in found.candidates[1:] for cell in one.cells} == {0.03125 * 6}


def test_rows_are_paired_where_both_have_a_result() -> None:
    """q00 is lost; q38 has no result here, q39 none in the base, q37 none in either: 37 pairs, one of them lost.

    At worst the candidate fails on q38, and the base would have failed on nothing: −1 (q00) −1 (q38) + 0 (q39: good in the
    base too), over 39 rows.
    """
    base = side("base", results(gone=("q37", "q39")))
    now = side("now", results(lost=1, gone=("q37", "q38")))
    _, one, cell = hits(base, now)
    assert cell.n == 37
    assert cell.difference == pytest.approx(-1 / 37)
    assert cell.left_out == {"no_result_in_base": 1, "no_result_here": 1, "no_result_in_both": 1}
    assert cell.worst == pytest.approx(-2 / 39)
    assert (one.undecided, one.run.incomplete) == (3, 2)


def test_a_gate_reads_the_worst_and_says_inconclusive_where_that_alone_fails() -> None:
    base, now = side("base", results()), side("now", results(gone=("q38",)))
    found, one, _ = hits(base, now, bands=(Band("hit@5", 0.02),))
    assert (one.gates[0].status, found.verdict.exit_code) == ("inconclusive", 6)
    assert one.gates[0].value == pytest.approx(1 / 40)
    found, one, _ = hits(base, now, bands=(Band("hit@5", 0.03),))
    assert (one.gates[0].status, found.verdict.exit_code) == ("passed", 0)


def test_lower_is_better_turns_the_gate_round() -> None:
    """Four of forty queries surface a forbidden source now: a rise of .1."""
    judged = judgments(forbidden_sources=["bad"])
    rows = [{**row, "fragment_ids": [*row["fragment_ids"], *(["bad::f1"] if n < 4 else [])]} for n, row in enumerate(results())]
    base, now = side("base", results(), judged), side("now", rows, judged)
    found, one, cell = hits(base, now, measures=("forbidden@5",), bands=(Band("forbidden@5", 0.05),))
    assert (cell.difference, one.gates[0].value, one.gates[0].status) == (0.1, 0.1, "failed")
    assert found.verdict.exit_code == 1
    _, one, _ = hits(now, base, measures=("forbidden@5",), bands=(Band("forbidden@5", 0.05),))
    assert (one.gates[0].status, one.gates[0].because) == ("passed", "fell by 0.1")


def test_a_slice_has_its_own_band() -> None:
    judged = [{**row, "slices": {"kind": "old" if n < 10 else "new"}} for n, row in enumerate(judgments())]
    base, now = side("base", results(), judged), side("now", results(lost=1), judged)
    bands = (Band("hit@5", 0.05), Band("hit@5", 0.05, ("kind", "old")), Band("hit@5", 0.05, ("kind", "new")))
    _, one, _ = hits(base, now, bands=bands)
    assert [gate.status for gate in one.gates] == ["passed", "failed", "passed"]
    assert [gate.value for gate in one.gates] == [1 / 40, 0.1, 0.0]
    _, one, _ = hits(base, now, bands=bands, min_n=11)
    assert [gate.status for gate in one.gates] == ["passed", "vacuous", "passed"]
    _, one, _ = hits(base, now, bands=(Band("hit@5", 0.05, ("kind", "olden")),))
    assert one.gates[0].status == "vacuous"
    assert 'did you mean "kind=old"?' in one.gates[0].because


def test_with_confidence_the_interval_must_show_it() -> None:
    """One of forty lost: −.025, but the interval reaches further; .1 it excludes, .05 it does not."""
    base, now = side("base", results()), side("now", results(lost=1))
    for most, plain, shown in ((0.01, "failed", "failed"), (0.05, "passed", "failed"), (0.2, "passed", "passed")):
        _, one, cell = hits(base, now, bands=(Band("hit@5", most),))
        assert one.gates[0].status == plain
        _, one, cell = hits(base, now, bands=(Band("hit@5", most),), confidence=0.95)
        assert one.gates[0].status == shown
        assert cell.ci is not None
        assert one.gates[0].could_be is not None
        assert one.gates[0].could_be >= -cell.ci.low


def test_rows_that_never_change_exclude_no_small_drop() -> None:
    """Other results, the same hits: a bootstrap of forty zeros is [0, 0], and yet 40 rows cannot exclude a drop of .02."""
    other = [{**row, "fragment_ids": [*row["fragment_ids"], "more::f1"]} for row in results()]
    found, one, cell = hits(side("base", results()), side("now", other), bands=(Band("hit@5", 0.02),), confidence=0.95)
    assert cell.ci is not None
    assert (cell.ci.low, cell.ci.high) == (0.0, 0.0)
    assert one.gates[0].status == "failed"
    assert one.gates[0].could_be == pytest.approx(3.8414588 / 43.8414588)
    assert any("40 rows can never exclude a drop of 0.02 at 95%: it takes 189" in text for text in found.told)
    same = hits(side("base", results()), side("now", results()), bands=(Band("hit@5", 0.02),), confidence=0.95)
    assert same[1].gates[0].status == "passed", "the same results, byte for byte, are no smaller"


def test_a_gate_that_so_few_rows_could_never_prove_says_so() -> None:
    judged, rows = [*judgments(), judgment("q40", "sq40")], [*results(), listed("q40", "sq40::f1")]
    base = side("base", rows, judged)
    found, *_ = hits(base, base, bands=(Band("hit@5", 0.02),))
    (text,) = [line for line in found.told if "never" in line]
    assert "41 rows can never show a drop of 0.02" in text
    assert "a drop of 0.146" in text
    found, *_ = hits(base, base, bands=(Band("hit@5", 0.15),))
    assert not [line for line in found.told if "never" in line]


def test_a_measure_that_no_row_has_fails_its_gate() -> None:
    base = side("base", results())
    found, one, cell = hits(base, base, measures=("group_recall@5",), bands=(Band("group_recall@5", 0.5),))
    assert (cell.verdict, cell.p, cell.n) == ("undefined", None, 0)
    assert (one.gates[0].status, found.verdict.exit_code, found.family) == ("vacuous", 1, 0)


def test_whole_clusters_are_paired() -> None:
    """Six lost rows of one cluster are one loss: its sign can be two things, so p is 1."""
    judged = [{**row, "cluster": "c"} if n < 6 else row for n, row in enumerate(judgments())]
    _, _, cell = hits(side("base", results(), judged), side("now", results(lost=6), judged))
    assert (cell.n, cell.units, cell.p, cell.verdict) == (40, 35, 1.0, "no difference seen")


def test_line_order_changes_nothing() -> None:
    judged = [{**row, "cluster": f"c{n % 7}"} for n, row in enumerate(judgments())]
    shuffled = random.Random(5).sample(judged, N)
    rows = results(lost=9, gone=("q20",))
    one = compare(side("base", results(), judged), [side("now", rows, judged)])
    other = compare(side("base", results()[::-1], shuffled), [side("now", rows[::-1], shuffled)])
    assert one == other


def test_other_judgments_are_refused_and_named() -> None:
    judged = [*judgments()[1:], judgment("extra", "s")]
    judged[0] = judgment("q01", "elsewhere")
    base, now = side("base", results()), side("now", results(), judged)
    with pytest.raises(NotComparable, match="not scored by the same reviewed rows") as told:
        compare(base, [now])
    assert "38 queries are judged alike" in str(told.value)
    assert "1 in the base alone: q00" in str(told.value)
    assert "1 in the candidate alone: extra" in str(told.value)
    assert "1 judged differently: q01" in str(told.value)


def test_common_queries_are_those_that_both_judge_alike() -> None:
    judged = [*judgments()[1:], judgment("extra", "s")]
    judged[0] = judgment("q01", "elsewhere")
    found, one, cell = hits(side("base", results()), side("now", results(), judged), common_queries=True)
    assert (one.paired, cell.n, found.judgments_digest) == (38, 38, None)
    assert one.alone == {
        "scored_in_base_alone": ("q00",),
        "scored_here_alone": ("extra",),
        "judged_differently": ("q01",),
    }


def test_nothing_in_common_is_nothing_to_compare() -> None:
    judged = [judgment(f"x{n}", "s") for n in range(3)]
    other = side("now", [listed(f"x{n}", "s::f1") for n in range(3)], judged)
    with pytest.raises(NotComparable, match="no query in common"):
        compare(side("base", results()), [other], Request(common_queries=True))


def test_what_differs_is_told_field_by_field() -> None:
    _, one, _ = hits(side("base", results(), top_k=3), side("now", results(), top_k=2, limit=4), measures=("hit@2",))
    told = [(d.component, d.field, d.base, d.value) for d in one.differs]
    assert told == [("D evidence depth", "limit", "5", "4"), ("D evidence depth", "top_k", "3", "2")]
    with pytest.raises(ConfigError, match=r"within 1\.\.4"):
        hits(side("base", results()), side("now", results(), limit=4), measures=("hit@5",))


def test_each_run_passes_at_its_own_top_k() -> None:
    """The source stands second: within a top K of 2, beyond one of 1."""
    rows = [listed(name, "other::f1", f"s{name}::f1") for name in NAMES]
    found, one, _ = hits(side("base", rows, top_k=2), side("now", rows, top_k=1))
    assert one.lost == tuple(NAMES)
    assert "each run at its own top K" in found.passes


def test_a_sum_is_nothing_to_pair() -> None:
    with pytest.raises(UsageError, match="is a sum"):
        hits(side("base", results()), side("now", results()), measures=("leaks",))


def twice(given: str, *runs: Side) -> Side:
    return Side(given, tuple(run.runs[0] for run in runs))


def test_repeats_are_averaged_and_their_noise_told_apart() -> None:
    """The base's two runs score 1 and .9, mean .95; the candidate's .8 and .7, mean .75.

    sd = .1/√2 each, so the difference of two means of two has √(2 · .005 / 2) = .0707.
    """
    base = twice("base", side("a", results()), side("b", results(lost=4)))
    now = twice("now", side("c", results(lost=8)), side("d", results(lost=12)))
    _, one, cell = hits(base, now)
    assert (cell.base, cell.value, cell.difference) == (0.95, 0.75, -0.2)
    assert cell.noise is not None
    assert cell.noise.base_sd == pytest.approx(0.1 / 2**0.5)
    assert cell.noise.of_difference == pytest.approx(0.005**0.5)
    assert cell.verdict == "worse"
    assert one.lost == tuple(NAMES[4:8]), "q00–q03 are undecided in the base; q08–q11 pass in one of two candidates"


def test_a_difference_within_the_noise_is_none() -> None:
    """Twelve rows all one way are far from chance, but single runs of the candidate differ by as much."""
    base = twice("base", side("a", results()), side("b", results()))
    now = twice("now", side("c", results()), side("d", results(lost=12)))
    _, _, cell = hits(base, now)
    assert cell.p is not None
    assert cell.p < 0.001
    assert cell.verdict == "no difference seen"


def test_repeats_of_other_systems_are_refused() -> None:
    with pytest.raises(NotComparable, match="D evidence depth differs"):
        repeats(twice("both", side("a", results()), side("b", results(), limit=4)))


def test_aa_tells_the_noise_floor_and_which_gates_flip() -> None:
    """Values 1, .9 and .8: sd .1; floor 1.96 · √2 · .1. q00–q03 move between the first two, q04–q07 with the third.

    A drop of .05 fails for the three ordered pairs that fall, and passes for the three that rise.
    """
    side_of = twice("three", side("a", results()), side("b", results(lost=4)), side("c", results(lost=8)))
    found = repeats(side_of, Request(measures=("hit@5",), bands=(Band("hit@5", 0.05),)))
    (floor,) = found.measures
    assert floor.mean == pytest.approx(0.9)
    assert (floor.lowest, floor.highest, floor.changing) == (0.8, 1.0, 8)
    assert floor.sd == pytest.approx(0.1)
    assert floor.floor == pytest.approx(1.959964 * 2**0.5 * 0.1)
    assert floor.alarms == 1, "eight lost (p .008); four lost (p .125) twice"
    assert [(flip.trials, flip.passed, flip.flips) for flip in found.flips] == [(6, 3, True)]
    assert found.changing == tuple(NAMES[:8])


def test_power_from_two_runs_is_what_compare_could_see() -> None:
    base, now = side("base", results()), side("now", results(lost=3))
    _, _, cell = hits(base, now)
    (reach,) = of_two(base, now, Assumed(measures=("hit@5",))).measures
    assert reach.could_see == pytest.approx(cell.could_see)
    assert (reach.n, reach.at_least, reach.rows_to_exclude) == (40, 0.15, {"0.02": 189, "0.05": 73})


def test_power_from_one_run_supposes_a_correlation() -> None:
    """At correlation .5 differences spread as the values do: sd of thirty ones and ten zeros."""
    (reach,) = of_run(side("base", results(lost=10)), Assumed(measures=("hit@5",))).measures
    assert reach.sd == pytest.approx((0.25 * 0.75 * 40 / 39) ** 0.5)


def test_states_follow_the_report() -> None:
    """Means of defined rows are the report's values, and incomplete rows are as many as it counts."""
    made = evaluated(World([*judgments(), judgment("none")], [*results(lost=3, gone=("q30",)), listed("none")], limit=5))
    rows = retrieval_rows(made)
    own = rows.figures(["hit@3", "expected_empty", "hit@case", "precision@2"])
    for name in own:
        stated = made.report.measures[name if name in made.report.measures else f"{name.partition('@')[0]}@k"]
        value = stated.value if isinstance(stated.value, float) else stated.value[int(name.partition("@")[2]) - 1]  # type: ignore[index]
        assert own[name].value[own[name].state == 0].mean() == pytest.approx(value)
        assert ((own[name].state == 0).sum(), (own[name].state == 2).sum()) == (stated.n, stated.incomplete)
    assert [(rows.passed == code).sum() for code in (PASSED, UNDECIDED)] == [37, 1]


def test_values_that_a_store_rounds_are_no_difference() -> None:
    base = side("base", results())
    pairing = Pairing(base, base, base.ids)
    columns = pairing.columns(["hit@5"])["hit@5"]
    nearly = [columns[1][0]._replace(value=columns[1][0].value - 1e-13)]
    assert set(differences("hit@5", columns[0], nearly, pairing).difference.tolist()) == {0.0}
