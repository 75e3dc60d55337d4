"""The one ranking rule: from a row as its file gives it to ids and scores, best first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from tripos.contracts.retrieval import RankedRow
from tripos.errors import Findings, Place, quoted
from tripos.fingerprint import eight_bytes_each, packed_content

Order = Literal["strict", "list", "score", "trec"]


class Ranked(NamedTuple):
    """Fragment ids of one query, best first; `scores` and `sources` are parallel to them, `distinct` is their set if known."""

    ids: Sequence[str]
    scores: Sequence[float] | None
    sources: Sequence[str | None] | None
    distinct: set[str] | None = None


def ranked(row: RankedRow, order: Order, findings: Findings) -> Ranked:
    """Put the row's results in order.

    strict: the list is the order; given ranks must agree with it and scores may not rise. list: the list is trusted.
    score: by score descending, list order in ties. trec: by score as 32-bit float descending, then id descending by bytes.
    """
    if order in ("strict", "list"):
        problem = disorder(row)
        if problem and order == "strict":
            position, field, message = problem
            place = row.place if row.lines is None else Place(row.place.file, row.lines[position - 1])
            findings.error("order", place, field, message + " (--order list|score|trec decides)")
        elif problem:
            findings.lenient("reordered")
        return Ranked(row.fragment_ids, row.scores, row.sources)
    if row.scores is None:
        if row.fragment_ids:
            findings.error("scores", row.place, "scores", f"missing: --order {order} sorts by them")
        return Ranked(row.fragment_ids, None, row.sources)
    places = _by_score(row.scores) if order == "score" else _by_trec(row.scores, row.fragment_ids)
    if places != list(range(len(places))):
        findings.lenient("reordered")
    return Ranked(
        [row.fragment_ids[i] for i in places],
        [row.scores[i] for i in places],
        None if row.sources is None else [row.sources[i] for i in places],
    )


def joined(row: RankedRow, found: Ranked) -> str:
    """The ids, with NUL between them."""
    return row.joined if row.joined is not None and found.ids is row.fragment_ids else "\0".join(found.ids)


def results_digest(row: RankedRow, found: Ranked) -> bytes:
    """What the results digest is made from of one query."""
    packed = row.packed if row.packed is not None and found.scores is row.scores else None
    if packed is None and found.scores is not None:
        packed = eight_bytes_each(found.scores)
    content = packed_content(row.query_id, joined(row, found) if found.ids else None, packed, row.error)
    return hashlib.sha256(content).digest()


def disorder(row: RankedRow) -> tuple[int, str, str] | None:
    """The first (position, field, message) in which the row's own ranks or scores contradict its list order."""
    for position, rank in enumerate(row.ranks or (), 1):
        if rank is not None and rank != position:
            return position, "rank", f"{rank} stands at position {position} of the list"
    scores = row.scores or ()
    if row.in_order or list(scores) == sorted(scores, reverse=True):
        return None
    for position in range(1, len(scores)):
        if scores[position] > scores[position - 1]:
            text = f"rise from {float(scores[position - 1])!r} to {float(scores[position])!r} at position {position + 1}"
            return position + 1, "scores", text
    return None


def _by_score(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: -scores[i])


def _by_trec(scores: Sequence[float], ids: Sequence[str]) -> list[int]:
    single = single_precision(scores)
    by_id = sorted(range(len(ids)), key=lambda i: ids[i].encode(), reverse=True)
    return sorted(by_id, key=lambda i: -single[i])


def single_precision(scores: Sequence[float]) -> list[float]:
    """Scores as 32-bit floats, the precision at which trec_eval sees ties."""
    with np.errstate(over="ignore"):
        single: list[float] = np.asarray(scores, dtype=np.float64).astype(np.float32).tolist()
    return single


def without_duplicates(found: Ranked, keep_first: bool, place: Place, findings: Findings) -> Ranked:
    """Drop a fragment's second and later places, where that is allowed; else note the error."""
    distinct = set(found.ids)
    if len(distinct) == len(found.ids):
        return Ranked(found.ids, found.scores, found.sources, distinct)
    kept = sorted({name: i for i, name in reversed(list(enumerate(found.ids)))}.values())
    if keep_first:
        findings.lenient("duplicates", len(found.ids) - len(kept))
    else:
        twice = next(name for i, name in enumerate(found.ids) if name in found.ids[:i])
        text = f'"{quoted(twice)}" stands in the list more than once (--duplicates keep-first drops the later ones)'
        findings.error("duplicate_result", place, "results", text)
    return select(found, kept)


def select(found: Ranked, kept: Sequence[int]) -> Ranked:
    """The results at the given positions (from 0)."""
    return Ranked(
        [found.ids[i] for i in kept],
        None if found.scores is None else [found.scores[i] for i in kept],
        None if found.sources is None else [found.sources[i] for i in kept],
    )
