"""What a query may not do: write, reach outside the store, change a setting, or take the machine."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.builders import World, judgment, listed
from tests.unit.store.history import ask, contents, keep
from tripos.errors import InputError, TriposError, UsageError
from tripos.store import sql as checking
from tripos.store.sandbox import Query, run
from tripos.store.tables import TABLES

WORLD = World([judgment("q1", "a"), judgment("q2", "b")], [listed("q1", "a", "b"), listed("q2", "a")])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "store"
    keep(folder, WORLD)
    return folder


STATEMENTS = {
    "COPY (SELECT 1) TO '{store}/x.csv'": "COPY is refused",
    "COPY (SELECT 1) TO '/tmp/x.csv'": "COPY is refused",
    "COPY runs FROM '/etc/passwd'": "COPY is refused",
    "WITH x AS (COPY (SELECT 1) TO '{store}/x.csv') SELECT * FROM x": "COPY is refused",
    "WITH x AS (INSERT INTO runs VALUES (1) RETURNING 1) SELECT * FROM x": "INSERT is refused",
    "WITH x AS (DELETE FROM runs RETURNING 1) SELECT * FROM x": "DELETE is refused",
    "WITH x AS MATERIALIZED (UPDATE runs SET name = 'x' RETURNING 1) FROM x": "UPDATE is refused",
    "SELECT * FROM (WITH x AS (COPY (SELECT 1) TO '{store}/x.csv') FROM x)": "COPY is refused",
    "SELECT (WITH x AS (COPY (SELECT 1) TO '{store}/x.csv') SELECT count(*) FROM x)": "COPY is refused",
    "ATTACH '{store}/x.duckdb'": "ATTACH is refused",
    "ATTACH ':memory:' AS x": "ATTACH is refused",
    "DETACH memory": "DETACH is refused",
    "USE memory": "SET is refused",
    "INSTALL httpfs": "LOAD is refused",
    "LOAD httpfs": "LOAD is refused",
    "UPDATE EXTENSIONS": "a query only reads",
    "SET memory_limit = '10GB'": "SET is refused",
    "SET enable_external_access = true": "SET is refused",
    "SET VARIABLE x = 1": "SET is refused",
    "RESET memory_limit": "is refused",
    "PRAGMA database_list": "PRAGMA is refused",
    "CALL pragma_version()": "CALL is refused",
    "CHECKPOINT": "CALL is refused",
    "CREATE TABLE x AS SELECT 1": "CREATE is refused",
    "CREATE VIEW x AS SELECT * FROM read_csv('/etc/passwd')": "CREATE is refused",
    "CREATE OR REPLACE VIEW runs AS SELECT 1": "CREATE is refused",
    "CREATE MACRO x() AS TABLE SELECT * FROM read_text('/etc/passwd')": "CREATE is refused",
    "CREATE SECRET x (TYPE s3)": "CREATE is refused",
    "INSERT INTO runs VALUES (1)": "INSERT is refused",
    "UPDATE runs SET name = 'x'": "UPDATE is refused",
    "DELETE FROM runs": "DELETE is refused",
    "TRUNCATE runs": "DELETE is refused",
    "MERGE INTO runs USING runs ON true WHEN MATCHED THEN DELETE": "MERGE INTO is refused",
    "DROP VIEW runs": "DROP is refused",
    "ALTER VIEW runs RENAME TO gone": "ALTER is refused",
    "COMMENT ON VIEW runs IS 'x'": "ALTER is refused",
    "EXPORT DATABASE '{store}/x'": "EXPORT is refused",
    "IMPORT DATABASE '{store}/x'": "is refused",
    "PREPARE x AS SELECT 1": "PREPARE is refused",
    "EXECUTE x": "EXECUTE is refused",
    "DEALLOCATE x": "is refused",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{store}/x.csv'": "EXPLAIN is refused",
    "EXPLAIN SELECT 1": "EXPLAIN is refused",
    "BEGIN": "TRANSACTION is refused",
    "VACUUM": "VACUUM is refused",
    "ANALYZE": "VACUUM is refused",
    "SELECT 1; DROP VIEW runs": "is refused",
    "SELECT 1; SELECT 2": "2 statements: one query at a time",
    "PIVOT runs ON layer USING count(*)": "PIVOT must name its values",
    "": "the query is empty",
    "-- nothing": "the query is empty",
}
READERS = {
    "SELECT * FROM read_csv('/etc/passwd')": '"read_csv" is refused in FROM',
    "SELECT * FROM read_text('/etc/passwd')": '"read_text" is refused in FROM',
    "SELECT * FROM READ_TEXT('/etc/passwd')": '"read_text" is refused in FROM',
    "SELECT (SELECT content FROM read_text('/etc/passwd'))": '"read_text" is refused in FROM',
    "SELECT * FROM runs WHERE name IN (FROM read_text('/etc/passwd') SELECT content)": '"read_text" is refused',
    "SELECT * FROM runs, LATERAL (SELECT * FROM read_blob(runs.name))": '"read_blob" is refused in FROM',
    "WITH x AS (FROM read_json('/etc/passwd')) FROM x": '"read_json" is refused in FROM',
    "SELECT * FROM read_parquet('{store}/runs/*/runs.*.parquet')": '"read_parquet" is refused in FROM',
    "SELECT * FROM parquet_metadata('{store}/runs/*/runs.*.parquet')": '"parquet_metadata" is refused in FROM',
    "SELECT * FROM read_parquet('http://127.0.0.1/x.parquet')": '"read_parquet" is refused in FROM',
    "SELECT * FROM sniff_csv('/etc/passwd')": '"sniff_csv" is refused in FROM',
    "SELECT * FROM glob('/etc/*')": '"glob" is refused in FROM',
    "SELECT * FROM read_duckdb('/tmp/x.duckdb')": '"read_duckdb" is refused in FROM',
    "DESCRIBE SELECT * FROM read_csv('/etc/passwd')": '"read_csv" is refused in FROM',
    "SUMMARIZE SELECT * FROM read_csv('/etc/passwd')": '"read_csv" is refused in FROM',
    "FROM '/etc/passwd'": "files are not read by a query",
    "FROM '{store}/runs/../../../etc/passwd'": "files are not read by a query",
    "FROM 'x.parquet'": "files are not read by a query",
    "SUMMARIZE '/etc/passwd'": "files are not read by a query",
    "SELECT * FROM query('SELECT 1')": '"query" is refused in FROM',
    "SELECT * FROM query('COPY (SELECT 1) TO ''{store}/x.csv''')": '"query" is refused in FROM',
    "SELECT * FROM query_table('runs')": '"query_table" is refused in FROM',
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))": "is refused in FROM",
    "SELECT * FROM duckdb_settings()": '"duckdb_settings" is refused in FROM',
    "SELECT * FROM duckdb_secrets()": '"duckdb_secrets" is refused in FROM',
    "SELECT * FROM enable_logging(storage = 'file')": '"enable_logging" is refused in FROM',
    "SELECT * FROM checkpoint()": '"checkpoint" is refused in FROM',
    "SELECT * FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)": '"arrow_scan" is refused in FROM',
    "SELECT * FROM python_variable": 'there is no view "python_variable"',
    "SELECT getenv('HOME')": '"getenv" is refused',
    "SELECT current_setting('memory_limit')": '"current_setting" is refused',
    "SELECT write_log('x')": '"write_log" is refused',
    "SELECT sleep_ms(100000)": '"sleep_ms" is refused',
}
EXHAUSTING = {
    "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t": "longer than 1 s",
    "SELECT count(*) FROM range(1000000) a, range(1000000) b, runs WHERE hash(a.range, b.range) = 7": "longer than 1 s",
    "SELECT * FROM range(100000000000)": "more than 64 MiB|longer than 1 s",
    "SELECT list(range) FROM range(1000000000)": "more than 64 MiB",
    "SELECT length(repeat('x', 4000000000))": "more than 64 MiB",
    "SELECT string_agg(repeat('x', 1000000)) FROM range(100000)": "more than 64 MiB",
    "SELECT range FROM range(1000000000) ORDER BY hash(range)": "more than 64 MiB",
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000: "deep|nested|depth|overflow",
}


@pytest.mark.parametrize(("attempt", "said"), [*STATEMENTS.items(), *READERS.items()])
def test_writing_and_escaping_are_refused_in_one_line(store: Path, attempt: str, said: str) -> None:
    before = contents(store)
    with pytest.raises(UsageError) as caught:
        ask(store, attempt.replace("{store}", str(store)))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(store) == before


@pytest.mark.parametrize(("attempt", "said"), EXHAUSTING.items(), ids=range(len(EXHAUSTING)))
def test_exhausting_the_machine_is_ended(store: Path, attempt: str, said: str) -> None:
    started = time.monotonic()
    with pytest.raises(UsageError, match=said):
        run(Query(str(store), attempt, timeout_s=1, memory=64 << 20))
    assert time.monotonic() - started < 15


def test_there_are_at_least_25_of_them() -> None:
    assert len(STATEMENTS) + len(READERS) + len(EXHAUSTING) > 25


@pytest.mark.parametrize(
    "attempt",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('{store}/../outside.csv')",
        "COPY (SELECT 1) TO '{store}/../x.csv'",
        "COPY (SELECT 1) TO '{store}/x.csv'",
        "WITH x AS (COPY (SELECT 1) TO '{store}/x.csv') FROM x",
        "COPY (SELECT 1) TO '{runs}'",
        "EXPORT DATABASE '{store}/x'",
        "SET memory_limit = '10GB'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="file sizes are locked by the system elsewhere")
def test_the_locks_hold_without_the_check(store: Path, monkeypatch: pytest.MonkeyPatch, attempt: str) -> None:
    monkeypatch.setattr(checking, "check", lambda _connection, _sql: list(TABLES))  # the child is a fork, and sees it
    (store.parent / "outside.csv").write_text("a\n1\n")
    (runs,) = store.glob("runs/*/runs.*.parquet")
    before = contents(store)
    with pytest.raises(UsageError):
        ask(store, attempt.replace("{store}", str(store)).replace("{runs}", str(runs)))
    after = contents(store)
    assert {path: after[path] for path in before} == before
    assert not any(content for path, content in after.items() if path not in before), "a file may appear, but holds nothing"
    for path in after.keys() - before.keys():
        (store / path).unlink()
    assert not (store.parent / "x.csv").exists() or not (store.parent / "x.csv").read_bytes()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT hit@10 FROM queries",
            'line 1, column 8: there is no column "hit": names with @ stand in double quotes: "hit@10"',
        ),
        ('SELECT "hit@11" FROM queries', 'line 1, column 8: there is no column "hit@11" of queries (did you mean "hit@1"?)'),
        ("SELECT query_id\nFROM queries\nWHERE splitt = 'tune'", 'line 3, column 7: there is no column "splitt" of queries'),
        ("SELECT source_id FROM runs", 'line 1, column 8: there is no column "source_id" here: it is one of ranked_results'),
        ("SELECT r.foo FROM runs r", 'line 1, column 8: there is no column "foo" of runs'),
        ("SELECT * FROM runz", 'line 1, column 15: there is no view "runz" (did you mean "runs"?)'),
        ("SELECT lenght(name) FROM runs", 'line 1, column 8: there is no function "lenght" (did you mean "length"?)'),
        ("SELECT 1,\n  2 selec FROM FROM", "line 2, column 16: syntax error"),
        ("SELECT $a, $b", "no value for parameter a, b: give it with --param a=VALUE"),
    ],
)
def test_faults_point_at_their_place(store: Path, sql: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask(store, sql)
    assert str(caught.value).startswith(said)


def test_a_parameter_too_many_is_told(store: Path) -> None:
    with pytest.raises(UsageError, match="no parameter z"):
        ask(store, "SELECT $a", a=1, z=2)
    with pytest.raises(UsageError, match=r"\$name"):
        ask(store, "SELECT 1", z=2)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM queries",
        "WITH x AS (SELECT * FROM runs) SELECT count(*) FROM x",
        "FROM runs SELECT count(*)",
        "VALUES (1)",
        "SELECT count(*) FROM generate_series(1, 1)",
        "PIVOT runs ON layer IN ('retrieval') USING count(*)",
        "SELECT table_name FROM information_schema.tables WHERE table_name = 'runs'",
        "SELECT unnest([1])",
        "SELECT 1 UNION ALL SELECT 2",
        "DESCRIBE runs",
        "SUMMARIZE runs",
        "SHOW TABLES",
        "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 3) FROM t",
        "SELECT 'COPY (SELECT 1) TO x; DROP TABLE y' AS harmless",
        "SELECT count(*) FROM main.runs",
    ],
)
def test_what_only_reads_is_run(store: Path, sql: str) -> None:
    assert ask(store, sql)


def test_the_message_of_every_place_is_one_line() -> None:
    said = 'Binder Error: Referenced column "splitt" not found\n\nLINE 1: ...aaa, splitt\n                ^^^^^^'
    told = checking.explained(said, "SELECT " + "a" * 100 + "aaa, splitt")
    assert told.startswith("line 1, column 113: there is no column")


def test_a_killed_process_leaves_no_child(store: Path) -> None:
    with pytest.raises(UsageError):
        run(Query(str(store), "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i FROM t) FROM t", timeout_s=0.5))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_broken_file_is_told_with_its_view(tmp_path: Path) -> None:
    keep(tmp_path, WORLD)
    (path,) = tmp_path.glob("runs/*/queries.*.parquet")
    path.write_bytes(b"no Parquet at all")
    with pytest.raises(InputError, match="queries cannot be read"):
        ask(tmp_path, "SELECT * FROM queries")
    assert ask(tmp_path, "SELECT count(*) FROM runs") == [(1,)]


def test_no_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such store"):
        ask(tmp_path / "none", "SELECT 1")


def test_a_fault_of_ours_is_told_as_one(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_connection: duckdb.DuckDBPyConnection, _sql: str) -> list[str]:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(checking, "check", broken)
    with pytest.raises(TriposError, match="broken on purpose") as caught:
        ask(store, "SELECT 1")
    assert int(caught.value.exit_code) == 70
