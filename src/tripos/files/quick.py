"""The quick way to ranked rows: one parse a line and checks on whole lists, no object for each result.

It accepts only what the strict reader would accept without a word, and leaves everything else to it: escapes, unknown or
repeated keys, wrong types, odd numbers. So both give the same rows, and only the strict reader reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import itemgetter
from struct import error as NotPacked  # noqa: N812 - named for what it says here
from struct import pack
from typing import Any

import orjson

from tripos.contracts.retrieval import RankedRow
from tripos.errors import Place
from tripos.fingerprint import eight_bytes_each

_INFINITY = float("inf")
_EXACT = float(1 << 53)
"""Numbers within it are the same ones as whole numbers and as doubles."""
_MAX_RANK = 1_000_000_000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHARED = {"query_id", "latency_ms", "error", "corpus_digest", "policy_digest"}
_NESTED = _SHARED | {"results"}
_COLUMNAR = _SHARED | {"fragment_ids", "scores"}
_NUMBERS = {float, int}
_FALSE, _TRUE = (pack("<d", number) for number in (0, 1))
_ID, _SCORE = itemgetter("fragment_id"), itemgetter("score")


def quick_row(line: bytes, place: Place) -> RankedRow | None:
    """The ranked row on one line, or None where the strict reader must look; flat rows are always left to it."""
    if b"\\" in line:
        return None
    try:
        value = orjson.loads(line)
        return _nested(value, line, place) if "results" in value else _columnar(value, line, place)
    except (ValueError, KeyError, TypeError, OverflowError, NotPacked):
        return None  # no JSON, no list, or something in it that is no id and no number


def _nested(value: dict[str, Any], line: bytes, place: Place) -> RankedRow | None:
    """The row whose results hold exactly ids and scores, or ids alone."""
    items = value["results"]
    if type(value) is not dict or not value.keys() <= _NESTED or type(items) is not list:
        return None
    ids = list(map(_ID, items))
    scores = list(map(_SCORE, items)) if items and len(items[0]) > 1 else None
    quotes = (4 if scores is None else 6) * len(items)
    return _row(value, ids, scores, place) if _quotes(value) + quotes == line.count(b'"') else None


def _columnar(value: dict[str, Any], line: bytes, place: Place) -> RankedRow | None:
    """The row of parallel lists."""
    ids, scores = value["fragment_ids"], value.get("scores")
    if type(value) is not dict or not value.keys() <= _COLUMNAR or type(ids) is not list:
        return None
    if scores is not None and (type(scores) is not list or len(scores) != len(ids)):
        return None
    return _row(value, ids, scores or None, place) if _quotes(value) + 2 * len(ids) == line.count(b'"') else None


def _quotes(value: Mapping[str, Any]) -> int:
    """Quotation marks in a line without escapes, beside its lists: a repeated or unknown key makes more."""
    return 2 * len(value) + 2 * sum([type(given) is str for given in value.values()])


def _row(value: Mapping[str, Any], ids: list[str], scores: list[float] | None, place: Place) -> RankedRow | None:
    """The ranked row, or None where an id, a score or a field beside the lists is not plain."""
    joined = "\0".join(ids)
    in_order, packed = True, None
    if ids and (not ids[0] or not ids[-1] or "\0\0" in joined):
        return None  # an empty id
    if scores is not None:
        packed = pack(f"<{len(scores)}d", *scores)
        falling = sorted(scores, reverse=True)
        low, high = falling[-1], falling[0]
        if not -_EXACT < low <= high < _EXACT:
            return None
        if low <= 1 and high >= 0:  # else none is a truth value, nor −0
            if (_TRUE in packed or _FALSE in packed) and not set(map(type, scores)) <= _NUMBERS:
                return None
            packed = eight_bytes_each(scores)
        in_order = scores == falling
    row = RankedRow(place, value["query_id"], ids, scores, in_order=in_order, joined=joined, packed=packed)
    return row if _beside(value, row) else None


def _beside(value: Mapping[str, Any], row: RankedRow) -> bool:
    """Take the fields beside the lists; False where one is not plain."""
    if type(row.query_id) is not str or not row.query_id:
        return False
    if value.keys().isdisjoint(_OPTIONAL):
        return True
    row.latency_ms, row.error = value.get("latency_ms"), value.get("error")
    row.corpus_digest, row.policy_digest = value.get("corpus_digest"), value.get("policy_digest")
    return (
        (row.latency_ms is None or (type(row.latency_ms) in _NUMBERS and 0 <= row.latency_ms < _INFINITY))
        and (row.error is None or (type(row.error) is str and row.error != ""))
        and all(
            stamp is None or (type(stamp) is str and _DIGEST.fullmatch(stamp) is not None)
            for stamp in (row.corpus_digest, row.policy_digest)
        )
    )


_OPTIONAL = _SHARED - {"query_id"}


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
