"""What a retrieval evaluation puts into the store: its results are read a second time, for what the report does not keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tripos.columns.misses import reasons_of
from tripos.columns.ranking import Order, Ranked, ranked, results_digest, select, without_duplicates
from tripos.contracts.config import Config, Options
from tripos.contracts.fragments import source_of
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import Findings
from tripos.files.jsonl import dump_line
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import load_timings, read_fragments, split_name
from tripos.files.spool import Spool
from tripos.fingerprint import RowDigests
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

    def take(self, lists: Mapping[str, Any]) -> None:
        """Put one query's positions aside."""
        name, n, relevant = lists["query_id"], len(lists["fragment_id"]), lists["relevant"]
        self.counts[name] = (n, relevant.index(True) + 1 if True in relevant else None)
        if n:
            self.places[name] = self.lines.append(dump_line({"run_id": self.run_id, **lists}))

    def rows(self) -> Iterator[bytes]:
        """One row a query, with lists, by query id; queries without results have none."""
        return (self.lines.read(self.places[name]) for name in sorted(self.places))


def content_of(outcome: Evaluation, config: Config, options: Options) -> Content:
    """The tables of one retrieval run.

    Raises InputError where an input came from standard input, or is no longer what it was.
    """
    files = [config.judgments.retrieval, config.ranked_results, config.timings]
    refuse_stdin([*files, *(split_name(path)[1] for path in config.fragments)])
    rankings = _rankings(outcome, config, options)
    figures = list(per_query_rows(outcome))
    report = outcome.report
    tables: dict[str, Rows] = {
        "measures": measure_rows(report, "retrieval", outcome.cutoffs),
        "queries": _queries(outcome, figures, rankings),
        "ranked_results": rankings.rows(),
        "misses": (_miss(report.run_id, line) for line in outcome.miss_lines()),
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


def _other_sources(config: Config, options: Options) -> dict[str, str]:
    """The source of each fragment whose id does not tell it."""
    rows = (row for _, row in read_fragments(config.fragments, Findings(), **_reading(options)))
    return {row.fragment_id: row.source for row in rows if row.source != source_of(row.fragment_id)}


def _rankings(outcome: Evaluation, config: Config, options: Options) -> _Rankings:
    """Every scored query's positions, ordered and cut as they were measured."""
    found, judged = _Rankings(outcome.report.run_id), outcome.rows.rows
    positions, digests = _Positions(config, options, _other_sources(config, options)), RowDigests()
    for row in read_ranked(config.ranked_results or "", Findings(), **_reading(options)):
        if (slot := judged.slot(row.query_id)) < 0:
            continue
        ordered = positions.ordered(row)
        digests.add(results_digest(row, ordered))
        if row.latency_ms is not None:
            found.latencies[row.query_id] = row.latency_ms
        if row.error is None:
            found.take(positions.of(row.query_id, ordered, judged.trusted(slot)))
    refuse_changed(config.ranked_results, digests.unordered(), outcome.report.results_digest)
    timings = load_timings(config.timings, Findings()) if config.timings else {}
    found.latencies = {name: ms for name, ms in timings.items() if judged.slot(name) >= 0} | found.latencies
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
        """One query's positions as lists; what ends early, or is not there, is filled up by the writer."""
        found = self._cut(ordered)
        ids, sources = list(found.ids), self._sources(found)
        relevant, grades = _judged(sources, judgment)
        return {
            "query_id": query_id,
            "fragment_id": ids,
            "source_id": None if sources == ids else sources,
            "score": None if found.scores is None else [score + 0.0 for score in found.scores],
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
        return found if len(found.ids) == len(places) <= depth.limit else select(found, places[: depth.limit])

    def _sources(self, found: Ranked) -> list[str]:
        own, given = self.other_sources, found.sources
        if not own and given is None:
            return [source_of(name) for name in found.ids] if "::" in "\0".join(found.ids) else list(found.ids)
        stated: Sequence[str | None] = given or [None] * len(found.ids)
        return [own.get(name) or source or source_of(name) for name, source in zip(found.ids, stated, strict=True)]


def _judged(sources: Sequence[str], judgment: RetrievalJudgment) -> tuple[list[bool | None], list[float | None]]:
    """Whether each source is relevant, and its grade; None where nobody judged it."""
    barred = (*judgment.nonrelevant_sources, *judgment.forbidden_sources)
    grades = {**dict.fromkeys(barred, 0.0), **judgment.grades}
    relevant = {**dict.fromkeys(grades, False), **dict.fromkeys(judgment.expected_sources, True)}
    last = max((n for n, source in enumerate(sources, 1) if source in grades), default=0)  # beyond it all is null
    return list(map(relevant.get, sources[:last])), list(map(grades.get, sources[:last]))


def _queries(outcome: Evaluation, figures: Sequence[Mapping[str, Any]], rankings: _Rankings) -> Iterator[dict[str, Any]]:
    because = {row.query_id: row.because for row in outcome.report.rows.incomplete}
    for slot, (row, bits) in enumerate(zip(figures, outcome.rows.reasons.tolist(), strict=True)):
        name, judgment = row["query_id"], outcome.rows.rows.trusted(slot)
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
            "reasons": reasons_of(bits),
            "first_relevant_rank": first,
            "n_results": n_results,
            **row,
        }


_COPIED = ("query_id", "query", "category", "split", "reasons", "expected_sources", "error")


def _miss(run_id: str, line: bytes) -> dict[str, Any]:
    told, _, _ = line.partition(b',"results":[')  # most of the line, and kept as it is; no string has a bare quote
    miss = orjson.loads(told + b"}")
    found, depth = miss["found"], miss["depth"]
    return {
        "run_id": run_id,
        **{key: miss[key] for key in _COPIED},
        "layer": "retrieval",
        "missed_sources": [s for s in miss["expected_sources"] if (found.get(s) or depth + 1) > depth],
        "story": line.decode().rstrip("\n"),
    }
