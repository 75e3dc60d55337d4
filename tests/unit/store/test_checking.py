"""Every damage to a store is found, and nothing else is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.builders import World, judgment, listed
from tests.unit.store.history import contents, keep
from tripos.contracts.config import Config
from tripos.errors import Findings, UsageError
from tripos.store.checking import _PHYSICAL, Checked, check_store
from tripos.store.exporting import export
from tripos.store.tables import TABLES
from tripos.store.writing import store_certificate

WORLD = World([judgment("q1", "a"), judgment("q2", "b")], [listed("q1", "a", latency_ms=3.0), listed("q2", "a")])
OTHER = World([judgment("q1", "a"), judgment("q2", "b")], [listed("q1", "b"), listed("q2", "a")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, three executions and a certificate."""
    place = tmp_path / "store"
    for number, world in enumerate((WORLD, OTHER, WORLD), 1):
        keep(place, world, number)
    store_certificate(place, Config(), {"certified": True})
    return place


def checked(folder: Path) -> tuple[Checked, list[str]]:
    findings = Findings()
    found = check_store(folder, findings)
    return found, [str(finding) for finding in findings.kept]


def test_a_sound_store_is_clean(folder: Path) -> None:
    before = contents(folder)
    found, told = checked(folder)
    assert told == []
    assert (found.runs, found.executions, found.certificates, found.never_executed) == (2, 3, 1, 0)
    assert found.files == len(before)
    assert contents(folder) == before


def first(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def swap_reports(folder: Path) -> None:
    one, other = sorted(folder.glob("runs/*/report.json.zst"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def rename_run(folder: Path) -> None:
    first(folder, "runs/*").rename(folder / "runs" / ("0" * 64))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped bit": (lambda f: flip(first(f, "runs/*/queries.*.parquet")), "queries.….parquet  is not what was written"),
    "a cut file": (
        lambda f: first(f, "runs/*/misses.*.parquet").write_bytes(b"PAR1"),
        "misses.….parquet  is not what was written",
    ),
    "a table gone": (lambda f: first(f, "runs/*/measures.*.parquet").unlink(), "measures.….parquet  is missing"),
    "the list gone": (lambda f: first(f, "runs/*/files.json").unlink(), "files.json  is missing or unreadable"),
    "the list broken": (lambda f: first(f, "runs/*/files.json").write_text("{}"), "belongs to no run"),
    "a report of another run": (swap_reports, "report's content is not the one"),
    "a flipped bit in a report": (lambda f: flip(first(f, "runs/*/report.json.zst")), "report.json.zst"),
    "a renamed run": (rename_run, "names another run than its folder"),
    "a stray file in a run": (lambda f: (first(f, "runs/*") / "x").write_text("x"), "belongs to no run"),
    "a stray file among runs": (lambda f: (f / "runs" / "notes.txt").write_text("x"), "is no run"),
    "a stray folder": (lambda f: (f / "notes").mkdir(), "is no part of a store"),
    "a run gone": (lambda f: shutil.rmtree(first(f, "runs/*")), "is not in the store: copy its folder"),
    "an execution cut": (lambda f: first(f, "executions/*").write_bytes(b"PAR1"), "is no readable Parquet"),
    "an execution renamed": (lambda f: first(f, "executions/*").rename(f / "executions/x.parquet"), "the file was renamed"),
    "a certificate renamed": (lambda f: first(f, "certificates/*").rename(f / "certificates/x.parquet"), "is not the one"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_told_with_its_file(folder: Path, damage: str) -> None:
    harm, said = DAMAGES[damage]
    harm(folder)
    _, told = checked(folder)
    assert any(all(part in line for part in said.split("…")) for line in told), told
    assert all(str(folder) in line for line in told)


def test_a_type_of_another_kind_is_told(folder: Path) -> None:
    path = first(folder, "runs/*/queries.*.parquet")
    with duckdb.connect() as connection:
        sql = f"COPY (SELECT * REPLACE (7 AS category) FROM read_parquet('{path}')) TO '{path}.new' (FORMAT parquet)"
        connection.execute(sql)
    Path(f"{path}.new").replace(path)
    _, told = checked(folder)
    assert any("category  is stored as INT32: VARCHAR is expected" in line and str(path) in line for line in told), told


def test_files_of_one_shape_must_have_the_same_columns(folder: Path) -> None:
    path = first(folder, "runs/*/misses.*.parquet")
    with duckdb.connect() as connection:
        sql = f"COPY (SELECT * EXCLUDE (error) FROM read_parquet('{path}')) TO '{path}.new' (FORMAT parquet)"
        connection.execute(sql)
    Path(f"{path}.new").replace(path)
    _, told = checked(folder)
    assert any("has other columns than" in line for line in told), told


def test_every_type_of_every_table_has_its_form_in_parquet() -> None:
    kinds = {column.type.removesuffix("[]") for table in TABLES.values() for column in table.columns}
    assert kinds <= set(_PHYSICAL)


def test_what_killed_processes_leave_is_removed_after_an_hour(folder: Path) -> None:
    old, young = folder / "drafts" / "1-a", folder / "drafts" / "2-b"
    for draft in (old, young):
        draft.mkdir(parents=True)
        (draft / "queries.parquet").write_bytes(b"half")
    os.utime(old, (1, 1))
    found, told = checked(folder)
    assert told == []
    assert (found.removed, found.in_progress) == (1, 1)
    assert not old.exists()
    assert young.exists()


def test_runs_and_latencies_without_their_execution_are_counted(folder: Path) -> None:
    for path in folder.glob("executions/*"):
        path.unlink()
    found, told = checked(folder)
    assert told == []
    assert (found.never_executed, found.loose_latencies) == (2, 2)


def test_export_is_one_file_with_every_table(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "history.duckdb"
    rows = export(str(folder), str(target))
    assert (rows["runs"], rows["executions"], rows["queries"], rows["generation_rows"]) == (2, 3, 4, 0)
    again = export(str(folder), str(target))
    assert again == rows
    assert [path.name for path in tmp_path.iterdir() if path != folder] == ["history.duckdb"]
    with duckdb.connect(str(target), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM queries JOIN runs USING (run_id)").fetchall() == [(4,)]


@pytest.mark.parametrize("name", ["store/history.duckdb", "history.db"])
def test_export_goes_nowhere_else(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        export(str(folder), str(tmp_path / name))
