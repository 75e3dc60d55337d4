"""Rows put aside in any order and read back by number: in memory while small, then in an unnamed temporary file."""

from __future__ import annotations

import tempfile
from array import array
from pathlib import Path
from types import TracebackType

_IN_MEMORY = 64 << 20


class Spool:
    """Lines by number; memory is eight bytes a line beyond the first 64 MB of text.

    The temporary file has no name and lies in `folder` (the output folder), where there is one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=None if folder is None else str(folder))  # noqa: SIM115 - closed by __exit__
        self._starts = array("q", [0])

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the text."""
        self._file.close()

    def append(self, line: bytes) -> int:
        """Put one line aside; returns its number."""
        self._file.seek(self._starts[-1])
        self._file.write(line)
        self._starts.append(self._starts[-1] + len(line))
        return len(self._starts) - 2

    def read(self, number: int) -> bytes:
        """One line."""
        start, stop = self._starts[number], self._starts[number + 1]
        self._file.seek(start)
        return self._file.read(stop - start)
