"""A tiny valid world to break: six fragments, three judgments, three results; and two ways to run the command."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tripos.cli.app import main
from tripos.contracts.reports import Aggregate, Curve, RetrievalReport
from tripos.contracts.retrieval import RetrievalMiss

Row = dict[str, Any]

LEFT_OPEN = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. .function SpooledTemp:pytest.PytestUnraisableExceptionWarning"
)
"""Lets tests run while a command leaves a spool open; test_no_file_is_left_open tells of it."""

ROOT = Path(__file__).parents[2]
SUPPORT_KB = ROOT / "golden" / "support-kb"

FRAGMENTS, JUDGMENTS, RESULTS = "fragments.jsonl", "judgments.jsonl", "results.jsonl"
REPORT, MISSES = "report.json", "misses.jsonl"
OLD = {REPORT: b'{"an older report": true}\n', MISSES: b'{"an older miss": true}\n'}
"""What stands in the output folder before each run: whatever fails must leave it as it is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the command came to."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def report(self) -> RetrievalReport:
        """The report in the output folder, read back through its contract."""
        return RetrievalReport.model_validate_json((self.folder / REPORT).read_bytes())

    @property
    def misses(self) -> dict[str, RetrievalMiss]:
        """The misses in the output folder, by query id, read back through their contract."""
        lines = (self.folder / MISSES).read_bytes().splitlines()
        return {miss.query_id: miss for miss in map(RetrievalMiss.model_validate_json, lines)}

    @property
    def errors(self) -> list[str]:
        """The lines of standard error."""
        return self.err.splitlines()

    def single(self, name: str) -> Aggregate:
        """One figure of the report that has no cutoff."""
        figure = self.report.measures[name]
        assert isinstance(figure, Aggregate)
        return figure

    def curve(self, name: str) -> Curve:
        """One figure of the report at every cutoff."""
        figure = self.report.measures[f"{name}@k"]
        assert isinstance(figure, Curve)
        return figure

    def gate(self, name: str) -> tuple[str, str]:
        """Status and reason of one gate."""
        ((status, because),) = [(g.status, g.because) for g in self.report.gates if g.name == name]
        return status, because


def fragment(source: str, number: int = 1, text: str | None = None, **more: Any) -> Row:
    """A fragment of `source` that everybody may read."""
    name = f"{source}::f{number}"
    return {"fragment_id": name, "text": text or f"What {source} says in part {number}.", "acl": ["everyone"], **more}


def judgment(query_id: str, *expected: str, **more: Any) -> Row:
    """A reviewed judgment; without an expected source it should find nothing."""
    return {
        "query_id": query_id,
        "query": f"The question {query_id}?",
        "expected_sources": list(expected),
        "should_match": bool(expected),
        "category": "single_hop_factual" if expected else "negative",
        "review_status": "reviewed",
    } | more


def result(query_id: str, *names: str, **more: Any) -> Row:
    """Nested results with falling scores 0.9, 0.8, …"""
    items = [{"fragment_id": name, "score": round(0.9 - n / 10, 9)} for n, name in enumerate(names)]
    return {"query_id": query_id, "results": items, **more}


def columnar(query_id: str, *names: str, **more: Any) -> Row:
    """The same results in the columnar form."""
    scores = [round(0.9 - n / 10, 9) for n in range(len(names))]
    return {"query_id": query_id, "fragment_ids": list(names), "scores": scores, **more}


def flat(query_id: str, *names: str) -> list[Row]:
    """The same results in the flat form, a row each."""
    return [
        {"query_id": query_id, "fragment_id": name, "rank": n, "score": round(1 - n / 10, 9)} for n, name in enumerate(names, 1)
    ]


def lines(rows: Sequence[Row]) -> bytes:
    """Rows as JSONL."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


@dataclass(slots=True)
class World:
    """The three inputs as rows; `raw` replaces a file by bytes, or by nothing where it is None.

    q1 finds s1 at rank 1, q2 finds s2 at rank 2, q3 rightly finds nothing.
    """

    folder: Path
    fragments: list[Row] = field(
        default_factory=lambda: [
            fragment("s1"),
            fragment("s1", 2),
            fragment("s2"),
            fragment("s3"),
            fragment("s4"),
            fragment("s5", acl=["admins"]),
        ]
    )
    judgments: list[Row] = field(default_factory=lambda: [judgment("q1", "s1"), judgment("q2", "s2"), judgment("q3")])
    results: list[Row] = field(
        default_factory=lambda: [result("q1", "s1::f1", "s2::f1"), result("q2", "s3::f1", "s2::f1", "s4::f1"), result("q3")]
    )
    raw: dict[str, bytes | None] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""

    @property
    def output(self) -> Path:
        """The output folder of `arguments`."""
        return self.folder / "out"

    def write(self) -> None:
        """Write the inputs, and an older report."""
        for name, rows in ((FRAGMENTS, self.fragments), (JUDGMENTS, self.judgments), (RESULTS, self.results)):
            content = self.raw[name] if name in self.raw else lines(rows)
            if content is not None:
                (self.folder / name).write_bytes(content)
        for name, content in self.files.items():
            (self.folder / name).write_bytes(content)
        self.output.mkdir(exist_ok=True)
        for name, content in OLD.items():
            (self.output / name).write_bytes(content)

    def arguments(self, *more: str) -> list[str]:
        """The command on this world's files, named relative to its folder; a flag given in `more` stands alone."""
        flags = {
            "--fragments": self.names.get(FRAGMENTS, FRAGMENTS),
            "--judgments": self.names.get(JUDGMENTS, JUDGMENTS),
            "--retrieval-mode": "hybrid",
            "--ranked-results": self.names.get(RESULTS, RESULTS),
            "--limit": "3",
            "--output": "out",
        }
        given = [part for flag, value in flags.items() if flag not in more for part in (flag, value)]
        return ["eval-retrieval", *given, *more]

    def run(self, *more: str) -> Outcome:
        """Write the inputs and run the command on them, inside this process."""
        self.write()
        return run(self.folder, self.arguments(*more), self.stdin)

    def everything(self) -> dict[str, bytes]:
        """Every file below the folder, by relative name."""
        return contents(self.folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative name."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def run(folder: Path, arguments: Sequence[str], stdin: bytes = b"") -> Outcome:
    """What `tripos` says and returns when called with `arguments` in `folder`: main() inside this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, handler = Path.cwd(), signal.getsignal(signal.SIGTERM)
    with ExitStack() as stack:
        stack.callback(os.chdir, before)
        stack.callback(signal.signal, signal.SIGTERM, handler)
        os.chdir(folder)
        stack.enter_context(mock.patch.object(sys, "argv", ["tripos", *arguments]))
        stack.enter_context(mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    assert isinstance(code, int)
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Outcome(code, said[0], said[1], folder / "out")


COMMAND = (sys.executable, "-c", "from tripos.cli.app import main; main()")
"""The command as a process of its own."""


def spawn(
    folder: Path, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process of its own, for what only a process shows."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60}
    own = {**os.environ, **(environment or {})}
    return subprocess.run([*COMMAND, *arguments], cwd=folder, env=own, check=False, **(streams | more))
