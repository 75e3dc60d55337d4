"""Regenerate what derives from the code: schemas/ and parts of docs/. Tests hold the files to it."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import orjson
from pydantic import BaseModel

from tripos.certify.checks import every_check
from tripos.contracts.baseline import Pin
from tripos.contracts.config import (
    CertificationConfig,
    Config,
    CorpusConfig,
    DepthConfig,
    ExpansionPolicy,
    FanOutPolicy,
    GateConfig,
    JudgmentsConfig,
    SearchConfig,
)
from tripos.contracts.corpus import CorpusJudgment, CorpusResult, Expansion, FanOut, FanOutHit, Relationship
from tripos.contracts.fragments import Fragment
from tripos.contracts.judges import ApprovedJudge
from tripos.contracts.retrieval import ColumnarResults, FlatResult, NestedResults, ResultItem, RetrievalJudgment, Timing
from tripos.contracts.schemas import schemas
from tripos.measures.layers import titles
from tripos.report.describe import listed_by_layer
from tripos.report.history import render_tables

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- generated: make docs -->\n", "<!-- end of generated -->\n"


def generated() -> dict[str, str]:
    """Content of every generated file, by path from the root; documents keep the prose around their generated part."""
    files = {f"schemas/{name}.schema.json": _json(schema) for name, schema in schemas().items()}
    files["docs/measures.md"] = _within("docs/measures.md", listed_by_layer(titles(), markdown=True))
    files["docs/commands.md"] = _within("docs/commands.md", commands())
    files["docs/files.md"] = _within("docs/files.md", fields())
    files["docs/certification.md"] = _within("docs/certification.md", checks())
    files["docs/store.md"] = _within("docs/store.md", render_tables(markdown=True))
    return files


def fields() -> str:
    """A table of fields for each file that users write."""
    models: dict[str, type[BaseModel]] = {
        "fragments": Fragment,
        "retrieval judgments": RetrievalJudgment,
        "ranked results, nested": NestedResults,
        "a result of a nested row": ResultItem,
        "ranked results, columnar": ColumnarResults,
        "ranked results, flat": FlatResult,
        "timings": Timing,
        "corpus judgments": CorpusJudgment,
        "corpus results": CorpusResult,
        "corpus results: a fan-out": FanOut,
        "corpus results: a result of a fan-out": FanOutHit,
        "corpus results: expansion": Expansion,
        "a relationship": Relationship,
        "configuration": Config,
        "configuration: judgments": JudgmentsConfig,
        "configuration: search": SearchConfig,
        "configuration: depth": DepthConfig,
        "configuration: corpus": CorpusConfig,
        "configuration: search.fan_out": FanOutPolicy,
        "configuration: search.fan_out.expansion": ExpansionPolicy,
        "configuration: a gate": GateConfig,
        "baseline: a pinned run": Pin,
        "approved judges: a judge": ApprovedJudge,
        "configuration: certification": CertificationConfig,
    }
    return "\n".join(_fields(title, model) for title, model in models.items())


def _fields(title: str, model: type[BaseModel]) -> str:
    rows = [
        f"| `{field.alias or name}` | {'required' if field.is_required() else 'optional'} | {_cell(field.description)} |"
        for name, field in model.model_fields.items()
    ]
    return "\n".join([f"### {title}", "", "| field | | meaning |", "|---|---|---|", *rows, ""])


def checks() -> str:
    """A table of what is checked, in the order in which it is told."""
    rows = [f"| `{check.id}` | {_cell(check.sentence)} | {int(check.exit_code)} |" for check in every_check()]
    return "\n".join(["| check | what must hold | exit code |", "|---|---|---|", *rows, ""])


def _json(schema: object) -> str:
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _within(path: str, text: str) -> str:
    before, _, rest = (ROOT / path).read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def commands() -> str:
    """Every command's help and options, laid out here so that no library release changes the file."""
    from typer.main import get_command

    from tripos.cli.app import app

    root = get_command(app)
    return "\n".join(_section(words, _find(root, words)) for words in _paths(root))


def _section(words: tuple[str, ...], command: Any) -> str:
    hints = get_type_hints(command.callback)
    rows = [f"| {_names(p)}{_choices(hints.get(p.name))} | {_cell(p.help)} |" for p in command.params]
    text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    return "\n".join([f"## tripos {' '.join(words)}", "", text, "", "| option | meaning |", "|---|---|", *rows, ""])


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in parameter.opts)


def _choices(hint: Any) -> str:
    """The values of an option whose type is an enumeration."""
    kinds = [t for t in (hint, *get_args(hint)) if isinstance(t, type) and issubclass(t, enum.Enum)]
    return "".join(" " + " \\| ".join(str(member.value) for member in kind) for kind in kinds)


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def _find(command: Any, words: tuple[str, ...]) -> Any:
    for word in words:
        command = command.commands[word]
    return command


def _paths(command: object, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [words]
    own = [words] if words and getattr(command, "invoke_without_command", False) else []
    return own + [path for name in inner for path in _paths(inner[name], (*words, name))]


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
