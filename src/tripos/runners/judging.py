"""Judgments in parts: the processes that share a large file read a span of it each, and the tables come together.

A part that meets anything to report gives up, and so does an id that stands in two parts: the whole file is then read again
in one process, by which every fault is told with its line.
"""

from __future__ import annotations

from pathlib import Path

from tripos.errors import Findings
from tripos.files.judgments import How, JudgmentTable, read_judgments, read_part
from tripos.files.spool import Shelf, Spool
from tripos.files.streams import Span, newlines, spans
from tripos.runners.forks import can_fork, cores, forked, received

BIG_ENOUGH = 4 << 20
"""Bytes of judgments from which more than one process pays."""


def load(path: str, findings: Findings, how: How, workers: int) -> JudgmentTable:
    """All judgments of a file, as `files.judgments.read_judgments`, in as many processes as it pays.

    Args:
        path: The file.
        findings: Takes every fault.
        how: How rows are read, and which of them checks should look at.
        workers: How many processes; 0: one a core.
    """
    parts = spans(path, workers or cores()) if _is_big(path) and can_fork() else []
    table = _together(path, how, parts) if len(parts) > 1 else None
    return table or read_judgments([path], findings, how)


def _is_big(path: str) -> bool:
    try:
        return Path(path).stat().st_size >= BIG_ENOUGH
    except (OSError, ValueError):
        return False  # whatever is wrong is told when the file is read


def _together(path: str, how: How, parts: list[Span]) -> JudgmentTable | None:
    """The first part read here, the others in processes of their own; None where one has something to report."""
    asides = [Spool.shared() for _ in parts[1:]]
    work = [(path, how, part, aside) for part, aside in zip(parts[1:], asides, strict=True)]
    with forked(lambda _, *own: _part(*own), work) as connections:
        table = _part(path, how, parts[0], None)
        lines = newlines(path, parts[0])
        for connection, part, aside in zip(connections, parts[1:], asides, strict=True):
            if table is None or (other := received(connection)) is None:
                return None
            other.lines = other.lines.adopted_by(aside)
            if not table.extend(other, lines):
                return None
            lines += newlines(path, part)
    return table


def _part(path: str, how: How, part: Span, aside: Spool | None) -> JudgmentTable | None:
    """The table of one part; None where anything is to be reported."""
    findings, table = Findings(), JudgmentTable(Shelf(aside))
    read_part(table, path, findings, how, part)
    return None if findings.kept or findings.let_pass else table
