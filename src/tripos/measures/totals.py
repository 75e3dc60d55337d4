"""From per-row values to figures: every measure, every cutoff, every group, as integers that add up exactly.

Totals of any two sets of rows come together by addition, which is commutative and associative and has an identity; so a run
may be cut anywhere, measured in any order by any number of processes, and gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tripos.columns.groups import Group
from tripos.columns.retrieval import OK, Bools, Floats, Ints, RetrievalColumns
from tripos.measures.aggregate import population
from tripos.measures.block import Block, blocks
from tripos.measures.exact import halves
from tripos.measures.intervals import MAX_BOOTSTRAP, UNIT
from tripos.measures.record import NO_RESULTS, Measure
from tripos.measures.steps import Steps

_SCORED, _INCOMPLETE = 0, 1
_MASK = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Members:
    """Which groups each of n rows is in: one array of group numbers for each kind of group, in which a row is once at most.

    `codes` hold n_groups where a row is in no group of the kind; `clustered`: whether some row names a cluster.
    """

    n_groups: int
    codes: Sequence[npt.NDArray[np.int32]]
    clustered: bool = False

    @classmethod
    def of(cls, groups: Sequence[Group], n: int, clustered: bool = False) -> Members:
        """The groups as arrays; groups of one kind share one as long as they share no row."""
        kinds: dict[str, list[npt.NDArray[np.int32]]] = {}
        for number, group in enumerate(groups):
            own = kinds.setdefault(group.by, [])
            free = next((codes for codes in own if (codes[group.rows] == len(groups)).all()), None)
            if free is None:
                own.append(free := np.full(n, len(groups), dtype=np.int32))
            free[group.rows] = number
        return cls(len(groups), [codes for own in kinds.values() for codes in own], clustered)

    def at(self, rows: Ints) -> list[Ints]:
        """The arrays of some rows."""
        return [codes[rows].astype(np.int64) for codes in self.codes]


@dataclass(slots=True)
class Kept:
    """Values at the headline cutoffs in units of 2^-30, for intervals that resample rows; `rows` are row numbers."""

    rows: Ints
    values: npt.NDArray[np.int32]

    @classmethod
    def none(cls, width: int) -> Kept:
        """Nothing kept."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, width), dtype=np.int32))

    def add(self, other: Kept) -> None:
        """Keep another's rows as well."""
        self.rows, self.values = np.concatenate([self.rows, other.rows]), np.concatenate([self.values, other.values])

    def drop(self, without: Bools) -> None:
        """Let go of some of the rows kept."""
        self.rows, self.values = self.rows[~without], self.values[~without]


State = tuple[Ints, Ints, Ints, npt.NDArray[np.int32]]


@dataclass(slots=True)
class Totals:
    """One measure over every group, in the making.

    Attributes:
        counts: Rows by what they came to, shape (groups + 1, states): scored, incomplete, undefined by reason, not asked.
        sums: By how much sums over rows change at each rank, shape (parts, groups + 1, width): high and low 32 bits of values
            in units of 2^-64; of measures that may get a normal interval, also values and both halves of their squares in
            units of 2^-30. The last column of a curve is the figure at each row's own depth.
        kept: Rows of the groups that are still small enough to be resampled.
    """

    measure: Measure
    limit: int
    headline: Sequence[int]
    members: Members
    counts: Ints = field(init=False)
    sums: Ints = field(init=False)
    kept: Kept = field(init=False)

    def __post_init__(self) -> None:
        groups, width = self.members.n_groups + 1, self.limit + 1 if self.measure.is_curve else 1
        self.counts = np.zeros((groups, 3 + len(self.measure.reasons)), dtype=np.int64)
        self.sums = np.zeros((5 if self.has_moments else 2, groups, width), dtype=np.int64)
        self.kept = Kept.none(len(self.headline) + 1 if self.measure.is_curve else 1)

    @property
    def has_moments(self) -> bool:
        """Whether its interval may be a normal one."""
        return self.measure.aggregate == "mean" and not self.measure.proportion

    @property
    def keeps(self) -> bool:
        """Whether its interval may need values of single rows."""
        return self.has_moments or (self.measure.aggregate == "mean" and self.members.clustered)

    @property
    def state(self) -> State:
        """What another process needs to `merge` it."""
        return self.counts, self.sums, self.kept.rows, self.kept.values

    def merge(self, state: State) -> None:
        """Add the totals of other rows."""
        self.counts += state[0]
        self.sums += state[1]
        self.kept.add(Kept(*state[2:]))
        self._let_go(self.members.at(self.kept.rows))

    def add(self, block: Block, rows: Ints) -> None:
        """Add a block of rows, whose row numbers are `rows`."""
        values, codes = self.measure.function(block), self.members.at(rows)
        state = self._states(block, values.undefined)
        for own in codes:
            np.add.at(self.counts.reshape(-1), own * self.counts.shape[1] + state, 1)
        scored = state == _SCORED
        if not scored.any():
            return
        if isinstance(values.value, Steps):
            self._add_curve(values.value.where(scored), np.flatnonzero(scored), block.column("depth"), codes)
        else:
            self._add(np.flatnonzero(scored), 0, self._parts(values.value[scored]), codes)
        self._keep(values.value, scored, block, rows, codes)

    def _states(self, block: Block, undefined: Ints) -> Ints:
        """What each row came to: a column of `counts`, shape (n,)."""
        complete = block.column("state") == OK
        reasons = list(self.measure.reasons)
        dynamic = 1 + reasons.index(NO_RESULTS) if NO_RESULTS in reasons else 0
        open_rows = ~complete & ((undefined == 0) | (undefined == dynamic))
        state = np.where(undefined == 0, _SCORED, undefined + 1)
        state[open_rows] = _INCOMPLETE
        state[~population(self.measure, block.columns.positive[block.start : block.stop])] = len(reasons) + 2
        return state

    def _parts(self, value: Floats) -> Ints:
        """Values as integers, shape (parts, …)."""
        high, low = halves(value)
        if not self.has_moments:
            return np.stack([high, low])
        unit = np.rint(value * UNIT).astype(np.int64)
        square = unit * unit
        return np.stack([high, low, unit, square >> 32, square & _MASK])

    def _add(self, query: Ints, column: Ints | int, parts: Ints, codes: Sequence[Ints]) -> None:
        """Add integers, shape (parts, m), at one column of one query each, to all groups of the query."""
        width = self.sums.shape[2]
        for own in codes:
            place = own[query] * width + column
            for total, part in zip(self.sums.reshape(len(self.sums), -1), parts, strict=True):
                np.add.at(total, place, part)

    def _add_curve(self, steps: Steps, scored: Ints, depth: Ints, codes: Sequence[Ints]) -> None:
        if steps.over is None:
            self._add(steps.query, steps.rank - 1, self._parts(steps.value) - self._parts(steps.before), codes)
        else:
            self._add_counts(steps, steps.over, codes)
        self._add(scored, self.limit, self._parts(steps.at(depth)[scored]), codes)

    def _add_counts(self, steps: Steps, over: Ints, codes: Sequence[Ints]) -> None:
        """Add shares that move at every cutoff: first how many queries have which count there, then what counts come to."""
        count, before, limit = steps.value.astype(np.int64), steps.before.astype(np.int64), self.limit
        most, ends = int(count.max(initial=0)) + 1, over[steps.query]
        done = steps.is_last & (ends < limit)
        change = np.zeros((self.members.n_groups + 1) * most * limit, dtype=np.int64)
        for own in codes:
            first = own[steps.query] * most * limit
            np.add.at(change, first + count * limit + steps.rank - 1, 1)
            np.add.at(change, first + before * limit + steps.rank - 1, -1)
            np.add.at(change, (first + count * limit + ends)[done], -1)
        queries = change.reshape(-1, most, limit).cumsum(axis=2)
        for total, share in zip(self.sums, self._parts(np.arange(most)[:, None] / np.arange(1, limit + 1)), strict=True):
            total[:, :limit] += np.diff((queries * share).sum(axis=1), axis=1, prepend=0)
        self._add(steps.query[done], ends[done], self._parts(steps.value[done] / ends[done]), codes)

    def _keep(self, value: Steps | Floats, scored: Bools, block: Block, rows: Ints, codes: Sequence[Ints]) -> None:
        if not self.keeps:
            return
        kept = scored & self._is_open(codes)
        if kept.any():
            depth = block.column("depth")
            cuts = [np.full(block.n, k) for k in self.headline] + [depth]
            columns = [value.at(cut) for cut in cuts] if isinstance(value, Steps) else [value]
            units = np.rint(np.column_stack(columns)[kept] * UNIT).astype(np.int32)
            self.kept.add(Kept(rows[kept], units))
        self._let_go(self.members.at(self.kept.rows))

    def _is_open(self, codes: Sequence[Ints]) -> Bools:
        """Which rows are in a group that may be resampled row by row."""
        small = self.counts[:, _SCORED] <= MAX_BOOTSTRAP
        small[-1] = False
        if self.members.clustered:
            small[:] = True
        is_open: Bools = np.any([small[own] for own in codes], axis=0)
        return is_open

    def _let_go(self, codes: Sequence[Ints]) -> None:
        """Drop rows all of whose groups have grown too large."""
        if len(self.kept.rows):
            self.kept.drop(~self._is_open(codes))


class Tables:
    """Every measure over every group, in the making."""

    def __init__(self, measures: Iterable[Measure], limit: int, headline: Sequence[int], members: Members) -> None:
        self.members, self.headline = members, headline
        self.totals = {measure.name: Totals(measure, limit, headline, members) for measure in measures}

    def add(self, columns: RetrievalColumns) -> None:
        """Add aligned rows."""
        for block in blocks(columns):
            rows = columns.numbers[block.start : block.stop]
            for totals in self.totals.values():
                totals.add(block, rows)

    @property
    def state(self) -> dict[str, Any]:
        """What another process needs to `merge` them."""
        return {name: totals.state for name, totals in self.totals.items()}

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the totals of other rows."""
        for name, own in state.items():
            self.totals[name].merge(own)
