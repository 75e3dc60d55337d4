"""Fragments, retrieval judgments and ranked results, from files to rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tripos.contracts.fragments import Fragment
from tripos.contracts.index import AclDefault, Corpus
from tripos.contracts.retrieval import RetrievalJudgment, Timing
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import read_rows
from tripos.fingerprint import CorpusDigest


@dataclass(frozen=True, slots=True)
class Located:
    """A judgment and where it stands."""

    place: Place
    row: RetrievalJudgment


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


def load_timings(path: str, findings: Findings) -> dict[str, float]:
    """Latency in milliseconds by query id; queries of other runs may be among them."""
    return {row.query_id: row.latency_ms for _, row in read_rows(path, Timing, findings)}
