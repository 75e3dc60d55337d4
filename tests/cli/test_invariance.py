"""The same content gives the same bytes, whatever the order of lines, the split and form of files, and the machine."""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.world import (
    FRAGMENTS,
    JUDGMENTS,
    MISSES,
    REPORT,
    RESULTS,
    SUPPORT_KB,
    Row,
    World,
    contents,
    judgment,
    lines,
    run,
    spawn,
)

Files = dict[str, bytes]
LIMIT = "10"
SEEDS = [0, 1, 2]


def rows(content: bytes) -> list[Row]:
    """JSONL as rows."""
    return [json.loads(line) for line in content.splitlines()]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The support-kb: fragments, judgments with their drafts, and what the embedded search found, some of it spoilt.

    One query has no results, one an error, one an empty list, one constant scores; so there are misses of several kinds.
    """
    folder = tmp_path_factory.mktemp("searched")
    files = {FRAGMENTS: SUPPORT_KB / FRAGMENTS, JUDGMENTS: SUPPORT_KB / "retrieval_golden_single.jsonl"}
    inputs = ["--fragments", str(files[FRAGMENTS]), "--judgments", str(files[JUDGMENTS])]
    assert run(folder, ["search", *inputs, "-o", RESULTS, "--limit", LIMIT, "--latency", "none"]).code == 0
    found = rows((folder / RESULTS).read_bytes())
    del found[3]
    found[4] = {**found[4], "results": [], "error": "timeout"}
    found[5]["results"] = []
    for item in found[6]["results"]:
        item["score"] = 1.0
    return {name: path.read_bytes() for name, path in files.items()} | {RESULTS: lines(found)}


def arguments(*more: str) -> list[str]:
    """The command on the files of the working folder."""
    inputs = ["--judgments", JUDGMENTS, "--ranked-results", RESULTS, "--retrieval-mode", "lexical", "--limit", LIMIT]
    fragments = [] if "--fragments" in more else ["--fragments", FRAGMENTS]
    return ["eval-retrieval", *fragments, *inputs, "--output", "out", *more]


def evaluated(folder: Path, files: Mapping[str, bytes], *more: str) -> Files:
    """Write the files, run the command in this process, and read what it wrote."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    outcome = run(folder, arguments(*more))
    assert outcome.code == 6, outcome.err
    return contents(folder / "out")


@pytest.fixture(scope="module")
def expected(shipped: Files, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """What the files as shipped come to."""
    written = evaluated(tmp_path_factory.mktemp("expected"), shipped)
    assert set(written) == {REPORT, MISSES}
    report = json.loads(written[REPORT])
    assert len(report["rows"]["incomplete"]) == 2
    assert {"no_hit", "not_empty", "incomplete", "forbidden"} <= report["misses"].keys()
    return written


def shuffled(content: bytes, seed: int) -> bytes:
    """The same lines in another order."""
    order = content.splitlines(keepends=True)
    random.Random(seed).shuffle(order)
    assert order != content.splitlines(keepends=True)
    return b"".join(order)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [FRAGMENTS, JUDGMENTS, RESULTS])
def test_the_order_of_lines(name: str, seed: int, shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert evaluated(tmp_path, {**shipped, name: shuffled(shipped[name], seed)}) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_all_lines(seed: int, shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert evaluated(tmp_path, {name: shuffled(content, seed) for name, content in shipped.items()}) == expected


def test_the_order_of_keys(shipped: Files, expected: Files, tmp_path: Path) -> None:
    turned = {name: lines([dict(reversed(row.items())) for row in rows(content)]) for name, content in shipped.items()}
    assert turned != shipped
    assert evaluated(tmp_path, turned) == expected


def spelt_otherwise(content: bytes) -> bytes:
    """The same rows with a BOM, escapes for all but ASCII, other spaces, CRLF and blank lines."""
    return b"\xef\xbb\xbf" + b"".join(
        json.dumps(row, separators=(" , ", " : ")).encode() + b"\r\n\r\n" for row in rows(content)
    )


def test_escapes_spaces_and_line_ends(shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert evaluated(tmp_path, {name: spelt_otherwise(content) for name, content in shipped.items()}) == expected


def test_a_second_evaluation(shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert [evaluated(tmp_path, shipped) for _ in range(2)] == [expected, expected]


def columnar(row: Row) -> Row:
    """A nested row as columns."""
    items = row.pop("results")
    return {**row, "fragment_ids": [i["fragment_id"] for i in items], "scores": [i["score"] for i in items]}


def test_nested_and_columnar_results(shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert evaluated(tmp_path, {**shipped, RESULTS: lines([columnar(row) for row in rows(shipped[RESULTS])])}) == expected


def plain(row: Row) -> bool:
    """Whether the flat form can tell this row: it has results, and no error."""
    return bool(row["results"]) and row["error"] is None


@pytest.mark.parametrize("seed", SEEDS)
def test_all_three_forms(seed: int, shipped: Files, tmp_path: Path) -> None:
    nested = [{"query_id": r["query_id"], "results": r["results"]} for r in rows(shipped[RESULTS]) if plain(r)]
    flat = [{"query_id": r["query_id"], "rank": n, **item} for r in nested for n, item in enumerate(r["results"], 1)]
    forms = (lines(nested), lines([columnar(dict(row)) for row in nested]), lines(flat), shuffled(lines(flat), seed))
    written = [evaluated(tmp_path, {**shipped, RESULTS: form}) for form in forms]
    assert all(one == written[0] for one in written)


def ranks_given(row: Row) -> Row:
    """The row with the ranks and sources that its list implies."""
    items = [{**item, "rank": n, "source_id": item["fragment_id"].split("::")[0]} for n, item in enumerate(row["results"], 1)]
    return {**row, "results": items}


def test_ranks_and_sources_that_agree(shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert evaluated(tmp_path, {**shipped, RESULTS: lines([ranks_given(row) for row in rows(shipped[RESULTS])])}) == expected


def content_of(written: Files) -> tuple[dict[str, Any], bytes]:
    """The report without what it says of its input files, and the misses."""
    report = json.loads(written[REPORT])
    del report["provenance"]["inputs"]
    return report, written[MISSES]


@pytest.mark.parametrize("at", [1, 40])
def test_fragments_in_two_files(at: int, shipped: Files, expected: Files, tmp_path: Path) -> None:
    order = shuffled(shipped[FRAGMENTS], at).splitlines(keepends=True)
    parts = {"a.jsonl": b"".join(order[:at]), "b.jsonl": b"".join(order[at:])}
    files = {name: content for name, content in shipped.items() if name != FRAGMENTS} | parts
    one = evaluated(tmp_path, files, "--fragments", "a.jsonl", "--fragments", "b.jsonl")
    other = evaluated(tmp_path, files, "--fragments", "b.jsonl", "--fragments", "a.jsonl")
    assert content_of(one) == content_of(other) == content_of(expected)
    assert json.loads(one[REPORT])["run_id"] == json.loads(expected[REPORT])["run_id"]


def test_a_quote_over_a_boundary_is_found_in_any_order_of_lines(world: World) -> None:
    world.fragments = [
        {"fragment_id": f"s1::f{n}", "text": text} for n, text in enumerate(["one two", "three", "four five"], 1)
    ]
    evidence = [{"source_id": "s1", "quote": "two three four"}]
    world.judgments = [judgment("q1", "s1", expected_evidence=evidence)]
    world.results = [{"query_id": "q1", "fragment_ids": [f"s1::f{n}" for n in (1, 2, 3)]}]
    assert world.run().code == 0
    one = contents(world.output)
    world.fragments = [world.fragments[n] for n in (1, 0, 2)]
    outcome = world.run()
    assert outcome.code == 0, outcome.err
    assert contents(world.output) == one


# The process and the machine, which need a process.


def in_a_process(folder: Path, files: Files, environment: Mapping[str, str]) -> Files:
    """What the command writes in a process of its own."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    done = spawn(folder, arguments(), environment=environment)
    assert done.returncode == 6, done.stderr.decode()
    return contents(folder / "out")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "1"},
        {"TZ": "Pacific/Kiritimati"},
        {"TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8"},
        {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
        {"PYTHONOPTIMIZE": "1"},
        {"COLUMNS": "40", "NO_COLOR": "1", "TERM": "dumb"},
    ],
    ids=lambda e: " ".join(f"{name}={value}" for name, value in e.items()),
)
def test_the_process(environment: Mapping[str, str], shipped: Files, expected: Files, tmp_path: Path) -> None:
    assert in_a_process(tmp_path, shipped, environment) == expected


def switched_off() -> list[str]:
    """Lists of CPU features that numpy dispatches on here and can do without: all of them, and AVX-512 alone."""
    core = importlib.import_module("numpy._core._multiarray_umath")
    present = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    wide = [name for name in present if name.startswith(("AVX512", "X86_V4"))]
    return [" ".join(names) for names in (present, wide) if names]


@pytest.mark.parametrize("which", [0, 1], ids=["all", "AVX-512"])
def test_the_features_of_the_cpu(which: int, shipped: Files, expected: Files, tmp_path: Path) -> None:
    lists = switched_off()
    if len(lists) <= which:
        pytest.skip("numpy dispatches on no such feature here")
    environment = {"NPY_DISABLE_CPU_FEATURES": lists[which]}
    check = f"from numpy._core._multiarray_umath import __cpu_features__ as f; assert not f[{lists[which].split()[0]!r}]"
    assert os.spawnve(os.P_WAIT, sys.executable, ["python", "-c", check], {**os.environ, **environment}) == 0
    assert in_a_process(tmp_path, shipped, environment) == expected
