"""Streams, exit codes and files: one document on stdout, one verdict for text, JSON and exit code, the same bytes each time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.world import (
    FRAGMENTS,
    JUDGMENTS,
    MISSES,
    OLD,
    REPORT,
    RESULTS,
    SUPPORT_KB,
    World,
    contents,
    result,
    run,
    spawn,
)
from tripos.contracts.reports import RetrievalReport
from tripos.contracts.retrieval import RetrievalMiss
from tripos.fingerprint import digest

EMPTY_LIST = result("q2")

# One document on stdout.


def test_json_is_one_document_and_the_report(world: World) -> None:
    outcome = world.run("--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.encode() == (world.output / REPORT).read_bytes()
    assert json.loads(outcome.out)["contract"] == "tripos/retrieval-report@1"


@pytest.mark.parametrize("code", [0, 1, 6])
def test_json_carries_the_verdict_that_the_process_exits_with(code: int, world: World) -> None:
    if code == 6:
        world.results.pop()
    outcome = world.run("--json", *(["--fail-under", "hit@1=0.9"] if code == 1 else []))
    assert outcome.code == code
    assert json.loads(outcome.out)["verdict"]["exit_code"] == code


def test_json_goes_to_stdout_and_warnings_to_stderr(world: World) -> None:
    world.fragments[4]["text"] = " "
    outcome = world.run("--json")
    assert json.loads(outcome.out)["warnings"] == ["empty text: 1"]
    assert outcome.errors == [f"warning: {FRAGMENTS}:5  text  empty: no search can find this fragment"]


def test_without_output_nothing_is_written(world: World) -> None:
    world.write()
    before = world.everything()
    arguments = world.arguments()
    assert arguments[-2:] == ["--output", "out"]
    outcome = run(world.folder, [*arguments[:-2], "--json"])
    assert (outcome.code, json.loads(outcome.out)["verdict"]["status"]) == (0, "passed")
    assert world.everything() == before


def test_per_query_rows_are_the_figures_of_the_report(world: World) -> None:
    outcome = world.run("--per-query", "rows.jsonl")
    rows = [json.loads(text) for text in (world.folder / "rows.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["complete"]) for row in rows] == [("q1", True), ("q2", True), ("q3", True)]
    assert [row["hit@1"] for row in rows] == [1, 0, None]
    assert [row["rr@3"] for row in rows] == [1, 0.5, None]
    assert outcome.curve("rr").value[2] == 0.75


def test_per_query_rows_alone(world: World) -> None:
    world.write()
    outcome = run(world.folder, [*world.arguments()[:-2], "--per-query", "rows.jsonl"])
    assert outcome.code == 0
    assert "→ rows.jsonl\n" in outcome.out
    assert len((world.folder / "rows.jsonl").read_text().splitlines()) == 3


def test_per_query_on_stdout_is_not_mixed_with_the_report(world: World) -> None:
    outcome = world.run("--per-query", "-", "--json")
    assert outcome.code == 2 or json.loads(outcome.out)


def test_the_summary_says_where_the_files_are(world: World) -> None:
    outcome = world.run()
    assert all(f"out/{name}" in outcome.out for name in OLD)
    assert outcome.out.splitlines()[-1] == "passed"


# Exit codes.


def test_passed(world: World) -> None:
    outcome = world.run("--fail-under", "hit@3=1", "--fail-over", "hit@1=0.5")
    assert outcome.code == 0
    assert (outcome.report.verdict.status, outcome.report.verdict.because) == ("passed", ())


def test_failed(world: World) -> None:
    outcome = world.run("--fail-under", "hit@1=0.51")
    assert outcome.code == 1
    assert outcome.gate("hit@1") == ("failed", "worst 0.5")
    assert outcome.out.splitlines()[-1] == "failed: hit@1: worst 0.5   (exit 1)"


@pytest.mark.parametrize(("flag", "bound", "code"), [
    ("--fail-under", "0.5", 0), ("--fail-under", "0.500000000001", 1),
    ("--fail-over", "0.5", 0), ("--fail-over", "0.499999999999", 1),
])  # fmt: skip
def test_a_gate_exactly_at_its_threshold_passes(flag: str, bound: str, code: int, world: World) -> None:
    assert world.run(flag, f"hit@1={bound}").code == code


def test_a_threshold_of_one_third_passes_as_it_is_printed(world: World) -> None:
    """precision@3 of q1 and q2 is 1/3 each; the report carries it as 0.333333333333."""
    outcome = world.run("--fail-under", "precision@3=0.333333333333")
    assert outcome.curve("precision").value[2] == 0.333333333333
    assert outcome.code == 0


def test_only_complete_failing_is_incomplete(world: World) -> None:
    world.results.pop(1)
    outcome = world.run("--fail-under", "hit@3=0.5")
    assert outcome.code == 6
    assert (outcome.gate("complete")[0], outcome.gate("hit@3")[0]) == ("failed", "passed")
    assert outcome.report.verdict.status == "incomplete"


def test_incomplete_comes_before_a_failing_gate(world: World) -> None:
    world.results.pop(1)
    outcome = world.run("--fail-under", "hit@3=0.9")
    assert outcome.code == 6
    assert (outcome.gate("complete")[0], outcome.gate("hit@3")[0]) == ("failed", "failed")
    assert outcome.report.verdict.because == ("complete: 1 of 3 queries have no usable result", "hit@3: worst 0.5")


def test_incomplete_and_allowed_leaves_the_other_gates(world: World) -> None:
    world.results.pop(1)
    assert world.run("--allow-incomplete", "--fail-under", "hit@3=0.9").code == 1
    assert world.run("--allow-incomplete", "--fail-under", "hit@3=0.5").code == 0


def test_an_incomplete_row_leaves_a_leak_gate_inconclusive(world: World) -> None:
    world.judgments[1]["principal"] = {"groups": ["everyone"]}
    world.results.pop(1)
    outcome = world.run("--allow-incomplete")
    assert (outcome.code, outcome.gate("leaks")[0]) == (6, "inconclusive")


def test_a_leak_fails(world: World) -> None:
    world.judgments[1]["principal"] = {"groups": ["everyone"]}
    world.results[1] = result("q2", "s2::f1", "s5::f1")
    outcome = world.run()
    assert (outcome.code, outcome.gate("leaks")[0]) == (1, "failed")
    assert outcome.misses["q2"].leaked == ("s5::f1",)


def test_nothing_to_evaluate(world: World) -> None:
    world.judgments = [{**row, "review_status": "draft"} for row in world.judgments]
    outcome = world.run("--json")
    assert (outcome.code, outcome.out, contents(world.output)) == (5, "", OLD)


def test_invalid_input(world: World) -> None:
    world.judgments[0]["k"] = 0
    outcome = world.run("--json")
    assert (outcome.code, outcome.out, contents(world.output)) == (3, "", OLD)


def test_usage(world: World) -> None:
    outcome = world.run("--json", "--limit", "0")
    assert (outcome.code, outcome.out, contents(world.output)) == (2, "", OLD)


def test_an_older_report_of_another_run_is_replaced_whatever_the_verdict(world: World) -> None:
    outcome = world.run("--fail-under", "hit@1=0.9")
    assert outcome.code == 1
    assert {name: content == OLD[name] for name, content in contents(world.output).items()} == {REPORT: False, MISSES: False}


# Configuration.

CONFIG = f"""\
name: kb
fragments: [data/{FRAGMENTS}]
judgments:
  retrieval: data/{JUDGMENTS}
  completeness: pooled
ranked_results: data/{RESULTS}
search:
  mode: hybrid
depth:
  limit: 3
  top_k: 2
gates:
  hit@1: {{min: 0.5}}
"""
FLAGS = [
    *("--name", "kb", "--fragments", f"conf/data/{FRAGMENTS}", "--judgments", f"conf/data/{JUDGMENTS}"),
    *("--completeness", "pooled", "--ranked-results", f"conf/data/{RESULTS}", "--retrieval-mode", "hybrid"),
    *("--limit", "3", "--top-k", "2", "--fail-under", "hit@1=0.5"),
]


@pytest.fixture
def configured(world: World) -> World:
    """The world in conf/data, and conf/kb.yaml that names it from there."""
    world.write()
    data = world.folder / "conf" / "data"
    data.mkdir(parents=True)
    for name in (FRAGMENTS, JUDGMENTS, RESULTS):
        shutil.move(world.folder / name, data / name)
    (world.folder / "conf" / "kb.yaml").write_text(CONFIG)
    return world


def test_a_run_by_file_is_the_run_by_flags(configured: World) -> None:
    by_file = run(configured.folder, ["eval-retrieval", "--config", "conf/kb.yaml", "--output", "out"])
    assert by_file.code == 0, by_file.err
    one = contents(configured.output)
    by_flags = run(configured.folder, ["eval-retrieval", *FLAGS, "--output", "out"])
    assert by_flags.code == 0, by_flags.err
    assert contents(configured.output) == one
    assert by_flags.report.fingerprint.configuration == json.loads(one[REPORT])["fingerprint"]["configuration"]


def test_flags_win_over_the_file(configured: World) -> None:
    outcome = run(configured.folder, ["eval-retrieval", "--config", "conf/kb.yaml", "--output", "out", "--top-k", "1"])
    values = outcome.report.fingerprint.components["D"].values
    assert values is not None
    assert (values["limit"], values["top_k"]) == (3, 1)


def test_print_config_tells_each_origin(configured: World) -> None:
    before = configured.everything()
    arguments = ["eval-retrieval", "--config", "conf/kb.yaml", "--output", "out", "--limit", "5", "--print-config"]
    outcome = run(configured.folder, arguments)
    rows = {line.split()[0]: (line.split()[1], line.split()[-1]) for line in outcome.out.splitlines()}
    assert rows["depth.limit"] == ("5", "flag")
    assert rows["depth.top_k"] == ("2", "file")
    assert rows["judgments.retrieval"] == (f'"conf/data/{JUDGMENTS}"', "file")
    assert rows["scope"] == ('"full"', "default")
    document = json.loads(run(configured.folder, [*arguments, "--json"]).out)
    assert document["depth.limit"] == {"value": 5, "from": "flag"}
    assert document["judgments.completeness"] == {"value": "pooled", "from": "file"}
    assert document["acl_default"] == {"value": None, "from": "default"}
    assert configured.everything() == before


def test_print_config_tells_the_origin_of_gates(configured: World) -> None:
    arguments = ["eval-retrieval", *FLAGS, "--print-config"]
    document = json.loads(run(configured.folder, [*arguments, "--json"]).out)
    assert document["gates"]["from"] == "flag"
    (line,) = [line for line in run(configured.folder, arguments).out.splitlines() if line.startswith("gates")]
    assert line.endswith(" flag")


def test_configuration_and_judgments_cannot_both_be_stdin(world: World) -> None:
    world.write()
    outcome = run(world.folder, ["eval-retrieval", "--config", "-", "--judgments", "-"], b"name: kb\n")
    assert outcome.code == 2


# Files.


def test_a_second_run_writes_the_same_bytes(world: World) -> None:
    world.results[1] = EMPTY_LIST
    world.run()
    one = contents(world.output)
    assert OLD[REPORT] != one[REPORT]
    assert len(one[MISSES].splitlines()) == 1
    world.run()
    assert contents(world.output) == one


def test_the_report_and_each_miss_keep_their_contracts(world: World) -> None:
    world.results[1] = EMPTY_LIST
    outcome = world.run()
    report = RetrievalReport.model_validate_json((world.output / REPORT).read_bytes())
    (line,) = (world.output / MISSES).read_bytes().splitlines()
    miss = RetrievalMiss.model_validate_json(line)
    assert (report.missed, report.misses) == (1, {"no_hit": 1})
    assert (miss.query_id, miss.reasons, miss.found, miss.results) == ("q2", ("no_hit",), {"s2": None}, ())
    assert (miss.run_id, miss.configuration_fingerprint) == (report.run_id, report.fingerprint.configuration)
    assert outcome.code == 0


def test_the_run_id_is_the_digest_of_the_content(world: World) -> None:
    world.run()
    content = json.loads((world.output / REPORT).read_bytes())
    run_id = content.pop("run_id")
    inputs = [(one["role"], one["path"]) for one in content.pop("provenance")["inputs"]]
    roles = {"fragments": FRAGMENTS, "judgments": JUDGMENTS, "ranked_results": RESULTS}
    assert inputs == [(role, f"../{name}") for role, name in roles.items()]
    assert run_id == digest(content)


def test_latency_and_paths_change_no_content(world: World) -> None:
    one = world.run().report
    for row in world.results:
        row["latency_ms"] = 7.5
    world.names[RESULTS] = "elsewhere.jsonl"
    world.write()
    shutil.move(world.folder / RESULTS, world.folder / "elsewhere.jsonl")
    two = run(world.folder, world.arguments()).report
    assert two.provenance.latency_ms.p50 == 7.5
    assert two.provenance != one.provenance
    assert two.model_dump(exclude={"provenance"}) == one.model_dump(exclude={"provenance"})


def test_a_new_folder_is_made_for_the_output(world: World) -> None:
    outcome = world.run("--output", "a/b/c")
    assert outcome.code == 0
    assert set(contents(world.folder / "a")) == {f"b/c/{REPORT}", f"b/c/{MISSES}"}


def test_the_shipped_integration_set_passes(tmp_path: Path) -> None:
    shipped = SUPPORT_KB / "integration"
    names = {
        "--fragments": FRAGMENTS,
        "--judgments": "retrieval_golden_single.jsonl",
        "--ranked-results": "ranked-results.jsonl",
    }
    files = [part for flag, name in names.items() for part in (flag, str(shipped / name))]
    arguments = [*files, "--retrieval-mode", "hybrid", "--scope", "integration", "--output", "out"]
    outcome = run(tmp_path, ["eval-retrieval", *arguments])
    assert outcome.code == 0, outcome.err
    assert (outcome.report.scope, outcome.report.rows.scored) == ("integration", 5)
    assert "integration: a check of wiring, not of quality" in outcome.out


def test_search_then_evaluate_is_bound_by_digests(tmp_path: Path) -> None:
    inputs = ["--fragments", str(SUPPORT_KB / FRAGMENTS), "--judgments", str(SUPPORT_KB / "retrieval_golden_single.jsonl")]
    searched = run(tmp_path, ["search", *inputs, "--output", "ranked.jsonl", "--latency", "none", "--limit", "10"])
    assert (searched.code, searched.out) == (0, "")
    arguments = ["eval-retrieval", *inputs, "--ranked-results", "ranked.jsonl", "--limit", "10", "--output", "out"]
    outcome = run(tmp_path, [*arguments, "--retrieval-mode", "lexical"])
    assert outcome.code in (0, 1), outcome.err
    assert outcome.report.binding == {"corpus": "verified", "policy": "verified"}
    kept = contents(tmp_path / "out")
    other = run(tmp_path, [*arguments, "--retrieval-mode", "hybrid"])
    assert (other.code, other.out) == (4, "")
    assert all(word in other.err for word in ("C search policy", "ranked.jsonl:1", "mode", "lexical", "hybrid"))
    assert contents(tmp_path / "out") == kept


def test_what_search_writes_must_be_of_this_corpus(tmp_path: Path, world: World) -> None:
    world.write()
    inputs = ["--fragments", FRAGMENTS, "--judgments", JUDGMENTS]
    assert run(world.folder, ["search", *inputs, "--output", RESULTS, "--latency", "none", "--limit", "3"]).code == 0
    assert run(world.folder, world.arguments("--retrieval-mode", "lexical")).code == 0
    kept = contents(world.output)
    text = (world.folder / FRAGMENTS).read_text()
    (world.folder / FRAGMENTS).write_text(text.replace("What s4 says", "What s4 said"))
    outcome = run(world.folder, world.arguments("--retrieval-mode", "lexical"))
    assert (outcome.code, outcome.out) == (4, "")
    assert "A corpus" in outcome.err
    assert contents(world.output) == kept


# What only a process shows.


def test_the_console_script_is_the_command(world: World) -> None:
    script = Path(sys.executable).with_name("tripos")
    if not script.exists():
        pytest.skip("the package is not installed with its script")
    world.write()
    done = subprocess.run([script, *world.arguments("--json")], cwd=world.folder, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (world.output / REPORT).read_bytes()


def closed_pipe() -> int:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_closed_pipe_gives_no_traceback(flags: list[str], world: World) -> None:
    world.write()
    pipe = closed_pipe()
    try:
        done = spawn(world.folder, world.arguments(*flags), stdout=pipe)
    finally:
        os.close(pipe)
    assert done.stderr == b""
    RetrievalReport.model_validate_json((world.output / REPORT).read_bytes())


def test_head_takes_what_it_wants(world: World) -> None:
    world.write()
    arguments = " ".join(world.arguments("--json", "--limit", "2000"))
    command = f"'{sys.executable}' -c 'from tripos.cli.app import main; main()' {arguments} | head -c 1"
    done = subprocess.run(["sh", "-c", command], cwd=world.folder, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"{", b"")


@pytest.mark.parametrize("code", [0, 6])
def test_a_closed_pipe_does_not_change_the_verdict(code: int, world: World) -> None:
    if code:
        world.results.pop()
    world.write()
    pipe = closed_pipe()
    try:
        done = spawn(world.folder, world.arguments(), stdout=pipe)
    finally:
        os.close(pipe)
    assert done.returncode == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_stdout_is_an_output_error(world: World) -> None:
    world.write()
    with open("/dev/full", "wb") as full:
        done = spawn(world.folder, world.arguments(), stdout=full)
    assert (done.returncode, b"internal error" in done.stderr) == (2, False)


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "cp1252"}])
def test_a_narrow_terminal_encoding_gets_the_summary_all_the_same(environment: Mapping[str, str], world: World) -> None:
    world.write()
    done = spawn(world.folder, world.arguments(), environment=environment)
    assert (done.returncode, done.stderr) == (0, b"")


def test_json_survives_a_narrow_terminal_encoding(world: World) -> None:
    world.write()
    done = spawn(world.folder, world.arguments("--json"), environment={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (world.output / REPORT).read_bytes()


@pytest.mark.parametrize("broken", [False, True])
def test_no_file_is_left_open(broken: bool, world: World) -> None:
    if broken:
        world.results[1]["results"][0]["fragment_id"] = "t3::f1"
    world.write()
    done = spawn(world.folder, world.arguments(), environment={"PYTHONWARNINGS": "default::ResourceWarning"})
    assert done.returncode == (3 if broken else 0)
    assert b"ResourceWarning" not in done.stderr


def test_no_progress_where_stderr_is_no_terminal(world: World) -> None:
    world.write()
    done = spawn(world.folder, world.arguments())
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_internal_error_is_one_line_and_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("tripos.runners.retrieval.evaluate", broken)
    monkeypatch.delenv("TRIPOS_TRACEBACK", raising=False)
    outcome = world.run()
    assert (outcome.code, outcome.out, len(outcome.errors)) == (70, "", 1)
    assert outcome.errors[0].startswith("tripos: internal error: ZeroDivisionError")
    assert contents(world.output) == OLD


def test_nothing_is_written_elsewhere(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    world.write()
    before = world.everything()
    done = spawn(
        world.folder, world.arguments(), environment={"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home)}
    )
    assert done.returncode == 0
    assert contents(home) == {}
    assert {name: content for name, content in world.everything().items() if before.get(name) != content}.keys() == {
        f"out/{REPORT}",
        f"out/{MISSES}",
    }
