"""Measure Tripos beside its peers on the same generated data, and write the tables of docs/performance.md.

Usage: python benchmarks/run.py [--sizes 1e4 1e5 1e6] [--repeat N] [--at REVISION] [--before REVISION] [--print] [--discard]

Every figure is a whole process, from start to exit. Tools take turns, round by round, and the best round counts. Nothing is
printed before all tools agree on nDCG@10, AP, RR, P@10, R@50 and success@10 to 1e-9. All runs: build/bench/results.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import page
from contestants import BUILD, FILES, HUGE, PYTHON, ROOT, Contestant, contestants, disagreements, install_peers, said, versions
from measuring import machine, measure
from page import Sized
from startup import Start, checked_out, starts

DATA = BUILD / "data"
SMALL, LARGE = 10**3, 10**7
ALL, BIG = "nested,columnar,flat,parquet,trec,json", "nested,columnar,parquet"
"""Forms, and those from 10⁸ rows on, where no peer is run."""


def generated(rows: int, forms: str) -> Path:
    """The folder of a world, made if it is not there."""
    folder = DATA / f"{rows:.0e}".replace("+0", "")
    script = Path(__file__).with_name("generate.py")
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    wanted = {"rows": rows, "forms": sorted(forms.split(",")), "script": digest}
    at = folder / "world.json"
    if not at.exists() or {key: json.loads(at.read_text()).get(key) for key in wanted} != wanted:
        subprocess.run([PYTHON, script, folder, "--rows", str(rows), "--forms", forms], check=True, stdout=sys.stderr)
    return folder


def available(everybody: Iterable[Contestant], folder: Path) -> Iterator[Contestant]:
    """Who runs at all, tried once on a tiny world; that also fills every cache of compiled code."""
    for contestant in everybody:
        measured = measure(contestant.on(folder))
        if measured.code == 0:
            yield contestant
        else:
            last = (measured.stderr.strip().splitlines() or ["no message"])[-1]
            note(f"left out: {contestant.label} on {contestant.form}: exit {measured.code}: {last}")


def measured_at(rows: int, everybody: list[Contestant], repeats: int) -> Sized:
    """All tools on one world, in turns."""
    sized = Sized(rows, repeats)
    sized.left_out = {c: reason for c in everybody if (reason := c.left_out(rows))}
    fit = [c for c in everybody if c not in sized.left_out]
    folder = generated(rows, ALL if rows < HUGE else BIG)
    figures: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for contestant in fit:
            _take(sized, contestant, folder, figures)
    sized.load = os.getloadavg()[0]
    if wrong := disagreements(figures):
        raise SystemExit("the tools disagree:\n" + "\n".join(wrong))
    note(f"{page.power(rows)} rows: {len(figures)} tools agree to 1e-9: {next(iter(figures.values()))}")
    return sized


def _take(sized: Sized, contestant: Contestant, folder: Path, figures: dict[str, dict[str, float]]) -> None:
    into_page_cache(folder / FILES[contestant.form])
    run = measure(contestant.on(folder))
    if run.code != 0:
        raise SystemExit(f"{contestant.label} on {contestant.form}: exit {run.code}\n{run.stderr}")
    run, values = said(contestant, run)
    sized.runs.setdefault(contestant, []).append(run)
    sized.megabytes[contestant] = contestant.megabytes(folder)
    if values:
        figures[f"{contestant.label} on {contestant.form}"] = values
    note(f"{page.power(sized.rows)} {contestant.label}, {contestant.form}: {run.wall_s:.2f} s, {run.peak_mb:.0f} MB")


def into_page_cache(path: Path) -> None:
    """Read a file once, so that no tool pays for the disk."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def note(text: str) -> None:
    """Say how far it is."""
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=lambda text: int(float(text)), default=[10**4, 10**5, 10**6])
    parser.add_argument("--repeat", type=int, help="rounds; default 3, and 1 from 1e7 rows")
    parser.add_argument("--at", help="measure Tripos at this revision, so that edits under way do not disturb it")
    parser.add_argument("--before", help="also measure start-up at this revision of the sources")
    parser.add_argument("--print", action="store_true", dest="shown", help="leave docs/performance.md as it is")
    parser.add_argument("--discard", action="store_true", help="delete generated data from 1e7 rows on when measured")
    return parser.parse_args()


def results(sizes: list[Sized], started: dict[str, list[Start]]) -> dict[str, Any]:
    """Everything that was measured, for other programs."""
    return {
        "sizes": [
            {
                "rows": sized.rows,
                "load": sized.load,
                "runs": [
                    {"tool": c.label, "input": c.form, "wall_s": r.wall_s, "cpu_s": r.cpu_s, "peak_mb": r.peak_mb}
                    for c, runs in sized.runs.items()
                    for r in runs
                ],
            }
            for sized in sizes
        ],
        "startup": {name: [asdict(start) for start in rows] for name, rows in started.items()},
    }


def main() -> None:
    """Measure, check, and write."""
    args = arguments()
    if args.at:
        os.environ["PYTHONPATH"] = str(checked_out(args.at))
    install_peers()
    here = machine()
    everybody = list(available(contestants(), generated(SMALL, ALL)))
    started = starts(args.before)
    sizes = []
    for rows in sorted(args.sizes):
        sizes.append(measured_at(rows, everybody, args.repeat or (3 if rows < LARGE else 1)))
        if args.discard and rows >= LARGE:
            shutil.rmtree(DATA / f"{rows:.0e}".replace("+0", ""))
    load = max(float(here["load before"]), *(sized.load for sized in sizes))
    parts = [page.heading(here, versions(), load), *map(page.tools, sizes), page.targets(sizes), page.linearity(sizes)]
    text = "\n".join(part for part in [*parts, page.reading(sizes), page.starting(started)] if part)
    (BUILD / "results.json").write_text(json.dumps({"machine": here, **results(sizes, started)}, indent=1))
    print(text)
    if not args.shown:
        page.put(ROOT / "docs" / "performance.md", text)


if __name__ == "__main__":
    main()
