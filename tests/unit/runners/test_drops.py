"""Gates against a baseline: what a report states of them is enough to decide them again, and no more."""

from __future__ import annotations

from tests.builders import Row, World, curve, evaluated, judgment, listed
from tripos.contracts.reports import DropGate, RetrievalReport
from tripos.runners.drops import held_again, held_against

NAMES = [f"q{n:02d}" for n in range(10)]


def report(lost: int, **world: object) -> RetrievalReport:
    """Ten queries, of which the first `lost` find nothing."""
    judged = [judgment(name, f"s{name}") for name in NAMES]
    rows: list[Row] = [listed(name, "other" if n < lost else f"s{name}") for n, name in enumerate(NAMES)]
    return evaluated(World(judged, rows, limit=3, top_k=2, **world)).report  # type: ignore[arg-type]


def test_a_drop_is_the_baselines_figure_less_the_worst() -> None:
    """Eight of ten against ten of ten, at top K 2."""
    base, now = report(0), report(2)
    for most, status in ((0.2, "passed"), (0.19, "failed")):
        (gate,) = held_against(base, {"recall@k": most}, 2).gates(now.measures)
        assert (gate.name, gate.value, gate.baseline_value, gate.status) == ("max-drop recall@2", 0.2, 1.0, status)
        assert gate.baseline == base.run_id
    (gate,) = held_against(now, {"recall@k": 0.0}, 2).gates(base.measures)
    assert (gate.value, gate.status, gate.because[:11]) == (-0.2, "passed", "rose by 0.2")


def test_ten_rows_are_told_to_prove_little() -> None:
    base = report(0)
    (text,) = held_against(base, {"recall@k": 0.1}, 2).warnings(base.measures)
    assert text == (
        "gate max-drop recall@2: of 10 rows, a drop of 0.1 is 1; 6 rows lost and none won are the least evidence there is"
    )
    assert not list(held_against(base, {"recall@k": 0.6}, 2).warnings(base.measures))


def test_a_baseline_that_is_shallower_has_no_figure() -> None:
    (gate,) = held_against(report(0), {"ndcg@k": 0.1}, 4).gates(report(0).measures)
    assert (gate.status, gate.value, gate.because) == ("vacuous", None, "the baseline has no figure at 4")


def test_gates_are_decided_again_from_what_they_state() -> None:
    base, now = report(0), report(2)
    gates = held_against(base, {"recall@k": 0.2, "rr@k": 0.1}, 2).gates(now.measures)
    sealed = now.model_copy(update={"gates": (*now.gates, *gates)})
    again = held_again(sealed)
    assert again is not None
    assert again.gates(now.measures) == gates
    worse = {**now.measures, "recall@k": curve(report(3), "recall@k")}
    assert [gate.status for gate in again.gates(worse)] == ["failed", "failed"]
    assert held_again(now) is None
    assert all(isinstance(gate, DropGate) for gate in gates)
