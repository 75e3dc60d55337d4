"""What a number of rows can show: the smallest difference, the rows that a gate would need, and what no run could prove."""

from __future__ import annotations

import math
from statistics import NormalDist

from tripos.fingerprint import round12
from tripos.measures.paired import ALPHA, Units, standard_error

POWER = 0.8
FLIPS_NEEDED = math.ceil(math.log2(2 / ALPHA))
"""Rows that must change, all one way, before a two-sided sign-flip test says anything: 2 · 2^-6 = .031, 2 · 2^-5 = .063."""


def t_quantile(q: float, degrees: int) -> float:
    """The q-quantile of Student's t, by the Cornish–Fisher expansion (Abramowitz and Stegun 1964, 26.7.5).

    Within 1 % from three degrees of freedom on, at the tails used here; the normal quantile in the limit.
    """
    z, v = NormalDist().inv_cdf(q), degrees
    terms = (
        z,
        (z**3 + z) / (4 * v),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3),
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4),
    )
    return math.fsum(terms)


def smallest_shown(units: Units, *, zero_one: bool) -> float | None:
    """The smallest true difference that a run as spread as this one shows four times in five, at two-sided 5 %.

    (t(.975) + t(.8)) · standard error, u − 1 degrees of freedom (Cohen 1988; for search, Sakai 2016).

    Args:
        units: The paired differences.
        zero_one: Whether each row is 0 or 1; then no difference below 6 / n is evidence, however alike the rows.

    Returns:
        None with fewer than four units, or where nothing differs and rows are no 0 or 1: no spread to reckon with.
    """
    error = standard_error(units)
    if error is None or len(units) < 4:
        return None
    least = FLIPS_NEEDED / len(units) if zero_one else 0.0
    shown = max(error * _reach(len(units)), least)
    return round12(shown) if 0 < shown <= 1 else None


def _reach(n: int) -> float:
    """How many standard errors off a true difference must lie."""
    return t_quantile(1 - ALPHA / 2, n - 1) + t_quantile(POWER, n - 1)


def shown_by(n: int, sd: float, *, zero_one: bool) -> float | None:
    """The same, from the standard deviation that row differences are expected to have."""
    if n < 4:
        return None
    shown = max(sd / math.sqrt(n) * _reach(n), FLIPS_NEEDED / n if zero_one else 0.0)
    return round12(shown) if 0 < shown <= 1 else None


def rows_needed(drop: float, sd: float, *, zero_one: bool) -> int:
    """Rows with which a true drop is shown four times in five: the smallest n whose smallest shown difference is within it.

    Args:
        drop: The difference to show, above 0.
        sd: Standard deviation of the row differences.
        zero_one: Whether each row is 0 or 1.
    """
    z = NormalDist()
    n = max(4, math.ceil(((z.inv_cdf(1 - ALPHA / 2) + z.inv_cdf(POWER)) * sd / drop) ** 2))
    n = max(n, math.ceil(round(FLIPS_NEEDED / drop, 9)) if zero_one else 0)
    while sd / math.sqrt(n) * _reach(n) > drop:
        n += 1
    return n


def can_ever_show(n: int, drop: float) -> bool:
    """Whether n rows of 0 or 1 could ever show a drop this small: six rows lost and none won must not be more than it."""
    return round(n * drop, 9) >= FLIPS_NEEDED


def never_excluded(n: int, confidence: float) -> float:
    """The drop that n rows of 0 or 1 cannot exclude even when not one of them changes: z² / (n + z²).

    The lower end of the score interval for paired proportions without discordant pairs (Tango 1998). A bootstrap of rows
    that are all alike would call any drop excluded.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return round12(z * z / (n + z * z))


def rows_to_exclude(drop: float, confidence: float) -> int:
    """The fewest rows of 0 or 1 that can exclude a drop: none of them may change."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return math.ceil(z * z * (1 - drop) / drop)
