"""What is wrong with the values in golden files, one function a kind of finding; each with the jq filter that mends it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tripos.checks.retrieval import is_placeholder
from tripos.contracts.base import shown
from tripos.curate.diagnosis import Severity
from tripos.curate.recognise import Container, Form, Look, Record, names_of, opened
from tripos.curate.repair import field
from tripos.errors import quoted

_LISTS = ("expected_sources", "fragment_ids")
_IDS = ("query_id", "expected_sources", "fragment_id", "source_id", "fragment_ids")
INVERTED = {"expected_empty", "negative"}
_NEGATIVE_WORDS = {"negative", "no_answer", "unanswerable"}
_MIN_PROSE = 40


class Ailment(NamedTuple):
    """One kind of fault in the rows of one file.

    Attributes:
        kind: Its name.
        field: The field as the file names it.
        message: What is wrong and what to do, in one line.
        line: The first line that has it; 0 where that cannot be told.
        step: A jq filter over one row that mends it; "" where only a person can.
        severity: "error" where Tripos would refuse the file for it.
        whole: The step works on the list of all rows.
    """

    kind: str
    field: str
    message: str
    line: int = 0
    step: str = ""
    severity: Severity = "error"
    whole: bool = False


def rows_where(look: Look, key: str, holds: Callable[[Any], bool]) -> list[Record]:
    """The rows that have the field, with a value of which `holds` is true."""
    return [record for record in look.records if key in record.value and holds(record.value[key])]


def _of(found: Sequence[Any], look: Look) -> str:
    return f"in {len(found)} of {len(look.records)} rows"


def container(look: Look) -> Iterator[Ailment]:
    """Rows that do not stand one a line."""
    if look.container is not Container.JSONL:
        kind = f"{look.container.value}, not JSONL: write one object a line"
        yield Ailment("container", "", kind, step=".")


def no_id(look: Look) -> Iterator[Ailment]:
    """No field names the query."""
    if "query_id" in look.roles:
        return
    if look.container in (Container.JSONL, Container.CSV):
        step = '.query_id = "q-\\(input_line_number)"'
        yield Ailment("no_id", "query_id", "no field is an id: number the rows, and keep the numbers", step=step)
    else:
        step = 'to_entries[] | .value + {query_id: "q-\\(.key + 1)"}'
        yield Ailment("no_id", "query_id", "no field is an id: number the rows, and keep the numbers", step=step, whole=True)


def integer_ids(look: Look) -> Iterator[Ailment]:
    """Numbers where ids belong."""
    for role in (role for role in _IDS if role in look.roles):
        key = look.roles[role]
        found = rows_where(look, key, lambda value: any(map(_is_number, opened(value))))
        if not found:
            continue
        example = next(v for v in opened(found[0].value[key]) if _is_number(v))
        text = f'numbers, such as {shown(example)}, {_of(found, look)}: ids are strings, write "{shown(example)}"'
        to_string = 'if type == "number" then tostring else . end'
        inner = f'if type == "array" then map({to_string}) else ({to_string}) end' if role in _LISTS else to_string
        yield Ailment("integer_ids", key, text, found[0].line, f"{field(key)} |= ({inner})")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scalar_lists(look: Look) -> Iterator[Ailment]:
    """One value where a list belongs; in CSV, several in one cell."""
    for role in (role for role in _LISTS if role in look.roles):
        key = look.roles[role]
        found = rows_where(look, key, lambda value: isinstance(value, str | int | float) or value is None)
        if not found:
            continue
        example = next((r.value[key] for r in found if r.value[key] not in (None, "")), None)
        written = "[]" if example is None else f"[{shown(example)}]"
        text = f"{shown(example)} {_of(found, look)}: a list is expected, write {written}"
        yield Ailment("scalar_list", key, text, found[0].line, _listing(key, found))


def _listing(key: str, found: Sequence[Record]) -> str:
    """The filter that makes lists of scalars: null and "" become [], joined ids are parted."""
    values = [str(record.value[key]) for record in found if isinstance(record.value[key], str)]
    joint = next(
        (mark for mark in ("|", ";", ",") if sum(mark in v for v in values) > 0 and not any(map(_is_prose, values))), ""
    )
    one = f'(split("{joint}") | map(gsub("^\\\\s+|\\\\s+$"; "")) | map(select(. != "")))' if joint else "[.]"
    numbers = 'elif type == "number" then [tostring] '
    return f'{field(key)} |= (if . == null or . == "" then [] elif type == "string" then {one} {numbers}else . end)'


def objects_for_ids(look: Look) -> Iterator[Ailment]:
    """Grades by id, or objects, where a list of ids belongs."""
    key = look.roles.get("expected_sources", "")
    if graded := rows_where(look, key, lambda value: isinstance(value, dict) and all(map(_is_number, value.values()))):
        step = f'if ({field(key)} | type) == "object" then .relevance = ({field(key)} | with_entries(select(.value > 0))) | '
        step += f"{field(key)} = (.relevance | keys) else . end"
        text = f"grades by id {_of(graded, look)}: the ids belong in expected_sources, the grades above 0 in relevance"
        yield Ailment("graded_sources", key, text, graded[0].line, step)
    if found := rows_where(look, key, lambda value: isinstance(value, list) and any(isinstance(i, dict) for i in value)):
        inner = next(item for item in found[0].value[key] if isinstance(item, dict))
        name = next((n for n in (*names_of("fragment_id"), "source_id", "document_id", "id", "_id") if n in inner), "")
        text = f"objects {_of(found, look)}: a list of source ids is expected" + (
            f", which {quoted(name)} seems to hold" if name else ""
        )
        step = f'{field(key)} |= map(if type == "object" then {field(name)} else . end)' if name else ""
        yield Ailment("objects_for_ids", key, text, found[0].line, step)


def repeated_ids(look: Look) -> Iterator[Ailment]:
    """One row a judgment: the same query id again, with another source."""
    key = look.roles.get("query_id", "")
    counts = Counter(str(record.value[key]) for record in look.records if record.value.get(key) is not None)
    repeated = {name for name, n in counts.items() if n > 1}
    if not repeated:
        return
    found = [record for record in look.records if str(record.value.get(key)) in repeated]
    text = f'{len(repeated)} ids stand in several rows, "{quoted(str(found[0].value[key]))}" first: '
    query, expected = look.roles.get("query", ""), look.roles.get("expected_sources", "")
    texts: dict[str, set[str]] = {}
    for record in found:
        texts.setdefault(str(record.value[key]), set()).add(str(record.value.get(query)))
    if not expected or any(len(own) > 1 for own in texts.values()):
        yield Ailment("repeated_id", key, text + "with different queries: give each query an id of its own", found[0].line)
        return
    step = f'group_by({field(key)})[] | .[0] + {{{json.dumps(expected)}: (map({field(expected)} | if type == "array" then .[] '
    step += 'elif . == null or . == "" then empty else . end) | unique)}'
    text += "one row a judgment, it seems: put all sources of a query into one row"
    yield Ailment("repeated_id", key, text, found[0].line, step, whole=True)


def never_filled(look: Look) -> Iterator[Ailment]:
    """A field that stands in every row and is empty in each."""
    n = len(look.records)
    names = dict.fromkeys(name for record in look.records for name in record.value)
    for name in names if n > 1 else ():
        if all(name in record.value and record.value[name] in (None, "", [], {}) for record in look.records):
            is_gold = name == look.roles.get("expected_sources")
            advice = (
                "nothing can be found in such rows: name the sources that answer" if is_gold else "fill it, or leave it out"
            )
            yield Ailment(
                "never_filled", name, f"empty in {n} of {n} rows: {advice}", severity="error" if is_gold else "warning"
            )


def placeholders(look: Look) -> Iterator[Ailment]:
    """Ids and texts that were to be filled in."""
    for key in (look.roles[role] for role in ("query_id", "query", "expected_sources") if role in look.roles):
        found = rows_where(look, key, lambda v: any(isinstance(i, str) and is_placeholder(i) for i in opened(v)))
        if found:
            example = next(i for i in opened(found[0].value[key]) if isinstance(i, str) and is_placeholder(i))
            yield Ailment("placeholder", key, f"{shown(example)} {_of(found, look)}: fill it in", found[0].line)


def empty_positives(look: Look) -> Iterator[Ailment]:
    """Rows without a source that do not say that nothing should be found."""
    expected, match = look.roles.get("expected_sources"), look.roles.get("should_match")
    if expected is None:
        return
    found = [r for r in look.records if not list(opened(r.value.get(expected))) and not _says_negative(r, match)]
    if found and len(found) < len(look.records):
        text = f"empty {_of(found, look)} that do not expect nothing: name the sources, or set should_match to false"
        keys = f'{field(expected)} | . == null or . == "" or . == []'
        step = f"if ({keys}) then .should_match = false else . end" if match in (None, "should_match") else ""
        yield Ailment("empty_positive", expected, text, found[0].line, step)


def _says_negative(record: Record, match: str | None) -> bool:
    if match is None:
        return bool(_NEGATIVE_WORDS & {str(v).lower() for v in record.value.values() if isinstance(v, str)})
    said = str(record.value.get(match)).lower() in ("true", "yes", "1")
    return said is (match in INVERTED)


def prose_for_ids(look: Look) -> Iterator[Ailment]:
    """Quoted passages where ids belong."""
    key = look.roles.get("expected_sources", "")
    found = rows_where(look, key, lambda value: any(isinstance(i, str) and _is_prose(i) for i in opened(value)))
    if 2 * len(found) > len(look.records):
        text = (
            f"quoted passages {_of(found, look)}: ids are expected; passages go into expected_evidence as {{source_id, quote}}"
        )
        yield Ailment("prose_for_ids", key, text, found[0].line)


def _is_prose(text: str) -> bool:
    return len(text) >= _MIN_PROSE and text.count(" ") >= 5


def no_gold(look: Look) -> Iterator[Ailment]:
    """No field names what should be found."""
    if look.form is Form.GOLDENS and "expected_sources" not in look.roles:
        names = ", ".join(dict.fromkeys(name for record in look.records[:20] for name in record.value))
        text = f"no field says which sources answer (fields: {quoted(names)}): add expected_sources, a list of source ids"
        yield Ailment("no_gold", "expected_sources", text)
