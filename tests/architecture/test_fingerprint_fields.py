"""Every field of every contract is in a digest, or on the list of excluded fields with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tripos.contracts.config import Config, DepthConfig, JudgmentsConfig, SearchConfig
from tripos.contracts.fragments import Fragment
from tripos.contracts.retrieval import ColumnarResults, NestedResults, ResultItem, RetrievalJudgment
from tripos.fingerprint import (
    EXCLUDED,
    CorpusDigest,
    combined,
    depth_component,
    judgments_component,
    policy_component,
    results_content,
)

FRAGMENT: dict[str, Any] = {"fragment_id": "s::f1", "text": "one", "acl": ["a"], "metadata": {"v": 1}}
FRAGMENT_CHANGES: dict[str, Any] = {
    "fragment_id": "s::f2",
    "text": "two",
    "text_sha256": None,
    "source_id": "other",
    "title": "a title",
    "collection": "elsewhere",
    "source_digest": "v2",
    "acl": ["b"],
    "metadata": {"v": 2},
}
JUDGMENT: dict[str, Any] = {
    "query_id": "q1",
    "query": "what?",
    "expected_sources": ["s", "t"],
    "should_match": True,
    "category": "single_hop_factual",
    "review_status": "reviewed",
}
JUDGMENT_CHANGES: dict[str, Any] = {
    "query_id": "q2",
    "query": "who?",
    "expected_sources": ["s"],
    "should_match": False,
    "category": "structural",
    "relevance": {"s": 2.0, "t": 1.0},
    "required_sources": ["s"],
    "expected_groups": [["s", "t"]],
    "expected_evidence": [{"source_id": "s", "quote": "one"}],
    "expected_fragments": ["s::f1"],
    "nonrelevant_sources": ["u"],
    "forbidden_sources": ["u"],
    "filters": {"v": 1},
    "principal": {"groups": ["a"]},
    "k": 3,
    "split": "tune",
    "slices": {"product": "cloud"},
    "cluster": "c",
}
NOTES: dict[str, Any] = {
    "information_need": "x",
    "notes": "x",
    "reviewer": "x",
    "reviewed_at": "x",
    "source_file": "x",
    "tags": ["x"],
    "metadata": {"x": 1},
}


def corpus_digest(row: dict[str, Any], acl_default: str | None = None) -> str | None:
    made = CorpusDigest()
    made.add(Fragment.model_validate(row))
    return made.component(acl_default).digest


def judgments_digest(row: dict[str, Any]) -> str | None:
    return judgments_component([RetrievalJudgment.model_validate(row)], None, "known_item").digest


@pytest.mark.parametrize("field", sorted(Fragment.model_fields))
def test_every_fragment_field_moves_component_a(field: str) -> None:
    assert field in FRAGMENT_CHANGES, f"{field}: decide whether component A covers it, in fingerprint.py, and add it here"
    if field == "text_sha256":  # its value follows from the text; a catalogue of the same text has the same digest
        from tripos.contracts.fragments import text_digest

        catalogue = {k: v for k, v in FRAGMENT.items() if k != "text"} | {"text_sha256": text_digest("one")}
        assert corpus_digest(catalogue) == corpus_digest(FRAGMENT)
        return
    assert corpus_digest(FRAGMENT | {field: FRAGMENT_CHANGES[field]}) != corpus_digest(FRAGMENT)


def test_an_explicit_default_changes_nothing() -> None:
    assert corpus_digest(FRAGMENT | {"source_id": "s", "collection": "default"}) == corpus_digest(FRAGMENT)
    explicit = JUDGMENT | {"relevance": {"s": 1.0, "t": 1.0}, "filters": {}, "k": None}
    assert judgments_digest(explicit) == judgments_digest(JUDGMENT)


def test_the_acl_default_is_part_of_a() -> None:
    assert corpus_digest(FRAGMENT, "public") != corpus_digest(FRAGMENT, "deny")


@pytest.mark.parametrize("field", sorted(RetrievalJudgment.model_fields))
def test_every_judgment_field_moves_b_or_is_excluded(field: str) -> None:
    if field == "review_status":  # selects the rows
        draft = judgments_component([RetrievalJudgment.model_validate(JUDGMENT | {field: "draft"})], None, "known_item")
        assert draft.values is not None
        assert draft.values["reviewed"] == 0
    elif field in EXCLUDED["RetrievalJudgment"]:
        assert judgments_digest(JUDGMENT | {field: NOTES[field]}) == judgments_digest(JUDGMENT)
    else:
        assert field in JUDGMENT_CHANGES, f"{field}: decide whether component B covers it, and add it here"
        change = {field: JUDGMENT_CHANGES[field]}
        if field == "should_match":
            change["expected_sources"] = []
        assert judgments_digest(JUDGMENT | change) != judgments_digest(JUDGMENT)


def test_sets_and_row_order_do_not_matter_to_b() -> None:
    assert judgments_digest(JUDGMENT | {"expected_sources": ["t", "s"]}) == judgments_digest(JUDGMENT)
    rows = [RetrievalJudgment.model_validate(JUDGMENT | {"query_id": name}) for name in ("a", "b")]
    one, other = (judgments_component(r, None, "known_item").digest for r in (rows, rows[::-1]))
    assert one == other


def test_version_and_completeness_are_part_of_b() -> None:
    row = [RetrievalJudgment.model_validate(JUDGMENT)]
    digests = {judgments_component(row, v, c).digest for v in (None, "2") for c in ("known_item", "pooled")}
    assert len(digests) == 4


POLICY_CHANGES: dict[str, Any] = {
    "mode": "dense",
    "min_score": 0.5,
    "embedding_model": "m@1",
    "fusion": {"k": 60},
    "filters": {"v": 1},
    "lexical": {"k1": 1.2},
    "reranker": "r@1",
    "options": {"any": [1]},
}
DEPTH_CHANGES: dict[str, Any] = {"limit": 20, "top_k": 5, "unit": "source", "per_collection": {"a": 3}}


@pytest.mark.parametrize("field", sorted(SearchConfig.model_fields))
def test_every_policy_field_moves_c(field: str) -> None:
    assert field in POLICY_CHANGES
    base = {"mode": "lexical"}
    changed = SearchConfig.model_validate(base | {field: POLICY_CHANGES[field]})
    assert policy_component(changed).digest != policy_component(SearchConfig.model_validate(base)).digest


@pytest.mark.parametrize("field", sorted(DepthConfig.model_fields))
def test_every_depth_field_moves_d(field: str) -> None:
    assert field in DEPTH_CHANGES
    changed = DepthConfig.model_validate({field: DEPTH_CHANGES[field]})
    assert depth_component(changed).digest != depth_component(DepthConfig()).digest


def test_top_k_stated_as_limit_is_the_default() -> None:
    assert depth_component(DepthConfig(limit=50, top_k=50)).digest == depth_component(DepthConfig()).digest


IN_A_COMPONENT = {
    "Config": {"fragments", "acl_default", "judgments", "search", "depth"},
    "JudgmentsConfig": {"version", "completeness"},
    "RankedRow": {"query_id", "fragment_ids", "scores", "error", "fragment_id", "score", "results"},
}


@pytest.mark.parametrize("model", [Config, JudgmentsConfig])
def test_every_other_setting_is_covered_or_excluded(model: type[BaseModel]) -> None:
    name = model.__name__
    assert set(model.model_fields) == IN_A_COMPONENT[name] | set(EXCLUDED[name])
    assert not IN_A_COMPONENT[name] & set(EXCLUDED[name])


def test_every_result_field_is_covered_or_excluded() -> None:
    fields = {*NestedResults.model_fields, *ColumnarResults.model_fields, *ResultItem.model_fields}
    assert fields == IN_A_COMPONENT["RankedRow"] | set(EXCLUDED["RankedRow"])


def test_results_content_tells_every_covered_part_apart() -> None:
    contents = {
        results_content("q", ["a", "b"], [2.0, 1.0], None),
        results_content("p", ["a", "b"], [2.0, 1.0], None),
        results_content("q", ["b", "a"], [2.0, 1.0], None),
        results_content("q", ["a", "b"], [2.0, 1.5], None),
        results_content("q", ["a", "b"], None, None),
        results_content("q", ["a", "b"], [2.0, 1.0], "timeout"),
    }
    assert len(contents) == 6
    assert results_content("q", ["a"], [0.0], None) == results_content("q", ["a"], [-0.0], None)


def test_every_exclusion_has_a_reason() -> None:
    assert all(len(reason) > 5 for fields in EXCLUDED.values() for reason in fields.values())


def test_the_configuration_is_of_abcd_and_the_system_of_acd() -> None:
    parts = {
        "A": CorpusDigest().component(None),
        "B": judgments_component([], None, "known_item"),
        "C": policy_component(SearchConfig(mode="x")),
        "D": depth_component(DepthConfig()),
    }
    other = parts | {"B": judgments_component([], "2", "known_item")}
    assert combined(parts, "ABCD") != combined(other, "ABCD")
    assert combined(parts, "ACD") == combined(other, "ACD")
