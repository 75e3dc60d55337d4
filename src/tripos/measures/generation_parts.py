"""What generation measures are made of: parts of figures that are no means, reason codes, and who is undecided."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.columns.generation import ANSWERABLE, CODES, UNANSWERABLE, Bools, Floats, GenerationColumns, Ints
from tripos.measures.record import Measure

OURS = "Tripos"
INCOMPLETE_ROW = -1
"""Reason code of a row that could have a value, had it an answer or a score."""


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


def codes(incomplete: Bools, *undefined: Bools) -> Ints:
    """Reason codes: the first reason that holds, else whether the row is incomplete, else 0."""
    found: Ints = np.where(incomplete, INCOMPLETE_ROW, 0)
    for code, holds in reversed(list(enumerate(undefined, 1))):
        found = np.where(holds, code, found)
    return found


def share(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> Floats:
    """Part over whole, 0 where the whole is 0; shape (n,)."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def answered(columns: GenerationColumns) -> Bools:
    """Rows that should be answered, and were or may have been (incomplete ones included)."""
    member: Bools = (columns.kind != UNANSWERABLE) & (columns.abstained != 1)
    return member


def undecided(columns: GenerationColumns) -> Bools:
    """Rows that say neither passed nor failed."""
    waiting: Bools = np.isin(columns.status, [CODES["incomplete"], CODES["not_judged"]])
    return waiting


OUTAGE = {"none_judged": "no answer has a faithfulness score, so that none could qualify"}


def outage(measure: Measure, columns: GenerationColumns) -> bool:
    """Whether answers wait for scores and not one has any, so that the rows decided are failures by selection."""
    waiting = (columns.status == CODES["not_judged"]).any()
    judged = ~np.isnan(columns.faithfulness[columns.kind == ANSWERABLE])
    return "none_judged" in measure.reasons and bool(waiting) and not judged.any()


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
