"""The generation measures, one function each: from the columns of a group of rows to its figures' parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.columns.generation import ANSWERABLE, CODES, PARTIAL, UNANSWERABLE, UNKNOWN, Bools, Floats, GenerationColumns, Ints
from tripos.measures.record import Measure, Registry, Values

GENERATION = Registry()
"""The generation measures by name, in report order."""

INCOMPLETE_ROW = -1
"""Reason code of a row that could have a value, had it an answer or a score."""

_OURS = "Tripos"
_CLASSES = "confusion of abstained against unanswerable (scikit-learn)"


class Ratios(NamedTuple):
    """Parts of a mean of k ratios of sums; all arrays of shape (n, k), counts.

    worst_numerator and worst_denominator: what an incomplete row adds at its worst outcome (0 on complete rows); None where
    that outcome has no bound.
    """

    numerator: Ints
    denominator: Ints
    worst_numerator: Ints | None
    worst_denominator: Ints | None
    incomplete: Bools


class Risks(NamedTuple):
    """Answers with a confidence, and whether each is wrong; all arrays of shape (n,)."""

    confidence: Floats
    wrong: Bools
    member: Bools
    incomplete: Bools


def _codes(incomplete: Bools, *undefined: Bools) -> Ints:
    """Reason codes: the first reason that holds, else whether the row is incomplete, else 0."""
    codes: Ints = np.where(incomplete, INCOMPLETE_ROW, 0)
    for code, holds in reversed(list(enumerate(undefined, 1))):
        codes = np.where(holds, code, codes)
    return codes


def _share(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def answered(columns: GenerationColumns) -> Bools:
    """Rows that should be answered, and were or may have been (incomplete ones included)."""
    member: Bools = (columns.kind != UNANSWERABLE) & (columns.abstained != 1)
    return member


@GENERATION.measure(
    "requirement_coverage",
    "Requirement coverage",
    formula="requirements with an acceptable fragment cited / all requirements",
    population="answerable",
    reasons={"no_requirements": "the row names no requirement"},
    source=_OURS,
)
def requirement_coverage(columns: GenerationColumns) -> Values:
    """Share of the row's requirements that a citation supports; an abstention supports none."""
    return Values(_share(columns.met, columns.required), _codes(~columns.complete, columns.required == 0))


@GENERATION.measure(
    "requirement_coverage_vital",
    "Vital requirement coverage",
    formula="as requirement_coverage, over requirements of importance vital",
    population="answerable",
    reasons={"no_vital": "the row names no vital requirement"},
    source=f"{_OURS}; vital and okay nuggets of TREC QA",
)
def requirement_coverage_vital(columns: GenerationColumns) -> Values:
    """Share of the row's vital requirements that a citation supports."""
    return Values(_share(columns.vital_met, columns.vital), _codes(~columns.complete, columns.vital == 0))


@GENERATION.measure(
    "all_requirements",
    "All requirements",
    formula="1 if every requirement has an acceptable fragment cited",
    population="answerable",
    proportion=True,
    reasons={"no_requirements": "the row names no requirement"},
    source=_OURS,
)
def all_requirements(columns: GenerationColumns) -> Values:
    """Whether every requirement is supported."""
    value = (columns.met == columns.required).astype(np.float64)
    return Values(value, _codes(~columns.complete, columns.required == 0))


@GENERATION.measure(
    "citation_precision",
    "Citation precision",
    formula="accepted citations / citations",
    population="answered",
    reasons={"nothing_cited": "the answer cites nothing"},
    source=_OURS,
)
def citation_precision(columns: GenerationColumns) -> Values:
    """Share of the row's distinct citations that are accepted, shown or not."""
    nothing = columns.complete & (columns.cited == 0)
    return Values(_share(columns.accepted, columns.cited), _codes(~columns.complete, nothing))


@GENERATION.measure(
    "citation_precision_micro",
    "Citation precision, micro",
    formula="Σ accepted citations / Σ citations",
    population="answered",
    aggregate="ratio",
    reasons={"nothing_cited": "no answer cites anything"},
    source=_OURS,
)
def citation_precision_micro(columns: GenerationColumns) -> Ratios:
    """Citation precision over all citations at once; an incomplete row might cite anything, so its worst has no bound."""
    return Ratios(columns.accepted[:, None], columns.cited[:, None], None, None, ~columns.complete)


@GENERATION.measure(
    "bad_citation",
    "Answers with a bad citation",
    formula="1 if a citation does not exist, was not shown, or is not accepted",
    population="scored",
    direction="lower",
    proportion=True,
    source=_OURS,
)
def bad_citation(columns: GenerationColumns) -> Values:
    """Whether some citation is bad."""
    return Values(columns.bad.astype(np.float64), _codes(~columns.complete))


@GENERATION.measure(
    "nonexistent",
    "Made-up citations",
    formula="citations that are in no fragment of the corpus",
    population="scored",
    direction="lower",
    aggregate="sum",
    reasons={"no_corpus": "no fragments were given"},
    source=_OURS,
)
def nonexistent(columns: GenerationColumns) -> Values:
    """Citations of what the corpus does not hold."""
    absent = np.full(len(columns), not columns.has_corpus)
    return Values(columns.nonexistent.astype(np.float64), _codes(~columns.complete, absent))


@GENERATION.measure(
    "not_shown",
    "Citations not shown",
    formula="citations of existing fragments outside the evidence",
    population="scored",
    direction="lower",
    aggregate="sum",
    reasons={"no_list": "what the model was shown is not known"},
    source=_OURS,
)
def not_shown(columns: GenerationColumns) -> Values:
    """Citations of what the model was not shown."""
    return Values(columns.not_shown.astype(np.float64), _codes(~columns.complete, columns.has_list == 0))


@GENERATION.measure(
    "not_accepted",
    "Unsupporting citations",
    formula="citations of fragments shown that reviewers do not accept",
    population="scored",
    direction="lower",
    aggregate="sum",
    source=_OURS,
)
def not_accepted(columns: GenerationColumns) -> Values:
    """Citations that support nothing asked."""
    return Values(columns.not_accepted.astype(np.float64), _codes(~columns.complete))


_MIXED = {"mixed_sources": "scores given, judged and human are never averaged together: see the slices"}


@GENERATION.measure(
    "faithfulness",
    "Faithfulness",
    formula="claims that the evidence supports / claims, as scored",
    population="answered",
    reasons=_MIXED,
    source="Es et al. 2024 (RAGAS); Ru et al. 2024 (RAGChecker)",
)
def faithfulness(columns: GenerationColumns) -> Values:
    """The row's faithfulness score; a row without one is incomplete, never 0."""
    sources = set(columns.source[answered(columns)].tolist()) - {UNKNOWN}
    mixed = np.full(len(columns), len(sources) > 1)
    missing = np.isnan(columns.faithfulness)
    return Values(np.where(missing, 0.0, columns.faithfulness), _codes(missing, mixed))


def _undecided(columns: GenerationColumns) -> Bools:
    undecided: Bools = np.isin(columns.status, [CODES["incomplete"], CODES["not_judged"]])
    return undecided


_OUTAGE = {"none_judged": "no answer has a faithfulness score, so that none could qualify"}


def outage(measure: Measure, columns: GenerationColumns) -> bool:
    """Whether answers wait for scores and not one has any, so that the rows decided are failures by selection."""
    waiting = (columns.status == CODES["not_judged"]).any()
    judged = ~np.isnan(columns.faithfulness[columns.kind == ANSWERABLE])
    return "none_judged" in measure.reasons and bool(waiting) and not judged.any()


@GENERATION.measure(
    "qualified",
    "Qualified answers",
    formula="1 if answered, every requirement met, no bad citation, faithfulness at the target or above",
    population="answerable",
    proportion=True,
    reasons=_OUTAGE,
    source=_OURS,
)
def qualified(columns: GenerationColumns) -> Values:
    """Whether the answer qualifies; over all answerable rows, so that abstentions count against it."""
    value = (columns.status == CODES["qualified"]).astype(np.float64)
    return Values(value, _codes(_undecided(columns)))


@GENERATION.measure(
    "abstention",
    "Right abstentions",
    formula="1 if the answer abstained and cites nothing",
    population="unanswerable",
    proportion=True,
    source=_OURS,
)
def abstention(columns: GenerationColumns) -> Values:
    """Whether an unanswerable question was declined, with no citation."""
    value = (columns.status == CODES["abstained_rightly"]).astype(np.float64)
    return Values(value, _codes(~columns.complete))


def _confusion(columns: GenerationColumns) -> tuple[Ints, Ints, Ints, Ints]:
    """Right abstentions, wrong ones, false answers and right answers, each 0 or 1; shape (n,)."""
    should, did = columns.kind == UNANSWERABLE, columns.abstained
    cells = (should & (did == 1), ~should & (did == 1), should & (did == 0), ~should & (did == 0))
    right, wrong, false, answers = (cell.astype(np.int64) for cell in cells)
    return right, wrong, false, answers


def _ratio(numerator: Ints, denominator: Ints, worst: Ints, incomplete: Bools) -> Ratios:
    """One ratio, to whose denominator alone incomplete rows add `worst`."""
    zero = np.zeros((len(worst), 1), dtype=np.int64)
    return Ratios(numerator[:, None], denominator[:, None], zero, worst[:, None], incomplete)


@GENERATION.measure(
    "abstention_precision",
    "Abstention precision",
    formula="abstentions on unanswerable questions / abstentions",
    population="scored",
    aggregate="ratio",
    proportion=True,
    reasons={"nothing_abstained": "no answer abstained"},
    source=_CLASSES,
)
def abstention_precision(columns: GenerationColumns) -> Ratios:
    """Share of abstentions that were right; at worst, every incomplete answerable row abstained."""
    right, wrong, _, _ = _confusion(columns)
    incomplete = ~columns.complete
    worst = (incomplete & (columns.kind != UNANSWERABLE)).astype(np.int64)
    return _ratio(right, right + wrong, worst, incomplete)


@GENERATION.measure(
    "abstention_recall",
    "Abstention recall",
    formula="abstentions on unanswerable questions / unanswerable questions",
    population="unanswerable",
    aggregate="ratio",
    proportion=True,
    reasons={"no_rows": "no question is unanswerable"},
    source=_CLASSES,
)
def abstention_recall(columns: GenerationColumns) -> Ratios:
    """Share of unanswerable questions that were declined, with or without citations."""
    right, _, false, _ = _confusion(columns)
    return _ratio(right, right + false, (~columns.complete).astype(np.int64), ~columns.complete)


@GENERATION.measure(
    "abstention_f1",
    "Abstention F1",
    formula="2 · right abstentions / (2 · right + wrong abstentions + false answers)",
    population="scored",
    aggregate="ratio",
    reasons={"no_abstention": "nothing was, or should have been, declined"},
    source=_CLASSES,
)
def abstention_f1(columns: GenerationColumns) -> Ratios:
    """Harmonic mean of abstention precision and recall; every incomplete row is at worst an error."""
    right, wrong, false, _ = _confusion(columns)
    return _ratio(2 * right, 2 * right + wrong + false, (~columns.complete).astype(np.int64), ~columns.complete)


@GENERATION.measure(
    "over_refusal",
    "Over-refusals",
    formula="1 if the answer abstained",
    population="answerable",
    direction="lower",
    proportion=True,
    source=_OURS,
)
def over_refusal(columns: GenerationColumns) -> Values:
    """Whether an answerable question was declined."""
    return Values((columns.abstained == 1).astype(np.float64), _codes(~columns.complete))


@GENERATION.measure(
    "false_answer",
    "False answers",
    formula="1 if the question was answered",
    population="unanswerable",
    direction="lower",
    proportion=True,
    source=_OURS,
)
def false_answer(columns: GenerationColumns) -> Values:
    """Whether an unanswerable question was answered."""
    return Values((columns.abstained == 0).astype(np.float64), _codes(~columns.complete))


@GENERATION.measure(
    "balanced_accuracy",
    "Balanced accuracy",
    formula="mean of abstention recall and of 1 − over-refusal",
    population="scored",
    aggregate="ratio",
    reasons={"one_class": "all questions are answerable, or all are not"},
    source=_CLASSES,
)
def balanced_accuracy(columns: GenerationColumns) -> Ratios:
    """Whether to answer was decided rightly, both kinds of question weighing the same."""
    right, wrong, false, answers = _confusion(columns)
    worst = ~columns.complete[:, None] & np.column_stack([columns.kind == UNANSWERABLE, columns.kind != UNANSWERABLE])
    pairs = np.column_stack([right, answers]), np.column_stack([right + false, wrong + answers])
    return Ratios(*pairs, np.zeros_like(pairs[0]), worst.astype(np.int64), ~columns.complete)


@GENERATION.measure(
    "truthfulness",
    "Truthfulness",
    formula="+1 qualified or rightly abstained, 0 over-refused, −1 otherwise",
    population="scored",
    reasons=_OUTAGE,
    lowest=-1.0,
    source="after Yang et al. 2024 (CRAG)",
)
def truthfulness(columns: GenerationColumns) -> Values:
    """Right answers and abstentions less wrong answers, in [−1, 1]; undecided rows are incomplete."""
    good = np.isin(columns.status, [CODES["qualified"], CODES["abstained_rightly"]])
    value = np.where(good, 1.0, np.where(columns.status == CODES["over_refused"], 0.0, -1.0))
    return Values(value, _codes(_undecided(columns)))


@GENERATION.measure(
    "aurc",
    "Area under the risk–coverage curve",
    formula="mean over the answers, by falling confidence, of the share of wrong ones so far; ties averaged",
    population="scored",
    direction="lower",
    aggregate="area",
    reasons={"no_confidence": "no answer carries a confidence"},
    source="Geifman and El-Yaniv 2017; Geifman et al. 2019",
)
def aurc(columns: GenerationColumns) -> Risks:
    """Risk among answers given with confidence; wrong means not qualified, or an answer to the unanswerable."""
    has_confidence = ~np.isnan(columns.confidence)
    waiting = has_confidence & (columns.abstained == 0) & (columns.status == CODES["not_judged"])
    member = has_confidence & (columns.abstained == 0) & ~waiting
    return Risks(columns.confidence, columns.status != CODES["qualified"], member, waiting | ~columns.complete)


PARTIAL_MEASURES = (
    "requirement_coverage",
    "requirement_coverage_vital",
    "all_requirements",
    "citation_precision",
    "citation_precision_micro",
    "bad_citation",
    "nonexistent",
    "not_shown",
    "not_accepted",
    "faithfulness",
    "over_refusal",
)
"""Measures that rows of which only a part is answerable are told by, apart from all others."""


def members(population: str, columns: GenerationColumns) -> Bools:
    """Which rows a measure is taken over; partial rows count as answerable where they are on their own; shape (n,)."""
    should = columns.kind != UNANSWERABLE
    member: Bools = {
        "answerable": should,
        "unanswerable": ~should,
        "answered": answered(columns),
        "scored": np.ones(len(columns), dtype=bool),
    }[population]
    return member


def is_partial(columns: GenerationColumns) -> Bools:
    """Rows of which only a part is answerable."""
    partial: Bools = columns.kind == PARTIAL
    return partial
