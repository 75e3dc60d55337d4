"""Every figure of a generated world counted a second time in plain Python, cell by cell, against `tripos eval-retrieval`.

Usage: python benchmarks/oracle.py [--rows 1e5] [--sample 1000]

Hit, recall, precision, RR, AP and NDCG at every K from 1 to 100, for a sample of queries, from --per-query; each figure
afresh from the first K results, sharing no code with Tripos. Then every form, with one worker and two, and with AVX-512
switched off, must give the same bytes, and the report the same run_id.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contestants import FILES, PYTHON, Contestant, contestants
from measuring import measure
from run import generated

DEPTH = 100
PARTS = (range(1, 51), range(51, DEPTH + 1))
"""Cutoffs asked for in one evaluation: its report marks ties at each in one bit of 63."""
ALLOWED = 1e-11
"""Figures are written with twelve significant digits."""
Grades = dict[str, int]


def hit(grades: Grades, top: Sequence[str]) -> float:
    return 1.0 if any(name in grades for name in top) else 0.0


def recall(grades: Grades, top: Sequence[str]) -> float:
    return sum(name in grades for name in top) / len(grades)


def precision(grades: Grades, top: Sequence[str]) -> float:
    return sum(name in grades for name in top) / len(top)


def rr(grades: Grades, top: Sequence[str]) -> float:
    return next((1 / rank for rank, name in enumerate(top, 1) if name in grades), 0.0)


def ap(grades: Grades, top: Sequence[str]) -> float:
    ranks = [rank for rank, name in enumerate(top, 1) if name in grades]
    return math.fsum(found / rank for found, rank in enumerate(ranks, 1)) / len(grades)


def dcg(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def ndcg(grades: Grades, top: Sequence[str]) -> float:
    return dcg([grades.get(name, 0) for name in top]) / dcg(sorted(grades.values(), reverse=True)[: len(top)])


MEASURES: dict[str, Callable[[Grades, Sequence[str]], float]] = {
    "hit": hit,
    "recall": recall,
    "precision": precision,
    "rr": rr,
    "ap": ap,
    "ndcg": ndcg,
}


def worlds(folder: Path) -> Iterator[tuple[str, Grades, list[str]]]:
    """Each query's id, grades and ranked documents."""
    with (folder / "judgments.jsonl").open() as judged, (folder / FILES["nested JSONL"]).open() as ranked:
        for line, row in zip(judged, ranked, strict=True):
            judgment, results = json.loads(line), json.loads(row)
            assert judgment["query_id"] == results["query_id"]
            yield judgment["query_id"], judgment["relevance"], [item["fragment_id"] for item in results["results"]]


def compared(folder: Path, theirs: dict[str, dict[str, float]], sample: int) -> tuple[int, list[str]]:
    """How many cells were compared, and those that differ."""
    everything = list(worlds(folder))
    chosen = everything[:: max(1, len(everything) // sample)][:sample]
    wrong, compared_cells = [], 0
    for name, grades, documents in chosen:
        for measure_name, figure in MEASURES.items():
            for k in range(1, DEPTH + 1):
                ours, said = figure(grades, documents[:k]), theirs[name][f"{measure_name}@{k}"]
                compared_cells += 1
                if not math.isclose(ours, said, rel_tol=ALLOWED, abs_tol=0.0):
                    wrong.append(f"{name} {measure_name}@{k}: oracle {ours!r}, Tripos {said!r}")
    return compared_cells, wrong


def without_avx512() -> dict[str, str]:
    """What switches NumPy's AVX-512 paths off; empty where it has none."""
    asked = (
        "from numpy._core import _multiarray_umath as m;"
        "print(*(n for n in m.__cpu_dispatch__ if ('AVX512' in n or n == 'X86_V4') and m.__cpu_features__[n]))"
    )
    shown = subprocess.run([PYTHON, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    return {"NPY_DISABLE_CPU_FEATURES": shown} if shown else {}


def evaluated(contestant: Contestant, folder: Path, cutoffs: range, environment: dict[str, str]) -> tuple[str, bytes]:
    """The run_id and the per-query rows of one evaluation."""
    with tempfile.TemporaryDirectory() as scratch:
        per_query = Path(scratch) / "rows.jsonl"
        more = ["--cutoffs", ",".join(map(str, cutoffs)), "--per-query", str(per_query)]
        run = measure([*contestant.on(folder), *more], environment)
        if run.code != 0:
            raise SystemExit(f"{contestant.label} on {contestant.form}: exit {run.code}\n{run.stderr}")
        return json.loads(run.stdout)["run_id"], per_query.read_bytes()


def cells(contestant: Contestant, folder: Path) -> dict[str, dict[str, float]]:
    """Every query's figures at every cutoff."""
    rows: dict[str, dict[str, float]] = {}
    for cutoffs in PARTS:
        for line in evaluated(contestant, folder, cutoffs, {})[1].splitlines():
            row = json.loads(line)
            rows.setdefault(row["query_id"], {}).update(row)
    return rows


def others(ours: Sequence[Contestant], folder: Path) -> list[str]:
    """Which forms, workers and CPU features give other bytes than the first."""
    first, wrong = evaluated(ours[0], folder, PARTS[0], {}), []
    for contestant in ours:
        for name, environment in {"": {}, ", AVX-512 off": without_avx512()}.items():
            what = f"{contestant.label}, {contestant.form}{name}"
            run_id, rows = evaluated(contestant, folder, PARTS[0], environment)
            same = f"run_id {'same' if run_id == first[0] else 'OTHER'}, rows {'same' if rows == first[1] else 'OTHER'}"
            print(f"{what}: {same}", flush=True)
            wrong += [f"{what} differs from {ours[0].label}, {ours[0].form}"] if "OTHER" in same else []
    return wrong


def main() -> None:
    """Compare, and exit 1 on any difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**5)
    parser.add_argument("--sample", type=int, default=1_000)
    args = parser.parse_args()
    folder = generated(args.rows, "nested,columnar,flat,parquet,trec,json")
    ours = [c for c in contestants() if c.tool == "Tripos"]
    count, wrong = compared(folder, cells(ours[0], folder), args.sample)
    print(f"{count:,} cells compared with the oracle, {len(wrong)} differ", flush=True)
    wrong += others(ours, folder)
    print("\n".join(wrong[:20]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
