"""Forked processes that each do one piece of work and send back what came of it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from tripos.errors import TriposError

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def cores() -> int:
    """How many processes may run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def can_fork() -> bool:
    """Whether processes may share what was read so far; elsewhere one process does the work."""
    return sys.platform != "win32" and "fork" in multiprocessing.get_all_start_methods()


@contextlib.contextmanager
def forked(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[list[Connection]]:
    """One forked process for each tuple of arguments, with the connection on which its result comes; see `received`.

    All are ended when the block is left. A TriposError in a process comes as None: the work is then done again by the
    parent, which tells it in its place.

    Args:
        work: Called as `work(tell, *arguments)`; `tell` sends a message ahead of the result, which is the last to come.
        arguments: What each process works on.
    """
    context = multiprocessing.get_context("fork")
    started, connections = [], []
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # none may come between a fork and its being on the list
        for own in arguments:
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_run, args=(theirs, work, own), daemon=True)
            with warnings.catch_warnings():
                # the parent's other threads are those of a linear-algebra library, which no child calls
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            started.append(process)
            connections.append(mine)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        yield connections
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for process in started:
            process.terminate()
        for process in started:
            process.join()
        for connection in connections:
            connection.close()


class _Failed(str):
    """What went wrong in a process, by no fault of the user's."""

    __slots__ = ()


def _run(connection: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    result: Any = None
    try:
        result = work(connection.send, *arguments)
    except TriposError:
        pass
    except Exception as error:  # noqa: BLE001 - a fault of ours is told by the parent, which has the terminal
        result = _Failed(f"{type(error).__name__}: {error}")
    with contextlib.suppress(BrokenPipeError):
        connection.send(result)
        connection.close()


def received(connection: Connection) -> Any:
    """The next message of a process; raises TriposError where it failed, or ended without one."""
    try:
        message = connection.recv()
    except (EOFError, OSError):
        raise TriposError("a worker process ended without a word (out of memory?): fewer --workers may help") from None
    if isinstance(message, _Failed):
        raise TriposError(f"a worker process failed: {message}")
    return message
