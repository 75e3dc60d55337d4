"""What compare tells: two or more runs over the same judgments, figure by figure and query by query."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tripos.contracts.base import Contract, Listed
from tripos.contracts.explanation import Layer
from tripos.contracts.reports import DropGate, Interval, Verdict

Direction = Literal["better", "worse", "no difference seen", "undefined"]
Basis = Literal["same judgments", "common queries", "rescored"]


class ComparedRun(Contract):
    """One side: a run, or several runs of one system (repeats)."""

    given: str = Field(description="As it was named on the command line.")
    name: str = Field(description="Name of the system or corpus, as on its report.")
    runs: Listed[str] = Field(description="run_id of each repeat.")
    configuration: str | None = Field(description="Fingerprint of A–D; null where the report is unbound.")
    measurement: str = Field(description="Fingerprint of how the numbers were taken.")
    scored: int = Field(description="Scored rows.")
    incomplete: int = Field(description="Scored rows without a usable result in at least one repeat.")


class Noise(Contract):
    """How much runs of one system differ among themselves, apart from which queries were asked."""

    base_sd: float | None = Field(description="Standard deviation of the figure between the base's repeats; null: one run.")
    sd: float | None = Field(description="The same of the candidate's.")
    of_difference: float | None = Field(
        description="Standard error that this adds to the difference; null: a side has one run."
    )


class Cell(Contract):
    """One measure, candidate against base, over the rows on which both have a value."""

    measure: str
    better: Literal["higher", "lower"]
    base: float | None = Field(description="Mean over the paired rows.")
    value: float | None
    difference: float | None = Field(description="value less base.")
    undefined: str | None = Field(description="Why there is no difference; null where there is one.")
    ci: Interval | None
    p: float | None = Field(description="Two-sided sign-flip randomisation p.")
    p_method: Literal["exact", "random", "normal"] | None
    p_holm: float | None = Field(description="Adjusted for all cells of this comparison (Holm).")
    n: int = Field(description="Paired rows.")
    units: int = Field(description="What was resampled and flipped: rows, or whole clusters of them.")
    up: int = Field(description="Paired rows whose value is higher here.")
    down: int = Field(description="Paired rows whose value is lower here.")
    left_out: dict[str, int] = Field(description="Rows of the measure that are not paired, by reason.")
    worst: float | None = Field(
        description="The difference with rows that one side alone has no result for, each at the end bad for the candidate."
    )
    could_see: float | None = Field(description="Smallest true difference that these rows show four times in five.")
    verdict: Direction = Field(description="By p_holm, at .05; with repeats the difference must exceed 1.96 of its noise, too.")
    noise: Noise | None = Field(description="Where a side has repeats.")


class Difference(Contract):
    """One field in which two configurations differ."""

    component: str = Field(description="A corpus, B judgments, C search policy, D evidence depth, or what else differs.")
    field: str
    base: str
    value: str


class Candidate(Contract):
    """One run against the base."""

    run: ComparedRun
    paired: int = Field(description="Queries scored in both.")
    alone: dict[str, Listed[str]] = Field(description="Queries that are not compared, by reason; with --common-queries.")
    differs: Listed[Difference]
    cells: Listed[Cell]
    gained: Listed[str] = Field(description="Queries that fail in the base and pass here.")
    lost: Listed[str] = Field(description="Queries that pass in the base and fail here.")
    undecided: int = Field(description="Queries that at least one side has no verdict on.")
    gates: Listed[DropGate]


class Comparison(Contract):
    """Runs of one layer over the same judgments."""

    contract: Literal["tripos/comparison@1"] = "tripos/comparison@1"
    layer: Layer
    basis: Basis = Field(description="Why the rows may be compared.")
    judgments_digest: str | None = Field(description="Of the judgments that both were scored by; null: common queries.")
    passes: str = Field(description="What a query must do to pass, for gained and lost.")
    base: ComparedRun
    candidates: Listed[Candidate]
    family: int = Field(description="Cells that Holm's adjustment is over.")
    told: Listed[str] = Field(description="What a reader should know.")
    verdict: Verdict


class Flip(Contract):
    """One gate over repeated runs of one system."""

    gate: str
    trials: int = Field(description="Runs, or ordered pairs of runs for a gate on a drop.")
    passed: int
    flips: bool = Field(description="Whether it passes in some and fails in others.")


class NoiseFloor(Contract):
    """One measure over repeated runs."""

    measure: str
    n: int = Field(description="Rows with a value in every run.")
    mean: float | None
    sd: float | None = Field(description="Standard deviation of the figure between runs.")
    lowest: float | None
    highest: float | None
    changing: int = Field(description="Rows whose value is not the same in every run.")
    floor: float | None = Field(
        description="Difference that two single runs of the same system exceed once in twenty: 1.96 · sd · √2."
    )
    alarms: int = Field(description="Pairs of runs whose p is .05 or less, though they are the same system.")


class Repeats(Contract):
    """Repeated runs of one system: what changes though nothing was changed."""

    contract: Literal["tripos/repeats@1"] = "tripos/repeats@1"
    layer: Layer
    run: ComparedRun
    pairs: int = Field(description="Pairs of runs.")
    measures: Listed[NoiseFloor]
    flips: Listed[Flip]
    changing: Listed[str] = Field(description="Queries that pass in some runs and fail in others.")
    told: Listed[str]


class Reach(Contract):
    """What the rows of one measure can show."""

    measure: str
    n: int
    units: int = Field(description="Rows, or whole clusters of them.")
    sd: float | None = Field(description="Standard deviation of the row differences, measured or assumed.")
    could_see: float | None = Field(description="Smallest true difference that is shown four times in five.")
    at_least: float | None = Field(
        description="Drop below which no outcome is evidence: six rows lost, none won; null: no bound."
    )
    rows_needed: dict[str, int] = Field(description="Rows to show each drop asked for, four times in five.")
    rows_to_exclude: dict[str, int] = Field(description="Rows with which a gate with --confidence 0.95 could ever pass.")


class Power(Contract):
    """What a golden set can show, and what a gate would need."""

    contract: Literal["tripos/power@1"] = "tripos/power@1"
    layer: Layer
    source: Literal["golden set", "one run", "two runs"]
    assumed: str = Field(description="Where the spread of the differences comes from.")
    measures: Listed[Reach]
