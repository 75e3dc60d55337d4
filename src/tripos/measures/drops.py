"""Gates on a drop against a baseline: what they ask, what becomes of them, and which could never be proven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tripos.contracts.reports import DropGate
from tripos.fingerprint import round12
from tripos.measures.paired import Floats, Ints, interval, mean_of, units_of
from tripos.measures.power import FLIPS_NEEDED, can_ever_show, never_excluded, rows_to_exclude

Status = Literal["passed", "failed", "vacuous", "inconclusive"]
SLACK = 1e-9
"""A drop of .02 that was computed as .020000000000000018 is one of .02."""


class Band(NamedTuple):
    """How far a measure may drop: over all rows, or over one slice."""

    measure: str
    most: float
    slice: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """As gates are named."""
        return f"max-drop {self.measure}"


@dataclass(frozen=True, slots=True)
class Fall:
    """What a gate on a drop reads, over the rows of its slice.

    worst and clusters: differences, candidate less base, with incomplete rows at their bad end; shape (n,). value: the mean
    difference over complete rows. sign: 1 where higher is better, −1 where lower is.
    """

    worst: Floats
    clusters: Ints | None
    value: float | None
    sign: int
    zero_one: bool
    incomplete: int
    same_results: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """What all gates of a comparison share."""

    baseline: str
    confidence: float | None = None
    min_n: int = 1


def decide(band: Band, fall: Fall | None, terms: Terms, near: str = "") -> DropGate:
    """What becomes of a gate; one that cannot be computed fails.

    Args:
        band: What it asks.
        fall: What it reads; None: no row of its slice is in both runs.
        terms: Baseline, confidence and least number of rows.
        near: The slice that may be meant, where the one named has no row.
    """
    if fall is None or not len(fall.worst):
        where = f" of {'='.join(band.slice)}" if band.slice else ""
        return _gate(band, terms, "vacuous", f"no row{where} has the measure in both runs{near}")
    if len(fall.worst) < terms.min_n:
        return _gate(band, terms, "vacuous", f"{len(fall.worst)} rows: fewer than --min-n {terms.min_n}")
    drop = round12(-fall.sign * (mean_of(fall.worst) or 0.0))
    if terms.confidence is None:
        return _by_figure(band, fall, terms, drop)
    return _by_interval(band, fall, terms, drop)


def _by_figure(band: Band, fall: Fall, terms: Terms, drop: float) -> DropGate:
    if drop <= band.most + SLACK:
        return _gate(band, terms, "passed", moved(drop, fall.sign), drop)
    known = None if fall.value is None else -fall.sign * fall.value
    if fall.incomplete and (known is None or known <= band.most + SLACK):
        rows = f"{fall.incomplete} row{'' if fall.incomplete == 1 else 's'} without a result in one run"
        return _gate(band, terms, "inconclusive", f"{moved(drop, fall.sign)}, if {rows} came out badly", drop)
    return _gate(band, terms, "failed", moved(drop, fall.sign), drop)


def _by_interval(band: Band, fall: Fall, terms: Terms, drop: float) -> DropGate:
    """The interval must lie above −most; of rows of 0 or 1 that are all alike it says less than a bootstrap would."""
    assert terms.confidence is not None
    units = units_of(fall.sign * fall.worst, fall.clusters)
    found = interval(units, terms.confidence)
    if found is None:
        return _gate(band, terms, "vacuous", "fewer than two rows or clusters: no interval", drop)
    could_be = -found.low
    if fall.zero_one and not fall.same_results:
        could_be = max(could_be, never_excluded(len(units), terms.confidence))
    could_be = round12(could_be)
    level = f"{terms.confidence:.0%}"
    if could_be <= band.most + SLACK:
        return _gate(
            band, terms, "passed", f"{moved(drop, fall.sign)}; at {level} not more than {could_be:.3g}", drop, could_be=could_be
        )
    return _gate(
        band, terms, "failed", f"{moved(drop, fall.sign)}; at {level} it could be {could_be:.3g}", drop, could_be=could_be
    )


def moved(drop: float, sign: int = 1) -> str:
    """How a figure moved, in words; `sign` is −1 where the drop of a measure to keep low is its rise."""
    change = -sign * drop
    return f"fell by {-change:.3g}" if change < 0 else f"rose by {change:.3g}" if change > 0 else "did not move"


def _gate(
    band: Band, terms: Terms, status: Status, because: str, drop: float | None = None, *, could_be: float | None = None
) -> DropGate:
    return DropGate(
        name=band.name,
        bound="max",
        threshold=band.most,
        value=drop,
        status=status,
        because=because,
        asked=True,
        slice="=".join(band.slice) if band.slice else None,
        baseline=terms.baseline,
        confidence=terms.confidence,
        could_be=could_be,
    )


def beyond_proof(
    band: Band, n: int, confidence: float | None, could_see: float | None, *, zero_one: bool, what: str = "rows"
) -> str | None:
    """What to say of a gate that this many rows could never prove, or hardly could; None where they can.

    Args:
        band: The gate.
        n: Its rows, or clusters of them.
        confidence: The level at which an interval must show it; None: the figure alone decides.
        could_see: The smallest difference that the rows show four times in five.
        zero_one: Whether each row is 0 or 1.
        what: What is counted.
    """
    name = f"{band.name} ≤ {band.most:g}" + (f" [{'='.join(band.slice)}]" if band.slice else "")
    if zero_one and confidence is not None and never_excluded(n, confidence) > band.most:
        need = rows_to_exclude(band.most, confidence) if band.most else None
        wanted = f": it takes {need:,}, none of them lost" if need else ""
        return f"{name}: {n} {what} can never exclude a drop of {band.most:g} at {confidence:.0%}{wanted}"
    if zero_one and confidence is None and not can_ever_show(n, band.most):
        least = f"{FLIPS_NEEDED} lost and none won are the least evidence there is"
        return f"{name}: {n} {what} can never show a drop of {band.most:g}: {least}" + (
            f", a drop of {FLIPS_NEEDED / n:.3g}" if n >= FLIPS_NEEDED else ""
        )
    if could_see is not None and could_see > band.most:
        return f"{name}: {n} {what} show drops from {could_see:.3g} on, four times in five; smaller ones pass or fail by chance"
    return None


def direction(better: str) -> int:
    """1 where higher is better, −1 where lower is."""
    return 1 if better == "higher" else -1
