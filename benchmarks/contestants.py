"""Who is measured: Tripos in each form, its peers on theirs, and orjson alone as the floor under any reader of JSONL."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import Measured, memory_mb

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
PYTHON, TRIPOS = ROOT / ".venv/bin/python", ROOT / ".venv/bin/tripos"
PEERS = BUILD / "venv"
PACKAGES = ("pytrec_eval-terrier", "ir_measures", "ranx")
SCRIPTS = Path(__file__).resolve().parent / "peers"

FILES = {
    "Parquet": "run.parquet",
    "nested JSONL": "run.nested.jsonl",
    "columnar JSONL": "run.columnar.jsonl",
    "flat JSONL": "run.flat.jsonl",
    "JSON": "run.json",
    "TREC": "run.trec",
}
CURVES = {"ndcg@10": 10, "ap@100": 100, "rr@100": 100, "precision@10": 10, "recall@50": 50, "hit@10": 10}
SHARED = {"ap@100": "ap", "rr@100": "rr"}
"""Lists are 100 long, so that a figure at 100 is the peers' figure over the whole list."""
TOLERANCE = 1e-9
HUGE = 10**8
"""Rows from which on no peer is run, nor what takes many minutes by itself."""


@dataclass(frozen=True)
class Contestant:
    """One tool on one form of the data."""

    tool: str
    form: str
    command: tuple[str, ...]
    kind: str
    workers: int | None = None
    megabytes_a_row: float = 0.0
    """What a peer needs; decides where it would not fit."""

    @property
    def label(self) -> str:
        """As the tables name it."""
        return self.tool if self.workers is None else f"{self.tool}, {self.workers} worker{'s' if self.workers > 1 else ''}"

    def on(self, folder: Path) -> list[str]:
        """The command on the world in a folder."""
        return [part.replace("{}", str(folder)) for part in self.command]

    def megabytes(self, folder: Path) -> float:
        """Size of the run that it reads."""
        return (folder / FILES[self.form]).stat().st_size / 1e6

    def left_out(self, rows: int) -> str | None:
        """Why it is left out at this size."""
        needed = self.megabytes_a_row * rows
        if needed > 0.85 * memory_mb():
            return f"needs about {needed / 1000:.0f} GB"
        return None if rows < HUGE or self in _lasting() else "not run at this size"


def contestants() -> list[Contestant]:
    """All of them, in the order of the tables."""
    return [*_tripos(), *_peers(), *(_floor(form) for form in ("nested JSONL", "columnar JSONL", "flat JSONL"))]


def _lasting() -> list[Contestant]:
    """Who is run at any size."""
    forms = ("Parquet", "nested JSONL", "columnar JSONL")
    return [*(_evaluation("Tripos", form, n) for form in forms for n in (1, 2)), *map(_floor, forms[1:])]


def _tripos() -> list[Contestant]:
    workers = (1, 2) if _has_workers() else (None,)
    forms = ("Parquet", "nested JSONL", "columnar JSONL", "flat JSONL")
    plain = [_evaluation("Tripos", form, n) for form in forms for n in workers]
    written = ("--output", str(BUILD / "out"))
    return plain + [_evaluation("Tripos, --output", form, workers[0], written) for form in forms[:2]]


def _evaluation(tool: str, form: str, workers: int | None, more: Sequence[str] = ()) -> Contestant:
    command = (str(TRIPOS), "eval-retrieval", "--judgments", "{}/judgments.jsonl", "--ranked-results", f"{{}}/{FILES[form]}")
    settings = ("--retrieval-mode", "bench", "--limit", "100", "--top-k", "10", "--json", "--quiet")
    shared = ("--workers", str(workers)) if workers else ()
    return Contestant(tool, form, (*command, *settings, *shared, *more), "tripos", workers)


def _has_workers() -> bool:
    shown = subprocess.run([TRIPOS, "eval-retrieval", "--help"], capture_output=True, text=True, check=True)
    return "--workers" in shown.stdout


def _peers() -> list[Contestant]:
    known = [  # megabytes a row as measured at 10⁷ rows; ir_measures on TREC as on JSON
        ("pytrec_eval", "JSON", 224e-6),
        ("pytrec_eval", "TREC", 195e-6),
        ("ir_measures", "JSON", 223e-6),
        ("ir_measures", "TREC", 223e-6),
        ("ranx", "JSON", 472e-6),
    ]
    python = str(PEERS / "bin/python")
    return [
        Contestant(
            tool, form, (python, str(SCRIPTS / f"with_{tool}.py"), "{}", form.lower()), "peer", megabytes_a_row=megabytes
        )
        for tool, form, megabytes in known
    ]


def _floor(form: str) -> Contestant:
    return Contestant("orjson alone", form, (str(PYTHON), str(SCRIPTS / "orjson_alone.py"), f"{{}}/{FILES[form]}"), "floor")


def said(contestant: Contestant, measured: Measured) -> tuple[Measured, dict[str, float]]:
    """The measurement without what is not to be counted, and the figures that the tool printed."""
    told: dict[str, Any] = json.loads(measured.stdout)
    if contestant.kind == "tripos":
        curves = {name: told["measures"][f"{name.partition('@')[0]}@k"]["value"][k - 1] for name, k in CURVES.items()}
        return measured, {SHARED.get(name, name): value for name, value in curves.items()}
    if "untimed" in told:
        measured = measured.without(**told["untimed"])
    return measured, told.get("values", {})


def disagreements(figures: dict[str, dict[str, float]]) -> list[str]:
    """Where a tool's figure is not that of the first tool."""
    first, *others = figures
    return [
        f"{name}: {first} {value!r}, {other} {figures[other].get(name)!r}"
        for other in others
        for name, value in figures[first].items()
        if not abs(figures[other].get(name, float("nan")) - value) <= TOLERANCE
    ]


def install_peers() -> None:
    """Put the peers into an environment of their own."""
    if not (PEERS / "ready").exists():
        subprocess.run([PYTHON, "-m", "venv", PEERS], check=True)
        subprocess.run(
            [PEERS / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES, "orjson"], check=True
        )
        (PEERS / "ready").touch()


def versions() -> dict[str, str]:
    """What is compared, and what it stands on."""
    return {
        **_versions(PYTHON, ("tripos", "numpy", "duckdb", "orjson", "pydantic")),
        **_versions(PEERS / "bin/python", (*PACKAGES, "numba")),
    }


def _versions(python: Path, names: Sequence[str]) -> dict[str, str]:
    listed = "import sys, json, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    shown = subprocess.run([python, "-c", listed, *names], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(shown.stdout)
    return found
