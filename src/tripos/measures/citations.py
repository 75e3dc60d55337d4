"""The generation measures of facts and citations, one function each."""

from __future__ import annotations

import numpy as np

from tripos.columns.generation import GenerationColumns
from tripos.measures.generation_parts import OURS, Ratios, codes, share
from tripos.measures.record import Registry, Values

CITATIONS = Registry()
"""The measures of facts and citations by name, in report order."""


@CITATIONS.measure(
    "requirement_coverage",
    "Requirement coverage",
    formula="requirements with an acceptable fragment cited / all requirements",
    population="answerable",
    reasons={"no_requirements": "the row names no requirement"},
    source=OURS,
)
def requirement_coverage(columns: GenerationColumns) -> Values:
    """Share of the row's requirements that a citation supports; an abstention supports none."""
    return Values(share(columns.met, columns.required), codes(~columns.complete, columns.required == 0))


@CITATIONS.measure(
    "requirement_coverage_vital",
    "Vital requirement coverage",
    formula="as requirement_coverage, over requirements of importance vital",
    population="answerable",
    reasons={"no_vital": "the row names no vital requirement"},
    source=f"{OURS}; vital and okay nuggets of TREC QA",
)
def requirement_coverage_vital(columns: GenerationColumns) -> Values:
    """Share of the row's vital requirements that a citation supports."""
    return Values(share(columns.vital_met, columns.vital), codes(~columns.complete, columns.vital == 0))


@CITATIONS.measure(
    "all_requirements",
    "All requirements",
    formula="1 if every requirement has an acceptable fragment cited",
    population="answerable",
    proportion=True,
    reasons={"no_requirements": "the row names no requirement"},
    source=OURS,
)
def all_requirements(columns: GenerationColumns) -> Values:
    """Whether every requirement is supported."""
    value = (columns.met == columns.required).astype(np.float64)
    return Values(value, codes(~columns.complete, columns.required == 0))


@CITATIONS.measure(
    "citation_precision",
    "Citation precision",
    formula="accepted citations / citations",
    population="answered",
    reasons={"nothing_cited": "the answer cites nothing"},
    source=OURS,
)
def citation_precision(columns: GenerationColumns) -> Values:
    """Share of the row's distinct citations that are accepted, shown or not."""
    nothing = columns.complete & (columns.cited == 0)
    return Values(share(columns.accepted, columns.cited), codes(~columns.complete, nothing))


@CITATIONS.measure(
    "citation_precision_micro",
    "Citation precision, micro",
    formula="Σ accepted citations / Σ citations",
    population="answered",
    aggregate="ratio",
    reasons={"nothing_cited": "no answer cites anything"},
    source=OURS,
)
def citation_precision_micro(columns: GenerationColumns) -> Ratios:
    """Citation precision over all citations at once; an incomplete row might cite anything, so its worst has no bound."""
    return Ratios(columns.accepted[:, None], columns.cited[:, None], None, None, ~columns.complete)


@CITATIONS.measure(
    "bad_citation",
    "Answers with a bad citation",
    formula="1 if a citation does not exist, was not shown, or is not accepted",
    population="scored",
    direction="lower",
    proportion=True,
    source=OURS,
)
def bad_citation(columns: GenerationColumns) -> Values:
    """Whether some citation is bad."""
    return Values(columns.bad.astype(np.float64), codes(~columns.complete))


@CITATIONS.measure(
    "nonexistent",
    "Made-up citations",
    formula="citations that are in no fragment of the corpus",
    population="scored",
    direction="lower",
    aggregate="sum",
    reasons={"no_corpus": "no fragments were given"},
    source=OURS,
)
def nonexistent(columns: GenerationColumns) -> Values:
    """Citations of what the corpus does not hold."""
    absent = np.full(len(columns), not columns.has_corpus)
    return Values(columns.nonexistent.astype(np.float64), codes(~columns.complete, absent))


@CITATIONS.measure(
    "not_shown",
    "Citations not shown",
    formula="citations of existing fragments outside the evidence",
    population="scored",
    direction="lower",
    aggregate="sum",
    reasons={"no_list": "what the model was shown is not known"},
    source=OURS,
)
def not_shown(columns: GenerationColumns) -> Values:
    """Citations of what the model was not shown."""
    return Values(columns.not_shown.astype(np.float64), codes(~columns.complete, columns.has_list == 0))


@CITATIONS.measure(
    "not_accepted",
    "Unsupporting citations",
    formula="citations of fragments shown that reviewers do not accept",
    population="scored",
    direction="lower",
    aggregate="sum",
    source=OURS,
)
def not_accepted(columns: GenerationColumns) -> Values:
    """Citations that support nothing asked."""
    return Values(columns.not_accepted.astype(np.float64), codes(~columns.complete))
