"""corpus-report.json: what routing, fan-out, merge and expansion kept of the evidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tripos.contracts.base import Contract, Listed
from tripos.contracts.corpus import CorpusMissReason, Loss, Stage
from tripos.contracts.reports import (
    Aggregate,
    BoundFingerprint,
    Curve,
    Gate,
    Incomplete,
    InputFile,
    Latency,
    LeakExam,
    Slice,
    Verdict,
)


class CorpusRows(Contract):
    """Which judgments were scored, and which were not."""

    total: int
    by_status: dict[str, int]
    by_category: dict[str, int] = Field(description="Of the scored rows.")
    by_split: dict[str, int] = Field(description="Of the scored rows.")
    scored: int
    positives: int
    expected_none: int
    other_split: int = Field(description="Reviewed rows left out by --split.")
    incomplete: Listed[Incomplete]


class CorpusCounts(Contract):
    """What was seen on the way, counted."""

    result_rows: int = Field(description="Queries in the corpus results.")
    without_judgment: int = Field(description="Queries with results and no scored judgment.")
    beyond_top_k: int = Field(description="Fragments of merged or final lists that lie beyond top_k, and do not count.")
    not_searched: int = Field(description="Routed collections that no fan-out searched.")
    lenient: dict[str, int] = Field({}, description="What --lenient let pass, by kind.")


class EvidenceFlow(Contract):
    """Expected sources of the measured rows, followed through the stages; each lost one is charged once."""

    expected: int
    kept: dict[Stage, int] = Field(description="Expected sources still there after each stage.")
    lost: dict[Loss, int] = Field(description="Where the others were lost: with kept.final they add up to expected.")
    recovered_by_expansion: int = Field(description="Of kept.final, those that were lost before and brought in by expansion.")
    recovered_from: dict[Loss, int] = Field(description="Where those had been lost.")


class CollectionReport(Contract):
    """One collection: whether it was routed to where it should be, and what its own list kept."""

    collection: str
    rows: int = Field(description="Scored rows that expect it.")
    routed: int = Field(description="Measured rows that routed to it, expected or not.")
    routed_rightly: int
    not_routed: int = Field(description="Measured rows that expect it and did not route to it.")
    in_vain: int = Field(description="Measured rows that searched it and expect nothing of it.")
    incomplete: int = Field(description="Rows that expect it and have no usable result.")
    own_k: dict[str, int] = Field(description="Searches by the k that was asked for.")
    evidence: EvidenceFlow
    measures: dict[str, Aggregate | Curve] = Field(
        description="routed over the rows that expect it; hit and recall over those of them that searched it."
    )
    sufficient_k: int | None = Field(
        description="The smallest k that keeps every expected source of every searched row; null: some were not within k."
    )
    beyond_k: int = Field(description="Expected sources of searched rows that were not within the collection's own k.")
    plateau_k: int | None = Field(description="The smallest k that keeps all that its own k kept; null: it kept nothing.")


class ExpansionSide(Contract):
    """The rows that had expansion, on one side of it."""

    kept: Aggregate = Field(description="Recall of the expected sources.")
    all_kept: Aggregate = Field(description="Share of rows with every expected source.")
    fragments: Aggregate = Field(description="Fragments handed on, a row.")


class ExpansionReport(Contract):
    """The same rows without expansion (the merged list) and with it (the final list)."""

    rows: int
    off: ExpansionSide
    on: ExpansionSide
    better: int = Field(description="Rows with more expected sources on than off.")
    worse: int = Field(description="Rows with fewer.")


class OverFanOut(Contract):
    """Collections searched in vain."""

    searches: int
    in_vain: int
    rows: int = Field(description="Measured rows with at least one.")


class OverFanOutCost(Contract):
    """What they cost, where fan-outs say how long they took."""

    timed: int
    latency_ms: float | None = Field(description="Of all timed searches, summed.")
    in_vain_ms: float | None = Field(description="Of those in vain, summed.")
    slowest_in_vain: int = Field(description="Rows whose slowest search was in vain: side by side, all waited for it.")


class CorpusProvenance(Contract):
    """What no digest covers."""

    tool: str
    inputs: Listed[InputFile]
    latency_ms: Latency = Field(description="Of whole queries.")
    fan_out_latency_ms: dict[str, Latency] = Field(description="By collection.")
    over_fan_out: OverFanOutCost


class CorpusReport(Contract):
    """The report of one corpus evaluation."""

    contract: Literal["tripos/corpus-report@1"] = "tripos/corpus-report@1"
    name: str
    scope: Literal["full", "integration"]
    exploratory: Listed[str] = Field(description="Why this report cannot certify (--lenient); empty: nothing was let pass.")
    run_id: str = Field(description="sha256 of the canonical report without run_id and provenance.")
    fingerprint: BoundFingerprint
    judgments_digest: str
    results_digest: str = Field(description="Of the corpus results of the scored rows.")
    binding: Literal["verified", "declared", "unbound"] = Field(
        description="verified: every scored result carries the system fingerprint."
    )
    retrieval_run_id: str | None
    reading: dict[str, str | bool]
    rows: CorpusRows
    counts: CorpusCounts
    measures: dict[str, Aggregate | Curve]
    slices: Listed[Slice]
    evidence: EvidenceFlow
    collections: Listed[CollectionReport]
    expansion: ExpansionReport | None = Field(description="null: no result says anything of expansion.")
    over_fan_out: OverFanOut
    leak_exam: LeakExam | None
    missed: int
    misses: dict[CorpusMissReason, int] = Field(description="Missed rows by reason; they are in corpus-misses.jsonl.")
    warnings: Listed[str]
    gates: Listed[Gate]
    verdict: Verdict
    provenance: CorpusProvenance
