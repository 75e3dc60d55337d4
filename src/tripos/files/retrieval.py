"""Fragments, retrieval judgments and ranked results, from files to rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tripos.contracts.base import Contract
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import AclDefault, Corpus
from tripos.contracts.retrieval import ColumnarResults, FlatResult, NestedResults, RetrievalJudgment, Timing
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import read_rows
from tripos.fingerprint import CorpusDigest

_FORMS: dict[str, type[Contract]] = {"results": NestedResults, "fragment_ids": ColumnarResults, "fragment_id": FlatResult}


@dataclass(frozen=True, slots=True)
class Located:
    """A judgment and where it stands."""

    place: Place
    row: RetrievalJudgment


@dataclass(frozen=True, slots=True)
class RankedRow:
    """The results of one query as its file gives them, whatever the form; nothing is sorted yet.

    `scores`, `ranks` and `sources` are parallel to `fragment_ids`; None where the file gives none.
    """

    place: Place
    query_id: str
    fragment_ids: Sequence[str]
    scores: Sequence[float] | None = None
    ranks: Sequence[int | None] | None = None
    sources: Sequence[str | None] | None = None
    latency_ms: float | None = None
    error: str | None = None
    corpus_digest: str | None = None
    policy_digest: str | None = None


def split_name(argument: str) -> tuple[str | None, str]:
    """`NAME=FILE` as (collection, path); a plain path has no collection."""
    name, separator, path = argument.partition("=")
    return (name, path) if separator and name and "/" not in name else (None, argument)


def read_fragments(
    arguments: Iterable[str], findings: Findings, *, lenient: bool = False, allow_extra: bool = False
) -> Iterator[tuple[Place, Fragment]]:
    """Fragments of all files, in order; an id used twice is an error at its second place."""
    seen: dict[str, Place] = {}
    for argument in arguments:
        collection, path = split_name(argument)
        for place, given in read_rows(path, Fragment, findings, lenient=lenient, allow_extra=allow_extra):
            row = given if collection is None else _in_collection(given, collection, place, findings)
            if first := seen.get(row.fragment_id):
                findings.error("duplicate_id", place, "fragment_id", f'"{quoted(row.fragment_id)}" was used at {first}')
                continue
            seen[row.fragment_id] = place
            if row.text is not None and not row.text.strip():
                findings.warn("empty_text", place, "text", "empty: no search can find this fragment")
            yield place, row


def _in_collection(row: Fragment, collection: str, place: Place, findings: Findings) -> Fragment:
    if row.collection not in (None, collection):
        text = f'is "{row.collection}", but --fragments names this file "{collection}"'
        findings.error("collection", place, "collection", text)
    return row.model_copy(update={"collection": collection})


def load_corpus(
    arguments: Sequence[str],
    acl_default: AclDefault | None,
    findings: Findings,
    *,
    lenient: bool = False,
    allow_extra: bool = False,
) -> tuple[Corpus, CorpusDigest]:
    """The indexed corpus of all files, and component A in the making."""
    corpus, digest = Corpus(acl_default=acl_default), CorpusDigest()
    before = findings.n_errors
    for _, row in read_fragments(arguments, findings, lenient=lenient, allow_extra=allow_extra):
        corpus.add(row)
        digest.add(row)
    if not corpus.sources and findings.n_errors == before:
        findings.error("empty_file", Place(split_name(arguments[0])[1]), "", "holds no fragment")
    return corpus, digest


def load_judgments(
    paths: Iterable[str], findings: Findings, *, lenient: bool = False, allow_extra: bool = False
) -> list[Located]:
    """All judgments of all files, in order; a query id used twice is an error at its second place."""
    rows: list[Located] = []
    seen: dict[str, Place] = {}
    for path in paths:
        for place, row in read_rows(path, RetrievalJudgment, findings, lenient=lenient, allow_extra=allow_extra):
            if first := seen.get(row.query_id):
                findings.error("duplicate_id", place, "query_id", f'"{quoted(row.query_id)}" was used at {first}')
                continue
            seen[row.query_id] = place
            rows.append(Located(place, row))
    return rows


def read_ranked(path: str, findings: Findings, *, lenient: bool = False, allow_extra: bool = False) -> Iterator[RankedRow]:
    """Ranked results, one row a query, whatever the form; a file that mixes forms is an error.

    Flat files come query by query at the end, since the lines of a query may stand anywhere.
    """
    form: list[str] = []

    def model(value: dict[str, Any]) -> type[Contract] | str:
        name = next((f for f in _FORMS if f in value), None)
        if name is None:
            return "has none of results, fragment_ids and fragment_id: this is no ranked result"
        form[:] = form or [name]
        if name != form[0]:
            return f'has "{name}", but the file began with "{form[0]}": one form a file'
        return _FORMS[name]

    seen: dict[str, Place] = {}
    flat: dict[str, list[tuple[Place, FlatResult]]] = {}
    for place, row in read_rows(path, model, findings, lenient=lenient, allow_extra=allow_extra):
        if isinstance(row, FlatResult):
            flat.setdefault(row.query_id, []).append((place, row))
            continue
        assert isinstance(row, NestedResults | ColumnarResults)
        if first := seen.get(row.query_id):
            findings.error("duplicate_id", place, "query_id", f'"{quoted(row.query_id)}" was used at {first}')
            continue
        seen[row.query_id] = place
        yield _nested(place, row, findings) if isinstance(row, NestedResults) else _columnar(place, row)
    for name, lines in flat.items():
        yield _flat(name, lines, findings)


def _nested(place: Place, row: NestedResults, findings: Findings) -> RankedRow:
    items = row.results
    return RankedRow(
        place=place,
        query_id=row.query_id,
        fragment_ids=[i.fragment_id for i in items],
        scores=_all_or_none([i.score for i in items], place, findings),
        ranks=[i.rank for i in items] if any(i.rank is not None for i in items) else None,
        sources=[i.source_id for i in items] if any(i.source_id is not None for i in items) else None,
        latency_ms=row.latency_ms,
        error=row.error,
        corpus_digest=row.corpus_digest,
        policy_digest=row.policy_digest,
    )


def _columnar(place: Place, row: ColumnarResults) -> RankedRow:
    return RankedRow(
        place=place,
        query_id=row.query_id,
        fragment_ids=row.fragment_ids,
        scores=row.scores,
        latency_ms=row.latency_ms,
        error=row.error,
        corpus_digest=row.corpus_digest,
        policy_digest=row.policy_digest,
    )


def _flat(name: str, lines: list[tuple[Place, FlatResult]], findings: Findings) -> RankedRow:
    lines = sorted(lines, key=lambda pair: pair[1].rank)
    place = min(place for place, _ in lines)
    return RankedRow(
        place=place,
        query_id=name,
        fragment_ids=[r.fragment_id for _, r in lines],
        scores=_all_or_none([r.score for _, r in lines], place, findings),
        ranks=[r.rank for _, r in lines],
    )


def _all_or_none(scores: list[float | None], place: Place, findings: Findings) -> list[float] | None:
    given = [s for s in scores if s is not None]
    if given and len(given) < len(scores):
        findings.error("scores", place, "score", f"given for {len(given)} of {len(scores)} results: give all or none")
        return None
    return given or None


def load_timings(path: str, findings: Findings) -> dict[str, float]:
    """Latency in milliseconds by query id; queries of other runs may be among them."""
    return {row.query_id: row.latency_ms for _, row in read_rows(path, Timing, findings)}
