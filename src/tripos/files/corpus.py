"""Corpus judgments and corpus results, from files to rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tripos.contracts.corpus import CorpusJudgment, CorpusResult
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import read_rows


@dataclass(frozen=True, slots=True)
class Judged:
    """A corpus judgment and where it stands."""

    place: Place
    row: CorpusJudgment


@dataclass(frozen=True, slots=True)
class Routed:
    """A corpus result and where it stands."""

    place: Place
    row: CorpusResult


def load_corpus_judgments(path: str, findings: Findings, *, lenient: bool = False, allow_extra: bool = False) -> list[Judged]:
    """All judgments, in order; a query id used twice is an error at its second place."""
    rows: list[Judged] = []
    seen: dict[str, Place] = {}
    for place, row in read_rows(path, CorpusJudgment, findings, lenient=lenient, allow_extra=allow_extra):
        if _is_new(row.query_id, place, seen, findings):
            rows.append(Judged(place, row))
    return rows


def read_corpus_results(path: str, findings: Findings, *, lenient: bool = False, allow_extra: bool = False) -> Iterator[Routed]:
    """Corpus results, one row a query; a query id used twice is an error at its second place."""
    seen: dict[str, Place] = {}
    for place, row in read_rows(path, CorpusResult, findings, lenient=lenient, allow_extra=allow_extra):
        if _is_new(row.query_id, place, seen, findings):
            yield Routed(place, row)


def _is_new(query_id: str, place: Place, seen: dict[str, Place], findings: Findings) -> bool:
    first = seen.setdefault(query_id, place)
    if first is not place:
        findings.error("duplicate_id", place, "query_id", f'"{quoted(query_id)}" was used at {first}')
    return first is place
