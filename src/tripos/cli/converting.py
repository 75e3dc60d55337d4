"""`tripos convert`: ranked results between JSONL and Parquet."""

from __future__ import annotations

import enum
import sys
from typing import Annotated

import typer

from tripos.cli.options import AllErrors


class Form(enum.StrEnum):
    """How ranked results are written as JSONL."""

    nested = "nested"
    columnar = "columnar"
    flat = "flat"


def convert(
    source: Annotated[str, typer.Argument(help="Ranked results: JSONL (also .gz, .zst), or .parquet.")],
    target: Annotated[str, typer.Argument(help="Where they go; .parquet makes Parquet, all else JSONL.")],
    form: Annotated[Form | None, typer.Option(help="Form of the JSONL written. [default: as before the conversion]")] = None,
    all_errors: AllErrors = False,
) -> None:
    """Turn ranked results from JSONL into Parquet and back, losing nothing."""
    from tripos.files.conversion import convert_ranked

    del all_errors  # read where errors are told
    n, made = convert_ranked(source, target, None if form is None else form.value)
    print(f"{n:,} rows, {made} → {target}", file=sys.stderr)
