"""Verdicts as arrays: what generation measures are computed from, one row a question, sorted by query id."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tripos.columns.groups import Group, slices_of
from tripos.contracts.generation import STATUSES, FaithfulnessSource, GenerationResult, Judged, Status
from tripos.files.generation import Pair

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ANSWERABLE, UNANSWERABLE, PARTIAL = 0, 1, 2
UNKNOWN = -1
"""Of `abstained` in incomplete rows, and of `source` in rows without a score."""

CODES: dict[Status, int] = {status: n for n, status in enumerate(STATUSES)}
SOURCES: tuple[FaithfulnessSource, ...] = ("given", "judged", "human")
_KINDS = {True: ANSWERABLE, False: UNANSWERABLE, "partial": PARTIAL}
_NAN = float("nan")


@dataclass(slots=True)
class GenerationColumns:
    """One row a scored question; arrays have shape (n,).

    Counts of requirements and citations are of distinct ones. `faithfulness` and `confidence` are NaN where not given.
    `cluster` numbers clusters, rows without one apart; `has_corpus` says whether made-up citations could be told at all.
    """

    kind: Ints
    status: Ints
    abstained: Ints
    required: Ints
    met: Ints
    vital: Ints
    vital_met: Ints
    cited: Ints
    accepted: Ints
    nonexistent: Ints
    not_shown: Ints
    not_accepted: Ints
    faithfulness: Floats
    confidence: Floats
    source: Ints
    has_list: Ints
    label: Ints
    cluster: Ints
    has_corpus: bool
    has_clusters: bool

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Ints) -> GenerationColumns:
        """Some of the rows."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        taken: dict[str, Any] = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in parts.items()}
        return GenerationColumns(**taken)

    @property
    def complete(self) -> Bools:
        """Rows that have a usable answer."""
        complete: Bools = self.status != CODES["incomplete"]
        return complete

    @property
    def bad(self) -> Bools:
        """Rows with a bad citation."""
        bad: Bools = self.nonexistent + self.not_shown + self.not_accepted > 0
        return bad


_SMALL = ("kind", "status", "abstained", "source", "has_list")
_COUNTS = ("required", "met", "vital", "vital_met", "cited", "accepted", "nonexistent", "not_shown", "not_accepted")
_FLOATS = ("faithfulness", "confidence", "latency_ms")


@dataclass(frozen=True, slots=True)
class Label:
    """What many rows share: the category and declared slices by which they are reported apart."""

    category: str | None
    slices: Mapping[str, str | bool | int]
    query_id: str = ""
    cluster: str | None = None


@dataclass(slots=True)
class Gatherer:
    """Takes verdicts in any order; about 100 bytes a row beside its id."""

    has_corpus: bool
    ids: list[str] = field(default_factory=list)
    columns: dict[str, array[Any]] = field(
        default_factory=lambda: {
            **{name: array("b") for name in _SMALL},
            **{name: array("i") for name in (*_COUNTS, "label", "cluster")},
            **{name: array("d") for name in _FLOATS},
        }
    )
    labels: list[Label] = field(default_factory=list)
    _label_numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    _clusters: dict[str, int] = field(default_factory=dict)

    def take(self, pair: Pair, result: GenerationResult, *, has_list: bool) -> None:
        """Add one row."""
        latency = None if pair.answered is None else pair.answered.latency_ms
        row = {**_codes(result), **_counts(result), "has_list": has_list, "label": self._label(pair.judged)}
        row |= {"cluster": self._cluster(pair.judged), "latency_ms": _NAN if latency is None else latency}
        self.ids.append(result.query_id)
        for name, value in row.items():
            self.columns[name].append(value)

    def _label(self, row: Judged) -> int:
        key = (row.category, *sorted((k, type(v).__name__, v) for k, v in row.slices.items()))
        number = self._label_numbers.setdefault(key, len(self.labels))
        if number == len(self.labels):
            self.labels.append(Label(row.category, row.slices))
        return number

    def _cluster(self, row: Judged) -> int:
        return UNKNOWN if row.cluster is None else self._clusters.setdefault(row.cluster, len(self._clusters))

    def order(self) -> Ints:
        """Row numbers by query id."""
        return np.array(sorted(range(len(self.ids)), key=self.ids.__getitem__), dtype=np.int64)

    def latencies(self) -> list[float]:
        """The latencies given, ascending."""
        given = np.frombuffer(self.columns["latency_ms"], dtype=np.float64)
        ascending: list[float] = np.sort(given[~np.isnan(given)]).tolist()
        return ascending

    def gathered(self, order: Ints) -> GenerationColumns:
        """The columns, in the order given; they are let go of here, latencies excepted."""
        names = [name for name in self.columns if name != "latency_ms"]
        made: dict[str, Any] = {name: np.asarray(self.columns.pop(name))[order] for name in names}
        clusters = _own_numbers(made.pop("cluster").astype(np.int64))
        return GenerationColumns(**made, cluster=clusters, has_corpus=self.has_corpus, has_clusters=bool(self._clusters))


def _codes(result: GenerationResult) -> dict[str, float]:
    return {
        "kind": _KINDS[result.expected_answerable],
        "status": CODES[result.status],
        "abstained": UNKNOWN if result.abstained is None else result.abstained,
        "source": UNKNOWN if result.faithfulness_source is None else SOURCES.index(result.faithfulness_source),
        "faithfulness": _NAN if result.faithfulness_score is None else result.faithfulness_score,
        "confidence": _NAN if result.confidence is None else result.confidence,
    }


def _counts(result: GenerationResult) -> dict[str, float]:
    faults = [c.fault for c in result.citations]
    vital = [r for r in result.requirements if r.importance == "vital"]
    return {
        "required": len(result.requirements),
        "met": sum(r.met for r in result.requirements),
        "vital": len(vital),
        "vital_met": sum(r.met for r in vital),
        "cited": len(result.citations),
        "accepted": sum(c.accepted for c in result.citations),
        **{fault: faults.count(fault) for fault in ("nonexistent", "not_shown", "not_accepted")},
    }


def _own_numbers(clusters: Ints) -> Ints:
    """Cluster numbers by first appearance; a row without one gets a number of its own."""
    alone = clusters == UNKNOWN
    keys = np.where(alone, clusters.max(initial=0) + 1 + np.arange(len(clusters)), clusters)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    numbers: Ints = rank[places]
    return numbers


def groups_of(columns: GenerationColumns, labels: list[Label]) -> Iterator[Group]:
    """Rows by category, by declared slice, and by who gave the faithfulness scores where several did."""
    for group in slices_of(labels):
        yield Group(group.by, group.value, np.flatnonzero(np.isin(columns.label, group.rows)))
    given = sorted(set(columns.source.tolist()) - {UNKNOWN})
    for code in given if len(given) > 1 else ():
        yield Group("faithfulness_source", SOURCES[code], np.flatnonzero(columns.source == code))
