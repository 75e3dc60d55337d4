"""TREC text files: qrels, runs and topics, read into plain tables and written from them.

What trec_eval reads is the rule; where its readers disagree or break, the wider reading is taken:

- Columns are separated by ASCII white space (C's isspace), any amount, tabs or spaces. Ids are compared byte for byte.
- A line whose first non-blank character is "#" is a comment as a whole. A "#" anywhere else is data: trec_eval's own test
  files hold the document ids "CR#93E-1860" and "msmarco_v2.1_doc_00_880019750#4_1633802806". So a topic id cannot begin
  with "#", a document id can. (trec_eval's qrels reader fails on two comment lines in a row; ours does not.)
- The iter, Q0 and rank columns are ignored; so is what follows the tag of a run (counted).
- A negative grade means "in the pool, but not judged": the document is left out, and counted. (Of trec_eval's measures infAP
  alone tells such a document from one outside the pool.)
- The order of a run is score descending as 32-bit floats, then docno descending by bytes; neither lines nor ranks matter.

`trec_rows` turns these tables into contract rows and back.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any, NamedTuple

from tripos.errors import Findings, Place, UsageError, quoted
from tripos.files.jsonl import json_rows
from tripos.files.streams import STDIN, physical_lines

MAX_GRADE = 100
"""The bound of the contract (`contracts.base.Grade`)."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_BLANK = re.compile(r"[ \t\n\r\v\f]")
_ID_KEYS = ("query_id", "_id", "id")
_TEXT_KEYS = ("query", "text")
_HEADER_IDS = {"id", "_id", "qid", "query_id", "query-id", "queryid", "topic", "topic_id"}


_Fault = tuple[str, str, str]  # kind, field, message
_Faulty = tuple[Place, _Fault, bool]  # the bool: whether the line looks like the other kind of file


class Judged(NamedTuple):
    """The grade of one document for one topic, and the line that gives it."""

    grade: int
    line: int


class Scored(NamedTuple):
    """The score of one document for one topic, and the line that gives it."""

    score: float
    line: int


@dataclass(frozen=True, slots=True)
class Qrels:
    """Judged documents by topic, both in order of first appearance; a topic may have none."""

    path: str
    topics: dict[str, dict[str, Judged]]
    lines: dict[str, int]
    n_repeated: int
    n_unjudged: int


@dataclass(frozen=True, slots=True)
class Run:
    """Scored documents by topic, in the order of the file; `n_trailing` lines had text after the tag."""

    path: str
    topics: dict[str, dict[str, Scored]]
    n_trailing: int


class Topic(NamedTuple):
    """The text of one topic."""

    place: Place
    topic_id: str
    text: str


def _columns(path: str, findings: Findings) -> Iterator[tuple[Place, list[str]]]:
    """The columns of each line that is neither blank nor a comment."""
    for number, line, _ in physical_lines(path):
        if line.lstrip().startswith(b"#"):
            continue
        if _text(line, Place(path, number), findings):
            # bytes.split() breaks at ASCII white space alone, as trec_eval does; str.split() would break at more
            yield Place(path, number), [column.decode() for column in line.split()]


def _text(line: bytes, place: Place, findings: Findings) -> str:
    """The line as text; "" and an error where it is none."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        findings.error("encoding", place, "", f"is not UTF-8 (byte {error.start} of the line)")
        return ""
    if "\0" in text:
        findings.error("nul", place, "", "holds a NUL character, which no TREC file can carry: remove it")
        return ""
    return text


def read_qrels(path: str, findings: Findings, grade_map: Mapping[int, int] | None = None) -> Qrels:
    """Read `topic iter docno rel` lines; a file that is all a run is told so once.

    A document judged twice for a topic is counted where the grades agree, and an error where they differ.

    Args:
        path: The file.
        findings: Takes every fault.
        grade_map: New grades by the file's grades; every non-negative grade of the file must be in it.
    """
    topics: dict[str, dict[str, Judged]] = {}
    faults: list[_Faulty] = []
    n_repeated = 0
    for place, columns in _columns(path, findings):
        if fault := _qrels_fault(columns):
            faults.append((place, fault, len(columns) == 6))
            continue
        topic, _, docno, rel = columns
        judged = Judged(int(rel), place.line)
        first = topics.setdefault(topic, {}).setdefault(docno, judged)
        if first is not judged:
            n_repeated += first.grade == judged.grade
            if said := _conflict(first, judged, topic, docno):
                findings.error("conflict", place, "rel", said)
    _note(faults, bool(topics), findings)
    if not topics and not findings.n_errors:
        findings.error("empty_file", Place(path), "", "holds no judgment")
    return _graded(path, topics, n_repeated, grade_map, findings)


def _note(faults: list[_Faulty], any_good: bool, findings: Findings) -> None:
    """Note the faulty lines; where the whole file is of the other kind, its first line says it for all."""
    if not any_good and all(is_other for _, _, is_other in faults):
        faults = faults[:1]
    for place, (kind, field, message), _ in faults:
        findings.error(kind, place, field, message)


def _qrels_fault(columns: list[str]) -> _Fault | None:
    """Why a line is no judgment; None where it is one."""
    if (n := len(columns)) != 4:
        hint = {
            3: " (BEIR's qrels lack iter: awk 'NR>1{print $1,0,$2,$3}' FILE)",
            6: " (this looks like a run: use --run)",
        }.get(n, "")
        return "columns", "", f"has {n} columns, not 4: topic iter docno rel{hint}"
    if not _INTEGER.fullmatch(columns[3]):
        return "grade", "rel", f'is "{quoted(columns[3])}": a grade is an integer'
    return None


def _conflict(first: Judged, judged: Judged, topic: str, docno: str) -> str:
    """What to do about two judgments of one document; "" where they agree."""
    if first.grade == judged.grade:
        return ""
    where = f'"{quoted(docno)}" of topic "{quoted(topic)}"'
    return f"grades {where} {judged.grade}, but line {first.line} grades it {first.grade}: keep one"


def _graded(
    path: str,
    topics: dict[str, dict[str, Judged]],
    n_repeated: int,
    grade_map: Mapping[int, int] | None,
    findings: Findings,
) -> Qrels:
    """The table with the grades mapped and bounded, without the unjudged."""
    new = _new_grades(path, topics, grade_map, findings)
    kept = {
        topic: {docno: judged._replace(grade=new[judged.grade]) for docno, judged in docs.items() if new[judged.grade] >= 0}
        for topic, docs in topics.items()
    }
    lines = {topic: next(iter(docs.values())).line for topic, docs in topics.items()}
    n_unjudged = sum(map(len, topics.values())) - sum(map(len, kept.values()))
    return Qrels(path, kept, lines, n_repeated, n_unjudged)


def _new_grades(
    path: str, topics: dict[str, dict[str, Judged]], grade_map: Mapping[int, int] | None, findings: Findings
) -> dict[int, int]:
    """The grade to keep for each grade of the file; one error for each that cannot be kept, at its first line."""
    first: dict[int, int] = {}
    count: Counter[int] = Counter()
    for judged in (judged for docs in topics.values() for judged in docs.values()):
        first[judged.grade] = min(judged.line, first.get(judged.grade, judged.line))
        count[judged.grade] += 1
    for grade, line in first.items():
        if grade_map is not None and grade >= 0 and grade not in grade_map:
            text = f"is {grade}, which --grade-map does not name ({count[grade]:,} judgments)"
            findings.error("grade", Place(path, line), "rel", text)
        elif grade_map is None and grade > MAX_GRADE:
            text = f"is {grade} ({count[grade]:,} judgments): grades go up to {MAX_GRADE}; --grade-map gives smaller ones"
            findings.error("grade", Place(path, line), "rel", text)
    return {grade: grade if grade_map is None else grade_map.get(grade, grade) for grade in first}


def read_run(path: str, findings: Findings) -> Run:
    """Read `topic Q0 docno rank sim tag` lines, in any order; a document twice in a topic is an error.

    A file that is all qrels is told so once.
    """
    topics: dict[str, dict[str, Scored]] = {}
    faults: list[_Faulty] = []
    n_trailing = 0
    for place, columns in _columns(path, findings):
        score = _score(columns[4]) if len(columns) > 4 else math.nan
        if fault := _run_fault(columns, score):
            faults.append((place, fault, len(columns) == 4))
            continue
        topic, _, docno = columns[:3]
        n_trailing += len(columns) > 6
        scored = Scored(score, place.line)
        if (first := topics.setdefault(topic, {}).setdefault(docno, scored)) is not scored:
            said = f'"{quoted(docno)}" of topic "{quoted(topic)}" was ranked on line {first.line}: keep one'
            findings.error("duplicate_id", place, "docno", said)
    _note(faults, bool(topics), findings)
    if not topics and not findings.n_errors:
        findings.error("empty_file", Place(path), "", "holds no result")
    return Run(path, topics, n_trailing)


def _score(text: str) -> float:
    """The number as C reads it, NaN where it is none (or one that Python alone would read, such as 1_0)."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _run_fault(columns: list[str], score: float) -> _Fault | None:
    """Why a line is no result; None where it is one."""
    if (n := len(columns)) < 6:
        hint = {
            4: " (this looks like qrels: use --qrels)",
            5: " (where only the tag is missing: awk '{print $0, \"run\"}' FILE)",
        }.get(n, "")
        return "columns", "", f"has {n} columns, not 6: topic Q0 docno rank score tag{hint}"
    if n > 6 and not _INTEGER.fullmatch(columns[3]):
        return "columns", "", f'has {n} columns, and rank is "{quoted(columns[3])}": does an id hold white space?'
    if not math.isfinite(score):
        return "not_finite", "score", f'is "{quoted(columns[4])}": a score is a finite number'
    if not math.isfinite(narrow([score])[0]):
        return "not_finite", "score", f'is "{quoted(columns[4])}", beyond the 32-bit floats that trec_eval sorts by'
    return None


def narrow(scores: Sequence[float]) -> list[float]:
    """The scores as trec_eval holds them: rounded to 32-bit floats."""
    return array("f", scores).tolist()


def in_trec_order(docs: Mapping[str, Scored]) -> tuple[list[str], list[float], bool]:
    """The documents of one topic as trec_eval ranks them, their scores, and whether those had to be rounded.

    Scores stay as given where they do not rise down that order. Where they do (two scores that are one 32-bit float, the
    smaller one first by docno), all scores of the topic are given as their 32-bit values, which are equal there.
    """
    given = [scored.score for scored in docs.values()]
    rows = sorted(zip(narrow(given), docs, given, strict=True), reverse=True)
    ids, scores = [row[1] for row in rows], [row[2] for row in rows]
    if all(a >= b for a, b in pairwise(scores)):
        return ids, scores, False
    return ids, [row[0] for row in rows], True


def keeps_order(ids: Sequence[str], scores: Sequence[float]) -> bool:
    """Whether a reader that sorts by score, then docno descending, gives back this order, in 32 and in 64 bits."""
    rounded = narrow(scores)
    if not all(map(math.isfinite, rounded)):
        return False
    # str compares by code point, which is the order of the UTF-8 bytes
    keys = (list(zip(rounded, ids, strict=True)), list(zip(scores, ids, strict=True)))
    return all(a > b for key in keys for a, b in pairwise(key))


def read_topics(path: str, findings: Findings) -> list[Topic]:
    """Read the texts of topics in file order: TSV `id<TAB>text`, or JSONL (query_id, _id or id; query or text).

    The first line that is not blank tells which. Ids may repeat here: `trec_rows.texts_by_topic` minds.
    """
    if path == STDIN:
        raise UsageError("the texts of topics are read from a file, not from standard input")  # it is opened twice
    first = next(physical_lines(path), None)
    if first is None:
        findings.error("empty_file", Place(path), "", "holds no topic")
        return []
    if first[1].lstrip().startswith(b"{"):
        rows = [_json_topic(place, value, findings) for place, value in json_rows(path, findings)]
    elif b"\t" in first[1]:
        rows = [_tsv_topic(Place(path, n), line, n == first[0], findings) for n, line, _ in physical_lines(path)]
    else:
        text = "is neither id<TAB>text nor a JSON object with query_id and query: write the topics as one of these"
        findings.error("unknown_form", Place(path, first[0]), "", text)
        return []
    return [row for row in rows if row]


def _tsv_topic(place: Place, line: bytes, is_first: bool, findings: Findings) -> Topic | None:
    if not (text := _text(line, place, findings)):
        return None
    columns = text.split("\t")
    if len(columns) != 2 or not all(column.strip() for column in columns):
        n = sum(1 for column in columns if column.strip())
        findings.error("columns", place, "", f"has {n} filled columns of {len(columns)}; two are expected: id<TAB>text")
        return None
    if is_first and columns[0].lower() in _HEADER_IDS:
        findings.error("header", place, "", "is a header, which would count as a topic: remove the line")
        return None
    return Topic(place, *columns)


def _json_topic(place: Place, value: dict[str, Any], findings: Findings) -> Topic | None:
    found = []
    for keys in (_ID_KEYS, _TEXT_KEYS):
        key = next((k for k in keys if k in value), None)
        if key is None:
            findings.error("missing_field", place, keys[0], f"missing: one of {', '.join(keys)} is expected")
        elif not isinstance(text := value[key], str):
            findings.error("string_type", place, key, "is no string: ids and texts are strings, put it in quotes")
        elif not text.strip() or "\0" in text:
            findings.error("string_too_short", place, key, "is empty" if not text.strip() else "holds a NUL character")
        else:
            found.append(text)
    return Topic(place, *found) if len(found) == 2 else None


def id_fault(name: str, *, leads: bool) -> str:
    """Why a TREC file cannot carry this id, or ""; `leads`: whether it stands first on its line, as topic ids do."""
    if not name:
        return "is empty"
    if _BLANK.search(name) or "\0" in name:
        return "holds white space, which separates the columns of TREC files"
    if leads and name.startswith("#"):
        return 'begins with "#", which begins a comment in TREC files'
    if leads and name.startswith("\ufeff"):
        return "begins with a byte order mark"
    return ""


def write_qrels(stream: IO[bytes], topics: Mapping[str, Mapping[str, int]]) -> int:
    """Write `topic 0 docno grade` lines; returns how many."""
    n = 0
    for topic, grades in topics.items():
        stream.write("".join(f"{topic} 0 {docno} {grade}\n" for docno, grade in grades.items()).encode())
        n += len(grades)
    return n


def write_run(stream: IO[bytes], topics: Mapping[str, Sequence[tuple[str, float]]], tag: str) -> int:
    """Write `topic Q0 docno rank score tag` lines, scores with all their digits; returns how many."""
    n = 0
    for topic, docs in topics.items():
        lines = (f"{topic} Q0 {docno} {rank} {score!r} {tag}\n" for rank, (docno, score) in enumerate(docs, 1))
        stream.write("".join(lines).encode())
        n += len(docs)
    return n
