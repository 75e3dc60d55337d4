"""Two runs over the same queries: how sure a paired difference is, and how often chance alone would make one as large.

Everything is computed from *units*: rows, or whole clusters of rows where rows name one. Sums are held as whole multiples of
2^-30, so that they are exact in any order; draws come from the raw stream of PCG64, seed 0. With units in order of query id the
figures are the same for any line order, hash seed and thread count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tripos.contracts.reports import Interval
from tripos.fingerprint import round12
from tripos.measures.intervals import MAX_BOOTSTRAP, RESAMPLES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ALPHA = 0.05
FLIPS = 10_000
_MAX_EXACT = 13  # 2^13 sign patterns are fewer than FLIPS
_LEAST = 1e-300  # where the normal tail underflows; p is never 0
_CHUNK = 250
_UNIT = 2.0**30


@dataclass(frozen=True, slots=True)
class Units:
    """What is resampled and flipped as a whole: sums of differences in whole units of 2^-30, and rows in each; shape (u,)."""

    sums: Floats
    sizes: Floats

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return round(math.fsum(self.sizes.tolist()))


class Chance(NamedTuple):
    """How often random signs make a difference at least as large, and how that was found out."""

    p: float
    method: Literal["exact", "random", "normal"]


def units_of(differences: Floats, clusters: Ints | None = None) -> Units:
    """Units of paired differences, shape (n,), in order of query id.

    Args:
        differences: Candidate less base, one a row.
        clusters: Cluster number of each row, or None: each row is its own.
    """
    whole = np.rint(differences * _UNIT)
    if clusters is None:
        return Units(whole, np.ones(len(whole)))
    _, first, unit = np.unique(clusters, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))  # by first row, so that a cluster's name decides nothing
    sums = np.zeros(len(first))
    np.add.at(sums, place[unit], whole)
    return Units(sums, np.bincount(place[unit], minlength=len(first)).astype(np.float64))


def mean_of(values: Floats) -> float | None:
    """The mean, summed exactly; None of nothing."""
    return round12(math.fsum(values.tolist()) / len(values)) if len(values) else None


def standard_error(units: Units) -> float | None:
    """Standard error of the mean over rows, from the spread between units; None with fewer than two units.

    Σ (S − m·d)² over units of sum S and size d is what a ratio of sums leaves of each (Cochran 1977, 6.4); with rows as units
    this is sd / √n.
    """
    n, total = len(units), math.fsum(units.sizes.tolist())
    if n < 2:
        return None
    own = units.sums / _UNIT
    mean = math.fsum(own.tolist()) / total
    squares = math.fsum(((own - mean * units.sizes) ** 2).tolist())
    return math.sqrt(squares * n / (n - 1)) / total


def interval(units: Units, level: float = 0.95) -> Interval | None:
    """Percentile bootstrap interval of the mean difference (Efron and Tibshirani 1993, ch. 13); normal above 10,000 units.

    2,000 resamples of whole units. None with fewer than two units, where nothing tells how much they vary.
    """
    if len(units) < 2:
        return None
    if len(units) > MAX_BOOTSTRAP:
        return _normal(units, level)
    means = _resampled(units)
    tail = (1 - level) / 2
    return _interval(_quantile(means, tail), _quantile(means, 1 - tail), "bootstrap")


def _interval(low: float, high: float, method: str) -> Interval:
    return Interval.model_validate({"low": round12(low), "high": round12(high), "method": method})


def _normal(units: Units, level: float) -> Interval:
    mean = math.fsum(units.sums.tolist()) / _UNIT / math.fsum(units.sizes.tolist())
    spread = NormalDist().inv_cdf((1 + level) / 2) * (standard_error(units) or 0.0)
    return _interval(mean - spread, mean + spread, "normal")


def _resampled(units: Units) -> Floats:
    """The mean of each resample, ascending; shape (2000,). Products of whole numbers below 2^53 are exact in any order."""
    stacked = np.column_stack([units.sums, units.sizes])
    totals = np.concatenate([drawn @ stacked for drawn in _draws(len(units))])
    means: Floats = totals[:, 0] / (totals[:, 1] * _UNIT)
    means.sort()
    return means


def _draws(n: int) -> Iterator[Floats]:
    """How often each resample draws each of n units, in chunks of shape (250, n)."""
    counts = _drawn(n)
    return (counts[start : start + _CHUNK].astype(np.float64) for start in range(0, RESAMPLES, _CHUNK))


@functools.lru_cache(maxsize=1)
def _drawn(n: int) -> npt.NDArray[np.uint16]:
    """The draws of `intervals.py`, kept while several measures over the same number of units are compared."""
    raw = np.random.PCG64(0)
    counts = np.empty((RESAMPLES, n), dtype=np.uint16)
    for start in range(0, RESAMPLES, _CHUNK):
        drawn = ((raw.random_raw(_CHUNK * n) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)
        cell = drawn.astype(np.int64).reshape(_CHUNK, n) + np.arange(_CHUNK)[:, None] * n
        counts[start : start + _CHUNK] = np.bincount(cell.ravel(), minlength=_CHUNK * n).reshape(_CHUNK, n)
    return counts


def _quantile(ordered: Floats, q: float) -> float:
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def chance(units: Units) -> Chance:
    """Two-sided sign-flip randomisation test of no difference (Fisher 1935; Smucker, Allan and Carterette 2007).

    Under no difference each unit's sign is a coin toss. With up to 13 units that differ, all sign patterns are counted; beyond,
    10,000 random ones, p = (b + 1) / (m + 1) (Phipson and Smyth 2010); above 10,000 units the normal limit of the same
    distribution. Identical runs: p = 1.
    """
    own = units.sums[units.sums != 0]
    if not len(own):
        return Chance(1.0, "exact")
    bar = abs(float(own.sum())) - units.rows  # each row was rounded by half a unit at most: near ties count as ties
    if len(own) <= _MAX_EXACT:
        return Chance(float((np.abs(_every_sign(len(own)) @ own) >= bar).mean()), "exact")
    if len(own) > MAX_BOOTSTRAP:
        score = abs(float(own.sum())) / math.sqrt(math.fsum((own**2).tolist()))
        return Chance(max(round12(math.erfc(score / math.sqrt(2))), _LEAST), "normal")
    total = float(own.sum())
    beyond = sum(int((np.abs(2 * (heads @ own) - total) >= bar).sum()) for heads in _tosses(len(own)))
    return Chance(round12((beyond + 1) / (FLIPS + 1)), "random")


def _every_sign(k: int) -> Floats:
    """All patterns of k signs, shape (2^k, k)."""
    patterns: Ints = np.arange(1 << k)[:, None] >> np.arange(k) & 1
    return patterns.astype(np.float64) * 2 - 1


def _tosses(k: int) -> Iterator[Floats]:
    """10,000 times k coins, 1 for heads, in chunks of 250: the bits of the raw stream, least significant first."""
    raw, words = np.random.PCG64(0), -(-k // 64)
    for _ in range(0, FLIPS, _CHUNK):
        bits = np.unpackbits(raw.random_raw(_CHUNK * words).astype("<u8").view(np.uint8), bitorder="little")
        yield bits.reshape(_CHUNK, words * 64)[:, :k].astype(np.float64)


def holm(family: Sequence[float | None]) -> list[float | None]:
    """p-values adjusted for being looked at together (Holm 1979), in the order given; None stays None and is not counted."""
    order = sorted((i for i, p in enumerate(family) if p is not None), key=lambda i: family[i] or 0.0)
    adjusted: list[float | None] = [None] * len(family)
    least = 0.0
    for place, i in enumerate(order):
        least = max(least, min(1.0, (family[i] or 0.0) * (len(order) - place)))
        adjusted[i] = round12(least)
    return adjusted
