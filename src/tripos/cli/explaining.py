"""`tripos explain`: where the failed queries of a run were lost, or one query's story."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.cli.options import AllErrors
from tripos.errors import UsageError

if TYPE_CHECKING:
    from tripos.contracts.base import Contract
    from tripos.contracts.explanation import Layer

_FULL = "engagement/full"


def explain(
    query_id: Annotated[str | None, typer.Argument(help="Tell this query's story; default: the account of all.")] = None,
    run: Annotated[str | None, typer.Option(help=f"Folder of the run. [default: the config's, else {_FULL}]")] = None,
    config: Annotated[str | None, typer.Option(help="A YAML or TOML file that names the run.")] = None,
    retrieval_report: Annotated[str | None, typer.Option(help="Instead of RUN/retrieval/report.json.")] = None,
    generation_report: Annotated[str | None, typer.Option(help="Instead of RUN/generation/generation-report.json.")] = None,
    corpus_report: Annotated[str | None, typer.Option(help="Instead of RUN/corpus/corpus-report.json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
) -> int:
    """Where was each failed query lost?

    Reads the reports of one fingerprint, the misses beside them and the inputs they name, and charges every failed query to
    one place, so that the shares add up to the failures. With QUERY_ID, tells one query's story through all layers, and what
    would have kept it. Exits 3 invalid input, 4 reports of different configurations.
    """
    from tripos.errors import Findings

    given: dict[Layer, str | None] = {
        "retrieval": retrieval_report,
        "generation": generation_report,
        "corpus": corpus_report,
    }
    paths = _paths(given, run, config)
    from tripos.across.runs import load_run

    loaded, findings = load_run(paths), Findings()
    if query_id is None:
        from tripos.across.explain import explain as account
        from tripos.report.explain import render_explanation

        found = account(loaded, findings)
        where = f" --config {config}" if config else f" --run {run}" if run else ""
        return _show(found, render_explanation(found, where), as_json)
    from tripos.across.stories import story
    from tripos.report.explain import render_story

    told = story(loaded, query_id, findings)
    return _show(told, render_story(told), as_json)


def _paths(given: dict[Layer, str | None], run: str | None, config: str | None) -> dict[Layer, str]:
    """The reports: as named, else those of the run folder; raises UsageError without a retrieval report."""
    from tripos.across.runs import found_in

    stated = {layer: path for layer, path in given.items() if path}
    folder = run or _configured(config) or (None if stated else _FULL)
    paths = {**(found_in(folder) if folder else {}), **stated}
    if "retrieval" not in paths:
        where = f"in {folder}" if folder else "given"
        raise UsageError(
            f"no retrieval report {where}: evaluate first, or name the run with --run, --config or --retrieval-report"
        )
    return paths


def _configured(config: str | None) -> str | None:
    if config is None:
        return None
    from tripos.files.configs import load_config

    run = load_config(config).run
    if run is None:
        raise UsageError(f"{config} names no run: name it with --run, or the reports one by one")
    return run


def _show(found: Contract, text: str, as_json: bool) -> int:
    if as_json:
        from tripos.files.reports import dump_report

        text = dump_report(found).decode()
    sys.stdout.write(text)
    sys.stdout.flush()
    return 0
