"""One record a measure: what it is, what it means, and the function that computes it.

The docs table, `tripos describe measures`, report labels, gate names and property tests all derive from these records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.measures.block import Block

Population = Literal["positives", "expected_empty", "scored"]


class Values(NamedTuple):
    """Per-row figures of one block.

    value: shape (n, K) for curves, (n,) for scalars. undefined: shape (n,), 0 where defined, else 1 + the position of the
    reason in the record's `reasons`.
    """

    value: npt.NDArray[np.float64]
    undefined: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure's record."""

    name: str
    title: str
    formula: str
    population: Population
    direction: Literal["higher", "lower"]
    aggregate: Literal["mean", "sum"]
    proportion: bool
    needs_completeness: bool
    reasons: Mapping[str, str]
    source: str
    version: int
    function: Callable[[Block], Values]

    @property
    def is_curve(self) -> bool:
        """Whether there is one figure at each cutoff."""
        return self.name.endswith("@k")

    @property
    def worst_end(self) -> float | None:
        """What an incomplete row counts as in `worst`; None where the measure has no bound there."""
        if self.direction == "higher":
            return 0.0
        return 1.0 if self.aggregate == "mean" else None

    def at(self, k: int | str) -> str:
        """The name at one cutoff: hit@k → hit@10."""
        return self.name.removesuffix("k") + str(k) if self.is_curve else self.name


RETRIEVAL: dict[str, Measure] = {}
"""The retrieval measures by name, in report order."""

NO_RESULTS = "no_results"
"""The one reason that depends on what came back: an incomplete row still counts at its bad end."""


def measure(
    name: str,
    title: str,
    *,
    formula: str,
    source: str,
    population: Population = "positives",
    direction: Literal["higher", "lower"] = "higher",
    aggregate: Literal["mean", "sum"] = "mean",
    proportion: bool = False,
    needs_completeness: bool = False,
    reasons: Mapping[str, str] | None = None,
    version: int = 1,
) -> Callable[[Callable[[Block], Values]], Callable[[Block], Values]]:
    """Register a retrieval measure; the decorated function turns a block into its values."""

    def register(function: Callable[[Block], Values]) -> Callable[[Block], Values]:
        RETRIEVAL[name] = Measure(
            name, title, formula, population, direction, aggregate, proportion, needs_completeness, reasons or {}, source,
            version, function,
        )  # fmt: skip
        return function

    return register
