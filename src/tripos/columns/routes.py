"""Alignment of corpus judgments with corpus results, row by row, into columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tripos.columns.corpus import LEAK_STAGES, CorpusColumns, CorpusStory, Fans, Sources
from tripos.columns.lost import corpus_miss_reasons
from tripos.columns.retrieval import FAILED, MISSING, OK
from tripos.contracts.config import DepthConfig
from tripos.contracts.corpus import LOSSES, CorpusJudgment, CorpusMissReason, CorpusResult, FanOut, Loss, LostSource, Searched
from tripos.contracts.fragments import source_of
from tripos.contracts.index import Corpus
from tripos.files.corpus import Routed
from tripos.fingerprint import corpus_result_content, row_digest, unordered

_Key = tuple[str | None, str]


@dataclass(slots=True)
class RouteTally:
    """What was read, counted."""

    result_rows: int = 0
    without_judgment: int = 0
    beyond_top_k: int = 0
    not_searched: int = 0
    stamps: dict[str | None, int] = field(default_factory=dict)
    digests: list[bytes] = field(default_factory=list)

    @property
    def results_digest(self) -> str:
        """Semantic digest of the results of the scored rows."""
        return unordered(self.digests)


def align_routes(
    judgments: Sequence[CorpusJudgment], results: Iterable[Routed], corpus: Corpus | None, depth: DepthConfig
) -> tuple[CorpusColumns, RouteTally]:
    """Bring every scored judgment together with its result.

    Args:
        judgments: The scored rows, in any order.
        results: Checked result rows, in any order; those of other queries are counted.
        corpus: Tells each fragment's source and collection, and who may read it.
        depth: top_k and unit.
    """
    aligner = _Aligner(sorted(judgments, key=lambda row: row.query_id), corpus, depth)
    for routed in results:
        aligner.take(routed.row)
    return aligner.columns(), aligner.tally


class Located:
    """The fragments of one result: which source and collection each belongs to."""

    def __init__(self, row: CorpusResult, corpus: Corpus | None) -> None:
        self._corpus = corpus
        self._home = {hit.fragment_id: fan.collection for fan in row.fan_out or () for hit in fan.results}

    def key(self, fragment: str) -> _Key:
        """(collection, source); the collection is None where nothing tells it."""
        home = self._home.get(fragment)
        if self._corpus is None or fragment not in self._corpus.sources:
            return home, source_of(fragment)
        return home or self._corpus.collections[fragment], self._corpus.sources[fragment]


def cut(ids: Sequence[str], at: Located, depth: DepthConfig) -> tuple[str, ...]:
    """The top K; one fragment a source where positions count sources."""
    if depth.unit == "source":
        ids = list({at.key(name): name for name in reversed(ids)}.values())[::-1]
    return tuple(ids[: depth.handed_on])


class _Aligner:
    """Fills one slot a query; the tables are gathered row by row and sorted at the end."""

    def __init__(self, rows: list[CorpusJudgment], corpus: Corpus | None, depth: DepthConfig) -> None:
        self.rows, self.corpus, self.depth, self.tally = rows, corpus, depth, RouteTally()
        self.index = {row.query_id: i for i, row in enumerate(rows)}
        self.names: dict[str, int] = {}
        n = len(rows)
        self.state = np.full(n, MISSING, dtype=np.int64)
        self.first_right, self.expanded = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.links = np.zeros((n, 4), dtype=np.int64)
        self.links[:, 0] = [len({r.triple for r in row.expected_relationships}) for row in rows]
        self.leaks = np.zeros((n, 1 + len(LEAK_STAGES)), dtype=np.int64)
        self.n_merged, self.n_final = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.latency = np.full(n, np.nan)
        self.stories = [CorpusStory() for _ in rows]
        self.reasons: list[list[CorpusMissReason]] = [["incomplete"] for _ in rows]
        self.ranks: list[list[int]] = [[0] * len(row.expected) for row in rows]
        self.kept: list[list[list[bool]]] = [[[False] * 4 for _ in row.expected] for row in rows]
        self.fans: list[list[tuple[str, int, bool, bool, float]]] = [
            [(name, 0, True, False, np.nan) for name in sorted(set(row.expected_collections))] for row in rows
        ]

    def take(self, row: CorpusResult) -> None:
        """Follow the evidence of one query through its result."""
        self.tally.result_rows += 1
        i = self.index.get(row.query_id)
        if i is None:
            self.tally.without_judgment += 1
            return
        self.tally.digests.append(row_digest(corpus_result_content(row)))
        self.tally.stamps[row.system_fingerprint] = self.tally.stamps.get(row.system_fingerprint, 0) + 1
        if row.latency_ms is not None:
            self.latency[i] = row.latency_ms
        if row.error is not None:
            self.state[i], self.stories[i].error = FAILED, row.error
            return
        self.state[i] = OK
        self._fans(i, row)
        self._evidence(i, row)
        self._links(i, row)
        self._leaks(i, row)
        self.reasons[i] = corpus_miss_reasons(self.rows[i], self.stories[i])
        if not self.reasons[i]:
            self.stories[i] = CorpusStory()

    def _fans(self, i: int, row: CorpusResult) -> None:
        expected, routed = set(self.rows[i].expected_collections), row.routed_collections or ()
        fans = {fan.collection: fan for fan in row.fan_out or ()}
        self.tally.not_searched += sum(name not in fans for name in routed)
        self.first_right[i] = bool(routed) and routed[0] in expected
        self.fans[i] = [
            (name, fan.k if fan else 0, name in expected, name in routed, _latency(fan))
            for name in sorted(expected | set(routed))
            for fan in (fans.get(name),)
        ]
        self.stories[i].routed = routed
        self.stories[i].searched = [
            Searched(
                collection=name, expected=name in expected, k=fan.k if fan else None, results=len(fan.results) if fan else 0
            )
            for name in routed
            for fan in (fans.get(name),)
        ]

    def _evidence(self, i: int, row: CorpusResult) -> None:
        at, story = Located(row, self.corpus), self.stories[i]
        lists = {fan.collection: self._ranks([h.fragment_id for h in fan.results], at) for fan in row.fan_out or ()}
        merged, final = self._ranks(row.merged or (), at), self._ranks(row.handed_on, at)
        story.merged, story.final = (cut(ids, at, self.depth) for ids in (row.merged or (), row.handed_on))
        self.n_merged[i], self.n_final[i] = len(story.merged), len(story.final)
        self.tally.beyond_top_k += len(row.merged or ()) - len(story.merged)
        for n, (collection, source) in enumerate(self.rows[i].expected):
            rank = _rank(lists.get(collection, {}), collection, source)
            places = [_rank(ranks, collection, source) for ranks in (merged, final)]
            within = [0 < place <= self.depth.handed_on for place in places]
            self.ranks[i][n] = rank
            self.kept[i][n] = [collection in story.routed, rank > 0, *within]
            self._lost(i, n, places[0])

    def _ranks(self, ids: Sequence[str], at: Located) -> dict[_Key, int]:
        """First position of each source; positions count fragments, or distinct sources where D says so."""
        keys = [at.key(name) for name in ids]
        if self.depth.unit == "source":
            keys = list(dict.fromkeys(keys))
        return {key: rank for rank, key in reversed(list(enumerate(keys, 1)))}

    def _lost(self, i: int, n: int, merged_rank: int) -> None:
        collection, source = self.rows[i].expected[n]
        kept = self.kept[i][n]
        if kept[3]:
            self.stories[i].recovered += [] if kept[2] else [source]
            return
        self.stories[i].lost.append(
            LostSource(
                collection=collection,
                source_id=source,
                charged_to=_charged(kept),
                rank=self.ranks[i][n] or None,
                merged_rank=merged_rank or None,
            )
        )

    def _links(self, i: int, row: CorpusResult) -> None:
        self.expanded[i] = row.expansion is not None
        followed = {r.triple for r in row.expansion.relationships} if row.expansion else set()
        expected = dict.fromkeys(r.triple for r in self.rows[i].expected_relationships)
        self.stories[i].absent_relationships = [triple for triple in expected if triple not in followed]
        right = len(followed & expected.keys())
        self.links[i] = len(expected), right, len(followed), right

    def _leaks(self, i: int, row: CorpusResult) -> None:
        principal = self.rows[i].principal
        if principal is None or self.corpus is None:
            return
        added = row.expansion.added_fragment_ids if row.expansion else ()
        retrieved = [hit.fragment_id for fan in row.fan_out or () for hit in fan.results]
        barred = [
            {name for name in names if name in self.corpus.sources and not self.corpus.readable(name, principal.groups)}
            for names in (retrieved, row.merged or (), added, row.handed_on)
        ]
        self.leaks[i] = [len(set().union(*barred)), *map(len, barred)]
        self.stories[i].leaked = {
            stage: tuple(sorted(names)) for stage, names in zip(LEAK_STAGES, barred, strict=True) if names
        }

    def columns(self) -> CorpusColumns:
        """Everything taken so far as arrays."""
        number = {name: n for n, name in enumerate(sorted({fan[0] for fans in self.fans for fan in fans}))}
        return CorpusColumns(
            rows=self.rows,
            collections=list(number),
            top_k=self.depth.handed_on,
            has_corpus=self.corpus is not None,
            state=self.state,
            sources=self._sources(number),
            fans=_table([(i, *fan) for i, fans in enumerate(self.fans) for fan in fans], number),
            first_right=self.first_right,
            expanded=self.expanded,
            links=self.links,
            leaks=self.leaks,
            n_merged=self.n_merged,
            n_final=self.n_final,
            latency_ms=self.latency,
            stories=self.stories,
            reasons=self.reasons,
        )

    def _sources(self, number: dict[str, int]) -> Sources:
        flat = [(i, number[name]) for i, row in enumerate(self.rows) for name, _ in row.expected]
        pairs = np.array(flat, dtype=np.int64).reshape(-1, 2)
        ranks = np.array([rank for ranks in self.ranks for rank in ranks], dtype=np.int64)
        kept = np.array([stages for row in self.kept for stages in row], dtype=bool).reshape(-1, 4)
        return Sources(pairs[:, 0], pairs[:, 1], ranks, kept)


def _charged(kept: Sequence[bool]) -> Loss:
    """`charged_to` of one source that was not handed on."""
    losses = list(LOSSES)
    return losses[3 if kept[2] else 2 if kept[1] else 1 if kept[0] else 0]


def _latency(fan: FanOut | None) -> float:
    return np.nan if fan is None or fan.latency_ms is None else fan.latency_ms


def _rank(ranks: dict[_Key, int], collection: str, source: str) -> int:
    """Where a source stands, 0 where nowhere; a fragment of unknown collection counts for the source in any."""
    found = [ranks[key] for key in ((collection, source), (None, source)) if key in ranks]
    return min(found, default=0)


def _table(fans: list[tuple[int, str, int, bool, bool, float]], number: dict[str, int]) -> Fans:
    query, name, k, expected, routed, latency = zip(*fans, strict=True) if fans else ((), (), (), (), (), ())
    return Fans(
        np.array(query, dtype=np.int64),
        np.array([number[n] for n in name], dtype=np.int64),
        np.array(k, dtype=np.int64),
        np.array(expected, dtype=bool),
        np.array(routed, dtype=bool),
        np.array(latency, dtype=np.float64),
    )
