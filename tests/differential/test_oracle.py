"""Every measure at every cutoff, overall and by slice, against the plain-Python oracle, through files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings

from tests.builders import Row, World, by_query, evaluated
from tests.differential.oracle import Expected, Oracle
from tests.worlds import worlds
from tripos.contracts.reports import Aggregate, Curve
from tripos.measures.retrieval import RETRIEVAL

NAMES = [*RETRIEVAL, *(record.at("case") for record in RETRIEVAL.values() if record.is_curve)]
TOLERANCE = 1e-9
SETTINGS = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


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
