"""What can be wrong with reviewed judgments by themselves, and against the corpus they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tripos.checks.evidence import holders
from tripos.contracts.base import shown
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import CATEGORIES, RetrievalJudgment
from tripos.errors import MAX_SHOWN, Findings, Place, quoted, suggest
from tripos.files.retrieval import Located

_PLACEHOLDER = re.compile(
    r"(?i:REPLACE_(ME|WITH)([_\W].*)?|TODO|TBD|FIXME|XXX|PLACEHOLDER|CHANGE_?ME|(TODO|FIXME):.*)"  # a word by itself
    r"|(TODO|TBD|FIXME|PLACEHOLDER|CHANGE_?ME)[_\W].*"  # in capitals, with a tail: "todo-list" may be a source
    r"|<[^<>@]*>"  # not <20240101.1@mail.example>, which is a message's id
)

_SOURCES = ("expected_sources", "required_sources", "forbidden_sources", "nonrelevant_sources")

_NAMING = {*_SOURCES, "expected_fragments", "expected_evidence"}
_NAMED = {*_SOURCES, "relevance"}
_FINER = frozenset({"expected_fragments", "expected_evidence", "principal", "filters"})

_UNSOUGHT = ("nonrelevant_sources", "relevance")
"""Fields whose sources need not be found, so that an unknown one is a warning."""


_HINTS = ("replace_", "todo", "tbd", "fixme", "xxx", "placeholder", "change", "<")
_ODD_LETTERS = "\u0130\u0131\u017f\u212a"
"""Letters beyond ASCII that equal one of ASCII when case is ignored."""


def may_matter(value: Mapping[str, Any]) -> bool:
    """Whether `check_judgments` might find something in a row as parsed, by itself; it surely does not where this is False."""
    query, category = value["query"], value["category"]
    if category not in CATEGORIES or (not query.strip() if query is not None else category != "imported"):
        return True
    names: list[str] = [value["query_id"], query or ""]
    for field in value.keys() & _NAMING:
        if field == "expected_evidence":
            names += [item["source_id"] for item in value[field]]
            continue
        names += value[field]
        if field != "expected_fragments" and len(set(value[field])) < len(value[field]):
            return True
    text = "\n".join(names)
    low = text.lower()
    for hint in _HINTS:
        if hint in low:
            return True
    return not text.isascii() and any(letter in text for letter in _ODD_LETTERS)


def check_judgments(rows: Sequence[Located], findings: Findings) -> None:
    """Rules that need no corpus: placeholders, contradictory twins, missing texts, repeated names, misspelt categories."""
    for located in rows:
        _text(located, findings)
        _placeholders(located, findings)
        _repeats(located, findings)
        _category(located, findings)
    _twins(rows, findings)


def check_depths(rows: Sequence[Located], limit: int, findings: Findings) -> None:
    """A row's own k must lie within limit."""
    for located in rows:
        if located.row.k is not None and located.row.k > limit:
            text = f"{located.row.k} is beyond limit {limit}, where nothing is known: raise --limit, or lower k"
            findings.error("depth", located.place, "k", text)


def is_at_home(value: Mapping[str, Any], corpus: Corpus) -> bool:
    """Whether `check_against_corpus` surely finds nothing in a row as parsed: it names sources alone, and all are there."""
    if not _FINER.isdisjoint(value):
        return False
    known = corpus.fragments.keys()
    return all(known >= set(value[field] or ()) for field in value.keys() & _NAMED)


def check_against_corpus(rows: Iterable[Located], corpus: Corpus, findings: Findings, *, lenient: bool = False) -> None:
    """Every source, fragment and quote that a row names must be there, and its expected sources open to it."""
    asking: Place | None = None
    for located in rows:
        if asking is None and located.row.principal is not None:
            asking = located.place
        _sources(located, corpus, findings, lenient)
        _fragments(located, corpus, findings, lenient)
        _quotes(located, corpus, findings, lenient)
        _admitted(located, corpus, findings)
    if asking is not None:
        _acl_default(asking, corpus, findings)


def _text(located: Located, findings: Findings) -> None:
    row = located.row
    if row.query is None and row.category != "imported":
        findings.warn("no_query", located.place, "query", "null, which only imported rows may have: give the text as asked")
    elif row.query is not None and not row.query.strip():
        findings.warn("no_query", located.place, "query", "empty: give the text as asked")


def is_placeholder(value: str) -> bool:
    """Whether the whole of `value` was to be filled in."""
    return _PLACEHOLDER.fullmatch(value.strip()) is not None


def _placeholders(located: Located, findings: Findings) -> None:
    row = located.row
    fields: list[tuple[str, Iterable[str]]] = [("query_id", [row.query_id]), ("query", [row.query or ""])]
    fields += [(name, dict.fromkeys(getattr(row, name))) for name in (*_SOURCES, "expected_fragments")]
    fields += [("expected_evidence", [e.source_id for e in row.expected_evidence])]
    for field, values in fields:
        for value in values:
            if is_placeholder(value):
                findings.error("placeholder", located.place, field, f"{shown(value)} is a placeholder: fill it in")


def _repeats(located: Located, findings: Findings) -> None:
    for field in _SOURCES:
        values = getattr(located.row, field)
        if len(set(values)) < len(values):
            findings.warn("repeated_name", located.place, field, "names a source more than once; it counts once")


def _category(located: Located, findings: Findings) -> None:
    category = located.row.category
    if category not in CATEGORIES and (near := suggest(category, CATEGORIES)):
        findings.warn("category", located.place, "category", f"{shown(category)} is no known value{near}")


def _twins(rows: Sequence[Located], findings: Findings) -> None:
    """The same question under the same principal and filters, with other expectations."""
    seen: dict[Any, Located] = {}
    for located in rows:
        row = located.row
        if row.query is None or row.review_status == "rejected":
            continue
        groups = None if row.principal is None else frozenset(row.principal.groups)
        key = (row.query.strip(), groups, tuple(sorted((k, type(v).__name__, v) for k, v in row.filters.items())))
        first = seen.setdefault(key, located)
        if first is located:
            continue
        if _expectation(first.row) != _expectation(row):
            text = f'asks what "{quoted(first.row.query_id)}" asks ({first.place}), and expects something else'
            findings.warn("contradictory_twin", located.place, "query", text)
        else:
            text = f'repeats "{quoted(first.row.query_id)}" ({first.place}): one question counts twice'
            findings.warn("repeated_query", located.place, "query", text)


def _expectation(row: RetrievalJudgment) -> tuple[Any, ...]:
    return row.should_match, frozenset(row.expected_sources), frozenset(row.forbidden_sources), frozenset(row.required_sources)


def _sources(located: Located, corpus: Corpus, findings: Findings, lenient: bool) -> None:
    row = located.row
    merely_graded = [name for name in row.grades if name not in row.expected_sources and name not in row.nonrelevant_sources]
    for field, names in [*((field, getattr(row, field)) for field in _SOURCES), ("relevance", merely_graded)]:
        for name in dict.fromkeys(names):
            if name in corpus.fragments or is_placeholder(name):  # a placeholder is told as what it is
                continue
            if lenient and field not in _UNSOUGHT:
                findings.lenient("unknown_sources")
                continue
            note = findings.warn if field in _UNSOUGHT else findings.error
            note("unknown_source", located.place, field, f'"{quoted(name)}" {_absent(name, corpus, findings)}')


def _absent(name: str, corpus: Corpus, findings: Findings) -> str:
    if source := corpus.sources.get(name):
        return f'is a fragment of "{quoted(source)}": name the source here, and the fragment in expected_fragments'
    return f"is in no fragment{_near(name, corpus.fragments, findings)}"


def _near(name: str, names: Collection[str], findings: Findings) -> str:
    """The did-you-mean clause, for the first findings alone: over thousands it would take minutes."""
    return suggest(name, names) if findings.n_errors + findings.n_warnings < MAX_SHOWN else ""


def _fragments(located: Located, corpus: Corpus, findings: Findings, lenient: bool) -> None:
    for name in located.row.expected_fragments:
        if name in corpus.sources:
            continue
        if lenient:
            findings.lenient("unknown_sources")
        else:
            text = f'"{quoted(name)}" is in no fragment{_near(name, corpus.sources, findings)}'
            findings.error("unknown_fragment", located.place, "expected_fragments", text)


def _quotes(located: Located, corpus: Corpus, findings: Findings, lenient: bool) -> None:
    for number, evidence in enumerate(located.row.expected_evidence):
        field = f"expected_evidence[{number}]"
        if evidence.source_id not in corpus.fragments and lenient:
            findings.lenient("unknown_sources")
        elif evidence.source_id not in corpus.fragments:
            text = f'"{quoted(evidence.source_id)}" {_absent(evidence.source_id, corpus, findings)}'
            findings.error("unknown_source", located.place, f"{field}.source_id", text)
        elif corpus.texts and not holders(evidence.source_id, evidence.quote, corpus):
            text = f'{shown(evidence.quote)} is nowhere in "{quoted(evidence.source_id)}": copy the passage as it stands there'
            findings.error("quote", located.place, f"{field}.quote", text)


def _admitted(located: Located, corpus: Corpus, findings: Findings) -> None:
    """An expected source that the row's own principal and filters bar measures the filter, not the search."""
    row = located.row
    groups = None if row.principal is None else row.principal.groups
    if groups is None and not row.filters:
        return
    for name in dict.fromkeys(row.expected_sources):
        own = corpus.fragments.get(name, [])
        if own and not any(corpus.admits(fragment, groups, row.filters) for fragment in own):
            text = f'"{quoted(name)}" has no fragment that this row\'s own principal and filters admit: it measures the filter'
            findings.error("not_admitted", located.place, "expected_sources", text)


def _acl_default(asking: Place, corpus: Corpus, findings: Findings) -> None:
    """Rows with a principal, the first of which stands at `asking`, need the corpus to say who reads what."""
    if corpus.lacks_acls and corpus.acl_default is None:
        lacking = len(corpus.sources) - len(corpus.acls)
        text = f"given, but {lacking} of {len(corpus.sources)} fragments have no acl: say --acl-default public, or deny"
        findings.error("acl_default", asking, "principal", text)
