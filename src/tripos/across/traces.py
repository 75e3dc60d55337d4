"""One requirement or source followed through the stages: where its evidence was, and where it went missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tripos.columns.routes import Located, cut
from tripos.contracts.config import DepthConfig
from tripos.contracts.corpus import CorpusResult
from tripos.contracts.explanation import PLACES, Lost
from tripos.contracts.index import Corpus
from tripos.errors import quoted

ORDER: dict[Lost, int] = {place: n for n, place in enumerate(PLACES)}
Stage = Literal["corpus", "routing", "retrieval", "merge", "expansion", "shown", "cited"]


class Unit(NamedTuple):
    """What must survive: a requirement, or an expected source. Fragments within one way are needed together."""

    name: str
    text: str
    ways: Sequence[frozenset[str]]


class Fact(NamedTuple):
    """One stage of one fragment: whether it survived, in words; and where it is charged and what would keep it if not."""

    stage: Stage
    kept: bool
    told: str
    lost: Lost | None = None
    remedy: str | None = None


class Course(NamedTuple):
    """How one fragment fared, and the best rank it had."""

    facts: list[Fact]
    place: int


_NOWHERE = 10**9


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of one query's evidence.

    ranks: retrieval rank of each fragment within limit; None where the query has no list. shown: what the model was shown;
    None where nothing tells. cited: None where there is no answer.
    """

    corpus: Corpus | None
    depth: DepthConfig
    ranks: Mapping[str, int] | None = None
    result: CorpusResult | None = None
    shown: Collection[str] | None = None
    cited: Collection[str] | None = None
    abstained: bool = False
    min_score: float | None = None
    hit_at: Mapping[int, float | None] = field(default_factory=dict)

    def course(self, fragment: str) -> Course:
        """The stages of one fragment in order, up to the one at which it was lost."""
        facts: list[Fact] = []
        for fact in self._stages(fragment):
            facts.append(fact)
            if not fact.kept:
                break
        return Course(facts, self._place(fragment))

    def _place(self, fragment: str) -> int:
        """The best rank that any list gives the fragment; a large number where none has it."""
        lists = [[h.fragment_id for h in fan.results] for fan in (self.result.fan_out or ())] if self.result else []
        found = [ids.index(fragment) + 1 for ids in lists if fragment in ids]
        if not found and self.ranks is not None and fragment in self.ranks:
            found = [self.ranks[fragment]]
        return min(found, default=_NOWHERE)

    def _stages(self, fragment: str) -> Iterable[Fact]:
        yield self._present(fragment)
        if self.result is not None and self.result.error is None:
            yield from self._corpus_path(self.result, fragment)
        elif self.ranks is not None:
            yield from self._retrieval_path(self.ranks, fragment)
        if self.shown is not None and fragment not in self.shown:
            yield Fact("shown", False, "was not shown to the model", "not_shown", "show the model what is handed on")
        if self.cited is not None:
            yield self._cited(fragment, self.cited)

    def _present(self, fragment: str) -> Fact:
        if self.corpus is not None and fragment not in self.corpus.sources:
            return Fact("corpus", False, f"{quoted(fragment)} is in no fragment", "absent", "add the source to the corpus")
        return Fact("corpus", True, f"{quoted(fragment)} present")

    def _retrieval_path(self, ranks: Mapping[str, int], fragment: str) -> Iterable[Fact]:
        rank, limit, top_k = ranks.get(fragment), self.depth.limit, self.depth.handed_on
        if rank is None:
            bar = "" if self.min_score is None else f" with a score of {self.min_score:g} or more"
            yield Fact("retrieval", False, f"not among the first {limit}{bar}", "rank")
            return
        yield Fact("retrieval", True, f"{quoted(fragment)} at rank {rank} of {limit}")
        if rank <= top_k:
            yield Fact("shown", True, f"within the top {top_k}")
            return
        now, then = (self.hit_at.get(k) for k in (top_k, rank))
        over = f" (hit@{rank} {then:.2f}, hit@{top_k} {now:.2f} over this run)" if now is not None and then is not None else ""
        told = f"top K is {top_k}: ranked {rank}, it never reached the model"
        yield Fact("shown", False, told, "not_shown", f"top_k ≥ {rank}{over}")

    def _corpus_path(self, result: CorpusResult, fragment: str) -> Iterable[Fact]:
        at, top_k = Located(result, self.corpus), self.depth.handed_on
        final = cut(result.handed_on, at, self.depth)
        home = at.key(fragment)[0]
        if fragment in final:
            place = final.index(fragment) + 1
            fan = next((f for f in result.fan_out or () if any(h.fragment_id == fragment for h in f.results)), None)
            come = f"from {quoted(fan.collection)}" if fan else "by expansion"
            yield Fact("routing", True, f"handed on {come}" if not fan else f"{quoted(fan.collection)}")
            yield Fact("shown", True, f"{come}, at place {place} of the top {top_k}")
            return
        yield from self._lost_on_the_way(result, fragment, home, at)

    def _lost_on_the_way(self, result: CorpusResult, fragment: str, home: str | None, at: Located) -> Iterable[Fact]:
        routed, top_k = result.routed_collections or (), self.depth.handed_on
        fan = next((f for f in result.fan_out or () if f.collection == home), None)
        if home is not None and home not in routed:
            told = f"went to {', '.join(map(quoted, routed)) or 'no collection'}, not to {quoted(home)}"
            yield Fact("routing", False, told, "routing", f"route to {quoted(home)}")
            return
        yield Fact("routing", True, quoted(home or "somewhere"))
        ids = [] if fan is None else [hit.fragment_id for hit in fan.results]
        if fragment not in ids:
            told = f"not among the {fan.k} of {quoted(fan.collection)}" if fan else f"{quoted(home or '')} was not searched"
            yield Fact("retrieval", False, told, "rank", f"a k above {fan.k}, if it ranks at all" if fan else "search it")
            return
        yield Fact("retrieval", True, f"{quoted(fragment)} at rank {ids.index(fragment) + 1} of {quoted(home or '')}")
        merged = cut(result.merged or (), at, self.depth)
        if fragment not in merged:
            whole = result.merged or ()
            place = f", it stood at place {whole.index(fragment) + 1}" if fragment in whole else ""
            remedy = f"top_k ≥ {whole.index(fragment) + 1}" if fragment in whole else "merge more of each list"
            yield Fact("merge", False, f"not among the merged top {top_k}{place}", "merge", remedy)
            return
        yield Fact("merge", True, f"at place {merged.index(fragment) + 1} of the merged top {top_k}")
        final = result.handed_on
        place = f"top_k ≥ {final.index(fragment) + 1}" if fragment in final else "let expansion add less"
        yield Fact("expansion", False, "pushed out of the top K by what expansion added", "displaced", place)

    def _cited(self, fragment: str, cited: Collection[str]) -> Fact:
        if fragment in cited:
            return Fact("cited", True, "cited")
        if self.abstained:
            told = "the model declined, though it was shown the evidence"
            return Fact("cited", False, told, "wrongly_abstained", "an answer: the evidence was there")
        return Fact("cited", False, "shown, but the answer does not cite it", "not_cited", "a citation of it")


class Lead(NamedTuple):
    """How far a unit's best way came: its stages, and the fragment they are about."""

    unit: Unit
    facts: list[Fact]

    @property
    def lost(self) -> Fact | None:
        """The stage at which the unit was lost; None where it was not."""
        return next((fact for fact in self.facts if not fact.kept), None)


def follow(unit: Unit, trace: Trace) -> Lead:
    """The best of a unit's ways: within a way the fragment lost first decides, between ways the one that came furthest.

    Of ways that came equally far, the one that stands higher.
    """
    ways = [min(map(trace.course, sorted(way)), key=_reach) for way in unit.ways if way]
    if not ways:
        return Lead(unit, [Fact("corpus", False, f"{unit.text} is in no fragment", "absent", "add it to the corpus")])
    return Lead(unit, max(ways, key=lambda course: (_reach(course), -course.place)).facts)


def _reach(course: Course) -> int:
    """How far a fragment came: the order of the place it was lost at, or beyond all."""
    last = course.facts[-1]
    return ORDER[last.lost] if last.lost is not None else len(ORDER)
