"""What a certificate demands: from a configuration, or else by rule."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Literal

from tripos.contracts.config import CertificationConfig, Config, LayerName

LAYERS: tuple[LayerName, ...] = ("retrieval", "generation", "corpus")


@dataclass(frozen=True, slots=True)
class Demands:
    """Which layers must hold, and how firmly.

    Attributes:
        layers: In the order of LAYERS; retrieval is always among them, since the others are bound to it.
        min_limit: The smallest depth that certifies.
        binding: verified asks for a stamp on every row; declared lets stamps be absent.
        approved_judges: Path of the list; None: the one that the generation report names.
        as_of: The day on which approvals must hold.
        config: The configuration; None: what it alone would say is not demanded.
        config_path: Where it stands.
    """

    layers: tuple[LayerName, ...]
    min_limit: int
    binding: Literal["verified", "declared"]
    approved_judges: str | None
    as_of: date
    config: Config | None = None
    config_path: str | None = None


def demanded(
    config: Config | None,
    config_path: str | None,
    found: frozenset[LayerName],
    as_of: date,
    *,
    approved_judges: str | None = None,
    only: Collection[LayerName] = (),
) -> Demands:
    """The configuration's demands; without one the defaults, and every layer that the folder has a report of.

    Args:
        config: The configuration, where one is given.
        config_path: Where it stands.
        found: Layers that the folder has a report of.
        as_of: The day on which approvals must hold.
        approved_judges: The list, where it is named by hand.
        only: Layers, where they are named by hand.
    """
    own = config.certification if config is not None else CertificationConfig()
    asked = {"retrieval", *(only or own.layers)} | (found if config is None and not only else set())
    listed = approved_judges or own.approved_judges or (config.generation.approved_judges if config is not None else None)
    layers = tuple(layer for layer in LAYERS if layer in asked)
    return Demands(layers, own.min_limit, own.binding, listed, as_of, config, config_path)
