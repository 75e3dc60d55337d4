r"""Text to the words that the lexical search indexes; the same for fragments and queries.

A word is a run of letters, digits and underscores (`\w+`, Unicode) of the NFKC form, lower-cased. One character is enough:
"plan B", "5 GB" and "C" differ by nothing else, and a letter that stands everywhere is discounted by its idf anyway. NFKC
undoes the ligatures and full-width forms that texts taken from PDFs hold. Scripts written without spaces give one word a
run, and scripts with combining vowel signs are cut at the signs: alike in texts and queries, yet coarse.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from tripos.errors import UsageError

Analyser = Callable[[str], list[str]]

ENGLISH_STOPWORDS = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of", "on",
        "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
    }
)  # fmt: skip
"""Lucene's default English list. It is written out here, so that no release of a library changes a ranking."""

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The lower-cased words of a text, in order."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.lower())


def analyser(stopwords: str, stemmer: str) -> Analyser:
    """Words without stopwords, stemmed, as asked; raises UsageError where the stemmer is not installed."""
    steps: list[Callable[[list[str]], list[str]]] = []
    if stopwords == "english":
        steps.append(lambda found: [word for word in found if word not in ENGLISH_STOPWORDS])
    if stemmer == "english":
        steps.append(_stemmer())

    def analyse(text: str) -> list[str]:
        found = words(text)
        for step in steps:
            found = step(found)
        return found

    return analyse


def _stemmer() -> Callable[[list[str]], list[str]]:
    try:
        from Stemmer import Stemmer
    except ImportError:
        raise UsageError("stemmer=english needs PyStemmer, which is not installed: pip install PyStemmer") from None
    stem: Callable[[list[str]], list[str]] = Stemmer("english").stemWords
    return stem
