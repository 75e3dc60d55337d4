"""Equal scores: the order within them is arbitrary, so figures are also told at its best and at its worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import eq

import numpy as np

from tripos.columns.retrieval import EXPECTED

Targets = Mapping[str, tuple[float, int]]
Worth = Callable[[str], tuple[float, float]]


Run = tuple[int, int]
"""Places start..stop−1 of two or more equal scores."""


def tied_runs(scores: Sequence[float]) -> list[Run]:
    """Runs of equal scores."""
    return _runs(bytes(map(eq, scores, scores[1:])))


def packed_runs(packed: bytes) -> list[Run]:
    """The same of scores packed as doubles, little-endian."""
    scores = np.frombuffer(packed, dtype="<f8")
    return _runs((scores[1:] == scores[:-1]).tobytes())


def _runs(same: bytes) -> list[Run]:
    """Runs from whether each score is that of the next."""
    runs: list[Run] = []
    start = same.find(1)
    while start >= 0:
        stop = same.find(0, start)
        stop = len(same) if stop < 0 else stop
        runs.append((start, stop + 1))
        start = same.find(1, stop)
    return runs


def straddled(runs: Sequence[Run], cutoffs: Sequence[int]) -> int:
    """The cutoffs that equal scores straddle, as bits: the k-th and the next score are in one run."""
    bits = 0
    for start, stop in runs:
        for bit, k in enumerate(cutoffs):
            if start < k < stop:
                bits |= 1 << bit
    return bits


def by_expectation(targets: Targets) -> Worth:
    """What a source is worth to hit, recall and reciprocal rank: expected first, then by grade."""
    return lambda source: (targets.get(source, (0.0, 0))[1] & EXPECTED, targets.get(source, (0.0, 0))[0])


def by_gain(targets: Targets) -> Worth:
    """What a source is worth to NDCG: its grade."""
    return lambda source: (targets.get(source, (0.0, 0))[0], 0.0)


def extremes(sources: Sequence[str], runs: Sequence[Run], worth: Worth) -> tuple[list[str], list[str]]:
    """The ranked sources with every run of equal scores in its best and in its worst order.

    A source that stood before is worth nothing; of several fragments of one source in a run only the first counts.
    """
    best, worst = list(sources), list(sources)
    for start, stop in runs:
        copies = Counter(sources[start:stop])
        own = {source: worth(source) if sources.index(source) >= start else (0.0, 0.0) for source in copies}
        fresh = sorted(copies, key=own.__getitem__, reverse=True)
        best[start:stop] = fresh + [source for source in fresh for _ in range(copies[source] - 1)]
        last = sorted(copies, key=lambda source: (own[source], -copies[source], source))
        worst[start:stop] = [source for source in last for _ in range(copies[source])]
    return best, worst
