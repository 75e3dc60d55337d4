"""Whether judgments look as if they belong to their texts, by the words they share.

A source's affinity to a query is the idf-weighted share of the query's words that its texts hold. One pair says little; the
mean over many rows tells a right join from a wrong one (0.27 against 0.08 on Cranfield). Nothing here is a measure: these
are warnings with the figures they rest on, and they stay silent wherever the texts cannot tell.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, Place
from tripos.files.retrieval import Located

MIN_ROWS = 20
"""Fewer rows than this say nothing."""

MAX_ROWS = 2_000
"""Rows that are compared of each file, evenly spaced over the sorted query ids."""

_ROTATIONS = 4
_NEAR_ONE = 1.5
_CLEAR = 3.0
_LEAST_SHARED = 0.01
_WORD = re.compile(r"\w+")


def check_lexical(rows: Sequence[Located], corpus: Corpus, findings: Findings) -> None:
    """Warn of files whose expected sources look unrelated to their queries, or whose grades run the wrong way.

    Rejected rows, rows without a query text and sources without texts are left out.
    """
    files: dict[str, list[RetrievalJudgment]] = defaultdict(list)
    for located in rows:
        if located.row.query is not None and located.row.should_match and located.row.review_status != "rejected":
            files[located.place.file].append(located.row)
    for file, own in files.items():
        chosen = spaced(sorted(own, key=lambda row: row.query_id), MAX_ROWS)
        overlap = Overlap(chosen, corpus)
        join = join_evidence(chosen, overlap)
        if join is not None and join.unrelated:
            findings.warn("unrelated_sources", Place(file), "expected_sources", join.told())
            continue  # the affinity of a wrong join says nothing about its grades
        scale = scale_evidence(chosen, overlap)
        if scale is not None and scale.reversed:
            findings.warn("reversed_scale", Place(file), "relevance", scale.told())


def words(text: str) -> frozenset[str]:
    """The distinct lower-cased words of a text."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFKC", text).lower()))


def spaced(rows: Sequence[RetrievalJudgment], most: int) -> Sequence[RetrievalJudgment]:
    """At most `most` of the rows, evenly spaced."""
    return rows if len(rows) <= most else [rows[i * len(rows) // most] for i in range(most)]


class Overlap:
    """The words of the sources that some rows name, with their idf over those sources."""

    def __init__(self, rows: Iterable[RetrievalJudgment], corpus: Corpus) -> None:
        names = {name for row in rows for name in (*row.expected_sources, *row.grades)}
        self._words = {name: own for name in names if (own := _source_words(name, corpus))}
        self._df = Counter(word for own in self._words.values() for word in own)

    def __contains__(self, source: object) -> bool:
        return source in self._words

    def idf(self, word: str) -> float:
        """ln(1 + (N − df + ½) / (df + ½)), positive for every word."""
        df = self._df[word]
        return math.log(1 + (len(self._words) - df + 0.5) / (df + 0.5))

    def affinity(self, query: str, source: str) -> float:
        """Idf-weighted share, in [0, 1], of the query's words that the source holds; 0 for a query without words."""
        weights = {word: self.idf(word) for word in sorted(words(query))}
        total = math.fsum(weights.values())
        return math.fsum(w for word, w in weights.items() if word in self._words[source]) / total if total else 0.0

    def mean(self, query: str, sources: Iterable[str]) -> float | None:
        """Mean affinity over the sources that have texts; None where none has."""
        return _mean([self.affinity(query, s) for s in sources if s in self])


def _source_words(source: str, corpus: Corpus) -> frozenset[str]:
    names = corpus.fragments.get(source, [])
    return frozenset().union(*(words(f"{corpus.titles.get(n, '')} {corpus.texts[n]}") for n in names if n in corpus.texts))


# ---- are these the right sources?


class JoinEvidence(NamedTuple):
    """Mean affinity of queries to their own expected sources and to other rows', and the paired t of the difference."""

    rows: int
    own: float
    others: float
    t: float

    @property
    def unrelated(self) -> bool:
        """Whether own sources look no nearer than other rows' do, in texts that share words at all."""
        return self.others >= _LEAST_SHARED and self.own < _NEAR_ONE * self.others and self.t < _CLEAR

    def told(self) -> str:
        """What is wrong, on what grounds, and what to do."""
        return (
            f"expected sources look unrelated to their queries: on average they hold {_share(self.own)} of a query's words, "
            f"and those of other rows {_share(self.others)} ({self.rows} rows): are the ids of queries and of judgments from "
            "two numberings? Compare some by eye; if judgment n is of the n-th query: tripos import trec … --query-ids ordinal"
        )


def join_evidence(rows: Sequence[RetrievalJudgment], overlap: Overlap) -> JoinEvidence | None:
    """Compare each row's own expected sources with those of rows a fifth, two fifths, … of the list away.

    None where fewer than 20 rows can be compared.
    """
    pairs = [pair for i in range(len(rows)) if (pair := _own_and_others(rows, i, overlap))]
    if len(pairs) < MIN_ROWS:
        return None
    own, others = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
    return JoinEvidence(len(pairs), own, others, _t([a - b for a, b in pairs]))


def _own_and_others(rows: Sequence[RetrievalJudgment], i: int, overlap: Overlap) -> tuple[float, float] | None:
    row, n = rows[i], len(rows)
    mine = set(row.expected_sources)
    others = {s for k in range(1, _ROTATIONS + 1) for s in rows[(i + k * n // (_ROTATIONS + 1)) % n].expected_sources} - mine
    own, other = overlap.mean(row.query or "", sorted(mine)), overlap.mean(row.query or "", sorted(others))
    return None if own is None or other is None else (own, other)


# ---- does a higher grade mean a better source?


class ScaleEvidence(NamedTuple):
    """How affinity goes with the grade, in judgments that grade nothing 0.

    Attributes:
        affinity: Mean affinity by grade.
        falls: Pairs of grades whose lower grade is nearer to the query, over rows that hold both.
        rises: Pairs whose higher grade is nearer.
        t: t of the mean within-row concordance between grade and affinity, the top grade left out; negative: it falls.
    """

    affinity: dict[int, float]
    rows: int
    falls: int
    rises: int
    t: float

    @property
    def reversed(self) -> bool:
        """Whether affinity clearly falls as the grade rises."""
        return self.t <= -_CLEAR and self.falls > self.rises

    def told(self) -> str:
        """What is wrong, on what grounds, and the flag that would mend it."""
        grades = sorted(self.affinity)
        table = ", ".join(f"{grade} {_share(share)}" for grade, share in sorted(self.affinity.items()))
        return (
            f"grades run {grades[0]}..{grades[-1]}, none is 0, and lower grades are mostly nearer to their queries (share of "
            f"the query's words by grade: {table}): either nothing was judged non-relevant, or the scale is shifted or "
            f"reversed; if {grades[0]} is best: tripos import trec … --grade-map {flipped(grades)}"
        )


def flipped(grades: Iterable[int]) -> str:
    """The --grade-map that turns a scale over: the top grade becomes 0."""
    ordered = sorted(grades)
    return ",".join(f"{grade}={ordered[-1] - grade}" for grade in ordered)


def scale_evidence(rows: Sequence[RetrievalJudgment], overlap: Overlap) -> ScaleEvidence | None:
    """How affinity goes with the grade; None where the judgments cannot hold a reversed scale, or too few rows can tell.

    A reversed scale grades nothing 0 and counts what was judged non-relevant as its top grade. That grade is left out of the
    trend, since non-relevant documents are often put in because they are near (on Cranfield they are the nearest of all).
    """
    if len(scale := whole_grades_without_zero(rows)) < 3:
        return None
    tables = [_by_grade(row, overlap) for row in rows]
    trends = [c for table in tables if (c := _concordance({g: a for g, a in table.items() if g != scale[-1]})) is not None]
    if len(trends) < MIN_ROWS:
        return None
    steps = [step for pair in combinations(scale, 2) if (step := _step(tables, *pair)) is not None]
    means = {g: _mean([a for table in tables for a in table.get(g, ())]) for g in scale}
    affinity = {g: mean for g, mean in means.items() if mean is not None}
    return ScaleEvidence(affinity, len(trends), sum(s < 0 for s in steps), sum(s > 0 for s in steps), _t(trends))


def whole_grades_without_zero(rows: Iterable[RetrievalJudgment]) -> list[int]:
    """The distinct grades, ascending; [] where one is no integer, or some row names a source that is not relevant."""
    grades: set[float] = set()
    for row in rows:
        if row.nonrelevant_sources or row.forbidden_sources:
            return []
        grades.update(row.grades.values())
    return sorted(map(int, grades)) if all(g == int(g) for g in grades) else []


def _by_grade(row: RetrievalJudgment, overlap: Overlap) -> dict[int, list[float]]:
    table: dict[int, list[float]] = defaultdict(list)
    for source, grade in sorted(row.grades.items()):
        if source in overlap:
            table[int(grade)].append(overlap.affinity(row.query or "", source))
    return table


def _concordance(table: Mapping[int, Sequence[float]]) -> float | None:
    """Pairs of sources whose higher grade is nearer, less the others, over all pairs of unequal grade; None without any."""
    signs = [_sign(b - a) for low, high in combinations(sorted(table), 2) for a in table[low] for b in table[high]]
    return _mean(signs)


def _step(tables: Iterable[Mapping[int, Sequence[float]]], low: int, high: int) -> float | None:
    """Mean rise of affinity from one grade to a higher one, over the rows that hold both."""
    return _mean(list(_rises(tables, low, high)))


def _rises(tables: Iterable[Mapping[int, Sequence[float]]], low: int, high: int) -> Iterator[float]:
    for table in tables:
        a, b = _mean(table.get(low, ())), _mean(table.get(high, ()))
        if a is not None and b is not None:
            yield b - a


def _sign(value: float) -> float:
    return float((value > 0) - (value < 0))


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _t(differences: Sequence[float]) -> float:
    """Mean over its standard error; ±inf where all are the same and not 0."""
    n, mean = len(differences), math.fsum(differences) / len(differences)
    variance = math.fsum((d - mean) ** 2 for d in differences) / max(n - 1, 1)
    return mean / math.sqrt(variance / n) if variance else math.inf * _sign(mean) if mean else 0.0


def _share(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")
