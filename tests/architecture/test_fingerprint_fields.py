"""Every field of every contract is in a digest, or on the list of excluded fields with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tripos.contracts.config import (
    CertificationConfig,
    Config,
    CorpusConfig,
    DepthConfig,
    ExpansionPolicy,
    FanOutPolicy,
    JudgmentsConfig,
    SearchConfig,
)
from tripos.contracts.corpus import CorpusJudgment, CorpusResult, Expansion, FanOut, FanOutHit, Relationship
from tripos.contracts.fragments import Fragment
from tripos.contracts.retrieval import ColumnarResults, NestedResults, ResultItem, RetrievalJudgment
from tripos.fingerprint import (
    EXCLUDED,
    CorpusDigest,
    combined,
    corpus_judgment_content,
    corpus_result_content,
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
    assert field in FRAGMENT_CHANGES, f"{field}: decide whether component A covers it, in fingerprint/, and add it here"
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
    "fan_out": {"router": "all"},
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


CORPUS_JUDGMENT: dict[str, Any] = {
    "query_id": "q1",
    "query": "what?",
    "expected_collections": ["a", "b"],
    "expected_sources": {"a": ["s", "t"], "b": ["u"]},
    "should_match": True,
    "category": "multi_hop",
    "review_status": "reviewed",
}
LINK = {"subject": "s", "predicate": "sees", "object": "u"}
CORPUS_CHANGES: dict[str, Any] = {
    "query_id": "q2",
    "query": "who?",
    "expected_collections": {"expected_collections": ["a"], "expected_sources": {"a": ["s", "t"]}},
    "expected_sources": {"a": ["s"], "b": ["u"]},
    "should_match": {"should_match": False, "expected_collections": [], "expected_sources": {}},
    "category": "comparison",
    "expected_relationships": [LINK],
    "hops": 2,
    "principal": {"groups": ["g"]},
    "split": "tune",
    "slices": {"product": "cloud"},
    "cluster": "c",
}


def corpus_judgment(change: dict[str, Any]) -> dict[str, Any]:
    return corpus_judgment_content(CorpusJudgment.model_validate(CORPUS_JUDGMENT | change))


@pytest.mark.parametrize("field", sorted(CorpusJudgment.model_fields))
def test_every_corpus_judgment_field_is_digested_or_excluded(field: str) -> None:
    if field == "review_status":  # selects the rows
        assert field in EXCLUDED["CorpusJudgment"]
    elif field in EXCLUDED["CorpusJudgment"]:
        assert corpus_judgment({field: NOTES[field]}) == corpus_judgment({})
    else:
        assert field in CORPUS_CHANGES, f"{field}: decide whether judgments_digest covers it, and add it here"
        given = CORPUS_CHANGES[field]
        change = given if isinstance(given, dict) and field in given else {field: given}
        assert corpus_judgment(change) != corpus_judgment({})


def test_sets_and_defaults_do_not_matter_to_a_corpus_judgment() -> None:
    other = {"expected_collections": ["b", "a", "a"], "expected_sources": {"b": ["u"], "a": ["t", "s", "s"]}, "hops": None}
    assert corpus_judgment(other) == corpus_judgment({})


CORPUS_RESULT: dict[str, Any] = {
    "query_id": "q1",
    "routed_collections": ["a", "b"],
    "fan_out": [{"collection": "a", "k": 3, "results": [{"fragment_id": "f"}, {"fragment_id": "g"}]}],
    "merged": ["f", "g"],
}
RESULT_CHANGES: dict[str, dict[str, Any]] = {
    "query_id": {"query_id": "q2"},
    "routed_collections": {"routed_collections": ["b", "a"]},
    "fan_out": {"fan_out": [{"collection": "a", "k": 4, "results": [{"fragment_id": "f"}, {"fragment_id": "g"}]}]},
    "merged": {"merged": ["g", "f"]},
    "expansion": {"expansion": {"relationships": [LINK], "added_fragment_ids": []}},
    "final": {"final": ["f"]},
    "error": {"error": "timeout"},
}
RESULT_NOTES: dict[str, Any] = {"latency_ms": 3.0, "system_fingerprint": "0" * 64, "metadata": {"x": 1}}


def corpus_result(change: dict[str, Any]) -> dict[str, Any]:
    return corpus_result_content(CorpusResult.model_validate(CORPUS_RESULT | change))


@pytest.mark.parametrize("field", sorted(CorpusResult.model_fields))
def test_every_corpus_result_field_is_digested_or_excluded(field: str) -> None:
    if field in EXCLUDED["CorpusResult"]:
        assert corpus_result({field: RESULT_NOTES[field]}) == corpus_result({})
    else:
        assert field in RESULT_CHANGES, f"{field}: decide whether results_digest covers it, and add it here"
        assert corpus_result(RESULT_CHANGES[field]) != corpus_result({})


def test_parts_of_a_corpus_result_are_digested_or_excluded() -> None:
    fan = CORPUS_RESULT["fan_out"][0]
    assert set(FanOut.model_fields) == {"collection", "k", "results", *EXCLUDED["FanOut"]}
    assert set(FanOutHit.model_fields) == {"fragment_id", *EXCLUDED["FanOutHit"]}
    assert corpus_result({"fan_out": [fan | {"latency_ms": 3.0}]}) == corpus_result({})
    assert corpus_result({"fan_out": [fan | {"results": [{"fragment_id": "g"}, {"fragment_id": "f"}]}]}) != corpus_result({})
    assert set(Expansion.model_fields) == {"relationships", "added_fragment_ids"}
    for change in ({"subject": "x"}, {"predicate": "x"}, {"object": "x"}):
        assert set(change) <= set(Relationship.model_fields)
        assert corpus_result({"expansion": {"relationships": [LINK | change]}}) != corpus_result(
            {"expansion": {"relationships": [LINK]}}
        )
    assert corpus_result({"final": ["f", "g"]}) == corpus_result({}), "final defaults to merged"


def test_the_corpus_section_is_excluded() -> None:
    assert set(CorpusConfig.model_fields) == set(EXCLUDED["CorpusConfig"])


def test_the_certification_section_is_excluded() -> None:
    assert set(CertificationConfig.model_fields) == set(EXCLUDED["CertificationConfig"])


FAN_OUT_CHANGES: dict[str, Any] = {
    "router": "all",
    "names": {"a": ["word"]},
    "share": 0.1,
    "min_score": 1.0,
    "most": 2,
    "rrf_k": 10,
    "expansion": {"fields": ["see"]},
}
EXPANSION_CHANGES: dict[str, Any] = {"fields": ["other"], "seeds": 9, "most": 9, "rounds": 2}


@pytest.mark.parametrize("field", sorted(FanOutPolicy.model_fields))
def test_every_fan_out_field_moves_c(field: str) -> None:
    one, other = (SearchConfig.model_validate({"fan_out": change}) for change in ({}, {field: FAN_OUT_CHANGES[field]}))
    assert policy_component(one).digest != policy_component(other).digest


@pytest.mark.parametrize("field", sorted(ExpansionPolicy.model_fields))
def test_every_expansion_field_moves_c(field: str) -> None:
    base = {"fields": ["see"]}
    one, other = (
        SearchConfig.model_validate({"fan_out": {"expansion": change}})
        for change in (base, base | {field: EXPANSION_CHANGES[field]})
    )
    assert policy_component(one).digest != policy_component(other).digest
