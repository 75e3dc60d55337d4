"""Flags, file and defaults, settled into one configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tripos.contracts.config import Config, merged, origins
from tripos.errors import ConfigError, UsageError
from tripos.files.configs import build_config, read_config, with_run
from tripos.files.streams import only_one_stdin

_COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration, and each setting with its origin."""

    config: Config
    rows: list[tuple[str, Any, str]]


def settle(path: str | None, flags: dict[str, Any], gates: dict[str, dict[str, float]] | None = None) -> Settings:
    """Lay flags over the file over the defaults; raises ConfigError (3), or UsageError (2) where only flags are at fault."""
    file = read_config(path) if path else {}
    settings = merged(file, flags)
    if gates:
        settings["gates"] = {**settings.get("gates", {}), **gates}
    try:
        config = build_config(with_run(settings), _COMMAND_LINE)
    except ConfigError as error:
        raise UsageError("; ".join(f"{f.field}: {f.message}" for f in error.findings)) from None
    only_one_stdin([*config.fragments, config.judgments.retrieval or "", config.ranked_results or ""])
    return Settings(config, origins(config, file, flags))


def gate_flags(under: Sequence[str] | None, over: Sequence[str] | None) -> dict[str, dict[str, float]]:
    """Gates from `MEASURE=NUMBER` flags; raises UsageError for what is none, or is given twice."""
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
    return gates
