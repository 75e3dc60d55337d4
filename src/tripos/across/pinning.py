"""Pinning a run as the baseline, and whether the pinned runs are still to be had."""

from __future__ import annotations

import os
from pathlib import Path

from tripos.across.named import LAYERS, Places, common_layer, is_pin, pinned_report, report_of, reports_at
from tripos.contracts.baseline import Baseline, Pin
from tripos.contracts.explanation import Layer
from tripos.errors import UsageError
from tripos.runners.settings import Report


def pin_of(name: str, why: str, places: Places, layer: Layer | None) -> tuple[Layer, Pin]:
    """The pin of a run.

    Raises:
        UsageError: No reason is given, the name means no run, or it is `baseline` itself.
    """
    if not why.strip():
        raise UsageError("--why is empty: say why this run is what others must hold up to")
    if is_pin(name):
        raise UsageError("baseline is what is pinned already: name the run, its label or its report")
    chosen = layer or common_layer([name], places)
    report = report_of(name, places, chosen)
    path = reports_at(name, places).get(chosen)
    beside = Path(os.path.relpath(path, Path(places.pins).parent)).as_posix() if path else None
    return chosen, _pin(report, why, beside)


def _pin(report: Report, why: str, path: str | None) -> Pin:
    return Pin(run=report.run_id, why=why, name=report.name, judgments_digest=report.judgments_digest, report=path)


def with_pin(pins: Baseline, layer: Layer, pin: Pin) -> Baseline:
    """The pins with one more, or another one."""
    return pins.model_copy(update={layer: pin})


def is_stored(places: Places, pin: Pin) -> bool:
    """Whether a store keeps the pinned run."""
    return Path(places.store).is_dir() and pin.run in places.history.run_ids()


def kept(places: Places) -> dict[Layer, str]:
    """Where each pinned run is kept, or why it is not to be had."""
    found: dict[Layer, str] = {}
    for layer in LAYERS:
        if pin := places.baseline.of(layer):
            try:
                found[layer] = pinned_report(places, pin) or places.store
            except UsageError as error:
                found[layer] = f"GONE: {error}"
    return found
