"""A full run of three layers, small enough to make in a moment: stamped, approved, and certified as it stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.world import Outcome, run
from tests.corpus_worlds import expects, fan, result
from tests.generation_worlds import answer, need, refusal, write
from tripos.files.configs import load_config
from tripos.fingerprint import combined
from tripos.runners.retrieval import read

Row = dict[str, Any]
AS_OF = "2026-11-30"

SETTINGS: dict[str, Any] = {
    "name": "small",
    "fragments": ["full/fragments.jsonl"],
    "judgments": {"retrieval": "full/golden.jsonl", "generation": "full/answers_golden.jsonl", "corpus": "full/routes.jsonl"},
    "run": "full",
    "search": {"mode": "hybrid", "min_score": 0.5},
    "depth": {"limit": 50, "top_k": 2},
    "gates": {"hit@2": {"min": 0.5}},
    "generation": {"answers": "full/answers.jsonl", "model": "m@1", "judge_model": "j@1"},
    "certification": {"layers": ["retrieval", "generation", "corpus"], "approved_judges": "judges.yaml"},
}
APPROVED = {"name": "j@1", "by": "a board", "from": "2026-01-01", "until": "2027-12-31", "kind": "external"}
FRAGMENTS: list[Row] = [
    {"fragment_id": "s1::f1", "text": "A token expires after 30 days.", "collection": "a", "acl": ["everyone"]},
    {"fragment_id": "s2::f1", "text": "Invoices are sent monthly.", "collection": "b", "acl": ["everyone"]},
    {"fragment_id": "s3::f1", "text": "Salaries are secret.", "collection": "b", "acl": ["board"]},
]


def _judged(query_id: str, *sources: str, **more: Any) -> Row:
    found = {"expected_sources": list(sources), "should_match": bool(sources)}
    kind = {"category": "structural" if sources else "negative", "review_status": "reviewed"}
    return {"query_id": query_id, "query": f"What of {query_id}?", **found, **kind, **more}


JUDGMENTS: list[Row] = [
    _judged("q1", "s1", split="tune"),
    _judged("q2", "s2", principal={"groups": ["everyone"]}, split="holdout"),
    _judged("q3", split="holdout"),
]
RANKED: list[Row] = [
    {"query_id": "q1", "fragment_ids": ["s1::f1", "s2::f1"], "scores": [0.9, 0.8]},
    {"query_id": "q2", "fragment_ids": ["s1::f1", "s2::f1"], "scores": [0.9, 0.8]},
    {"query_id": "q3", "fragment_ids": ["s2::f1"], "scores": [0.1]},
]
GRADED: list[Row] = [
    answer("q1", faithfulness_score=0.9),
    answer("q2", "s2::f1", citation_requirements=[need("when", "s2::f1")], accepted_fragment_ids=["s2::f1"]),
    refusal("q3"),
    answer("m1", "s1::f1", category="multi_hop", evidence_fragment_ids=["s1::f1", "s2::f1"]),
]
REVIEWED = ("query_id", "query", "citation_requirements", "accepted_fragment_ids", "expected_answerable", "category")
ROUTES: list[Row] = [expects("m1", {"a": ["s1"], "b": ["s2"]})]
ROUTED: list[Row] = [result("m1", fan("a", "s1::f1"), fan("b", "s2::f1"))]


@dataclass(frozen=True)
class FullRun:
    """The run in a folder of its own: `config.json` beside `full/`."""

    folder: Path

    def make(self) -> FullRun:
        """Write every input, stamp what the system gave, and evaluate all layers."""
        (self.folder / "full").mkdir()
        self.configure(SETTINGS)
        self.approve(APPROVED)
        self.put("fragments", FRAGMENTS)
        self.put("golden", JUDGMENTS)
        self.put("ranked-results", RANKED)
        self.put("answers_golden", [{k: row[k] for k in REVIEWED if k in row} for row in GRADED])
        kept = {"query_id", *GRADED[0], "evidence_fragment_ids"} - set(REVIEWED[1:])
        self.put("answers", [{k: row[k] for k in row if k in kept} for row in GRADED])
        self.put("routes", ROUTES)
        self.put("corpus-results", ROUTED)
        self.stamp()
        return self.evaluate()

    def configure(self, settings: Row) -> None:
        """Write the configuration; JSON is YAML."""
        (self.folder / "config.yaml").write_text(json.dumps(settings))

    def approve(self, *judges: Row) -> None:
        """Write the list of approved judges."""
        (self.folder / "judges.yaml").write_text(json.dumps({"judges": judges}))

    def put(self, name: str, rows: list[Row]) -> None:
        """Write one input."""
        write(self.folder / "full" / f"{name}.jsonl", rows)

    def rows(self, name: str) -> list[Row]:
        """Read one input."""
        return [json.loads(line) for line in (self.folder / "full" / f"{name}.jsonl").read_text().splitlines()]

    def change(self, name: str, edit: Callable[[Row], object]) -> None:
        """Change every row of one input."""
        rows = self.rows(name)
        for row in rows:
            edit(row)
        self.put(name, rows)

    def stamp(self) -> None:
        """Stamp results and answers with the system that the configuration describes."""
        from tripos.contracts.config import Options

        parts = read(load_config(str(self.folder / "config.yaml")), Options(), ()).components
        system = combined(parts, "ACD")
        self.change("ranked-results", lambda row: row.update(corpus_digest=parts["A"].digest, policy_digest=parts["C"].digest))
        self.change("answers", lambda row: row.update(system_fingerprint=system))
        self.change("corpus-results", lambda row: row.update(system_fingerprint=system))

    def evaluate(self, *flags: str) -> FullRun:
        """All layers, in order."""
        for layer in ("retrieval", "generation", "corpus"):
            self.succeed(f"eval-{layer}", "--no-store", *flags)
        return self

    def run(self, *arguments: str) -> Outcome:
        """One command under the configuration."""
        return run(self.folder, [*arguments, "--config", "config.yaml"])

    def succeed(self, *arguments: str) -> None:
        """One command that must pass."""
        done = self.run(*arguments)
        assert done.code == 0, done.out + done.err

    def certify(self, *more: str) -> Outcome:
        """Certify under the configuration."""
        return self.run("certify", "--as-of", AS_OF, "--no-store", *more)

    @property
    def certificate(self) -> Path:
        """Where the certificate goes."""
        return self.folder / "full" / "certificate.json"

    def edit(self, path: str, change: Callable[[Row], object]) -> None:
        """Change a JSON document."""
        place = self.folder / path
        document = json.loads(place.read_bytes())
        change(document)
        place.write_text(json.dumps(document))
