"""What a corpus evaluation puts into the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from tripos.columns.corpus import CorpusColumns
from tripos.contracts.config import Config
from tripos.contracts.corpus import LOSSES, STAGES, CorpusMiss
from tripos.files.reports import plain
from tripos.fingerprint import round12
from tripos.measures.aggregate import population
from tripos.measures.corpus import CORPUS
from tripos.runners.corpus import CorpusEvaluation
from tripos.store.content import Content, measure_rows
from tripos.store.writer import Rows


def content_of(outcome: CorpusEvaluation, config: Config) -> Content:
    """The tables of one corpus run; nothing is read again."""
    report, columns = outcome.report, outcome.columns
    measures = per_query(columns)
    tables: dict[str, Rows] = {
        "measures": measure_rows(report, "corpus", ()),
        "queries": _queries(outcome, measures),
        "misses": map(_miss, outcome.misses),
        "corpus_rows": _rows(outcome),
    }
    depth = report.fingerprint.components["D"].values or {}
    facts: dict[str, Any] = {
        "results_digest": report.results_digest,
        "retrieval_run_id": report.retrieval_run_id,
        "mode": config.search.mode,
        "result_limit": depth.get("limit"),
        "top_k": depth.get("top_k"),
        "unit": depth.get("unit"),
        "cutoffs": [],
        "incomplete": len(report.rows.incomplete),
    }
    told = zip(columns.rows, columns.latency_ms.tolist(), strict=True)
    latencies = {row.query_id: ms for row, ms in told if ms == ms}  # noqa: PLR0124 - NaN: not told
    return Content("corpus", report, tables, list(measures), facts, latencies)


def per_query(columns: CorpusColumns) -> dict[str, list[float | None]]:
    """Every measure on each row; None outside its population, and where undefined or incomplete."""
    found: dict[str, list[float | None]] = {}
    for name, record in CORPUS.items():
        values = record.function(columns)
        there = (values.undefined == 0) & columns.complete & population(record, columns.positive)
        found[name] = [round12(v) if ok else None for v, ok in zip(values.value.tolist(), there.tolist(), strict=True)]
    return found


def _queries(outcome: CorpusEvaluation, measures: Mapping[str, Sequence[float | None]]) -> Iterator[dict[str, Any]]:
    columns, because = outcome.columns, {row.query_id: row.because for row in outcome.report.rows.incomplete}
    for n, row in enumerate(columns.rows):
        yield {
            "run_id": outcome.report.run_id,
            "layer": "corpus",
            "query_id": row.query_id,
            "query": row.query,
            "category": row.category,
            "split": row.split,
            "cluster": row.cluster,
            "slices": orjson.dumps(row.slices, option=orjson.OPT_SORT_KEYS).decode(),
            "positive": row.should_match,
            "complete": bool(columns.complete[n]),
            "because": because.get(row.query_id),
            "reasons": list(columns.reasons[n]),
            **{name: values[n] for name, values in measures.items()},
        }


def _rows(outcome: CorpusEvaluation) -> Iterator[dict[str, Any]]:
    columns = outcome.columns
    counts: dict[str, Any] = {
        "expected": columns.n_expected,
        **{f"kept_{stage}": columns.kept(stage) for stage in STAGES},
        **{loss: columns.lost(loss) for loss in LOSSES},
        "recovered_by_expansion": columns.per_row(columns.sources, columns.recovered),
        "leaks": columns.leaks[:, 0],
    }
    routed = _routed(columns)
    for n, row in enumerate(columns.rows):
        complete = bool(columns.complete[n])
        yield {
            "run_id": outcome.report.run_id,
            "query_id": row.query_id,
            "category": row.category,
            "complete": complete,
            "expected_collections": sorted(row.expected_collections),
            "routed_collections": routed[n] if complete else None,
            **{name: int(values[n]) if complete or name == "expected" else None for name, values in counts.items()},
        }


def _routed(columns: CorpusColumns) -> list[list[str]]:
    routed: list[list[str]] = [[] for _ in columns.rows]
    fans = columns.fans
    for n in np.flatnonzero(fans.routed).tolist():
        routed[int(fans.query[n])].append(columns.collections[int(fans.collection[n])])
    return [sorted(names) for names in routed]


def _miss(miss: CorpusMiss) -> dict[str, Any]:
    own = {name: getattr(miss, name) for name in ("run_id", "query_id", "query", "category", "split", "error")}
    return {
        **own,
        "layer": "corpus",
        "reasons": list(miss.reasons),
        "expected_sources": sorted(f"{c}/{source}" for c, sources in miss.expected_sources.items() for source in sources),
        "missed_sources": sorted(f"{lost.collection}/{lost.source_id}" for lost in miss.lost),
        "story": orjson.dumps(plain(miss)).decode(),
    }
