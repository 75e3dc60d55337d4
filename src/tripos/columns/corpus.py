"""Corpus judgments and results, aligned: every expected source followed through routing, fan-out, merge and expansion.

Two tables carry everything: one entry for each expected source of a row, and one for each collection that a row expects or
routed to. What a row sums up to is counted from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.columns.retrieval import OK, Bools, Floats, Ints
from tripos.contracts.corpus import LOSSES, STAGES, CorpusJudgment, CorpusMissReason, Loss, LostSource, Searched

LEAK_STAGES = ("retrieved", "merged", "expansion", "final")
"""Where a fragment that the reader may not see can surface."""


class Sources(NamedTuple):
    """Expected sources, sorted by query; all of shape (n_sources,) but `kept`.

    rank: position in the collection's own list, 0 where it is not in it. kept: (n_sources, 4), whether it is still there
    after each stage.
    """

    query: Ints
    collection: Ints
    rank: Ints
    kept: Bools


class Fans(NamedTuple):
    """Collections that a row expects or routed to, sorted by query; all of shape (n_fans,).

    k: what was asked for, 0 where the collection was not searched. latency_ms: NaN where not told.
    """

    query: Ints
    collection: Ints
    k: Ints
    expected: Bools
    routed: Bools
    latency_ms: Floats


@dataclass(slots=True)
class CorpusStory:
    """What a miss tells of one row beyond its judgment; kept only for rows that are misses."""

    routed: tuple[str, ...] = ()
    searched: list[Searched] = field(default_factory=list)
    lost: list[LostSource] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)
    absent_relationships: list[tuple[str, str, str]] = field(default_factory=list)
    leaked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    merged: tuple[str, ...] = ()
    final: tuple[str, ...] = ()
    error: str | None = None


@dataclass
class CorpusColumns:
    """One row a scored query, sorted by query id; arrays have shape (n,).

    links: (n, 4), expected relationships, those of them followed, all followed, those of them expected.
    leaks: (n, 5), distinct fragments that the reader may not see: at any stage, then at each of LEAK_STAGES.
    """

    rows: list[CorpusJudgment]
    collections: list[str]
    top_k: int
    has_corpus: bool
    state: Ints
    sources: Sources
    fans: Fans
    first_right: Bools
    expanded: Bools
    links: Ints
    leaks: Ints
    n_merged: Ints
    n_final: Ints
    latency_ms: Floats
    stories: list[CorpusStory]
    reasons: list[list[CorpusMissReason]]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def complete(self) -> Bools:
        """Rows that were measured."""
        measured: Bools = self.state == OK
        return measured

    @property
    def positive(self) -> Bools:
        """Rows that should be routed somewhere."""
        return np.array([row.should_match for row in self.rows], dtype=bool)

    @property
    def asking(self) -> Bools:
        """Rows with a principal."""
        return np.array([row.principal is not None for row in self.rows], dtype=bool)

    @property
    def hops(self) -> Ints:
        """Sources that must be followed: as declared, else as many as are expected."""
        return np.array([row.hops or len(row.expected) for row in self.rows], dtype=np.int64)

    def per_row(self, of: Sources | Fans, chosen: Bools) -> Floats:
        """How many of the chosen entries each row has."""
        return np.bincount(of.query[chosen], minlength=len(self)).astype(np.float64)

    @cached_property
    def n_expected(self) -> Floats:
        """Expected sources of each row."""
        return self.per_row(self.sources, np.ones(len(self.sources.query), dtype=bool))

    def kept(self, stage: str) -> Floats:
        """Expected sources of each row that are still there after a stage."""
        return self.per_row(self.sources, self.sources.kept[:, STAGES.index(stage)])

    @cached_property
    def charged(self) -> Ints:
        """Where each expected source was lost: a position in LOSSES, or −1 where it was handed on; shape (n_sources,)."""
        return charged_to(self.sources.kept)

    def lost(self, loss: Loss) -> Floats:
        """Expected sources of each row that are charged to a loss."""
        return self.per_row(self.sources, self.charged == list(LOSSES).index(loss))

    @cached_property
    def recovered(self) -> Bools:
        """Expected sources that were lost before expansion and brought in by it; shape (n_sources,)."""
        brought: Bools = self.sources.kept[:, 3] & ~self.sources.kept[:, 2]
        return brought


def charged_to(kept: Bools) -> Ints:
    """The one stage that each source is charged to, from what was kept after each of the four; −1 where kept at the end.

    In the merged list, but not in the final one: displaced. Else the first stage after which it was gone.
    """
    order: list[npt.NDArray[np.bool_]] = [kept[:, 3], kept[:, 2], kept[:, 1], kept[:, 0]]
    return np.select(order, [-1, 3, 2, 1], default=0).astype(np.int64)
