"""Small worlds for tests: rows as their files hold them, written as JSONL and evaluated by the real runner."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tripos.contracts.config import Config, DepthConfig, JudgmentsConfig, Options, SearchConfig
from tripos.contracts.reports import Aggregate, Curve, RetrievalReport
from tripos.runners.retrieval import Evaluation, evaluate, per_query_rows

Row = dict[str, Any]
Order = Literal["strict", "list", "score", "trec"]


@dataclass(frozen=True)
class World:
    """Everything one evaluation reads. Rows are written as they stand, so that a test sees what a file would hold."""

    judgments: Sequence[Row]
    results: Sequence[Row]
    fragments: Sequence[Row] = ()
    limit: int = 10
    top_k: int | None = None
    unit: Literal["fragment", "source"] = "fragment"
    min_score: float | None = None
    acl_default: Literal["public", "deny"] | None = None
    order: Order = "strict"
    cutoffs: Sequence[int] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def judgment(query_id: str, *expected: str, **fields: Any) -> Row:
    """A reviewed row that expects the sources named; none named: a row that should find nothing."""
    row: Row = {
        "query_id": query_id,
        "query": f"What of {query_id}?",
        "expected_sources": list(expected),
        "should_match": bool(expected),
        "category": "single_hop_factual" if expected else "negative",
        "review_status": "reviewed",
    }
    return {**row, **fields}


def graded(query_id: str, grades: Mapping[str, float], **fields: Any) -> Row:
    """A reviewed row whose expected sources carry grades."""
    return judgment(query_id, *grades, relevance=dict(grades), **fields)


def fragment(fragment_id: str, **fields: Any) -> Row:
    """One fragment, with some text."""
    return {"fragment_id": fragment_id, "text": f"text of {fragment_id}", **fields}


def listed(query_id: str, *fragment_ids: str, **fields: Any) -> Row:
    """Ranked results without scores, best first."""
    return {"query_id": query_id, "fragment_ids": list(fragment_ids), **fields}


def scored(query_id: str, scores: Mapping[str, float], **fields: Any) -> Row:
    """Ranked results with scores, in the order given."""
    return {"query_id": query_id, "fragment_ids": list(scores), "scores": list(scores.values()), **fields}


def write_jsonl(path: Path, rows: Iterable[Row]) -> str:
    """Write one JSON object a line; returns the path as the config names it."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def config_of(folder: Path, world: World) -> Config:
    """Write the world's files to the folder; the configuration that names them."""
    fragments = [write_jsonl(folder / "fragments.jsonl", world.fragments)] if world.fragments else []
    return Config(
        fragments=tuple(fragments),
        acl_default=world.acl_default,
        judgments=JudgmentsConfig(retrieval=write_jsonl(folder / "judgments.jsonl", world.judgments)),
        ranked_results=write_jsonl(folder / "ranked-results.jsonl", world.results),
        search=SearchConfig(mode="lexical", min_score=world.min_score),
        depth=DepthConfig(limit=world.limit, top_k=world.top_k, unit=world.unit),
    )


def evaluated(world: World) -> Evaluation:
    """The world through the real pipeline: files, checks, alignment, measures, report."""
    with tempfile.TemporaryDirectory() as folder:
        options = Options(order=world.order, **world.options)
        return evaluate(config_of(Path(folder), world), options, cutoffs=world.cutoffs)


def curve(report: RetrievalReport, name: str) -> Curve:
    """A measure with one figure a cutoff, e.g. "hit@k"."""
    found = report.measures[name]
    assert isinstance(found, Curve)
    return found


def single(report: RetrievalReport, name: str) -> Aggregate:
    """A measure with one figure, e.g. "bpref" or "hit@case"."""
    found = report.measures[name]
    assert isinstance(found, Aggregate)
    return found


def at(report: RetrievalReport, name: str) -> float | None:
    """The value under a measure's full name: "hit@3", "hit@case", "bpref"."""
    base, _, cutoff = name.partition("@")
    return curve(report, f"{base}@k").value[int(cutoff) - 1] if cutoff.isdigit() else single(report, name).value


def by_query(evaluation: Evaluation) -> dict[str, Row]:
    """The per-query rows by query id."""
    return {row["query_id"]: row for row in per_query_rows(evaluation)}
