"""configs/baseline.yaml: written by one command, read by many, committed like code."""

from __future__ import annotations

from pathlib import Path

import orjson

from tripos.contracts.baseline import Baseline
from tripos.files.configs import read_model
from tripos.files.streams import all_whole

_HEAD = """\
# The runs that later ones are held against, one a layer. Written by tripos baseline pin; commit it, so that moving the
# baseline is a reviewed change.
"""


def read_pins(path: str) -> Baseline:
    """The pins in a file; none where there is no file."""
    return read_model(path, Baseline) if Path(path).is_file() else Baseline()


def write_pins(path: str, pins: Baseline) -> None:
    """Write the file, whole or not at all; strings are quoted as in JSON, which YAML reads as they are."""
    lines = [_HEAD]
    for layer, pin in pins.model_dump(mode="json").items():
        if pin is not None:
            lines.append(f"{layer}:\n")
            lines += [f"  {key}: {orjson.dumps(value).decode()}\n" for key, value in pin.items() if value is not None]
    with all_whole(Path(path)) as (stream,):
        stream.write("".join(lines).encode())
