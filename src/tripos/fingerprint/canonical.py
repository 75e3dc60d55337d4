"""Canonical JSON (RFC 8785, JCS) and digests of it: equal content has equal digests, whatever the order of lines and keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson
import rfc8785

_MAX_PLAIN_INT = 2**53


def canonical(value: Any) -> bytes:
    """RFC 8785 canonical JSON of `value`.

    Raises ValueError for NaN, Infinity and integers beyond 2^53, which canonical JSON cannot carry.
    """
    try:
        return orjson.dumps(plain(value), option=orjson.OPT_SORT_KEYS)
    except NotPlainError:
        return rfc8785.dumps(value)


_AS_THEY_ARE = {str, bool, type(None)}


class NotPlainError(Exception):
    """The value needs the general writer."""


def plain(value: Any) -> Any:
    """The value with whole floats as integers, where orjson then writes it the canonical way; else NotPlainError.

    That is: keys of ASCII alone, integers within 2^53, other floats of a size that no writer puts in exponent form.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        if not "".join(value).isascii():
            raise NotPlainError
        return {key: inner if type(inner) in _AS_THEY_ARE else plain(inner) for key, inner in value.items()}
    if kind is list or kind is tuple:
        return value if set(map(type, value)) <= _AS_THEY_ARE else [plain(inner) for inner in value]
    if kind is int and -_MAX_PLAIN_INT < value < _MAX_PLAIN_INT:
        return value
    if kind is float:
        if value.is_integer() and -_MAX_PLAIN_INT < value < _MAX_PLAIN_INT:
            return int(value)
        if 1e-6 <= abs(value) < 1e15:
            return value
    raise NotPlainError


def digest(value: Any) -> str:
    """sha256 of the canonical JSON of `value`, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def unordered(digests: Iterable[bytes]) -> str:
    """One digest of many row digests, whatever their order: sha256 over them sorted."""
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def row_digest(value: Any) -> bytes:
    """sha256 of the canonical JSON of one row."""
    return hashlib.sha256(canonical(value)).digest()


class RowDigests:
    """Digests of many rows, one by one; the result does not depend on their order. 32 bytes a row."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def __len__(self) -> int:
        return len(self._rows) // 32

    def add(self, row: bytes) -> None:
        """Add one row's 32-byte digest."""
        self._rows += row

    def extend(self, other: RowDigests) -> None:
        """Add the digests of other rows."""
        self._rows += other._rows

    def unordered(self) -> str:
        """One digest of all."""
        return unordered(bytes(self._rows[i : i + 32]) for i in range(0, len(self._rows), 32))


def round12(value: float) -> float:
    """`value` to 12 significant digits, as reports carry it; −0 becomes 0."""
    return float(f"{value:.12g}") + 0.0
