"""The generation layer on public data (../shared/data, not shipped), against computations of its own by Python and SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.generation_worlds import Row, need, quote, write
from tripos.columns.rows import Kept
from tripos.contracts.config import Config
from tripos.contracts.generation import GenerationResult
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Aggregate, Curve
from tripos.runners.generation import evaluate

DATA = Path(__file__).parents[3] / "shared" / "data"


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not (DATA / name).exists(), reason=f"{name} is not on this machine")


def graded(folder: Path, rows: list[Row], fragments: list[Row], **more: Any) -> tuple[GenerationReport, list[GenerationResult]]:
    """The report and the rows of one evaluation."""
    write(folder / "input.jsonl", rows)
    write(folder / "fragments.jsonl", fragments)
    section = {"input": str(folder / "input.jsonl"), "model": "m@1", "judge_model": "j@1", **more}
    config = Config.model_validate({"fragments": [str(folder / "fragments.jsonl")], "generation": section})
    with Kept() as kept:
        outcome = evaluate(config, kept=kept)
        lines = list(kept.results(outcome.order.tolist()))
    return outcome.report, [GenerationResult.model_validate_json(line) for line in lines]


def value(figures: dict[str, Aggregate | Curve], name: str) -> float | None:
    found = figures[name]
    assert isinstance(found, Aggregate)
    return found.value


def mean(values: Iterable[float]) -> Any:
    return pytest.approx(fmean(values), abs=1e-11)


# CLAP NQ: sentences are fragments, the annotators' selections are requirements


def clapnq(name: str) -> list[Row]:
    return [json.loads(line) for line in (DATA / "clapnq" / f"clapnq_dev_{name}.jsonl").read_text().splitlines()]


def sentences(row: Row) -> list[Row]:
    texts = row["passages"][0]["sentences"]
    return [{"fragment_id": f"{row['id']}::f{n:03d}", "text": text} for n, text in enumerate(texts)]


def output(row: Row) -> Row:
    """The first answer whose annotator selected sentences (one of the answerable rows has none), else the first."""
    found: list[Row] = row["output"]
    return next((one for one in found if one["selected_sentences"]), found[0])


def selected(row: Row) -> dict[str, list[str]]:
    """Each selected sentence with the fragments that are that sentence."""
    own = sentences(row)
    return {text: [f["fragment_id"] for f in own if f["text"] == text] for text in output(row)["selected_sentences"]}


def clapnq_row(row: Row, by_quote: bool = False) -> Row:
    chosen = selected(row)
    named = [quote(f"r{n}", row["id"], t) if by_quote else need(f"r{n}", *ids) for n, (t, ids) in enumerate(chosen.items())]
    names = [name for ids in chosen.values() for name in ids]
    return {
        "query_id": row["id"],
        "query": row["input"],
        "answer": output(row)["answer"],
        "cited_fragment_ids": names,
        "evidence_fragment_ids": [f["fragment_id"] for f in sentences(row)],
        "citation_requirements": named,
        "accepted_fragment_ids": [] if by_quote else sorted(set(names)),
        "expected_answerable": bool(output(row)["answer"]),
        "faithfulness_score": 1.0 if output(row)["answer"] else None,
    }


@needs("clapnq")
@pytest.mark.parametrize("by_quote", [False, True])
def test_annotated_answers_cited_with_their_own_sentences_are_perfect(tmp_path: Path, by_quote: bool) -> None:
    rows = [*clapnq("answerable"), *clapnq("unanswerable")]
    report, _ = graded(tmp_path, [clapnq_row(r, by_quote) for r in rows], [f for r in rows for f in sentences(r)])
    assert (report.rows.answerable, report.rows.unanswerable) == (300, 300)
    for name in ("requirement_coverage", "all_requirements", "citation_precision", "qualified", "abstention", "truthfulness"):
        assert value(report.measures, name) == 1.0, name
    assert report.measures["requirement_coverage"].n == 299  # one annotated answer has no sentence chosen for it
    assert report.verdict.status == "passed"


@needs("clapnq")
def test_shuffled_citations_fail(tmp_path: Path) -> None:
    raw = clapnq("answerable")
    rows = [clapnq_row(r) for r in raw]
    cited = [row["cited_fragment_ids"] for row in rows]
    for row, others in zip(rows, cited[1:] + cited[:1], strict=True):
        row["cited_fragment_ids"] = others
    report, results = graded(tmp_path, rows, [f for r in raw for f in sentences(r)], dropped_gates=["abstention"])
    assert report.verdict.exit_code == 1
    assert (value(report.measures, "requirement_coverage"), value(report.measures, "citation_precision")) == (0.0, 0.0)
    assert value(report.measures, "not_shown") == sum(len(set(c)) for c in cited)
    assert {row.status for row in results} == {"missing_requirement", "bad_citation"}  # one row has no sentence to miss


@needs("clapnq")
def test_half_the_citations_meet_half_the_sentences(tmp_path: Path) -> None:
    raw = clapnq("answerable")
    rows = [clapnq_row(r) for r in raw]
    for row in rows:
        row["cited_fragment_ids"] = row["cited_fragment_ids"][:1]
    report, _ = graded(tmp_path, rows, [f for r in raw for f in sentences(r)], dropped_gates=["abstention"])
    pairs = [(row["cited_fragment_ids"], selected(r).values()) for row, r in zip(rows, raw, strict=True) if selected(r)]
    met = [fmean(cited[0] in ids for ids in chosen) for cited, chosen in pairs]
    assert value(report.measures, "requirement_coverage") == mean(met)
    assert value(report.measures, "all_requirements") == mean(float(m == 1) for m in met)


@needs("clapnq")
def test_unanswerable_rows_go_through_the_abstention_gate_alone(tmp_path: Path) -> None:
    raw = clapnq("unanswerable")
    fragments = [f for r in raw for f in sentences(r)]
    report, _ = graded(tmp_path, [clapnq_row(r) for r in raw], fragments, dropped_gates=["faithfulness", "qualified"])
    assert report.verdict.status == "passed"
    assert [g.name for g in report.gates] == ["complete", "abstention"]
    empty = [name for name, figure in report.measures.items() if isinstance(figure, Aggregate) and not figure.n]
    assert {"requirement_coverage", "citation_precision", "faithfulness", "qualified", "over_refusal"} <= set(empty)
    answered = [{**clapnq_row(r), "answer": "It was in 1830."} for r in raw]
    report, _ = graded(tmp_path, answered, fragments, dropped_gates=["faithfulness", "qualified"])
    assert report.verdict.because == ("abstention: worst 0",)


# MT-RAG: human faithfulness as given scores

MTRAG = DATA / "mtrag" / "reference_subset_with_human_evaluations.json"
_DECLINES = re.compile(
    r"(do not|don't) (have|contain|specify|provide|mention)|no information|not (specified|mentioned|provided)"
)
_KINDS = {"ANSWERABLE": True, "UNANSWERABLE": False, "PARTIAL": "partial", "CONVERSATIONAL": True}


def mtrag() -> tuple[list[Row], list[Row]]:
    """Answers with the mean of the raters as faithfulness in [0, 1], and the passages."""
    data = json.loads(MTRAG.read_text())
    tasks = {task["task_id"]: task for task in data["tasks"]}
    rows = []
    for given in data["evaluations"]:
        task = tasks[given["task_id"]]
        shown = [context["document_id"] for context in task["contexts"]]
        kind = task["Answerability"][0]
        marks = [int(mark["value"]) for mark in given["annotations"]["faithfulness"].values()]
        answerable = _KINDS[kind]
        rows.append(
            {
                "query_id": f"{given['task_id']} {given['model_id']}",
                "query": task["input"][-1]["text"],
                "answer": given["model_response"],
                "abstained": bool(_DECLINES.search(given["model_response"])),
                "cited_fragment_ids": shown[:1] if answerable else [],
                "evidence_fragment_ids": shown,
                "citation_requirements": [need("r", *shown)] if shown and answerable else [],
                "accepted_fragment_ids": shown if answerable else [],
                "expected_answerable": answerable,
                "faithfulness_score": (fmean(marks) - 1) / 3,
                "faithfulness_source": "human",
                "category": kind,
                "slices": {"collection": task["Collection"], "model": given["model_id"]},
                "review_status": "draft" if kind == "CONVERSATIONAL" else "reviewed",
            }
        )
    return rows, [{"fragment_id": d["document_id"], "text": d["text"]} for d in data["documents"]]


@needs("mtrag")
def test_human_faithfulness_by_collection_and_answerability_equals_sql(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows, fragments = mtrag()
    report, _ = graded(tmp_path, rows, fragments, faithfulness_target=0.7)
    assert report.counts.faithfulness_sources == {"human": sum(r["review_status"] == "reviewed" for r in rows)}
    con = duckdb.connect()
    con.execute(
        "create table a as select * from read_json_auto(?, format='newline_delimited')", [str(tmp_path / "input.jsonl")]
    )
    where = "review_status = 'reviewed' and category = 'ANSWERABLE' and not abstained"
    query = f"select slices.collection, avg(faithfulness_score), count(*) from a where {where} group by 1 order by 1"
    by_collection = con.execute(query).fetchall()
    assert len(by_collection) == 4
    for name, expected, n in by_collection:
        (part,) = [s for s in report.slices if s.by == "collection" and s.value == name]
        assert value(part.measures, "faithfulness") == pytest.approx(expected, abs=1e-11)
        assert part.measures["faithfulness"].n == n
    overall = con.execute(f"select avg(faithfulness_score), count(*) from a where {where}").fetchone()
    partial = con.execute(
        "select avg(faithfulness_score), count(*) from a where category = 'PARTIAL' and not abstained"
    ).fetchone()
    assert report.partial is not None
    for figures, expected in ((report.measures, overall), (report.partial.measures, partial)):
        assert value(figures, "faithfulness") == pytest.approx(expected[0], abs=1e-11)
        assert figures["faithfulness"].n == expected[1]
    assert report.partial.rows == 45


@needs("mtrag")
def test_verdicts_and_abstention_equal_plain_python(tmp_path: Path) -> None:
    rows, fragments = mtrag()
    report, results = graded(tmp_path, rows, fragments, faithfulness_target=0.7)
    scored = [r for r in rows if r["review_status"] == "reviewed" and r["expected_answerable"] != "partial"]
    should = [r["expected_answerable"] is False for r in scored]
    did = [r["abstained"] for r in scored]
    right = sum(s and d for s, d in zip(should, did, strict=True))
    recall = right / sum(should)
    specificity = sum(not s and not d for s, d in zip(should, did, strict=True)) / (len(should) - sum(should))
    expected = {
        "abstention_precision": right / sum(did),
        "abstention_recall": recall,
        "abstention_f1": 2 * right / (sum(should) + sum(did)),
        "over_refusal": 1 - specificity,
        "false_answer": 1 - recall,
        "balanced_accuracy": (recall + specificity) / 2,
        "qualified": fmean(
            not r["abstained"]
            and r["faithfulness_score"] >= 0.7
            and len(r["cited_fragment_ids"]) == len(r["evidence_fragment_ids"][:1])
            for r in scored
            if r["expected_answerable"] is True
        ),
    }
    for name, own in expected.items():
        assert value(report.measures, name) == pytest.approx(own, abs=1e-11), name
    assert {r.query_id for r in results} == {r["query_id"] for r in rows if r["review_status"] == "reviewed"}
    assert report.rows.by_status == {"draft": 6, "reviewed": 471}
    assert report.statuses["partial"] == 45


# RAGChecker: where definitions meet


def ragchecker() -> list[Row]:
    found: list[Row] = json.loads((DATA / "ragchecker" / "checking_outputs.json").read_text())["results"]
    return found


def entailed(matrix: list[list[str]]) -> list[list[int]]:
    """For each claim, the retrieved passages that entail it."""
    return [[n for n, label in enumerate(claim) if label == "Entailment"] for claim in matrix]


def ragchecker_row(row: Row) -> tuple[Row, list[Row]]:
    """Claims of the right answer as requirements, passages that entail some as accepted; every passage is cited."""
    names = [f"{row['query_id']}-{passage['doc_id']}" for passage in row["retrieved_context"]]
    support = [[names[n] for n in found] for found in entailed(row["retrieved2answer"])]
    absent = f"{row['query_id']}-elsewhere"
    needs = [need(f"claim-{n}", *(found or [absent])) for n, found in enumerate(support)]
    claims = entailed(row["retrieved2response"])
    made = {
        "query_id": row["query_id"],
        "query": row["query"],
        "answer": row["response"],
        "cited_fragment_ids": names,
        "evidence_fragment_ids": names,
        "citation_requirements": needs,
        "accepted_fragment_ids": sorted({absent, *(name for found in support for name in found)}),
        "expected_answerable": True,
        "faithfulness_score": sum(map(bool, claims)) / len(claims),
    }
    texts = [*zip(names, (p["text"] for p in row["retrieved_context"]), strict=True), (absent, "Never retrieved.")]
    return made, [{"fragment_id": name, "text": text} for name, text in texts]


@needs("ragchecker")
def test_our_definitions_give_their_figures_where_they_meet(tmp_path: Path) -> None:
    raw = ragchecker()
    made = [ragchecker_row(row) for row in raw]
    report, results = graded(tmp_path, [row for row, _ in made], [f for _, own in made for f in own])
    for result, row in zip(results, raw, strict=True):
        assert result.requirement_coverage == pytest.approx(row["metrics"]["claim_recall"], abs=1e-11)
        assert result.citation_precision == pytest.approx(row["metrics"]["context_precision"], abs=1e-11)
        assert result.faithfulness_score == pytest.approx(row["metrics"]["faithfulness"], abs=1e-11)
    for ours, theirs in (
        ("requirement_coverage", "claim_recall"),
        ("citation_precision", "context_precision"),
        ("faithfulness", "faithfulness"),
    ):
        assert value(report.measures, ours) == mean(row["metrics"][theirs] for row in raw)
    assert [round(f, 3) for f in (results[0].faithfulness_score or 0, results[0].citation_precision or 0)] == [0.364, 0.75]
