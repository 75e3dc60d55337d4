"""The quick readers of ranked rows never disagree with the strict one: what they accept, it accepts as the same row."""

from __future__ import annotations

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

from tripos.contracts.retrieval import RankedRow
from tripos.errors import Findings, InputError, Place
from tripos.files import ranked
from tripos.files.jsonl import parsed
from tripos.files.quick import quick_flat, quick_row
from tripos.files.ranked import read_ranked

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
MAX_RANK = 1_000_000_000
PLACE = Place("r.jsonl", 2)
GOOD, BAD = "0123456789abcdef" * 4, "0123456789ABCDEF" * 4

FIRST = {
    "results": b'{"query_id":"first","results":[]}',
    "fragment_ids": b'{"query_id":"first","fragment_ids":[]}',
    "fragment_id": b'{"query_id":"first","fragment_id":"a","rank":1}',
}
"""A plain first line of each form: the quick reader is tried from the second line on."""


# ---- both readers, through files


@contextmanager
def strict_only() -> Iterator[None]:
    """Both quick readers switched off."""
    with mock.patch.object(ranked, "quick_row", return_value=None), mock.patch.object(ranked, "quick_flat", return_value=None):
        yield


Told = tuple[Any, ...]


def told(row: RankedRow) -> Told:
    """What a row says, whatever kind of list it holds; −0 and 0 are apart."""
    scores = None if row.scores is None else [repr(float(score)) if exact(score) else score for score in row.scores]
    ranks = None if row.ranks is None else list(row.ranks)
    stamps = (row.corpus_digest, row.policy_digest)
    latency = None if row.latency_ms is None else float(row.latency_ms)  # as its slot keeps it; no digest covers it
    given = (latency, row.error, *stamps, None if row.sources is None else list(row.sources))
    return (row.query_id, list(row.fragment_ids), scores, ranks, *given, row.place.line)


def exact(score: float) -> bool:
    """Whether the number is the same one as a double; an int 0 stands for −0 as well."""
    return bool(score) and float(score) == score


def read(content: bytes, **options: bool) -> tuple[list[Told], list[str], dict[str, int]]:
    """Rows, faults and counts of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        path.write_bytes(content)
        findings = Findings()
        try:
            rows = [told(row) for row in read_ranked(str(path), findings, **options)]
        except InputError as error:
            return [], [str(error).replace(folder, "")], {}
        return rows, [f"{f.kind} {f}".replace(folder, "") for f in findings.errors], findings.let_pass


def strictly(content: bytes, **options: bool) -> tuple[list[Told], list[str], dict[str, int]]:
    """The same, by the strict reader alone."""
    with strict_only():
        return read(content, **options)


# ---- lines with every oddity, spelt as text so that nothing is put right on the way

PLAIN_IDS = ['"a"', '"b::f1"', '"é"', '"日本"', '" "', '"x y"', '"😀"', '"\x7f"', '"\u2028"', f'"{"long" * 500}"']
NAMES_AS_IDS = ['"fragment_id"', '"score"', '"scores"', '"results"', '"query_id"', '"rank"', '"latency_ms"', '"error"']
COLONS = ['":"', '":x"', '" :"', '": "', '",x"', '"{}"', '"[]"', '"\'"']
ODD_STRINGS = [
    '""',
    '"\\u0061"',
    '"a\\"b"',
    '"\\u0000"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\/"',
    '"\t"',
    '"\\x"',
    '"\\u0022score\\u0022:"',
]
ODD_VALUES = ["1", "null", "true", "{}", "[]", '["a"]', '{"query_id":"z"}', '{"fragment_id":"z"}', "1.5", '"0.5"', "NaN", ""]
PLAIN_NUMBERS = [
    "1",
    "0.9",
    "0.5",
    "0.50",
    "5e-1",
    "0.25",
    "0",
    "0.0",
    "-1",
    "2",
    "1e-300",
    "5e-324",
    "1E2",
    "1e308",
    "0.1",
    "0.30000000000000004",
]
ODD_NUMBERS = [
    "-0",
    "-0.0",
    "1e999",
    "-1e999",
    "1" + "0" * 400,
    "18446744073709551617",
    "-9223372036854775809",
    "01",
    "1.",
    ".5",
    "+1",
    "Infinity",
    "-NaN",
    "0x1",
    "1e-999",
]
BIG_NUMBERS = ["9007199254740993", "-9007199254740993", "9223372036854775809", "18446744073709551615"]
"""Whole numbers that no double holds."""
SPACES = ["", "", "", " ", "  ", "\t", "\r", " \t "]
STRINGS = st.sampled_from([*PLAIN_IDS * 4, *NAMES_AS_IDS, *COLONS, *ODD_STRINGS, *ODD_VALUES])
NUMBERS = st.sampled_from([*PLAIN_NUMBERS * 3, *ODD_NUMBERS, *BIG_NUMBERS, "null", "true", '"1"', '"a"', "[1]", "{}"])
RANKS = st.sampled_from(
    [
        "1",
        "2",
        "3",
        "7",
        "1",
        "2",
        "0",
        "-1",
        "1.0",
        "1e0",
        "true",
        "null",
        '"1"',
        "18446744073709551617",
        "9223372036854775808",
    ]
)
ERRORS = st.sampled_from(["null", '"timeout"', '""', '"é"', '"score"', '"\\n"', "1", "false", "[]"])
DIGESTS = st.sampled_from([f'"{GOOD}"'] * 3 + ["null", f'"{BAD}"', f'"{GOOD}\\n"', f'"{GOOD[:-1]}"', f'"{GOOD}0"', '""', "1"])
METADATA = st.sampled_from(["{}", '{"score":1}', '{"results":[]}', '{"a":{"a":1,"a":2}}', "null", "[]", '{"query_id":"z"}'])
Pair = tuple[str, str]


def rarely(draw: st.DrawFn, one_in: int = 12) -> bool:
    """True once in a while; shrinks to False."""
    return draw(st.integers(0, one_in - 1)) == one_in - 1


@st.composite
def objects(draw: st.DrawFn, pairs: Sequence[Pair]) -> str:
    """The pairs as an object: sometimes in another order, a key twice or escaped or unknown, odd spaces."""
    own = list(pairs)
    if own and rarely(draw, 6):
        own.insert(draw(st.integers(0, len(own))), draw(st.sampled_from(own)))
    if rarely(draw):
        odd = [("extra", "1"), ("fragmentid", '"a"'), ("id", '"a"'), ("score", "1"), ("scores", "[]"), ("fragment_id", '"x"')]
        own.insert(draw(st.integers(0, len(own))), draw(st.sampled_from(odd)))
    if own and rarely(draw):
        own.pop(draw(st.integers(0, len(own) - 1)))
    if rarely(draw, 4):
        own = draw(st.permutations(own))
    loose = rarely(draw, 4)
    gap = st.sampled_from(SPACES) if loose else st.just("")
    parts = []
    for key, value in own:
        name = f"\\u{ord(key[0]):04x}{key[1:]}" if rarely(draw, 25) else key
        parts.append(f'{draw(gap)}"{name}"{draw(gap)}:{draw(gap)}{value}{draw(gap)}')
    return "{" + ",".join(parts) + "}"


@st.composite
def numbers(draw: st.DrawFn, n: int) -> list[str]:
    """Scores: falling as a rule, so that the other checks are reached."""
    drawn = [draw(NUMBERS) for _ in range(n)]
    if draw(st.booleans()):
        drawn = [draw(st.sampled_from(PLAIN_NUMBERS)) for _ in range(n)]
    return drawn if rarely(draw, 4) else sorted(drawn, key=value_of, reverse=True)


def value_of(text: str) -> float:
    """Any literal as a number, for sorting alone."""
    try:
        return float(text)
    except ValueError:
        return 0.0


@st.composite
def shared(draw: st.DrawFn) -> list[Pair]:
    """Some of the fields beside the lists."""
    strategies = [("latency_ms", NUMBERS), ("error", ERRORS), ("corpus_digest", DIGESTS), ("policy_digest", DIGESTS)]
    if draw(st.booleans()):
        return []
    own = [(name, draw(of)) for name, of in strategies if draw(st.booleans())]
    return [*own, ("metadata", draw(METADATA))] if rarely(draw) else own


@st.composite
def nested_lines(draw: st.DrawFn) -> bytes:
    """A nested line; items with other fields, or fields that not all of them have."""
    n = draw(st.integers(0, 4))
    scores = draw(numbers(n))
    has_scores, items = draw(st.booleans()), []
    for score in scores:
        pairs = [("fragment_id", draw(STRINGS))]
        if has_scores != rarely(draw, 20):
            pairs.append(("score", score))
        if rarely(draw, 20):
            pairs.append(draw(st.sampled_from([("rank", "1"), ("source_id", '"s"'), ("collection", '"c"'), ("score", "1")])))
        items.append(draw(objects(pairs)))
    if rarely(draw, 20):
        items.append(
            draw(st.sampled_from(["null", "1", '"fragment_id"', "[]", '["fragment_id"]', "{}", '[{"fragment_id":"a"}]']))
        )
    value = "[" + ",".join(items) + "]"
    if rarely(draw, 20):
        value = draw(st.sampled_from(["null", "{}", '"results"', '{"fragment_id":"a"}', "0"]))
    return draw(objects([("query_id", draw(STRINGS)), ("results", value), *draw(shared())])).encode()


@st.composite
def columnar_lines(draw: st.DrawFn) -> bytes:
    """A columnar line; lists that are no lists, or not of one length."""
    n = draw(st.integers(0, 4))
    ids = "[" + ",".join(draw(STRINGS) for _ in range(n)) + "]"
    m = n if not rarely(draw, 15) else draw(st.integers(0, 4))
    scores = "[" + ",".join(draw(numbers(m))) + "]"
    pairs = [("query_id", draw(STRINGS)), ("fragment_ids", ids)]
    if draw(st.booleans()):
        pairs.append(
            ("scores", scores if not rarely(draw, 15) else draw(st.sampled_from(["null", "{}", "1", '"x"', "[null]"])))
        )
    return draw(objects([*pairs, *draw(shared())])).encode()


@st.composite
def flat_lines(draw: st.DrawFn) -> bytes:
    """A flat line."""
    pairs = [("query_id", draw(STRINGS)), ("fragment_id", draw(STRINGS)), ("rank", draw(RANKS))]
    if draw(st.booleans()):
        pairs.append(("score", draw(NUMBERS)))
    return draw(objects(pairs)).encode()


LINES = {"results": nested_lines(), "fragment_ids": columnar_lines(), "fragment_id": flat_lines()}
FORMS = list(LINES)

# ---- the properties


@pytest.mark.parametrize("form", ["results", "fragment_ids"])
@given(data=st.data())
@settings(SETTINGS, max_examples=200)
def test_a_row_that_the_quick_reader_gives_is_the_strict_one(form: str, data: st.DataObject) -> None:
    line = data.draw(LINES[form])
    quick = quick_row(line, PLACE)
    if quick is None:
        return
    rows, faults, _ = strictly(FIRST[form] + b"\n" + line + b"\n")
    assert faults == []
    assert rows[-1] == told(quick)
    scores = list(quick.scores or ())
    assert quick.in_order == (scores == sorted(scores, reverse=True))


@given(flat_lines())
@settings(SETTINGS, max_examples=400)
@example(b'{"query_id":"q","fragment_id":"a","rank":1,"rank":2}')
@example(b'{"query_id":":","fragment_id":"a","rank":1,"rank" :2}')
def test_a_flat_line_that_the_quick_reader_gives_is_the_strict_one(line: bytes) -> None:
    quick = quick_flat(line)
    if quick is None:
        return
    name, fragment, rank, score = quick
    rows, faults, _ = strictly(FIRST["fragment_id"] + b"\n" + line + b"\n")
    assert faults == []
    row = RankedRow(Place("r", 2), name, [fragment], None if score is None else [score], ranks=[rank])
    if name == "first":
        row = RankedRow(Place("r", 1), name, ["a", fragment], ranks=[1, rank])
    assert rows[-1] == told(row)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(SETTINGS, max_examples=50)
def test_a_whole_file_is_read_alike(form: str, data: st.DataObject) -> None:
    kinds = [LINES[form]] * 4 + [LINES[data.draw(st.sampled_from(FORMS))]]
    lines = [FIRST[form], *data.draw(st.lists(st.one_of(kinds), min_size=1, max_size=6))]
    ends = [data.draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n"])) for _ in lines]
    content = b"".join(line + end for line, end in zip(lines, ends, strict=True))
    if data.draw(st.booleans()):
        content = content.rstrip()
    options = dict.fromkeys(data.draw(st.sampled_from([[], [], ["lenient"], ["allow_extra"]])), True)
    assert read(content, **options) == strictly(content, **options)


# ---- the quick readers are no empty promise: what they are made for they take


@st.composite
def plain_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row as any writer makes it."""
    ids = draw(st.lists(st.sampled_from([json.loads(name) for name in PLAIN_IDS]), max_size=5))
    scores = sorted(draw(st.lists(st.floats(-1e9, 1e9), min_size=len(ids), max_size=len(ids))), reverse=True)
    row: dict[str, Any] = {"query_id": draw(st.sampled_from(["q", "é", "q 1"]))}
    has_scores = draw(st.booleans())
    if draw(st.booleans()):
        row["fragment_ids"] = ids
        row |= {"scores": scores} if has_scores else {}
    else:
        items = [
            {"fragment_id": name} | ({"score": score} if has_scores else {}) for name, score in zip(ids, scores, strict=True)
        ]
        row["results"] = items
    more = {"latency_ms": 1.5, "error": None, "corpus_digest": GOOD, "policy_digest": GOOD}
    return row | {name: more[name] for name in draw(st.lists(st.sampled_from(list(more)), unique=True))}


@given(plain_rows(), st.sampled_from([(",", ":"), (", ", ": ")]))
@settings(SETTINGS, max_examples=60)
def test_plain_rows_are_read_quickly(row: dict[str, Any], separators: tuple[str, str]) -> None:
    quick = quick_row(json.dumps(row, ensure_ascii=False, separators=separators).encode(), PLACE)
    assert quick is not None
    items = row.get("results")
    ids = row["fragment_ids"] if items is None else [item["fragment_id"] for item in items]
    scores = row.get("scores") if items is None else [item["score"] for item in items if "score" in item]
    assert (quick.query_id, list(quick.fragment_ids), list(quick.scores or ())) == (row["query_id"], ids, scores or [])
    assert (quick.latency_ms, quick.error, quick.in_order) == (row.get("latency_ms"), None, True)
    assert (quick.corpus_digest, quick.policy_digest) == (row.get("corpus_digest"), row.get("policy_digest"))


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
@pytest.mark.parametrize("score", [{}, {"score": 0.5}, {"score": 1}, {"score": None}])
def test_plain_flat_lines_are_read_quickly(score: dict[str, Any], separators: tuple[str, str]) -> None:
    row = {"rank": 3, "query_id": "é", "fragment_id": "a"} | score
    line = json.dumps(row, ensure_ascii=False, separators=separators).encode()
    assert quick_flat(line) == ("é", "a", 3, score.get("score"))


def test_the_quick_readers_are_used() -> None:
    # both properties above would hold for readers that nobody calls
    for form, line in (
        ("results", b'{"query_id":"q","results":[{"fragment_id":"a","score":1.0}]}'),
        ("fragment_ids", b'{"query_id":"q","fragment_ids":["a"]}'),
        ("fragment_id", b'{"query_id":"q","fragment_id":"a","rank":1}'),
    ):
        with mock.patch.object(ranked, "parsed", wraps=parsed) as slow:
            rows, faults, _ = read(FIRST[form] + b"\n" + line + b"\n")
        assert (len(rows), faults, slow.call_count) == (2, [], 1), form


# ---- one oddity each: quick refuses, and the strict reader says what is wrong (or, at the end, that nothing is)

N = '{"query_id":"q","results":[%s]}'
C = '{"query_id":"q","fragment_ids":%s}'
REFUSED = [
    ('{"query_id":"q","query_id":"r","results":[]}', "duplicate_key"),
    ('{"query_id":"q","results":[],"results":[]}', "duplicate_key"),
    ('{"query_id":"q","results":[],"r\\u0065sults":[{"fragment_id":"a"}]}', "duplicate_key"),
    (N % '{"fragment_id":"a","fragment_id":"b"}', "duplicate_key"),
    (N % '{"fragment_id":"a","fragment\\u005fid":"b"}', "duplicate_key"),
    (N % '{"fragment_id":"a","score":1,"score":2}', "duplicate_key"),
    ('{"query_id":"q","error":null,"error":"x","results":[]}', "duplicate_key"),
    ('{"query_id":"q","latency_ms":1,"latency_ms"  :2,"fragment_ids":[]}', "duplicate_key"),
    ('{"query_id":"q","fragment_ids":["a"],"scores":[1],"scores":[2]}', "duplicate_key"),
    ('{"query_id":"q","fragment_ids":["a"],"fragment_ids"\t:["b"]}', "duplicate_key"),
    ('{"query_id":"q","results":[],"fragment_ids":["a"]}', "extra_forbidden"),
    ('{"query_id":"q","results":[],"extra":1}', "extra_forbidden"),
    (N % '{"fragment_id":"a","scor":1}', "extra_forbidden"),
    (N % '{"score":1}', "missing"),
    (N % '{"fragment_id":7}', "string_type"),
    (N % '{"fragment_id":{"fragment_id":"a"}}', "string_type"),
    (N % '"fragment_id"', "model_type"),
    (N % '{"fragment_id":""}', "string_too_short"),
    (N % '{"fragment_id":"a","score":"1"}', "float_type"),
    (N % '{"fragment_id":"a","score":true}', "float_type"),
    (N % '{"fragment_id":"a","score":1},{"fragment_id":"b","score":null}', "scores"),
    (N % '{"fragment_id":"a","score":1},{"fragment_id":"b"}', "scores"),
    (N % '{"fragment_id":"a","score":1e999}', "finite_number"),
    (C % '["a"],"scores":[1,2]', "length"),
    (C % '["a"],"scores":[null]', "float_type"),
    (C % '["a"],"scores":{}', "tuple_type"),
    (C % '"ab"', "tuple_type"),
    (C % '["a\\u0000"]', "value_error"),
    (C % "[null]", "string_type"),
    (C % '[],"latency_ms":-1', "greater_than_equal"),
    (C % '[],"latency_ms":true', "float_type"),
    (C % '[],"latency_ms":"1"', "float_type"),
    (C % '[],"error":1', "string_type"),
    (C % f'[],"corpus_digest":"{BAD}"', "string_pattern_mismatch"),
    (C % f'[],"policy_digest":"{GOOD}0"', "string_pattern_mismatch"),
    ('{"query_id":"","fragment_ids":[]}', "string_too_short"),
    ('{"query_id":7,"fragment_ids":[]}', "string_type"),
    ('[{"query_id":"q","fragment_ids":[]}]', "syntax"),
    ('{"query_id":"q","fragment_ids":[]} {}', "syntax"),
    ('{"query_id":"q","fragment_ids":["a",]}', "syntax"),
    (N % '{"fragment_id":"a","rank":1}', ""),
    (N % '{"fragment_id":"a","source_id":"s"}', ""),
    (N % '{"fragment_id":"a","score":null}', ""),
    (C % '["\\u0061"]', ""),
    (C % '[],"metadata":{"fragment_ids":1}', ""),
]


@pytest.mark.parametrize(("line", "kind"), REFUSED)
def test_what_is_odd_is_left_to_the_strict_reader(line: str, kind: str) -> None:
    assert quick_row(line.encode(), PLACE) is None
    form = "results" if '"results"' in line else "fragment_ids"
    rows, faults, _ = read(FIRST[form] + b"\n" + line.encode() + b"\n")
    assert [fault.split()[0] for fault in faults][:1] == ([kind] if kind else [])
    assert len(rows) >= (1 if kind else 2)


FLAT = '{"query_id":"q","fragment_id":"a",%s}'
REFUSED_FLAT = [
    (FLAT % '"rank":1,"rank":2', "duplicate_key"),
    (FLAT % '"rank":1,"r\\u0061nk":2', "duplicate_key"),
    (FLAT % '"rank":1,"score":1,"score" :2', "duplicate_key"),
    (FLAT % '"rank":0', "greater_than_equal"),
    (FLAT % '"rank":1e3', "int_type"),
    (FLAT % '"rank":1.0', "int_type"),
    (FLAT % '"rank":true', "int_type"),
    (FLAT % '"rank":"1"', "int_type"),
    (FLAT % '"rank":null', "int_type"),
    (FLAT % '"rank":1,"score":"1"', "float_type"),
    (FLAT % '"rank":1,"score":false', "float_type"),
    (FLAT % '"rank":1,"score":1e999', "finite_number"),
    (FLAT % '"rank":1,"extra":1', "extra_forbidden"),
    (FLAT % '"score":1', "missing"),
    (FLAT % '"rank":1,"score":0.5,"collection":"c"', "extra_forbidden"),
    ('{"query_id":["q"],"fragment_id":"a","rank":1}', "string_type"),
    ('{"query_id":"q","fragment_id":"","rank":1}', "string_too_short"),
    ('{"query_id":"q","fragment_id":"a\\u0000","rank":1}', "value_error"),
    ('["query_id","fragment_id","rank"]', "syntax"),
    ('{"query_id":"q","fragment_id":"\\u0061","rank":1}', ""),
    ('{"query_id":"q","fragment_id":"a","rank":18446744073709551617}', "less_than_equal"),
]


@pytest.mark.parametrize(("line", "kind"), REFUSED_FLAT)
def test_what_is_odd_in_a_flat_line_is_left_to_the_strict_reader(line: str, kind: str) -> None:
    assert quick_flat(line.encode()) is None
    _, faults, _ = read(FIRST["fragment_id"] + b"\n" + line.encode() + b"\n")
    assert [fault.split()[0] for fault in faults] == ([kind] if kind else [])


@pytest.mark.parametrize("name", ["fragment_id", "score", "results", "query_id", ":", '":x', "rank"])
def test_a_name_inside_an_id_changes_nothing(name: str) -> None:
    ids = [name, f"x{name}", f"{name}::f1"]
    rows: list[dict[str, Any]] = [
        {"query_id": name, "results": [{"fragment_id": i, "score": 1.0} for i in ids]},
        {"query_id": name, "fragment_ids": ids, "scores": [1.0] * 3},
    ]
    for form, row in zip(("results", "fragment_ids"), rows, strict=True):
        content = FIRST[form] + b"\n" + json.dumps(row).encode() + b"\n"
        read_rows, faults, _ = read(content)
        assert (read_rows[1][:2], faults) == ((name, ids), [])


# ---- faults found; each disagrees with the strict reader


@pytest.mark.parametrize("space", ["  ", "\t", " \t", "\r"])
def test_a_repeated_key_with_space_before_its_colon(space: str) -> None:
    line = f'{{"query_id":"q","fragment_id":"a","rank":1,"rank"{space}:2}}'.encode()
    content = FIRST["fragment_id"] + b"\n" + line + b"\n"
    assert strictly(content)[1] == ["duplicate_key /r.jsonl:2  rank  is given twice in one object: keep one"]
    assert read(content) == strictly(content)


def test_an_empty_list_with_empty_scores() -> None:
    content = FIRST["fragment_ids"] + b'\n{"query_id":"q","fragment_ids":[],"scores":[]}\n'
    assert read(content) == strictly(content)


@pytest.mark.parametrize("form", ["results", "fragment_ids"])
def test_an_empty_error(form: str) -> None:
    content = FIRST[form] + f'\n{{"query_id":"q","{form}":[],"error":""}}\n'.encode()
    assert read(content) == strictly(content)


def test_a_rank_beyond_the_largest() -> None:
    content = FIRST["fragment_id"] + f'\n{{"query_id":"q","fragment_id":"a","rank":{MAX_RANK + 1}}}\n'.encode()
    assert read(content) == strictly(content)


ROUND, MORE = 2**53, 2**53 + 1
"""One number as doubles; apart as whole numbers."""


@pytest.mark.parametrize("order", [(MORE, ROUND), (ROUND, MORE)], ids=["falling", "rising"])
@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_beyond_two_to_the_53rd(form: str, order: tuple[int, int]) -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "results": [{"query_id": "q", "results": [{"fragment_id": n, "score": s} for n, s in zip("ab", order, strict=True)]}],
        "fragment_ids": [{"query_id": "q", "fragment_ids": ["a", "b"], "scores": list(order)}],
        "fragment_id": [{"query_id": "q", "fragment_id": n, "rank": i, "score": order[i - 1]} for i, n in enumerate("ab", 1)],
    }
    content = FIRST[form] + b"".join(b"\n" + json.dumps(row).encode() for row in rows[form]) + b"\n"
    assert read(content) == strictly(content)
