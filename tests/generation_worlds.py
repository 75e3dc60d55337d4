"""A small bound world for tests of the generation layer: a corpus, a retrieval run, and answers to break."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.world import Outcome, run
from tripos.contracts.generation import GenerationMiss, GenerationResult
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Aggregate

Row = dict[str, Any]

GOLDEN_FIELDS = (
    "query_id", "query", "citation_requirements", "accepted_fragment_ids", "expected_answerable", "category", "slices",
    "cluster", "review_status", "notes",
)  # fmt: skip
TEXTS = {
    "s1::f1": "A token expires after 30 days.",
    "s1::f2": "Owners renew it on the keys page. It is never shown",
    "s1::f3": "again once the page is closed.",
    "s2::f1": "Invoices are sent on the first day of the month.",
    "s3::f1": "Backups are kept for a year.",
}
SHOWN = ("s1::f1", "s1::f2", "s1::f3", "s2::f1")
"""What every query is shown: the top K of 4; s3::f1 is ranked fifth."""


def need(name: str, *fragments: str, **more: Any) -> Row:
    """One requirement."""
    return {"requirement_id": name, "acceptable_fragment_ids": list(fragments), **more}


def quote(name: str, source: str, text: str, **more: Any) -> Row:
    """One requirement by quotation."""
    return {"requirement_id": name, "acceptable_evidence": [{"source_id": source, "quote": text}], **more}


def answer(query_id: str, *cited: str, **more: Any) -> Row:
    """An answerable question, rightly answered: s1::f1 is what it needs and, unless others are named, cites."""
    return {
        "query_id": query_id,
        "query": f"What of {query_id}?",
        "answer": "It expires after 30 days [1].",
        "cited_fragment_ids": list(cited or ("s1::f1",)),
        "citation_requirements": [need("expiry", "s1::f1")],
        "accepted_fragment_ids": ["s1::f1"],
        "expected_answerable": True,
        "faithfulness_score": 1.0,
    } | more


def refusal(query_id: str, **more: Any) -> Row:
    """An unanswerable question, rightly declined."""
    return {
        "query_id": query_id,
        "query": f"What of {query_id}?",
        "answer": "I don't know.",
        "cited_fragment_ids": [],
        "citation_requirements": [],
        "accepted_fragment_ids": [],
        "expected_answerable": False,
    } | more


def write(path: Path, rows: Sequence[Row]) -> None:
    """Rows as JSONL."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@dataclass
class Answers:
    """Answers over the corpus above, bound to a retrieval run unless `bound` is false."""

    folder: Path
    rows: list[Row] = field(default_factory=lambda: [answer("q1"), refusal("q2")])
    texts: dict[str, str] = field(default_factory=lambda: dict(TEXTS))
    extra_queries: tuple[str, ...] = ()
    split: bool = False
    bound: bool = True
    top_k: int = 4
    raw: bytes | None = None

    def bind(self) -> None:
        """Write the corpus and the retrieval run, and evaluate it."""
        ids = list(dict.fromkeys([*(row["query_id"] for row in self.rows), *self.extra_queries]))
        write(self.folder / "fragments.jsonl", [{"fragment_id": k, "text": v} for k, v in self.texts.items()])
        judged = {"expected_sources": ["s1"], "should_match": True, "category": "structural", "review_status": "reviewed"}
        write(self.folder / "judgments.jsonl", [{"query_id": i, "query": f"What of {i}?", **judged} for i in ids])
        write(self.folder / "ranked.jsonl", [{"query_id": i, "fragment_ids": list(self.texts)[:5]} for i in ids])
        made = run(self.folder, self.retrieval())
        assert made.code == 0, made.err

    def retrieval(self) -> list[str]:
        """The command that evaluates the retrieval run."""
        files = ["--fragments", "fragments.jsonl", "--judgments", "judgments.jsonl", "--ranked-results", "ranked.jsonl"]
        depth = ["--retrieval-mode", "lexical", "--limit", "5", "--top-k", str(self.top_k)]
        return ["eval-retrieval", *files, *depth, "--output", "retrieval"]

    def flags(self) -> list[str]:
        """The command on this world, inputs written."""
        if self.split:
            write(self.folder / "golden.jsonl", [{k: r[k] for k in GOLDEN_FIELDS if k in r} for r in self.rows])
            left = [{k: v for k, v in r.items() if k == "query_id" or k not in GOLDEN_FIELDS} for r in self.rows]
            write(self.folder / "answers.jsonl", [row for row in left if "answer" in row])
            inputs = ["--judgments", "golden.jsonl", "--answers", "answers.jsonl"]
        else:
            write(self.folder / "input.jsonl", self.rows)
            if self.raw is not None:
                (self.folder / "input.jsonl").write_bytes(self.raw)
            inputs = ["--input", "input.jsonl"]
        ground = ["--retrieval-report", "retrieval/report.json"] if self.bound else ["--fragments", "fragments.jsonl"]
        return ["eval-generation", *inputs, *ground, "--model", "m@1", "--judge-model", "j@1", "--output", "out"]

    def run(self, *more: str) -> Graded:
        """Bind where that is still to be done, and evaluate."""
        if not (self.folder / "retrieval").exists():
            self.bind()
        return Graded(run(self.folder, [*self.flags(), *more]))


@dataclass
class Graded:
    """What one evaluation came to."""

    outcome: Outcome

    @property
    def code(self) -> int:
        """The exit code."""
        return self.outcome.code

    @property
    def err(self) -> str:
        """Standard error."""
        return self.outcome.err

    @property
    def report(self) -> GenerationReport:
        """The report, read back through its contract."""
        return GenerationReport.model_validate_json((self.outcome.folder / "generation-report.json").read_bytes())

    @property
    def results(self) -> dict[str, GenerationResult]:
        """The rows by query id, read back through their contract."""
        lines = (self.outcome.folder / "generation-results.jsonl").read_bytes().splitlines()
        return {row.query_id: row for row in map(GenerationResult.model_validate_json, lines)}

    @property
    def misses(self) -> dict[str, GenerationMiss]:
        """The misses by query id, read back through their contract."""
        lines = (self.outcome.folder / "generation-misses.jsonl").read_bytes().splitlines()
        return {row.query_id: row for row in map(GenerationMiss.model_validate_json, lines)}

    def figure(self, name: str) -> Aggregate:
        """One figure."""
        found = self.report.measures[name]
        assert isinstance(found, Aggregate)
        return found

    def value(self, name: str) -> float | None:
        """The value of one figure."""
        return self.figure(name).value

    def gate(self, name: str) -> tuple[str, str]:
        """Status and reason of one gate."""
        ((status, because),) = [(g.status, g.because) for g in self.report.gates if g.name == name]
        return status, because

    def status(self, query_id: str) -> str:
        """What became of one row."""
        return self.results[query_id].status
