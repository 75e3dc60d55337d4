"""Executions, tables and saved queries, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tripos.errors import printable
from tripos.report.table import render_table
from tripos.store.checking import Checked
from tripos.store.reading import Execution, StoredRun
from tripos.store.saved import Saved
from tripos.store.tables import MEASURE_TYPE, TABLES, Table

_COLUMNS = ("time", "run_id", "layer", "name", "verdict", "labels", "commit")


def render_executions(executions: Sequence[Execution], total: int) -> str:
    """Executions, latest first."""
    rows = [
        (one.time, one.run_id, one.layer, one.name, one.verdict, list(one.labels), _commit(one)) for one in reversed(executions)
    ]
    text = render_table(_COLUMNS, rows, len(rows)).rsplit("\n", 2)[0]
    runs = len({one.run_id for one in executions})
    earlier = f"; {total - len(rows)} earlier ones (--last)" if total > len(rows) else ""
    return f"{text}\n{_counted(len(rows), 'execution')} of {_counted(runs, 'run')}{earlier}\n"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _commit(one: Execution) -> str | None:
    return None if one.git_commit is None else one.git_commit[:8] + ("+" if one.git_dirty else "")


def render_run(run: StoredRun, executions: Sequence[Execution]) -> str:
    """What a run is, and when it was executed; then its report as it was shown."""
    lines = [f"run {run.run_id}"]
    for one in executions:
        labels = f"  {' '.join(one.labels)}" if one.labels else ""
        at = one.time.isoformat(sep=" ", timespec="seconds")
        lines.append(f"  executed {at} UTC{labels}" + (f"  commit {_commit(one)}" if one.git_commit else ""))
    return printable("\n".join(lines)) + "\n\n" + _report(run)


def _report(run: StoredRun) -> str:
    from tripos.contracts.corpus_report import CorpusReport
    from tripos.contracts.generation_report import GenerationReport

    if isinstance(run.report, GenerationReport):
        from tripos.report.generation import render_generation

        return render_generation(run.report, [])
    if isinstance(run.report, CorpusReport):
        from tripos.report.corpus import render_corpus

        return render_corpus(run.report, [])
    from tripos.report.terminal import render

    return render(run.report, run.cutoffs, [])


def render_tables(*, markdown: bool = False) -> str:
    """Every view with its columns."""
    parts = (_markdown(table) if markdown else _plain(table) for table in TABLES.values())
    return "\n".join("\n".join(part) + "\n" for part in parts)


def _columns(table: Table) -> Iterator[tuple[str, str, str]]:
    yield from table.columns
    if table.has_measures:
        yield '"hit@10", …', MEASURE_TYPE, "One for each measure at each headline cutoff; null where undefined or incomplete."


def _plain(table: Table) -> Iterator[str]:
    yield f"{table.name}: {table.title}"
    yield from (f"  {name:<24}{kind:<11}{meaning}" for name, kind, meaning in _columns(table))


def _markdown(table: Table) -> Iterator[str]:
    yield from (f"### {table.name}", "", table.title, "", "| column | type | meaning |", "|---|---|---|")
    yield from (f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in _columns(table))


def render_saved(queries: Mapping[str, Saved]) -> str:
    """Saved queries, and what each may be asked."""
    return "\n".join("\n".join(_saved(one)) + "\n" for one in queries.values())


def _saved(one: Saved) -> Iterator[str]:
    yield f"{one.name}: {one.title}"
    if one.meaning:
        yield f"  {one.meaning}"
    for parameter in one.parameters:
        yield f"  --param {parameter.name}={parameter.default}  {parameter.meaning}"


def render_checked(checked: Checked, path: str) -> str:
    """What a check went through."""
    what = ", ".join(
        _counted(n, noun)
        for n, noun in ((checked.runs, "run"), (checked.executions, "execution"), (checked.certificates, "certificate"))
    )
    lines = [f"{path}: {what}; {_counted(checked.files, 'file')} verified"]
    if checked.never_executed:
        lines.append(
            f"{_counted(checked.never_executed, 'run')} without an execution: ended between the two, or copied without it"
        )
    if checked.loose_latencies:
        lines.append(
            f"latencies of {_counted(checked.loose_latencies, 'execution')} without a file: ended in between, or not copied"
        )
    if checked.removed:
        lines.append(f"{_counted(checked.removed, 'draft')} of ended processes removed")
    if checked.in_progress:
        lines.append(f"{_counted(checked.in_progress, 'draft')} younger than an hour: being written, or left behind")
    return "\n".join(lines) + "\n"
