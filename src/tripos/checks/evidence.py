"""Evidence by quotation: which fragments hold a quote, whatever the chunking."""

from __future__ import annotations

import re
import unicodedata

from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RetrievalJudgment

Alternative = frozenset[str]
"""Fragments that hold a passage together; one fragment alone in the usual case."""

_MAX_PIECES = 8


def normal(text: str) -> str:
    """Unicode NFC with white space collapsed, the form in which quotes are compared."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def natural(name: str) -> tuple[list[tuple[bool, int, str]], str]:
    """A sort key that reads digits as numbers, f2 before f10; distinct for distinct names."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(part[0] in "0123456789", int(part) if part[0] in "0123456789" else 0, part) for part in parts], name


def holders(source_id: str, quote: str, corpus: Corpus) -> list[Alternative]:
    """Every way in which fragments of the source hold the whole quote; [] where none does.

    Each fragment that holds it alone is one way. Only where none does, a quote cut by a boundary is looked for in runs of
    neighbouring fragments, all of which are then needed together. Neighbours are so by fragment id, numbers in it read as
    numbers (f2 before f10): the order of lines is in no digest, and must decide nothing.
    """
    wanted = normal(quote)
    names = sorted((n for n in corpus.fragments.get(source_id, []) if n in corpus.texts), key=natural)
    texts = [normal(corpus.texts[n]) for n in names]
    alone = [frozenset({n}) for n, text in zip(names, texts, strict=True) if wanted in text]
    return alone or _pieces(wanted, names, texts)


def _pieces(wanted: str, names: list[str], texts: list[str]) -> list[Alternative]:
    """The shortest runs of neighbours whose joined text holds the quote."""
    for length in range(2, min(_MAX_PIECES, len(names)) + 1):
        runs = [
            frozenset(names[start : start + length])
            for start in range(len(names) - length + 1)
            if _holds_joined(wanted, texts[start : start + length])
        ]
        if runs:
            return runs
    return []


def _holds_joined(wanted: str, texts: list[str]) -> bool:
    return wanted in " ".join(texts) or wanted in "".join(texts)


def evidence_units(row: RetrievalJudgment, corpus: Corpus | None) -> list[list[Alternative]] | None:
    """The row's finer evidence as units of alternatives; None where quotes cannot be resolved (no corpus, or no texts)."""
    if row.expected_fragments:
        return [[frozenset({name})] for name in dict.fromkeys(row.expected_fragments)]
    if row.expected_evidence and (corpus is None or not corpus.texts):
        return None
    return [holders(e.source_id, e.quote, corpus) for e in row.expected_evidence] if corpus else []
