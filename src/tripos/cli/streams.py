"""Standard streams as commands need them: a reader that went away ends nothing, and no character is too wide."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO, cast

from tripos.errors import OutputError


class Results:
    """Standard output whose reader may leave early: what it no longer reads is dropped, and the verdict stays."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, and drop the text where nobody reads it; raises OutputError where it cannot be written."""
        return self._try(lambda: self._stream.write(text), len(text))

    def flush(self) -> None:
        """Flush, under the same terms."""
        self._try(self._stream.flush, 0)

    def _try(self, act: Any, instead: int) -> int:
        try:
            done = act()
        except BrokenPipeError:
            from tripos.files.streams import discard_stdout

            discard_stdout()
            return instead
        except OSError as error:
            from tripos.files.streams import discard_stdout

            discard_stdout()
            raise OutputError(f"standard output: cannot be written: {error.strerror or error}") from None
        return instead if done is None else int(done)


def prepare() -> None:
    """Open what the caller closed, escape what the terminal's encoding lacks, and let readers leave."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - stands for the closed stream
        with contextlib.suppress(AttributeError, ValueError):
            getattr(sys, name).reconfigure(errors="backslashreplace")
    sys.stdout = cast("TextIO", Results(sys.stdout))


def finish() -> None:
    """Write out what is still buffered, so that a full device is told and not found at exit."""
    sys.stdout.flush()
