"""What other layers read of a store: executions, runs by any name, reports, per-query values and rankings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson
from pydantic import ValidationError

from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import RetrievalReport
from tripos.errors import InputError, UsageError, quoted, suggest
from tripos.store.layout import EXECUTIONS, REPORT, RUNS, entries, escaped
from tripos.store.views import executions_view, existing

if TYPE_CHECKING:
    import duckdb

Layer = Literal["retrieval", "generation", "corpus"]
Report = RetrievalReport | GenerationReport | CorpusReport
MODELS: dict[Layer, type[Report]] = {"retrieval": RetrievalReport, "generation": GenerationReport, "corpus": CorpusReport}

_LATEST = re.compile(r"latest(?:~([0-9]{1,6}))?")
_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_NO_LATENCY: dict[str, Any] = {"n": 0, "p50": None, "p95": None, "p99": None}
_BLANK: dict[str, Any] = {"tool": "", "inputs": (), "latency_ms": _NO_LATENCY}
_PROVENANCE: dict[Layer, dict[str, Any]] = {
    "retrieval": _BLANK,
    "generation": {**_BLANK, "judge_approval": "not_checked"},
    "corpus": {
        **_BLANK,
        "fan_out_latency_ms": {},
        "over_fan_out": {"timed": 0, "latency_ms": None, "in_vain_ms": None, "slowest_in_vain": 0},
    },
}


@dataclass(frozen=True, slots=True)
class Execution:
    """One invocation of an evaluation."""

    execution_id: str
    time: datetime
    run_id: str
    layer: Layer
    name: str
    labels: tuple[str, ...]
    git_commit: str | None
    git_dirty: bool | None
    verdict: str
    tool: str


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was sealed. Its provenance is blank: that belongs to executions."""

    run_id: str
    layer: Layer
    report: Report
    cutoffs: tuple[int, ...]

    @property
    def judgments_digest(self) -> str:
        """Of the layer's own judgments: what compare needs equal."""
        return self.report.judgments_digest


@dataclass(frozen=True, slots=True)
class QueryValues:
    """Per-query figures of one run, sorted by query id; every list is parallel to `ids`.

    `measures`: by name ("hit@10", "leaks"), one value a query, None where it is undefined there or the query is incomplete.
    """

    ids: list[str]
    queries: list[str | None]
    categories: list[str | None]
    splits: list[str | None]
    clusters: list[str | None]
    slices: list[dict[str, Any]]
    positive: list[bool]
    complete: list[bool]
    reasons: list[tuple[str, ...]]
    measures: dict[str, list[float | None]]


class Ranking(NamedTuple):
    """The positions of one query as they were measured; lists are parallel, best first."""

    query_id: str
    fragment_ids: list[str]
    source_ids: list[str]
    scores: list[float | None]
    relevant: list[bool | None]


class Store:
    """A store that is read; nothing here writes."""

    def __init__(self, path: str | Path) -> None:
        self.path = existing(path)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        from tripos.files.formats.parquet import connect

        return connect()

    def executions(self, layer: Layer | None = None) -> list[Execution]:
        """Every execution, oldest first; equal times in order of their ids."""
        names = ", ".join(Execution.__dataclass_fields__)
        rows = self._rows(
            f"SELECT {names} FROM ({executions_view(self.path)}) ORDER BY time, execution_id",
            self.path / EXECUTIONS,
        )
        found = [Execution(**{**row, "labels": tuple(row["labels"] or ())}) for row in rows]
        return [one for one in found if layer is None or one.layer == layer]

    def run_ids(self) -> list[str]:
        """Every run that is stored, sorted."""
        return [path.name for path in entries(self.path / RUNS) if path.is_dir()]

    def resolve(self, name: str, layer: Layer | None = None) -> str:
        """The run that a name means.

        Args:
            name: A run id or the beginning of one (4 characters or more), an execution id, a label (its last execution),
                `latest`, or `latest~N` (N executions before it).
            layer: Look among this layer's executions alone.

        Raises:
            UsageError: No run, or more than one, has that name.
        """
        executions = self.executions(layer)
        if found := _LATEST.fullmatch(name):
            return self._latest(executions, int(found[1] or 0), layer)
        if labelled := [one for one in executions if name in (*one.labels, one.execution_id)]:
            return labelled[-1].run_id
        own = {one.run_id for one in executions} | ({*self.run_ids()} if layer is None else set())
        begun = sorted(run for run in own if run.startswith(name)) if _PREFIX.fullmatch(name) else []
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise UsageError(
                f'"{name}" begins {len(begun)} run ids: {", ".join(run[:12] for run in begun[:5])}; give more of it'
            )
        labels = {label for one in executions for label in one.labels}
        near = suggest(name, labels | own | {"latest"})
        of = f" {layer}" if layer else ""
        raise UsageError(f'"{quoted(name)}" names no{of} run in {self.path}{near}: tripos runs lists them')

    def _latest(self, executions: Sequence[Execution], back: int, layer: Layer | None) -> str:
        if back < len(executions):
            return executions[-1 - back].run_id
        of = f"{layer} " if layer else ""
        n = len(executions)
        raise UsageError(f"latest{f'~{back}' if back else ''}: {self.path} has {n} {of}execution{'' if n == 1 else 's'}")

    def run(self, run_id: str) -> StoredRun:
        """The report of a run; raises InputError where it cannot be read."""
        path = self._file(run_id, REPORT)
        content = self.content(run_id)
        layer = layer_of(content, path)
        try:
            report = MODELS[layer].model_validate_json(orjson.dumps({**content, "provenance": _PROVENANCE[layer]}))
        except ValidationError as error:
            said = f"is no {layer} report of this version: {error.errors()[0]['msg']}"
            raise InputError.at(str(path), said) from None
        return StoredRun(run_id, layer, report, tuple(self._facts(run_id)["cutoffs"] or ()))

    def content(self, run_id: str) -> dict[str, Any]:
        """The report as JSON, without provenance; the run id is its digest."""
        import zstandard

        path = self._file(run_id, REPORT)
        try:
            value = orjson.loads(zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read())
        except (OSError, zstandard.ZstdError, orjson.JSONDecodeError) as error:
            raise InputError.at(str(path), f"cannot be read: {error}") from None
        return dict(value) if isinstance(value, dict) else {}

    def _facts(self, run_id: str) -> Mapping[str, Any]:
        path = self._table(run_id, "runs")
        rows = self._rows(f"SELECT * FROM {self._source(path)}", path)
        if len(rows) != 1:
            raise InputError.at(str(path), f"holds {len(rows)} rows: one is expected")
        return rows[0]

    def query_values(self, run_id: str) -> QueryValues:
        """Every scored query of a run with its figures at the headline cutoffs."""
        path = self._table(run_id, "queries")
        rows = self._rows(f"SELECT * FROM {self._source(path)} ORDER BY query_id", path)
        names = self._facts(run_id).get("measures") or [] if rows else []

        def column(name: str) -> list[Any]:
            return [row.get(name) for row in rows]

        return QueryValues(
            ids=column("query_id"),
            queries=column("query"),
            categories=column("category"),
            splits=column("split"),
            clusters=column("cluster"),
            slices=[orjson.loads(value) if value else {} for value in column("slices")],
            positive=[bool(value) for value in column("positive")],
            complete=[bool(value) for value in column("complete")],
            reasons=[tuple(value or ()) for value in column("reasons")],
            measures={name: column(name) for name in names},
        )

    def ranked_results(self, run_id: str) -> Iterator[Ranking]:
        """The ranking of every query that has a usable result, by query id; empty lists are measurements too."""
        path = self._table(run_id, "ranked_results")
        lists = ", ".join(f"list({name} ORDER BY rank)" for name in ("fragment_id", "source_id", "score", "relevant"))
        sql = f"SELECT query_id, {lists} FROM {self._source(path)} GROUP BY query_id"
        found = {name: rest for name, *rest in self._tuples(sql, path)}
        values = self.query_values(run_id)
        for name, complete in zip(values.ids, values.complete, strict=True):
            if complete:
                yield Ranking(name, *(found.get(name) or [[], [], [], []]))

    def _table(self, run_id: str, table: str) -> Path:
        """The file of one of a run's tables, whatever its shape."""
        found = sorted((self.path / RUNS / run_id).glob(f"{table}.*.parquet"))
        return found[0] if found else self._file(run_id, f"{table}.parquet")

    def _file(self, run_id: str, name: str) -> Path:
        path = self.path / RUNS / run_id / name
        if not path.is_file():
            where = path if path.parent.is_dir() else path.parent
            raise InputError.at(str(where), "is not in the store: tripos runs lists what is, tripos store check what is broken")
        return path

    def _source(self, path: Path) -> str:
        return "read_parquet('" + escaped(str(path)).replace("'", "''") + "')"

    def _tuples(self, sql: str, path: Path) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self._connection.sql(sql).fetchall()
        except duckdb.Error as error:
            raise InputError.at(str(path), f"cannot be read: {_said(error)}") from None

    def _rows(self, sql: str, path: Path) -> list[dict[str, Any]]:
        import duckdb

        try:
            relation = self._connection.sql(sql)
            return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        except duckdb.Error as error:
            raise InputError.at(str(path), f"cannot be read: {_said(error)}") from None


def _said(error: Exception) -> str:
    return f"{str(error).splitlines()[0]}; tripos store check names every broken file"


def is_taken(name: str) -> bool:
    """Whether a name means something else than a label: latest, baseline, or (the beginning of) a run id."""
    return name == "baseline" or bool(_LATEST.fullmatch(name) or _PREFIX.fullmatch(name))


def layer_of(content: Mapping[str, Any], path: Path) -> Layer:
    """Which layer a report is of, by its contract; raises InputError for what is none."""
    for layer, model in MODELS.items():
        if content.get("contract") == model.model_fields["contract"].default:
            return layer
    raise InputError.at(str(path), "is no report of a layer that this version knows")
