"""The files of the retrieval layer: reviewed judgments (component B), ranked results, and misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tripos.contracts.base import (
    Contract,
    Digest,
    Grade,
    Id,
    Listed,
    NonNegative,
    PositiveInt,
    RowProblem,
    RowProblems,
    Scalar,
    Whole,
)
from tripos.errors import Place

ReviewStatus = Literal["reviewed", "draft", "in_review", "rejected"]
Split = Literal["tune", "holdout"]
Completeness = Literal["known_item", "pooled", "exhaustive"]
MissReason = Literal["no_hit", "partial", "required_absent", "not_empty", "forbidden", "leak", "filter_violation", "incomplete"]

CATEGORIES = {
    "single_hop_factual": "one fact, stated in one place",
    "structural": "where something is documented: a section, a table, a list",
    "hard_negative": "a near miss stands beside the answer; needs forbidden_sources",
    "negative": "nothing in the corpus answers it",
    "calibration": "chooses min_score; in no measure",
    "authorization": "asks on behalf of a principal; needs principal",
    "imported": "came from another format",
}
"""Known values of `category`, which is free text."""

ALIASES = {
    "expected_sources": (
        "expected_source", "expected_docs", "expected_doc", "expected_documents", "expected_ids", "relevant_ids",
        "relevant_doc_ids", "relevant_docs", "relevant_sources", "relevant", "gold", "gold_ids", "gold_doc_ids",
        "gold_chunk_ids", "refs", "references", "sources", "source_ids", "ground_truth",
    ),
    "query_id": ("id", "qid", "_id", "question_id", "case_id", "test_id"),
    "query": ("question", "text", "input", "prompt", "q", "user_input"),
    "should_match": ("should_retrieve", "answerable", "expected_empty", "is_answerable", "has_answer", "negative"),
    "review_status": ("status", "reviewed", "state"),
    "category": ("type", "kind", "question_type"),
    "relevance": ("grades", "judgments", "qrels", "relevances"),
    "cited_fragment_ids": ("citations", "cited", "cited_ids", "citation_ids", "cited_chunk_ids", "references", "sources"),
    "accepted_fragment_ids": ("accepted", "accepted_ids", "gold_chunk_ids", "supporting_ids", "relevant_ids"),
    "citation_requirements": ("requirements", "facts", "nuggets", "key_facts", "expected_facts", "claims"),
    "expected_answerable": (
        "answerable", "is_answerable", "should_answer", "has_answer", "answerability", "should_abstain", "unanswerable",
    ),
    "acceptable_fragment_ids": ("fragment_ids", "acceptable", "acceptable_ids", "chunk_ids"),
    "acceptable_evidence": ("evidence", "quotes", "expected_evidence"),
    "faithfulness_score": ("faithfulness", "groundedness", "grounded", "score", "support"),
    "abstained": ("refused", "is_refusal", "abstain", "declined", "idk", "no_answer", "refusal"),
    "answer": ("response", "output", "prediction", "generated_answer", "completion", "actual_output"),
    "evidence_fragment_ids": ("evidence", "contexts", "context_ids", "shown", "retrieved_ids", "retrieved_context"),
    "results": ("hits", "docs", "documents", "retrieved", "matches"),
    "fragment_ids": ("ids", "doc_ids", "chunk_ids", "retrieved_ids"),
    "fragment_id": ("doc_id", "chunk_id", "docid", "docno", "passage_id"),
    "latency_ms": ("latency", "took_ms", "duration_ms", "time_ms"),
}  # fmt: skip
"""Names that other projects give these fields; read for did-you-mean only, never accepted."""


class Principal(Contract):
    """On whose behalf a query is asked."""

    groups: Listed[Id] = Field(description="Groups of the reader; [] reads only what everybody may read.")


class Evidence(Contract):
    """A passage that answers, by quotation: it survives another chunking."""

    source_id: Id
    quote: Annotated[str, Field(min_length=1)]


class RetrievalJudgment(Contract):
    """One reviewed query and the sources that answer it."""

    query_id: Id = Field(description="One id means one query text, in every file.")
    query: str | None = Field(description="The text as asked; null only for rows imported from a format that has none.")
    expected_sources: Listed[Id] = Field(description="Sources that answer; [] exactly when should_match is false.")
    should_match: bool = Field(description="false: nothing should come back (expected empty).")
    category: Annotated[str, Field(min_length=1)] = Field(description="Free text; known values: " + ", ".join(CATEGORIES) + ".")
    review_status: ReviewStatus = Field(description="Only reviewed rows are scored.")
    relevance: dict[Id, Grade] | None = Field(None, description="Grades above 0 by source; covers expected_sources.")
    required_sources: Listed[Id] = Field((), description="Each must appear within the row's depth.")
    expected_groups: Listed[Listed[Id]] = Field((), description="Any one source of each group satisfies it.")
    expected_evidence: Listed[Evidence] = Field((), description="Finer evidence by quotation; measured apart.")
    expected_fragments: Listed[Id] = Field((), description="Finer evidence by fragment id; measured apart.")
    nonrelevant_sources: Listed[Id] = Field((), description="Judged, and not relevant.")
    forbidden_sources: Listed[Id] = Field((), description="Near misses that must stay out.")
    filters: dict[str, Scalar] = Field(
        default_factory=dict, description="Metadata that every result must carry (typed equality)."
    )
    principal: Principal | None = Field(None, description="The reader; results must be readable by one of its groups.")
    k: PositiveInt | None = Field(None, description="This row's own depth; default top_k.")
    split: Split | None = Field(None, description="tune: parameters may be chosen on it; holdout: never.")
    slices: dict[str, str | bool | Whole] = Field(
        default_factory=dict, description="Every measure also comes by each of these."
    )
    cluster: Id | None = Field(None, description="Rows of one cluster are not independent.")
    information_need: str | None = Field(None, description="What the asker is really after.")
    notes: str | None = Field(None, description="For people; outside the fingerprint.")
    reviewer: str | None = Field(None, description="Who reviewed the row.")
    reviewed_at: str | None = Field(None, description="When.")
    source_file: str | None = Field(None, description="Where the row came from.")
    tags: Listed[str] = Field((), description="Labels for people; slices are what measures come by.")
    metadata: dict[str, object] = Field(default_factory=dict, description="Your own fields.")

    @model_validator(mode="after")
    def _rules(self) -> RetrievalJudgment:
        problems = [*self._match_rules(), *self._relevance_rules(), *self._category_rules()]
        if problems:
            raise RowProblems(problems)
        return self

    def _match_rules(self) -> list[RowProblem]:
        if self.should_match and not self.expected_sources:
            text = "true, but expected_sources is empty: name a source, or set should_match to false"
            return [RowProblem("contradiction", "should_match", text)]
        if not self.should_match and self.expected_sources:
            text = "false, but expected_sources is not empty: empty it, or set should_match to true"
            return [RowProblem("contradiction", "should_match", text)]
        return []

    def _relevance_rules(self) -> list[RowProblem]:
        expected, problems = set(self.expected_sources), list[RowProblem]()
        if self.relevance is not None and (lacking := sorted(expected - self.relevance.keys())):
            problems.append(RowProblem("relevance", "relevance", f"grades no {_names(lacking)}: cover every expected source"))
        if self.relevance and not self.should_match:
            problems.append(RowProblem("contradiction", "relevance", "given, but should_match is false: drop one of the two"))
        if self.nonrelevant_sources or self.forbidden_sources:
            problems += self._barred_rules(expected)
        if self.expected_groups:
            problems += self._group_rules(expected)
        if self.expected_evidence and self.expected_fragments:
            text = "given beside expected_evidence: keep one of the two"
            problems.append(RowProblem("contradiction", "expected_fragments", text))
        return problems

    def _barred_rules(self, expected: set[str]) -> list[RowProblem]:
        problems = [
            RowProblem("contradiction", field, f"{_names(both)} is also in expected_sources: keep it in one")
            for field in ("nonrelevant_sources", "forbidden_sources")
            if (both := sorted(expected & set(getattr(self, field))))
        ]
        if both := sorted(set(self.required_sources) & set(self.forbidden_sources)):
            text = f"{_names(both)} is also in required_sources: keep it in one"
            problems.append(RowProblem("contradiction", "forbidden_sources", text))
        return problems

    def _group_rules(self, expected: set[str]) -> list[RowProblem]:
        problems = []
        if outside := sorted({s for group in self.expected_groups for s in group} - expected):
            text = f"{_names(outside)} is not in expected_sources: groups are made of those"
            problems.append(RowProblem("groups", "expected_groups", text))
        if not all(self.expected_groups):
            text = "holds an empty group, which nothing can satisfy: remove it"
            problems.append(RowProblem("groups", "expected_groups", text))
        return problems

    def _category_rules(self) -> list[RowProblem]:
        if self.category.startswith("multi_hop"):
            text = "multi_hop is refused here: synthesis over sources belongs to eval-generation or eval-corpus"
            return [RowProblem("category", "category", text)]
        if self.category == "hard_negative" and not self.forbidden_sources:
            return [RowProblem("category", "forbidden_sources", "empty, but hard_negative needs the near miss named here")]
        if self.category == "authorization" and self.principal is None:
            return [RowProblem("category", "principal", "missing, but an authorization row needs one: who is asking?")]
        return []

    @classmethod
    def trusted(cls, value: Mapping[str, Any]) -> RetrievalJudgment:
        """The row of a parsed line that is known to keep the contract, without checking it again; lists stay lists."""
        made = cls.__new__(cls)
        content = {**_DEFAULTS, **value}
        if content["principal"] is not None:
            content["principal"] = Principal.model_validate(content["principal"])
        if content["expected_evidence"]:
            content["expected_evidence"] = tuple(map(Evidence.model_validate, content["expected_evidence"]))
        object.__setattr__(made, "__dict__", content)
        object.__setattr__(made, "__pydantic_fields_set__", set(value))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made

    @property
    def scored(self) -> bool:
        """Whether the row may enter a measure at all."""
        return self.review_status == "reviewed" and self.category != "calibration"

    @property
    def grades(self) -> dict[str, float]:
        """Gain of each relevant source: as graded, else 1."""
        return self.relevance if self.relevance is not None else dict.fromkeys(self.expected_sources, 1.0)


_DEFAULTS: dict[str, Any] = {
    name: field.get_default(call_default_factory=True)
    for name, field in RetrievalJudgment.model_fields.items()
    if not field.is_required()
}
"""Shared by trusted rows, which nobody changes."""


def _names(ids: list[str]) -> str:
    from tripos.contracts.base import shown

    more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    return shown(ids[0]) + more


class ResultItem(Contract):
    """One result of a nested row."""

    fragment_id: Id = Field(description="As in the corpus.")
    score: float | None = Field(
        None, description="Higher is better; may not rise down the list. Given for all results or none."
    )
    rank: PositiveInt | None = Field(None, description="From 1; must agree with the position in the list.")
    source_id: Id | None = Field(None, description="Must agree with the corpus; names the source where no corpus is given.")
    collection: Id | None = Field(None, description="Where it was found.")


class _ResultRow(Contract):
    query_id: Id = Field(description="As in the judgments.")
    latency_ms: NonNegative | None = Field(None, description="How long the search took; no digest covers it.")
    error: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="What went wrong; null when it worked. A row with an error is incomplete."
    )
    corpus_digest: Digest | None = Field(None, description="Component A that the search saw; another value is refused.")
    policy_digest: Digest | None = Field(None, description="Component C that the search followed; another value is refused.")
    metadata: dict[str, object] = Field(default_factory=dict, description="Your own fields.")


class NestedResults(_ResultRow):
    """Ranked results of one query, best first, one object a result."""

    results: Listed[ResultItem] = Field(description="Best first; [] is a measurement: nothing was found.")


class ColumnarResults(_ResultRow):
    """Ranked results of one query, best first, as parallel lists (half the bytes)."""

    fragment_ids: Listed[Id] = Field(description="Best first.")
    scores: Listed[float] | None = Field(None, description="One for each fragment id.")

    @model_validator(mode="after")
    def _same_length(self) -> ColumnarResults:
        if self.scores is not None and len(self.scores) != len(self.fragment_ids):
            text = f"has {len(self.scores)} values for {len(self.fragment_ids)} fragment_ids: one score a fragment"
            raise RowProblems([RowProblem("length", "scores", text)])
        return self


class FlatResult(Contract):
    """One result of one query; the lines of a query may stand anywhere in the file."""

    query_id: Id = Field(description="As in the judgments.")
    fragment_id: Id = Field(description="As in the corpus.")
    rank: PositiveInt = Field(description="1, 2, 3 … without gaps within the query.")
    score: float | None = Field(None, description="Higher is better; may not rise with the rank.")


@dataclass(slots=True)
class RankedRow:
    """The results of one query as its file gives them, whatever the form; nothing is sorted yet.

    `scores`, `ranks` and `sources` are parallel to `fragment_ids`; None where the file gives none. `in_order`: the
    scores are known to fall. `lines`: of flat files, each result's own line. `joined` and `packed` are what the results
    digest covers of ids and scores, where a reader has them at hand: ids with NUL between them, scores as eight bytes each.
    """

    place: Place
    query_id: str
    fragment_ids: Sequence[str]
    scores: Sequence[float] | None = None
    ranks: Sequence[int | None] | None = None
    sources: Sequence[str | None] | None = None
    latency_ms: float | None = None
    error: str | None = None
    corpus_digest: str | None = None
    policy_digest: str | None = None
    in_order: bool = False
    lines: Sequence[int] | None = None
    joined: str | None = None
    packed: bytes | None = None

    def where(self, fragment_id: str) -> Place:
        """Where a fragment of the list stands: in flat files its own line."""
        if self.lines is None:
            return self.place
        return Place(self.place.file, self.lines[list(self.fragment_ids).index(fragment_id)])


class Timing(Contract):
    """How long the search took for one query: a clock reading, which no digest covers."""

    query_id: Id = Field(description="As in the ranked results.")
    latency_ms: NonNegative = Field(description="Milliseconds.")


class RankedHit(Contract):
    """One result as a miss tells it."""

    rank: int
    fragment_id: str
    source_id: str | None
    score: float | None


class RetrievalMiss(Contract):
    """One reviewed row that failed, with the whole story on one line."""

    query_id: str
    query: str | None
    category: str
    split: Split | None
    reasons: Listed[MissReason]
    depth: int = Field(description="The row's own k, else top_k.")
    expected_sources: Listed[str]
    found: dict[str, int | None] = Field(description="Rank of each expected or required source; null: beyond limit.")
    required_absent: Listed[str]
    forbidden: Listed[RankedHit]
    leaked: Listed[str] = Field(description="Fragments that the principal may not read.")
    violating: Listed[str] = Field(description="Fragments that break the row's filters.")
    error: str | None
    results: Listed[RankedHit] = Field(description="What came, to the row's depth.")
    run_id: str
    configuration_fingerprint: str
