"""Ties, 32-bit scores and odd ids against pytrec_eval-terrier; intervals against scipy."""

from __future__ import annotations

import math
import random
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
import scipy.stats
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.builders import World, config_of, curve, evaluated, single
from tripos.contracts.config import Options
from tripos.errors import Findings
from tripos.files.formats import trec, trec_rows
from tripos.measures.aggregate import per_row
from tripos.measures.intervals import MAX_BOOTSTRAP, mean_intervals, wilson
from tripos.measures.retrieval import RETRIEVAL
from tripos.runners.retrieval import Evaluation, evaluate

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]

LIMIT = 9
TOLERANCE = 1e-9
CUTOFFS = range(1, LIMIT + 1)
CURVES = {
    "hit@k": "success",
    "recall@k": "recall",
    "precision@k": "P",
    "ap@k": "map_cut",
    "ndcg@k": "ndcg_cut",
}
WHOLE = {"rr@k": "recip_rank", "ap@k": "map", "ndcg@k": "ndcg"}
"""Measures without a cutoff: ours at LIMIT, beyond the end of every list."""
ASKED = {f"{theirs}.{','.join(map(str, CUTOFFS))}" for theirs in CURVES.values()} | {*WHOLE.values(), "bpref"}

DOCS = ("a", "B", "b2", "b10", "é", "e\u0301", "日本", "𝔘", "#1", "~")
"""Byte order, which decides ties, is neither natural order nor that of UTF-16: 𝔘 comes after 日 and ~."""
SCORES = (2.0, 1.0, 1.0 + 1e-8, 1.0 - 1e-8, 0.0, -0.0, -3.5, 16777216.0, 16777217.0)
"""1 and 1 ± 1e-8 are one 32-bit float, and so are 2^24 and 2^24 + 1."""
TOPICS = ("1", "01", "Frage", "問")


@st.composite
def collections(draw: st.DrawFn) -> tuple[Qrels, Run, int]:
    """Qrels graded 0..4, a run with ties all over, and the level from which a grade is relevant."""
    qrels: Qrels = {}
    run: Run = {}
    for topic in draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)):
        qrels[topic] = draw(st.dictionaries(st.sampled_from(DOCS), st.integers(0, 4), min_size=1, max_size=8))
        if draw(st.integers(0, 5)):
            run[topic] = draw(st.dictionaries(st.sampled_from(DOCS), st.sampled_from(SCORES), min_size=1, max_size=LIMIT - 1))
    return qrels, run, draw(st.sampled_from([1, 1, 1, 2, 3]))


def theirs_of(qrels: Qrels, run: Run, level: int) -> dict[str, dict[str, float]]:
    """pytrec_eval's figures of the topics that have a relevant document."""
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, ASKED, relevance_level=level)
    figures: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return {topic: own for topic, own in figures.items() if max(qrels[topic].values()) >= level}


def ours_of(qrels: Qrels, run: Run, level: int, *, imported: bool) -> Evaluation:
    """Ours: qrels through `import trec`, and the run through it too, or as unsorted rows that the runner has to order."""
    with tempfile.TemporaryDirectory() as name:
        folder, findings = Path(name), Findings()
        with (folder / "qrels").open("wb") as stream:
            trec.write_qrels(stream, qrels)
        rows = trec_rows.judgments_from(trec.read_qrels(str(folder / "qrels"), findings), level=level).rows
        results: list[dict[str, Any]] = [
            {"query_id": topic, "fragment_ids": list(docs), "scores": list(docs.values())} for topic, docs in run.items()
        ]
        if imported and run:
            with (folder / "run").open("wb") as stream:
                trec.write_run(stream, {topic: list(docs.items()) for topic, docs in run.items()}, "x")
            results = [row for row, _ in trec_rows.results_from(trec.read_run(str(folder / "run"), findings))]
        findings.raise_errors()
        world = World(list(map(trec_rows.judgment_line, rows)), results, limit=LIMIT)
        # an imported run must pass as it stands: ordered, and with scores that do not rise
        return evaluate(config_of(folder, world), Options(order="strict" if imported else "trec"))


@given(collections(), st.booleans())
@example(({"1": {"a": 1, "b2": 0, "b10": 2}}, {"1": {"a": 1.0, "b10": 1.0 + 1e-8, "b2": 1.0 - 1e-8}}, 1), False)
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_ours_are_theirs(collection: tuple[Qrels, Run, int], imported: bool) -> None:
    qrels, run, level = collection
    relevant = {topic for topic, docs in qrels.items() if max(docs.values()) >= level}
    if not relevant:
        return
    theirs, found = theirs_of(qrels, run, level), ours_of(qrels, run, level, imported=imported)
    rows = {row.query_id: i for i, row in enumerate(found.columns.rows)}
    assert set(rows) == relevant
    assert {row.query_id for row in found.report.rows.incomplete} == relevant - set(run)
    for name, measure in CURVES.items():
        for k in CUTOFFS:
            same(found, rows, name, k, {topic: own[f"{measure}_{k}"] for topic, own in theirs.items()})
    for name, measure in WHOLE.items():
        same(found, rows, name, LIMIT, {topic: own[measure] for topic, own in theirs.items()})
    with_nonrelevant = {topic: own for topic, own in theirs.items() if any(g < level for g in qrels[topic].values())}
    same(found, rows, "bpref", 1, {topic: own["bpref"] for topic, own in with_nonrelevant.items()})


def same(found: Evaluation, rows: Mapping[str, int], name: str, k: int, theirs: Mapping[str, float]) -> None:
    """Our figure is theirs on every topic, in the mean, and, with 0 for a missing topic, in `worst`."""
    values = per_row(found.columns, RETRIEVAL[name])
    table = values.value if RETRIEVAL[name].is_curve else values.value[:, None]
    for topic, figure in theirs.items():
        assert values.undefined[rows[topic]] == 0
        assert table[rows[topic], k - 1] == pytest.approx(figure, abs=TOLERANCE), f"{name} {k} {topic}"
    if name == "bpref":
        whole = single(found.report, name)
        mean, worst, n, missing = whole.value, whole.worst, whole.n, whole.incomplete
    else:
        drawn = curve(found.report, name)
        mean, worst, n, missing = drawn.value[k - 1], drawn.worst[k - 1], drawn.n, drawn.incomplete
    assert n == len(theirs)
    total = math.fsum(theirs.values())
    assert mean == (pytest.approx(total / n, abs=TOLERANCE) if n else None)
    assert worst == (pytest.approx(total / (n + missing), abs=TOLERANCE) if n + missing else None)


def test_bpref_without_nonrelevant_documents_is_undefined() -> None:
    # trec_eval says recall there (1/1); we say that nobody was judged non-relevant
    found = ours_of({"1": {"a": 1}}, {"1": {"a": 1.0}}, 1, imported=True)
    assert theirs_of({"1": {"a": 1}}, {"1": {"a": 1.0}}, 1)["1"]["bpref"] == 1
    assert single(found.report, "bpref").undefined_rows == {"no_nonrelevant": 1}


# ---- intervals


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@example((0, 1))
@example((1, 1))
@example((41, 41))
@settings(deadline=None, max_examples=60)
def test_wilson_is_scipys(trials: tuple[int, int]) -> None:
    successes, n = trials
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(confidence_level=0.95, method="wilson")
    ours = wilson(successes, n)
    assert ours.method == "wilson"
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-11)


def sample(n: int, seed: int) -> np.typing.NDArray[np.float64]:
    """Values as nDCG has them: many zeros, some ones, the rest between."""
    draw = random.Random(seed)
    return np.array([[draw.choice([0.0, 0.0, 1.0, draw.random(), draw.random()])] for _ in range(n)])


@pytest.mark.parametrize(("n", "seed"), [(30, 1), (200, 2), (1000, 3)])
def test_bootstrap_is_near_scipys(n: int, seed: int) -> None:
    values = sample(n, seed)
    (ours,) = mean_intervals(values, None)
    theirs = scipy.stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=4000, method="percentile", random_state=np.random.default_rng(seed), batch=500
    ).confidence_interval
    assert ours is not None
    assert ours.method == "bootstrap"
    # the 2.5 % quantile of 2,000 resamples: error √(.025 · .975 / 2000) / φ(1.96) = .06 standard errors of the mean, 1.5 % of
    # the width (3.92 of them); with theirs of 4,000 about 1.9 %. The slack is five times that
    slack = 0.1 * (theirs.high - theirs.low)
    assert ours.low == pytest.approx(theirs.low, abs=slack)
    assert ours.high == pytest.approx(theirs.high, abs=slack)


def test_bootstrap_of_clusters_is_near_scipys_over_cluster_means() -> None:
    # clusters of one size: resampling whole clusters is resampling their means; far wider than rows taken as independent
    values = np.repeat(sample(40, 4), 5, axis=0)
    (ours,) = mean_intervals(values, np.repeat(np.arange(40), 5))
    (naive,) = mean_intervals(values, None)
    theirs = scipy.stats.bootstrap(
        (values[::5, 0],), np.mean, n_resamples=4000, method="percentile", random_state=np.random.default_rng(5)
    ).confidence_interval
    assert ours is not None
    assert naive is not None
    slack = 0.1 * (theirs.high - theirs.low)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=slack)
    assert ours.high - ours.low > 1.8 * (naive.high - naive.low)


def test_normal_is_scipys_above_ten_thousand_rows() -> None:
    values = sample(MAX_BOOTSTRAP + 1, 6)
    (ours,) = mean_intervals(values, None)
    column = values[:, 0].tolist()
    low, high = scipy.stats.norm.interval(0.95, loc=statistics.fmean(column), scale=scipy.stats.sem(column))
    assert ours is not None
    assert ours.method == "normal"
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-9)  # values are taken in units of 2^-30


def test_normal_of_clusters_is_scipys_over_cluster_means() -> None:
    means = sample(MAX_BOOTSTRAP + 1, 7)
    (ours,) = mean_intervals(np.repeat(means, 2, axis=0), np.repeat(np.arange(len(means)), 2))
    low, high = scipy.stats.norm.interval(0.95, loc=means.mean(), scale=scipy.stats.sem(means[:, 0]))
    assert ours is not None
    assert ours.method == "normal"
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-9)


def test_the_report_carries_wilson_for_proportions_and_bootstrap_for_means() -> None:
    # 8 queries, the expected source first in 6 of them and second in 2: hit@1 = 6/8, rr@2 = 7/8
    judgments = [{"query_id": f"q{i}", "query": f"{i}", "expected_sources": ["a"], "should_match": True} for i in range(8)]
    rows = [row | {"category": "x", "review_status": "reviewed"} for row in judgments]
    results = [{"query_id": f"q{i}", "fragment_ids": ["b", "a"] if i < 2 else ["a", "b"]} for i in range(8)]
    report = evaluated(World(rows, results, limit=2)).report
    theirs = scipy.stats.binomtest(6, 8).proportion_ci(method="wilson")
    hit, rr = curve(report, "hit@k").ci["1"], curve(report, "rr@k").ci["2"]
    assert hit.method == "wilson"
    assert (hit.low, hit.high) == pytest.approx((theirs.low, theirs.high))
    assert rr.method == "bootstrap"
    assert 0.5 <= rr.low < 7 / 8 < rr.high <= 1
