"""The quick way to ranked rows: one parse a line and checks on whole lists, no object for each result.

It accepts only what the strict reader would accept without a word, and leaves everything else to it: escapes, unknown or
repeated keys, wrong types, odd numbers. So both give the same rows, and only the strict reader reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from tripos.contracts.retrieval import RankedRow
from tripos.errors import Place

_INFINITY = float("inf")
_BIG = 1 << 1000
_MAX_RANK = 1_000_000_000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARED = {"query_id", "latency_ms", "error", "corpus_digest", "policy_digest"}
_NESTED = _SHARED | {"results"}
_COLUMNAR = _SHARED | {"fragment_ids", "scores"}
_STR, _NUMBERS = {str}, {float, int}


def quick_row(line: bytes, place: Place) -> RankedRow | None:
    """The ranked row on one line, or None where the strict reader must look; flat rows are always left to it."""
    if b"\\" in line:
        return None
    try:
        value = orjson.loads(line)
    except ValueError:
        return None
    if type(value) is not dict:
        return None
    read: Callable[[dict[str, Any], bytes], _Lists | None] = _nested if "results" in value else _columnar
    lists = read(value, line)
    if lists is None or not _shared(value, line):
        return None
    ids, scores = lists[0], _doubles(lists[1])
    in_order = _order(ids, scores)
    if in_order is None:
        return None
    return RankedRow(
        place,
        value["query_id"],
        ids,
        scores,
        latency_ms=value.get("latency_ms"),
        error=value.get("error"),
        corpus_digest=value.get("corpus_digest"),
        policy_digest=value.get("policy_digest"),
        in_order=in_order,
    )


_Lists = tuple[Sequence[str], Sequence[float] | None]


def _nested(value: dict[str, Any], line: bytes) -> _Lists | None:
    """Ids and scores of a row whose results hold exactly those, or ids alone."""
    items = value["results"]
    if not value.keys() <= _NESTED or type(items) is not list:
        return None
    n = len(items)
    try:
        widths = set(map(len, items))
        ids = [item["fragment_id"] for item in items]
        scores = [item["score"] for item in items] if 2 in widths else None
    except (KeyError, TypeError):
        return None
    if len(widths) > 1 or not widths <= {1, 2}:
        return None
    once = line.count(b'"fragment_id"') == n and (scores is None or line.count(b'"score"') == n)
    return (ids, scores) if once and line.count(b'"results"') == 1 else None


def _columnar(value: dict[str, Any], line: bytes) -> _Lists | None:
    """Ids and scores of a row of parallel lists."""
    ids, scores = value.get("fragment_ids"), value.get("scores")
    if not value.keys() <= _COLUMNAR or type(ids) is not list:
        return None
    if scores is not None and (type(scores) is not list or len(scores) != len(ids)):
        return None
    once = line.count(b'"fragment_ids"') == 1 and line.count(b'"scores"') == ("scores" in value)
    return (ids, scores or None) if once else None


def _shared(value: dict[str, Any], line: bytes) -> bool:
    """Whether the fields beside the lists are plain: right types, each given once."""
    name = value.get("query_id")
    if type(name) is not str or not name or line.count(b'"query_id"') != 1:
        return False
    if len(value) == 2:
        return True
    latency, error = value.get("latency_ms"), value.get("error")
    plain = (latency is None or (type(latency) in _NUMBERS and 0 <= latency < _INFINITY)) and (
        error is None or (type(error) is str and error != "")
    )
    stamps = (value.get("corpus_digest"), value.get("policy_digest"))
    return (
        plain
        and all(stamp is None or (type(stamp) is str and _DIGEST.fullmatch(stamp)) for stamp in stamps)
        and all(line.count(f'"{key}"'.encode()) == 1 for key in value)
    )


def _doubles(scores: Sequence[float] | None) -> Sequence[float] | None:
    """Scores with whole numbers as doubles, as the strict reader has them; other types stay, to be refused."""
    if scores is None or int not in set(map(type, scores)):
        return scores
    return [float(score) if type(score) is int and abs(score) < _BIG else score for score in scores]


def _order(ids: Sequence[str], scores: Sequence[float] | None) -> bool | None:
    """Whether scores fall down the list; None where an id or a score is not plain."""
    if not ids:
        return True
    if set(map(type, ids)) != _STR or "" in ids:
        return None
    if scores is None:
        return True
    if set(map(type, scores)) != {float}:
        return None
    if scores == sorted(scores, reverse=True):
        return True if scores[-1] > -_INFINITY and scores[0] < _INFINITY else None
    return False if min(scores) > -_INFINITY and max(scores) < _INFINITY else None


_QUOTES = {3: 10, 4: 12}
"""Quotation marks in a line without escapes: two a key, and two for each of the ids; a repeated key has more."""

_FLAT = ({"query_id", "fragment_id", "rank", "score"}, {"query_id", "fragment_id", "rank"})


def quick_flat(line: bytes) -> tuple[str, str, int, float | None] | None:
    """Query id, fragment id, rank and score of one flat line, or None where the strict reader must look."""
    if b"\\" in line:
        return None
    try:
        value = orjson.loads(line)
        name, fragment, rank = value["query_id"], value["fragment_id"], value["rank"]
        score = value["score"] if len(value) == 4 else None
    except (ValueError, KeyError, TypeError):
        return None
    plain = (
        value.keys() in _FLAT
        and type(name) is str
        and type(fragment) is str
        and type(rank) is int
        and 1 <= rank <= _MAX_RANK
        and (score is None or (type(score) in _NUMBERS and -_INFINITY < score < _INFINITY))
    )
    if not plain or not name or not fragment or line.count(b'"') != _QUOTES[len(value)]:
        return None
    return name, fragment, rank, None if score is None else float(score)
