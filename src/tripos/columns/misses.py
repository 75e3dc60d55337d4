"""The stories of missed rows: told when the row is measured, put aside as text, completed when the run has its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

import orjson

from tripos.columns.ranking import Ranked
from tripos.columns.retrieval import OK, RetrievalColumns, Story
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
        return any(found[source] is None for source in row.expected_sources)
    grouped = {source for group in row.expected_groups for source in group}
    wanted = [*row.expected_groups, *((s,) for s in row.expected_sources if s not in grouped)]
    return any(all(found.get(source) is None for source in group) for group in wanted)


def miss_line(
    row: RetrievalJudgment,
    reasons: Sequence[MissReason],
    depth: int,
    story: Story,
    came: tuple[Ranked, Sequence[int], Sequence[str]],
) -> bytes:
    """A miss as JSON, still without run_id and fingerprint and its closing brace.

    `came` is the ranking, the places in it that count as positions, and the source at each of these.
    """
    found, order, sources = came
    results = [
        {
            "rank": rank,
            "fragment_id": found.ids[k],
            "source_id": sources[rank - 1],
            "score": None if found.scores is None else found.scores[k] + 0.0,
        }
        for rank, k in enumerate(order[:depth], 1)
    ]
    return _line(row, reasons, depth, story, results)


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


def miss_lines(columns: RetrievalColumns, run_id: str, configuration: str) -> Iterator[bytes]:
    """Every scored row with at least one reason as a line of misses.jsonl (contract RetrievalMiss), by query id."""
    end = orjson.dumps({"run_id": run_id, "configuration_fingerprint": configuration}, option=orjson.OPT_APPEND_NEWLINE)
    for i, row in enumerate(columns.rows):
        if columns.state[i] != OK:
            story = Story(error=columns.errors.get(i))
            yield _line(row, reasons_of(int(columns.reasons[i])), int(columns.depth[i]), story, ()) + b"," + end[1:]
        elif columns.places[i] >= 0:
            yield columns.stories.read(int(columns.places[i])) + b"," + end[1:]
