"""Which layer a gate belongs to: one configuration holds the gates of all, and each takes its own.

The registries of the other layers are loaded only where a name is not found in the layer at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from tripos.contracts.config import GateConfig, LayerName
from tripos.errors import ConfigError, suggest
from tripos.measures.gates import ALIASES, canonical_name
from tripos.measures.record import Measure

Layer = LayerName
LAYERS: tuple[Layer, ...] = ("retrieval", "generation", "corpus")


def registry(layer: Layer | Literal["collection"]) -> Mapping[str, Measure]:
    """The measures of one layer; `collection`: those of one collection, which are the corpus layer's too."""
    match layer:
        case "retrieval":
            from tripos.measures.retrieval import RETRIEVAL

            return RETRIEVAL
        case "generation":
            from tripos.measures.generation import GENERATION

            return GENERATION
        case "corpus":
            from tripos.measures.corpus import CORPUS

            return CORPUS
        case "collection":
            from tripos.measures.corpus import COLLECTION

            return COLLECTION


def titles() -> dict[str, Mapping[str, Measure]]:
    """Every registry by the title under which its measures are listed."""
    return {**{layer: registry(layer) for layer in LAYERS}, "corpus, of one collection": registry("collection")}


def gates_of(layer: Layer, gates: Mapping[str, GateConfig], where: str = "gates") -> dict[str, GateConfig]:
    """The gates of one layer; a name that several layers have (leaks) is a gate in each.

    A gate with `slice: {collection: NAME}` is the corpus layer's. Raises ConfigError for a name that no layer has.
    """
    own: dict[str, GateConfig] = {}
    for name, config in gates.items():
        if _is_own(layer, name, config):
            own[name] = config
        elif not any(_is_own(other, name, config) for other in LAYERS if other != layer):
            raise ConfigError.at(where, f'"{name}" is no measure{_near(name)}: {_LIST}', field=f"gates.{name}")
    return own


def owners(name: str, config: GateConfig) -> list[Layer]:
    """The layers that have a measure of this name."""
    return [layer for layer in LAYERS if _is_own(layer, name, config)]


_LIST = "tripos describe measures lists them"


def check_gate(name: str, config: GateConfig, limit: int) -> None:
    """Raise ConfigError for a gate that names no measure of any layer, or a cutoff outside 1..limit."""
    for layer in LAYERS:
        if name in gates_of(layer, {name: config}) and not (config.slice and "collection" in config.slice):
            canonical_name(name, registry(layer), limit if layer != "generation" else 1, "gates")


def _is_own(layer: Layer, name: str, config: GateConfig) -> bool:
    base = _base(name)
    if config.slice is not None and "collection" in config.slice:
        return layer == "corpus" and (_has(registry("collection"), base) or _has(registry("corpus"), base))
    return _has(registry(layer), base)


def _near(name: str) -> str:
    return suggest(_base(name), set(_every_name()))


def _every_name() -> Iterator[str]:
    for measures in titles().values():
        yield from (name.removesuffix("@k") for name in measures)


def _has(measures: Mapping[str, Measure], base: str) -> bool:
    return base in measures or f"{base}@k" in measures


def _base(name: str) -> str:
    base = name.strip().lower().partition("@")[0]
    return ALIASES.get(base, base)
