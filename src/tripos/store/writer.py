"""Rows to Parquet by DuckDB: the same rows are the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tripos.files.jsonl import dump_line
from tripos.store.layout import file_name
from tripos.store.tables import MEASURE_TYPE, RANKED_RESULTS, Column, Table, shape

if TYPE_CHECKING:
    import duckdb

Rows = Iterable[Mapping[str, Any] | bytes]
"""Rows of a table: objects, or whole lines of JSON."""

_MAX_LINE = 1 << 30
_SETTINGS = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 122880, PARQUET_VERSION v1"
_LISTS = ("fragment_id", "source_id", "score", "relevant", "grade")
"""Columns of ranked results that come as one list a query, which writes them several times faster than a row a result.

Lists may end before `fragment_id` does, or be null: nulls follow. A `source_id` that is null says that ids are sources.
"""


class Writer:
    """Writes tables into a folder, one after the other, through a DuckDB of one thread: rows keep their order."""

    def __init__(self, folder: Path) -> None:
        from tripos.files.formats.parquet import connect

        self._folder = folder
        self._connection: duckdb.DuckDBPyConnection = connect(folder=str(folder))
        self._connection.execute("SET preserve_insertion_order = true")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write(self, table: Table, rows: Rows, measures: Sequence[str] = ()) -> tuple[Path, int]:
        """Write one table; rows may leave out columns, which are null then. Returns the file and how many rows it has."""
        columns = [*table.columns, *(Column(name, MEASURE_TYPE, "") for name in measures)]
        passing, target = self._folder / f"{table.name}.jsonl", self._folder / file_name(table.name, shape(columns))
        with passing.open("wb") as stream:
            stream.writelines(row if isinstance(row, bytes) else dump_line(row) for row in rows)
        self._connection.execute(f"COPY ({_select(table, columns, passing)}) TO {text(target)} ({_SETTINGS})")
        passing.unlink()
        counted = self._connection.execute(f"SELECT count(*) FROM read_parquet({text(target)})").fetchone()
        return target, 0 if counted is None else int(counted[0])


def _select(table: Table, columns: Sequence[Column], passing: Path) -> str:
    """The query that turns the lines of a file into a table's rows."""
    lists = table is RANKED_RESULTS
    kinds = {c.name: f"{c.type}[]" if lists and c.name in _LISTS else c.type for c in columns if not lists or c.name != "rank"}
    typed = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in kinds.items())
    if not passing.stat().st_size:
        empty = ", ".join(f"NULL::{c.type} AS {quoted(c.name)}" for c in columns)
        return f"SELECT {empty} WHERE false"
    settings = f"format = 'newline_delimited', columns = {{{typed}}}, maximum_object_size = {_MAX_LINE}"
    source = f"read_json({text(passing)}, {settings})"
    if not lists:
        return f"SELECT {', '.join(quoted(c.name) for c in columns)} FROM {source}"
    return f"SELECT {', '.join(map(_unnested, columns))} FROM {source}"


def _unnested(column: Column) -> str:
    if column.name == "rank":
        return "unnest(range(1, len(fragment_id) + 1)) AS rank"
    if column.name == "source_id":
        return "unnest(coalesce(source_id, fragment_id)) AS source_id"
    return f"unnest({quoted(column.name)}) AS {quoted(column.name)}" if column.name in _LISTS else quoted(column.name)


def text(value: str | Path) -> str:
    """A string for SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def quoted(name: str) -> str:
    """An identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'
