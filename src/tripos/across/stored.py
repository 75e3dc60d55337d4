"""Rows of a run that a store keeps: figures at the headline cutoffs, and rankings that today's judgments can score."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tripos.across.sides import (
    DEFINED,
    FAILED,
    INCOMPLETE,
    PASSED,
    UNDECIDED,
    UNDEFINED,
    Column,
    Header,
    Rows,
    record_of,
)
from tripos.across.tables import header_of, retrieval_rows
from tripos.columns.retrieval import Bools
from tripos.contracts.config import Config, Options
from tripos.contracts.reports import RetrievalReport
from tripos.errors import UsageError
from tripos.measures.paired import Ints
from tripos.runners import retrieval
from tripos.store.reading import QueryValues, Store

_FAILING = {"no_hit", "not_empty"}
_WAITING = {"not_judged", "incomplete"}
_ON_SCORES = ("faithfulness", "qualified", "truthfulness")


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What a store keeps of one judgment."""

    query_id: str
    category: str | None
    split: str | None
    slices: Mapping[str, str | bool | int]
    cluster: str | None


def stored_rows(store: Store, run_id: str) -> Rows:
    """The rows of a stored run; raises InputError where its files cannot be read."""
    run, values = store.run(run_id), store.query_values(run_id)
    header = header_of(run.report)
    kept = zip(values.ids, values.categories, values.splits, values.slices, values.clusters, strict=True)
    judged = [StoredRow(*row) for row in kept]
    complete, positive = np.array(values.complete, dtype=bool), np.array(values.positive, dtype=bool)

    def figures(names: Sequence[str]) -> dict[str, Column]:
        return {name: _column(name, values, header, complete, positive) for name in names}

    cutoffs = tuple(run.cutoffs) if header.layer == "retrieval" else None
    return Rows(header, judged, complete, _passed(values, header), figures, cutoffs=cutoffs)


def _column(name: str, values: QueryValues, header: Header, complete: Bools, positive: Bools) -> Column:
    record = record_of(name, header.layer)
    own = values.measures.get(name)
    if own is None:
        near = ", ".join(sorted(k for k in values.measures if k.partition("@")[0] == name.partition("@")[0]))
        kept = f": it keeps {near}" if near else ""
        raise UsageError(f"the store has no {name} of run {header.run_id[:12]}{kept}; name its report file instead")
    absent = np.array([value is None for value in own], dtype=bool)
    open_rows = _generation_waits(name, values) if header.layer == "generation" else ~complete
    member = _members(record.population, positive)
    state = np.select([~absent, member & open_rows], [DEFINED, INCOMPLETE], default=UNDEFINED)
    return Column(np.array([0.0 if value is None else value for value in own]), state)


def _generation_waits(name: str, values: QueryValues) -> Bools:
    """Rows that could have a value: those without an answer, and, for what rests on scores, those without one."""
    lacking = _WAITING if name in _ON_SCORES else {"incomplete"}
    return np.array([bool(lacking & {*reasons}) for reasons in values.reasons], dtype=bool)


def _members(population: str, positive: Bools) -> Bools:
    """Rows of a measure's population, as far as the judgments tell."""
    if population in ("expected_empty", "unanswerable"):
        return ~positive
    return np.ones(len(positive), dtype=bool) if population == "scored" else positive


def _passed(values: QueryValues, header: Header) -> Ints:
    """By the reasons to be a miss: in retrieval those that say that nothing, or something, was found."""
    verdicts = []
    for complete, reasons in zip(values.complete, values.reasons, strict=True):
        own = {*reasons}
        fails = own & _FAILING if header.layer == "retrieval" else own
        waits = not complete or (header.layer == "generation" and bool(own) and own <= _WAITING)
        verdicts.append(UNDECIDED if waits else FAILED if fails else PASSED)
    return np.array(verdicts, dtype=np.int64)


def rescored(store: Store, run_id: str, judgments: str) -> Rows:
    """The stored rankings of a retrieval run, scored by today's judgments.

    Raises UsageError for a run of another layer, of which a store keeps no outputs.
    """
    report = store.run(run_id).report
    if not isinstance(report, RetrievalReport):
        raise UsageError(
            f"run {run_id[:12]}: a store keeps the rankings of retrieval runs alone: name the report file to rescore"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranked-results.jsonl"
        _write(path, store, run_id)
        made = retrieval.evaluate(_config(report, str(path), judgments), Options(order="list", allow_incomplete=True))
        rows = retrieval_rows(made)
    return replace(rows, header=header_of(report).scored_by(rows.header))


def _config(report: RetrievalReport, ranked: str, judgments: str) -> Config:
    """min_score was applied when the rankings were stored, and sources stand beside the fragments."""
    values = {letter: component.values or {} for letter, component in report.fingerprint.components.items()}
    policy = {key: value for key, value in values["C"].items() if key != "min_score"}
    own = {"retrieval": judgments, **{key: values["B"].get(key) for key in ("version", "completeness")}}
    settings = {"judgments": own, "ranked_results": ranked, "search": policy, "depth": values["D"]}
    return Config.model_validate(settings)


def _write(path: Path, store: Store, run_id: str) -> None:
    from tripos.files.jsonl import dump_line

    with path.open("wb") as stream:
        for line in _lines(store, run_id):
            stream.write(dump_line(line))


def _lines(store: Store, run_id: str) -> Iterator[dict[str, Any]]:
    for row in store.ranked_results(run_id):
        hits = zip(row.fragment_ids, row.source_ids, strict=True)
        yield {"query_id": row.query_id, "results": [{"fragment_id": name, "source_id": source} for name, source in hits]}
