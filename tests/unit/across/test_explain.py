"""explain: one query in ten is broken at a known stage, every stage of the list in turn, and recovered exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.world import run
from tests.explain_worlds import BREAKS, QUERIES, case, evaluate, write
from tripos.contracts.explanation import PLACES, Explanation, Lost, Story

EXPLAIN = ["explain", "--run", "."]


def broken(folder: Path, place: Lost, step: int = 10) -> list[str]:
    """Write and evaluate a run in which one query in `step` is broken at a place; their ids."""
    cases = [case(n) for n in range(QUERIES)]
    chosen = cases[3::step]
    for one in chosen:
        BREAKS[place](one)
    write(folder, cases)
    evaluate(folder, *(["--lenient"] if place == "absent" else []))
    return [one.name for one in chosen]


def account(folder: Path) -> Explanation:
    outcome = run(folder, [*EXPLAIN, "--json"])
    assert outcome.code == 0, outcome.err
    return Explanation.model_validate_json(outcome.out)


def test_every_place_can_be_broken() -> None:
    assert list(BREAKS) == list(PLACES)


@pytest.mark.parametrize("place", PLACES)
def test_what_was_broken_is_recovered_exactly(tmp_path: Path, place: Lost) -> None:
    names = broken(tmp_path, place)
    found = account(tmp_path)
    assert found.lost == {place: len(names)}
    assert [one.query_id for one in found.charges] == names
    assert found.failed == len(names) == QUERIES // 10
    story = run(tmp_path, [*EXPLAIN, names[0], "--json"])
    told = Story.model_validate_json(story.out)
    assert told.charge is not None
    assert told.charge.lost == place
    assert sum(step.lost_here for step in told.steps) <= 1


def test_a_run_without_a_failure_has_no_charge(tmp_path: Path) -> None:
    write(tmp_path, [case(n) for n in range(QUERIES)])
    done = evaluate(tmp_path)
    assert {layer: outcome.code for layer, outcome in done.items()} == {"retrieval": 0, "generation": 1, "corpus": 0}
    assert account(tmp_path).failed == 0  # generation fails its gate on abstention: no row is unanswerable
    assert "no query failed" in run(tmp_path, EXPLAIN).out


def test_the_first_place_that_applies_is_taken_and_shares_add_up(tmp_path: Path) -> None:
    """Each query is broken at two places of the list, one after the other."""
    places = [place for place in PLACES if place not in ("absent", "not_empty", "answered_unanswerable")]
    cases = [case(n) for n in range(QUERIES)]
    wanted: dict[str, Lost] = {}
    for n, (one, first) in enumerate(zip(cases, places, strict=False)):
        later = [p for p in ("not_cited", "unfaithful") if list(PLACES).index(p) > list(PLACES).index(first)]  # type: ignore[arg-type]
        if first in ("incomplete", "wrongly_abstained") or not later:
            later = []
        for place in [*later[:1], first] if n % 2 else [first, *later[:1]]:
            BREAKS[place](one)  # type: ignore[index]
        wanted[one.name] = first
    write(tmp_path, cases)
    evaluate(tmp_path)
    found = account(tmp_path)
    assert {one.query_id: one.lost for one in found.charges} == wanted
    assert sum(found.lost.values()) == found.failed == len(wanted)


def test_reports_of_other_fingerprints_are_refused_component_by_component(tmp_path: Path) -> None:
    broken(tmp_path, "rank")
    report = tmp_path / "corpus" / "corpus-report.json"
    changed = json.loads(report.read_text())
    changed["fingerprint"]["components"]["D"]["values"]["top_k"] = 5
    changed["fingerprint"]["components"]["D"]["digest"] = "0" * 64
    report.write_text(json.dumps(changed))
    outcome = run(tmp_path, EXPLAIN)
    assert outcome.code == 4
    assert "D evidence depth: top_k 3 in retrieval, 5 in corpus" in outcome.err


def test_an_unbound_report_is_refused(tmp_path: Path) -> None:
    broken(tmp_path, "rank")
    files = ["--judgments", "corpus.jsonl", "--results", "corpus-results.jsonl", "--fragments", "fragments.jsonl"]
    run(tmp_path, ["eval-corpus", *files, "--output", "corpus", "--top-k", "3"])
    outcome = run(tmp_path, EXPLAIN)
    assert (outcome.code, "corpus: the report is unbound" in outcome.err) == (4, True)


def test_misses_of_another_run_are_refused(tmp_path: Path) -> None:
    broken(tmp_path, "rank")
    misses = tmp_path / "corpus" / "corpus-misses.jsonl"
    rows = [json.loads(line) | {"run_id": "other"} for line in misses.read_text().splitlines()]
    misses.write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = run(tmp_path, EXPLAIN)
    assert (outcome.code, "the two were not written together" in outcome.err) == (3, True)


def test_results_that_changed_since_are_refused(tmp_path: Path) -> None:
    broken(tmp_path, "rank")
    results = tmp_path / "corpus-results.jsonl"
    results.write_text("\n".join(results.read_text().splitlines()[1:]) + "\n")
    outcome = run(tmp_path, EXPLAIN)
    assert (outcome.code, "the corpus results are not those that the report measured" in outcome.err) == (4, True)


def test_the_story_of_what_was_not_shown(tmp_path: Path) -> None:
    names = broken(tmp_path, "not_shown")
    text = run(tmp_path, [*EXPLAIN, names[0]]).out
    assert "retrieval   ✓ s-q03::f1 at rank 5 of 10" in text
    assert "shown       ✗ top K is 3: ranked 5, it never reached the model     ← lost here" in text
    assert "what would keep it: top_k ≥ 5 (hit@5 1.00, hit@3 0.90 over this run)" in text


def test_an_unknown_query_is_named_with_the_nearest(tmp_path: Path) -> None:
    broken(tmp_path, "rank")
    outcome = run(tmp_path, [*EXPLAIN, "q003"])
    assert outcome.code == 2
    assert 'did you mean "q03"?' in outcome.err or "is a query of no report here" in outcome.err


def test_without_a_retrieval_report_it_says_what_to_do(tmp_path: Path) -> None:
    outcome = run(tmp_path, EXPLAIN)
    assert (outcome.code, "no retrieval report in ." in outcome.err) == (2, True)
