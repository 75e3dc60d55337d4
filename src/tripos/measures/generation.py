"""The generation measures: of whole answers here, of citations and of abstention in their own rooms, and all by name."""

from __future__ import annotations

import numpy as np

from tripos.columns.generation import CODES, UNKNOWN, GenerationColumns
from tripos.measures.abstention import ABSTENTION
from tripos.measures.citations import CITATIONS
from tripos.measures.generation_parts import OURS, OUTAGE, answered, codes, undecided
from tripos.measures.record import Registry, Values

_ANSWERS = Registry()

_MIXED = {"mixed_sources": "scores given, judged and human are never averaged together: see the slices"}


@_ANSWERS.measure(
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
    return Values(np.where(missing, 0.0, columns.faithfulness), codes(missing, mixed))


@_ANSWERS.measure(
    "qualified",
    "Qualified answers",
    formula="1 if answered, every requirement met, no bad citation, faithfulness at the target or above",
    population="answerable",
    proportion=True,
    reasons=OUTAGE,
    source=OURS,
)
def qualified(columns: GenerationColumns) -> Values:
    """Whether the answer qualifies; over all answerable rows, so that abstentions count against it."""
    value = (columns.status == CODES["qualified"]).astype(np.float64)
    return Values(value, codes(undecided(columns)))


GENERATION = Registry({**CITATIONS, **_ANSWERS, **ABSTENTION})
"""The generation measures by name, in report order."""

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
