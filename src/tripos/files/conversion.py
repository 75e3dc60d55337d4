"""Ranked results between JSONL and Parquet, losing nothing: order, errors, latencies, digests and metadata stay."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import orjson

from tripos.contracts.base import Contract
from tripos.contracts.retrieval import ColumnarResults, FlatResult, NestedResults
from tripos.errors import Findings, Place, UsageError
from tripos.files.formats import parquet, parquet_rows
from tripos.files.jsonl import read_rows, write_lines, write_rows
from tripos.files.ranked import FORMS, is_parquet
from tripos.files.streams import whole

Form = Literal["nested", "columnar", "flat"]

_ITEM = {"source_ids": "source_id", "ranks": "rank", "scores": "score", "collections": "collection"}
_LISTS = {"fragment_ids": "fragment_id", **_ITEM}


def convert_ranked(source: str, target: str, form: Form | None = None) -> tuple[int, str]:
    """Convert a file; returns how many rows were written, and the form.

    JSONL to Parquet keeps the form beside the rows. Parquet to JSONL writes that form again, unless another is asked for.
    Raises InputError with every fault of the source, UsageError where the pair makes no conversion.
    """
    if is_parquet(source):
        if is_parquet(target):
            raise UsageError("both files are Parquet: name one of them .jsonl")
        return _to_jsonl(source, target, form)
    if not target.endswith(".parquet"):
        return _reformed(source, target, form)
    return _to_parquet(source, target, form)


def _to_parquet(source: str, target: str, form: Form | None) -> tuple[int, str]:
    findings = Findings()
    own, rows = _read(source, findings)
    if form is not None and (form == "flat") != (own == "flat"):
        raise UsageError(f"{source} is {own}: --form {form} would lose what one of them cannot say; convert without --form")
    with tempfile.TemporaryDirectory(prefix="tripos-") as folder:
        made = f"{folder}/made.parquet"
        flattened = _flattened(rows, own, findings)
        n = parquet.write_parquet(made, _columnar(flattened, form or own), form or own, folder)
        findings.raise_errors()
        with whole(target) as stream, Path(made).open("rb") as written:
            while chunk := written.read(1 << 20):
                stream.write(chunk)
    return n, form or own


def _to_jsonl(source: str, target: str, form: Form | None) -> tuple[int, str]:
    table = parquet.table_of(source)
    stored = parquet.stored_form(source) or ("flat" if table.layout == "flat" else "columnar")
    chosen: str = form or stored
    if (chosen == "flat") != (table.layout == "flat"):
        raise UsageError(f"{source} is {table.layout}: --form {chosen} would lose what one of them cannot say")
    findings = Findings()
    stored_content = parquet_rows.stored_rows(source, table, stored, findings)
    made = map(_nested, stored_content) if chosen == "nested" else _columnar(stored_content, chosen)
    with whole(target) as stream:
        n = write_lines(stream, made)
        findings.raise_errors()
    return n, chosen


def _reformed(source: str, target: str, form: Form | None) -> tuple[int, str]:
    """JSONL in another form."""
    findings = Findings()
    own, rows = _read(source, findings)
    chosen = form or own
    if (chosen == "flat") != (own == "flat"):
        raise UsageError(f"{source} is {own}: --form {chosen} would lose what one of them cannot say")
    lists = list(_flattened(rows, own, findings))
    findings.raise_errors()
    for row in lists:
        if "metadata" in row:
            row["metadata"] = orjson.loads(row["metadata"])
    return write_rows(target, map(_nested, lists) if chosen == "nested" else _columnar(lists, chosen)), chosen


def _read(source: str, findings: Findings) -> tuple[Form, Iterator[tuple[Place, Contract]]]:
    """The form of a file, told by its first good row, and its rows; faults are noted."""
    rows = read_rows(source, _model, findings)
    first = next(rows, None)
    if first is None:
        findings.raise_errors()
    names: dict[type[Contract] | None, Form] = {NestedResults: "nested", ColumnarResults: "columnar", FlatResult: "flat"}
    kind = None if first is None else type(first[1])
    form = names.get(kind, "columnar")

    def all_of_them() -> Iterator[tuple[Place, Contract]]:
        if first is not None:
            yield first
        for place, row in rows:
            if type(row) is kind:
                yield place, row
            else:
                text = f"is {names[type(row)]}, but the file began {form}: one form a file"
                findings.error("unknown_form", place, "", text)

    return form, all_of_them()


def _model(value: dict[str, Any]) -> type[Contract] | str:
    name = next((field for field in FORMS if field in value), None)
    return FORMS[name] if name else "has none of results, fragment_ids and fragment_id: this is no ranked result"


def _flattened(rows: Iterable[tuple[Place, Contract]], form: Form, findings: Findings) -> Iterator[dict[str, Any]]:
    """Rows with lists in place of items, what was not given left out, and metadata as JSON text."""
    for place, row in rows:
        given = {k: v for k, v in row.model_dump(mode="json").items() if v is not None and k in row.model_fields_set}
        try:
            if "metadata" in given:
                given["metadata"] = orjson.dumps(given["metadata"]).decode()
        except TypeError:
            findings.error("metadata", place, "metadata", "holds a whole number beyond 64 bits: write it as a string")
            continue
        if form == "nested":
            items = given.pop("results")
            given["fragment_ids"] = [item["fragment_id"] for item in items]
            for name, field in _ITEM.items():
                values = [item[field] for item in items]
                if any(value is not None for value in values):
                    given[name] = values
        yield given


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of lists as a row of items; what an item does not give is left out."""
    n = len(row["fragment_ids"])
    columns = {field: row[name] for name, field in _LISTS.items() if row.get(name) is not None}
    items = [{field: values[k] for field, values in columns.items() if values[k] is not None} for k in range(n)]
    rest = {name: value for name, value in row.items() if name not in _LISTS}
    return {"query_id": rest.pop("query_id"), "results": items, **rest}


def _columnar(rows: Iterable[Mapping[str, Any]], form: str) -> Iterator[Mapping[str, Any]]:
    """Rows of lists; a nested row that gave ranks, sources or collections cannot be columnar."""
    for row in rows:
        if form == "columnar" and (odd := [name for name in ("ranks", "source_ids", "collections") if name in row]):
            raise UsageError(f'query "{row["query_id"]}" gives {odd[0]}, which the columnar form cannot: use --form nested')
        if form == "columnar" and None in row.get("scores", ()):
            raise UsageError(f'query "{row["query_id"]}" scores some results alone, which the columnar form cannot: give all')
        yield row
