"""Why a row is a miss, from its judgment and the story of its results."""

from __future__ import annotations

from collections.abc import Iterator

from tripos.columns.retrieval import FAILED, RetrievalColumns, RowStory
from tripos.contracts.retrieval import MissReason, RetrievalJudgment, RetrievalMiss


def miss_reasons(row: RetrievalJudgment, story: RowStory, depth: int, n_results: int) -> list[MissReason]:
    """Every reason, of the closed list, for which a measured row is a miss; [] when it is none.

    Args:
        row: The judgment.
        story: What came; `found` holds ranks within limit.
        depth: The row's own k, else top_k.
        n_results: Results left after min_score and limit.
    """
    hit = any((story.found.get(source) or depth + 1) <= depth for source in row.expected_sources)
    checks: list[tuple[MissReason, bool]] = [
        ("no_hit", row.should_match and not hit),
        ("partial", hit and _lacks_some(row, story)),
        ("required_absent", bool(story.required_absent)),
        ("not_empty", not row.should_match and n_results > 0),
        ("forbidden", bool(story.forbidden)),
        ("leak", bool(story.leaked)),
        ("filter_violation", bool(story.violating)),
    ]
    return [reason for reason, holds in checks if holds]


def _lacks_some(row: RetrievalJudgment, story: RowStory) -> bool:
    """Whether something expected is beyond limit: a whole group, or a source that stands in no group."""
    grouped = {source for group in row.expected_groups for source in group}
    wanted = [*row.expected_groups, *((s,) for s in row.expected_sources if s not in grouped)]
    return any(all(story.found.get(source) is None for source in group) for group in wanted)


def misses(columns: RetrievalColumns, run_id: str, configuration: str) -> Iterator[RetrievalMiss]:
    """Every scored row with at least one reason, by query id."""
    for i, row in enumerate(columns.rows):
        if not columns.reasons[i]:
            continue
        story = columns.stories[i]
        yield RetrievalMiss(
            query_id=row.query_id,
            query=row.query,
            category=row.category,
            split=row.split,
            reasons=tuple(columns.reasons[i]),
            depth=int(columns.depth[i]),
            expected_sources=row.expected_sources,
            found=story.found,
            required_absent=tuple(story.required_absent),
            forbidden=tuple(story.forbidden),
            leaked=tuple(story.leaked),
            violating=tuple(story.violating),
            error=story.error if columns.state[i] == FAILED else None,
            results=tuple(story.results),
            run_id=run_id,
            configuration_fingerprint=configuration,
        )
