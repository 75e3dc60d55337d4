"""ranx on a generated world: python with_ranx.py FOLDER json. Prints its figures as JSON.

A first tiny evaluation, with ids as long as the real ones, makes numba compile (or load) everything; what it took is
told, for the runner to leave out. Imports are counted, as for every tool.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from ranx import Qrels, Run, evaluate  # type: ignore[import-not-found]

NAMES = {
    "ndcg@10": "ndcg@10",
    "map": "ap",
    "mrr": "rr",
    "precision@10": "precision@10",
    "recall@50": "recall@50",
    "hit_rate@10": "hit@10",
}
TINY = 20


def figures(qrels: Path, run: Path) -> dict[str, float]:
    values = evaluate(Qrels.from_file(str(qrels), kind="json"), Run.from_file(str(run), kind="json"), list(NAMES))
    return {name: float(values[theirs]) for theirs, name in NAMES.items()}


def warm() -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder) / "qrels.json", Path(folder) / "run.json"
        qrels.write_text(json.dumps({f"q{n:07d}": {"doc0000001": 1, "doc0000002": 2} for n in range(TINY)}))
        run.write_text(json.dumps({f"q{n:07d}": {f"doc{d:07d}": 9.5 - d for d in range(9)} for n in range(TINY)}))
        figures(qrels, run)
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def main() -> None:
    untimed = warm()
    folder = Path(sys.argv[1])
    print(json.dumps({"untimed": untimed, "values": figures(folder / "qrels.json", folder / "run.json")}))


if __name__ == "__main__":
    main()
