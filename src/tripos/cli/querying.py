"""`tripos query` and `tripos misses`: SQL over the run history, for those who write it and those who do not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tripos.cli.naming import OneLayer
from tripos.cli.options import ConfigFile
from tripos.errors import UsageError

if TYPE_CHECKING:
    from tripos.store.sandbox import Result

HistoryFolder = Annotated[
    str | None, typer.Option("--store", help="Folder of the run history. [default: the config's, else engagement/store]")
]
AsJson = Annotated[bool, typer.Option("--json", help="As one JSON document: a list of objects.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="As CSV.")]
AsJsonl = Annotated[bool, typer.Option("--jsonl", help="As JSON, an object a line.")]
Timeout = Annotated[float, typer.Option(help="Seconds after which the query is ended.", min=0.1, max=86_400)]


_LEAST = 16 << 20


def query(
    sql: Annotated[
        str | None, typer.Argument(help="SQL, a file ending in .sql, - for standard input, or the name of a saved query.")
    ] = None,
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for $NAME in the SQL. Repeats.")] = None,
    store: HistoryFolder = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_jsonl: AsJsonl = False,
    parquet: Annotated[str | None, typer.Option(help="Write the result to this Parquet file.")] = None,
    tables: Annotated[bool, typer.Option("--tables", help="Show every view with its columns, and stop.")] = False,
    list_saved: Annotated[bool, typer.Option("--list", help="List the saved queries, and stop.")] = False,
    timeout: Timeout = 30.0,
    memory_limit: Annotated[str, typer.Option(help="Memory that the query may take, e.g. 512MB.")] = "1GB",
) -> int:
    """Ask the run history in SQL, or by the name of a saved query.

    Reads the views of the store (--tables) and nothing else: one statement that only reads, in a process of its own, with a
    time and a memory limit. Saved queries are files in configs/queries (--list). Exits 2 where the query is refused or fails.
    """
    if tables or list_saved:
        return _describe(tables)
    if sql is None:
        raise UsageError("no query: give SQL, a .sql file, -, or the name of a saved query (--list); --tables shows the views")
    _one_output(as_json, as_csv, as_jsonl, parquet)
    if parquet == "":
        raise UsageError("--parquet is empty: name a file")
    from tripos.cli.sizes import bytes_of
    from tripos.store.sandbox import Query, run

    folder, memory = history_folder(store, config), bytes_of(memory_limit, "--memory-limit")
    if memory < _LEAST:
        raise UsageError(f'--memory-limit "{memory_limit}": a query takes 16MB at least')
    if parquet:
        _check_output(parquet, folder, sql)
    text, parameters, looks_back = _settled(sql, _pairs(param or ()))
    asked = Query(folder, text, parameters, timeout, memory, looks_back)
    with run(asked) as result:
        if parquet:
            from tripos.files.streams import STDIN
            from tripos.report.parquet import write_parquet

            n = write_parquet(result, parquet)
            print(f"{n:,} {'row' if n == 1 else 'rows'} → {parquet}", file=sys.stderr if parquet == STDIN else sys.stdout)
            return 0
        return show(result, as_json=as_json, as_csv=as_csv, as_jsonl=as_jsonl)


def misses(
    layer: Annotated[OneLayer | None, typer.Option(help="One layer alone.")] = None,
    category: Annotated[str | None, typer.Option(help="One category alone.")] = None,
    reason: Annotated[str | None, typer.Option(help="Misses with this reason among theirs, e.g. no_hit.")] = None,
    run: Annotated[
        str | None, typer.Option(help="A run: its id, a label, latest, latest~1. [default: each system's latest execution]")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Every execution since a day (2026-11-30) or for a while (7d, 12h).")
    ] = None,
    store: HistoryFolder = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_jsonl: AsJsonl = False,
) -> int:
    """Which queries failed, and why?

    Without --run and --since: of the latest execution of each system in each layer. A run is listed once, however often it was
    executed. `tripos explain` tells one query's story.
    """
    _one_output(as_json, as_csv, as_jsonl, None)
    if run and since:
        raise UsageError("--run and --since: give one of the two")
    from tripos.store.misses import Filters, misses_of
    from tripos.store.sandbox import run as run_query

    filters = {"category": category, "reason": reason, "run": run, "since": since}
    asked = misses_of(history_folder(store, config), Filters(None if layer is None else layer.value, **filters))
    with run_query(asked) as result:
        return show(result, as_json=as_json, as_csv=as_csv, as_jsonl=as_jsonl)


def history_folder(store: str | None, config: str | None) -> str:
    """The store that is read: as named, else the configuration's, else the usual one."""
    from tripos.store.layout import DEFAULT

    if store == "":
        raise UsageError("--store is empty: give a value, or leave it out")
    if store is None and config is not None:
        from tripos.files.configs import load_config

        store = load_config(config).store
    return store or DEFAULT


def _describe(tables: bool) -> int:
    from tripos.report.history import render_saved, render_tables
    from tripos.store.saved import saved_queries

    sys.stdout.write(render_tables() if tables else render_saved(saved_queries()))
    return 0


def _one_output(as_json: bool, as_csv: bool, as_jsonl: bool, parquet: str | None) -> None:
    flags = {"--json": as_json, "--csv": as_csv, "--jsonl": as_jsonl, "--parquet": bool(parquet)}
    given = [flag for flag, on in flags.items() if on]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)}: give one of them")


def _check_output(target: str, folder: str, sql: str) -> None:
    from tripos.files.streams import check_outputs
    from tripos.store.exporting import outside

    outside(folder, target)
    check_outputs([target], [sql] if sql.endswith(".sql") else [])


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise UsageError(f'--param "{text}": NAME=VALUE is expected, e.g. last=5')
        if name in pairs:
            raise UsageError(f"--param {name} is given twice")
        pairs[name] = value
    return pairs


def _settled(sql: str, pairs: dict[str, str]) -> tuple[str, dict[str, Any], int | None]:
    """The SQL that is meant, its parameters' values, and how far it looks back."""
    from tripos.files.streams import read_text
    from tripos.store.saved import given, guessed, load, saved

    values: dict[str, Any] = {name: guessed(value) for name, value in pairs.items()}
    if len(sql.split()) > 1 or not sql.strip():
        return sql, values, None
    if sql == "-":
        return read_text(sql), values, None
    found = load(sql) if sql.endswith(".sql") else saved(sql)
    if found.parameters:
        values = given(pairs, found.parameters)
    return found.sql, values, found.recent(values)


def show(result: Result, *, as_json: bool, as_csv: bool, as_jsonl: bool) -> int:
    """Write a result to standard output in the form asked for."""
    from itertools import islice

    from tripos.report.table import MOST_ROWS, csv_lines, json_document, json_lines, objects, render_table

    columns = [name for name, _ in result.columns]

    def lines() -> Iterator[str]:
        if as_csv:
            return csv_lines(columns, result.rows())
        made = objects(columns, result.rows())
        return json_document(made) if as_json else json_lines(made)

    if as_json or as_jsonl or as_csv:
        for _ in lines():
            pass  # a value that cannot be said is told before anything is written
        sys.stdout.writelines(lines())
    else:
        sys.stdout.write(render_table(columns, list(islice(result.rows(), MOST_ROWS)), result.n))
    sys.stdout.flush()
    return 0
