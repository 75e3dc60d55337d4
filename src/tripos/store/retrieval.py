"""What a retrieval evaluation puts into the store: its inputs are read a second time, for what the report does not keep."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tripos.columns.ranking import Order, Ranked, ranked, select, without_duplicates
from tripos.contracts.config import Config, Options
from tripos.contracts.fragments import source_of
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import Findings
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import load_judgments, load_timings, read_fragments, split_name
from tripos.files.spool import Spool
from tripos.fingerprint import RowDigests, judgments_component, results_content
from tripos.runners.retrieval import Evaluation, per_query_rows
from tripos.store.content import Content, measure_rows, refuse_changed, refuse_stdin
from tripos.store.writer import Rows

_FIXED = ("query_id", "complete")


@dataclass(slots=True)
class _Rankings:
    """Measured positions by query id, put aside as lines; with what `queries` and `latencies` tell of them."""

    run_id: str
    lines: Spool = field(default_factory=Spool)
    places: dict[str, int] = field(default_factory=dict)
    counts: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    latencies: dict[str, float] = field(default_factory=dict)

    def take(self, lists: Mapping[str, Any], judgment: RetrievalJudgment) -> None:
        """Put one query's positions aside."""
        name, sources = judgment.query_id, lists["source_id"]
        expected = set(judgment.expected_sources)
        self.counts[name] = (len(sources), next((n for n, source in enumerate(sources, 1) if source in expected), None))
        if sources:
            self.places[name] = self.lines.append(orjson.dumps({"run_id": self.run_id, **lists}))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a query, with lists, by query id; queries without results have none."""
        for name in sorted(self.places):
            yield orjson.loads(self.lines.read(self.places[name]))


def content_of(outcome: Evaluation, config: Config, options: Options) -> Content:
    """The tables of one retrieval run.

    Raises InputError where an input came from standard input, or is no longer what it was.
    """
    files = [config.judgments.retrieval, config.ranked_results, config.timings]
    refuse_stdin([*files, *(split_name(path)[1] for path in config.fragments)])
    figures = list(per_query_rows(outcome))
    judged = _judgments(outcome, config, options, {row["query_id"] for row in figures})
    rankings = _rankings(outcome, config, options, judged)
    misses = [orjson.loads(line) for line in outcome.miss_lines()]
    report = outcome.report
    tables: dict[str, Rows] = {
        "measures": measure_rows(report, "retrieval", outcome.cutoffs),
        "queries": _queries(outcome, figures, judged, rankings, misses),
        "ranked_results": rankings.rows(),
        "misses": (_miss(miss) for miss in misses),
    }
    measures = [name for name in figures[0] if name not in _FIXED] if figures else []
    return Content("retrieval", report, tables, measures, _facts(outcome, config), rankings.latencies)


def _facts(outcome: Evaluation, config: Config) -> dict[str, Any]:
    rows = outcome.report.rows
    return {
        "results_digest": outcome.report.results_digest,
        "mode": config.search.mode,
        "result_limit": config.depth.limit,
        "top_k": config.depth.handed_on,
        "unit": config.depth.unit,
        "cutoffs": list(outcome.cutoffs),
        "incomplete": len(rows.incomplete),
    }


def _reading(options: Options) -> dict[str, bool]:
    return {"lenient": options.lenient, "allow_extra": options.allow_extra}


def _judgments(outcome: Evaluation, config: Config, options: Options, scored: Container[str]) -> dict[str, RetrievalJudgment]:
    """The scored judgments by query id."""
    path, own = config.judgments.retrieval, config.judgments
    rows = [located.row for located in load_judgments([path or ""], Findings(), **_reading(options))]
    refuse_changed(path, judgments_component(rows, own.version, own.completeness).digest, outcome.report.judgments_digest)
    return {row.query_id: row for row in rows if row.query_id in scored}


def _other_sources(config: Config, options: Options) -> dict[str, str]:
    """The source of each fragment whose id does not tell it."""
    rows = (row for _, row in read_fragments(config.fragments, Findings(), **_reading(options)))
    return {row.fragment_id: row.source for row in rows if row.source != source_of(row.fragment_id)}


def _rankings(outcome: Evaluation, config: Config, options: Options, judged: Mapping[str, RetrievalJudgment]) -> _Rankings:
    """Every scored query's positions, ordered and cut as they were measured."""
    found = _Rankings(outcome.report.run_id)
    positions, digests = _Positions(config, options, _other_sources(config, options)), RowDigests()
    for row in read_ranked(config.ranked_results or "", Findings(), **_reading(options)):
        if (judgment := judged.get(row.query_id)) is None:
            continue
        ordered = positions.ordered(row)
        digests.add(hashlib.sha256(results_content(row.query_id, ordered.ids, ordered.scores, row.error)).digest())
        if row.latency_ms is not None:
            found.latencies[row.query_id] = row.latency_ms
        if row.error is None:
            found.take(positions.of(row.query_id, ordered, judgment), judgment)
    refuse_changed(config.ranked_results, digests.unordered(), outcome.report.results_digest)
    timings = load_timings(config.timings, Findings()) if config.timings else {}
    found.latencies = {name: ms for name, ms in timings.items() if name in judged} | found.latencies
    return found


@dataclass(frozen=True, slots=True)
class _Positions:
    """How a list becomes positions: order, duplicates, min_score, unit, limit; the rule of columns/align.py."""

    config: Config
    options: Options
    other_sources: Mapping[str, str]

    def ordered(self, row: RankedRow) -> Ranked:
        """All results of a row, best first."""
        options, findings = self.options, Findings()
        order: Order = "list" if options.lenient and options.order == "strict" else options.order
        keep_first = options.duplicates == "keep-first" or options.lenient
        return without_duplicates(ranked(row, order, findings), keep_first, row.place, findings)

    def of(self, query_id: str, ordered: Ranked, judgment: RetrievalJudgment) -> dict[str, Any]:
        """One query's positions as lists."""
        found = self._cut(ordered)
        sources = self._sources(found)
        relevant, grades = _judged(sources, judgment)
        scores: Sequence[float | None] = found.scores or [None] * len(sources)
        return {
            "query_id": query_id,
            "fragment_id": list(found.ids),
            "source_id": sources,
            "score": [None if score is None else score + 0.0 for score in scores],
            "relevant": relevant,
            "grade": grades,
        }

    def _cut(self, found: Ranked) -> Ranked:
        bound, depth = self.config.search.min_score, self.config.depth
        if bound is not None and found.scores is not None:
            found = select(found, [i for i, score in enumerate(found.scores) if score >= bound])
        places: Sequence[int] = range(len(found.ids))
        if depth.unit == "source":
            first: dict[str, int] = {}
            for place, source in enumerate(self._sources(found)):
                first.setdefault(source, place)
            places = list(first.values())
        return select(found, places[: depth.limit])

    def _sources(self, found: Ranked) -> list[str]:
        given: Sequence[str | None] = found.sources or [None] * len(found.ids)
        own = self.other_sources
        return [own.get(name) or source or source_of(name) for name, source in zip(found.ids, given, strict=True)]


def _judged(sources: Sequence[str], judgment: RetrievalJudgment) -> tuple[list[bool | None], list[float | None]]:
    """Whether each source is relevant, and its grade; None where nobody judged it."""
    grades, expected = judgment.grades, set(judgment.expected_sources)
    barred = {*judgment.nonrelevant_sources, *judgment.forbidden_sources}
    relevant = [True if s in expected else False if s in barred or s in grades else None for s in sources]
    return relevant, [grades.get(s, 0.0 if s in barred else None) for s in sources]


def _queries(
    outcome: Evaluation,
    figures: Sequence[Mapping[str, Any]],
    judged: Mapping[str, RetrievalJudgment],
    rankings: _Rankings,
    misses: Sequence[Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    reasons = {miss["query_id"]: miss["reasons"] for miss in misses}
    because = {row.query_id: row.because for row in outcome.report.rows.incomplete}
    for row in figures:
        name = row["query_id"]
        judgment = judged[name]
        n_results, first = rankings.counts.get(name, (None, None))
        yield {
            "run_id": outcome.report.run_id,
            "layer": "retrieval",
            "query": judgment.query,
            "category": judgment.category,
            "split": judgment.split,
            "cluster": judgment.cluster,
            "slices": orjson.dumps(judgment.slices, option=orjson.OPT_SORT_KEYS).decode(),
            "positive": judgment.should_match,
            "because": because.get(name),
            "reasons": reasons.get(name, []),
            "first_relevant_rank": first,
            "n_results": n_results,
            **row,
        }


def _miss(miss: Mapping[str, Any]) -> dict[str, Any]:
    found = miss["found"]
    return {
        **{
            key: miss[key]
            for key in ("run_id", "query_id", "query", "category", "split", "reasons", "expected_sources", "error")
        },
        "layer": "retrieval",
        "missed_sources": [s for s in miss["expected_sources"] if (found.get(s) or miss["depth"] + 1) > miss["depth"]],
        "story": orjson.dumps(miss).decode(),
    }
