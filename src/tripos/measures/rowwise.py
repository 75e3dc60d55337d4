"""Aggregates of columns that are held whole: every measure over every group, without blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tripos.columns.groups import Group
from tripos.measures.aggregate import Figures, Sums, curve, population, single
from tripos.measures.record import Measure, Values


class Columns(Protocol):
    """What aggregation asks of columns."""

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Rows that were measured."""

    @property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Rows that should find something."""


def aggregate_rows(
    columns: Columns, measures: Iterable[Measure], groups: Sequence[Group], clusters: npt.NDArray[np.int64] | None
) -> list[Figures]:
    """All scalar measures over each group, by name.

    Args:
        columns: The aligned rows.
        measures: Which measures; their functions take the columns.
        groups: Sets of rows; a result each, in the same order.
        clusters: Cluster number of each row, or None where no row names one.
    """
    figures: list[Figures] = [{} for _ in groups]
    for measure in measures:
        values, members = measure.function(columns), population(measure, columns.positive)
        for group, table in zip(groups, figures, strict=True):
            rows = group.rows[members[group.rows]]
            table[measure.name] = single(_sums(measure, values, columns.complete, rows), clusters)
    return figures


def _sums(
    measure: Measure,
    values: Values,
    complete: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    headline: Sequence[int] = (1,),
) -> Sums:
    matrix = values.value if values.value.ndim == 2 else values.value[:, None]
    sums = Sums(measure, matrix.shape[1], headline)
    sums.add(matrix[rows], values.undefined[rows], complete[rows], rows)
    return sums


def aggregate_curve(
    measure: Measure,
    values: Values,
    complete: npt.NDArray[np.bool_],
    own: npt.NDArray[np.int64],
    clusters: npt.NDArray[np.int64] | None,
) -> Figures:
    """A curve over all rows, and its figure at each row's own cutoff (`…@case`).

    Args:
        measure: The record of a curve.
        values: Its values, shape (n, K).
        complete: Which rows were measured, shape (n,).
        own: Each row's own cutoff, within 1..K, shape (n,).
        clusters: Cluster number of each row, or None.
    """
    width = values.value.shape[1]
    rows = np.arange(len(own))
    headline = sorted({k for k in (1, 5, 10, 20, 50, width) if k <= width})
    at_own = Values(np.take_along_axis(values.value, own[:, None] - 1, axis=1), values.undefined)
    return {
        measure.name: curve(_sums(measure, values, complete, rows, headline), clusters),
        measure.at("case"): single(_sums(measure, at_own, complete, rows), clusters),
    }
