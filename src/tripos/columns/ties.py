"""Equal scores: the order within them is arbitrary, so figures are also told at its best and at its worst."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tripos.columns.retrieval import EXPECTED

Targets = Mapping[str, tuple[float, int]]
Worth = Callable[[str], tuple[float, float]]


def has_ties(scores: Sequence[float]) -> bool:
    """Whether two neighbours have equal scores."""
    return len(set(scores)) < len(scores) and any(one == other for one, other in itertools.pairwise(scores))


def straddled(scores: Sequence[float], cutoffs: Sequence[int]) -> int:
    """The cutoffs that equal scores straddle, as bits: the k-th and the next score are the same."""
    return sum(1 << bit for bit, k in enumerate(cutoffs) if k < len(scores) and scores[k - 1] == scores[k])


def by_expectation(targets: Targets) -> Worth:
    """What a source is worth to hit, recall and reciprocal rank: expected first, then by grade."""
    return lambda source: (targets.get(source, (0.0, 0))[1] & EXPECTED, targets.get(source, (0.0, 0))[0])


def by_gain(targets: Targets) -> Worth:
    """What a source is worth to NDCG: its grade."""
    return lambda source: (targets.get(source, (0.0, 0))[0], 0.0)


def extremes(sources: Sequence[str], scores: Sequence[float], worth: Worth) -> tuple[list[str], list[str]]:
    """The ranked sources with every run of equal scores in its best and in its worst order.

    A source that stood before is worth nothing; of several fragments of one source in a run only the first counts.
    """
    best: list[str] = []
    worst: list[str] = []
    seen: set[str] = set()
    for _, places in itertools.groupby(range(len(sources)), key=scores.__getitem__):
        run = [sources[k] for k in places]
        copies = Counter(run)
        if len(copies) == 1:
            best += run
            worst += run
        else:
            own = {source: (0.0, 0.0) if source in seen else worth(source) for source in copies}
            fresh = sorted(copies, key=own.__getitem__, reverse=True)
            best += fresh + [source for source in fresh for _ in range(copies[source] - 1)]
            last = sorted(copies, key=lambda source: (own[source], -copies[source], source))
            worst += [source for source in last for _ in range(copies[source])]
        seen.update(copies)
    return best, worst
