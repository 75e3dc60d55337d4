"""`tripos eval-generation` and `tripos evidence`: parse, call, print, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tripos.cli.options import (
    AllErrors,
    AllowExtra,
    AsJson,
    ConfigFile,
    Labels,
    LayerName,
    Lenient,
    NoStore,
    OwnFragments,
    PrintConfig,
    Quiet,
    StoreFolder,
)
from tripos.errors import UsageError

_REPORT, _RESULTS, _MISSES = "generation-report.json", "generation-results.jsonl", "generation-misses.jsonl"


def eval_generation(
    input: Annotated[str | None, typer.Option(help="Answers with their reviewed part on one line.")] = None,
    judgments: Annotated[str | None, typer.Option(help="The reviewed part alone; needs --answers.")] = None,
    answers: Annotated[str | None, typer.Option(help="Answers alone; needs --judgments.")] = None,
    retrieval_report: Annotated[
        str | None, typer.Option(help="The retrieval report that the answers are bound to; without one: unbound.")
    ] = None,
    fragments: OwnFragments = None,
    model: Annotated[str | None, typer.Option(help="Who answered, name@revision.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Who gave the faithfulness scores, name@revision.")] = None,
    approved_judges: Annotated[str | None, typer.Option(help="The list of approved judges, YAML or TOML.")] = None,
    faithfulness_target: Annotated[
        float | None, typer.Option(help="What each answer, and the mean, must reach. [default: 0.8]")
    ] = None,
    qualified_answer_target: Annotated[
        float | None, typer.Option(help="Share of answerable questions with a qualified answer. [default: 0.8]")
    ] = None,
    abstention_target: Annotated[
        float | None, typer.Option(help="Share of unanswerable questions that are declined. [default: 0.8]")
    ] = None,
    drop_gate: Annotated[
        list[str] | None, typer.Option(help="faithfulness, qualified or abstention: gate nothing on it. Repeats.")
    ] = None,
    abstention_phrase: Annotated[
        list[str] | None, typer.Option(help="A whole answer that is an abstention, beside the shipped ones. Repeats.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="Folder for the report, the results and the misses.")] = None,
    config: ConfigFile = None,
    name: LayerName = None,
    fail_under: Annotated[list[str] | None, typer.Option(help="Gate, e.g. citation_precision=0.9. Repeats.")] = None,
    fail_over: Annotated[list[str] | None, typer.Option(help="Gate, e.g. over_refusal=0.1. Repeats.")] = None,
    lenient: Lenient = False,
    allow_extra: AllowExtra = False,
    allow_incomplete: Annotated[
        bool, typer.Option("--allow-incomplete", help="Missing answers and scores fail no gate of their own.")
    ] = False,
    all_errors: AllErrors = False,
    store: StoreFolder = None,
    no_store: NoStore = False,
    label: Labels = None,
    as_json: AsJson = False,
    print_config: PrintConfig = False,
    quiet: Quiet = False,
) -> int:
    """Did the answers cover the facts, cite support, and abstain where they should?

    Calls no model. Writes generation-report.json, generation-results.jsonl (one row a query: every verdict with its reason)
    and generation-misses.jsonl, and exits 0 passed, 1 a gate failed, 6 incomplete or unjudged; 2 usage, 3 invalid input,
    4 another configuration than the retrieval report's, 5 nothing to evaluate.
    """
    from tripos.cli.settings import gate_flags, settle, show_config

    flags: dict[str, Any] = {
        "name": name,
        "fragments": fragments,
        "judgments.generation": judgments,
        "generation.input": input,
        "generation.answers": answers,
        "generation.retrieval_report": retrieval_report,
        "generation.model": model,
        "generation.judge_model": judge_model,
        "generation.approved_judges": approved_judges,
        "generation.faithfulness_target": faithfulness_target,
        "generation.qualified_answer_target": qualified_answer_target,
        "generation.abstention_target": abstention_target,
        "generation.dropped_gates": drop_gate,
        "generation.abstention.phrases": abstention_phrase,
        "store": store,
    }
    _one_form(input, judgments, answers)
    settings = settle(config, flags, gate_flags(fail_under, fail_over, "generation"))
    if print_config:
        return show_config(settings.rows, as_json)

    from tripos.cli.storing import storing
    from tripos.contracts.config import Options

    history = storing(settings, store, no_store, label)
    options = Options(lenient=lenient, allow_extra=allow_extra, allow_incomplete=allow_incomplete, all_errors=all_errors)
    chosen = settings.config
    if input:  # given as a flag, it wins over a split form in the file
        chosen = chosen.model_copy(update={"generation": chosen.generation.model_copy(update={"answers": None})})
    return _evaluate(chosen, options, _folder(output, chosen.run), history, as_json=as_json, quiet=quiet)


def _one_form(input: str | None, judgments: str | None, answers: str | None) -> None:
    if input and (judgments or answers):
        other = "--judgments" if judgments else "--answers"
        raise UsageError(f"--input and {other}: give --input (both parts on one line), or --judgments and --answers")


def _folder(output: str | None, run: str | None) -> Path | None:
    from tripos.files.streams import writable_folder

    where = output or (run and str(Path(run) / "generation"))
    return writable_folder(where) if where else None


def _evaluate(config: Any, options: Any, folder: Path | None, history: Any, *, as_json: bool, quiet: bool) -> int:
    from contextlib import nullcontext

    from tripos.cli.progress import Progress
    from tripos.cli.settings import relative
    from tripos.cli.storing import stored
    from tripos.columns.rows import Kept
    from tripos.files.streams import only_one_stdin
    from tripos.runners.generation import evaluate, inputs_of

    only_one_stdin(inputs_of(config))
    progress = Progress("rows", quiet=quiet)
    rows: Any = Kept(folder) if folder or history else nullcontext()
    with rows as kept:
        outcome = evaluate(config, options, kept=kept, paths=relative(inputs_of(config), folder), progress=progress)
        progress.clear()
        for finding in outcome.findings.warnings[:20]:
            print(f"warning: {finding}", file=sys.stderr)
        written = _write(outcome, kept, folder) if kept is not None and folder is not None else []
        with stored(history, lambda own: own.generation(outcome, kept, config, options), quiet=quiet):
            _show(outcome.report, written, as_json)
    return int(outcome.report.verdict.exit_code)


def _write(outcome: Any, kept: Any, folder: Path) -> list[str]:
    from tripos.files.reports import write_lines_together

    report, order = outcome.report, outcome.order.tolist()
    misses = kept.misses(order, report.run_id, report.fingerprint.configuration)
    lines: dict[str | Path, Any] = {_RESULTS: kept.results(order), _MISSES: misses}
    return write_lines_together(folder, (_REPORT, report), lines)


def _show(report: Any, written: list[str], as_json: bool) -> None:
    if as_json:
        from tripos.files.reports import dump_report

        sys.stdout.write(dump_report(report).decode())
    else:
        from tripos.report.generation import render_generation

        sys.stdout.write(render_generation(report, written))
    sys.stdout.flush()


def evidence(
    retrieval_report: Annotated[
        str | None, typer.Option(help="The retrieval report. [default: with --config, RUN/retrieval/report.json]")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="File to write; - is standard output. [default: RUN/generation-evidence.jsonl]")
    ] = None,
    fragments: OwnFragments = None,
    config: ConfigFile = None,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
    quiet: Quiet = False,
) -> int:
    """What must each answer be written from: the top K fragments of every query, with text.

    Each row carries the system_fingerprint of the retrieval run; copy it into the answer rows, and eval-generation proves
    that they were written from this evidence. Exits 3 invalid input, 4 where the run is not the one that was measured.
    """
    from tripos.cli.settings import settle

    settings = settle(config, {"generation.retrieval_report": retrieval_report, "fragments": fragments})
    report, run = settings.config.generation.retrieval_report, settings.config.run
    target = output or (run and str(Path(run) / "generation-evidence.jsonl"))
    if not report or not target:
        missing = [flag for flag, value in (("--retrieval-report", report), ("--output", target)) if not value]
        raise UsageError(f"missing {', '.join(missing)} (or --config with run)")
    return _export(report, settings.config, target, quiet)


def _export(report: str, config: Any, target: str, quiet: bool) -> int:
    from tripos.cli.progress import Progress
    from tripos.files.jsonl import write_rows
    from tripos.files.reports import plain
    from tripos.runners.evidence import evidence as export

    progress = Progress("queries", quiet=quiet)
    exported, rows = export(report, config, progress)
    write_rows(target, map(plain, rows))
    progress.clear()
    top_k = exported.bound.depth.handed_on
    told = f"evidence for {exported.rows} queries, top K {top_k}, system fingerprint {exported.bound.system[:12]} → {target}"
    print(told, file=sys.stderr if target == "-" else sys.stdout)
    for count, text in (
        (exported.failed, "failed in retrieval: no row"),
        (exported.empty, "with nothing to answer from: abstain"),
    ):
        if count:
            print(f"{count} {'query' if count == 1 else 'queries'} {text}", file=sys.stderr)
    return 0
