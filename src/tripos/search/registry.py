"""Where a search comes from: an embedded mode by name, or a customer's own by `package.module:factory`."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

from tripos.contracts.config import SearchConfig
from tripos.contracts.index import Corpus
from tripos.errors import TriposError, UsageError, quoted, suggest
from tripos.search.protocol import Factory, Searcher


def _lexical(corpus: Corpus, policy: SearchConfig) -> Searcher:
    from tripos.search.lexical import Lexical

    return Lexical(corpus, policy)


EMBEDDED: dict[str, Factory] = {"lexical": _lexical}
"""Mode name → factory."""


def embedded(mode: str | None) -> Factory:
    """The factory of an embedded mode; raises UsageError that says what to do for any other."""
    if mode in EMBEDDED:
        return EMBEDDED[mode]
    asked = mode or ""
    raise UsageError(
        f'no embedded search of mode "{quoted(asked)}"{suggest(asked, EMBEDDED)}: only lexical is embedded. For dense, hybrid '
        "or your own search, let your system write ranked results (one line a query: "
        '{"query_id": …, "results": [{"fragment_id": …, "score": …}]}), or plug it in with --searcher package.module:factory'
    )


def plugged(reference: str) -> Factory:
    """A customer's own factory by `package.module:factory`; the current folder is importable, as for `python -m`.

    Raises UsageError that names the reference where it cannot be imported or makes no Searcher.
    """
    module_name, separator, attribute = reference.partition(":")
    if not (module_name and separator and attribute):
        raise UsageError(f'--searcher "{quoted(reference)}": write package.module:factory')
    module = _module(module_name, reference)
    make = getattr(module, attribute, None)
    if make is None:
        raise UsageError(f'--searcher {reference}: {module_name} has no "{attribute}"{suggest(attribute, vars(module))}')
    if not callable(make):
        raise UsageError(f"--searcher {reference}: is no function but {_kind(make)}: name one that takes (corpus, policy)")

    def factory(corpus: Corpus, policy: SearchConfig) -> Searcher:
        with foreign(reference, "failed when called with (corpus, policy)"):
            return _searcher(make(corpus, policy), reference)

    return factory


def _module(name: str, reference: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with foreign(reference, f"{name} cannot be imported"):
        return importlib.import_module(name)


def _searcher(made: object, reference: str) -> Searcher:
    if isinstance(made, type) or not callable(getattr(made, "search", None)):
        raise UsageError(f"--searcher {reference}: returned {_kind(made)}, which has no method search(query, limit)")
    return cast("Searcher", made)


@contextlib.contextmanager
def foreign(reference: str, what: str) -> Iterator[None]:
    """Run a customer's code: what it prints goes to stderr, what it raises becomes a UsageError that names it."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except TriposError:
        raise
    except Exception as error:  # a customer's code may raise anything - it is told by its name
        raise UsageError(f"--searcher {reference}: {what}: {told(error)}") from error


def told(error: BaseException) -> str:
    """An exception on one line, cut."""
    said = " ".join(str(error).split())
    return quoted(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def _kind(value: object) -> str:
    return (
        "the class " + value.__name__
        if isinstance(value, type)
        else "None"
        if value is None
        else f"an object of type {type(value).__name__}"
    )
