"""The command lines that accept a file or mend it: Tripos commands, and jq programs run over its rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from tripos.curate.recognise import Container, Look

SPLIT_CSV = "import csv,json,sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin, delimiter={separator!r})]"


def field(name: str) -> str:
    """The jq path of a field."""
    return f".{name}" if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f".[{json.dumps(name, ensure_ascii=False)}]"


def jq(look: Look, steps: Sequence[str], *, slurp: bool = False) -> str:
    """The shell line that runs the steps over every row of the file, and writes JSONL beside it.

    Args:
        look: The file; however its rows lie in it, each step sees one row.
        steps: jq filters, applied in order.
        slurp: The first step sees a list of all rows, and gives rows.
    """
    steps = [step for step in steps if step != "."]
    program = " | ".join([step for step in (_rows(look), *steps) if step]) or "."
    if slurp:
        program = " | ".join([f"[{_rows(look) or '.[]'}]", *steps])
    flags = "-sc" if slurp and look.container in (Container.JSONL, Container.CSV) else "-c"
    source, feed = _feed(look)
    return f"{feed}jq {flags} {shlex.quote(program)}{source} > {shlex.quote(mended(look.path))}"


def _rows(look: Look) -> str:
    """The jq filter from the file's one value to its rows; "" where each line is a row."""
    match look.container:
        case Container.ARRAY:
            return ".[]"
        case Container.OBJECT:
            return f"{field(look.inside)}[]" if look.inside else ""
        case Container.MAPPING:
            return "to_entries[] | .value + {query_id: .key}"
        case _:
            return ""


def _feed(look: Look) -> tuple[str, str]:
    """How jq gets the file: as an argument, or through a pipe."""
    path, pipe = shlex.quote(look.path), ""
    if look.path.endswith((".gz", ".zst")):
        pipe = f"{'gzip' if look.path.endswith('.gz') else 'zstd'} -dc {path} | "
    if look.container is Container.CSV:
        split = f"python3 -c {shlex.quote(SPLIT_CSV.format(separator=look.inside))}"
        return "", f"{pipe}{split} | " if pipe else f"{split} < {path} | "
    return ("", pipe) if pipe else (f" {path}", "")


def mended(path: str, what: str = "mended") -> str:
    """The name for the mended copy, or for `what` is made of the file, beside it."""
    place = Path(path)
    stem = place.name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[0] or place.name
    return str(place.with_name(f"{stem}.{what}.jsonl"))


def tripos(command: str, *arguments: str) -> str:
    """A tripos command line."""
    return " ".join(["tripos", command, *map(shlex.quote, arguments)])
