"""Bring the example's answers into step with the system that configs/support-kb.yaml describes; a test holds them to it.

Real answers are stamped as they are written, with the system_fingerprint that `tripos evidence` hands over. The example's were
written by hand, so whoever changes its corpus, search policy or depth reads them again, and says so by running this.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tripos.contracts.config import Options
from tripos.files.configs import load_config
from tripos.runners.retrieval import fingerprint_of, read

ROOT = Path(__file__).resolve().parent.parent
CONFIG = "configs/support-kb.yaml"
FULL = "engagement/full"

Row = dict[str, Any]


def restamped() -> dict[str, str]:
    """answers.jsonl with the stamp in every row, and generation-input.jsonl: the same rows beside what is expected of them."""
    stamp = system_fingerprint()
    answers = [row | {"system_fingerprint": stamp} for row in _rows("answers.jsonl")]
    golden = {row["query_id"]: row for row in _rows("generation_golden.jsonl")}
    joined = [_joined(row, golden[row["query_id"]]) for row in answers]
    return {f"{FULL}/answers.jsonl": _lines(answers), f"{FULL}/generation-input.jsonl": _lines(joined)}


def system_fingerprint() -> str:
    """A, C and D of the example, as every command derives them."""
    return fingerprint_of(read(load_config(str(ROOT / CONFIG)), Options(), ())).system


def _joined(answer: Row, golden: Row) -> Row:
    head = ("query_id", "query")
    return {key: golden[key] for key in head} | {key: row[key] for row in (answer, golden) for key in row if key not in head}


def _rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (ROOT / FULL / name).read_text(encoding="utf-8").splitlines()]


def _lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def main() -> None:
    """Write what differs."""
    for path, text in restamped().items():
        if (ROOT / path).read_text(encoding="utf-8") != text:
            (ROOT / path).write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
