"""Two sides row by row: which queries both scored, and each measure's differences over the rows on which both have a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tripos.across.sides import DEFINED, INCOMPLETE, Column, Side, averaged, record_of
from tripos.columns.groups import clusters_of
from tripos.measures.paired import Floats, Ints
from tripos.measures.record import Measure

REASONS = {
    "no_result_in_base": "no usable result in the base",
    "no_result_here": "no usable result here",
    "no_result_in_both": "no usable result in either",
    "defined_in_base_alone": "the measure is defined in the base alone",
    "defined_here_alone": "the measure is defined here alone",
}
"""Why a row of a measure is not paired."""


@dataclass(frozen=True, slots=True)
class Differences:
    """One measure over the paired rows; arrays are in order of query id.

    rows: places of the paired rows among the common queries. worst: differences of `worst_rows`, which are the paired rows and
    those that one side alone has no result for, each at the end that is bad for the candidate.
    """

    measure: Measure
    rows: Ints
    base: Floats
    value: Floats
    worst_rows: Ints
    worst: Floats
    left_out: Mapping[str, int]
    zero_one: bool

    @property
    def difference(self) -> Floats:
        """Candidate less base."""
        return exact(self.value - self.base)

    def within(self, rows: Ints) -> Differences:
        """Those of some of the common queries."""
        own, worst = np.isin(self.rows, rows), np.isin(self.worst_rows, rows)
        return Differences(
            self.measure,
            self.rows[own],
            self.base[own],
            self.value[own],
            self.worst_rows[worst],
            self.worst[worst],
            self.left_out,
            self.zero_one,
        )


def exact(differences: Floats) -> Floats:
    """Differences without what rounding alone left of them: a store keeps 12 digits of a figure."""
    return np.round(differences, 10) + 0.0


class Pairing:
    """A base and a candidate over the queries that both scored."""

    def __init__(self, base: Side, candidate: Side, ids: Sequence[str]) -> None:
        self.base, self.candidate, self.ids = base, candidate, list(ids)
        self.places = base.places(self.ids), candidate.places(self.ids)
        judged = [base.runs[0].judged[i] for i in self.places[0][0].tolist()]
        self.clusters = clusters_of(judged)

    def clusters_at(self, rows: Ints) -> Ints | None:
        """Cluster numbers of some of the common queries."""
        return None if self.clusters is None else self.clusters[rows]

    def rows_of(self, by: str, value: str) -> Ints | None:
        """The common queries of one slice; None where none is in it."""
        places = self.base.runs[0].slice(by, value)
        if places is None:
            return None
        rows = np.flatnonzero(np.isin(self.places[0][0], places))
        return rows if len(rows) else None

    def columns(self, names: Sequence[str]) -> dict[str, tuple[list[Column], list[Column]]]:
        """Each measure's columns, one a repeat, of both sides over the common queries."""
        found: list[list[dict[str, Column]]] = []
        for side, places in zip((self.base, self.candidate), self.places, strict=True):
            own = [run.figures(names) for run in side.runs]
            found.append(
                [
                    {name: Column(c.value[at], c.state[at]) for name, c in made.items()}
                    for made, at in zip(own, places, strict=True)
                ]
            )
        return {name: ([made[name] for made in found[0]], [made[name] for made in found[1]]) for name in names}


def differences(name: str, base: Sequence[Column], candidate: Sequence[Column], pairing: Pairing) -> Differences:
    """One measure's differences; with repeats, of the means over them."""
    record = record_of(name, pairing.base.header.layer)
    one, other = averaged(base), averaged(candidate)
    both = (one.state == DEFINED) & (other.state == DEFINED)
    gone = one.state == INCOMPLETE, other.state == INCOMPLETE
    bad = record.worst_end or 0.0
    good = 1.0 if record.direction == "higher" else 0.0
    fallen = gone[1] & (one.state == DEFINED)
    risen = gone[0] & (other.state == DEFINED)
    worst = np.select([both, fallen, risen], [other.value - one.value, bad - one.value, other.value - good])
    some = np.flatnonzero(both | fallen | risen)
    values = np.concatenate([one.value[both], other.value[both]])
    repeated = len(base) > 1 or len(candidate) > 1
    return Differences(
        measure=record,
        rows=np.flatnonzero(both),
        base=one.value[both],
        value=other.value[both],
        worst_rows=some,
        worst=exact(worst[some]),
        left_out=_left_out(one, other),
        zero_one=not repeated and bool(np.isin(values, (0.0, 1.0)).all()),
    )


def _left_out(one: Column, other: Column) -> dict[str, int]:
    counts = {
        "no_result_in_base": (one.state == INCOMPLETE) & (other.state != INCOMPLETE),
        "no_result_here": (other.state == INCOMPLETE) & (one.state != INCOMPLETE),
        "no_result_in_both": (one.state == INCOMPLETE) & (other.state == INCOMPLETE),
        "defined_in_base_alone": (one.state == DEFINED) & (other.state != DEFINED) & (other.state != INCOMPLETE),
        "defined_here_alone": (other.state == DEFINED) & (one.state != DEFINED) & (one.state != INCOMPLETE),
    }
    return {reason: n for reason, rows in counts.items() if (n := int(rows.sum()))}
