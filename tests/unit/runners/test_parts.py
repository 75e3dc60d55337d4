"""Ranked results in several processes: the same findings, no hang, no orphan, no noise, whatever happens in them."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from tests.builders import Row, World, config_of, judgment, write_jsonl
from tests.cli.world import LEFT_OPEN, run, spawn
from tests.cli.world import World as CommandWorld
from tripos.columns.align import Aligner
from tripos.contracts.config import Config, Options
from tripos.errors import InputError, NotComparable, TriposError
from tripos.files.jsonl import dump_line
from tripos.runners.retrieval import evaluate

N = 60
LAST = N - 1
LITTLE = 20_000
"""Bytes that force flat lines into a dozen buckets."""
PARENT = os.getpid()


@pytest.fixture(autouse=True)
def temp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for temporary files, in which nothing may remain, and no process either."""
    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.glob("tripos-*")) == []
    assert multiprocessing.active_children() == []


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A test that takes a minute has hung."""

    def give_up(_signal: int, _frame: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# ---- files


def columnar(i: int) -> Row:
    return {"query_id": f"q{i:03}", "fragment_ids": [f"s{(i + k) % 9}::f1" for k in range(4)], "scores": [0.9, 0.5, 0.5, 0.1]}


def nested(i: int) -> Row:
    row = columnar(i)
    pairs = zip(row["fragment_ids"], row["scores"], strict=True)
    return {"query_id": row["query_id"], "results": [{"fragment_id": n, "score": s} for n, s in pairs]}


def flat(i: int) -> list[Row]:
    row = columnar(i)
    items = enumerate(zip(row["fragment_ids"], row["scores"], strict=True), 1)
    return [{"query_id": row["query_id"], "fragment_id": n, "rank": k, "score": s} for k, (n, s) in items]


def rows_of(form: str) -> list[Row]:
    if form == "flat":
        return [line for i in range(N) for line in flat(i)]
    return [(nested if form == "nested" else columnar)(i) for i in range(N)]


def lines_of(rows: Sequence[Row]) -> list[bytes]:
    return [dump_line(row) for row in rows]


def written(folder: Path, content: bytes, name: str = "r.jsonl") -> Config:
    """Sixty judged queries, and these bytes as ranked results."""
    judgments = [judgment(f"q{i:03}", f"s{i % 7}", slices={"odd": bool(i % 2)}) for i in range(N)]
    config = config_of(folder, World(judgments, [], limit=5))
    (folder / name).write_bytes(content)
    return config.model_copy(update={"ranked_results": str(folder / name)})


def outcome(config: Config, **options: Any) -> str | list[str]:
    """The run's name; or every fault: its kind, its line and its words."""
    try:
        return evaluate(config, Options(**options)).report.run_id
    except InputError as error:
        return [f"{f.place.line} {f.kind} {f.field} {f.message}" for f in error.findings]


def faults(config: Config, **options: Any) -> list[str]:
    told = outcome(config, **options)
    assert not isinstance(told, str), "no fault was told"
    return told


WAYS: list[dict[str, int]] = [
    {"workers": 2},
    {"workers": 3},
    {"workers": 2, "memory_limit": LITTLE},
    {"workers": 3, "memory_limit": LITTLE},
]


class Counted:
    """Counts how often something is called, in this process."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.n, self._call = 0, call

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.n += 1
        return self._call(*arguments, **options)


def test_the_work_is_done_in_other_processes(tmp_path: Path) -> None:
    # all that follows would hold as well for a runner that works alone
    config = written(tmp_path, b"".join(lines_of(rows_of("columnar"))))
    for workers, taken, absorbed in ((1, N, 0), (2, 0, 2), (3, 0, 3)):
        take, absorb = Counted(Aligner.take), Counted(Aligner.absorb)
        with (
            mock.patch.object(Aligner, "take", lambda *a, take=take: take(*a)),
            mock.patch.object(Aligner, "absorb", lambda *a, absorb=absorb: absorb(*a)),
        ):
            evaluate(config, Options(workers=workers))
        assert (take.n, absorb.n) == (taken, absorbed)


# ---- a fault anywhere is told as one process tells it

BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda line: line[: len(line) // 2] + b"\n",
    "not UTF-8": lambda line: line.replace(b'"q', b'"\xff'),
    "number for a query": lambda line: line.replace(line[line.index(b'"q0') : line.index(b",")], b"7", 1),
    "unknown field": lambda line: line.replace(b"{", b'{"extra":1,', 1),
    "duplicate key": lambda line: line.replace(b"{", b'{"x":1,"x":2,', 1),
    "NaN": lambda line: line.replace(b"0.9", b"NaN", 1),
    "no object": lambda _: b"7\n",
}
PLACES = {"first": [0], "middle": [N // 2], "last": [LAST], "every part": [0, 1, 20, N // 2, 45, LAST]}


EVERYWHERE = [("columnar", place) for place in PLACES]
ELSEWHERE = [("nested", "last"), ("nested", "every part"), ("flat", "middle"), ("flat", "every part")]


@pytest.mark.parametrize(("form", "place"), EVERYWHERE + ELSEWHERE)
@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_in_any_part(form: str, fault: str, place: str, tmp_path: Path) -> None:
    lines = lines_of(rows_of(form))
    step = len(lines) // N
    for i in PLACES[place]:
        lines[i * step] = BROKEN[fault](lines[i * step])
    config = written(tmp_path, b"".join(lines))
    wanted = faults(config, workers=1)
    assert [int(words.split()[0]) for words in wanted] == [i * step + 1 for i in PLACES[place]]
    ways = WAYS[:1] + WAYS[3:] if form == "flat" else WAYS[:1]
    for way in ways:
        assert faults(config, **way) == wanted, way


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", ["rising scores", "duplicate fragment"])
@pytest.mark.parametrize("form", ["columnar", "nested"])
def test_a_fault_of_a_list_in_any_part(form: str, fault: str, place: str, tmp_path: Path) -> None:
    lines = lines_of(rows_of(form))
    for i in PLACES[place]:
        row = columnar(i)
        if fault == "rising scores":
            lines[i] = lines[i].replace(b"0.1", b"7")
        else:
            first, second = (name.encode() for name in row["fragment_ids"][:2])
            lines[i] = lines[i].replace(second, first)
    config = written(tmp_path, b"".join(lines))
    wanted = faults(config, workers=1)
    assert [int(words.split()[0]) for words in wanted] == [i + 1 for i in PLACES[place]]
    for way in WAYS[:2]:
        assert faults(config, **way) == wanted, way


@pytest.mark.parametrize("row", [0, 100, 239])
def test_a_fault_in_any_part_of_parquet(row: int, tmp_path: Path) -> None:
    rows = rows_of("flat")
    rows[row]["fragment_id"] = ""
    columns = [[r[name] for r in rows] for name in ("query_id", "fragment_id", "rank", "score")]
    with duckdb.connect() as connection:
        values = "unnest($1) AS query_id, unnest($2) AS fragment_id, unnest($3) AS rank, unnest($4) AS score"
        connection.execute(f"COPY (SELECT {values}) TO '{tmp_path}/r.parquet' (FORMAT parquet)", columns)
    config = written(tmp_path, b"").model_copy(update={"ranked_results": f"{tmp_path}/r.parquet"})
    wanted = faults(config, workers=1)
    assert len(wanted) == 1
    for way in WAYS[:2]:
        assert faults(config, **way) == wanted


@pytest.mark.parametrize("second", [1, N // 2, LAST])
@pytest.mark.parametrize("form", ["columnar", "nested"])
def test_a_query_in_two_places(form: str, second: int, tmp_path: Path) -> None:
    rows = rows_of(form)
    rows[second] = rows[second] | {"query_id": "q000"}
    config = written(tmp_path, b"".join(lines_of(rows)))
    wanted = faults(config, workers=1)
    assert [words.split()[:3] for words in wanted] == [[str(second + 1), "duplicate_id", "query_id"]]
    for way in WAYS[:2]:
        assert faults(config, **way) == wanted


def test_a_query_whose_flat_lines_stand_apart(tmp_path: Path) -> None:
    # flat lines may stand anywhere, so this is no fault at all
    rows = rows_of("flat")
    config = written(tmp_path, b"".join(lines_of([*rows[2:], *rows[:2]])))
    wanted = outcome(config, workers=1)
    assert isinstance(wanted, str)
    for way in WAYS:
        assert outcome(config, **way) == wanted


@pytest.mark.parametrize("place", [0, N // 2, LAST])
def test_a_foreign_digest_in_any_part(place: int, tmp_path: Path) -> None:
    rows = rows_of("columnar")
    rows[place]["policy_digest"] = "0" * 64
    config, told = written(tmp_path, b"".join(lines_of(rows))), set()
    for workers in (1, 2, 3):
        with pytest.raises(NotComparable) as caught:
            evaluate(config, Options(workers=workers))
        told.add(str(caught.value).replace(str(tmp_path), ""))
    assert len(told) == 1 or all("C search policy  /r.jsonl:" in words for words in told)


def test_what_lenient_lets_pass_is_counted_in_every_part(tmp_path: Path) -> None:
    rows = rows_of("nested")
    for i in (0, 20, 40, LAST):
        rows[i] |= {"extra": 1}
        rows[i]["results"][1] = rows[i]["results"][0]
    config = written(tmp_path, b"".join(lines_of(rows)))
    reports = [evaluate(config, Options(lenient=True, workers=workers)).report for workers in (1, 2, 3)]
    assert reports[0].counts.lenient == {"duplicates": 4, "unknown_fields": 4}
    assert len({report.run_id for report in reports}) == 1


# ---- faults found: what each part finds well, and the whole does not


@pytest.mark.parametrize("workers", [2, 3])
def test_a_file_that_mixes_forms(workers: int, tmp_path: Path) -> None:
    # halves of one size, so that the cut for two falls where the form changes; a third of the file each for three
    share = N // workers
    lines = lines_of([*rows_of("nested")[:share], *rows_of("columnar")[share:]])
    width = max(map(len, lines))
    lines = [line[:-1] + b" " * (width - len(line)) + b"\n" for line in lines]
    config = written(tmp_path, b"".join(lines))
    wanted = faults(config, workers=1)
    assert wanted[0].startswith(f"{share + 1} unknown_form")
    assert outcome(config, workers=workers) == wanted


@pytest.mark.parametrize("workers", [2, 3])
def test_a_query_without_judgment_in_two_parts(workers: int, tmp_path: Path) -> None:
    row: Row = {"query_id": "unjudged", "fragment_ids": ["a"]}
    config = written(tmp_path, b"".join(lines_of([row, *rows_of("columnar"), row])))
    wanted = faults(config, workers=1)
    assert wanted[0].startswith(f"{N + 2} duplicate_id")
    assert outcome(config, workers=workers) == wanted


def test_flat_lines_of_a_query_without_judgment_across_a_cut(tmp_path: Path) -> None:
    # an id called "results" hides from the first look that the file is flat, so it is cut anywhere
    rows = [{"query_id": "results", "fragment_id": "a", "rank": 1}]
    rows += [{"query_id": "unjudged", "fragment_id": f"f{n}", "rank": n} for n in range(1, 400)]
    config = written(tmp_path, b"".join(lines_of(rows)))
    assert outcome(config, workers=2) == outcome(config, workers=1)


def test_faults_of_lines_and_of_lists_in_a_flat_file(tmp_path: Path) -> None:
    lines = [line.replace(b"0.1", b"7") for line in lines_of(rows_of("flat"))]
    lines[200] = b"7\n"
    config = written(tmp_path, b"".join(lines))
    wanted = faults(config, workers=1)
    assert faults(config, workers=1, memory_limit=LITTLE) == wanted
    # all faults of a file come at once: the line, 59 lists, and perhaps what is left of the list that lacks the line
    assert N <= len(wanted) <= N + 1


def test_a_line_that_names_two_queries_in_little_room(tmp_path: Path) -> None:
    lines = lines_of(rows_of("flat"))
    lines[120] = lines[120].replace(b"{", b'{"query_id":"x",', 1)
    config = written(tmp_path, b"".join(lines))
    wanted = faults(config, workers=1)
    assert [words.split()[:2] for words in wanted] == [["121", "duplicate_key"]]
    assert faults(config, workers=1, memory_limit=LITTLE) == wanted


# ---- a worker that dies


def in_child(act: Callable[[], object], row: int = 10) -> Callable[[Aligner, Any], None]:
    """A take that acts in a child, at one of its rows."""
    take, taken = Aligner.take, [0]

    def acting(self: Aligner, came: Any) -> None:
        taken[0] += 1
        if os.getpid() != PARENT and taken[0] == row:
            act()
        take(self, came)

    return acting


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV], ids=lambda n: n.name)
def test_a_worker_that_is_killed(number: signal.Signals, workers: int, tmp_path: Path) -> None:
    config = written(tmp_path, b"".join(lines_of(rows_of("columnar"))))
    taking = in_child(lambda: os.kill(os.getpid(), number))
    with mock.patch.object(Aligner, "take", taking), pytest.raises(TriposError, match="a worker process ended") as caught:
        evaluate(config, Options(workers=workers))
    assert type(caught.value) is TriposError


@pytest.mark.parametrize("status", [0, 1])
def test_a_worker_that_leaves(status: int, tmp_path: Path) -> None:
    config = written(tmp_path, b"".join(lines_of(rows_of("nested"))))
    taking = in_child(lambda: os._exit(status))
    with mock.patch.object(Aligner, "take", taking), pytest.raises(TriposError, match="a worker process ended"):
        evaluate(config, Options(workers=2))


def test_a_worker_that_is_killed_while_it_sends(tmp_path: Path) -> None:
    config = written(tmp_path, b"".join(lines_of(rows_of("columnar"))))

    def half(self: Any, buffer: Any) -> None:
        self._send(struct.pack("!i", len(buffer)) + bytes(buffer[: len(buffer) // 2]))
        os._exit(9)

    with (
        mock.patch.object(multiprocessing.connection.Connection, "_send_bytes", half),
        pytest.raises(TriposError, match="a worker process ended"),
    ):
        evaluate(config, Options(workers=2))


def test_an_exception_in_a_worker(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = written(tmp_path, b"".join(lines_of(rows_of("columnar"))))

    def fail() -> None:
        raise ZeroDivisionError("a fault of ours")

    with mock.patch.object(Aligner, "take", in_child(fail)), pytest.raises(Exception, match="a fault of ours"):
        evaluate(config, Options(workers=2))
    assert "Traceback" not in capfd.readouterr().err


def test_a_worker_that_dies_leaves_the_older_report(tmp_path: Path) -> None:
    world = CommandWorld(tmp_path)
    world.write()
    before = world.everything()
    with mock.patch.object(Aligner, "take", in_child(lambda: os._exit(9), row=1)):
        done = run(world.folder, world.arguments("--workers", "2"))
    assert (done.code, done.errors) == (
        70,
        ["tripos: a worker process ended without a word (out of memory?): fewer --workers may help"],
    )
    assert world.everything() == before


# ---- interruption

DRIVER = r"""
import os, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits "ignored"
parent = os.getpid()

from tripos.columns.align import Aligner

def slow(self, row, take=Aligner.take):
    assert os.getpid() != parent
    os.write(1, b"ready\n")
    time.sleep(60)

Aligner.take = slow

from tripos.cli.app import main

main()
"""
"""The command, whose workers say that they are ready and then sleep."""


@contextlib.contextmanager
def working(folder: Path, form: str, driver: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command at work on sixty queries, in a process group of its own; what it says goes to a file."""
    write_jsonl(folder / "r.jsonl", rows_of(form))
    write_jsonl(folder / "j.jsonl", [judgment(f"q{i:03}", "s1") for i in range(N)])
    (folder / "temp").mkdir()
    arguments = ["--judgments", "j.jsonl", "--ranked-results", "r.jsonl", "--retrieval-mode", "lexical", "--output", "out"]
    command = [sys.executable, "-c", driver, "eval-retrieval", *arguments, "--workers", "2", "--memory-limit", "20KB"]
    own = {**os.environ, "TMPDIR": str(folder / "temp")}
    with (
        open(folder / "said", "wb") as said,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=said, start_new_session=True, env=own) as process,
    ):
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def assert_interrupted(folder: Path, process: subprocess.Popen[bytes], soon: float = 20) -> None:
    """Exit 130 soon, without noise, and neither a worker nor a file is left."""
    process.wait(soon)
    said = (folder / "said").read_text()
    assert (process.returncode, "Traceback" in said, "Process" in said) == (130, False, False), said
    assert gone(process.pid), "a worker is left"
    assert list((folder / "temp").iterdir()) == []
    assert list((folder / "out").iterdir()) == []


@pytest.mark.parametrize("form", ["columnar", "flat"])
@pytest.mark.parametrize(
    ("number", "whom"), [(signal.SIGINT, "group"), (signal.SIGINT, "parent"), (signal.SIGTERM, "parent")], ids=str
)
def test_an_interruption(number: signal.Signals, whom: str, form: str, tmp_path: Path) -> None:
    with working(tmp_path, form, DRIVER) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2  # both workers are at work
        time.sleep(0.3)  # and the parent waits for them
        assert any((tmp_path / "temp").iterdir()) == (form == "flat")
        if whom == "group":
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert_interrupted(tmp_path, process)


AT_START = """
from multiprocessing import popen_fork

def launching(self, process, launch=popen_fork.Popen._launch, seen=[]):
    launch(self, process)
    seen.append(process)
    if len(seen) == 2:
        os.kill(parent, signal.SIGINT)

popen_fork.Popen._launch = launching

from tripos.cli.app import main
"""


def test_an_interruption_while_a_worker_is_started(tmp_path: Path) -> None:
    with working(tmp_path, "columnar", DRIVER.replace("from tripos.cli.app import main\n", AT_START)) as process:
        assert_interrupted(tmp_path, process, soon=5)


def gone(group: int) -> bool:
    """Whether no process of the group is left, within a moment."""
    for _ in range(50):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


# ---- progress


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_progress_grows(workers: int, tmp_path: Path) -> None:
    n, calls = 3_200, list[tuple[int, int]]()
    config = config_of(tmp_path, World([judgment(f"q{i:04}", "a") for i in range(n)], []))
    results = write_jsonl(tmp_path / "r.jsonl", [{"query_id": f"q{i:04}", "fragment_ids": ["a"]} for i in range(n)])
    config = config.model_copy(update={"ranked_results": results, "scope": "integration"})
    evaluate(config, Options(workers=workers), progress=lambda done, total: calls.append((done, total)))
    assert len(calls) >= 4
    assert {total for _, total in calls} == {n}
    done = [count for count, _ in calls]
    assert done == sorted(set(done))
    assert 0.6 * n < done[-1] <= n


# ---- how many


@pytest.mark.parametrize("form", ["columnar", "flat"])
@pytest.mark.parametrize("workers", [N, 200])
def test_more_workers_than_rows(workers: int, form: str, tmp_path: Path) -> None:
    rows = rows_of(form)[:8]
    config = written(tmp_path, b"".join(lines_of(rows)))
    assert outcome(config, workers=workers) == outcome(config, workers=1)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b'{"query_id":"q000","fragment_ids":["s0::f1"]}'])
@pytest.mark.parametrize("workers", [2, 3])
def test_next_to_nothing(workers: int, content: bytes, tmp_path: Path) -> None:
    config = written(tmp_path, content)
    assert outcome(config, workers=workers) == outcome(config, workers=1)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n\n", b" \n"])
@pytest.mark.parametrize("form", ["columnar", "flat"])
def test_line_ends_at_the_cuts(form: str, end: bytes, tmp_path: Path) -> None:
    lines = [line[:-1] for line in lines_of(rows_of(form))]
    plain = outcome(written(tmp_path, b"\n".join(lines)), workers=1)
    config = written(tmp_path, b"\xef\xbb\xbf" + end.join(lines))
    for way in [{"workers": 1}, *WAYS, {"workers": 17}]:
        assert outcome(config, **way) == plain


@LEFT_OPEN
@pytest.mark.parametrize("text", ["512", "0MB", "-1GB", "1.5GB", "GB", "", "1 TB", "１GB", "1GBps", "0x1MB", "999999999999GB"])
def test_a_memory_limit_that_is_none(text: str, tmp_path: Path) -> None:
    world = CommandWorld(tmp_path)
    world.write()
    before = world.everything()
    done = run(world.folder, world.arguments("--memory-limit", text))
    assert (done.code, done.errors) == (2, [f'tripos: --memory-limit "{text}": a size is expected, e.g. 512MB or 2GB'])
    assert world.everything() == before


@LEFT_OPEN
@pytest.mark.parametrize("text", ["1KB", "64mb", "512MB", "2GB", "512MiB", "1 GB", "3G", "1000000GB"])
def test_a_memory_limit(text: str, tmp_path: Path) -> None:
    world = CommandWorld(tmp_path)
    world.write()
    assert run(world.folder, world.arguments("--memory-limit", text)).code == 0


@pytest.mark.parametrize("workers", ["-1", "two", "1.5"])
def test_a_number_of_workers_that_is_none(workers: str, tmp_path: Path) -> None:
    world = CommandWorld(tmp_path)
    world.write()
    done = run(world.folder, world.arguments("--workers", workers))
    assert done.code == 2
    assert "--workers" in done.err


@LEFT_OPEN
@pytest.mark.parametrize("workers", ["0", "1", "2", "64"])
def test_a_number_of_workers(workers: str, tmp_path: Path) -> None:
    world = CommandWorld(tmp_path)
    alone = world.run()
    report = alone.report.run_id
    outcome = world.run("--workers", workers)
    assert (outcome.code, outcome.report.run_id) == (0, report)


def test_standard_input_is_read_by_one_process(tmp_path: Path) -> None:
    content = b"".join(lines_of(rows_of("columnar")))
    config = written(tmp_path, content)
    arguments = ["--judgments", "judgments.jsonl", "--retrieval-mode", "lexical", "--limit", "5", "--workers", "3"]
    done = spawn(tmp_path, ["eval-retrieval", *arguments, "--ranked-results", "-", "--json"], input=content)
    assert done.returncode == 0, done.stderr.decode()
    assert f'"run_id": "{outcome(config)}"' in done.stdout.decode().replace('":"', '": "')


def test_few_open_files_are_enough(tmp_path: Path) -> None:
    import resource

    config = written(tmp_path, b"".join(lines_of(rows_of("flat"))))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        found = outcome(config, memory_limit=1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found == outcome(config)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_evaluation_that_keeps_no_misses_counts_them(workers: int, tmp_path: Path) -> None:
    config = written(tmp_path, b"".join(lines_of(rows_of("columnar"))))
    whole, bare = (evaluate(config, Options(workers=workers), keep_misses=keep) for keep in (True, False))
    assert whole.report == bare.report
    assert len(whole.misses) == whole.report.missed > 0
    with pytest.raises(ValueError, match="keep_misses"):
        _ = bare.misses
