"""Judgments read by several processes are those read by one, and whatever is wrong is told as by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders import judgment
from tripos.checks.retrieval import may_matter
from tripos.errors import Findings, TriposError
from tripos.files.judgments import How, JudgmentTable, read_judgments
from tripos.runners import forks, judging

COLUMNS = ("row_of", "bits", "k", "kind", "kinds", "cluster", "n_expected", "n_nonrelevant", "graded", "grades")


@pytest.fixture(autouse=True)
def small_files_are_big(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "BIG_ENOUGH", 0)


def many() -> list[dict[str, Any]]:
    """Rows of many kinds, the rarer ones in the later parts alone."""
    rows = [judgment(f"q{n}", *(f"s{n + k}" for k in range(n % 4)), slices={"n": n % 3}) for n in range(60)]
    rows[50] |= {"cluster": "late", "k": 3, "query": "TODO", "category": "imported"}
    rows[55] |= {"cluster": "early", "principal": {"groups": ["g"]}, "review_status": "draft", "query": "What of q1?"}
    rows[3] |= {"cluster": "early"}
    return rows


def written(folder: Path, rows: Sequence[Any]) -> str:
    path = folder / "j.jsonl"
    path.write_text(
        "\ufeff\n" + "\n \n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8"
    )
    return str(path)


def both(path: str, workers: int) -> tuple[tuple[JudgmentTable, Findings], tuple[JudgmentTable, Findings]]:
    one, several = Findings(), Findings()
    alone = read_judgments([path], one, How(may_matter))
    return (alone, one), (judging.load(path, several, How(may_matter), workers), several)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_the_same_table(workers: int, tmp_path: Path) -> None:
    (alone, _), (together, _) = both(written(tmp_path, many()), workers)
    assert {name: getattr(alone, name) for name in COLUMNS} == {name: getattr(together, name) for name in COLUMNS}
    assert [together.place(row) for row in range(60)] == [alone.place(row) for row in range(60)]
    assert list(together) == list(alone)
    assert together.reviewed.unordered() == alone.reviewed.unordered()
    assert together.remarkable() == alone.remarkable() == [1, 50, 55]


def test_several_processes_did_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "read_judgments", None)  # which only one process would call
    assert len(judging.load(written(tmp_path, many()), Findings(), How(may_matter), 3)) == 60


@pytest.mark.parametrize(
    "odd", [judgment("q7", "other"), {**judgment("q61"), "expected_sources": 3}, '{"torn":', judgment("q62", "a", own=1), "[]"]
)
@pytest.mark.parametrize("at", [0, 20, 60])
def test_faults_are_told_as_by_one(odd: Any, at: int, tmp_path: Path) -> None:
    rows: list[Any] = many()
    rows.insert(at, odd)
    (alone, one), (together, several) = both(written(tmp_path, rows), 3)
    assert one.n_errors > 0
    assert list(map(str, several.errors)) == list(map(str, one.errors))
    assert list(together.row_of) == list(alone.row_of)


def test_a_process_that_fails_is_told(tmp_path: Path) -> None:
    def failing(value: Any) -> bool:
        if value["query_id"] == "q59":
            raise ZeroDivisionError("in a child")
        return False

    with pytest.raises(TriposError, match="a worker process failed: ZeroDivisionError: in a child"):
        judging.load(written(tmp_path, many()), Findings(), How(failing), 2)


def test_where_nothing_can_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "can_fork", lambda: False)
    assert len(judging.load(written(tmp_path, many()), Findings(), How(may_matter), 2)) == 60


def test_a_result_without_a_process() -> None:
    with forks.forked(lambda _, n: n + 1, [(1,), (2,)]) as connections:
        assert [forks.received(connection) for connection in connections] == [2, 3]
