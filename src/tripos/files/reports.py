"""Reports as files: readable JSON that is the same bytes for the same content."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from tripos.contracts.base import Contract
from tripos.contracts.reports import RetrievalReport
from tripos.errors import Finding, InputError, Place
from tripos.files.jsonl import explained
from tripos.files.streams import STDIN, read_text, whole

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


def write_together(folder: Path, report: tuple[str, Contract], lines: tuple[str, Iterable[bytes]]) -> tuple[Path, Path]:
    """Write a report and the lines beside it: both are complete before either takes its name."""
    report_path, rows_path = folder / report[0], folder / lines[0]
    with whole(report_path) as whole_report, whole(rows_path) as whole_rows:
        whole_report.write(dump_report(report[1]))
        whole_rows.writelines(lines[1])
    return report_path, rows_path


def write_lines_together(folder: Path, report: tuple[str, Contract], lines: Mapping[str, Iterable[bytes]]) -> list[Path]:
    """Write a report and files of finished lines: all are complete before any takes its name."""
    with contextlib.ExitStack() as stack:
        streams = {name: stack.enter_context(whole(folder / name)) for name in (report[0], *lines)}
        streams[report[0]].write(dump_report(report[1]))
        for name, rows in lines.items():
            streams[name].writelines(rows)
    return [folder / name for name in streams]


def load_retrieval_report(path: str) -> RetrievalReport:
    """The retrieval report, strictly; raises InputError with every fault."""
    text = read_text(path)
    try:
        return RetrievalReport.model_validate_json(text)
    except ValidationError as error:
        found = [Finding(kind, message, Place(path), field) for kind, field, message in explained(error, RetrievalReport)]
    raise InputError(found)


def input_paths(report: RetrievalReport, path: str, role: str) -> list[str]:
    """The report's inputs of one role as they are found from here, `NAME=FILE` where one names its collection.

    Raises InputError for an input that was standard input, which cannot be read again.
    """
    found = [entry for entry in report.provenance.inputs if entry.role == role]
    if any(entry.path == STDIN for entry in found):
        text = f"{role.replace('_', ' ')} came from standard input, which cannot be read again: evaluate from a file"
        raise InputError.at(path, text, field="provenance.inputs")
    joined = [(entry.collection, os.path.normpath(Path(path).parent / entry.path)) for entry in found]
    return [f"{name}={file}" if name else file for name, file in joined]
