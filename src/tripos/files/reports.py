"""Reports as files: readable JSON that is the same bytes for the same content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from tripos.contracts.base import Contract
from tripos.files.jsonl import dump_line
from tripos.files.streams import whole

_NUMBERS = re.compile(rb"\[\n\s+((?:[-+0-9.eE]+|null)(?:,\n\s+(?:[-+0-9.eE]+|null))*)\n\s+\]")


def dump_report(report: Contract) -> bytes:
    """A report as indented JSON, each list of numbers on one line.

    A real line break never stands inside a JSON string, so the lists found are lists.
    """
    pretty = orjson.dumps(plain(report), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return _NUMBERS.sub(lambda match: b"[" + re.sub(rb",\n\s+", b", ", match[1]) + b"]", pretty)


def plain(row: Contract) -> Any:
    """The row as JSON values; NaN and Infinity cannot get here, since every contract refuses them."""
    return row.model_dump(mode="json")


def write_together(folder: Path, report: tuple[str, Contract], rows: tuple[str, Iterable[Contract]]) -> tuple[Path, Path]:
    """Write a report and its rows: both are complete before either takes its name."""
    report_path, rows_path = folder / report[0], folder / rows[0]
    with whole(report_path) as whole_report, whole(rows_path) as whole_rows:
        whole_report.write(dump_report(report[1]))
        for row in rows[1]:
            whole_rows.write(dump_line(plain(row)))
    return report_path, rows_path
