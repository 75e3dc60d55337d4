"""eval-generation: did the answer cover the facts, cite support, and abstain where it should?

The steps, in order: read, check, align, measure, aggregate, seal. Rows stream through check and align one by one; what is
kept of them are numbers, and, where an output is asked for, finished lines in a spool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from tripos import __version__
from tripos.checks.abstention import Phrases
from tripos.checks.generation import Checker, Resolver, Shown, shown_to
from tripos.checks.judges import approval
from tripos.checks.system_stamps import SystemStamps
from tripos.columns.bound import Bound, Lists, bind, lists_of
from tripos.columns.generation import ANSWERABLE, CODES, PARTIAL, Gatherer, GenerationColumns, groups_of
from tripos.columns.rows import Kept, Tally
from tripos.columns.verdicts import Ruler, verdict
from tripos.contracts.config import Config, Options
from tripos.contracts.generation import STATUSES, Status
from tripos.contracts.generation_report import GenerationReport, Partial, RiskCoverage
from tripos.contracts.index import Corpus
from tripos.contracts.reports import Component, Gate, Slice
from tripos.errors import Findings, NothingToEvaluate, UsageError
from tripos.files.generation import Pair, Source, read_pairs
from tripos.files.judges import load_judges
from tripos.files.retrieval import load_corpus, split_name
from tripos.files.streams import count_lines
from tripos.fingerprint import NO_CORPUS, answer_content, digest, generation_judgment_content, row_digest
from tripos.measures import gates as gating
from tripos.measures import generation_gates
from tripos.measures.answers import Figures, figures, risk_coverage
from tripos.measures.generation import GENERATION, PARTIAL_MEASURES
from tripos.measures.intervals import quantile
from tripos.measures.layers import gates_of
from tripos.runners.generation_contents import about_names, basis, label, named, targets

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was read before any row: where the rows are, the ground they stand on, and the ruler."""

    config: Config
    options: Options
    source: Source
    bound: Bound | None
    lists: Lists | None
    corpus: Corpus | None
    components: Mapping[str, Component]
    phrases: Phrases
    findings: Findings
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Aligned:
    """The verdicts as columns, and what was counted on the way."""

    columns: GenerationColumns
    order: np.typing.NDArray[np.int64]
    gathered: Gatherer
    tally: Tally
    stamps: SystemStamps


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures over all rows and by slice, partial rows apart."""

    overall: Figures
    slices: list[Slice]
    partial: Partial | None
    risk_coverage: RiskCoverage | None


@dataclass(frozen=True, slots=True)
class GenerationEvaluation:
    """The outcome: the sealed report, and the rows in the order in which they are written."""

    report: GenerationReport
    columns: GenerationColumns
    order: np.typing.NDArray[np.int64]
    findings: Findings = field(default_factory=Findings)


def evaluate(
    config: Config,
    options: Options | None = None,
    *,
    kept: Kept | None = None,
    paths: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    today: date | None = None,
) -> GenerationEvaluation:
    """Evaluate answers against their reviewed part and, where a retrieval report is given, the evidence they rest on.

    Args:
        config: The merged configuration; names the files.
        options: How files are read.
        kept: Takes the finished lines of generation-results.jsonl and generation-misses.jsonl, where they are wanted.
        paths: Input paths as the report should name them, by the path given.
        progress: Called with (rows read, rows to read; 0: not known).
        today: The day on which the judge's approval is looked up; default: this day, in UTC.

    Raises:
        InputError: A file breaks its contract; all faults at once.
        NotComparable: The retrieval report does not hold, or answers carry the stamp of another system.
        NothingToEvaluate: No reviewed row is left to score.
    """
    inputs = read(config, options or Options(), progress)
    tally = Tally()
    aligned = align(inputs, check(inputs, tally), tally, kept)
    measured = measure(aligned)
    return seal(inputs, aligned, measured, paths or {}, today or datetime.now(UTC).date())


def source_of(config: Config) -> Source:
    """Where the rows are; raises UsageError where that is not said, or said twice."""
    own, judgments = config.generation, config.judgments.generation
    if own.input and not own.answers:
        return Source(own.input)
    if own.answers and judgments:
        return Source(None, judgments, own.answers)
    missing = "--judgments" if own.answers else "--answers" if judgments else "--input (or --judgments and --answers)"
    raise UsageError(f"missing {missing} (or --config with generation.input, or judgments.generation and generation.answers)")


def inputs_of(config: Config) -> list[str]:
    """Every file that the evaluation is told to read."""
    own, source = config.generation, source_of(config)
    files = (own.retrieval_report, source.combined, source.judgments, source.answers, config.approved_judges)
    return [path for path in files if path] + [split_name(path)[1] for path in config.fragments]


def read(config: Config, options: Options, progress: Progress | None) -> Inputs:
    """Read the retrieval report with all that it stands on, or else the fragments given."""
    source, findings = source_of(config), Findings()
    gates_of("generation", config.gates)
    phrases = Phrases(config.generation.abstention.languages, config.generation.abstention.phrases)
    bound = lists = corpus = None
    lines, before = count_lines(source.combined or source.answers or "") if progress else 0, 0
    components: Mapping[str, Component] = dict.fromkeys("ABCD", NO_CORPUS)
    if config.generation.retrieval_report:
        bound = bind(config.generation.retrieval_report, config, findings)
        before = bound.report.counts.result_rows
        lists = lists_of(bound, findings, stretch(progress, 0, lines and lines + before))
        corpus, components = bound.corpus, bound.components
    elif config.fragments:
        reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
        corpus, built = load_corpus(config.fragments, config.acl_default, findings, **reading)
        components = {**components, "A": built.component(config.acl_default)}
    rest = stretch(progress, before, lines and lines + before)
    return Inputs(config, options, source, bound, lists, corpus, components, phrases, findings, rest)


def stretch(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Progress over one of several stretches: `before` rows lie before it, of `total` in all (0: not known)."""
    return None if progress is None else lambda done, _of: progress(before + done, total)


def check(inputs: Inputs, tally: Tally) -> Iterator[tuple[Pair, Shown]]:
    """Each reviewed row with what the model was shown, checked; faults go to the findings, and all rows pass on."""
    options, findings = inputs.options, inputs.findings
    bound = inputs.bound
    system = None if bound is None else bound.system
    checker = Checker(Resolver(inputs.corpus), findings, system=system, lenient=options.lenient)
    pairs = read_pairs(inputs.source, tally.seen, findings, lenient=options.lenient, allow_extra=options.allow_extra)
    for n, pair in enumerate(pairs):
        if inputs.progress is not None and n % 500 == 0:
            inputs.progress(n, 0)
        listed = inputs.lists.get(pair.judged.query_id) if inputs.lists is not None else None
        evidence = shown_to(pair, listed)
        checker.check(pair, evidence)
        if bound is not None:
            checker.check_query(pair, bound.questions.asks_otherwise)
        tally.note(pair, without_list=bound is not None and listed is None)
        yield pair, evidence


def align(inputs: Inputs, rows: Iterator[tuple[Pair, Shown]], tally: Tally, kept: Kept | None) -> Aligned:
    """Give every row its verdict, and gather the verdicts; raises all errors at once, then NotComparable."""
    ruler = Ruler(Resolver(inputs.corpus), inputs.phrases, inputs.config.generation.faithfulness_target)
    stamps = SystemStamps(inputs.components, inputs.bound.system if inputs.bound else None)
    gathered = Gatherer(inputs.corpus is not None)
    for pair, evidence in rows:
        result = verdict(pair, evidence, ruler)
        gathered.take(pair, result, has_list=evidence.evidence is not None)
        tally.digest(row_digest(generation_judgment_content(pair.judged)), _answer_digest(pair))
        tally.judge(result)
        stamps.note(pair)
        if kept is not None:
            kept.take(pair, result, evidence)
    inputs.findings.raise_errors()
    stamps.refuse()
    if not gathered.ids:
        raise NothingToEvaluate(f"nothing to evaluate: {tally.why_nothing(inputs.source)}")
    order = gathered.order()
    return Aligned(gathered.gathered(order), order, gathered, tally, stamps)


def _answer_digest(pair: Pair) -> bytes:
    return row_digest(None if pair.answered is None else answer_content(pair.answered))


def measure(aligned: Aligned) -> Measured:
    """Every measure over all rows and by slice; rows that are partly answerable are told apart."""
    columns, labels = aligned.columns, aligned.gathered.labels
    whole = columns.take(np.flatnonzero(columns.kind != PARTIAL))
    slices = [
        Slice(by=group.by, value=group.value, rows=len(group.rows), measures=figures(whole.take(group.rows)))
        for group in groups_of(whole, labels)
        if len(group.rows)
    ]
    apart = columns.take(np.flatnonzero(columns.kind == PARTIAL))
    partial = (
        Partial(rows=len(apart), statuses=_statuses(apart), measures=figures(apart, PARTIAL_MEASURES)) if len(apart) else None
    )
    return Measured(figures(whole), slices, partial, risk_coverage(whole))


def _statuses(columns: GenerationColumns) -> dict[Status, int]:
    counts = np.bincount(columns.status, minlength=len(STATUSES)).tolist()
    return {status: counts[code] for status, code in CODES.items() if counts[code]}


def seal(inputs: Inputs, aligned: Aligned, measured: Measured, paths: Mapping[str, str], today: date) -> GenerationEvaluation:
    """Judge by the gates, bind to the fingerprint, and name the run by its content."""
    config, columns, tally, bound = inputs.config, aligned.columns, aligned.tally, inputs.bound
    gates = decide_gates(inputs, aligned, measured)
    name, scope = label(config, bound)
    content: dict[str, Any] = {
        "name": name,
        "scope": scope,
        "exploratory": _exploratory(inputs),
        "fingerprint": _fingerprint(inputs, tally),
        "judgments_digest": tally.judged.unordered(),
        "answers_digest": tally.answered.unordered(),
        "binding": aligned.stamps.binding,
        "retrieval": None if bound is None else basis(bound),
        "model": named(config.generation.model or tally.only_model),
        "judge": named(config.generation.judge_model),
        "targets": targets(config),
        "abstention": config.generation.abstention,
        "form": inputs.source.form,
        "completeness": "not_checkable" if inputs.source.combined else "checked",
        "reading": inputs.options.model_dump(include={"lenient", "allow_extra", "allow_incomplete"}),
        "rows": tally.rows(columns, aligned.gathered.labels),
        "counts": tally.counts(aligned.stamps.stamped, inputs.findings.let_pass),
        "statuses": _statuses(columns),
        "measures": measured.overall,
        "slices": measured.slices,
        "partial": measured.partial,
        "risk_coverage": measured.risk_coverage,
        "missed": tally.missed,
        "warnings": _warnings(inputs, aligned),
        "gates": gates,
        "verdict": gating.verdict(gates),
        "provenance": _provenance(inputs, aligned, paths, today),
    }
    draft = GenerationReport.model_validate({**content, "run_id": ""})
    run_id = digest(draft.model_dump(mode="json", exclude={"run_id", "provenance"}))
    report = draft.model_copy(update={"run_id": run_id})
    return GenerationEvaluation(report, columns, aligned.order, inputs.findings)


def decide_gates(inputs: Inputs, aligned: Aligned, measured: Measured) -> list[Gate]:
    """The gates every run has, then those asked for."""
    statuses = _statuses(aligned.columns)
    absent, unjudged = statuses.get("incomplete", 0), statuses.get("not_judged", 0)
    allowed, own = inputs.options.allow_incomplete, gates_of("generation", inputs.config.gates)
    gates = [generation_gates.complete_gate(absent, unjudged, len(aligned.columns), allowed)]
    gates += generation_gates.target_gates(measured.overall, inputs.config.generation)
    return gates + generation_gates.asked_gates(own, measured.overall, measured.slices)


def _fingerprint(inputs: Inputs, tally: Tally) -> dict[str, Any]:
    own = None if inputs.bound is None else inputs.bound.report.fingerprint
    taken = {
        "measures": {name: record.version for name, record in GENERATION.items()},
        "judge": inputs.config.generation.judge_model,
        "sources": sorted(tally.sources),
        "phrases": inputs.phrases.content(),
        "reading": inputs.options.model_dump(include={"lenient"}),
    }
    return {
        "configuration": None if own is None else own.configuration,
        "system": None if own is None else own.system,
        "measurement": digest(taken),
        "components": dict(inputs.components),
    }


def _exploratory(inputs: Inputs) -> list[str]:
    told = [] if inputs.bound is None else [f"retrieval report: {reason}" for reason in inputs.bound.report.exploratory]
    if inputs.options.lenient:
        let_pass = ", ".join(f"{kind}: {n}" for kind, n in sorted(inputs.findings.let_pass.items()))
        told.append("--lenient: " + (let_pass or "nothing had to be let pass"))
    return told


def _warnings(inputs: Inputs, aligned: Aligned) -> list[str]:
    """What a reader of the report should know; file names and lines stay on stderr."""
    tally, columns = aligned.tally, aligned.columns
    bare = int(((columns.kind == ANSWERABLE) & (columns.required == 0)).sum())
    told = [
        (inputs.bound is None, "unbound: no retrieval report, so that nothing says what the answers were written from"),
        (bare, f"{bare} answerable rows name no requirement"),
        (tally.without_list, f"{tally.without_list} queries have no list in the bound retrieval run"),
    ]
    return [text for holds, text in told if holds] + about_names(inputs.config.generation, tally)


def _provenance(inputs: Inputs, aligned: Aligned, paths: Mapping[str, str], today: date) -> dict[str, Any]:
    given, config = aligned.gathered.latencies(), inputs.config
    source = inputs.source
    files = [("retrieval_report", config.generation.retrieval_report), ("input", source.combined)]
    files += [("judgments", source.judgments), ("answers", source.answers), ("approved_judges", config.approved_judges)]
    known: list[tuple[str, str, str | None]] = [(role, paths.get(path, path), None) for role, path in files if path]
    known += [("fragments", paths.get(path, path), name) for name, path in map(split_name, config.fragments)]
    judges = load_judges(config.approved_judges) if config.approved_judges else None
    return {
        "tool": f"tripos {__version__}",
        "inputs": [{"role": role, "path": path, "collection": name} for role, path, name in known],
        "latency_ms": {"n": len(given), **{f"p{q}": quantile(given, q / 100) for q in (50, 95, 99)}},
        "judge_approval": approval(config.generation.judge_model, judges, today),
    }
