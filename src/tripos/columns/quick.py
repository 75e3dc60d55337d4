"""The quick way through alignment: plain lists for rows that ask for graded sources and for nothing else.

Where `is_plain` says so, it comes to what `columns.align` comes to at length: results are sources, in order, each once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from tripos.columns.judged import Wanted
from tripos.columns.misses import bits_of
from tripos.columns.ranking import Ranked
from tripos.columns.retrieval import EXPECTED, GRADED, Places, Story
from tripos.columns.ties import Run, Targets
from tripos.contracts.retrieval import RankedRow

_NOT_EMPTY, _NO_HIT, _PARTIAL = (bits_of([reason]) for reason in ("not_empty", "no_hit", "partial"))


class Placed(NamedTuple):
    """A list, and where judged sources stand in it: anywhere, and within the limit."""

    found: Ranked
    anywhere: Places
    within: Places


def is_plain(row: RankedRow) -> bool:
    """Whether a row may go this way, if its ids differ: in order, without an error, and its sources are its ids."""
    return row.in_order and row.error is None and row.joined is not None and "::" not in row.joined


def placed(row: RankedRow, wanted: Wanted, limit: int) -> Placed | None:
    """Where a plain row has the sources of its judgment; None where a result stands in it twice."""
    ids = row.fragment_ids
    distinct = set(ids)
    if len(distinct) < len(ids):
        return None
    places = sorted([(ids.index(name) + 1, n) for n, name in enumerate(wanted.sources) if name in distinct])
    within = places if not places or places[-1][0] <= limit else [place for place in places if place[0] <= limit]
    return Placed(Ranked(ids, row.scores, None, distinct), places, within)


def reasons(at: Placed, wanted: Wanted, depth: int) -> int:
    """Every reason for which the row is a miss, as bits; 0 when it is none."""
    ranks = [rank for rank, n in at.within if n < wanted.n_expected]
    if not wanted.n_expected:
        return _NOT_EMPTY if at.found.ids else 0
    if not ranks or ranks[0] > depth:
        return _NO_HIT
    return _PARTIAL if len(ranks) < wanted.n_expected else 0


def story(at: Placed, wanted: Wanted) -> Story:
    """What the row's miss tells."""
    first = {wanted.sources[n]: rank for rank, n in at.within}
    return Story({name: first.get(name) for name in wanted.sources[: wanted.n_expected]})


def moving(at: Placed, runs: Sequence[Run]) -> list[Run]:
    """The runs of equal scores that hold a judged source."""
    ranks = [rank for rank, _ in at.anywhere]
    return [run for run in runs if bisect_right(ranks, run[0]) < bisect_right(ranks, run[1])]


def targets(wanted: Wanted) -> Targets:
    """Each judged source's gain and what it is to the row."""
    flags = [GRADED | EXPECTED] * wanted.n_expected + [GRADED] * (len(wanted.sources) - wanted.n_expected)
    return dict(zip(wanted.sources, zip(wanted.grades, flags, strict=True), strict=True))
