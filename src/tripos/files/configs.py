"""Configuration files: YAML 1.2 or TOML, checked against one strict model, faults told with their line."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tripos.contracts.base import Contract
from tripos.contracts.config import Config
from tripos.errors import ConfigError, Finding, Place
from tripos.files.jsonl import explained
from tripos.files.streams import read_text

Model = TypeVar("Model", bound=Contract)

_SECTION_PATHS = {
    "judgments": ("retrieval", "generation", "corpus"),
    "generation": ("input", "answers", "retrieval_report", "approved_judges"),
    "corpus": ("results", "retrieval_report"),
    "certification": ("approved_judges",),
}
_PATHS = ("ranked_results", "timings", "run", "store")


def read_config(path: str) -> dict[str, Any]:
    """The file's settings, validated; paths in it are made relative to the working folder instead of the file.

    YAML is read by version 1.2: `no` is a string, `1e3` a number, 1:30 a string, and a key given twice is an error.
    Raises ConfigError with every fault and its line.
    """
    value, _ = _read(path, Config)
    return _from_here(value, Path(path).parent)


def read_model(path: str, model: type[Model]) -> Model:
    """A file of settings of another kind, by the same rules."""
    return _read(path, model)[1]


def _read(path: str, model: type[Model]) -> tuple[dict[str, Any], Model]:
    text = read_text(path)
    value, lines = _toml(path, text) if path.endswith(".toml") else _yaml(path, text)
    if not isinstance(value, dict):
        raise ConfigError.at(path, "holds no settings: a mapping of keys is expected")
    try:
        return value, model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(_findings(error, path, lines, model)) from None


def key_line(path: str, dotted: str) -> int:
    """The line of a key of a YAML file; 0 where it is not to be told."""
    lines = {} if path.endswith(".toml") else _yaml(path, read_text(path))[1]
    return next((lines[key] for key in _ancestors(dotted) if key in lines), 0)


def load_config(path: str) -> Config:
    """The configuration in a file, with the run folder's own files filled in; raises ConfigError with all that is wrong."""
    return build_config(with_run(read_config(path)), path)


def with_run(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with the files of the run folder where they are not given."""
    if run := settings.get("run"):
        settings = {**settings, "generation": _with_run(settings, Path(run))}
        settings = {"ranked_results": str(Path(run) / "ranked-results.jsonl"), **settings}
        if (beside := Path(run) / "timings.jsonl").is_file():
            settings = {"timings": str(beside), **settings}
        settings = {**settings, "corpus": _corpus_with_run(settings, Path(run))}
        settings = {"store": os.path.normpath(Path(run).parent / "store"), **settings}
    return settings


def _with_run(settings: dict[str, Any], run: Path) -> Any:
    """The generation section with its input and its retrieval report."""
    own = settings.get("generation", {})
    if not isinstance(own, dict):
        return own
    judgments = settings.get("judgments")
    is_split = "answers" in own or (isinstance(judgments, dict) and judgments.get("generation"))
    named = {} if is_split else {"input": str(run / "generation-input.jsonl")}
    return {**named, "retrieval_report": str(run / "retrieval" / "report.json"), **own}


def _corpus_with_run(settings: dict[str, Any], run: Path) -> Any:
    """The corpus section with its results and its retrieval report."""
    own = settings.get("corpus", {})
    if not isinstance(own, dict):
        return own
    named = {"results": str(run / "corpus-results.jsonl"), "retrieval_report": str(run / "retrieval" / "report.json")}
    return {**named, **own}


def build_config(settings: dict[str, Any], where: str) -> Config:
    """The model of merged settings; raises ConfigError naming `where` (the file, or the command line)."""
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(_findings(error, where, {})) from None


def _findings(error: ValidationError, path: str, lines: dict[str, int], model: type[Contract] = Config) -> list[Finding]:
    found = []
    for kind, field, message in explained(error, model):
        line = next((lines[f] for f in _ancestors(field.strip("[]")) if f in lines), 0)
        found.append(Finding(kind, message, Place(path, line), field))
    return sorted(found, key=lambda f: f.place)


def _ancestors(field: str) -> list[str]:
    parts = field.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _yaml(path: str, text: str) -> tuple[Any, dict[str, int]]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    parser = YAML(typ="safe", pure=True)
    try:
        tree = parser.compose(text)
        return parser.load(text), _lines(tree) if tree is not None else {}
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        said = (error.problem or str(error)).splitlines()[0]
        raise ConfigError.at(path, f"is no YAML: {said}", line=line) from None
    except RecursionError:
        raise ConfigError.at(path, "is nested too deeply") from None
    except YAMLError as error:
        raise ConfigError.at(path, f"is no YAML: {str(error).splitlines()[0]}") from None


def _lines(node: Any, prefix: str = "") -> dict[str, int]:
    """Line of each key, by dotted path."""
    found: dict[str, int] = {}
    if isinstance(node.value, list) and node.id == "mapping":
        for key, value in node.value:
            name = f"{prefix}.{key.value}" if prefix else str(key.value)
            found[name] = key.start_mark.line + 1
            found |= _lines(value, name)
    return found


def _toml(path: str, text: str) -> tuple[Any, dict[str, int]]:
    try:
        return tomllib.loads(text), {}
    except tomllib.TOMLDecodeError as error:
        raise ConfigError.at(path, f"is no TOML: {error}") from None
    except RecursionError:
        raise ConfigError.at(path, "is nested too deeply") from None


def _from_here(value: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths of the file, seen from the working folder."""

    def moved(path: str) -> str:
        name, separator, rest = path.partition("=")
        if separator and "/" not in name:
            return f"{name}={_joined(folder, rest)}"
        return _joined(folder, path)

    result = dict(value)
    for key in _PATHS:
        if isinstance(result.get(key), str):
            result[key] = _joined(folder, result[key])
    if "fragments" in result:
        result["fragments"] = [moved(path) for path in result["fragments"]]
    for section, keys in _SECTION_PATHS.items():
        if isinstance(given := result.get(section), dict):
            seen = {key: _joined(folder, given[key]) for key in keys if isinstance(given.get(key), str)}
            result[section] = {**given, **seen}
    return result


def _joined(folder: Path, path: str) -> str:
    """`folder/path` with the ".." steps taken out where that is safe; "-" stays standard input."""
    return path if path == "-" else os.path.normpath(folder / path)
