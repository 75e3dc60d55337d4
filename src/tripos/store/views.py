"""A DuckDB connection with a view for each table of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tripos.errors import InputError
from tripos.store.layout import RUNS, escaped, is_store, pattern, shapes
from tripos.store.tables import TABLES, Table
from tripos.store.writer import quoted, text

if TYPE_CHECKING:
    import duckdb


def connect(
    store: str | Path, tables: Iterable[str] = tuple(TABLES), *, looks_back: int | None = None
) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory with the named views over a store; connect again to see what is stored later.

    Args:
        store: The store's folder.
        tables: The views that are wanted.
        looks_back: Only runs among so many latest executions of each system in each layer are there; the rest of a long
            history need not be opened then. Default: all.

    Raises:
        InputError: There is no such store, or a file in it cannot be read.
    """
    folder, connection = existing(store), _database()
    there = {name: _globs(folder, TABLES[name], own) for name, own in shapes(folder).items() if name in TABLES}
    if looks_back is not None:
        _create(connection, folder, "executions", there)
        runs = [run for (run,) in connection.execute(_RECENT, [looks_back]).fetchall()]
        there |= {name: _files(folder, name, runs) for name, table in TABLES.items() if table.place == RUNS}
    for name in tables:
        _create(connection, folder, name, there)
    return connection


_RECENT = """
    SELECT DISTINCT run_id FROM executions
    QUALIFY row_number() OVER (PARTITION BY layer, name ORDER BY time DESC, execution_id DESC) <= $1
"""


def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect()
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "parquet_metadata_cache = true",
        "python_enable_replacements = false",
    ):
        connection.execute(f"SET {setting}")
    return connection


def _create(connection: duckdb.DuckDBPyConnection, store: Path, name: str, there: Mapping[str, Sequence[str]]) -> None:
    import duckdb

    try:
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS {view(TABLES[name], there.get(name, ()))}")
    except duckdb.Error as error:
        connection.close()
        said = str(error).splitlines()[0]
        raise InputError.at(str(store), f"{name} cannot be read: {said}; tripos store check names the file") from None


def _globs(store: Path, table: Table, there: Iterable[str]) -> list[str]:
    """SQL for all files of a table, shape by shape."""
    return [text(pattern(store, table, shape)) for shape in there]


def _files(store: Path, table: str, runs: Iterable[str]) -> list[str]:
    """SQL for the files of a table of some runs, shape by shape."""
    found: dict[str, list[str]] = {}
    for run in sorted(runs):
        for path in (store.absolute() / RUNS / run).glob(f"{table}.*.parquet"):
            found.setdefault(path.suffixes[-2], []).append(text(escaped(str(path))))
    return [f"[{', '.join(paths)}]" for _, paths in sorted(found.items())]


def existing(store: str | Path) -> Path:
    """The store's folder; raises InputError where there is none, or where the folder is something else."""
    folder, advice = Path(store), "evaluate with --config or --store first, or name another with --store"
    if not folder.exists():
        raise InputError.at(str(store), f"no such store: {advice}")
    if not folder.is_dir() or not is_store(folder):
        inside = folder / "store"
        meant = f' (did you mean "{inside}"?)' if (inside / RUNS).is_dir() else ""
        raise InputError.at(str(store), f"is no store: it holds no runs and no executions{meant}: {advice}")
    return folder


def view(table: Table, files: Iterable[str]) -> str:
    """SQL of a view: every file of the table, whatever version wrote it; columns that a file lacks are null.

    The columns known here come first and are always there; those that a newer version added follow. `files` are globs or
    lists, each of one shape.
    """
    typed = ", ".join(f"NULL::{c.type} AS {quoted(c.name)}" for c in table.columns)
    parts = [f"SELECT * FROM read_parquet({own})" for own in files]
    return " UNION ALL BY NAME ".join([f"SELECT {typed} WHERE false", *parts])


def executions_view(store: Path) -> str:
    """SQL of the view of executions alone."""
    table = TABLES["executions"]
    return view(table, _globs(store, table, shapes(store).get(table.name, ())))
