"""The generated worlds of benchmarks/: one seed, one world, on every machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "generate.py"


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_a_seed_gives_the_bytes_it_always_gave(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, tmp_path, "--rows", "1e3", "--forms", "nested,columnar,flat,trec,json"], check=True)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in tmp_path.glob("*.*")}
    digests.pop("world.json")  # carries the digest of the script itself
    assert digests == {
        "judgments.jsonl": "3fb6ec8ab85d6a5e",
        "qrels.json": "4141022e2f14e803",
        "qrels.txt": "c1616a70534a08a8",
        "run.columnar.jsonl": "70557d8899332c00",
        "run.flat.jsonl": "ddb1fc0fdfd476fb",
        "run.json": "f3345cca6ad75fed",
        "run.nested.jsonl": "cf0399a97e2e086c",
        "run.trec": "3bd1dcffb3feed98",
    }


def test_forms_tell_the_same_run(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, tmp_path, "--rows", "2e3"], check=True)
    nested = [json.loads(line) for line in lines(tmp_path / "run.nested.jsonl")]
    rows = [
        (row["query_id"], item["fragment_id"], rank, item["score"])
        for row in nested
        for rank, item in enumerate(row["results"], 1)
    ]
    flat = [tuple(json.loads(line).values()) for line in lines(tmp_path / "run.flat.jsonl")]
    trec = [line.split() for line in lines(tmp_path / "run.trec")]
    columnar = [json.loads(line) for line in lines(tmp_path / "run.columnar.jsonl")]
    assert flat == rows
    assert [(q, d, int(rank), float(score)) for q, _, d, rank, score, _ in trec] == rows
    assert [(c["query_id"], c["fragment_ids"]) for c in columnar] == [
        (n["query_id"], [item["fragment_id"] for item in n["results"]]) for n in nested
    ]
    assert [c["scores"] for c in columnar] == [[item["score"] for item in n["results"]] for n in nested]
    pairs = {(q, d): score for q, d, _, score in rows}
    assert json.loads((tmp_path / "run.json").read_text()) == {
        n["query_id"]: {item["fragment_id"]: pairs[n["query_id"], item["fragment_id"]] for item in n["results"]} for n in nested
    }
    assert len(pairs) == len(rows) == 2_000


def test_judgments_tell_the_same_grades(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, tmp_path, "--rows", "2e4", "--forms", "nested,trec,json"], check=True)
    judged = [json.loads(line) for line in lines(tmp_path / "judgments.jsonl")]
    grades = {row["query_id"]: row["relevance"] for row in judged}
    assert all(row["expected_sources"] == list(row["relevance"]) for row in judged)
    assert json.loads((tmp_path / "qrels.json").read_text()) == grades
    qrels = [line.split() for line in lines(tmp_path / "qrels.txt")]
    assert [(q, d, int(g)) for q, _, d, g in qrels] == [(q, d, g) for q, row in grades.items() for d, g in row.items()]
    assert 4.5 < len(qrels) / len(judged) < 5.5
