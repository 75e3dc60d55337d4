"""What starting costs: wall clock of the smallest commands, and which packages their imports are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from contestants import BUILD, PYTHON, ROOT, TRIPOS
from measuring import measure

FIVE = ROOT / "golden/support-kb/integration"
GOLDEN = str(FIVE / "retrieval_golden_single.jsonl")
COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "tripos --help": (str(TRIPOS), "--help"),
    "tripos lint, five records": (str(TRIPOS), "lint", "--judgments", GOLDEN),
    "tripos eval-retrieval, five records": (
        str(TRIPOS), "eval-retrieval", "--fragments", str(FIVE / "fragments.jsonl"), "--judgments", GOLDEN,
        "--ranked-results", str(FIVE / "ranked-results.jsonl"), "--retrieval-mode", "hybrid", "--limit", "10", "--quiet",
    ),
    "the same with its configuration, and stored": (
        str(TRIPOS), "eval-retrieval", "--config", str(ROOT / "configs/support-kb-integration.yaml"), "--quiet",
    ),
}  # fmt: skip
REPEATS, SHOWN = 7, 6


@dataclass
class Start:
    """One command's start."""

    command: str
    wall_ms: float
    imports_ms: float
    modules: int
    packages: dict[str, float]
    error: str = ""


def starts(before: str | None = None) -> dict[str, list[Start]]:
    """Every command's start: now, and at another revision of the sources if one is named."""
    trees = {"now": Path(os.environ.get("PYTHONPATH", ROOT / "src"))}
    if before:
        trees[before] = checked_out(before)
    walls: dict[tuple[str, str], list[float]] = {}
    for _ in range(REPEATS):
        for name, tree in trees.items():
            for command, arguments in COMMANDS.items():
                measured = measure([str(PYTHON), *arguments], {"PYTHONPATH": str(tree)})
                walls.setdefault((name, command), []).append(1000 * measured.wall_s)
    return {name: [_start(command, min(walls[name, command]), tree) for command in COMMANDS] for name, tree in trees.items()}


def checked_out(revision: str) -> Path:
    """The sources at a revision, beside the working tree, which stays as it is."""
    folder = BUILD / "before" / revision
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def _start(command: str, wall_ms: float, tree: Path) -> Start:
    measured = measure([str(PYTHON), "-X", "importtime", *COMMANDS[command]], {"PYTHONPATH": str(tree)})
    packages: Counter[str] = Counter()
    modules = 0
    for line in measured.stderr.splitlines():
        if line.startswith("import time:") and (own := line.removeprefix("import time:").split("|"))[0].strip().isdigit():
            packages[_package(own[2].strip())] += int(own[0])
            modules += 1
    milliseconds = {name: microseconds / 1000 for name, microseconds in packages.most_common()}
    error = "" if measured.code == 0 else f"exit {measured.code}"
    return Start(command, wall_ms, sum(milliseconds.values()), modules, milliseconds, error)


def _package(module: str) -> str:
    top = module.partition(".")[0]
    return "standard library" if top in sys.stdlib_module_names else top.removeprefix("_")
