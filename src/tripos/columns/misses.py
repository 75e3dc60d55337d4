"""Why a row is a miss, from its judgment and the story of its results."""

from __future__ import annotations

from tripos.columns.retrieval import RowStory
from tripos.contracts.retrieval import MissReason, RetrievalJudgment


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
