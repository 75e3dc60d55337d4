"""`tripos lint` and `tripos doctor`: what is wrong with the files someone has, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.cli.options import Completeness, WhoReads
from tripos.errors import MAX_SHOWN, ExitCode, UsageError

if TYPE_CHECKING:
    from tripos.curate.diagnosis import DoctorReport
    from tripos.curate.lint import LintFinding, LintReport


def lint(
    judgments: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Retrieval judgments; repeat.")] = None,
    fragments: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="Corpus; NAME is its collection; repeat.")
    ] = None,
    ranked_results: Annotated[str | None, typer.Option(metavar="FILE", help="Ranked results to look at too.")] = None,
    acl_default: WhoReads = None,
    completeness: Annotated[Completeness | None, typer.Option(help="What the listed sources are; default known_item.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Results considered for each query; a row's k must lie within.")] = 50,
    lenient: Annotated[bool, typer.Option("--lenient", help="Let pass what a first look may, counted.")] = False,
    allow_extra: Annotated[bool, typer.Option("--allow-extra", help="Move unknown fields under metadata, counted.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")] = False,
    all_errors: Annotated[bool, typer.Option("--all-errors", help="Show every finding, not only the first 20.")] = False,
) -> None:
    """Check judgments, and the corpus and results they belong to, before anything is measured.

    Covers all rows but rejected ones, and more than an evaluation checks: the words that queries and sources share, scales that
    look reversed, columns that nobody fills. Exit code 0: no errors (warnings do not count); 3: errors.
    """
    from tripos.curate.lint import lint as look
    from tripos.curate.lint_results import LintOptions
    from tripos.files.streams import only_one_stdin

    if not judgments:
        raise UsageError("no judgments: name them with --judgments FILE")
    only_one_stdin([*judgments, *(fragments or []), *([ranked_results] if ranked_results else [])])
    options = LintOptions(
        acl_default=acl_default.value if acl_default else None,
        completeness=completeness.value if completeness else "known_item",
        limit=limit,
        lenient=lenient,
        allow_extra=allow_extra,
    )
    report = look(judgments, fragments or [], ranked_results=ranked_results, options=options)
    print(report.model_dump_json(indent=2) if json_ else "\n".join(_lint_lines(report, all_errors)))
    if report.errors:
        raise typer.Exit(ExitCode.INVALID_INPUT)


def doctor(
    files: Annotated[list[str], typer.Argument(metavar="FILES…", help="Golden rows, corpus, results, qrels, runs.")],
    json_: Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")] = False,
) -> None:
    """Look at the files you have: what each is, what is wrong, and the line that accepts or mends it.

    Files are recognised by their content, and nothing is changed. Give all of them at once, so that their ids can be compared.
    Exit code 0: nothing would be refused; 3: something would.
    """
    from tripos.curate.doctor import diagnose

    report = diagnose(files)
    print(report.model_dump_json(indent=2) if json_ else "\n".join(_doctor_lines(report)))
    if report.errors:
        raise typer.Exit(ExitCode.INVALID_INPUT)


# ---- lint as text


def _lint_lines(report: LintReport, every: bool) -> Iterable[str]:
    for severity, total in (("error", report.errors), ("warning", report.warnings)):
        yield from _findings([f for f in report.findings if f.severity == severity], severity, total, every)
    if report.findings:
        yield ""
    yield from _table(report)
    for kind, n in report.let_pass.items():
        yield f"let pass          {n:,} {kind.replace('_', ' ')}"
    for note in report.notes:
        yield f"note              {note}"
    yield _verdict(report)


def _findings(found: Sequence[LintFinding], severity: str, total: int, every: bool) -> Iterable[str]:
    prefix = "" if severity == "error" else "warning: "
    shown = found if every else found[:MAX_SHOWN]
    yield from (f"{prefix}{finding}" for finding in shown)
    if rest := total - len(shown):
        yield f"… {rest:,} more {severity}{'' if rest == 1 else 's'}" + ("" if every else " (--all-errors shows them)")


def _table(report: LintReport) -> Iterable[str]:
    rows, corpus, results = report.rows, report.corpus, report.results
    yield f"{'rows':16}  {rows.total:,}, of which {rows.scored:,} would be scored"
    counts = {
        "review status": rows.by_review_status,
        "category": rows.by_category,
        "split": rows.by_split,
        "should_match": rows.by_should_match,
        "filled in": rows.filled,
        "errors": report.by_kind["error"],
        "warnings": report.by_kind["warning"],
    }
    yield from (f"{name:16}  {_listed(own)}" for name, own in counts.items() if own)
    if corpus is not None:
        yield f"{'corpus':16}  {corpus.fragments:,} fragments of {corpus.sources:,} sources, {corpus.without_acl:,} without acl"
    if results is not None:
        told = {
            "without judgment": results.without_judgment,
            "judged without results": results.missing,
            "failed": results.failed,
        }
        yield f"{'results':16}  {results.results:,} of {results.rows:,} queries; {_listed(told)}"


def _listed(counts: dict[str, int]) -> str:
    return " · ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in counts.items())


def _verdict(report: LintReport) -> str:
    warnings = _counted(report.warnings, "warning")
    if report.errors:
        return f"{_counted(report.errors, 'error')}, {warnings}: an evaluation would refuse these files"
    return f"no errors, {warnings}: {_counted(report.rows.scored, 'row')} would be scored"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


# ---- doctor as text


def _doctor_lines(report: DoctorReport) -> Iterable[str]:
    for file in report.files:
        rows = f", {_counted(file.rows, 'row')}" if file.rows else ""
        yield f"{file.path}  is {file.form}{'' if file.container in ('other', 'columns') else f' in {file.container}'}{rows}"
    for found in report.diagnoses:
        yield ""
        yield ("" if found.severity == "error" else "warning: ") + str(found)
        if found.fix:
            yield f"    {found.fix}"
    yield ""
    yield from (f"next: {command}" for command in report.next)
    yield _doctor_verdict(report)


def _doctor_verdict(report: DoctorReport) -> str:
    warnings = len(report.diagnoses) - report.errors
    if report.errors:
        return f"{_counted(report.errors, 'kind')} of fault would be refused, {_counted(warnings, 'warning')}"
    return f"nothing would be refused, {_counted(warnings, 'warning')}"
