"""Comparison of runs on NIST's own topics: differences, intervals and p-values against scipy, and against ranx by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.builders import write_jsonl
from tests.differential.test_trec_eval import DATA
from tripos.across.compare import Request, compare
from tripos.across.sides import Side
from tripos.across.tables import retrieval_rows
from tripos.contracts.comparison import Cell, Comparison
from tripos.contracts.config import Config, DepthConfig, JudgmentsConfig, SearchConfig
from tripos.errors import Findings
from tripos.files.formats import trec, trec_rows
from tripos.measures.paired import Floats
from tripos.runners.retrieval import evaluate

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="NIST's test files are not in this checkout")

MEASURES = ("ap@100", "rr@100", "recall@10", "ndcg@10")
RANX = {
    "ap@100": (0.27790459358866554, 0.2637947101751361, 0.00001),
    "rr@100": (0.888148148148148, 0.9055555555555556, 0.2483),
    "recall@10": (0.08545607419487579, 0.06837983008162052, 0.00058),
    "ndcg@10": (0.8072727210981603, 0.7549752747932742, 0.00067),
}
"""By hand, ranx 0.3.21: compare(stat_test="fisher", n_permutations=100000) on these runs, binary gains: both means and p."""


def shifted(names: list[str]) -> list[str]:
    """Another order of the same documents, by no generator: some fall behind by 12 to 48 ranks."""
    return [names[i] for i in sorted(range(len(names)), key=lambda i: (i + 12 * ((i * 37) % 5), i))]


def ranked() -> Iterator[tuple[str, list[str]]]:
    """The first 100 documents of each topic, in trec_eval's order."""
    findings = Findings()
    run = trec.read_run(str(DATA / "results.comment.test"), findings)
    findings.raise_errors()
    rows: list[dict[str, Any]] = [row for row, _ in trec_rows.results_from(run, depth=100, form="columnar")]
    for row in rows:
        both = zip(row["fragment_ids"], np.array(row["scores"], dtype=np.float32).tolist(), strict=True)
        yield row["query_id"], [name for name, _ in sorted(both, key=lambda hit: (-hit[1], [-b for b in hit[0].encode()]))]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> list[Side]:
    """The run, and the same documents in another order."""
    folder, findings = tmp_path_factory.mktemp("nist"), Findings()
    found = trec_rows.judgments_from(trec.read_qrels(str(DATA / "qrels.comment.test"), findings), level=1, keep_empty=False)
    lines = [trec_rows.judgment_line(row) for row in found.rows]
    judgments = write_jsonl(folder / "judgments.jsonl", [{**line, "relevance": None} for line in lines])
    made = []
    for name, order in (("a", list), ("b", shifted)):
        path = write_jsonl(
            folder / f"{name}.jsonl", [{"query_id": topic, "fragment_ids": order(own)} for topic, own in ranked()]
        )
        config = Config(
            judgments=JudgmentsConfig(retrieval=judgments),
            ranked_results=path,
            search=SearchConfig(mode="trec"),
            depth=DepthConfig(limit=100, top_k=10),
        )
        made.append(Side(name, (retrieval_rows(evaluate(config)),)))
    return made


@pytest.fixture(scope="module")
def found(sides: list[Side]) -> Comparison:
    return compare(sides[0], sides[1:], Request(measures=MEASURES))


def cell(found: Comparison, name: str) -> Cell:
    return next(cell for cell in found.candidates[0].cells if cell.measure == name)


def values(sides: list[Side], name: str) -> tuple[Floats, Floats]:
    one, other = (side.runs[0].figures([name])[name] for side in sides)
    assert (one.state == 0).all()
    return one.value, other.value


def mean_difference(a: Floats, b: Floats, axis: int) -> Floats:
    made: Floats = np.mean(b - a, axis=axis)
    return made


@pytest.mark.parametrize("name", MEASURES)
def test_differences_intervals_and_p_values_are_scipys(found: Comparison, sides: list[Side], name: str) -> None:
    own, (a, b) = cell(found, name), values(sides, name)
    assert own.n == 30
    assert own.difference == pytest.approx((b - a).mean(), abs=1e-9)
    theirs = stats.bootstrap((b - a,), np.mean, n_resamples=20_000, method="percentile", rng=3)
    spread = theirs.standard_error * 2.67 * (1 / 2_000 + 1 / 20_000) ** 0.5 * 4
    assert own.ci is not None
    assert own.ci.low == pytest.approx(theirs.confidence_interval.low, abs=spread)
    assert own.ci.high == pytest.approx(theirs.confidence_interval.high, abs=spread)
    p = stats.permutation_test((a, b), mean_difference, permutation_type="samples", n_resamples=50_000, rng=4).pvalue
    assert own.p == pytest.approx(p, abs=4 * (p * (1 - p) / 10_000) ** 0.5 + 2e-4)
    error = stats.sem(b - a)
    reach = stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)
    assert own.could_see == pytest.approx(error * reach, rel=1e-4)


@pytest.mark.parametrize("name", MEASURES)
def test_figures_are_ranxs(found: Comparison, name: str) -> None:
    own, (base, value, p) = cell(found, name), RANX[name]
    assert own.base == pytest.approx(base, abs=1e-9)
    assert own.value == pytest.approx(value, abs=1e-9)
    assert own.p == pytest.approx(p, abs=4 * (p * (1 - p) / 10_000) ** 0.5 + 2e-4)


def test_holm_over_the_four(found: Comparison) -> None:
    ps = sorted(cell(found, name).p or 0.0 for name in MEASURES)
    by_hand = [min(1.0, p * (4 - i)) for i, p in enumerate(ps)]
    highest = [max(by_hand[: i + 1]) for i in range(4)]
    assert sorted(cell(found, name).p_holm or 0.0 for name in MEASURES) == pytest.approx(highest)
    assert found.family == 4


def test_the_other_way_round_is_the_mirror_image(sides: list[Side], found: Comparison) -> None:
    back = compare(sides[1], sides[:1], Request(measures=MEASURES))
    for name in MEASURES:
        one, other = cell(found, name), cell(back, name)
        assert one.difference == pytest.approx(-(other.difference or 0.0))
        assert (one.p, one.could_see) == (other.p, other.could_see)
    assert found.candidates[0].lost == back.candidates[0].gained


def test_a_run_against_itself_is_no_difference(sides: list[Side]) -> None:
    same = compare(sides[0], sides[:1])
    assert {cell.p for cell in same.candidates[0].cells} == {1.0}
    assert {cell.verdict for cell in same.candidates[0].cells} == {"no difference seen"}
