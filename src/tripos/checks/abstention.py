"""Whether an answer abstained: as the system says, else because it is empty, else because all of it is a known phrase."""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Iterable
from importlib import resources

from tripos.contracts.config import LANGUAGES
from tripos.contracts.generation import Origin

_MARKS = {code: None for code in range(128) if not chr(code).isalnum()}


def normal(text: str, limit: int | None = None) -> str:
    """Unicode NFKC, case folded, with letters, marks and digits alone: the form in which whole answers are compared.

    With a `limit`, a form longer than that may be cut anywhere beyond it.
    """
    if text.isascii():
        return text.lower().translate(_MARKS)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = (c for c in folded if c.isalnum() or unicodedata.category(c).startswith("M"))
    return "".join(kept if limit is None else itertools.islice(kept, limit + 1))


@functools.cache
def shipped(language: str) -> tuple[str, ...]:
    """The phrases of one language, as they stand in its data file."""
    text = resources.files("tripos.checks").joinpath("phrases", f"{language}.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


class Phrases:
    """Phrases that are, as whole answers, abstentions; `by_form` gives the phrase as written by its normal form."""

    def __init__(self, languages: Iterable[str] = LANGUAGES, extra: Iterable[str] = ()) -> None:
        phrases = [phrase for language in languages for phrase in shipped(language)] + list(extra)
        self.by_form = {form: phrase for phrase in reversed(phrases) if (form := normal(phrase))}
        self._longest = max(map(len, self.by_form), default=0)

    def match(self, answer: str) -> str | None:
        """The phrase that is the whole answer, if one is."""
        return self.by_form.get(normal(answer, self._longest))

    def content(self) -> list[str]:
        """What the measurement fingerprint covers."""
        return sorted(self.by_form)


def abstention(answer: str, abstained: bool | None, phrases: Phrases) -> tuple[bool, Origin]:
    """Whether the answer abstained, and by what evidence: `given` beats `empty` beats `phrase`."""
    if abstained is not None:
        return abstained, "given"
    if not answer.strip():
        return True, "empty"
    return (True, "phrase") if phrases.match(answer) is not None else (False, "answered")
