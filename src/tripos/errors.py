"""What can go wrong, one exit code a class.

    TriposError          70  internal error (a fault of ours)
    ├── UsageError        2  wrong flags or arguments
    │   └── OutputError   2  an output that cannot be written (no permission, a full disk)
    ├── InputError        3  a file whose content breaks its contract
    │   └── ConfigError   3  a configuration that cannot be followed
    ├── NotComparable     4  fingerprints differ
    └── NothingToEvaluate 5  no reviewed row is left to score

Exit codes 1 (a gate failed) and 6 (incomplete or inconclusive) belong to a verdict, not to an error: the report is written
and says why. 130 is Ctrl-C.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

MAX_SHOWN = 20
"""How many errors of one command are shown before the rest are only counted."""

_MAX_CANDIDATES = 20_000
_MAX_QUOTED = 80


class ExitCode(IntEnum):
    """Every exit code of every command."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    INVALID_INPUT = 3
    NOT_COMPARABLE = 4
    NOTHING_TO_EVALUATE = 5
    INCOMPLETE = 6
    INTERNAL = 70
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in the user's files something stands; `line` counts physical lines from 1, 0 means the whole file."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found in the user's input: where, which field, and what to do about it."""

    kind: str
    message: str
    place: Place
    field: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return printable("  ".join(part for part in (str(self.place), self.field, self.message) if part))


class TriposError(Exception):
    """Base of every error that Tripos raises on purpose."""

    exit_code = ExitCode.INTERNAL


class UsageError(TriposError):
    """Wrong flags or arguments."""

    exit_code = ExitCode.USAGE


class OutputError(UsageError):
    """An output that cannot be written."""


class NotComparable(TriposError):  # noqa: N818 - named for what it says, as in the design
    """Two things that must have been measured under one configuration were not."""

    exit_code = ExitCode.NOT_COMPARABLE


class NothingToEvaluate(TriposError):  # noqa: N818 - named for what it says, as in the design
    """No row is left to score."""

    exit_code = ExitCode.NOTHING_TO_EVALUATE


class InputError(TriposError):
    """A file whose content breaks its contract: all of its findings at once."""

    exit_code = ExitCode.INVALID_INPUT

    def __init__(self, findings: Sequence[Finding], total: int | None = None) -> None:
        self.findings = tuple(findings)
        self.total = len(self.findings) if total is None else total
        super().__init__("\n".join(map(str, self.findings[:MAX_SHOWN])))

    @classmethod
    def at(cls, file: str, message: str, *, line: int = 0, field: str = "", kind: str = "file") -> InputError:
        """The error with a single finding."""
        return cls([Finding(kind, message, Place(file, line), field)])


class ConfigError(InputError):
    """A configuration that cannot be followed."""


class Findings:
    """Collects what is wrong while reading goes on, so that all of it comes at once.

    Keeps the first 10,000 findings and counts the rest. What --lenient let pass is counted by kind in `let_pass`.
    """

    LIMIT = 10_000

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.n_errors = 0
        self.n_warnings = 0
        self.let_pass: dict[str, int] = {}

    def error(self, kind: str, place: Place, field: str, message: str) -> None:
        """Note an error."""
        self._keep(Finding(kind, message, place, field))

    def warn(self, kind: str, place: Place, field: str, message: str) -> None:
        """Note a warning: it counts, and stops nothing."""
        self._keep(Finding(kind, message, place, field, "warning"))

    def lenient(self, kind: str, by: int = 1) -> None:
        """Count something that was let pass."""
        self.let_pass[kind] = self.let_pass.get(kind, 0) + by

    def _keep(self, finding: Finding) -> None:
        if finding.severity == "error":
            self.n_errors += 1
        else:
            self.n_warnings += 1
        if len(self.kept) < self.LIMIT:
            self.kept.append(finding)

    @property
    def errors(self) -> list[Finding]:
        """The errors kept, by place."""
        return sorted((f for f in self.kept if f.severity == "error"), key=lambda f: f.place)

    @property
    def warnings(self) -> list[Finding]:
        """The warnings kept, by place."""
        return sorted((f for f in self.kept if f.severity == "warning"), key=lambda f: f.place)

    def raise_errors(self) -> None:
        """Raise InputError when there is any error."""
        if self.n_errors:
            raise InputError(self.errors, self.n_errors)


def suggest(name: str, names: Collection[str]) -> str:
    """The did-you-mean clause for `name`, or "" where nothing is near enough."""
    near = difflib.get_close_matches(name[:200], _candidates(name, names), n=1, cutoff=0.75)
    return f' (did you mean "{quoted(near[0])}"?)' if near else ""


def _candidates(name: str, names: Collection[str]) -> Iterable[str]:
    """At most 20,000 names worth comparing: edit distance over a million ids would take minutes."""
    if len(names) <= _MAX_CANDIDATES:
        return [n for n in names if len(n) <= 2 * len(name) + 2]
    alike = (n for n in names if abs(len(n) - len(name)) <= 1 and (n[:3] == name[:3] or n[-3:] == name[-3:]))
    return [n for n, _ in zip(alike, range(_MAX_CANDIDATES), strict=False)]


def quoted(text: str) -> str:
    """`text` fit for one line of a terminal: control characters escaped, cut at 80 characters."""
    safe = printable(text[: _MAX_QUOTED + 1], keep="")
    return safe if len(text) <= _MAX_QUOTED else f"{safe[:_MAX_QUOTED]}… ({len(text):,} characters)"


def printable(text: str, keep: str = "\n") -> str:
    """`text` with control, format and bidirectional characters escaped, so that no content can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)
