"""Whether a search kept to the protocol: a breach is a fault of the search, and stops the batch with its name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from numbers import Real

from tripos.errors import Finding, InputError, Place, quoted, suggest
from tripos.search.protocol import Hit


def checked(returned: object, limit: int, known: Collection[str], searcher: str, query_id: str) -> list[Hit]:
    """The hits of one query with plain strings and floats.

    Args:
        returned: What `search` returned.
        limit: How many hits were asked for.
        known: The ids of all fragments.
        searcher: The name of the search, for the error.
        query_id: The query, for the error.

    Raises:
        InputError: All that is wrong with this list.
    """
    hits, problems = _hits(returned)
    problems = problems or [*_count(hits, limit), *_ids(hits, known), *_scores(hits)]
    if problems:
        name = f'searcher {searcher}, query "{quoted(query_id)}"'
        raise InputError([Finding("searcher", problem, Place(name)) for problem in problems])
    return hits


def _hits(returned: object) -> tuple[list[Hit], list[str]]:
    if not isinstance(returned, Sequence) or isinstance(returned, str | bytes):
        return [], [f"returned an object of type {type(returned).__name__}: return a list of tripos.search.Hit"]
    hits = []
    for rank, hit in enumerate(returned, 1):
        if not (isinstance(hit, Hit) and isinstance(hit.fragment_id, str) and _is_number(hit.score)):
            said = quoted(repr(hit))
            return [], [f"rank {rank} is {said}: return tripos.search.Hit(fragment_id, score), a string and a number"]
        hits.append(Hit(str(hit.fragment_id), float(hit.score)))
    return hits, []


def _is_number(score: object) -> bool:
    return isinstance(score, Real) and not isinstance(score, bool)


def _count(hits: list[Hit], limit: int) -> Iterator[str]:
    if len(hits) > limit:
        yield f"returned {len(hits):,} hits for limit {limit:,}: cut the list at the limit"


def _ids(hits: list[Hit], known: Collection[str]) -> Iterator[str]:
    first: dict[str, int] = {}
    for rank, (name, _) in enumerate(hits, 1):
        if name not in known:
            yield f'rank {rank}: "{quoted(name)}" is in no fragment{suggest(name, known)}'
        if name in first:
            yield f'rank {rank}: "{quoted(name)}" is also at rank {first[name]}: return each fragment once'
        first.setdefault(name, rank)


def _scores(hits: list[Hit]) -> Iterator[str]:
    before = math.inf
    for rank, (_, score) in enumerate(hits, 1):
        if not math.isfinite(score):
            yield f"rank {rank}: the score is {score}: return finite numbers"
            continue
        if score > before:
            yield f"rank {rank}: the score {score:g} is above {before:g} at the rank before: return the best first"
        before = score
