"""Judgments and ranked results, aligned: the arrays that retrieval measures are computed from.

Only *judged positions* are kept of a ranking: where a source that the row names (expected, graded, non-relevant, forbidden)
stands. Memory grows with queries and their judgments, not with results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.contracts.retrieval import MissReason, RankedHit, RetrievalJudgment

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

OK, MISSING, FAILED = 0, 1, 2
"""Row states: measured; no result row; a result row that carries an error."""

EXPECTED, GRADED, NONRELEVANT, FORBIDDEN, FIRST = 1, 2, 4, 8, 16
"""Flags of a judged position: what its source is to the row, and whether it is the source's first position."""


class Hits(NamedTuple):
    """Judged positions, sorted by (query, rank); all arrays of shape (n_hits,)."""

    query: Ints
    rank: Ints
    grade: Floats
    flags: Ints

    def within(self, start: int, stop: int) -> Hits:
        """Those of queries start..stop−1, numbered from 0."""
        low, high = np.searchsorted(self.query, [start, stop])
        return Hits(self.query[low:high] - start, self.rank[low:high], self.grade[low:high], self.flags[low:high])


class Units(NamedTuple):
    """Things found as a whole (groups, evidence, required sources): the rank at which each is complete, 0 if never."""

    query: Ints
    rank: Ints

    def within(self, start: int, stop: int) -> Units:
        """Those of queries start..stop−1, numbered from 0."""
        low, high = np.searchsorted(self.query, [start, stop])
        return Units(self.query[low:high] - start, self.rank[low:high])


@dataclass(slots=True)
class RowStory:
    """What a miss tells of one row beyond its judgments; kept only for rows that could be misses."""

    results: list[RankedHit] = field(default_factory=list)
    found: dict[str, int | None] = field(default_factory=dict)
    required_absent: list[str] = field(default_factory=list)
    forbidden: list[RankedHit] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    violating: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass(slots=True)
class RetrievalColumns:
    """One row a scored query, sorted by query id; arrays have shape (n,)."""

    rows: list[RetrievalJudgment]
    limit: int
    has_corpus: bool
    state: Ints
    depth: Ints
    n_results: Ints
    n_expected: Ints
    n_nonrelevant: Ints
    n_required_absent: Ints
    n_leaks: Ints
    n_violations: Ints
    n_denied: Ints
    hits: Hits
    ideal: Hits
    groups: Units
    evidence: Units
    evidence_undefined: Bools
    stories: list[RowStory]
    reasons: list[list[MissReason]]
    latency_ms: Floats
    tied: Ints
    best_hits: Hits
    worst_hits: Hits

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def complete(self) -> Bools:
        """Rows that were measured."""
        measured: Bools = self.state == OK
        return measured

    @property
    def positive(self) -> Bools:
        """Rows that should find something."""
        return np.array([r.should_match for r in self.rows], dtype=bool)

    def take_timings(self, latency_ms: Mapping[str, float]) -> None:
        """Take latencies of rows whose results give none."""
        for i, row in enumerate(self.rows):
            if np.isnan(self.latency_ms[i]) and row.query_id in latency_ms:
                self.latency_ms[i] = latency_ms[row.query_id]

    def flagged(self, name: str) -> Bools:
        """Rows in which the judgment's field `name` is given and not empty; for principal: given at all."""
        if name == "principal":
            return np.array([r.principal is not None for r in self.rows], dtype=bool)
        return np.array([bool(getattr(r, name)) for r in self.rows], dtype=bool)
