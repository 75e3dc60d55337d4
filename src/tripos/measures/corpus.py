"""The corpus measures, one function each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tripos.columns.corpus import LEAK_STAGES, CorpusColumns
from tripos.columns.retrieval import Bools, Floats, Ints
from tripos.contracts.corpus import LOSSES, Loss
from tripos.measures.record import NO_RESULTS, Registry, Values

CORPUS = Registry()
"""The corpus measures by name, in report order."""

_ROUTING = "resource selection in federated search; Callan 2000"
_OWN = "Tripos: expected_collections and expected_sources"
_LINKS = "Tripos: expected_relationships"


def _values(value: Floats | Bools | Ints, undefined: Bools | None = None) -> Values:
    codes = np.zeros(len(value), dtype=np.int64) if undefined is None else undefined.astype(np.int64)
    return Values(value.astype(np.float64), codes)


def _share(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return shares


def _right(columns: CorpusColumns) -> Floats:
    return columns.per_row(columns.fans, columns.fans.expected & columns.fans.routed)


def _routed(columns: CorpusColumns) -> Floats:
    return columns.per_row(columns.fans, columns.fans.routed)


def _expected(columns: CorpusColumns) -> Floats:
    return columns.per_row(columns.fans, columns.fans.expected)


@CORPUS.measure(
    "routing_exact",
    "Routing, exact match",
    formula="1 if the routed collections are the expected ones, no more and no fewer",
    proportion=True,
    source=_OWN,
)
def routing_exact(columns: CorpusColumns) -> Values:
    """Whether the set of routed collections is the set of expected ones."""
    right = _right(columns)
    return _values((right == _expected(columns)) & (right == _routed(columns)))


@CORPUS.measure(
    "routing_precision",
    "Routing precision",
    formula="expected collections routed to / collections routed to",
    reasons={NO_RESULTS: "nothing was routed"},
    source=_ROUTING,
)
def routing_precision(columns: CorpusColumns) -> Values:
    """Share of the routed collections that are expected."""
    routed = _routed(columns)
    return _values(_share(_right(columns), routed), routed == 0)


@CORPUS.measure(
    "routing_recall", "Routing recall", formula="expected collections routed to / expected collections", source=_ROUTING
)
def routing_recall(columns: CorpusColumns) -> Values:
    """Share of the expected collections that were routed to."""
    return _values(_share(_right(columns), _expected(columns)))


@CORPUS.measure(
    "routing_f1", "Routing F1", formula="2 · expected and routed / (expected + routed), a row", source="Van Rijsbergen 1979"
)
def routing_f1(columns: CorpusColumns) -> Values:
    """Harmonic mean of routing precision and recall; 0 where nothing was routed."""
    return _values(_share(2 * _right(columns), _routed(columns) + _expected(columns)))


@CORPUS.measure(
    "first_choice",
    "First choice",
    formula="1 if the collection of first preference is expected",
    proportion=True,
    source=_OWN,
)
def first_choice(columns: CorpusColumns) -> Values:
    """Whether the first routed collection is one of the expected; 0 where nothing was routed."""
    return _values(columns.first_right)


def _in_vain(columns: CorpusColumns) -> Floats:
    return columns.per_row(columns.fans, (columns.fans.k > 0) & ~columns.fans.expected)


@CORPUS.measure(
    "extra_fan_out",
    "Extra fan-out",
    formula="collections searched in vain: nothing of them is expected",
    direction="lower",
    aggregate="sum",
    source=_OWN,
)
def extra_fan_out(columns: CorpusColumns) -> Values:
    """Collections that were searched and expected nothing of."""
    return _values(_in_vain(columns))


@CORPUS.measure(
    "extra_fan_out_share",
    "Extra fan-out, share",
    formula="collections searched in vain / collections searched",
    direction="lower",
    reasons={NO_RESULTS: "nothing was searched"},
    source=_OWN,
)
def extra_fan_out_share(columns: CorpusColumns) -> Values:
    """Share of the searched collections that are not expected."""
    searched = columns.per_row(columns.fans, columns.fans.k > 0)
    return _values(_share(_in_vain(columns), searched), searched == 0)


@CORPUS.measure(
    "expected_none",
    "Expected none",
    formula="1 if nothing was routed",
    population="expected_empty",
    proportion=True,
    source="Tripos: should_match false",
)
def expected_none(columns: CorpusColumns) -> Values:
    """Whether a row that no collection answers was routed nowhere."""
    return _values(_routed(columns) == 0)


def _kept(stage: str, title: str, formula: str) -> None:
    @CORPUS.measure(f"kept_{stage}", title, formula=formula + " / expected sources", source=_OWN)
    def kept(columns: CorpusColumns) -> Values:
        return _values(_share(columns.kept(stage), columns.n_expected))


_kept("routed", "Kept by routing", "expected sources whose collection was routed to")
_kept("retrieved", "Kept by retrieval", "expected sources that their collection returned")
_kept("merged", "Kept by merge", "expected sources among the merged top K")
_kept("final", "Kept at the end", "expected sources among the top K handed on after expansion")


@CORPUS.measure(
    "all_kept",
    "All kept",
    formula="1 if every expected source is handed on",
    proportion=True,
    source=_OWN,
)
def all_kept(columns: CorpusColumns) -> Values:
    """Whether no expected source was lost."""
    return _values(columns.kept("final") == columns.n_expected)


@CORPUS.measure(
    "all_hops",
    "All hops found",
    formula="1 if every expected source of a row of two or more hops is handed on",
    proportion=True,
    reasons={"single_hop": "the row has one hop (hops, else the number of expected sources)"},
    source="HoVer; Jiang et al. 2020",
)
def all_hops(columns: CorpusColumns) -> Values:
    """all_kept over rows of two or more hops."""
    return _values(columns.kept("final") == columns.n_expected, columns.hops < 2)


def _lost(loss: Loss, text: str) -> None:
    title = loss.replace("_", " ").capitalize()
    formula = f"expected sources charged to it / expected sources: {text}"

    @CORPUS.measure(loss, title, formula=formula, direction="lower", source=_OWN)
    def lost(columns: CorpusColumns) -> Values:
        return _values(_share(columns.lost(loss), columns.n_expected))


for _loss, _text in LOSSES.items():
    _lost(_loss, _text)


@CORPUS.measure(
    "recovered_by_expansion",
    "Recovered by expansion",
    formula="expected sources lost before expansion and brought in by it / expected sources",
    reasons={"no_expansion": "the result says nothing of expansion"},
    source=_OWN,
)
def recovered(columns: CorpusColumns) -> Values:
    """Share of the expected sources that expansion alone brought in."""
    brought = columns.per_row(columns.sources, columns.recovered)
    return _values(_share(brought, columns.n_expected), columns.complete & ~columns.expanded)


@CORPUS.measure(
    "relationship_coverage",
    "Relationship coverage",
    formula="expected relationships that were followed / expected relationships",
    reasons={"no_relationships": "the row expects no relationship"},
    source=_LINKS,
)
def relationship_coverage(columns: CorpusColumns) -> Values:
    """Share of the expected relationships among those that expansion names."""
    expected, followed = columns.links[:, 0], columns.links[:, 1]
    return _values(_share(followed.astype(np.float64), expected.astype(np.float64)), expected == 0)


@CORPUS.measure(
    "relationship_precision",
    "Relationship precision",
    formula="expected relationships that were followed / relationships that were followed",
    needs_completeness=True,
    reasons={"no_relationships": "the row expects no relationship", NO_RESULTS: "none was followed"},
    source=_LINKS,
)
def relationship_precision(columns: CorpusColumns) -> Values:
    """Share of the followed relationships that are expected."""
    expected, followed, right = columns.links[:, 0], columns.links[:, 2], columns.links[:, 3]
    undefined = np.where(expected == 0, 1, np.where(followed == 0, 2, 0))
    return Values(_share(right.astype(np.float64), followed.astype(np.float64)), undefined)


@CORPUS.measure(
    "chain",
    "Whole chain",
    formula="1 if every expected relationship was followed and every expected source is handed on",
    proportion=True,
    reasons={"no_relationships": "the row expects no relationship"},
    source=_LINKS,
)
def chain(columns: CorpusColumns) -> Values:
    """Whether nothing is missing of the row's chain: no link and no source."""
    whole = (columns.links[:, 1] == columns.links[:, 0]) & (columns.kept("final") == columns.n_expected)
    return _values(whole, columns.links[:, 0] == 0)


def _leaks(name: str, column: int, title: str, where: str) -> None:
    @CORPUS.measure(
        name,
        title,
        formula=f"distinct fragments {where} that the principal may not read",
        population="scored",
        direction="lower",
        aggregate="sum",
        reasons={"no_corpus": "no fragments were given", "no_principal": "the row has no principal"},
        source="Tripos: acl and principal",
    )
    def leaks(columns: CorpusColumns) -> Values:
        absent = 2 * (~columns.asking).astype(np.int64)
        undefined = absent if columns.has_corpus else np.ones(len(columns), dtype=np.int64)
        return Values(columns.leaks[:, column].astype(np.float64), undefined)


_leaks("leaks", 0, "Leaks", "at any stage")
for _n, _stage in enumerate(LEAK_STAGES, 1):
    _leaks(f"leaks_{_stage}", _n, f"Leaks, {_stage}", "added by expansion" if _stage == "expansion" else f"among the {_stage}")


COLLECTION = Registry()
"""Measures of one collection, over the rows that expect it."""


@COLLECTION.measure(
    "routed",
    "Routed to",
    formula="1 if the collection was routed to",
    proportion=True,
    source=_ROUTING,
)
def collection_routed(columns: Any) -> Values:
    """Whether a row that expects the collection was routed to it."""
    return _values(columns.routed)


_UNSEARCHED = {"not_searched": "the collection was not searched: the loss is routing's"}


@COLLECTION.measure(
    "hit@k",
    "Hit",
    formula="1 if an expected source of the collection is within k of its own list",
    proportion=True,
    reasons=_UNSEARCHED,
    source="success_k of trec_eval (NIST)",
)
def collection_hit(columns: Any) -> Values:
    """Whether the collection's own list has some expected source within k."""
    return _values_2d((columns.found > 0).astype(np.float64), columns)


@COLLECTION.measure(
    "recall@k",
    "Recall",
    formula="expected sources of the collection within k of its own list / all of them",
    reasons=_UNSEARCHED,
    source="recall_k of trec_eval (NIST)",
)
def collection_recall(columns: Any) -> Values:
    """Share of the collection's expected sources within k of its own list."""
    return _values_2d(columns.found / np.maximum(columns.n_expected, 1)[:, None], columns)


def _values_2d(value: Floats, columns: Any) -> Values:
    return Values(value, (columns.complete & ~columns.searched).astype(np.int64))
