"""Where each failed query was lost: one account over the reports of one fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tripos.across.runs import Run
from tripos.across.traces import ORDER, Trace, Unit, follow
from tripos.columns.bound import whole_lists
from tripos.contracts.corpus import CorpusMiss, Loss, LostSource
from tripos.contracts.explanation import PLACES, Charge, Explanation, Layer, Lost
from tripos.contracts.fragments import source_of
from tripos.contracts.generation import GenerationMiss, RequirementVerdict, Status
from tripos.contracts.index import Corpus
from tripos.contracts.reports import Curve
from tripos.contracts.retrieval import RetrievalMiss
from tripos.errors import Findings, quoted

_WHOLE: tuple[tuple[Lost, str], ...] = (
    ("incomplete", "incomplete"),
    ("leak", "leak"),
    ("filter_violation", "filter_violation"),
    ("forbidden", "forbidden"),
    ("not_empty", "not_empty"),
)
"""Reasons that are charged to the whole query, whatever its units."""

_GROUNDS: dict[Status, Lost] = {
    "incomplete": "incomplete",
    "answered_unanswerable": "answered_unanswerable",
    "abstained_with_citations": "bad_citation",
    "over_refused": "wrongly_abstained",
    "missing_requirement": "not_cited",
    "bad_citation": "bad_citation",
    "unfaithful": "unfaithful",
    "not_judged": "not_judged",
}

_LOSSES: dict[Loss, Lost] = {
    "lost_by_routing": "routing",
    "lost_by_rank": "rank",
    "lost_by_merge": "merge",
    "displaced_by_expansion": "displaced",
}


def explain(run: Run, findings: Findings) -> Explanation:
    """Charge every failed query to one place, the first that applies in the order of PLACES."""
    failed = run.failed
    ranks = ranks_of(run, set(failed), findings)
    charges = [charge(run, query_id, ranks.get(query_id)) for query_id in failed]
    told = run.reports
    counts = Counter(one.lost for one in charges)
    return Explanation.model_validate(
        {
            "name": run.bound.report.name,
            "configuration": run.bound.report.fingerprint.configuration,
            "exploratory": [f"{layer}: {reason}" for layer, report in told.items() for reason in report.exploratory],
            "runs": {layer: report.run_id for layer, report in told.items()},
            "scored": {layer: report.rows.scored for layer, report in told.items()},
            "failures": {layer: run.failures(layer) for layer in told},
            "failed": len(charges),
            "lost": {place: counts[place] for place in PLACES if counts[place]},
            "charges": charges,
        }
    )


def ranks_of(run: Run, wanted: set[str], findings: Findings) -> dict[str, dict[str, int]]:
    """Retrieval ranks of all fragments within limit, of the queries wanted; a row with an error has none."""
    return {
        row.query_id: {name: rank for rank, name in enumerate(names, 1)}
        for row, names in whole_lists(run.bound, findings)
        if names is not None and row.query_id in wanted
    }


def charge(run: Run, query_id: str, ranks: Mapping[str, int] | None) -> Charge:
    """The one place of one failed query."""
    candidates = list(_candidates(run, query_id, ranks))
    return min(candidates, key=lambda one: ORDER[one.lost])


def _candidates(run: Run, query_id: str, ranks: Mapping[str, int] | None) -> Iterator[Charge]:
    """Everything that a failed query could be charged to.

    Where a requirement was lost, that is the unit; the sources that retrieval and routing lost count only where none was.
    """
    r, c = run.retrieval_misses.get(query_id), run.corpus_misses.get(query_id)
    g = run.generation_misses.get(query_id)
    answered = [] if g is None else list(_generation(run, g, ranks))
    yield from answered
    by_requirement = any(one.unit is not None for one in answered)
    if r is not None:
        yield from _whole("retrieval", r)
        yield from () if by_requirement else _retrieval(run, r, ranks or {})
    if c is not None:
        yield from _whole("corpus", c)
        yield from () if by_requirement else _sources(c, run.bound.corpus)
        yield from _links(c)


def _charge(layer: Layer, miss: RetrievalMiss | CorpusMiss | GenerationMiss, lost: Lost, told: str) -> Charge:
    return Charge(query_id=miss.query_id, query=miss.query, lost=lost, layer=layer, unit=None, told=told, remedy=None)


def _whole(layer: Layer, miss: RetrievalMiss | CorpusMiss) -> Iterator[Charge]:
    for lost, reason in _WHOLE:
        if reason in miss.reasons:
            told = miss.error if reason == "incomplete" and miss.error else PLACES[lost]
            yield _charge(layer, miss, lost, told)


def _lacking(miss: RetrievalMiss) -> list[str]:
    """The expected or required sources whose absence makes the row a miss."""
    absent = [source for source, rank in miss.found.items() if rank is None]
    if "no_hit" in miss.reasons:
        return list(miss.expected_sources)
    return [*(absent if "partial" in miss.reasons else ()), *miss.required_absent]


def _retrieval(run: Run, miss: RetrievalMiss, ranks: Mapping[str, int]) -> Iterator[Charge]:
    """Each source that the retrieval layer lost, at the place where it was."""
    trace = retrieval_trace(run, ranks)
    for source in dict.fromkeys(_lacking(miss)):
        fact = follow(source_unit(source, run.bound.corpus, ranks), trace).lost
        if fact is not None and fact.lost is not None:
            found = _charge("retrieval", miss, fact.lost, fact.told)
            yield found.model_copy(update={"unit": source, "remedy": fact.remedy})
        else:  # a row's own k can be smaller than top_k: handed on, and a miss all the same
            yield _charge("retrieval", miss, "not_shown", f"{quoted(source)} is beyond the row's own depth {miss.depth}")


def source_unit(source: str, corpus: Corpus | None, ranks: Mapping[str, int]) -> Unit:
    """A source as a unit: any of its fragments serves."""
    if corpus is not None:
        fragments = corpus.fragments.get(source, [])
    else:
        fragments = [name for name in ranks if source_of(name) == source] or [source]
    return Unit(source, quoted(source), [frozenset({name}) for name in fragments])


def retrieval_trace(run: Run, ranks: Mapping[str, int]) -> Trace:
    """The retrieval layer's own path alone."""
    return Trace(run.bound.corpus, run.bound.depth, ranks=ranks, min_score=run.bound.search.min_score, hit_at=_hit_at(run))


def _hit_at(run: Run) -> dict[int, float | None]:
    curve = run.bound.report.measures.get("hit@k")
    return dict(enumerate(curve.value, 1)) if isinstance(curve, Curve) else {}


def _sources(miss: CorpusMiss, corpus: Corpus | None) -> Iterator[Charge]:
    for lost in miss.lost:
        known = corpus is None or lost.source_id in corpus.fragments
        place: Lost = _LOSSES[lost.charged_to] if known else "absent"
        yield Charge(
            query_id=miss.query_id,
            query=miss.query,
            lost=place,
            layer="corpus",
            unit=lost.source_id,
            told=f"{quoted(lost.source_id)} of {quoted(lost.collection)}: {PLACES[place]}",
            remedy=_remedy(lost),
        )


def _links(miss: CorpusMiss) -> Iterator[Charge]:
    for subject, predicate, target in miss.absent_relationships:
        told = f"{quoted(subject)} –{quoted(predicate)}→ {quoted(target)} was not followed"
        yield _charge("corpus", miss, "link_not_followed", told)


def _remedy(lost: LostSource) -> str | None:
    """What would have kept a source, as far as its ranks tell."""
    match lost.charged_to:
        case "lost_by_routing":
            return f"route to {quoted(lost.collection)}"
        case "lost_by_merge" if lost.merged_rank:
            return f"top_k ≥ {lost.merged_rank}"
        case "lost_by_merge":
            return f"a larger top_k, or more weight for {quoted(lost.collection)}, whose own list has it at rank {lost.rank}"
        case "displaced_by_expansion":
            return f"let expansion add less: it stood at place {lost.merged_rank} of the merged list"
    return None


def _generation(run: Run, miss: GenerationMiss, ranks: Mapping[str, int] | None) -> Iterator[Charge]:
    trace = generation_trace(run, miss, ranks)
    for unit in generation_units(miss):
        fact = follow(unit, trace).lost
        if fact is not None and fact.lost is not None:
            yield _charge("generation", miss, fact.lost, fact.told).model_copy(
                update={"unit": unit.name, "remedy": fact.remedy}
            )
    for ground, words in zip(miss.grounds, _padded(miss.reasons, len(miss.grounds)), strict=True):
        yield _charge("generation", miss, _GROUNDS.get(ground, "incomplete"), words)


def _padded(reasons: tuple[str, ...], n: int) -> list[str]:
    return [reasons[i] if i < len(reasons) else "" for i in range(n)]


def generation_units(miss: GenerationMiss) -> list[Unit]:
    """Requirements that no citation meets; of a row that was not answered, all of them."""
    unmet = [r for r in miss.requirements if not r.met] if miss.expected_answerable is True else []
    return [requirement_unit(requirement) for requirement in unmet]


def requirement_unit(requirement: RequirementVerdict) -> Unit:
    """A requirement as a unit: any of its alternatives serves."""
    name = requirement.requirement_id
    return Unit(name, quoted(name), [frozenset(way) for way in requirement.acceptable])


def generation_trace(run: Run, miss: GenerationMiss, ranks: Mapping[str, int] | None) -> Trace:
    """All that is known of one answered query: through the corpus layer where that has it, else through retrieval."""
    has_answer = "incomplete" not in miss.grounds
    return Trace(
        run.bound.corpus,
        run.bound.depth,
        ranks=ranks,
        result=run.routes.results.get(miss.query_id),
        shown=miss.shown,
        cited=[c.fragment_id for c in miss.citations] if has_answer else None,
        abstained=bool(miss.abstained),
        min_score=run.bound.search.min_score,
        hit_at=_hit_at(run),
    )
