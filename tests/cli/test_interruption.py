"""Full disks and interruptions: an older report is intact and whole whatever stops the command, and no rubbish is left."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.world import FRAGMENTS, JUDGMENTS, MISSES, OLD, REPORT, World, contents, run, spawn

DRIVER = r"""
import os, signal, sys, time

wanted, nth = sys.argv.pop(1), int(sys.argv.pop(1))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits "ignored"
seen = []

def pause(point):
    seen.append(point)
    if point == wanted and seen.count(point) == nth:
        os.write(1, b"ready\n")
        time.sleep(60)

def renaming(event, arguments):
    if event == "os.rename":
        pause("rename")

def syncing(handle, sync=os.fsync):
    pause("fsync")
    sync(handle)

sys.addaudithook(renaming)
os.fsync = syncing

from tripos.files import reports

def dumping(report, dump=reports.dump_report):
    pause("write")
    return dump(report)

reports.dump_report = dumping

from tripos.cli.app import main

main()
"""
"""The command, paused at the nth time it comes to a point: writing, synchronising to disk, or renaming."""

POINTS = [("write", 1), ("fsync", 1), ("rename", 1)]
POLITE = [signal.SIGINT, signal.SIGTERM]


def stopped(folder: Path, arguments: list[str], point: tuple[str, int], number: signal.Signals) -> tuple[int, bytes]:
    """Exit code and standard error of the command, sent a signal when it has come to a point."""
    command = [sys.executable, "-c", DRIVER, point[0], str(point[1]), *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            process.wait(20)
        finally:
            process.kill()
        return process.returncode, process.stderr.read()


@pytest.mark.parametrize("number", POLITE, ids=lambda n: n.name)
@pytest.mark.parametrize("point", POINTS, ids=lambda p: p[0])
def test_an_interrupted_run_leaves_the_older_report(point: tuple[str, int], number: signal.Signals, world: World) -> None:
    world.write()
    before = world.everything()
    code, said = stopped(world.folder, world.arguments(), point, number)
    assert (code, b"Traceback" in said) == (130, False)
    assert world.everything() == before


@pytest.mark.parametrize("point", POINTS, ids=lambda p: p[0])
def test_a_killed_run_leaves_the_older_report(point: tuple[str, int], world: World) -> None:
    world.write()
    code, said = stopped(world.folder, world.arguments(), point, signal.SIGKILL)
    assert (code, said) == (-signal.SIGKILL, b"")
    left = contents(world.output)
    assert {name: content for name, content in left.items() if name in OLD} == OLD
    assert all(name.startswith(".") and name.endswith(".tmp") for name in left.keys() - OLD.keys())


def test_a_run_after_a_killed_one_is_whole(world: World) -> None:
    world.write()
    stopped(world.folder, world.arguments(), ("rename", 1), signal.SIGKILL)
    outcome = run(world.folder, world.arguments())
    assert outcome.code == 0, outcome.err
    assert (outcome.report.missed, outcome.misses) == (0, {})


def test_killed_between_its_two_renames_both_files_are_whole(world: World) -> None:
    world.write()
    stopped(world.folder, world.arguments(), ("rename", 2), signal.SIGKILL)
    left = {name: content for name, content in contents(world.output).items() if name in OLD}
    whole = contents_of_a_whole_run(world)
    assert left.keys() == OLD.keys()
    assert all(content in (OLD[name], whole[name]) for name, content in left.items())


def contents_of_a_whole_run(world: World) -> dict[str, bytes]:
    """What an uninterrupted run writes."""
    run(world.folder, world.arguments())
    return contents(world.output)


@pytest.mark.parametrize("number", POLITE, ids=lambda n: n.name)
def test_interrupted_between_its_two_renames_both_files_are_whole(number: signal.Signals, world: World) -> None:
    world.write()
    code, said = stopped(world.folder, world.arguments(), ("rename", 2), number)
    left = contents(world.output)
    whole = contents_of_a_whole_run(world)
    assert code == 130
    assert left.keys() == OLD.keys()
    assert all(content in (OLD[name], whole[name]) for name, content in left.items())
    assert b"no output was changed" not in said or left == OLD


def test_an_interrupted_run_says_so(world: World) -> None:
    world.write()
    assert (
        stopped(world.folder, world.arguments(), ("write", 1), signal.SIGINT)[1]
        == b"interrupted: each output is complete, or as it was\n"
    )


@pytest.mark.parametrize("number", POLITE, ids=lambda n: n.name)
def test_interrupted_while_it_reads(number: signal.Signals, world: World) -> None:
    world.write()
    before = contents(world.output)
    (world.folder / JUDGMENTS).unlink()
    os.mkfifo(world.folder / JUDGMENTS)
    command = [sys.executable, "-c", DRIVER, "never", "1", *world.arguments()]
    with subprocess.Popen(command, cwd=world.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            with open(world.folder / JUDGMENTS, "wb", buffering=0) as pipe:  # opens when the command does
                pipe.write(b'{"query_id": "q1", ')
                process.send_signal(number)
                with contextlib.suppress(BrokenPipeError):  # ends a read that began in the instant of the signal
                    pipe.write(b'"query": "What?"\n')
                process.wait(20)
        finally:
            process.kill()
        assert (process.returncode, b"Traceback" in process.stderr.read()) == (130, False)
    assert contents(world.output) == before


@pytest.mark.parametrize("number", POLITE, ids=lambda n: n.name)
def test_an_interrupted_search_leaves_the_older_results(number: signal.Signals, world: World) -> None:
    world.write()
    for name in ("ranked.jsonl", "timings.jsonl"):
        (world.folder / name).write_text("older\n")
    before = world.everything()
    arguments = ["search", "--fragments", FRAGMENTS, "--judgments", JUDGMENTS, "--output", "ranked.jsonl", "--quiet"]
    code, said = stopped(world.folder, arguments, ("rename", 1), number)
    assert (code, b"Traceback" in said) == (130, False)
    assert world.everything() == before


# A full disk, by a limit on the size of files.


def at_most(size: int) -> Callable[[], None]:
    """Lets the child write no file beyond `size` bytes; the write that would is refused with an error."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def whole_report(world: World, *more: str) -> dict[str, int]:
    """Sizes of both files of a run that has room."""
    outcome = world.run("--output", "roomy", *more)
    assert outcome.code == 0, outcome.err
    return {name: len(content) for name, content in contents(world.folder / "roomy").items()}


def assert_no_room(world: World, size: int) -> None:
    """With room for `size` bytes a file: exit 2, an error that names the file, both older files as they were."""
    world.write()
    done = spawn(world.folder, world.arguments(), preexec_fn=at_most(size))
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, "Traceback" in said) == (2, b"", False), said
    assert said.startswith("tripos: ")
    assert "cannot be written: File too large" in said
    assert contents(world.output) == OLD


@pytest.mark.parametrize("room", [0, 1, 4096, 8192])
def test_no_room_for_the_report(room: int, world: World) -> None:
    assert whole_report(world)[REPORT] > room
    assert_no_room(world, room)


def test_no_room_for_the_misses(world: World) -> None:
    world.judgments[1]["query"] = "What? " * 50_000
    world.results[1]["results"] = []
    sizes = whole_report(world)
    assert sizes[MISSES] > sizes[REPORT] + 100_000
    assert_no_room(world, sizes[REPORT] + 50_000)


def test_no_room_for_the_last_byte_of_the_report(world: World) -> None:
    assert_no_room(world, whole_report(world)[REPORT] - 1)


def test_just_room_enough(world: World) -> None:
    size = whole_report(world)[REPORT]
    world.write()
    done = spawn(world.folder, world.arguments(), preexec_fn=at_most(size))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("room", [0, 100])
def test_no_room_for_ranked_results(room: int, world: World) -> None:
    world.write()
    for name in ("ranked.jsonl", "timings.jsonl"):
        (world.folder / name).write_text("older\n")
    before = world.everything()
    arguments = ["search", "--fragments", FRAGMENTS, "--judgments", JUDGMENTS, "--output", "ranked.jsonl", "--quiet"]
    done = spawn(world.folder, arguments, preexec_fn=at_most(room))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot be written: File too large" in done.stderr
    assert world.everything() == before


# A full disk, by a small one.


@pytest.fixture
def small_disk(world: World) -> Iterator[Path]:
    """A disk of 64 KiB, mounted in the world's folder; skips where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root; the limit on file sizes runs everywhere")
    disk = world.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here; the limit on file sizes runs everywhere")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_full_disk(world: World, small_disk: Path) -> None:
    sizes = whole_report(world, "--limit", "200")
    assert sizes[REPORT] > 65536
    for name, content in OLD.items():
        (small_disk / name).write_bytes(content)
    outcome = run(world.folder, world.arguments("--limit", "200", "--output", "disk"))
    assert (outcome.code, outcome.out) == (2, "")
    assert "cannot be written: No space left on device" in outcome.err
    assert contents(small_disk) == OLD


def test_a_disk_that_fills_while_the_misses_are_written(world: World, small_disk: Path) -> None:
    world.judgments[1]["query"] = "What? " * 20_000
    world.results[1]["results"] = []
    for name, content in OLD.items():
        (small_disk / name).write_bytes(content)
    world.write()
    outcome = run(world.folder, world.arguments("--output", "disk"))
    assert (outcome.code, outcome.out) == (2, "")
    assert "No space left on device" in outcome.err
    assert contents(small_disk) == OLD
