"""From totals to what a report tells: values, worst ends and intervals of every measure, over every group."""

from __future__ import annotations

from itertools import islice

import numpy as np
import numpy.typing as npt

from tripos.columns.retrieval import Ints
from tripos.contracts.reports import Interval
from tripos.measures.aggregate import Counted, Figures
from tripos.measures.exact import UNITS, joined
from tripos.measures.intervals import MAX_BOOTSTRAP, UNIT, mean_intervals, normal_of_sums, wilson
from tripos.measures.totals import Kept, Tables, Totals

Spans = list[Interval | None]
"""Intervals at each headline cutoff, then of the figure at each row's own depth."""

_Key = tuple[str, bytes]


def figures_of(tables: Tables, clusters: Ints | None) -> list[Figures]:
    """All measures over each group, by name; curves also at each row's own depth (`hit@case`).

    Args:
        tables: The totals of all rows.
        clusters: Cluster number of each row, or None where no row names one.
    """
    groups = range(tables.members.n_groups)
    every = [(totals, group) for totals in tables.totals.values() for group in groups]
    spans = _intervals(every, clusters)
    figures: list[Figures] = [{} for _ in groups]
    for (totals, group), own in zip(every, spans, strict=True):
        figures[group] |= _told(totals, group, own)
    return figures


def _told(totals: Totals, group: int, spans: Spans) -> Figures:
    counted, sums, measure = counted_in(totals, group), sums_of(totals, group), totals.measure
    if not measure.is_curve:
        return {measure.name: counted.single(sums[0], spans[0])}
    by_cutoff = dict(zip(totals.headline, spans, strict=False))
    return {
        measure.name: counted.curve(sums[:-1], by_cutoff),
        measure.at("case"): counted.single(sums[-1], spans[-1]),
    }


def counted_in(totals: Totals, group: int) -> Counted:
    """The rows of one group by what they came to."""
    scored, incomplete, *undefined, _ = totals.counts[group].tolist()
    reasons = {reason: n for reason, n in zip(totals.measure.reasons, undefined, strict=True) if n}
    return Counted(totals.measure, n=scored, incomplete=incomplete, undefined=reasons)


def sums_of(totals: Totals, group: int) -> list[int]:
    """Sums over the scored rows of one group in units of 2^-64: at each cutoff, then at each row's own depth."""
    return joined(*_summed(totals, group)[:2])


def _summed(totals: Totals, group: int) -> Ints:
    """All sums of one group, shape (parts, width)."""
    own = totals.sums[:, group]
    if not totals.measure.is_curve:
        return own
    return np.concatenate([own[:, :-1].cumsum(axis=1), own[:, -1:]], axis=1)


def _columns(totals: Totals) -> list[int]:
    """The columns that get intervals."""
    return [*(k - 1 for k in totals.headline), totals.limit] if totals.measure.is_curve else [0]


def _intervals(every: list[tuple[Totals, int]], clusters: Ints | None) -> list[Spans]:
    """Intervals of each measure in each group; those over the same rows are resampled together, and once."""
    found: list[Spans] = []
    together: dict[bytes, dict[str, npt.NDArray[np.int32]]] = {}
    waiting: dict[int, _Key] = {}
    for totals, group in every:
        found.append([None] * len(_columns(totals)))
        if not totals.counts[group, 0] or totals.measure.aggregate == "sum":
            continue
        kept = _kept(totals, group) if totals.keeps else None
        is_clustered = kept is not None and _own_clusters(kept.rows, clusters) is not None
        if totals.measure.proportion and not is_clustered:
            found[-1] = _proportions(totals, group)
        elif kept is None or (clusters is None and totals.counts[group, 0] > MAX_BOOTSTRAP):
            found[-1] = _normal(totals, group)
        else:
            waiting[len(found) - 1] = (totals.measure.name, rows := kept.rows.tobytes())
            together.setdefault(rows, {})[totals.measure.name] = kept.values
    drawn = {key: span for rows, several in together.items() for key, span in _resampled(rows, several, clusters).items()}
    for place, key in waiting.items():
        found[place] = drawn[key]
    return found


def _kept(totals: Totals, group: int) -> Kept:
    """The kept rows of one group, ascending."""
    rows = totals.kept.rows
    own = np.flatnonzero(np.any([codes == group for codes in totals.members.at(rows)], axis=0))
    own = own[np.argsort(rows[own])]
    return Kept(rows[own], totals.kept.values[own])


def _own_clusters(rows: Ints, clusters: Ints | None) -> Ints | None:
    """Cluster numbers of rows; None where each row is a cluster by itself."""
    own = None if clusters is None else clusters[rows]
    return None if own is None or len(np.unique(own)) == len(own) else own


def _proportions(totals: Totals, group: int) -> Spans:
    n, sums = int(totals.counts[group, 0]), sums_of(totals, group)
    return [wilson(sums[column] // UNITS, n) for column in _columns(totals)]


def _normal(totals: Totals, group: int) -> Spans:
    n, sums = int(totals.counts[group, 0]), _summed(totals, group)
    squares = joined(*sums[3:])
    return [normal_of_sums(n, int(sums[2, column]), squares[column]) for column in _columns(totals)]


def _resampled(rows: bytes, several: dict[str, npt.NDArray[np.int32]], clusters: Ints | None) -> dict[_Key, Spans]:
    own = _own_clusters(np.frombuffer(rows, dtype=np.int64), clusters)
    made = iter(mean_intervals(np.column_stack(list(several.values())) / UNIT, own))
    return {(name, rows): list(islice(made, values.shape[1])) for name, values in several.items()}
