"""Small multi-collection worlds: rows as their files hold them, evaluated by the real runner."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.builders import Row, write_jsonl
from tripos.contracts.config import Config, CorpusConfig, DepthConfig, GateConfig, JudgmentsConfig, Options
from tripos.contracts.corpus_report import CollectionReport, CorpusReport
from tripos.contracts.reports import Aggregate, Curve
from tripos.runners.corpus import CorpusEvaluation, evaluate


def expects(query_id: str, sources: Mapping[str, Sequence[str]], **more: Any) -> Row:
    """A reviewed row that expects sources by collection; none: nothing should be routed."""
    count = sum(map(len, sources.values()))
    return {
        "query_id": query_id,
        "query": f"What of {query_id}?",
        "expected_collections": list(sources),
        "expected_sources": {name: list(own) for name, own in sources.items()},
        "should_match": bool(sources),
        "category": "negative" if not sources else "multi_hop" if count > 1 else "single_hop_factual",
        "review_status": "reviewed",
        **more,
    }


def fan(collection: str, *fragments: str, k: int = 3, **more: Any) -> Row:
    """What one collection returned."""
    return {"collection": collection, "k": k, "results": [{"fragment_id": name} for name in fragments], **more}


def result(query_id: str, *fans: Row, merged: Iterable[str] | None = None, **more: Any) -> Row:
    """What the system did; routed to where it searched, and merged one list after the other, unless said otherwise."""
    every = [hit["fragment_id"] for one in fans for hit in one["results"]]
    row = {"query_id": query_id, "routed_collections": [one["collection"] for one in fans], "fan_out": list(fans)}
    return {**row, "merged": every if merged is None else list(merged), **more}


def link(subject: str, predicate: str, target: str) -> Row:
    """One relationship."""
    return {"subject": subject, "predicate": predicate, "object": target}


def library(**collections: Sequence[str]) -> list[Row]:
    """One fragment a source, `SOURCE::f1`, in each collection."""
    return [
        {"fragment_id": f"{source}::f1", "text": f"text of {source}", "collection": name, "acl": ["everyone"]}
        for name, sources in collections.items()
        for source in sources
    ]


@dataclass(frozen=True)
class CorpusWorld:
    """Everything one evaluation reads."""

    judgments: Sequence[Row]
    results: Sequence[Row]
    fragments: Sequence[Row] = ()
    top_k: int = 10
    unit: Literal["fragment", "source"] = "fragment"
    per_collection: Mapping[str, int] | None = None
    gates: Mapping[str, GateConfig] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def corpus_config(folder: Path, world: CorpusWorld) -> Config:
    """Write the world's files to the folder; the configuration that names them."""
    fragments = [write_jsonl(folder / "fragments.jsonl", world.fragments)] if world.fragments else []
    per_collection = None if world.per_collection is None else dict(world.per_collection)
    return Config(
        fragments=tuple(fragments),
        judgments=JudgmentsConfig(corpus=write_jsonl(folder / "judgments.jsonl", world.judgments)),
        corpus=CorpusConfig(results=write_jsonl(folder / "results.jsonl", world.results)),
        depth=DepthConfig(limit=max(50, world.top_k), top_k=world.top_k, unit=world.unit, per_collection=per_collection),
        gates=dict(world.gates),
    )


def evaluated(world: CorpusWorld) -> CorpusEvaluation:
    """The world through the real pipeline: files, checks, alignment, measures, report."""
    with tempfile.TemporaryDirectory() as folder:
        return evaluate(corpus_config(Path(folder), world), Options(**world.options))


def value(report: CorpusReport, name: str) -> float | None:
    """The value of a measure over all rows."""
    found = report.measures[name]
    assert isinstance(found, Aggregate)
    return found.value


def collection(report: CorpusReport, name: str) -> CollectionReport:
    """The report of one collection."""
    (found,) = [part for part in report.collections if part.collection == name]
    return found


def own(report: CorpusReport, name: str, measure: str) -> Any:
    """A figure of one collection: a number, or the list of a curve."""
    found = collection(report, name).measures[measure]
    return list(found.value) if isinstance(found, Curve) else found.value
