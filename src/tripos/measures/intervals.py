"""95 % confidence intervals: Wilson for proportions, percentile bootstrap for means, normal above 10,000 rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tripos.contracts.reports import Interval
from tripos.fingerprint import round12

Z = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""

RESAMPLES = 2000
MAX_BOOTSTRAP = 10_000
_CHUNK = 250
_IN_CACHE = 20_000
"""Draws made at once: larger runs of them leave the cache."""
UNIT = 2.0**30
"""In one: what values are whole multiples of where they are added up for an interval."""
_LEAST_DEFINED = 0.95


def wilson(successes: float, n: int) -> Interval:
    """Wilson's score interval for a proportion (Wilson 1927); n ≥ 1."""
    p = successes / n
    centre = p + Z * Z / (2 * n)
    spread = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return _interval(low, high, "wilson")


def _interval(low: float, high: float, method: str) -> Interval:
    return Interval.model_validate({"low": round12(low), "high": round12(high), "method": method})


def mean_intervals(values: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64] | None) -> list[Interval | None]:
    """Intervals of the mean of each column of `values`, shape (n, m), by percentile bootstrap or normal approximation.

    Args:
        values: Values in [0, 1] or small counts, one row a query.
        clusters: Cluster number of each row (whole clusters are resampled), or None: rows are independent.

    Returns:
        One interval a column; None where there are fewer than two units to resample.
    """
    sums, sizes = _by_cluster(values, clusters)
    if len(sums) < 2:
        return [None] * values.shape[1]
    return _normal(sums, sizes) if len(sums) > MAX_BOOTSTRAP else _bootstrap(sums, sizes)


def _by_cluster(
    values: npt.NDArray[np.float64], clusters: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Sums and sizes of the units to resample; sums in whole units of 2^-30, so that adding them is exact in any order."""
    whole = np.rint(values * UNIT)
    if clusters is None:
        return whole, np.ones(len(whole))
    _, unit = np.unique(clusters, return_inverse=True)
    sums = np.zeros((unit.max(initial=-1) + 1, whole.shape[1]))
    np.add.at(sums, unit, whole)
    return sums, np.bincount(unit).astype(np.float64)


@functools.lru_cache(maxsize=2)
def _draws(n: int) -> npt.NDArray[np.uint16]:
    """How often each resample draws each of n units, shape (2000, n): the same for every figure over n units."""
    raw = np.random.PCG64(0)
    counts = np.empty((RESAMPLES, n), dtype=np.uint16)
    several = max(1, _IN_CACHE // n)
    for start in range(0, RESAMPLES, several):
        m = min(several, RESAMPLES - start)
        counts[start : start + m] = _drawn(raw, m, n)
    return counts


def _drawn(raw: np.random.PCG64, m: int, n: int) -> npt.NDArray[np.int64]:
    """How often each of the next m resamples draws each of n units, shape (m, n)."""
    drawn = raw.random_raw(m * n)
    drawn >>= np.uint64(32)
    drawn *= np.uint64(n)
    drawn >>= np.uint64(32)
    cell = drawn.astype(np.int64).reshape(m, n)
    cell += np.arange(m)[:, None] * n
    return np.bincount(cell.ravel(), minlength=m * n).reshape(m, n)


def _bootstrap(sums: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64]) -> list[Interval | None]:
    """Percentile bootstrap over units: 2,000 resamples, PCG64, seed 0.

    The draws use the generator's raw 64-bit stream, which NumPy keeps stable. Sums stay below 2^53, so the matrix product
    is exact and the same for any BLAS and any thread count.
    """
    n, stacked = len(sums), np.column_stack([sums, sizes])
    means = np.empty((RESAMPLES, sums.shape[1]))
    for start in range(0, RESAMPLES, _CHUNK):
        totals = _draws(n)[start : start + _CHUNK].astype(np.float64) @ stacked
        means[start : start + _CHUNK] = totals[:, :-1] / (totals[:, -1:] * UNIT)
    means.sort(axis=0)
    lows, highs = _percentile(means, 0.025), _percentile(means, 0.975)
    return [_interval(float(low), float(high), "bootstrap") for low, high in zip(lows, highs, strict=True)]


def _percentile(ordered: npt.NDArray[np.float64], q: float) -> npt.NDArray[np.float64]:
    """The q-quantile of each sorted column, interpolated linearly."""
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above: npt.NDArray[np.float64] = ordered[below] + (ordered[below + 1] - ordered[below]) * (place - below)
    return above


def _normal(sums: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64]) -> list[Interval | None]:
    """Normal interval of a ratio of sums over units (the mean, where each unit is one row), deviations squared exactly."""
    n, total = len(sums), math.fsum(sizes)
    result: list[Interval | None] = []
    for column in (sums / UNIT).T:
        mean = math.fsum(column) / total
        squares = math.fsum(((column - mean * sizes) ** 2).tolist())
        error = math.sqrt(squares * n / (n - 1)) / total
        result.append(_interval(mean - Z * error, mean + Z * error, "normal"))
    return result


def normal_of_sums(n: int, total: int, squares: int) -> Interval | None:
    """The same of n independent rows, from the sums of their values and of their squares, both in units of 2^-30.

    Sums are whole numbers, so the squared deviations are exact and the same however rows were split.
    """
    if n < 2:
        return None
    unit = int(UNIT)
    error = math.sqrt((n * squares - total * total) / (n * unit * unit) * n / (n - 1)) / n
    mean = total / (n * unit)
    return _interval(mean - Z * error, mean + Z * error, "normal")


def quantile(ordered: Sequence[float], q: float) -> float | None:
    """The q-quantile of sorted values, interpolated linearly; None of nothing."""
    if not ordered:
        return None
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return round12(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


Parts = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Numerators and denominators, counts, each of shape (n, k)."""


def ratios_intervals(several: Sequence[Parts], clusters: npt.NDArray[np.int64] | None) -> list[Interval | None]:
    """Intervals of means of k ratios of sums over the same rows, or whole clusters; by bootstrap or linearised normal.

    Args:
        several: What each figure is made from; a row that a figure does not count holds zeros.
        clusters: Cluster number of each row, or None: rows are independent.

    Returns:
        None with fewer than two units, or where more than one resample in twenty leaves a ratio without a denominator.
    """
    units = [_by_cluster(np.column_stack(parts) / UNIT, clusters)[0] for parts in several]
    n = len(units[0]) if units else 0
    if n < 2:
        return [None] * len(several)
    if n > MAX_BOOTSTRAP:
        return [_linearised(*np.hsplit(own, 2)) for own in units]
    totals = np.concatenate(list(_resampled(np.column_stack(units))))
    ends = np.cumsum([own.shape[1] for own in units])[:-1]
    return [_percentiles(*np.hsplit(own, 2)) for own in np.hsplit(totals, ends)]


def _percentiles(numerators: npt.NDArray[np.float64], denominators: npt.NDArray[np.float64]) -> Interval | None:
    """From totals of each resample, shape (resamples, k); those in which the figure is undefined are left out, if few."""
    defined = (denominators > 0).all(axis=1)
    if defined.mean() < _LEAST_DEFINED:
        return None
    means = np.sort((numerators[defined] / denominators[defined]).mean(axis=1))[:, None]
    return _interval(float(_percentile(means, 0.025)[0]), float(_percentile(means, 0.975)[0]), "bootstrap")


def _resampled(units: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    """Totals of each resample of the units, in chunks of 250; the draws and sums are those of `_bootstrap`."""
    n, raw = len(units), np.random.PCG64(0)
    for _ in range(RESAMPLES // _CHUNK):
        yield _drawn(raw, _CHUNK, n).astype(np.float64) @ units


def _linearised(numerators: npt.NDArray[np.float64], denominators: npt.NDArray[np.float64]) -> Interval:
    n, k = numerators.shape
    ratios, effects = [], np.zeros(n)
    for j in range(k):
        total = math.fsum(denominators[:, j])
        ratio = math.fsum(numerators[:, j]) / total
        ratios.append(ratio)
        effects += (numerators[:, j] - ratio * denominators[:, j]) / (total * k)
    mean = math.fsum(ratios) / k
    error = math.sqrt(math.fsum((effects**2).tolist()) * n / (n - 1))
    return _interval(mean - Z * error, mean + Z * error, "normal")
