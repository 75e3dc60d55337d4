"""From per-row values to aggregates: every measure, every cutoff, every slice, in one pass over the blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tripos.columns.groups import Group
from tripos.columns.retrieval import OK, RetrievalColumns
from tripos.contracts.reports import Aggregate, Curve, Interval
from tripos.fingerprint import round12
from tripos.measures.block import Block, blocks
from tripos.measures.exact import ExactSum
from tripos.measures.intervals import mean_intervals, wilson
from tripos.measures.record import NO_RESULTS, Measure, Values

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
EMPTY = "no_rows"
INCOMPLETE = "all_incomplete"


@dataclass(slots=True)
class Sums:
    """One measure over one group, in the making: exact sums, counts, and the values that intervals need."""

    measure: Measure
    width: int
    headline: Sequence[int]
    n: int = 0
    incomplete: int = 0
    undefined: dict[str, int] = field(default_factory=dict)
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

    def why(self) -> str | None:
        """Why there is no value, if there is none."""
        if self.n:
            return None
        if self.incomplete:
            return INCOMPLETE
        return max(sorted(self.undefined), key=self.undefined.__getitem__) if self.undefined else EMPTY

    def figure(self, total: Fraction) -> float | None:
        """The value of one column."""
        if not self.n:
            return None
        return round12(float(total / self.n if self.measure.aggregate == "mean" else total))

    def worst(self, total: Fraction) -> float | None:
        """The value with each incomplete row at its bad end; None where that is unbounded, or there is no row."""
        end = self.measure.worst_end
        rows = self.n + self.incomplete
        if not rows or (self.incomplete and end is None):
            return None
        total = total + Fraction(self.incomplete) * Fraction(end or 0)
        return round12(float(total / rows if self.measure.aggregate == "mean" else total))

    def own_clusters(self, clusters: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64] | None:
        """Cluster numbers of its rows; None where each row is a cluster by itself."""
        own = None if clusters is None else clusters[np.concatenate(self.rows)]
        return None if own is None or len(np.unique(own)) == len(own) else own


Figures = dict[str, Aggregate | Curve]


def aggregate(
    columns: RetrievalColumns,
    measures: Iterable[Measure],
    groups: Sequence[Group],
    headline: Sequence[int],
    clusters: npt.NDArray[np.int64] | None,
) -> list[Figures]:
    """All measures over each group, by name; curves also at each row's own depth (`hit@case`).

    Args:
        columns: The aligned rows.
        measures: Which measures.
        groups: Sets of rows; a result each, in the same order.
        headline: Cutoffs that get intervals, within 1..limit.
        clusters: Cluster number of each row, or None where no row names one.
    """
    chosen = list(measures)
    tables = [_table(chosen, columns.limit, headline) for _ in groups]
    for block in blocks(columns):
        for measure in chosen:
            _add(measure, measure.function(block), block, groups, tables)
    return [_figures(table, clusters) for table in tables]


def _table(measures: Sequence[Measure], limit: int, headline: Sequence[int]) -> dict[str, Sums]:
    table: dict[str, Sums] = {}
    for measure in measures:
        table[measure.name] = Sums(measure, limit, headline) if measure.is_curve else Sums(measure, 1, [1])
        if measure.is_curve:
            table[measure.at("case")] = Sums(measure, 1, [1])
    return table


def _add(measure: Measure, values: Values, block: Block, groups: Sequence[Group], tables: Sequence[Mapping[str, Sums]]) -> None:
    members = population(measure, block.columns.positive[block.start : block.stop])
    complete = block.column("state") == OK
    matrix = values.value if measure.is_curve else values.value[:, None]
    at_case = np.take_along_axis(matrix, block.column("depth")[:, None] - 1, axis=1) if measure.is_curve else None
    for group, table in zip(groups, tables, strict=True):
        rows = group.within(block.start, block.stop)
        rows = rows[members[rows]]
        table[measure.name].add(matrix[rows], values.undefined[rows], complete[rows], rows + block.start)
        if at_case is not None:
            table[measure.at("case")].add(at_case[rows], values.undefined[rows], complete[rows], rows + block.start)


def population(measure: Measure, positive: Bools) -> Bools:
    """Which rows a measure is taken over, from which rows should find something; shape (n,)."""
    match measure.population:
        case "positives":
            return positive
        case "expected_empty":
            return ~positive
        case _:
            return np.ones(len(positive), dtype=bool)


def _figures(table: Mapping[str, Sums], clusters: npt.NDArray[np.int64] | None) -> Figures:
    found = intervals_of(list(table.values()), clusters)
    return {
        name: (curve if name.endswith("@k") else single)(sums, clusters, own)
        for (name, sums), own in zip(table.items(), found, strict=True)
    }


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


def _shared(sums: Sums) -> dict[str, object]:
    return {
        "undefined": sums.why(),
        "n": sums.n,
        "n_undefined": sum(sums.undefined.values()),
        "undefined_rows": dict(sorted(sums.undefined.items())),
        "incomplete": sums.incomplete,
    }


def single(sums: Sums, clusters: npt.NDArray[np.int64] | None, intervals: Intervals | None = None) -> Aggregate:
    """The aggregate of a scalar measure; its interval is made here where none is given."""
    total = sums.total.totals()[0]
    ci = (intervals or intervals_of([sums], clusters)[0])[0]
    return Aggregate.model_validate({"value": sums.figure(total), "worst": sums.worst(total), "ci": ci, **_shared(sums)})


def curve(sums: Sums, clusters: npt.NDArray[np.int64] | None, intervals: Intervals | None = None) -> Curve:
    """The aggregate of a measure with a figure at each cutoff; its intervals are made here where none are given."""
    totals = sums.total.totals()
    by_cutoff = zip(sums.headline, intervals or intervals_of([sums], clusters)[0], strict=True)
    return Curve.model_validate(
        {
            "value": [sums.figure(t) for t in totals],
            "worst": [sums.worst(t) for t in totals],
            "ci": {str(k): interval for k, interval in by_cutoff if interval is not None},
            **_shared(sums),
        }
    )


def per_row(columns: RetrievalColumns, measure: Measure) -> Values:
    """The measure's values on every row: (n, limit) for curves, (n,) for scalars. Memory is n × limit floats."""
    parts = [measure.function(block) for block in blocks(columns)]
    return Values(np.concatenate([p.value for p in parts]), np.concatenate([p.undefined for p in parts]))
