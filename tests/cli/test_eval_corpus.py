"""eval-corpus as a user runs it: bound to a retrieval report or not, what it writes, how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.world import run
from tests.explain_worlds import RETRIEVAL, TOP_K, Case, case, write
from tripos.contracts.corpus_report import CorpusReport

ROUTES = ["--judgments", "corpus.jsonl", "--results", "corpus-results.jsonl"]
BOUND = [*ROUTES, "--retrieval-report", "retrieval/report.json"]


def prepared(folder: Path, *changes: Any) -> list[Case]:
    """Four queries, evaluated by the retrieval layer."""
    cases = [case(n) for n in range(4)]
    for change in changes:
        change(cases)
    write(folder, cases)
    flags = ["--fragments", "fragments.jsonl", "--limit", "10", "--top-k", str(TOP_K), "--output", "retrieval"]
    assert run(folder, ["eval-retrieval", *RETRIEVAL, *flags]).code == 0
    return cases


def report(folder: Path) -> CorpusReport:
    return CorpusReport.model_validate_json((folder / "out" / "corpus-report.json").read_bytes())


def test_a_bound_report_carries_the_fingerprint_of_the_retrieval_report(tmp_path: Path) -> None:
    prepared(tmp_path)
    outcome = run(tmp_path, ["eval-corpus", *BOUND, "--output", "out"])
    assert outcome.code == 0, outcome.err
    retrieval = json.loads((tmp_path / "retrieval" / "report.json").read_text())
    mine = report(tmp_path)
    assert mine.fingerprint.configuration == retrieval["fingerprint"]["configuration"]
    assert mine.retrieval_run_id == retrieval["run_id"]
    assert (mine.binding, mine.rows.scored) == ("declared", 4)
    assert {entry.role: entry.path for entry in mine.provenance.inputs} == {
        "judgments": "../corpus.jsonl",
        "corpus_results": "../corpus-results.jsonl",
        "retrieval_report": "../retrieval/report.json",
    }


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--top-k", "2"], "D evidence depth: top_k 3 in retrieval, 2 here"),
        (["--fragments", "fewer.jsonl"], "A corpus: number of fragments 55 in retrieval, 54 here"),
        (["--config", "dense.yaml"], 'C search policy: mode "lexical" in retrieval, "dense" here'),
    ],
)
def test_another_configuration_is_refused_field_by_field(tmp_path: Path, flags: list[str], told: str) -> None:
    prepared(tmp_path)
    rows = (tmp_path / "fragments.jsonl").read_text().splitlines()
    (tmp_path / "fewer.jsonl").write_text("\n".join(rows[:-1]) + "\n")
    (tmp_path / "dense.yaml").write_text("search: {mode: dense}\n")
    outcome = run(tmp_path, ["eval-corpus", *BOUND, *flags, "--output", "out"])
    assert outcome.code == 4, outcome.err
    assert told in outcome.err
    assert not (tmp_path / "out" / "corpus-report.json").exists()


def test_a_depth_that_agrees_as_far_as_it_is_stated_is_accepted(tmp_path: Path) -> None:
    prepared(tmp_path)
    assert run(tmp_path, ["eval-corpus", *BOUND, "--top-k", str(TOP_K), "--unit", "fragment"]).code == 0


def _stamp(stamp: str) -> Any:
    def change(cases: list[Case]) -> None:
        for one in cases:
            assert one.did is not None
            one.did["system_fingerprint"] = stamp

    return change


def test_results_of_another_system_are_refused(tmp_path: Path) -> None:
    prepared(tmp_path, _stamp("0" * 64))
    outcome = run(tmp_path, ["eval-corpus", *BOUND])
    assert outcome.code == 4
    assert "4 of 4 corpus results were made by another system" in outcome.err


def test_results_that_all_carry_the_stamp_are_verified(tmp_path: Path) -> None:
    prepared(tmp_path)
    stamp = json.loads((tmp_path / "retrieval" / "report.json").read_text())["fingerprint"]["system"]
    prepared(tmp_path, _stamp(stamp))
    assert run(tmp_path, ["eval-corpus", *BOUND, "--output", "out"]).code == 0
    assert report(tmp_path).binding == "verified"


def test_one_query_id_means_one_text_in_all_layers(tmp_path: Path) -> None:
    def other(cases: list[Case]) -> None:
        assert cases[1].route is not None
        cases[1].route["query"] = "Something else?"

    prepared(tmp_path, other)
    outcome = run(tmp_path, ["eval-corpus", *BOUND])
    assert outcome.code == 3
    assert outcome.err.startswith("corpus.jsonl:2  query  is another text than the retrieval judgments have")


def test_without_a_report_it_is_unbound_and_says_so(tmp_path: Path) -> None:
    prepared(tmp_path)
    outcome = run(tmp_path, ["eval-corpus", *ROUTES, "--fragments", "fragments.jsonl", "--output", "out"])
    assert outcome.code == 0
    assert outcome.out.splitlines()[0].endswith("unbound")
    assert report(tmp_path).fingerprint.configuration is None


def test_json_is_one_document_and_the_report(tmp_path: Path) -> None:
    prepared(tmp_path)
    outcome = run(tmp_path, ["eval-corpus", *BOUND, "--json", "--output", "out"])
    assert outcome.out.encode() == (tmp_path / "out" / "corpus-report.json").read_bytes()


def test_incomplete_exits_6_unless_it_is_allowed(tmp_path: Path) -> None:
    def lost(cases: list[Case]) -> None:
        cases[2].did = None
        for one in cases:  # else the gate on leaks could not be decided
            assert one.route is not None
            del one.route["principal"]

    prepared(tmp_path, lost)
    outcome = run(tmp_path, ["eval-corpus", *BOUND])
    assert outcome.code == 6
    assert "incomplete       1 of 4: q02 (no row in the corpus results)" in outcome.out
    assert run(tmp_path, ["eval-corpus", *BOUND, "--allow-incomplete"]).code == 0


def test_gates_by_flag_read_the_worst(tmp_path: Path) -> None:
    prepared(tmp_path)
    assert run(tmp_path, ["eval-corpus", *BOUND, "--fail-under", "kept_final=1"]).code == 0
    assert run(tmp_path, ["eval-corpus", *BOUND, "--fail-over", "lost_by_routing=0"]).code == 0
    assert run(tmp_path, ["eval-corpus", *BOUND, "--fail-under", "expected_none=1"]).code == 1  # vacuous: there is no such row


def test_each_layer_takes_its_own_gates(tmp_path: Path) -> None:
    prepared(tmp_path)
    (tmp_path / "c.yaml").write_text("gates: {hit@1: {min: 0.5}, kept_final: {min: 0.5}, citation_precision: {min: 0.5}}\n")
    flags = ["--fragments", "fragments.jsonl", "--limit", "10", "--top-k", str(TOP_K), "--output", "retrieval"]
    assert "hit@1 ≥ 0.5" in run(tmp_path, ["eval-retrieval", *RETRIEVAL, *flags, "--config", "c.yaml"]).out
    out = run(tmp_path, ["eval-corpus", *BOUND, "--config", "c.yaml"]).out
    assert ("kept_final ≥ 0.5" in out, "hit@1" in out, "citation" in out) == (True, False, False)


def test_print_config_tells_where_each_setting_came_from(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("run: full\njudgments: {corpus: j.jsonl}\n")
    out = run(tmp_path, ["eval-corpus", "--config", "c.yaml", "--results", "r.jsonl", "--print-config"]).out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["judgments.corpus"] == ['"j.jsonl"', "file"]
    assert rows["corpus.results"] == ['"r.jsonl"', "flag"]
    assert rows["corpus.retrieval_report"][0] == '"full/retrieval/report.json"'


@pytest.mark.parametrize(
    ("command", "gate", "other"),
    [
        ("eval-corpus", "citation_precision=1", "generation"),
        ("eval-corpus", "hit@1=1", "retrieval"),
        ("eval-retrieval", "kept_final=1", "corpus"),
        ("eval-generation", "kept_final=1", "corpus"),
    ],
)
def test_a_gate_flag_of_another_layer_is_refused(tmp_path: Path, command: str, gate: str, other: str) -> None:
    outcome = run(tmp_path, [command, "--fail-under", gate])
    assert outcome.code == 2
    assert f"is a measure of eval-{other}: give it there" in outcome.err
