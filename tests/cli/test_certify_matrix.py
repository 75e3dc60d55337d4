"""Which check catches what: one thing at a time is changed in a copy of a certified run.

The tables below say what was changed, which check names it, which others fail with it, and the exit code. Files are changed
behind the reports' backs, or before everything is evaluated `again`, as somebody would who has nothing to hide.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.certified_changes import (
    ANSWERS,
    FRAGMENTS,
    FULL,
    GOLDEN,
    GOLDEN_ANSWERS,
    HIDDEN,
    RANKED,
    Make,
    again,
    alone,
    better,
    both,
    change,
    config,
    draft,
    drop,
    every_group,
    flipped,
    gone,
    joined,
    laid_out,
    leaking,
    nothing,
    other_top_k,
    put,
    report,
    reversed_merge,
    reversed_rows,
    spaced,
    swapped,
    text,
    torn,
    unjudged,
    unstamped,
    weaker,
)
from tests.certified_world import CORPUS, GENERATION, JUDGES, RETRIEVAL, TODAY, CertifiedRun, support_kb, two_collections
from tripos.certify.checks import every_check

CORPUS_GOLDEN, CORPUS_RESULTS = "../../golden/drug-labels/corpus_golden.jsonl", "corpus-results.jsonl"
INPUTS = (FRAGMENTS, GOLDEN, GOLDEN_ANSWERS, ANSWERS, RANKED)
MADE = (
    "timings.jsonl",
    "generation-evidence.jsonl",
    RETRIEVAL,
    "retrieval/misses.jsonl",
    GENERATION,
    "generation/generation-results.jsonl",
    "generation/generation-misses.jsonl",
)
SCORED, ANSWERED, COUNTED = (f"{layer}-recomputed rows-recomputed" for layer in ("retrieval", "generation", "corpus"))


class Change(NamedTuple):
    """One line of the tables; `also` names the other checks that fail."""

    what: str
    make: Make
    caught_by: str
    also: str = ""
    code: int = 4
    as_of: str = TODAY


INCOMPLETE = ("--allow-incomplete",)
QUOTE, SHORTER = "Each person can hold up to 20 active API tokens.", "up to 20 active API tokens."

BEHIND_THE_REPORTS = [
    Change(
        "a fragment's text",
        put(FRAGMENTS, "support-045::f0001", "fragment_id", text="Anything."),
        "fragments-unchanged",
        "stamps",
    ),
    Change("a quoted passage", text(f"{FULL}/{FRAGMENTS}", "20 active", "25 active"), "fragments-unchanged"),
    Change("a fragment's readers", put(FRAGMENTS, HIDDEN, "fragment_id", acl=["everyone"]), "fragments-unchanged", "stamps"),
    Change("a fragment removed", drop(FRAGMENTS, "support-045::f0001", "fragment_id"), "fragments-unchanged", "stamps"),
    Change("an expected source", put(GOLDEN, "q-003", expected_sources=["support-002"]), "judgments-unchanged", SCORED),
    Change("a judgment's quote", text(f"{FULL}/{GOLDEN}", QUOTE, SHORTER), "judgments-unchanged", "rows-recomputed"),
    Change("a judgment removed", drop(GOLDEN, "q-003"), "judgments-unchanged", f"results-unchanged {SCORED}"),
    Change(
        "a judgment back to draft",
        put(GOLDEN, "q-003", review_status="draft"),
        "reviewed-only",
        f"judgments-unchanged results-unchanged {SCORED}",
    ),
    Change("a requirement's quote", text(f"{FULL}/{GOLDEN_ANSWERS}", QUOTE, SHORTER), "judgments-unchanged", "rows-recomputed"),
    Change(
        "a requirement's row removed", drop(GOLDEN_ANSWERS, "q-003"), "judgments-unchanged", f"results-unchanged {ANSWERED}"
    ),
    Change("an answer's text", put(ANSWERS, "q-001", answer="20 [1]."), "results-unchanged", "rows-recomputed"),
    Change("an answer's score", put(ANSWERS, "q-047", faithfulness_score=0.9), "results-unchanged", ANSWERED),
    Change("an answer's stamp", put(ANSWERS, "q-001", system_fingerprint="0" * 64), "stamps"),
    Change("an answer removed", drop(ANSWERS, "q-001"), "results-unchanged", f"nothing-incomplete {ANSWERED}"),
    Change("ranks swapped", change(RANKED, "q-001", swapped), "results-unchanged", SCORED),
    Change("a ranked row's stamp", put(RANKED, "q-001", policy_digest="0" * 64), "stamps"),
    Change("a clock reading", put("timings.jsonl", "q-001", latency_ms=9.5), "retrieval-recomputed", code=1),
    Change("a ranked row removed", drop(RANKED, "q-001"), "results-unchanged", f"nothing-incomplete {SCORED}"),
    Change("the evidence handed on", put("generation-evidence.jsonl", "q-001", evidence=[]), "evidence-recomputed", code=1),
    Change("a torn line", torn(ANSWERS), "generation-recomputed", code=3),
    Change("no ranked results", gone(f"{FULL}/{RANKED}"), "artifacts-present", code=3),
    Change("no misses", gone(f"{FULL}/retrieval/misses.jsonl"), "artifacts-present", code=3),
]
IN_THE_REPORTS = [
    Change(
        "retrieval figure, sealed", report(RETRIEVAL, better("hit@k", 8)), "retrieval-recomputed", "one-run rows-recomputed"
    ),
    Change("generation figure, sealed", report(GENERATION, better("qualified")), "generation-recomputed", code=1),
    Change(
        "generation figure, unsealed",
        report(GENERATION, better("qualified"), seal=False),
        "run-ids",
        "generation-recomputed",
        1,
    ),
    Change("a gate weakened", report(RETRIEVAL, weaker), "gates-as-configured", "one-run rows-recomputed"),
    Change("a fingerprint's value", report(RETRIEVAL, other_top_k), "fingerprints-follow", f"one-run {SCORED}"),
    Change(
        "a verdict made good",
        both(again(config("{min: 0.75}", "{min: 0.95}")), report(RETRIEVAL, flipped)),
        "gates-passed",
        "retrieval-recomputed one-run rows-recomputed",
    ),
    Change("a miss's reason", text(f"{FULL}/retrieval/misses.jsonl", "partial", "no_hit"), "rows-recomputed", code=1),
    Change(
        "an answer's verdict",
        text(f"{FULL}/generation/generation-results.jsonl", "unfaithful", "qualified"),
        "rows-recomputed",
        code=1,
    ),
    Change("another contract's report", text(f"{FULL}/{RETRIEVAL}", "report@1", "report@2"), "reports-present", code=3),
    Change(
        "a number beyond reading", text(f"{FULL}/{RETRIEVAL}", '"missed": ', f'"missed": {10**25}'), "reports-present", code=3
    ),
    Change("a torn report", torn(GENERATION), "reports-present", code=3),
    Change("no generation report", gone(f"{FULL}/{GENERATION}"), "reports-present", code=1),
]
IN_THE_CONFIGURATION = [
    Change("min_score", config("min_score: 2.5", "min_score: 2.6"), "as-configured"),
    Change("limit", config("limit: 50", "limit: 60"), "as-configured"),
    Change("top K", config("top_k: 8", "top_k: 5"), "as-configured"),
    Change("the judgments' version", config('"2026-11"', '"2026-12"'), "as-configured"),
    Change("the faithfulness target", config("faithfulness_target: 0.80", "faithfulness_target: 0.85"), "as-configured"),
    Change("a stricter gate", config("{min: 0.75}", "{min: 0.8}"), "gates-as-configured", code=1),
    Change("a gate more", config("mrr: {min: 0.6}", "mrr: {min: 0.6}\n  hit@1: {min: 0.1}"), "gates-as-configured", code=1),
    Change("a larger min_limit", config("min_limit: 50", "min_limit: 100"), "limit", code=1),
    Change("a judge without approval", text(JUDGES, "judge@2026-09", "judge@2026-08"), "judge-approved", code=1),
    Change("no list of judges", gone(JUDGES), "artifacts-present", "judge-approved", 3),
    Change("an expired approval", nothing, "judge-approved", code=1, as_of="2100-01-01"),
    Change("an approval not begun", nothing, "judge-approved", code=1, as_of="2023-12-31"),
]
RETRIEVAL_AGAIN, ANSWERS_AGAIN = alone("eval-retrieval"), alone("eval-generation")
EVALUATED_AGAIN = [
    Change("retrieval at top K 5", alone("eval-retrieval", "--top-k", "5"), "one-fingerprint", "as-configured one-run stamps"),
    Change(
        "retrieval at limit 60", alone("eval-retrieval", "--limit", "60"), "one-fingerprint", "as-configured one-run stamps"
    ),
    Change(
        "retrieval at min_score 2",
        both(config("min_score: 2.5", "min_score: 2"), alone("search"), RETRIEVAL_AGAIN),
        "one-fingerprint",
        "one-run stamps",
    ),
    Change(
        "retrieval of other ranks",
        both(change(RANKED, "q-001", swapped), RETRIEVAL_AGAIN),
        "one-run",
        "evidence-recomputed rows-recomputed",
    ),
    Change("an unreviewed row", again(draft), "reviewed-only", code=1),
    Change(
        "an unreviewed answer",
        both(put(GOLDEN_ANSWERS, "q-079", review_status="in_review"), ANSWERS_AGAIN),
        "reviewed-only",
        code=1,
    ),
    Change(
        "a failed search",
        again(put(RANKED, "q-001", results=[], error="timeout"), flags=INCOMPLETE),
        "nothing-incomplete",
        code=6,
    ),
    Change(
        "an unjudged answer",
        both(change(ANSWERS, "q-044", unjudged), alone("eval-generation", *INCOMPLETE)),
        "nothing-incomplete",
        code=6,
    ),
    Change("a leak", again(change(RANKED, "q-072", leaking)), "no-leaks", "gates-passed", 1),
    Change("nothing to leak", again(every_group), "leak-exam", "gates-passed", 1),
    Change(
        "an unpinned model", both(config("customer-model@2026-10", "customer-model"), ANSWERS_AGAIN), "models-pinned", code=1
    ),
    Change("an answer of another model", both(put(ANSWERS, "q-001", model="other@1"), ANSWERS_AGAIN), "models-pinned", code=1),
    Change(
        "an unpinned judge",
        both(config("external-judge@2026-09", "external-judge"), ANSWERS_AGAIN),
        "models-pinned",
        "judge-approved",
        1,
    ),
    Change(
        "its own judge",
        both(config("external-judge@2026-09", "customer-model@2026-10"), ANSWERS_AGAIN),
        "judge-independent",
        "judge-approved",
        1,
    ),
    Change(
        "exploratory",
        both(put(ANSWERS, "q-001", mood="fine"), alone("eval-generation", "--lenient")),
        "not-exploratory",
        code=1,
    ),
    Change("scope: integration", again(config("scope: full", "scope: integration")), "full-scope", code=1),
    Change("tune rows alone", both(alone("eval-retrieval", "--split", "tune"), ANSWERS_AGAIN), "full-scope", code=1),
    Change(
        "another file of answers", both(joined, alone("eval-generation", "--input", f"{FULL}/joined.jsonl")), "as-configured"
    ),
    Change("limit 20", again(config("limit: 50", "limit: 20")), "limit", code=1),
    Change("answers without stamps", both(unstamped, ANSWERS_AGAIN), "binding", code=1),
    Change("a gate that fails", again(config("{min: 0.75}", "{min: 0.95}")), "gates-passed", code=1),
]
CHANGES = [*BEHIND_THE_REPORTS, *IN_THE_REPORTS, *IN_THE_CONFIGURATION, *EVALUATED_AGAIN]

CORPUS_CHANGES = [
    Change(
        "a collection's text", text("golden/drug-labels/fragments.jsonl", "bottle", "flask"), "fragments-unchanged", "stamps"
    ),
    Change(
        "an expected source",
        put(CORPUS_GOLDEN, "c-002", expected_sources={"drug-labels": ["drug-006"]}),
        "judgments-unchanged",
        COUNTED,
    ),
    Change("a draft", put(CORPUS_GOLDEN, "c-036", review_status="draft"), "reviewed-only", COUNTED, 1),
    Change("the merged list", change(CORPUS_RESULTS, "c-002", reversed_merge), "results-unchanged", "rows-recomputed"),
    Change("a result's stamp", put(CORPUS_RESULTS, "c-002", system_fingerprint="0" * 64), "stamps"),
    Change("a figure, sealed", report(CORPUS, better("kept_final")), "corpus-recomputed", code=1),
    Change(
        "a miss",
        text("engagement/two-collections/corpus/corpus-misses.jsonl", "lost_by_routing", "lost_by_rank"),
        "rows-recomputed",
        code=1,
    ),
    Change("no corpus report", gone(f"engagement/two-collections/{CORPUS}"), "reports-present", code=1),
    Change("per-collection K", text("configs/two-collections.yaml", "drug-labels: 4", "drug-labels: 5"), "as-configured"),
    Change("retrieval at top K 4", alone("eval-retrieval", "--top-k", "4"), "one-fingerprint", "as-configured one-run stamps"),
]


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> CertifiedRun:
    """One certified run of retrieval and answers."""
    return support_kb(tmp_path_factory.mktemp("certified"))


@pytest.fixture
def copied(certified: CertifiedRun, tmp_path: Path) -> CertifiedRun:
    """A copy of it, to be changed."""
    return certified.copy(tmp_path / "elsewhere")


@pytest.fixture(scope="session")
def certified_fan_out(tmp_path_factory: pytest.TempPathFactory) -> CertifiedRun:
    """One certified run of retrieval and corpus, over two collections."""
    return two_collections(tmp_path_factory.mktemp("two"))


def assert_caught(run: CertifiedRun, change: Change) -> None:
    """Make the change and certify: the check that names it fails, with those that must and no other; no certificate is left.

    A check that another one's failure stands in the way of is an error, and says which; those are no matter here.
    """
    change.make(run)
    done = run.certify(as_of=change.as_of)
    checks = json.loads(done.out)["checks"]
    failed = {check["id"] for check in checks if check["status"] in ("failed", "error") and not check["blocked_by"]}
    assert (failed, done.code) == ({change.caught_by, *change.also.split()}, change.code)
    assert not run.certificate.exists(), "a certificate was left beside a run that has none"


def test_a_run_as_it_was_made_is_certified(certified: CertifiedRun, certified_fan_out: CertifiedRun) -> None:
    for run in (certified, certified_fan_out):
        done = run.certify()
        assert done.code == 0, done.out
        statuses = {check["id"]: check["status"] for check in json.loads(done.out)["checks"]}
        assert {name for name, what in statuses.items() if what not in ("passed", "not_applicable")} == {"judgments-committed"}


@pytest.mark.parametrize("change", CHANGES, ids=[change.what for change in CHANGES])
def test_a_change_is_caught_by_the_check_that_names_it(copied: CertifiedRun, change: Change) -> None:
    assert_caught(copied, change)


@pytest.mark.parametrize("change", CORPUS_CHANGES, ids=[change.what for change in CORPUS_CHANGES])
def test_a_change_of_two_collections_is_caught(certified_fan_out: CertifiedRun, tmp_path: Path, change: Change) -> None:
    assert_caught(certified_fan_out.copy(tmp_path / "elsewhere"), change)


def test_every_check_catches_something() -> None:
    named = {change.caught_by for change in (*CHANGES, *CORPUS_CHANGES)} | {"judgments-committed"}
    assert {check.id for check in every_check()} - named == {"multi-hop-evidence"}, (
        "no shipped example has multi-hop answers; its unit tests do"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_judgments_changed_since_the_commit_are_caught(copied: CertifiedRun) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "--message", "judgments"]):
        subprocess.run(["git", *words], cwd=copied.folder, check=True, env=environment)
    before = json.loads(copied.certify().out)
    assert (before["verdict"]["status"], before["verdict"]["warned"]) == ("certified", [])
    assert {Path(entry["path"]).name for entry in before["committed"]} == {GOLDEN, GOLDEN_ANSWERS, "approved_judges.yaml"}
    assert_caught(copied, Change("notes", put(GOLDEN, "q-001", notes="seen again"), "judgments-committed", code=1))


HARMLESS: dict[str, tuple[Make, tuple[str, ...]]] = {
    "order of rows": (reversed_rows(*INPUTS), INPUTS),
    "white space": (spaced(*INPUTS), INPUTS),
    "notes of a judgment": (put(GOLDEN, "q-001", notes="seen again", reviewer="editor-9", tags=["seen"]), (GOLDEN,)),
    "an answer's own data": (put(ANSWERS, "q-001", metadata={"trace": "t-1"}), (ANSWERS,)),
    "a report's layout": (laid_out(RETRIEVAL, GENERATION), (RETRIEVAL, GENERATION)),
    "a comment in the configuration": (
        config("name: support-kb", "name: support-kb   # ours"),
        ("../../configs/support-kb.yaml",),
    ),
}
"""What changes no meaning, and the files that are no longer the same bytes."""


@pytest.mark.parametrize("what", HARMLESS)
def test_a_harmless_change_still_certifies_and_verify_names_the_file(copied: CertifiedRun, what: str) -> None:
    make, files = HARMLESS[what]
    make(copied)
    checked = copied.verify("--json")
    assert {deviation["path"] for deviation in json.loads(checked.out)["deviations"]} == set(files)
    assert checked.code == (1 if files else 0)
    assert copied.certify().code == 0
    assert copied.verify().code == 0


def test_a_moved_run_has_the_same_certificate(certified: CertifiedRun, copied: CertifiedRun) -> None:
    before = certified.certificate.read_bytes()
    assert copied.verify().code == 0
    assert copied.certify().code == 0
    assert copied.certificate.read_bytes() == before


def test_verify_finds_one_changed_byte_in_any_artifact(certified: CertifiedRun, copied: CertifiedRun) -> None:
    artifacts = json.loads(certified.certificate.read_bytes())["artifacts"]
    files = [*(entry["path"] for entry in artifacts), "certificate.json"]
    assert {*INPUTS, *MADE} <= set(files)
    for name in files:
        path = copied.full / name
        before = path.read_bytes()
        middle = len(before) // 2
        path.write_bytes(before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :])
        done = copied.verify()
        assert done.code != 0, name
        assert name in done.out + done.err
        path.write_bytes(before)
    assert copied.verify().code == 0
