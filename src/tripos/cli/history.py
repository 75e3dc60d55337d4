"""`tripos runs` and `tripos store`: what is in the run history, and whether it holds."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tripos.cli.naming import OneLayer
from tripos.cli.options import AllErrors, ConfigFile
from tripos.cli.querying import HistoryFolder, history_folder
from tripos.errors import UsageError

runs_app = typer.Typer(rich_markup_mode=None, help="List the executions of the run history, or show a run.")
store_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look after the run history.")

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@runs_app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    last: Annotated[int, typer.Option(min=1, help="Executions shown.")] = 20,
    layer: Annotated[OneLayer | None, typer.Option(help="One layer alone.")] = None,
    name: Annotated[str | None, typer.Option(help="One system alone.")] = None,
    store: HistoryFolder = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """List executions, latest first: the same run on three nights is one run and three executions."""
    if context.invoked_subcommand is not None:
        if store or config or layer or name or as_json:
            raise UsageError(
                f"give these options after {context.invoked_subcommand}: tripos runs {context.invoked_subcommand} …"
            )
        return 0
    from tripos.report.history import render_executions
    from tripos.store.reading import Store

    found = Store(history_folder(store, config)).executions(None if layer is None else layer.value)
    chosen = [one for one in found if name is None or one.name == name]
    if as_json:
        import orjson

        shown = [{field: getattr(one, field) for field in one.__slots__} for one in reversed(chosen[-last:])]
        sys.stdout.write(orjson.dumps(shown, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    else:
        sys.stdout.write(render_executions(chosen[-last:], len(chosen)))
    sys.stdout.flush()
    return 0


@runs_app.command("show")
def show(
    run: Annotated[str, typer.Argument(help="A run id or its beginning, an execution, a label, latest, or latest~N.")],
    layer: Annotated[OneLayer | None, typer.Option(help="Look among this layer's executions alone.")] = None,
    store: HistoryFolder = None,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, as it was sealed.")] = False,
) -> int:
    """Show a run: when it was executed, and its report."""
    from tripos.store.reading import Store

    history = Store(history_folder(store, config))
    run_id = history.resolve(run, None if layer is None else layer.value)
    if as_json:
        import orjson

        sys.stdout.write(orjson.dumps(history.content(run_id), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    else:
        from tripos.report.history import render_run

        executions = [one for one in history.executions() if one.run_id == run_id]
        sys.stdout.write(render_run(history.run(run_id), executions))
    sys.stdout.flush()
    return 0


@store_app.command("check")
def check(
    store: HistoryFolder = None,
    config: ConfigFile = None,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
    as_json: AsJson = False,
) -> int:
    """Verify every file of the run history.

    Each file against its digest, each report against its run id, each execution against its run. Removes what killed processes
    left behind more than an hour ago. Exits 3 where something does not hold.
    """
    from tripos.cli.progress import tell_warnings
    from tripos.errors import Findings
    from tripos.report.history import render_checked
    from tripos.store.checking import check_store

    findings, folder = Findings(), history_folder(store, config)
    checked = check_store(folder, findings)
    tell_warnings(findings)
    if as_json:
        import dataclasses

        import orjson

        told = {**dataclasses.asdict(checked), "errors": [str(error) for error in findings.errors]}
        sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
    else:
        sys.stdout.write(render_checked(checked, folder))
    sys.stdout.flush()
    findings.raise_errors()
    return 0


@store_app.command("export")
def export(
    target: Annotated[str, typer.Argument(help="The DuckDB file to write, e.g. history.duckdb; replaced where it is there.")],
    store: HistoryFolder = None,
    config: ConfigFile = None,
) -> int:
    """Write the run history into one DuckDB file, for BI tools."""
    from tripos.store.exporting import export as write

    rows = write(history_folder(store, config), target)
    print(f"{', '.join(f'{n:,} {name}' for name, n in rows.items() if n) or 'no row'} → {target}")
    return 0
