"""The scored judgments as columns: chosen rows of a judgment table, sorted by query id.

What takes `slots` gives the column of these rows alone: batches of a large run ask for theirs.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.columns.groups import Group
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.files.judgments import FLAGS, JudgmentTable, Kind, SliceValue

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Slots = Ints | slice
_ALL = slice(None)


class Wanted(NamedTuple):
    """What a row asks for that names graded sources and nothing else: its expected sources come first.

    `k` is the row's own depth, 0 where it gives none.
    """

    sources: list[str]
    n_expected: int
    grades: Sequence[float]
    k: int


class Judged(Sequence[RetrievalJudgment]):
    """Rows of a table by query id. Columns have shape (n,); a row itself is read again from its text when asked for."""

    def __init__(self, table: JudgmentTable, rows: Iterable[int]) -> None:
        self.table = table
        names = list(table.row_of)
        chosen = sorted(rows, key=names.__getitem__)
        self.query_ids = [names[row] for row in chosen]
        self._rows = array("q", chosen)
        self._slots = array("q", [-1]) * len(table)
        for slot, row in enumerate(chosen):
            self._slots[row] = slot
        self._flags: dict[str, Bools] = {}

    @classmethod
    def of(cls, rows: Iterable[RetrievalJudgment]) -> Judged:
        """Judgments that are there as objects."""
        table = JudgmentTable.of(rows)
        return cls(table, range(len(table)))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, slot: Any) -> Any:
        return self.table[self._rows[slot]]

    def __iter__(self) -> Iterator[RetrievalJudgment]:
        return (self.table[row] for row in self._rows)

    def slot(self, query_id: str) -> int:
        """The place of a query's row; −1 where it has none."""
        row = self.table.row_of.get(query_id)
        return -1 if row is None else self._slots[row]

    def wanted(self, slot: int) -> Wanted | None:
        """What a row asks for, where that is graded sources alone; else None."""
        row, table = self._rows[slot], self.table
        names = table.sources(row)
        if names is None:
            return None
        start = table.graded[row]
        return Wanted(names, table.n_expected[row], table.grades[start : start + len(names)], table.k[row])

    def trusted(self, slot: int) -> RetrievalJudgment:
        """A row without checking it again; its lists are lists."""
        return RetrievalJudgment.trusted(self.table.value(self._rows[slot]))

    def _of(self, column: array[int], slots: Slots = _ALL) -> Ints:
        return np.asarray(column)[self._order[slots]].astype(np.int64)

    @property
    def _order(self) -> Ints:
        return np.asarray(self._rows, dtype=np.int64)

    def flag(self, name: str) -> Bools:
        """Rows in which the field `name` is given and not empty; for principal: given at all. Made once."""
        if name not in self._flags:
            self._flags[name] = self._of(self.table.bits) >> FLAGS.index(name) & 1 > 0
        return self._flags[name]

    def depths(self, handed_on: int, slots: Slots = _ALL) -> Ints:
        """Each row's own depth, or `handed_on`."""
        own = self._of(self.table.k, slots)
        return np.where(own > 0, own, handed_on)

    def n_expected(self, slots: Slots = _ALL) -> Ints:
        """How many distinct sources are expected."""
        return self._of(self.table.n_expected, slots)

    def n_nonrelevant(self, slots: Slots = _ALL) -> Ints:
        """How many distinct sources are judged not relevant, or forbidden."""
        return self._of(self.table.n_nonrelevant, slots)

    def graded(self, slots: Slots = _ALL) -> tuple[Ints, npt.NDArray[np.float64]]:
        """How many sources each row grades, and all their grades, row by row, best first."""
        starts, order = np.asarray(self.table.graded, dtype=np.int64), self._order[slots]
        own = starts[order + 1] - starts[order]
        within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
        grades = np.asarray(self.table.grades, dtype=np.float64)[np.repeat(starts[:-1][order], own) + within]
        return own, grades[np.lexsort((-grades, np.repeat(np.arange(len(own)), own)))]

    def _kinds(self) -> Ints:
        return self._of(self.table.kind)

    def groups(self) -> list[Group]:
        """By category, by split and by every declared slice, in a fixed order; as `columns.groups.slices_of`."""
        kinds, codes = self.table.kinds, self._kinds()
        members: dict[tuple[str, str, str], tuple[SliceValue, list[Ints]]] = {}
        ends = np.cumsum(np.bincount(codes, minlength=len(kinds)))
        own = np.split(np.argsort(codes, kind="stable"), ends)  # and an empty rest
        for kind, rows in zip(kinds, own, strict=False):
            for by, value in _belongs(kind) if len(rows) else ():
                members.setdefault((by, type(value).__name__, str(value)), (value, []))[1].append(rows)
        return [Group(by, value, np.sort(np.concatenate(rows))) for (by, _, _), (value, rows) in sorted(members.items())]

    def clusters(self) -> Ints | None:
        """Cluster number of each row; a row that names none is its own. None where no row names one."""
        named = self._of(self.table.cluster)
        if not named.any():
            return None
        keys = np.where(named > 0, named, -1 - np.arange(len(named)))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        numbers: Ints = np.argsort(np.argsort(first))[inverse]
        return numbers

    def tally(self, by: Literal["category", "split"]) -> dict[str, int]:
        """How many rows have each value; those that have none are counted as "none"."""
        return _tally(self.table.kinds, self._kinds(), by)

    def principals(self) -> dict[tuple[str, ...], int]:
        """How many rows are asked on behalf of the same groups, by these."""
        kinds, found = self.table.kinds, Counter[tuple[str, ...]]()
        for code, n in zip(*np.unique(self._kinds(), return_counts=True), strict=True):
            if (groups := kinds[code].groups) is not None:
                found[groups] += int(n)
        return dict(found)


def _belongs(kind: Kind) -> Iterator[tuple[str, SliceValue]]:
    yield "category", kind.category
    if kind.split is not None:
        yield "split", kind.split
    for name, _, value in kind.slices:
        yield f"slices.{name}" if name in ("category", "split", "hops") else name, value


def _tally(kinds: Sequence[Kind], codes: Ints, by: str) -> dict[str, int]:
    found = Counter[str]()
    for code, n in zip(*np.unique(codes, return_counts=True), strict=True):
        found[getattr(kinds[code], by) or "none"] += int(n)
    return dict(sorted(found.items()))
