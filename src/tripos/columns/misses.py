"""The stories of missed rows: told when the row is measured, put aside as text, completed when the run has its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

import numpy as np
import orjson

from tripos.columns.ranking import Ranked
from tripos.columns.retrieval import OK, RetrievalRows, Story
from tripos.contracts.retrieval import MissReason, RetrievalJudgment

REASONS: tuple[MissReason, ...] = get_args(MissReason)
"""The closed list of reasons, in the order of their bits."""


def bits_of(reasons: Iterable[MissReason]) -> int:
    """Reasons as bits of a number."""
    return sum(1 << REASONS.index(reason) for reason in reasons)


def reasons_of(bits: int) -> tuple[MissReason, ...]:
    """The reasons whose bits are set."""
    return tuple(reason for n, reason in enumerate(REASONS) if bits >> n & 1)


def lacks_some(row: RetrievalJudgment, found: Mapping[str, int | None]) -> bool:
    """Whether something expected is beyond limit: a whole group, or a source that stands in no group."""
    if not row.expected_groups:
        return None in [found[source] for source in row.expected_sources]
    grouped = {source for group in row.expected_groups for source in group}
    wanted = [*row.expected_groups, *((s,) for s in row.expected_sources if s not in grouped)]
    return any(all(found.get(source) is None for source in group) for group in wanted)


_BIT = {reason: bits_of([reason]) for reason in REASONS}


def reasons_among(row: RetrievalJudgment, story: Story, first: Mapping[str, int], depth: int, n_results: int) -> int:
    """Every reason, of the closed list, for which a measured row is a miss, as bits; 0 when it is none."""
    bits = 0
    if not row.should_match:
        bits |= _BIT["not_empty"] if n_results else 0
    elif not _some_within(row.expected_sources, first, depth):
        bits |= _BIT["no_hit"]
    elif lacks_some(row, story.found):
        bits |= _BIT["partial"]
    if story.required_absent:
        bits |= _BIT["required_absent"]
    if row.forbidden_sources and _some_within(row.forbidden_sources, first, depth):
        bits |= _BIT["forbidden"]
    if story.leaked:
        bits |= _BIT["leak"]
    return bits | _BIT["filter_violation"] if story.violating else bits


def _some_within(sources: Sequence[str], first: Mapping[str, int], depth: int) -> bool:
    """Whether one of the sources stands within depth."""
    for source in sources:  # noqa: SIM110 - any() over a generator takes thrice the time
        if first.get(source, depth + 1) <= depth:
            return True
    return False


Came = tuple[Ranked, Sequence[int], Sequence[str]]
"""A ranking, the places in it that count as positions, and the source at each of these."""


def told_story(depth: int, story: Story, came: Came) -> bytes:
    """The story of a measured row as short text, from which `miss_lines` makes its line."""
    found, order, sources = came
    if isinstance(order, range):
        ids, scores = found.ids[:depth], found.scores and found.scores[:depth]
    else:
        ids = [found.ids[k] for k in order[:depth]]
        scores = found.scores and [found.scores[k] for k in order[:depth]]
    own = None if sources is found.ids else sources[:depth]
    return orjson.dumps((story.found, story.required_absent, story.leaked, story.violating, ids, own, scores))


def _retold(text: bytes) -> tuple[Story, list[dict[str, object]]]:
    """Story and results from what `told_story` made."""
    ranks, absent, leaked, violating, ids, own, scores = orjson.loads(text)
    results = [
        {"rank": rank, "fragment_id": name, "source_id": source, "score": None if score is None else score + 0.0}
        for rank, (name, source, score) in enumerate(zip(ids, own or ids, scores or [None] * len(ids), strict=True), 1)
    ]
    return Story(ranks, absent, leaked, violating), results


def _line(
    row: RetrievalJudgment, reasons: Sequence[MissReason], depth: int, story: Story, results: Sequence[Mapping[str, object]]
) -> bytes:
    barred = set(row.forbidden_sources)
    told = {
        "query_id": row.query_id,
        "query": row.query,
        "category": row.category,
        "split": row.split,
        "reasons": reasons,
        "depth": depth,
        "expected_sources": row.expected_sources,
        "found": story.found,
        "required_absent": story.required_absent,
        "forbidden": [hit for hit in results if hit["source_id"] in barred],
        "leaked": story.leaked,
        "violating": story.violating,
        "error": story.error,
        "results": results,
    }
    return orjson.dumps(told)[:-1]


def miss_lines(columns: RetrievalRows, run_id: str, configuration: str) -> Iterator[bytes]:
    """Every scored row with at least one reason as a line of misses.jsonl (contract RetrievalMiss), by query id."""
    end = orjson.dumps({"run_id": run_id, "configuration_fingerprint": configuration}, option=orjson.OPT_APPEND_NEWLINE)
    for i in np.flatnonzero(columns.reasons).tolist():
        if columns.state[i] != OK:
            story, results = Story(error=columns.errors.get(i)), list[dict[str, object]]()
        elif columns.places[i] < 0:
            raise ValueError("the stories of misses were not kept: evaluate with keep_misses=True")
        else:
            story, results = _retold(columns.stories.read(int(columns.places[i])))
        row, reasons = columns.rows.trusted(int(columns.numbers[i])), reasons_of(int(columns.reasons[i]))
        yield _line(row, reasons, int(columns.depth[i]), story, results) + b"," + end[1:]
