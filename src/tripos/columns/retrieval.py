"""Judgments and ranked results, aligned: the arrays that retrieval measures are computed from.

Only *judged positions* are kept of a ranking: where a source that the row names (expected, graded, non-relevant, forbidden)
stands. Memory grows with queries and their judgments, not with results.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tripos.columns.judged import Judged
from tripos.files.spool import Shelf

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

OK, MISSING, FAILED = 0, 1, 2
"""Row states: measured; no result row; a result row that carries an error."""

EXPECTED, GRADED, NONRELEVANT, FORBIDDEN, FIRST = 1, 2, 4, 8, 16
"""Flags of a judged position: what its source is to the row, and whether it is the source's first position."""


_WANTED, _GRADED = EXPECTED | GRADED | FIRST, GRADED | FIRST


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

    def where(self, kept: Bools) -> Hits:
        """Those to be kept, shape (n_hits,)."""
        return Hits(self.query[kept], self.rank[kept], self.grade[kept], self.flags[kept])


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

    def where(self, kept: Bools) -> Units:
        """Those to be kept, shape (n_units,)."""
        return Units(self.query[kept], self.rank[kept])


Places = Sequence[tuple[int, int]]
"""Ranks of judged sources that are there, ascending, each with the source's number in the judgment."""


class HitList:
    """Judged positions in the making: flat typed arrays, sixteen bytes or so a hit."""

    def __init__(self) -> None:
        self._query, self._rank, self._grade, self._flags = array("q"), array("q"), array("d"), array("q")
        self._in_order = True

    def add(
        self, query: int, sources: Sequence[str], targets: Mapping[str, tuple[float, int]], distinct: set[str]
    ) -> dict[str, int]:
        """Add the judged positions among ranked sources; returns the first rank of each judged source that is there.

        Args:
            query: The row's number.
            sources: Best first.
            targets: Gain and flags of each judged source.
            distinct: The set of the sources.
        """
        found = [source for source in targets if source in distinct]
        if len(distinct) == len(sources):
            ranks = sorted([(sources.index(source) + 1, source) for source in found])
        else:
            ranks = [(rank, source) for rank, source in enumerate(sources, 1) if source in targets]
        first: dict[str, int] = {}
        for rank, source in ranks:
            grade, flags = targets[source]
            is_first = first.setdefault(source, rank) == rank
            self.append(query, rank, grade, flags | FIRST if is_first else flags)
        return first

    def add_found(self, query: int, places: Places, grades: Sequence[float], n_expected: int) -> None:
        """Add graded sources, the first n_expected of which are expected, where each stands once."""
        if self._query and query < self._query[-1]:
            self._in_order = False
        for rank, n in places:
            self._query.append(query)
            self._rank.append(rank)
            self._grade.append(grades[n])
            self._flags.append(_WANTED if n < n_expected else _GRADED)

    def ideal(self, query: int, grades: Iterable[float]) -> None:
        """Add the ideal ranking: all grades of the row, best first."""
        for rank, grade in enumerate(sorted(grades, reverse=True), 1):
            self.append(query, rank, grade, EXPECTED | FIRST)

    def append(self, query: int, rank: int, grade: float, flags: int) -> None:
        """Add one judged position."""
        if self._query and query < self._query[-1]:
            self._in_order = False
        self._query.append(query)
        self._rank.append(rank)
        self._grade.append(grade)
        self._flags.append(flags)

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


@dataclass(slots=True, kw_only=True)
class RetrievalRows:
    """What became of each scored query: all of them, or a batch, sorted by query id; arrays have shape (n,).

    `rows` are all scored rows of the run and `numbers` says which of them these are; `errors` holds what went wrong, by
    number; `reasons` why a row is a miss, as bits (`columns.misses`); `places` the number of a row's story in `stories`, −1
    where it has none.
    """

    rows: Judged
    numbers: Ints
    limit: int
    has_corpus: bool
    depth: Ints
    n_expected: Ints
    n_nonrelevant: Ints
    state: Ints
    n_results: Ints
    n_required_absent: Ints
    n_leaks: Ints
    n_violations: Ints
    n_denied: Ints
    evidence_undefined: Bools
    errors: dict[int, str]
    reasons: Ints
    stories: Shelf
    places: Ints
    latency_ms: Floats
    tied: Ints

    def __len__(self) -> int:
        return len(self.numbers)

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
        """Rows in which the judgment's field `name` is given and not empty; for principal: given at all."""
        return self.rows.flag(name)[self.numbers]

    def take_timings(self, latency_ms: Mapping[str, float]) -> None:
        """Take latencies of rows whose results give none."""
        for i in np.flatnonzero(np.isnan(self.latency_ms)).tolist():
            self.latency_ms[i] = latency_ms.get(self.rows.query_ids[self.numbers[i]], np.nan)


class Positions(NamedTuple):
    """Where what the judgments name stands in the lists; `query` counts rows of the columns they belong to.

    `ends` are of the rows alone whose figures the order of equal scores may move.
    """

    hits: Hits
    groups: Units
    evidence: Units
    ends: Ends

    def renumbered(self, number: Callable[[Ints], Ints]) -> Positions:
        """The same of queries numbered otherwise."""
        hits, *ends = (of._replace(query=number(of.query)) for of in (self.hits, *self.ends))
        groups, evidence = (of._replace(query=number(of.query)) for of in (self.groups, self.evidence))
        return Positions(hits, groups, evidence, Ends(*ends))


def together(parts: Sequence[Positions]) -> Positions:
    """Positions of several parts, by query; a query's own keep their order."""
    return Positions(
        Hits(*_joined([part.hits for part in parts])),
        Units(*_joined([part.groups for part in parts])),
        Units(*_joined([part.evidence for part in parts])),
        Ends(*(Hits(*_joined([part.ends[n] for part in parts])) for n in range(4))),
    )


def _joined(parts: Sequence[Sequence[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


@dataclass(slots=True, kw_only=True)
class RetrievalColumns(RetrievalRows):
    """The same with judged positions, from which measures are computed."""

    hits: Hits
    ideal: Hits
    groups: Units
    evidence: Units
    ends: Ends

    def only(self, places: Ints) -> RetrievalColumns:
        """The rows at some places, ascending."""
        number = np.full(len(self), -1)
        number[places] = np.arange(len(places))
        chosen: dict[str, Any] = {"ends": Ends(*(_chosen(hits, number) for hits in self.ends))}
        for name in ("hits", "ideal", "groups", "evidence"):
            chosen[name] = _chosen(getattr(self, name), number)
        for f in fields(self):
            if isinstance(column := getattr(self, f.name), np.ndarray):
                chosen[f.name] = column[places]
        return replace(self, **chosen)


_Table = TypeVar("_Table", Hits, Units)


def _chosen(table: _Table, number: Ints) -> _Table:
    """What belongs to queries that have a number, by that number."""
    own = table.where(number[table.query] >= 0)
    return own._replace(query=number[own.query])
