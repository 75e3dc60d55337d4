"""Repeated runs of one system: how much every figure moves though nothing was changed, and how often a gate would flip."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import numpy as np

from tripos.across.cells import spread
from tripos.across.chosen import measures_for
from tripos.across.common import check_repeats
from tripos.across.compare import Request, compared_run, gate_of, measured
from tripos.across.sides import DEFINED, PASSED, Column, Side, averaged
from tripos.contracts.comparison import Flip, NoiseFloor, Repeats
from tripos.errors import UsageError
from tripos.fingerprint import round12
from tripos.measures.drops import Band
from tripos.measures.intervals import Z
from tripos.measures.paired import ALPHA, chance, mean_of, units_of


def repeats(side: Side, request: Request | None = None) -> Repeats:
    """What changes between runs of one system.

    Args:
        side: Two runs or more.
        request: Measures, cutoffs, and gates on a drop that are tried on every ordered pair of runs.

    Raises:
        UsageError: Fewer than two runs.
        NotComparable: They are not of one system and one set of judgments.
    """
    request = request or Request()
    if not side.is_repeated:
        raise UsageError("name two runs of one system or more: tripos aa RUN RUN …")
    check_repeats(side)
    names = measures_for(side, [], request.measures, request.cutoffs, [band.measure for band in request.bands])
    places = side.places(side.ids)
    columns = [run.figures(names) for run in side.runs]
    at = {name: [_taken(own[name], rows) for own, rows in zip(columns, places, strict=True)] for name in names}
    passed = np.array([run.passed[rows] for run, rows in zip(side.runs, places, strict=True)])
    changing = (passed != passed[0]).any(axis=0)
    return Repeats(
        layer=side.header.layer,
        run=compared_run(side),
        pairs=len(side.runs) * (len(side.runs) - 1) // 2,
        measures=tuple(_floor(name, own) for name, own in at.items()),
        flips=(*_thresholds(side), *(_drops(band, side, request) for band in request.bands)),
        changing=tuple(name for name, moves in zip(side.ids, changing.tolist(), strict=True) if moves),
        told=tuple(_told(side)),
    )


def _taken(column: Column, rows: np.typing.NDArray[np.int64]) -> Column:
    return Column(column.value[rows], column.state[rows])


def _floor(name: str, columns: Sequence[Column]) -> NoiseFloor:
    rows = averaged(columns).state == DEFINED
    values = np.array([column.value[rows] for column in columns])
    means = [mean for own in values if (mean := mean_of(own)) is not None]
    sd = spread(means)
    ps = [chance(units_of(one - other)).p for one, other in combinations(values, 2)] if means else []
    return NoiseFloor(
        measure=name,
        n=int(rows.sum()),
        mean=mean_of(np.array(means)),
        sd=sd,
        lowest=min(means, default=None),
        highest=max(means, default=None),
        changing=int((values != values[0]).any(axis=0).sum()),
        floor=None if sd is None else round12(Z * math.sqrt(2) * sd),
        alarms=sum(p <= ALPHA for p in ps),
    )


def _thresholds(side: Side) -> Iterator[Flip]:
    """The gates that the runs' own reports asked for."""
    outcomes: dict[str, list[bool]] = {}
    for run in side.runs:
        for gate in run.header.gates:
            if gate.asked:
                part = f" [{gate.slice}]" if gate.slice else ""
                label = f"{gate.name}{part} {'≥' if gate.bound == 'min' else '≤'} {gate.threshold:g}"
                outcomes.setdefault(label, []).append(gate.status == "passed")
    for label, own in outcomes.items():
        yield Flip(gate=label, trials=len(own), passed=sum(own), flips=len(set(own)) > 1)


def _drops(band: Band, side: Side, request: Request) -> Flip:
    """A gate on a drop, each run in turn being the baseline of each other."""
    own = []
    for base, other in permutations(side.runs, 2):
        pair = measured(Side("base", (base,)), Side("candidate", (other,)), request, [band.measure])
        own.append(gate_of(band, pair, request).status == "passed")
    part = f" [{'='.join(band.slice)}]" if band.slice else ""
    label = f"{band.name}{part} ≤ {band.most:g}"
    return Flip(gate=label, trials=len(own), passed=sum(own), flips=len(set(own)) > 1)


def _told(side: Side) -> Iterator[str]:
    distinct = {run.header.results_digest for run in side.runs}
    if len(distinct) == 1:
        yield "all runs gave the same results, byte for byte: the system repeats itself exactly, or one run is named twice"
    elif len(distinct) < len(side.runs):
        yield f"{len(side.runs)} runs, {len(distinct)} different results"
    if len(side.runs) < _FEW:
        yield f"a standard deviation from {len(side.runs)} runs is a rough one: name more"
    if any(bool((column.passed != PASSED).all()) for column in side.runs):
        yield "some run passes no query at all"


_FEW = 5
