"""Runs by the names that people give them: report files, folders of reports, `.`, `baseline`, and what a store knows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tripos.across.again import evaluated_again, load_report
from tripos.across.common import check_repeats
from tripos.across.runs import FILES, found_in
from tripos.across.sides import Rows, Side
from tripos.across.stored import rescored, stored_rows
from tripos.across.tables import header_of
from tripos.contracts.baseline import Baseline, Pin
from tripos.contracts.explanation import Layer
from tripos.errors import NotComparable, UsageError, quoted
from tripos.files.configs import read_model
from tripos.runners.settings import Report
from tripos.store.reading import Store

LAYERS: tuple[Layer, ...] = ("retrieval", "generation", "corpus")
BASELINE, HERE = "baseline", "."


@dataclass
class Places:
    """Where runs are looked for.

    store: folder of the run history; it need not exist. run: what `.` means. pins: the file that `baseline` is read from.
    judgments: today's judgments, where runs are to be scored by them.
    """

    store: str
    run: str
    pins: str
    judgments: str | None = None

    @cached_property
    def history(self) -> Store:
        """The store; raises UsageError where there is none."""
        if not Path(self.store).is_dir():
            raise UsageError(f"there is no store at {self.store}: name a report file, or the store with --store or --config")
        return Store(self.store)

    @cached_property
    def baseline(self) -> Baseline:
        """The pinned runs; raises UsageError where there is no such file."""
        if not Path(self.pins).is_file():
            raise UsageError(f"there is no {self.pins}: tripos baseline pin RUN --why … writes it")
        return read_model(self.pins, Baseline)

    def pin(self, layer: Layer) -> Pin:
        """The pin of a layer; raises UsageError where it has none."""
        pin = self.baseline.of(layer)
        if pin is None:
            raise UsageError(f"{self.pins} pins no {layer} run: tripos baseline pin RUN --why …")
        return pin


def sides(given: Sequence[str | tuple[str, ...]], places: Places, layer: Layer | None = None) -> list[Side]:
    """Every side with its rows.

    Args:
        given: A name each: RUN, or RUN,RUN,… for repeats of one system; or the repeats themselves.
        places: Where to look.
        layer: Of which layer; default: the one that all the names have, retrieval first.

    Raises:
        UsageError: A name that means no run.
        NotComparable: Names of different layers, or repeats of different systems.
    """
    names = [parts(text) if isinstance(text, str) else [name for one in text for name in parts(one)] for text in given]
    layer = layer or common_layer([name for own in names for name in own], places)
    found = [Side(",".join(own), tuple(rows_of(name, places, layer) for name in own)) for own in names]
    for side in found:
        check_repeats(side)
    return found


def parts(text: str) -> list[str]:
    """The repeats of one side; a file or folder with a comma in its name is one run."""
    if _exists(text):
        return [text]
    if parts := [part for part in text.split(",") if part]:
        return parts
    raise UsageError(f'"{text}" names no run')


def _exists(name: str) -> bool:
    """Whether a name is a path; one too long to be one is none."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def is_pin(name: str) -> bool:
    """Whether a name means the pinned run."""
    return name == BASELINE and not _exists(name)


def common_layer(names: Iterable[str], places: Places) -> Layer:
    """The first layer that all the names have a run of."""
    every = list(names)
    own = [layers_of(name, places) for name in every]
    for layer in LAYERS:
        if all(layer in found for found in own):
            return layer
    told = "; ".join(f"{name}: {', '.join(found) or 'no run'}" for name, found in zip(every, own, strict=True))
    raise NotComparable(f"the runs are of different layers, which are never compared ({told})")


def layers_of(name: str, places: Places) -> list[Layer]:
    """The layers that a name can mean a run of; raises UsageError for one that means nothing."""
    if is_pin(name):
        return [layer for layer in LAYERS if places.baseline.of(layer) is not None]
    if reports := reports_at(name, places):
        return list(reports)
    _refuse_path(name, places)
    if name.startswith("latest"):
        return [layer for layer in LAYERS if places.history.executions(layer)]
    labelled = [one.layer for one in places.history.executions() if name in one.labels]
    return list(dict.fromkeys(labelled)) or [places.history.run(places.history.resolve(name)).layer]


def _refuse_path(name: str, places: Places) -> None:
    """Raise UsageError for what no store can have: a path that is not there; and for anything else where there is no store."""
    if not _exists(name) and ("/" in name or name.endswith(".json")):
        raise UsageError(f"there is no file {quoted(name)}")
    if not Path(places.store).is_dir():
        what = "holds no report" if _exists(name) else "is no file"
        raise UsageError(f'"{quoted(name)}" {what}, and there is no store at {places.store} to look it up in')


def reports_at(name: str, places: Places) -> dict[Layer, str]:
    """The reports that a path means, by layer: the file itself, or those that a folder or a run folder holds."""
    if not _exists(name):
        return {}
    path = Path(name)
    if path.is_file():
        return {header_of(load_report(name)).layer: name}
    if not path.is_dir():
        return {}
    beside = {layer: path / Path(file).name for layer, (file, _) in FILES.items()}
    own = {layer: str(file) for layer, file in beside.items() if file.is_file()}
    return own or found_in(name) or (found_in(places.run) if name == HERE else {})


def rows_of(name: str, places: Places, layer: Layer) -> Rows:
    """The rows of one run."""
    reports = {} if is_pin(name) else reports_at(name, places)
    if reports:
        if layer not in reports:
            raise NotComparable(f"{name} holds no {layer} report")
        return evaluated_again(reports[layer], places.judgments)
    if name == BASELINE:
        return _pinned(places, layer)
    return _stored(places.history.resolve(name, layer), places)


def report_of(name: str, places: Places, layer: Layer) -> Report:
    """The report of one run as it stands, without measuring anything again."""
    reports = {} if is_pin(name) else reports_at(name, places)
    if reports and layer not in reports:
        raise NotComparable(f"{name} holds no {layer} report")
    if not is_pin(name) and not reports:
        _refuse_path(name, places)
    pin = places.pin(layer) if is_pin(name) else None
    path = pinned_report(places, pin) if pin else reports.get(layer)
    if path:
        return load_report(path)
    return places.history.run(pin.run if pin else places.history.resolve(name, layer)).report


def _stored(run_id: str, places: Places) -> Rows:
    if places.judgments is not None:
        return rescored(places.history, run_id, places.judgments)
    return stored_rows(places.history, run_id)


def _pinned(places: Places, layer: Layer) -> Rows:
    pin = places.pin(layer)
    path = pinned_report(places, pin)
    return evaluated_again(path, places.judgments) if path else _stored(pin.run, places)


def pinned_report(places: Places, pin: Pin) -> str | None:
    """The report that a run was pinned from, where it still is that run; None: the store has it.

    Raises UsageError where neither has it any longer.
    """
    if Path(places.store).is_dir() and pin.run in places.history.run_ids():
        return None
    path = str(Path(places.pins).parent / pin.report) if pin.report else ""
    if path and Path(path).is_file() and load_report(path).run_id == pin.run:
        return path
    state = "is another run now" if path and Path(path).is_file() else "is gone"
    now = f", and {os.path.normpath(path)} {state}" if path else ""
    text = f"baseline {pin.run[:12]} is in no store at {places.store}{now}: evaluate with a store, or pin a run that is kept"
    raise UsageError(text)
