"""One record a table: its columns with type and meaning. Writer, views, `query --tables`, docs and checks derive from these.

A column is added by one line here: files written before lack it, and are read as null there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Place = Literal["runs", "executions", "latencies", "certificates"]
"""The folder of a table's files: `runs` has a folder a run, the others a file an entry."""


class Column(NamedTuple):
    """One column: its DuckDB type and what it says."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table: a Parquet file a run (or execution, or certificate), rows in a fixed order."""

    name: str
    title: str
    columns: tuple[Column, ...]
    place: Place = "runs"
    has_measures: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its own columns."""
        return tuple(column.name for column in self.columns)


def shape(columns: Sequence[Column]) -> str:
    """A short name for a set of columns, in order: files of one shape are read together without looking at each."""
    return hashlib.sha256("\n".join(f"{column.name} {column.type}" for column in columns).encode()).hexdigest()[:8]


MEASURE_TYPE = "DOUBLE"
_RUN = Column("run_id", "VARCHAR", "The run: sha256 of its report's content.")
_LAYER = Column("layer", "VARCHAR", "retrieval, generation or corpus.")
_QUERY = Column("query_id", "VARCHAR", "The query, as in the judgments.")
_TEXT = Column("query", "VARCHAR", "Its text.")
_CATEGORY = Column("category", "VARCHAR", "Its category.")
_SPLIT = Column("split", "VARCHAR", "tune or holdout; null: neither.")
_COMPLETE = Column("complete", "BOOLEAN", "Whether it has a usable result; else no measure has a value.")

RUNS = Table(
    "runs",
    "Every run once, however often it was executed: what was measured, under which fingerprint, and the verdict.",
    (
        _RUN,
        _LAYER,
        Column("name", "VARCHAR", "The system's name, as configured."),
        Column("scope", "VARCHAR", "full or integration."),
        Column("configuration", "VARCHAR", "Configuration fingerprint (A, B, C, D); null: unbound."),
        Column("system", "VARCHAR", "System fingerprint (A, C, D); null: unbound."),
        Column("measurement", "VARCHAR", "How the numbers were taken."),
        Column("a_corpus", "VARCHAR", "Digest of component A."),
        Column("b_judgments", "VARCHAR", "Digest of component B: the retrieval judgments."),
        Column("c_policy", "VARCHAR", "Digest of component C: the search policy."),
        Column("d_depth", "VARCHAR", "Digest of component D: the evidence depth."),
        Column("judgments_digest", "VARCHAR", "Digest of this layer's own judgments: compare needs it equal."),
        Column("results_digest", "VARCHAR", "Digest of the results (generation: of the answers)."),
        Column("retrieval_run_id", "VARCHAR", "The retrieval run that a later layer is bound to."),
        Column("mode", "VARCHAR", "Search mode."),
        Column("result_limit", "BIGINT", "Results considered for each query (depth.limit)."),
        Column("top_k", "BIGINT", "Results handed on."),
        Column("unit", "VARCHAR", "What a position counts: fragment or source."),
        Column("cutoffs", "BIGINT[]", "Headline cutoffs: those that queries has columns for."),
        Column("measures", "VARCHAR[]", "The measures that queries has columns for in this run."),
        Column("model", "VARCHAR", "Who answered (generation)."),
        Column("judge", "VARCHAR", "Who gave the faithfulness scores (generation)."),
        Column("scored", "BIGINT", "Rows scored."),
        Column("incomplete", "BIGINT", "Of them, without a usable result."),
        Column("missed", "BIGINT", "Of them, with at least one reason to be a miss."),
        Column("verdict", "VARCHAR", "passed, failed or incomplete."),
        Column("exit_code", "BIGINT", "The verdict's exit code."),
        Column("because", "VARCHAR[]", "Why it is not passed."),
        Column("exploratory", "VARCHAR[]", "Why the run cannot certify (--lenient); empty: nothing was let pass."),
        Column("components", "VARCHAR", "A–D with their values, as JSON."),
        Column("reading", "VARCHAR", "How the files were read, as JSON."),
    ),
)

MEASURES = Table(
    "measures",
    "Every figure of every run, one a row: over all rows at every cutoff, by slice at the headline cutoffs.",
    (
        _RUN,
        _LAYER,
        Column("measure", "VARCHAR", "Its name without cutoff, e.g. hit."),
        Column("k", "BIGINT", "The cutoff; null: the measure has none, or it is each row's own (…@case)."),
        Column("slice_by", "VARCHAR", "The slice's name, e.g. category; null: all rows."),
        Column("slice_value", "VARCHAR", "The slice's value."),
        Column("value", "DOUBLE", "The figure; null where undefined."),
        Column("worst", "DOUBLE", "With each incomplete row at its bad end."),
        Column("n", "BIGINT", "Rows that value rests on."),
        Column("n_undefined", "BIGINT", "Rows on which it is not defined."),
        Column("incomplete", "BIGINT", "Rows without a usable result."),
        Column("ci_low", "DOUBLE", "95 % interval, low end; headline cutoffs alone."),
        Column("ci_high", "DOUBLE", "High end."),
        Column("ci_method", "VARCHAR", "wilson, bootstrap or normal."),
        Column("undefined", "VARCHAR", "Why value is null."),
    ),
)

QUERIES = Table(
    "queries",
    "Every scored query of every run, with a column for each measure at each headline cutoff.",
    (
        _RUN,
        _LAYER,
        _QUERY,
        _TEXT,
        _CATEGORY,
        _SPLIT,
        Column("cluster", "VARCHAR", "Rows of one cluster are not independent."),
        Column("slices", "VARCHAR", "Declared slices, as JSON."),
        Column("positive", "BOOLEAN", "Whether something should be found (generation: answered)."),
        _COMPLETE,
        Column("because", "VARCHAR", "Why it is incomplete."),
        Column("reasons", "VARCHAR[]", "Why it is a miss; empty: it is none."),
        Column("first_relevant_rank", "BIGINT", "Position of the first expected source within limit (retrieval)."),
        Column("n_results", "BIGINT", "Positions after min_score and limit (retrieval)."),
    ),
    has_measures=True,
)

RANKED_RESULTS = Table(
    "ranked_results",
    "The positions of every scored query as they were measured, after min_score and limit (retrieval).",
    (
        _RUN,
        _QUERY,
        Column("rank", "BIGINT", "From 1."),
        Column("fragment_id", "VARCHAR", "The fragment; with unit source, the source's first."),
        Column("source_id", "VARCHAR", "Its source."),
        Column("score", "DOUBLE", "As given."),
        Column(
            "relevant", "BOOLEAN", "true: an expected source; false: judged not to be; null: nobody judged it for this query."
        ),
        Column("grade", "DOUBLE", "Its gain; 0 where judged not relevant, null where not judged."),
    ),
)

MISSES = Table(
    "misses",
    "Every failed query of every run, all layers, with its reasons and its whole story.",
    (
        _RUN,
        _LAYER,
        _QUERY,
        _TEXT,
        _CATEGORY,
        _SPLIT,
        Column("reasons", "VARCHAR[]", "From the layer's closed list."),
        Column("expected_sources", "VARCHAR[]", "What should have been found; corpus: collection/source."),
        Column("missed_sources", "VARCHAR[]", "Of them, those that were not (retrieval: not within depth)."),
        Column("error", "VARCHAR", "What the system itself said went wrong."),
        Column("story", "VARCHAR", "The line of the misses file, as JSON."),
    ),
)

GENERATION_ROWS = Table(
    "generation_rows",
    "The verdict on every answer of every generation run.",
    (
        _RUN,
        _QUERY,
        _CATEGORY,
        Column("model", "VARCHAR", "Who answered."),
        Column("expected_answerable", "VARCHAR", "true, false or partial."),
        Column("status", "VARCHAR", "What became of the row."),
        Column("grounds", "VARCHAR[]", "Every ground on which it fails or is undecided."),
        Column("abstained", "BOOLEAN", "Whether it declined; null: no answer."),
        Column("abstention_origin", "VARCHAR", "How that was told."),
        Column("requirement_coverage", "DOUBLE", "Requirements met / all."),
        Column("citation_precision", "DOUBLE", "Accepted citations / all."),
        Column("faithfulness_score", "DOUBLE", "As scored."),
        Column("faithfulness_source", "VARCHAR", "given, judged or human."),
        Column("confidence", "DOUBLE", "The system's own."),
        Column("cited", "VARCHAR[]", "Distinct fragments cited."),
        Column("nonexistent", "VARCHAR[]", "Of them, those that no corpus holds: made up."),
        Column("not_shown", "VARCHAR[]", "Of them, those that the model was not shown."),
        Column("not_accepted", "VARCHAR[]", "Of them, those that do not support the answer."),
    ),
)

REQUIREMENTS = Table(
    "requirements",
    "Whether each answer met each requirement of its question.",
    (
        _RUN,
        _QUERY,
        Column("requirement_id", "VARCHAR", "The fact that must be supported."),
        Column("importance", "VARCHAR", "vital or okay."),
        Column("met", "BOOLEAN", "Whether some citation supports it."),
        Column("met_by", "VARCHAR[]", "Those citations."),
        Column("status", "VARCHAR", "What became of the answer."),
    ),
)

CORPUS_ROWS = Table(
    "corpus_rows",
    "What became of each question's evidence in every corpus run, stage by stage.",
    (
        _RUN,
        _QUERY,
        _CATEGORY,
        _COMPLETE,
        Column("expected_collections", "VARCHAR[]", "Where it should be routed."),
        Column("routed_collections", "VARCHAR[]", "Where it was, by name."),
        Column("expected", "BIGINT", "Expected sources."),
        Column("kept_routed", "BIGINT", "Of them, still there after routing."),
        Column("kept_retrieved", "BIGINT", "After the fan-out."),
        Column("kept_merged", "BIGINT", "After merging."),
        Column("kept_final", "BIGINT", "Handed on."),
        Column("lost_by_routing", "BIGINT", "Lost sources, each charged once: to routing,"),
        Column("lost_by_rank", "BIGINT", "to a collection's own ranking,"),
        Column("lost_by_merge", "BIGINT", "to merging,"),
        Column("displaced_by_expansion", "BIGINT", "to expansion."),
        Column("recovered_by_expansion", "BIGINT", "Brought in by expansion alone."),
        Column("leaks", "BIGINT", "Distinct fragments that the reader may not see, at any stage."),
    ),
)

LATENCIES = Table(
    "latencies",
    "How long each query took in each execution: clock readings, which belong to no run.",
    (
        Column("execution_id", "VARCHAR", "The execution."),
        _RUN,
        _LAYER,
        _QUERY,
        Column("latency_ms", "DOUBLE", "Milliseconds, as the system told."),
    ),
    place="latencies",
)

EXECUTIONS = Table(
    "executions",
    "Every invocation: the same run on three nights is one run and three executions.",
    (
        Column("execution_id", "VARCHAR", "Its time, run and a random end."),
        Column("time", "TIMESTAMP", "When it was stored, in UTC."),
        _RUN,
        _LAYER,
        Column("name", "VARCHAR", "The system's name."),
        Column("labels", "VARCHAR[]", "As given with --label."),
        Column("git_commit", "VARCHAR", "The commit of the working folder; null: not in git."),
        Column("git_dirty", "BOOLEAN", "Whether tracked files differed from it."),
        Column("verdict", "VARCHAR", "The run's verdict."),
        Column("tool", "VARCHAR", "The version of Tripos."),
        Column("latency_n", "BIGINT", "Queries with a latency."),
        Column("latency_p50", "DOUBLE", "Milliseconds."),
        Column("latency_p95", "DOUBLE", "Milliseconds."),
        Column("latency_p99", "DOUBLE", "Milliseconds."),
        Column("inputs", "VARCHAR", "The files read, as JSON."),
    ),
    place="executions",
)

CERTIFICATES = Table(
    "certificates",
    "Every certificate, granted or refused.",
    (
        Column("certificate_id", "VARCHAR", "sha256 of its content."),
        Column("certified", "BOOLEAN", "Whether it was granted."),
        Column("name", "VARCHAR", "The system's name."),
        Column("configuration", "VARCHAR", "Configuration fingerprint."),
        Column("run_ids", "VARCHAR[]", "The runs that it rests on."),
        Column("failed_checks", "VARCHAR[]", "Checks that failed."),
        Column("content", "VARCHAR", "The certificate, as JSON."),
    ),
    place="certificates",
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        EXECUTIONS,
        RUNS,
        MEASURES,
        QUERIES,
        RANKED_RESULTS,
        MISSES,
        GENERATION_ROWS,
        REQUIREMENTS,
        CORPUS_ROWS,
        LATENCIES,
        CERTIFICATES,
    )
}
"""Every table by name."""
