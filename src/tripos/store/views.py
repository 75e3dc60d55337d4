"""A DuckDB connection with a view for each table of a store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tripos.errors import InputError
from tripos.store.layout import pattern, shapes
from tripos.store.tables import TABLES, Table
from tripos.store.writer import quoted, text

if TYPE_CHECKING:
    import duckdb


def connect(store: str | Path, tables: Iterable[str] = tuple(TABLES)) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory with the named views over a store; connect again to see what is stored later.

    Raises InputError where there is no such store, or a file in it cannot be read.
    """
    import duckdb

    folder = existing(store)
    connection = duckdb.connect()
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "parquet_metadata_cache = true",
        "python_enable_replacements = false",
    ):
        connection.execute(f"SET {setting}")
    there = shapes(folder)
    for name in tables:
        try:
            connection.execute(f"CREATE VIEW {name} AS {view(folder, TABLES[name], there.get(name, ()))}")
        except duckdb.Error as error:
            connection.close()
            said = str(error).splitlines()[0]
            raise InputError.at(str(folder), f"{name} cannot be read: {said}; tripos store check names the file") from None
    return connection


def existing(store: str | Path) -> Path:
    """The store's folder; raises InputError where there is none."""
    folder = Path(store)
    if not folder.is_dir():
        text_ = "no such store: evaluate with --config or --store first, or name another with --store"
        raise InputError.at(str(store), text_)
    return folder


def view(store: Path, table: Table, there: Iterable[str]) -> str:
    """SQL of a view: every file of the table, whatever version wrote it; columns that a file lacks are null.

    The columns known here come first and are always there; those that a newer version added follow.
    """
    typed = ", ".join(f"NULL::{c.type} AS {quoted(c.name)}" for c in table.columns)
    parts = [f"SELECT * FROM read_parquet({text(pattern(store, table, shape))})" for shape in there]
    return " UNION ALL BY NAME ".join([f"SELECT {typed} WHERE false", *parts])
