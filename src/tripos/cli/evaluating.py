"""`tripos eval-retrieval`: parse, call, print, exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tripos.cli.against import Baseline, MrrDrop, NdcgDrop, RecallDrop, against
from tripos.cli.options import (
    AllErrors,
    AllowExtra,
    AllowIncomplete,
    AsJson,
    ConfigFile,
    Duplicates,
    Fragments,
    HowComplete,
    Labels,
    Lenient,
    Limit,
    NoStore,
    OneSplit,
    Order,
    PositionUnit,
    PrintConfig,
    Quiet,
    RetrievalJudgments,
    RetrievalMode,
    Scope,
    Split,
    StoreFolder,
    TopK,
    WhoReads,
)
from tripos.errors import UsageError

if TYPE_CHECKING:
    from tripos.contracts.config import Config


REPORT, MISSES = "report.json", "misses.jsonl"


def eval_retrieval(
    fragments: Fragments = None,
    judgments: RetrievalJudgments = None,
    ranked_results: Annotated[str | None, typer.Option(help="Ranked results of the system under test.")] = None,
    timings: Annotated[str | None, typer.Option(help="Latencies by query, as tripos search writes them.")] = None,
    retrieval_mode: RetrievalMode = None,
    limit: Limit = None,
    top_k: TopK = None,
    unit: PositionUnit = None,
    min_score: Annotated[float | None, typer.Option(help="Drop results below it before any measure.")] = None,
    output: Annotated[str | None, typer.Option(help="Folder for report.json and misses.jsonl.")] = None,
    config: ConfigFile = None,
    name: Annotated[str | None, typer.Option(help="Name of the system or corpus, shown on the report.")] = None,
    scope: Annotated[
        Scope | None, typer.Option(help="integration: a small fixture that checks wiring. [default: full]")
    ] = None,
    split: OneSplit = Split.all,
    completeness: HowComplete = None,
    judgments_version: Annotated[str | None, typer.Option(help="Version of the golden set; part of the fingerprint.")] = None,
    acl_default: WhoReads = None,
    cutoffs: Annotated[str | None, typer.Option(help="Cutoffs with intervals, e.g. 1,3,10. [default: 1,5,10,20,50]")] = None,
    fail_under: Annotated[list[str] | None, typer.Option(help="Gate, e.g. hit@10=0.9. Repeats.")] = None,
    fail_over: Annotated[list[str] | None, typer.Option(help="Gate, e.g. forbidden@10=0.1. Repeats.")] = None,
    baseline: Baseline = None,
    max_recall_drop: RecallDrop = None,
    max_mrr_drop: MrrDrop = None,
    max_ndcg_drop: NdcgDrop = None,
    order: Annotated[
        Order, typer.Option(help="strict: lists must be in order; list, score or trec decides it.")
    ] = Order.strict,
    duplicates: Annotated[Duplicates, typer.Option(help="A fragment twice in one list.")] = Duplicates.error,
    lenient: Lenient = False,
    allow_extra: AllowExtra = False,
    allow_incomplete: AllowIncomplete = False,
    all_errors: AllErrors = False,
    per_query: Annotated[str | None, typer.Option(help="Also write one row a query with its figures to this file.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0: one a core for large files.")] = 0,
    memory_limit: Annotated[str | None, typer.Option(help="Memory before reading spills, e.g. 512MB. [default: 1GB]")] = None,
    store: StoreFolder = None,
    no_store: NoStore = False,
    label: Labels = None,
    as_json: AsJson = False,
    print_config: PrintConfig = False,
    quiet: Quiet = False,
) -> int:
    """Was the reviewed evidence found, and at what rank?

    Reads judgments and ranked results, writes report.json and misses.jsonl, and exits 0 passed, 1 a gate failed,
    6 incomplete; 2 usage, 3 invalid input, 4 another corpus or policy, 5 nothing to evaluate.
    """
    from tripos.cli.settings import gate_flags, settle, show_config

    flags: dict[str, Any] = {
        "name": name,
        "scope": scope and scope.value,
        "fragments": fragments,
        "acl_default": acl_default and acl_default.value,
        "judgments.retrieval": judgments,
        "judgments.version": judgments_version,
        "judgments.completeness": completeness and completeness.value,
        "ranked_results": ranked_results,
        "timings": timings,
        "search.mode": retrieval_mode,
        "search.min_score": min_score,
        "depth.limit": limit,
        "depth.top_k": top_k,
        "depth.unit": unit and unit.value,
        "store": store,
    }
    settings = settle(config, flags, gate_flags(fail_under, fail_over, "retrieval"))
    if print_config:
        return show_config(settings.rows, as_json)

    from tripos.cli.sizes import bytes_of
    from tripos.cli.storing import stored, storing
    from tripos.contracts.config import Options
    from tripos.runners.retrieval import check_gates, evaluate

    history = storing(settings, store, no_store, label)
    with settings.gates_told():
        check_gates(settings.config)
    options = Options(
        order=order.value,
        duplicates=duplicates.value,
        split=split.value,
        lenient=lenient,
        allow_extra=allow_extra,
        allow_incomplete=allow_incomplete,
        all_errors=all_errors,
        workers=workers,
        memory_limit=bytes_of(memory_limit, "--memory-limit"),
    )
    folder = _folder(output, settings.config.run)
    from tripos.cli.progress import Progress, tell_warnings

    _check_outputs(settings.config, folder, per_query, as_json, baseline)
    drops = {"recall": max_recall_drop, "mrr": max_mrr_drop, "ndcg": max_ndcg_drop}
    base = against(baseline, config, settings.config, drops)
    progress = Progress("queries", quiet=quiet)
    paths = _relative(settings.config, folder)
    outcome = evaluate(
        settings.config,
        options,
        cutoffs=_numbers(cutoffs),
        paths=paths,
        progress=progress,
        against=base,
        keep_misses=folder is not None or history is not None,
    )
    progress.clear()
    tell_warnings(outcome.findings)
    written = _write(outcome, folder, per_query)
    with stored(history, lambda own: own.retrieval(outcome, settings.config, options), quiet=quiet):
        _show(outcome, written, as_json)
    return outcome.report.verdict.exit_code


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise UsageError(f'--cutoffs "{text}": whole numbers with commas between are expected, e.g. 1,5,10') from None


def _folder(output: str | None, run: str | None) -> Path | None:
    from tripos.files.streams import writable_folder

    where = output or (run and str(Path(run) / "retrieval"))
    return writable_folder(where) if where else None


def _relative(config: Any, folder: Path | None) -> dict[str, str]:
    from tripos.cli.settings import relative
    from tripos.files.retrieval import split_name

    paths = [split_name(f)[1] for f in config.fragments] + [config.judgments.retrieval, config.ranked_results, config.timings]
    return relative(paths, folder)


def _check_outputs(
    config: Config, folder: Path | None, per_query: str | None, as_json: bool, baseline: str | None = None
) -> None:
    """Raise UsageError where outputs would replace inputs, the baseline or one another, or share one stream."""
    from tripos.files.retrieval import split_name
    from tripos.files.streams import STDOUT, check_outputs

    if per_query == STDOUT and as_json:
        raise UsageError("--per-query - and --json would both go to standard output: name a file for one of them")
    outputs = [folder / name for name in (REPORT, MISSES)] if folder else []
    inputs = [split_name(f)[1] for f in config.fragments]
    inputs += [path or "" for path in (config.judgments.retrieval, config.ranked_results, config.timings)]
    inputs += [str(path) for path in (Path(baseline), Path(baseline) / REPORT) if path.is_file()] if baseline else []
    check_outputs([*outputs, *([per_query] if per_query else [])], inputs)


def _write(outcome: Any, folder: Path | None, per_query: str | None) -> list[str]:
    from tripos.files.jsonl import dump_line
    from tripos.files.reports import write_lines_together
    from tripos.runners.retrieval import per_query_rows

    lines: dict[str | Path, Iterable[bytes]] = {MISSES: outcome.miss_lines()}
    if per_query:
        lines[Path(per_query)] = map(dump_line, per_query_rows(outcome))
    return write_lines_together(folder, (REPORT, outcome.report), lines)[:2] if folder or per_query else []


def _show(outcome: Any, written: list[str], as_json: bool) -> None:
    if as_json:
        from tripos.files.reports import dump_report

        sys.stdout.write(dump_report(outcome.report).decode())
    else:
        from tripos.report.terminal import render

        sys.stdout.write(render(outcome.report, outcome.cutoffs, written))
    sys.stdout.flush()
