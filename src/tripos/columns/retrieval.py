"""Judgments and ranked results, aligned: the arrays that retrieval measures are computed from.

Only *judged positions* are kept of a ranking: where a source that the row names (expected, graded, non-relevant, forbidden)
stands. Memory grows with queries and their judgments, not with results.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.contracts.retrieval import RetrievalJudgment
from tripos.files.spool import Spool

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


TIED = 1 << 62
"""Bit of rows whose figures the order of equal scores may move; the lower bits are the cutoffs that such scores straddle."""


class Ends(NamedTuple):
    """Judged positions at the best and worst order of equal scores, by expectation, and by gain."""

    best: Hits
    worst: Hits
    best_gain: Hits
    worst_gain: Hits


class Units(NamedTuple):
    """Things found as a whole (groups, evidence, required sources): the rank at which each is complete, 0 if never."""

    query: Ints
    rank: Ints

    def within(self, start: int, stop: int) -> Units:
        """Those of queries start..stop−1, numbered from 0."""
        low, high = np.searchsorted(self.query, [start, stop])
        return Units(self.query[low:high] - start, self.rank[low:high])


class HitList:
    """Judged positions in the making: flat typed arrays, sixteen bytes or so a hit."""

    def __init__(self) -> None:
        self._query, self._rank, self._grade, self._flags = array("q"), array("q"), array("d"), array("q")
        self._in_order = True

    def add(self, query: int, sources: Sequence[str], targets: Mapping[str, tuple[float, int]]) -> dict[str, int]:
        """Add the judged positions among ranked sources; returns the first rank of each judged source that is there."""
        distinct = set(sources)
        found = targets.keys() & distinct
        if len(distinct) == len(sources):
            ranks = sorted((sources.index(source) + 1, source) for source in found)
        else:
            ranks = [(rank, source) for rank, source in enumerate(sources, 1) if source in found]
        first: dict[str, int] = {}
        for rank, source in ranks:
            grade, flags = targets[source]
            is_first = first.setdefault(source, rank) == rank
            self._append(query, rank, grade, flags | FIRST if is_first else flags)
        return first

    def ideal(self, query: int, grades: Iterable[float]) -> None:
        """Add the ideal ranking: all grades of the row, best first."""
        for rank, grade in enumerate(sorted(grades, reverse=True), 1):
            self._append(query, rank, grade, EXPECTED | FIRST)

    def _append(self, query: int, rank: int, grade: float, flags: int) -> None:
        if self._query and query < self._query[-1]:
            self._in_order = False
        self._query.append(query)
        self._rank.append(rank)
        self._grade.append(grade)
        self._flags.append(flags)

    def extend(self, other: HitList) -> None:
        """Take another list's hits as well."""
        self._in_order = False
        self._query.extend(other._query)
        self._rank.extend(other._rank)
        self._grade.extend(other._grade)
        self._flags.extend(other._flags)

    def arrays(self) -> Hits:
        """The hits sorted by query; a query's own stay in order of rank."""
        query, rank, flags = (np.frombuffer(a, dtype=np.int64) if a else _NONE for a in (self._query, self._rank, self._flags))
        grade = np.frombuffer(self._grade, dtype=np.float64) if self._grade else _NONE.astype(np.float64)
        if self._in_order:
            return Hits(query, rank, grade, flags)
        order = np.argsort(query, kind="stable")
        return Hits(query[order], rank[order], grade[order], flags[order])


_NONE: Ints = np.zeros(0, dtype=np.int64)


def found_units(units: Sequence[tuple[int, int]]) -> Units:
    """Units from (query, rank) pairs in any order."""
    pairs = np.array(sorted(units), dtype=np.int64).reshape(-1, 2)
    return Units(pairs[:, 0], pairs[:, 1])


@dataclass(slots=True)
class Story:
    """What a miss tells of one row beyond its judgment and its results."""

    found: dict[str, int | None] = field(default_factory=dict)
    required_absent: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    violating: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass(slots=True)
class RetrievalColumns:
    """One row a scored query, sorted by query id; arrays have shape (n,).

    `errors` holds what went wrong, by row; `reasons` why it is a miss, as bits (`columns.misses`); `places` the number of a
    row's story in `stories`, −1 where it has none.
    """

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
    errors: dict[int, str]
    reasons: Ints
    stories: Spool
    places: Ints
    latency_ms: Floats
    tied: Ints
    ends: Ends
    flags: dict[str, Bools] = field(default_factory=dict)

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
        return self.flagged("should_match")

    def flagged(self, name: str) -> Bools:
        """Rows in which the judgment's field `name` is given and not empty; for principal: given at all. Made once."""
        if name not in self.flags:
            given = attrgetter(name)
            present = (given(row) is not None for row in self.rows) if name == "principal" else map(bool, map(given, self.rows))
            self.flags[name] = np.fromiter(present, dtype=bool, count=len(self.rows))
        return self.flags[name]

    def take_timings(self, latency_ms: Mapping[str, float]) -> None:
        """Take latencies of rows whose results give none."""
        for i, row in enumerate(self.rows):
            if np.isnan(self.latency_ms[i]) and row.query_id in latency_ms:
                self.latency_ms[i] = latency_ms[row.query_id]
