"""generation-report.json: what an evaluation of answers found, bound to the retrieval run they were written from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tripos.contracts.base import Contract, Listed
from tripos.contracts.config import AbstentionConfig
from tripos.contracts.generation import FaithfulnessSource, Origin, Status
from tripos.contracts.reports import Aggregate, BoundFingerprint, Curve, Gate, Incomplete, InputFile, Latency, Slice, Verdict

Binding = Literal["verified", "declared", "unbound"]
Approval = Literal["approved", "not_listed", "expired", "not_yet_valid", "not_checked"]


class RetrievalBasis(Contract):
    """The retrieval run that the evidence came from."""

    run_id: str
    results_digest: str
    mode: str | None = Field(description="Search type.")
    limit: int
    top_k: int
    unit: Literal["fragment", "source"]
    mean_fragments_a_source: float | None
    mean_characters_a_fragment: float | None


class NamedModel(Contract):
    """A model by name; without @revision it is unpinned, and cannot certify."""

    name: str
    pinned: bool


class Targets(Contract):
    """The thresholds, and those that the configuration gates nothing on. The faithfulness target also binds each row."""

    faithfulness: float
    qualified: float
    abstention: float
    dropped: Listed[Literal["faithfulness", "qualified", "abstention"]]


class GenerationRows(Contract):
    """Which rows were scored, and which were not."""

    total: int = Field(description="Rows with a reviewed part.")
    by_status: dict[str, int] = Field(description="By review status.")
    by_category: dict[str, int] = Field(description="Of the scored rows.")
    scored: int
    answerable: int
    unanswerable: int
    partial: int
    incomplete: int
    not_judged: int = Field(description="Rows that are undecided only for want of a faithfulness score.")
    incomplete_rows: Listed[Incomplete] = Field(description="The first 1,000 by query id; all are in generation-misses.jsonl.")


class GenerationCounts(Contract):
    """What was seen on the way, counted."""

    answers: int = Field(description="Answer rows read.")
    without_judgment: int = Field(description="Answers to queries without a reviewed part; not scored.")
    abstention_origins: dict[Origin, int] = Field(description="How it was told whether an answer abstained.")
    abstained_with_text: int = Field(description="Answers that say abstained: true and have text all the same.")
    citations: int = Field(description="Distinct citations of the scored rows.")
    duplicate_citations: int = Field(description="Citations of a fragment that the same answer had cited; they count once.")
    without_list: int = Field(description="Scored rows whose query the bound retrieval run has no list for.")
    stamped: int = Field(description="Scored answers that carry the system fingerprint.")
    faithfulness_sources: dict[FaithfulnessSource, int] = Field(description="Scores by who gave them.")
    lenient: dict[str, int] = Field({}, description="What --lenient let pass, by kind.")


class Partial(Contract):
    """Rows that are only partly answerable, apart from all others."""

    rows: int
    statuses: dict[Status, int]
    measures: dict[str, Aggregate | Curve]


class RiskCoverage(Contract):
    """Risk among the answers of highest confidence, at ten coverages; ties averaged."""

    coverage: Listed[float]
    risk: Listed[float]


class GenerationProvenance(Contract):
    """What no digest covers."""

    tool: str
    inputs: Listed[InputFile]
    latency_ms: Latency = Field(description="Of the answers.")
    judge_approval: Approval = Field(description="Of the judge on the day of this execution.")


class GenerationReport(Contract):
    """The report of one generation evaluation."""

    contract: Literal["tripos/generation-report@1"] = "tripos/generation-report@1"
    name: str
    scope: Literal["full", "integration"]
    exploratory: Listed[str] = Field(description="Why this report cannot certify (--lenient); empty: nothing was let pass.")
    run_id: str = Field(description="sha256 of the canonical report without run_id and provenance.")
    fingerprint: BoundFingerprint
    judgments_digest: str = Field(description="Of the reviewed parts; quotes, not the fragments found by them.")
    answers_digest: str = Field(description="Of the scored answers.")
    binding: Binding = Field(description="verified: every scored answer carries the system fingerprint.")
    retrieval: RetrievalBasis | None
    model: NamedModel | None
    judge: NamedModel | None
    targets: Targets
    abstention: AbstentionConfig = Field(description="What counted as an abstention where an answer does not say.")
    form: Literal["combined", "split"] = Field(description="One file with both parts, or judgments and answers apart.")
    completeness: Literal["checked", "not_checkable"] = Field(description="Whether absent answers could be noticed.")
    reading: dict[str, str | bool]
    rows: GenerationRows
    counts: GenerationCounts
    statuses: dict[Status, int]
    measures: dict[str, Aggregate | Curve]
    slices: Listed[Slice]
    partial: Partial | None
    risk_coverage: RiskCoverage | None
    missed: int
    warnings: Listed[str]
    gates: Listed[Gate]
    verdict: Verdict
    provenance: GenerationProvenance
