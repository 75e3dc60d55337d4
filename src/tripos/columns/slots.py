"""What alignment fills in: one slot a query, counts, and parts that come together in any order."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from tripos.columns.misses import bits_of
from tripos.columns.retrieval import MISSING, Bools, Floats, Ints
from tripos.files.spool import Shelf
from tripos.fingerprint import RowDigests


@dataclass(slots=True)
class Tally:
    """What alignment did to the ranked results, counted."""

    result_rows: int = 0
    results: int = 0
    without_judgment: int = 0
    below_min_score: int = 0
    beyond_limit: int = 0
    unknown_fragments: int = 0
    digests: RowDigests = field(default_factory=RowDigests)

    def add(self, other: Tally) -> None:
        """Count another tally in."""
        for name in ("result_rows", "results", "without_judgment", "below_min_score", "beyond_limit", "unknown_fragments"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.digests.extend(other.digests)

    @property
    def results_digest(self) -> str:
        """Semantic digest of the ranked results of the scored rows."""
        return self.digests.unordered()


@dataclass(slots=True)
class Slots:
    """One slot a scored query, sorted by query id; arrays have shape (n,), of types no wider than they need."""

    state: Ints
    n_results: Ints
    n_leaks: Ints
    n_violations: Ints
    n_denied: Ints
    n_required_absent: Ints
    reasons: Ints
    places: Ints
    tied: Ints
    latency_ms: Floats
    evidence_undefined: Bools

    @classmethod
    def empty(cls, n: int) -> Slots:
        """Slots of queries that nothing came for."""
        narrow = {"state": np.int8, "reasons": np.int16, "tied": np.int64, "evidence_undefined": np.bool_}
        made = cls(**{f.name: np.zeros(n, dtype=narrow.get(f.name, np.int32)) for f in fields(cls)})
        made.latency_ms = np.full(n, np.nan)
        made.state[:], made.places[:], made.reasons[:] = MISSING, -1, bits_of(("incomplete",))
        return made

    def at(self, rows: Ints) -> Slots:
        """The slots of some rows."""
        return Slots(*(getattr(self, f.name)[rows] for f in fields(self)))

    def put(self, rows: Ints, others: Slots) -> None:
        """Take the slots of some rows from others."""
        for f in fields(self):
            getattr(self, f.name)[rows] = getattr(others, f.name)

    def by_name(self) -> dict[str, Ints]:
        """The arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(slots=True)
class Part:
    """What one part of the ranked results came to: the slots of the queries in it, and what is kept of their results."""

    rows: Ints
    slots: Slots
    tally: Tally
    unjudged: set[str]
    errors: dict[int, str]
    let_pass: dict[str, int]
    stories: Shelf
    batches: Shelf

    @property
    def shelves(self) -> tuple[Shelf, Shelf]:
        """What is put aside as text."""
        return self.stories, self.batches
