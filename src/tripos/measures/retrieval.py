"""The retrieval measures, one function each."""

from __future__ import annotations

import numpy as np

from tripos.columns.retrieval import FORBIDDEN, Hits
from tripos.measures.block import Block
from tripos.measures.record import NO_RESULTS, Registry, Values
from tripos.measures.steps import Stepped, Steps, ordinals, running

RETRIEVAL = Registry()
"""The retrieval measures by name, in report order."""

_TREC = "trec_eval (NIST)"


def _everywhere(block: Block, value: Steps) -> Stepped:
    return Stepped(value, np.zeros(block.n, dtype=np.int64))


def _first(hits: Hits | Steps) -> Steps:
    """1 from the first position of each query on."""
    first = ordinals(hits.query) == 1
    return Steps(hits.query[first], hits.rank[first], np.ones(int(first.sum())))


@RETRIEVAL.measure(
    "hit@k", "Hit", formula="1 if an expected source is within k", proportion=True, source=f"success_k of {_TREC}"
)
def hit(block: Block) -> Stepped:
    """Whether some expected source is within k."""
    return _everywhere(block, _first(block.expected))


@RETRIEVAL.measure(
    "recall@k",
    "Recall",
    formula="expected sources within k / all expected sources",
    needs_completeness=True,
    source=f"recall_k of {_TREC}",
)
def recall(block: Block) -> Stepped:
    """Share of the expected sources within k."""
    expected = block.expected
    share = block.ordinal / block.expected_count[expected.query]
    return _everywhere(block, Steps(expected.query, expected.rank, share))


@RETRIEVAL.measure(
    "precision@k",
    "Precision",
    formula="distinct expected sources within k / k",
    needs_completeness=True,
    source=f"P_k of {_TREC}",
)
def precision(block: Block) -> Stepped:
    """Distinct expected sources within k, by k."""
    found, everyone = block.ordinal.astype(np.float64), np.full(block.n, block.limit)
    return _everywhere(block, Steps(block.expected.query, block.expected.rank, found, everyone))


@RETRIEVAL.measure(
    "rr@k",
    "Reciprocal rank (its mean is MRR)",
    formula="1 / rank of the first expected source, 0 if beyond k",
    source=f"recip_rank of {_TREC}; Voorhees 1999",
)
def reciprocal_rank(block: Block) -> Stepped:
    """Inverse rank of the first expected source within k."""
    return _everywhere(block, Steps(block.first.query, block.first.rank, 1.0 / block.first.rank))


@RETRIEVAL.measure(
    "ap@k",
    "Average precision (its mean is MAP)",
    formula="Σ precision at each expected source within k / all expected sources",
    needs_completeness=True,
    source=f"map_cut_k of {_TREC}",
)
def average_precision(block: Block) -> Stepped:
    """Precision at the ranks of expected sources within k, over all expected sources."""
    query, rank = block.expected.query, block.expected.rank
    summed = running(query, block.ordinal / rank)
    return _everywhere(block, Steps(query, rank, summed / block.expected_count[query]))


@RETRIEVAL.measure(
    "ndcg@k",
    "NDCG",
    formula="Σ grade / log2(rank + 1) within k, over the same of the ideal order cut at k",
    needs_completeness=True,
    source=f"ndcg_cut_k of {_TREC}; Järvelin and Kekäläinen 2002",
)
def ndcg(block: Block) -> Stepped:
    """Normalised discounted cumulative gain, the gain being the grade."""
    return _everywhere(block, block.ndcg(exponential=False))


@RETRIEVAL.measure(
    "ndcg_exp@k",
    "NDCG, exponential gain",
    formula="as ndcg@k with gain 2^grade − 1",
    needs_completeness=True,
    source="Burges et al. 2005",
)
def ndcg_exponential(block: Block) -> Stepped:
    """Normalised discounted cumulative gain, the gain being 2^grade − 1."""
    return _everywhere(block, block.ndcg(exponential=True))


@RETRIEVAL.measure(
    "group_recall@k",
    "Group recall",
    formula="groups with a source within k / all groups",
    reasons={"no_groups": "the row has no expected_groups"},
    source="Tripos: one fact told by several documents",
)
def group_recall(block: Block) -> Stepped:
    """Share of the row's groups of which some source is within k."""
    share, none = block.unit_share(block.columns.groups)
    return Stepped(share, none.astype(np.int64))


_EVIDENCE = {"no_evidence": "the row has no finer evidence", "no_text": "quotes cannot be resolved without the corpus's texts"}


def _evidence(block: Block) -> Stepped:
    share, none = block.unit_share(block.columns.evidence)
    unresolved = block.column("evidence_undefined")
    return Stepped(share, np.where(unresolved, 2, none.astype(np.int64)))


@RETRIEVAL.measure(
    "evidence_hit@k",
    "Evidence hit",
    formula="1 if some passage of the finer evidence is whole within k",
    proportion=True,
    reasons=_EVIDENCE,
    source="Tripos: expected_evidence or expected_fragments",
)
def evidence_hit(block: Block) -> Stepped:
    """Whether some passage is among the fragments within k (fragment positions, whatever the unit)."""
    share, undefined = _evidence(block)
    return Stepped(_first(share), undefined)


@RETRIEVAL.measure(
    "evidence_recall@k",
    "Evidence recall",
    formula="passages of the finer evidence whole within k / all of them",
    reasons=_EVIDENCE,
    source="Tripos: expected_evidence or expected_fragments",
)
def evidence_recall(block: Block) -> Stepped:
    """Share of the passages that are among the fragments within k."""
    return _evidence(block)


@RETRIEVAL.measure(
    "forbidden@k",
    "Forbidden surfaced",
    formula="1 if a forbidden source is within k",
    population="scored",
    direction="lower",
    proportion=True,
    reasons={"no_forbidden": "the row has no forbidden_sources"},
    source="Tripos: hard negatives",
)
def forbidden(block: Block) -> Stepped:
    """Whether a forbidden source is within k."""
    return Stepped(_first(block.having(FORBIDDEN)), (~block.flagged("forbidden_sources")).astype(np.int64))


@RETRIEVAL.measure(
    "judged@k",
    "Judged",
    formula="results within k whose source is judged / min(k, results)",
    reasons={
        "no_nonrelevant": "the row has no nonrelevant_sources, so unlisted means unjudged nowhere",
        NO_RESULTS: "nothing came back",
    },
    source=f"1 − unj_k of {_TREC}",
)
def judged(block: Block) -> Stepped:
    """Share of the results within k that a reviewer has judged."""
    results = block.column("n_results")
    known = ordinals(block.hits.query).astype(np.float64)
    value = Steps(block.hits.query, block.hits.rank, known, np.clip(results, 1, block.limit))
    undefined = np.where(~block.flagged("nonrelevant_sources"), 1, np.where(results == 0, 2, 0))
    return Stepped(value, undefined)


@RETRIEVAL.measure(
    "bpref",
    "Bpref",
    formula="mean over expected sources of 1 − min(non-relevant above, R) / min(N, R); unfound ones 0",
    reasons={"no_nonrelevant": "the row has no nonrelevant_sources"},
    source=f"bpref of {_TREC}; Buckley and Voorhees 2004",
)
def bpref(block: Block) -> Values:
    """Binary preference over judged sources alone."""
    relevant, nonrelevant = block.column("n_expected"), block.column("n_nonrelevant")
    query = block.expected.query
    bound = np.minimum(relevant, nonrelevant)[query]
    above = np.minimum(block.nonrelevant_before(block.expected), relevant[query])
    worth = 1.0 - np.divide(above, bound, out=np.zeros(len(query)), where=above > 0)
    value = np.bincount(query, worth, minlength=block.n) / block.expected_count
    return Values(value, (~block.flagged("nonrelevant_sources")).astype(np.int64))


@RETRIEVAL.measure(
    "required",
    "Required present",
    formula="1 if every required source is within the row's depth",
    population="scored",
    proportion=True,
    reasons={"no_required": "the row has no required_sources"},
    source="Tripos: required_sources",
)
def required(block: Block) -> Values:
    """Whether all required sources are within the row's own k, else top_k."""
    value = (block.column("n_required_absent") == 0).astype(np.float64)
    return Values(value, (~block.flagged("required_sources")).astype(np.int64))


@RETRIEVAL.measure(
    "expected_empty",
    "Expected empty",
    formula="1 if nothing is left after min_score",
    population="expected_empty",
    proportion=True,
    source="Tripos: should_match false",
)
def expected_empty(block: Block) -> Values:
    """Whether a row that should find nothing was left with nothing."""
    return Values((block.column("n_results") == 0).astype(np.float64), np.zeros(block.n, dtype=np.int64))


_SAFE = {"no_corpus": "no fragments were given", "no_principal": "the row has no principal"}


def _counted(block: Block, column: str, given: str) -> Values:
    absent = 2 * (~block.flagged(given)).astype(np.int64)
    undefined = absent if block.columns.has_corpus else np.ones(block.n, dtype=np.int64)
    return Values(block.column(column).astype(np.float64), undefined)


@RETRIEVAL.measure(
    "leaks",
    "Leaks",
    formula="results, at any rank, that the principal may not read",
    population="scored",
    direction="lower",
    aggregate="sum",
    reasons=_SAFE,
    source="Tripos: acl and principal",
)
def leaks(block: Block) -> Values:
    """Results that no group of the principal may read, counted before any cut."""
    return _counted(block, "n_leaks", "principal")


@RETRIEVAL.measure(
    "filter_violations",
    "Filter violations",
    formula="results, at any rank, that break the row's filters",
    population="scored",
    direction="lower",
    aggregate="sum",
    reasons={"no_corpus": "no fragments were given", "no_filters": "the row has no filters"},
    source="Tripos: filters and metadata",
)
def filter_violations(block: Block) -> Values:
    """Results whose metadata break the row's filters, counted before any cut."""
    return _counted(block, "n_violations", "filters")


@RETRIEVAL.measure(
    "denied",
    "Denied",
    formula="expected sources nowhere in a list, before any cut, that ended before limit",
    direction="lower",
    aggregate="sum",
    reasons={"no_corpus": "no fragments were given", "no_limits": "the row has neither principal nor filters"},
    source="Tripos: over-filtering",
)
def denied(block: Block) -> Values:
    """Expected sources that the row may see and that rank cannot excuse: the list had room for them."""
    either = block.flagged("principal") | block.flagged("filters")
    absent = 2 * (~either).astype(np.int64)
    undefined = absent if block.columns.has_corpus else np.ones(block.n, dtype=np.int64)
    return Values(block.column("n_denied").astype(np.float64), undefined)


TIED = ("hit@k", "recall@k", "rr@k", "ndcg@k")
"""Measures told at the best and the worst order of ties."""

INTEGRATION = ("hit@k", "rr@k", "expected_empty", "required", "leaks", "filter_violations")
"""Measures of an integration report: wiring, and what always gates."""
