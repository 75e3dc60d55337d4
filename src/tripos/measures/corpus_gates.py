"""The gates that a configuration asks of the corpus layer: over all rows, a slice, or one collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tripos.contracts.config import GateConfig
from tripos.contracts.corpus_report import CollectionReport
from tripos.contracts.reports import Curve, Gate, Slice
from tripos.measures import gates as gating
from tripos.measures.corpus import COLLECTION, CORPUS
from tripos.measures.layers import gates_of


class Parts(NamedTuple):
    """Figures over all rows, by slice, and by collection."""

    overall: gating.Figures
    slices: Sequence[Slice]
    collections: Sequence[CollectionReport]


def check_asked(gates: Mapping[str, GateConfig], limit: int) -> None:
    """Raise ConfigError for a gate that names no measure, or no cutoff, before anything is read."""
    for name, gate in gates_of("corpus", gates).items():
        _canonical(name, gate, limit)


def asked_gates(gates: Mapping[str, GateConfig], parts: Parts, limit: int) -> list[Gate]:
    """The gates that are the corpus layer's, each against its worst figure."""
    return [_asked(name, gate, parts, limit) for name, gate in gates_of("corpus", gates).items()]


def _asked(name: str, gate: GateConfig, parts: Parts, limit: int) -> Gate:
    if not gate.slice:
        return gating.asked_gate(_canonical(name, gate, limit), gate, parts.overall, None)
    slices = _collections(parts) if _by_collection(gate) else parts.slices
    figures, label = gating.slice_figures(slices, gate.slice)
    if figures is None:
        return gating.unfilled_gate(name, gate, slices, label)
    width = _width(figures) if _by_collection(gate) else limit
    return gating.asked_gate(_canonical(name, gate, width), gate, figures, label)


def _by_collection(gate: GateConfig) -> bool:
    return gate.slice is not None and "collection" in gate.slice


def _collections(parts: Parts) -> list[Slice]:
    return [Slice(by="collection", value=p.collection, rows=p.rows, measures=p.measures) for p in parts.collections]


def _width(figures: gating.Figures) -> int:
    """The last cutoff of a collection's curves."""
    curve = figures["hit@k"]
    return len(curve.value) if isinstance(curve, Curve) else 1


def _canonical(name: str, gate: GateConfig, limit: int) -> str:
    return gating.canonical_name(name, COLLECTION if _by_collection(gate) else CORPUS, limit, "gates")
