"""Which layer a gate belongs to: one configuration holds the gates of all, and each takes its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tripos.contracts.config import GateConfig
from tripos.errors import ConfigError, suggest
from tripos.measures.corpus import COLLECTION, CORPUS
from tripos.measures.gates import ALIASES
from tripos.measures.generation import GENERATION
from tripos.measures.record import Measure
from tripos.measures.retrieval import RETRIEVAL

Layer = Literal["retrieval", "generation", "corpus"]

LAYERS: Mapping[Layer, Mapping[str, Measure]] = {"retrieval": RETRIEVAL, "generation": GENERATION, "corpus": CORPUS}
"""The measures of each layer. Those of one collection are the corpus layer's too, under a `collection` slice."""


TITLES: Mapping[str, Mapping[str, Measure]] = {**LAYERS, "corpus, of one collection": COLLECTION}
"""Every registry by the title under which its measures are listed."""


def gates_of(layer: Layer, gates: Mapping[str, GateConfig], where: str = "gates") -> dict[str, GateConfig]:
    """The gates of one layer; a name that several layers have (leaks) is a gate in each.

    A gate with `slice: {collection: NAME}` is the corpus layer's. Raises ConfigError for a name that no layer has.
    """
    own: dict[str, GateConfig] = {}
    for name, config in gates.items():
        layers = owners(name, config)
        if not layers:
            every = {measure.removesuffix("@k") for measures in (*LAYERS.values(), COLLECTION) for measure in measures}
            near = suggest(_base(name), every)
            raise ConfigError.at(where, f'"{name}" is no measure{near}: tripos describe measures lists them', field="gates")
        if layer in layers:
            own[name] = config
    return own


def owners(name: str, config: GateConfig) -> list[Layer]:
    """The layers that have a measure of this name."""
    base = _base(name)
    if config.slice is not None and "collection" in config.slice:
        return ["corpus"] if _has(COLLECTION, base) or _has(CORPUS, base) else []
    return [layer for layer, measures in LAYERS.items() if _has(measures, base)]


def _has(measures: Mapping[str, Measure], base: str) -> bool:
    return base in measures or f"{base}@k" in measures


def _base(name: str) -> str:
    base = name.strip().lower().partition("@")[0]
    return ALIASES.get(base, base)
