"""From per-row values to aggregates: exact sums, counts by reason, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tripos.columns.retrieval import RetrievalColumns
from tripos.contracts.reports import Aggregate, Curve, Interval
from tripos.fingerprint import round12
from tripos.measures.block import Block, blocks
from tripos.measures.exact import UNITS, ExactSum
from tripos.measures.intervals import mean_intervals, wilson
from tripos.measures.record import NO_RESULTS, Measure, Values
from tripos.measures.steps import Steps

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
EMPTY = "no_rows"
INCOMPLETE = "all_incomplete"


@dataclass(slots=True)
class Counted:
    """One measure over one group: how many rows it rests on, how many are left out, and why."""

    measure: Measure
    n: int = field(default=0, kw_only=True)
    incomplete: int = field(default=0, kw_only=True)
    undefined: dict[str, int] = field(default_factory=dict, kw_only=True)

    def why(self) -> str | None:
        """Why there is no value, if there is none."""
        if self.n:
            return None
        if self.incomplete:
            return INCOMPLETE
        return max(sorted(self.undefined), key=self.undefined.__getitem__) if self.undefined else EMPTY

    def figure(self, total: int) -> float | None:
        """The value of one column, from its sum in units of 2^-64."""
        if not self.n:
            return None
        return round12(total / ((self.n if self.measure.aggregate == "mean" else 1) * UNITS))

    def worst(self, total: int) -> float | None:
        """The value with each incomplete row at its bad end; None where that is unbounded, or there is no row."""
        end = self.measure.worst_end
        rows = self.n + self.incomplete
        if not rows or (self.incomplete and end is None):
            return None
        total += self.incomplete * int(Fraction(end or 0) * UNITS)
        return round12(total / ((rows if self.measure.aggregate == "mean" else 1) * UNITS))

    def shared(self) -> dict[str, object]:
        """What single figures and curves tell alike."""
        return {
            "undefined": self.why(),
            "n": self.n,
            "n_undefined": sum(self.undefined.values()),
            "undefined_rows": dict(sorted(self.undefined.items())),
            "incomplete": self.incomplete,
        }

    def single(self, total: int, ci: Interval | None) -> Aggregate:
        """The aggregate of a scalar."""
        return Aggregate.model_validate({"value": self.figure(total), "worst": self.worst(total), "ci": ci, **self.shared()})

    def curve(self, totals: Sequence[int], ci: Mapping[int, Interval | None]) -> Curve:
        """The aggregate of a figure at each cutoff, with intervals at some."""
        return Curve.model_validate(
            {
                "value": [self.figure(total) for total in totals],
                "worst": [self.worst(total) for total in totals],
                "ci": {str(k): interval for k, interval in ci.items() if interval is not None},
                **self.shared(),
            }
        )


@dataclass(slots=True)
class Sums(Counted):
    """The same in the making, with exact sums, and the values that intervals need."""

    width: int
    headline: Sequence[int]
    kept: list[Floats] = field(default_factory=list)
    rows: list[npt.NDArray[np.int64]] = field(default_factory=list)
    total: ExactSum = field(init=False)

    def __post_init__(self) -> None:
        self.total = ExactSum(self.width)

    def add(self, value: Floats, codes: npt.NDArray[np.int64], complete: Bools, rows: npt.NDArray[np.int64]) -> None:
        """Add rows of the measure's population: value (n, width), reason codes (n,), whether complete (n,), row numbers."""
        for code, reason in enumerate(self.measure.reasons, 1):
            counted = (codes == code) & (complete | (reason != NO_RESULTS))
            if n := int(counted.sum()):
                self.undefined[reason] = self.undefined.get(reason, 0) + n
        dynamic = 1 + list(self.measure.reasons).index(NO_RESULTS) if NO_RESULTS in self.measure.reasons else -1
        self.incomplete += int((~complete & ((codes == 0) | (codes == dynamic))).sum())
        scored = complete & (codes == 0)
        self.n += int(scored.sum())
        self.total.add(value[scored])
        self.kept.append(value[scored][:, [k - 1 for k in self.headline]])
        self.rows.append(rows[scored])

    def own_clusters(self, clusters: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64] | None:
        """Cluster numbers of its rows; None where each row is a cluster by itself."""
        own = None if clusters is None else clusters[np.concatenate(self.rows)]
        return None if own is None or len(np.unique(own)) == len(own) else own


Figures = dict[str, Aggregate | Curve]


def population(measure: Measure, positive: Bools) -> Bools:
    """Which rows a measure is taken over, from which rows should find something; shape (n,)."""
    match measure.population:
        case "positives":
            return positive
        case "expected_empty":
            return ~positive
        case _:
            return np.ones(len(positive), dtype=bool)


Intervals = list[Interval | None]


def intervals_of(several: Sequence[Sums], clusters: npt.NDArray[np.int64] | None) -> list[Intervals]:
    """One interval for each headline column of each; those over the same rows are resampled together."""
    found: list[Intervals] = [[None] * len(sums.headline) for sums in several]
    together: dict[bytes, list[int]] = {}
    for i, sums in enumerate(several):
        if not sums.n or sums.measure.aggregate == "sum":
            continue
        if sums.measure.proportion and sums.own_clusters(clusters) is None:
            found[i] = [wilson(round(float(column.sum())), sums.n) for column in np.concatenate(sums.kept).T]
        else:
            together.setdefault(np.concatenate(sums.rows).tobytes(), []).append(i)
    for members in together.values():
        values = np.column_stack([np.concatenate(several[i].kept) for i in members])
        made = iter(mean_intervals(values, several[members[0]].own_clusters(clusters)))
        for i in members:
            found[i] = [next(made) for _ in several[i].headline]
    return found


def single(sums: Sums, clusters: npt.NDArray[np.int64] | None, intervals: Intervals | None = None) -> Aggregate:
    """The aggregate of a scalar measure; its interval is made here where none is given."""
    return sums.single(sums.total.units()[0], (intervals or intervals_of([sums], clusters)[0])[0])


def curve(sums: Sums, clusters: npt.NDArray[np.int64] | None, intervals: Intervals | None = None) -> Curve:
    """The aggregate of a measure with a figure at each cutoff; its intervals are made here where none are given."""
    found = intervals or intervals_of([sums], clusters)[0]
    return sums.curve(sums.total.units(), dict(zip(sums.headline, found, strict=True)))


def per_row(columns: RetrievalColumns, measure: Measure, cutoffs: Sequence[int] | None = None) -> Values:
    """The measure's values on every row: (n,) for scalars; for curves (n, limit), or one column for each of some cutoffs."""
    made = [(block, measure.function(block)) for block in blocks(columns)]
    value = [_cells(values.value, block, cutoffs) for block, values in made]
    return Values(np.concatenate(value), np.concatenate([values.undefined for _, values in made]))


def _cells(value: Steps | Floats, block: Block, cutoffs: Sequence[int] | None) -> Floats:
    if not isinstance(value, Steps):
        return value
    if cutoffs is None:
        return value.dense(block.n, block.limit)
    return np.column_stack([value.at(np.full(block.n, k)) for k in cutoffs])
