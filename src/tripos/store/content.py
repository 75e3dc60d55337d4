"""What an evaluation puts into the store, made ready by the layer's own module and written by `writing`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Aggregate, Curve, RetrievalReport
from tripos.errors import InputError
from tripos.files.streams import STDIN
from tripos.store.writer import Rows

Report = RetrievalReport | GenerationReport | CorpusReport


@dataclass(slots=True)
class Content:
    """One evaluation: its report, the rows of its tables, and the clock readings that belong to its execution.

    tables: Rows by table name, of the tables that the layer has, in their fixed order. They are read once, when written.
    measures: Names of the measure columns of `queries`.
    facts: What `runs` tells beyond the report.
    latencies: Milliseconds by query id; complete once the tables were written.
    """

    layer: str
    report: Report
    tables: dict[str, Rows]
    measures: Sequence[str]
    facts: Mapping[str, Any]
    latencies: dict[str, float] = field(default_factory=dict)


def refuse_stdin(paths: Iterable[str | None]) -> None:
    """Raise InputError where an input was standard input: what is stored is read a second time."""
    if STDIN in paths:
        raise InputError.at(STDIN, "standard input cannot be read again, so this run is not stored: evaluate from a file")


def measure_rows(report: Report, layer: str, cutoffs: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Rows of `measures`: all rows at every cutoff, slices at the headline cutoffs."""
    head = {"run_id": report.run_id, "layer": layer}
    for name, figure in report.measures.items():
        yield from ({**head, **row} for row in _figures(name, figure, None))
    for part in report.slices:
        own = {**head, "slice_by": part.by, "slice_value": _text(part.value)}
        for name, figure in part.measures.items():
            yield from ({**own, **row} for row in _figures(name, figure, cutoffs))


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _figures(name: str, figure: Aggregate | Curve, cutoffs: Sequence[int] | None) -> Iterator[dict[str, Any]]:
    shared = {
        "measure": name.removesuffix("@k"),
        "n": figure.n,
        "n_undefined": figure.n_undefined,
        "incomplete": figure.incomplete,
        "undefined": figure.undefined,
    }
    if isinstance(figure, Aggregate):
        yield {**shared, "value": figure.value, "worst": figure.worst, **_interval(figure.ci)}
        return
    for k in cutoffs or range(1, len(figure.value) + 1):
        if k <= len(figure.value):
            ends = _interval(figure.ci.get(str(k)))
            yield {**shared, "k": k, "value": figure.value[k - 1], "worst": figure.worst[k - 1], **ends}


def _interval(ci: Any) -> dict[str, Any]:
    return {} if ci is None else {"ci_low": ci.low, "ci_high": ci.high, "ci_method": ci.method}


def refuse_changed(path: str | None, now: str | None, evaluated: str | None) -> None:
    """Raise InputError where an input, read a second time, is not what was evaluated."""
    if now != evaluated:
        raise InputError.at(path or "", "changed while it was evaluated, so this run is not stored: evaluate again")
