"""Rows put aside in any order and read back by number: in memory while small, then in an unnamed temporary file."""

from __future__ import annotations

import os
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_IN_MEMORY = 16 << 20


class Spool:
    """Lines by number; memory is eight bytes a line beyond the last 16 MB of text.

    The temporary file has no name and lies in `folder` (the output folder), where there is one. Reading moves no position
    in it, so that forked processes may read what was put aside before.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._starts, self._tail, self._stored = array("q", [0]), bytearray(), 0

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the text."""
        self._tail = bytearray()
        if self._file is not None:
            self._file.close()

    def append(self, line: bytes) -> int:
        """Put one line aside; returns its number."""
        self._tail += line
        self._starts.append(self._stored + len(self._tail))
        if len(self._tail) > _IN_MEMORY:
            self._store()
        return len(self._starts) - 2

    @classmethod
    def shared(cls) -> Self:
        """A spool that a forked process may fill: see `adopt`."""
        spool = cls()
        spool._open()
        return spool

    def _open(self) -> IO[bytes]:
        if self._file is None:
            where = None if self._folder is None else str(self._folder)
            self._file = tempfile.TemporaryFile(buffering=0, dir=where)  # noqa: SIM115 - closed by close or with its owner
        return self._file

    def _store(self) -> None:
        file = self._open()
        with memoryview(self._tail) as rest:
            written = 0
            while written < len(rest):
                written += os.pwrite(file.fileno(), rest[written:], self._stored + written)
        self._stored += len(self._tail)
        self._tail = bytearray()

    def __getstate__(self) -> array[int]:
        """Where lines start; the lines themselves are in the file, which its process and this one share."""
        self._store()
        return self._starts

    def __setstate__(self, starts: array[int]) -> None:
        self.__init__()  # type: ignore[misc]  # as any other, then with lines
        self._starts, self._stored = starts, starts[-1]

    def adopt(self, filled: Spool) -> None:
        """Take the lines that another process put into the file of this spool, from what it sent of its own copy."""
        self._starts, self._stored = filled._starts, filled._stored

    def read(self, number: int) -> bytes:
        """One line."""
        start, stop = self._starts[number], self._starts[number + 1]
        if start >= self._stored or self._file is None:
            return bytes(self._tail[start - self._stored : stop - self._stored])
        return os.pread(self._file.fileno(), stop - start, start)


class Shelf:
    """Lines in several spools under one number, so that those of several processes come together without being copied."""

    def __init__(self, spool: Spool | None = None) -> None:
        self._spools, self._bases, self._own = [Spool() if spool is None else spool], [0], True

    def __len__(self) -> int:
        return self._bases[-1] + len(self._spools[-1])

    def __iter__(self) -> Iterator[bytes]:
        return map(self.read, range(len(self)))

    def append(self, line: bytes) -> int:
        """Put one line aside; returns its number."""
        if not self._own:
            self._add(Spool())
            self._own = True
        return self._bases[-1] + self._spools[-1].append(line)

    def take(self, other: Shelf) -> int:
        """Take another shelf's lines as well; returns the number of the first."""
        base = len(self)
        for spool in other._spools:
            self._add(spool)
        self._own = False
        return base

    def _add(self, spool: Spool) -> None:
        self._bases.append(len(self))
        self._spools.append(spool)

    def adopted_by(self, spool: Spool) -> Shelf:
        """This shelf, of one spool, as sent by the process that filled it: on the spool that shares its file."""
        spool.adopt(*self._spools)
        return Shelf(spool)

    def read(self, number: int) -> bytes:
        """One line."""
        place = bisect_right(self._bases, number) - 1
        return self._spools[place].read(number - self._bases[place])
