"""The fingerprint for a person: components A–D and the values they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tripos.contracts.base import shown
from tripos.contracts.reports import Fingerprint

_NAMES = {"A": "corpus", "B": "judgments", "C": "search policy", "D": "evidence depth"}


def render_fingerprint(fingerprint: Fingerprint) -> str:
    """The components, one block each, then what they combine to."""
    return "\n".join([*_components(fingerprint), *_combined(fingerprint)]) + "\n"


def _components(fingerprint: Fingerprint) -> Iterator[str]:
    for letter, name in _NAMES.items():
        component = fingerprint.components[letter]
        yield f"{letter} {name:<16}{component.digest or 'none given'}"
        for key, value in (component.values or {}).items():
            yield from (f"    {line}" for line in _lines(key, value))


def _lines(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, below in value.items():
            yield from _lines(f"{key}.{inner}", below)
    else:
        yield f"{key:<28}{shown(value)}"


def _combined(fingerprint: Fingerprint) -> Iterator[str]:
    yield f"configuration     {fingerprint.configuration}   (A B C D: what reports of one run share)"
    yield f"system            {fingerprint.system}   (A C D: what answers are stamped with)"
    yield f"measurement       {fingerprint.measurement}   (how the numbers are taken)"
