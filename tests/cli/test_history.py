"""The run history from the command line: kept by evaluations, asked by query, misses and runs, looked after by store."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.cli.world import Outcome, World, run

STORE = ("--store", "history")


def kept(world: World, *more: str) -> Outcome:
    """The world evaluated and stored; q2 finds its source at rank 2."""
    return world.run(*STORE, *more)


def asked(world: World, *arguments: str, stdin: bytes = b"") -> Outcome:
    return run(world.folder, [*arguments, *STORE], stdin)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world that was stored once, for tests that only read."""
    world = World(tmp_path_factory.mktemp("shared"))
    kept(world)
    return world


def test_an_evaluation_with_a_store_is_kept_and_says_so(world: World) -> None:
    first, second = kept(world), kept(world, "--label", "night")
    run_id = first.report.run_id
    assert first.errors == [f"run {run_id[:12]} → history"]
    assert second.errors == [f"run {run_id[:12]} → history, known: one more execution"]
    assert first.out == second.out
    listed = json.loads(asked(world, "runs", "--json").out)
    assert [(one["run_id"], one["labels"], one["layer"], one["verdict"]) for one in listed] == [
        (run_id, ["night"], "retrieval", "passed"),
        (run_id, [], "retrieval", "passed"),
    ]


def test_without_configuration_or_store_nothing_is_kept(world: World) -> None:
    assert world.run().errors == []
    assert set(world.everything()) == {
        "fragments.jsonl",
        "judgments.jsonl",
        "results.jsonl",
        "out/report.json",
        "out/misses.jsonl",
    }


@pytest.mark.parametrize(
    ("own", "folder"),
    [("", "engagement/store"), ("run: runs/full", "runs/store"), ("store: mine", "mine"), ("run: r\nstore: s", "s")],
)
def test_with_a_configuration_it_is_kept_where_that_says(world: World, own: str, folder: str) -> None:
    world.files["config.yaml"] = f"{own}\n".encode() if own else b"name: kb\n"
    done = world.run("--config", "config.yaml")
    assert done.errors == [f"run {done.report.run_id[:12]} → {folder}"]
    assert list((world.folder / folder / "runs" / done.report.run_id).glob("queries.*.parquet"))
    assert run(world.folder, ["runs", "--config", "config.yaml"]).out.splitlines()[-1] == "1 execution of 1 run"


def test_no_store_keeps_it_out(world: World) -> None:
    world.files["config.yaml"] = b"name: kb\n"
    assert world.run("--config", "config.yaml", "--no-store").errors == []
    assert not (world.folder / "engagement").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--store", "x", "--no-store"], "--store and --no-store: give one of the two"),
        (["--label", "night"], "--label names a stored execution"),
        (["--store", ""], "--store is empty"),
        (["--store", "x", "--label", "latest"], "mean runs already"),
        (["--store", "x", "--label", "baseline"], "mean runs already"),
        (["--store", "x", "--label", "abcd1234"], "mean runs already"),
        (["--store", "x", "--label", " night"], "printable characters"),
        (["--store", "x", "--label", ""], "printable characters"),
    ],
)
def test_flags_that_make_no_sense(world: World, flags: list[str], said: str) -> None:
    done = world.run(*flags)
    assert done.code == 2
    assert said in done.err
    assert not (world.folder / "x").exists()


def test_what_cannot_be_stored_costs_no_output(world: World) -> None:
    world.files["history"] = b"a file stands here"
    done = kept(world)
    assert done.code == 2
    assert done.errors == [
        "tripos: the outputs were written, but the run was not stored: history: the store cannot be written: Not a directory"
    ]
    assert done.out.endswith("passed\n")
    assert done.report.verdict.status == "passed"


def test_standard_input_costs_no_output_either(world: World) -> None:
    world.write()
    world.stdin = (world.folder / "results.jsonl").read_bytes()
    done = kept(world, "--ranked-results", "-")
    assert done.code == 2
    assert "standard input cannot be read again" in done.err
    assert done.report.verdict.status == "passed"


def test_quiet_says_nothing_of_it(world: World) -> None:
    assert kept(world, "--quiet").errors == []


def test_query_as_table_json_jsonl_csv_and_parquet(shared: World) -> None:
    world = shared
    sql = 'SELECT query_id, "rr@3", reasons FROM queries ORDER BY query_id'
    assert asked(world, "query", sql).out.splitlines() == [
        "query_id  rr@3  reasons",
        "q1           1",
        "q2         0.5",
        "q3           –",
        "3 rows",
    ]
    expected: list[dict[str, object]] = [
        {"query_id": "q1", "rr@3": 1.0, "reasons": []},
        {"query_id": "q2", "rr@3": 0.5, "reasons": []},
        {"query_id": "q3", "rr@3": None, "reasons": []},
    ]
    assert json.loads(asked(world, "query", sql, "--json").out) == expected
    assert [json.loads(line) for line in asked(world, "query", sql, "--jsonl").out.splitlines()] == expected
    rows = list(csv.reader(io.StringIO(asked(world, "query", sql, "--csv").out)))
    assert rows == [["query_id", "rr@3", "reasons"], ["q1", "1.0", "[]"], ["q2", "0.5", "[]"], ["q3", "", "[]"]]
    assert asked(world, "query", sql, "--parquet", "made.parquet").out == "3 rows → made.parquet\n"
    with duckdb.connect() as connection:
        found = connection.execute("FROM read_parquet($1)", [str(world.folder / "made.parquet")]).fetchall()
    assert found == [tuple(row.values()) for row in expected]


def test_an_empty_result_has_its_columns(shared: World) -> None:
    world = shared
    sql = "SELECT query_id, layer FROM queries WHERE false"
    assert asked(world, "query", sql).out == "query_id  layer\n0 rows\n"
    assert asked(world, "query", sql, "--json").out == "[]\n"
    assert asked(world, "query", sql, "--csv").out == "query_id,layer\n"
    assert asked(world, "query", sql, "--parquet", "none.parquet").out == "0 rows → none.parquet\n"


def test_sql_from_a_file_and_from_standard_input(world: World) -> None:
    world.files["own.sql"] = b"-- title: Own\n-- parameter k whole = 1: Rank.\nSELECT $k + 1 AS k\n"
    kept(world)
    assert asked(world, "query", "own.sql", "--csv").out == "k\n2\n"
    assert asked(world, "query", "own.sql", "--csv", "--param", "k=4").out == "k\n5\n"
    assert asked(world, "query", "-", "--csv", stdin=b"SELECT count(*) AS n FROM runs").out == "n\n1\n"
    assert asked(world, "query", "SELECT $name AS x", "--csv", "--param", "name=a=b").out == "x\na=b\n"


def test_a_saved_query_of_the_project_takes_the_place_of_a_shipped_one(world: World) -> None:
    kept(world)
    assert asked(world, "query", "leaks").out.splitlines()[-1] == "0 rows"
    folder = world.folder / "configs" / "queries"
    folder.mkdir(parents=True)
    (folder / "leaks.sql").write_text("-- title: Ours\n-- meaning: Nothing.\nSELECT 'ours' AS own\n")
    assert asked(world, "query", "leaks", "--csv").out == "own\nours\n"
    listing = run(world.folder, ["query", "--list"]).out
    assert "leaks: Ours\n" in listing
    assert "--param last=5" in listing


def test_tables_shows_every_view_with_its_columns(world: World) -> None:
    shown = run(world.folder, ["query", "--tables"]).out
    for name in ("executions", "runs", "measures", "queries", "ranked_results", "misses", "generation_rows", "requirements"):
        assert f"{name}: " in shown
    assert '"hit@10", …' in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no query"),
        (["SELECT 1", "--json", "--csv"], "--json and --csv: give one of them"),
        (["COPY (SELECT 1) TO 'x'"], "COPY is refused"),
        (["SELECT 1 AS a, 2 AS a", "--json"], 'two columns are named "a"'),
        (["SELECT 'nan'::DOUBLE AS x", "--json"], 'column "x" holds nan'),
        (["SELECT 'x'::BLOB AS x", "--csv"], 'column "x" holds bytes'),
        (["SELECT 1", "--param", "x"], "NAME=VALUE is expected"),
        (["SELECT $x", "--param", "x=1", "--param", "x=2"], "--param x is given twice"),
        (["regresed"], 'did you mean "regressed"'),
        (["none.sql"], "none.sql  no such file"),
        (["leaks", "--param", "lats=3"], "no such parameter"),
        (["SELECT 1", "--memory-limit", "much"], '--memory-limit "much"'),
        (["SELECT 1", "--memory-limit", "1KB"], "16MB at least"),
        (["SELECT 1", "--memory-limit", "99999999999999GB"], "a size is expected"),
        (["SELECT 1", "--parquet", ""], "--parquet is empty"),
        (["SELECT '101'::BIT AS x", "--parquet", "x.parquet"], "column x cannot be written as Parquet"),
        (["regressed", "--param", "layer=generatio"], 'did you mean "generation"'),
        (["never-hit", "--param", "last=-3"], "less than 0"),
        (["SELECT 1", "--parquet", "history/runs/x.parquet"], "lies in the store"),
        (["WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i FROM t) FROM t", "--timeout", "0.3"], "longer than 0.3 s"),
    ],
)
def test_faults_of_a_query_are_one_line(shared: World, arguments: list[str], said: str) -> None:
    done = asked(shared, "query", *arguments)
    assert done.code == (3 if "no such file" in said else 2)
    assert said in done.err
    assert len(done.errors) == 1
    assert done.out == ""


def test_values_that_json_cannot_say_are_shown_and_reach_parquet(shared: World) -> None:
    """Types and values come back from the file as DuckDB had them; sums are whole numbers, not floats; JSON is text."""
    sql = (
        "SELECT 'nan'::DOUBLE AS a, '\\xAA'::BLOB AS b, 1234567890123456789.25::DECIMAL(30,2) AS c, "
        "INTERVAL 3 DAY AS d, sum(9007199254740993::BIGINT) AS e, '{\"x\": 1}'::JSON AS f, ['inf'::DOUBLE] AS \"g\x1b\""
    )
    shown = asked(shared, "query", sql)
    assert shown.code == 0
    assert "nan" in shown.out
    assert "\x1b" not in shown.out
    assert asked(shared, "query", sql, "--parquet", "odd.parquet").code == 0
    read = f"SELECT isnan(a), b, c::VARCHAR, d = INTERVAL 3 DAY, e::VARCHAR, f, #7 FROM '{shared.folder}/odd.parquet'"
    with duckdb.connect() as connection:
        found = connection.execute(read.replace("#7", "COLUMNS('^g')")).fetchall()
    assert found == [(True, b"\xaa", "1234567890123456789.25", True, "9007199254740993", '{"x": 1}', [float("inf")])]


def test_parquet_to_standard_output_is_parquet_alone(shared: World) -> None:
    command = [sys.executable, "-m", "tripos", "query", "SELECT 1 AS x", "--parquet", "-", *STORE]
    done = subprocess.run(command, cwd=shared.folder, capture_output=True, check=True)
    assert done.stdout[:4] == done.stdout[-4:] == b"PAR1"
    assert b"1 row" in done.stderr


def test_a_folder_that_is_no_store_is_not_an_empty_one(world: World) -> None:
    kept(world)
    world.folder.joinpath("other").mkdir()
    world.folder.joinpath("other", "notes.txt").touch()
    for folder, said in (("other", "is no store"), (".", "is no store"), ("other/notes.txt", "is no store")):
        done = run(world.folder, ["query", "leaks", "--store", folder])
        assert (done.code, said in done.err) == (3, True)


def test_a_store_does_not_go_into_another(world: World) -> None:
    kept(world)
    done = world.run("--store", "history/runs")
    assert (done.code, "lies in the store" in done.err) == (2, True)
    assert asked(world, "store", "check").code == 0


def test_a_parquet_output_never_replaces_a_file_of_the_store(world: World) -> None:
    kept(world)
    target = next(world.folder.glob("history/runs/*/queries.*.parquet"))
    (world.folder / "link.parquet").symlink_to(target)
    before = target.read_bytes()
    for name in (str(target), "link.parquet", "history/../history/executions/new.parquet"):
        assert asked(world, "query", "SELECT 1 AS x", "--parquet", name).code == 2
    assert target.read_bytes() == before
    assert asked(world, "store", "check").code == 0


def test_misses_of_the_latest_execution_of_each_system(world: World) -> None:
    kept(world, "--name", "kb", "--top-k", "1")
    world.results = [*world.results[:2], {"query_id": "q3", "results": [{"fragment_id": "s4::f1", "score": 0.5}]}]
    kept(world, "--name", "kb", "--label", "today")
    found = json.loads(asked(world, "misses", "--json").out)
    assert [(one["query_id"], one["reasons"]) for one in found] == [("q3", ["not_empty"])]
    every = json.loads(asked(world, "misses", "--since", "1d", "--json").out)
    assert [(one["query_id"], one["reasons"], one["missed_sources"]) for one in every] == [
        ("q3", ["not_empty"], []),
        ("q2", ["no_hit"], ["s2"]),
    ]
    assert json.loads(asked(world, "misses", "--run", "latest~1", "--json").out) == every[1:]
    assert json.loads(asked(world, "misses", "--run", "today", "--category", "negative", "--json").out) == every[:1]
    assert asked(world, "misses", "--reason", "leak", "--json").out == "[]\n"
    assert asked(world, "misses", "--layer", "corpus").out.splitlines()[-1] == "0 rows"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--reason", "nohit"], 'did you mean "no_hit"'),
        (["--since", "soon"], "a day (2026-11-30), a time, or 7d, 12h, 2w"),
        (["--run", "latest", "--since", "1d"], "--run and --since: give one of the two"),
        (["--run", "latest~7"], "has 1 execution"),
    ],
)
def test_filters_that_make_no_sense(shared: World, flags: list[str], said: str) -> None:
    done = asked(shared, "misses", *flags)
    assert (done.code, len(done.errors)) == (2, 1)
    assert said in done.err


def test_runs_show_is_the_report_as_it_was_shown(world: World) -> None:
    done = kept(world, "--label", "night")
    shown = asked(world, "runs", "show", "night").out
    assert shown.startswith(f"run {done.report.run_id}\n  executed ")
    assert "  night\n" in shown
    figures = [line for line in done.out.splitlines() if line.startswith(("hit", "mrr", "ndcg"))]
    assert figures
    assert all(line in shown for line in figures)
    sealed = json.loads(asked(world, "runs", "show", "latest", "--json").out)
    expected = json.loads((done.folder / "report.json").read_text())
    del expected["provenance"]
    assert sealed == expected


def test_options_before_show_are_not_passed_over(shared: World) -> None:
    done = run(shared.folder, ["runs", *STORE, "show", "latest"])
    assert (done.code, done.errors) == (2, ["tripos: give these options after show: tripos runs show …"])


def test_store_check_and_export(world: World) -> None:
    kept(world)
    assert asked(world, "store", "check").out == "history: 1 run, 1 execution, 0 certificates; 8 files verified\n"
    done = asked(world, "store", "export", "all.duckdb")
    assert done.out.endswith(" → all.duckdb\n")
    next(world.folder.glob("history/runs/*/misses.*.parquet")).write_bytes(b"x")
    damaged = asked(world, "store", "check")
    assert damaged.code == 3
    assert any("/misses." in line and "is not what was written" in line for line in damaged.errors)
    assert json.loads(asked(world, "store", "check", "--json").out)["errors"] != []


@pytest.mark.parametrize("command", [["runs"], ["runs", "show", "latest"], ["misses"], ["query", "leaks"], ["store", "check"]])
def test_no_store_is_told_with_what_to_do(tmp_path: Path, command: list[str]) -> None:
    done = run(tmp_path, command)
    assert done.code == 3
    assert done.errors == [
        "engagement/store  no such store: evaluate with --config or --store first, or name another with --store"
    ]
    assert not (tmp_path / "engagement").exists()
