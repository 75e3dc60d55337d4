"""Rows as a table for a terminal, as JSON, JSONL or CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import orjson

from tripos.errors import UsageError, printable

MOST_ROWS = 100
"""Rows shown on a terminal."""

_WIDEST = 60
_ID = 12


def render_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], total: int) -> str:
    """Aligned columns, numbers to the right; run ids cut at 12 characters, long texts at 60; null as –."""
    columns, names = [printable(name, keep="") for name in columns], columns
    cells = [[_cell(name, value) for name, value in zip(names, row, strict=True)] for row in rows]
    right = [all(value is None or _is_number(value) for value in column) for column in zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = [_line(row, widths, right or [False] * len(columns)) for row in (list(columns), *cells)]
    if (rest := total - len(rows)) > 0:
        lines.append(f"… {rest:,} more row{'' if rest == 1 else 's'} (--csv, --json, --jsonl and --parquet have all)")
    return "\n".join([*lines, f"{total:,} {'row' if total == 1 else 'rows'}"]) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    told = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right, strict=True))
    return "  ".join(told).rstrip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        told = " ".join(value)
    else:
        told = value if isinstance(value, str) else _text(value)
    told = printable(told, keep="")
    if (name == "run_id" or name.endswith("_run_id")) and len(told) == 64:
        return told[:_ID]
    return told if len(told) <= _WIDEST else f"{told[: _WIDEST - 1]}…"


def _text(value: Any) -> str:
    made = plain_value(value, say=str)
    return made if isinstance(made, str) else orjson.dumps(made).decode()


def plain_value(value: Any, column: str = "", say: Callable[[Any], str] | None = None) -> Any:
    """A value of DuckDB as JSON.

    Args:
        value: As DuckDB's Python side gives it.
        column: Its column, for the message.
        say: Makes text of what JSON cannot say: NaN, infinities, bytes, decimals and intervals. Default: decimals become
            numbers, intervals their usual text, and UsageError is raised for the others.
    """
    made: Any
    match value:
        case _ if say is not None and _is_odd(value):
            made = say(value)
        case float() if not math.isfinite(value):
            raise UsageError(f'column "{column}" holds {value}, which JSON cannot say: nullif or isfinite may help')
        case bytes():
            raise UsageError(f'column "{column}" holds bytes: hex(…) or base64(…) makes text of them')
        case None | bool() | float() | str():
            made = value
        case int():
            made = value if abs(value) < 2**63 else str(value)
        case Decimal():
            made = float(value)
        case datetime() | date() | time():
            made = value.isoformat()
        case list() | tuple():
            made = [plain_value(entry, column, say) for entry in value]
        case dict():
            made = {str(key): plain_value(entry, column, say) for key, entry in value.items()}
        case _:
            made = str(value)  # intervals, UUIDs
    return made


def _is_odd(value: Any) -> bool:
    return isinstance(value, bytes | Decimal | timedelta) or (isinstance(value, float) and not math.isfinite(value))


def objects(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], say: Callable[[Any], str] | None = None
) -> Iterator[dict[str, Any]]:
    """Rows as JSON objects, `say` as in `plain_value`; raises UsageError where two columns have one name."""
    if twice := next((name for n, name in enumerate(columns) if name in columns[:n]), None):
        raise UsageError(f'two columns are named "{twice}": give one of them another name with AS')
    for row in rows:
        yield {name: plain_value(value, name, say) for name, value in zip(columns, row, strict=True)}


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One object a line."""
    for row in rows:
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE).decode()


def json_document(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One document: a list of objects, an object a line."""
    first = True
    for row in rows:
        yield ("[\n" if first else ",\n") + orjson.dumps(row).decode()
        first = False
    yield "[]\n" if first else "\n]\n"


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """RFC 4180 with line ends of this system's terminals; null is empty, lists are JSON."""
    yield _csv(columns)
    for row in rows:
        yield _csv([_csv_value(name, value) for name, value in zip(columns, row, strict=True)])


def _csv_value(name: str, value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    made = plain_value(value, name)
    if made is None or isinstance(made, str):
        return made or ""
    return orjson.dumps(made).decode()


def _csv(values: Sequence[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(values)
    return stream.getvalue()
