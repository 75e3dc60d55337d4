"""What a file is, told by its content and never by its name alone."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

from tripos.contracts.retrieval import ALIASES
from tripos.errors import InputError
from tripos.files.streams import physical_lines, read_text

_SAMPLE = 100
_LONG_TEXT = 200
_INTEGER = re.compile(r"[+-]?[0-9]+")
_HEADERS = {"query-id", "corpus-id", "query_id", "corpus_id", "qid", "docid", "score"}
_HERE_TOO = {"expected_sources": ("expected_retrieval", "gold_sources", "gold_docs", "expected_chunks", "expected_chunk_ids")}
"""Names that the contract does not list and that are plainly meant so."""


class Form(StrEnum):
    """What a file holds."""

    JUDGMENTS = "retrieval judgments"
    FRAGMENTS = "fragments"
    RANKED = "ranked results"
    GENERATION = "generation rows"
    CORPUS = "corpus judgments or results"
    REPORT = "a Tripos report"
    QRELS = "TREC qrels"
    BEIR_QRELS = "BEIR qrels (three columns)"
    RUN = "a TREC run"
    TOPICS = "query texts"
    GOLDENS = "golden rows with other names"
    PASSAGES = "passages with other names"
    RESULTS = "results with other names"
    SMART = "a SMART file (.I, .T, .W)"
    EMPTY = "nothing"
    OTHER = "nothing that is known here"


class Container(StrEnum):
    """How the rows lie in the file."""

    JSONL = "JSONL"
    ARRAY = "a JSON array"
    OBJECT = "a JSON object with the rows in one of its lists"
    MAPPING = "a JSON object of rows by id"
    CSV = "CSV"
    COLUMNS = "columns"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Record:
    """One row as the file gives it, and its line (0 where that cannot be told)."""

    line: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """A file as recognised.

    `inside` names the list of an object, or the separator of a CSV file; `roles` gives this file's name of each Tripos field.
    """

    path: str
    form: Form
    container: Container = Container.OTHER
    records: list[Record] = field(default_factory=list)
    inside: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    unread: str = ""

    def strings(self, role: str) -> list[str]:
        """Every id in the field that plays `role`, as strings, in file order, lists opened, each once."""
        key = self.roles.get(role)
        values = (record.value.get(key) for record in self.records) if key else ()
        return list(dict.fromkeys(str(v) for value in values for v in opened(value) if isinstance(v, str | int)))


def opened(value: Any) -> Iterable[Any]:
    """The items of a list, the keys of an object, a scalar by itself, nothing for null and ""."""
    if isinstance(value, list | dict):
        return list(value)
    return () if value in (None, "") else (value,)


def recognise(path: str) -> Look:
    """Look into a file; raises InputError where it cannot be read at all."""
    try:
        first = [line for _, line, _ in islice(physical_lines(path), _SAMPLE)]
    except InputError as error:
        if "torn or damaged" in str(error):
            return Look(path, Form.OTHER, unread=error.findings[0].message)
        raise
    if not first:
        return Look(path, Form.EMPTY, unread="holds nothing")
    if first[0].startswith(b"PAR1"):
        return Look(path, Form.OTHER, unread="is a Parquet file, which doctor does not open")
    try:
        sample = [line.decode() for line in first]
    except UnicodeDecodeError:
        return Look(path, Form.OTHER, unread="is not UTF-8: convert it (iconv -f latin1 -t utf-8 FILE), or name another file")
    if sample[0].lstrip()[:1] in "[{":
        return _json(path, sample)
    return _plain(path, sample)


# ---- JSON


def _json(path: str, sample: Sequence[str]) -> Look:
    if _object(sample[0]) is not None and (len(sample) > 1 or not _list_inside(_object(sample[0]) or {})):
        return _named(path, Container.JSONL, _lines(path))
    try:
        whole = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        return Look(path, Form.OTHER, unread=f"is neither JSONL nor one JSON value ({str(error).split(' (char')[0]})")
    if isinstance(whole, list):
        return _named(path, Container.ARRAY, _records(whole))
    if inside := _list_inside(whole):
        return _named(path, Container.OBJECT, _records(whole[inside]), inside)
    if len(whole) > 1 and all(isinstance(v, dict) for v in whole.values()):
        return _named(path, Container.MAPPING, _records([{**row, "query_id": name} for name, row in whole.items()]))
    return _named(path, Container.OBJECT, _records([whole]))


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _list_inside(value: dict[str, Any]) -> str:
    """The name of the longest list of objects, unless the object is a row itself; "" where there is none."""
    if {"query_id", "fragment_id", "query", "question"} & value.keys():
        return ""
    own = {*names_of("results"), *names_of("expected_sources")} if set(names_of("query_id")) & value.keys() else set()
    lists = {
        k: len(v)
        for k, v in value.items()
        if k not in own and isinstance(v, list) and v and all(isinstance(i, dict) for i in v)
    }
    return max(lists, key=lambda k: lists[k]) if lists else ""


def _lines(path: str) -> list[Record]:
    """The objects of a JSONL file; lines that hold none are the contract reader's to tell."""
    rows = ((number, _object(line.decode(errors="replace"))) for number, line, _ in physical_lines(path))
    return [Record(number, row) for number, row in rows if row is not None]


def _records(rows: Iterable[Any]) -> list[Record]:
    return [Record(0, row) for row in rows if isinstance(row, dict)]


def _named(path: str, container: Container, records: list[Record], inside: str = "") -> Look:
    """The look, with form and roles told by the names of the fields."""
    names = [name for record in records[:_SAMPLE] for name in record.value]
    keys = {name for name in dict.fromkeys(names) if 2 * names.count(name) >= min(len(records), _SAMPLE)}
    form = _form(keys, records)
    return Look(path, form, container, records, inside, _roles(dict.fromkeys(names), form))


def _form(keys: set[str], records: Sequence[Record]) -> Form:
    if not records:
        return Form.OTHER
    if str(records[0].value.get("contract", "")).startswith("tripos/"):
        return Form.REPORT
    exact: list[tuple[set[str], set[str], Form]] = [
        (set(), {"cited_fragment_ids", "citation_requirements"}, Form.GENERATION),
        (set(), {"routed_collections", "fan_out", "expected_collections"}, Form.CORPUS),
        ({"query_id"}, {"results", "fragment_ids", "fragment_id"}, Form.RANKED),
        ({"fragment_id"}, {"text", "text_sha256"}, Form.FRAGMENTS),
        ({"query_id", "expected_sources"}, {"query_id"}, Form.JUDGMENTS),
    ]
    for all_of, any_of, form in exact:
        if all_of <= keys and any_of & keys:
            return form
    return _foreign_form(keys, records)


def _foreign_form(keys: set[str], records: Sequence[Record]) -> Form:
    has = {role: bool(keys & set(names_of(role))) for role in ALIASES}
    text = next((name for name in ("text", "contents", "content", "body") if name in keys), None)
    if has["expected_sources"] and (has["query"] or has["query_id"]):
        return Form.GOLDENS
    if has["results"] or has["fragment_ids"]:
        return Form.RESULTS
    if text and not keys & {"query", "question", "input"} and ("title" in keys or _mean_length(records, text) > _LONG_TEXT):
        return Form.PASSAGES
    if has["query"]:
        plain = keys <= {*names_of("query"), *names_of("query_id"), "metadata"}
        return Form.TOPICS if has["query_id"] and plain else Form.GOLDENS
    return Form.OTHER


def _mean_length(records: Sequence[Record], name: str) -> float:
    lengths = [len(str(record.value.get(name, ""))) for record in records[:_SAMPLE]]
    return sum(lengths) / len(lengths)


def names_of(role: str) -> tuple[str, ...]:
    """The Tripos name and all the others."""
    return (role, *ALIASES.get(role, ()), *_HERE_TOO.get(role, ()))


_ROLES = {
    Form.JUDGMENTS: ("query_id", "query", "expected_sources", "should_match", "review_status", "category", "relevance"),
    Form.RANKED: ("query_id", "results", "fragment_ids", "fragment_id"),
    Form.FRAGMENTS: ("fragment_id", "source_id", "text", "title"),
    Form.RESULTS: ("query_id", "results", "fragment_ids"),
    Form.TOPICS: ("query_id", "query"),
}
_PASSAGE_NAMES = {
    "fragment_id": ("fragment_id", "chunk_id", "doc_id", "docid", "docno", "passage_id", "_id", "id"),
    "text": ("text", "contents", "content", "body"),
    "title": ("title",),
    "source_id": ("source_id", "document_id"),
}


def _roles(names: Iterable[str], form: Form) -> dict[str, str]:
    """This file's name of each Tripos field: its own name first, then the order in which other names are listed."""
    present = set(names)
    if form is Form.PASSAGES:
        wanted = _PASSAGE_NAMES
    else:
        roles = _ROLES[Form.JUDGMENTS] if form is Form.GOLDENS else _ROLES.get(form, ())
        wanted = {role: names_of(role) for role in roles}
    found: dict[str, str] = {}
    for role, candidates in wanted.items():
        name = next((n for n in candidates if n in present and n not in found.values()), None)
        if name is not None:
            found[role] = name
    return found


# ---- columns


def _plain(path: str, sample: Sequence[str]) -> Look:
    if re.match(r"\.I\s+\S", sample[0]):
        has_documents = any(re.match(r"\.[TAB]\s*$", line) for line in sample)
        return Look(path, Form.SMART, inside="documents" if has_documents else "texts")
    rows = [line.split() for line in sample if not line.lstrip().startswith("#")]
    if _mostly(len(row) == 4 and bool(_INTEGER.fullmatch(row[3])) for row in rows):
        return Look(path, Form.QRELS, Container.COLUMNS)
    if _mostly(len(row) >= 6 and bool(_INTEGER.fullmatch(row[3])) and _is_number(row[4]) for row in rows):
        return Look(path, Form.RUN, Container.COLUMNS)
    body = rows[1:] if rows and _HEADERS & {name.lower() for name in rows[0]} else rows
    if _mostly(len(row) == 3 and bool(_INTEGER.fullmatch(row[2])) for row in body):
        return Look(path, Form.BEIR_QRELS, Container.COLUMNS, inside="header" if body is not rows else "")
    return _separated(path, sample)


def _mostly(hits: Iterable[bool]) -> bool:
    """Whether at least four in five hold, so that a faulty line does not hide what the file is."""
    found = list(hits)
    return bool(found) and 5 * sum(found) >= 4 * len(found)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _separated(path: str, sample: Sequence[str]) -> Look:
    """Query texts (id<TAB>text), or rows under a header."""
    counts = {separator: sample[0].count(separator) + 1 for separator in "\t,;"}
    separator = max(counts, key=lambda s: counts[s])
    header = [name.strip().lower() for name in sample[0].split(separator)]
    known = {name for role in ALIASES for name in names_of(role)}
    is_headed = counts[separator] > 1 and len(set(header) & known) > (0 if counts[separator] > 2 else 1)
    if separator == "\t" and counts[separator] == 2 and not is_headed:
        return _topics(path)
    if not is_headed:
        return Look(path, Form.OTHER, unread="is no JSON, no TREC file, no id<TAB>text, and has no header with a known name")
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter=separator)
    try:
        records = [Record(rows.line_num, {k: v for k, v in row.items() if k is not None}) for row in rows]
    except csv.Error as error:
        return Look(path, Form.OTHER, unread=f"looks like CSV, and is not read as such: line {rows.line_num}: {error}")
    return _named(path, Container.CSV, records, separator)


def _topics(path: str) -> Look:
    lines = [(n, line.decode(errors="replace").split("\t", 1)) for n, line, _ in physical_lines(path)]
    records = [Record(n, {"query_id": parts[0], "query": parts[1]}) for n, parts in lines if len(parts) == 2]
    return Look(path, Form.TOPICS, Container.COLUMNS, records, roles={"query_id": "query_id", "query": "query"})
