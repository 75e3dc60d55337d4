"""Every field of the generation contracts is in a digest, or excluded with its reason; sets and forms do not matter."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generation_worlds import need, quote
from tripos.contracts.config import AbstentionConfig, GenerationConfig
from tripos.contracts.generation import (
    STATUSES,
    GenerationAnswer,
    GenerationJudgment,
    GenerationRow,
    Requirement,
    Status,
)
from tripos.fingerprint import (
    EXCLUDED,
    answer_content,
    answered_fields,
    digest,
    generation_judgment_content,
    judged_fields,
)

JUDGED: dict[str, Any] = {
    "query_id": "q1",
    "query": "What?",
    "citation_requirements": [need("b", "f1", "f2"), quote("a", "s1", "words")],
    "accepted_fragment_ids": ["f1", "f2"],
    "expected_answerable": True,
}
JUDGED_CHANGES: dict[str, Any] = {
    "query_id": "q2",
    "query": "Who?",
    "citation_requirements": [need("b", "f1")],
    "accepted_fragment_ids": ["f1", "f2", "f3"],
    "expected_answerable": "partial",
    "category": "c",
    "slices": {"a": 1},
    "cluster": "k",
}
ANSWERED: dict[str, Any] = {"query_id": "q1", "answer": "x", "cited_fragment_ids": ["f1", "f2"]}
ANSWERED_CHANGES: dict[str, Any] = {
    "query_id": "q2",
    "answer": "y",
    "cited_fragment_ids": ["f1"],
    "faithfulness_score": 0.5,
    "faithfulness_source": "human",
    "unavailable_reason": "down",
    "abstained": True,
    "confidence": 0.5,
    "evidence_fragment_ids": ["f1"],
    "error": "timeout",
}
REQUIREMENT_CHANGES: dict[str, Any] = {
    "requirement_id": "c",
    "acceptable_fragment_ids": ["f1"],
    "acceptable_evidence": [{"source_id": "s", "quote": "x"}],
    "importance": "okay",
}


def judged(**more: Any) -> str:
    return digest(generation_judgment_content(GenerationJudgment.model_validate({**JUDGED, **more})))


def answered(**more: Any) -> str:
    return digest(answer_content(GenerationAnswer.model_validate({**ANSWERED, **more})))


@pytest.mark.parametrize("field", sorted(GenerationJudgment.model_fields))
def test_every_judged_field_moves_the_digest_or_is_excluded(field: str) -> None:
    if field in EXCLUDED["GenerationJudgment"]:
        value = {"review_status": "draft", "metadata": {"x": 1}}.get(field, "x")
        assert judged(**{field: value}) == judged()
    else:
        assert judged(**{field: JUDGED_CHANGES[field]}) != judged(), field


@pytest.mark.parametrize("field", sorted(Requirement.model_fields))
def test_every_part_of_a_requirement_moves_the_digest_or_is_excluded(field: str) -> None:
    bare = need("b", "f1", "f2")
    changed = {**bare, field: REQUIREMENT_CHANGES.get(field, "in words")}
    same = judged(citation_requirements=[changed]) == judged(citation_requirements=[bare])
    assert same == (field in EXCLUDED["Requirement"])


@pytest.mark.parametrize("field", sorted(GenerationAnswer.model_fields))
def test_every_answer_field_moves_the_digest_or_is_excluded(field: str) -> None:
    if field in EXCLUDED["GenerationAnswer"]:
        value = {"latency_ms": 1.0, "metadata": {"x": 1}, "system_fingerprint": "a" * 64}.get(field, "x")
        assert answered(**{field: value}) == answered()
    else:
        assert answered(**{field: ANSWERED_CHANGES[field]}) != answered(), field


def test_a_combined_row_has_the_digests_of_its_two_parts_and_no_field_more() -> None:
    row = GenerationRow.model_validate({**JUDGED, **ANSWERED})
    assert digest(generation_judgment_content(row)) == judged()
    assert digest(answer_content(row)) == answered()
    left = GenerationRow.model_fields.keys() - judged_fields() - answered_fields()
    assert left <= EXCLUDED["GenerationJudgment"].keys() | EXCLUDED["GenerationAnswer"].keys()


def test_sets_do_not_have_an_order() -> None:
    needs = [quote("a", "s1", "words"), need("b", "f2", "f1", "f1")]
    assert judged(citation_requirements=needs, accepted_fragment_ids=["f2", "f1", "f2"]) == judged()
    assert answered(cited_fragment_ids=["f2", "f1", "f1"]) == answered()


def test_the_digest_covers_quotes_and_not_what_is_found_by_them() -> None:
    content = generation_judgment_content(GenerationJudgment.model_validate(JUDGED))
    assert content["citation_requirements"][0]["acceptable_evidence"] == [["s1", "words"]]
    assert content["accepted_fragment_ids"] == ["f1", "f2"]


MEASURED = {"GenerationConfig": {"judge_model", "abstention"}, "AbstentionConfig": {"languages", "phrases"}}


@pytest.mark.parametrize("model", [GenerationConfig, AbstentionConfig])
def test_every_setting_is_measured_by_or_excluded(model: type[GenerationConfig | AbstentionConfig]) -> None:
    name = model.__name__
    assert set(model.model_fields) == MEASURED[name] | set(EXCLUDED.get(name, {}))
    assert all(field.description for key, field in model.model_fields.items() if key != "abstention")


def test_statuses_are_told_in_order_of_precedence() -> None:
    assert tuple(STATUSES) == Status.__args__  # type: ignore[attr-defined]
