"""Regenerate what derives from the code: schemas/, docs/measures.md, docs/commands.md. Tests hold the files to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import orjson

from tripos.contracts.schemas import schemas
from tripos.measures.retrieval import RETRIEVAL
from tripos.report.describe import measures_markdown

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- generated: make docs -->\n", "<!-- end of generated -->\n"


def generated() -> dict[str, str]:
    """Content of every generated file, by path from the root; documents keep the prose around their generated part."""
    files = {f"schemas/{name}.schema.json": _json(schema) for name, schema in schemas().items()}
    files["docs/measures.md"] = _within("docs/measures.md", measures_markdown(RETRIEVAL.values()))
    files["docs/commands.md"] = _within("docs/commands.md", commands())
    return files


def _json(schema: object) -> str:
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _within(path: str, text: str) -> str:
    before, _, rest = (ROOT / path).read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def commands() -> str:
    """Every command's help, as the terminal shows it at 100 columns."""
    os.environ.update(COLUMNS="100", TERMINAL_WIDTH="100", NO_COLOR="1")
    from typer.main import get_command
    from typer.testing import CliRunner

    from tripos.cli.app import app

    runner, parts = CliRunner(), []
    for words in _paths(get_command(app)):
        result = runner.invoke(app, [*words, "--help"], prog_name="tripos", terminal_width=100)
        parts.append(f"## tripos {' '.join(words)}\n\n```\n{result.output.strip()}\n```\n" if words else "")
    return "\n".join(part for part in parts if part)


def _paths(command: object, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [words]
    return [path for name in inner for path in _paths(inner[name], (*words, name))]


def main() -> None:
    """Write what differs."""
    for path, text in generated().items():
        target = ROOT / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
