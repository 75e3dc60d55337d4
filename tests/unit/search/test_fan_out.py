"""The reference multi-collection system: routing, fan-out, merge, expansion; offline and the same every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.world import ROOT, run

from tripos.contracts.config import DepthConfig, SearchConfig
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import Corpus
from tripos.errors import ConfigError
from tripos.files.reports import load_retrieval_report
from tripos.search.fan_out import FanOutSystem, merge
from tripos.search.protocol import Query

SHELF: list[dict[str, Any]] = [
    {"fragment_id": "d1::f1", "text": "cough syrup dose for children", "collection": "drugs", "metadata": {"antidote": "d2"}},
    {"fragment_id": "d2::f1", "text": "an injection that undoes it", "collection": "drugs"},
    {"fragment_id": "d2::f2", "text": "secret numbers about the syrup", "collection": "drugs", "acl": ["staff"]},
    {"fragment_id": "h1::f1", "text": "reset a password in the portal", "collection": "help"},
    {"fragment_id": "h2::f1", "text": "syrup orders in the portal", "collection": "help"},
]


def system(depth: dict[str, Any] | None = None, **fan_out: Any) -> FanOutSystem:
    corpus = Corpus(acl_default="public")
    for row in SHELF:
        corpus.add(Fragment.model_validate(row))
    policy = SearchConfig.model_validate({"mode": "lexical", "fan_out": fan_out})
    return FanOutSystem(corpus, policy, DepthConfig.model_validate({"limit": 10, "top_k": 3, **(depth or {})}))


def asked(text: str, *groups: str) -> Query:
    return Query("q", text, groups or None)


def test_the_router_takes_the_best_hits_and_those_near_them() -> None:
    assert system(share=1).route(asked("syrup dose children")) == ["drugs"]
    assert system(share=0.1).route(asked("syrup dose children")) == ["drugs", "help"]
    assert system(share=0.1, most=1).route(asked("syrup dose children")) == ["drugs"]
    assert system(min_score=99).route(asked("syrup dose children")) == []
    assert system().route(asked("zebra")) == []


def test_the_router_by_names_counts_words() -> None:
    names = {"drugs": ["dose", "cough syrup"], "help": ["portal"]}
    by_names = system(router="names", names=names)
    assert by_names.route(asked("Which dose of Cough-Syrup is in the portal?")) == ["drugs", "help"]
    assert by_names.route(asked("an overdose")) == []
    assert system(router="all").route(asked("anything")) == ["drugs", "help"]


def test_merge_is_reciprocal_rank_fusion() -> None:
    """k 1: a 1/2 + 1/3, b 1/3, c 1/2; c before b, and equal scores by id."""
    assert merge([["a", "b"], ["c", "a"]], 1) == ["a", "c", "b"]
    assert merge([["y"], ["x"]], 60) == ["x", "y"]


def test_expansion_follows_links_within_what_the_reader_may_see() -> None:
    policy: dict[str, Any] = {"share": 1, "expansion": {"fields": ["antidote"]}}
    row = system(**policy).answer(asked("cough dose children", "everyone"))
    assert row.merged == ("d1::f1",)
    assert row.expansion is not None
    assert [r.triple for r in row.expansion.relationships] == [("d1", "antidote", "d2")]
    assert row.expansion.added_fragment_ids == ("d2::f1",)
    assert row.final == ("d1::f1", "d2::f1")
    staff = system(**policy).answer(asked("cough dose children", "staff"))
    assert staff.expansion is not None
    assert staff.expansion.added_fragment_ids == ("d2::f1",)


def test_what_is_added_pushes_out_the_last_of_a_full_list() -> None:
    policy: dict[str, Any] = {"router": "all", "expansion": {"fields": ["antidote"], "seeds": 1}}
    row = system({"top_k": 1}, **policy).answer(asked("cough dose children"))
    assert row.final == ("d2::f1",)


def test_k_of_a_collection_is_that_of_the_depth() -> None:
    row = system({"per_collection": {"help": 1}}, router="all").answer(asked("portal syrup"))
    assert {fan.collection: fan.k for fan in row.fan_out or ()} == {"drugs": 10, "help": 1}
    with pytest.raises(ConfigError, match="is no collection of the corpus"):
        system({"per_collection": {"helpp": 1}})


def test_the_shipped_example_runs_from_end_to_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    text = (ROOT / "configs" / "two-collections.yaml").read_text().replace("../engagement/two-collections", str(folder))
    config = tmp_path / "two.yaml"
    config.write_text(text.replace("../golden", str(ROOT / "golden")))
    for command in ("search", "eval-retrieval", "fan-out", "eval-corpus"):
        outcome = run(tmp_path, [command, "--config", str(config), "--quiet"])
        assert outcome.code == 0, (command, outcome.err)
    assert "binding" not in outcome.err
    report = (folder / "corpus" / "corpus-report.json").read_text()
    assert '"binding": "verified"' in report
    bound = load_retrieval_report(str(folder / "retrieval" / "report.json"))
    assert f'"configuration": "{bound.fingerprint.configuration}"' in report


def test_results_are_the_same_bytes_without_clock_readings(tmp_path: Path) -> None:
    fragments = [f"{name}={ROOT / 'golden' / name / 'fragments.jsonl'}" for name in ("support-kb", "drug-labels")]
    flags = [part for name in fragments for part in ("--fragments", name)]
    judgments = ["--judgments", str(ROOT / "golden" / "drug-labels" / "corpus_golden.jsonl"), "--latency", "none"]
    for name in ("one.jsonl", "two.jsonl"):
        assert run(tmp_path, ["fan-out", *flags, *judgments, "--output", name]).code == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_it_never_replaces_what_it_reads(tmp_path: Path) -> None:
    golden = ROOT / "golden" / "drug-labels"
    flags = ["--fragments", str(golden / "fragments.jsonl"), "--judgments", str(golden / "corpus_golden.jsonl")]
    outcome = run(tmp_path, ["fan-out", *flags, "--output", str(golden / "corpus_golden.jsonl")])
    assert (outcome.code, "never replaces what it reads" in outcome.err) == (2, True)
    assert run(tmp_path, ["fan-out", *flags]).code == 2
