"""What goes to stderr beside errors: how far long work has come, and warnings."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import IO

from tripos.errors import MAX_SHOWN, Findings


def tell_warnings(findings: Findings) -> None:
    """The first warnings on stderr, and how many more there are."""
    for finding in findings.warnings[:MAX_SHOWN]:
        print(f"warning: {finding}", file=sys.stderr)
    if (rest := findings.n_warnings - MAX_SHOWN) > 0:
        print(f"… {rest} more warning{'' if rest == 1 else 's'} (tripos lint shows them)", file=sys.stderr)


class Progress:
    """Redrawn in place on a terminal; elsewhere a line after 2 s and then every 10 s; nothing when quiet."""

    def __init__(
        self,
        what: str,
        *,
        quiet: bool = False,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._quiet, self._clock = what, quiet, clock
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._due = clock() + (0.2 if self._is_terminal else 2)
        self._first: tuple[float, int] | None = None  # what was set up before it belongs in no rate
        self._is_drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Tell that `done` of `total` are through; total 0: nobody knows how many there are."""
        if self._quiet:
            return
        now = self._clock()
        start, before = self._first = self._first or (now, done)
        if total and done >= total:
            self.clear()
        elif now >= self._due and now > start:
            self._due = now + (0.1 if self._is_terminal else 10)
            self._is_drawn = self._is_terminal
            line = self._line(done, total, (done - before) / (now - start))
            self._tell(f"\r{line}\x1b[K" if self._is_terminal else f"{line}\n")

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._is_drawn:
            self._tell("\r\x1b[K")
            self._is_drawn = False

    def _line(self, done: int, total: int, rate: float) -> str:
        left = f", {(total - done) / rate:,.0f} s left" if rate and total else ""
        return f"{done:,}{f' of {total:,}' if total else ''} {self._what}, {rate:,.1f}/s{left}"

    def _tell(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
