"""`tripos fan-out`: the reference multi-collection system over every corpus judgment's question."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.cli.options import AllErrors, AllowExtra, ConfigFile, Fragments
from tripos.errors import UsageError

if TYPE_CHECKING:
    from tripos.contracts.config import Config


class Latency(StrEnum):
    """Where clock readings go."""

    INLINE = "inline"
    NONE = "none"


def fan_out(
    fragments: Fragments = None,
    judgments: Annotated[str | None, typer.Option(help="Corpus judgments, whose questions are asked.")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Corpus results; - is standard output.")] = None,
    config: ConfigFile = None,
    router: Annotated[str | None, typer.Option(help="hits, names or all; search.fan_out in the config has more.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Fragments handed on. [default: limit]")] = None,
    latency: Annotated[Latency, typer.Option(help="Clock readings in the rows, or none.")] = Latency.INLINE,
    lenient: Annotated[bool, typer.Option("--lenient", help="Drop unknown fields, counted.")] = False,
    allow_extra: AllowExtra = False,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> int:
    """Route, fan out, merge and expand every question, and write corpus results.

    The embedded reference system: lexical search of each collection, routing by best hits or by words, reciprocal rank
    fusion, expansion along metadata links. Only the questions reach it. Exit code 6: written, but it failed on some question.
    """
    from tripos.cli.settings import settle

    flags = {
        "fragments": fragments,
        "judgments.corpus": judgments,
        "corpus.results": output,
        "search.fan_out.router": router,
        "depth.top_k": top_k,
    }
    settings = settle(config, flags).config
    if not settings.search.mode:
        settings = settings.model_copy(update={"search": settings.search.model_copy(update={"mode": "lexical"})})
    return _run(settings, latency is Latency.INLINE, quiet, {"lenient": lenient, "allow_extra": allow_extra})


def _run(config: Config, timed: bool, quiet: bool, reading: dict[str, bool]) -> int:
    from tripos.cli.progress import Progress
    from tripos.errors import ExitCode, Findings
    from tripos.files.jsonl import write_rows
    from tripos.search.fan_batch import read_fan_out, results_of

    target = _target(config)
    findings, progress = Findings(), Progress("queries", quiet=quiet)
    batch = read_fan_out(config, findings, **reading)
    failed: list[str] = []
    n = write_rows(target, results_of(batch, failed, timed=timed, progress=progress))
    progress.clear()
    if not quiet:
        where = "standard output" if target == "-" else target
        print(f"{n} queries over {len(batch.system.collections)} collections → {where}", file=sys.stderr)
        if failed:
            print(f"incomplete: failed on {failed[0]} and {len(failed) - 1} more: see error in its row", file=sys.stderr)
    return ExitCode.INCOMPLETE if failed else ExitCode.PASSED


def _target(config: Config) -> str:
    """The output, which must replace no input."""
    from tripos.files.retrieval import split_name

    target = config.corpus.results
    if not target:
        raise UsageError("no output: name the file for the corpus results with --output (- is standard output)")
    inputs = [split_name(path)[1] for path in config.fragments] + [config.judgments.corpus or ""]
    if target != "-" and any(path and Path(path).resolve() == Path(target).resolve() for path in inputs):
        raise UsageError(f"{target} is an input of this command: a search never replaces what it reads")
    return target
