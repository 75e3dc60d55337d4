"""What can be wrong with corpus judgments and corpus results, against the corpus and the evidence depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from tripos.checks.retrieval import is_placeholder
from tripos.contracts.base import shown
from tripos.contracts.corpus import CORPUS_CATEGORIES, FanOut
from tripos.contracts.index import Corpus
from tripos.errors import MAX_SHOWN, Findings, Place, quoted, suggest
from tripos.files.corpus import Judged, Routed


class Catalogue:
    """The collections of a corpus and the sources in each."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @cached_property
    def sources(self) -> dict[str, set[str]]:
        """Sources by collection."""
        found: dict[str, set[str]] = {}
        for fragment, collection in self.corpus.collections.items():
            found.setdefault(collection, set()).add(self.corpus.sources[fragment])
        return found

    def homes(self, source: str) -> list[str]:
        """The collections that hold a source."""
        return sorted(name for name, sources in self.sources.items() if source in sources)


def check_corpus_judgments(rows: Sequence[Judged], findings: Findings) -> None:
    """Rules that need no corpus: placeholders, misspelt categories, one question asked twice with other expectations."""
    seen: dict[tuple[str, frozenset[str] | None], Judged] = {}
    for judged in rows:
        row = judged.row
        for name, value in _texts(judged):
            if is_placeholder(value):
                findings.error("placeholder", judged.place, name, f"{shown(value)} is a placeholder: fill it in")
        if row.category not in CORPUS_CATEGORIES and (near := suggest(row.category, CORPUS_CATEGORIES)):
            findings.warn("category", judged.place, "category", f"{shown(row.category)} is no known value{near}")
        if row.query is None or not row.query.strip():
            findings.warn("no_query", judged.place, "query", "empty: give the text as asked")
            continue
        groups = None if row.principal is None else frozenset(row.principal.groups)
        first = seen.setdefault((row.query.strip(), groups), judged)
        if first is not judged:
            _twin(first, judged, findings)


def _twin(first: Judged, second: Judged, findings: Findings) -> None:
    """One question asked twice."""
    if first.row.expected != second.row.expected:
        text = f'asks what "{quoted(first.row.query_id)}" asks ({first.place}), and expects something else'
        findings.warn("contradictory_twin", second.place, "query", text)
    else:
        text = f'repeats "{quoted(first.row.query_id)}" ({first.place}): one question counts twice'
        findings.warn("repeated_query", second.place, "query", text)


def _texts(judged: Judged) -> Iterator[tuple[str, str]]:
    row = judged.row
    yield "query_id", row.query_id
    yield "query", row.query or ""
    yield from (("expected_collections", name) for name in row.expected_collections)
    yield from (("expected_sources", source) for _, source in row.expected)


@dataclass(slots=True)
class Checker:
    """Rows against the corpus and the evidence depth; with `lenient`, what the corpus lacks is counted and let pass.

    Without a catalogue (no fragments were given) only the depth is checked.
    """

    catalogue: Catalogue | None
    findings: Findings
    per_collection: Mapping[str, int] = field(default_factory=dict)
    lenient: bool = False

    def judgments(self, rows: Sequence[Judged]) -> None:
        """Every collection and source that a judgment names must be there, and open to the row's own principal."""
        if self.catalogue is None:
            return
        for judged in rows:
            self._collections(judged.row.expected_collections, judged.place, "expected_collections", self.catalogue)
            for collection, source in judged.row.expected:
                if source not in self.catalogue.sources.get(collection, {source}):
                    self._source(judged, collection, source, self.catalogue)
            _admitted(judged, self.catalogue.corpus, self.findings)
        _acl_default(rows, self.catalogue.corpus, self.findings)

    def result(self, routed: Routed) -> None:
        """Known collections and fragments, each in its own collection; k as D states it; scores that do not rise."""
        row, at = routed.row, routed.place
        for fan in row.fan_out or ():
            self._list(fan, at)
        if self.catalogue is None:
            return
        self._collections(row.routed_collections or (), at, "routed_collections", self.catalogue)
        corpus = self.catalogue.corpus
        for fan in row.fan_out or ():
            self._fragments([hit.fragment_id for hit in fan.results], at, "fan_out.results", corpus)
            _homes(fan, at, corpus, self.findings)
        if row.expansion is not None:
            self._fragments(row.expansion.added_fragment_ids, at, "expansion.added_fragment_ids", corpus)

    def _collections(self, names: Sequence[str], place: Place, where: str, catalogue: Catalogue) -> None:
        for name in dict.fromkeys(names):
            if name in catalogue.sources:
                continue
            hint = suggest(name, catalogue.sources) or f": it has {_listed(sorted(catalogue.sources))}{_NAMED}"
            text = f'"{quoted(name)}" is no collection of the corpus{hint}'
            self._note("unknown_collection", place, where, text, "unknown_collections")

    def _source(self, judged: Judged, collection: str, source: str, catalogue: Catalogue) -> None:
        corpus, at = catalogue.corpus, f"expected_sources.{quoted(collection)}"
        if homes := catalogue.homes(source):
            text = f'"{quoted(source)}" is in collection "{quoted(homes[0])}": name it there'
        elif source in corpus.sources:
            text = f'"{quoted(source)}" is a fragment of "{quoted(corpus.sources[source])}": name the source'
        else:
            text = f'"{quoted(source)}" is in no fragment{self._near(source, catalogue.sources[collection])}'
        self._note("unknown_source", judged.place, at, text, "unknown_sources")

    def _list(self, fan: FanOut, place: Place) -> None:
        given = [hit.score for hit in fan.results if hit.score is not None]
        if any(above < below for above, below in pairwise(given)):
            text = f'the scores of "{quoted(fan.collection)}" rise down the list: give the best first'
            self._note("order", place, "fan_out.results", text, "reordered")
        stated = self.per_collection.get(fan.collection)
        if stated is not None and stated != fan.k:
            text = f'is {fan.k} for "{quoted(fan.collection)}", but depth.per_collection says {stated}'
            self.findings.error("depth", place, "fan_out.k", text)

    def _fragments(self, names: Sequence[str], place: Place, where: str, corpus: Corpus) -> None:
        for name in names:
            if name not in corpus.sources:
                text = f'"{quoted(name)}" is in no fragment{self._near(name, corpus.sources)}: a run of another corpus?'
                self._note("unknown_fragment", place, where, text, "unknown_fragments")

    def _near(self, name: str, names: Collection[str]) -> str:
        """The did-you-mean clause, for the first findings alone: over thousands it would take minutes."""
        return suggest(name, names) if self.findings.n_errors < 5 * MAX_SHOWN else ""

    def _note(self, kind: str, place: Place, where: str, text: str, let_pass: str) -> None:
        if self.lenient:
            self.findings.lenient(let_pass)
        else:
            self.findings.error(kind, place, where, text)


_NAMED = " (--fragments NAME=FILE names a file's collection)"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(f'"{quoted(name)}"' for name in names[:5]) + more


def _homes(fan: FanOut, place: Place, corpus: Corpus, findings: Findings) -> None:
    """A fragment must come from the collection that holds it."""
    for hit in fan.results:
        home = corpus.collections.get(hit.fragment_id, fan.collection)
        if home != fan.collection:
            text = f'"{quoted(hit.fragment_id)}" came from "{quoted(fan.collection)}", but is in "{quoted(home)}"'
            findings.error("other_collection", place, "fan_out.results", text)


def _admitted(judged: Judged, corpus: Corpus, findings: Findings) -> None:
    """An expected source that the row's own principal may not read measures the reader, not the system."""
    if judged.row.principal is None:
        return
    groups = judged.row.principal.groups
    for collection, source in judged.row.expected:
        own = [f for f in corpus.fragments.get(source, []) if corpus.collections[f] == collection]
        if own and not any(corpus.readable(fragment, groups) for fragment in own):
            text = f'"{quoted(source)}" has no fragment that this row\'s own principal may read'
            findings.error("not_admitted", judged.place, f"expected_sources.{quoted(collection)}", text)


def _acl_default(rows: Sequence[Judged], corpus: Corpus, findings: Findings) -> None:
    asking = next((judged for judged in rows if judged.row.principal is not None), None)
    if asking is not None and corpus.lacks_acls and corpus.acl_default is None:
        lacking = len(corpus.sources) - len(corpus.acls)
        text = f"given, but {lacking} of {len(corpus.sources)} fragments have no acl: say --acl-default public, or deny"
        findings.error("acl_default", asking.place, "principal", text)
