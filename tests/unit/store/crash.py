"""Processes that store runs at once and are killed at random, over and over, until all their work is done.

By hand, at full size: python -m tests.unit.store.crash --runs 200 --kills 60
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.builders import World, judgment, listed
from tests.unit.store.history import keep
from tripos.errors import Findings
from tripos.store.checking import Checked, check_store
from tripos.store.reading import Store


def world(number: int) -> World:
    """A run of its own for each number."""
    order = [*["a", "b", "c"][number % 3 :], f"x{number}"]
    results = [listed("q1", *order, latency_ms=number), listed("q2", f"y{number}", "b")]
    return World([judgment("q1", "a"), judgment("q2", "b")], results)


def work(store: Path, numbers: Sequence[int]) -> None:
    """Store the runs that are not there yet, each labelled by its number."""
    store.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        label = f"number {number}"
        if not any(label in one.labels for one in Store(store).executions()):
            keep(store, world(number), 1 + number % 28, labels=[label])


def finish(shares: Sequence[tuple[Path, Sequence[int]]], kills: int, draw: random.Random, slowest_s: float) -> int:
    """Let each share be done by a process; kill one at random as often as asked, and start it again. Returns kills made."""
    context = multiprocessing.get_context("fork")

    def started(share: tuple[Path, Sequence[int]]) -> multiprocessing.process.BaseProcess:
        process = context.Process(target=work, args=share)
        process.start()
        return process

    running = {n: started(share) for n, share in enumerate(shares)}
    made = 0
    while running:
        time.sleep(draw.uniform(0, slowest_s))
        n = draw.choice(sorted(running))
        if made < kills and running[n].is_alive():
            running[n].kill()
            made += 1
        if running[n].is_alive():
            continue
        running[n].join()
        if running[n].exitcode == 0:
            del running[n]
        else:
            running[n] = started(shares[n])
    return made


def merged(target: Path, stores: Sequence[Path]) -> tuple[Checked, Findings]:
    """Copy stores into one, and check it."""
    for store in stores:
        shutil.copytree(store, target, dirs_exist_ok=True)
    findings = Findings()
    return check_store(target, findings), findings


def main() -> int:
    """Two processes in one store and one in another, killed at random; then both stores merged, and everything counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        here, there, both = (Path(scratch) / name for name in ("here", "there", "both"))
        n = wanted.runs
        shares = [(here, range(n)), (here, range(n // 2, n + n // 2)), (there, range(n, 2 * n))]
        kills = finish(shares, wanted.kills, random.Random(wanted.seed), 0.5)
        checked, findings = merged(both, [here, there])
        labels = [label for one in Store(both).executions() for label in one.labels]
        missing = {f"number {k}" for k in range(2 * n)} - set(labels)
        print(f"{kills} kills; {checked}; {findings.n_errors} errors, {findings.n_warnings} warnings; {len(missing)} lost")
        return int(bool(findings.n_errors or missing or checked.runs != 2 * n))


if __name__ == "__main__":
    sys.exit(main())
