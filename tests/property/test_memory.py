"""Evaluating again and again in one process: memory, open files and processes stay as they were."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import World, config_of, judgment, scored, write_jsonl
from tripos.contracts.config import Config, Options
from tripos.errors import InputError
from tripos.files.conversion import convert_ranked
from tripos.runners.retrieval import evaluate, per_query_rows

ROOT = Path(__file__).parents[2]
TIMES, WARM_UP = 100, 12
KB = 1 << 10


def small(folder: Path) -> Config:
    """A dozen queries with misses and ties; small, so that what grows with each run shows."""
    judgments = [judgment(f"q{i:02}", "a", "b", nonrelevant_sources=["c"]) for i in range(12)]
    results = [scored(f"q{i:02}", {"c": 0.9, f"x{i}": 0.5, "a": 0.5}) for i in range(11)]
    config = config_of(folder, World(judgments, results, limit=3))
    return config.model_copy(update={"scope": "integration"})


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def run(config: Config, **options: Any) -> None:
    outcome = evaluate(config, Options(**options))
    assert sum(1 for _ in outcome.miss_lines()) > 0
    assert sum(1 for _ in per_query_rows(outcome)) == 12


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


AGAIN = """
import gc, sys
from pathlib import Path
from tests.property.test_memory import TIMES, WARM_UP, open_files, resident, run, small

config = small(Path(sys.argv[1]))
for _ in range(WARM_UP):
    run(config)
gc.collect()
before, files, objects = resident(), open_files(), len(gc.get_objects())
for _ in range(TIMES):
    run(config)
gc.collect()
print(resident() - before, open_files() - files, len(gc.get_objects()) - objects)
"""


@needs_proc
def test_a_hundred_evaluations_leave_memory_flat(tmp_path: Path) -> None:
    # in a process of its own: what other tests left behind moves the memory of this one
    done = subprocess.run([sys.executable, "-c", AGAIN, tmp_path], cwd=ROOT, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    grown, files, objects = map(int, done.stdout.split())
    assert grown < 2048 * KB  # 20 KB a run; one kept report alone is larger
    assert files == 0
    assert abs(objects) < 5 * TIMES


WAYS: dict[str, Callable[[Config, Path], tuple[Config, dict[str, Any]]]] = {
    "plain": lambda config, _: (config, {}),
    "workers": lambda config, _: (config, {"workers": 2}),
    "buckets": lambda config, folder: (flat(config, folder), {"memory_limit": 100}),
    "Parquet": lambda config, folder: (parquet(config, folder), {}),
}


def flat(config: Config, folder: Path) -> Config:
    rows = [{"query_id": f"q{i:02}", "fragment_id": n, "rank": k} for i in range(11) for k, n in enumerate("cxa", 1)]
    return config.model_copy(update={"ranked_results": write_jsonl(folder / "flat.jsonl", rows)})


def parquet(config: Config, folder: Path) -> Config:
    convert_ranked(str(config.ranked_results), str(folder / "r.parquet"))
    return config.model_copy(update={"ranked_results": str(folder / "r.parquet")})


def growth(config: Config, options: dict[str, Any], times: int) -> int:
    """Bytes that are still allocated after some more runs."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(times):
        run(config, **options)
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


@needs_proc
@pytest.mark.parametrize("way", WAYS)
def test_no_allocation_stays(way: str, tmp_path: Path) -> None:
    config, options = WAYS[way](small(tmp_path), tmp_path)
    times = 6
    for _ in range(4):
        run(config, **options)
    gc.collect()
    files = open_files()
    tracemalloc.start()
    try:
        run(config, **options)
        grown = [growth(config, options, times) for _ in range(3)]
    finally:
        tracemalloc.stop()
    # what stays of each run shows in every round; a cache that fills once does not. numpy keeps some tens of KB of small blocks
    assert min(grown) < times * 2 * KB
    assert open_files() == files
    assert multiprocessing.active_children() == []


@needs_proc
def test_nothing_stays_of_an_evaluation_that_fails(tmp_path: Path) -> None:
    config = small(tmp_path)
    with open(str(config.ranked_results), "a") as stream:
        stream.write('{"query_id": "q00", "fragment_ids": []}\n')
    for workers in (1, 2):
        gc.collect()
        files = open_files()
        for _ in range(5):
            with pytest.raises(InputError):
                evaluate(config, Options(workers=workers))
        gc.collect()
        assert open_files() <= files
        assert multiprocessing.active_children() == []
