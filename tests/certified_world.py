"""A certified run of each shipped example, and the ways in which a copy of it is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cli.world import ROOT, Outcome, run
from tests.generation_worlds import write
from tripos.fingerprint import digest

Row = dict[str, Any]

JUDGES = "configs/approved_judges.yaml"
RETRIEVAL, GENERATION, CORPUS = "retrieval/report.json", "generation/generation-report.json", "corpus/corpus-report.json"
JUDGED = ("retrieval_golden_single.jsonl", "generation_golden.jsonl", "answers.jsonl")
KEPT = frozenset(f"q-0{n:02}" for n in (1, 2, 3, 4, 7, 16, 18, 33, 44, 47, 51, 52, 53, 66, 69, 71, 72, 73, 74, 78, 79))
"""Rows of most outcomes, few enough to be certified a hundred times: not found, over-refused, filtered, unfaithful, rightly
refused, asked by a principal, partly answerable, rejected."""
KEPT_OF_TWO = frozenset(f"c-0{n:02}" for n in (1, 2, 7, 13, 14, 15, 16, 17, 18, 23, 24, 28, 29, 32, 33, 36))
TODAY = "2026-11-30"
"""The day of certifying, well inside the example's approval."""


@dataclass(frozen=True)
class CertifiedRun:
    """A folder that holds an example as shipped: its configuration, the committed inputs, and its run below engagement/."""

    folder: Path
    config: str = "configs/support-kb.yaml"
    run_folder: str = "engagement/full"

    @property
    def full(self) -> Path:
        """The folder of the full run."""
        return self.folder / self.run_folder

    @property
    def certificate(self) -> Path:
        """Where its certificate stands."""
        return self.full / "certificate.json"

    def bring(self, *inputs: str) -> None:
        """Copy the configuration and these inputs."""
        for name in (self.config, *inputs):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.folder / name)

    def make(self, *commands: str) -> CertifiedRun:
        """Run the commands and certify, as `make demo` does."""
        for command in commands:
            self.succeed(command)
        self.succeed("certify", "--as-of", TODAY)
        return self

    def copy(self, folder: Path) -> CertifiedRun:
        """The same run in another folder."""
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)

    def run(self, command: str, *more: str) -> Outcome:
        """One command under the example's configuration; evaluations stay out of the run history."""
        quiet = ("--no-store",) if command.startswith(("eval-", "certify")) else ()
        return run(self.folder, [command, "--config", self.config, *quiet, *more])

    def succeed(self, command: str, *more: str) -> None:
        """The same, which must pass."""
        done = self.run(command, *more)
        assert done.code == 0, done.out + done.err

    def certify(self, *more: str, as_of: str = TODAY) -> Outcome:
        """Certify anew, as one JSON document."""
        return self.run("certify", "--as-of", as_of, "--json", *more)

    def verify(self, *more: str) -> Outcome:
        """Hold the files against the certificate that was made of them."""
        return run(self.folder, ["certify", "--verify", str(self.certificate), *more])

    def evaluate(self, *more: str, search: bool = False) -> None:
        """Evaluate retrieval and answers anew, whatever the gates say; the answers are stamped with the system there is now."""
        if search:
            self.succeed("search")
        self._passes_or_not("eval-retrieval", *more)
        self._restamp()
        self.succeed("evidence")
        self._passes_or_not("eval-generation", *more)

    def _passes_or_not(self, command: str, *more: str) -> None:
        done = self.run(command, *more)
        assert done.code in (0, 1, 6), done.out + done.err

    def _restamp(self) -> None:
        stamp = json.loads((self.full / RETRIEVAL).read_bytes())["fingerprint"]["system"]
        rows = self.rows("answers.jsonl")
        write(
            self.full / "answers.jsonl",
            [{k: stamp if k == "system_fingerprint" else v for k, v in row.items()} for row in rows],
        )

    # files of the run, read and changed

    def rows(self, name: str) -> list[Row]:
        """The rows of a JSONL file."""
        return [json.loads(line) for line in (self.full / name).read_text(encoding="utf-8").splitlines()]

    def change(self, name: str, row_id: str, edit: Callable[[Row], object], key: str = "query_id") -> None:
        """Edit the one row that has this id."""
        rows = self.rows(name)
        (row,) = [row for row in rows if row[key] == row_id]
        before = json.dumps(row)
        edit(row)
        assert json.dumps(row) != before, "nothing was changed"
        write(self.full / name, rows)

    def remove(self, name: str, row_id: str, key: str = "query_id") -> None:
        """Take the one row out that has this id."""
        rows = self.rows(name)
        kept = [row for row in rows if row[key] != row_id]
        assert len(kept) == len(rows) - 1
        write(self.full / name, kept)

    def replace(self, name: str, old: str, new: str) -> None:
        """Replace a text where it stands first in a file, named from the folder."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, (name, old)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def edit(self, name: str, edit: Callable[[Row], object], *, seal: bool) -> None:
        """Edit a report; sealed, it gets the run_id that its new content has: a forgery that no digest of its own betrays."""
        path = self.full / name
        report = json.loads(path.read_bytes())
        assert report["run_id"] == run_id(report)
        edit(report)
        assert report["run_id"] != run_id(report), "nothing was changed"
        if seal:
            report["run_id"] = run_id(report)
        path.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def support_kb(folder: Path, keep: frozenset[str] = KEPT) -> CertifiedRun:
    """The example of two layers, retrieval and the answers written from it, cut down to these rows and without slices."""
    made = CertifiedRun(folder)
    made.bring(JUDGES, f"{made.run_folder}/fragments.jsonl", *(f"{made.run_folder}/{name}" for name in JUDGED))
    for name in JUDGED:
        write(made.full / name, [unsliced(row) for row in made.rows(name) if row["query_id"] in keep])
    return made.make("search", "eval-retrieval", "evidence", "eval-generation")


def two_collections(folder: Path) -> CertifiedRun:
    """The example of two collections: retrieval, and what became of the evidence on its way."""
    made = CertifiedRun(folder, "configs/two-collections.yaml", "engagement/two-collections")
    kb, labels = "golden/support-kb", "golden/drug-labels"
    corpus = (f"{kb}/fragments.jsonl", f"{labels}/fragments.jsonl")
    made.bring(*corpus, *(judged := (f"{kb}/retrieval_golden_single.jsonl", f"{labels}/corpus_golden.jsonl")))
    made.full.mkdir(parents=True)
    for name in judged:
        write(folder / name, [unsliced(row) for row in made.rows(f"../../{name}") if row["query_id"] in KEPT | KEPT_OF_TWO])
    return made.make("search", "eval-retrieval", "fan-out", "eval-corpus")


def unsliced(row: Row) -> Row:
    """A row without slices, each of which would be measured apart in every test."""
    return {key: value for key, value in row.items() if key != "slices"}


def run_id(report: Row) -> str:
    """What a report's run_id is by definition."""
    return digest({key: value for key, value in report.items() if key not in ("run_id", "provenance")})
