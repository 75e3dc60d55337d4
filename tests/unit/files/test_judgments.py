"""The table of judgments says what the strict reader and the contract rows say, on every oddity that a line may hold."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.builders import judgment
from tripos.checks.retrieval import check_against_corpus, check_judgments, is_at_home, may_matter
from tripos.columns.groups import clusters_of, slices_of
from tripos.columns.judged import Judged
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, InputError
from tripos.files import judgments
from tripos.files.judgments import FLAGS, How, JudgmentTable, read_judgments
from tripos.files.plain import is_plain
from tripos.files.retrieval import Located, load_judgments
from tripos.fingerprint import component_b, judged_digest, judgment_content, judgments_component, row_digest

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = [
    "a",
    "b",
    "c",
    "d::f1",
    "é",
    "日本",
    "😀",
    "TODO",
    "todo-list",
    "FIXME: x",
    "f\u0131xme",
    "\u212aeep",
    "<x>",
    "a\nb",
    'q"t',
]
ODD_IDS: list[Any] = ["", "a\0b", 1, None, True, ["a"], {"a": 1}]
TEXTS = ["What of it?", " what of it? ", "What of it? ", "", " ", "Frage\tan", "placeholder", "REPLACE_ME", "tb\u0064", "ünd"]
ODD_TEXTS: list[Any] = [1, False, ["x"], "a\0"]
NUMBERS: list[Any] = [1, 2, 0.5, 2.0, 100, 1e-7, 1e-320, 3.0000000000000004, 99.99999999999999]
ODD_NUMBERS: list[Any] = [0, -1, 101, 100.1, True, None, "1", [], 2**70, -0.0]
SCALARS: list[Any] = ["x", True, False, 1, 1.0, 0.1, 1e300, 1e16, -0.0, None, 2**53 - 1, 2**53, -(2**53), "é", ["x"], {}]
WORDS = ["color", "é", "𝒳", "\uffff", "category", "split", "", "a b"]

names = st.lists(st.sampled_from(NAMES), max_size=4)
odd_names = st.one_of(
    names, st.lists(st.sampled_from([*NAMES, *ODD_IDS]), max_size=3), st.sampled_from([None, "a", {}, 3, {"a": 1}])
)
texts = st.sampled_from([*TEXTS, *TEXTS, *ODD_TEXTS, None])
grades = st.one_of(
    st.none(),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NUMBERS), max_size=5),
    st.dictionaries(st.sampled_from([*NAMES, ""]), st.sampled_from([*NUMBERS, *ODD_NUMBERS]), max_size=3),
    st.sampled_from([[], False, "", 0, [["a", 1]]]),
)
evidence = st.one_of(
    st.lists(st.fixed_dictionaries({"source_id": st.sampled_from(NAMES), "quote": st.sampled_from(["x", "é y"])}), max_size=2),
    st.sampled_from(
        [[{"source_id": "a"}], [{"source_id": "a", "quote": ""}], [{"source_id": "a", "quote": "x", "n": 1}], None, [3]]
    ),
)

OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "relevance": grades,
    "required_sources": odd_names,
    "expected_groups": st.one_of(
        st.lists(names, max_size=2), st.sampled_from([None, [[]], ["a"], [["a"], ["a"]], [["b", "a"]]])
    ),
    "expected_evidence": evidence,
    "expected_fragments": odd_names,
    "nonrelevant_sources": odd_names,
    "forbidden_sources": odd_names,
    "filters": st.one_of(
        st.dictionaries(st.sampled_from(WORDS), st.sampled_from(SCALARS), max_size=3), st.sampled_from([None, []])
    ),
    "principal": st.one_of(
        st.none(), st.builds(lambda g: {"groups": g}, odd_names), st.sampled_from([{}, {"groups": [], "x": 1}, [], "g"])
    ),
    "k": st.sampled_from([None, 1, 3, 50, 10**9, 0, -1, 10**9 + 1, True, 2.0, "3"]),
    "split": st.sampled_from([None, "tune", "holdout", "test", 1, []]),
    "slices": st.one_of(st.dictionaries(st.sampled_from(WORDS), st.sampled_from(SCALARS), max_size=3), st.none()),
    "cluster": st.sampled_from([None, "k1", "k2", "", "é", 1]),
    "information_need": texts,
    "notes": texts,
    "reviewer": texts,
    "reviewed_at": texts,
    "source_file": texts,
    "tags": st.one_of(st.lists(st.sampled_from(["x", "", "é"]), max_size=2), st.sampled_from([None, "x", [1]])),
    "metadata": st.one_of(
        st.dictionaries(st.sampled_from(WORDS), st.sampled_from(SCALARS), max_size=2), st.sampled_from([None, []])
    ),
    "expected_docs": st.just([]),
    "mine": st.just(1),
}
CATEGORIES = ["hard_negative", "authorization", "negativ", "multi_hop", "multi_hop_x", "", 3, None]
STATUSES = ["reviewed", "reviewed", "reviewed", "draft", "in_review", "rejected"]
query_ids = st.one_of(st.integers(0, 99).map(lambda n: f"q{n}"), st.sampled_from(NAMES))
BASE: dict[str, st.SearchStrategy[Any]] = {
    "query_id": st.sampled_from([*NAMES, *ODD_IDS]),
    "query": texts,
    "expected_sources": odd_names,
    "should_match": st.sampled_from([True, False, None, 1, "true"]),
    "category": st.sampled_from(CATEGORIES),
    "review_status": st.sampled_from([None, "done", "Reviewed", 1, []]),
}


@st.composite
def sound_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row that keeps the contract, with some of its optional fields."""
    expected, others = draw(names), draw(names)
    barred = [name for name in others if name not in expected]
    some = st.lists(st.sampled_from(expected), min_size=1, max_size=3) if expected else st.nothing()
    values: dict[str, st.SearchStrategy[Any]] = {
        "relevance": st.one_of(st.none(), st.fixed_dictionaries(dict.fromkeys(expected, st.sampled_from(NUMBERS)))),
        "required_sources": st.just(expected[:2]),
        "expected_groups": st.lists(some, max_size=3) if expected else st.just([]),
        "expected_evidence": st.lists(
            st.fixed_dictionaries({"source_id": st.sampled_from(NAMES), "quote": st.sampled_from("xé")})
        ),
        "nonrelevant_sources": st.just(barred[:1]),
        "forbidden_sources": st.just(barred[1:]),
        "filters": st.dictionaries(st.sampled_from(WORDS), st.sampled_from(SCALARS[:9]), max_size=3),
        "principal": st.one_of(st.none(), st.builds(lambda groups: {"groups": groups}, names)),
        "k": st.sampled_from([None, 1, 3, 50]),
        "split": st.sampled_from([None, "tune", "holdout"]),
        "slices": st.dictionaries(st.sampled_from(WORDS), st.sampled_from(["x", "1", True, 1, 2]), max_size=3),
        "cluster": st.sampled_from([None, "k1", "k2", "é"]),
        "notes": st.sampled_from([None, "see\tthere"]),
        "metadata": st.dictionaries(st.sampled_from(WORDS), st.sampled_from(SCALARS), max_size=2),
    }
    row = {
        "query_id": draw(query_ids),
        "query": draw(st.sampled_from([*TEXTS, None])),
        "expected_sources": expected,
        "should_match": bool(expected),
        "category": draw(st.sampled_from(["single_hop_factual", "imported", "calibration", "negative", "own", "structual"])),
        "review_status": draw(st.sampled_from(STATUSES)),
    }
    wanted = draw(st.lists(st.sampled_from(sorted(values)), max_size=5, unique=True))
    return {**row, **{name: draw(values[name]) for name in wanted}}


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row as a file might hold it: half of them sound, half with one odd field or without one."""
    row = draw(sound_rows())
    if not draw(st.booleans()):
        return row
    name = draw(st.sampled_from(sorted([*BASE, *OPTIONAL])))
    if name in BASE and draw(st.sampled_from([False, False, True])):
        return {key: value for key, value in row.items() if key != name}
    return {**row, name: draw({**BASE, **OPTIONAL}[name])}


files_of_rows = st.lists(rows(), max_size=6)


def text_of(row: dict[str, Any], ascii_only: bool) -> str:
    return json.dumps(row, ensure_ascii=ascii_only, allow_nan=False)


@contextmanager
def strict_only() -> Iterator[None]:
    """The quick way switched off."""
    with mock.patch.object(judgments, "is_plain", return_value=False):
        yield


def told(findings: Findings) -> tuple[list[str], dict[str, int]]:
    return [f"{f.severity} {f.kind} {f}" for f in findings.kept], findings.let_pass


def columns_of(table: JudgmentTable) -> dict[str, Any]:
    names = ("row_of", "bits", "k", "kind", "kinds", "cluster", "n_expected", "n_nonrelevant", "graded", "grades")
    return {name: getattr(table, name) for name in names}


def both_ways(content: str, **options: bool) -> tuple[JudgmentTable, JudgmentTable, list[Located]]:
    """A file by the quick way, by the strict one, and as objects; what they tell is compared."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "j.jsonl")
        Path(path).write_text(content, encoding="utf-8")
        found = [Findings(), Findings(), Findings()]
        quick = read_judgments([path], found[0], How(may_matter, **options))
        with strict_only():
            strict = read_judgments([path], found[1], How(may_matter, **options))
        objects = load_judgments([path], found[2], **options)
    assert told(found[0]) == told(found[1]) == told(found[2])
    return quick, strict, objects


@SETTINGS
@given(files_of_rows, st.booleans(), st.sampled_from([{}, {"lenient": True}, {"allow_extra": True}]))
def test_the_quick_way_is_the_strict_one(given_rows: list[dict[str, Any]], ascii_only: bool, options: dict[str, bool]) -> None:
    content = "".join(text_of(row, ascii_only) + "\n" for row in given_rows)
    quick, strict, objects = both_ways(content, **options)
    assert list(quick) == list(strict) == [located.row for located in objects]
    assert [quick.place(row) for row in range(len(quick))] == [located.place for located in objects]
    assert columns_of(quick) == columns_of(strict)
    whole = judgments_component((located.row for located in objects), "v1", "pooled")
    assert component_b(quick.reviewed, "v1", "pooled") == component_b(strict.reviewed, "v1", "pooled") == whole


ROW = judgment("q1", "a", "b")
BAD_JSON = [
    '{"query_id":"q1","query_id":"q2"}',
    '{"query_id":"q1"',
    "[1]",
    '{"a":NaN}',
    "\ufeff" + json.dumps(ROW),
    json.dumps(ROW).replace('"a"', '"a","a"'),
    json.dumps(ROW).replace('"category"', '"query_id":"x","category"'),
    json.dumps(ROW)[:-1] + ',"relevance":{"a":1,"b":2,"a":3}}',
    json.dumps(ROW)[:-1] + ',"relevance":{"a":1e400,"b":2}}',
    json.dumps(ROW)[:-1] + ',"metadata":{"x":1e400}}',
    json.dumps(ROW)[:-1] + ',"k":3.0}',
    json.dumps(ROW)[:-1] + ',"filters":{"n":123456789012345678901234567890}}',
    json.dumps(ROW).replace('"q1"', '"\\ud800"'),
    json.dumps(ROW).replace('"q1"', '"\\u0071\\u0031"'),
    json.dumps(ROW).replace('"a"', '"a\\u0000"'),
    "\n\r\n" + json.dumps(ROW) + "\r",
]


@pytest.mark.parametrize("line", BAD_JSON)
def test_odd_lines(line: str) -> None:
    after = json.dumps(judgment("q9", "z"))
    quick, strict, objects = both_ways(f"{line}\n{after}\n")
    assert [row.query_id for row in quick] == [located.row.query_id for located in objects]
    assert columns_of(quick) == columns_of(strict)


@SETTINGS
@given(rows())
@example({**ROW, "relevance": {"a": 1, "b": 2, "é": 3}})
@example({**ROW, "relevance": {"a": 2.0, "b": 1e-7}})
@example({**ROW, "relevance": {"\uffff": 1, "𝒳": 2, "a": 1, "b": 1}})
@example({**ROW, "filters": {"\uffff": 1, "𝒳": 1.0}, "slices": {"b": 1, "a": True}})
def test_what_is_plain_fits_the_contract_and_has_its_digest(row: dict[str, Any]) -> None:
    line = json.dumps(row).encode()
    if not is_plain(row, line):
        return
    model = RetrievalJudgment.model_validate(row)
    assert judged_digest(row) == row_digest(judgment_content(model))
    light = RetrievalJudgment.trusted(row)
    assert plainly(light) == plainly(model)
    assert (light.scored, list(light.grades.items())) == (model.scored, list(model.grades.items()))


def plainly(row: RetrievalJudgment) -> Any:
    """The row as JSON, whatever kind of list it holds."""
    return json.loads(json.dumps(row.model_dump(warnings=False)))


@pytest.mark.parametrize("row", [ROW, judgment("q2"), {**ROW, "relevance": {"b": 1, "a": 2.5}}, {**ROW, "slices": {"x": True}}])
def test_ordinary_rows_take_the_quick_way(row: dict[str, Any]) -> None:
    assert is_plain(row, json.dumps(row).encode())
    assert not may_matter(row)


@pytest.mark.parametrize(
    "change",
    [
        {"query": "TODO"},
        {"query": "\tfixme: ask"},
        {"query_id": "REPLACE_WITH_ID"},
        {"expected_sources": ["a", "a"]},
        {"forbidden_sources": ["<id>"]},
        {"expected_fragments": ["f\u0131xme"]},
        {"expected_evidence": [{"source_id": "xxx", "quote": "q"}]},
        {"query": " "},
        {"query": None},
        {"category": "structual"},
    ],
)
def test_what_a_check_reports_is_noticed(change: dict[str, Any]) -> None:
    row = {**ROW, **change}
    findings = Findings()
    check_judgments(located(RetrievalJudgment.model_validate(row)), findings)
    assert findings.kept
    assert may_matter(row)


def located(*models: RetrievalJudgment) -> list[Located]:
    from tripos.errors import Place

    return [Located(Place("j.jsonl", n), model) for n, model in enumerate(models, 1)]


@SETTINGS
@given(files_of_rows)
def test_checking_the_remarkable_rows_is_checking_all(given_rows: list[dict[str, Any]]) -> None:
    quick, _, objects = both_ways("".join(text_of(row, False) + "\n" for row in given_rows))
    some, every = Findings(), Findings()
    check_judgments([quick.located(row) for row in quick.remarkable()], some)
    check_judgments(objects, every)
    assert [f"{f.kind} {f.message}" for f in some.kept] == [f"{f.kind} {f.message}" for f in every.kept]


@SETTINGS
@given(files_of_rows, st.booleans())
def test_rows_at_home_in_the_corpus_need_no_check(given_rows: list[dict[str, Any]], lenient: bool) -> None:
    corpus = Corpus()
    for name in ("a", "b", "d::f1", "é"):
        corpus.add(Fragment(fragment_id=name, source_id=name, text="x"))
    quick, _, objects = both_ways("".join(text_of(row, False) + "\n" for row in given_rows))
    some, every = Findings(), Findings()
    strangers = [row for row in range(len(quick)) if not is_at_home(quick.value(row), corpus)]
    check_against_corpus([quick.located(row) for row in strangers], corpus, some, lenient=lenient)
    check_against_corpus(objects, corpus, every, lenient=lenient)
    assert [f"{f.kind} {f.message}" for f in some.kept] == [f"{f.kind} {f.message}" for f in every.kept]
    assert some.let_pass == every.let_pass


# ---- the scored rows as columns


def models(given_rows: Sequence[dict[str, Any]]) -> list[RetrievalJudgment]:
    _, _, objects = both_ways("".join(text_of(row, False) + "\n" for row in given_rows))
    return [located.row for located in objects]


@SETTINGS
@given(files_of_rows)
def test_columns_are_those_of_the_objects(given_rows: list[dict[str, Any]]) -> None:
    own = sorted(models(given_rows), key=lambda row: row.query_id)
    judged = Judged.of(reversed(own))
    assert judged.query_ids == [row.query_id for row in own]
    assert list(judged) == own
    for name in FLAGS:
        present = [getattr(row, name) is not None if name == "principal" else bool(getattr(row, name)) for row in own]
        assert judged.flag(name).tolist() == present, name
    assert judged.depths(7).tolist() == [row.k or 7 for row in own]
    assert judged.n_expected().tolist() == [len(set(row.expected_sources)) for row in own]
    assert judged.n_nonrelevant().tolist() == [len({*row.nonrelevant_sources, *row.forbidden_sources}) for row in own]
    assert [judged.slot(row.query_id) for row in own] == list(range(len(own)))
    assert judged.slot("nobody") == -1
    assert_grouped_alike(judged, own)


def assert_grouped_alike(judged: Judged, own: Sequence[RetrievalJudgment]) -> None:
    told, wanted = judged.groups(), slices_of(own)
    assert [(g.by, g.value, type(g.value), g.rows.tolist()) for g in told] == [
        (g.by, g.value, type(g.value), g.rows.tolist()) for g in wanted
    ]
    numbers, clusters = judged.clusters(), clusters_of(own)
    assert (numbers is None) == (clusters is None)
    assert numbers is None or clusters is None or numbers.tolist() == clusters.tolist()
    asked = [row.principal.groups for row in own if row.principal is not None]
    assert judged.principals() == {groups: asked.count(groups) for groups in asked}
    splits = [row.split or "none" for row in own]
    assert judged.tally("split") == {name: splits.count(name) for name in sorted(set(splits))}


# ---- where lines come from


def test_a_packed_file_and_several_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"
    first.write_bytes(gzip.compress(b"\n" + json.dumps(judgment("q1", "a")).encode() + b"\n"))
    second.write_text("".join(json.dumps(judgment(f"q{n}", "b")) + "\n" for n in (2, 1, 3)), encoding="utf-8")
    findings = Findings()
    table = read_judgments([str(first), str(second)], findings, How(may_matter))
    assert [row.query_id for row in table] == ["q1", "q2", "q3"]
    assert [str(table.place(row)) for row in range(3)] == [f"{first}:2", f"{second}:1", f"{second}:3"]
    assert [str(f) for f in findings.errors] == [f'{second}:2  query_id  "q1" was used at {first}:2']


def test_a_torn_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(judgment("q1", "a")).encode() + b"\n")[:-9])
    with pytest.raises(InputError, match="torn or damaged"):
        read_judgments([str(path)], Findings(), How(may_matter))


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"")
    table = read_judgments([str(path)], Findings(), How(may_matter))
    assert (len(table), table.kinds, table.remarkable(), list(table)) == (0, [], [], [])
