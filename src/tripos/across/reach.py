"""What a golden set can show, and what a gate would need: from the judgments alone, from one run, or from two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tripos.across.chosen import CURVES, SINGLES, comparable, measures_for
from tripos.across.compare import Request, measured
from tripos.across.sides import DEFINED, Side, record_of
from tripos.columns.groups import Sliceable, clusters_of
from tripos.contracts.comparison import Power, Reach
from tripos.contracts.corpus import CorpusJudgment
from tripos.contracts.explanation import Layer
from tripos.contracts.generation import GenerationJudgment
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, NothingToEvaluate
from tripos.files.jsonl import read_rows
from tripos.fingerprint import round12
from tripos.measures.paired import Floats, Ints, standard_error, units_of
from tripos.measures.power import FLIPS_NEEDED, rows_needed, rows_to_exclude, shown_by

CONFIDENCE = 0.95
TYPICAL = round12(math.sqrt(0.1))
"""Standard deviation of differences of 0 and 1 when one row in ten changes."""

Golden = RetrievalJudgment | GenerationJudgment | CorpusJudgment


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is asked, and what is supposed where nothing measured says.

    sd: standard deviation of row differences, where only judgments are there. correlation: between two runs' values on a row,
    where one run is there: sd · √(2 (1 − r)).
    """

    drops: tuple[float, ...] = (0.02, 0.05)
    measures: tuple[str, ...] = ()
    cutoffs: tuple[int, ...] = ()
    sd: float = TYPICAL
    correlation: float = 0.5


def of_golden(path: str, layer: Layer, asked: Assumed) -> Power:
    """From the judgments alone: how many rows each measure has; how far they spread is supposed.

    Raises InputError for rows that break their contract, NothingToEvaluate where none is reviewed.
    """
    findings = Findings()
    rows = sorted(_read(path, layer, findings), key=lambda row: row.query_id)
    findings.raise_errors()
    scored = [row for row in rows if row.review_status == "reviewed" and getattr(row, "category", None) != "calibration"]
    if not scored:
        raise NothingToEvaluate(f"{path}: no row is reviewed (review_status: reviewed)")
    usual = [*(f"{name}@{k}" for name in CURVES for k in asked.cutoffs or (10,) if layer == "retrieval"), *SINGLES[layer]]
    names = [comparable(name, layer, 100_000) for name in asked.measures or usual]
    reaches = []
    for name in names:
        record = record_of(name, layer)
        own = [row for row in scored if _belongs(row, record.population)]
        shape = Shape(name, len(own), _units(own), asked.sd, record.proportion)
        reaches.append(shape.reach(asked.drops))
    told = f"sd of row differences {asked.sd:.3g} supposed (--sd): one row of 0 or 1 in {1 / asked.sd**2:.3g} changes"
    return Power(layer=layer, source="golden set", assumed=told, measures=tuple(one for one in reaches if one.n))


def _read(path: str, layer: Layer, findings: Findings) -> Iterator[Golden]:
    match layer:
        case "retrieval":
            yield from (row for _, row in read_rows(path, RetrievalJudgment, findings))
        case "generation":
            yield from (row for _, row in read_rows(path, GenerationJudgment, findings))
        case "corpus":
            yield from (row for _, row in read_rows(path, CorpusJudgment, findings))


def _belongs(row: Golden, population: str) -> bool:
    """Whether a row is in a measure's population, as far as the judgment alone tells."""
    should: object = row.expected_answerable if isinstance(row, GenerationJudgment) else row.should_match
    if population == "scored":
        return should != "partial"
    return should is (population not in ("expected_empty", "unanswerable"))


def _units(rows: Sequence[Sliceable]) -> int:
    clusters = clusters_of(rows)
    return len(rows) if clusters is None else len(np.unique(clusters))


def of_run(side: Side, asked: Assumed) -> Power:
    """From one run: its own spread, and a supposed correlation with the run that it will be held against."""
    names = measures_for(side, [], asked.measures, asked.cutoffs)
    run, factor = side.runs[0], math.sqrt(2 * (1 - asked.correlation))
    columns, clusters = run.figures(names), clusters_of(run.judged)
    shapes = []
    for name in names:
        rows = np.flatnonzero(columns[name].state == DEFINED)
        shapes.append(_shape(name, columns[name].value[rows], None if clusters is None else clusters[rows], factor))
    told = f"sd of row differences from this run's own, correlation {asked.correlation:g} supposed (--correlation)"
    reaches = tuple(shape.reach(asked.drops) for shape in shapes)
    return Power(layer=side.header.layer, source="one run", assumed=told, measures=reaches)


def of_two(base: Side, side: Side, asked: Assumed) -> Power:
    """From two runs: the spread that their differences have."""
    names = measures_for(base, [side], asked.measures, asked.cutoffs)
    pair = measured(base, side, Request(), names)
    shapes = [
        _shape(name, found.difference, pair.pairing.clusters_at(found.rows), 1.0, zero_one=found.zero_one)
        for name, found in pair.found.items()
    ]
    reaches = tuple(shape.reach(asked.drops) for shape in shapes)
    told = "sd of row differences as these two runs have it"
    return Power(layer=base.header.layer, source="two runs", assumed=told, measures=reaches)


def _shape(name: str, values: Floats, clusters: Ints | None, factor: float, *, zero_one: bool | None = None) -> Shape:
    """n, units and spread; the spread is per unit, so that clusters of alike rows count as the few that they are."""
    units = units_of(values, clusters)
    error = standard_error(units)
    sd = None if error is None else round12(error * math.sqrt(len(units)) * factor)
    is_binary = bool(np.isin(values, (0.0, 1.0)).all()) if zero_one is None else zero_one
    return Shape(name, len(values), len(units), sd, is_binary)


@dataclass(frozen=True, slots=True)
class Shape:
    """One measure's rows, and how far their differences spread."""

    name: str
    n: int
    units: int
    sd: float | None
    zero_one: bool

    def reach(self, drops: Sequence[float]) -> Reach:
        """What they can show."""
        return Reach(
            measure=self.name,
            n=self.n,
            units=self.units,
            sd=self.sd,
            could_see=None if self.sd is None else shown_by(self.units, self.sd, zero_one=self.zero_one),
            at_least=round12(FLIPS_NEEDED / self.units) if self.zero_one and self.units >= FLIPS_NEEDED else None,
            rows_needed={f"{drop:g}": self._needed(drop) for drop in drops if self.sd is not None},
            rows_to_exclude={f"{drop:g}": rows_to_exclude(drop, CONFIDENCE) for drop in drops} if self.zero_one else {},
        )

    def _needed(self, drop: float) -> int:
        return rows_needed(drop, self.sd or 0.0, zero_one=self.zero_one)
