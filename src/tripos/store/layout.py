"""Where everything lies in a store, and how it gets there: whole, or not at all.

    STORE/
      runs/<run id>/<table>.<shape>.parquet   one immutable folder a run, which appears by one rename
                    report.json.zst           the report without provenance: the run id is its digest
                    files.json                sha256 and rows of each file
      executions/<time>-<run>-<random>.<shape>.parquet
      latencies/<the same>.<shape>.parquet
      certificates/<certificate id>.<shape>.parquet
      drafts/                                 what is being written; left-overs of killed processes

A shape names the columns: files of one shape are read as one, without opening each to see what is in it.

There is no lock: names either say the content (runs, certificates) or are random (executions). Stores merge by copying files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from tripos.errors import InputError, OutputError, UsageError
from tripos.store.tables import Table

DRAFTS, RUNS, EXECUTIONS, LATENCIES, CERTIFICATES = "drafts", "runs", "executions", "latencies", "certificates"
PLACES = {RUNS, EXECUTIONS, LATENCIES, CERTIFICATES, DRAFTS}
REPORT, FILES = "report.json.zst", "files.json"
DEFAULT = "engagement/store"
"""The store where nothing else is named."""


def file_name(stem: str, shape: str) -> str:
    """The name of a table's file: its table within a run, else its entry."""
    return f"{stem}.{shape}.parquet"


def pattern(store: Path, table: Table, shape: str) -> str:
    """The glob of a table's files of one shape; absolute, so that the working folder may change."""
    stem = f"{RUNS}/*/{table.name}" if table.place == RUNS else f"{table.place}/*"
    return f"{escaped(str(store.absolute()))}/{file_name(stem, shape)}"


def shapes(store: Path) -> dict[str, list[str]]:
    """The shapes in which each table is there, by name; tables without a file are left out."""
    found: dict[str, set[str]] = {}
    for place in (EXECUTIONS, LATENCIES, CERTIFICATES):
        for name in _names(store / place):
            _note(found, place, name)
    for run in _names(store / RUNS):
        for name in _names(store / RUNS / run):
            _note(found, name.partition(".")[0], name)
    return {table: sorted(own) for table, own in found.items()}


def _names(folder: Path) -> list[str]:
    return [path.name for path in entries(folder)]


def entries(folder: Path) -> list[Path]:
    """What is in a folder, sorted; nothing where there is none. Raises InputError where it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError.at(str(folder), f"cannot be read: {error.strerror or error}") from None


def is_store(folder: Path) -> bool:
    """Whether a folder has something of a store in it, or nothing at all: a store that is about to be."""
    inside = entries(folder)
    return not inside or any(path.name in PLACES for path in inside)


def refuse_nested(folder: Path) -> None:
    """Raise UsageError for a store that would lie inside another one."""
    for above in Path(os.path.realpath(folder)).parents:
        if (above / RUNS).is_dir() and (above / EXECUTIONS).is_dir():
            raise UsageError(f"{folder} lies in the store {above}: name another folder")


def _note(found: dict[str, set[str]], table: str, name: str) -> None:
    parts = name.split(".")
    if len(parts) == 3 and parts[2] == "parquet":
        found.setdefault(table, set()).add(parts[1])


def escaped(path: str) -> str:
    """The path for a glob of DuckDB."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in path)


@contextlib.contextmanager
def draft(store: Path) -> Iterator[Path]:
    """An empty folder under `drafts`, gone when the block is left; raises OutputError where the store cannot be written."""
    folder = store / DRAFTS / f"{os.getpid()}-{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise OutputError(f"{store}: the store cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish_folder(made: Path, target: Path) -> bool:
    """Give a finished folder its name; False where that run was there already, which stays as it is."""
    for path in sorted(made.iterdir()):
        _sync(path)
    _sync(made)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.rename(target)
    except OSError:
        if target.is_dir():
            return False
        raise
    _sync(target.parent)
    return True


def publish_file(made: Path, target: Path) -> None:
    """Give a finished file its name."""
    _sync(made)
    target.parent.mkdir(parents=True, exist_ok=True)
    made.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Bring a file, or a folder's names, to the disk; folders where the system lets them be opened."""
    with contextlib.suppress(PermissionError) if path.is_dir() else contextlib.nullcontext():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
