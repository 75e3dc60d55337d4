"""What commands over several runs share: options, where runs are looked for, and names told as they were typed."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from tripos.across.named import Places
    from tripos.contracts.config import Config
    from tripos.contracts.explanation import Layer

FULL, PINS = "engagement/full", "baseline.yaml"


class OneLayer(enum.StrEnum):
    """A layer."""

    retrieval = "retrieval"
    generation = "generation"
    corpus = "corpus"


ConfigPlaces = Annotated[str | None, typer.Option("--config", help="A YAML or TOML file that names the store and the run.")]
StoreFolder = Annotated[
    str | None, typer.Option("--store", help="Folder of the run history. [default: the config's, else engagement/store]")
]
WhichLayer = Annotated[
    OneLayer | None, typer.Option("--layer", help="Which reports of a folder. [default: the first that all runs have]")
]
Measures = Annotated[list[str] | None, typer.Option("--measure", help="This measure, e.g. ndcg@10. Repeats.")]
Cutoffs = Annotated[str | None, typer.Option("--cutoffs", help="Cutoffs of the curves. [default: top K, or 10 if beyond 20]")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def configured(path: str | None) -> Config:
    """The configuration in a file, or the defaults."""
    from tripos.contracts.config import Config
    from tripos.files.configs import load_config

    return load_config(path) if path else Config()


def places(path: str | None, config: Config, store: str | None) -> Places:
    """Where runs are looked for, from --config and --store."""
    from tripos.across.named import Places
    from tripos.store.layout import DEFAULT

    return Places(store=store or config.store or DEFAULT, run=config.run or FULL, pins=pins(path))


def pins(path: str | None) -> str:
    """The file of pinned runs: beside the configuration."""
    return str((Path(path).parent if path else Path("configs")) / PINS)


def chosen_layer(layer: OneLayer | None, runs: Sequence[str], where: Places) -> Layer:
    """The layer asked for, else the first that all the runs have."""
    from tripos.across.named import common_layer, parts

    if layer is not None:
        return layer.value
    return common_layer([part for text in runs for part in parts(text)], where)


def numbers(text: str | None) -> list[int]:
    """Cutoffs from a list with commas; raises UsageError."""
    try:
        found = [int(part) for part in text.split(",")] if text else []
    except ValueError:
        found = [0]
    if any(k < 1 for k in found):
        raise UsageError(f'--cutoffs "{text}": whole numbers with commas between are expected, e.g. 1,5,10')
    return found


@contextlib.contextmanager
def told_as_usage() -> Iterator[None]:
    """Names of measures come from flags here: what is wrong with one is a usage error."""
    try:
        yield
    except ConfigError as error:
        raise UsageError("; ".join(finding.message for finding in error.findings)) from None
