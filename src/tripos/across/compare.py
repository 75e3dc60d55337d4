"""Runs against a base, over the same judgments: figures with their uncertainty, queries gained and lost, what else differs.

The steps, in order: refuse, choose, pair, measure, adjust, gate, tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tripos.across.cells import cell_of, judged_by, withheld
from tripos.across.chosen import measures_for
from tripos.across.common import Shared, shared
from tripos.across.pairs import Differences, Pairing, differences
from tripos.across.sides import FAILED, PASSED, UNDECIDED, Column, Side, settled
from tripos.contracts.base import shown
from tripos.contracts.comparison import Candidate, Cell, ComparedRun, Comparison, Difference
from tripos.contracts.reports import DropGate
from tripos.errors import NotComparable, suggest
from tripos.fingerprint import COMPONENT_NAMES, differing
from tripos.measures.drops import Band, Fall, Terms, beyond_proof, decide, direction
from tripos.measures.gates import verdict
from tripos.measures.paired import holm, mean_of, units_of
from tripos.measures.power import FLIPS_NEEDED, smallest_shown

RESTS_ON_SCORES = ("faithfulness", "qualified", "truthfulness")
"""Generation measures that are compared only where the scores were taken alike."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a comparison."""

    measures: tuple[str, ...] = ()
    cutoffs: tuple[int, ...] = ()
    bands: tuple[Band, ...] = ()
    confidence: float | None = None
    min_n: int = 1
    common_queries: bool = False
    rescored: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One candidate against the base, before p-values are adjusted."""

    side: Side
    pairing: Pairing
    shared: Shared
    found: dict[str, Differences]
    cells: list[Cell]


def compare(base: Side, candidates: Sequence[Side], request: Request | None = None) -> Comparison:
    """Compare runs of one layer with a base.

    Args:
        base: What the others are held against.
        candidates: One or more sides; a side of several runs is their mean.
        request: Measures, cutoffs, gates, and which rows may be compared.

    Raises:
        NotComparable: Another layer, other judgments, or repeats of different systems.
        ConfigError: A measure or a cutoff that is not there.
        UsageError: A measure that is no mean over rows.
    """
    request = request or Request()
    for side in candidates:
        _refuse(base, side)
    names = measures_for(base, candidates, request.measures, request.cutoffs, [band.measure for band in request.bands])
    several = [measured(base, side, request, names) for side in candidates]
    cells = _adjusted([one.cells for one in several])
    gates = [[gate_of(band, one, request) for band in request.bands] for one in several]
    compared = [_candidate(*parts) for parts in zip(several, cells, gates, strict=True)]
    return Comparison(
        layer=base.header.layer,
        basis="rescored" if request.rescored else "common queries" if request.common_queries else "same judgments",
        judgments_digest=None if request.common_queries else base.header.judgments_digest,
        passes=_passes(base, several),
        base=compared_run(base),
        candidates=tuple(compared),
        family=sum(cell.p is not None for own in cells for cell in own),
        told=tuple(
            dict.fromkeys(line for one, own in zip(several, compared, strict=True) for line in _told(one, own, request))
        ),
        verdict=verdict([gate for own in gates for gate in own]),
    )


def compared_run(side: Side) -> ComparedRun:
    """One side as a comparison names it."""
    own = side.header
    return ComparedRun(
        given=side.given,
        name=own.name,
        runs=tuple(run.header.run_id for run in side.runs),
        configuration=own.configuration,
        measurement=own.measurement,
        scored=len(side.ids),
        incomplete=len({name for run in side.runs for name, ok in zip(run.ids, run.complete, strict=True) if not ok}),
    )


def _refuse(base: Side, side: Side) -> None:
    """Raise NotComparable for runs of two layers."""
    if base.header.layer != side.header.layer:
        text = f"{base.given} is a {base.header.layer} run, {side.given} a {side.header.layer} run: never across layers"
        raise NotComparable(text)


def measured(base: Side, side: Side, request: Request, names: Sequence[str]) -> Measured:
    """One candidate against the base; raises NotComparable for other judgments, or without a query in common."""
    own = shared(base, side, common_queries=request.common_queries)
    pairing = Pairing(base, side, own.ids)
    hidden = RESTS_ON_SCORES if _scored_otherwise(base, side) else ()
    columns = pairing.columns([name for name in names if name not in hidden])
    found = {name: differences(name, *columns[name], pairing) for name in columns}
    cells = [withheld(name, side) if name in hidden else cell_of(name, found[name], columns[name], pairing) for name in names]
    return Measured(side, pairing, own, found, cells)


def _scored_otherwise(base: Side, side: Side) -> bool:
    """Whether faithfulness was taken, or judged against a target, in another way."""
    if base.header.layer != "generation":
        return False
    targets = [run.header.settings.get("targets", {}).get("faithfulness") for run in (*base.runs, *side.runs)]
    return len({run.header.measurement for run in (*base.runs, *side.runs)}) > 1 or len(set(targets)) > 1


def _adjusted(cells: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """The cells of all candidates as one family; the base's own figures are no cells, and so not in it."""
    adjusted = iter(holm([cell.p for own in cells for cell in own]))
    return [[judged_by(cell, next(adjusted)) for cell in own] for own in cells]


def _candidate(one: Measured, cells: Sequence[Cell], gates: Sequence[DropGate]) -> Candidate:
    before, after = verdicts(one)
    names = np.array(one.pairing.ids, dtype=object)
    return Candidate(
        run=compared_run(one.side),
        paired=len(names),
        alone={reason: tuple(own) for reason, own in one.shared.alone.items() if own},
        differs=tuple(_differs(one.pairing.base, one.side)),
        cells=tuple(cells),
        gained=tuple(names[(before == FAILED) & (after == PASSED)]),
        lost=tuple(names[(before == PASSED) & (after == FAILED)]),
        undecided=int(((before == UNDECIDED) | (after == UNDECIDED)).sum()),
        gates=tuple(gates),
    )


def verdicts(one: Measured) -> tuple[Any, Any]:
    """Whether each common query passes, in the base and in the candidate."""
    sides = zip((one.pairing.base, one.side), one.pairing.places, strict=True)
    if _scored_otherwise(one.pairing.base, one.side):
        columns = [
            [_at(run.figures(["all_requirements"])["all_requirements"], at) for run, at in _rows(s, p)] for s, p in sides
        ]
    else:
        columns = [[run.passed[at] for run, at in _rows(side, places)] for side, places in sides]
    return settled(columns[0]), settled(columns[1])


def _rows(side: Side, places: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(side.runs, places, strict=True)


def _at(column: Column, places: Any) -> Any:
    defined = column.state[places] == 0
    return np.where(defined, np.where(column.value[places] > 0, PASSED, FAILED), UNDECIDED)


def _differs(base: Side, side: Side) -> Iterator[Difference]:
    """A to D field by field, then how and by whom; of repeats, the first run."""
    one, other = base.header, side.header
    for letter, name in COMPONENT_NAMES.items():
        for key, ours, theirs in differing(one.components[letter], other.components[letter]):
            yield Difference(component=f"{letter} {name}", field=key, base=ours, value=theirs)
    for key in sorted({*one.settings, *other.settings}):
        before, after = (_flat(own.settings.get(key)) for own in (one, other))
        for inner in sorted({*before, *after}):
            if before.get(inner) != after.get(inner):
                told = [shown(own[inner]) if inner in own else "not stated" for own in (before, after)]
                yield Difference(component=key, field=inner, base=told[0], value=told[1])


def _flat(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {} if value is None else {"": value}


def gate_of(band: Band, one: Measured, request: Request) -> DropGate:
    """What becomes of one gate."""
    terms = Terms(one.pairing.base.header.run_id, request.confidence, request.min_n)
    near = ""
    if band.slice is not None and one.pairing.rows_of(*band.slice) is None:
        near = suggest("=".join(band.slice), one.pairing.base.runs[0].slices())
    return decide(band, _fall(band, one), terms, near)


def _fall(band: Band, one: Measured) -> Fall | None:
    """What a gate reads: the differences of its slice, incomplete rows at their bad end."""
    if band.measure not in one.found:
        return None
    found = one.found[band.measure]
    if band.slice is not None:
        rows = one.pairing.rows_of(*band.slice)
        if rows is None:
            return None
        found = found.within(rows)
    return Fall(
        worst=found.worst,
        clusters=one.pairing.clusters_at(found.worst_rows),
        value=mean_of(found.difference),
        sign=direction(found.measure.direction),
        zero_one=found.zero_one,
        incomplete=len(found.worst) - len(found.rows),
        same_results=_same_results(one),
    )


def _same_results(one: Measured) -> bool:
    return {run.header.results_digest for run in (*one.pairing.base.runs, *one.side.runs)} == {one.side.header.results_digest}


def _passes(base: Side, measured: Sequence[Measured]) -> str:
    match base.header.layer:
        case "retrieval":
            depths = sorted({base.header.top_k, *(one.side.header.top_k for one in measured)})
            own = "" if len(depths) == 1 else ", each run at its own top K"
            return (
                f"an expected source within the top {' or '.join(map(str, depths))}{own}; nothing left where none is expected"
            )
        case "generation":
            if any(_scored_otherwise(base, one.side) for one in measured):
                return "every requirement met (faithfulness was not measured alike)"
            return "a qualified answer, or a right abstention"
        case _:
            return "no reason to be a miss"


def _told(one: Measured, own: Candidate, request: Request) -> Iterator[str]:
    base, side = one.pairing.base.header, one.side.header
    where = f"{one.side.given}: "
    yield from (f"{run.given}: {line}" for run in (one.pairing.base, one.side) for own_run in run.runs for line in own_run.told)
    for given, header in ((one.pairing.base.given, base), (one.side.given, side)):
        yield from (f"{given} is exploratory, {reason}" for reason in header.exploratory)
    if _same_results(one):
        yield f"{where}the results are those of the base, byte for byte"
    if base.measurement != side.measurement:
        yield f"{where}the figures were not taken alike (measurement fingerprints differ)"
    if few := [cell.measure for cell in own.cells if 0 < cell.up + cell.down < FLIPS_NEEDED]:
        yield f"{where}fewer than {FLIPS_NEEDED} rows changed in {', '.join(few)}: intervals over so few are too narrow, read p"
    if one.pairing.base.is_repeated != one.side.is_repeated:
        yield f"{where}one side has one run: how much runs differ by themselves is not known of it"
    for band, gate in zip(request.bands, own.gates, strict=True):
        if gate.status == "vacuous":
            continue
        found = one.found[band.measure]
        rows = one.pairing.rows_of(*band.slice) if band.slice else None
        found = found if rows is None else found.within(rows)
        units = units_of(found.worst, one.pairing.clusters_at(found.worst_rows))
        could_see = smallest_shown(units, zero_one=found.zero_one)
        what = "rows" if len(units) == len(found.worst) else "clusters of rows"
        if text := beyond_proof(band, len(units), request.confidence, could_see, zero_one=found.zero_one, what=what):
            yield text
