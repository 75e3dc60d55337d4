"""`tripos search`: the corpus, every judged query, ranked results."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tripos.cli.options import AllErrors, WhoReads
from tripos.cli.progress import Progress
from tripos.errors import ExitCode, Findings, UsageError, quoted

if TYPE_CHECKING:
    from tripos.contracts.base import Scalar
    from tripos.contracts.config import Config, SearchConfig
    from tripos.search.batch import Batch, Outcome
    from tripos.search.batch import Latency as LatencyMode
    from tripos.search.protocol import Factory

_MAX_WARNINGS = 5
_MAX_INT = 2**53


class Latency(StrEnum):
    """Where clock readings go."""

    FILE = "file"
    INLINE = "inline"
    NONE = "none"


def search(
    fragments: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="Corpus; NAME is its collection; repeat.")
    ] = None,
    judgments: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Rows whose queries are searched; repeat.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Ranked results; - is stdout.")] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="YAML or TOML; flags override it.")] = None,
    mode: Annotated[str | None, typer.Option(help="Name of the search in the policy; embedded is lexical (default).")] = None,
    lexical: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="BM25: k1, b, method, stopwords or stemmer; repeat.")
    ] = None,
    searcher: Annotated[
        str | None, typer.Option(metavar="MODULE:FACTORY", help="Your own: called with (corpus, policy), returns a Searcher.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Results a query; default 50.")] = None,
    acl_default: WhoReads = None,
    latency: Annotated[
        Latency | None, typer.Option(help="Clock readings: timings.jsonl beside the output (default), in the rows, or none.")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Drop unknown fields, counted.")] = False,
    allow_extra: Annotated[bool, typer.Option("--allow-extra", help="Move unknown fields under metadata, counted.")] = False,
    all_errors: AllErrors = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, warnings or summary.")] = False,
) -> None:
    """Search the corpus with every judged query and write ranked results.

    Only the questions reach the search, never what is expected of it. All rows that are not rejected are asked, drafts and
    calibration rows too. Exit code 6: written, but the search failed on some query.
    """
    from tripos.cli.settings import settle
    from tripos.search.batch import Inputs, check_output, read, run

    del all_errors  # read where errors are told
    start = time.monotonic()
    flags = {
        "fragments": fragments,
        "acl_default": acl_default and acl_default.value,
        "search.mode": mode,
        "depth.limit": limit,
    }
    settings = settle(config, flags | _parameters(lexical or [])).config
    policy, factory = _policy(settings.search, searcher)
    target = _output(output, settings)
    inputs = Inputs(*_sources(settings, judgments), settings.acl_default, lenient, allow_extra)
    clock = cast("LatencyMode", latency or (Latency.NONE if target == "-" else Latency.FILE))
    check_output(target, clock, inputs)

    findings = Findings()
    batch = read(inputs, findings)
    shown, total = Progress("queries", quiet=quiet), len(batch.queries)
    name = searcher or "lexical"
    outcome = run(
        batch,
        factory,
        policy,
        target,
        limit=settings.depth.limit,
        latency=clock,
        name=name,
        progress=lambda done: shown(done, total),
    )
    if not quiet:
        _warn(findings)
        _summarise(outcome, batch, target, time.monotonic() - start)
    if outcome.failed:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _policy(stated: SearchConfig, searcher: str | None) -> tuple[SearchConfig, Factory]:
    """The policy as stated, its mode filled in, and who makes the search."""
    from tripos.search.registry import embedded, plugged

    policy = stated if stated.mode else stated.model_copy(update={"mode": searcher or "lexical"})
    return policy, plugged(searcher) if searcher else embedded(policy.mode)


def _output(output: str | None, settings: Config) -> str:
    if chosen := output or settings.ranked_results:
        return chosen
    raise UsageError("no output: name the file for the ranked results with --output (- is standard output)")


def _sources(settings: Config, judgments: list[str] | None) -> tuple[list[str], list[str]]:
    """Files of the corpus and of the judgments."""
    configured = settings.judgments.retrieval
    rows = judgments or ([configured] if configured else [])
    if not settings.fragments:
        raise UsageError("no corpus: name it with --fragments FILE")
    if not rows:
        raise UsageError("no queries: name the rows that hold them with --judgments FILE")
    return list(settings.fragments), rows


def _parameters(arguments: list[str]) -> dict[str, Scalar]:
    return {f"search.lexical.{key}": value for key, value in map(_pair, arguments)}


def _pair(argument: str) -> tuple[str, Scalar]:
    """`KEY=VALUE`; a value that is a JSON number, true or false is that, anything else a string."""
    import orjson

    key, separator, text = argument.partition("=")
    if not (separator and key and text):
        raise UsageError(f'--lexical "{quoted(argument)}": write KEY=VALUE, e.g. k1=0.9')
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return key, text
    if not isinstance(value, str | bool | int | float) or (isinstance(value, int) and abs(value) >= _MAX_INT):
        raise UsageError(f'--lexical "{quoted(argument)}": the value must be a string, a number, true or false')
    return key, value


def _warn(findings: Findings) -> None:
    for finding in findings.warnings[:_MAX_WARNINGS]:
        print(f"warning: {finding}", file=sys.stderr)
    if (rest := findings.n_warnings - _MAX_WARNINGS) > 0:
        print(f"… {rest:,} more warnings", file=sys.stderr)
    for kind, n in sorted(findings.let_pass.items()):
        print(f"let pass: {n:,} {kind.replace('_', ' ')}", file=sys.stderr)


def _summarise(outcome: Outcome, batch: Batch, target: str, seconds: float) -> None:
    queries, results = _counted(outcome.queries, "query", "queries"), _counted(outcome.results, "result", "results")
    print(f"{queries}, {results} → {'standard output' if target == '-' else target} ({seconds:.1f} s)", file=sys.stderr)
    skipped = {"without query text": batch.without_text, "rejected": batch.rejected}
    if told := [f"{n:,} {why}" for why, n in skipped.items() if n]:
        print(f"not searched: {', '.join(told)}", file=sys.stderr)
    if failed := outcome.failed:
        more = f" and {len(failed) - 1:,} more" if len(failed) > 1 else ""
        print(f"incomplete: the search failed on {quoted(failed[0])}{more}: see error in its row", file=sys.stderr)


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _silent(_done: int) -> None:
    pass
