"""The files of the corpus layer: reviewed routes and their evidence, what a multi-collection system did, and misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tripos.contracts.base import (
    Contract,
    Digest,
    Id,
    Listed,
    NonNegative,
    PositiveInt,
    RowProblem,
    RowProblems,
    shown,
)
from tripos.contracts.retrieval import Principal, ReviewStatus, Split

Stage = Literal["routed", "retrieved", "merged", "final"]
STAGES: tuple[Stage, ...] = ("routed", "retrieved", "merged", "final")
"""Where evidence can be followed to, in order."""

Loss = Literal["lost_by_routing", "lost_by_rank", "lost_by_merge", "displaced_by_expansion"]
LOSSES: dict[Loss, str] = {
    "lost_by_routing": "its collection was not routed to",
    "lost_by_rank": "its collection was routed to, and did not return it within k",
    "lost_by_merge": "its collection returned it, and it is not among the merged top K",
    "displaced_by_expansion": "it was among the merged top K, and what expansion added pushed it out",
}
"""Where a lost source is charged, each to one; and what that means."""

CorpusMissReason = Literal[
    "lost_by_routing",
    "lost_by_rank",
    "lost_by_merge",
    "displaced_by_expansion",
    "relationship_absent",
    "not_empty",
    "leak",
    "incomplete",
]

CORPUS_CATEGORIES = {
    "single_hop_factual": "one fact, in one collection",
    "multi_hop": "needs sources that are linked to each other",
    "comparison": "needs sources side by side",
    "negative": "no collection answers it",
    "authorization": "asks on behalf of a principal; needs principal",
}
"""Known values of `category`, which is free text."""


class Relationship(Contract):
    """One link between two things, as a graph has it; all three parts count."""

    subject: Id
    predicate: Id
    object: Id

    @model_validator(mode="after")
    def _ends(self) -> Relationship:
        blank = [name for name in ("subject", "predicate", "object") if not getattr(self, name).strip()]
        if blank:
            raise RowProblems([RowProblem("empty_end", name, "is blank: a relationship names both its ends") for name in blank])
        return self

    @property
    def triple(self) -> tuple[str, str, str]:
        """As a value to compare."""
        return self.subject, self.predicate, self.object


class CorpusJudgment(Contract):
    """One reviewed query, the collections that answer it, and the sources in each."""

    query_id: Id = Field(description="One id means one query text, in every file.")
    query: str | None = Field(description="The text as asked.")
    expected_collections: Listed[Id] = Field(description="Collections to route to; [] exactly when should_match is false.")
    expected_sources: dict[Id, Listed[Id]] = Field(description="Sources that answer, by collection: the same collections.")
    should_match: bool = Field(description="false: nothing should be routed (expected none).")
    category: Annotated[str, Field(min_length=1)] = Field(
        description="Free text; known values: " + ", ".join(CORPUS_CATEGORIES) + "."
    )
    review_status: ReviewStatus = Field(description="Only reviewed rows are scored.")
    expected_relationships: Listed[Relationship] = Field((), description="Links that the answer follows: its chain.")
    hops: PositiveInt | None = Field(None, description="How many sources must be followed; measures also come by it.")
    principal: Principal | None = Field(None, description="The reader; everything handed on must be readable by it.")
    split: Split | None = Field(None, description="tune: parameters may be chosen on it; holdout: never.")
    slices: dict[str, str | bool | int] = Field({}, description="Every measure also comes by each of these.")
    cluster: Id | None = Field(None, description="Rows of one cluster are not independent.")
    notes: str | None = Field(None, description="For people; outside the digest.")
    reviewer: str | None = Field(None, description="Who reviewed the row.")
    reviewed_at: str | None = Field(None, description="When.")
    source_file: str | None = Field(None, description="Where the row came from.")
    tags: Listed[str] = Field((), description="Labels for people; slices are what measures come by.")
    metadata: dict[str, object] = Field({}, description="Your own fields.")

    @model_validator(mode="after")
    def _rules(self) -> CorpusJudgment:
        if problems := [*self._match_rules(), *self._source_rules()]:
            raise RowProblems(problems)
        return self

    def _match_rules(self) -> Iterator[RowProblem]:
        if self.should_match and not self.expected_collections:
            text = "true, but expected_collections is empty: name a collection, or set should_match to false"
            yield RowProblem("contradiction", "should_match", text)
        if not self.should_match:
            given = [f for f in ("expected_collections", "expected_sources", "expected_relationships") if getattr(self, f)]
            if given:
                text = f"false, but {given[0]} is not empty: empty it, or set should_match to true"
                yield RowProblem("contradiction", "should_match", text)
        if self.category == "authorization" and self.principal is None:
            yield RowProblem("category", "principal", "missing, but an authorization row needs one: who is asking?")

    def _source_rules(self) -> Iterator[RowProblem]:
        collections = set(self.expected_collections)
        for name in sorted(collections - self.expected_sources.keys()):
            yield RowProblem("collections", "expected_sources", f"lacks {shown(name)}, which expected_collections names")
        for name in sorted(self.expected_sources.keys() - collections):
            yield RowProblem("collections", "expected_sources", f"{shown(name)} is not in expected_collections: add it there")
        for name, sources in self.expected_sources.items():
            if not sources:
                text = "is empty: name the sources that answer, or drop the collection"
                yield RowProblem("no_sources", f"expected_sources.{name}", text)

    @property
    def expected(self) -> list[tuple[str, str]]:
        """Each expected (collection, source) once, sorted."""
        return sorted({(name, source) for name, sources in self.expected_sources.items() for source in sources})


class FanOutHit(Contract):
    """One result of one collection."""

    fragment_id: Id = Field(description="As in the corpus.")
    score: float | None = Field(None, description="Higher is better; may not rise down the list.")


class FanOut(Contract):
    """What one collection returned for one query."""

    collection: Id = Field(description="One of routed_collections.")
    k: PositiveInt = Field(description="How many were asked for; D's per_collection where that is given.")
    latency_ms: NonNegative | None = Field(None, description="How long this collection took; no digest covers it.")
    results: Listed[FanOutHit] = Field(description="Best first, at most k; [] is a measurement.")

    @model_validator(mode="after")
    def _rules(self) -> FanOut:
        problems = []
        if len(self.results) > self.k:
            text = f"holds {len(self.results)} results, but k is {self.k}: the collection was asked for no more"
            problems.append(RowProblem("more_than_k", "results", text))
        if twice := _twice(hit.fragment_id for hit in self.results):
            problems.append(RowProblem("duplicate_result", "results", f"{shown(twice)} stands in the list more than once"))
        if problems:
            raise RowProblems(problems)
        return self


class Expansion(Contract):
    """What following links added to the merged list."""

    relationships: Listed[Relationship] = Field((), description="The links that were followed.")
    added_fragment_ids: Listed[Id] = Field((), description="Fragments that they led to.")


class CorpusResult(Contract):
    """What a multi-collection system did with one query, stage by stage."""

    query_id: Id = Field(description="As in the judgments.")
    routed_collections: Listed[Id] | None = Field(
        None, description="In order of preference; [] where nothing was routed. Required, as fan_out and merged, without error."
    )
    fan_out: Listed[FanOut] | None = Field(None, description="One entry for each collection that was searched.")
    merged: Listed[Id] | None = Field(None, description="Fragment ids in final order, before expansion; cut at top_k.")
    expansion: Expansion | None = Field(None, description="What links added; absent: the system has no expansion.")
    final: Listed[Id] | None = Field(
        None, description="What is handed on after expansion, cut at top_k; default: merged, then added."
    )
    latency_ms: NonNegative | None = Field(None, description="How long the whole query took; no digest covers it.")
    error: str | None = Field(None, description="What went wrong; null when it worked. A row with an error is incomplete.")
    system_fingerprint: Digest | None = Field(
        None, description="Of A, C and D, as tripos fan-out writes it; another value than the retrieval report's is refused."
    )
    metadata: dict[str, object] = Field({}, description="Your own fields.")

    @model_validator(mode="after")
    def _rules(self) -> CorpusResult:
        if self.error is not None:
            return self
        if problems := [*self._missing(), *self._routing(), *self._lists()]:
            raise RowProblems(problems)
        return self

    def _missing(self) -> Iterator[RowProblem]:
        if self.routed_collections is None:
            text = "missing: the query has no routing at all; write [] where nothing was routed, or say why in error"
            yield RowProblem("no_routing", "routed_collections", text)
        for name in ("fan_out", "merged"):
            if getattr(self, name) is None:
                yield RowProblem("missing", name, "missing: write [] where there was nothing, or say why in error")

    def _routing(self) -> Iterator[RowProblem]:
        routed = self.routed_collections or ()
        if twice := _twice(routed):
            yield RowProblem("duplicate_collection", "routed_collections", f"names {shown(twice)} more than once")
        if twice := _twice(fan.collection for fan in self.fan_out or ()):
            yield RowProblem("duplicate_collection", "fan_out", f"searches {shown(twice)} more than once: one entry each")
        for n, fan in enumerate(self.fan_out or ()):
            if self.routed_collections is not None and fan.collection not in routed:
                text = f"{shown(fan.collection)} was searched, but is not in routed_collections"
                yield RowProblem("not_routed", f"fan_out[{n}].collection", text)

    def _lists(self) -> Iterator[RowProblem]:
        home: dict[str, str] = {}
        for n, fan in enumerate(self.fan_out or ()):
            for hit in fan.results:
                if (other := home.setdefault(hit.fragment_id, fan.collection)) != fan.collection:
                    text = f"{shown(hit.fragment_id)} is also a result of {shown(other)}: a fragment is in one collection"
                    yield RowProblem("two_collections", f"fan_out[{n}].results", text)
        added = set() if self.expansion is None else set(self.expansion.added_fragment_ids)
        merged = self.merged or ()
        yield from _foreign("merged", merged, home.keys(), "no collection returned it")
        yield from _foreign("final", self.final or (), {*merged, *added}, "it is neither merged nor added by expansion")
        for name, ids in (("merged", merged), ("final", self.final or ())):
            if twice := _twice(ids):
                yield RowProblem("duplicate_result", name, f"{shown(twice)} stands in the list more than once")

    @property
    def handed_on(self) -> tuple[str, ...]:
        """`final`, by default what was merged and then what was added."""
        if self.final is not None:
            return self.final
        added = () if self.expansion is None else self.expansion.added_fragment_ids
        return tuple(dict.fromkeys((*(self.merged or ()), *added)))


def _twice(names: Iterable[str]) -> str:
    """The first name that occurs more than once, or ""."""
    return next((name for name, n in Counter(names).items() if n > 1), "")


def _foreign(field: str, names: Iterable[str], known: Iterable[str], why: str) -> Iterator[RowProblem]:
    known = set(known)
    if foreign := [name for name in names if name not in known]:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        yield RowProblem("foreign_fragment", field, f"{shown(foreign[0])} stands in the list, but {why}{more}")


class LostSource(Contract):
    """One expected source that was not handed on, and where it was lost."""

    collection: str
    source_id: str
    charged_to: Loss
    rank: int | None = Field(description="Its rank in its collection's own list; null: not in it.")
    merged_rank: int | None = Field(description="Its rank in the merged list, however long; null: not in it.")


class Searched(Contract):
    """What one collection was asked, as a miss tells it."""

    collection: str
    expected: bool
    k: int | None = Field(description="null: routed, but not searched.")
    results: int


class CorpusMiss(Contract):
    """One reviewed row that failed, with the whole story on one line."""

    query_id: str
    query: str | None
    category: str
    split: Split | None
    reasons: Listed[CorpusMissReason]
    expected_sources: dict[str, Listed[str]]
    routed_collections: Listed[str]
    searched: Listed[Searched]
    lost: Listed[LostSource]
    recovered: Listed[str] = Field(description="Expected sources that expansion alone brought in.")
    absent_relationships: Listed[Listed[str]] = Field(description="Expected links that were not followed.")
    leaked: dict[str, Listed[str]] = Field(description="Fragments that the principal may not read, by stage.")
    top_k: int
    merged: Listed[str] = Field(description="The merged list, cut at top_k.")
    final: Listed[str] = Field(description="What was handed on, cut at top_k.")
    error: str | None
    run_id: str
    configuration_fingerprint: str | None
