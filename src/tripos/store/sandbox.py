"""A query in a process of its own, which can read the store's files and nothing else, for so long and with so much memory.

Four locks, each enough for most attempts: the statement is checked (`sql`); DuckDB may open files under the store alone, and
its configuration is locked; the process cannot make a file grow; and it is ended when its time is over.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Self

from tripos.errors import InputError, TriposError, UsageError
from tripos.store.layout import escaped

TIMEOUT_S = 30.0
MEMORY = 1 << 30
_BATCH = 2_000
_IN_MEMORY = 16 << 20
_SLACK = 512 << 20
"""Bytes beyond the memory limit for Python, DuckDB itself and its threads."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """SQL over a store, and what it may take; `looks_back` as in `views.connect`."""

    store: str
    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    memory: int = MEMORY
    looks_back: int | None = None


class Result:
    """A whole result, put aside: columns with their types, and rows that may be read more than once."""

    def __init__(self, columns: list[tuple[str, str]]) -> None:
        self.columns, self.n, self.size = columns, 0, 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with its owner

    def take(self, batch: bytes, n: int) -> None:
        """Put one pickled batch of rows aside."""
        self._file.write(len(batch).to_bytes(8, "big") + batch)
        self.n += n
        self.size += len(batch)

    def rows(self) -> Iterator[Row]:
        """Every row, in order."""
        self._file.seek(0)
        while head := self._file.read(8):
            yield from pickle.loads(self._file.read(int.from_bytes(head, "big")))  # noqa: S301 - written by this process's own child

    def close(self) -> None:
        """Let go of the rows."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(query: Query) -> Result:
    """Run a query to its end.

    Raises:
        UsageError: It is refused, does not bind, fails, or takes too long or too much.
        InputError: The store cannot be read.
    """
    deadline = time.monotonic() + query.timeout_s
    context: Any = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, query), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child of a fork starts no thread of the parent's
        process.start()
    theirs.close()
    try:
        return _received(mine, process, query, deadline)
    finally:
        process.kill()
        process.join()
        mine.close()


def _received(connection: Connection, process: Any, query: Query, deadline: float) -> Result:
    result = Result([])
    try:
        for kind, *told in _messages_of(connection, process, query, deadline):
            match kind:
                case "columns":
                    result.columns = told[0]
                case "rows":
                    result.take(*told)
                    if result.size > query.memory:
                        raise UsageError(
                            f"the result takes more than {query.memory >> 20} MiB: narrow it, or give --memory-limit"
                        )
                case "refused":
                    raise UsageError(told[0])
                case "unreadable":
                    raise InputError(*told)
                case "fault":
                    raise TriposError(told[0])
    except BaseException:
        result.close()
        raise
    return result


def _messages_of(connection: Connection, process: Any, query: Query, deadline: float) -> Iterator[tuple[Any, ...]]:
    """What the child says, until it is done; raises UsageError where its time is over, or it ended without a word."""
    kind = ""
    while kind != "done":
        if not connection.poll(max(deadline - time.monotonic(), 0)):
            raise UsageError(f"the query took longer than {query.timeout_s:g} s and was ended: narrow it, or give --timeout")
        try:
            kind, *told = connection.recv()
        except EOFError:
            process.join()
            raise UsageError(_ended(query, process.exitcode)) from None
        yield kind, *told


def _too_much(query: Query) -> str:
    return f"the query took more than {query.memory >> 20} MiB and was ended: narrow it, or give --memory-limit"


def _ended(query: Query, code: int) -> str:
    """What is told of a child that ended without a word: the system ends with SIGKILL what takes too much memory."""
    if code in (-signal.SIGABRT, -9):
        return _too_much(query)
    return f"the query ended its process ({f'signal {-code}' if code < 0 else f'exit {code}'}): DuckDB cannot run it"


def _work(connection: Connection, query: Query) -> None:
    """The child: everything goes through the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        _no_files()
        for message in _messages(query):
            connection.send(message)
    except UsageError as error:
        connection.send(("refused", str(error)))
    except InputError as error:
        connection.send(("unreadable", error.findings, error.total))
    except MemoryError:
        connection.send(("refused", _too_much(query)))
    except BrokenPipeError:
        pass  # the parent has given up
    except Exception as error:  # noqa: BLE001 - a fault of ours is told by the parent, which has the terminal
        connection.send(("fault", f"a query failed: {type(error).__name__}: {error}"))


def _no_files() -> None:
    """No file may grow from here on."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))


def _cap_memory(limit: int) -> None:
    """Allocations that DuckDB does not count (long strings, Python's own) fail beyond the limit, too."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _data() + limit + _SLACK
        if hard == resource.RLIM_INFINITY or wanted < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _data() -> int:
    """Bytes of data that this process has now; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
        return int(pages) * 4096
    return 0


def _messages(query: Query) -> Iterator[tuple[Any, ...]]:
    import duckdb

    from tripos.store.sql import check, explained
    from tripos.store.views import connect, existing

    existing(query.store)
    with duckdb.connect() as parser:
        views = check(parser, query.sql)
    connection = connect(query.store, views, looks_back=query.looks_back)
    columns = {name: _columns(connection, name) for name in views}
    _lock(connection, query)
    _cap_memory(query.memory)
    try:
        found = connection.execute(query.sql, dict(query.parameters) or None)
        yield "columns", [(name, str(kind)) for name, kind, *_ in found.description or ()]
        while rows := found.fetchmany(_BATCH):
            yield "rows", pickle.dumps(rows), len(rows)
    except duckdb.OutOfMemoryException:
        raise UsageError(_too_much(query)) from None
    except (duckdb.Error, UnicodeDecodeError) as error:
        raise UsageError(explained(str(error), query.sql, columns)) from None
    yield ("done",)


def _columns(connection: Any, view: str) -> list[str]:
    sql = "SELECT column_name FROM duckdb_columns() WHERE table_name = $1 AND NOT internal"
    return [name for (name,) in connection.execute(sql, [view]).fetchall()]


def _lock(connection: Any, query: Query) -> None:
    """Files of the store alone, no spilling, no extension, no change of any of it."""
    plain = str(Path(query.store).absolute())
    allowed = [f"{plain}/", f"{escaped(plain)}/"]  # the second as views name it, which DuckDB compares as text
    connection.execute("SET temp_directory = ''")
    connection.execute(f"SET memory_limit = '{max(query.memory >> 20, 16)}MiB'")
    connection.execute("SET allowed_directories = $1", [allowed])
    connection.execute("SET allow_persistent_secrets = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
