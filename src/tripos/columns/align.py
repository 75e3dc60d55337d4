"""Alignment: judgments and ranked results, row by row, into columns.

This is the inner loop of an evaluation, so it works on whole lists and looks a row's few judged sources up, instead of going
through its results one by one.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tripos.checks.evidence import Alternative, evidence_units
from tripos.columns import quick
from tripos.columns.judged import Judged
from tripos.columns.misses import reasons_among, told_story
from tripos.columns.ranking import (
    Order,
    Ranked,
    joined,
    ranked,
    results_digest,
    select,
    single_precision,
    without_duplicates,
)
from tripos.columns.retrieval import (
    EXPECTED,
    FAILED,
    FIRST,
    FORBIDDEN,
    GRADED,
    MISSING,
    NONRELEVANT,
    OK,
    TIED,
    Ends,
    Floats,
    HitList,
    Hits,
    Ints,
    Positions,
    RetrievalColumns,
    RetrievalRows,
    Story,
    found_units,
    together,
)
from tripos.columns.slots import Part, Slots, Tally
from tripos.columns.ties import Run, Targets, by_expectation, by_gain, extremes, packed_runs, straddled, tied_runs
from tripos.contracts.config import DepthConfig, Options
from tripos.contracts.fragments import source_of
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import Findings, quoted, suggest
from tripos.files.spool import Shelf, Spool

Aside = tuple[Spool, Spool]
"""Spools for the stories of misses and for finished batches."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How results are read; what every row shares."""

    corpus: Corpus | None
    depth: DepthConfig
    min_score: float | None
    options: Options
    findings: Findings
    headline: Sequence[int]
    keep_stories: bool = True


def align(
    judgments: Iterable[RetrievalJudgment], results: Iterable[RankedRow], reading: Reading
) -> tuple[RetrievalColumns, Tally]:
    """Bring every scored judgment together with its results.

    Args:
        judgments: The scored rows, in any order.
        results: Ranked rows, in any order; those of other queries are counted.
        reading: Corpus, depth and options. Faults go to its findings.
    """
    aligner = Aligner(judgments, reading)
    for row in results:
        aligner.take(row)
    return aligner.columns(), aligner.tally


class Aligner:
    """Fills one slot a query, in batches; nothing is kept of a result beyond its judged positions, and the stories of misses.

    Parts of the results may be taken by several aligners over the same judgments and brought together by `absorb`, in any
    order: all comes out the same.
    """

    def __init__(self, judgments: Iterable[RetrievalJudgment], reading: Reading, aside: Aside | None = None) -> None:
        self.rows = judgments if isinstance(judgments, Judged) else Judged.of(judgments)
        self.reading, self.tally = reading, Tally()
        self.slots, self.errors = Slots.empty(len(self.rows)), dict[int, str]()
        self.stories, self.batches = map(Shelf, aside or (Spool(), Spool()))
        self.unjudged: set[str] = set()
        plain_order = reading.options.order in ("strict", "list")
        self._may_be_quick = reading.corpus is None and reading.min_score is None and plain_order
        self._start_batch()

    def _start_batch(self) -> None:
        self.taken = array("q")
        self.hits, self.ties = HitList(), tuple(HitList() for _ in range(4))
        self.groups: list[tuple[int, int]] = []
        self.evidence: list[tuple[int, int]] = []

    def batch(self) -> RetrievalColumns:
        """The rows taken since the last batch as columns; their positions are put aside."""
        numbers = np.sort(np.asarray(self.taken, dtype=np.int64))
        positions = self._positions(numbers)
        self.batches.append(pickle.dumps((numbers, positions), protocol=5))
        self._start_batch()
        return self._columns(numbers, positions)

    def _positions(self, numbers: Ints) -> Positions:
        """Positions of the rows taken since the last batch; with the units of rows that have no list."""
        groups, evidence = list(self.groups), list(self.evidence)
        without = numbers[self.slots.state[numbers] != OK]
        finer = [self.rows.flag(name)[without] for name in ("expected_groups", "expected_fragments", "expected_evidence")]
        for i in without[np.any(finer, axis=0)].tolist():
            judgment = self.rows.trusted(i)
            groups += [(i, 0) for _ in judgment.expected_groups]
            if judgment.expected_fragments or judgment.expected_evidence:
                evidence += self._evidence(i, judgment, {})
        ends = Ends(*(table.arrays() for table in self.ties))
        whole = Positions(self.hits.arrays(), found_units(groups), found_units(evidence), ends)
        return whole.renumbered(lambda query: np.searchsorted(numbers, query))

    def finished(self) -> Iterator[RetrievalColumns]:
        """All batches again, in the order they came."""
        return (self._columns(*pickle.loads(kept)) for kept in self.batches)  # noqa: S301 - our own, never a user's

    def missing(self, size: int) -> Iterator[RetrievalColumns]:
        """Rows that nothing came for, in batches of at most `size`."""
        numbers = np.flatnonzero(self.slots.state == MISSING)
        for start in range(0, len(numbers), size):
            own = numbers[start : start + size]
            yield self._columns(own, self._positions(own))

    def part(self) -> Part:
        """What was taken, to be handed to another aligner."""
        if self.taken:
            self.batch()
        rows = np.flatnonzero(self.slots.state != MISSING)
        kept = (self.unjudged, self.errors, self.reading.findings.let_pass, self.stories, self.batches)
        return Part(rows, self.slots.at(rows), self.tally, *kept)

    def absorb(self, part: Part) -> bool:
        """Take another aligner's part; False, and nothing taken, where a query of it came before."""
        if (self.slots.state[part.rows] != MISSING).any() or not self.unjudged.isdisjoint(part.unjudged):
            return False
        self.unjudged |= part.unjudged
        part.slots.places[part.slots.places >= 0] += self.stories.take(part.stories)
        self.batches.take(part.batches)
        self.slots.put(part.rows, part.slots)
        self.tally.add(part.tally)
        self.errors |= part.errors
        for kind, n in part.let_pass.items():
            self.reading.findings.lenient(kind, n)
        return True

    def is_new(self, query_id: str) -> bool:
        """Whether nothing came for this query yet."""
        i = self.rows.slot(query_id)
        if i < 0:
            return query_id not in self.unjudged
        return bool(self.slots.state[i] == MISSING)

    def take(self, row: RankedRow) -> None:
        """Measure one row of results against its judgment."""
        self.tally.result_rows += 1
        i = self.rows.slot(row.query_id)
        if i < 0:
            self.tally.without_judgment += 1
            self.unjudged.add(row.query_id)
            return
        self.taken.append(i)
        options, findings = self.reading.options, self.reading.findings
        if self._may_be_quick and quick.is_plain(row) and self._taken_quickly(i, row):
            return
        order: Order = "list" if options.lenient and options.order == "strict" else options.order
        found = ranked(row, order, findings)
        keep_first = options.duplicates == "keep-first" or options.lenient
        found = without_duplicates(found, keep_first, row.place, findings)
        self._note(i, row, found)
        if row.error is not None:
            self.slots.state[i], self.errors[i] = FAILED, row.error
            return
        story, judgment = Story(), self.rows.trusted(i)
        self._safety(i, judgment, found, story)
        self._place(i, judgment, self._scored(row, found), row, story)

    def _note(self, i: int, row: RankedRow, found: Ranked) -> None:
        """Count and digest what came, and take its latency."""
        self.slots.state[i] = OK
        self.tally.results += len(found.ids)
        self.tally.digests.add(results_digest(row, found))
        if row.latency_ms is not None:
            self.slots.latency_ms[i] = row.latency_ms

    def _cut(self, i: int, n: int) -> None:
        """Count results within and beyond the limit."""
        limit = self.reading.depth.limit
        self.slots.n_results[i] = min(n, limit)
        self.tally.beyond_limit += max(n - limit, 0)

    def _taken_quickly(self, i: int, row: RankedRow) -> bool:
        """Measure a plain row, where its judgment is plain, too; False, and nothing done, where it is not."""
        wanted, limit = self.rows.wanted(i), self.reading.depth.limit
        if wanted is None or (at := quick.placed(row, wanted, limit)) is None:
            return False
        self._note(i, row, at.found)
        self._cut(i, len(row.fragment_ids))
        self.hits.add_found(i, at.within, wanted.grades, wanted.n_expected)
        depth = wanted.k or self.reading.depth.handed_on
        reasons = self.slots.reasons[i] = quick.reasons(at, wanted, depth)
        if reasons and self.reading.keep_stories:
            came = (at.found, range(min(len(row.fragment_ids), limit)), row.fragment_ids)
            self.slots.places[i] = self.stories.append(told_story(depth, quick.story(at, wanted), came))
        if row.packed is not None and (runs := packed_runs(row.packed)):
            self._straddle(i, runs)
            if moving := quick.moving(at, runs):
                graded = len(wanted.sources) > wanted.n_expected
                self._move(i, row.fragment_ids, moving, (quick.targets(wanted), graded))
        return True

    def _safety(self, i: int, judgment: RetrievalJudgment, found: Ranked, story: Story) -> None:
        """Leaks, filter violations and denied sources, at any rank, before any cut."""
        corpus = self.reading.corpus
        if corpus is None or (judgment.principal is None and not judgment.filters):
            return
        known = [name for name in found.ids if name in corpus.sources]
        if len(found.ids) < self.reading.depth.limit:
            there = {corpus.sources[name] for name in known}
            self.slots.n_denied[i] = len((set(judgment.expected_sources) & corpus.fragments.keys()) - there)
        if judgment.principal is not None:
            groups = judgment.principal.groups
            story.leaked = [name for name in known if not corpus.readable(name, groups)]
            self.slots.n_leaks[i] = len(story.leaked)
        if judgment.filters:
            story.violating = [name for name in known if not corpus.passes(name, judgment.filters)]
            self.slots.n_violations[i] = len(story.violating)

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

    def _place(self, i: int, judgment: RetrievalJudgment, found: Ranked, row: RankedRow, story: Story) -> None:
        """Positions of judged sources, groups, evidence and required sources."""
        limit, by_source = self.reading.depth.limit, self.reading.depth.unit == "source"
        sources = self._sources(found, row)
        fragments = found.ids[:limit]
        order = _first_places(sources) if by_source else range(len(sources))
        self._cut(i, len(order))
        positions = [sources[k] for k in order] if by_source else sources
        cut, whole = positions if len(positions) <= limit else positions[:limit], (order, positions)
        order = order[:limit]
        targets = _targets(judgment)
        first = self.hits.add(i, cut, targets, found.distinct if found.distinct and cut is found.ids else set(cut))
        for source in judgment.required_sources:  # need not be judged
            if source not in first and source in cut:
                first[source] = cut.index(source) + 1
        self._units(i, judgment, first, fragments)
        self._tell(i, judgment, first, story, (found, order, cut))
        if found.scores is not None:
            self._ties(i, judgment, found.scores, whole, targets)

    def _sources(self, found: Ranked, row: RankedRow) -> Sequence[str]:
        """The source of each result; by the corpus, else as given, else by its id."""
        corpus, given = self.reading.corpus, found.sources
        if corpus is None:
            if given is not None:
                return [source_of(name) if g is None else g for name, g in zip(found.ids, given, strict=True)]
            return [name.rpartition("::")[0] or name for name in found.ids] if "::" in joined(row, found) else found.ids
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
                text = (
                    f'"{quoted(name)}" is in no fragment{suggest(name, self.reading.corpus.sources)}: a run of another corpus?'
                )
                self.reading.findings.error("unknown_fragment", row.where(name), "fragment_id", text)
            return given if given is not None else source_of(name)
        if given is not None and given != source:
            text = f'of "{quoted(name)}" is "{quoted(given)}", but the corpus says "{quoted(source)}"'
            self.reading.findings.error("source_id", row.where(name), "source_id", text)
        return source

    def _units(self, i: int, judgment: RetrievalJudgment, first: Mapping[str, int], fragments: Sequence[str]) -> None:
        for group in judgment.expected_groups:
            self.groups.append((i, min((first[s] for s in group if s in first), default=0)))
        if judgment.expected_fragments or judgment.expected_evidence:
            ranks = {name: k for k, name in enumerate(fragments, 1)}
            self.evidence += self._evidence(i, judgment, ranks)

    def _evidence(self, i: int, judgment: RetrievalJudgment, ranks: Mapping[str, int]) -> list[tuple[int, int]]:
        units = evidence_units(judgment, self.reading.corpus)
        self.slots.evidence_undefined[i] = units is None
        return [(i, _complete_at(unit, ranks)) for unit in units or []]

    def _tell(
        self,
        i: int,
        judgment: RetrievalJudgment,
        first: Mapping[str, int],
        story: Story,
        came: tuple[Ranked, Sequence[int], Sequence[str]],
    ) -> None:
        """Decide whether the row is a miss, and put its story aside if it is."""
        depth = judgment.k or self.reading.depth.handed_on
        story.found = {s: first.get(s) for s in (*judgment.expected_sources, *judgment.required_sources)}
        if judgment.required_sources:
            story.required_absent = [s for s in dict.fromkeys(judgment.required_sources) if not 0 < first.get(s, 0) <= depth]
            self.slots.n_required_absent[i] = len(story.required_absent)
        reasons = self.slots.reasons[i] = reasons_among(judgment, story, first, depth, len(came[2]))
        if reasons and self.reading.keep_stories:
            self.slots.places[i] = self.stories.append(told_story(depth, story, came))

    def _ties(
        self,
        i: int,
        judgment: RetrievalJudgment,
        scores: Sequence[float],
        cut: tuple[Sequence[int], Sequence[str]],
        targets: Targets,
    ) -> None:
        """Note which headline cutoffs equal scores straddle, and the judged positions at both ends of their orders."""
        order, sources = cut
        scores = scores if isinstance(order, range) else [scores[k] for k in order]
        if self.reading.options.order == "trec":
            scores = single_precision(scores)
        runs = tied_runs(scores)
        if runs:
            self._straddle(i, runs)
        if moving := [run for run in runs if not targets.keys().isdisjoint(sources[slice(*run)])]:
            self._move(i, sources, moving, (targets, len(targets) > len(judgment.expected_sources)))

    def _straddle(self, i: int, runs: Sequence[Run]) -> None:
        self.slots.tied[i] = straddled(runs, self.reading.headline)

    def _move(self, i: int, sources: Sequence[str], moving: Sequence[Run], judged: tuple[Targets, bool]) -> None:
        """Note the judged positions at both ends of the orders of equal scores, by gain apart where more is graded."""
        self.slots.tied[i] |= TIED
        limit, (targets, graded) = self.reading.depth.limit, judged
        ends = extremes(sources, moving, by_expectation(targets))
        gains = extremes(sources, moving, by_gain(targets)) if graded else ends
        for table, ordered in zip(self.ties, (*ends, *gains), strict=True):
            table.add(i, ordered[:limit], targets, set(ordered[:limit]))

    def rows_taken(self) -> RetrievalRows:
        """What became of every scored row."""
        return RetrievalRows(**self._row_columns(np.arange(len(self.rows)), self.slots))

    def columns(self) -> RetrievalColumns:
        """All scored rows as columns; for small runs, since positions of every batch come together."""
        if self.taken:
            self.batch()
        missing = np.flatnonzero(self.slots.state == MISSING)
        parts = [self._positions(missing).renumbered(missing.__getitem__)]
        for kept in self.batches:
            numbers, positions = pickle.loads(kept)  # noqa: S301 - our own, never a user's
            parts.append(positions.renumbered(numbers.__getitem__))
        return self._columns(np.arange(len(self.rows)), together(parts))

    def _columns(self, numbers: Ints, positions: Positions) -> RetrievalColumns:
        ideal = _ideal(*self.rows.graded(numbers))
        return RetrievalColumns(ideal=ideal, **self._row_columns(numbers, self.slots.at(numbers)), **positions._asdict())

    def _row_columns(self, numbers: Ints, slots: Slots) -> dict[str, Any]:
        rows, depth = self.rows, self.reading.depth
        return {
            "rows": rows,
            "numbers": numbers,
            "limit": depth.limit,
            "has_corpus": self.reading.corpus is not None,
            "depth": rows.depths(depth.handed_on, numbers),
            "n_expected": rows.n_expected(numbers),
            "n_nonrelevant": rows.n_nonrelevant(numbers),
            "errors": self.errors,
            "stories": self.stories,
            **slots.by_name(),
        }


def _ideal(counts: Ints, grades: Floats) -> Hits:
    """The ideal ranking of each row: all its grades, best first."""
    query = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(1, len(grades) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
    return Hits(query, rank, grades, np.full(len(grades), EXPECTED | FIRST))


def _targets(row: RetrievalJudgment) -> Targets:
    """Each judged source's gain and what it is to the row."""
    expected = set(row.expected_sources)  # all of which are graded
    targets = {name: (grade, GRADED | EXPECTED if name in expected else GRADED) for name, grade in row.grades.items()}
    for names, flag in ((row.nonrelevant_sources, NONRELEVANT), (row.forbidden_sources, FORBIDDEN)):
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
