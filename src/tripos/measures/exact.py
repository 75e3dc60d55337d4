"""Sums that come out the same in any order and any split: integers in units of 2^-64."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

_HALF = 2.0**32
UNITS = 1 << 64
"""In one: what sums are whole multiples of."""


def halves(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Values in units of 2^-64, their high and low 32 bits: value = (high · 2^32 + low) / 2^64."""
    scaled = values * _HALF
    high = np.floor(scaled)
    return high.astype(np.int64), np.rint((scaled - high) * _HALF).astype(np.int64)


class ExactSum:
    """A sum of values in [0, 1], or of counts, over the first axis; one sum for each column.

    Each value is split into two 32-bit halves, which are summed as 64-bit integers: exact up to 2^31 rows. Values below
    2^-11 are first rounded to a multiple of 2^-64.
    """

    def __init__(self, width: int) -> None:
        self.high = np.zeros(width, dtype=np.int64)
        self.low = np.zeros(width, dtype=np.int64)

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Add rows of shape (n, width)."""
        high, low = halves(values)
        self.high += high.sum(axis=0)
        self.low += low.sum(axis=0)

    def units(self) -> list[int]:
        """The exact sums in units of 2^-64."""
        return joined(self.high, self.low)

    def totals(self) -> list[Fraction]:
        """The exact sums."""
        return [Fraction(total, UNITS) for total in self.units()]


def joined(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64]) -> list[int]:
    """Sums of high and of low halves as whole numbers."""
    return [(above << 32) + below for above, below in zip(high.tolist(), low.tolist(), strict=True)]
