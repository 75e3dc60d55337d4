"""Reports as files: readable JSON that is the same bytes for the same content."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import ValidationError

from tripos.contracts.base import Contract, shown
from tripos.contracts.reports import RetrievalReport
from tripos.errors import Finding, InputError, Place, quoted
from tripos.files.jsonl import explained
from tripos.files.streams import STDIN, all_whole, read_text
from tripos.fingerprint import canonical

if TYPE_CHECKING:
    from tripos.contracts.corpus_report import CorpusReport
    from tripos.contracts.generation_report import GenerationReport

Document = TypeVar("Document", bound=Contract)

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


def write_lines_together(
    folder: Path | None, report: tuple[str, Contract], lines: Mapping[str | Path, Iterable[bytes]]
) -> list[str]:
    """Write files of finished lines and their report: all are complete before any takes its name, the report last.

    A name stands in `folder`, a Path where it says; without a folder there is no report and only Paths are written. Returns
    the report's path and the others'.
    """
    inside: dict[Path, Iterable[bytes]] = {}
    for name, rows in lines.items():
        if isinstance(name, Path):
            inside[name] = rows
        elif folder:
            inside[folder / name] = rows
    paths = [*inside, *([folder / report[0]] if folder else [])]
    with all_whole(*paths) as streams:
        for stream, rows in zip(streams, inside.values(), strict=False):
            stream.writelines(rows)
        if folder:
            streams[-1].write(dump_report(report[1]))
    return [str(path) for path in (*paths[len(inside) :], *inside)]


def load_retrieval_report(path: str) -> RetrievalReport:
    """The retrieval report, strictly; raises InputError with every fault."""
    return load_document(path, RetrievalReport, "the report.json of tripos eval-retrieval")


def load_document(path: str, model: type[Document], expected: str) -> Document:
    """A document that names its contract, strictly; raises InputError with every fault, saying what is `expected`."""
    text = read_text(path)
    if reason := no_such(text, model):
        raise InputError.at(path, f"{reason}: {expected} is expected")
    try:
        document = model.model_validate_json(text)
        canonical(plain(document))
    except ValidationError as error:
        found = [Finding(kind, message, Place(path), field) for kind, field, message in explained(error, model)]
    except ValueError as error:
        raise InputError.at(path, f"holds what canonical JSON cannot carry: {error}") from None
    else:
        return document
    raise InputError(found)


def no_such(text: str | bytes, model: type[Contract]) -> str:
    """What the file is instead; "" where it says that it is of the contract."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return "is no JSON"
    stated = value.get("contract") if isinstance(value, dict) else None
    own = model.model_fields["contract"].default
    return "" if stated == own else f"is {shown(stated)}, not {own}" if stated else "is no report"


def input_paths(report: RetrievalReport | GenerationReport | CorpusReport, path: str, role: str) -> list[str]:
    """The report's inputs of one role as they are found from here, `NAME=FILE` where one names its collection.

    Raises InputError for an input that was standard input, or is a pipe, which cannot be read again.
    """
    found = [entry for entry in report.provenance.inputs if entry.role == role]
    if any(entry.path == STDIN for entry in found):
        text = f"{role.replace('_', ' ')} came from standard input, which cannot be read again: evaluate from a file"
        raise InputError.at(path, text, field="provenance.inputs")
    joined = [(entry.collection, os.path.normpath(Path(path).parent / entry.path)) for entry in found]
    for _, file in joined:
        _check_ordinary(file)
    return [f"{name}={file}" if name else file for name, file in joined]


def _check_ordinary(path: str) -> None:
    """Raise InputError for what is there and is no file: a pipe would be waited for. What is missing its reader tells."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - the path is any text
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError.at(quoted(path), f"cannot be read: {error.strerror}") from None
    if not is_file:
        raise InputError.at(path, "is no ordinary file, and cannot be read again: evaluate from a file")
