"""Which rows belong together: slices to report on, and clusters to resample as wholes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

_FIELDS = ("category", "split", "hops")


class Sliceable(Protocol):
    """What a judgment of any layer says about where it belongs."""

    @property
    def query_id(self) -> str:
        """The query."""

    @property
    def category(self) -> str | None:
        """Its category."""

    @property
    def slices(self) -> Mapping[str, str | bool | int]:
        """Its declared slices."""

    @property
    def cluster(self) -> str | None:
        """Its cluster."""


@dataclass(frozen=True, slots=True)
class Group:
    """A set of rows to aggregate over: all of them, or one slice; `rows` ascending."""

    by: str
    value: str | bool | int
    rows: npt.NDArray[np.int64]

    def within(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Its rows among start..stop−1, numbered from start."""
        low, high = np.searchsorted(self.rows, [start, stop])
        return self.rows[low:high] - start


def everyone(n: int) -> Group:
    """The group of all n rows."""
    return Group("all", "all", np.arange(n))


def slices_of(rows: Sequence[Sliceable]) -> list[Group]:
    """By category, by split and by every declared slice, in a fixed order."""
    members: dict[tuple[str, str, str], tuple[str | bool | int, list[int]]] = {}
    for i, row in enumerate(rows):
        own: list[tuple[str, str | bool | int]] = [
            (by, value) for by in _FIELDS if (value := getattr(row, by, None)) is not None
        ]
        own += [(f"slices.{name}" if name in _FIELDS else name, value) for name, value in row.slices.items()]
        for by, value in own:
            members.setdefault((by, type(value).__name__, str(value)), (value, []))[1].append(i)
    return [Group(by, value, np.array(own)) for (by, _, _), (value, own) in sorted(members.items())]


def clusters_of(rows: Sequence[Sliceable]) -> npt.NDArray[np.int64] | None:
    """Cluster number of each row; a row that names none is its own. None where no row names one."""
    if all(row.cluster is None for row in rows):
        return None
    numbers: dict[tuple[str, str], int] = {}
    names = [("cluster", row.cluster) if row.cluster is not None else ("row", row.query_id) for row in rows]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
