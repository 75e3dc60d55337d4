"""The `tripos` command: one Typer app, and the one place where errors become exit codes."""

from __future__ import annotations

import copy
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Annotated, NoReturn

import typer

from tripos import __version__
from tripos.cli import streams
from tripos.cli.baselines import baseline_app
from tripos.cli.certifying import certify
from tripos.cli.comparing import compare
from tripos.cli.converting import convert
from tripos.cli.corpus import eval_corpus
from tripos.cli.describing import describe_app, fingerprint
from tripos.cli.evaluating import eval_retrieval
from tripos.cli.explaining import explain
from tripos.cli.fanning import fan_out
from tripos.cli.generating import eval_generation, evidence
from tripos.cli.history import runs_app, store_app
from tripos.cli.importing import export_app, import_app
from tripos.cli.linting import doctor, lint
from tripos.cli.querying import misses, query
from tripos.cli.repeating import aa, power
from tripos.cli.searching import search
from tripos.errors import MAX_SHOWN, ExitCode, InputError, TriposError, printable

app = typer.Typer(
    name="tripos",
    help="Examine a retrieval-augmented system layer by layer, under one configuration fingerprint.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("eval-retrieval")(eval_retrieval)
app.command("eval-generation")(eval_generation)
app.command("evidence")(evidence)
app.command("eval-corpus")(eval_corpus)
app.command("lint")(lint)
app.command("doctor")(doctor)
app.command("explain")(explain)
app.command("certify")(certify)
app.command("compare")(compare)
app.command("aa")(aa)
app.command("power")(power)
app.command("search")(search)
app.command("convert")(convert)
app.command("fan-out")(fan_out)
app.command("fingerprint")(fingerprint)
app.add_typer(baseline_app, name="baseline")
app.command("query")(query)
app.command("misses")(misses)
app.add_typer(runs_app, name="runs")
app.add_typer(store_app, name="store")
app.add_typer(describe_app, name="describe")
app.add_typer(import_app, name="import")
app.add_typer(export_app, name="export")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tripos {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Examine a retrieval-augmented system layer by layer, under one configuration fingerprint."""


def main() -> NoReturn:
    """Run the command line and exit with its documented code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its idle threads spin: half a second of processor time, nothing gained
    signal.signal(signal.SIGTERM, _interrupted)
    streams.prepare()
    try:
        code = _app_for(sys.argv[1:2])(standalone_mode=False)
        streams.finish()
    except TriposError as error:
        code = _tell(error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one place where a fault of ours becomes exit code 70
        code = _other(error)
    if code == ExitCode.INTERRUPTED:
        print("interrupted: each output is complete, or as it was", file=sys.stderr)
    sys.exit(int(code or 0))


def _app_for(first: list[str]) -> typer.Typer:
    """The app with the command named first alone, where there is one: making the others takes as long as a small run."""
    named = [command for command in app.registered_commands if [command.name] == first]
    if not named:
        return app
    narrow = copy.copy(app)
    narrow.registered_commands, narrow.registered_groups = named, []
    return narrow


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _tell(error: TriposError) -> int:
    if isinstance(error, InputError):
        every = "--all-errors" in sys.argv
        for finding in error.findings[: None if every else MAX_SHOWN]:
            print(finding, file=sys.stderr)
        if (rest := error.total - MAX_SHOWN) > 0 and not every:
            print(f"… {rest} more error{'' if rest == 1 else 's'} (--all-errors shows them)", file=sys.stderr)
    else:
        print(printable(f"tripos: {error}"), file=sys.stderr)
    return error.exit_code


def _other(error: Exception) -> int:
    """Usage errors of the command-line library, whichever copy of Click it vendors; else a fault of ours."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):
        show()
        return ExitCode.USAGE
    if type(error).__name__ == "Abort":
        return ExitCode.INTERRUPTED
    if isinstance(error, OSError) and error.filename is not None:  # a name that this machine takes for no file, a failing disk
        print(printable(f"tripos: {error.filename}: {error.strerror}"), file=sys.stderr)
        return ExitCode.USAGE
    if os.environ.get("TRIPOS_TRACEBACK"):
        traceback.print_exc()
    said = f"tripos: internal error: {type(error).__name__}: {error} (TRIPOS_TRACEBACK=1 shows where)"
    print(printable(said), file=sys.stderr)
    return ExitCode.INTERNAL
