"""One record a measure: what it is, what it means, and the function that computes it.

The docs table, `tripos describe measures`, report labels, gate names and property tests all derive from these records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Population = Literal["positives", "expected_empty", "scored", "answerable", "answered", "unanswerable"]
"""The rows a measure is taken over; answered: answerable rows that did not abstain."""

Kind = Literal["mean", "sum", "ratio", "area"]
"""How rows become a figure: their mean, their sum, a ratio of sums, or an area under a curve over all of them."""

Function = TypeVar("Function", bound=Callable[[Any], Any])


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
    aggregate: Kind
    proportion: bool
    needs_completeness: bool
    reasons: Mapping[str, str]
    source: str
    version: int
    lowest: float
    function: Callable[[Any], Any]

    @property
    def is_curve(self) -> bool:
        """Whether there is one figure at each cutoff."""
        return self.name.endswith("@k")

    @property
    def worst_end(self) -> float | None:
        """What an incomplete row counts as in `worst`; None where the measure has no bound there."""
        if self.direction == "higher":
            return self.lowest
        return 1.0 if self.aggregate == "mean" else None

    def at(self, k: int | str) -> str:
        """The name at one cutoff: hit@k → hit@10."""
        return self.name.removesuffix("k") + str(k) if self.is_curve else self.name


NO_RESULTS = "no_results"
"""The one reason that depends on what came back: an incomplete row still counts at its bad end."""


class Registry(dict[str, Measure]):
    """The measures of one paper by name, in report order; the decorator adds one."""

    def measure(
        self,
        name: str,
        title: str,
        *,
        formula: str,
        source: str,
        population: Population = "positives",
        direction: Literal["higher", "lower"] = "higher",
        aggregate: Kind = "mean",
        proportion: bool = False,
        needs_completeness: bool = False,
        reasons: Mapping[str, str] | None = None,
        version: int = 1,
        lowest: float = 0.0,
    ) -> Callable[[Function], Function]:
        """Register the decorated function, which turns a block of rows into their values.

        Args:
            name: As reports and gates name it; "…@k" is a curve, with a figure at each cutoff.
            title: As tables label it.
            formula: The value of one row, in words.
            source: The paper, standard or tool that defines it.
            population: The rows it is taken over.
            direction: Whether higher or lower is better.
            aggregate: Mean over rows, the sum of counts, a ratio of sums, or an area.
            proportion: Whether each row is 0 or 1, so that Wilson's interval applies.
            needs_completeness: Whether unlisted right answers would change it.
            reasons: Why a row of the population may have no value, by reason code, in the order of the codes.
            version: Counts up when the definition changes.
            lowest: The worst value of a row, where higher is better.
        """

        def register(function: Function) -> Function:
            self[name] = Measure(
                name=name,
                title=title,
                formula=formula,
                population=population,
                direction=direction,
                aggregate=aggregate,
                proportion=proportion,
                needs_completeness=needs_completeness,
                reasons=reasons or {},
                source=source,
                version=version,
                lowest=lowest,
                function=function,
            )
            return function

        return register
