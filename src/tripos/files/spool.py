"""Rows put aside in any order and read back by number: in memory while small, then in an unnamed temporary file."""

from __future__ import annotations

import tempfile
from array import array
from pathlib import Path
from types import TracebackType
from typing import Self

_IN_MEMORY = 16 << 20


class Spool:
    """Lines by number; memory is eight bytes a line beyond the first 16 MB of text.

    The temporary file has no name and lies in `folder` (the output folder), where there is one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        where = None if folder is None else str(folder)
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=where)  # noqa: SIM115 - closed by close or with its owner
        self._starts = array("q", [0])

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
