"""The result of a query as a Parquet file."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tripos.errors import UsageError
from tripos.files.streams import whole
from tripos.report.table import objects
from tripos.store.sandbox import Result
from tripos.store.tables import Column, Table
from tripos.store.writer import Writer

_STORED_AS = {"JSON": "VARCHAR", "HUGEINT": "DECIMAL(38,0)", "UHUGEINT": "DECIMAL(38,0)"}
"""Types that Parquet lacks, and that DuckDB would write as something that loses digits or quotes."""


def write_parquet(result: Result, target: str) -> int:
    """Write a result to a file, whole or not at all; returns how many rows it has.

    Raises UsageError where two columns have one name, or a column's type has no form in Parquet.
    """
    import duckdb

    columns = tuple(Column(name, _STORED_AS.get(kind, kind), "") for name, kind in result.columns)
    rows = objects([column.name for column in columns], result.rows(), say=_text)
    with tempfile.TemporaryDirectory(prefix="tripos-") as folder, Writer(Path(folder)) as writer:
        try:
            made, n = writer.write(Table("result", "", columns), rows)
        except duckdb.Error as error:
            raise UsageError(_refusal(result, str(error))) from None
        with whole(target) as stream, made.open("rb") as written:
            for chunk in iter(partial(written.read, 1 << 20), b""):
                stream.write(chunk)
    return n


def _refusal(result: Result, said: str) -> str:
    odd = [name for name, kind in result.columns if kind.startswith(("MAP(", "UNION(")) or kind == "BIT"]
    which = f"column {', '.join(odd)}" if odd else f"a column ({said.splitlines()[0][:120]})"
    return f"{which} cannot be written as Parquet: make text of it with ::VARCHAR"


def _text(value: Any) -> str:
    """A value that JSON cannot say, as DuckDB reads it from text."""
    if isinstance(value, bytes):
        return "".join(f"\\x{byte:02X}" for byte in value)
    if isinstance(value, timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
