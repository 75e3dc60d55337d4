"""What a generation evaluation puts into the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from tripos.columns.generation import PARTIAL, GenerationColumns
from tripos.columns.rows import Kept
from tripos.contracts.config import Config, Options
from tripos.contracts.generation import Answered, Judged
from tripos.errors import Findings
from tripos.files.generation import Seen, read_pairs
from tripos.fingerprint import RowDigests, answer_content, generation_judgment_content, round12, row_digest
from tripos.measures.generation import GENERATION
from tripos.measures.generation_parts import members
from tripos.measures.record import Values
from tripos.runners.generation import GenerationEvaluation, inputs_of, source_of
from tripos.store.content import Content, measure_rows, refuse_changed, refuse_stdin
from tripos.store.writer import Rows

_RESULT = (
    "query_id",
    "category",
    "status",
    "grounds",
    "abstained",
    "abstention_origin",
    "requirement_coverage",
    "citation_precision",
    "faithfulness_score",
    "faithfulness_source",
    "confidence",
)
_FAULTS = ("nonexistent", "not_shown", "not_accepted")


class _About(NamedTuple):
    """What `queries` tells of a question beyond its verdict."""

    query: str | None
    cluster: str | None
    slices: Mapping[str, Any]
    model: str | None
    error: str | None


def content_of(outcome: GenerationEvaluation, kept: Kept, config: Config, options: Options) -> Content:
    """The tables of one generation run.

    Raises InputError where an input came from standard input, or is no longer what it was.
    """
    refuse_stdin(inputs_of(config))
    report, order = outcome.report, outcome.order.tolist()
    latencies: dict[str, float] = {}
    about = _about(outcome, config, options, latencies)
    model = None if report.model is None else report.model.name
    missed = kept.misses(order, report.run_id, report.fingerprint.configuration)
    measures = per_query(outcome.columns)
    tables: dict[str, Rows] = {
        "measures": measure_rows(report, "generation", ()),
        "queries": _queries(report.run_id, _results(kept, order), about, measures),
        "misses": (_miss(orjson.loads(line)) for line in missed),
        "generation_rows": (_row(report.run_id, row, about, model) for row in _results(kept, order)),
        "requirements": (needed for row in _results(kept, order) for needed in _requirements(report.run_id, row)),
    }
    facts = {
        "results_digest": report.answers_digest,
        "model": model,
        "judge": None if report.judge is None else report.judge.name,
        "incomplete": report.rows.incomplete + report.rows.not_judged,
        "cutoffs": [],
        **_basis(report),
    }
    return Content("generation", report, tables, list(measures), facts, latencies)


def _basis(report: Any) -> dict[str, Any]:
    own = report.retrieval
    if own is None:
        return {}
    return {
        "retrieval_run_id": own.run_id,
        "mode": own.mode,
        "result_limit": own.limit,
        "top_k": own.top_k,
        "unit": own.unit,
    }


def _about(outcome: GenerationEvaluation, config: Config, options: Options, latencies: dict[str, float]) -> dict[str, _About]:
    """What the inputs say beyond the verdicts; they are read a second time."""
    source = source_of(config)
    judged_rows, answers, found = RowDigests(), RowDigests(), dict[str, _About]()
    reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
    for _, judged, answered in read_pairs(source, Seen(), Findings(), **reading):
        judged_rows.add(row_digest(generation_judgment_content(judged)))
        answers.add(row_digest(None if answered is None else answer_content(answered)))
        found[judged.query_id] = _told(judged, answered)
        if answered is not None and answered.latency_ms is not None:
            latencies[judged.query_id] = answered.latency_ms
    refuse_changed(source.combined or source.judgments, judged_rows.unordered(), outcome.report.judgments_digest)
    refuse_changed(source.combined or source.answers, answers.unordered(), outcome.report.answers_digest)
    return found


def _told(judged: Judged, answered: Answered | None) -> _About:
    query = judged.query if judged.query is not None or answered is None else answered.query
    model, error = (None, None) if answered is None else (answered.model, answered.error)
    return _About(query, judged.cluster, judged.slices, model, error)


def _results(kept: Kept, order: Sequence[int]) -> Iterator[dict[str, Any]]:
    return map(orjson.loads, kept.results(order))


def per_query(columns: GenerationColumns) -> dict[str, list[float | None]]:
    """Every measure that is a mean of rows, on each row; None outside its population, and where undefined or undecided."""
    found: dict[str, list[float | None]] = {}
    for name, record in GENERATION.items():
        rows = np.flatnonzero(members(record.population, columns) & (columns.kind != PARTIAL))
        made = record.function(columns.take(rows))
        if not isinstance(made, Values):
            continue
        found[name] = [None] * len(columns)
        for row, value, code in zip(rows.tolist(), made.value.tolist(), made.undefined.tolist(), strict=True):
            found[name][row] = round12(value) if code == 0 else None
    return found


def _queries(
    run_id: str,
    results: Iterator[dict[str, Any]],
    about: Mapping[str, _About],
    measures: Mapping[str, Sequence[float | None]],
) -> Iterator[dict[str, Any]]:
    for n, row in enumerate(results):
        own, undecided = about[row["query_id"]], row["status"] in ("incomplete", "not_judged")
        yield {
            "run_id": run_id,
            "layer": "generation",
            "query_id": row["query_id"],
            "query": own.query,
            "category": row["category"],
            "cluster": own.cluster,
            "slices": orjson.dumps(own.slices, option=orjson.OPT_SORT_KEYS).decode(),
            "positive": row["expected_answerable"] is not False,
            "complete": not undecided,
            "because": row["reasons"][0] if undecided and row["reasons"] else None,
            "reasons": row["grounds"],
            **{name: values[n] for name, values in measures.items()},
        }


def _row(run_id: str, row: Mapping[str, Any], about: Mapping[str, _About], model: str | None) -> dict[str, Any]:
    answerable = row["expected_answerable"]
    return {
        **{name: row[name] for name in _RESULT},
        "run_id": run_id,
        "model": about[row["query_id"]].model or model,
        "expected_answerable": answerable if isinstance(answerable, str) else str(answerable).lower(),
        "cited": [c["fragment_id"] for c in row["citations"]],
        **{fault: [c["fragment_id"] for c in row["citations"] if c["fault"] == fault] for fault in _FAULTS},
    }


def _requirements(run_id: str, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for needed in row["requirements"]:
        own = {name: needed[name] for name in ("requirement_id", "importance", "met")}
        yield {"run_id": run_id, "query_id": row["query_id"], **own, "met_by": needed["by"], "status": row["status"]}


def _miss(miss: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: miss[name] for name in ("run_id", "query_id", "query", "category", "error")}
    return {**own, "layer": "generation", "reasons": miss["grounds"], "story": orjson.dumps(miss).decode()}
