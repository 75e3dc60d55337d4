"""The files of the generation layer: reviewed requirements and a system's answers, apart or on one line, and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tripos.contracts.base import Contract, Digest, Id, Listed, NonNegative, RowProblem, RowProblems, shown
from tripos.contracts.retrieval import Evidence, ReviewStatus

Share = Annotated[float, Field(ge=0, le=1)]
Importance = Literal["vital", "okay"]
FaithfulnessSource = Literal["given", "judged", "human"]
CitationFault = Literal["nonexistent", "not_shown", "not_accepted"]
Origin = Literal["given", "empty", "phrase", "answered"]

Status = Literal[
    "qualified",
    "abstained_rightly",
    "partial",
    "incomplete",
    "answered_unanswerable",
    "over_refused",
    "missing_requirement",
    "abstained_with_citations",
    "bad_citation",
    "unfaithful",
    "not_judged",
]
"""What became of a row; where it fails on several grounds, the first in the order in which they are listed here."""

STATUSES: dict[Status, str] = {
    "qualified": "answered, every requirement cited, no bad citation, faithful",
    "abstained_rightly": "abstained and cites nothing, as the question has no answer here",
    "partial": "only partly answerable: scored apart",
    "incomplete": "no answer, or an answer that carries an error; undecided",
    "answered_unanswerable": "answered, although nothing in the corpus answers it",
    "over_refused": "abstained, although the question is answerable",
    "missing_requirement": "answered, but some requirement is supported by no citation",
    "abstained_with_citations": "abstained rightly, but cites something all the same",
    "bad_citation": "cites something that does not exist, was not shown, or is not accepted",
    "unfaithful": "faithfulness below the target",
    "not_judged": "nothing is wrong but that no faithfulness score is there; undecided",
}
"""Every status and what it means, in order of precedence."""

PASSING: tuple[Status, ...] = ("qualified", "abstained_rightly", "partial")
"""Statuses that are no failure."""

UNDECIDED: tuple[Status, ...] = ("not_judged", "incomplete")
"""Statuses that say neither passed nor failed: out of `value`, at the bad end in `worst`."""


def _answerable(value: Any) -> Any:
    if value is True or value is False or value == "partial":
        return value
    raise ValueError(f'is {shown(value)}: true, false or "partial" is expected')


Answerable = Annotated[bool | Literal["partial"], BeforeValidator(_answerable)]


class Requirement(Contract):
    """One fact that a right answer supports by a citation."""

    requirement_id: Id
    acceptable_fragment_ids: Listed[Id] = Field((), description="A citation of any one of them meets the requirement.")
    acceptable_evidence: Listed[Evidence] = Field(
        (), description="The same by quotation, which survives another chunking: any fragment that holds a quote."
    )
    importance: Importance = Field("vital", description="okay: good to have; requirement_coverage_vital leaves it out.")
    text: str | None = Field(None, description="The fact in words, for reviewers.")

    @model_validator(mode="after")
    def _has_alternatives(self) -> Requirement:
        if not (self.acceptable_fragment_ids or self.acceptable_evidence):
            text = "has no alternatives: name fragments here, or quotes in acceptable_evidence"
            raise RowProblems([RowProblem("no_alternatives", "acceptable_fragment_ids", text)])
        return self


class _Reviewed(Contract):
    """What reviewers decide about one question, whatever any system answers."""

    query_id: Id
    query: str | None = Field(None, description="The question as asked; the same text as in every other layer.")
    citation_requirements: Listed[Requirement] = Field(description="The facts; [] where there are none to cite.")
    accepted_fragment_ids: Listed[Id] = Field(
        description="Every fragment that may be cited; covers the acceptable ones. Those found by quote are added."
    )
    expected_answerable: Answerable = Field(description='true, false, or "partial", which is scored apart.')
    category: Annotated[str, Field(min_length=1)] | None = Field(None, description="Free text.")
    review_status: ReviewStatus = Field("reviewed", description="Only reviewed rows are scored.")
    slices: dict[Id, str | bool | int] = Field({}, description="Names and values to report on apart.")
    cluster: Id | None = Field(None, description="Rows of one cluster are not independent.")

    def problems(self) -> Iterator[RowProblem]:
        """Rules between the reviewed fields."""
        accepted = set(self.accepted_fragment_ids)
        ids = [r.requirement_id for r in self.citation_requirements]
        for n, requirement in enumerate(self.citation_requirements):
            field = f"citation_requirements[{n}]"
            if requirement.requirement_id in ids[:n]:
                yield RowProblem("duplicate_id", f"{field}.requirement_id", f"{shown(ids[n])} is given twice: keep one")
            if lacking := sorted(set(requirement.acceptable_fragment_ids) - accepted):
                more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
                text = f"lacks {shown(lacking[0])}{more}, acceptable for {shown(requirement.requirement_id)}: accept it too"
                yield RowProblem("not_covered", "accepted_fragment_ids", text)
        if self.expected_answerable is False and self.citation_requirements:
            text = "given, but expected_answerable is false: nothing can support a fact that the corpus lacks"
            yield RowProblem("contradiction", "citation_requirements", text)


class _Answered(Contract):
    """What the system under test did with one question."""

    answer: str | None = Field(None, description="The text; null or absent beside an error alone. Empty: the system abstained.")
    cited_fragment_ids: Listed[Id] = Field((), description="Fragments that the answer cites; each counts once.")
    faithfulness_score: Share | None = Field(None, description="Claims that the evidence supports / claims; null: not judged.")
    faithfulness_source: FaithfulnessSource = Field(
        "given", description="Who scored: given with the answers, judged by the judge model, or human."
    )
    unavailable_reason: str | None = Field(None, description="Why there is no faithfulness score.")
    abstained: bool | None = Field(None, description="Whether the system declined; absent: told from the text.")
    confidence: float | None = Field(None, description="The system's own confidence, on any scale; higher is surer.")
    evidence_fragment_ids: Listed[Id] | None = Field(
        None, description="What the model was shown; default: the top K of the bound retrieval run."
    )
    system_fingerprint: Digest | None = Field(None, description="Stamp of tripos evidence; another value is refused.")
    model: Annotated[str, Field(min_length=1)] | None = Field(None, description="Who answered; the same as --model.")
    latency_ms: NonNegative | None = None
    error: str | None = Field(None, description="What went wrong; null when it worked. A row with an error is incomplete.")

    def answer_problems(self) -> Iterator[RowProblem]:
        """Rules between the answer's fields."""
        if self.answer is None and self.error is None:
            yield RowProblem(
                "no_answer", "answer", 'null or absent, and no error says why: write "" where the system said nothing'
            )
        if self.faithfulness_score is not None and self.unavailable_reason is not None:
            text = "given beside a faithfulness_score: keep one of the two"
            yield RowProblem("contradiction", "unavailable_reason", text)


class GenerationJudgment(_Reviewed):
    """generation_golden.jsonl: the reviewed part of one question."""

    notes: str | None = Field(None, description="Why; for reviewers.")
    reviewer: str | None = None
    reviewed_at: str | None = None
    metadata: dict[str, object] = Field({}, description="Your own fields.")

    @model_validator(mode="after")
    def _rules(self) -> GenerationJudgment:
        _raise(list(self.problems()))
        return self


class GenerationAnswer(_Answered):
    """answers.jsonl: one answer of the system under test."""

    query_id: Id
    query: str | None = Field(None, description="The question as asked.")
    metadata: dict[str, object] = Field({}, description="Your own fields.")

    @model_validator(mode="after")
    def _rules(self) -> GenerationAnswer:
        _raise(list(self.answer_problems()))
        return self


class GenerationRow(_Answered, _Reviewed):
    """generation-input.jsonl: the reviewed part and the answer on one line."""

    notes: str | None = Field(None, description="Why; for reviewers.")
    reviewer: str | None = None
    reviewed_at: str | None = None
    metadata: dict[str, object] = Field({}, description="Your own fields.")

    @model_validator(mode="after")
    def _rules(self) -> GenerationRow:
        _raise([*self.problems(), *self.answer_problems()])
        return self


def _raise(problems: list[RowProblem]) -> None:
    if problems:
        raise RowProblems(problems)


Judged = GenerationJudgment | GenerationRow
Answered = GenerationAnswer | GenerationRow


class EvidenceFragment(Contract):
    """One fragment as the model under test is shown it."""

    fragment_id: str
    source_id: str
    text: str


class EvidenceRow(Contract):
    """generation-evidence.jsonl: what the answer to one question must be written from."""

    query_id: str
    query: str | None
    system_fingerprint: str = Field(description="Copy it into the answer row: it proves which evidence was used.")
    evidence: Listed[EvidenceFragment] = Field(description="The top K, best first.")


class RequirementVerdict(Contract):
    """Whether one requirement was met."""

    requirement_id: str
    importance: Importance
    met: bool
    by: Listed[str] = Field(description="The citations that meet it.")
    acceptable: Listed[Listed[str]] = Field(description="Alternatives; fragments within one are needed together.")


class CitationVerdict(Contract):
    """What one cited fragment is worth."""

    fragment_id: str
    accepted: bool
    fault: CitationFault | None = Field(description="The first fault that applies; any fails the row.")


class GenerationResult(Contract):
    """One row of generation-results.jsonl: every verdict on one question, with its reason."""

    query_id: str
    category: str | None
    expected_answerable: Answerable
    status: Status
    grounds: Listed[Status] = Field(description="Every ground on which the row fails or is undecided; status is the first.")
    reasons: Listed[str] = Field(description="The same in words.")
    abstained: bool | None = Field(description="null: no answer.")
    abstention_origin: Origin | None = Field(description="How that was told.")
    requirements: Listed[RequirementVerdict]
    citations: Listed[CitationVerdict]
    requirement_coverage: float | None
    citation_precision: float | None
    faithfulness_score: float | None
    faithfulness_source: FaithfulnessSource | None
    confidence: float | None


class GenerationMiss(GenerationResult):
    """One reviewed row that failed or is undecided, with the whole story on one line."""

    query: str | None
    answer: str | None = Field(description="Cut at 2,000 characters.")
    answer_characters: int
    shown: Listed[str] | None = Field(description="What the model was shown; null where that is not known.")
    error: str | None
    run_id: str
    configuration_fingerprint: str | None
