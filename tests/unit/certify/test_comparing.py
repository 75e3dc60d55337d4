"""Field by field and row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripos.certify.comparing import differing, rows_file
from tripos.errors import InputError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_equal_values_do_not_differ(value: Any) -> None:
    assert list(differing(value, json.loads(json.dumps(value)))) == []


@given(VALUES, VALUES)
def test_differing_is_symmetric_in_whether_it_differs(one: Any, other: Any) -> None:
    assert bool(list(differing(one, other))) == bool(list(differing(other, one)))


@pytest.mark.parametrize(
    ("found", "again", "told"),
    [
        ({"a": 1.0}, {"a": 1.0 + 2e-9}, ["a: 1.0 in the report, 1.000000002 recomputed"]),
        ({"a": 1.0}, {"a": 1.0 + 5e-10}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1e6}, {"a": 1e6 + 1e-4}, []),
        ({"a": 1}, {"a": True}, ["a: 1 in the report, true recomputed"]),
        ({"a": None}, {}, ["a: null in the report, absent recomputed"]),
        ({}, {"a": "x"}, ['a: absent in the report, "x" recomputed']),
        ({"a": [1, 2]}, {"a": [1]}, ["a: 2 entries in the report, 1 recomputed"]),
        (
            {"hit@k": {"value": [0.1, 0.2]}},
            {"hit@k": {"value": [0.1, 0.3]}},
            ["hit@k.value[1] (k 2): 0.2 in the report, 0.3 recomputed"],
        ),
        (
            {"slices": [{"by": "split", "value": "tune", "rows": 1}]},
            {"slices": [{"by": "split", "value": "tune", "rows": 2}]},
            ["slices[split=tune].rows: 1 in the report, 2 recomputed"],
        ),
        (
            {"gates": [{"name": "hit@8", "threshold": 0.5}]},
            {"gates": [{"name": "hit@8", "threshold": 0.75}]},
            ["gates[hit@8].threshold: 0.5 in the report, 0.75 recomputed"],
        ),
    ],
)
def test_each_difference_names_its_field_and_both_values(found: Any, again: Any, told: list[str]) -> None:
    assert list(differing(found, again)) == told


ROWS = [{"query_id": "a", "n": 1}, {"query_id": "b", "n": 2}]
LINES = [json.dumps(row).encode() + b"\n" for row in ROWS]


@pytest.mark.parametrize(
    "content",
    [
        b"".join(LINES),
        b"".join(LINES[::-1]),
        b"\r\n".join(line.strip().replace(b": ", b":") for line in LINES),
        LINES[0] + b"\n" + LINES[1],
    ],
)
def test_order_and_white_space_are_no_differences(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.jsonl").write_bytes(content)
    found = rows_file(str(tmp_path / "rows.jsonl"), lambda: LINES)
    assert (found.differences, found.fault) == ((), None)
    assert found.digest == rows_file(str(tmp_path / "rows.jsonl"), lambda: LINES[::-1]).digest


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (LINES[0], 'rows.jsonl: the row of "b" is missing'),
        (LINES[0] + LINES[0] + LINES[1], 'rows.jsonl:2: a row of "a" too many'),
        (b"".join(LINES) + b'{"query_id": "c"}\n', 'rows.jsonl:3: a row of "c" too many'),
        (LINES[0] + b'{"query_id": "b", "n": 3}\n', "rows.jsonl:2: b: n: 3 in the file, 2 recomputed"),
        (LINES[0] + b"torn", "rows.jsonl:2: is no row of this file"),
        (LINES[0] + b"[7]\n", "rows.jsonl:2: is no row of this file"),
    ],
)
def test_each_wrong_row_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(content)
    found = rows_file(str(tmp_path / "rows.jsonl"), lambda: LINES)
    assert found.differences[0].removeprefix(f"{tmp_path}/") == told


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    found = rows_file(str(tmp_path / "rows.jsonl"), lambda: LINES)
    assert isinstance(found.fault, InputError)
    assert found.differences == ()
