"""Evidence followed through the stages: where it is kept and lost, over all rows, by collection, with and without expansion."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from tripos.columns.collections import CollectionColumns, by_collection
from tripos.columns.corpus import CorpusColumns, charged_to
from tripos.columns.retrieval import Bools, Floats, Ints
from tripos.contracts.corpus import LOSSES, STAGES
from tripos.contracts.corpus_report import (
    CollectionReport,
    EvidenceFlow,
    ExpansionReport,
    ExpansionSide,
)
from tripos.contracts.reports import Aggregate
from tripos.measures.aggregate import Figures, Sums, single
from tripos.measures.corpus import COLLECTION
from tripos.measures.record import Registry, Values
from tripos.measures.rowwise import aggregate_curve

Clusters = npt.NDArray[np.int64] | None


def flow(columns: CorpusColumns, entries: Ints | None = None) -> EvidenceFlow:
    """Expected sources of measured rows, counted: kept at each stage, and each lost one at the place it is charged to.

    Args:
        columns: The aligned rows.
        entries: Which entries of the table of sources; all by default.
    """
    chosen = np.arange(len(columns.sources.query)) if entries is None else entries
    chosen = chosen[columns.complete[columns.sources.query[chosen]]]
    kept, charged = columns.sources.kept[chosen], columns.charged[chosen]
    brought = columns.recovered[chosen]
    before = charged_to(np.column_stack([kept[:, :3], kept[:, 2]]))
    return EvidenceFlow(
        expected=len(chosen),
        kept={stage: int(kept[:, n].sum()) for n, stage in enumerate(STAGES)},
        lost={loss: int((charged == n).sum()) for n, loss in enumerate(LOSSES)},
        recovered_by_expansion=int(brought.sum()),
        recovered_from={loss: n for number, loss in enumerate(LOSSES) if (n := int((brought & (before == number)).sum()))},
    )


def collection_reports(columns: CorpusColumns, clusters: Clusters) -> list[CollectionReport]:
    """Each collection that some row expects or routed to, by name."""
    return [_collection(columns, part, clusters) for part in by_collection(columns)]


def _collection(columns: CorpusColumns, part: CollectionColumns, clusters: Clusters) -> CollectionReport:
    fans, own = columns.fans, part.fans
    routed, expected, k = fans.routed[own], fans.expected[own], fans.k[own]
    measured = part.complete & part.searched
    return CollectionReport(
        collection=part.name,
        rows=len(part.rows),
        routed=int(routed.sum()),
        routed_rightly=int((routed & expected).sum()),
        not_routed=int((part.complete & ~part.routed).sum()),
        in_vain=int(((k > 0) & ~expected).sum()),
        incomplete=int((~part.complete).sum()),
        own_k={str(value): n for value, n in sorted(Counter(k[k > 0].tolist()).items())},
        evidence=flow(columns, part.sources),
        measures=_figures(part, clusters),
        sufficient_k=_sufficient(part.found[measured], part.n_expected[measured]),
        beyond_k=int((part.n_expected[measured] - part.found[measured, -1]).sum()),
        plateau_k=_plateau(part.found[measured]),
    )


def _figures(part: CollectionColumns, clusters: Clusters) -> Figures:
    own = None if clusters is None else clusters[part.rows]
    figures: Figures = {}
    for measure in COLLECTION.values():
        values = measure.function(part)
        if measure.is_curve:
            figures |= aggregate_curve(measure, values, part.complete, part.own_k, own)
        else:
            figures[measure.name] = _single(measure.name, COLLECTION, values, part.complete, own)
    return figures


def _single(name: str, registry: Registry, values: Values, complete: Bools, clusters: Clusters) -> Aggregate:
    sums = Sums(registry[name], 1, (1,))
    sums.add(values.value[:, None], values.undefined, complete, np.arange(len(complete)))
    return single(sums, clusters)


def _sufficient(found: Floats, expected: Ints) -> int | None:
    """The smallest cutoff at which every row has all that it expects; None where some row never has."""
    if not len(found) or (found[:, -1] < expected).any():
        return None
    return int((found < expected[:, None]).sum(axis=1).max()) + 1


def _plateau(found: Floats) -> int | None:
    """The smallest cutoff that finds as much as the last; None where nothing is found."""
    total = found.sum(axis=0)
    return int((total < total[-1]).sum()) + 1 if len(found) and total[-1] else None


EXPANSION = Registry()
"""Figures told on both sides of expansion; functions of (columns, stage)."""


def _share(columns: CorpusColumns, stage: str) -> Floats:
    shares: Floats = columns.kept(stage) / np.maximum(columns.n_expected, 1)
    return shares


@EXPANSION.measure("kept", "Kept", formula="expected sources kept / expected sources", source="Tripos")
def _kept(side: tuple[CorpusColumns, str]) -> Values:
    return Values(_share(*side), np.zeros(len(side[0]), dtype=np.int64))


@EXPANSION.measure("all_kept", "All kept", formula="1 if every expected source is kept", proportion=True, source="Tripos")
def _all_kept(side: tuple[CorpusColumns, str]) -> Values:
    return Values((_share(*side) == 1).astype(np.float64), np.zeros(len(side[0]), dtype=np.int64))


@EXPANSION.measure("fragments", "Fragments", formula="fragments handed on", direction="lower", source="Tripos")
def _fragments(side: tuple[CorpusColumns, str]) -> Values:
    columns, stage = side
    counts = columns.n_final if stage == "final" else columns.n_merged
    return Values(counts.astype(np.float64), np.zeros(len(columns), dtype=np.int64))


def expansion_report(columns: CorpusColumns, clusters: Clusters) -> ExpansionReport | None:
    """The rows that had expansion, without it and with it; None where no row had any."""
    rows = np.flatnonzero(columns.expanded & columns.positive & columns.complete)
    if not len(rows):
        return None
    before, after = columns.kept("merged")[rows], columns.kept("final")[rows]
    return ExpansionReport(
        rows=len(rows),
        off=_side(columns, "merged", rows, clusters),
        on=_side(columns, "final", rows, clusters),
        better=int((after > before).sum()),
        worse=int((after < before).sum()),
    )


def _side(columns: CorpusColumns, stage: str, rows: Ints, clusters: Clusters) -> ExpansionSide:
    own = None if clusters is None else clusters[rows]
    figures = {}
    for name, measure in EXPANSION.items():
        values = measure.function((columns, stage))
        part = Values(values.value[rows], values.undefined[rows])
        figures[name] = _single(name, EXPANSION, part, columns.complete[rows], own)
    return ExpansionSide(**figures)
