"""configs/*.yaml: one strict model, every key documented; flags > file > defaults."""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tripos.contracts.base import Contract, Id, Json, Listed, NonNegative, PositiveInt, RowProblem, RowProblems, Scalar
from tripos.contracts.retrieval import Completeness

MODES = ("lexical", "dense", "hybrid")
"""Known values of `search.mode`, which is free text."""

INTEGRATION_CUTOFFS = (1, 3)

Language = Literal["en", "de", "fr", "es", "zh", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es", "zh", "ja")
"""Languages with shipped abstention phrases."""

TargetName = Literal["faithfulness", "qualified", "abstention"]


class JudgmentsConfig(Contract):
    """Stage B: the reviewed judgments."""

    retrieval: Annotated[str, Field(min_length=1)] | None = Field(None, description="Path of the retrieval judgments.")
    generation: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="Path of the reviewed part of the generation layer, joined to generation.answers."
    )
    corpus: Annotated[str, Field(min_length=1)] | None = Field(None, description="Path of the corpus judgments.")
    version: str | None = Field(None, description="The version you give this golden set; part of component B.")
    completeness: Completeness = Field(
        "known_item", description="known_item: some right answers are listed; pooled; exhaustive: all of them are."
    )


class ExpansionPolicy(Contract):
    """How the embedded fan-out follows links from what it merged."""

    fields: Listed[Id] = Field(description="Metadata fields whose value names another source.")
    seeds: PositiveInt = Field(3, description="Merged fragments, from the first, whose sources' links are followed.")
    most: PositiveInt = Field(2, description="Fragments added at most, at the end of the top K.")
    rounds: PositiveInt = Field(1, description="How often links are followed; 2: from what was added, too.")


class FanOutPolicy(Contract):
    """How the embedded fan-out routes, merges and expands."""

    router: Literal["hits", "names", "all"] = Field(
        "hits", description="hits: collections with the best hits; names: by words of the question; all: everywhere."
    )
    names: dict[Id, Listed[Annotated[str, Field(min_length=1)]]] = Field(
        {}, description="Words that route to a collection, for router names."
    )
    share: Annotated[float, Field(ge=0, le=1)] = Field(
        0.7, description="For router hits: the share of the best score that a collection's own best must reach."
    )
    min_score: NonNegative = Field(0.0, description="For router hits: collections whose best score is below it are left out.")
    most: PositiveInt | None = Field(None, description="Collections routed to at most.")
    rrf_k: PositiveInt = Field(60, description="Lists are merged by Σ 1 / (rrf_k + rank).")
    expansion: ExpansionPolicy | None = Field(None, description="Absent: no expansion.")


class SearchConfig(Contract):
    """Stage C: the search policy. What the system under test did; its digest is component C."""

    mode: Annotated[str, Field(min_length=1)] | None = Field(None, description="lexical, dense, hybrid, or your own name.")
    min_score: float | None = Field(None, description="Results below it are dropped before any measure.")
    embedding_model: str | None = Field(None, description="name@revision.")
    fusion: dict[str, Scalar] | None = Field(None, description="How lists are merged, e.g. {method: rrf, k: 60}.")
    filters: dict[str, Scalar] | None = Field(None, description="Metadata that every query is restricted to.")
    lexical: dict[str, Scalar] | None = Field(None, description="Parameters of the lexical part: k1, b, stemmer, stopwords.")
    reranker: str | None = Field(None, description="name@revision.")
    fan_out: FanOutPolicy | None = Field(None, description="Routing, merge and expansion of tripos fan-out; see below.")
    options: dict[str, Json] | None = Field(None, description="Anything else the policy depends on.")

    def policy(self) -> dict[str, Any]:
        """The policy object that component C digests: what is stated, and nothing else."""
        return self.model_dump(mode="json", exclude_none=True)


class DepthConfig(Contract):
    """Stage D: the evidence depth."""

    limit: Annotated[int, Field(ge=1, le=100_000)] = Field(50, description="Results considered for each query.")
    top_k: PositiveInt | None = Field(None, description="Results handed on to the generator; default: limit.")
    unit: Literal["fragment", "source"] = Field("fragment", description="What a position counts.")
    per_collection: dict[Id, PositiveInt] | None = Field(None, description="k of each collection.")

    @model_validator(mode="after")
    def _within(self) -> DepthConfig:
        if self.top_k is not None and self.top_k > self.limit:
            text = f"{self.top_k} is beyond limit {self.limit}: nothing is known there"
            raise RowProblems([RowProblem("depth", "top_k", text)])
        return self

    @property
    def handed_on(self) -> int:
        """top_k, by default limit."""
        return self.limit if self.top_k is None else self.top_k


class AbstentionConfig(Contract):
    """When an answer that does not say whether it abstained is one that did."""

    languages: Listed[Language] = Field(LANGUAGES, description="Languages whose shipped phrases count, as whole answers.")
    phrases: Listed[Annotated[str, Field(min_length=1)]] = Field((), description="Your own phrases, as whole answers.")


class GenerationConfig(Contract):
    """The generation layer: where answers are, who gave and judged them, and what they must reach."""

    input: str | None = Field(
        None, description="Path of answers with their reviewed part on one line; default: RUN/generation-input.jsonl."
    )
    answers: str | None = Field(None, description="Path of answers alone; their reviewed part is judgments.generation.")
    retrieval_report: str | None = Field(
        None, description="The retrieval report that the answers are bound to; default: RUN/retrieval/report.json."
    )
    model: Annotated[str, Field(min_length=1)] | None = Field(None, description="Who answered, name@revision.")
    judge_model: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="Who gave the faithfulness scores, name@revision."
    )
    approved_judges: str | None = Field(None, description="Path of the list of approved judges.")
    faithfulness_target: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8, description="What each answer's faithfulness, and the mean of all, must reach."
    )
    qualified_answer_target: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8, description="The share of answerable questions that must have a qualified answer."
    )
    abstention_target: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8, description="The share of unanswerable questions that must be declined."
    )
    dropped_gates: Listed[TargetName] = Field(
        (), description="Of faithfulness, qualified and abstention, those that gate nothing (a set without such rows)."
    )
    abstention: AbstentionConfig = AbstentionConfig()


class CorpusConfig(Contract):
    """The corpus layer: what a multi-collection system did, stage by stage."""

    results: str | None = Field(None, description="Path of the corpus results; default: RUN/corpus-results.jsonl.")
    retrieval_report: str | None = Field(
        None, description="The retrieval report that they are bound to; default: RUN/retrieval/report.json."
    )


LayerName = Literal["retrieval", "generation", "corpus"]
"""The three papers that a system sits."""


class CertificationConfig(Contract):
    """What tripos certify demands of a full run."""

    layers: Annotated[Listed[LayerName], Field(min_length=1)] = Field(
        ("retrieval", "generation"), description="Layers that the certificate covers; retrieval is always among them."
    )
    min_limit: PositiveInt = Field(50, description="The smallest depth.limit that certifies.")
    binding: Literal["verified", "declared"] = Field(
        "verified", description="verified: every result and answer carries its stamp; declared: stamps may be absent."
    )
    approved_judges: str | None = Field(
        None, description="Path of the list of approved judges; default: generation.approved_judges."
    )


class GateConfig(Contract):
    """One threshold; exactly one of min and max."""

    min: float | None = Field(None, description="Fails below it.")
    max: float | None = Field(None, description="Fails above it.")
    slice: dict[str, str | bool | int] | None = Field(None, description="One slice instead of all rows, e.g. {split: holdout}.")

    @model_validator(mode="after")
    def _one_bound(self) -> GateConfig:
        if (self.min is None) == (self.max is None):
            raise RowProblems([RowProblem("gate", "min", "give exactly one of min and max")])
        if self.slice is not None and len(self.slice) != 1:
            raise RowProblems([RowProblem("gate", "slice", "names exactly one slice, e.g. {split: holdout}")])
        return self


class Config(Contract):
    """A configuration file. Paths are relative to the file itself."""

    name: Annotated[str, Field(min_length=1)] = Field("unnamed", description="Shown on every report.")
    scope: Literal["full", "integration"] = Field("full", description="integration: a small fixture that checks wiring.")
    fragments: Listed[str] = Field((), description="Paths of the corpus, or NAME=PATH to set the collection.")
    acl_default: Literal["public", "deny"] | None = Field(None, description="Who reads a fragment without acl.")
    judgments: JudgmentsConfig = Field(JudgmentsConfig(), description="Stage B; see below.")
    ranked_results: str | None = Field(None, description="Path of the ranked results; default: RUN/ranked-results.jsonl.")
    timings: str | None = Field(None, description="Path of latencies by query; default: RUN/timings.jsonl where it exists.")
    run: str | None = Field(None, description="Folder of the full run; reports go to its retrieval/, generation/, corpus/.")
    search: SearchConfig = Field(SearchConfig(), description="Stage C; see below.")
    depth: DepthConfig = Field(DepthConfig(), description="Stage D; see below.")
    generation: GenerationConfig = GenerationConfig()
    corpus: CorpusConfig = CorpusConfig()
    gates: dict[str, GateConfig] = Field({}, description="Thresholds by measure, e.g. hit@10: {min: 0.9}.")
    store: str | None = Field(None, description="Folder of the run history; default: store beside RUN, else engagement/store.")
    certification: CertificationConfig = Field(CertificationConfig(), description="What tripos certify demands; see below.")

    @property
    def approved_judges(self) -> str | None:
        """The list of approved judges: the generation layer's, else certification's."""
        return self.generation.approved_judges or self.certification.approved_judges


class Options(Contract):
    """How one evaluation reads its files; given by flags alone."""

    order: Literal["strict", "list", "score", "trec"] = "strict"
    duplicates: Literal["error", "keep-first"] = "error"
    split: Literal["all", "tune", "holdout"] = "all"
    lenient: bool = False
    allow_extra: bool = False
    allow_incomplete: bool = False
    all_errors: bool = False
    workers: int = Field(0, ge=0, description="Processes; 0: one, or one a core where the file is large.")
    memory_limit: int = Field(0, ge=0, description="Bytes that reading may take before it spills; 0: 1 GiB.")


def merged(file: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """The file's settings with flags laid over them; `flags` has dotted keys, None means "not given"."""
    result: dict[str, Any] = copy.deepcopy(file)
    for dotted, value in flags.items():
        if value is None or value == []:
            continue
        *parents, leaf = dotted.split(".")
        here = result
        for parent in parents:
            if not isinstance(here.get(parent), dict):
                here[parent] = {}
            here = here[parent]
        here[leaf] = value
    return result


def origins(
    config: Config, file: dict[str, Any], flags: dict[str, Any], gates: dict[str, Any] | None = None
) -> list[tuple[str, Any, str]]:
    """Every setting as (dotted key, value, "flag" | "file" | "default"), for --print-config."""

    def origin(dotted: str) -> str:
        if flags.get(dotted) not in (None, []) or (dotted == "gates" and gates):
            return "flag"
        here: Any = file
        for part in dotted.split("."):
            if not isinstance(here, dict) or part not in here:
                return "default"
            here = here[part]
        return "file"

    rows: list[tuple[str, Any, str]] = []
    for key, value in config.model_dump(mode="json").items():
        nested = value if key in ("judgments", "search", "depth", "generation", "corpus", "certification") else {"": value}
        rows += [(dotted := f"{key}.{leaf}" if leaf else key, inner, origin(dotted)) for leaf, inner in nested.items()]
    return rows
