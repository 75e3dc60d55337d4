"""Measures at the best and at the worst order of equal scores: sums over the rows that ties move, put in place of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tripos.columns.retrieval import TIED as MOVED
from tripos.columns.retrieval import Hits, RetrievalColumns
from tripos.contracts.reports import Ties
from tripos.measures.figures import counted_in, sums_of
from tripos.measures.retrieval import RETRIEVAL, TIED
from tripos.measures.totals import Members, Tables

_BY_GAIN = tuple(name for name in TIED if name.startswith("ndcg"))
_BY_EXPECTATION = tuple(name for name in TIED if name not in _BY_GAIN)
_ENDS = ("given", "best", "worst")


class Extremes:
    """What ties may make of a run, in the making; over the rows that they move alone."""

    def __init__(self, n: int, limit: int, headline: Sequence[int]) -> None:
        self.headline = headline
        self.straddled = np.zeros(len(headline), dtype=np.int64)
        everyone = Members(1, [np.broadcast_to(np.int32(0), n)])
        self._tables = {
            (end, names): Tables([RETRIEVAL[name] for name in names], limit, (), everyone)
            for end in _ENDS
            for names in (_BY_EXPECTATION, _BY_GAIN)
        }

    def add(self, columns: RetrievalColumns) -> None:
        """Add aligned rows."""
        if not columns.tied.any():
            return
        self.straddled += [int((columns.tied >> n & 1).sum()) for n in range(len(self.headline))]
        own = columns.only(np.flatnonzero(columns.tied & MOVED))
        ends: list[Hits] = [own.hits, own.hits, own.ends.best, own.ends.best_gain, own.ends.worst, own.ends.worst_gain]
        for tables, hits in zip(self._tables.values(), ends, strict=True):
            tables.add(replace(own, hits=hits))

    @property
    def state(self) -> Any:
        """What another process needs to `merge` them."""
        return self.straddled, [tables.state for tables in self._tables.values()]

    def merge(self, state: Any) -> None:
        """Add those of other rows."""
        self.straddled += state[0]
        for tables, own in zip(self._tables.values(), state[1], strict=True):
            tables.merge(own)

    def told(self, whole: Tables) -> list[Ties]:
        """Where equal scores straddle a headline cutoff: how many rows, and the measures at both ends."""
        best, worst = (self._figures(whole, end) for end in ("best", "worst"))
        return [
            Ties(k=k, rows=rows, best=_at(best, k), worst=_at(worst, k))
            for k, rows in zip(self.headline, self.straddled.tolist(), strict=True)
            if rows
        ]

    def _figures(self, whole: Tables, end: str) -> dict[str, list[float | None]]:
        figures = {}
        for names in (_BY_EXPECTATION, _BY_GAIN):
            for name in names:
                given, moved = (sums_of(self._tables[of, names].totals[name], 0) for of in ("given", end))
                sums, counted = sums_of(whole.totals[name], 0), counted_in(whole.totals[name], 0)
                figures[name] = [counted.figure(a - b + c) for a, b, c in zip(sums, given, moved, strict=True)]
        return figures


def _at(figures: dict[str, list[float | None]], k: int) -> dict[str, float | None]:
    return {RETRIEVAL[name].at(k): figures[name][k - 1] for name in TIED}
