"""The reference multi-collection system: route, fan out, merge, expand. Offline, and the same results on every machine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from tripos.contracts.config import DepthConfig, ExpansionPolicy, FanOutPolicy, SearchConfig
from tripos.contracts.corpus import CorpusResult, Expansion, FanOut, FanOutHit, Relationship
from tripos.contracts.index import Corpus
from tripos.errors import ConfigError, suggest
from tripos.search.lexical import Lexical
from tripos.search.protocol import Query

_ROUTING_DEPTH = 50
"""Hits over the whole corpus that the router looks at."""


class FanOutSystem:
    """A lexical search of each collection, and one of the whole corpus for the router and for choosing what to add."""

    def __init__(self, corpus: Corpus, policy: SearchConfig, depth: DepthConfig) -> None:
        self._corpus, self._depth = corpus, depth
        self._policy = policy.fan_out or FanOutPolicy()
        self.collections = sorted(set(corpus.collections.values()))
        self._check_names()
        self._whole = Lexical(corpus, policy)
        self._parts = {name: Lexical(corpus.within(name), policy) for name in self.collections}

    def _check_names(self) -> None:
        stated = {
            "search.fan_out.names": list(self._policy.names),
            "depth.per_collection": list(self._depth.per_collection or ()),
        }
        for field, names in stated.items():
            for name in names:
                if name not in self.collections:
                    hint = suggest(name, self.collections) or f": it has {', '.join(self.collections)}"
                    raise ConfigError.at(field, f'"{name}" is no collection of the corpus{hint}', field=name)

    def answer(self, query: Query, *, timed: bool = False) -> CorpusResult:
        """What the system does with one question, stage by stage; latencies only where `timed`."""
        start = time.perf_counter()
        routed = self.route(query)
        fans = [self._fan(name, query, timed) for name in routed]
        merged = merge([[hit.fragment_id for hit in fan.results] for fan in fans], self._policy.rrf_k)
        merged = merged[: self._depth.handed_on]
        expansion = self._expand(query, merged)
        return CorpusResult(
            query_id=query.query_id,
            routed_collections=tuple(routed),
            fan_out=tuple(fans),
            merged=tuple(merged),
            expansion=expansion,
            final=None if expansion is None else tuple(self._final(merged, expansion.added_fragment_ids)),
            latency_ms=_milliseconds(start) if timed else None,
        )

    def route(self, query: Query) -> list[str]:
        """The collections to search, in order of preference."""
        if self._policy.router == "all":
            return self.collections[: self._policy.most]
        found = self._by_words(query.text) if self._policy.router == "names" else self._by_hits(query)
        return sorted(found, key=lambda name: (-found[name], name))[: self._policy.most]

    def _by_words(self, text: str) -> dict[str, float]:
        """Collections by how many of their words the question holds."""
        words = re.findall(r"[^\W_]+", text.casefold())
        own = f" {' '.join(words)} "
        counts = {name: sum(f" {word.casefold()} " in own for word in known) for name, known in self._policy.names.items()}
        return {name: float(n) for name, n in counts.items() if n}

    def _by_hits(self, query: Query) -> dict[str, float]:
        """Collections by their best score, where it is near enough to the best of all."""
        best: dict[str, float] = {}
        for name, score in self._whole.search(query, _ROUTING_DEPTH):
            best.setdefault(self._corpus.collections[name], score)
        bar = max(self._policy.min_score, self._policy.share * max(best.values(), default=0.0))
        return {name: score for name, score in best.items() if score >= bar}

    def _fan(self, name: str, query: Query, timed: bool) -> FanOut:
        k = (self._depth.per_collection or {}).get(name, self._depth.limit)
        start = time.perf_counter()
        hits = self._parts[name].search(query, k)
        latency = _milliseconds(start) if timed else None
        results = tuple(FanOutHit(fragment_id=fragment, score=score) for fragment, score in hits)
        return FanOut(collection=name, k=k, latency_ms=latency, results=results)

    def _expand(self, query: Query, merged: Sequence[str]) -> Expansion | None:
        policy = self._policy.expansion
        if policy is None:
            return None
        ranks = {hit.fragment_id: rank for rank, hit in enumerate(self._whole.search(query, len(self._corpus.sources)))}
        walk = _Walk(self._corpus, query, policy, ranks)
        return walk.follow(merged)

    def _final(self, merged: Sequence[str], added: Sequence[str]) -> list[str]:
        """What was added stands at the end of the top K, and pushes out the last of the merged list where that is full."""
        kept = merged[: max(self._depth.handed_on - len(added), 0)]
        return [*kept, *added][: self._depth.handed_on]


def merge(lists: Iterable[Sequence[str]], rrf_k: int) -> list[str]:
    """Reciprocal rank fusion (Cormack et al. 2009), summed exactly; ties by fragment id."""
    scores: dict[str, Fraction] = {}
    for ids in lists:
        for rank, name in enumerate(ids, 1):
            scores[name] = scores.get(name, Fraction(0)) + Fraction(1, rrf_k + rank)
    return sorted(scores, key=lambda name: (-scores[name], name))


class _Link(NamedTuple):
    subject: str
    field: str
    target: str


class _Walk:
    """Follows links from merged fragments to other sources."""

    def __init__(self, corpus: Corpus, query: Query, policy: ExpansionPolicy, ranks: Mapping[str, int]) -> None:
        self._corpus, self._query, self._policy, self._ranks = corpus, query, policy, ranks
        self._added: list[str] = []
        self._links: dict[_Link, None] = {}

    def follow(self, merged: Sequence[str]) -> Expansion:
        """Links from the first merged fragments, then from what they led to."""
        present = {self._corpus.sources[name] for name in merged}
        frontier = list(dict.fromkeys(self._corpus.sources[name] for name in merged[: self._policy.seeds]))
        for _ in range(self._policy.rounds):
            frontier = [target for source in frontier for target in self._from(source, present)]
        relationships = [Relationship(subject=s, predicate=p, object=o) for s, p, o in self._links]
        return Expansion(relationships=tuple(relationships), added_fragment_ids=tuple(self._added))

    def _from(self, source: str, present: set[str]) -> list[str]:
        """Follow the links of one source, as far as there is room; the sources they led to."""
        reached = []
        for link in self._links_of(source):
            if link.target not in present:
                fragment = self._best(link.target)
                if fragment is None or len(self._added) >= self._policy.most:
                    continue
                self._added.append(fragment)
                present.add(link.target)
            self._links[link] = None
            reached.append(link.target)
        return reached

    def _links_of(self, source: str) -> Iterable[_Link]:
        for fragment in self._corpus.fragments[source]:
            if not self._may_read(fragment):
                continue
            own = self._corpus.metadata.get(fragment, {})
            for field in self._policy.fields:
                target = own.get(field)
                if isinstance(target, str) and target in self._corpus.fragments:
                    yield _Link(source, field, target)

    def _best(self, source: str) -> str | None:
        """The fragment of a source that answers the question best; its first where none has any word of it."""
        names = [name for name in self._corpus.fragments[source] if self._may_read(name)]
        return min(names, key=lambda name: (self._ranks.get(name, len(self._ranks)), names.index(name)), default=None)

    def _may_read(self, fragment: str) -> bool:
        return self._query.groups is None or self._corpus.readable(fragment, self._query.groups)


def _milliseconds(start: float) -> float:
    return round((time.perf_counter() - start) * 1000, 3)
