"""The quick way to judgments: whether the strict contract would accept a parsed row without a word.

It says no wherever it is not sure, and the contract then decides and reports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from tripos.contracts.base import MAX_WHOLE
from tripos.contracts.retrieval import ReviewStatus, Split

_INFINITY = float("inf")
_MAX_K = 1_000_000_000
_MAX_GRADE = 100
_STR, _NUMBERS, _NONE = {str}, {int, float}, type(None)
_STATUSES, _SPLITS = frozenset(get_args(ReviewStatus)), frozenset(get_args(Split))
NUL = b"\\u0000"
"""How NUL, which no id may hold, is written in JSON; a line that holds it is not for the quick way."""


def _text(value: Any) -> bool:
    return type(value) is str


def _text_or_null(value: Any) -> bool:
    return type(value) is str or value is None


def _id(value: Any) -> bool:
    return type(value) is str and value != ""


def _ids(value: Any) -> bool:
    return type(value) is list and ("" not in value and set(map(type, value)) <= _STR)


def _groups(value: Any) -> bool:
    return type(value) is list and all(map(_ids, value)) and all(value)


def _whole(value: Any) -> bool:
    return type(value) is int and -MAX_WHOLE <= value <= MAX_WHOLE


def _number(value: Any) -> bool:
    return _whole(value) or (type(value) is float and -_INFINITY < value < _INFINITY)


def _scalar(value: Any) -> bool:
    return type(value) in (str, bool, _NONE) or _number(value)


def _grades(value: Any) -> bool:
    if not value:
        return value is None or type(value) is dict
    if type(value) is not dict or "" in value:
        return False
    grades = value.values()
    return set(map(type, grades)) <= _NUMBERS and min(grades) > 0 and max(grades) <= _MAX_GRADE


def _evidence(value: Any) -> bool:
    return type(value) is list and all(
        type(item) is dict and item.keys() == {"source_id", "quote"} and all(map(_id, item.values())) for item in value
    )


def _principal(value: Any) -> bool:
    return value is None or (type(value) is dict and value.keys() == {"groups"} and _ids(value["groups"]))


_FITS: dict[str, Callable[[Any], bool]] = {
    "query_id": _id,
    "query": _text_or_null,
    "expected_sources": _ids,
    "should_match": lambda value: type(value) is bool,
    "category": _id,
    "review_status": lambda value: type(value) is str and value in _STATUSES,
    "relevance": _grades,
    "required_sources": _ids,
    "expected_groups": _groups,
    "expected_evidence": _evidence,
    "expected_fragments": _ids,
    "nonrelevant_sources": _ids,
    "forbidden_sources": _ids,
    "filters": lambda value: type(value) is dict and all(map(_scalar, value.values())),
    "principal": _principal,
    "k": lambda value: value is None or (type(value) is int and 1 <= value <= _MAX_K),
    "split": lambda value: value is None or (type(value) is str and value in _SPLITS),
    "slices": lambda value: type(value) is dict and all(type(v) in (str, bool) or _whole(v) for v in value.values()),
    "cluster": lambda value: value is None or _id(value),
    "information_need": _text_or_null,
    "notes": _text_or_null,
    "reviewer": _text_or_null,
    "reviewed_at": _text_or_null,
    "source_file": _text_or_null,
    "tags": lambda value: type(value) is list and all(map(_text, value)),
    "metadata": lambda value: type(value) is dict,
}
_REQUIRED = {"query_id", "query", "expected_sources", "should_match", "category", "review_status"}
_RULED = _FITS.keys() & {"nonrelevant_sources", "forbidden_sources", "expected_groups", "expected_evidence"}


_Shape = tuple[str, ...]
_shapes: dict[_Shape, list[Callable[[Any], bool]] | None] = {}
"""What each field of rows with the same keys must fit, in their order; None where a key is unknown, or one is missing."""
_MANY = 1_000


def is_plain(value: Mapping[str, Any], line: bytes) -> bool:
    """Whether a judgment, as parsed from its line, is sure to fit the contract (RetrievalJudgment), defaults and all."""
    shape = tuple(value)
    if shape not in _shapes:
        _learn(shape)
    all_fit = _shapes[shape]
    if all_fit is None or NUL in line:
        return False
    for fits, given in zip(all_fit, value.values(), strict=True):
        if not fits(given):
            return False
    return _keeps_rules(value)


def _learn(shape: _Shape) -> None:
    if len(_shapes) >= _MANY:
        _shapes.clear()
    known = _FITS.keys() >= set(shape) >= _REQUIRED
    _shapes[shape] = [_FITS[name] for name in shape] if known else None


def _keeps_rules(value: Mapping[str, Any]) -> bool:
    """The rules between the fields of a row."""
    expected, grades = value["expected_sources"], value.get("relevance")
    if value["should_match"] is not bool(expected) or (grades and not expected):
        return False
    if grades is not None and not grades.keys() >= set(expected):
        return False
    category: str = value["category"]
    if category.startswith("multi_hop") or (category == "hard_negative" and not value.get("forbidden_sources")):
        return False
    if category == "authorization" and value.get("principal") is None:
        return False
    return _RULED.isdisjoint(value) or _keeps_finer_rules(value, set(expected))


def _keeps_finer_rules(value: Mapping[str, Any], expected: Collection[str]) -> bool:
    barred, unwanted = set(value.get("forbidden_sources", ())), value.get("nonrelevant_sources", ())
    return (
        barred.isdisjoint(expected)
        and not set(expected).intersection(unwanted)
        and barred.isdisjoint(value.get("required_sources", ()))
        and all(set(expected).issuperset(group) for group in value.get("expected_groups", ()))
        and not (value.get("expected_evidence") and value.get("expected_fragments"))
    )
