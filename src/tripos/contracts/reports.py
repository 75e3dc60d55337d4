"""report.json: what an evaluation found, bound to the configuration it was measured under."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tripos.contracts.base import Contract, Listed


class Interval(Contract):
    """A 95 % confidence interval and how it was made."""

    low: float
    high: float
    method: Literal["wilson", "bootstrap", "normal"]


class Aggregate(Contract):
    """One figure over the rows it is defined on.

    `value` leaves incomplete rows out; `worst` puts each at its bad end. Where `value` is null, `undefined` says why.
    """

    value: float | None
    undefined: str | None = Field(description="Why value is null; null where it is not.")
    worst: float | None
    n: int = Field(description="Rows that value rests on.")
    n_undefined: int = Field(description="Rows on which the measure is not defined.")
    undefined_rows: dict[str, int] = Field(description="Those rows by reason.")
    incomplete: int = Field(description="Rows without a usable result, in worst alone.")
    ci: Interval | None = None


class Curve(Contract):
    """One measure at every cutoff: `value[k - 1]` is the figure at k, for k in 1..limit."""

    value: Listed[float | None]
    undefined: str | None
    worst: Listed[float | None]
    n: int
    n_undefined: int
    undefined_rows: dict[str, int]
    incomplete: int
    ci: dict[str, Interval] = Field(description="At the headline cutoffs, by k.")


class Slice(Contract):
    """All measures over the rows that share one value."""

    by: str
    value: str | bool | int
    rows: int
    measures: dict[str, Aggregate | Curve]


class Component(Contract):
    """One of A–D: its digest and the values it was made from."""

    digest: str | None
    values: dict[str, Any] | None


def _all_four(components: dict[str, Component]) -> dict[str, Component]:
    if sorted(components) != list("ABCD"):
        raise ValueError("holds other components than A, B, C and D")
    return components


Components = Annotated[dict[str, Component], AfterValidator(_all_four)]


class Fingerprint(Contract):
    """What a run was measured under."""

    configuration: str
    system: str
    measurement: str
    components: Components = Field(description="A corpus, B judgments, C search policy, D evidence depth.")


class BoundFingerprint(Contract):
    """What a later layer was measured under; A–D are those of its retrieval report."""

    configuration: str | None = Field(description="Of A, B, C and D; null where the report is unbound.")
    system: str | None = Field(description="Of A, C and D: what outputs are stamped with; null where the report is unbound.")
    measurement: str = Field(description="How the numbers were taken: measure versions, options and what else decides them.")
    components: Components = Field(description="A corpus, B retrieval judgments, C search policy, D evidence depth.")


class Gate(Contract):
    """One threshold and what became of it."""

    name: str
    bound: Literal["min", "max"]
    threshold: float
    value: float | None = Field(description="What was compared: the worst figure.")
    status: Literal["passed", "failed", "vacuous", "inconclusive", "allowed"]
    because: str
    asked: bool = Field(description="false: a gate that every run has.")
    slice: str | None = None


class DropGate(Gate):
    """A limit on how much a figure may fall behind a baseline; `value` is the drop (of a measure to keep low: the rise)."""

    baseline: str = Field(description="run_id of the baseline: with another one, this is another gate.")
    baseline_value: float | None = Field(None, description="Its figure; null where rows are paired one by one, or it has none.")
    confidence: float | None = Field(None, description="The level at which an interval must show it; null: the figure alone.")
    could_be: float | None = Field(None, description="The largest drop that the interval leaves; null without confidence.")


class Verdict(Contract):
    """The one object that decides the text, the JSON and the exit code."""

    status: Literal["passed", "failed", "incomplete"]
    exit_code: int
    because: Listed[str]


class Incomplete(Contract):
    """A judged query without a usable result."""

    query_id: str
    because: str


class Rows(Contract):
    """Which judgments were scored, and which were not."""

    total: int
    by_status: dict[str, int]
    by_category: dict[str, int] = Field(description="Of the scored rows.")
    by_split: dict[str, int] = Field(description="Of the scored rows.")
    scored: int
    positives: int
    expected_empty: int
    calibration: int
    other_split: int = Field(description="Reviewed rows left out by --split.")
    incomplete: Listed[Incomplete]


class Counts(Contract):
    """What was done to the ranked results before measuring, counted."""

    result_rows: int = Field(description="Queries in the ranked results.")
    results: int = Field(description="Results of the scored queries, as given.")
    without_judgment: int = Field(description="Queries with results and no judgment; not scored.")
    below_min_score: int
    beyond_limit: int
    duplicates: int = Field(description="Repeated fragments dropped, first kept.")
    reordered: int = Field(description="Queries whose list was not in order, and was sorted or trusted.")
    unknown_fragments: int = Field(description="Results that the corpus lacks, accepted by --lenient.")
    lenient: dict[str, int] = Field({}, description="What --lenient let pass, by kind.")


class Ties(Contract):
    """Equal scores that straddle a cutoff: the order within them is arbitrary."""

    k: int
    rows: int = Field(description="Queries with such a tie at k.")
    best: dict[str, float | None] = Field(description="Measures at k if every tie fell well.")
    worst: dict[str, float | None] = Field(description="And if every tie fell badly.")


class LeakExam(Contract):
    """Whether access control was really tried."""

    rows: int = Field(description="Scored rows with a principal.")
    could_leak: int = Field(description="Of them, those whose principal is barred from some fragment of the corpus.")


def _path(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a null character, which no path has")
    return value


class InputFile(Contract):
    """One input of the run; the path is relative to the report."""

    role: str
    path: Annotated[str, AfterValidator(_path)]
    collection: str | None = Field(None, description="The collection that --fragments NAME=FILE set for it.")


class Latency(Contract):
    """Quantiles of the search's own latency, in milliseconds."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None


class Provenance(Contract):
    """What no digest covers."""

    tool: str
    inputs: Listed[InputFile]
    latency_ms: Latency


class RetrievalReport(Contract):
    """The report of one retrieval evaluation."""

    contract: Literal["tripos/retrieval-report@1"] = "tripos/retrieval-report@1"
    name: str
    scope: Literal["full", "integration"]
    exploratory: Listed[str] = Field(description="Why this report cannot certify (--lenient); empty: nothing was let pass.")
    run_id: str = Field(description="sha256 of the canonical report without run_id and provenance.")
    fingerprint: Fingerprint
    judgments_digest: str
    results_digest: str = Field(description="Semantic digest of the ranked results as read, of scored rows.")
    binding: dict[str, Literal["verified", "declared", "absent"]]
    reading: dict[str, str | bool] = Field(description="How the files were read: order, duplicates, split, …")
    cutoffs: Listed[int] = Field(description="The headline cutoffs: those that have intervals.")
    rows: Rows
    counts: Counts
    measures: dict[str, Aggregate | Curve]
    slices: Listed[Slice]
    ties: Listed[Ties]
    leak_exam: LeakExam | None
    missed: int = Field(description="Scored rows with at least one reason to be a miss.")
    misses: dict[str, int] = Field(description="Missed rows by reason; the rows themselves are in misses.jsonl.")
    warnings: Listed[str]
    gates: Listed[DropGate | Gate]
    verdict: Verdict
    provenance: Provenance
