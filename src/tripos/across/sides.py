"""One run's rows: every scored query with its figures, of whatever layer, and what the run was measured under."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tripos.columns.groups import Sliceable, slices_of
from tripos.contracts.explanation import Layer
from tripos.contracts.reports import Component
from tripos.measures.gates import canonical_name
from tripos.measures.layers import registry
from tripos.measures.paired import Floats, Ints
from tripos.measures.record import Measure

DEFINED, UNDEFINED, INCOMPLETE = 0, 1, 2
"""What a row is to a measure: it has a value; the measure is not about it; it has no usable result."""

PASSED, FAILED, UNDECIDED = 1, 0, -1


class Column(NamedTuple):
    """One measure on every row; shape (n,) each. `value` means nothing where `state` is not DEFINED."""

    value: Floats
    state: Ints


@dataclass(frozen=True, slots=True)
class Header:
    """What a run was measured under."""

    layer: Layer
    run_id: str
    name: str
    configuration: str | None
    measurement: str
    judgments_digest: str
    results_digest: str
    components: Mapping[str, Component]
    settings: Mapping[str, Any] = field(default_factory=dict)
    gates: Sequence[Any] = ()
    exploratory: Sequence[str] = ()

    def scored_by(self, today: Header) -> Header:
        """The same run under today's judgments; the gates of its report were about other ones."""
        components = {**self.components, "B": today.components["B"]}
        return replace(self, judgments_digest=today.judgments_digest, components=components, gates=())

    @property
    def limit(self) -> int:
        """Results considered for each query; 1 where the layer has no cutoffs."""
        return int((self.components["D"].values or {}).get("limit", 1)) if self.layer == "retrieval" else 1

    @property
    def top_k(self) -> int:
        """Results handed on."""
        return int((self.components["D"].values or {}).get("top_k", 1)) if self.layer == "retrieval" else 1


@dataclass(frozen=True, slots=True)
class Rows:
    """The scored rows of one run, by query id.

    content: digest of the judged part of each row; None where it is not at hand. cutoffs: those that figures are kept at; None:
    every one. told: what a reader should know of how the rows were come by.
    """

    header: Header
    judged: Sequence[Sliceable]
    complete: np.typing.NDArray[np.bool_]
    passed: Ints
    figures: Callable[[Sequence[str]], dict[str, Column]]
    content: Sequence[bytes] | None = None
    cutoffs: tuple[int, ...] | None = None
    told: tuple[str, ...] = ()

    @property
    def ids(self) -> list[str]:
        """Query ids, ascending."""
        return [row.query_id for row in self.judged]

    def slice(self, by: str, value: str) -> Ints | None:
        """Rows of one slice, its value as it is typed; None where no row is in it."""
        own = [group.rows for group in slices_of(self.judged) if group.by == by and typed(group.value) == value]
        return own[0] if own else None

    def slices(self) -> list[str]:
        """Every slice as it is typed."""
        return [
            f"{group.by}={str(group.value).lower() if group.value in (True, False) else group.value}"
            for group in slices_of(self.judged)
        ]


def typed(value: str | bool | int) -> str:
    """A slice's value as it is typed on a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def record_of(name: str, layer: Layer) -> Measure:
    """The record of a canonical name: hit@10 → that of hit@k."""
    measures = registry(layer)
    base, separator, _ = name.partition("@")
    return measures[f"{base}@k" if separator else base]


def canonical(name: str, layer: Layer, limit: int) -> str:
    """The measure that a name means; raises ConfigError for one that the layer does not have."""
    return canonical_name(name, registry(layer), limit, "measures")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a run, or repeated runs of one system."""

    given: str
    runs: tuple[Rows, ...]

    @property
    def header(self) -> Header:
        """Of its first run."""
        return self.runs[0].header

    @property
    def is_repeated(self) -> bool:
        """Whether it has several runs."""
        return len(self.runs) > 1

    @property
    def ids(self) -> list[str]:
        """Queries that every run scored, ascending."""
        common = set(self.runs[0].ids).intersection(*(run.ids for run in self.runs[1:]))
        return sorted(common)

    def places(self, ids: Iterable[str]) -> list[Ints]:
        """Row numbers of the queries, one array a run."""
        wanted = list(ids)
        numbers = [{name: i for i, name in enumerate(run.ids)} for run in self.runs]
        return [np.array([own[name] for name in wanted], dtype=np.int64) for own in numbers]


def averaged(columns: Sequence[Column]) -> Column:
    """The mean over repeats; a row counts where every repeat has a value, and is incomplete where any has no result."""
    states = np.array([column.state for column in columns])
    state = np.where((states == INCOMPLETE).any(axis=0), INCOMPLETE, states.max(axis=0))
    return Column(np.mean([column.value for column in columns], axis=0), state)


def settled(passed: Sequence[Ints]) -> Ints:
    """Whether each query passes in more than half of the repeats; undecided where any of them is, or at half."""
    votes = np.array(passed)
    ayes = (votes == PASSED).sum(axis=0) * 2
    found = np.where(ayes > len(votes), PASSED, np.where(ayes < len(votes), FAILED, UNDECIDED))
    verdicts: Ints = np.where((votes == UNDECIDED).any(axis=0), UNDECIDED, found)
    return verdicts
