"""certificate.json: that a full run holds, by recomputation, and every file it holds for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tripos.contracts.base import Contract, Digest, Listed
from tripos.contracts.config import LayerName
from tripos.contracts.judges import Day
from tripos.contracts.reports import Component, LeakExam

Status = Literal["passed", "warned", "failed", "error", "not_applicable"]
Binding = Literal["verified", "declared", "unbound"]
ChosenOn = Literal["rows_kept_apart", "rows_among_the_certified", "nothing_kept_apart"]


class CheckResult(Contract):
    """One check and what became of it."""

    id: str
    sentence: str = Field(description="What holds where the check passes.")
    status: Status = Field(description="error: could not be evaluated; it counts as a failure.")
    told: str = Field(description="What was found, in one line.")
    differences: Listed[str] = Field((), description="Each exact difference, the first 20.")
    differences_in_all: int = 0
    fix: str | None = None
    blocked_by: str | None = Field(
        None, description="Of an error: the check whose failure keeps this one from being evaluated; null: its own."
    )


class CertificateVerdict(Contract):
    """The one object that decides the text, the JSON and the exit code."""

    status: Literal["certified", "not_certified"]
    exit_code: int
    checks: int = Field(description="Checks that apply.")
    failed: Listed[str] = Field(description="Ids of the checks that failed or could not be evaluated.")
    warned: Listed[str] = Field(description="Ids of the checks that passed with a warning.")


class Artifact(Contract):
    """One file of the run, by its bytes and by its meaning."""

    role: str
    path: str = Field(description="Relative to the certificate.")
    sha256: Digest = Field(description="Of the file's bytes.")
    digest: str | None = Field(
        description="Of the content, whatever its order and white space: the component, judgments, results or run that it is; "
        "null for clock readings, which no digest covers."
    )


class CertifiedRows(Contract):
    """Rows of one layer's golden file, counted."""

    total: int
    scored: int
    rejected: int = Field(description="Rows that reviewers turned down: not scored.")
    by_split: dict[str, int] = Field(description="Of the scored rows; empty where the layer has no splits.")


class CertifiedLayer(Contract):
    """One layer's report, as it was computed again."""

    run_id: str
    measurement: str = Field(description="How the numbers were taken.")
    judgments_digest: str
    results_digest: str = Field(description="Of the ranked results, the answers, or the corpus results.")
    binding: Binding = Field(description="The weakest of the layer's stamps.")
    rows: CertifiedRows
    leak_exam: LeakExam | None


class CertifiedApproval(Contract):
    """Who approved the judge, and for which days; both are within."""

    by: str
    valid_from: Day
    valid_until: Day
    kind: Literal["external", "tripos"]


class Models(Contract):
    """Who answered, who judged, and by whose leave."""

    model: str | None
    judge: str | None = Field(description="null: no score rests on a judge.")
    approval: CertifiedApproval | None


class Unjudged(Contract):
    """The share of the top K results that nobody judged; a right answer among them counts as none."""

    k: int
    share: float | None
    undefined: str | None
    n: int


class RestsOn(Contract):
    """What the numbers rest on, said plainly."""

    chosen_on: ChosenOn | None = Field(description="Where the settings may have been chosen; null: it cannot be told.")
    completeness: Literal["known_item", "pooled", "exhaustive"] | None = Field(description="Of the retrieval judgments.")
    judgments_version: str | None
    answers: Literal["checked", "not_checkable"] | None = Field(
        description="Whether absent answers could be noticed; null: no generation layer."
    )
    unjudged: Unjudged | None
    faithfulness_sources: dict[str, int]
    told: Listed[str] = Field(description="The same in sentences.")


class CommittedFile(Contract):
    """A judgments file, or the list of approved judges, as git has it."""

    path: str = Field(description="Relative to the certificate.")
    blob: str = Field(description="Git's own id of the content in HEAD.")
    commit: str = Field(description="The last commit that changed the file.")


class CertifiedConfiguration(Contract):
    """What the layers share."""

    configuration: str | None
    system: str | None
    components: dict[str, Component]


class Certificate(Contract):
    """The outcome of one certification; only one whose verdict is `certified` is ever written to certificate.json."""

    contract: Literal["tripos/certificate@1"] = "tripos/certificate@1"
    digest: str = Field(description="sha256 of the canonical certificate without this field.")
    tool: str
    name: str
    verdict: CertificateVerdict
    fingerprint: CertifiedConfiguration | None = Field(description="null: there is no retrieval report.")
    layers: dict[LayerName, CertifiedLayer] = Field(description="Those that could be computed again.")
    models: Models | None
    rests_on: RestsOn | None
    committed: Listed[CommittedFile] = Field(description="Judgments and approvals as git has them; empty outside a repository.")
    artifacts: Listed[Artifact]
    checks: Listed[CheckResult]


class Deviation(Contract):
    """One file that is not as the certificate has it."""

    path: str
    role: str
    what: Literal["missing", "changed", "unreadable", "not_canonical"]
    told: str


class Verification(Contract):
    """Whether every file is as its certificate says, byte by byte."""

    contract: Literal["tripos/verification@1"] = "tripos/verification@1"
    certificate: str
    name: str | None
    status: Literal["intact", "not_intact"]
    files: int = Field(description="Files compared.")
    deviations: Listed[Deviation]
