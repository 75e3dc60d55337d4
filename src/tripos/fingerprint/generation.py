"""What is digested of generation judgments and of answers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tripos.fingerprint.coverage import EXCLUDED

if TYPE_CHECKING:  # contracts of other layers are made when their rows are: to make them takes 20 ms
    from tripos.contracts.generation import Answered, Judged, Requirement


@functools.cache
def judged_fields() -> frozenset[str]:
    """Fields of a generation judgment that its digest covers."""
    from tripos.contracts.generation import GenerationJudgment

    return frozenset(GenerationJudgment.model_fields) - EXCLUDED["GenerationJudgment"].keys()


@functools.cache
def answered_fields() -> frozenset[str]:
    """Fields of an answer that its digest covers."""
    from tripos.contracts.generation import GenerationAnswer

    return frozenset(GenerationAnswer.model_fields) - EXCLUDED["GenerationAnswer"].keys()


def generation_judgment_content(row: Judged) -> dict[str, Any]:
    """What judgments_digest covers of one reviewed part, whichever form it came in: defaults filled in, sets sorted."""
    content: dict[str, Any] = row.model_dump(mode="json", include=set(judged_fields()))
    content["accepted_fragment_ids"] = sorted(set(row.accepted_fragment_ids))
    content["citation_requirements"] = sorted(map(_requirement, row.citation_requirements), key=lambda r: r["requirement_id"])
    return content


def _requirement(row: Requirement) -> dict[str, Any]:
    return {
        "requirement_id": row.requirement_id,
        "acceptable_fragment_ids": sorted(set(row.acceptable_fragment_ids)),
        "acceptable_evidence": sorted([e.source_id, e.quote] for e in row.acceptable_evidence),
        "importance": row.importance,
    }


def answer_content(row: Answered) -> dict[str, Any]:
    """What answers_digest covers of one answer: citations and evidence as sets."""
    content: dict[str, Any] = row.model_dump(mode="json", include=set(answered_fields()))
    content["cited_fragment_ids"] = sorted(set(row.cited_fragment_ids))
    if row.evidence_fragment_ids is not None:
        content["evidence_fragment_ids"] = sorted(set(row.evidence_fragment_ids))
    return content
