"""Curves as steps: at which rank a query's figure changes, and to what; between its few judged positions nothing happens.

A run of ten million results has some 400,000 judged positions. Sums over rows are sums of changes at them, so that no matrix of
queries by cutoffs is made; `dense` makes one for those who want every cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tripos.columns.retrieval import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Steps:
    """A figure of n queries at every cutoff, 0 before a query's first step; arrays have shape (n_steps,).

    Sorted by (query, rank), ranks within the limit; of steps at one rank the last holds. Where `over` is given, shape (n,),
    values are counts, and the figure at k is count / min(k, over).
    """

    query: Ints
    rank: Ints
    value: Floats
    over: Ints | None = None

    def where(self, kept: Bools) -> Steps:
        """The steps of the queries to be kept, shape (n,)."""
        own = kept[self.query]
        return Steps(self.query[own], self.rank[own], self.value[own], self.over)

    @property
    def before(self) -> Floats:
        """What the value was before each step."""
        return np.where(_starts(self.query), 0.0, np.append(0.0, self.value)[: len(self.value)])

    @property
    def is_last(self) -> Bools:
        """Which steps are their query's last."""
        return _starts(self.query[::-1])[::-1]

    def at(self, cutoff: Ints) -> Floats:
        """The figure of each query at a cutoff of its own, shape (n,)."""
        n, stride = len(cutoff), int(max(self.rank.max(initial=0), cutoff.max(initial=0))) + 1
        place = np.searchsorted(self.query * stride + self.rank, np.arange(n) * stride + cutoff, side="right") - 1
        reached = place >= np.searchsorted(self.query, np.arange(n))
        value = np.zeros(n)
        value[reached] = self.value[place[reached]]
        return value if self.over is None else value / np.minimum(cutoff, self.over)

    def dense(self, n: int, limit: int) -> Floats:
        """The figure at every cutoff, shape (n, limit)."""
        number = np.zeros((n, limit), dtype=np.int64)
        np.maximum.at(number, (self.query, self.rank - 1), np.arange(1, len(self.value) + 1))
        value = np.append(0.0, self.value)[np.maximum.accumulate(number, axis=1)]
        return value if self.over is None else value / np.minimum(np.arange(1, limit + 1), self.over[:, None])


class Stepped(NamedTuple):
    """Per-row figures of one block at every cutoff; `undefined` as in `Values`."""

    value: Steps
    undefined: Ints


def ordinals(query: Ints) -> Ints:
    """Of each position: its number among its query's, from 1; positions are sorted by query."""
    place = np.arange(len(query))
    first: Ints = np.maximum.accumulate(np.where(_starts(query), place, 0))
    return place - first + 1


def _starts(query: Ints) -> Bools:
    """Which positions are their query's first."""
    return np.append(True, query[1:] != query[:-1])[: len(query)]


def distinct(numbers: Ints) -> Ints:
    """Each number once, ascending; numpy.unique would load numpy.ma."""
    ordered = np.sort(numbers, kind="stable")
    return ordered[_starts(ordered)]


def running(query: Ints, addend: Floats) -> Floats:
    """The sum of each position's addend and those before it of its query, added up in that order."""
    if not len(query):
        return addend
    row, column = np.cumsum(_starts(query)) - 1, ordinals(query) - 1
    table = np.zeros((row[-1] + 1, column.max() + 1))
    table[row, column] = addend
    summed: Floats = table.cumsum(axis=1)[row, column]
    return summed
