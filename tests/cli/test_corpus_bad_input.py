"""eval-corpus on bad input: every fault with its line, its field and what to do; nothing that was there is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.world import LEFT_OPEN, run
from tests.corpus_worlds import expects, fan, library, link, result

pytestmark = LEFT_OPEN

Row = dict[str, Any]
COMMAND = ["eval-corpus", "--judgments", "j.jsonl", "--results", "r.jsonl", "--fragments", "f.jsonl", "--output", "out"]
SHELF = library(support=["s1", "s2"], labels=["l1", "l2"])


def judgments() -> list[Row]:
    return [expects("q1", {"support": ["s1"]}), expects("q2", {"support": ["s1"], "labels": ["l1"]}), expects("q3", {})]


def results() -> list[Row]:
    both = [fan("support", "s1::f1", "s2::f1"), fan("labels", "l1::f1")]
    return [result("q1", fan("support", "s1::f1")), result("q2", *both), result("q3")]


def write(folder: Path, judged: list[Row], did: list[Row]) -> None:
    for name, rows in (("j.jsonl", judged), ("r.jsonl", did), ("f.jsonl", SHELF)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_world_is_valid(tmp_path: Path) -> None:
    write(tmp_path, judgments(), results())
    outcome = run(tmp_path, COMMAND)
    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["corpus-misses.jsonl", "corpus-report.json"]


def changed(rows: list[Row], n: int, change: Callable[[Row], object]) -> list[Row]:
    change(rows[n])
    return rows


RESULT_FAULTS: list[tuple[str, Callable[[Row], object], str, tuple[str, ...]]] = [
    (
        "unknown collection",
        lambda r: r.update(routed_collections=["suport", "labels"], fan_out=[{**r["fan_out"][1]}], merged=["l1::f1"]),
        "routed_collections",
        ('"suport" is no collection', 'did you mean "support"?'),
    ),
    (
        "fan-out over an unrouted collection",
        lambda r: r.update(routed_collections=["support"]),
        "fan_out[1].collection",
        ('"labels" was searched, but is not in routed_collections',),
    ),
    (
        "more results than k",
        lambda r: r["fan_out"][0].update(k=1),
        "fan_out[0].results",
        ("holds 2 results, but k is 1",),
    ),
    (
        "merged fragments that no collection returned",
        lambda r: r.update(merged=["l2::f1", "s1::f1"]),
        "merged",
        ('"l2::f1" stands in the list, but no collection returned it',),
    ),
    (
        "final fragments from nowhere",
        lambda r: r.update(final=["l2::f1"]),
        "final",
        ("neither merged nor added by expansion",),
    ),
    (
        "a relationship with an empty end",
        lambda r: r.update(expansion={"relationships": [{**link("s1", "sees", "l1"), "object": ""}]}),
        "expansion.relationships[0].object",
        ("is empty",),
    ),
    (
        "a relationship with a blank end",
        lambda r: r.update(expansion={"relationships": [link(" ", "sees", "l1")]}),
        "expansion.relationships[0].subject",
        ("is blank",),
    ),
    (
        "the same fragment in two collections",
        lambda r: r["fan_out"][1]["results"].append({"fragment_id": "s1::f1"}),
        "fan_out[1].results",
        ('"s1::f1" is also a result of "support"', "a fragment is in one collection"),
    ),
    (
        "a fragment of another collection",
        lambda r: r.update(fan_out=[fan("support", "l2::f1")], merged=["l2::f1"]),
        "fan_out.results",
        ('"l2::f1" came from "support", but is in "labels"',),
    ),
    ("no routing at all", lambda r: r.pop("routed_collections"), "routed_collections", ("the query has no routing at all",)),
    ("no fan-out", lambda r: r.update(fan_out=None, merged=[]), "fan_out", ("missing",)),
    ("no merged list", lambda r: r.pop("merged"), "merged", ("missing",)),
    (
        "unknown fragment",
        lambda r: r.update(fan_out=[fan("support", "s9::f1")], merged=[]),
        "fan_out.results",
        ('"s9::f1" is in no fragment',),
    ),
    (
        "unknown added fragment",
        lambda r: r.update(expansion={"added_fragment_ids": ["x"]}),
        "expansion.added_fragment_ids",
        ('"x" is in no fragment',),
    ),
    (
        "a collection searched twice",
        lambda r: r.update(fan_out=[r["fan_out"][1], r["fan_out"][1]], merged=[]),
        "fan_out",
        ('searches "labels" more than once',),
    ),
    (
        "a fragment twice in one list",
        lambda r: r["fan_out"][1]["results"].append({"fragment_id": "l1::f1"}),
        "fan_out[1].results",
        ('"l1::f1" stands in the list more than once',),
    ),
    (
        "rising scores",
        lambda r: r["fan_out"][0].update(
            results=[{"fragment_id": "s1::f1", "score": 1}, {"fragment_id": "s2::f1", "score": 2}]
        ),
        "fan_out.results",
        ("rise down the list",),
    ),
    ("k of 0", lambda r: r["fan_out"][0].update(k=0), "fan_out[0].k", ("must be at least 1",)),
    ("a misspelt field", lambda r: r.update(fanout=[]), "fanout", ("did you mean fan_out",)),
]


@pytest.mark.parametrize(("change", "field", "words"), [f[1:] for f in RESULT_FAULTS], ids=[f[0] for f in RESULT_FAULTS])
def test_faults_of_results(tmp_path: Path, change: Callable[[Row], object], field: str, words: tuple[str, ...]) -> None:
    write(tmp_path, judgments(), changed(results(), 1, change))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "corpus-report.json").write_text("older")
    outcome = run(tmp_path, COMMAND)
    assert outcome.code == 3, outcome.err
    told = [line for line in outcome.err.splitlines() if line.startswith(f"r.jsonl:2  {field}  ")]
    assert told, outcome.err
    assert all(any(word in line for line in told) for word in words), outcome.err
    assert (tmp_path / "out" / "corpus-report.json").read_text() == "older"


JUDGMENT_FAULTS: list[tuple[str, Callable[[Row], object], str, tuple[str, ...]]] = [
    (
        "unknown collection",
        lambda r: r.update(expected_collections=["label"], expected_sources={"label": ["l1"]}),
        "expected_collections",
        ('"label" is no collection of the corpus', 'did you mean "labels"?'),
    ),
    (
        "a collection unlike any",
        lambda r: r.update(expected_collections=["wiki"], expected_sources={"wiki": ["l1"]}),
        "expected_collections",
        ('it has "labels", "support"', "--fragments NAME=FILE"),
    ),
    (
        "a source of another collection",
        lambda r: r.update(expected_sources={"support": ["l1"], "labels": ["l1"]}),
        "expected_sources.support",
        ('"l1" is in collection "labels": name it there',),
    ),
    (
        "a fragment for a source",
        lambda r: r.update(expected_sources={"support": ["s1::f1"], "labels": ["l1"]}),
        "expected_sources.support",
        ('"s1::f1" is a fragment of "s1"',),
    ),
    (
        "an unknown source",
        lambda r: r.update(expected_sources={"support": ["s7"], "labels": ["l1"]}),
        "expected_sources.support",
        ('"s7" is in no fragment',),
    ),
    (
        "sources lack a collection",
        lambda r: r.update(expected_sources={"support": ["s1"]}),
        "expected_sources",
        ('lacks "labels"',),
    ),
    (
        "sources name a further collection",
        lambda r: r.update(expected_collections=["support"]),
        "expected_sources",
        ('"labels" is not in expected_collections',),
    ),
    (
        "no source in a collection",
        lambda r: r["expected_sources"].update(labels=[]),
        "expected_sources.labels",
        ("is empty",),
    ),
    ("a contradiction", lambda r: r.update(should_match=False), "should_match", ("false, but expected_collections",)),
    (
        "an empty expectation",
        lambda r: r.update(expected_collections=[], expected_sources={}),
        "should_match",
        ("true, but expected_collections is empty",),
    ),
    (
        "a relationship with an empty end",
        lambda r: r.update(expected_relationships=[{**link("s1", "sees", "l1"), "subject": ""}]),
        "expected_relationships[0].subject",
        ("is empty",),
    ),
    ("a placeholder", lambda r: r.update(query_id="TODO"), "query_id", ("is a placeholder",)),
    ("an id used twice", lambda r: r.update(query_id="q1"), "query_id", ('"q1" was used at j.jsonl:1',)),
    ("authorization of nobody", lambda r: r.update(category="authorization"), "principal", ("who is asking?",)),
    (
        "a source that its reader may not see",
        lambda r: r.update(principal={"groups": ["nobody"]}),
        "expected_sources.support",
        ("may read",),
    ),
]


@pytest.mark.parametrize(("change", "field", "words"), [f[1:] for f in JUDGMENT_FAULTS], ids=[f[0] for f in JUDGMENT_FAULTS])
def test_faults_of_judgments(tmp_path: Path, change: Callable[[Row], object], field: str, words: tuple[str, ...]) -> None:
    write(tmp_path, changed(judgments(), 1, change), results())
    outcome = run(tmp_path, COMMAND)
    assert outcome.code == 3, outcome.err
    told = [line for line in outcome.err.splitlines() if line.startswith(f"j.jsonl:2  {field}  ")]
    assert told, outcome.err
    assert all(any(word in line for line in told) for word in words), outcome.err


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    did = results()
    did[0].pop("routed_collections")
    did[1]["fan_out"][0]["k"] = 1
    did[1]["merged"] = ["l2::f1"]
    did[2].pop("merged")
    write(tmp_path, judgments(), did)
    outcome = run(tmp_path, COMMAND)
    assert [line.split("  ")[0] for line in outcome.err.splitlines()] == ["r.jsonl:1", "r.jsonl:2", "r.jsonl:3"]


def test_row_rules_hide_no_other(tmp_path: Path) -> None:
    did = changed(results(), 1, lambda r: r.update(routed_collections=["support"], merged=["l2::f1"]))
    write(tmp_path, judgments(), did)
    outcome = run(tmp_path, COMMAND)
    assert [line.split("  ")[1] for line in outcome.err.splitlines()] == ["fan_out[1].collection", "merged"]


def test_k_must_be_the_depth_that_was_stated(tmp_path: Path) -> None:
    write(tmp_path, judgments(), results())
    (tmp_path / "c.yaml").write_text("depth: {per_collection: {support: 9}}\n")
    outcome = run(tmp_path, [*COMMAND, "--config", "c.yaml"])
    assert outcome.code == 3
    assert 'fan_out.k  is 3 for "support", but depth.per_collection says 9' in outcome.err


def test_lenient_counts_what_the_corpus_lacks_and_marks_the_report(tmp_path: Path) -> None:
    judged = changed(judgments(), 0, lambda r: r.update(expected_sources={"support": ["s1", "s8"]}))
    did = changed(results(), 1, lambda r: r["fan_out"][0]["results"].append({"fragment_id": "s9::f1"}))
    write(tmp_path, judged, did)
    outcome = run(tmp_path, [*COMMAND, "--lenient"])
    assert outcome.code == 0, outcome.err
    assert "EXPLORATORY, cannot certify: --lenient: unknown_fragments: 1, unknown_sources: 1" in outcome.out


def test_the_principal_needs_to_know_who_reads_what(tmp_path: Path) -> None:
    write(tmp_path, changed(judgments(), 1, lambda r: r.update(principal={"groups": ["everyone"]})), results())
    bare = [{k: v for k, v in row.items() if k != "acl"} for row in SHELF]
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    assert "say --acl-default public, or deny" in run(tmp_path, COMMAND).err
    assert run(tmp_path, [*COMMAND, "--acl-default", "public"]).code == 1  # nothing could leak: vacuous


def test_what_is_missing_is_named_with_its_flag(tmp_path: Path) -> None:
    outcome = run(tmp_path, ["eval-corpus", "--results", "r.jsonl"])
    assert (outcome.code, "missing --judgments" in outcome.err) == (2, True)


def test_a_gate_of_no_measure_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    outcome = run(tmp_path, [*COMMAND, "--fail-under", "kept_finale=0.5"])
    assert outcome.code == 2
    assert 'did you mean "kept_final"?' in outcome.err


def test_nothing_reviewed_is_nothing_to_evaluate(tmp_path: Path) -> None:
    write(tmp_path, [{**row, "review_status": "draft"} for row in judgments()], results())
    outcome = run(tmp_path, COMMAND)
    assert (outcome.code, "no row is reviewed" in outcome.err) == (5, True)
