"""From generation columns to figures: means by exact sums, ratios and areas computed again at their worst outcome."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tripos.columns.generation import Bools, Floats, GenerationColumns, Ints
from tripos.contracts.generation_report import RiskCoverage
from tripos.contracts.reports import Aggregate, Curve, Interval
from tripos.fingerprint import round12
from tripos.measures.abstention import aurc
from tripos.measures.aggregate import EMPTY, INCOMPLETE, Sums, intervals_of, single
from tripos.measures.generation import GENERATION
from tripos.measures.generation_parts import Ratios, Risks, members, outage
from tripos.measures.intervals import MAX_BOOTSTRAP, ratios_intervals, wilson
from tripos.measures.record import Measure, Values

Figures = dict[str, Aggregate | Curve]
_COVERAGES = tuple(n / 10 for n in range(1, 11))


def figures(columns: GenerationColumns, names: Iterable[str] = tuple(GENERATION)) -> Figures:
    """Every named measure over the columns' rows.

    Small sets are measured at once, so that intervals are drawn together; large ones measure by measure, which keeps less.
    """
    batches = [list(names)] if len(columns) <= MAX_BOOTSTRAP else [[name] for name in names]
    return {name: figure for batch in batches for name, figure in _together(columns, batch).items()}


def _together(columns: GenerationColumns, names: Iterable[str]) -> Figures:
    clusters = columns.cluster if columns.has_clusters else None
    parts = {name: _parts(GENERATION[name], columns) for name in names}
    sums = {name: _sums(GENERATION[name], own) for name, own in parts.items() if isinstance(own.made, Values)}
    drawn = dict(zip(sums, intervals_of(list(sums.values()), clusters), strict=True))
    ratios = {name: own for name, own in parts.items() if isinstance(own.made, Ratios)}
    spans = _ratio_intervals(ratios, len(columns), clusters)
    found: Figures = {}
    for name, (_, made) in parts.items():
        if isinstance(made, Values):
            found[name] = single(sums[name], clusters, drawn[name])
            if outage(GENERATION[name], columns):
                found[name] = _withheld(value_of(found, name))
        elif isinstance(made, Ratios):
            found[name] = _ratio(GENERATION[name], made, spans.get(name))
        else:
            found[name] = _area(GENERATION[name], made)
    return found


def _withheld(figure: Aggregate) -> Aggregate:
    """The figure without a value, its worst kept."""
    rows = figure.n + figure.n_undefined
    why = {"value": None, "undefined": INCOMPLETE, "n": 0, "ci": None}
    return figure.model_copy(update={**why, "n_undefined": rows, "undefined_rows": {"none_judged": rows} if rows else {}})


class _Parts(NamedTuple):
    rows: Ints
    made: Values | Ratios | Risks


def _parts(measure: Measure, columns: GenerationColumns) -> _Parts:
    rows = np.flatnonzero(members(measure.population, columns))
    own = columns if len(rows) == len(columns) else columns.take(rows)
    return _Parts(rows, measure.function(own))


def _sums(measure: Measure, parts: _Parts) -> Sums:
    sums, made = Sums(measure, 1, [1]), parts.made
    assert isinstance(made, Values)
    sums.add(made.value[:, None], np.maximum(made.undefined, 0), made.undefined >= 0, parts.rows)
    return sums


def _why(measure: Measure, rows: int, incomplete: int) -> str:
    """Why a figure that is no mean has no value."""
    if incomplete:
        return INCOMPLETE
    return next(iter(measure.reasons)) if rows else EMPTY


def _ratio(measure: Measure, parts: Ratios, ci: Interval | None) -> Aggregate:
    incomplete, counted = parts.incomplete, _counted(parts)
    value = _value(parts)
    return _aggregate(
        measure,
        value=value,
        worst=_worst_ratio(parts, value),
        n=int(counted.sum()) if value is not None else 0,
        outside=int(((~counted | (value is None)) & ~incomplete).sum()),
        incomplete=int(incomplete.sum()),
        ci=ci,
    )


def _counted(parts: Ratios) -> Bools:
    """Rows that the figure rests on."""
    counted: Bools = ~parts.incomplete & (parts.denominator > 0).any(axis=1)
    return counted


def _value(parts: Ratios) -> float | None:
    sums = [part[~parts.incomplete].sum(axis=0, dtype=np.int64).tolist() for part in (parts.numerator, parts.denominator)]
    return _mean_ratio(*sums)


def _worst_ratio(parts: Ratios, value: float | None) -> float | None:
    if not parts.incomplete.any():
        return value
    if parts.worst_numerator is None or parts.worst_denominator is None:
        return None
    above = np.where(parts.incomplete[:, None], parts.worst_numerator, parts.numerator).sum(axis=0)
    below = np.where(parts.incomplete[:, None], parts.worst_denominator, parts.denominator).sum(axis=0)
    return _mean_ratio(above.tolist(), below.tolist())


def _mean_ratio(numerators: Sequence[int], denominators: Sequence[int]) -> float | None:
    if not all(denominators):
        return None
    ratios = [Fraction(a, b) for a, b in zip(numerators, denominators, strict=True)]
    return round12(float(sum(ratios) / len(ratios)))


def _ratio_intervals(ratios: Mapping[str, _Parts], n: int, clusters: Ints | None) -> dict[str, Interval | None]:
    """Wilson where rows are the trials and not clustered; the others resampled together."""
    found: dict[str, Interval | None] = {}
    together: dict[str, tuple[Floats, Floats]] = {}
    for name, (rows, made) in ratios.items():
        assert isinstance(made, Ratios)
        if _value(made) is None:
            continue
        counted = _counted(made)
        if GENERATION[name].proportion and clusters is None:
            found[name] = wilson(int(made.numerator[counted].sum()), int(counted.sum()))
        else:
            together[name] = (
                _spread(made.numerator, rows[counted], counted, n),
                _spread(made.denominator, rows[counted], counted, n),
            )
    return found | dict(zip(together, ratios_intervals(list(together.values()), clusters), strict=True))


def _spread(part: Ints, rows: Ints, counted: Bools, n: int) -> Floats:
    """Counts at their rows among all n, zeros elsewhere; shape (n, k)."""
    whole = np.zeros((n, part.shape[1]))
    whole[rows] = part[counted]
    return whole


def _aggregate(
    measure: Measure,
    *,
    value: float | None,
    worst: float | None,
    n: int,
    outside: int,
    incomplete: int,
    ci: Interval | None = None,
) -> Aggregate:
    reason = next(iter(measure.reasons))
    return Aggregate(
        value=value,
        undefined=None if value is not None else _why(measure, outside, incomplete),
        worst=worst,
        n=n,
        n_undefined=outside,
        undefined_rows={reason: outside} if outside else {},
        incomplete=incomplete,
        ci=ci,
    )


def _area(measure: Measure, parts: Risks) -> Aggregate:
    """AURC; at worst every incomplete row is wrong, and surer than all where it gives no confidence."""
    used, waiting = parts.member, parts.incomplete
    value = _mean_of(risks(parts.confidence[used], parts.wrong[used]))
    worst = value
    if waiting.any() and (used.any() or ~np.isnan(parts.confidence[waiting]).all()):
        both = used | waiting
        confidence = np.where(np.isnan(parts.confidence), np.inf, parts.confidence)[both]
        worst = _mean_of(risks(confidence, (parts.wrong | waiting)[both]))
    n, incomplete = int(used.sum()), int(waiting.sum())
    return _aggregate(measure, value=value, worst=worst, n=n, outside=len(used) - n - incomplete, incomplete=incomplete)


def risks(confidence: Floats, wrong: Bools) -> Floats:
    """Expected share of wrong answers among the i surest, i = 1..n, over all orders of equal confidences; shape (n,)."""
    order = np.argsort(-confidence, kind="stable")
    ordered = confidence[order]
    n = len(ordered)
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if n else np.array([], dtype=np.int64)
    sizes = np.diff(np.r_[starts, n])
    errors = np.add.reduceat(wrong[order].astype(np.int64), starts) if n else np.array([], dtype=np.int64)
    before = np.cumsum(errors) - errors
    place = np.arange(1, n + 1)
    group = np.repeat(np.arange(len(starts)), sizes)
    within = place - starts[group]
    expected: Floats = (before[group] + errors[group] * within / sizes[group]) / place
    return expected


def _mean_of(values: Floats) -> float | None:
    return round12(math.fsum(values.tolist()) / len(values)) if len(values) else None


def risk_coverage(columns: GenerationColumns) -> RiskCoverage | None:
    """The curve at ten coverages; None where no answer carries a confidence."""
    parts = aurc(columns)
    curve = risks(parts.confidence[parts.member], parts.wrong[parts.member])
    if not len(curve):
        return None
    places = [math.ceil(round(share * len(curve), 9)) - 1 for share in _COVERAGES]
    return RiskCoverage(coverage=_COVERAGES, risk=tuple(round12(float(curve[max(place, 0)])) for place in places))


def value_of(found: Mapping[str, Aggregate | Curve], name: str) -> Aggregate:
    """A figure by name."""
    figure = found[name]
    assert isinstance(figure, Aggregate)
    return figure
