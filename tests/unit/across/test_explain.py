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


def _later(first: Lost) -> Lost:
    """A place further down the list that can be broken beside the first; the first itself where there is none."""
    order = list(PLACES)
    if first in ("incomplete", "wrongly_abstained"):  # there is no answer to break
        return first
    return "not_cited" if order.index(first) < order.index("not_cited") else "unfaithful" if first == "bad_citation" else first


def test_the_first_place_that_applies_is_taken_and_shares_add_up(tmp_path: Path) -> None:
    """Each query is broken at two places of the list, one after the other."""
    places: list[Lost] = [place for place in PLACES if place not in ("absent", "not_empty", "answered_unanswerable")]
    cases = [case(n) for n in range(QUERIES)]
    wanted: dict[str, Lost] = {}
    for n, (one, first) in enumerate(zip(cases, places, strict=False)):
        second = _later(first)
        for place in (second, first) if n % 2 else (first, second):
            BREAKS[place](one)
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


def test_a_requirement_counts_before_the_sources(tmp_path: Path) -> None:
    """The expected source stands beyond the top K, but another fragment that serves was shown, and not cited."""
    cases = [case(n) for n in range(QUERIES)]
    one = cases[3]
    BREAKS["not_shown"](one)
    assert one.generation is not None
    one.generation["citation_requirements"][0]["acceptable_fragment_ids"].append("filler0::f1")
    one.generation["accepted_fragment_ids"].append("filler0::f1")
    write(tmp_path, cases)
    evaluate(tmp_path)
    (charge,) = account(tmp_path).charges
    assert (charge.lost, charge.layer, charge.unit) == ("not_cited", "generation", "r-q03")


def test_verdicts_of_another_run_are_refused(tmp_path: Path) -> None:
    broken(tmp_path, "unfaithful")
    results = tmp_path / "generation" / "generation-results.jsonl"
    results.write_text("\n".join(results.read_text().splitlines()[:-1]) + "\n")
    outcome = run(tmp_path, EXPLAIN)
    assert (outcome.code, "the two were not written together" in outcome.err) == (3, True)


def test_the_story_of_a_query_that_failed_nowhere(tmp_path: Path) -> None:
    broken(tmp_path, "rank")
    text = run(tmp_path, [*EXPLAIN, "q00"]).out
    assert text.splitlines()[0] == 'q00  "What of q00?"      failed nowhere'
    assert "cited       ✓ cited" in text
    assert "lost here" not in text


def test_the_account_for_a_person_names_every_place_with_its_share(tmp_path: Path) -> None:
    cases = [case(n) for n in range(QUERIES)]
    for one in cases[:3]:
        BREAKS["rank"](one)
    BREAKS["unfaithful"](cases[9])
    write(tmp_path, cases)
    evaluate(tmp_path)
    lines = run(tmp_path, EXPLAIN).out.splitlines()
    assert [line.split() for line in lines if line.startswith(("rank", "unfaithful"))] == [
        ["rank", "3", ".750", "q00", "q01", "q02"],
        ["unfaithful", "1", ".250", "q09"],
    ]
    assert lines[-1] == "next: tripos explain q00 --run ."


@pytest.mark.parametrize("place", ["rank", "not_shown"])
def test_without_fragments_ids_tell_the_source(tmp_path: Path, place: Lost) -> None:
    cases = [case(n) for n in range(QUERIES)]
    for one in cases:
        del one.retrieval["filters"], one.retrieval["principal"]
    BREAKS[place](cases[3])
    write(tmp_path, cases)
    judged = ["--judgments", "retrieval.jsonl", "--ranked-results", "ranked-results.jsonl", "--retrieval-mode", "lexical"]
    assert run(tmp_path, ["eval-retrieval", *judged, "--limit", "10", "--top-k", "3", "--output", "retrieval"]).code == 0
    (charge,) = account(tmp_path).charges
    assert (charge.query_id, charge.lost, charge.unit) == ("q03", place, "s-q03")


def test_positions_of_sources_where_d_counts_them(tmp_path: Path) -> None:
    """Three fragments of one source stand before the expected: fourth by fragment, second by source, top K 3."""
    cases = [case(n) for n in range(QUERIES)]
    for one in cases:
        del one.retrieval["filters"], one.retrieval["principal"]
    own = cases[3].ranked
    own["fragment_ids"] = ["filler0::f1", "filler0::f2", "filler0::f3", cases[3].fragment]
    write(tmp_path, cases)
    judged = ["--judgments", "retrieval.jsonl", "--ranked-results", "ranked-results.jsonl", "--retrieval-mode", "lexical"]
    depth = ["--limit", "10", "--top-k", "3", "--output", "retrieval"]
    run(tmp_path, ["eval-retrieval", *judged, *depth])
    assert [one.lost for one in account(tmp_path).charges] == ["not_shown"]
    run(tmp_path, ["eval-retrieval", *judged, *depth, "--unit", "source"])
    assert account(tmp_path).charges == ()
