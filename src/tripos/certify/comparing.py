"""What is, against what it should be: field by field, and row by row."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tripos.contracts.base import shown
from tripos.errors import InputError, TriposError, quoted
from tripos.files.streams import physical_lines
from tripos.fingerprint import unordered

TOLERANCE = 1e-9
_NAMES = ("name", "collection", "query_id", "k")


def differing(found: Any, again: Any, where: str = "", holder: str = "the report") -> Iterator[str]:
    """Each field in which two JSON values differ, numbers by more than 1e-9, with both values."""
    if isinstance(found, dict) and isinstance(again, dict):
        for key in dict.fromkeys((*found, *again)):
            inner = f"{where}.{key}" if where else str(key)
            if key not in found or key not in again:
                yield _told(inner, _part(found, key), _part(again, key), holder)
            else:
                yield from differing(found[key], again[key], inner, holder)
    elif isinstance(found, list) and isinstance(again, list):
        yield from _lists(found, again, where, holder)
    elif not _same(found, again):
        yield _told(where, shown(found), shown(again), holder)


def _part(whole: Mapping[str, Any], key: str) -> str:
    return shown(whole[key]) if key in whole else "absent"


def _told(where: str, found: str, again: str, holder: str) -> str:
    return f"{where}: {found} in {holder}, {again} recomputed"


def _lists(found: list[Any], again: list[Any], where: str, holder: str) -> Iterator[str]:
    if len(found) != len(again):
        yield _told(where, f"{len(found)} entries", f"{len(again)}", holder)
    for n, (one, other) in enumerate(zip(found, again, strict=False)):
        cutoff = f" (k {n + 1})" if "@k." in where else ""
        yield from differing(one, other, f"{where}[{_name(one, n)}]{cutoff}", holder)


def _name(item: Any, n: int) -> str:
    """A list entry by what it is called, where it says so."""
    if not isinstance(item, dict):
        return str(n)
    if "by" in item:
        return f"{item['by']}={item.get('value')}"
    return next((str(item[key]) for key in _NAMES if key in item), str(n))


def _same(one: Any, other: Any) -> bool:
    if _is_number(one) and _is_number(other):
        return bool(abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other)))
    return type(one) is type(other) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A file of rows that a run wrote, against the rows that it should hold."""

    path: str
    digest: str
    differences: tuple[str, ...] = ()
    fault: TriposError | None = None


def rows_file(path: str, lines: Callable[[], Iterable[bytes]]) -> RowsFile:
    """Compare the file with finished lines, whatever their order and white space.

    Lines that are the same bytes are not parsed; `lines` is called again where some are not.
    """
    wanted = [hashlib.sha256(line.rstrip(b"\n")).digest() for line in lines()]
    digest = unordered(wanted)
    try:
        found = Counter(hashlib.sha256(line).digest() for _, line, _ in physical_lines(path))
        told = () if found == Counter(wanted) else tuple(_rows(path, lines()))
    except InputError as fault:
        return RowsFile(path, digest, fault=fault)
    return RowsFile(path, digest, told)


def _rows(path: str, lines: Iterable[bytes]) -> Iterator[str]:
    again = {row["query_id"]: row for row in map(orjson.loads, lines)}
    seen: set[str] = set()
    for number, line, _ in physical_lines(path):
        row = _parsed(line)
        if row is None or not isinstance(name := row.get("query_id"), str):
            yield f"{path}:{number}: is no row of this file"
        elif name in seen or name not in again:
            yield f'{path}:{number}: a row of "{quoted(name)}" too many'
        else:
            seen.add(name)
            told = differing(row, again[name], holder="the file")
            yield from (f"{path}:{number}: {quoted(name)}: {line}" for line in told)
    yield from (f'{path}: the row of "{quoted(name)}" is missing' for name in again if name not in seen)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None
