"""compare, baseline, aa and power as a user runs them: what they read, print and write, and how they exit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.world import ROOT, Outcome, contents, run
from tests.explain_worlds import BREAKS, QUERIES, RETRIEVAL, Case, case, evaluate, write
from tripos.contracts.baseline import Baseline
from tripos.contracts.comparison import Candidate, Comparison, Power, Repeats
from tripos.contracts.reports import DropGate, RetrievalReport
from tripos.files.configs import read_model

DEPTH = ["--limit", "10", "--top-k", "3"]


def made(folder: Path, name: str, place: str | None = None, n: int = 8, change: Any = None) -> list[Case]:
    """A full run in a folder of its own, of which the first n queries are broken at one place."""
    cases = [case(number) for number in range(QUERIES)]
    for one in cases[:n] if place else ():
        BREAKS[place](one)  # type: ignore[index]
    if change:
        change(cases)
    (folder / name).mkdir()
    write(folder / name, cases)
    evaluate(folder / name)
    return cases


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a and b of forty queries; b loses eight that a finds."""
    folder = tmp_path_factory.mktemp("two")
    made(folder, "a")
    made(folder, "b", "rank")
    return folder


@pytest.fixture
def two(tmp_path: Path, template: Path) -> Path:
    """The two runs in a folder of the test's own."""
    shutil.copytree(template, tmp_path / "two")
    return tmp_path / "two"


def compared(folder: Path, *arguments: str, code: int = 0) -> Comparison:
    outcome = run(folder, ["compare", *arguments, "--json"])
    assert outcome.code == code, outcome.err
    return Comparison.model_validate_json(outcome.out)


def only(found: Comparison) -> Candidate:
    (one,) = found.candidates
    return one


def evaluated(folder: Path, *more: str, ranked: str = "ranked-results.jsonl") -> Outcome:
    flags = [*RETRIEVAL[:2], "--ranked-results", ranked, *RETRIEVAL[4:], "--fragments", "fragments.jsonl", *DEPTH]
    return run(folder, ["eval-retrieval", *flags, *more])


@pytest.mark.parametrize("layer", ["retrieval", "generation", "corpus"])
def test_every_layer_is_compared_from_its_reports(two: Path, layer: str) -> None:
    found = compared(two, "a", "b", "--layer", layer)
    one = only(found)
    assert found.layer == layer
    assert one.lost == tuple(f"q{n:02d}" for n in range(8))
    assert one.gained == ()
    assert min(cell.p or 1.0 for cell in one.cells) == 2 / 2**8, "eight rows, all one way"
    assert {cell.n for cell in one.cells} <= {*range(QUERIES - 8, QUERIES + 1)}


def test_the_table_is_as_the_sketch_has_it(two: Path) -> None:
    outcome = run(two, ["compare", "a/retrieval/report.json", "b/retrieval", "--max-drop", "recall@3=0.02"])
    assert outcome.code == 1
    assert (
        "recall@3                    1.00    .800   −.200  [−.325, −.075]        .008      .031      40      0      8   worse"
        in outcome.out
    )
    assert "lost (8): q00 q01 q02 q03 q04 q05 q06 q07\n" in outcome.out
    assert "gate  max-drop recall@3 ≤ 0.02: FAIL   fell by 0.2" in outcome.out
    assert outcome.out.endswith("(exit 1)\n")
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ("comparison", ["compare", "a", "b,b", "--max-drop", "recall@3=0.3", "--confidence", "0.9"]),
        ("repeats", ["aa", "a", "b", "--max-drop", "recall@3=0.3"]),
        ("power", ["power", "a", "b"]),
    ],
)
def test_what_is_printed_fits_its_schema(two: Path, schema: str, arguments: list[str]) -> None:
    content = json.loads((ROOT / "schemas" / f"{schema}.schema.json").read_text())
    printed = json.loads(run(two, [*arguments, "--json"]).out)
    jsonschema.Draft202012Validator(content).validate(printed)
    assert printed["contract"] == f"tripos/{schema}@1"


def test_markdown_is_for_a_pull_request(two: Path) -> None:
    outcome = run(two, ["compare", "a", "b", "--format", "markdown", "--max-drop", "recall@3=0.02"])
    assert outcome.code == 1
    assert outcome.out.startswith("### retrieval: unnamed\n\n**failed: max-drop recall@3")
    assert "| 🔴 | `recall@3` | 1.00 | .800 | −.200 [−.325, −.075] | .031 | 40 | 0 | 8 | worse |" in outcome.out
    assert "<details><summary>Lost: 8</summary>q00 q01" in outcome.out


def test_markdown_reads_no_html_out_of_names(tmp_path: Path) -> None:
    def renamed(cases: list[Case]) -> None:
        for part in (cases[0].retrieval, cases[0].ranked):
            part["query_id"] = "<img src=x>|`"

    made(tmp_path, "a", change=renamed)
    made(tmp_path, "b", "rank", 1, change=renamed)
    outcome = run(tmp_path, ["compare", "a", "b", "--format", "markdown"])
    assert "&lt;img src=x&gt;\\|\\`" in outcome.out
    assert "<img" not in outcome.out


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--max-drop", "recall@3=0.2"], 0),
        (["--max-drop", "recall@3=0.19"], 1),
        (["--max-drop", "recall@3=0.2", "--confidence", "0.95"], 1),
        (["--max-drop", "recall@3=0.4", "--confidence", "0.95"], 0),
        (["--max-drop", "category=single_hop_factual:recall@3=0.2", "--min-n", "40"], 0),
        (["--max-drop", "category=single_hop_factual:recall@3=0.2", "--min-n", "41"], 1),
        (["--max-drop", "category=no_such:recall@3=0.2"], 1),
        (["--max-drop", "recal@3=0.2"], 2),
        (["--max-drop", "recall@11=0.2"], 2),
        (["--max-drop", "recall@3"], 2),
        (["--max-drop", "recall@3=1.5"], 2),
        (["--max-drop", "recall@3=nan"], 2),
        (["--max-drop", "leaks=0.2"], 2),
        (["--max-drop", "recall@3=0.2", "--confidence", "95"], 2),
        (["--confidence", "0.95"], 2),
        (["--cutoffs", "0"], 2),
        (["--layer", "none"], 2),
        (["--rescore"], 2),
        (["--rescore", "--common-queries"], 2),
        (["--json", "--format", "markdown"], 2),
    ],
)
def test_exit_codes(two: Path, flags: list[str], code: int) -> None:
    outcome = run(two, ["compare", "a", "b", *flags])
    assert outcome.code == code, outcome.err + outcome.out
    assert bool(outcome.err) == (code == 2)
    assert bool(outcome.out) == (code != 2)


@pytest.mark.parametrize(
    ("runs", "code", "told"),
    [
        (["a"], 2, "a base and at least one candidate"),
        (["a", "nothing"], 2, '"nothing" is no file, and there is no store at engagement/store'),
        (["a", "b/missing.json"], 2, "there is no file b/missing.json"),
        (["a", "."], 2, '"." holds no report, and there is no store'),
        (["a", ",".join(["a" * 64] * 5)], 2, "is no file"),
        (["a/retrieval", "b/corpus"], 4, "never compared"),
        (["a", "baseline"], 2, "tripos baseline pin"),
        (["a", "b/fragments.jsonl"], 3, "a report of tripos eval-"),
        (["a", ","], 2, "names no run"),
    ],
)
def test_names_that_mean_no_run(two: Path, runs: list[str], code: int, told: str) -> None:
    outcome = run(two, ["compare", *runs])
    assert (outcome.code, outcome.out) == (code, "")
    assert told in outcome.err


def test_a_row_without_a_result_makes_a_gate_inconclusive(tmp_path: Path) -> None:
    made(tmp_path, "a")
    made(tmp_path, "b", change=lambda cases: cases[5].ranked.update(fragment_ids=[], error="timeout"))
    found = compared(tmp_path, "a", "b", "--max-drop", "recall@3=0.02", code=6)
    assert only(found).gates[0].status == "inconclusive"
    assert only(found).cells[0].left_out == {"no_result_here": 1}
    assert "1 no result here; at worst the difference is −.025" in run(tmp_path, ["compare", "a", "b"]).out


def test_results_from_standard_input_cannot_be_read_again(two: Path) -> None:
    ranked = (two / "b" / "ranked-results.jsonl").read_bytes()
    flags = [*RETRIEVAL[:2], "--ranked-results", "-", *RETRIEVAL[4:], *DEPTH, "--output", "piped"]
    assert run(two / "b", ["eval-retrieval", *flags], ranked).code == 1, "a leak exam without fragments is vacuous"
    outcome = run(two, ["compare", "a", "b/piped"])
    assert outcome.code == 3
    assert "came from standard input" in outcome.err


@pytest.mark.parametrize("file", ["ranked-results.jsonl", "retrieval.jsonl", "fragments.jsonl"])
def test_inputs_that_are_no_longer_those_measured_are_refused(two: Path, file: str) -> None:
    path = two / "b" / file
    rows = path.read_text().splitlines()
    swap = {
        "ranked-results.jsonl": ("filler1::f1", "filler7::f1"),
        "retrieval.jsonl": ("What of", "Why"),
        "fragments.jsonl": ("s-q39", "s-q3x"),
    }
    path.write_text("\n".join(row.replace(*swap[file]) for row in rows) + "\n")
    outcome = run(two, ["compare", "a", "b"])
    assert outcome.code in (3, 4)
    assert outcome.out == ""
    if file == "ranked-results.jsonl":
        assert (outcome.code, "other ranked results" in outcome.err) == (4, True)


def test_an_edited_report_is_refused(two: Path) -> None:
    path = two / "b" / "retrieval" / "report.json"
    report = json.loads(path.read_text())
    report["name"] = "better"
    path.write_text(json.dumps(report))
    outcome = run(two, ["compare", "a", "b"])
    assert outcome.code == 4
    assert "was changed after it was written" in outcome.err


def test_other_judgments_need_a_way_out(tmp_path: Path) -> None:
    def rejudged(cases: list[Case]) -> None:
        cases[0].retrieval["expected_sources"] = ["filler0"]
        cases[1].retrieval["review_status"] = "rejected"

    made(tmp_path, "a")
    made(tmp_path, "b", change=rejudged)
    outcome = run(tmp_path, ["compare", "a", "b"])
    assert (outcome.code, outcome.out) == (4, "")
    assert "1 judged differently: q00" in outcome.err
    assert "1 in the base alone: q01" in outcome.err
    common = compared(tmp_path, "a", "b", "--common-queries")
    assert (common.basis, only(common).paired) == ("common queries", 38)
    assert only(common).alone == {"scored_in_base_alone": ("q01",), "judged_differently": ("q00",)}
    again = compared(tmp_path, "a", "b", "--rescore", "--judgments", "b/retrieval.jsonl")
    assert (again.basis, only(again).paired) == ("rescored", 39)
    assert {cell.difference for cell in only(again).cells} == {0.0}, "the rankings are the same"
    assert "nothing proves" in " ".join(again.told)


def test_rescoring_refuses_answers_that_carry_their_judgments(tmp_path: Path) -> None:
    cases = made(tmp_path, "a")
    folder = tmp_path / "a"
    both = [{**(one.generation or {}), **(one.answer or {})} for one in cases]
    (folder / "input.jsonl").write_text("".join(json.dumps(row) + "\n" for row in both))
    bound = ["--input", "input.jsonl", "--retrieval-report", "retrieval/report.json", "--output", "combined"]
    assert run(folder, ["eval-generation", *bound]).code == 1, "no question is unanswerable, and that gate is vacuous"
    assert compared(tmp_path, "a/generation", "a/combined").verdict.exit_code == 0, "both forms are the same judgments"
    flags = ["--rescore", "--judgments", "a/generation.jsonl"]
    outcome = run(tmp_path, ["compare", "a/generation", "a/combined", *flags])
    assert outcome.code == 3
    assert "holds answers and judgments on one line" in outcome.err


def test_faithfulness_taken_otherwise_has_no_number(tmp_path: Path) -> None:
    made(tmp_path, "a")
    folder = tmp_path / "a"
    answers = ["--judgments", "generation.jsonl", "--answers", "answers.jsonl", "--retrieval-report", "retrieval/report.json"]
    for judge in ("j@1", "j@2"):
        assert run(folder, ["eval-generation", *answers, "--judge-model", judge, "--output", judge]).code == 1
    found = compared(folder, "j@1", "j@2")
    cells = {cell.measure: cell for cell in only(found).cells}
    for name in ("faithfulness", "qualified"):
        assert (cells[name].base, cells[name].value, cells[name].difference, cells[name].p) == (None, None, None, None)
        assert "not measured alike" in (cells[name].undefined or "")
    assert cells["requirement_coverage"].difference == 0.0
    assert found.family == sum(cell.p is not None for cell in cells.values())
    assert "every requirement met" in found.passes
    assert [(d.component, d.base, d.value) for d in only(found).differs if d.field == "name"] == [("judge", '"j@1"', '"j@2"')]
    gated = compared(folder, "j@1", "j@2", "--max-drop", "faithfulness=0.5", code=1)
    assert only(gated).gates[0].status == "vacuous"


def test_a_store_gives_what_the_reports_give(two: Path) -> None:
    for name in ("a", "b"):
        assert evaluated(two / name, "--store", "../store", "--label", f"run-{name}", "--output", "again").code in (0, 1)
    by_report = compared(two, "a/again", "b/again", "--max-drop", "recall@3=0.02", code=1)
    by_label = compared(two, "run-a", "run-b", "--store", "store", "--max-drop", "recall@3=0.02", code=1)
    assert only(by_label).cells == only(by_report).cells
    assert only(by_label).gates == only(by_report).gates
    assert (only(by_label).lost, only(by_label).gained) == (only(by_report).lost, ())
    latest = compared(two, "latest~1", "latest", "--store", "store")
    assert only(latest).run.runs == only(by_label).run.runs
    mixed = compared(two, "a/again", by_label.candidates[0].run.runs[0][:12], "--store", "store")
    assert only(mixed).cells == only(by_report).cells
    rescored = compared(two, "run-a", "run-b", "--store", "store", "--rescore", "--judgments", "a/retrieval.jsonl")
    assert only(rescored).cells == only(by_report).cells
    outcome = run(two, ["compare", "run-a", "run-b", "--store", "store", "--measure", "hit@4"])
    assert outcome.code == 2
    assert "the store has no hit@4" in outcome.err


@pytest.mark.parametrize(
    ("layer", "place"),
    [("generation", "rank"), ("generation", "incomplete"), ("generation", "not_judged"), ("corpus", "merge")],
)
def test_a_store_gives_the_other_layers_too(two: Path, layer: str, place: str) -> None:
    calls = {
        "generation": ["eval-generation", "--judgments", "generation.jsonl", "--answers", "answers.jsonl"],
        "corpus": ["eval-corpus", "--judgments", "corpus.jsonl", "--results", "corpus-results.jsonl"],
    }
    made(two, "c", place)
    for name in ("a", "c"):
        flags = ["--retrieval-report", "retrieval/report.json", "--store", "../store", "--label", f"run-{name}"]
        assert run(two / name, [*calls[layer], *flags]).code in (0, 1, 6)
    by_report = only(compared(two, "a", "c", "--layer", layer))
    by_label = only(compared(two, "run-a", "run-c", "--store", "store"))
    assert by_label.cells == by_report.cells
    assert (by_label.lost, by_label.undecided) == (by_report.lost, by_report.undecided)
    assert by_label.run.incomplete == by_report.run.incomplete
    assert len(by_report.lost) + by_report.undecided == 8


def test_repeats_stand_with_commas_between(two: Path) -> None:
    made(two, "c", "rank", 6)
    found = compared(two, "a,a", "b,c", "--layer", "retrieval")
    cell = only(found).cells[0]
    assert cell.difference == pytest.approx(-(8 + 6) / 2 / QUERIES)
    assert cell.noise is not None
    assert len(only(found).run.runs) == 2
    text = run(two, ["compare", "a,b", "b,b", "--layer", "retrieval", "--measure", "hit@3"]).out
    assert "no difference seen (within the noise of runs)" in text
    assert "from run to run alone: ± .100" in text
    text = run(two, ["compare", "a", "b", "b", "--layer", "retrieval"]).out
    assert text.count("no difference seen (once adjusted)") == 8, "p .0078, and eight cells"
    outcome = run(two, ["compare", "a/retrieval,b/corpus", "b"])
    assert outcome.code == 4


def test_aa(two: Path) -> None:
    made(two, "c", "rank", 2)
    outcome = run(two, ["aa", "a", "b", "c", "--max-drop", "hit@3=0.06", "--json"])
    assert outcome.code == 0, outcome.err
    found = Repeats.model_validate_json(outcome.out)
    assert (found.pairs, found.changing) == (3, tuple(f"q{n:02d}" for n in range(8)))
    assert [(flip.trials, flip.passed) for flip in found.flips] == [(6, 4)], "b falls behind a by .2 and behind c by .15"
    text = run(two, ["aa", "a,b", "c", "--max-drop", "hit@3=0.06"]).out
    assert "gate  max-drop hit@3 ≤ 0.06: FLIPS   passed 4 of 6" in text
    assert run(two, ["aa", "a"]).code == 2
    assert run(two, ["aa", "a/retrieval", "b/corpus"]).code == 4


def test_power(two: Path) -> None:
    golden = Power.model_validate_json(run(two, ["power", "a/retrieval.jsonl", "--drop", "0.1", "--json"]).out)
    assert (golden.source, {one.n for one in golden.measures}) == ("golden set", {QUERIES})
    hit = golden.measures[0]
    assert (hit.measure, hit.at_least) == ("hit@10", 0.15)
    assert hit.rows_needed == {"0.1": 81}, "((1.96 + .84) · .316 / .1)² = 78.5, and a little for t"
    assert Power.model_validate_json(run(two, ["power", "b", "--json"]).out).source == "one run"
    assert Power.model_validate_json(run(two, ["power", "a", "b", "--json"]).out).source == "two runs"
    for layer in ("generation", "corpus"):
        outcome = run(two, ["power", f"a/{layer}.jsonl", "--layer", layer])
        assert outcome.code == 0, outcome.err
        assert f"power · {layer} · from a golden set" in outcome.out
    for bad in (["a", "b", "a"], ["a/retrieval.jsonl", "b"], ["a", "--drop", "0"], ["a", "--sd", "2"]):
        assert run(two, ["power", *bad]).code == 2
    assert run(two, ["power", "a/fragments.jsonl"]).code == 3


def test_a_baseline_is_pinned_with_its_reason(two: Path) -> None:
    (two / "configs").mkdir()
    outcome = run(two, ["baseline", "pin", "a", "--why", 'as "shipped": 1', "--layer", "retrieval"])
    assert outcome.code == 0
    assert "kept in no store" in outcome.err
    pins = read_model(str(two / "configs" / "baseline.yaml"), Baseline)
    assert pins.retrieval is not None
    assert (pins.retrieval.why, pins.retrieval.report) == ('as "shipped": 1', "../a/retrieval/report.json")
    assert only(compared(two, "baseline", "b")).lost[0] == "q00"
    assert run(two, ["baseline", "pin", "a", "--why", "routes", "--layer", "corpus"]).code == 0
    shown = run(two, ["baseline", "show"]).out
    assert shown.count("a/") == 2
    assert 'as "shipped": 1' in shown
    assert evaluated(two / "a", "--output", "retrieval", ranked="../b/ranked-results.jsonl").code in (0, 1)
    gone = run(two, ["compare", "baseline", "b"])
    assert gone.code == 2
    assert "is another run now" in gone.err
    assert "GONE" in run(two, ["baseline", "show"]).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pin", "nothing", "--why", "x"], "is no file"),
        (["pin", "a", "--why", " "], "say why"),
        (["pin", "a"], "--why"),
        (["pin", "baseline", "--why", "x"], "pinned already"),
        (["show"], "tripos baseline pin"),
    ],
)
def test_what_cannot_be_pinned(two: Path, arguments: list[str], told: str) -> None:
    before = contents(two)
    outcome = run(two, ["baseline", *arguments])
    assert outcome.code == 2
    assert told in outcome.err
    assert contents(two) == before


def test_a_broken_file_of_pins_is_told_with_its_line(two: Path) -> None:
    (two / "configs").mkdir()
    (two / "configs" / "baseline.yaml").write_text("retrieval:\n  run: abc\n  why: x\n  reprot: y\n")
    outcome = run(two, ["compare", "baseline", "b"])
    assert outcome.code == 3
    assert "configs/baseline.yaml:2  retrieval.run" in outcome.err
    assert "did you mean report?" in outcome.err


def test_a_pinned_run_is_found_in_the_store(two: Path) -> None:
    (two / "configs").mkdir()
    assert evaluated(two / "a", "--store", "../store", "--label", "good").code == 0
    outcome = run(two, ["baseline", "pin", "good", "--why", "x", "--store", "store"])
    assert (outcome.code, outcome.err) == (0, "")
    assert only(compared(two, "baseline", "b", "--store", "store")).lost[0] == "q00"


def drops(folder: Path, *flags: str, code: int, store: tuple[str, ...] = ()) -> list[DropGate]:
    outcome = evaluated(folder / "b", "--output", "now", *store, *flags)
    assert outcome.code == code, outcome.err
    report = RetrievalReport.model_validate_json((folder / "b" / "now" / "report.json").read_bytes())
    return [gate for gate in report.gates if isinstance(gate, DropGate)]


def test_an_evaluation_is_held_against_a_baseline(two: Path) -> None:
    base = json.loads((two / "a" / "retrieval" / "report.json").read_text())["run_id"]
    against = ["--baseline", "../a/retrieval/report.json"]
    gates = drops(two, *against, "--max-recall-drop", "0.1", "--max-mrr-drop", "0.2", "--max-ndcg-drop", "0.3", code=1)
    assert [(gate.name, gate.status, gate.value) for gate in gates] == [
        ("max-drop recall@3", "failed", 0.2),
        ("max-drop rr@3", "passed", 0.2),
        ("max-drop ndcg@3", "passed", 0.2),
    ]
    assert {gate.baseline for gate in gates} == {base}
    assert drops(two, "--baseline", "../a", "--max-recall-drop", "0.2", code=0)[0].status == "passed"


def test_the_baseline_is_part_of_the_run_id(two: Path) -> None:
    flags = ["--max-recall-drop", "0.9"]
    run_ids = []
    for base in ("../a", "../a", "../b"):
        drops(two, "--baseline", base, *flags, code=0)
        run_ids.append(json.loads((two / "b" / "now" / "report.json").read_text())["run_id"])
    assert run_ids[0] == run_ids[1] != run_ids[2]


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        (["--max-recall-drop", "0.1"], 2, "--baseline"),
        (["--baseline", "../a"], 2, "no gate reads it"),
        (["--baseline", "../nothing", "--max-recall-drop", "0.1"], 2, "there is no file"),
        (["--baseline", "../a/corpus/corpus-report.json", "--max-recall-drop", "0.1"], 4, "holds no retrieval report"),
        (["--baseline", "../a", "--max-recall-drop", "1.1"], 2, "less than or equal to 1"),
        (["--baseline", "../a", "--max-recall-drop", "0.1", "--split", "tune"], 5, "no reviewed row is in split tune"),
        (["--baseline", "../c", "--max-recall-drop", "0.1"], 4, "scored by other judgments"),
        (["--baseline", "../a", "--max-recall-drop", "0.1", "--scope", "integration"], 2, "no recall@k"),
        (["--baseline", "now", "--max-recall-drop", "0.1"], 2, "never replaces what it reads"),
    ],
)
def test_what_a_run_cannot_be_held_against(two: Path, flags: list[str], code: int, told: str) -> None:
    if "../c" in flags:
        made(two, "c", change=lambda cases: cases[0].retrieval.update(expected_sources=["filler0"]))
    if "now" in flags:
        drops(two, code=0)
    before = contents(two)
    outcome = evaluated(two / "b", "--output", "now", *flags)
    assert outcome.code == code, outcome.err + outcome.out
    assert told in outcome.err
    assert contents(two) == before


def test_a_baseline_with_holes_decides_nothing(tmp_path: Path) -> None:
    made(tmp_path, "a", change=lambda cases: cases[5].ranked.update(fragment_ids=[], error="timeout"))
    made(tmp_path, "b")
    (gate,) = drops(tmp_path, "--baseline", "../a", "--max-recall-drop", "0.5", code=6)
    assert (gate.status, gate.value) == ("inconclusive", None)


def test_the_same_bytes_whatever_the_hash_seed_and_threads(two: Path) -> None:
    program = Path(sys.executable).parent / "tripos"
    told = set()
    for seed, threads in (("0", "1"), ("7", "4")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        command = [str(program), "compare", "a", "b", "--json", "--max-drop", "recall@3=0.3"]
        told.add(subprocess.run(command, cwd=two, env=environment, capture_output=True, check=True).stdout)
    assert len(told) == 1
