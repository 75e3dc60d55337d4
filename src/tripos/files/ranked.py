"""Ranked results from files to rows: nested, columnar and flat JSONL, recognised by their fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tripos.contracts.base import Contract
from tripos.contracts.retrieval import ColumnarResults, FlatResult, NestedResults, RankedRow
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import not_lines, parsed, validated
from tripos.files.quick import quick_row
from tripos.files.streams import Span, physical_lines

_FORMS: dict[str, type[Contract]] = {"results": NestedResults, "fragment_ids": ColumnarResults, "fragment_id": FlatResult}


class _FlatLine(NamedTuple):
    """One flat line, kept until its query is whole; sorts by rank."""

    rank: int
    number: int
    fragment_id: str
    score: float | None
    file: str


def read_ranked(
    path: str, findings: Findings, *, lenient: bool = False, allow_extra: bool = False, span: Span = (0, -1)
) -> Iterator[RankedRow]:
    """Ranked results, one row a query, whatever the form; a file that mixes forms is an error.

    Flat files come query by query at the end, since the lines of a query may stand anywhere.

    Args:
        path: The file.
        findings: Takes every fault.
        lenient: Drop unknown fields, and count them.
        allow_extra: Move unknown fields under `metadata`, and count them.
        span: A part of a plain file. Line numbers are then those of the part, good for nothing but order.
    """
    form = _Form()
    seen: dict[str, int] = {}
    flat: dict[str, list[_FlatLine]] = {}
    for number, line, ended in physical_lines(path, span):
        place = Place(path, number)
        if number == 1 and (reason := not_lines(line)):
            findings.error("not_jsonl", place, "", reason)
            return
        row = quick_row(line, place) if form.is_quick(line) else None
        if row is None:
            value = parsed(line, place, findings, ended=ended)
            strict = None if value is None else form.strict(value, place, findings, lenient, allow_extra)
            if isinstance(strict, FlatResult):
                kept = flat.setdefault(strict.query_id, [])
                if not findings.n_errors:  # after an error nothing is evaluated, so rows need no room
                    kept.append(_FlatLine(strict.rank, number, strict.fragment_id, strict.score, path))
                continue
            if strict is None:
                continue
            row = _nested(place, strict, findings) if isinstance(strict, NestedResults) else _columnar(place, strict)
        if (first := seen.setdefault(row.query_id, number)) != number:
            findings.error("duplicate_id", place, "query_id", f'"{quoted(row.query_id)}" was used at {Place(path, first)}')
            continue
        yield row
    for name, lines in flat.items():
        if lines and not findings.n_errors:
            yield flat_row(name, lines, findings)


class _Form:
    """The one form of a file, known from its first row."""

    def __init__(self) -> None:
        self._name: str | None = None

    def is_quick(self, line: bytes) -> bool:
        """Whether the quick reader may try this line: the file's form is known, and the line names its field."""
        return self._name in ("results", "fragment_ids") and f'"{self._name}"'.encode() in line

    def strict(
        self, value: dict[str, Any], place: Place, findings: Findings, lenient: bool, allow_extra: bool
    ) -> NestedResults | ColumnarResults | FlatResult | None:
        """The contract row, or None with what is wrong noted."""
        name = next((f for f in _FORMS if f in value), None)
        if name is None:
            text = "has none of results, fragment_ids and fragment_id: this is no ranked result"
            findings.error("unknown_form", place, "", text)
            return None
        self._name = self._name or name
        if name != self._name:
            text = f'has "{name}", but the file began with "{self._name}": one form a file'
            findings.error("unknown_form", place, "", text)
            return None
        row = validated(value, _FORMS[name], place, findings, lenient=lenient, allow_extra=allow_extra)
        return row if isinstance(row, NestedResults | ColumnarResults | FlatResult) else None


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


def flat_row(name: str, lines: list[_FlatLine], findings: Findings) -> RankedRow:
    """The row that the flat lines of one query make, by rank."""
    lines.sort()
    place = Place(lines[0].file, min(line.number for line in lines))
    scores = _all_or_none([line.score for line in lines], place, findings)
    ranks = [line.rank for line in lines]
    return RankedRow(place, name, [line.fragment_id for line in lines], scores, ranks=ranks)


def _all_or_none(scores: list[float | None], place: Place, findings: Findings) -> list[float] | None:
    given = [s for s in scores if s is not None]
    if given and len(given) < len(scores):
        findings.error("scores", place, "score", f"given for {len(given)} of {len(scores)} results: give all or none")
        return None
    return given or None
