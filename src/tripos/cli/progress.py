"""How far long work has come, on stderr: one line, rewritten, with a rate and the time left."""

from __future__ import annotations

import sys
import time

_QUIET_S = 2.0
_EVERY_S = 0.5


class Progress:
    """Tells nothing for the first two seconds, nor where stderr is no terminal, nor when asked to be quiet."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._what = what
        self._silent = quiet or not sys.stderr.isatty()
        self._started = self._told = time.monotonic()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: int, total: int) -> None:
        """Tell that `done` of `total` are through."""
        now = time.monotonic()
        if self._silent or now - self._started < _QUIET_S or now - self._told < _EVERY_S:
            return
        rate = done / (now - self._started)
        left = f", {max(total - done, 0) / rate:.0f} s left" if rate and total else ""
        sys.stderr.write(f"\r\x1b[K{self._what}: {done:,} of {total:,}, {rate:,.0f} a second{left}")
        sys.stderr.flush()
        self._told, self._shown = now, True
