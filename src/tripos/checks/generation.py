"""What can be wrong with reviewed requirements and answers against the corpus and the evidence they rest on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from tripos.checks.evidence import Alternative, holders
from tripos.checks.retrieval import is_placeholder
from tripos.contracts.base import shown
from tripos.contracts.generation import Answered, Judged, Requirement
from tripos.contracts.index import Corpus
from tripos.errors import MAX_SHOWN, Findings, Place, quoted, suggest
from tripos.files.generation import Pair

_MAX_CACHED = 100_000


class Resolver:
    """Requirements to alternatives: fragments named, and those that hold a quote."""

    def __init__(self, corpus: Corpus | None) -> None:
        self.corpus = corpus
        self._found: dict[tuple[str, str], list[Alternative]] = {}

    def ways(self, requirement: Requirement) -> list[Alternative]:
        """Every way to meet a requirement; each is a set of fragments that are needed together, usually one."""
        named = [frozenset({name}) for name in requirement.acceptable_fragment_ids]
        quotes = [way for e in requirement.acceptable_evidence for way in self.quoted(e.source_id, e.quote)]
        return list(dict.fromkeys([*named, *quotes]))

    def quoted(self, source_id: str, quote: str) -> list[Alternative]:
        """Fragments of the source that hold the quote; [] where that cannot be told."""
        if self.corpus is None:
            return []
        key = source_id, quote
        if key not in self._found:
            if len(self._found) >= _MAX_CACHED:
                self._found.clear()
            self._found[key] = holders(source_id, quote, self.corpus)
        return self._found[key]


class Shown(NamedTuple):
    """What the model was shown for one question: the bound run's list, and what counts (None: not known)."""

    listed: Sequence[str] | None
    evidence: Sequence[str] | None


def shown_to(pair: Pair, listed: Sequence[str] | None) -> Shown:
    """What counts as shown: evidence_fragment_ids where given, else the bound run's list."""
    given = None if pair.answered is None else pair.answered.evidence_fragment_ids
    return Shown(listed, listed if given is None else given)


class Checker:
    """The checks of one run, row by row. Faults go to `findings`."""

    def __init__(self, resolver: Resolver, findings: Findings, *, system: str | None, lenient: bool) -> None:
        self.resolver, self.findings = resolver, findings
        self.system, self.lenient = system, lenient

    def check(self, pair: Pair, evidence: Shown) -> None:
        """Everything about one pair that needs more than the row itself."""
        self._judged(pair.judged, pair.place)
        if pair.answered is not None:
            self._evidence(pair.judged, pair.answered, pair.place, evidence.listed)

    def check_query(self, pair: Pair, asks_otherwise: Callable[[str, str], bool]) -> None:
        """One query_id means one text, in all layers."""
        query = pair.judged.query
        if query is not None and asks_otherwise(pair.judged.query_id, query):
            text = f'is "{quoted(query)}", but the retrieval judgments ask something else under this query_id'
            self.findings.error("query", pair.place, "query", text)

    def _judged(self, row: Judged, place: Place) -> None:
        self._placeholders(row, place)
        for n, requirement in enumerate(row.citation_requirements):
            field = f"citation_requirements[{n}]"
            self._known(requirement.acceptable_fragment_ids, place, f"{field}.acceptable_fragment_ids")
            self._quotes(requirement, place, field)
        acceptable = {name for r in row.citation_requirements for name in r.acceptable_fragment_ids}
        self._known([n for n in row.accepted_fragment_ids if n not in acceptable], place, "accepted_fragment_ids")
        if row.expected_answerable is True and not row.citation_requirements:
            text = "empty, though the row is answerable: it measures no coverage"
            self.findings.warn("no_requirements", place, "citation_requirements", text)

    def _placeholders(self, row: Judged, place: Place) -> None:
        values = [("query_id", row.query_id), ("query", row.query or "")]
        values += [("accepted_fragment_ids", name) for name in row.accepted_fragment_ids]
        for field, value in values:
            if is_placeholder(value):
                self.findings.error("placeholder", place, field, f"{shown(value)} is a placeholder: fill it in")

    def _known(self, names: Iterable[str], place: Place, field: str) -> None:
        corpus = self.resolver.corpus
        if corpus is None:
            return
        for name in dict.fromkeys(names):
            if name in corpus.sources:
                continue
            if self.lenient:
                self.findings.lenient("unknown_fragments")
                continue
            text = f'"{quoted(name)}" is in no fragment{self._near(name, corpus.sources)}'
            self.findings.error("unknown_fragment", place, field, text)

    def _near(self, name: str, names: Collection[str]) -> str:
        """The did-you-mean clause, for the first findings alone: over thousands it would take minutes."""
        return suggest(name, names) if self.findings.n_errors < 5 * MAX_SHOWN else ""

    def _quotes(self, requirement: Requirement, place: Place, field: str) -> None:
        corpus = self.resolver.corpus
        for n, evidence in enumerate(requirement.acceptable_evidence):
            at = f"{field}.acceptable_evidence[{n}]"
            if corpus is None or not corpus.texts:
                text = "a quote needs the texts of the fragments: give --retrieval-report, or --fragments with texts"
                self.findings.error("no_text", place, at, text)
            elif evidence.source_id not in corpus.fragments:
                text = f'"{quoted(evidence.source_id)}" is in no fragment{self._near(evidence.source_id, corpus.fragments)}'
                self.findings.error("unknown_source", place, f"{at}.source_id", text)
            elif not self.resolver.quoted(evidence.source_id, evidence.quote):
                source = quoted(evidence.source_id)
                text = f'{shown(evidence.quote)} is nowhere in "{source}": copy the passage as it stands there'
                self.findings.error("quote", place, f"{at}.quote", text)

    def _evidence(self, judged: Judged, row: Answered, place: Place, listed: Sequence[str] | None) -> None:
        """What the answer says it was shown must lie within the bound list; multi-hop rows take the corpus layer's."""
        given = row.evidence_fragment_ids
        if given is None or row.system_fingerprint not in (None, self.system):  # a foreign stamp says all, and is refused
            return
        self._known(given, place, "evidence_fragment_ids")
        if self.system is None or (judged.category or "").startswith("multi_hop"):
            return
        if outside := [name for name in given if name not in set(listed or ())]:
            more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
            where = "the bound retrieval run has no list for this query" if listed is None else "outside its top K"
            text = f'"{quoted(outside[0])}"{more}: {where}: answers are written from what retrieval handed on'
            self.findings.error("evidence", place, "evidence_fragment_ids", text)
