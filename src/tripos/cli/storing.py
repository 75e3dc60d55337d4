"""What the evaluating commands share about the run history."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tripos.errors import InputError, OutputError

if TYPE_CHECKING:
    from tripos.cli.settings import Settings
    from tripos.loop.storing import Storing
    from tripos.store.writing import Stored


def storing(settings: Settings, store: str | None, no_store: bool, labels: Sequence[str] | None) -> Storing | None:
    """Where this evaluation is stored, None: nowhere; raises UsageError for flags that contradict each other."""
    from tripos.errors import UsageError
    from tripos.loop.storing import storing as chosen

    if store and no_store:
        raise UsageError("--store and --no-store: give one of the two")
    return chosen(settings.config, from_file=settings.path is not None, labels=labels or (), off=no_store)


@contextlib.contextmanager
def stored(history: Storing | None, keep: Callable[[Storing], Stored], *, quiet: bool, what: str = "run") -> Iterator[None]:
    """Store, then show what was made; the outputs are there already, and what fails here is told after they are shown."""
    from tripos.loop.storing import not_stored

    failed: OutputError | None = None
    if history is not None:
        try:
            found = keep(history)
        except (InputError, OutputError) as error:
            failed = not_stored(error, what)
        else:
            if not quiet:
                again = "" if found.is_new else ", known: one more execution" if found.execution_id else ", known"
                print(f"{what} {found.run_id[:12]} → {history.folder}{again}", file=sys.stderr)
    yield
    if failed is not None:
        raise failed
