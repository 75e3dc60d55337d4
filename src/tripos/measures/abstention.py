"""The generation measures of declining and of trust, one function each."""

from __future__ import annotations

import numpy as np

from tripos.columns.generation import CODES, UNANSWERABLE, Bools, GenerationColumns, Ints
from tripos.measures.generation_parts import OURS, OUTAGE, Ratios, Risks, codes, undecided
from tripos.measures.record import Registry, Values

ABSTENTION = Registry()
"""The measures of declining and of trust by name, in report order."""

_CLASSES = "confusion of abstained against unanswerable (scikit-learn)"


@ABSTENTION.measure(
    "abstention",
    "Right abstentions",
    formula="1 if the answer abstained and cites nothing",
    population="unanswerable",
    proportion=True,
    source=OURS,
)
def abstention(columns: GenerationColumns) -> Values:
    """Whether an unanswerable question was declined, with no citation."""
    value = (columns.status == CODES["abstained_rightly"]).astype(np.float64)
    return Values(value, codes(~columns.complete))


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


@ABSTENTION.measure(
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


@ABSTENTION.measure(
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


@ABSTENTION.measure(
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


@ABSTENTION.measure(
    "over_refusal",
    "Over-refusals",
    formula="1 if the answer abstained",
    population="answerable",
    direction="lower",
    proportion=True,
    source=OURS,
)
def over_refusal(columns: GenerationColumns) -> Values:
    """Whether an answerable question was declined."""
    return Values((columns.abstained == 1).astype(np.float64), codes(~columns.complete))


@ABSTENTION.measure(
    "false_answer",
    "False answers",
    formula="1 if the question was answered",
    population="unanswerable",
    direction="lower",
    proportion=True,
    source=OURS,
)
def false_answer(columns: GenerationColumns) -> Values:
    """Whether an unanswerable question was answered."""
    return Values((columns.abstained == 0).astype(np.float64), codes(~columns.complete))


@ABSTENTION.measure(
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


@ABSTENTION.measure(
    "truthfulness",
    "Truthfulness",
    formula="+1 qualified or rightly abstained, 0 over-refused, −1 otherwise",
    population="scored",
    reasons=OUTAGE,
    lowest=-1.0,
    source="after Yang et al. 2024 (CRAG)",
)
def truthfulness(columns: GenerationColumns) -> Values:
    """Right answers and abstentions less wrong answers, in [−1, 1]; undecided rows are incomplete."""
    good = np.isin(columns.status, [CODES["qualified"], CODES["abstained_rightly"]])
    value = np.where(good, 1.0, np.where(columns.status == CODES["over_refused"], 0.0, -1.0))
    return Values(value, codes(undecided(columns)))


@ABSTENTION.measure(
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
