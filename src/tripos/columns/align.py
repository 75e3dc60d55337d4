"""Alignment: judgments and ranked results, row by row, into columns.

This is the inner loop of an evaluation, so it works on whole lists and looks a row's few judged sources up, instead of going
through its results one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tripos.checks.evidence import Alternative, evidence_units
from tripos.columns.misses import lacks_some, miss_line
from tripos.columns.ranking import Ranked, ranked, select, single_precision, without_duplicates
from tripos.columns.retrieval import (
    EXPECTED,
    FAILED,
    FORBIDDEN,
    GRADED,
    MISSING,
    NONRELEVANT,
    OK,
    HitList,
    Hits,
    RetrievalColumns,
    Story,
    found_units,
)
from tripos.contracts.config import DepthConfig, Options
from tripos.contracts.fragments import source_of
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import MissReason, RankedRow, RetrievalJudgment
from tripos.errors import Findings, suggest
from tripos.files.spool import Spool
from tripos.fingerprint import results_content, unordered

_Targets = Mapping[str, tuple[float, int]]


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
    aligner = _Aligner(sorted(judgments, key=lambda r: r.query_id), reading)
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
        self.errors: dict[int, str] = {}
        self.reasons: list[tuple[MissReason, ...]] = [("incomplete",)] * n
        self.stories, self.places = Spool(), np.full(n, -1, dtype=np.int64)
        self.hits, self.best, self.worst = HitList(), HitList(), HitList()
        self.tied: dict[int, int] = {}
        self.groups: list[tuple[int, int]] = []
        self.evidence: list[tuple[int, int]] = []
        self.unresolved = np.zeros(n, dtype=bool)

    def take(self, row: RankedRow) -> None:
        """Measure one row of results against its judgment."""
        self.tally.result_rows += 1
        i = self.index.get(row.query_id)
        if i is None:
            self.tally.without_judgment += 1
            return
        options, findings = self.reading.options, self.reading.findings
        found = ranked(row, options.order, findings)
        keep_first = options.duplicates == "keep-first" or options.lenient
        found = without_duplicates(found, keep_first, row.place, findings)
        self.tally.results += len(found.ids)
        content = results_content(row.query_id, found.ids, found.scores, row.error)
        self.tally.digests.append(hashlib.sha256(content).digest())
        if row.latency_ms is not None:
            self.latency[i] = row.latency_ms
        if row.error is not None:
            self.state[i], self.errors[i] = FAILED, row.error
            return
        self.state[i] = OK
        story = Story()
        self._safety(i, found, story)
        self._place(i, self._scored(row, found), row, story)

    def _safety(self, i: int, found: Ranked, story: Story) -> None:
        """Leaks, filter violations and denied sources, at any rank, before any cut."""
        corpus, judgment = self.reading.corpus, self.rows[i]
        if corpus is None or (judgment.principal is None and not judgment.filters):
            return
        known = [name for name in found.ids if name in corpus.sources]
        if len(found.ids) < self.reading.depth.limit:
            there = {corpus.sources[name] for name in known}
            self.n_denied[i] = len(set(judgment.expected_sources) - there)
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

    def _place(self, i: int, found: Ranked, row: RankedRow, story: Story) -> None:
        """Positions of judged sources, groups, evidence and required sources."""
        limit, by_source = self.reading.depth.limit, self.reading.depth.unit == "source"
        sources = self._sources(found, row)
        fragments = found.ids[:limit]
        order = _first_places(sources) if by_source else range(len(sources))
        self.tally.beyond_limit += max(len(order) - limit, 0)
        order = order[:limit]
        cut = [sources[k] for k in order] if by_source else sources[:limit]
        self.n_results[i] = len(cut)
        targets = _targets(self.rows[i])
        first = self.hits.add(i, cut, targets)
        self._units(i, first, fragments)
        self._tell(i, first, story, (found, order, cut))
        if found.scores is not None:
            self._ties(i, found.scores, sources, targets)

    def _sources(self, found: Ranked, row: RankedRow) -> Sequence[str]:
        """The source of each result; by the corpus, else as given, else by its id."""
        corpus, given = self.reading.corpus, found.sources
        if corpus is None:
            if given is not None:
                return [source_of(name) if g is None else g for name, g in zip(found.ids, given, strict=True)]
            return [source_of(name) for name in found.ids] if "::" in "".join(found.ids) else found.ids
        sources = list(map(corpus.sources.get, found.ids))
        if given is None and None not in sources:
            return sources  # type: ignore[return-value]  # no None is among them
        stated = given or [None] * len(sources)
        return [self._source(*of, row) for of in zip(found.ids, sources, stated, strict=True)]

    def _source(self, name: str, source: str | None, given: str | None, row: RankedRow) -> str:
        """The source of a result that the corpus lacks, or that names its source itself."""
        if source is None:
            self.tally.unknown_fragments += 1
            if self.reading.options.lenient:
                self.reading.findings.lenient("unknown_fragments")
            else:
                assert self.reading.corpus is not None
                text = f'"{name}" is in no fragment{suggest(name, self.reading.corpus.sources)}: a run of another corpus?'
                self.reading.findings.error("unknown_fragment", row.place, "fragment_id", text)
            return given if given is not None else source_of(name)
        if given is not None and given != source:
            text = f'of "{name}" is "{given}", but the corpus says "{source}"'
            self.reading.findings.error("source_id", row.place, "source_id", text)
        return source

    def _units(self, i: int, first: Mapping[str, int], fragments: Sequence[str]) -> None:
        judgment = self.rows[i]
        for group in judgment.expected_groups:
            self.groups.append((i, min((first[s] for s in group if s in first), default=0)))
        if judgment.expected_fragments or judgment.expected_evidence:
            ranks = {name: k for k, name in enumerate(fragments, 1)}
            self._evidence(i, ranks)

    def _evidence(self, i: int, ranks: Mapping[str, int]) -> None:
        units = evidence_units(self.rows[i], self.reading.corpus)
        self.unresolved[i] = units is None
        self.evidence += [(i, _complete_at(unit, ranks)) for unit in units or []]

    def _tell(self, i: int, first: Mapping[str, int], story: Story, came: tuple[Ranked, Sequence[int], Sequence[str]]) -> None:
        """Decide whether the row is a miss, and put its story aside if it is."""
        judgment = self.rows[i]
        depth = judgment.k or self.reading.depth.handed_on
        story.found = {s: first.get(s) for s in (*judgment.expected_sources, *judgment.required_sources)}
        story.required_absent = [s for s in dict.fromkeys(judgment.required_sources) if not 0 < first.get(s, 0) <= depth]
        self.n_required_absent[i] = len(story.required_absent)
        forbidden = [s for s in judgment.forbidden_sources if first.get(s, depth + 1) <= depth]
        reasons = _reasons(judgment, story, depth, bool(forbidden), len(came[2]))
        self.reasons[i] = reasons
        if reasons:
            self.places[i] = self.stories.append(miss_line(judgment, reasons, depth, story, came))

    def _ties(self, i: int, scores: Sequence[float], sources: Sequence[str], targets: _Targets) -> None:
        """Where equal scores straddle a headline cutoff: the judged positions at the best and worst order of the ties."""
        n = len(scores)
        if not targets or n < 2:
            return
        if self.reading.options.order == "trec":
            scores = single_precision(scores)
        at = sum(1 << bit for bit, k in enumerate(self.reading.headline) if k < n and scores[k - 1] == scores[k])
        if not at:
            return
        worth = [targets.get(s, (0.0, 0)) for s in sources]
        best = sorted(range(n), key=lambda j: (-scores[j], -(worth[j][1] & EXPECTED), -worth[j][0]))
        worst = sorted(range(n), key=lambda j: (-scores[j], worth[j][1] & EXPECTED, worth[j][0]))
        self.tied[i] = at
        for table, order in ((self.best, best), (self.worst, worst)):
            table.add(i, self._cut([sources[j] for j in order]), targets)

    def _cut(self, sources: list[str]) -> list[str]:
        if self.reading.depth.unit == "source":
            sources = list(dict.fromkeys(sources))
        return sources[: self.reading.depth.limit]

    def columns(self) -> RetrievalColumns:
        """Everything taken so far as arrays."""
        rows, depth = self.rows, self.reading.depth
        for i in np.flatnonzero(self.state != OK).tolist():
            self._units(i, {}, ())
        tied = np.zeros(len(rows), dtype=np.int64)
        tied[list(self.tied)] = list(self.tied.values())
        hits = self.hits.arrays()
        ideal = HitList()
        for i, row in enumerate(rows):
            ideal.ideal(i, row.grades.values())
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
            hits=hits,
            ideal=ideal.arrays(),
            groups=found_units(self.groups),
            evidence=found_units(self.evidence),
            evidence_undefined=self.unresolved,
            errors=self.errors,
            reasons=self.reasons,
            stories=self.stories,
            places=self.places,
            latency_ms=self.latency,
            tied=tied,
            best_hits=_replaced(hits, tied > 0, self.best.arrays()),
            worst_hits=_replaced(hits, tied > 0, self.worst.arrays()),
        )


def _replaced(hits: Hits, tied: np.typing.NDArray[np.bool_], others: Hits) -> Hits:
    """The hits with those of tied rows taken from `others`."""
    if not tied.any():
        return hits
    kept = ~tied[hits.query]
    merged = [np.concatenate([column[kept], other]) for column, other in zip(hits, others, strict=True)]
    order = np.lexsort((merged[1], merged[0]))
    return Hits(*(column[order] for column in merged))


def _reasons(row: RetrievalJudgment, story: Story, depth: int, forbidden: bool, n_results: int) -> tuple[MissReason, ...]:
    """Every reason, of the closed list, for which a measured row is a miss; () when it is none."""
    hit = any((story.found[source] or depth + 1) <= depth for source in row.expected_sources)
    checks: list[tuple[MissReason, bool]] = [
        ("no_hit", row.should_match and not hit),
        ("partial", hit and lacks_some(row, story.found)),
        ("required_absent", bool(story.required_absent)),
        ("not_empty", not row.should_match and n_results > 0),
        ("forbidden", forbidden),
        ("leak", bool(story.leaked)),
        ("filter_violation", bool(story.violating)),
    ]
    return tuple([reason for reason, holds in checks if holds])


def _targets(row: RetrievalJudgment) -> _Targets:
    """Each judged source's gain and what it is to the row."""
    grades = row.grades
    targets = {name: (grade, GRADED) for name, grade in grades.items()}
    for names, flag in (
        (row.expected_sources, EXPECTED),
        (row.nonrelevant_sources, NONRELEVANT),
        (row.forbidden_sources, FORBIDDEN),
    ):
        for name in names:
            grade, flags = targets.get(name, (0.0, 0))
            targets[name] = (grade, flags | flag)
    return targets


def _first_places(sources: Sequence[str]) -> list[int]:
    """Where each distinct source stands first, in order."""
    return sorted({source: k for k, source in reversed(list(enumerate(sources)))}.values())


def _complete_at(unit: Sequence[Alternative], fragments: Mapping[str, int]) -> int:
    """The rank at which the first alternative is whole; 0 if none is."""
    ranks = [max(fragments[n] for n in way) for way in unit if all(n in fragments for n in way)]
    return min(ranks, default=0)
