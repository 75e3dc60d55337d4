"""`tripos certify`: streams, exit codes, files and formats; a small run of three layers."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tests.certify_worlds import APPROVED, AS_OF, SETTINGS, FullRun
from tests.cli.world import ROOT, Outcome, run
from tripos.certify.checks import every_check
from tripos.fingerprint import digest


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> FullRun:
    return FullRun(tmp_path_factory.mktemp("full")).make()


@pytest.fixture
def full(made: FullRun, tmp_path: Path) -> FullRun:
    shutil.copytree(made.folder, tmp_path / "copy")
    return FullRun(tmp_path / "copy")


def statuses(outcome: Outcome) -> dict[str, str]:
    return {check["id"]: check["status"] for check in json.loads(outcome.out)["checks"]}


def of_their_own(outcome: Outcome) -> set[str]:
    """Checks that failed, or could not be evaluated, for a reason of their own."""
    checks = json.loads(outcome.out)["checks"]
    return {c["id"] for c in checks if c["status"] in ("failed", "error") and c["blocked_by"] is None}


def told(outcome: Outcome, name: str) -> str:
    (check,) = [check for check in json.loads(outcome.out)["checks"] if check["id"] == name]
    return " ".join([check["told"], *check["differences"]])


def test_a_run_that_holds_is_certified_and_says_what_it_rests_on(full: FullRun) -> None:
    done = full.certify()
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("CERTIFIED · small · all 30 checks passed, 1 with a warning    fingerprint ")
    assert "! judgments-committed" in done.out
    assert "1 of 3 retrieval rows are tune rows" in done.out
    assert "judged by j@1, which a board approved from 2026-01-01 to 2027-12-31" in done.out
    assert lines[-1] == "any byte of them, later: tripos certify --verify full/certificate.json"
    assert full.certificate.exists()


def test_every_check_is_told_with_its_sentence(full: FullRun) -> None:
    done = full.certify("--json")
    document = json.loads(done.out)
    assert [(check["id"], check["sentence"]) for check in document["checks"]] == [(c.id, c.sentence) for c in every_check()]
    assert done.out.encode() == full.certificate.read_bytes(), "--json prints the certificate itself"
    schema = json.loads((ROOT / "schemas/certificate.schema.json").read_text())
    jsonschema.validate(document, schema)


def test_the_same_run_gives_the_same_bytes_from_anywhere_and_on_any_day_of_the_approval(full: FullRun) -> None:
    full.certify()
    before = full.certificate.read_bytes()
    path = str(full.folder / "config.yaml")
    done = run(full.folder.parent, ["certify", "--config", path, "--as-of", "2027-12-31"])
    assert done.code == 0, done.out
    assert full.certificate.read_bytes() == before
    assert str(full.folder).encode() not in before
    assert AS_OF.encode() not in before


def test_a_folder_alone_is_certified_by_the_defaults(full: FullRun) -> None:
    done = run(full.folder, ["certify", "full", "--as-of", AS_OF, "--json"])
    found = statuses(done)
    assert done.code == 0, done.out
    assert {name for name, status in found.items() if status == "not_applicable"} == {
        "as-configured",
        "gates-as-configured",
        "evidence-recomputed",
    }
    assert json.loads(done.out)["layers"].keys() == {"retrieval", "generation", "corpus"}


def test_layers_can_be_named(full: FullRun) -> None:
    done = run(full.folder, ["certify", "full", "--layer", "retrieval", "--json"])
    assert (done.code, list(json.loads(done.out)["layers"])) == (0, ["retrieval"])


def test_a_run_that_fails_loses_an_earlier_certificate_and_no_other_file(full: FullRun) -> None:
    full.certify()
    full.approve({**APPROVED, "until": "2026-10-31"})
    done = full.certify("--output", "mine.json")
    assert done.code == 1
    assert full.certificate.exists(), "only what stands at the output is withdrawn"
    done = full.certify()
    assert (done.code, done.err) == (1, "full/certificate.json: removed: the run is not certified\n")
    assert not full.certificate.exists()
    (full.folder / "mine.json").write_text("{}")
    assert full.certify("--output", "mine.json").err == ""
    assert (full.folder / "mine.json").read_text() == "{}"


def test_what_fails_comes_first_with_its_difference_and_a_fix(full: FullRun) -> None:
    full.approve({**APPROVED, "until": "2026-10-31"})
    done = full.certify()
    lines = done.out.splitlines()
    assert lines[0] == "NOT CERTIFIED · small · 1 of 30 checks failed"
    assert lines[2].startswith("✗ judge-approved")
    assert "    j@1 expired on 2026-10-31, this is 2026-11-30 (judges.yaml:1)" in lines
    assert lines[-2] == "fix: have it approved in judges.yaml, or use a judge that is"
    assert lines[-1].endswith("(exit 1)")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["certify", "nowhere"], "there is no such folder"),
        (["certify", "full/golden.jsonl"], "is a file, not a folder"),
        (["certify", "full", "--as-of", "soon"], "a day is expected, e.g. 2026-10-31"),
        (["certify", "full", "--output", "-"], "--json prints the certificate"),
        (["certify", "full", "--verify", "full/certificate.json"], "--verify takes the certificate alone"),
        (["certify", "--verify", "full/certificate.json", "--format", "junit"], "told as text"),
        (["certify", "full", "--output", "full/golden.jsonl"], "is an input of this command"),
        (["certify", "full", "--format", "pdf"], "'pdf' is not one of"),
        (["certify", "full", "--format", "junit", "--json"], "give one of the two"),
    ],
)
def test_wrong_arguments_exit_2(full: FullRun, arguments: list[str], words: str) -> None:
    before = {path: path.read_bytes() for path in full.folder.rglob("*") if path.is_file()}
    done = run(full.folder, arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert {path: path.read_bytes() for path in full.folder.rglob("*") if path.is_file()} == before


def test_a_layer_without_report_names_the_command_that_makes_it(full: FullRun) -> None:
    (full.folder / "full/corpus/corpus-report.json").unlink()
    done = full.certify("--json")
    assert (done.code, of_their_own(done)) == (1, {"reports-present"})
    assert "tripos eval-corpus --config config.yaml" in full.certify().out


def test_a_report_that_cannot_be_read_is_an_error_with_its_field(full: FullRun) -> None:
    full.edit("full/retrieval/report.json", lambda report: report.update(mood="fine"))
    done = full.certify("--json")
    assert (done.code, of_their_own(done)) == (3, {"reports-present"})
    assert "mood" in told(done, "reports-present")


def test_a_number_beyond_json_is_told_and_the_fix_names_the_layer(full: FullRun) -> None:
    full.edit("full/retrieval/report.json", lambda report: report.update(missed=10**26))
    done = full.certify()
    assert done.code == 3
    assert "fix: put it back, or make it again: tripos eval-retrieval --config config.yaml" in done.out.splitlines()


def test_a_file_that_cannot_be_read_is_an_error_with_its_line(full: FullRun) -> None:
    with (full.folder / "full/routes.jsonl").open("a") as stream:
        stream.write('{"query_id": 7}\n')
    done = full.certify("--json")
    assert (done.code, of_their_own(done)) == (3, {"corpus-recomputed"})
    assert "full/routes.jsonl:2" in told(done, "corpus-recomputed")


def corrupted(full: FullRun) -> None:
    full.edit("full/corpus/corpus-report.json", lambda r: r["fingerprint"]["components"]["D"]["values"].update(top_k=9))


def multi_hop(full: FullRun) -> None:
    """A multi-hop answer says that it was shown what no layer handed on."""
    shown = ["s1::f1", "s3::f1"]
    full.change("answers", lambda row: row.update(evidence_fragment_ids=shown) if row["query_id"] == "m1" else None)
    full.succeed("eval-generation", "--no-store")


def combined(full: FullRun) -> None:
    """The answers' report rests on a file that the configuration does not name."""
    golden = {row["query_id"]: row for row in full.rows("answers_golden")}
    full.put("joined", [golden[row["query_id"]] | row for row in full.rows("answers")])
    full.succeed("eval-generation", "--no-store", "--input", "full/joined.jsonl")


def tuned(full: FullRun) -> None:
    """Retrieval evaluated on the rows that settings are chosen on."""
    full.succeed("eval-retrieval", "--no-store", "--split", "tune")
    for layer in ("generation", "corpus"):
        full.succeed(f"eval-{layer}", "--no-store")


def foreign(full: FullRun) -> None:
    full.change("corpus-results", lambda row: row.update(system_fingerprint="0" * 64))


CHANGES: list[tuple[Any, set[str], int]] = [
    (corrupted, {"fingerprints-follow", "run-ids"}, 4),
    (multi_hop, {"multi-hop-evidence"}, 1),
    (foreign, {"stamps"}, 4),
    (combined, {"as-configured"}, 4),
    (tuned, {"full-scope"}, 1),
    (lambda full: full.change("routes", lambda row: row.update(query="What else?")), {"judgments-unchanged"}, 4),
    (lambda full: full.change("corpus-results", lambda row: row.update(final=["s1::f1"])), {"results-unchanged"}, 4),
    (
        lambda full: full.edit("full/corpus/corpus-report.json", lambda report: report["counts"].update(not_searched=3)),
        {"corpus-recomputed", "run-ids"},
        1,
    ),
    (lambda full: full.configure({**SETTINGS, "name": "other"}), {"as-configured"}, 4),
    (lambda full: full.configure({**SETTINGS, "gates": {"hit@2": {"min": 0.9}}}), {"gates-as-configured"}, 1),
    (lambda full: full.configure({**SETTINGS, "gates": {"mrr": {"min": 0.1}}}), {"gates-as-configured"}, 1),
    (lambda full: full.approve({**APPROVED, "kind": "tripos"}), {"judge-approved"}, 1),
    (lambda full: full.approve({**APPROVED, "name": "j@2"}), {"judge-approved"}, 1),
    (lambda full: (full.folder / "judges.yaml").write_text("judges: 7"), {"judge-approved"}, 3),
]


@pytest.mark.parametrize(("change", "caught_by", "code"), CHANGES)
def test_a_change_is_caught(full: FullRun, change: Any, caught_by: set[str], code: int) -> None:
    change(full)
    done = full.certify("--json")
    found = of_their_own(done)
    assert caught_by <= found, found
    assert done.code == code


def test_rows_kept_apart_are_told(full: FullRun) -> None:
    full.succeed("eval-retrieval", "--no-store", "--split", "holdout")
    for layer in ("generation", "corpus"):
        full.succeed(f"eval-{layer}", "--no-store")
    document = json.loads(full.certify("--json").out)
    assert document["verdict"]["status"] == "certified"
    assert document["rests_on"]["chosen_on"] == "rows_kept_apart"
    assert document["rests_on"]["told"][3] == "settings can have been chosen on 1 rows that are not among the 2 certified"


def test_what_nothing_was_asked_of_is_told(full: FullRun) -> None:
    """Gates that were dropped, a layer left out, rows taken out of the exam, stamps left away: each can be read off."""
    refused = {"query_id": "q9", "query": "What of q9?", "expected_sources": ["s1"], "should_match": True}
    rows = [refused | {"category": "structural", "review_status": "rejected"}]
    rows += [refused | {"query_id": "q8", "query": "What of q8?", "category": "calibration", "review_status": "reviewed"}]
    full.put("golden", full.rows("golden") + rows)
    partly = [
        row | ({"expected_answerable": "partial"} if row["query_id"] == "q1" else {}) for row in full.rows("answers_golden")
    ]
    full.put("answers_golden", partly)
    full.change("ranked-results", lambda row: row.pop("policy_digest"))
    full.configure(SETTINGS | {"gates": {}, "certification": SETTINGS["certification"] | {"binding": "declared"}})
    full.put("ranked-results", [*full.rows("ranked-results"), {"query_id": "q8", "fragment_ids": ["s1::f1"], "scores": [0.9]}])
    full.change("ranked-results", lambda row: row.pop("corpus_digest", None))
    full.evaluate()
    document = json.loads(full.certify("--json", "--layer", "generation").out)
    assert document["verdict"]["status"] == "certified", document["verdict"]
    assert document["rests_on"]["told"][:7] == [
        "the configuration asks for corpus, too, which was left out (--layer)",
        "retrieval, 3 rows scored; gates: none, its figures may be anything",
        "retrieval: the system is declared: not every row carries its stamp",
        "generation, 4 rows scored; gates: faithfulness ≥ 0.8, qualified ≥ 0.8, abstention ≥ 0.8",
        "rows rejected in review, which no gate reads: 1 retrieval",
        "calibration rows, which no gate reads: 1 retrieval",
        "partly answerable rows, which no gate reads: 1 generation",
    ]
    alone = json.loads(run(full.folder, ["certify", "full", "--as-of", AS_OF, "--layer", "retrieval", "--json"]).out)
    assert alone["rests_on"]["told"][0] == "no configuration was given: settings and gates are what the reports themselves say"


def test_an_approval_that_ends_before_it_begins_is_no_approval(full: FullRun) -> None:
    full.approve({**APPROVED, "from": "2027-12-31", "until": "2026-01-01"})
    done = full.certify("--json")
    assert done.code == 3
    assert "judges[0].until  2026-01-01 is before from, 2027-12-31" in told(done, "judge-approved")


@pytest.mark.parametrize(("path", "words"), [("x" * 5000, "no such file"), ("a\0b", "null character"), ("pipe", "no ordinary")])
def test_a_report_that_names_what_is_no_file_is_told_and_not_waited_for(full: FullRun, path: str, words: str) -> None:
    os.mkfifo(full.folder / "full/retrieval/pipe")
    full.certify()
    place = full.folder / "full/retrieval/report.json"
    document = json.loads(place.read_bytes())
    (entry,) = [entry for entry in document["provenance"]["inputs"] if entry["role"] == "ranked_results"]
    entry["path"] = path
    place.write_text(json.dumps(document))
    done = full.certify("--json")
    assert done.code == 3
    assert words in told(done, "artifacts-present") + told(done, "reports-present")
    assert not full.certificate.exists()
    compared = run(full.folder, ["compare", "full/retrieval", "full/retrieval"])
    assert compared.code == 3
    assert len(compared.err.splitlines()) == 1


def test_a_depth_that_is_no_number_is_a_finding(full: FullRun) -> None:
    place = full.folder / "full/retrieval/report.json"
    document = json.loads(place.read_bytes())
    document["fingerprint"]["components"]["D"]["values"]["limit"] = "many"
    place.write_text(json.dumps(document))
    done = full.certify("--json")
    assert done.code in (3, 4)
    assert "fingerprints-follow" in of_their_own(done)


@pytest.mark.parametrize("name", ["linked.json", "packed.json.gz"])
def test_a_certificate_behind_a_link_or_packed_goes_too(full: FullRun, name: str) -> None:
    """The certificate itself must go, and not its link alone."""
    if name == "linked.json":
        (full.folder / name).symlink_to("elsewhere.json")
    assert full.certify("--output", name).code == 0
    held = (full.folder / name).resolve()
    assert held.exists()
    full.approve({**APPROVED, "until": "2026-10-31"})
    done = full.certify("--output", name)
    assert (done.code, done.err) == (1, f"{name}: removed: the run is not certified\n")
    assert not held.exists()


def test_judgments_of_another_day_are_no_other_run(full: FullRun) -> None:
    """Notes, the order of rows and white space are in no digest."""
    full.certify()
    before = json.loads(full.certificate.read_bytes())
    full.put("golden", [row | {"notes": "seen again"} for row in full.rows("golden")[::-1]])
    full.put("fragments", full.rows("fragments")[::-1])
    assert full.certify().code == 0
    after = json.loads(full.certificate.read_bytes())
    assert [(a["role"], a["digest"]) for a in before["artifacts"]] == [(a["role"], a["digest"]) for a in after["artifacts"]]
    changed = [a["path"] for a, b in zip(after["artifacts"], before["artifacts"], strict=True) if a["sha256"] != b["sha256"]]
    assert changed == ["fragments.jsonl", "golden.jsonl"]


REPORTS = ("full/retrieval/report.json", "full/generation/generation-report.json", "full/corpus/corpus-report.json")
NOT_TOLD = ("provenance", "reading", "run_id")
"""Provenance says where and when; `reading` may state another option that gives the same report; the run_id is made to fit."""


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(leaf for key, part in inner for leaf in leaves(part, (*path, key)))]


def other(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return [*value, *value[:1]] if value else [1]
        case dict():
            return {} if value else {"x": 1}
    return 1


@pytest.mark.parametrize("number", range(15))
def test_any_field_of_any_report_is_looked_at(full: FullRun, number: int) -> None:
    chance = random.Random(number)
    place = full.folder / REPORTS[number % 3]
    report = json.loads(place.read_bytes())
    path = chance.choice([leaf for leaf in leaves(report) if leaf and leaf[0] not in NOT_TOLD])
    *parents, last = path
    holder = functools.reduce(lambda found, key: found[key], parents, report)
    holder[last] = other(holder[last])
    report["run_id"] = digest({key: value for key, value in report.items() if key not in ("run_id", "provenance")})
    place.write_text(json.dumps(report))
    done = full.certify("--json")
    assert done.code in (1, 3, 4), (path, done.out, done.err)
    assert of_their_own(done), path


def test_verify_needs_nothing_but_the_bytes(full: FullRun) -> None:
    full.certify()
    done = run(full.folder, ["certify", "--verify", "full/certificate.json"])
    assert (done.code, done.err) == (0, "")
    assert done.out == "INTACT · small · the certificate and all 16 files are as they were\n"
    answers = full.folder / "full/answers.jsonl"
    answers.write_bytes(answers.read_bytes() + b"\n")
    (full.folder / "full/corpus/corpus-misses.jsonl").unlink()
    done = run(full.folder, ["certify", "--verify", "full/certificate.json"])
    assert done.code == 1
    assert "✗ answers.jsonl  changed: sha256 " in done.out
    assert "✗ corpus/corpus-misses.jsonl  missing: no such file (corpus misses)" in done.out
    found = json.loads(run(full.folder, ["certify", "--verify", "full/certificate.json", "--json"]).out)
    assert [d["what"] for d in found["deviations"]] == ["changed", "missing"]
    jsonschema.validate(found, json.loads((ROOT / "schemas/certificate-verification.schema.json").read_text()))


def test_verify_of_no_certificate(full: FullRun) -> None:
    assert run(full.folder, ["certify", "--verify", "nowhere.json"]).code == 3
    done = run(full.folder, ["certify", "--verify", "full/retrieval/report.json"])
    assert done.code == 1
    assert 'is no certificate: is "tripos/retrieval-report@1"' in done.out


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b", "/dev/zero", "a\nINTACT · small"])
def test_verify_of_paths_that_name_no_file(full: FullRun, path: str) -> None:
    full.certify()
    document = json.loads(full.certificate.read_bytes())
    document["artifacts"][0]["path"] = path
    full.certificate.write_text(json.dumps(document))
    done = run(full.folder, ["certify", "--verify", "full/certificate.json"])
    assert (done.code, done.err) == (1, "")
    assert "missing: no such file (answers)" in done.out
    assert not any(line.startswith("INTACT") for line in done.out.splitlines())


def test_a_refusal_saved_as_a_certificate_is_none(full: FullRun) -> None:
    full.approve()
    (full.folder / "refused.json").write_text(full.certify("--json").out)
    done = run(full.folder, ["certify", "--verify", "refused.json"])
    assert done.code == 1
    assert "its verdict is not_certified" in done.out


def test_forms_for_other_tools(full: FullRun) -> None:
    full.approve({**APPROVED, "until": "2026-10-31"})
    suite = ET.fromstring(full.certify("--format", "junit").out).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors"), suite.get("tests")) == ("1", "0", str(len(every_check())))
    (failure,) = suite.findall("testcase/failure")
    assert "expired on 2026-10-31" in (failure.text or "")
    statement = json.loads(full.certify("--format", "in-toto").out)
    assert statement["predicate"]["result"] == "FAILED"
    assert statement["predicate"]["failedTests"] == ["judge-approved"]
    page = full.certify("--format", "markdown").out
    assert page.startswith("### NOT CERTIFIED · small · 1 of 30 checks failed\n")
    assert "- ❌ **judge-approved** the judge is not approved" in page


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_committed_judgments_stand_in_the_certificate_with_blob_and_commit(
    full: FullRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(full.folder, "init", "-q")
    git(full.folder, "add", "full/golden.jsonl", "full/answers_golden.jsonl")
    git(full.folder, "commit", "-q", "-m", "judged")
    done = full.certify("--json")
    assert of_their_own(done) == {"judgments-committed"}
    assert "full/routes.jsonl: is not committed" in told(done, "judgments-committed")
    assert "judges.yaml: is not committed" in told(done, "judgments-committed")
    git(full.folder, "add", "judges.yaml")
    git(full.folder, "commit", "-q", "-m", "approved")
    git(full.folder, "add", "full/routes.jsonl")
    git(full.folder, "commit", "-q", "-m", "routes")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    done = full.certify("--json")
    monkeypatch.delenv("GIT_DIR")
    assert (done.code, statuses(done)["judgments-committed"]) == (0, "warned"), done.out
    assert "the configuration is not committed" in told(done, "judgments-committed")
    committed = {entry["path"]: entry for entry in json.loads(done.out)["committed"]}
    assert committed["routes.jsonl"]["commit"] == git(full.folder, "rev-parse", "HEAD")
    assert committed["golden.jsonl"]["commit"] == git(full.folder, "rev-parse", "HEAD~2")
    assert committed["../judges.yaml"]["commit"] == git(full.folder, "rev-parse", "HEAD~1")
    assert committed["golden.jsonl"]["blob"] == git(full.folder, "rev-parse", "HEAD:full/golden.jsonl")
    git(full.folder, "add", "config.yaml")
    git(full.folder, "commit", "-q", "-m", "configured")
    assert statuses(full.certify("--json"))["judgments-committed"] == "passed"
    full.change("golden", lambda row: row.update(notes="seen again"))
    assert "full/golden.jsonl: is changed" in told(full.certify("--json"), "judgments-committed")


def test_a_repository_without_git_is_told_with_the_remedy(full: FullRun, monkeypatch: pytest.MonkeyPatch) -> None:
    (full.folder / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    done = full.certify("--json")
    assert (done.code, statuses(done)["judgments-committed"]) == (0, "warned")
    assert "git is not installed" in told(done, "judgments-committed")
    (full.folder / ".git").rmdir()
    assert statuses(full.certify("--json"))["judgments-committed"] == "warned"
