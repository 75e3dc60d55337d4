"""All that is measured of aligned rows, in the making: added batch by batch, and brought together from any number of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tripos.columns.retrieval import Ints, RetrievalColumns
from tripos.contracts.reports import Ties
from tripos.measures.aggregate import Figures
from tripos.measures.extremes import Extremes
from tripos.measures.figures import figures_of
from tripos.measures.retrieval import RETRIEVAL, TIED
from tripos.measures.totals import Members, Tables


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: which measures, over which groups of n rows, with intervals at which cutoffs."""

    measures: Sequence[str]
    n: int
    limit: int
    headline: Sequence[int]
    members: Members


class Scores:
    """Every measure over every group, and what ties may make of them.

    Scores of disjoint sets of rows form a commutative monoid under `merge`, empty ones being its identity.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        measured = dict.fromkeys([*plan.measures, *TIED])
        self.tables = Tables([RETRIEVAL[name] for name in measured], plan.limit, plan.headline, plan.members)
        self.extremes = Extremes(plan.n, plan.limit, plan.headline)

    def add(self, columns: RetrievalColumns) -> None:
        """Add aligned rows, which were not added before."""
        self.tables.add(columns)
        self.extremes.add(columns)

    @property
    def state(self) -> Any:
        """What another process needs to `merge` them: arrays of integers."""
        return self.tables.state, self.extremes.state

    def merge(self, state: Any) -> None:
        """Add the scores of other rows."""
        self.tables.merge(state[0])
        self.extremes.merge(state[1])

    def figures(self, clusters: Ints | None) -> list[Figures]:
        """All figures of each group by name."""
        named = {RETRIEVAL[name].at(k) for name in self.plan.measures for k in ("k", "case")}
        return [{name: told for name, told in own.items() if name in named} for own in figures_of(self.tables, clusters)]

    def ties(self) -> list[Ties]:
        """The headline measures at both ends of the orders of equal scores."""
        return self.extremes.told(self.tables)
