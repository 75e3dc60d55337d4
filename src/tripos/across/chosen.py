"""Which measures a comparison is about: a few by default, since each is one more test that Holm's adjustment pays for."""

from __future__ import annotations

from collections.abc import Sequence

from tripos.across.sides import DEFINED, Rows, Side, canonical, record_of
from tripos.contracts.explanation import Layer
from tripos.errors import UsageError

_DEEP = 20
CURVES = ("hit", "recall", "ndcg", "rr")
"""Of retrieval."""

SINGLES: dict[Layer, tuple[str, ...]] = {
    "retrieval": ("expected_empty",),
    "generation": (
        "qualified",
        "requirement_coverage",
        "all_requirements",
        "citation_precision",
        "faithfulness",
        "abstention",
        "over_refusal",
    ),
    "corpus": (
        "routing_exact",
        "routing_recall",
        "kept_retrieved",
        "kept_merged",
        "kept_final",
        "all_kept",
        "relationship_coverage",
        "expected_none",
    ),
}
_KINDS = {"sum": "a sum", "ratio": "a ratio of sums", "area": "an area under a curve"}


def measures_for(
    base: Side, others: Sequence[Side], asked: Sequence[str], cutoffs: Sequence[int], gated: Sequence[str] = ()
) -> list[str]:
    """Canonical names, in report order: those asked for, else the layer's own few; and those that gates are on.

    Args:
        base: The base.
        others: The other sides.
        asked: Measures as typed; a curve without cutoff is read at limit, or at each of `cutoffs` where there are any.
        cutoffs: Cutoffs of the curves; default: each side's top K, or 10 where that is beyond 20.
        gated: Measures that gates are on, canonical.
    """
    limit = min(side.header.limit for side in (base, *others))
    if asked:
        names = [name for text in asked for name in _asked(text, base.header.layer, limit, cutoffs)]
    else:
        names = _usual(base, others, limit, cutoffs)
    return list(dict.fromkeys([*names, *(name for name in gated if name not in names)]))


def _asked(text: str, layer: Layer, limit: int, cutoffs: Sequence[int]) -> list[str]:
    texts = [text]
    if cutoffs and "@" not in text and "@" in canonical(text, layer, limit):
        texts = [f"{text}@{k}" for k in cutoffs]
    return [comparable(one, layer, limit) for one in texts]


def comparable(text: str, layer: Layer, limit: int) -> str:
    """The canonical name; raises UsageError for a measure that has no value of its own on each row."""
    name = canonical(text, layer, limit)
    kind = record_of(name, layer).aggregate
    if kind != "mean":
        raise UsageError(f'"{text}" is {_KINDS[kind]}, no mean over rows: there is nothing to pair row by row')
    return name


def _usual(base: Side, others: Sequence[Side], limit: int, cutoffs: Sequence[int]) -> list[str]:
    """The layer's own few, those of them that some row of the base has."""
    layer = base.header.layer
    names = []
    if layer == "retrieval":
        chosen = cutoffs or _cutoffs([run for side in (base, *others) for run in side.runs], limit)
        names = [canonical(f"{curve}@{k}", layer, limit) for curve in CURVES for k in chosen]
    names += SINGLES[layer]
    columns = [run.figures(names) for side in (base, *others) for run in side.runs]
    return [name for name in names if any((own[name].state == DEFINED).any() for own in columns)]


def _cutoffs(runs: Sequence[Rows], limit: int) -> list[int]:
    """Each run's top K, or 10 where that is beyond 20; else the largest cutoff that every run has figures at."""
    kept = [set(run.cutoffs) for run in runs if run.cutoffs is not None]
    tops = {run.header.top_k for run in runs}
    wanted = {k for k in (tops if max(tops) <= _DEEP else {10}) if k <= limit} or {limit}
    there = wanted.intersection(*kept)
    return sorted(there) or sorted(k for k in set.intersection(*kept) if k <= limit)[-1:]
