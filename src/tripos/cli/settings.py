"""Flags, file and defaults, settled into one configuration."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tripos.contracts.config import Config, GateConfig, merged, origins
from tripos.errors import ConfigError, UsageError
from tripos.files.configs import build_config, key_line, read_config, with_run
from tripos.files.streams import only_one_stdin

_COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration, and each setting with its origin."""

    config: Config
    rows: list[tuple[str, Any, str]]
    path: str | None
    flag_gates: frozenset[str]

    @contextlib.contextmanager
    def gates_told(self) -> Iterator[None]:
        """Tell what is wrong with a gate where it was given: by its flag (2), or at its line of the file (3)."""
        try:
            yield
        except ConfigError as error:
            finding = error.findings[0]
            name = finding.field.removeprefix("gates.")
            if name in self.flag_gates or self.path is None:
                raise UsageError(f"gate {finding.message}") from None
            line = key_line(self.path, finding.field)
            raise ConfigError.at(self.path, finding.message, line=line, field=finding.field, kind="gate") from None


def settle(path: str | None, flags: dict[str, Any], gates: dict[str, dict[str, float]] | None = None) -> Settings:
    """Lay flags over the file over the defaults; raises ConfigError (3), or UsageError (2) where only flags are at fault."""
    if empty := next((key for key, value in flags.items() if value == ""), None):
        raise UsageError(f"--{empty.split('.')[-1].replace('_', '-')} is empty: give a value, or leave it out")
    file = read_config(path) if path else {}
    settings = merged(file, flags)
    if gates:
        settings["gates"] = {**settings.get("gates", {}), **gates}
    try:
        config = build_config(with_run(settings), _COMMAND_LINE)
    except ConfigError as error:
        raise UsageError("; ".join(f"{f.field}: {f.message}" for f in error.findings)) from None
    only_one_stdin([*config.fragments, config.judgments.retrieval or "", config.ranked_results or ""])
    settled = Settings(config, origins(config, file, flags, gates or {}), path, frozenset(gates or ()))
    with settled.gates_told():
        _check_gates(config)
    return settled


def _check_gates(config: Config) -> None:
    if config.gates:
        from tripos.measures.layers import check_gate

        for name, gate in config.gates.items():
            check_gate(name, gate, config.depth.limit)


def gate_flags(under: Sequence[str] | None, over: Sequence[str] | None, layer: str) -> dict[str, dict[str, float]]:
    """Gates from `MEASURE=NUMBER` flags; raises UsageError for what is none, is given twice, or is another layer's."""
    gates: dict[str, dict[str, float]] = {}
    for bound, texts in (("min", under), ("max", over)):
        for text in texts or ():
            name, separator, number = text.partition("=")
            try:
                value = float(number)
            except ValueError:
                value = float("nan")
            if not separator or not math.isfinite(value):
                raise UsageError(f'gate "{text}": MEASURE=NUMBER is expected, e.g. hit@10=0.9')
            if name in gates:
                raise UsageError(f'gate "{name}" is given twice')
            gates[name] = {bound: value}
            _of_this_layer(name, layer)
    return gates


def _of_this_layer(name: str, layer: str) -> None:
    """In a configuration each layer takes its own gates; a flag that this layer would pass over is a mistake."""
    from tripos.measures.layers import owners

    others = owners(name, GateConfig(min=0))
    if others and layer not in others:
        raise UsageError(f'gate "{name}" is a measure of eval-{others[0]}: give it there, or under gates in the configuration')


def show_config(rows: Sequence[tuple[str, Any, str]], as_json: bool) -> int:
    """Print every setting with its origin; returns the exit code."""
    import orjson

    if as_json:
        print(orjson.dumps({key: {"value": value, "from": origin} for key, value, origin in rows}).decode())
    else:
        for key, value, origin in rows:
            print(f"{key:<36}{orjson.dumps(value).decode():<44}  {origin}")
    return 0


def relative(paths: Iterable[str | None], folder: Path | None) -> dict[str, str]:
    """Input paths as seen from the report's folder, by the path given."""
    if folder is None:
        return {}
    return {path: path if path == "-" else Path(os.path.relpath(path, folder)).as_posix() for path in paths if path}
