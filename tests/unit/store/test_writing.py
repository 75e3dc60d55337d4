"""What lands in a store, once and whole."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.builders import World, config_of, fragment, graded, judgment, listed, scored
from tests.corpus_worlds import CorpusWorld, corpus_config, expects, fan, library, result
from tests.unit.store.crash import finish, merged, world
from tests.unit.store.history import ask, contents, day, keep, keep_answers
from tripos.contracts.config import Config, Options
from tripos.errors import InputError, OutputError
from tripos.runners import corpus, retrieval
from tripos.store import corpus as corpus_tables
from tripos.store.reading import Store
from tripos.store.retrieval import content_of
from tripos.store.tables import RUNS, TABLES
from tripos.store.writing import store, store_certificate

FULL = World(
    judgments=[
        graded("q1", {"a": 2.0, "b": 1.0}, nonrelevant_sources=["c"], slices={"lang": "en"}, cluster="k"),
        judgment("q2", "b", split="tune"),
        judgment("q3"),
        judgment("q4", "a"),
        judgment("q5", "a"),
    ],
    results=[
        scored("q1", {"c::f1": 0.9, "b::f1": 0.8, "b::f2": 0.7, "a::f1": 0.1}, latency_ms=4.5),
        scored("q2", {"a::f1": 0.9}),
        scored("q3", {}),
        {"query_id": "q4", "fragment_ids": [], "error": "timeout"},
        scored("unjudged", {"a::f1": 1.0}),
    ],
    fragments=[*(fragment(f"{name}::f1") for name in "abc"), fragment("b::f2")],
    limit=3,
    top_k=2,
    cutoffs=(1, 3),
)
"""q1: c (judged not relevant), b, b again, a beyond limit 3; q2 misses; q3 rightly finds nothing; q4 and q5 are incomplete."""


def test_the_tables_of_a_retrieval_run(tmp_path: Path) -> None:
    run_id = keep(tmp_path, FULL).run_id
    sql = 'SELECT query_id, positive, complete, because, reasons, first_relevant_rank, n_results, "hit@3", "rr@3" FROM queries'
    assert ask(tmp_path, f"{sql} ORDER BY query_id") == [
        ("q1", True, True, None, ["partial"], 2, 3, 1.0, 0.5),
        ("q2", True, True, None, ["no_hit"], None, 1, 0.0, 0.0),
        ("q3", False, True, None, [], None, 0, None, None),
        ("q4", True, False, "timeout", ["incomplete"], None, None, None, None),
        ("q5", True, False, "no row in the ranked results", ["incomplete"], None, None, None, None),
    ]
    assert ask(tmp_path, "SELECT query_id, rank, fragment_id, source_id, score, relevant, grade FROM ranked_results") == [
        ("q1", 1, "c::f1", "c", 0.9, False, 0.0),
        ("q1", 2, "b::f1", "b", 0.8, True, 1.0),
        ("q1", 3, "b::f2", "b", 0.7, True, 1.0),
        ("q2", 1, "a::f1", "a", 0.9, None, None),
    ]
    assert ask(tmp_path, "SELECT cluster, split, slices FROM queries WHERE query_id < 'q3' ORDER BY query_id") == [
        ("k", None, '{"lang":"en"}'),
        (None, "tune", "{}"),
    ]
    assert ask(tmp_path, "SELECT query_id, latency_ms FROM latencies") == [("q1", 4.5)]
    assert ask(tmp_path, "SELECT query_id, expected_sources, missed_sources FROM misses WHERE query_id < 'q3'") == [
        ("q1", ["a", "b"], ["a"]),
        ("q2", ["b"], ["b"]),
    ]
    sql = "SELECT run_id, layer, name, result_limit, top_k, cutoffs, scored, incomplete, missed, verdict FROM runs"
    assert ask(tmp_path, sql) == [(run_id, "retrieval", "kb", 3, 2, [1, 3], 5, 2, 4, "incomplete")]


def test_every_figure_of_the_report_is_in_measures(tmp_path: Path) -> None:
    run_id = keep(tmp_path, FULL).run_id
    report = Store(tmp_path).run(run_id).report
    rows = ask(tmp_path, "SELECT measure, k, value, worst, n, undefined FROM measures WHERE slice_by IS NULL")
    for name, figure in report.measures.items():
        own = {k: rest for measure, k, *rest in rows if measure == name.removesuffix("@k")}
        if name.endswith("@k"):
            for n in range(3):
                expected = [figure.value[n], figure.worst[n], figure.n, figure.undefined]  # type: ignore[index]
                assert own[n + 1] == expected, name
        else:
            assert own[None] == [figure.value, figure.worst, figure.n, figure.undefined], name
    slices = {(part.by, str(part.value)) for part in report.slices}
    assert set(ask(tmp_path, "SELECT DISTINCT slice_by, slice_value FROM measures WHERE slice_by IS NOT NULL")) == slices


@pytest.mark.parametrize("unit", ["fragment", "source"])
@pytest.mark.parametrize("order", ["score", "trec", "list"])
def test_positions_are_those_that_were_measured(tmp_path: Path, unit: Any, order: Any) -> None:
    """The first expected source stands where the reciprocal rank says, on rankings in disorder, with repeats and a cut."""
    draw = random.Random(7)
    names = [f"{source}::f{n}" for source in "abcde" for n in (1, 2)]
    judgments = [judgment(f"q{n}", draw.choice("abcde")) for n in range(30)]
    results = []
    for row in judgments:
        own = draw.sample(names, 7)
        own.append(own[0])
        scores = [round(draw.random(), 1) for _ in own]
        results.append({"query_id": row["query_id"], "fragment_ids": own, "scores": scores})
    own_world = World(
        judgments, results, [fragment(name) for name in names], limit=4, unit=unit, min_score=0.2, order=order, cutoffs=(4,),
        options={"duplicates": "keep-first"},
    )  # fmt: skip
    keep(tmp_path, own_world)
    sql = """
        SELECT query_id, "rr@4", coalesce(1 / first_relevant_rank, 0), n_results, count(rank),
            coalesce(1 / min(rank) FILTER (relevant), 0)
        FROM queries LEFT JOIN ranked_results USING (run_id, query_id) GROUP BY ALL
    """
    found = ask(tmp_path, sql)
    assert len(found) == 30
    assert len({row[1] for row in found}) > 3
    for _, rr, first, n_results, counted, reached in found:
        assert rr == pytest.approx(first, abs=1e-11)
        assert rr == pytest.approx(reached, abs=1e-11)
        assert n_results == counted


def test_sources_are_the_corpus_s_own(tmp_path: Path) -> None:
    fragments = [fragment("x1", source_id="a"), fragment("b::f1")]
    keep(tmp_path, World([judgment("q1", "a")], [listed("q1", "b::f1", "x1")], fragments))
    assert ask(tmp_path, "SELECT fragment_id, source_id, relevant FROM ranked_results ORDER BY rank") == [
        ("b::f1", "b", None),
        ("x1", "a", True),
    ]


def test_the_same_run_is_the_same_bytes_and_one_more_execution(tmp_path: Path) -> None:
    shuffled = World(
        judgments=FULL.judgments[::-1],
        results=FULL.results[::-1],
        fragments=FULL.fragments[::-1],
        limit=3,
        top_k=2,
        cutoffs=(1, 3),
    )
    one = keep(tmp_path / "one", FULL, 1)
    other = keep(tmp_path / "other", shuffled, 2)
    assert contents(tmp_path / "one" / "runs") == contents(tmp_path / "other" / "runs")
    again = keep(tmp_path / "one", shuffled, 3, labels=["third"])
    assert (one.is_new, other.is_new, again.is_new) == (True, True, False)
    assert one.run_id == again.run_id
    executions = Store(tmp_path / "one").executions()
    assert [(one.time.day, one.labels) for one in executions] == [(1, ()), (3, ("third",))]
    assert ask(tmp_path / "one", "SELECT count(*) FROM runs") == [(1,)]


def test_a_generation_run(tmp_path: Path) -> None:
    needs = [{"requirement_id": "r1", "acceptable_fragment_ids": ["a::f1"]}]
    base = {"answer": "Yes.", "citation_requirements": needs, "accepted_fragment_ids": ["a::f1"], "expected_answerable": True}
    rows = [
        {"query_id": "q1", **base, "cited_fragment_ids": ["a::f1"], "faithfulness_score": 0.9, "query": "One?", "cluster": "k"},
        {"query_id": "q2", **base, "cited_fragment_ids": ["zz::f1"], "faithfulness_score": 0.9, "latency_ms": 7.0},
        {"query_id": "q3", **base, "cited_fragment_ids": ["a::f1"]},
    ]
    keep_answers(tmp_path, rows)
    sql = "SELECT query_id, query, cluster, complete, reasons, qualified, requirement_coverage, faithfulness FROM queries"
    assert ask(tmp_path, f"{sql} ORDER BY query_id") == [
        ("q1", "One?", "k", True, [], 1.0, 1.0, 0.9),
        ("q2", None, None, True, ["missing_requirement", "bad_citation"], 0.0, 0.0, 0.9),
        ("q3", None, None, False, ["not_judged"], None, 1.0, None),
    ]
    assert ask(tmp_path, "SELECT query_id, status, nonexistent FROM generation_rows WHERE query_id = 'q2'") == [
        ("q2", "missing_requirement", ["zz::f1"])
    ]
    assert ask(tmp_path, "SELECT query_id, met, met_by FROM requirements ORDER BY query_id") == [
        ("q1", True, ["a::f1"]),
        ("q2", False, []),
        ("q3", True, ["a::f1"]),
    ]
    assert ask(tmp_path, "SELECT query_id, reasons FROM misses ORDER BY 1")[0] == (
        "q2",
        ["missing_requirement", "bad_citation"],
    )
    assert ask(tmp_path, "SELECT query_id, latency_ms FROM latencies") == [("q2", 7.0)]


def test_a_corpus_run(tmp_path: Path) -> None:
    """q1 keeps its source; q2 is routed elsewhere and loses it."""
    judgments = [expects("q1", {"east": ["a"]}), expects("q2", {"west": ["w"]})]
    results = [result("q1", fan("east", "a::f1")), result("q2", fan("east", "b::f1"), latency_ms=3.0)]
    own = CorpusWorld(judgments, results, library(east="ab", west="w"))
    with tempfile.TemporaryDirectory() as inputs:
        config = corpus_config(Path(inputs), own)
        outcome = corpus.evaluate(config)
        store(corpus_tables.content_of(outcome, config), tmp_path, now=day(1))
    names = "query_id, expected_collections, routed_collections, expected, kept_routed, kept_final, lost_by_routing"
    assert ask(tmp_path, f"SELECT {names} FROM corpus_rows ORDER BY query_id") == [
        ("q1", ["east"], ["east"], 1, 1, 1, 0),
        ("q2", ["west"], ["east"], 1, 0, 0, 1),
    ]
    assert ask(tmp_path, "SELECT query_id, reasons, expected_sources, missed_sources FROM misses") == [
        ("q2", ["lost_by_routing"], ["west/w"], ["west/w"])
    ]
    assert ask(tmp_path, "SELECT query_id, kept_final, routing_recall FROM queries ORDER BY 1") == [("q1", 1, 1), ("q2", 0, 0)]
    assert ask(tmp_path, "SELECT query_id, latency_ms FROM latencies") == [("q2", 3.0)]


def test_results_that_changed_meanwhile_are_not_stored(tmp_path: Path) -> None:
    config = config_of(tmp_path, FULL)
    outcome = retrieval.evaluate(config, cutoffs=FULL.cutoffs)
    path = tmp_path / "ranked-results.jsonl"
    path.write_text(path.read_text().replace('"q1"', '"q9"', 1))
    with pytest.raises(InputError) as caught:
        content_of(outcome, config, Options())
    assert "ranked-results.jsonl  changed while it was evaluated" in str(caught.value.findings[0])


def test_judgments_are_stored_as_they_were_evaluated(tmp_path: Path) -> None:
    """They are not read a second time: what becomes of the file meanwhile does not matter."""
    config = config_of(tmp_path, FULL)
    outcome = retrieval.evaluate(config, cutoffs=FULL.cutoffs)
    store(content_of(outcome, config, Options()), tmp_path / "usual", now=day(1))
    (tmp_path / "judgments.jsonl").unlink()
    store(content_of(outcome, config, Options()), tmp_path / "late", now=day(1))
    assert contents(tmp_path / "late" / "runs") == contents(tmp_path / "usual" / "runs")


def test_an_input_from_standard_input_is_not_stored(tmp_path: Path) -> None:
    config = config_of(tmp_path, FULL)
    outcome = retrieval.evaluate(config, cutoffs=FULL.cutoffs)
    piped = config.model_copy(update={"ranked_results": "-"})
    with pytest.raises(InputError) as caught:
        content_of(outcome, piped, Options())
    assert "standard input cannot be read again" in str(caught.value.findings[0])


def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file stands here")
    with pytest.raises(OutputError, match="the store cannot be written"):
        keep(tmp_path / "store", FULL)


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {**TABLES, "misses": RUNS}
    monkeypatch.setattr("tripos.store.writing.TABLES", {name: broken[name] for name in broken if name != "queries"})
    with pytest.raises(KeyError):
        keep(tmp_path, FULL)
    assert contents(tmp_path) == {}


def test_processes_killed_at_random_lose_and_double_nothing(tmp_path: Path) -> None:
    """Two processes write overlapping runs into one store, a third into another; each is killed and started again."""
    here, there = tmp_path / "here", tmp_path / "there"
    shares = [(here, range(4)), (here, range(2, 6)), (there, range(4, 8))]
    kills = finish(shares, 8, random.Random(3), 0.15)
    checked, findings = merged(tmp_path / "both", [here, there])
    assert kills > 2
    assert [str(finding) for finding in findings.kept] == []
    assert checked.runs == 8
    labels = {label for one in Store(tmp_path / "both").executions() for label in one.labels}
    assert labels == {f"number {n}" for n in range(8)}
    whole = tmp_path / "whole"
    for number in range(8):
        keep(whole, world(number), 1 + number)
    assert contents(whole / "runs") == contents(tmp_path / "both" / "runs")


def test_a_certificate_is_stored_once(tmp_path: Path) -> None:
    row = {"certified": False, "name": "kb", "configuration": "c" * 64, "run_ids": ["r" * 64], "failed_checks": ["one"]}
    document = Config(name="any document will do")
    first, second = (store_certificate(tmp_path, document, row) for _ in range(2))
    assert (first[1], second) == (True, (first[0], False))
    assert ask(tmp_path, "SELECT certificate_id, certified, failed_checks FROM certificates") == [(first[0], False, ["one"])]


def test_names_with_quotes_and_patterns_are_names(tmp_path: Path) -> None:
    folder = tmp_path / "it's [a] *store*?"
    odd = World([judgment("q'1", 'a"b')], [listed("q'1", 'a"b', "a\nb")])
    run_id = keep(folder, odd, name='o\'Neil "x"').run_id
    assert ask(folder, "SELECT fragment_id FROM ranked_results ORDER BY rank") == [('a"b',), ("a\nb",)]
    assert Store(folder).run(run_id).report.name == 'o\'Neil "x"'
