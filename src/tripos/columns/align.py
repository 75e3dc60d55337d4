"""Alignment: judgments and ranked results, row by row, into columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tripos.checks.evidence import Alternative, evidence_units
from tripos.columns.misses import miss_reasons
from tripos.columns.ranking import Ranked, ranked, select, single_precision, without_duplicates
from tripos.columns.retrieval import (
    EXPECTED,
    FAILED,
    FIRST,
    FORBIDDEN,
    GRADED,
    MISSING,
    NONRELEVANT,
    OK,
    Hits,
    RetrievalColumns,
    RowStory,
    Units,
)
from tripos.contracts.config import DepthConfig, Options
from tripos.contracts.fragments import source_of
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import MissReason, RankedHit, RetrievalJudgment
from tripos.errors import Findings, suggest
from tripos.files.retrieval import RankedRow
from tripos.fingerprint import results_content, unordered

_HitRow = tuple[int, int, float, int]


@dataclass(slots=True)
class Tally:
    """What alignment did to the ranked results, counted."""

    result_rows: int = 0
    results: int = 0
    without_judgment: int = 0
    below_min_score: int = 0
    beyond_limit: int = 0
    unknown_fragments: int = 0
    digests: list[bytes] = field(default_factory=list)

    @property
    def results_digest(self) -> str:
        """Semantic digest of the ranked results of the scored rows."""
        return unordered(self.digests)


@dataclass(frozen=True, slots=True)
class Reading:
    """How results are read; what every row shares."""

    corpus: Corpus | None
    depth: DepthConfig
    min_score: float | None
    options: Options
    findings: Findings
    headline: Sequence[int]


def align(
    judgments: Sequence[RetrievalJudgment], results: Iterable[RankedRow], reading: Reading
) -> tuple[RetrievalColumns, Tally]:
    """Bring every scored judgment together with its results.

    Args:
        judgments: The scored rows, in any order.
        results: Ranked rows, in any order; those of other queries are counted.
        reading: Corpus, depth and options. Faults go to its findings.
    """
    rows = sorted(judgments, key=lambda r: r.query_id)
    aligner = _Aligner(rows, reading)
    for row in results:
        aligner.take(row)
    return aligner.columns(), aligner.tally


class _Aligner:
    """Fills one slot a query; nothing is kept of a result beyond its judged positions."""

    def __init__(self, rows: list[RetrievalJudgment], reading: Reading) -> None:
        self.rows, self.reading, self.tally = rows, reading, Tally()
        self.index = {row.query_id: i for i, row in enumerate(rows)}
        n = len(rows)
        self.state = np.full(n, MISSING, dtype=np.int64)
        self.n_results, self.n_leaks, self.n_violations = (np.zeros(n, dtype=np.int64) for _ in range(3))
        self.n_denied, self.n_required_absent = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.latency = np.full(n, np.nan)
        self.stories = [RowStory() for _ in rows]
        self.reasons: list[list[MissReason]] = [["incomplete"] for _ in rows]
        self.units = [evidence_units(row, reading.corpus) for row in rows]
        self.hits: list[list[_HitRow]] = [[] for _ in rows]
        self.tied: dict[int, tuple[int, list[_HitRow], list[_HitRow]]] = {}
        self.groups: list[tuple[int, int]] = []
        self.evidence: list[tuple[int, int]] = []

    def take(self, row: RankedRow) -> None:
        """Measure one row of results against its judgment."""
        self.tally.result_rows += 1
        i = self.index.get(row.query_id)
        if i is None:
            self.tally.without_judgment += 1
            return
        found = ranked(row, self.reading.options.order, self.reading.findings)
        keep_first = self.reading.options.duplicates == "keep-first" or self.reading.options.lenient
        found = without_duplicates(found, keep_first, row.place, self.reading.findings)
        self.tally.results += len(found.ids)
        content = results_content(row.query_id, found.ids, found.scores, row.error)
        self.tally.digests.append(hashlib.sha256(content).digest())
        if row.latency_ms is not None:
            self.latency[i] = row.latency_ms
        if row.error is not None:
            self.state[i], self.stories[i].error = FAILED, row.error
            return
        self.state[i] = OK
        self._safety(i, found)
        self._place(i, self._scored(row, found), row)

    def _safety(self, i: int, found: Ranked) -> None:
        """Leaks and filter violations at any rank, before any cut."""
        corpus, judgment, story = self.reading.corpus, self.rows[i], self.stories[i]
        if corpus is None:
            return
        known = [name for name in found.ids if name in corpus.sources]
        if judgment.principal is not None:
            groups = judgment.principal.groups
            story.leaked = [name for name in known if not corpus.readable(name, groups)]
            self.n_leaks[i] = len(story.leaked)
        if judgment.filters:
            story.violating = [name for name in known if not corpus.passes(name, judgment.filters)]
            self.n_violations[i] = len(story.violating)

    def _scored(self, row: RankedRow, found: Ranked) -> Ranked:
        """Drop results below min_score."""
        bound = self.reading.min_score
        if bound is None or not found.ids:
            return found
        if found.scores is None:
            self.reading.findings.error("scores", row.place, "scores", f"missing: min_score {bound:g} needs them")
            return found
        kept = [i for i, score in enumerate(found.scores) if score >= bound]
        self.tally.below_min_score += len(found.ids) - len(kept)
        return select(found, kept)

    def _place(self, i: int, found: Ranked, row: RankedRow) -> None:
        """Positions of judged sources, groups, evidence and required sources."""
        limit = self.reading.depth.limit
        sources = [self._source(k, found, row) for k in range(len(found.ids))]
        scores: Sequence[float | None] = [None] * len(sources) if found.scores is None else found.scores
        listed = list(zip(found.ids, sources, scores, strict=True))
        cut = self._cut(listed)
        self.n_results[i] = len(cut)
        self.tally.beyond_limit += (len(listed) if self.reading.depth.unit == "fragment" else _distinct(sources)) - len(cut)
        targets = _targets(self.rows[i])
        self.hits[i] = _hit_rows(i, [s for _, s, _ in cut], targets)
        first = _first_ranks([s for _, s, _ in cut])
        self._units(i, first, {name: k for k, (name, _, _) in enumerate(listed[:limit], 1)})
        self._story(i, cut, first, len(found.ids))
        self._ties(i, listed, targets)

    def _source(self, k: int, found: Ranked, row: RankedRow) -> str:
        """The source of the k-th result; by the corpus, else as given, else by its id."""
        name, corpus = found.ids[k], self.reading.corpus
        given = found.sources[k] if found.sources is not None else None
        if corpus is None:
            return given if given is not None else source_of(name)
        source = corpus.sources.get(name)
        if source is None:
            self.tally.unknown_fragments += 1
            if self.reading.options.lenient:
                self.reading.findings.lenient("unknown_fragments")
            else:
                text = f'"{name}" is in no fragment{suggest(name, corpus.sources)}: a run of another corpus?'
                self.reading.findings.error("unknown_fragment", row.place, "fragment_id", text)
            return given if given is not None else source_of(name)
        if given is not None and given != source:
            text = f'of "{name}" is "{given}", but the corpus says "{source}"'
            self.reading.findings.error("source_id", row.place, "source_id", text)
        return source

    def _cut(self, listed: list[tuple[str, str, float | None]]) -> list[tuple[str, str, float | None]]:
        if self.reading.depth.unit == "source":
            listed = list({source: (name, source, score) for name, source, score in reversed(listed)}.values())[::-1]
        return listed[: self.reading.depth.limit]

    def _units(self, i: int, first: Mapping[str, int], fragments: Mapping[str, int]) -> None:
        for group in self.rows[i].expected_groups:
            self.groups.append((i, min((first[s] for s in group if s in first), default=0)))
        for unit in self.units[i] or []:
            self.evidence.append((i, _complete_at(unit, fragments)))

    def _story(self, i: int, cut: list[tuple[str, str, float | None]], first: Mapping[str, int], n_given: int) -> None:
        judgment, story = self.rows[i], self.stories[i]
        depth = judgment.k or self.reading.depth.handed_on
        wanted = dict.fromkeys([*judgment.expected_sources, *judgment.required_sources])
        story.found = {source: first.get(source) for source in wanted}
        story.required_absent = [s for s in dict.fromkeys(judgment.required_sources) if not 0 < first.get(s, 0) <= depth]
        self.n_required_absent[i] = len(story.required_absent)
        hits = [RankedHit(rank=k, fragment_id=n, source_id=s, score=x) for k, (n, s, x) in enumerate(cut[:depth], 1)]
        story.results = hits
        barred = set(judgment.forbidden_sources)
        story.forbidden = [h for h in hits if h.source_id in barred]
        if self.reading.corpus is not None and (judgment.principal is not None or judgment.filters):
            short = n_given < self.reading.depth.limit
            self.n_denied[i] = sum(short and source not in first for source in judgment.expected_sources)
        self.reasons[i] = miss_reasons(judgment, story, depth, len(cut))
        if not self.reasons[i]:
            self.stories[i] = RowStory()

    def _ties(self, i: int, listed: list[tuple[str, str, float | None]], targets: Mapping[str, tuple[float, int]]) -> None:
        """Where equal scores straddle a headline cutoff: the judged positions at the best and worst order of the ties."""
        given = [score for _, _, score in listed if score is not None]
        if not targets or len(given) < 2:
            return
        scores = single_precision(given) if self.reading.options.order == "trec" else given
        at = sum(1 << n for n, k in enumerate(self.reading.headline) if k < len(scores) and scores[k - 1] == scores[k])
        if not at:
            return
        worth = [targets.get(s, (0.0, 0)) for _, s, _ in listed]
        best = sorted(range(len(listed)), key=lambda j: (-scores[j], -(worth[j][1] & EXPECTED), -worth[j][0]))
        worst = sorted(range(len(listed)), key=lambda j: (-scores[j], worth[j][1] & EXPECTED, worth[j][0]))
        tables = [_hit_rows(i, [s for _, s, _ in self._cut([listed[j] for j in o])], targets) for o in (best, worst)]
        self.tied[i] = (at, tables[0], tables[1])

    def columns(self) -> RetrievalColumns:
        """Everything taken so far as arrays."""
        rows, depth = self.rows, self.reading.depth
        tied = {i: at for i, (at, _, _) in self.tied.items()}
        best = [self.tied[i][1] if i in self.tied else hits for i, hits in enumerate(self.hits)]
        worst = [self.tied[i][2] if i in self.tied else hits for i, hits in enumerate(self.hits)]
        ideal = [[(i, k, g, EXPECTED) for k, g in enumerate(_ideal(r), 1)] for i, r in enumerate(rows)]
        return RetrievalColumns(
            rows=rows,
            limit=depth.limit,
            has_corpus=self.reading.corpus is not None,
            state=self.state,
            depth=np.array([row.k or depth.handed_on for row in rows], dtype=np.int64),
            n_results=self.n_results,
            n_expected=np.array([len(set(row.expected_sources)) for row in rows], dtype=np.int64),
            n_nonrelevant=np.array([len({*row.nonrelevant_sources, *row.forbidden_sources}) for row in rows], dtype=np.int64),
            n_required_absent=self.n_required_absent,
            n_leaks=self.n_leaks,
            n_violations=self.n_violations,
            n_denied=self.n_denied,
            hits=_hits(self.hits),
            ideal=_hits(ideal),
            groups=_found_units(self.groups),
            evidence=_found_units(self.evidence),
            evidence_undefined=np.array([u is None for u in self.units], dtype=bool),
            stories=self.stories,
            reasons=self.reasons,
            latency_ms=self.latency,
            tied=np.array([tied.get(i, 0) for i in range(len(rows))], dtype=np.int64),
            best_hits=_hits(best) if tied else _hits(self.hits),
            worst_hits=_hits(worst) if tied else _hits(self.hits),
        )


def _distinct(sources: Sequence[str]) -> int:
    return len(set(sources))


def _targets(row: RetrievalJudgment) -> dict[str, tuple[float, int]]:
    """Each judged source's gain and what it is to the row."""
    grades = row.grades
    flags: dict[str, int] = dict.fromkeys(grades, GRADED)
    for names, flag in (
        (row.expected_sources, EXPECTED),
        (row.nonrelevant_sources, NONRELEVANT),
        (row.forbidden_sources, FORBIDDEN),
    ):
        for name in names:
            flags[name] = flags.get(name, 0) | flag
    return {name: (grades.get(name, 0.0), flag) for name, flag in flags.items()}


def _hit_rows(i: int, sources: Sequence[str], targets: Mapping[str, tuple[float, int]]) -> list[_HitRow]:
    """The judged positions among ranked sources."""
    rows: list[_HitRow] = []
    seen: set[str] = set()
    for rank, source in enumerate(sources, 1):
        if (target := targets.get(source)) is not None:
            grade, flags = target
            rows.append((i, rank, grade, flags if source in seen else flags | FIRST))
            seen.add(source)
    return rows


def _first_ranks(sources: Sequence[str]) -> dict[str, int]:
    return {source: rank for rank, source in reversed(list(enumerate(sources, 1)))}


def _complete_at(unit: Sequence[Alternative], fragments: Mapping[str, int]) -> int:
    """The rank at which the first alternative is whole; 0 if none is."""
    ranks = [max(fragments[n] for n in way) for way in unit if all(n in fragments for n in way)]
    return min(ranks, default=0)


def _ideal(row: RetrievalJudgment) -> list[float]:
    """All grades of the row, best first."""
    return sorted(row.grades.values(), reverse=True)


def _hits(rows: Sequence[Sequence[_HitRow]]) -> Hits:
    flat = [hit for row in rows for hit in row]
    query, rank, grade, flags = zip(*flat, strict=True) if flat else ((), (), (), ())
    return Hits(
        np.array(query, dtype=np.int64),
        np.array(rank, dtype=np.int64),
        np.array(grade, dtype=np.float64),
        np.array(flags, dtype=np.int64),
    )


def _found_units(units: list[tuple[int, int]]) -> Units:
    pairs = np.array(sorted(units), dtype=np.int64).reshape(-1, 2)
    return Units(pairs[:, 0], pairs[:, 1])
