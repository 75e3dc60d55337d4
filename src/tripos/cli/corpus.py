"""`tripos eval-corpus`: parse, call, print, exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from tripos.cli.options import (
    AllErrors,
    AllowExtra,
    AllowIncomplete,
    AsJson,
    ConfigFile,
    Fragments,
    Labels,
    LayerName,
    Lenient,
    NoStore,
    OneSplit,
    PositionUnit,
    PrintConfig,
    Quiet,
    Split,
    StoreFolder,
    WhoReads,
)

_REPORT, _MISSES = "corpus-report.json", "corpus-misses.jsonl"


def eval_corpus(
    judgments: Annotated[str | None, typer.Option(help="Reviewed corpus judgments: collections and sources.")] = None,
    results: Annotated[str | None, typer.Option(help="What the system did: routing, fan-out, merge, expansion.")] = None,
    fragments: Fragments = None,
    retrieval_report: Annotated[
        str | None, typer.Option(help="The retrieval report that the results are bound to; without one: unbound.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="Folder for corpus-report.json and corpus-misses.jsonl.")] = None,
    config: ConfigFile = None,
    name: LayerName = None,
    top_k: Annotated[int | None, typer.Option(help="Fragments handed on; must be the retrieval report's.")] = None,
    unit: PositionUnit = None,
    acl_default: WhoReads = None,
    split: OneSplit = Split.all,
    fail_under: Annotated[list[str] | None, typer.Option(help="Gate, e.g. kept_final=0.9. Repeats.")] = None,
    fail_over: Annotated[list[str] | None, typer.Option(help="Gate, e.g. lost_by_routing=0.05. Repeats.")] = None,
    lenient: Lenient = False,
    allow_extra: AllowExtra = False,
    allow_incomplete: AllowIncomplete = False,
    all_errors: AllErrors = False,
    store: StoreFolder = None,
    no_store: NoStore = False,
    label: Labels = None,
    as_json: AsJson = False,
    print_config: PrintConfig = False,
    quiet: Quiet = False,
) -> int:
    """Did routing, fan-out, merge and expansion preserve the evidence?

    Reads corpus judgments and corpus results, writes corpus-report.json and corpus-misses.jsonl, and exits 0 passed, 1 a
    gate failed, 6 incomplete; 2 usage, 3 invalid input, 4 another configuration than the retrieval report's, 5 nothing to
    evaluate.
    """
    from tripos.cli.settings import gate_flags, settle, show_config

    flags: dict[str, Any] = {
        "name": name,
        "fragments": fragments,
        "acl_default": acl_default and acl_default.value,
        "judgments.corpus": judgments,
        "corpus.results": results,
        "corpus.retrieval_report": retrieval_report,
        "depth.top_k": top_k,
        "depth.unit": unit and unit.value,
        "store": store,
    }
    settings = settle(config, flags, gate_flags(fail_under, fail_over, "corpus"))
    if print_config:
        return show_config(settings.rows, as_json)

    from tripos.cli.storing import storing
    from tripos.contracts.config import Options

    history = storing(settings, store, no_store, label)
    options = Options(
        split=split.value,
        lenient=lenient,
        allow_extra=allow_extra,
        allow_incomplete=allow_incomplete,
        all_errors=all_errors,
    )
    folder = _folder(output, settings.config.run)
    return _evaluate(settings.config, options, folder, history, as_json=as_json, quiet=quiet)


def _folder(output: str | None, run: str | None) -> Path | None:
    from tripos.files.streams import writable_folder

    where = output or (run and str(Path(run) / "corpus"))
    return writable_folder(where) if where else None


def _evaluate(config: Any, options: Any, folder: Path | None, history: Any, *, as_json: bool, quiet: bool) -> int:
    from tripos.cli.progress import Progress
    from tripos.cli.settings import relative
    from tripos.cli.storing import stored
    from tripos.files.streams import only_one_stdin
    from tripos.runners.corpus import evaluate, inputs_of

    only_one_stdin(inputs_of(config))
    progress = Progress("queries", quiet=quiet)
    outcome = evaluate(config, options, paths=relative(inputs_of(config), folder), progress=progress)
    progress.clear()
    for finding in outcome.findings.warnings[:20]:
        print(f"warning: {finding}", file=sys.stderr)
    written = _write(outcome, folder)
    with stored(history, lambda own: own.corpus(outcome, config), quiet=quiet):
        _show(outcome.report, written, as_json)
    return int(outcome.report.verdict.exit_code)


def _write(outcome: Any, folder: Path | None) -> list[str]:
    from tripos.files.jsonl import dump_line
    from tripos.files.reports import plain, write_lines_together

    if folder is None:
        return []
    lines: dict[str | Path, Iterable[bytes]] = {_MISSES: (dump_line(plain(miss)) for miss in outcome.misses)}
    return write_lines_together(folder, (_REPORT, outcome.report), lines)


def _show(report: Any, written: list[str], as_json: bool) -> None:
    if as_json:
        from tripos.files.reports import dump_report

        sys.stdout.write(dump_report(report).decode())
    else:
        from tripos.report.corpus import render_corpus

        sys.stdout.write(render_corpus(report, written))
    sys.stdout.flush()
