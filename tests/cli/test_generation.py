"""`tripos eval-generation` and `tripos evidence`: verdicts, gates, binding, bad input; files, streams and exit codes."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.world import ROOT, run
from tests.generation_worlds import SHOWN, TEXTS, Answers, Graded, Row, answer, need, quote, refusal, write
from tripos.contracts.generation import PASSING, STATUSES, EvidenceRow


@pytest.fixture
def world(tmp_path: Path) -> Answers:
    return Answers(tmp_path)


def evidence(world: Answers, report: str = "retrieval/report.json") -> dict[str, EvidenceRow]:
    made = run(world.folder, ["evidence", "--retrieval-report", report, "--output", "evidence.jsonl"])
    assert made.code == 0, made.err
    lines = (world.folder / "evidence.jsonl").read_bytes().splitlines()
    return {row.query_id: row for row in map(EvidenceRow.model_validate_json, lines)}


def stamped(world: Answers) -> None:
    """Stamp every answer with the evidence it is given."""
    for row in world.rows:
        row["system_fingerprint"] = evidence(world)[row["query_id"]].system_fingerprint


# the outcome of one row


@pytest.mark.parametrize(
    ("row", "status", "words"),
    [
        (answer("q1"), "qualified", []),
        (refusal("q1"), "abstained_rightly", []),
        (answer("q1", expected_answerable="partial"), "partial", []),
        (answer("q1", error="timeout after 30 s", answer=None), "incomplete", ["the answer failed: timeout after 30 s"]),
        ({k: v for k, v in answer("q1", error="timeout").items() if k != "answer"}, "incomplete", ["failed: timeout"]),
        (refusal("q1", answer="It is 42."), "answered_unanswerable", ["should have abstained"]),
        (answer("q1", answer="I don't know.", cited_fragment_ids=[]), "over_refused", ['"I don\'t know."', "expiry"]),
        (answer("q1", cited_fragment_ids=[]), "missing_requirement", ["cite s1::f1", "it cites nothing"]),
        (
            answer("q1", "s1::f2", accepted_fragment_ids=["s1::f1", "s1::f2"]),
            "missing_requirement",
            ["cite s1::f1", "it cites s1::f2"],
        ),
        (
            answer("q1", "s3::f1", citation_requirements=[need("kept", "s3::f1")], accepted_fragment_ids=["s3::f1"]),
            "bad_citation",
            ["not among the 4 fragments shown, though it would be accepted"],
        ),
        (
            answer("q1", "s1::f1", citation_requirements=[need("kept", "s3::f1")], accepted_fragment_ids=["s3::f1", "s1::f1"]),
            "missing_requirement",
            ["none was in the evidence shown: retrieval lost it"],
        ),
        (refusal("q1", cited_fragment_ids=["s1::f1"]), "abstained_with_citations", ["an abstention cites nothing"]),
        (answer("q1", "s1::f1", "s1::f9"), "bad_citation", ["in no fragment of the corpus", "made up"]),
        (answer("q1", "s1::f1", "s2::f1"), "bad_citation", ["supports nothing that is asked"]),
        (answer("q1", faithfulness_score=0.79), "unfaithful", ["0.79 is below the target 0.8"]),
        (answer("q1", faithfulness_score=0.8), "qualified", []),
        (
            answer("q1", faithfulness_score=None, unavailable_reason="judge timed out"),
            "not_judged",
            ["no faithfulness score: judge timed out"],
        ),
    ],
)
def test_each_row_has_one_status_and_says_why(world: Answers, row: Row, status: str, words: list[str]) -> None:
    world.rows = [row]
    graded = world.run()
    result = graded.results["q1"]
    assert result.status == status
    assert bool(result.reasons) == (status not in PASSING)
    said = " ".join(result.reasons)
    assert all(word in said for word in words), said
    assert ("q1" in graded.misses) == (status not in PASSING)


def test_the_cases_above_reach_every_status() -> None:
    marks = test_each_row_has_one_status_and_says_why.pytestmark  # type: ignore[attr-defined]
    assert {case[1] for case in marks[0].args[1]} == set(STATUSES)


def test_every_ground_is_listed_and_the_first_is_the_status(world: Answers) -> None:
    world.rows = [answer("q1", "s2::f1", "s1::f9", faithfulness_score=0.1)]
    result = world.run().results["q1"]
    assert result.status == "missing_requirement"
    assert result.grounds == ("missing_requirement", "bad_citation", "unfaithful")
    assert len(result.reasons) == 4


def test_the_first_fault_of_a_citation_is_told(world: Answers) -> None:
    world.rows = [answer("q1", "s1::f1", "nowhere", "s3::f1", "s2::f1")]
    faults = {c.fragment_id: c.fault for c in world.run().results["q1"].citations}
    assert faults == {"s1::f1": None, "nowhere": "nonexistent", "s3::f1": "not_shown", "s2::f1": "not_accepted"}


def test_accepted_but_not_shown_stays_in_precision_and_fails_the_row(world: Answers) -> None:
    world.rows = [answer("q1", "s1::f1", "s3::f1", accepted_fragment_ids=["s1::f1", "s3::f1"])]
    graded = world.run()
    assert (graded.value("citation_precision"), graded.status("q1")) == (1.0, "bad_citation")


def test_a_miss_tells_the_whole_story(world: Answers) -> None:
    world.rows = [answer("q1", "s2::f1"), refusal("q2")]
    graded = world.run()
    miss = graded.misses["q1"]
    assert (miss.query, miss.answer, miss.shown) == ("What of q1?", "It expires after 30 days [1].", SHOWN)
    assert miss.run_id == graded.report.run_id
    assert miss.configuration_fingerprint == graded.report.fingerprint.configuration
    assert set(graded.misses) == {"q1"}


# systems that fail for the right reason


def answerable(n: int, **more: Any) -> list[Row]:
    return [answer(f"a{i}", **more) for i in range(n)]


def unanswerable(n: int, **more: Any) -> list[Row]:
    return [refusal(f"u{i}", **more) for i in range(n)]


def test_a_system_that_always_abstains_fails(world: Answers) -> None:
    silent: Row = {"answer": "", "cited_fragment_ids": [], "faithfulness_score": None}
    world.rows = answerable(4, **silent) + unanswerable(4, answer="")
    graded = world.run()
    assert graded.code == 1
    assert graded.gate("qualified") == ("failed", "worst 0")
    assert graded.gate("faithfulness")[0] == "vacuous"
    assert "no answerable question was answered" in graded.gate("faithfulness")[1]
    assert (graded.gate("abstention")[0], graded.value("over_refusal")) == ("passed", 1.0)
    assert graded.report.statuses == {"abstained_rightly": 4, "over_refused": 4}


def test_a_system_that_always_answers_fails(world: Answers) -> None:
    world.rows = answerable(4) + unanswerable(4, answer="It is 42.")
    graded = world.run()
    assert graded.code == 1
    assert [g.name for g in graded.report.gates if g.status != "passed"] == ["abstention"]
    assert (graded.value("false_answer"), graded.value("abstention_recall")) == (1.0, 0.0)
    assert graded.figure("abstention_precision").undefined == "nothing_abstained"


def test_a_system_that_cites_everything_fails(world: Answers) -> None:
    world.rows = answerable(4, cited_fragment_ids=list(TEXTS)) + unanswerable(4)
    graded = world.run()
    assert graded.code == 1
    assert graded.gate("qualified") == ("failed", "worst 0")
    assert graded.report.statuses["bad_citation"] == 4
    assert (graded.value("requirement_coverage"), graded.value("citation_precision")) == (1.0, 0.2)
    assert (graded.value("not_shown"), graded.value("not_accepted")) == (4.0, 12.0)


def test_a_system_that_cites_nothing_fails(world: Answers) -> None:
    world.rows = answerable(4, cited_fragment_ids=[]) + unanswerable(4)
    graded = world.run()
    assert graded.code == 1
    assert graded.report.statuses["missing_requirement"] == 4
    assert (graded.value("requirement_coverage"), graded.value("citation_precision")) == (0.0, None)
    assert graded.figure("citation_precision").undefined == "nothing_cited"


@pytest.mark.parametrize(
    ("rows", "vacuous"),
    [
        (answerable(3), {"abstention"}),
        (unanswerable(3), {"faithfulness", "qualified"}),
        ([answer("p", expected_answerable="partial")], {"faithfulness", "qualified", "abstention"}),
    ],
)
def test_an_empty_population_fails_its_gate_unless_dropped(world: Answers, rows: list[Row], vacuous: set[str]) -> None:
    world.rows = rows
    graded = world.run()
    assert graded.code == 1
    assert {g.name for g in graded.report.gates if g.status == "vacuous"} == vacuous
    dropped = world.run(*(part for name in sorted(vacuous) for part in ("--drop-gate", name)))
    assert dropped.code == 0
    assert set(dropped.report.targets.dropped) == vacuous


def test_a_judge_outage_on_every_row_never_passes_and_never_reads_as_zero(world: Answers) -> None:
    unjudged = answer("bad", "s2::f1", faithfulness_score=None)
    world.rows = [*answerable(3, faithfulness_score=None), unjudged, *unanswerable(2)]
    for flags in ((), ("--allow-incomplete",)):
        graded = world.run(*flags)
        assert graded.code == 6
        for name in ("faithfulness", "qualified", "truthfulness"):
            assert graded.value(name) is None, name
        assert graded.gate("qualified")[0] == graded.gate("faithfulness")[0] == "inconclusive"
        assert ".000" not in "".join(line for line in graded.outcome.out.splitlines() if "aithful" in line[:20])


def test_one_unjudged_row_is_incomplete_not_zero(world: Answers) -> None:
    world.rows = [*answerable(9), answer("late", faithfulness_score=None), *unanswerable(1)]
    graded = world.run()
    assert graded.code == 6
    figure = graded.figure("qualified")
    assert (figure.value, figure.worst, figure.n, figure.incomplete) == (1.0, 0.9, 9, 1)
    assert "1 of 11 answers have no faithfulness score" in graded.gate("complete")[1]
    assert world.run("--allow-incomplete").code == 0


def test_exactly_the_target_passes(world: Answers) -> None:
    bad = answer("bad", cited_fragment_ids=[], faithfulness_score=0.8)
    world.rows = [*answerable(4, faithfulness_score=0.8), bad, *unanswerable(4), refusal("u9", answer="42")]
    graded = world.run("--faithfulness-target", "0.80", "--qualified-answer-target", "0.80")
    assert graded.code == 0
    assert [graded.value(n) for n in ("faithfulness", "qualified", "abstention")] == [0.8, 0.8, 0.8]


# forms


def test_both_forms_score_the_same_and_have_one_judgments_digest(world: Answers) -> None:
    world.rows = [answer("q1", category="a", slices={"p": 1}), answer("q3", "s2::f1", category="b"), refusal("q2")]
    one = world.run().report
    world.split = True
    other = world.run().report
    assert (one.judgments_digest, one.answers_digest) == (other.judgments_digest, other.answers_digest)
    assert (one.measures, one.slices, one.gates) == (other.measures, other.slices, other.gates)
    assert (one.completeness, other.completeness) == ("not_checkable", "checked")


def test_a_golden_row_without_an_answer_is_incomplete(world: Answers) -> None:
    world.rows = [*answerable(9), {k: v for k, v in answer("q9").items() if k != "answer"}, *unanswerable(1)]
    world.split = True
    graded = world.run()
    assert graded.code == 6
    assert graded.status("q9") == "incomplete"
    assert [(r.query_id, r.because) for r in graded.report.rows.incomplete_rows] == [("q9", "no answer to this query")]
    assert (graded.figure("qualified").value, graded.figure("qualified").worst) == (1.0, 0.9)


def test_answers_without_a_golden_row_are_counted_not_scored(world: Answers) -> None:
    world.split = True
    world.bind()
    flags = world.flags()
    golden = [json.loads(line) for line in (world.folder / "golden.jsonl").read_text().splitlines()]
    write(world.folder / "golden.jsonl", [{**golden[0], "review_status": "draft"}, golden[1]])
    with (world.folder / "answers.jsonl").open("a") as stream:
        stream.write('{"query_id": "unknown", "answer": "x"}\n')
    made = run(world.folder, flags)
    report = json.loads((world.folder / "out" / "generation-report.json").read_bytes())
    assert (report["counts"]["without_judgment"], report["rows"]["scored"]) == (1, 1)
    assert report["rows"]["by_status"] == {"draft": 1, "reviewed": 1}
    assert "1 answers have no reviewed part" in made.out


def test_rows_of_unknown_queries_have_no_list(world: Answers) -> None:
    world.bind()
    world.rows = [answer("q1"), answer("elsewhere", "s3::f1", accepted_fragment_ids=["s1::f1", "s3::f1"])]
    graded = world.run("--drop-gate", "abstention")
    assert graded.report.counts.without_list == 1
    assert graded.figure("not_shown").undefined_rows == {"no_list": 1}
    assert {c.fault for c in graded.results["elsewhere"].citations} == {None}
    assert any("no list in the bound retrieval run" in text for text in graded.report.warnings)


def test_nothing_reviewed_is_nothing_to_evaluate(world: Answers) -> None:
    world.rows = [answer("q1", review_status="draft")]
    graded = world.run()
    assert graded.code == 5
    assert "none of 1 rows" in graded.err


# binding


def test_stamped_answers_verify_the_binding_and_unstamped_ones_declare_it(world: Answers) -> None:
    world.bind()
    assert world.run().report.binding == "declared"
    stamped(world)
    report = world.run().report
    assert report.binding == "verified"
    retrieval = json.loads((world.folder / "retrieval" / "report.json").read_bytes())
    assert report.fingerprint.configuration == retrieval["fingerprint"]["configuration"]
    assert report.retrieval is not None
    assert (report.retrieval.mode, report.retrieval.limit, report.retrieval.top_k) == ("lexical", 5, 4)
    assert report.retrieval.mean_fragments_a_source == pytest.approx(5 / 3)
    world.rows[0].pop("system_fingerprint")
    assert world.run().report.binding == "declared"


def test_without_a_retrieval_report_the_report_is_unbound(world: Answers) -> None:
    world.bound = False
    report = world.run().report
    assert (report.binding, report.fingerprint.configuration, report.retrieval) == ("unbound", None, None)
    found = report.measures["not_shown"]
    assert found.undefined == "no_list"


def test_without_fragments_made_up_citations_cannot_be_told(world: Answers) -> None:
    write(world.folder / "input.jsonl", [answer("q1", "s1::f1", "x", accepted_fragment_ids=["s1::f1", "x"]), refusal("q2")])
    made = run(world.folder, ["eval-generation", "--input", "input.jsonl", "--json"])
    report = json.loads(made.out)
    assert made.code == 0
    assert report["measures"]["nonexistent"]["undefined"] == "no_corpus"
    assert report["model"] is None


def test_evidence_is_the_top_k_with_text(world: Answers) -> None:
    world.bind()
    row = evidence(world)["q1"]
    assert [(f.fragment_id, f.source_id, f.text) for f in row.evidence] == [(k, k[:2], TEXTS[k]) for k in SHOWN]
    assert row.query == "What of q1?"


def test_evidence_is_cut_as_the_retrieval_run_cuts(world: Answers) -> None:
    world.bind()
    scores = [0.9, 0.8, 0.7, 0.6, 0.2]
    write(world.folder / "ranked.jsonl", [{"query_id": "q1", "fragment_ids": list(TEXTS), "scores": scores}])
    cuts = ["--min-score", "0.5", "--unit", "source", "--allow-incomplete"]
    flags = [*world.retrieval(), *cuts]
    flags[flags.index("--top-k") + 1] = "3"
    assert run(world.folder, flags).code == 0
    found = evidence(world)
    assert {k: [f.fragment_id for f in row.evidence] for k, row in found.items()} == {"q1": ["s1::f1", "s2::f1"]}


def test_failed_queries_have_no_evidence_and_are_told(world: Answers) -> None:
    world.bind()
    write(
        world.folder / "ranked.jsonl",
        [{"query_id": "q1", "fragment_ids": []}, {"query_id": "q2", "fragment_ids": [], "error": "down"}],
    )
    assert run(world.folder, [*world.retrieval(), "--allow-incomplete"]).code == 0
    made = run(world.folder, ["evidence", "--retrieval-report", "retrieval/report.json", "--output", "e.jsonl"])
    assert made.code == 0
    assert "1 query failed in retrieval: no row" in made.err
    assert "1 query with nothing to answer from: abstain" in made.err
    assert len((world.folder / "e.jsonl").read_text().splitlines()) == 1


def test_evidence_needs_texts(world: Answers) -> None:
    world.bind()
    flags = world.retrieval()
    run(world.folder, [part for part in flags if part not in ("--fragments", "fragments.jsonl")])
    made = run(world.folder, ["evidence", "--retrieval-report", "retrieval/report.json", "--output", "e.jsonl"])
    assert made.code == 3
    assert "evidence needs the texts of all fragments" in made.err


def test_answers_of_another_depth_are_refused_with_the_depth_told(world: Answers) -> None:
    world.bind()
    stamped(world)
    world.rows[0]["evidence_fragment_ids"] = list(SHOWN)
    world.top_k = 2
    world.bind()
    graded = world.run()
    assert graded.code == 4
    assert "2 of 2 answers were written from the evidence of another system" in graded.err
    assert "D evidence depth: top_k 4 in the answers, 2 in retrieval" in graded.err


def test_answers_of_another_policy_are_refused_with_the_policy_told(world: Answers) -> None:
    world.bind()
    stamped(world)
    flags = world.retrieval()
    run(world.folder, [part if part != "lexical" else "hybrid" for part in flags])
    graded = world.run()
    assert graded.code == 4
    assert 'C search policy: mode "lexical" in the answers, "hybrid" in retrieval' in graded.err


def test_answers_of_another_corpus_are_refused_with_the_corpus_told(world: Answers) -> None:
    world.bind()
    stamped(world)
    world.texts["s3::f1"] = "Backups are kept for two years."
    world.bind()
    graded = world.run()
    assert graded.code == 4
    assert "A corpus: most likely the answers were written from other fragments" in graded.err


def test_a_policy_and_a_depth_that_moved_together_are_both_told(world: Answers) -> None:
    world.bind()
    stamped(world)
    world.top_k = 3
    flags = world.retrieval()
    run(world.folder, [part if part != "lexical" else "dense" for part in flags])
    graded = world.run()
    assert graded.code == 4
    assert 'C search policy: mode "lexical" in the answers, "dense" in retrieval' in graded.err
    assert "D evidence depth: top_k 4 in the answers, 3 in retrieval" in graded.err


def test_another_acl_default_is_told(world: Answers) -> None:
    world.bind()
    stamped(world)
    run(world.folder, [*world.retrieval(), "--acl-default", "public"])
    graded = world.run()
    assert graded.code == 4
    assert 'A corpus: acl_default null in the answers, "public" in retrieval' in graded.err


def test_a_judge_that_marks_its_own_answers_is_told(world: Answers) -> None:
    assert "the judge is the model under test: it marks its own answers" in world.run("--judge-model", "m@1").report.warnings


def edit(world: Answers, name: str, old: str, new: str) -> None:
    path = world.folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("fragments.jsonl", "30 days", "31 days", "A corpus: segmentation: other fragments"),
        ("fragments.jsonl", '{"fragment_id": "s3', '{"fragment_id": "s4', "A corpus: sources: other source ids"),
        ("judgments.jsonl", "structural", "single_hop_factual", "B judgments: rows: other reviewed rows"),
        ("ranked.jsonl", '"s1::f1", "s1::f2"', '"s1::f2", "s1::f1"', "the ranked results are not those"),
        ("retrieval/report.json", '"top_k": 4', '"top_k": 3', "D evidence depth"),
        ("retrieval/report.json", '"hit@k"', '"hat@k"', "changed after it was written"),
    ],
)
def test_a_run_that_moved_since_it_was_measured_is_refused(world: Answers, name: str, old: str, new: str, told: str) -> None:
    world.bind()
    edit(world, name, old, new)
    for graded in (
        world.run().outcome,
        run(world.folder, ["evidence", "--retrieval-report", "retrieval/report.json", "--output", "e"]),
    ):
        assert graded.code == 4, graded.err
        assert told in graded.err
        assert not (world.folder / "e").exists()


def test_a_config_that_states_another_depth_is_refused_field_by_field(world: Answers) -> None:
    world.bind()
    (world.folder / "c.yaml").write_text("search: {mode: hybrid}\ndepth: {limit: 5, top_k: 3}\n")
    graded = world.run("--config", "c.yaml")
    assert graded.code == 4
    assert "D evidence depth: top_k 4 in retrieval, 3 here" in graded.err
    assert 'C search policy: mode "lexical" in retrieval, "hybrid" here' in graded.err


def test_collections_named_by_flag_are_found_again(world: Answers) -> None:
    world.bind()
    flags = [part if part != "fragments.jsonl" else "kb=fragments.jsonl" for part in world.retrieval()]
    assert run(world.folder, flags).code == 0
    assert world.run().report.binding == "declared"


def test_names_without_a_revision_are_accepted_and_told(world: Answers) -> None:
    report = world.run("--model", "plain", "--judge-model", "other@2026").report
    assert report.model is not None
    assert report.judge is not None
    assert (report.model.pinned, report.judge.pinned) == (False, True)
    assert "model plain is unpinned: name@revision" in report.warnings


@pytest.mark.parametrize(
    ("judge", "state"),
    [("j@1", "approved"), ("j@2", "expired"), ("j@3", "not_yet_valid"), ("j@4", "not_listed")],
)
def test_whether_the_judge_is_approved_is_told_and_moves_no_run_id(world: Answers, judge: str, state: str) -> None:
    spans = {"j@1": ("2020-01-01", "2999-01-01"), "j@2": ("2020-01-01", "2020-02-01"), "j@3": ("2998-01-01", "2999-01-01")}
    lines = [
        f"  - {{name: {name}, by: board, from: {first}, until: {last}, kind: external}}"
        for name, (first, last) in spans.items()
    ]
    (world.folder / "judges.yaml").write_text("judges:\n" + "\n".join(lines) + "\n")
    bare = world.run("--judge-model", judge).report
    report = world.run("--judge-model", judge, "--approved-judges", "judges.yaml").report
    assert (bare.provenance.judge_approval, report.provenance.judge_approval) == ("not_checked", state)
    assert bare.run_id == report.run_id


# evidence by quote


def test_a_quote_is_met_by_any_fragment_that_holds_it(world: Answers) -> None:
    world.rows = [
        answer("q1", citation_requirements=[quote("expiry", "s1", "expires  after 30\ndays")], accepted_fragment_ids=[])
    ]
    graded = world.run("--drop-gate", "abstention")
    assert graded.status("q1") == "qualified"


def test_a_quote_cut_by_a_boundary_is_met_by_its_pieces_together(world: Answers) -> None:
    needs = [quote("hidden", "s1", "It is never shown again once the page is closed")]
    both = answer("q1", "s1::f2", "s1::f3", citation_requirements=needs, accepted_fragment_ids=[])
    half = answer("q3", "s1::f2", citation_requirements=needs, accepted_fragment_ids=[])
    world.rows = [both, half, refusal("q2")]
    graded = world.run()
    assert (graded.status("q1"), graded.status("q3")) == ("qualified", "missing_requirement")
    assert "cite s1::f2 with s1::f3" in graded.results["q3"].reasons[0]


def test_one_golden_file_serves_two_chunkings(world: Answers, tmp_path: Path) -> None:
    needs = [quote("expiry", "s1", "expires after 30 days"), quote("renewal", "s1", "Owners renew it")]
    golden = {"citation_requirements": needs, "accepted_fragment_ids": []}
    world.rows = [answer("q1", "s1::f1", "s1::f2", **golden), refusal("q2")]
    (tmp_path / "other").mkdir()
    whole = {"s1::all": " ".join(TEXTS[f"s1::f{n}"] for n in (1, 2, 3)), "s2::f1": TEXTS["s2::f1"], "s3::f1": TEXTS["s3::f1"]}
    other = Answers(tmp_path / "other", rows=[answer("q1", "s1::all", **golden), refusal("q2")], texts=whole)
    one, two = world.run(), other.run()
    assert (one.code, two.code) == (0, 0)
    assert one.report.judgments_digest == two.report.judgments_digest
    assert one.report.fingerprint.configuration != two.report.fingerprint.configuration
    for name, figure in one.report.measures.items():
        assert figure.value == two.report.measures[name].value, name


# abstention


@pytest.mark.parametrize(
    ("text", "abstained", "origin"),
    [
        ("I do not know the exact date, but the token expires after 30 days [1]", False, "answered"),
        ("i DON’T know", True, "phrase"),
        ("  \n", True, "empty"),
        ("Das weiß ich nicht!", True, "phrase"),
        ("Je ne sais pas.", True, "phrase"),
        ("No lo sé", True, "phrase"),
        ("我不知道", True, "phrase"),
        ("わかりません。", True, "phrase"),
        ("ask the desk", True, "phrase"),
        ("Ask the desk, or look at page 3.", False, "answered"),
    ],
)
def test_abstention_is_told_from_the_whole_answer(world: Answers, text: str, abstained: bool, origin: str) -> None:
    world.rows = [refusal("q1", answer=text)]
    result = world.run("--abstention-phrase", "Ask the desk!").results["q1"]
    assert (result.abstained, result.abstention_origin) == (abstained, origin)


def test_what_the_system_says_of_itself_comes_first_and_is_counted(world: Answers) -> None:
    world.rows = [refusal("q1", answer="It is 42.", abstained=True), refusal("q2", abstained=False), refusal("q3", answer="")]
    graded = world.run()
    assert [graded.results[q].abstained for q in ("q1", "q2", "q3")] == [True, False, True]
    assert graded.report.counts.abstention_origins == {"empty": 1, "given": 2}
    assert graded.report.counts.abstained_with_text == 1


def test_phrases_are_part_of_the_measurement(world: Answers) -> None:
    one = world.run().report.fingerprint.measurement
    other = world.run("--abstention-phrase", "Ask the desk!").report.fingerprint.measurement
    assert one != other


def test_languages_can_be_chosen(world: Answers) -> None:
    world.rows = [refusal("q1", answer="Das weiß ich nicht.")]
    world.bind()
    (world.folder / "c.yaml").write_text("generation: {abstention: {languages: [en]}}\n")
    assert world.run("--config", "c.yaml").status("q1") == "answered_unanswerable"


# bad input


BAD: dict[str, tuple[Row, str]] = {
    "above one": ({"faithfulness_score": 1.5}, "faithfulness_score  is 1.5: must be at most 1"),
    "below zero": ({"faithfulness_score": -0.1}, "faithfulness_score  is -0.1: must be at least 0"),
    "a string": ({"faithfulness_score": "0.9"}, 'faithfulness_score  is "0.9": a number is expected'),
    "true": ({"faithfulness_score": True}, "faithfulness_score  is true: a number is expected"),
    "citations as a string": ({"cited_fragment_ids": "s1::f1"}, 'is a string: a list is expected, write ["s1::f1"]'),
    "a null answer": ({"answer": None}, "answer  null or absent, and no error says why"),
    "a score beside why there is none": ({"unavailable_reason": "down"}, "given beside a faithfulness_score"),
    "a requirement without alternatives": (
        {"citation_requirements": [{"requirement_id": "r"}]},
        "citation_requirements[0].acceptable_fragment_ids  has no alternatives",
    ),
    "accepted not covering acceptable": (
        {"accepted_fragment_ids": []},
        'accepted_fragment_ids  lacks "s1::f1", acceptable for "expiry": accept it too',
    ),
    "a requirement twice": (
        {"citation_requirements": [need("r", "s1::f1"), need("r", "s1::f1")]},
        'citation_requirements[1].requirement_id  "r" is given twice',
    ),
    "an odd answerability": ({"expected_answerable": "yes"}, 'is "yes": true, false or "partial" is expected'),
    "requirements of the unanswerable": ({"expected_answerable": False}, "given, but expected_answerable is false"),
    "a quote found nowhere": (
        {"citation_requirements": [quote("r", "s1", "after 31 days")]},
        '"after 31 days" is nowhere in "s1": copy the passage as it stands there',
    ),
    "a quote of no source": ({"citation_requirements": [quote("r", "s9", "x")]}, '"s9" is in no fragment'),
    "an unknown acceptable fragment": (
        {"citation_requirements": [need("r", "s1::f7")], "accepted_fragment_ids": ["s1::f7"]},
        'acceptable_fragment_ids  "s1::f7" is in no fragment (did you mean "s1::f',
    ),
    "evidence beyond the top K": (
        {"evidence_fragment_ids": ["s1::f1", "s3::f1"]},
        'evidence_fragment_ids  "s3::f1": outside its top K',
    ),
    "another question": ({"query": "What else?"}, "the retrieval judgments ask something else under this query_id"),
    "a misspelt field": ({"citations": []}, "citations  unknown field; did you mean cited_fragment_ids?"),
    "a number as id": ({"cited_fragment_ids": [7]}, "cited_fragment_ids[0]  is the number 7: ids and texts are strings"),
    "a placeholder": ({"accepted_fragment_ids": ["s1::f1", "TODO"]}, '"TODO" is a placeholder: fill it in'),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_told_with_place_field_and_fix(world: Answers, case: str) -> None:
    change, told = BAD[case]
    world.rows = [refusal("q2"), {**answer("q1"), **change}]
    world.bind()
    graded = world.run()
    assert graded.code == 3
    assert "input.jsonl:2  " in graded.err
    assert told in graded.err
    assert not (world.folder / "out" / "generation-report.json").exists()


@pytest.mark.parametrize(
    ("part", "told"), [("answers", "give this file as --answers"), ("golden", "give this file as --judgments")]
)
def test_one_part_alone_is_no_input(world: Answers, part: str, told: str) -> None:
    world.split = True
    world.flags()
    made = run(world.folder, ["eval-generation", "--input", f"{part}.jsonl"])
    assert made.code == 3
    assert len(made.err.splitlines()) == 2
    assert told in made.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is no JSON"),
        ("{}", "is no report"),
        ('{"contract": "tripos/generation-report@1"}', 'is "tripos/generation-report@1", not tripos/retrieval-report@1'),
        ('{"contract": "tripos/retrieval-report@1"}', "fingerprint  missing"),
    ],
)
def test_what_is_no_retrieval_report_is_told_as_such(world: Answers, text: str, told: str) -> None:
    (world.folder / "retrieval").mkdir()
    (world.folder / "retrieval" / "report.json").write_text(text)
    graded = world.run()
    assert graded.code == 3
    assert told in graded.err


def test_all_faults_come_at_once(world: Answers) -> None:
    world.rows = [
        answer("q1", faithfulness_score=2),
        answer("q3", answer=None),
        answer("q3"),
        refusal("q2", cited_fragment_ids="x"),
    ]
    graded = world.run()
    assert graded.code == 3
    assert len(graded.err.splitlines()) == 3
    assert '"q3" was used on line' not in graded.err  # its first use had another fault


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(world: Answers, number: str) -> None:
    world.raw = (
        json.dumps(answer("q1", faithfulness_score=7)).replace("7,", f"{number},").replace("7}", f"{number}}}").encode() + b"\n"
    )
    graded = world.run()
    assert graded.code == 3
    assert "holds NaN or Infinity" in graded.err


def test_null_is_no_score(world: Answers) -> None:
    world.rows = [answer("q1", faithfulness_score=None), refusal("q2")]
    assert world.run().status("q1") == "not_judged"


def test_duplicated_citations_count_once_and_are_counted(world: Answers) -> None:
    world.rows = [answer("q1", "s1::f1", "s1::f1", "s2::f1"), refusal("q2")]
    graded = world.run()
    assert graded.value("citation_precision") == 0.5
    assert (graded.report.counts.citations, graded.report.counts.duplicate_citations) == (2, 1)


def test_a_megabyte_answer_is_an_answer(world: Answers) -> None:
    world.rows = [answer("q1", "s2::f1", answer="It expires. " * 90_000), refusal("q2", answer="é?" * 500_000)]
    graded = world.run()
    assert (graded.status("q1"), graded.status("q2")) == ("missing_requirement", "answered_unanswerable")
    assert (graded.misses["q1"].answer_characters, len(graded.misses["q1"].answer or "")) == (1_080_000, 2000)


def test_a_query_used_twice_is_an_error(world: Answers) -> None:
    world.rows = [answer("q1"), answer("q1")]
    graded = world.run()
    assert graded.code == 3
    assert 'input.jsonl:2  query_id  "q1" was used on line 1' in graded.err


def test_answerable_rows_without_requirements_are_warned_of(world: Answers) -> None:
    world.rows = [answer("q1", citation_requirements=[]), refusal("q2")]
    graded = world.run()
    assert "input.jsonl:1" in graded.err
    assert "1 answerable rows name no requirement" in graded.report.warnings
    assert graded.figure("requirement_coverage").undefined == "no_requirements"
    assert graded.status("q1") == "qualified"


def test_quotes_need_texts(world: Answers) -> None:
    write(world.folder / "input.jsonl", [answer("q1", citation_requirements=[quote("r", "s1", "x")]), refusal("q2")])
    made = run(world.folder, ["eval-generation", "--input", "input.jsonl"])
    assert made.code == 3
    assert "a quote needs the texts of the fragments: give --retrieval-report" in made.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], "missing --input"),
        (["--judgments", "g"], "missing --answers"),
        (["--answers", "a"], "missing --judgments"),
        (["--input", "i", "--answers", "a"], "--input and --answers"),
        (["--judgments", "-", "--answers", "-"], "standard input"),
        (["--input", "i", "--faithfulness-target", "1.5"], "generation.faithfulness_target: is 1.5"),
        (["--input", "i", "--drop-gate", "qualifed"], "did you mean"),
    ],
)
def test_wrong_flags_are_usage_errors(tmp_path: Path, flags: list[str], told: str) -> None:
    made = run(tmp_path, ["eval-generation", *flags])
    assert made.code == 2
    assert told in made.err


def test_a_gate_that_names_no_measure_is_told_before_anything_is_read(tmp_path: Path) -> None:
    made = run(tmp_path, ["eval-generation", "--input", "absent.jsonl", "--fail-under", "citation_precison=0.9"])
    assert made.code == 2
    assert "citation_precision" in made.err


# measures of the configuration, slices, partial rows


def test_asked_gates_read_their_slice(world: Answers) -> None:
    world.rows = [answer("q1", slices={"p": "a"}), answer("q3", "s2::f1", slices={"p": "b"}), refusal("q2")]
    world.bind()
    (world.folder / "c.yaml").write_text("gates:\n  citation_precision: {min: 1, slice: {p: a}}\n  hit@5: {min: 0.1}\n")
    graded = world.run("--config", "c.yaml", "--fail-over", "over_refusal=0", "--qualified-answer-target", "0.5")
    assert graded.code == 0
    assert {g.name: g.slice for g in graded.report.gates if g.asked}["citation_precision"] == "p=a"


def test_partial_rows_are_scored_apart(world: Answers) -> None:
    half = answer("q3", "s2::f1", expected_answerable="partial", faithfulness_score=0.1)
    world.rows = [answer("q1"), refusal("q2"), half]
    graded = world.run()
    assert graded.code == 0
    assert (graded.value("qualified"), graded.figure("faithfulness").n) == (1.0, 1)
    partial = graded.report.partial
    assert partial is not None
    assert (partial.rows, partial.statuses) == (1, {"bad_citation": 1})
    assert partial.measures["faithfulness"].value == 0.1


def test_scores_of_several_sources_are_never_averaged(world: Answers) -> None:
    world.rows = [answer("q1"), answer("q3", faithfulness_score=0.5, faithfulness_source="human"), refusal("q2")]
    graded = world.run("--qualified-answer-target", "0.5")
    assert (graded.figure("faithfulness").undefined, graded.gate("faithfulness")[0]) == ("mixed_sources", "vacuous")
    parts = {s.value: s.measures["faithfulness"].value for s in graded.report.slices if s.by == "faithfulness_source"}
    assert parts == {"given": 1.0, "human": 0.5}
    assert graded.report.counts.faithfulness_sources == {"given": 1, "human": 1}


# files and streams


def test_the_same_bytes_for_shuffled_lines(world: Answers) -> None:
    dice = random.Random(4)
    kinds = [answer, refusal]
    world.rows = [
        dice.choice(kinds)(f"q{i}", category=f"c{i % 3}", confidence=dice.choice([0.2, 0.5, 0.9]), cluster=f"k{i % 7}")
        for i in range(60)
    ]
    world.bind()
    names = ("generation-report.json", "generation-results.jsonl", "generation-misses.jsonl")
    seen = set()
    for split in (False, False, True, True):
        world.split = split
        world.run()
        files = [(world.folder / "out" / name).read_bytes() for name in names]
        report = json.loads(files[0])
        if split:
            seen.add((report["judgments_digest"], report["answers_digest"]))
        else:
            seen.add((b"".join(files), report["judgments_digest"]))
        dice.shuffle(world.rows)
    assert len(seen) == 2


def test_json_prints_one_document_and_the_same_report(world: Answers) -> None:
    graded = world.run("--json")
    assert json.loads(graded.outcome.out)["run_id"] == graded.report.run_id
    assert graded.err == ""


def test_the_summary_answers_first(world: Answers) -> None:
    world.rows += [answer("q3", "s2::f1")]
    lines = world.run().outcome.out.splitlines()
    assert lines[0].startswith("generation · unnamed · lexical, limit 5, top K 4")
    assert lines[-1] == "failed: qualified: worst 0.5   (exit 1)"
    assert any("1 rows failed or are undecided, each with its story" in line for line in lines)


def test_a_config_with_a_run_folder_needs_no_flags(world: Answers) -> None:
    world.bind()
    write(world.folder / "generation-input.jsonl", world.rows)
    (world.folder / "c.yaml").write_text("run: .\ngeneration: {model: m@1, judge_model: j@1}\n")
    assert run(world.folder, ["eval-generation", "--config", "c.yaml"]).code == 0
    assert (world.folder / "generation" / "generation-report.json").exists()
    assert run(world.folder, ["evidence", "--config", "c.yaml"]).code == 0
    assert (world.folder / "generation-evidence.jsonl").exists()


def test_evidence_to_standard_output_is_rows_alone(world: Answers) -> None:
    world.bind()
    made = run(world.folder, ["evidence", "--retrieval-report", "retrieval/report.json", "--output", "-"])
    assert [json.loads(line)["query_id"] for line in made.out.splitlines()] == ["q1", "q2"]
    assert "evidence for 2 queries" in made.err


def test_an_older_output_survives_a_failed_run(world: Answers) -> None:
    world.run()
    before = (world.folder / "out" / "generation-report.json").read_bytes()
    world.rows = [answer("q1", faithfulness_score=2)]
    assert world.run().code == 3
    assert (world.folder / "out" / "generation-report.json").read_bytes() == before
    assert len(list((world.folder / "out").iterdir())) == 3


# the shipped example

KB = ROOT / "golden" / "support-kb"


def test_the_example_scores_the_same_over_two_chunkings_with_one_judgments_digest(tmp_path: Path) -> None:
    reports = []
    for answers, fragments in (("answers_by_quote", "fragments"), ("rechunked/answers", "rechunked/fragments")):
        files = ["--judgments", KB / "generation_by_quote.jsonl", "--answers", KB / f"{answers}.jsonl"]
        made = run(tmp_path, ["eval-generation", *map(str, files), "--fragments", str(KB / f"{fragments}.jsonl"), "--json"])
        assert made.code == 0, made.err
        reports.append(json.loads(made.out))
    one, other = reports
    assert one["judgments_digest"] == other["judgments_digest"]
    assert one["fingerprint"]["components"]["A"] != other["fingerprint"]["components"]["A"]
    assert one["statuses"] == other["statuses"] == {"qualified": 11, "abstained_rightly": 3, "missing_requirement": 1}
    values = [{name: figure["value"] for name, figure in report["measures"].items()} for report in reports]
    assert values[0] == values[1]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example in a folder of its own, searched and evaluated up to the answers."""
    for name in ("fragments.jsonl", "retrieval_golden_single.jsonl", "generation-input.jsonl"):
        shutil.copy(ROOT / "engagement" / "full" / name, tmp_path / name)
    text = (ROOT / "configs" / "support-kb.yaml").read_text().replace("../engagement/full", ".")
    (tmp_path / "c.yaml").write_text(text)
    assert run(tmp_path, ["search", "--config", "c.yaml"]).code == 0
    assert run(tmp_path, ["eval-retrieval", "--config", "c.yaml"]).code == 0
    assert run(tmp_path, ["evidence", "--config", "c.yaml"]).code == 0
    return tmp_path


def graded_example(folder: Path) -> Graded:
    files = ["--input", "generation-input.jsonl", "--retrieval-report", "retrieval/report.json", "--output", "out"]
    names = ["--model", "customer-model@revision", "--judge-model", "approved-judge@revision"]
    targets = ["--faithfulness-target", "0.80", "--qualified-answer-target", "0.80"]
    return Graded(run(folder, ["eval-generation", *files, *names, *targets]))


def test_the_example_runs_from_search_to_answers(example: Path) -> None:
    graded = graded_example(example)
    assert graded.code == 0, graded.err
    assert set(graded.report.statuses) >= set(STATUSES) - {"incomplete", "not_judged", "abstained_with_citations"}
    assert graded.figure("qualified").worst == 0.82  # 41 of 50: one more failure would pass, two would not
    assert graded.report.rows.scored >= 40
    assert graded.report.binding == "verified"


def test_the_example_with_one_answer_unjudged_is_incomplete(example: Path) -> None:
    rows = [json.loads(line) for line in (example / "generation-input.jsonl").read_text().splitlines()]
    unjudged = next(row for row in rows if row["query_id"] == "q-044")
    del unjudged["faithfulness_score"]
    write(example / "generation-input.jsonl", rows)
    graded = graded_example(example)
    assert graded.code == 6
    assert graded.status("q-044") == "not_judged"
    assert graded.figure("qualified").value == pytest.approx(40 / 49)
    assert graded.figure("qualified").worst == 0.8
    assert graded.gate("complete")[0] == "failed"
