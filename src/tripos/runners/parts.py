"""Ranked results in parts: several processes align and measure their share of one file, and the parts come together exactly.

A part that meets anything to report gives up, and so does a query that stands in two parts: the whole file is then read again
in one process, by which every fault is told with its line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from tripos.checks.stamps import Stamps
from tripos.columns.align import Aligner, Aside, Reading
from tripos.columns.judged import Judged
from tripos.columns.slots import Part
from tripos.contracts.config import SearchConfig
from tripos.contracts.reports import Component
from tripos.contracts.retrieval import RankedRow
from tripos.errors import Findings
from tripos.files.ranked import Form, Piece, pieces, read_piece
from tripos.files.spool import Spool
from tripos.measures.block import ROWS
from tripos.measures.scores import Plan, Scores
from tripos.runners.forks import can_fork, cores, forked, received

Progress = Callable[[int, int], None]
Tell = Callable[[int], None]

BIG_ENOUGH = 48 << 20
"""Bytes of ranked results from which more than one process pays, where the user names no number."""

_TELL_EVERY = 500


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that a share of the work needs."""

    path: str
    judgments: Judged
    reading: Reading
    components: Mapping[str, Component]
    search: SearchConfig
    plan: Plan
    workers: int = 0
    memory_limit: int = 0


class Message(NamedTuple):
    """What a child sends when it is done."""

    part: Part
    stamps: Stamps
    scores: Any
    form: str | None


class Share:
    """A share of the work: aligns rows in batches, and measures each batch as it is full."""

    def __init__(self, job: Job, aside: Aside | None = None, findings: Findings | None = None) -> None:
        reading = replace(job.reading, findings=findings) if findings is not None else job.reading
        self.aligner = Aligner(job.judgments, reading, aside)
        self.stamps, self.scores = Stamps(job.components, job.search), Scores(job.plan)

    def take(self, row: RankedRow) -> None:
        """Align one row."""
        self.aligner.take(row)
        if len(self.aligner.taken) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Measure what was aligned since the last batch."""
        if self.aligner.taken:
            self.scores.add(self.aligner.batch())

    def finish(self) -> None:
        """Count in the rows that nothing came for."""
        self.flush()
        for columns in self.aligner.missing(ROWS):
            self.scores.add(columns)


def align_file(job: Job, progress: Progress | None) -> Share:
    """Align and measure a file of ranked results, in as many processes as it pays; faults go to the job's findings."""
    workers = job.workers or _workers(job.path)
    done = None
    if workers > 1 and can_fork():
        with pieces(job.path, workers, job.memory_limit, relaxed=_is_relaxed(job)) as found:
            done = _in_processes(job, found, workers, progress) if len(found) > 1 else None
    done = done or _whole(job, progress)
    done.finish()
    return done


def _workers(path: str) -> int:
    """One process for small files and where the size is unknown; else one a core."""
    with contextlib.suppress(OSError):
        if Path(path).stat().st_size >= BIG_ENOUGH:
            return cores()
    return 1


def _whole(job: Job, progress: Progress | None) -> Share:
    """All of the file in this process."""
    share, findings = Share(job), job.reading.findings
    total, n, form = len(job.judgments), 0, Form()
    with pieces(job.path, 1, job.memory_limit, relaxed=_is_relaxed(job)) as found:
        for piece in found:
            for row in share.stamps.watch(read_piece(piece, findings, form, **_relaxed(job))):
                n += 1
                if progress and n % _TELL_EVERY == 0:
                    progress(n, total)
                if share.aligner.is_new(row.query_id):
                    share.take(row)
                else:
                    findings.error("duplicate_id", row.place, "query_id", f'"{row.query_id}" stands in two places')
    return share


def _is_relaxed(job: Job) -> bool:
    return job.reading.options.lenient or job.reading.options.allow_extra


def _relaxed(job: Job) -> dict[str, bool]:
    return {"lenient": job.reading.options.lenient, "allow_extra": job.reading.options.allow_extra}


def _in_processes(job: Job, parts: Sequence[Piece], workers: int, progress: Progress | None) -> Share | None:
    """All parts in several processes; None where one of them gave up, or a query stands in two."""
    whole = Share(job)
    shares = [own for n in range(workers) if (own := parts[n::workers])]
    asides = [(Spool.shared(), Spool.shared()) for _ in shares]
    with forked(_work, [(job, *own) for own in zip(shares, asides, strict=True)]) as connections:
        done = dict.fromkeys(connections, 0)
        forms: set[str | None] = {None}
        waiting = dict(zip(connections, asides, strict=True))
        while waiting:
            for connection in wait(list(waiting)):
                assert isinstance(connection, Connection)
                message = received(connection)
                if isinstance(message, int):
                    done[connection] += message
                    if progress:
                        progress(sum(done.values()), len(job.judgments))
                    continue
                aside = waiting.pop(connection)
                if message is None or not _absorbed(whole, message, aside):
                    return None
                forms.add(message.form)
                if len(forms) > 2:
                    return None
    return whole


def _absorbed(whole: Share, message: Message, aside: Aside) -> bool:
    """Whether a child's share could be taken: no query of it came before."""
    stories, batches = (shelf.adopted_by(spool) for shelf, spool in zip(message.part.shelves, aside, strict=True))
    if not whole.aligner.absorb(replace(message.part, stories=stories, batches=batches)):
        return False
    whole.stamps.absorb(message.stamps)
    whole.scores.merge(message.scores)
    return True


def _work(tell: Tell, job: Job, pieces_of_it: Sequence[Piece], aside: Aside) -> Message | None:
    """A child's share: tell counts of rows as they are read, then what came of them, or None to give up."""
    findings, form = Findings(), Form()
    share = Share(job, aside, findings)
    found = (row for piece in pieces_of_it for row in read_piece(piece, findings, form, **_relaxed(job)))
    if not _taken(share, found, tell):
        return None
    share.flush()
    return Message(share.aligner.part(), share.stamps, share.scores.state, form.name)


def _taken(share: Share, rows: Iterator[RankedRow], tell: Tell) -> bool:
    """Whether all rows were taken with nothing to report; tells the parent how many are through."""
    findings = share.aligner.reading.findings
    for n, row in enumerate(share.stamps.watch(rows), 1):
        if n % _TELL_EVERY == 0:
            tell(_TELL_EVERY)
        if findings.n_errors or not share.aligner.is_new(row.query_id):
            return False
        share.take(row)
    return not findings.n_errors
