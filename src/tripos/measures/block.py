"""The kernel: judged positions of a block of queries as cumulative counts at every cutoff."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tripos.columns.retrieval import (
    EXPECTED,
    FIRST,
    FORBIDDEN,
    GRADED,
    NONRELEVANT,
    Bools,
    Floats,
    Hits,
    Ints,
    RetrievalColumns,
    Units,
)

ROWS = 4096
"""Queries in a block: larger blocks leave the cache and are slower."""

CELLS = ROWS * 100
"""Queries times cutoffs in a block, at most: deep limits make blocks of fewer queries."""


@functools.lru_cache(maxsize=8)
def discounts(limit: int) -> Floats:
    """1 / log2(rank + 1) for ranks 1..limit, shape (limit,).

    Computed in decimal arithmetic, so that the values are correctly rounded and the same on every CPU (vectorised
    logarithms differ between instruction sets in the last digit).
    """
    with localcontext() as context:
        context.prec = 30
        two = Decimal(2).ln()
        return np.array([float(two / Decimal(rank + 1).ln()) for rank in range(1, limit + 1)])


def exponential_gain(grade: Floats) -> Floats:
    """2^grade − 1, shape as given; in decimal arithmetic, for the same reason as `discounts`."""
    distinct, places = np.unique(grade, return_inverse=True)
    with localcontext() as context:
        context.prec = 50
        return np.array([float(Decimal(2) ** Decimal(float(g)) - 1) for g in distinct], dtype=np.float64)[places]


class Block:
    """A run of consecutive queries; every array has the block's rows first, then cutoffs 1..limit."""

    def __init__(self, columns: RetrievalColumns, start: int, stop: int) -> None:
        self.columns, self.start, self.stop = columns, start, stop
        self.n, self.limit = stop - start, columns.limit
        self.hits = columns.hits.within(start, stop)
        self.cutoffs: Ints = np.arange(1, self.limit + 1)

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """This block's part of a column of shape (n_queries,)."""
        part: npt.NDArray[np.int64] = getattr(self.columns, name)[self.start : self.stop]
        return part

    def flagged(self, name: str) -> Bools:
        """Rows whose judgment gives the field `name`."""
        return self.columns.flagged(name)[self.start : self.stop]

    def cumulative(self, query: Ints, rank: Ints, weights: Floats | None = None) -> Floats:
        """Counts or weights at (query, rank), summed up to each cutoff; shape (n, limit)."""
        inside = rank <= self.limit
        cell = query[inside] * self.limit + rank[inside] - 1
        flat = np.bincount(cell, None if weights is None else weights[inside], minlength=self.n * self.limit)
        return flat.reshape(self.n, self.limit).cumsum(axis=1).astype(np.float64, copy=False)

    def having(self, flag: int) -> Hits:
        """The first positions of sources that carry `flag`."""
        kept = (self.hits.flags & flag > 0) & (self.hits.flags & FIRST > 0)
        return Hits(self.hits.query[kept], self.hits.rank[kept], self.hits.grade[kept], self.hits.flags[kept])

    @cached_property
    def expected(self) -> Hits:
        """First positions of expected sources."""
        return self.having(EXPECTED)

    @cached_property
    def found(self) -> Floats:
        """Distinct expected sources within each cutoff, shape (n, limit)."""
        return self.cumulative(self.expected.query, self.expected.rank)

    @cached_property
    def ordinal(self) -> Ints:
        """Of each expected position: how many expected sources the query has found with it, shape (n_expected_hits,)."""
        query = self.expected.query
        starts = np.searchsorted(query, query, side="left")
        return np.arange(1, len(query) + 1) - starts

    @cached_property
    def expected_count(self) -> Floats:
        """Expected sources of each query; at least 1, so that it can divide (rows without any are in no ranked mean)."""
        return np.maximum(self.column("n_expected"), 1).astype(np.float64)

    def discounted(self, hits: Hits, gain: Floats) -> Floats:
        """Discounted cumulative gain at each cutoff, shape (n, limit)."""
        inside = hits.rank <= self.limit
        worth = gain[inside] * discounts(self.limit)[hits.rank[inside] - 1]
        return self.cumulative(hits.query[inside], hits.rank[inside], worth)

    def ndcg(self, exponential: bool) -> Floats:
        """Discounted gain over that of the ideal order, at each cutoff; shape (n, limit)."""
        got, best = self.having(GRADED), self.columns.ideal.within(self.start, self.stop)
        gains = [exponential_gain(h.grade) if exponential else h.grade for h in (got, best)]
        ideal = self.discounted(best, gains[1])
        return np.divide(self.discounted(got, gains[0]), ideal, out=np.zeros_like(ideal), where=ideal > 0)

    def nonrelevant_before(self, hits: Hits) -> Ints:
        """Of each position: distinct judged non-relevant sources ranked above it, shape (n_hits,)."""
        bad = self.having(NONRELEVANT | FORBIDDEN)
        stride = self.limit + 1
        above = np.searchsorted(bad.query * stride + bad.rank, hits.query * stride + hits.rank)
        return above - np.searchsorted(bad.query, hits.query)

    def unit_share(self, units: Units) -> tuple[Floats, Bools]:
        """Share of a query's units that are whole at each cutoff, shape (n, limit), and which queries have none."""
        own = units.within(self.start, self.stop)
        total = np.bincount(own.query, minlength=self.n)
        reached = own.rank > 0
        whole = self.cumulative(own.query[reached], own.rank[reached])
        return whole / np.maximum(total, 1)[:, None], total == 0


def blocks(columns: RetrievalColumns) -> Iterator[Block]:
    """The columns cut into blocks."""
    rows = max(1, min(ROWS, CELLS // columns.limit))
    for start in range(0, len(columns), rows):
        yield Block(columns, start, min(start + rows, len(columns)))
