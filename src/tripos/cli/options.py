"""Options that several commands share: one wording, one place."""

from __future__ import annotations

import enum
from typing import Annotated

import typer


class Scope(enum.StrEnum):
    """What the run is for."""

    full = "full"
    integration = "integration"


class Unit(enum.StrEnum):
    """What a position counts."""

    fragment = "fragment"
    source = "source"


class Completeness(enum.StrEnum):
    """How complete the judgments are."""

    known_item = "known_item"
    pooled = "pooled"
    exhaustive = "exhaustive"


class AclDefault(enum.StrEnum):
    """Who reads a fragment without acl."""

    public = "public"
    deny = "deny"


class Order(enum.StrEnum):
    """What decides the order of a list."""

    strict = "strict"
    list = "list"
    score = "score"
    trec = "trec"


class Duplicates(enum.StrEnum):
    """What a repeated fragment is."""

    error = "error"
    keep_first = "keep-first"


class Split(enum.StrEnum):
    """Which rows are scored."""

    all = "all"
    tune = "tune"
    holdout = "holdout"


Fragments = Annotated[list[str] | None, typer.Option(help="Corpus file, or NAME=FILE to set its collection. Repeats.")]
OwnFragments = Annotated[
    list[str] | None,
    typer.Option(help="Corpus file, instead of the report's own. NAME=FILE sets its collection. Repeats."),
]
RetrievalJudgments = Annotated[str | None, typer.Option(help="Reviewed retrieval judgments.")]
RetrievalMode = Annotated[str | None, typer.Option(help="lexical, dense, hybrid, or your own name.")]
ConfigFile = Annotated[str | None, typer.Option(help="A YAML or TOML file; flags win over it.")]
LayerName = Annotated[str | None, typer.Option(help="Name shown on the report. [default: the retrieval report's]")]
Limit = Annotated[int | None, typer.Option(help="Results considered for each query. [default: 50]")]
TopK = Annotated[int | None, typer.Option(help="Results handed on to the generator. [default: limit]")]
PositionUnit = Annotated[Unit | None, typer.Option(help="What a position counts. [default: fragment]")]
WhoReads = Annotated[AclDefault | None, typer.Option(help="Who reads a fragment without acl.")]
HowComplete = Annotated[Completeness | None, typer.Option(help="How complete the judgments are. [default: known_item]")]
OneSplit = Annotated[Split, typer.Option(help="Score the rows of one split alone.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Accept what a first look may accept, counted; cannot certify.")]
AllowExtra = Annotated[bool, typer.Option("--allow-extra", help="Put unknown fields under metadata.")]
AllowIncomplete = Annotated[bool, typer.Option("--allow-incomplete", help="Missing results fail no gate of their own.")]
AllErrors = Annotated[bool, typer.Option("--all-errors", help="Show every error, not the first 20.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
PrintConfig = Annotated[bool, typer.Option("--print-config", help="Show each setting and where it came from, and stop.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
StoreFolder = Annotated[
    str | None,
    typer.Option("--store", help="Folder of the run history; the run is kept there. [default: with --config, its store]"),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Keep this run out of the history.")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="A name for this execution in the history. Repeats.")]
