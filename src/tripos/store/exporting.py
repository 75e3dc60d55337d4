"""A store as one DuckDB file, for tools that read such files."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from tripos.errors import OutputError, UsageError
from tripos.store.tables import TABLES
from tripos.store.views import connect
from tripos.store.writer import text


def export(store: str, target: str) -> dict[str, int]:
    """Write every table into a new DuckDB file, which appears complete or not at all; returns rows by table.

    Raises UsageError for a target that is no place for it, OutputError where it cannot be written.
    """
    import duckdb

    outside(store, target)
    if Path(target).suffix != ".duckdb":
        raise UsageError(f"{target}: name a file that ends in .duckdb")
    draft = Path(target).with_name(f".{Path(target).name}.{secrets.token_hex(4)}.tmp")
    counts: dict[str, int] = {}
    try:
        with connect(store) as connection:
            connection.execute(f"ATTACH {text(draft)} AS made")
            for name in TABLES:
                connection.execute(f"CREATE TABLE made.{name} AS SELECT * FROM {name}")
                counted = connection.execute(f"SELECT count(*) FROM made.{name}").fetchone()
                counts[name] = counted[0] if counted else 0
            connection.execute("DETACH made")
        draft.replace(target)
    except duckdb.IOException as error:
        raise OutputError(f"{target}: cannot be written: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        for path in (draft, draft.with_name(f"{draft.name}.wal")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return counts


def outside(store: str, target: str) -> None:
    """Raise UsageError for an output that would lie in the store."""
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(store)):
        raise UsageError(f"{target} lies in the store: its files are written by evaluations alone; name another place")
