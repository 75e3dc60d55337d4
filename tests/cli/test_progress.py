"""Progress on stderr: a rate and the time left, and silence where it would be noise."""

from __future__ import annotations

import io

from tripos.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, seconds: float) -> str:
    times = iter(range(10_000))
    progress = Progress("queries", stream=stream, clock=lambda: next(times) * seconds)
    for done in range(1, 11):
        progress(done, 10)
    return stream.getvalue()


def test_progress_is_silent_where_it_is_fast_and_no_terminal() -> None:
    assert told(io.StringIO(), 0.1) == ""


def test_progress_has_rate_and_time_left() -> None:
    # due at 2 s: the second query is done at 2 s, one second after the first; then every 10 s, and not at the end
    assert told(io.StringIO(), 1) == "2 of 10 queries, 1.0/s, 8 s left\n"
    assert told(io.StringIO(), 6).splitlines() == [
        "2 of 10 queries, 0.2/s, 48 s left",
        "4 of 10 queries, 0.2/s, 36 s left",
        "6 of 10 queries, 0.2/s, 24 s left",
        "8 of 10 queries, 0.2/s, 12 s left",
    ]


def test_a_terminal_is_left_clean() -> None:
    text = told(Terminal(), 0.15)
    assert text.startswith("\r2 of 10 queries, 6.7/s, 1 s left\x1b[K")
    assert text.endswith("\r\x1b[K")
