"""What alignment fills in: one slot a query, counts, and parts that come together in any order."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from tripos.columns.misses import bits_of
from tripos.columns.retrieval import MISSING, Bools, Floats, HitList, Ints
from tripos.fingerprint import unordered


@dataclass(slots=True)
class Tally:
    """What alignment did to the ranked results, counted."""

    result_rows: int = 0
    results: int = 0
    without_judgment: int = 0
    below_min_score: int = 0
    beyond_limit: int = 0
    unknown_fragments: int = 0
    digests: list[bytes] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another tally in."""
        for name in ("result_rows", "results", "without_judgment", "below_min_score", "beyond_limit", "unknown_fragments"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.digests += other.digests

    @property
    def results_digest(self) -> str:
        """Semantic digest of the ranked results of the scored rows."""
        return unordered(self.digests)


@dataclass(slots=True)
class Slots:
    """One slot a scored query, sorted by query id; arrays have shape (n,)."""

    state: Ints
    n_results: Ints
    n_leaks: Ints
    n_violations: Ints
    n_denied: Ints
    n_required_absent: Ints
    reasons: Ints
    places: Ints
    tied: Ints
    latency: Floats
    unresolved: Bools

    @classmethod
    def empty(cls, n: int) -> Slots:
        """Slots of queries that nothing came for."""
        numbers = {f.name: np.zeros(n, dtype=np.int64) for f in fields(cls)}
        made = cls(**numbers | {"latency": np.full(n, np.nan), "unresolved": np.zeros(n, dtype=bool)})
        made.state[:], made.places[:], made.reasons[:] = MISSING, -1, bits_of(("incomplete",))
        return made

    def at(self, rows: Ints) -> Slots:
        """The slots of some rows."""
        return Slots(*(getattr(self, f.name)[rows] for f in fields(self)))

    def put(self, rows: Ints, others: Slots) -> None:
        """Take the slots of some rows from others."""
        for f in fields(self):
            getattr(self, f.name)[rows] = getattr(others, f.name)


@dataclass(slots=True)
class Part:
    """What one part of the ranked results came to: the slots of the queries in it, and what is kept of their results."""

    rows: Ints
    slots: Slots
    tally: Tally
    unjudged: set[str]
    hits: HitList
    ties: tuple[HitList, ...]
    groups: list[tuple[int, int]]
    evidence: list[tuple[int, int]]
    errors: dict[int, str]
    let_pass: dict[str, int]
    stories: list[bytes]
