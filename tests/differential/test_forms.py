"""One world in every form that ranked results come in: the same report, the same misses, the same rows, byte for byte.

Whatever the form, the compression, the order of rows, the number of processes and pieces, and the room there is.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import itertools
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import Row, World, by_query, config_of, curve, judgment, single, write_jsonl
from tests.differential.oracle import Oracle
from tests.worlds import worlds
from tripos.columns.align import Aligner, Reading
from tripos.columns.judged import Judged
from tripos.columns.misses import miss_lines
from tripos.columns.retrieval import RetrievalColumns
from tripos.columns.slots import Part
from tripos.contracts.config import Config, Options
from tripos.errors import Findings, InputError, TriposError, UsageError
from tripos.files.conversion import convert_ranked
from tripos.files.ranked import pieces, read_piece, read_ranked
from tripos.measures.retrieval import RETRIEVAL
from tripos.runners.retrieval import Evaluation, check, evaluate, per_query_rows
from tripos.runners.retrieval import read as read_inputs

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
CUTOFFS = (3, 10)
SORTING = 16 << 20
"""The least room that DuckDB sorts in."""

LONG = ("columnar", "flat, shuffled", "flat Parquet")
"""Forms that are cut into many pieces, too: one of each kind of piece."""

SPILLING = ["flat, shuffled", "flat Parquet, shuffled"]
"""Forms that need a temporary folder, where room is little."""

Results = Mapping[str, Sequence[tuple[str, float | None]]]
Content = tuple[dict[str, Any], bytes, list[dict[str, Any]]]


# ---- worlds


def big_world() -> World:
    """About 400 queries, seeded: graded, forbidden, required, grouped and expected-empty rows, ties, lists beyond limit.

    Every 29th query has no results; some results are of queries that nobody judged.
    """
    rng = random.Random(7)
    sources = [f"s{n:02}" for n in range(40)]
    fragments: list[Row] = [
        {
            "fragment_id": f"{source}::f{n}",
            "text": f"{source} part {n}",
            "acl": ["staff"] if n == 1 and rng.random() < 0.5 else ["everyone"],
            "metadata": {"lang": "de" if source < "s20" else "en"},
        }
        for source in sources
        for n in range(2)
    ]
    names = [row["fragment_id"] for row in fragments]
    judgments = [_judged(f"q{i:03}", i, rng, sources) for i in range(400)]
    results = []
    for i in [*range(400), *range(900, 905)]:
        if i % 29 == 28:
            continue
        ids = rng.sample(names, rng.randint(1, 14))
        scores = sorted((rng.choice([0.9, 0.5, 0.25, rng.random(), 1e-300]) for _ in ids), reverse=True)
        results.append({"query_id": f"q{i:03}", "fragment_ids": ids, "scores": scores})
    return World(judgments, results, fragments, limit=10, top_k=8, unit="source", acl_default="deny", cutoffs=CUTOFFS)


def _judged(name: str, i: int, rng: random.Random, sources: Sequence[str]) -> Row:
    chosen = rng.sample(sources, 5)
    expected = [] if i % 17 == 0 else chosen[: rng.randint(1, 3)]
    row = judgment(name, *expected, nonrelevant_sources=[chosen[3]], forbidden_sources=[chosen[4]] if i % 3 == 0 else [])
    if expected and i % 4 == 0:
        row["relevance"] = {source: rng.randint(1, 4) for source in expected}
    if expected and i % 5 == 0:
        row |= {"required_sources": [chosen[3]], "expected_groups": [expected], "slices": {"even": i % 2 == 0}}
    if expected and i % 7 == 0:
        row["expected_fragments"] = [f"{expected[0]}::f1"]
    if i % 11 == 0:
        row["principal"] = {"groups": ["everyone"]}
    if i % 13 == 0:
        row["k"] = 3
    return row


def lists_of(world: World) -> Results:
    """Each query's (fragment, score) pairs, for what every form can carry: no errors, sources or empty lists."""
    own = {}
    for name, row in Oracle(world).results.items():
        items = row.get("results")
        if items is None:
            ids = row["fragment_ids"]
            items = [{"fragment_id": f, "score": s} for f, s in zip(ids, row.get("scores") or [None] * len(ids), strict=True)]
        if items and row.get("error") is None:
            own[name] = [(item["fragment_id"], item.get("score")) for item in items]
    return own


# ---- files


def nested_rows(results: Results) -> list[Row]:
    return [
        {"query_id": q, "results": [{"fragment_id": n} | ({} if s is None else {"score": s}) for n, s in items]}
        for q, items in results.items()
    ]


def columnar_rows(results: Results) -> list[Row]:
    return [
        {"query_id": q, "fragment_ids": [n for n, _ in items]}
        | ({} if items[0][1] is None else {"scores": [s for _, s in items]})
        for q, items in results.items()
    ]


def flat_rows(results: Results) -> list[Row]:
    return [
        {"query_id": q, "fragment_id": n, "rank": rank} | ({} if s is None else {"score": s})
        for q, items in results.items()
        for rank, (n, s) in enumerate(items, 1)
    ]


def shuffled(rows: Sequence[Row]) -> list[Row]:
    return random.Random(3).sample(list(rows), len(rows))


def packed(path: Path, rows: Sequence[Row]) -> str:
    """Rows as JSONL, compressed by suffix."""
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else zstandard.ZstdCompressor().compress(content))
    return str(path)


def parquet_of(path: Path, rows: Sequence[Row]) -> str:
    """Flat rows as another writer's Parquet, in several row groups."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (query_id VARCHAR, fragment_id VARCHAR, rank INTEGER, score DOUBLE)")
        if rows:
            columns = [[row.get(name) for row in rows] for name in ("query_id", "fragment_id", "rank", "score")]
            connection.execute("INSERT INTO t SELECT unnest($1), unnest($2), unnest($3), unnest($4::DOUBLE[])", columns)
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return str(path)


def converted(source: str, target: Path) -> str:
    convert_ranked(source, str(target))
    return str(target)


def write_forms(folder: Path, results: Results) -> dict[str, str]:
    """The same results in every form; the paths by name."""
    nested, columnar, flat = nested_rows(results), columnar_rows(results), flat_rows(results)
    own = {
        "nested": write_jsonl(folder / "nested.jsonl", nested),
        "nested, shuffled": write_jsonl(folder / "nested-shuffled.jsonl", shuffled(nested)),
        "columnar": write_jsonl(folder / "columnar.jsonl", columnar),
        "flat": write_jsonl(folder / "flat.jsonl", flat),
        "flat, shuffled": write_jsonl(folder / "flat-shuffled.jsonl", shuffled(flat)),
        "nested.gz": packed(folder / "nested.jsonl.gz", nested),
        "columnar.zst": packed(folder / "columnar.jsonl.zst", columnar),
        "flat.zst": packed(folder / "flat.jsonl.zst", shuffled(flat)),
        "flat Parquet": parquet_of(folder / "flat.parquet", flat),
        "flat Parquet, shuffled": parquet_of(folder / "shuffled.parquet", shuffled(flat)),
    }
    own["nested Parquet"] = converted(own["nested"], folder / "nested.parquet")
    own["columnar Parquet"] = converted(own["columnar"], folder / "columnar.parquet")
    own["flat Parquet, converted"] = converted(own["flat, shuffled"], folder / "converted.parquet")
    own["columnar, there and back"] = converted(own["columnar Parquet"], folder / "back.jsonl")
    return own


FORMS = (
    "nested", "nested, shuffled", "columnar", "flat", "flat, shuffled", "nested.gz", "columnar.zst", "flat.zst", "flat Parquet",
    "flat Parquet, shuffled", "nested Parquet", "columnar Parquet", "flat Parquet, converted", "columnar, there and back",
)  # fmt: skip


# ---- outcomes


def content_of(outcome: Evaluation) -> Content:
    """All that an evaluation says of its inputs' content: report, misses, rows."""
    report = outcome.report.model_dump(mode="json", exclude={"provenance"})
    return report, b"".join(outcome.miss_lines()), list(per_query_rows(outcome))


def assert_same(found: Content, wanted: Content) -> None:
    """Byte for byte; told part by part, since a diff of everything says nothing."""
    for name in wanted[0]:
        assert found[0][name] == wanted[0][name], name
    assert json.dumps(found[0]) == json.dumps(wanted[0])
    assert found[1] == wanted[1], "misses"
    assert json.dumps(found[2]) == json.dumps(wanted[2]), "rows"


def options_of(world: World, **more: Any) -> Options:
    return Options(order=world.order, **{**world.options, **more})


def limit_of(path: str) -> int:
    """A limit that forces flat lines into a few dozen buckets, and Parquet to be sorted in little room."""
    return SORTING if path.endswith(".parquet") else max(Path(path).stat().st_size // 2, 1)


@dataclass(frozen=True)
class Written:
    """A world on disk, in every form."""

    world: World
    config: Config
    paths: dict[str, str]

    def evaluated(self, form: str, **more: Any) -> Evaluation:
        config = self.config.model_copy(update={"ranked_results": self.paths[form]})
        return evaluate(config, options_of(self.world, **more), cutoffs=self.world.cutoffs)

    def content(self, form: str, **more: Any) -> Content:
        return content_of(self.evaluated(form, **more))


def written(folder: Path, world: World) -> Written:
    return Written(world, config_of(folder, world), write_forms(folder, lists_of(world)))


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return written(tmp_path_factory.mktemp("big"), big_world())


@pytest.fixture(scope="module")
def wanted(big: Written) -> Content:
    return big.content("columnar")


@pytest.fixture(autouse=True)
def temp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test's own, in which nothing of Tripos may remain."""
    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert remains(folder) == []


def remains(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("tripos-*"))


# ---- every form


def test_the_big_world_is_rich(big: Written, wanted: Content) -> None:
    report = big.evaluated("nested").report
    assert set(report.misses) >= {"no_hit", "partial", "required_absent", "not_empty", "forbidden", "leak", "incomplete"}
    assert (len(report.rows.incomplete), report.counts.without_judgment) == (13, 5)
    assert report.counts.beyond_limit > 0
    assert {tie.k for tie in report.ties} >= {3}
    assert len(report.slices) > 3
    assert len(wanted[1].splitlines()) > 100
    assert set(FORMS) == set(big.paths)


@pytest.mark.parametrize("form", FORMS)
def test_the_big_world_in_every_form(form: str, big: Written, wanted: Content) -> None:
    tiny = limit_of(big.paths[form])
    ways = [(1, 0), (2, tiny)]
    if form in ("columnar", *SPILLING, "nested Parquet"):
        ways += [(1, tiny), (2, 0), (3, 0), (3, tiny)]
    for workers, limit in ways:
        assert_same(big.content(form, workers=workers, memory_limit=limit), wanted)


@given(worlds())
@settings(SETTINGS, max_examples=4)
def test_any_world_in_every_form(world: World) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = written(Path(folder), world)
        first = told(own, "columnar")
        for form in FORMS:
            assert_alike(told(own, form), first)
            if form in SPILLING:
                assert_alike(told(own, form, memory_limit=limit_of(own.paths[form])), first)
        for form in ("columnar", "flat, shuffled", "nested Parquet"):
            assert_alike(told(own, form, workers=2, memory_limit=limit_of(own.paths[form])), first)


def told(own: Written, form: str, **more: Any) -> Content | str:
    """The content, or the kind of error where the world gives one."""
    try:
        return own.content(form, **more)
    except TriposError as error:
        return type(error).__name__


def assert_alike(found: Content | str, wanted: Content | str) -> None:
    if isinstance(found, str) or isinstance(wanted, str):
        assert found == wanted
    else:
        assert_same(found, wanted)


FULL: list[Row] = [
    {"query_id": "q000", "results": [], "error": None, "latency_ms": 2.5},
    {"query_id": "q001", "results": [], "error": "timeout"},
    {"query_id": "q002", "results": [{"fragment_id": "s01::f0", "score": 1}], "metadata": {"a": [1, {"b": None}]}},
    {"query_id": "q003", "results": [{"fragment_id": "s01::f0"}, {"fragment_id": "s02::f0"}], "error": "x" * 300},
    {"query_id": "q004", "results": [{"fragment_id": "s01::f0"}, {"fragment_id": "s02::f1"}], "latency_ms": 0},
]
"""What flat files cannot say: empty lists, errors, latencies."""


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_errors_and_empty_lists_in_the_forms_that_carry_them(workers: int, big: Written, tmp_path: Path) -> None:
    columnar = [
        {k: v for k, v in row.items() if k != "results"}
        | {"fragment_ids": [i["fragment_id"] for i in row["results"]], "scores": [i.get("score") for i in row["results"]]}
        for row in FULL
    ]
    columnar = [row if all(row["scores"]) and row["scores"] else row | {"scores": None} for row in columnar]
    own = {"nested": write_jsonl(tmp_path / "n.jsonl", FULL), "columnar": write_jsonl(tmp_path / "c.jsonl", columnar)}
    own |= {f"{name} Parquet": converted(path, tmp_path / f"{name}.parquet") for name, path in own.items()}
    own |= {
        f"{name}, back": converted(own[f"{name} Parquet"], tmp_path / f"{name}-back.jsonl") for name in ("nested", "columnar")
    }
    first, *others = (replace(big, paths=own).evaluated(form, workers=workers) for form in own)
    assert first.report.counts.result_rows == 5
    assert [row.because for row in first.report.rows.incomplete][:2] == ["timeout", "x" * 300]
    for other in others:
        assert_same(content_of(other), content_of(first))
        assert other.report.provenance.latency_ms == first.report.provenance.latency_ms


# ---- against the oracle


def test_the_big_world_cell_by_cell(big: Written) -> None:
    # the oracle reads rows, so it shows that what is the same in all forms is right as well
    oracle = Oracle(replace(big.world, results=columnar_rows(lists_of(big.world))))
    rows = by_query(big.evaluated("flat Parquet, shuffled", workers=2))
    assert list(rows) == [row["query_id"] for row in oracle.rows]
    n = 0
    for name, record in RETRIEVAL.items():
        asked = {row["query_id"] for row in oracle.population(name)}
        for row in oracle.rows:
            query = row["query_id"]
            outcome = oracle.outcome(name, row) if query in asked else None
            for k in CUTOFFS if record.is_curve else (1,):
                value = outcome[k - 1] if isinstance(outcome, list) else None
                assert rows[query][record.at(k)] == pytest.approx(value, abs=1e-9), (query, record.at(k))
                n += value is not None
    assert n > 5000


@pytest.mark.parametrize("form", ["nested", "flat, shuffled"])
def test_the_big_world_measure_by_measure(form: str, big: Written) -> None:
    oracle = Oracle(replace(big.world, results=columnar_rows(lists_of(big.world))))
    report = big.evaluated(form, workers=3, memory_limit=limit_of(big.paths[form])).report
    for name, record in RETRIEVAL.items():
        expected = oracle.expected(name)
        found = curve(report, name) if record.is_curve else single(report, name)
        values = found.value if isinstance(found.value, tuple) else (found.value,)
        assert list(values) == pytest.approx(expected.value, abs=1e-9), name
        assert (found.n, found.incomplete) == (expected.n, expected.incomplete), name


# ---- pieces


def reading_of(own: Written) -> tuple[Reading, Judged]:
    """How the runner would read the results, and the rows it would score."""
    inputs = read_inputs(own.config, options_of(own.world), own.world.cutoffs)
    scored = check(inputs)
    depth, score = own.config.depth, own.config.search.min_score
    return Reading(inputs.corpus, depth, score, inputs.options, Findings(), inputs.headline), scored


def fresh(scored: Sequence[Any], reading: Reading) -> Aligner:
    return Aligner(scored, replace(reading, findings=Findings()))


@dataclass(frozen=True)
class Closed:
    """An aligner that has taken all it will, and its columns, asked for once."""

    aligner: Aligner
    columns: RetrievalColumns

    @classmethod
    def of(cls, aligner: Aligner) -> Closed:
        return cls(aligner, aligner.columns())


def assert_same_columns(found: Closed, wanted: Closed) -> None:
    """Cell by cell, the stories by their text, and what was counted."""
    one, other = found.columns, wanted.columns
    for f in fields(RetrievalColumns):
        if f.name in ("stories", "places"):
            continue  # stories stand in order of arrival; they are compared as text
        for a, b in arrays(getattr(one, f.name), getattr(other, f.name)):
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f.name
    assert list(miss_lines(one, "run", "configuration")) == list(miss_lines(other, "run", "configuration"))
    assert one.errors == other.errors
    mine, theirs = found.aligner.tally, wanted.aligner.tally
    for name in ("result_rows", "results", "without_judgment", "below_min_score", "beyond_limit", "unknown_fragments"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert mine.results_digest == theirs.results_digest
    assert found.aligner.reading.findings.let_pass == wanted.aligner.reading.findings.let_pass


def arrays(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The arrays of two columns, pair by pair, down through named tuples."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        yield one, other
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            yield from arrays(a, b)
    elif not isinstance(one, (list, dict)):
        assert one == other


CUT = [(form, 0) for form in ("nested", "columnar", "flat", "flat, shuffled", "flat Parquet", "nested Parquet")]


@pytest.mark.parametrize(("form", "limit"), [*CUT, *((form, 1) for form in ("flat", *SPILLING))])
def test_pieces_in_any_order(form: str, limit: int, big: Written) -> None:
    reading, scored = reading_of(big)
    path = big.paths[form]
    taken, findings = fresh(scored, reading), Findings()
    for row in read_ranked(big.paths["columnar"], findings):
        taken.take(row)
    whole = Closed.of(taken)
    outcome = big.evaluated("columnar")
    wanted_rows = list(per_query_rows(outcome))
    for n in (1, 2, 7, 64) if form in LONG else (2, 7):
        with pieces(path, n, limit and limit_of(path)) as found:
            assert (len(found) == 1) >= (n == 1 and "flat" not in form), "one piece is the whole"
            if n > 1 and (not form.startswith("flat") or "Parquet" in form or limit):
                assert len(found) > 1, "a file that can be cut is cut"
            parts = []
            for piece in found:
                aligner = fresh(scored, reading)
                for row in read_piece(piece, findings):
                    aligner.take(row)
                parts.append(aligner.part())
        random.Random(n).shuffle(parts)
        together = fresh(scored, reading)
        for part in parts:
            assert together.absorb(part)
        assert findings.errors == []
        closed = Closed.of(together)
        assert_same_columns(closed, whole)
        assert list(per_query_rows(replace(outcome, rows=closed.columns, aligner=closed.aligner))) == wanted_rows


@pytest.mark.parametrize("n", [3, 1000])
@pytest.mark.parametrize("form", ["nested", "columnar", "flat", "nested.gz", "flat.zst", "flat Parquet", "columnar Parquet"])
def test_pieces_hold_every_row_once(form: str, n: int, big: Written) -> None:
    findings = Findings()
    with pieces(big.paths[form], min(n, 50) if "Parquet" in form else n) as found:
        names = [row.query_id for piece in found for row in read_piece(piece, findings)]
    assert findings.errors == []
    assert sorted(names) == sorted(lists_of(big.world))


# ---- absorb is commutative, associative, and has an identity


@dataclass(frozen=True)
class Shares:
    """A small world's rows dealt to some parts; each part is made afresh, since absorbing one uses it up."""

    scored: Judged
    reading: Reading
    rows: list[list[Any]]

    def aligner(self, *which: int) -> Aligner:
        """An aligner that took the rows of these shares itself."""
        own = fresh(self.scored, self.reading)
        for row in (row for n in which for row in self.rows[n]):
            own.take(row)
        return own

    def part(self, *which: int) -> Part:
        return self.aligner(*which).part()

    def together(self, *parts: Part) -> Aligner:
        own = fresh(self.scored, self.reading)
        for part in parts:
            assert own.absorb(part)
        return own


@st.composite
def shares(draw: st.DrawFn) -> Shares | None:
    """Three shares of a world's rows; None where the world has a fault."""
    world = draw(worlds(max_rows=6))
    with tempfile.TemporaryDirectory() as folder:
        config = config_of(Path(folder), world)
        try:
            reading, scored = reading_of(Written(world, config, {}))
            assert config.ranked_results is not None
            rows = list(read_ranked(config.ranked_results, Findings()))
        except InputError:
            return None
    dealt: list[list[Any]] = [[], [], []]
    for row in rows:
        dealt[draw(st.integers(0, 2))].append(row)
    return Shares(scored, reading, dealt)


@given(shares())
@settings(SETTINGS, max_examples=30)
def test_absorb_is_commutative_and_associative_with_an_identity(own: Shares | None) -> None:
    if own is None:
        return
    whole = Closed.of(own.aligner(0, 1, 2))
    ways = [own.together(*map(own.part, order)) for order in itertools.permutations(range(3))]
    ways.append(own.together(own.together(own.part(0), own.part(1)).part(), own.part(2)))
    ways.append(own.together(own.part(0), own.together(own.part(1), own.part(2)).part()))
    ways.append(own.together(own.part(), own.part(0, 1, 2)))
    ways.append(own.together(own.part(0, 1, 2), own.part()))
    for way in ways:
        assert_same_columns(Closed.of(way), whole)
    assert_same_columns(Closed.of(own.together(own.part())), Closed.of(own.aligner()))


def test_a_query_in_two_parts_is_refused_and_changes_nothing(big: Written) -> None:
    reading, scored = reading_of(big)
    rows = list(read_ranked(big.paths["columnar"], Findings()))
    whole = fresh(scored, reading)
    for row in rows[:100]:
        whole.take(row)
    before, stories, other = copy.deepcopy(whole.part().rows), list(whole.stories), fresh(scored, reading)
    tally = copy.deepcopy(whole.tally)
    for row in rows[99:200]:
        other.take(row)
    assert not whole.absorb(other.part())
    after = whole.part()
    assert stories == list(after.stories)
    assert (tally.results, tally.results_digest) == (after.tally.results, after.tally.results_digest)
    assert np.array_equal(before, after.rows)


def test_columns_may_be_asked_for_twice(big: Written) -> None:
    aligner = fresh(*reading_of(big)[::-1])
    first, second = aligner.columns(), aligner.columns()
    assert np.array_equal(first.groups.query, second.groups.query)


# ---- temporary files


class Used:
    """Counts the temporary folders made, so that "none remains" is no empty claim."""

    def __init__(self) -> None:
        self.n, self.make = 0, tempfile.TemporaryDirectory

    def __call__(self, *arguments: Any, **options: Any) -> tempfile.TemporaryDirectory[str]:
        self.n += options.get("prefix") == "tripos-"
        return self.make(*arguments, **options)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("form", SPILLING)
@pytest.mark.parametrize("ending", ["well", "input error", "exception"])
def test_no_temporary_folder_remains(form: str, workers: int, ending: str, big: Written, temp: Path, tmp_path: Path) -> None:
    used, own = Used(), big
    if ending == "input error":
        rows = flat_rows(lists_of(big.world))
        rows[len(rows) // 2]["fragment_id"] = "is in no fragment"
        name = tmp_path / ("r.parquet" if "Parquet" in form else "r.jsonl")
        make = parquet_of if "Parquet" in form else write_jsonl
        own = replace(big, paths={form: make(name, shuffled(rows))})

    def failing(self: Aligner, row: Any) -> None:
        assert remains(temp), "the folder is there while it is needed"
        raise ZeroDivisionError

    with mock.patch("tripos.files.ranked.tempfile.TemporaryDirectory", used):
        limit = limit_of(own.paths[form])
        if ending == "well":
            own.evaluated(form, workers=workers, memory_limit=limit)
        elif ending == "input error":
            with pytest.raises(InputError, match="is in no fragment"):
                own.evaluated(form, workers=workers, memory_limit=limit)
        else:
            kind: type[Exception] = ZeroDivisionError if workers == 1 else TriposError
            with mock.patch.object(Aligner, "take", failing), pytest.raises(kind):
                own.evaluated(form, workers=workers, memory_limit=limit)
    assert used.n > 0
    assert remains(temp) == []


# ---- faults found


def outcome_of(config: Config, **options: Any) -> str:
    """The run's name, or the lines at fault with the kind of fault."""
    try:
        return evaluate(config, Options(**options)).report.run_id
    except InputError as error:
        return " ".join(f"{f.place.line}:{f.kind}" for f in error.findings)


def small(folder: Path, lines: Sequence[bytes], name: str = "r.jsonl") -> Config:
    """Four judged queries, and these lines as results."""
    world = World([judgment(f"q{n}", "a") for n in range(4)], [])
    config = config_of(folder, world)
    (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
    return config.model_copy(update={"ranked_results": str(folder / name)})


def flat_line(query: str, rank: int, fragment: str = "") -> bytes:
    row = {"query_id": query, "fragment_id": fragment or f"a::f{rank}", "rank": rank}
    return json.dumps(row).encode()


def test_an_empty_list_with_empty_scores_wherever_it_stands(tmp_path: Path) -> None:
    lines = [b'{"query_id":"q1","fragment_ids":[],"scores":[]}', b'{"query_id":"q2","fragment_ids":["a"],"scores":[0.5]}']
    runs = {outcome_of(small(tmp_path, order)) for order in (lines, lines[::-1])}
    nested = [b'{"query_id":"q1","results":[]}', b'{"query_id":"q2","results":[{"fragment_id":"a","score":0.5}]}']
    assert runs == {outcome_of(small(tmp_path, nested))}


def test_an_id_spelt_in_two_ways_in_little_room(tmp_path: Path) -> None:
    lines = [
        flat_line("q1", 1),
        flat_line("q1", 2).replace(b"q1", b"\\u0071\\u0031"),
        *(flat_line(f"q{n}", 1) for n in (0, 2, 3)),
    ]
    config = small(tmp_path, lines)
    assert outcome_of(config, memory_limit=1) == outcome_of(config)


def test_a_query_id_inside_another_field_in_little_room(tmp_path: Path) -> None:
    lines = [b'{"extra":{"query_id":"x%d"},' % rank + flat_line(f"q{n}", rank)[1:] for n in range(4) for rank in (1, 2, 3)]
    config = small(tmp_path, lines)
    assert outcome_of(config, lenient=True, memory_limit=1) == outcome_of(config, lenient=True)


def test_a_file_that_mixes_forms_in_little_room(tmp_path: Path) -> None:
    lines = [flat_line("q0", 1), flat_line("q1", 1), *(b'{"query_id":"q%d","results":[]}' % n for n in (2, 3))]
    config = small(tmp_path, lines)
    assert outcome_of(config) == "3:unknown_form 4:unknown_form"
    assert outcome_of(config, memory_limit=1) == outcome_of(config)


def test_a_torn_last_line_in_little_room(tmp_path: Path) -> None:
    config = small(tmp_path, [flat_line(f"q{n}", 1) for n in range(4)])
    with open(tmp_path / "r.jsonl", "ab") as stream:
        stream.write(b'{"query_id":"q1","fragm')
    assert outcome_of(config) == "5:torn"
    assert outcome_of(config, memory_limit=1) == outcome_of(config)


def test_unsorted_parquet_in_too_little_room(big: Written, wanted: Content) -> None:
    # room enough is made, or the user is told what is too little
    with contextlib.suppress(UsageError):
        assert_same(big.content("flat Parquet, shuffled", memory_limit=1), wanted)


def test_unsorted_parquet_with_a_limit_beyond_all_memory(big: Written, wanted: Content) -> None:
    with contextlib.suppress(UsageError):
        assert_same(big.content("flat Parquet, shuffled", memory_limit=10**30), wanted)


def test_a_parquet_name_that_reads_as_a_pattern(tmp_path: Path) -> None:
    mine = parquet_of(tmp_path / "r[1].parquet", [{"query_id": "mine", "fragment_id": "a", "rank": 1}])
    parquet_of(tmp_path / "r1.parquet", [{"query_id": "other", "fragment_id": "a", "rank": 1}])
    assert [row.query_id for row in read_ranked(mine, Findings())] == ["mine"]


def test_a_parquet_pattern_is_no_file(tmp_path: Path) -> None:
    for name in ("r1", "r2"):
        parquet_of(tmp_path / f"{name}.parquet", [{"query_id": name, "fragment_id": "a", "rank": 1}])
    with pytest.raises(InputError, match="no such file"):
        list(read_ranked(str(tmp_path / "r*.parquet"), Findings()))


def test_whole_number_scores_in_parquet_lists(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        values = "'q1' AS query_id, ['a', 'b'] AS fragment_ids, [9007199254740992, 9007199254740993] AS scores"
        connection.execute(f"COPY (SELECT {values}) TO '{tmp_path}/c.parquet' (FORMAT parquet)")
    config = small(tmp_path, [b'{"query_id":"q1","fragment_ids":["a","b"],"scores":[9007199254740992.0,9007199254740993.0]}'])
    parquet = config.model_copy(update={"ranked_results": str(tmp_path / "c.parquet")})
    assert outcome_of(parquet) == outcome_of(config)
