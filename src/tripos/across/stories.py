"""One query's story through all layers of a run, whether it failed or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tripos.across.explain import charge, generation_trace, ranks_of, requirement_unit, retrieval_trace, source_unit
from tripos.across.runs import Run, judgments_of
from tripos.across.traces import Fact, Lead, Trace, follow
from tripos.contracts.explanation import Charge, Step, Story
from tripos.contracts.generation import GenerationMiss, GenerationResult
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, UsageError, quoted, suggest

_STAGES = ("corpus", "routing", "retrieval", "merge", "expansion", "shown", "cited", "faithful")


def story(run: Run, query_id: str, findings: Findings) -> Story:
    """Follow the lost unit of one query, or its first, through every stage; raises UsageError for a query of no layer."""
    judged = {row.query_id: row for row in judgments_of(run, findings)}
    findings.raise_errors()
    _known(run, query_id, judged)
    ranks = ranks_of(run, {query_id}, findings).get(query_id)
    charged = charge(run, query_id, ranks) if query_id in run.failed else None
    leads = _leads(run, query_id, judged.get(query_id), ranks)
    lead = _told(leads, charged)
    steps = list(_steps(run, query_id, lead, charged))
    return Story(
        query_id=query_id,
        query=_text(run, query_id, judged),
        configuration=run.bound.report.fingerprint.configuration,
        outcome=tuple(_outcome(run, query_id)),
        charge=charged,
        needs=_needs(lead),
        others=max(len(leads) - 1, 0),
        steps=tuple(steps),
    )


def _known(run: Run, query_id: str, judged: Mapping[str, RetrievalJudgment]) -> None:
    known = {*judged, *run.generation_results, *run.routes.judgments, *run.failed}
    if query_id not in known:
        raise UsageError(f'"{quoted(query_id)}" is a query of no report here{suggest(query_id, known)}')


def _text(run: Run, query_id: str, judged: Mapping[str, RetrievalJudgment]) -> str | None:
    if query_id in judged:
        return judged[query_id].query
    if query_id in run.routes.judgments:
        return run.routes.judgments[query_id].query
    miss = run.generation_misses.get(query_id)
    return None if miss is None else miss.query


def _leads(run: Run, query_id: str, judgment: RetrievalJudgment | None, ranks: Mapping[str, int] | None) -> list[Lead]:
    """Every unit of the query, followed as far as it came: requirements, else the sources of the layer that has them."""
    result = run.generation_results.get(query_id)
    if result is not None and result.requirements:
        trace = _answered_trace(run, result, ranks)
        return [follow(requirement_unit(requirement), trace) for requirement in result.requirements]
    if (judged := run.routes.judgments.get(query_id)) is not None:
        trace = Trace(run.bound.corpus, run.bound.depth, result=run.routes.results.get(query_id))
        names = [source for _, source in judged.expected]
    else:
        trace = retrieval_trace(run, ranks or {})
        names = list(judgment.expected_sources) if judgment is not None else []
    return [follow(source_unit(name, run.bound.corpus, ranks or {}), trace) for name in names]


def _answered_trace(run: Run, result: GenerationResult, ranks: Mapping[str, int] | None) -> Trace:
    """A failed row's own trace; a passing row's citations alone, since nothing of what it was shown was kept."""
    miss = run.generation_misses.get(result.query_id)
    if isinstance(miss, GenerationMiss):
        return generation_trace(run, miss, ranks)
    return Trace(
        run.bound.corpus,
        run.bound.depth,
        ranks=ranks,
        result=run.routes.results.get(result.query_id),
        cited=[c.fragment_id for c in result.citations],
        abstained=bool(result.abstained),
    )


def _told(leads: Sequence[Lead], charged: Charge | None) -> Lead | None:
    """The unit that the query is charged for, else the first that was lost, else the first."""
    named = [lead for lead in leads if charged is not None and lead.unit.name == charged.unit]
    return next(iter([*named, *(lead for lead in leads if lead.lost), *leads]), None)


def _needs(lead: Lead | None) -> str:
    if lead is None:
        return "nothing: nothing should come back"
    fragments = sorted({name for way in lead.unit.ways for name in way})
    listed = ", ".join(map(quoted, fragments[:4])) + (f" and {len(fragments) - 4} more" if len(fragments) > 4 else "")
    return quoted(lead.unit.name) + (f", any of {listed}" if len(fragments) > 1 else f" ({listed})" if listed else "")


def _steps(run: Run, query_id: str, lead: Lead | None, charged: Charge | None) -> Iterator[Step]:
    """Each stage that this run has, the ones after the loss not reached."""
    if lead is None and (result := run.routes.results.get(query_id)) is not None:
        told = ", ".join(map(quoted, result.routed_collections or ())) or "nowhere, as it should be"
        yield Step(stage="routing", kept=not result.routed_collections, told=told, lost_here=bool(result.routed_collections))
        return
    facts: dict[str, Fact] = {fact.stage: fact for fact in lead.facts} if lead is not None else {}
    unit_lost = charged is not None and lead is not None and lead.lost is not None and charged.lost == lead.lost.lost
    has_corpus, has_answer = query_id in run.routes.results, query_id in run.generation_results
    shown = {"routing": has_corpus, "merge": has_corpus, "expansion": has_corpus, "cited": has_answer, "faithful": has_answer}
    for stage in _STAGES:
        fact = facts.get(stage)
        if fact is not None:
            lost = unit_lost and not fact.kept
            yield Step.model_validate({"stage": stage, "kept": fact.kept, "told": fact.told, "lost_here": lost})
        elif stage == "faithful" and has_answer:
            yield _faithful(run.generation_results[query_id], charged)
        elif shown.get(stage, stage == "shown") and not _passed_over(stage, facts):
            yield Step.model_validate({"stage": stage, "kept": None, "told": "", "lost_here": False})


def _passed_over(stage: str, facts: Mapping[str, Fact]) -> bool:
    """Whether a stage has nothing to say because a later one has."""
    later = _STAGES[_STAGES.index(stage) + 1 :]
    return any(name in facts for name in later)


def _faithful(result: GenerationResult, charged: Charge | None) -> Step:
    score, lost = result.faithfulness_score, charged is not None and charged.lost in ("unfaithful", "not_judged")
    told = "no score" if score is None else f"{score:g} ({result.faithfulness_source})"
    kept = None if score is None else "unfaithful" not in result.grounds
    return Step(stage="faithful", kept=kept, told=told, lost_here=lost)


def _outcome(run: Run, query_id: str) -> Iterator[str]:
    """What each layer holds against the query."""
    if (r := run.retrieval_misses.get(query_id)) is not None:
        yield f"retrieval: {', '.join(r.reasons)}"
    if (c := run.corpus_misses.get(query_id)) is not None:
        yield f"corpus: {', '.join(c.reasons)}"
    if (g := run.generation_misses.get(query_id)) is not None:
        yield f"generation: {', '.join(g.grounds or (g.status,))}"
