"""A store of 1,000 runs × 500 queries × 50 results, by the real pipeline, and what each saved query takes on it.

Usage: python benchmarks/store.py [--runs 1000] [--queries 500] [--results 50] [--generation 200] [--repeat 3] [--store FOLDER]

Runs are made once and kept under build/bench/store; a figure is the best of the repeats, files in the page cache. "whole
command" is `tripos query NAME` from start to exit, "in the process" the same without starting Python: the child that reads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from tripos.columns.rows import Kept
from tripos.contracts.config import Config, DepthConfig, GenerationConfig, JudgmentsConfig, Options, SearchConfig
from tripos.runners import generation, retrieval
from tripos.store.generation import content_of as of_generation
from tripos.store.retrieval import content_of as of_retrieval
from tripos.store.sandbox import Query, run
from tripos.store.saved import given, saved_queries
from tripos.store.writing import store

ROOT = Path(__file__).resolve().parent.parent
SOURCES = 2_000
CATEGORIES = ("single_hop_factual", "structural", "authorization")
START = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = Options()


def lines(path: Path, rows: Sequence[dict[str, object]]) -> str:
    """Write JSONL."""
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return str(path)


def judged(n: int) -> list[dict[str, object]]:
    """Queries of three categories; every tenth has a reader, every seventh two right sources."""
    rows: list[dict[str, object]] = []
    for number in range(n):
        category = CATEGORIES[2 if number % 10 == 0 else number % 2]
        expected = [f"s{number % SOURCES:04}"] + ([f"s{(number * 7 + 1) % SOURCES:04}"] if number % 7 == 0 else [])
        row = {
            "query_id": f"q{number:05}",
            "query": f"What does the manual say of part {number}, and where?",
            "expected_sources": list(dict.fromkeys(expected)),
            "should_match": True,
            "category": category,
            "review_status": "reviewed",
        }
        rows.append(row | ({"principal": {"groups": ["staff"]}} if category == "authorization" else {}))
    return rows


def corpus() -> list[dict[str, object]]:
    """One fragment a source; every fiftieth is for the board alone."""
    return [
        {"fragment_id": f"s{n:04}::f1", "text_sha256": f"{n:064x}", "acl": ["board"] if n % 50 == 49 else ["staff"]}
        for n in range(SOURCES)
    ]


def ranked(judgments: Sequence[dict[str, object]], k: int, seed: int) -> list[dict[str, object]]:
    """Results of one run: each right source within the first ten of most queries, the rest chance."""
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    for row in judgments:
        names = dict.fromkeys(f"s{n:04}" for n in draw.sample(range(SOURCES), k))
        ordered = list(names)
        for source in row["expected_sources"]:  # type: ignore[attr-defined]
            if source in names:
                ordered.remove(source)
            if draw.random() < 0.85:
                ordered.insert(draw.randrange(10), source)
        scores = sorted((round(draw.random(), 6) for _ in range(k)), reverse=True)
        fragments = [f"{name}::f1" for name in ordered[:k]]
        line = {"query_id": row["query_id"], "fragment_ids": fragments, "scores": scores[: len(fragments)]}
        rows.append(line | {"latency_ms": round(draw.lognormvariate(3, 0.6), 3)})
    return rows


def answered(judgments: Sequence[dict[str, object]], seed: int) -> list[dict[str, object]]:
    """Answers of one run with their reviewed part: most cite what they should, some what does not exist."""
    draw = random.Random(-seed)
    rows: list[dict[str, object]] = []
    for row in judgments[:200]:
        right = [f"{source}::f1" for source in row["expected_sources"]]  # type: ignore[attr-defined]
        cited = [name for name in right if draw.random() < 0.9] + (["made-up::f1"] if draw.random() < 0.02 else [])
        rows.append(
            {
                "query_id": row["query_id"],
                "answer": "As the manual says.",
                "cited_fragment_ids": cited,
                "accepted_fragment_ids": right,
                "citation_requirements": [{"requirement_id": name, "acceptable_fragment_ids": [name]} for name in right],
                "expected_answerable": True,
                "faithfulness_score": round(draw.uniform(0.6, 1), 3),
                "model": f"model-{seed % 3}@1",
            }
        )
    return rows


def make(folder: Path, numbers: Sequence[int], wanted: argparse.Namespace) -> None:
    """Evaluate and store these runs, with the real runners."""
    judgments = judged(wanted.queries)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        fragments = lines(work / "fragments.jsonl", corpus())
        golden = lines(work / "golden.jsonl", judgments)
        for number in numbers:
            when, name = START + timedelta(hours=6 * number), f"system-{number % 2}"
            config = Config(
                name=name,
                fragments=(fragments,),
                judgments=JudgmentsConfig(retrieval=golden),
                ranked_results=lines(work / "ranked.jsonl", ranked(judgments, wanted.results, number)),
                search=SearchConfig(mode="hybrid"),
                depth=DepthConfig(limit=wanted.results, top_k=10),
            )
            outcome = retrieval.evaluate(config)
            store(of_retrieval(outcome, config, OPTIONS), folder, (f"run {number}",), now=when)
            if number < wanted.generation:
                rows = lines(work / "answers.jsonl", answered(judgments, number))
                own = Config(name=name, fragments=(fragments,), generation=GenerationConfig(input=rows))
                with Kept() as kept:
                    made = generation.evaluate(own, kept=kept)
                    store(of_generation(made, kept, own, OPTIONS), folder, now=when)


def generate(folder: Path, wanted: argparse.Namespace) -> None:
    """The store, made by one process a core; runs that are there are not made again."""
    done = len(list((folder / "executions").glob("*.parquet"))) if folder.exists() else 0
    if done >= wanted.runs + min(wanted.generation, wanted.runs):
        return
    cores = os.cpu_count() or 1
    started = time.perf_counter()
    shares = [range(n, wanted.runs, cores) for n in range(cores)]
    processes = [multiprocessing.Process(target=make, args=(folder, share, wanted)) for share in shares]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print(f"made in {time.perf_counter() - started:.0f} s by {cores} processes", file=sys.stderr)


def timed(act: object, repeat: int) -> float:
    """Best of several, in seconds."""
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        act()  # type: ignore[operator]
        best = min(best, time.perf_counter() - started)
    return best


def measure(folder: Path, repeat: int) -> None:
    """A row for each saved query."""
    print("| saved query | rows | in the process, s | whole command, s |\n|---|---:|---:|---:|")
    for name, saved in saved_queries().items():
        values = given({}, saved.parameters)
        asked = Query(str(folder), saved.sql, values, looks_back=saved.recent(values))
        with run(asked) as result:  # also brings the files into the page cache
            n = result.n
        inside = timed(lambda asked=asked: run(asked).close(), repeat)
        command = [sys.executable, "-m", "tripos", "query", name, "--store", str(folder)]
        whole = timed(lambda command=command: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), repeat)
        print(f"| `{name}` | {n:,} | {inside:.2f} | {whole:.2f} |")


def main() -> None:
    """Make the store, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("runs", 1000), ("queries", 500), ("results", 50), ("generation", 200), ("repeat", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--store", type=Path)
    wanted = parser.parse_args()
    folder = wanted.store or ROOT / "build" / "bench" / f"store-{wanted.runs}x{wanted.queries}x{wanted.results}"
    generate(folder, wanted)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{wanted.runs:,} runs × {wanted.queries} queries × {wanted.results} results: {size / 1e6:,.0f} MB\n")
    measure(folder, wanted.repeat)


if __name__ == "__main__":
    main()
