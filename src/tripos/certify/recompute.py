"""Each layer evaluated again by its ordinary runner, step by step, as far as that goes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from tripos.certify.comparing import RowsFile, rows_file
from tripos.certify.evidence import Shown, compared
from tripos.columns.rows import Kept, Tally
from tripos.contracts.config import Config, Options
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Component, RetrievalReport
from tripos.errors import Findings, InputError, TriposError
from tripos.files.corpus import load_corpus_judgments
from tripos.files.generation import Seen, read_pairs
from tripos.files.jsonl import dump_line
from tripos.files.reports import plain
from tripos.fingerprint import RowDigests, answer_content, corpus_judgment_content, generation_judgment_content, row_digest
from tripos.runners import corpus, generation, retrieval
from tripos.runners.drops import held_again
from tripos.runners.settings import Report, Rerun, corpus_settings, generation_settings, retrieval_settings

Progress = Callable[[int, int], None]
Stage = Literal["read", "check", "align", "sealed"]

EVIDENCE = "generation-evidence.jsonl"


@dataclass(slots=True)
class Again:
    """One layer, evaluated again.

    Attributes:
        stage: How far it came.
        fault: What ended it, if anything did.
        components: A to D as derived from the files; None where they could not be read.
        judgments_digest: As derived from the golden file; None where it could not be read.
        results_digest: Of the ranked results, answers or corpus results; None where they could not be read.
        report: What the report should be; None where the evaluation did not end.
        beside: The files of rows beside the report, compared, by role.
        shown: What answers were written from; of the generation layer alone.
        models: Who answered, as the answers name them.
    """

    stage: Stage = "read"
    fault: TriposError | None = None
    components: Mapping[str, Component] | None = None
    judgments_digest: str | None = None
    results_digest: str | None = None
    report: Report | None = None
    beside: dict[str, RowsFile] = field(default_factory=dict)
    shown: Shown = field(default_factory=Shown)
    models: set[str] = field(default_factory=set)


def evaluated_again(report: Report, path: str, retrieval_report: str, progress: Progress | None) -> Again:
    """One layer again, bound to the retrieval report of this run, whichever the report itself may name."""
    again = Again()
    try:
        if isinstance(report, RetrievalReport):
            _retrieval(again, report, retrieval_settings(report, path), path, progress)
        elif isinstance(report, GenerationReport):
            _generation(again, generation_settings(report, path, retrieval_report), path, progress)
        else:
            _corpus(again, corpus_settings(report, path, retrieval_report), path, progress)
    except TriposError as fault:
        again.fault = fault
    except ValidationError as error:  # the report states what no configuration can
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        again.fault = InputError.at(path, f"states a setting that none can be: {first['msg']}", field=where)
    return again


def _retrieval(again: Again, report: RetrievalReport, rerun: Rerun, path: str, progress: Progress | None) -> None:
    inputs = retrieval.read(rerun.config, rerun.options, report.cutoffs)
    if not inputs.findings.n_errors:
        again.components, again.judgments_digest = inputs.components, inputs.components["B"].digest
    again.stage = "check"
    scored = retrieval.check(inputs)
    again.stage = "align"
    aligned = retrieval.align_results(inputs, scored, progress)
    again.results_digest = aligned.tally.results_digest
    made = retrieval.seal(inputs, aligned, retrieval.measure(inputs, aligned), {}, held_again(report))
    again.report, again.stage = made.report, "sealed"
    again.beside["retrieval_misses"] = rows_file(_beside(path, "misses.jsonl"), made.miss_lines)


def _generation(again: Again, rerun: Rerun, path: str, progress: Progress | None) -> None:
    try:
        _answers(again, rerun, path, progress)
    finally:
        if again.judgments_digest is None:  # the files may be read all the same, and show what was changed
            with contextlib.suppress(TriposError):
                again.judgments_digest, again.results_digest = _answers_digests(rerun.config, rerun.options)


def _answers(again: Again, rerun: Rerun, path: str, progress: Progress | None) -> None:
    inputs, tally = generation.read(rerun.config, rerun.options, progress), Tally()
    again.components, again.stage = inputs.components, "align"
    with Kept() as kept:
        aligned = generation.align(inputs, again.shown.watch(generation.check(inputs, tally)), tally, kept)
        made = generation.seal(inputs, aligned, generation.measure(aligned), {}, date.min)  # nobody's approval is looked up
        again.models, again.report, again.stage = tally.models, made.report, "sealed"
        again.judgments_digest, again.results_digest = tally.judged.unordered(), tally.answered.unordered()
        order, bound_to = made.order.tolist(), made.report.fingerprint.configuration
        again.beside["generation_results"] = rows_file(_beside(path, "generation-results.jsonl"), lambda: kept.results(order))
        misses = _beside(path, "generation-misses.jsonl")
        again.beside["generation_misses"] = rows_file(misses, lambda: kept.misses(order, made.report.run_id, bound_to))
    again.shown.evidence = compared(str(Path(path).parent.parent / EVIDENCE), inputs)


def _answers_digests(config: Config, options: Options) -> tuple[str, str]:
    """Digests of the reviewed parts and of the answers; raises InputError where they cannot be read."""
    judged, answered, findings = RowDigests(), RowDigests(), Findings()
    reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
    for pair in read_pairs(generation.source_of(config), Seen(), findings, **reading):
        judged.add(row_digest(generation_judgment_content(pair.judged)))
        answered.add(row_digest(None if pair.answered is None else answer_content(pair.answered)))
    findings.raise_errors()
    return judged.unordered(), answered.unordered()


def _corpus(again: Again, rerun: Rerun, path: str, progress: Progress | None) -> None:
    again.judgments_digest = _routes_digest(rerun.config, rerun.options)
    inputs = corpus.read(rerun.config, rerun.options)
    again.components, again.stage = inputs.components, "check"
    scored = corpus.check(inputs)
    again.stage = "align"
    aligned = corpus.align(inputs, scored, progress)
    again.results_digest = aligned.tally.results_digest
    made = corpus.seal(inputs, aligned, corpus.measure(aligned.columns), {})
    again.report, again.stage = made.report, "sealed"
    misses = _beside(path, "corpus-misses.jsonl")
    again.beside["corpus_misses"] = rows_file(misses, lambda: (dump_line(plain(miss)) for miss in made.misses))


def _routes_digest(config: Config, options: Options) -> str | None:
    """Digest of the corpus judgments, whatever the evaluation will come to; None where they cannot be read."""
    findings, digests = Findings(), RowDigests()
    reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
    for judged in load_corpus_judgments(config.judgments.corpus or "", findings, **reading):
        if judged.row.review_status == "reviewed":
            digests.add(row_digest(corpus_judgment_content(judged.row)))
    return None if findings.n_errors else digests.unordered()


def _beside(path: str, name: str) -> str:
    return str(Path(path).parent / name)
