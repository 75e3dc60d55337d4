"""Reviewed parts and answers, from one file or from two, as pairs; nothing is kept of a pair once it is handed on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tripos.contracts.generation import Answered, GenerationAnswer, GenerationJudgment, GenerationRow, Judged
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import read_rows
from tripos.files.spool import Spool


class Pair(NamedTuple):
    """One question: its reviewed part, and the answer, if there is one."""

    place: Place
    judged: Judged
    answered: Answered | None


@dataclass(slots=True)
class Seen:
    """What was read, counted while it is."""

    judgments: int = 0
    answers: int = 0
    without_judgment: int = 0
    by_status: dict[str, int] = field(default_factory=dict)


class Source(NamedTuple):
    """Where the rows are: in one combined file, or in judgments and answers apart."""

    combined: str | None
    judgments: str | None = None
    answers: str | None = None

    @property
    def form(self) -> str:
        """As the report names it."""
        return "combined" if self.combined else "split"


class _Ids:
    """Query ids of one file; a second use is an error at its place."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}

    def new(self, query_id: str, place: Place, findings: Findings) -> bool:
        first = self.lines.setdefault(query_id, place.line)
        if first != place.line:
            findings.error("duplicate_id", place, "query_id", f'"{quoted(query_id)}" was used on line {first}')
        return first == place.line


def read_pairs(
    source: Source, seen: Seen, findings: Findings, *, lenient: bool = False, allow_extra: bool = False
) -> Iterator[Pair]:
    """Every reviewed row with its answer, in the order of the answers; rows without an answer come last.

    Rows of another review status are counted in `seen` and not handed on.
    """
    if source.combined:
        yield from _combined(source.combined, seen, findings, lenient, allow_extra)
    else:
        assert source.judgments is not None
        assert source.answers is not None
        yield from _Join(seen, findings, lenient, allow_extra).pairs(source.judgments, source.answers)


def _combined_form(value: dict[str, Any]) -> type[GenerationRow] | str:
    """The combined contract, or what to do with a file that holds one of the two parts alone."""
    reviewed, answer = (
        "citation_requirements" in value or "expected_answerable" in value,
        not value.keys().isdisjoint(("answer", "error")),
    )
    if answer and not reviewed:
        return "is an answer without its reviewed part: give this file as --answers, and the reviewed part as --judgments"
    if reviewed and not answer:
        return "is a reviewed part without an answer: give this file as --judgments, and the answers as --answers"
    return GenerationRow


def _combined(path: str, seen: Seen, findings: Findings, lenient: bool, allow_extra: bool) -> Iterator[Pair]:
    ids = _Ids()
    for place, row in read_rows(path, _combined_form, findings, lenient=lenient, allow_extra=allow_extra):
        if ids.new(row.query_id, place, findings):
            seen.answers += 1
            if _counted(row, seen):
                yield Pair(place, row, row)


def _counted(row: Judged, seen: Seen) -> bool:
    """Count a reviewed part by its status; whether it is scored."""
    seen.judgments += 1
    seen.by_status[row.review_status] = seen.by_status.get(row.review_status, 0) + 1
    return row.review_status == "reviewed"


class _Join:
    """Judgments are put aside by number, so that memory holds their ids alone."""

    def __init__(self, seen: Seen, findings: Findings, lenient: bool, allow_extra: bool) -> None:
        self.seen, self.findings = seen, findings
        self.options = {"lenient": lenient, "allow_extra": allow_extra}
        self.number: dict[str, int] = {}

    def pairs(self, judgments: str, answers: str) -> Iterator[Pair]:
        with Spool() as aside:
            lines, unscored = self._aside(judgments, aside)
            for place, row in self._answers(answers):
                number = self.number.pop(row.query_id, None)
                if number is not None:
                    yield self._pair(place, self._judged(aside, number), row)
                elif row.query_id not in unscored:
                    self.seen.without_judgment += 1
            for number in self.number.values():
                yield Pair(Place(judgments, lines[number]), self._judged(aside, number), None)

    def _aside(self, path: str, aside: Spool) -> tuple[list[int], set[str]]:
        ids, lines, unscored = _Ids(), list[int](), set[str]()
        for place, row in read_rows(path, GenerationJudgment, self.findings, **self.options):
            if not ids.new(row.query_id, place, self.findings):
                continue
            if _counted(row, self.seen):
                self.number[row.query_id] = aside.append(row.model_dump_json(exclude_defaults=True).encode())
                lines.append(place.line)
            else:
                unscored.add(row.query_id)
        return lines, unscored

    @staticmethod
    def _judged(aside: Spool, number: int) -> GenerationJudgment:
        return GenerationJudgment.model_validate_json(aside.read(number))

    def _answers(self, path: str) -> Iterator[tuple[Place, GenerationAnswer]]:
        ids = _Ids()
        for place, row in read_rows(path, GenerationAnswer, self.findings, **self.options):
            if ids.new(row.query_id, place, self.findings):
                self.seen.answers += 1
                yield place, row

    def _pair(self, place: Place, judged: GenerationJudgment, row: GenerationAnswer) -> Pair:
        if row.query is not None and judged.query is not None and row.query != judged.query:
            text = f'is "{quoted(row.query)}", but the judgments ask "{quoted(judged.query)}": one query_id, one text'
            self.findings.error("query", place, "query", text)
        return Pair(place, judged, row)
