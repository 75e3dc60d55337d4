"""Rows of a finished evaluation, one function a layer: from its columns to figures by query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tripos.across.sides import DEFINED, FAILED, INCOMPLETE, PASSED, UNDECIDED, UNDEFINED, Column, Header, Rows, record_of
from tripos.checks.generation import Shown
from tripos.columns.generation import CODES, PARTIAL, GenerationColumns, Label
from tripos.columns.retrieval import OK, Bools, Floats, Ints
from tripos.columns.rows import Kept
from tripos.contracts.base import Contract
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.explanation import Layer
from tripos.contracts.generation import PASSING, GenerationResult
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import RetrievalReport
from tripos.files.generation import Pair
from tripos.fingerprint import corpus_judgment_content, generation_judgment_content, judgment_content, row_digest
from tripos.measures.aggregate import population
from tripos.measures.block import Block, blocks
from tripos.measures.generation_parts import members, outage
from tripos.measures.record import NO_RESULTS, Measure, Values
from tripos.measures.steps import Stepped, Steps
from tripos.runners.corpus import CorpusEvaluation
from tripos.runners.generation import GenerationEvaluation
from tripos.runners.retrieval import Evaluation


def retrieval_rows(made: Evaluation) -> Rows:
    """Rows of a retrieval evaluation; a query passes with an expected source within its depth, or left empty as expected."""
    columns, header = made.columns, header_of(made.report)

    def figures(names: Sequence[str]) -> dict[str, Column]:
        parts: dict[str, list[Column]] = {name: [] for name in names}
        for block in blocks(columns):  # of a curve only the cutoffs asked for are kept
            for name, column in _of_block(block, _by_record(names, "retrieval")):
                parts[name].append(column)
        return {name: Column(*map(np.concatenate, zip(*own, strict=True))) for name, own in parts.items()}

    passed = _either(figures(["hit@case", "expected_empty"]).values(), len(columns))
    content = [row_digest(judgment_content(row)) for row in columns.rows]
    return Rows(header, columns.rows, columns.complete, passed, figures, content)


def _of_block(block: Block, records: Sequence[tuple[Measure, list[str]]]) -> Iterator[tuple[str, Column]]:
    """Each name's values on the rows of a block."""
    positive, complete = block.columns.positive[block.start : block.stop], block.column("state") == OK
    for record, names in records:
        values: Values | Stepped = record.function(block)
        state = _state(record, values.undefined, population(record, positive), complete)
        for name in names:
            yield name, Column(_at(values.value, name, block.column("depth")), state)


def corpus_rows(made: CorpusEvaluation) -> Rows:
    """Rows of a corpus evaluation; a query passes with no reason to be a miss."""
    columns = made.columns

    def figures(names: Sequence[str]) -> dict[str, Column]:
        found: dict[str, Column] = {}
        for record, own in _by_record(names, "corpus"):
            values: Values = record.function(columns)
            state = _state(record, values.undefined, population(record, columns.positive), columns.complete)
            found |= dict.fromkeys(own, Column(values.value, state))
        return found

    fails = np.array([bool(reasons) for reasons in columns.reasons], dtype=bool)
    passed = np.where(columns.complete, np.where(fails, FAILED, PASSED), UNDECIDED)
    content = [row_digest(corpus_judgment_content(row)) for row in columns.rows]
    return Rows(header_of(made.report), columns.rows, columns.complete, passed, figures, content)


class Noted(Kept):
    """What a generation evaluation lets go of and a comparison needs: ids, labels, and the digest of each judged part."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[Label] = []
        self.content: list[bytes] = []

    def take(self, pair: Pair, result: GenerationResult, evidence: Shown) -> None:  # noqa: ARG002 - Kept's own form
        """Note one row."""
        row = pair.judged
        self.labels.append(Label(row.category, row.slices, row.query_id, row.cluster))
        self.content.append(row_digest(generation_judgment_content(row)))


def generation_rows(made: GenerationEvaluation, noted: Noted) -> Rows:
    """Rows of a generation evaluation; a query passes when its answer qualifies, or declines as it should.

    An answer without a faithfulness score is complete only where that does not decide it.
    """
    columns = made.columns
    whole = columns.kind != PARTIAL

    def figures(names: Sequence[str]) -> dict[str, Column]:
        records = _by_record(names, "generation")
        return {name: _scattered(record, columns, whole) for record, own in records for name in own}

    passing = [CODES[status] for status in PASSING]
    waiting = np.isin(columns.status, [CODES["incomplete"], CODES["not_judged"]])
    passed = np.where(waiting, UNDECIDED, np.where(np.isin(columns.status, passing), PASSED, FAILED))
    order = made.order.tolist()
    labels, content = [noted.labels[i] for i in order], [noted.content[i] for i in order]
    return Rows(header_of(made.report), labels, ~waiting, passed, figures, content)


def _scattered(record: Measure, columns: GenerationColumns, whole: Bools) -> Column:
    """A measure that is computed over its own rows, back at their places among all."""
    value, state = np.zeros(len(columns)), np.full(len(columns), UNDEFINED)
    rows = np.flatnonzero(members(record.population, columns) & whole)
    own = columns.take(rows)
    made: Values = record.function(own)
    value[rows] = made.value
    if not outage(record, own):
        state[rows] = np.select([made.undefined < 0, made.undefined == 0], [INCOMPLETE, DEFINED], default=UNDEFINED)
    return Column(value, state)


def _by_record(names: Sequence[str], layer: Layer) -> list[tuple[Measure, list[str]]]:
    """The names of each measure together, so that its values are computed once for all cutoffs."""
    found: dict[str, tuple[Measure, list[str]]] = {}
    for name in names:
        record = record_of(name, layer)
        found.setdefault(record.name, (record, []))[1].append(name)
    return list(found.values())


def _at(value: Steps | Floats, name: str, depth: Ints) -> Floats:
    """The values at the cutoff that a name has; shape (n,)."""
    if not isinstance(value, Steps):
        return value
    cutoff = name.partition("@")[2]
    return value.at(depth if cutoff == "case" else np.full(len(depth), int(cutoff)))


def _state(record: Measure, undefined: Ints, member: Bools, complete: Bools) -> Ints:
    """What each row is to a measure, as `measures/aggregate.py` counts it."""
    dynamic = 1 + list(record.reasons).index(NO_RESULTS) if NO_RESULTS in record.reasons else -1
    open_rows = (undefined == 0) | (undefined == dynamic)
    choices = [member & ~complete & open_rows, member & complete & (undefined == 0)]
    return np.select(choices, [INCOMPLETE, DEFINED], default=UNDEFINED)


def _either(columns: Iterable[Column], n: int) -> Ints:
    """Whether each row passes, by the first of several 0-or-1 measures that is about it."""
    passed = np.full(n, UNDECIDED)
    for value, state in columns:
        passed = np.where(state == DEFINED, np.where(value > 0, PASSED, FAILED), passed)
    return passed


def header_of(report: RetrievalReport | GenerationReport | CorpusReport) -> Header:
    """What a report says it was measured under."""
    layer: Layer = _LAYERS[type(report)]
    own = report.model_dump(mode="json", include={"reading", "targets", "abstention", "model", "judge"})
    own["reading"].pop("allow_incomplete", None)  # decides a gate, and no figure
    results = report.answers_digest if isinstance(report, GenerationReport) else report.results_digest
    fingerprint = report.fingerprint
    return Header(
        layer=layer,
        run_id=report.run_id,
        name=report.name,
        configuration=fingerprint.configuration,
        measurement=fingerprint.measurement,
        judgments_digest=report.judgments_digest,
        results_digest=results,
        components=fingerprint.components,
        settings={key: value for key, value in own.items() if value is not None},
        gates=report.gates,
        exploratory=report.exploratory,
    )


_LAYERS: dict[type[Contract], Layer] = {
    RetrievalReport: "retrieval",
    GenerationReport: "generation",
    CorpusReport: "corpus",
}
