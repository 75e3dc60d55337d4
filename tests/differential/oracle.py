"""The retrieval measures a second time: plain Python over the rows of a world, written from measures.md, sharing no code.

Slow on purpose: each figure at each cutoff is counted afresh from the first k positions.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.builders import Row, World

Outcome = list[float] | str | None
"""One row's figures at k = 1..limit (scalars: one figure); why it has none; None where its results are incomplete."""


@dataclass
class Expected:
    """What a report should say of one measure over some rows."""

    value: list[float | None]
    worst: list[float | None]
    n: int
    incomplete: int
    undefined_rows: dict[str, int]


@dataclass
class Ranking:
    """What came back for one row, cut as the measures ask."""

    raw: list[str] = field(default_factory=list)
    fragments: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def in_order(name: str) -> list[tuple[bool, int, str]]:
    """Neighbours in a source are told by id, digits read as numbers."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [
        (part.isascii() and part.isdecimal(), int(part) if part.isascii() and part.isdecimal() else 0, part) for part in parts
    ]


class Oracle:
    """The figures of one world."""

    def __init__(self, world: World) -> None:
        self.world, self.limit = world, world.limit
        self.corpus = {row["fragment_id"]: row for row in world.fragments}
        self.results = {row["query_id"]: row for row in _one_row_a_query(world.results)}
        reviewed = [row for row in world.judgments if row["review_status"] == "reviewed"]
        self.rows = sorted((r for r in reviewed if r["category"] != "calibration"), key=lambda r: str(r["query_id"]))
        self.rankings = {row["query_id"]: self.ranking(row["query_id"]) for row in self.rows}

    # ---- from files to positions

    def ranking(self, query_id: str) -> Ranking | None:
        """The positions of one query; None where it is incomplete: no row, or a row with an error."""
        row = self.results.get(query_id)
        if row is None or row.get("error") is not None:
            return None
        items = _items(row)
        if self.world.order == "score":
            items = sorted(items, key=lambda item: -item["score"])
        if self.world.order == "trec":
            items = sorted(items, key=lambda item: (_single(item["score"]), item["fragment_id"].encode()), reverse=True)
        names = [item["fragment_id"] for item in items]
        items = [item for i, item in enumerate(items) if item["fragment_id"] not in names[:i]]  # a fragment counts once
        raw = [item["fragment_id"] for item in items]
        if self.world.min_score is not None:
            items = [item for item in items if item["score"] >= self.world.min_score]
        pairs = [(item["fragment_id"], self.source(item["fragment_id"], item.get("source_id"))) for item in items]
        fragments = [name for name, _ in pairs][: self.limit]
        sources = [source for _, source in pairs]
        if self.world.unit == "source":
            sources = list(dict.fromkeys(sources))
        return Ranking(raw, fragments, sources[: self.limit])

    def source(self, fragment_id: str, given: str | None) -> str:
        """By the corpus, else as given, else the id up to its last "::"."""
        if row := self.corpus.get(fragment_id):
            given = row.get("source_id")
        if given is not None:
            return given
        head, _, _ = fragment_id.rpartition("::")
        return head or fragment_id

    # ---- the corpus's own rules

    def readable(self, fragment_id: str, groups: Sequence[str]) -> bool:
        """Whether one of the groups may read the fragment."""
        acl = self.corpus[fragment_id].get("acl")
        return self.world.acl_default == "public" if acl is None else any(group in acl for group in groups)

    def passes(self, fragment_id: str, filters: Row) -> bool:
        """Whether the fragment carries every filter's value, type and all."""
        own = self.corpus[fragment_id].get("metadata", {})
        return all(name in own and _equal(own[name], value) for name, value in filters.items())

    def admits(self, source: str, row: Row) -> bool:
        """Whether the row's principal and filters leave some fragment of the source."""
        principal, filters = row.get("principal"), row.get("filters", {})
        own = [name for name in self.corpus if self.source(name, None) == source]
        return any(
            self.passes(name, filters) and (principal is None or self.readable(name, principal["groups"])) for name in own
        )

    def ways(self, evidence: Row) -> list[set[str]]:
        """The sets of fragments that each hold the quote: every fragment alone, else the shortest runs of neighbours."""
        own = sorted((n for n in self.corpus if self.source(n, None) == evidence["source_id"]), key=in_order)
        quote = _plain(evidence["quote"])
        for length in range(1, len(own) + 1):
            runs = [own[i : i + length] for i in range(len(own) - length + 1)]
            texts = [[_plain(self.corpus[name]["text"]) for name in run] for run in runs]
            found = [set(run) for run, t in zip(runs, texts, strict=True) if quote in " ".join(t) or quote in "".join(t)]
            if found:
                return found
        return []

    # ---- one row, one measure

    def outcome(self, name: str, row: Row) -> Outcome:
        """The measure on one row of its population."""
        if reason := self.undefined(name, row):
            return reason
        found = self.rankings[row["query_id"]]
        if found is None:
            return None
        if name == "judged@k" and not found.sources:
            return "no_results"
        if name in _CURVES:
            return [_CURVES[name](row, found.sources[:k], k) for k in range(1, self.limit + 1)]
        if name in ("evidence_hit@k", "evidence_recall@k"):
            return [self.evidence(name, row, found.fragments[:k]) for k in range(1, self.limit + 1)]
        return [float(self.scalar(name, row, found))]

    def undefined(self, name: str, row: Row) -> str | None:
        """Why the row has no such figure, whatever comes back."""
        given: dict[str, list[tuple[bool, str]]] = {
            "group_recall@k": [(bool(row.get("expected_groups")), "no_groups")],
            "evidence_hit@k": self.evidence_given(row),
            "evidence_recall@k": self.evidence_given(row),
            "forbidden@k": [(bool(row.get("forbidden_sources")), "no_forbidden")],
            "judged@k": [(bool(row.get("nonrelevant_sources")), "no_nonrelevant")],
            "bpref": [(bool(row.get("nonrelevant_sources")), "no_nonrelevant")],
            "required": [(bool(row.get("required_sources")), "no_required")],
            "leaks": [(bool(self.corpus), "no_corpus"), (row.get("principal") is not None, "no_principal")],
            "filter_violations": [(bool(self.corpus), "no_corpus"), (bool(row.get("filters")), "no_filters")],
            "denied": [
                (bool(self.corpus), "no_corpus"),
                (row.get("principal") is not None or bool(row.get("filters")), "no_limits"),
            ],
        }
        return next((reason for holds, reason in given.get(name, []) if not holds), None)

    def evidence_given(self, row: Row) -> list[tuple[bool, str]]:
        """Finer evidence there is, and quotes can be looked up."""
        quotes = bool(row.get("expected_evidence"))
        has_texts = any("text" in fragment for fragment in self.corpus.values())
        return [(quotes or bool(row.get("expected_fragments")), "no_evidence"), (not quotes or has_texts, "no_text")]

    def evidence(self, name: str, row: Row, fragments: Sequence[str]) -> float:
        """Passages whole among the fragments: whether there is one, or their share."""
        units = [[{fragment}] for fragment in dict.fromkeys(row.get("expected_fragments", []))]
        units += [self.ways(evidence) for evidence in row.get("expected_evidence", [])]
        whole = sum(any(way <= set(fragments) for way in ways) for ways in units)
        return float(whole > 0) if name == "evidence_hit@k" else whole / len(units)

    def scalar(self, name: str, row: Row, found: Ranking) -> float:
        """The measures without a cutoff."""
        depth = row.get("k") or self.world.top_k or self.limit
        match name:
            case "bpref":
                return _bpref(row, found.sources)
            case "required":
                return set(row["required_sources"]) <= set(found.sources[:depth])
            case "expected_empty":
                return not found.sources
            case "leaks":
                return sum(not self.readable(name, row["principal"]["groups"]) for name in found.raw)
            case "filter_violations":
                return sum(not self.passes(name, row["filters"]) for name in found.raw)
            case "denied":
                # lost to the filter: neither in the list as it came, nor beyond its end, since the list had room
                came = {self.source(name, None) for name in found.raw}
                return len(set(row["expected_sources"]) - came) if len(found.raw) < self.limit else 0
        raise AssertionError(name)

    # ---- many rows

    def population(self, name: str) -> list[Row]:
        """The rows that a measure is taken over."""
        if name in ("forbidden@k", "required", "leaks", "filter_violations"):
            return self.rows
        return [row for row in self.rows if row["should_match"] != (name == "expected_empty")]

    def expected(self, name: str, among: Callable[[Row], bool] = lambda _: True) -> Expected:
        """What a report says of the measure over the rows chosen; "…@case" reads a curve at each row's own depth."""
        base = name.removesuffix("case") + "k" if name.endswith("@case") else name
        rows = [row for row in self.population(base) if among(row)]
        outcomes = [self.outcome(base, row) for row in rows]
        if name.endswith("@case"):
            depths = [row.get("k") or self.world.top_k or self.limit for row in rows]
            outcomes = [[o[k - 1]] if isinstance(o, list) else o for o, k in zip(outcomes, depths, strict=True)]
        scored = [o for o in outcomes if isinstance(o, list)]
        incomplete = sum(o is None for o in outcomes)
        width = self.limit if name.endswith("@k") else 1
        columns = [[o[k] for o in scored] for k in range(width)]
        return Expected(
            value=[_pooled(name, column, 0) for column in columns],
            worst=[_pooled(name, column, incomplete) for column in columns],
            n=len(scored),
            incomplete=incomplete,
            undefined_rows=dict(Counter(o for o in outcomes if isinstance(o, str))),
        )


_COUNTED = ("leaks", "filter_violations", "denied")


def _pooled(name: str, figures: list[float], incomplete: int) -> float | None:
    """The mean, or the sum of a count, with incomplete rows at their bad end; a count has none."""
    if not figures and not incomplete:
        return None
    total = sum(map(Fraction, figures))
    if name in _COUNTED:
        return None if incomplete else float(total)
    bad = 1 if name.startswith("forbidden@") else 0
    return float((total + bad * incomplete) / (len(figures) + incomplete))


# ---- measures of the first k positions: the row, the sources at those positions, k


def _grades(row: Row) -> dict[str, float]:
    return row.get("relevance") or dict.fromkeys(row["expected_sources"], 1)


def _hit(row: Row, top: Sequence[str], _: int) -> float:
    return float(any(source in row["expected_sources"] for source in top))


def _recall(row: Row, top: Sequence[str], _: int) -> float:
    expected = set(row["expected_sources"])
    return len(expected & set(top)) / len(expected)


def _precision(row: Row, top: Sequence[str], k: int) -> float:
    return len(set(row["expected_sources"]) & set(top)) / k


def _rr(row: Row, top: Sequence[str], _: int) -> float:
    return next((1 / rank for rank, source in enumerate(top, 1) if source in row["expected_sources"]), 0)


def _ap(row: Row, top: Sequence[str], _: int) -> float:
    total, found = 0.0, set()
    for rank, source in enumerate(top, 1):
        if source in row["expected_sources"] and source not in found:
            found.add(source)
            total += len(found) / rank
    return total / len(set(row["expected_sources"]))


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _ndcg(row: Row, top: Sequence[str], k: int, gain: Callable[[float], float] = lambda grade: grade) -> float:
    grades = {source: gain(grade) for source, grade in _grades(row).items()}
    first = [source if source not in top[:i] else None for i, source in enumerate(top)]
    ideal = sorted(grades.values(), reverse=True)[:k]
    return _dcg([grades.get(source, 0) if source is not None else 0 for source in first]) / _dcg(ideal)


def _ndcg_exp(row: Row, top: Sequence[str], k: int) -> float:
    return _ndcg(row, top, k, lambda grade: 2**grade - 1)


def _group_recall(row: Row, top: Sequence[str], _: int) -> float:
    return sum(any(source in top for source in group) for group in row["expected_groups"]) / len(row["expected_groups"])


def _forbidden(row: Row, top: Sequence[str], _: int) -> float:
    return float(any(source in row["forbidden_sources"] for source in top))


def _judged(row: Row, top: Sequence[str], _: int) -> float:
    # `top` holds min(k, results) positions; a graded source is a judged one
    judged = {*_grades(row), *row["nonrelevant_sources"], *row.get("forbidden_sources", [])}
    return sum(source in judged for source in top) / len(top)


def _bpref(row: Row, sources: Sequence[str]) -> float:
    relevant = set(row["expected_sources"])
    bad = {*row["nonrelevant_sources"], *row.get("forbidden_sources", [])}
    total = 0.0
    for i, source in enumerate(sources):
        if source in relevant and source not in sources[:i]:
            above = len(bad & set(sources[:i]))
            total += 1 - min(above, len(relevant)) / min(len(bad), len(relevant))
    return total / len(relevant)


_CURVES: dict[str, Callable[[Row, Sequence[str], int], float]] = {
    "hit@k": _hit,
    "recall@k": _recall,
    "precision@k": _precision,
    "rr@k": _rr,
    "ap@k": _ap,
    "ndcg@k": _ndcg,
    "ndcg_exp@k": _ndcg_exp,
    "group_recall@k": _group_recall,
    "forbidden@k": _forbidden,
    "judged@k": _judged,
}


# ---- files


def _one_row_a_query(rows: Sequence[Row]) -> list[Row]:
    """Flat lines gathered by query, in order of rank; other forms as they are."""
    flat: dict[str, list[Row]] = {}
    for row in rows:
        if "fragment_id" in row:
            flat.setdefault(row["query_id"], []).append(row)
    gathered: list[Row] = [
        {"query_id": name, "results": sorted(lines, key=lambda line: int(line["rank"]))} for name, lines in flat.items()
    ]
    return [*gathered, *(row for row in rows if "fragment_id" not in row)]


def _items(row: Row) -> list[Row]:
    """The results of a row as {fragment_id, score?, source_id?}, in list order."""
    if "results" in row:
        return list(row["results"])
    names = row["fragment_ids"]
    return [{"fragment_id": n, "score": s} for n, s in zip(names, row.get("scores") or [None] * len(names), strict=True)]


def _single(score: float) -> float:
    """The score as a 32-bit float."""
    value: float = struct.unpack("f", struct.pack("f", score))[0]
    return value


def _equal(one: Any, other: Any) -> bool:
    """Typed equality: numbers by value, and otherwise only within a type."""
    kinds = ["number" if type(v) in (int, float) else type(v).__name__ for v in (one, other)]
    return kinds[0] == kinds[1] and bool(one == other)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def catalogued(fragment: Row) -> Row:
    """The fragment with the digest of its text in place of the text."""
    digest = hashlib.sha256(fragment["text"].encode()).hexdigest()
    return {**{name: value for name, value in fragment.items() if name != "text"}, "text_sha256": digest}
