"""Sums that come out the same in any order and any split: integers in units of 2^-64."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

_HALF = 2.0**32


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
        scaled = values * _HALF
        high = np.floor(scaled)
        self.high += high.astype(np.int64).sum(axis=0)
        self.low += np.rint((scaled - high) * _HALF).astype(np.int64).sum(axis=0)

    def totals(self) -> list[Fraction]:
        """The exact sums."""
        pairs = zip(self.high.tolist(), self.low.tolist(), strict=True)
        return [Fraction((high << 32) + low, 1 << 64) for high, low in pairs]
