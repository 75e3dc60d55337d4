"""The row reader: lines of JSON to contract rows, every fault told with its line, its field and what to do."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import jiter
import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tripos.contracts.base import Contract, RowProblems, shown
from tripos.contracts.retrieval import ALIASES
from tripos.errors import Findings, Place, quoted, suggest
from tripos.files.streams import physical_lines, whole

Row = TypeVar("Row", bound=Contract)


def json_rows(path: str, findings: Findings) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Each line's object and where it stands; lines that hold none are noted as errors and skipped."""
    for number, line, ended in physical_lines(path):
        place = Place(path, number)
        if number == 1 and (reason := not_lines(line)):
            findings.error("not_jsonl", place, "", reason)
            return
        if (value := parsed(line, place, findings, ended=ended)) is not None:
            yield place, value


def parsed(line: bytes, place: Place, findings: Findings, *, ended: bool = True) -> dict[str, Any] | None:
    """The object on one line, or None with the reason noted.

    Args:
        line: The line, without its end.
        place: Where it stands.
        findings: Takes the fault.
        ended: Whether a newline followed; a torn last line says so.
    """
    try:
        value: Any = jiter.from_json(line, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")
    except ValueError as error:
        findings.error(*_syntax(line, ended, str(error), place))
        return None
    except RecursionError:
        findings.error("syntax", place, "", "is nested too deeply")
        return None
    if isinstance(value, dict):
        return value
    findings.error("syntax", place, "", f"is {_kind(value)}: one JSON object a line is expected")
    return None


def not_lines(first: bytes) -> str:
    """What a first line says when the file is no JSONL at all."""
    text = first.strip()
    if text.startswith(b"["):
        return "a JSON array, not JSONL: write one object a line (jq -c '.[]' FILE)"
    if text == b"{":
        return "a JSON object over several lines, not JSONL: write one object a line (jq -c . FILE)"
    if text.startswith(b"PAR1"):
        return "a Parquet file, not JSONL"
    return ""


def _syntax(line: bytes, ended: bool, said: str, place: Place) -> tuple[str, Place, str, str]:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return "encoding", place, "", f"is not UTF-8 (byte {error.start} of the line)"
    if found := re.search(r'[Dd]uplicate key "?([^"]*)"?', said):
        return "duplicate_key", place, quoted(found[1].split('" at')[0]), "is given twice in one object: keep one"
    where = re.search(r"column (\d+)", said)
    at = f" (column {where[1]})" if where else ""
    if re.search(rb"[:\[,]\s*-?(NaN|Infinity)\b", line):
        return "not_finite", place, "", "holds NaN or Infinity, which is no JSON: write null, or leave the field out"
    if not ended and "EOF" in said:
        return "torn", place, "", "the last line is torn: the file ends in the middle of a row"
    return "syntax", place, "", f"is no JSON: {said.split(' at line', maxsplit=1)[0]}{at}"


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return kinds[type(value)]


def read_rows(
    path: str,
    model: type[Row] | Callable[[dict[str, Any]], type[Row] | str],
    findings: Findings,
    *,
    lenient: bool = False,
    allow_extra: bool = False,
) -> Iterator[tuple[Place, Row]]:
    """Validated rows of one file and where each stands; faulty ones are noted in `findings` and skipped.

    Args:
        path: The file.
        model: The contract, or a function from the raw object to it (or to the reason why no contract fits).
        findings: Takes every fault.
        lenient: Drop unknown fields, and count them.
        allow_extra: Move unknown fields under `metadata`, and count them; near misses of known names stay errors.
    """
    for place, value in json_rows(path, findings):
        chosen: type[Row] | str = model if isinstance(model, type) else model(value)
        if isinstance(chosen, str):
            findings.error("unknown_form", place, "", chosen)
        elif (row := validated(value, chosen, place, findings, lenient=lenient, allow_extra=allow_extra)) is not None:
            yield place, row


def validated(
    value: dict[str, Any],
    model: type[Row],
    place: Place,
    findings: Findings,
    *,
    lenient: bool = False,
    allow_extra: bool = False,
) -> Row | None:
    """The contract row of one object, or None with every fault noted; options as in `read_rows`."""
    relaxed = lenient or allow_extra
    extra = value.keys() - model.model_fields.keys()
    content = _relax(value, model, findings, lenient) if extra and relaxed else value
    try:
        return model.model_validate(content)
    except ValidationError as error:
        inner = [e["loc"] for e in error.errors(include_url=False) if e["type"] == "extra_forbidden" and len(e["loc"]) > 1]
        if relaxed and inner:
            findings.lenient("unknown_fields", len(inner))
            return validated(_without(content, inner), model, place, findings, lenient=lenient, allow_extra=allow_extra)
        for kind, field, message in explained(error, model):
            findings.error(kind, place, field, message)
        return None


def _without(value: dict[str, Any], locations: Iterable[tuple[int | str, ...]]) -> dict[str, Any]:
    """The object without the inner fields at these places: an inner object has no metadata to keep them."""
    copied = copy.deepcopy(value)
    for *parents, name in locations:
        here: Any = copied
        for part in parents:
            here = here[part]
        here.pop(name, None)
    return copied


def _relax(value: dict[str, Any], model: type[Contract], findings: Findings, lenient: bool) -> dict[str, Any]:
    known = model.model_fields.keys()
    extra = {k: v for k, v in value.items() if k not in known}
    if not lenient:
        extra = {k: v for k, v in extra.items() if not suggest(k, known)}
    findings.lenient("unknown_fields", len(extra))
    kept = {k: v for k, v in value.items() if k not in extra}
    if not lenient and "metadata" in known and isinstance(kept.get("metadata", {}), dict):
        kept["metadata"] = {**kept.get("metadata", {}), **extra}
    return kept


def explained(error: ValidationError, model: type[Contract]) -> Iterator[tuple[str, str, str]]:
    """Each fault of a row as (kind, field path, what to do about it); a value that fits no member of a union once."""
    unions: set[tuple[int | str, ...]] = set()
    for detail in error.errors(include_url=False):
        cause = detail.get("ctx", {}).get("error")
        location = detail["loc"]
        if isinstance(cause, RowProblems):
            prefix = f"{_path(location)}." if location else ""
            yield from ((p.kind, prefix + p.field, p.message) for p in cause.problems)
        elif location and location[-1] in _UNION_MEMBERS and not _is_field(location[-1], location, model):
            if location[:-1] not in unions:
                unions.add(location[:-1])
                yield "scalar", _path(location[:-1]), _scalar_message(detail)
        else:
            yield detail["type"], _path(location), _message(detail, model)


_UNION_MEMBERS = {"str", "bool", "int", "float", "none", "function-after[_exact(), int]"}


def _is_field(name: int | str, location: tuple[int | str, ...], model: type[Contract]) -> bool:
    return name in set(_fields_at(model, location[:-1]))


def _scalar_message(detail: ErrorDetails) -> str:
    got = detail["input"]
    if isinstance(got, int) and not isinstance(got, bool):
        return f"is {got}: beyond 2^53, which JSON numbers do not keep exactly; write it as a string"
    if isinstance(got, float):
        return "is no finite number"
    return f"is {shown(got)}: a string, a number, true, false or null is expected"


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        inner = f"[{part}]" if isinstance(part, int) else f".{quoted(part)}"
        text += inner if text else quoted(str(part))
    return text.removesuffix(".[key]")


_EXPECTED = {
    "list_type": "a list", "tuple_type": "a list", "dict_type": "an object", "bool_type": "true or false",
    "int_type": "a whole number", "float_type": "a number", "string_type": "a string", "model_type": "an object",
    "model_attributes_type": "an object", "int_from_float": "a whole number",
}  # fmt: skip


def _message(detail: ErrorDetails, model: type[Contract]) -> str:  # noqa: C901, PLR0911 - a table of answers, one a kind
    kind, got, context = detail["type"], detail["input"], detail.get("ctx", {})
    match kind:
        case "missing":
            return "missing" + _renamed(str(detail["loc"][-1]), got if isinstance(got, Mapping) else {})
        case "extra_forbidden":
            return "unknown field" + _meant(str(detail["loc"][-1]), detail["loc"], model)
        case "string_type" if isinstance(got, int | float) and not isinstance(got, bool):
            return f'is the number {shown(got)}: ids and texts are strings, write "{shown(got)}"'
        case "tuple_type" | "list_type" if isinstance(got, str):
            return f"is a string: a list is expected, write [{shown(got)}]"
        case "string_too_short":
            return "is empty"
        case "literal_error":
            choices = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
            near = suggest(str(got), choices)
            return f"is {shown(got)}, not one of {', '.join(choices)}{near}"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            words = {"greater_than": "above", "greater_than_equal": "at least", "less_than": "below"}
            bound = next(iter(context.values()))
            return f"is {shown(got)}: must be {words.get(kind, 'at most')} {bound:g}"
        case "finite_number":
            return "is not a finite number"
        case "value_error":
            return str(context["error"])
        case "string_pattern_mismatch":
            return f"is {shown(got)}: 64 hexadecimal digits (a sha256) are expected"
    if kind in _EXPECTED:
        return f"is {shown(got)}: {_EXPECTED[kind]} is expected"
    return f"{detail['msg'].lower()}, got {shown(got)}"


def _renamed(field: str, row: Mapping[str, Any]) -> str:
    """The clause that names the field of this row which probably holds it."""
    other = next((k for k in row if k in ALIASES.get(field, ())), None)
    return f': rename "{other}" to "{field}"?' if other else ""


def _meant(name: str, location: tuple[int | str, ...], model: type[Contract]) -> str:
    known = set(_fields_at(model, location[:-1]))
    for target, aliases in ALIASES.items():
        if name in aliases and target in known:
            return f"; did you mean {target}?"
    if near := suggest(name, known):
        return "; " + near.strip(" ()").replace('"', "")
    return ": put your own fields under metadata (or --allow-extra)" if "metadata" in known else ""


def _fields_at(model: type[Contract], path: tuple[int | str, ...]) -> Iterable[str]:
    """Names of the fields of the model that stands at `path` inside `model`."""
    for part in path:
        if isinstance(part, str) and part in model.model_fields:
            inner = [t for t in _classes(model.model_fields[part].annotation) if issubclass(t, Contract)]
            if not inner:
                return ()
            model = inner[0]
    return model.model_fields


def _classes(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _classes(argument)


def dump_line(row: Any) -> bytes:
    """One row as a line of JSON; floats must be finite (checked where they are made)."""
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def write_rows(path: str | Path, rows: Iterable[Any]) -> int:
    """Write rows as JSONL, whole or not at all; returns how many."""
    with whole(path) as stream:
        return write_lines(stream, rows)


def write_lines(stream: IO[bytes], rows: Iterable[Any]) -> int:
    """Write rows as JSONL to an open stream; returns how many."""
    n = 0
    for n, row in enumerate(rows, 1):  # noqa: B007 - the count is the result
        stream.write(dump_line(row))
    return n
