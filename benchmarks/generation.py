"""How long eval-generation takes and how much memory it needs, as a whole process, on seeded synthetic answers.

Usage: python benchmarks/generation.py [--rows 1000000] [--form combined|split] [--bound] [--shuffle] [--folder DIR]

One JSON line a run: rows, seconds, rows a second, peak megabytes, megabytes of input. Every kind of row is among them:
qualified, missing fact, made-up, unshown and unaccepted citations, refusals right and wrong, unjudged, failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SOURCES, PARTS, TOP_K = 5_000, 4, 8
WORDS = ("the", "token", "expires", "after", "thirty", "days", "unless", "an", "owner", "renews", "it", "on", "the", "page")


def fragment(source: int, part: int) -> str:
    return f"doc-{source % SOURCES:05d}::f{part % PARTS:04d}"


def fragments() -> Iterator[Row]:
    for source in range(SOURCES):
        for part in range(PARTS):
            yield {"fragment_id": fragment(source, part), "text": f"Part {part} of {source}: {' '.join(WORDS)}."}


def shown(i: int) -> list[str]:
    return [fragment(i * 7 + n, i + n) for n in range(TOP_K)]


def judgment(i: int) -> Row:
    sources = [name.partition("::")[0] for name in shown(i)[:1]]
    return {"query_id": f"q-{i:08d}", "query": f"What of {i}?", "expected_sources": sources, "should_match": True,
            "category": "single_hop_factual", "review_status": "reviewed"}  # fmt: skip


def ranked(i: int) -> Row:
    return {"query_id": f"q-{i:08d}", "fragment_ids": shown(i), "scores": [1 - n / 10 for n in range(TOP_K)]}


def reviewed(i: int) -> Row:
    answerable = i % 10 != 9
    names = shown(i)[:3] if answerable else []
    needs = [{"requirement_id": f"r{n}", "acceptable_fragment_ids": [name]} for n, name in enumerate(names[:2])]
    return {"query_id": f"q-{i:08d}", "query": f"What of {i}?", "citation_requirements": needs, "accepted_fragment_ids": names,
            "expected_answerable": answerable, "category": f"kind-{i % 5}"}  # fmt: skip


def answered(i: int, dice: random.Random) -> Row:
    row: Row = {
        "query_id": f"q-{i:08d}",
        "answer": " ".join(dice.choices(WORDS, k=40)),
        "cited_fragment_ids": shown(i)[:2],
        "faithfulness_score": dice.randrange(60, 101) / 100,
        "confidence": dice.random(),
        "latency_ms": dice.random() * 900,
    }
    match dice.randrange(20):
        case 0 | 1:
            row |= {"answer": "I don't know.", "cited_fragment_ids": []}
        case 2:
            row["cited_fragment_ids"] = shown(i)[:1]
        case 3:
            row["cited_fragment_ids"] = [*shown(i)[:2], "doc-99999::f0000"]
        case 4:
            row["cited_fragment_ids"] = shown(i)[:4]
        case 5:
            row["faithfulness_score"] = None
        case 6 if i % 10 == 0:
            row["error"] = "timeout after 30 s"
    return row


def write(path: Path, rows: Iterator[Row], shuffle: bool = False) -> None:
    lines: Iterator[str] = (json.dumps(row) + "\n" for row in rows)
    if shuffle:
        kept = list(lines)
        random.Random(1).shuffle(kept)
        lines = iter(kept)
    with path.open("w") as stream:
        stream.writelines(lines)


def prepare(folder: Path, rows: int, form: str, shuffle: bool) -> list[str]:
    """Write the inputs; returns the flags that name them."""
    dice = random.Random(0)
    write(folder / "fragments.jsonl", fragments())
    if form == "combined":
        write(folder / "input.jsonl", ({**reviewed(i), **answered(i, dice)} for i in range(rows)), shuffle)
        return ["--input", str(folder / "input.jsonl")]
    write(folder / "golden.jsonl", (reviewed(i) for i in range(rows)))
    write(folder / "answers.jsonl", (answered(i, dice) for i in range(rows)), shuffle)
    return ["--judgments", str(folder / "golden.jsonl"), "--answers", str(folder / "answers.jsonl")]


def bind(folder: Path, rows: int) -> list[str]:
    """Write a retrieval run and evaluate it."""
    write(folder / "judgments.jsonl", map(judgment, range(rows)))
    write(folder / "ranked.jsonl", map(ranked, range(rows)))
    flags = ["--fragments", "fragments.jsonl", "--judgments", "judgments.jsonl", "--ranked-results", "ranked.jsonl"]
    tripos(folder, ["eval-retrieval", *flags, "--retrieval-mode", "lexical", "--limit", str(TOP_K), "--output", "retrieval"])
    return ["--retrieval-report", str(folder / "retrieval" / "report.json")]


def tripos(folder: Path, arguments: list[str]) -> tuple[float, float, float]:
    """Run the command; its seconds by the clock and of the processor, and its peak megabytes."""
    command = [sys.executable, "-c", "from tripos.cli.app import main; main()", *arguments, "--quiet"]
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1, 6):
        sys.exit(said)
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--form", choices=("combined", "split"), default="combined")
    parser.add_argument("--bound", action="store_true", help="Bind the answers to a retrieval run of as many queries.")
    parser.add_argument("--shuffle", action="store_true", help="Answers in random order.")
    parser.add_argument("--folder", type=Path, help="Where inputs and outputs are kept; default: a temporary folder.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        flags = prepare(folder, given.rows, given.form, given.shuffle)
        ground = bind(folder, given.rows) if given.bound else ["--fragments", str(folder / "fragments.jsonl")]
        megabytes = sum(Path(path).stat().st_size for path in flags[1::2]) / 2**20
        names = ["--model", "m@1", "--judge-model", "j@1", "--output", str(folder / "out")]
        seconds, cpu, peak = tripos(folder, ["eval-generation", *flags, *ground, *names])
        figures = {"rows": given.rows, "form": given.form, "bound": given.bound, "shuffled": given.shuffle}
        figures |= {"seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2), "peak_mb": round(peak)}
        print(json.dumps({**figures, "input_mb": round(megabytes)}))


if __name__ == "__main__":
    main()
