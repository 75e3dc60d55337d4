"""The verdict on one question: every requirement, every citation, and the status that follows, with its reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tripos.checks.abstention import Phrases, abstention
from tripos.checks.evidence import Alternative
from tripos.checks.generation import Resolver, Shown
from tripos.contracts.base import shown
from tripos.contracts.generation import (
    STATUSES,
    Answered,
    CitationFault,
    CitationVerdict,
    FaithfulnessSource,
    GenerationResult,
    Judged,
    Origin,
    RequirementVerdict,
    Status,
)
from tripos.contracts.index import Corpus
from tripos.errors import quoted, suggest
from tripos.files.generation import Pair
from tripos.fingerprint import round12

_ORDER = {status: n for n, status in enumerate(STATUSES)}
_MAX_NAMED = 4
_MAX_SUGGESTED = 200


@dataclass(frozen=True, slots=True)
class Ruler:
    """What every row is measured by."""

    resolver: Resolver
    phrases: Phrases
    faithfulness_target: float


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why a row does not pass, each ground with its words."""

    found: list[tuple[Status, str]]

    def status(self, passing: Status) -> Status:
        """The first ground in order of precedence, else `passing`."""
        return min((status for status, _ in self.found), key=_ORDER.__getitem__, default=passing)

    def listed(self) -> tuple[Status, ...]:
        """Every ground once, in order of precedence."""
        return tuple(sorted({status for status, _ in self.found}, key=_ORDER.__getitem__))

    def words(self) -> tuple[str, ...]:
        """Every reason, in the same order."""
        return tuple(text for _, text in sorted(self.found, key=lambda pair: _ORDER[pair[0]]))


def verdict(pair: Pair, evidence: Shown, ruler: Ruler) -> GenerationResult:
    """Every verdict on one question."""
    judged, answered = pair.judged, pair.answered
    if answered is None or answered.error is not None or answered.answer is None:
        return _incomplete(judged, answered, ruler)
    abstained, origin = abstention(answered.answer, answered.abstained, ruler.phrases)
    cited = list(dict.fromkeys(answered.cited_fragment_ids))
    requirements = requirement_verdicts(judged, cited, ruler.resolver)
    citations = citation_verdicts(judged, cited, requirements, evidence.evidence, ruler.resolver.corpus)
    found = [*_answerability(judged, answered, abstained, origin, cited)]
    if judged.expected_answerable is True and not abstained:
        found += [*_missing(judged, requirements, cited, evidence), *_faithfulness(answered, ruler.faithfulness_target)]
    found += _bad_citations(citations, ruler.resolver.corpus, evidence)
    grounds = Grounds(found)
    told = (abstained, origin)
    return _result(judged, answered, grounds, abstained=told, requirements=requirements, citations=citations)


def requirement_verdicts(judged: Judged, cited: Sequence[str], resolver: Resolver) -> list[RequirementVerdict]:
    """Which requirements the citations meet; with no citation, none."""
    verdicts = []
    for requirement in judged.citation_requirements:
        ways = resolver.ways(requirement)
        used = {name for way in ways if way <= set(cited) for name in way}
        verdicts.append(
            RequirementVerdict(
                requirement_id=requirement.requirement_id,
                importance=requirement.importance,
                met=bool(used),
                by=tuple(name for name in cited if name in used),
                acceptable=tuple(tuple(sorted(way)) for way in ways),
            )
        )
    return verdicts


def citation_verdicts(
    judged: Judged,
    cited: Iterable[str],
    requirements: Iterable[RequirementVerdict],
    evidence: Collection[str] | None,
    corpus: Corpus | None,
) -> list[CitationVerdict]:
    """What each distinct citation is worth, and its first fault."""
    accepted = {*judged.accepted_fragment_ids, *(name for r in requirements for way in r.acceptable for name in way)}

    def fault(name: str) -> CitationFault | None:
        if corpus is not None and name not in corpus.sources:
            return "nonexistent"
        if evidence is not None and name not in evidence:
            return "not_shown"
        return None if name in accepted else "not_accepted"

    return [CitationVerdict(fragment_id=name, accepted=name in accepted, fault=fault(name)) for name in cited]


def _answerability(
    judged: Judged, answered: Answered, abstained: bool, origin: Origin, cited: Sequence[str]
) -> Iterable[tuple[Status, str]]:
    if judged.expected_answerable is True and abstained:
        how = {"given": "it says abstained: true", "empty": "the answer is empty", "phrase": shown(answered.answer)}[origin]
        names = ", ".join(r.requirement_id for r in judged.citation_requirements[:_MAX_NAMED]) or "no requirement named"
        yield "over_refused", f"abstained ({how}), but the question is answerable: {names}"
    if judged.expected_answerable is False and not abstained:
        yield "answered_unanswerable", "answered, but nothing in the corpus answers this question: it should have abstained"
    if judged.expected_answerable is False and abstained and cited:
        yield "abstained_with_citations", f"abstained, but cites {_names(cited)}: an abstention cites nothing"


def _missing(
    judged: Judged, verdicts: Iterable[RequirementVerdict], cited: Sequence[str], evidence: Shown
) -> Iterable[tuple[Status, str]]:
    for requirement, met in zip(judged.citation_requirements, verdicts, strict=True):
        if met.met:
            continue
        name = f'"{quoted(requirement.requirement_id)}"' + (f" ({quoted(requirement.text)})" if requirement.text else "")
        said = f"it cites {_names(cited)}" if cited else "it cites nothing"
        yield "missing_requirement", f"{name} is supported by no citation: cite {_ways(met, evidence.evidence)}; {said}"


def _ways(met: RequirementVerdict, evidence: Collection[str] | None) -> str:
    """The alternatives in words, and whether the model was shown any."""
    ways = [Alternative(way) for way in met.acceptable]
    text = " or ".join(" with ".join(map(quoted, sorted(way))) for way in ways[:_MAX_NAMED])
    more = f" (or {len(ways) - _MAX_NAMED} more)" if len(ways) > _MAX_NAMED else ""
    if evidence is not None and not any(way <= set(evidence) for way in ways):
        more += " (none was in the evidence shown: retrieval lost it)"
    return text + more


def _bad_citations(
    citations: Iterable[CitationVerdict], corpus: Corpus | None, evidence: Shown
) -> Iterable[tuple[Status, str]]:
    for citation in citations:
        name = f'"{quoted(citation.fragment_id)}"'
        if citation.fault == "nonexistent":
            near = suggest(citation.fragment_id, _nearby(citation.fragment_id, corpus)) if corpus is not None else ""
            yield "bad_citation", f"cites {name}, which is in no fragment of the corpus{near}: made up"
        elif citation.fault == "not_shown":
            known = ", though it would be accepted" if citation.accepted else ""
            yield "bad_citation", f"cites {name}, which is not among the {len(evidence.evidence or ())} fragments shown{known}"
        elif citation.fault == "not_accepted":
            yield "bad_citation", f"cites {name}, which was shown, but supports nothing that is asked (not accepted)"


def _nearby(name: str, corpus: Corpus) -> list[str]:
    """Ids worth a did-you-mean: those of the source that the made-up id seems to name."""
    return corpus.fragments.get(name.rpartition("::")[0], [])[:_MAX_SUGGESTED]


def _faithfulness(answered: Answered, target: float) -> Iterable[tuple[Status, str]]:
    score = answered.faithfulness_score
    if score is None:
        why = f": {quoted(answered.unavailable_reason)}" if answered.unavailable_reason else ""
        yield "not_judged", f"no faithfulness score{why}"
    elif score < target:
        yield "unfaithful", f"faithfulness {score:g} is below the target {target:g}"


def _incomplete(judged: Judged, answered: Answered | None, ruler: Ruler) -> GenerationResult:
    because = "no answer to this query" if answered is None else f"the answer failed: {quoted(answered.error or '')}"
    requirements = requirement_verdicts(judged, [], ruler.resolver)
    return _result(judged, answered, Grounds([("incomplete", because)]), requirements=requirements)


def _result(
    judged: Judged,
    answered: Answered | None,
    grounds: Grounds,
    *,
    abstained: tuple[bool, Origin] | None = None,
    requirements: Sequence[RequirementVerdict] = (),
    citations: Sequence[CitationVerdict] = (),
) -> GenerationResult:
    passing: dict[object, Status] = {True: "qualified", False: "abstained_rightly", "partial": "partial"}
    complete = abstained is not None
    return GenerationResult(
        query_id=judged.query_id,
        category=judged.category,
        expected_answerable=judged.expected_answerable,
        status=grounds.status(passing[judged.expected_answerable]),
        grounds=grounds.listed(),
        reasons=grounds.words(),
        abstained=None if abstained is None else abstained[0],
        abstention_origin=None if abstained is None else abstained[1],
        requirements=tuple(requirements),
        citations=tuple(citations),
        requirement_coverage=_share([r.met for r in requirements]) if complete else None,
        citation_precision=_share([c.accepted for c in citations]),
        faithfulness_score=answered.faithfulness_score if answered is not None and complete else None,
        faithfulness_source=_source(answered) if complete else None,
        confidence=answered.confidence if answered is not None and complete else None,
    )


def _source(answered: Answered | None) -> FaithfulnessSource | None:
    return answered.faithfulness_source if answered is not None and answered.faithfulness_score is not None else None


def _share(values: Sequence[bool]) -> float | None:
    return round12(sum(values) / len(values)) if values else None


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(map(quoted, names[:_MAX_NAMED])) + more
