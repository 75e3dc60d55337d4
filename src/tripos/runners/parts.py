"""Ranked results in parts: several processes align their share of one file, and the parts come together exactly.

A part that meets anything to report gives up, and so does a query that stands in two parts: the whole file is then read again
in one process, by which every fault is told with its line.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tripos.checks.stamps import Stamps
from tripos.columns.align import Aligner, Reading
from tripos.columns.slots import Part
from tripos.contracts.config import SearchConfig
from tripos.contracts.reports import Component
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import Findings, TriposError
from tripos.files.ranked import Form, Piece, pieces, read_piece

Progress = Callable[[int, int], None]

BIG_ENOUGH = 48 << 20
"""Bytes of ranked results from which more than one process pays, where the user names no number."""

_TELL_EVERY = 500
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that a share of the work needs."""

    path: str
    judgments: Sequence[RetrievalJudgment]
    reading: Reading
    components: Mapping[str, Component]
    search: SearchConfig
    workers: int = 0
    memory_limit: int = 0


def align_file(job: Job, progress: Progress | None) -> tuple[Aligner, Stamps]:
    """Align a file of ranked results, in as many processes as it pays; faults go to the job's findings."""
    workers = job.workers or _workers(job.path)
    if workers > 1 and _can_fork():
        with pieces(job.path, workers, job.memory_limit, relaxed=_is_relaxed(job)) as found:
            aligned = _in_processes(job, found, workers, progress) if len(found) > 1 else None
        if aligned is not None:
            return aligned
    return _whole(job, progress)


def _workers(path: str) -> int:
    """One process for small files and where the size is unknown; else one a core."""
    with contextlib.suppress(OSError):
        if Path(path).stat().st_size >= BIG_ENOUGH:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1


def _can_fork() -> bool:
    """Whether processes may share what was read so far; elsewhere one process does the work."""
    return sys.platform != "win32" and "fork" in multiprocessing.get_all_start_methods()


def _whole(job: Job, progress: Progress | None) -> tuple[Aligner, Stamps]:
    """All of the file in this process."""
    aligner, stamps = Aligner(job.judgments, job.reading), Stamps(job.components, job.search)
    total, n = len(aligner.rows), 0
    form = Form()
    with pieces(job.path, 1, job.memory_limit, relaxed=_is_relaxed(job)) as found:
        for piece in found:
            for row in stamps.watch(read_piece(piece, job.reading.findings, form, **_relaxed(job))):
                n += 1
                if progress and n % _TELL_EVERY == 0:
                    progress(n, total)
                if aligner.is_new(row.query_id):
                    aligner.take(row)
                else:
                    job.reading.findings.error("duplicate_id", row.place, "query_id", f'"{row.query_id}" stands in two places')
    return aligner, stamps


def _is_relaxed(job: Job) -> bool:
    return job.reading.options.lenient or job.reading.options.allow_extra


def _relaxed(job: Job) -> dict[str, bool]:
    return {"lenient": job.reading.options.lenient, "allow_extra": job.reading.options.allow_extra}


def _in_processes(job: Job, parts: Sequence[Piece], workers: int, progress: Progress | None) -> tuple[Aligner, Stamps] | None:
    """All parts in several processes; None where one of them gave up, or a query stands in two."""
    aligner, stamps = Aligner(job.judgments, job.reading), Stamps(job.components, job.search)
    with _processes(aligner.rows, job, [parts[n::workers] for n in range(workers)]) as connections:
        done = dict.fromkeys(connections, 0)
        forms: set[str | None] = {None}
        open_ones = set(connections)
        while open_ones:
            for connection in wait(list(open_ones)):
                assert isinstance(connection, Connection)
                message = _received(connection)
                if isinstance(message, int):
                    done[connection] += message
                    if progress:
                        progress(sum(done.values()), len(aligner.rows))
                    continue
                open_ones.discard(connection)
                if isinstance(message, str):
                    raise TriposError(f"a worker process failed: {message}")
                if message is None or not aligner.absorb(message[0]):
                    return None
                stamps.absorb(message[1])
                forms.add(message[2])
                if len(forms) > 2:
                    return None
    return aligner, stamps


def _received(connection: Connection) -> Any:
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise TriposError("a worker process ended without a word (out of memory?): fewer --workers may help") from None


@contextlib.contextmanager
def _processes(rows: Sequence[RetrievalJudgment], job: Job, shares: Sequence[Sequence[Piece]]) -> Iterator[list[Connection]]:
    """One forked process a share; all are ended when the block is left."""
    context = multiprocessing.get_context("fork")
    started, connections = [], []
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # none may come between a fork and its being on the list
        for share in shares:
            if not share:
                continue
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, rows, job, share), daemon=True)
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


def _work(connection: Connection, rows: Sequence[RetrievalJudgment], job: Job, share: Sequence[Piece]) -> None:
    """A child's share: send counts of rows as they are read, then the part, or None to give up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    findings = Findings()
    aligner = Aligner(rows, replace(job.reading, findings=findings))
    stamps = Stamps(job.components, job.search)
    message: tuple[Part, Stamps, str | None] | str | None = None
    form = Form()
    try:
        found = (row for piece in share for row in read_piece(piece, findings, form, **_relaxed(job)))
        if _taken(aligner, stamps, found, connection):
            message = (aligner.part(), stamps, form.name)
    except TriposError:
        pass  # the whole file is read again, by which it is told in its place
    except Exception as error:  # noqa: BLE001 - a fault of ours is told by the parent, which has the terminal
        message = f"{type(error).__name__}: {error}"
    with contextlib.suppress(BrokenPipeError):
        connection.send(message)
        connection.close()


def _taken(aligner: Aligner, stamps: Stamps, rows: Iterator[RankedRow], connection: Connection) -> bool:
    """Whether all rows were taken with nothing to report; tells the parent how many are through."""
    findings = aligner.reading.findings
    for n, row in enumerate(stamps.watch(rows), 1):
        if n % _TELL_EVERY == 0:
            connection.send(_TELL_EVERY)
        if findings.n_errors or not aligner.is_new(row.query_id):
            return False
        aligner.take(row)
    return not findings.n_errors
