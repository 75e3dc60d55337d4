"""The kernel: judged positions of a block of queries, counted and summed in order of rank."""

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
from tripos.measures.steps import Steps, distinct, ordinals, running

ROWS = 4096
"""Queries in a block: larger blocks leave the cache and are slower."""


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
    """A run of consecutive queries, numbered from 0; hits of shape (n_hits,), columns of shape (n,)."""

    def __init__(self, columns: RetrievalColumns, start: int, stop: int) -> None:
        self.columns, self.start, self.stop = columns, start, stop
        self.n, self.limit = stop - start, columns.limit
        self.hits = _upto(self.limit, columns.hits.within(start, stop))

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """This block's part of a column of shape (n_queries,)."""
        part: npt.NDArray[np.int64] = getattr(self.columns, name)[self.start : self.stop]
        return part

    def flagged(self, name: str) -> Bools:
        """Rows whose judgment gives the field `name`."""
        return self.columns.flagged(name)[self.start : self.stop]

    def having(self, flag: int) -> Hits:
        """The first positions of sources that carry `flag`."""
        return self.hits.where((self.hits.flags & flag > 0) & (self.hits.flags & FIRST > 0))

    @cached_property
    def expected(self) -> Hits:
        """First positions of expected sources."""
        return self.having(EXPECTED)

    @cached_property
    def ordinal(self) -> Ints:
        """Of each expected position: how many expected sources the query has found with it, shape (n_expected_hits,)."""
        return ordinals(self.expected.query)

    @cached_property
    def first(self) -> Hits:
        """The first expected position of each query that has one."""
        return self.expected.where(self.ordinal == 1)

    @cached_property
    def expected_count(self) -> Floats:
        """Expected sources of each query; at least 1, so that it can divide (rows without any are in no ranked mean)."""
        return np.maximum(self.column("n_expected"), 1).astype(np.float64)

    @cached_property
    def _gains(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Positions at which gain may change, got or ideal: query and rank of each; which of them are got, which ideal."""
        stride = self.limit + 1
        got, best = (hits.query * stride + hits.rank for hits in (self._graded, self._ideal))
        every = distinct(np.concatenate([got, best]))
        return every // stride, every % stride, np.searchsorted(every, got), np.searchsorted(every, best)

    @cached_property
    def _graded(self) -> Hits:
        return self.having(GRADED)

    @cached_property
    def _ideal(self) -> Hits:
        return _upto(self.limit, self.columns.ideal.within(self.start, self.stop))

    def ndcg(self, exponential: bool) -> Steps:
        """Discounted gain over that of the ideal order."""
        query, rank, got, best = self._gains
        sums = [self._discounted(*of, exponential) for of in ((self._graded, got), (self._ideal, best))]
        share = np.divide(sums[0], sums[1], out=np.zeros(len(query)), where=sums[1] > 0)
        return Steps(query, rank, share)

    def _discounted(self, hits: Hits, places: Ints, exponential: bool) -> Floats:
        """Discounted cumulative gain at each position of `_gains`."""
        query, gain = self._gains[0], np.zeros(len(self._gains[0]))
        worth = exponential_gain(hits.grade) if exponential else hits.grade
        gain[places] = worth * discounts(self.limit)[hits.rank - 1]
        return running(query, gain)

    def nonrelevant_before(self, hits: Hits) -> Ints:
        """Of each position: distinct judged non-relevant sources ranked above it, shape (n_hits,)."""
        bad = self.having(NONRELEVANT | FORBIDDEN)
        stride = self.limit + 1
        above = np.searchsorted(bad.query * stride + bad.rank, hits.query * stride + hits.rank)
        return above - np.searchsorted(bad.query, hits.query)

    def unit_share(self, units: Units) -> tuple[Steps, Bools]:
        """Share of a query's units that are whole, and which queries have none, shape (n,)."""
        own = units.within(self.start, self.stop)
        total = np.bincount(own.query, minlength=self.n)
        whole = (own.rank > 0) & (own.rank <= self.limit)
        query, rank = own.query[whole], own.rank[whole]
        return Steps(query, rank, ordinals(query) / total[query]), total == 0


def _upto(limit: int, hits: Hits) -> Hits:
    """The hits within the limit."""
    return hits if hits.rank.max(initial=0) <= limit else hits.where(hits.rank <= limit)


def blocks(columns: RetrievalColumns) -> Iterator[Block]:
    """The columns cut into blocks."""
    for start in range(0, len(columns), ROWS):
        yield Block(columns, start, min(start + ROWS, len(columns)))
