"""The embedded lexical search: BM25 through bm25s, the same results on every machine.

Defaults: Lucene's BM25 with k1 1.5 and b 0.75, no stopwords, no stemmer. Stopwords default to none because the language of
a corpus is not known, because no word of a query should vanish unasked ("IT", "who", "not" may be the point), and because
idf discounts them already: on Cranfield the English list moves nDCG@10 by .005 (.335 to .339), a stemmer by .025.

The same inputs give the same ranking: fragments are indexed by id, scores are 64-bit sums of positive terms in query order,
by one thread, then rounded to 7 significant digits, and only then ordered by score and by id. The rounding hides what `log`
differs by between CPUs, and 7 digits stay apart as the 32-bit floats in which trec_eval compares scores. (Fixed decimals
would not do: a word that stands in every one of a million fragments scores below 10⁻⁶.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tripos.contracts.base import Scalar, shown
from tripos.contracts.config import SearchConfig
from tripos.contracts.index import Corpus
from tripos.errors import ConfigError, Finding, InputError, Place, quoted, suggest
from tripos.search.masks import Masks
from tripos.search.protocol import Hit, Query
from tripos.search.words import analyser

SIGNIFICANT_DIGITS = 7
_SURELY_BELOW = 1 - 2e-6
"""Two scores further apart than this factor differ after rounding: one step of 7 digits is at most 10⁻⁶ of a score."""

Check = Callable[[Scalar], str]


def _number(low: float, high: float) -> Check:
    def check(value: Scalar) -> str:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if is_number and low <= float(value or 0) <= high else f"a number from {low:g} to {high:g}"

    return check


def _one_of(*choices: str) -> Check:
    def check(value: Scalar) -> str:
        near = suggest(value, choices) if isinstance(value, str) else ""
        return "" if value in choices else f"one of {', '.join(choices)}{near}"

    return check


PARAMETERS: dict[str, tuple[Scalar, Check]] = {
    "k1": (1.5, _number(0, 1000)),
    "b": (0.75, _number(0, 1)),
    "method": ("lucene", _one_of("lucene", "robertson", "atire")),
    "stopwords": ("none", _one_of("none", "english")),
    "stemmer": ("none", _one_of("none", "english")),
}
"""Parameters of `search.lexical`: name → default and check. BM25L and BM25+ are left out: they score fragments without any
word of the query, so that no list would ever be empty."""

_NOT_FOLLOWED = ("embedding_model", "fusion", "reranker", "options")


def parameters(policy: SearchConfig) -> dict[str, Any]:
    """The parameters that `policy` states, over the defaults; raises ConfigError with everything that is wrong."""
    given = policy.lexical or {}
    if problems := [*_unknown(given), *_unfit(given), *_not_followed(policy)]:
        raise ConfigError(problems)
    return {name: given.get(name, default) for name, (default, _) in PARAMETERS.items()}


def _unknown(given: Mapping[str, Scalar]) -> Iterator[Finding]:
    for name in sorted(given.keys() - PARAMETERS.keys()):
        text = f"unknown parameter{suggest(name, PARAMETERS)}: known are {', '.join(PARAMETERS)}"
        yield Finding("unknown_parameter", text, Place("search.lexical"), quoted(name))


def _unfit(given: Mapping[str, Scalar]) -> Iterator[Finding]:
    for name, (_, check) in PARAMETERS.items():
        if name in given and (wanted := check(given[name])):
            yield Finding("parameter", f"is {shown(given[name])}, not {wanted}", Place("search.lexical"), name)


def _not_followed(policy: SearchConfig) -> Iterator[Finding]:
    """What a policy states and this search would not do: the digest would vouch for it all the same."""
    for name in _NOT_FOLLOWED:
        if getattr(policy, name) is not None:
            text = "stated, but the embedded lexical search does not follow it: leave it out, or use --searcher"
            yield Finding("not_followed", text, Place("search"), name)


class Lexical:
    """BM25 over title and text of every fragment.

    Word statistics are those of the whole corpus, whoever asks. Filters and principal are a mask over the scores before any
    cut, so that nothing unreadable can come back and nothing readable is crowded out. A score of 0 is no hit.
    """

    def __init__(self, corpus: Corpus, policy: SearchConfig) -> None:
        settings = parameters(policy)
        _require_texts(corpus)
        self._ids = sorted(corpus.sources)  # by code points, which for UTF-8 is by bytes
        self._words = analyser(settings["stopwords"], settings["stemmer"])
        self._index = _Index([self._words(_indexed(corpus, name)) for name in self._ids], settings)
        self._masks = Masks(corpus, self._ids)
        self._filters = policy.filters or {}

    def search(self, query: Query, limit: int) -> list[Hit]:
        """At most `limit` admitted fragments by score, ties by fragment id."""
        scores = self._index.scores(self._words(query.text))
        if scores is None:
            return []
        mask = self._masks.admitted(query.groups, {**self._filters, **query.filters})
        if mask is not None:
            scores = np.where(mask, scores, 0.0)
        return [Hit(self._ids[place], score) for place, score in best(scores, limit)]


def _require_texts(corpus: Corpus) -> None:
    lacking = [name for name in corpus.sources if name not in corpus.texts]
    if lacking:
        text = (
            f'{len(lacking):,} of {len(corpus.sources):,} fragments have none (first "{quoted(lacking[0])}"): lexical search '
            "needs the texts, a catalogue of text_sha256 alone cannot be searched"
        )
        raise InputError.at("fragments", text, field="text", kind="no_text")


def _indexed(corpus: Corpus, name: str) -> str:
    title = corpus.titles.get(name)
    return corpus.texts[name] if title is None else f"{title}\n{corpus.texts[name]}"


class _Index:
    """bm25s with its own numpy backend: no numba, no threads, no progress bars, nothing written."""

    def __init__(self, texts: list[list[str]], settings: Mapping[str, Any]) -> None:
        self._vocabulary: dict[str, int] = {}
        number = self._vocabulary.setdefault
        ids = [[number(word, len(self._vocabulary)) for word in text] for text in texts]
        self._bm25 = self._built(ids, settings) if self._vocabulary else None

    def _built(self, ids: list[list[int]], settings: Mapping[str, Any]) -> Any:
        import bm25s

        chosen = {"k1": float(settings["k1"]), "b": float(settings["b"]), "method": settings["method"]}
        index = bm25s.BM25(**chosen, dtype="float64", backend="numpy")
        index.index((ids, self._vocabulary), create_empty_token=False, show_progress=False)
        return index

    def scores(self, words: list[str]) -> NDArray[np.float64] | None:
        """The score of every fragment; None where no word is known."""
        known = [self._vocabulary[word] for word in words if word in self._vocabulary]
        if not known or self._bm25 is None:
            return None
        scores: NDArray[np.float64] = self._bm25.get_scores_from_ids(known)
        return scores


def best(scores: NDArray[np.float64], limit: int) -> list[tuple[int, float]]:
    """(place, rounded score) of the `limit` best above 0, by rounded score and then by place.

    What the cut keeps is decided on rounded scores: all that could round to the last score kept is rounded before the cut.
    """
    found = np.flatnonzero(scores > 0)
    if len(found) > limit:
        last = np.partition(scores[found], -limit)[-limit]
        found = found[scores[found] >= last * _SURELY_BELOW]
    rounded = [float(f"{score:.{SIGNIFICANT_DIGITS}g}") for score in scores[found].tolist()]
    ranked = sorted(zip(found.tolist(), rounded, strict=True), key=lambda pair: (-pair[1], pair[0]))
    return ranked[:limit]
