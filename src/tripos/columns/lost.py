"""Why a row of the corpus layer is a miss, and the misses as they are written."""

from __future__ import annotations

from collections.abc import Iterator

from tripos.columns.corpus import CorpusColumns, CorpusStory
from tripos.contracts.corpus import LOSSES, CorpusJudgment, CorpusMiss, CorpusMissReason


def corpus_miss_reasons(row: CorpusJudgment, story: CorpusStory) -> list[CorpusMissReason]:
    """Every reason, of the closed list, for which a measured row is a miss."""
    charged = {lost.charged_to for lost in story.lost}
    reasons: list[CorpusMissReason] = [loss for loss in LOSSES if loss in charged]
    reasons += ["relationship_absent"] if story.absent_relationships else []
    reasons += ["not_empty"] if not row.should_match and story.routed else []
    reasons += ["leak"] if story.leaked else []
    return reasons


def corpus_misses(columns: CorpusColumns, run_id: str, configuration: str | None) -> Iterator[CorpusMiss]:
    """Every scored row with at least one reason, by query id."""
    for row, story, reasons in zip(columns.rows, columns.stories, columns.reasons, strict=True):
        if reasons:
            yield CorpusMiss(
                query_id=row.query_id,
                query=row.query,
                category=row.category,
                split=row.split,
                reasons=tuple(reasons),
                expected_sources=row.expected_sources,
                routed_collections=story.routed,
                searched=tuple(story.searched),
                lost=tuple(story.lost),
                recovered=tuple(story.recovered),
                absent_relationships=tuple(story.absent_relationships),
                leaked=story.leaked,
                top_k=columns.top_k,
                merged=story.merged,
                final=story.final,
                error=story.error,
                run_id=run_id,
                configuration_fingerprint=configuration,
            )
