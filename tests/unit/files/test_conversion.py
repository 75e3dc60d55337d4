"""Ranked results between JSONL and Parquet: nothing is lost, and what cannot be converted is said, all at once."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import Row
from tests.cli.world import lines, run
from tripos.contracts.config import MODES
from tripos.contracts.retrieval import RankedRow
from tripos.errors import Findings, InputError, UsageError
from tripos.files.conversion import convert_ranked
from tripos.files.ranked import read_ranked

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
DIGEST = "0123456789abcdef" * 4
PARQUET, BACK = "r.parquet", "back.jsonl"


@pytest.fixture(autouse=True)
def temp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for temporary files, in which nothing of Tripos may remain."""
    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.glob("tripos-*")) == []


def write(path: Path, rows: Sequence[Row]) -> str:
    path.write_bytes(lines(rows))
    return str(path)


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def there_and_back(folder: Path, rows: Sequence[Row], form: str) -> list[Row]:
    """The rows through Parquet."""
    source = write(folder / "r.jsonl", rows)
    assert convert_ranked(source, str(folder / PARQUET)) == (len(rows), form)
    assert convert_ranked(str(folder / PARQUET), str(folder / BACK)) == (len(rows), form)
    return read(folder / BACK)


def given_fields(row: Row) -> Row:
    """The row without what is null: a null says as much as nothing."""
    own = {name: value for name, value in row.items() if value is not None}
    if "results" in own:
        own["results"] = [given_fields(item) for item in own["results"]]
    return own


def spelt(rows: Sequence[Row]) -> list[str]:
    """Rows as JSON with keys in order, all numbers of scores, latencies as doubles: −0 and 0 are apart, 1 and 1.0 are not."""
    return [json.dumps(numbers(given_fields(row)), sort_keys=True) for row in rows]


def numbers(row: Row) -> Row:
    doubles: Row = {name: float(row[name]) for name in ("score", "latency_ms") if name in row}
    if "scores" in row:
        doubles["scores"] = [float(score) for score in row["scores"]]
    if "results" in row:
        doubles["results"] = [numbers(item) for item in row["results"]]
    return row | doubles


def converted_error(folder: Path, source: str, target: str = PARQUET, form: Any = None) -> list[str]:
    """What a conversion says is wrong; it must leave no output behind."""
    with pytest.raises(InputError) as caught:
        convert_ranked(source, str(folder / target), form)
    assert not (folder / target).exists()
    assert [path.name for path in folder.iterdir() if path.name.endswith(".tmp")] == []
    return [f"{Path(f.place.file).name}:{f.place.line} {f.field}" for f in caught.value.findings]


# ---- nothing is lost

METADATA: Row = {"a": {"b": [1, 2.5, None, True, "é"], "c": {}}, "date": "2024-01-01", "n": 2**53 - 1, "tiny": 5e-324}
SHARED: Row = {"latency_ms": 1.5, "corpus_digest": DIGEST, "policy_digest": DIGEST, "metadata": METADATA}
TEXTS = [
    "a",
    "é",
    "日本",
    "e\u0301",
    "😀",
    "a b",
    " ",
    "\t",
    "\n",
    '"',
    "\\",
    "'",
    "\u2028",
    "\x7f",
    "null",
    "1",
    "2024-01-01",
    "true",
    "{}",
    "x" * 5000,
]
SCORES: list[Any] = [1e308, 9007199254740993, 7, 1.0, 0.1 + 0.2, 0.1, 1e-300, 5e-324, 0.0, -0.0, -1, -1e308]

NESTED: list[Row] = [
    {
        "query_id": "full",
        "results": [{"fragment_id": "a::f1", "score": 1, "rank": 1, "source_id": "a", "collection": "c"}],
        **SHARED,
    },
    {
        "query_id": "mixed",
        "results": [{"fragment_id": "a", "rank": 1}, {"fragment_id": "b", "source_id": "s"}, {"fragment_id": "c"}],
    },
    {"query_id": "scores", "results": [{"fragment_id": f"f{n}", "score": s} for n, s in enumerate(SCORES)]},
    {"query_id": "empty", "results": []},
    {"query_id": "failed", "results": [], "error": "time\nout — \u0000 é"},
    {"query_id": "partial", "results": [{"fragment_id": "a"}], "error": "half"},
    {
        "query_id": "with nulls",
        "results": [{"fragment_id": "a", "score": None}],
        "error": None,
        "latency_ms": None,
        "corpus_digest": None,
    },
    {"query_id": "nothing of mine", "results": [], "metadata": {}},
    {"query_id": "zero", "results": [], "latency_ms": 0},
    *({"query_id": text, "results": [{"fragment_id": text, "source_id": text, "collection": text}]} for text in TEXTS),
]
COLUMNAR: list[Row] = [
    {"query_id": "full", "fragment_ids": ["a::f1", "b"], "scores": [1, 0.5], "error": "half", **SHARED},
    {"query_id": "plain", "fragment_ids": ["a"]},
    {"query_id": "scores", "fragment_ids": [f"f{n}" for n in range(len(SCORES))], "scores": SCORES},
    {"query_id": "empty", "fragment_ids": []},
    {"query_id": "empty twice", "fragment_ids": [], "scores": []},
    {"query_id": "with nulls", "fragment_ids": ["a"], "scores": None, "error": None},
    *({"query_id": text, "fragment_ids": [text]} for text in TEXTS),
]
FLAT: list[Row] = [
    {"query_id": "late", "fragment_id": "b", "rank": 2, "score": 0.5},
    {"query_id": "late", "fragment_id": "a", "rank": 1, "score": 1},
    {"query_id": "unranked", "fragment_id": "a", "rank": 1},
    {"query_id": "with nulls", "fragment_id": "a", "rank": 1, "score": None},
    {"query_id": "deep", "fragment_id": "a", "rank": 1_000_000},
    *({"query_id": "scores", "fragment_id": f"f{n}", "rank": n, "score": s} for n, s in enumerate(SCORES, 1)),
    *({"query_id": text, "fragment_id": text, "rank": 1} for text in TEXTS),
]
ALL = {"nested": NESTED, "columnar": COLUMNAR, "flat": FLAT}


@pytest.mark.parametrize("form", ALL)
def test_every_optional_field_there_and_back(form: str, tmp_path: Path) -> None:
    assert spelt(there_and_back(tmp_path, ALL[form], form)) == spelt(ALL[form])


@pytest.mark.parametrize("form", ALL)
def test_whole_numbers_as_scores_become_equal_numbers(form: str, tmp_path: Path) -> None:
    back = there_and_back(tmp_path, ALL[form], form)
    own = [row for row in back if row["query_id"] == "scores"]
    if form == "columnar":
        scores = own[0]["scores"]
    else:
        scores = [item["score"] for item in (own[0]["results"] if form == "nested" else own)]
    assert [math.copysign(1, score) for score in scores] == [math.copysign(1, score) for score in SCORES]
    assert scores == list(map(float, SCORES))


@pytest.mark.parametrize("form", ALL)
def test_a_second_time_gives_the_same_bytes(form: str, tmp_path: Path) -> None:
    there_and_back(tmp_path, ALL[form], form)
    first = (tmp_path / BACK).read_bytes()
    assert there_and_back(tmp_path, read(tmp_path / BACK), form) == [json.loads(line) for line in first.splitlines()]
    assert (tmp_path / BACK).read_bytes() == first


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def some_rows(draw: st.DrawFn, form: str) -> list[Row]:
    """Rows of a form with any of its fields."""
    rows = []
    for n in range(draw(st.integers(1, 3))):
        ids = draw(st.lists(IDS, max_size=3))
        row: Row = {"query_id": f"{n} {draw(IDS)}"}
        if form == "nested":
            fields = {"score": DOUBLES, "rank": st.integers(1, 9), "source_id": IDS, "collection": IDS}
            items = [{"fragment_id": i} | draw(st.fixed_dictionaries({}, optional=fields)) for i in ids]
            if not all("score" in item for item in items):  # for all or none, says the contract
                items = [{name: value for name, value in item.items() if name != "score"} for item in items]
            row["results"] = items
        else:
            row["fragment_ids"] = ids
            if draw(st.booleans()):
                row["scores"] = draw(st.lists(DOUBLES, min_size=len(ids), max_size=len(ids)))
        more = {
            "latency_ms": st.floats(0, 1e9),
            "error": st.text(min_size=1, max_size=9),
            "corpus_digest": st.just(DIGEST),
            "metadata": st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
        }
        rows.append(row | draw(st.fixed_dictionaries({}, optional=more)))
    return rows


@pytest.mark.parametrize("form", ["nested", "columnar"])
@given(data=st.data())
@settings(SETTINGS, max_examples=10)
def test_any_rows_there_and_back(form: str, data: st.DataObject) -> None:
    rows = data.draw(some_rows(form))
    with tempfile.TemporaryDirectory() as folder:
        assert spelt(there_and_back(Path(folder), rows, form)) == spelt(rows)


@pytest.mark.parametrize(("form", "other"), [("nested", "columnar"), ("columnar", "nested")])
def test_between_nested_and_columnar(form: Any, other: Any, tmp_path: Path) -> None:
    rows = COLUMNAR if form == "columnar" else [row for row in NESTED if plain(row)]
    source = write(tmp_path / "r.jsonl", rows)
    assert convert_ranked(source, str(tmp_path / "other.jsonl"), other)[1] == other
    assert all(("results" in row) == (other == "nested") for row in read(tmp_path / "other.jsonl"))
    convert_ranked(str(tmp_path / "other.jsonl"), str(tmp_path / BACK), form)
    kept = [row | {"scores": None} if row.get("scores") == [] else row for row in rows]
    assert spelt(read(tmp_path / BACK)) == spelt(kept)


def plain(row: Row) -> bool:
    """Whether a nested row gives nothing that the columnar form cannot say."""
    return all(item.keys() <= {"fragment_id", "score"} for item in row["results"])


@pytest.mark.parametrize("form", ALL)
def test_all_three_say_the_same_when_read(form: str, tmp_path: Path) -> None:
    # what conversion keeps is what evaluation sees
    rows = ALL[form]
    there_and_back(tmp_path, rows, form)
    told = []
    for name in ("r.jsonl", PARQUET, BACK):
        findings = Findings()
        own = [r for r in read_ranked(str(tmp_path / name), findings) if r.query_id != "deep"]  # deep is flat, with a gap
        told.append(sorted((r.query_id, *r.fragment_ids, f"{r.error} {numbers_of(r)}") for r in own))
        assert findings.errors == []
    assert told[0] == told[1] == told[2]


def numbers_of(row: RankedRow) -> list[float]:
    return [float(number) for number in (row.latency_ms, *(row.scores or ())) if number is not None]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)])
def test_compressed_files_both_ways(suffix: str, pack: Any, tmp_path: Path) -> None:
    (tmp_path / f"r.jsonl{suffix}").write_bytes(pack(lines(NESTED)))
    assert convert_ranked(str(tmp_path / f"r.jsonl{suffix}"), str(tmp_path / PARQUET)) == (len(NESTED), "nested")
    convert_ranked(str(tmp_path / PARQUET), str(tmp_path / f"back.jsonl{suffix}"))
    raw = (tmp_path / f"back.jsonl{suffix}").read_bytes()
    content = gzip.decompress(raw) if suffix == ".gz" else zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    assert spelt([json.loads(line) for line in content.splitlines()]) == spelt(NESTED)


def test_no_rows_at_all(tmp_path: Path) -> None:
    assert there_and_back(tmp_path, [], "columnar") == []


def test_more_rows_than_one_batch(tmp_path: Path) -> None:
    rows = [{"query_id": f"q{n:05}", "fragment_ids": [f"f{n}"]} for n in range(4_500)]
    assert there_and_back(tmp_path, rows, "columnar") == rows


# ---- bad input: every fault at once, and no output

BAD_ROWS: list[Row] = [
    {"query_id": "good", "fragment_ids": ["a"]},
    {"query_id": 7, "fragment_ids": ["a"]},
    {"query_id": "q", "fragment_ids": ["a"], "scores": [1, 2]},
    {"query_id": "q", "fragment_ids": ["a"], "latency": 1},
    {"query_id": "q", "fragment_idz": ["a"]},
]
FAULTS = ["r.jsonl:2 query_id", "r.jsonl:3 scores", "r.jsonl:4 latency", "r.jsonl:5 "]


@pytest.mark.parametrize(("target", "form"), [(PARQUET, None), ("o.jsonl", "nested"), ("o.jsonl", None)])
def test_all_faults_come_at_once(target: str, form: Any, tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", BAD_ROWS)
    assert converted_error(tmp_path, source, target, form) == FAULTS


def test_an_older_output_stays(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", BAD_ROWS)
    for target in (PARQUET, "o.jsonl"):
        (tmp_path / target).write_bytes(b"older")
        with pytest.raises(InputError):
            convert_ranked(source, str(tmp_path / target))
        assert (tmp_path / target).read_bytes() == b"older"


def test_all_faults_come_at_once_where_the_first_row_is_bad(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", [BAD_ROWS[1], *BAD_ROWS])
    assert converted_error(tmp_path, source) == [
        "r.jsonl:1 query_id",
        "r.jsonl:3 query_id",
        "r.jsonl:4 scores",
        "r.jsonl:5 latency",
        "r.jsonl:6 ",
    ]


def test_mixed_forms_are_a_fault_of_the_file(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", [COLUMNAR[1], NESTED[3], COLUMNAR[3]])
    assert converted_error(tmp_path, source) == ["r.jsonl:2 "]


@pytest.mark.parametrize("content", [b"[1]\n", b'{"query_id":"q","fragm', b"\xff\xfe\n", b"not json\n"])
def test_what_is_no_jsonl(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(content)
    assert converted_error(tmp_path, str(tmp_path / "r.jsonl")) == ["r.jsonl:1 "]


def test_a_torn_archive(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(lines(NESTED))[:-20])
    with pytest.raises(InputError, match="torn or damaged"):
        convert_ranked(str(tmp_path / "r.jsonl.gz"), str(tmp_path / PARQUET))
    assert not (tmp_path / PARQUET).exists()


@pytest.mark.parametrize("name", ["none.parquet", "none.jsonl"])
def test_a_missing_file(name: str, tmp_path: Path) -> None:
    target = "o.jsonl" if name.endswith("parquet") else PARQUET
    assert converted_error(tmp_path, str(tmp_path / name), target) == [f"{name}:0 "]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b'{"query_id":"q","fragment_ids":[]}\n'])
def test_what_is_called_parquet_and_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / PARQUET).write_bytes(content)
    assert converted_error(tmp_path, str(tmp_path / PARQUET), "o.jsonl") == [f"{PARQUET}:0 "]


# ---- forms that cannot carry it


def refused(folder: Path, source: str, target: str, form: Any = None) -> str:
    with pytest.raises(UsageError) as caught:
        convert_ranked(source, str(folder / target), form)
    assert not (folder / target).exists()
    return str(caught.value)


def test_both_files_are_parquet(tmp_path: Path) -> None:
    there_and_back(tmp_path, COLUMNAR, "columnar")
    assert "both files are Parquet" in refused(tmp_path, str(tmp_path / PARQUET), "other.parquet")


def test_parquet_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    there_and_back(tmp_path, COLUMNAR, "columnar")
    (tmp_path / PARQUET).rename(tmp_path / "r.data")
    assert "both files are Parquet" in refused(tmp_path, str(tmp_path / "r.data"), "other.parquet")
    convert_ranked(str(tmp_path / "r.data"), str(tmp_path / "o.jsonl"))
    assert spelt(read(tmp_path / "o.jsonl")) == spelt(COLUMNAR)


@pytest.mark.parametrize("target", [PARQUET, "o.jsonl"])
@pytest.mark.parametrize(("rows", "form"), [(FLAT, "nested"), (FLAT, "columnar"), (NESTED, "flat"), (COLUMNAR, "flat")])
def test_flat_and_the_others(rows: list[Row], form: str, target: str, tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", rows)
    assert f"--form {form} would lose" in refused(tmp_path, source, target, form)


@pytest.mark.parametrize(("rows", "form"), [(FLAT, "nested"), (FLAT, "columnar"), (NESTED, "flat"), (COLUMNAR, "flat")])
def test_flat_and_the_others_from_parquet(rows: list[Row], form: str, tmp_path: Path) -> None:
    convert_ranked(write(tmp_path / "r.jsonl", rows), str(tmp_path / PARQUET))
    assert f"--form {form} would lose" in refused(tmp_path, str(tmp_path / PARQUET), "o.jsonl", form)


@pytest.mark.parametrize("field", [{"rank": 1}, {"source_id": "s"}, {"collection": "c"}])
def test_columnar_has_no_room_for_what_items_say(field: Row, tmp_path: Path) -> None:
    rows: list[Row] = [{"query_id": "q", "results": [{"fragment_id": "a", **field}]}]
    source = write(tmp_path / "r.jsonl", rows)
    assert "which the columnar form cannot" in refused(tmp_path, source, "o.jsonl", "columnar")
    convert_ranked(source, str(tmp_path / PARQUET))
    assert "which the columnar form cannot" in refused(tmp_path, str(tmp_path / PARQUET), "o.jsonl", "columnar")


def test_columnar_has_no_room_in_parquet_either(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", [{"query_id": "q", "results": [{"fragment_id": "a", "rank": 1}]}])
    assert "which the columnar form cannot" in refused(tmp_path, source, PARQUET, "columnar")


def test_columnar_has_no_room_for_scores_of_some(tmp_path: Path) -> None:
    rows: list[Row] = [{"query_id": "q", "results": [{"fragment_id": "a", "score": 1}, {"fragment_id": "b"}]}]
    refused(tmp_path, write(tmp_path / "r.jsonl", rows), "o.jsonl", "columnar")


def test_the_command(tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", FLAT)
    done = run(tmp_path, ["convert", "r.jsonl", PARQUET])
    assert (done.code, done.out, done.err) == (0, "", f"{len(FLAT)} rows, flat → {PARQUET}\n")
    assert run(tmp_path, ["convert", PARQUET, "other.parquet"]).code == 2
    assert run(tmp_path, ["convert", PARQUET, "o.jsonl", "--form", "nested"]).code == 2
    assert run(tmp_path, ["convert", PARQUET, "o.jsonl", "--form", "nexted"]).code == 2
    write(tmp_path / "r.jsonl", BAD_ROWS)
    done = run(tmp_path, ["convert", "r.jsonl", "bad.parquet"])
    assert (done.code, [line.split("  ")[0] for line in done.errors]) == (3, [f"r.jsonl:{n}" for n in (2, 3, 4, 5)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.jsonl", PARQUET]


# ---- Parquet of other writers


def parquet(folder: Path, select: str) -> str:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{folder / PARQUET}' (FORMAT parquet)")
    return str(folder / PARQUET)


COLUMNS = [
    (
        "'q' AS query_id, 'a' AS fragment_idd, 1 AS rank",
        ["fragment_id  no such column", 'fragment_idd  unknown column (did you mean "fragment_id"?)'],
    ),
    ("'q' AS query_id, 'a' AS fragment_id", ["rank  no such column"]),
    ("1 AS query_id, 'a' AS fragment_id, 1 AS rank", ["query_id  is INTEGER: VARCHAR is expected"]),
    ("'q' AS query_id, 'a' AS fragment_id, 1.5::DOUBLE AS rank", ["rank  is DOUBLE: BIGINT is expected"]),
    ("'q' AS query_id, 'a' AS fragment_id, '1' AS rank", ["rank  is VARCHAR: BIGINT is expected"]),
    ("'q' AS query_id, 'a' AS fragment_id, 1 AS rank, '0.5' AS score", ["score  is VARCHAR: DOUBLE is expected"]),
    ("'q' AS query_id, 'a' AS fragment_id, 1 AS rank, true AS score", ["score  is BOOLEAN: DOUBLE is expected"]),
    ("'q' AS query_id, 'a' AS fragment_id, 1 AS rank, 1 AS scores", ['scores  unknown column (did you mean "score"?)']),
    ("'q' AS query_id, 'a' AS fragment_ids", ["fragment_ids  is VARCHAR: VARCHAR[] is expected"]),
    ("'q' AS query_id, [1] AS fragment_ids", ["fragment_ids  is INTEGER[]: VARCHAR[] is expected"]),
    ("'q' AS query_id, ['a'] AS fragment_ids, 1 AS scores", ["scores  is INTEGER: DOUBLE[] is expected"]),
    (
        "['a'] AS fragment_ids, 1 AS latency",
        ["query_id  no such column", 'latency  unknown column (did you mean "latency_ms"?)'],
    ),
    ("1 AS x", ["query_id  no such column", "fragment_id  no such column", "rank  no such column", "x  unknown column"]),
]


@pytest.mark.parametrize(("select", "told"), COLUMNS)
def test_wrong_columns_and_types(select: str, told: list[str], tmp_path: Path) -> None:
    source = parquet(tmp_path, f"SELECT {select}")
    with pytest.raises(InputError) as converting:
        convert_ranked(source, str(tmp_path / "o.jsonl"))
    with pytest.raises(InputError) as reading:
        list(read_ranked(source, Findings()))
    for caught in (converting, reading):
        said = [str(f) for f in caught.value.findings]
        assert len(said) == len(told)
        assert all(f"{source}  {words}" in line for words, line in zip(sorted(told), sorted(said), strict=True)), said
    assert not (tmp_path / "o.jsonl").exists()


NUMBER_TYPES = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]


@pytest.mark.parametrize("kind", [*NUMBER_TYPES, "FLOAT", "DOUBLE"])
def test_every_type_of_number(kind: str, tmp_path: Path) -> None:
    rank = "BIGINT" if kind in ("FLOAT", "DOUBLE") else kind
    source = parquet(tmp_path, f"SELECT 'q' AS query_id, 'a' AS fragment_id, 1::{rank} AS rank, 7::{kind} AS score")
    assert [(row.query_id, list(row.scores or ())) for row in read_ranked(source, Findings())] == [("q", [7.0])]
    convert_ranked(source, str(tmp_path / "o.jsonl"))
    assert read(tmp_path / "o.jsonl") == [{"query_id": "q", "fragment_id": "a", "rank": 1, "score": 7.0}]


FLAT_FAULTS = {
    "no query": ("(NULL, 'b', 1, 0.5)", "query_id"),
    "empty query": ("('', 'b', 1, 0.5)", "query_id"),
    "no fragment": ("('r', NULL, 1, 0.5)", "fragment_id"),
    "empty fragment": ("('r', '', 1, 0.5)", "fragment_id"),
    "NUL in a fragment": ("('r', 'x' || chr(0), 1, 0.5)", "fragment_id"),
    "NUL in a query": ("('r' || chr(0), 'x', 1, 0.5)", "query_id"),
    "no rank": ("('r', 'b', NULL, 0.5)", "rank"),
    "rank 0": ("('r', 'b', 0, 0.5)", "rank"),
    "rank below 0": ("('r', 'b', -1, 0.5)", "rank"),
    "NaN": ("('r', 'b', 1, 'nan'::DOUBLE)", "score"),
    "Infinity": ("('r', 'b', 1, '-inf'::DOUBLE)", "score"),
}
COLUMNAR_FAULTS = {
    "no query": ("NULL AS query_id, ['a'] AS fragment_ids", "query_id"),
    "no list": ("'r' AS query_id, NULL AS fragment_ids", "fragment_ids"),
    "no fragment": ("'r' AS query_id, ['a', NULL] AS fragment_ids", "fragment_id"),
    "empty fragment": ("'r' AS query_id, ['a', ''] AS fragment_ids", "fragment_id"),
    "NUL": ("'r' AS query_id, ['a' || chr(0)] AS fragment_ids", "fragment_id"),
    "too many scores": ("'r' AS query_id, ['a'] AS fragment_ids, [1.0::DOUBLE, 0.5] AS scores", "scores"),
    "scores of some": ("'r' AS query_id, ['a', 'b'] AS fragment_ids, [1.0::DOUBLE, NULL] AS scores", "score"),
    "NaN": ("'r' AS query_id, ['a'] AS fragment_ids, ['nan'::DOUBLE] AS scores", "score"),
    "too few ranks": ("'r' AS query_id, ['a', 'b'] AS fragment_ids, [1] AS ranks", "ranks"),
}
UNCHECKED = {
    "latency below 0": ("'r' AS query_id, ['a'] AS fragment_ids, -1::DOUBLE AS latency_ms", "latency_ms"),
    "latency NaN": ("'r' AS query_id, ['a'] AS fragment_ids, 'nan'::DOUBLE AS latency_ms", "latency_ms"),
    "latency Infinity": ("'r' AS query_id, ['a'] AS fragment_ids, 'inf'::DOUBLE AS latency_ms", "latency_ms"),
    "bad digest": ("'r' AS query_id, ['a'] AS fragment_ids, 'xyz' AS corpus_digest", "corpus_digest"),
    "empty source": ("'r' AS query_id, ['a'] AS fragment_ids, [''] AS source_ids", "source_ids"),
    "NUL in a source": ("'r' AS query_id, ['a'] AS fragment_ids, ['s' || chr(0)] AS source_ids", "source_ids"),
    "rank 0": ("'r' AS query_id, ['a'] AS fragment_ids, [0] AS ranks", "ranks"),
    "metadata is no JSON": ("'r' AS query_id, ['a'] AS fragment_ids, '{oops' AS metadata", "metadata"),
    "metadata is no object": ("'r' AS query_id, ['a'] AS fragment_ids, '[1]' AS metadata", "metadata"),
}


def flat_select(value: str) -> str:
    columns = "query_id, fragment_id, rank::BIGINT AS rank, score::DOUBLE AS score"
    return f"SELECT {columns} FROM (VALUES ('q', 'a', 1, 0.5), {value}) t(query_id, fragment_id, rank, score)"


def read_faults(path: str) -> list[str]:
    """What reading for an evaluation says is wrong."""
    findings = Findings()
    list(read_ranked(path, findings))
    return [f"{Path(f.place.file).name}:{f.place.line} {f.field}" for f in findings.errors]


@pytest.mark.parametrize("name", FLAT_FAULTS)
def test_faults_of_a_flat_table_name_their_row(name: str, tmp_path: Path) -> None:
    value, field = FLAT_FAULTS[name]
    assert read_faults(parquet(tmp_path, flat_select(value))) == [f"{PARQUET}:2 {field}"]


@pytest.mark.parametrize("name", COLUMNAR_FAULTS)
def test_faults_of_a_columnar_table_name_their_row(name: str, tmp_path: Path) -> None:
    values, field = COLUMNAR_FAULTS[name]
    good = "SELECT 'q' AS query_id, ['a'] AS fragment_ids UNION ALL BY NAME"
    assert read_faults(parquet(tmp_path, f"{good} SELECT {values}")) == [f"{PARQUET}:2 {field}"]


@pytest.mark.parametrize("name", UNCHECKED)
def test_other_faults_of_a_columnar_table(name: str, tmp_path: Path) -> None:
    values, field = UNCHECKED[name]
    good = "SELECT 'q' AS query_id, ['a'] AS fragment_ids UNION ALL BY NAME"
    assert read_faults(parquet(tmp_path, f"{good} SELECT {values}")) == [f"{PARQUET}:2 {field}"]


@pytest.mark.parametrize("name", FLAT_FAULTS)
def test_faults_of_a_flat_table_are_not_converted(name: str, tmp_path: Path) -> None:
    value, field = FLAT_FAULTS[name]
    assert converted_error(tmp_path, parquet(tmp_path, flat_select(value)), "o.jsonl") == [f"{PARQUET}:2 {field}"]


@pytest.mark.parametrize("name", COLUMNAR_FAULTS | UNCHECKED)
def test_faults_of_a_columnar_table_are_not_converted(name: str, tmp_path: Path) -> None:
    values, field = (COLUMNAR_FAULTS | UNCHECKED)[name]
    good = "SELECT 'q' AS query_id, ['a'] AS fragment_ids UNION ALL BY NAME"
    source = parquet(tmp_path, f"{good} SELECT {values}")
    assert converted_error(tmp_path, source, "o.jsonl") == [f"{PARQUET}:2 {field}"]


def test_a_rank_twice_is_a_fault_of_order(tmp_path: Path) -> None:
    from tests.builders import judgment, write_jsonl
    from tripos.contracts.config import Config, DepthConfig, JudgmentsConfig, SearchConfig
    from tripos.runners.retrieval import evaluate

    source = parquet(tmp_path, flat_select("('r', 'b', 1, 0.5), ('r', 'c', 1, 0.5)"))
    judged = write_jsonl(tmp_path / "j.jsonl", [judgment("q", "a"), judgment("r", "b")])
    config = Config(
        judgments=JudgmentsConfig(retrieval=judged),
        ranked_results=source,
        search=SearchConfig(mode=MODES[0]),
        depth=DepthConfig(limit=5),
    )
    with pytest.raises(InputError, match="rank  1 stands at position 2 of the list") as caught:
        evaluate(config)
    assert [(f.place.line, f.field) for f in caught.value.findings] == [(2, "rank")]


UNSORTED = "('r', 'b', 1, 0.5), ('q', 'c', 2, 0.4), ('r', 'd', 2, 0.3)"


def test_rows_of_a_query_may_stand_anywhere(tmp_path: Path) -> None:
    rows = list(read_ranked(parquet(tmp_path, flat_select(UNSORTED)), Findings()))
    told = sorted((row.query_id, list(row.fragment_ids), list(row.scores or ())) for row in rows)
    assert told == [("q", ["a", "c"], [0.5, 0.4]), ("r", ["b", "d"], [0.5, 0.3])]


def test_rows_keep_their_order_in_conversion(tmp_path: Path) -> None:
    convert_ranked(parquet(tmp_path, flat_select(UNSORTED)), str(tmp_path / "o.jsonl"))
    assert [(row["query_id"], row["rank"]) for row in read(tmp_path / "o.jsonl")] == [("q", 1), ("r", 1), ("q", 2), ("r", 2)]


def test_a_fault_of_an_unsorted_table_names_its_row(tmp_path: Path) -> None:
    select = flat_select("('z', 'b', 1, 0.5), ('q', 'c', 2, 0.4), ('a', '', 1, 0.3)")
    assert read_faults(parquet(tmp_path, select)) == [f"{PARQUET}:4 fragment_id"]


# ---- what ends in an internal error


def test_large_whole_numbers_in_metadata(tmp_path: Path) -> None:
    row: Row = {"query_id": "q", "fragment_ids": ["a"], "metadata": {"n": 2**70}}
    source = write(tmp_path / "r.jsonl", [row])
    with contextlib.suppress(InputError):  # refused with its line, or kept
        convert_ranked(source, str(tmp_path / PARQUET))
        convert_ranked(str(tmp_path / PARQUET), str(tmp_path / BACK))
        assert read(tmp_path / BACK) == [row]


def test_large_ranks(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", [{"query_id": "q", "fragment_id": "a", "rank": 2**63}])
    assert converted_error(tmp_path, source) == ["r.jsonl:1 rank"]
