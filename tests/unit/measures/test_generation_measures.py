"""Generation figures by hand, and their worst outcomes against every way in which an incomplete row may come out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tripos.columns.generation import ANSWERABLE, CODES, UNANSWERABLE, UNKNOWN, GenerationColumns
from tripos.contracts.reports import Aggregate
from tripos.measures.answers import figures, risk_coverage, risks
from tripos.measures.generation import GENERATION

Row = dict[str, Any]
NAN = float("nan")
BLANK: Row = {
    "kind": ANSWERABLE, "status": CODES["qualified"], "abstained": 0, "required": 1, "met": 1, "vital": 1, "vital_met": 1,
    "cited": 1, "accepted": 1, "nonexistent": 0, "not_shown": 0, "not_accepted": 0, "faithfulness": 1.0, "confidence": NAN,
    "source": 0, "has_list": 1, "label": 0,
}  # fmt: skip


def row(status: str, **more: Any) -> Row:
    """A row of one status, with what follows from it."""
    own: Row = {"status": CODES[status]}  # type: ignore[index]
    match status:
        case "abstained_rightly":
            own |= {"kind": UNANSWERABLE, "abstained": 1, "required": 0, "cited": 0, "faithfulness": NAN, "source": UNKNOWN}
        case "answered_unanswerable":
            own |= {"kind": UNANSWERABLE, "required": 0, "accepted": 0}
        case "over_refused":
            own |= {"abstained": 1, "met": 0, "vital_met": 0, "cited": 0, "accepted": 0, "faithfulness": NAN, "source": UNKNOWN}
        case "missing_requirement":
            own |= {"met": 0, "vital_met": 0}
        case "not_judged":
            own |= {"faithfulness": NAN, "source": UNKNOWN}
        case "incomplete":
            own |= {"abstained": UNKNOWN, "met": 0, "cited": 0, "accepted": 0, "faithfulness": NAN, "source": UNKNOWN}
    return {**BLANK, **own, **more}


def columns(rows: list[Row], clusters: list[int] | None = None) -> GenerationColumns:
    """The rows as columns."""
    floats = ("faithfulness", "confidence")
    made = {name: np.array([r[name] for r in rows], dtype=float if name in floats else np.int64) for name in BLANK}
    numbers = np.arange(len(rows)) if clusters is None else np.array(clusters)
    return GenerationColumns(**made, cluster=numbers, has_corpus=True, has_clusters=clusters is not None)


def figure(rows: list[Row], name: str, **more: Any) -> Aggregate:
    """One figure over the rows."""
    found = figures(columns(rows, **more), [name])[name]
    assert isinstance(found, Aggregate)
    return found


# by hand

TEN = [
    *[row("qualified")] * 4,
    row("missing_requirement", required=2, met=1, vital=1, vital_met=0, cited=4, accepted=1, faithfulness=0.5),
    row("over_refused"),
    row("abstained_rightly"),
    row("abstained_rightly"),
    row("answered_unanswerable"),
    row("answered_unanswerable"),
]


@pytest.mark.parametrize(
    ("name", "value", "n"),
    [
        ("requirement_coverage", (4 + 1 / 2 + 0) / 6, 6),
        ("requirement_coverage_vital", 4 / 6, 6),
        ("all_requirements", 4 / 6, 6),
        ("citation_precision", (4 + 1 / 4) / 5, 5),
        ("citation_precision_micro", 5 / 8, 5),
        ("faithfulness", 4.5 / 5, 5),
        ("qualified", 4 / 6, 6),
        ("abstention", 2 / 4, 4),
        ("abstention_precision", 2 / 3, 3),
        ("abstention_recall", 2 / 4, 4),
        ("abstention_f1", 4 / (4 + 1 + 2), 5),
        ("over_refusal", 1 / 6, 6),
        ("false_answer", 2 / 4, 4),
        ("balanced_accuracy", (2 / 4 + 5 / 6) / 2, 10),
        ("truthfulness", (4 + 2 - 1 - 2) / 10, 10),
    ],
)
def test_ten_rows_by_hand(name: str, value: float, n: int) -> None:
    found = figure(TEN, name)
    assert found.value == pytest.approx(value, abs=1e-11)
    assert (found.n, found.worst) == (n, found.value)


def test_every_measure_says_why_it_has_no_value() -> None:
    for name, found in figures(columns([])).items():
        assert (found.value, found.undefined, found.worst) == (None, "no_rows", None), name


def test_risk_by_hand() -> None:
    # by falling confidence: right, wrong, right → risks 0, 1/2, 1/3
    assert risks(np.array([0.1, 0.9, 0.5]), np.array([False, False, True])).tolist() == [0, 1 / 2, pytest.approx(1 / 3)]


def test_ties_in_confidence_are_averaged_over_all_orders() -> None:
    confidence, wrong = np.array([0.9, 0.5, 0.5, 0.5]), np.array([False, True, False, True])
    orders = [[0, *tail] for tail in itertools.permutations([1, 2, 3])]
    curves = [[sum(wrong[o[:i]]) / i for i in range(1, 5)] for o in orders]
    assert risks(confidence, wrong).tolist() == pytest.approx(np.mean(curves, axis=0).tolist())


def test_the_curve_has_ten_points_and_ends_at_the_error_rate() -> None:
    rows = [row("qualified", confidence=0.9), row("missing_requirement", confidence=0.2), row("over_refused", confidence=0.1)]
    curve = risk_coverage(columns(rows))
    assert curve is not None
    assert (len(curve.coverage), curve.risk[0], curve.risk[-1]) == (10, 0.0, 0.5)
    assert risk_coverage(columns([row("qualified")])) is None
    assert figure([row("qualified")], "aurc").undefined == "no_confidence"


def test_an_outage_leaves_qualified_undecided_where_some_rows_fail_anyway() -> None:
    found = figure([row("not_judged"), row("not_judged"), row("missing_requirement", faithfulness=NAN)], "qualified")
    assert (found.value, found.undefined, found.incomplete) == (None, "all_incomplete", 2)


def test_a_micro_precision_with_an_incomplete_row_has_no_worst() -> None:
    found = figure([row("qualified"), row("incomplete")], "citation_precision_micro")
    assert (found.value, found.worst, found.incomplete) == (1.0, None, 1)


def test_counts_of_bad_citations_have_no_worst_where_a_row_is_incomplete() -> None:
    rows = [row("bad_citation", not_shown=2), row("incomplete")]
    assert (figure(rows, "not_shown").value, figure(rows, "not_shown").worst) == (2.0, None)


# every way in which incomplete rows may come out

STATUSES = ("qualified", "missing_requirement", "over_refused", "abstained_rightly", "answered_unanswerable")
OUTCOMES = {ANSWERABLE: ("qualified", "missing_requirement", "over_refused"), UNANSWERABLE: STATUSES[3:]}
PROPORTIONS = (
    "qualified", "abstention", "abstention_precision", "abstention_recall", "abstention_f1", "over_refusal", "false_answer",
    "balanced_accuracy", "truthfulness", "aurc",
)  # fmt: skip


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    given = st.sampled_from([0.2, 0.5, 0.8, NAN])
    rows = [row(draw(st.sampled_from(STATUSES)), confidence=draw(given)) for _ in range(draw(st.integers(1, 5)))]
    kinds = draw(st.lists(st.sampled_from([ANSWERABLE, UNANSWERABLE]), max_size=2))
    rows += [row("incomplete", kind=kind) for kind in kinds]
    if draw(st.booleans()):
        rows.append(row("not_judged", confidence=draw(given)))
    return rows


def completions(rows: list[Row]) -> Iterator[list[Row]]:
    """Every way in which the undecided rows may come out, with a confidence above, between or below all, or none."""
    choices = []
    for one in rows:
        if one["status"] == CODES["incomplete"]:
            outcomes = itertools.product(OUTCOMES[one["kind"]], (1.0, 0.6, 0.0, NAN))
            choices.append([row(status, confidence=confidence) for status, confidence in outcomes])
        elif one["status"] == CODES["not_judged"]:
            choices.append([row(status, confidence=one["confidence"]) for status in ("qualified", "missing_requirement")])
        else:
            choices.append([one])
    return map(list, itertools.product(*choices))


@given(some_rows())
@settings(max_examples=40, deadline=None)
def test_worst_is_the_worst_of_all_completions(rows: list[Row]) -> None:
    ends: dict[str, list[float]] = {name: [] for name in PROPORTIONS}
    for complete in completions(rows):
        for name in PROPORTIONS:
            value = _bare(complete, name)
            if value is not None:
                ends[name].append(value)
    for name in PROPORTIONS:
        found = figure(rows, name)
        if name == "aurc" and found.worst is None:
            continue  # no confidence anywhere: that one may appear is no worse outcome, but another measure
        pick = min if GENERATION[name].direction == "higher" else max
        worst = pick(ends[name]) if ends[name] else None
        if found.worst is None:
            assert found.value is None, name
        else:
            assert worst is not None
            assert found.worst == pytest.approx(worst, abs=1e-9), name


def _bare(rows: list[Row], name: str) -> float | None:
    """The value of complete rows in plain Python."""
    should = [r["kind"] == UNANSWERABLE for r in rows]
    did = [r["abstained"] == 1 for r in rows]
    good = [r["status"] in (CODES["qualified"], CODES["abstained_rightly"]) for r in rows]
    right = sum(s and d for s, d in zip(should, did, strict=True))
    kept = sum(not s and not d for s, d in zip(should, did, strict=True))
    bad, n = sum(should), len(rows)
    match name:
        case "qualified":
            return _over(sum(g and not s for g, s in zip(good, should, strict=True)), n - bad)
        case "abstention" | "abstention_recall":
            return _over(right, bad)
        case "abstention_precision":
            return _over(right, sum(did))
        case "abstention_f1":
            return _over(2 * right, bad + sum(did))
        case "over_refusal":
            return _over(n - bad - kept, n - bad)
        case "false_answer":
            return _over(bad - right, bad)
        case "balanced_accuracy":
            return None if bad in (0, n) else float((Fraction(right, bad) + Fraction(kept, n - bad)) / 2)
        case "truthfulness":
            return (
                sum(1 if g else 0 if r["status"] == CODES["over_refused"] else -1 for g, r in zip(good, rows, strict=True)) / n
            )
        case _:
            return _bare_aurc([(r["confidence"], not g) for r, g, d in zip(rows, good, did, strict=True) if not d])


def _over(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _bare_aurc(pairs: list[tuple[float, bool]]) -> float | None:
    ordered = sorted((p for p in pairs if p[0] == p[0]), key=lambda p: -p[0])
    total = 0.0
    for i in range(1, len(ordered) + 1):
        bar = ordered[i - 1][0]
        above = [wrong for confidence, wrong in ordered if confidence > bar]
        level = [wrong for confidence, wrong in ordered if confidence == bar]
        total += (sum(above) + sum(level) * (i - len(above)) / len(level)) / i
    return total / len(ordered) if ordered else None


# invariance and intervals


@given(some_rows())
@settings(max_examples=40, deadline=None)
def test_values_lie_within_their_bounds(rows: list[Row]) -> None:
    for name, found in figures(columns(rows)).items():
        assert isinstance(found, Aggregate)
        low = -1.0 if name == "truthfulness" else 0.0
        for value in (found.value, found.worst):
            assert value is None or (low <= value and (value <= 1 or GENERATION[name].aggregate == "sum")), name
        if found.ci is not None:
            assert found.value is not None
            assert found.ci.low - 1e-9 <= found.value <= found.ci.high + 1e-9 or found.ci.method == "bootstrap", name


def test_methods_of_intervals_are_named() -> None:
    found = figures(columns(TEN))
    methods = {name: found[name].ci.method for name in found if isinstance(found[name].ci, object) and found[name].ci}  # type: ignore[union-attr]
    assert methods["qualified"] == methods["abstention_recall"] == "wilson"
    assert methods["faithfulness"] == methods["balanced_accuracy"] == methods["citation_precision_micro"] == "bootstrap"
    clustered = figure(TEN, "qualified", clusters=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    assert clustered.ci is not None
    assert clustered.ci.method == "bootstrap"
    one_cluster = figure(TEN, "qualified", clusters=[0] * 10)
    assert one_cluster.ci is None


def test_large_sets_take_the_normal_interval_close_to_the_bootstrap() -> None:
    small, large = columns(TEN * 900), columns(TEN * 1100)
    for name in ("citation_precision_micro", "abstention_f1", "balanced_accuracy"):
        pair = [figures(c, [name])[name].ci for c in (small, large)]
        few, many = (ci for ci in pair if ci is not None and not isinstance(ci, dict))
        assert (few.method, many.method) == ("bootstrap", "normal")
        assert (few.high - few.low) == pytest.approx((many.high - many.low) * (1100 / 900) ** 0.5, rel=0.1), name


def test_taking_rows_keeps_what_is_no_array() -> None:
    one = columns(TEN)
    part = one.take(np.array([0, 9]))
    assert (len(part), part.has_corpus, part.kind.tolist()) == (2, True, [ANSWERABLE, UNANSWERABLE])
    bare = replace(one, has_corpus=False)
    assert figures(bare, ["nonexistent"])["nonexistent"].undefined == "no_corpus"
