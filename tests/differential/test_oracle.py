"""Every measure at every cutoff, overall and by slice, against the plain-Python oracle, through files."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, permutations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import Row, World, by_query, evaluated, graded, scored
from tests.differential.oracle import Expected, Oracle
from tests.worlds import worlds
from tripos.contracts.reports import Aggregate, Curve
from tripos.measures.retrieval import RETRIEVAL, TIED

NAMES = [*RETRIEVAL, *(record.at("case") for record in RETRIEVAL.values() if record.is_curve)]
TOLERANCE = 1e-9
SETTINGS = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def compare(name: str, found: Aggregate | Curve, wanted: Expected) -> None:
    """One measure of a report, figure by figure and count by count."""
    value, worst = (found.value, found.worst) if isinstance(found, Curve) else ((found.value,), (found.worst,))
    assert list(value) == pytest.approx(wanted.value, abs=TOLERANCE), name
    assert list(worst) == pytest.approx(wanted.worst, abs=TOLERANCE), f"{name}: worst"
    assert (found.n, found.incomplete) == (wanted.n, wanted.incomplete), f"{name}: rows"
    assert found.undefined_rows == wanted.undefined_rows, f"{name}: undefined rows"
    assert found.n_undefined == sum(wanted.undefined_rows.values()), name
    assert (found.undefined is None) == (wanted.n > 0), name


def compare_all(found: Mapping[str, Aggregate | Curve], oracle: Oracle, among: Callable[[Row], bool] = lambda _: True) -> None:
    assert set(found) == set(NAMES)
    for name in NAMES:
        compare(name, found[name], oracle.expected(name, among))


@given(worlds())
@SETTINGS
def test_every_measure_over_all_rows(world: World) -> None:
    compare_all(evaluated(world).report.measures, Oracle(world))


def in_slice(by: str, value: object) -> Callable[[Row], bool]:
    def among(row: Row) -> bool:
        own = row["category"] if by == "category" else row.get("slices", {}).get(by)
        return type(own) is type(value) and own == value

    return among


@given(worlds(max_rows=6))
@settings(SETTINGS, max_examples=40)
def test_every_measure_by_slice(world: World) -> None:
    report, oracle = evaluated(world).report, Oracle(world)
    named = {("category", "str", row["category"]) for row in oracle.rows}
    named |= {(by, type(value).__name__, value) for row in oracle.rows for by, value in row["slices"].items()}
    assert {(part.by, type(part.value).__name__, part.value) for part in report.slices} == named
    for part in report.slices:
        among = in_slice(part.by, part.value)
        assert part.rows == sum(map(among, oracle.rows))
        compare_all(part.measures, oracle, among)


@given(worlds())
@settings(SETTINGS, max_examples=60)
def test_every_query_at_every_cutoff(world: World) -> None:
    cutoffs = range(1, world.limit + 1)
    rows, oracle = by_query(evaluated(World(**{**vars(world), "cutoffs": cutoffs}))), Oracle(world)
    assert list(rows) == [row["query_id"] for row in oracle.rows]
    for judgment in oracle.rows:
        own = rows[judgment["query_id"]]
        assert own["complete"] == (oracle.rankings[judgment["query_id"]] is not None)
        for name, record in RETRIEVAL.items():
            outcome = oracle.outcome(name, judgment) if judgment in oracle.population(name) else "not asked"
            for k in cutoffs if record.is_curve else (1,):
                wanted = pytest.approx(outcome[k - 1], abs=TOLERANCE) if isinstance(outcome, list) else None
                assert own[record.at(k)] == wanted, record.at(k)


def test_the_oracle_knows_every_measure() -> None:
    # a measure added to the records and not to the oracle would otherwise fail in a way that is hard to read
    row = {"query_id": "q", "expected_sources": ["a"], "should_match": True, "category": "x", "review_status": "reviewed"}
    full = row | {"nonrelevant_sources": ["b"], "forbidden_sources": ["b"], "expected_groups": [["a"]], "filters": {"x": 1}}
    full |= {"principal": {"groups": []}, "required_sources": ["a"], "expected_fragments": ["a"]}
    fragments = [{"fragment_id": "a", "text": "t", "acl": []}]
    oracle = Oracle(World([full], [{"query_id": "q", "fragment_ids": ["a"]}], fragments))
    assert all(isinstance(oracle.outcome(name, full), list) for name in RETRIEVAL)


# ---- ties


@st.composite
def tied_worlds(draw: st.DrawFn) -> World:
    """Short lists of documents with few scores; every cutoff is a headline, so that no tie stands inside all of them."""
    names, limit = ("a", "b", "c", "x", "y"), draw(st.integers(1, 5))
    rows, results = [], []
    for query in ("q0", "q1", "q2")[: draw(st.integers(1, 3))]:
        grades = draw(st.dictionaries(st.sampled_from(names[:3]), st.sampled_from([1, 2, 3]), min_size=1))
        rows.append(graded(query, grades))
        ids = draw(st.lists(st.sampled_from(names), unique=True))
        scores = sorted((draw(st.sampled_from([0.9, 0.5, 0.1])) for _ in ids), reverse=True)
        results.append(scored(query, dict(zip(ids, scores, strict=True))))
    return World(rows, results, limit=limit, cutoffs=range(1, limit + 1))


def orders(result: Row) -> Iterator[Row]:
    """Every order of the list that its scores allow."""
    pairs = zip(result["fragment_ids"], result["scores"], strict=True)
    groups = [list(permutations(group)) for _, group in groupby(pairs, key=lambda pair: pair[1])]
    for chosen in product(*groups):
        yield scored(result["query_id"], dict(pair for group in chosen for pair in group))


@given(tied_worlds())
@settings(SETTINGS, max_examples=50)
def test_ties_against_every_order_of_them(world: World) -> None:
    ties = {t.k: t for t in evaluated(world).report.ties}
    straddled = {
        k: sum(len(r["scores"]) > k and r["scores"][k - 1] == r["scores"][k] for r in world.results)
        for k in range(1, world.limit + 1)
    }
    assert {k: t.rows for k, t in ties.items()} == {k: n for k, n in straddled.items() if n}
    for name in TIED if ties else ():
        least, most = [], []
        for row, result in zip(world.judgments, world.results, strict=True):
            curves = [Oracle(World([row], [order], limit=world.limit)).outcome(name, row) for order in orders(result)]
            tables = list(zip(*(curve for curve in curves if isinstance(curve, list)), strict=True))
            least.append([min(column) for column in tables])
            most.append([max(column) for column in tables])
        for k, tie in ties.items():
            full = RETRIEVAL[name].at(k)
            assert tie.best[full] == pytest.approx(statistics.fmean(curve[k - 1] for curve in most), abs=TOLERANCE), full
            assert tie.worst[full] == pytest.approx(statistics.fmean(curve[k - 1] for curve in least), abs=TOLERANCE), full
