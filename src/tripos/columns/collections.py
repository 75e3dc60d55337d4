"""One collection's part of the columns: the rows that expect it, and what its own list brought them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tripos.columns.corpus import CorpusColumns
from tripos.columns.retrieval import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class CollectionColumns:
    """One row for each scored query that expects the collection; arrays have shape (n,) or (n, width).

    rows: their numbers among all. found: expected sources within each cutoff 1..width of the collection's own list; beyond
    a row's own k nothing is added, since the list ends there. fans, sources: which entries of the tables are the collection's.
    """

    name: str
    width: int
    rows: Ints
    complete: Bools
    routed: Bools
    searched: Bools
    own_k: Ints
    n_expected: Ints
    found: Floats
    fans: Ints
    sources: Ints


def by_collection(columns: CorpusColumns) -> Iterator[CollectionColumns]:
    """Every collection that some row expects or routed to, by name."""
    for number, name in enumerate(columns.collections):
        yield _part(columns, number, name)


def _part(columns: CorpusColumns, number: int, name: str) -> CollectionColumns:
    fans = np.flatnonzero(columns.fans.collection == number)
    own = fans[columns.fans.expected[fans]]
    rows, k = columns.fans.query[own], columns.fans.k[own]
    width = max(1, int(columns.fans.k[fans].max(initial=1)))
    sources = np.flatnonzero(columns.sources.collection == number)
    place = np.searchsorted(rows, columns.sources.query[sources])
    return CollectionColumns(
        name=name,
        width=width,
        rows=rows,
        complete=columns.complete[rows],
        routed=columns.fans.routed[own],
        searched=k > 0,
        own_k=np.where(k > 0, k, width),
        n_expected=np.bincount(place, minlength=len(rows)),
        found=_found(place, columns.sources.rank[sources], len(rows), width),
        fans=fans,
        sources=sources,
    )


def _found(place: Ints, rank: Ints, n: int, width: int) -> Floats:
    inside = (rank > 0) & (rank <= width)
    counts = np.bincount(place[inside] * width + rank[inside] - 1, minlength=n * width)
    return counts.reshape(n, width).cumsum(axis=1).astype(np.float64)
