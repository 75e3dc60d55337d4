"""One measure of one candidate against the base, with everything that says how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tripos.across.pairs import Differences, Pairing
from tripos.across.sides import Column, Side, record_of
from tripos.contracts.comparison import Cell, Noise
from tripos.fingerprint import round12
from tripos.measures.intervals import Z
from tripos.measures.paired import ALPHA, Ints, chance, interval, mean_of, units_of
from tripos.measures.power import smallest_shown

Columns = tuple[Sequence[Column], Sequence[Column]]


def cell_of(name: str, found: Differences, columns: Columns, pairing: Pairing) -> Cell:
    """A measure over the paired rows; its p is not adjusted yet, and so it has no verdict."""
    units = units_of(found.difference, pairing.clusters_at(found.rows))
    by_chance = chance(units) if len(found.rows) else None
    return Cell(
        measure=name,
        better=found.measure.direction,
        base=mean_of(found.base),
        value=mean_of(found.value),
        difference=mean_of(found.difference),
        undefined=None if len(found.rows) else "no row has the measure in both runs",
        ci=interval(units) if len(found.rows) else None,
        p=by_chance.p if by_chance else None,
        p_method=by_chance.method if by_chance else None,
        p_holm=None,
        n=len(found.rows),
        units=len(units),
        up=int((found.difference > 0).sum()),
        down=int((found.difference < 0).sum()),
        left_out=dict(found.left_out),
        worst=mean_of(found.worst),
        could_see=smallest_shown(units, zero_one=found.zero_one) if len(found.rows) else None,
        verdict="undefined",
        noise=noise(columns, found.rows),
    )


def withheld(name: str, side: Side) -> Cell:
    """A measure of which no number is given: it was not measured alike."""
    return Cell(
        measure=name,
        better=record_of(name, side.header.layer).direction,
        base=None,
        value=None,
        difference=None,
        undefined="not measured alike: measurement fingerprints or faithfulness targets differ",
        ci=None,
        p=None,
        p_method=None,
        p_holm=None,
        n=0,
        units=0,
        up=0,
        down=0,
        left_out={},
        worst=None,
        could_see=None,
        verdict="undefined",
        noise=None,
    )


def judged_by(cell: Cell, p_holm: float | None) -> Cell:
    """The cell with its adjusted p and what it comes to."""
    if p_holm is None or cell.difference is None:
        return cell
    beyond_noise = cell.noise is None or abs(cell.difference) > Z * (cell.noise.of_difference or 0.0)
    if p_holm > ALPHA or not beyond_noise:
        return cell.model_copy(update={"p_holm": p_holm, "verdict": "no difference seen"})
    is_better = (cell.difference > 0) == (cell.better == "higher")
    return cell.model_copy(update={"p_holm": p_holm, "verdict": "better" if is_better else "worse"})


def noise(columns: Columns, rows: Ints) -> Noise | None:
    """How far repeats of each side lie apart over the same rows; None where neither side has any."""
    sides = [[mean_of(column.value[rows]) for column in own] for own in columns]
    if not len(rows) or max(map(len, sides)) == 1:
        return None
    one, other = (spread([mean for mean in own if mean is not None]) for own in sides)
    both = None
    if one is not None and other is not None:
        both = round12(math.sqrt(one**2 / len(sides[0]) + other**2 / len(sides[1])))
    return Noise(base_sd=one, sd=other, of_difference=both)


def spread(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample; None of fewer than two values."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return round12(math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)))
