"""Runs by any of their names, their reports and their figures; files of other versions."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import tripos
from tests.builders import World, evaluated, judgment, listed
from tests.unit.store.history import ask, contents, day, keep
from tripos.errors import Findings, InputError, UsageError
from tripos.runners.retrieval import per_query_rows
from tripos.store.checking import check_store
from tripos.store.reading import Store
from tripos.store.tables import QUERIES, TABLES, Column, Table

GOLDEN = [judgment("q1", "a"), judgment("q2", "b")]
GOOD = World(GOLDEN, [listed("q1", "a", "b"), listed("q2", "b")], cutoffs=(1, 2))
WORSE = World(GOLDEN, [listed("q1", "b", "a"), listed("q2", "b")], cutoffs=(1, 2))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Good on the 1st and the 3rd, worse on the 2nd; another system on the 4th."""
    folder = tmp_path_factory.mktemp("store")
    keep(folder, WORSE, 2, labels=["pull-7", "night"])
    keep(folder, GOOD, 1, labels=["night"])
    keep(folder, GOOD, 3)
    keep(folder, WORSE, 4, name="other")
    return Store(folder)


def test_executions_come_by_time(store: Store) -> None:
    executions = store.executions()
    assert [(one.time.day, one.name, one.labels) for one in executions] == [
        (1, "kb", ("night",)),
        (2, "kb", ("pull-7", "night")),
        (3, "kb", ()),
        (4, "other", ()),
    ]
    assert executions[0].run_id == executions[2].run_id
    assert len(store.run_ids()) == 3
    assert store.executions("generation") == []


def test_a_run_has_many_names(store: Store) -> None:
    first, second, third, fourth = (one.run_id for one in store.executions())
    assert store.resolve("latest") == fourth
    assert store.resolve("latest~1") == third == first
    assert store.resolve("latest~2") == second
    assert store.resolve("night") == second, "the last execution of that label"
    assert store.resolve("pull-7") == second
    assert store.resolve(first[:8]) == store.resolve(first) == first
    assert store.resolve(store.executions()[3].execution_id) == fourth


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("latest~4", "latest~4: .* has 4 executions"),
        ("nigth", 'did you mean "night"'),
        ("0", "names no run"),
        ("", "names no run"),
        ("latest~x", "names no run"),
    ],
)
def test_names_of_no_run(store: Store, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        store.resolve(name)


def test_other_layers_are_not_looked_at(store: Store) -> None:
    with pytest.raises(UsageError, match="0 generation executions"):
        store.resolve("latest", "generation")
    with pytest.raises(UsageError, match="names no generation run"):
        store.resolve(store.executions()[0].run_id, "generation")


def test_the_beginning_of_two_runs_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "run_ids", lambda _self: ["abcd1", "abcd2"])
    with pytest.raises(UsageError, match='"abcd" begins 2 run ids: abcd1, abcd2'):
        store.resolve("abcd")


def test_a_report_comes_back_whole_but_for_its_provenance(store: Store) -> None:
    stored = store.run(store.resolve("pull-7"))
    report = evaluated(WORSE).report.model_copy(update={"name": "kb", "run_id": stored.run_id})
    blank = {"provenance": stored.report.provenance}
    assert stored.report == report.model_copy(update=blank)
    assert (stored.layer, stored.cutoffs) == ("retrieval", (1, 2))
    assert stored.judgments_digest == report.judgments_digest


def test_per_query_figures_come_back(store: Store) -> None:
    values = store.query_values(store.resolve("pull-7"))
    expected = list(per_query_rows(evaluated(WORSE)))
    assert values.ids == [row["query_id"] for row in expected]
    assert values.complete == [row["complete"] for row in expected]
    for name, column in values.measures.items():
        assert column == [row[name] for row in expected], name
    assert set(values.measures) == set(expected[0]) - {"query_id", "complete"}
    assert values.measures["rr@2"] == [0.5, 1.0]


def test_rankings_come_back_with_empty_lists(tmp_path: Path) -> None:
    results = [listed("q1", "b", "a"), listed("q2"), {"query_id": "q3", "fragment_ids": [], "error": "no"}]
    run_id = keep(tmp_path, World([*GOLDEN, judgment("q3", "c")], results)).run_id
    rankings = list(Store(tmp_path).ranked_results(run_id))
    assert [(one.query_id, one.fragment_ids, one.relevant) for one in rankings] == [
        ("q1", ["b", "a"], [None, True]),
        ("q2", [], []),
    ]


def test_what_is_not_there_is_told(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        store.run("f" * 64)
    with pytest.raises(InputError):
        Store(tmp_path / "none")


def extended(table: Table) -> Table:
    """The table as a later version may have it."""
    return dataclasses.replace(table, columns=(*table.columns, Column("tone", "VARCHAR", "How it was asked.")))


def test_older_files_are_read_by_code_with_one_more_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = keep(tmp_path, GOOD).run_id
    monkeypatch.setitem(TABLES, "queries", extended(QUERIES))
    assert ask(tmp_path, 'SELECT query_id, tone, "hit@1" FROM queries ORDER BY 1') == [("q1", None, 1.0), ("q2", None, 1.0)]
    keep(tmp_path, WORSE, 2)
    assert ask(tmp_path, "SELECT count(*), count(tone) FROM queries") == [(4, 0)]
    assert Store(tmp_path).query_values(run_id).measures["hit@1"] == [1.0, 1.0]
    assert_clean(tmp_path)


def test_newer_files_are_read_by_code_with_one_column_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setitem(TABLES, "queries", extended(QUERIES))
        run_id = keep(tmp_path, GOOD).run_id
    keep(tmp_path, WORSE, 2)
    assert ask(tmp_path, 'SELECT query_id, "hit@1" FROM queries WHERE "hit@1" = 0') == [("q1", 0.0)]
    assert ask(tmp_path, "SELECT count(*), count(tone) FROM queries") == [(4, 0)], "columns that are not known here are shown"
    values = Store(tmp_path).query_values(run_id)
    assert "tone" not in values.measures
    assert values.measures["hit@1"] == [1.0, 1.0]
    assert_clean(tmp_path)


def test_runs_of_other_cutoffs_lie_side_by_side(tmp_path: Path) -> None:
    keep(tmp_path, GOOD, 1)
    keep(tmp_path, dataclasses.replace(GOOD, cutoffs=(3,)), 2)
    assert ask(tmp_path, 'SELECT count("hit@2"), count("hit@3"), count(*) FROM queries') == [(2, 2, 4)]


def assert_clean(folder: Path) -> None:
    findings = Findings()
    check_store(folder, findings)
    assert [str(finding) for finding in findings.kept] == []


def test_connect_gives_every_view(tmp_path: Path) -> None:
    for number, world in enumerate((GOOD, WORSE), 1):
        keep(tmp_path, world, number)
        with tripos.connect(tmp_path) as connection:
            assert {name for (name,) in connection.execute("SHOW TABLES").fetchall()} == set(TABLES)
            assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(number,)]


def test_the_example_in_the_docs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path / "engagement" / "store", GOOD, 1)
    page = (Path(__file__).parents[3] / "docs" / "store.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(example, names)
    assert "2026-01-01 12:00:00" in capsys.readouterr().out
    assert names["trend"] == [(day(1).replace(tzinfo=None), "passed", None)]


def test_connecting_changes_nothing(tmp_path: Path) -> None:
    keep(tmp_path, GOOD, 1)
    before = contents(tmp_path)
    with tripos.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE mine AS SELECT * FROM queries")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_a_type_and_a_meaning(name: str) -> None:
    table = TABLES[name]
    assert table.name == name
    assert len(set(table.names)) == len(table.columns)
    assert all(column.type and column.meaning.endswith((".", ",", ":")) for column in table.columns)
