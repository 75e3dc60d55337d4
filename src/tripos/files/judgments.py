"""Retrieval judgments from files to a compact table: one quick pass, a few hundred bytes a query, no object a row.

What an evaluation asks of whole columns is noted on the way; a row itself is put aside as text, and read again where it is
wanted.
"""

from __future__ import annotations

import bisect
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jiter
import orjson

from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import not_lines, parsed, validated
from tripos.files.plain import is_plain
from tripos.files.retrieval import Located
from tripos.files.spool import Shelf
from tripos.files.streams import Span, physical_lines
from tripos.fingerprint import RowDigests, judged_digest

FLAGS = (
    "should_match",
    "principal",
    "filters",
    "required_sources",
    "expected_groups",
    "expected_evidence",
    "expected_fragments",
    "nonrelevant_sources",
    "forbidden_sources",
    "relevance",
)
"""Fields whose being given and not empty is noted, in the order of their bits; for principal: given at all."""

_BITS = {name: 1 << bit for bit, name in enumerate(FLAGS)}
_FINER = _BITS.keys() - {"should_match", "relevance"}
_ALL_FINER = sum(_BITS[name] for name in _FINER)
_SOURCES_ALONE = 1 << len(FLAGS)
"""Bit of rows that ask for graded sources and for nothing else, the expected ones first: `JudgmentTable.sources` tells them."""

SliceValue = str | bool | int


class Kind(NamedTuple):
    """What rows are grouped, counted and chosen by; few distinct ones in any file."""

    status: str
    category: str
    split: str | None = None
    slices: tuple[tuple[str, str, SliceValue], ...] = ()
    groups: tuple[str, ...] | None = None
    """Groups of the principal; `slices` are (name, type, value), sorted."""

    @property
    def scored(self) -> bool:
        """Whether rows of this kind may enter a measure at all."""
        return self.status == "reviewed" and self.category != "calibration"


class JudgmentTable:
    """All judgments of some files, in their order.

    `row_of` gives the number of each query id's row; the other columns are arrays by that number: `bits` (FLAGS), `k` (0
    where not given), `n_expected` and `n_nonrelevant` (distinct sources), `kind` (in `kinds`), `cluster` (0 for none),
    `graded` (where the row's grades start in `grades`, as its line lists them; one more than rows).
    """

    def __init__(self, lines: Shelf | None = None) -> None:
        self.row_of: dict[str, int] = {}
        self.bits, self.k, self.kind, self.cluster = array("i"), array("i"), array("i"), array("i")
        self.n_expected, self.n_nonrelevant = array("i"), array("i")
        self.graded, self.grades = array("q", [0]), array("d")
        self._names, self._ends = bytearray(), array("q", [0])
        self.reviewed = RowDigests()
        self.lines, self._numbers = Shelf() if lines is None else lines, array("q")
        self._files: list[tuple[int, str]] = []
        self._kinds: dict[Kind, int] = {}
        self._clusters: dict[str, int] = {}
        self._asked, self._noticed = array("q"), array("q")

    @classmethod
    def of(cls, rows: Iterable[RetrievalJudgment]) -> JudgmentTable:
        """A table of rows that are there as objects; their ids must differ."""
        table = cls()
        table.begin("")
        for row in rows:
            value = row.model_dump(mode="json")
            table.add(value, orjson.dumps(value), 0)
        return table

    def __len__(self) -> int:
        return len(self.row_of)

    def __getitem__(self, row: int) -> RetrievalJudgment:
        return RetrievalJudgment.model_validate(self.value(row))

    def __iter__(self) -> Iterator[RetrievalJudgment]:
        return map(self.__getitem__, range(len(self)))

    @property
    def kinds(self) -> list[Kind]:
        """The distinct kinds, by their codes."""
        return list(self._kinds)

    def value(self, row: int) -> dict[str, Any]:
        """A row as its line says it, without defaults; it is known to be sound."""
        value: dict[str, Any] = jiter.from_json(self.lines.read(row), cache_mode="keys")
        return value

    def sources(self, row: int) -> list[str] | None:
        """The graded sources of a row that asks for nothing else, as its grades list them, expected ones first; else None."""
        if not self.bits[row] & _SOURCES_ALONE:
            return None
        names = self._names[self._ends[row] : self._ends[row + 1]]
        return names.decode().split("\0") if names else []

    def place(self, row: int) -> Place:
        """Where a row stands."""
        _, path = self._files[bisect.bisect_right(self._files, row, key=lambda start: start[0]) - 1]
        return Place(path, self._numbers[row])

    def located(self, row: int) -> Located:
        """A row and where it stands."""
        return Located(self.place(row), self[row])

    def chosen(self, wanted: Callable[[Kind], bool]) -> list[int]:
        """Rows of the wanted kinds, in order."""
        codes = {code for code, kind in enumerate(self.kinds) if wanted(kind)}
        return [row for row, code in enumerate(self.kind) if code in codes]

    def tally(self) -> dict[Kind, int]:
        """How many rows are of each kind."""
        counted = Counter(self.kind)
        return {kind: counted[code] for code, kind in enumerate(self.kinds)}

    def remarkable(self) -> list[int]:
        """Rows that a check by itself took notice of, and those whose question stands in another row, too."""
        often = {asked for asked, n in Counter(self._asked).items() if n > 1}
        twins = [row for row, asked in enumerate(self._asked) if asked in often] if often else []
        return sorted({*self._noticed, *twins})

    def begin(self, path: str) -> None:
        """Rows that follow are those of this file."""
        self._files.append((len(self), path))

    def add(self, value: Mapping[str, Any], line: bytes, number: int, *, noticed: bool = False) -> None:
        """Add a sound row: as parsed, its text (JSON of the same), the number of its line, whether checks should look at it."""
        row, kind = len(self.row_of), _kind(value)
        self.row_of[value["query_id"]] = row
        self.lines.append(line)
        self._numbers.append(number)
        self._note(value)
        self.kind.append(self._kinds.setdefault(kind, len(self._kinds)))
        named = value.get("cluster")
        self.cluster.append(0 if named is None else self._clusters.setdefault(named, len(self._clusters) + 1))
        self._asked.append(hash((value["query"] or value["query_id"]).strip()))
        if kind.status == "reviewed":
            self.reviewed.add(judged_digest(value))
        if noticed:
            self._noticed.append(row)

    def extend(self, other: JudgmentTable, lines_before: int) -> bool:
        """Take the rows that another table read from a later part of the same file; False where an id of them came before.

        Args:
            other: The table; its lines are at hand.
            lines_before: Physical lines of the file before that part.
        """
        start, graded = len(self), self.graded[-1]
        self.row_of |= {name: start + row for name, row in other.row_of.items()}
        if len(self) < start + len(other):
            return False
        self.bits.extend(other.bits)
        self.k.extend(other.k)
        self.grades.extend(other.grades)
        self._asked.extend(other._asked)
        self.n_expected.extend(other.n_expected)
        self.n_nonrelevant.extend(other.n_nonrelevant)
        self.graded.extend(graded + end for end in other.graded[1:])
        self._ends.extend(len(self._names) + end for end in other._ends[1:])
        self._names += other._names
        self._numbers.extend(lines_before + number for number in other._numbers)
        self._noticed.extend(start + row for row in other._noticed)
        codes = [self._kinds.setdefault(kind, len(self._kinds)) for kind in other._kinds]
        self.kind.extend(codes[code] for code in other.kind)
        named = [0, *(self._clusters.setdefault(name, len(self._clusters) + 1) for name in other._clusters)]
        self.cluster.extend(named[code] for code in other.cluster)
        self.reviewed.extend(other.reviewed)
        self.lines.take(other.lines)
        return True

    def _note(self, value: Mapping[str, Any]) -> None:
        """Note numbers and flags of a row."""
        listed, grades = value["expected_sources"], value.get("relevance")
        expected = set(listed)
        bits, barred = (1 if expected else 0) | (_BITS["relevance"] if grades else 0), 0
        if not _FINER.isdisjoint(value):
            bits |= sum(bit for name, bit in _BITS.items() if value.get(name))
            bits |= _BITS["principal"] if value.get("principal") is not None else 0
            barred = len({*value.get("nonrelevant_sources", ()), *value.get("forbidden_sources", ())})
        names = listed if grades is None else list(grades)
        if not bits & _ALL_FINER and len(expected) == len(listed) and names[: len(listed)] == listed:
            bits |= _SOURCES_ALONE
            self._names += "\0".join(names).encode()
        self._ends.append(len(self._names))
        self.bits.append(bits)
        self.k.append(value.get("k") or 0)
        self.n_expected.append(len(expected))
        self.n_nonrelevant.append(barred)
        if grades is None:
            self.grades.extend([1.0] * len(expected))
        else:
            self.grades.extend(grades.values())
        self.graded.append(len(self.grades))


def _kind(value: Mapping[str, Any]) -> Kind:
    slices, principal = value.get("slices"), value.get("principal")
    told = tuple(sorted((name, type(v).__name__, v) for name, v in slices.items())) if slices else ()
    groups = None if principal is None else tuple(principal["groups"])
    return Kind(value["review_status"], value["category"], value.get("split"), told, groups)


Notice = Callable[[Mapping[str, Any]], bool]
"""Whether checks should look at a row, from its parsed value."""


class How(NamedTuple):
    """How judgments are read.

    notice: Which rows checks should look at.
    lenient: Drop unknown fields, and count them.
    allow_extra: Move unknown fields under `metadata`, and count them.
    """

    notice: Notice
    lenient: bool = False
    allow_extra: bool = False


def read_judgments(paths: Iterable[str], findings: Findings, how: How) -> JudgmentTable:
    """All judgments of all files, in order; a query id used twice is an error at its second place."""
    table = JudgmentTable()
    for path in paths:
        read_part(table, path, findings, how)
    return table


def read_part(table: JudgmentTable, path: str, findings: Findings, how: How, span: Span = (0, -1)) -> None:
    """Read a file, or a span of it, into the table; line numbers count from the start of the span."""
    table.begin(path)
    for number, line, value in _sound_rows(path, span, findings, how):
        name: str = value["query_id"]
        if (first := table.row_of.get(name)) is not None:
            text = f'"{quoted(name)}" was used at {table.place(first)}'
            findings.error("duplicate_id", Place(path, number), "query_id", text)
            continue
        table.add(value, line, number, noticed=how.notice(value))


def _sound_rows(path: str, span: Span, findings: Findings, how: How) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Line number, text and value of each row that keeps the contract; the strict reader decides where there is doubt."""
    relaxed = {"lenient": how.lenient, "allow_extra": how.allow_extra}
    for number, line, ended in physical_lines(path, span):
        place = Place(path, number)
        if number == 1 and (reason := not_lines(line)):
            findings.error("not_jsonl", place, "", reason)
            return
        value = parsed(line, place, findings, ended=ended)
        if value is None:
            continue
        if is_plain(value, line):
            yield number, line, value
        elif (row := validated(value, RetrievalJudgment, place, findings, **relaxed)) is not None:
            plain = row.model_dump(mode="json")
            yield number, orjson.dumps(plain), plain
