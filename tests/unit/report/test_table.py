"""Rows of a query as a table, JSON and CSV."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tripos.errors import UsageError
from tripos.report.table import csv_lines, json_document, objects, plain_value, render_table


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**63, str(2**63)),
        (0.1, 0.1),
        ("x", "x"),
        (Decimal("1.50"), 1.5),
        (datetime(2026, 11, 30, 20, 7, 44, 691918), "2026-11-30T20:07:44.691918"),
        (date(2026, 11, 30), "2026-11-30"),
        (timedelta(hours=1), "1:00:00"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ([1, [None, "x"]], [1, [None, "x"]]),
        ({"a": Decimal(1)}, {"a": 1.0}),
    ],
)
def test_values_as_json(value: Any, plain: Any) -> None:
    assert plain_value(value) == plain
    assert json.loads(json.dumps(plain_value(value))) == plain


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"x", [float("inf")], {"a": b""}])
def test_what_json_cannot_say_is_told_with_its_column(value: Any) -> None:
    with pytest.raises(UsageError, match='column "x"'):
        plain_value(value, "x")


def test_a_table_is_aligned_and_cut() -> None:
    rows = [("a" * 64, "x" * 70, 1.23456789, None, ["p", "q"]), ("b" * 64, "tab\there", 12.0, True, [])]
    assert render_table(["run_id", "text", "value", "flag", "names"], rows, 3).splitlines() == [
        f"run_id        text{' ' * 60}value  flag  names",
        f"{'a' * 12}  {'x' * 59}…  1.23457  –     p q",
        f"{'b' * 12}  tab\\there{' ' * 51}       12  true",
        "… 1 more row (--csv, --json, --jsonl and --parquet have all)",
        "3 rows",
    ]


def test_no_rows_and_no_columns() -> None:
    assert render_table(["a"], [], 0) == "a\n0 rows\n"
    assert "".join(json_document(objects(["a"], []))) == "[]\n"


def test_csv_quotes_what_it_must() -> None:
    rows = [('say "x", then\ny', None, [1, "a"], float("inf"))]
    assert "".join(csv_lines(["a", "b", "c", "d"], rows)) == 'a,b,c,d\n"say ""x"", then\ny",,"[1,""a""]",inf\n'
