"""Saved queries: files of SQL whose header says what they tell and what may be asked.

    -- title: Never hit
    -- meaning: Queries that found nothing relevant in any of the last executions.
    -- parameter last whole = 5: Executions to look back over.
    -- looks back: last
    SELECT …

A parameter stands in the SQL as `$last`; its type is text, layer, number, or whole (from 0). "looks back" (a parameter, or a
number) says that the query asks nothing beyond so many latest executions of each system: other runs are left out, and need
not be opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tripos.errors import InputError, UsageError, quoted, suggest
from tripos.files.streams import read_text

OWN = "configs/queries"
"""Where a project keeps its saved queries; one of a shipped name takes its place."""

Type = Literal["text", "whole", "number", "layer"]
LAYERS = ("retrieval", "generation", "corpus")
_FIELD = re.compile(r"--\s*(title|meaning):\s*(.*\S)\s*")
_PARAMETER = re.compile(r"--\s*parameter\s+(\w+)\s+(text|whole|number|layer)\s*=\s*([^:]*?)\s*:\s*(.*\S)\s*")
_LOOKS_BACK = re.compile(r"--\s*looks back:\s*(\w+)\s*")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


class Parameter(NamedTuple):
    """What a saved query may be asked."""

    name: str
    type: Type
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved query."""

    name: str
    path: str
    title: str
    meaning: str
    parameters: tuple[Parameter, ...]
    sql: str
    looks_back: str | None = None

    def recent(self, values: Mapping[str, Any]) -> int | None:
        """How many latest executions the query looks at; None: all."""
        if self.looks_back is None:
            return None
        return int(values.get(self.looks_back, self.looks_back))


def folders() -> list[Path]:
    """Where saved queries are looked for: the project's own, then those that ship with Tripos."""
    here = Path(__file__).parent
    shipped = here / "queries"  # in a wheel; in a checkout they stand where users keep theirs
    return [Path(OWN), shipped if shipped.is_dir() else here.parents[2] / OWN]


def saved_queries() -> dict[str, Saved]:
    """Every saved query by name; raises InputError for one with a broken header."""
    found: dict[str, Saved] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.sql")):
            if path.stem not in found:
                found[path.stem] = load(str(path))
    return dict(sorted(found.items()))


def saved(name: str) -> Saved:
    """The saved query of that name; raises UsageError where there is none."""
    every = saved_queries()
    if name not in every:
        near = suggest(name, every)
        raise UsageError(f'"{quoted(name)}" is no saved query{near}: tripos query --list lists them; SQL has spaces')
    return every[name]


def load(path: str) -> Saved:
    """A file of SQL; without a header it is a query all the same."""
    sql = read_text(path)
    fields: dict[str, str] = {}
    parameters: list[Parameter] = []
    looks_back: str | None = None
    for number, line in enumerate(sql.splitlines(), 1):
        if not line.startswith("--"):
            break
        if found := _FIELD.fullmatch(line):
            fields[found[1]] = f"{fields[found[1]]} {found[2]}" if found[1] in fields else found[2]
        elif found := _PARAMETER.fullmatch(line):
            parameters.append(_parameter(found, path, number))
        elif found := _LOOKS_BACK.fullmatch(line):
            looks_back = found[1]
            if not looks_back.isdecimal() and looks_back not in {one.name for one in parameters if one.type == "whole"}:
                text = f"{looks_back} is no number, and no whole parameter of a line before it"
                raise InputError.at(path, text, line=number, field="looks back")
        elif re.match(r"--\s*param", line):
            text = "a parameter is written: -- parameter NAME text|whole|number|layer = DEFAULT: meaning"
            raise InputError.at(path, text, line=number)
    title, meaning = fields.get("title", Path(path).stem), fields.get("meaning", "")
    return Saved(Path(path).stem, path, title, meaning, tuple(parameters), sql, looks_back)


def _parameter(found: re.Match[str], path: str, line: int) -> Parameter:
    parameter = Parameter(found[1], found[2], found[3], found[4])  # type: ignore[arg-type]  # one of three, by the pattern
    try:
        _typed(parameter, parameter.default)
    except UsageError as error:
        raise InputError.at(path, f"default of {error}", line=line) from None
    return parameter


def given(texts: Mapping[str, str], parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """Values for a saved query's parameters, defaults filled in; raises UsageError for one that it does not have."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in texts:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"--param {quoted(name)}: the query has no such parameter{suggest(name, known)}; {has}")
    return {name: _typed(parameter, texts.get(name, parameter.default)) for name, parameter in known.items()}


def _typed(parameter: Parameter, value: str) -> str | int | float:
    if parameter.type == "layer" and value not in LAYERS:
        near = suggest(value, LAYERS)
        raise UsageError(f'parameter {parameter.name}: "{quoted(value)}" is no layer{near}: {", ".join(LAYERS)}')
    if parameter.type in ("text", "layer"):
        return value
    if parameter.type == "whole" and value.startswith("-"):
        raise UsageError(f'parameter {parameter.name}: "{quoted(value)}" is less than 0')
    if not (_WHOLE if parameter.type == "whole" else _NUMBER).fullmatch(value):
        raise UsageError(
            f'parameter {parameter.name}: "{quoted(value)}" is no {parameter.type} number'.replace("number number", "number")
        )
    return int(value) if parameter.type == "whole" else float(value)


def guessed(text: str) -> str | int | float:
    """A value for a parameter of ad hoc SQL: a number where it is written as one; '"7"' is the text 7."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
