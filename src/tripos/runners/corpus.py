"""eval-corpus: did routing, fan-out, merge and expansion preserve the evidence?

The steps, in order: read, check, align, measure, aggregate, seal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tripos import __version__
from tripos.checks.corpus import Catalogue, Checker, check_corpus_judgments
from tripos.checks.system_stamps import explained_stamp
from tripos.columns.bound import Bound, bind
from tripos.columns.corpus import CorpusColumns
from tripos.columns.groups import clusters_of, everyone, slices_of
from tripos.columns.lost import corpus_misses
from tripos.columns.retrieval import MISSING, OK
from tripos.columns.routes import RouteTally, align_routes
from tripos.contracts.config import Config, DepthConfig, Options
from tripos.contracts.corpus import CorpusJudgment, CorpusMiss
from tripos.contracts.corpus_report import CollectionReport, CorpusReport
from tripos.contracts.index import Corpus
from tripos.contracts.reports import Component, Gate, LeakExam, Slice
from tripos.errors import Findings, NotComparable, NothingToEvaluate, UsageError
from tripos.files.corpus import Judged, Routed, load_corpus_judgments, read_corpus_results
from tripos.files.retrieval import load_corpus, split_name
from tripos.fingerprint import (
    NO_CORPUS,
    corpus_judgment_content,
    depth_component,
    digest,
    policy_component,
    row_digest,
    unordered,
)
from tripos.measures import corpus_gates
from tripos.measures import gates as gating
from tripos.measures.aggregate import Figures
from tripos.measures.corpus import COLLECTION, CORPUS
from tripos.measures.fan_outs import fan_out_latency, latency, over_fan_out, over_fan_out_cost
from tripos.measures.flow import collection_reports, expansion_report, flow
from tripos.measures.rowwise import aggregate_rows

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was read: judgments, the corpus, and the retrieval report that they stand on."""

    config: Config
    options: Options
    judgments: list[Judged]
    bound: Bound | None
    corpus: Corpus | None
    depth: DepthConfig
    components: Mapping[str, Component]
    findings: Findings

    @property
    def catalogue(self) -> Catalogue | None:
        """The collections of the corpus; None without one."""
        return Catalogue(self.corpus) if self.corpus is not None and self.corpus.sources else None


@dataclass(frozen=True, slots=True)
class Aligned:
    """Judgments and results brought together, and what was counted on the way."""

    columns: CorpusColumns
    tally: RouteTally
    binding: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured: aggregates over all rows, by slice, and by collection."""

    overall: Figures
    slices: list[Slice]
    collections: list[CollectionReport]


@dataclass(frozen=True, slots=True)
class CorpusEvaluation:
    """The outcome: the sealed report, its misses, and the columns they came from."""

    report: CorpusReport
    columns: CorpusColumns
    findings: Findings
    misses: list[CorpusMiss] = field(default_factory=list)


def evaluate(
    config: Config,
    options: Options | None = None,
    *,
    paths: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> CorpusEvaluation:
    """Evaluate what a multi-collection system did against reviewed routes and sources.

    Args:
        config: The merged configuration; names the files.
        options: How files are read.
        paths: Input paths as the report should name them, by the path given.
        progress: Called with (results read, judgments) as results are read.

    Raises:
        InputError: A file breaks its contract; all faults at once.
        NotComparable: The retrieval report does not hold, or results carry the stamp of another system.
        NothingToEvaluate: No reviewed row is left to score.
    """
    require(config)
    inputs = read(config, options or Options())
    scored = check(inputs)
    aligned = align(inputs, scored, progress)
    measured = measure(aligned.columns)
    return seal(inputs, aligned, measured, paths or {})


def require(config: Config) -> None:
    """Raise UsageError naming every setting that is called for and not given, ConfigError for a gate of no measure."""
    settings = (("--judgments", config.judgments.corpus), ("--results", config.corpus.results))
    if missing := [flag for flag, value in settings if not value]:
        raise UsageError(f"missing {', '.join(missing)} (or --config with judgments.corpus, and corpus.results or run)")
    corpus_gates.check_asked(config.gates, config.depth.limit)


def read(config: Config, options: Options) -> Inputs:
    """Read the judgments, and the retrieval report with all that it stands on, or else the fragments given."""
    findings, reading = Findings(), {"lenient": options.lenient, "allow_extra": options.allow_extra}
    judgments = load_corpus_judgments(config.judgments.corpus or "", findings, **reading)
    if config.corpus.retrieval_report:
        bound = bind(config.corpus.retrieval_report, config, findings)
        return Inputs(config, options, judgments, bound, bound.corpus, bound.depth, bound.components, findings)
    corpus, a = None, NO_CORPUS
    if config.fragments:
        corpus, built = load_corpus(config.fragments, config.acl_default, findings, **reading)
        a = built.component(config.acl_default)
    c = policy_component(config.search) if config.search.policy() else NO_CORPUS
    components = {"A": a, "B": NO_CORPUS, "C": c, "D": depth_component(config.depth)}
    return Inputs(config, options, judgments, None, corpus, config.depth, components, findings)


def check(inputs: Inputs) -> list[CorpusJudgment]:
    """Check the reviewed rows, and choose those that are scored; raises all errors at once."""
    options, findings = inputs.options, inputs.findings
    reviewed = [j for j in inputs.judgments if j.row.review_status == "reviewed"]
    check_corpus_judgments(reviewed, findings)
    Checker(inputs.catalogue, findings, lenient=options.lenient).judgments(reviewed)
    if inputs.bound is not None:
        _same_questions(reviewed, inputs.bound, findings)
    findings.raise_errors()
    scored = [j.row for j in reviewed if options.split in ("all", j.row.split)]
    if not scored:
        why = "no row is reviewed (review_status: reviewed)" if not reviewed else f"no reviewed row is in split {options.split}"
        raise NothingToEvaluate(f"{inputs.config.judgments.corpus}: nothing to evaluate: {why}")
    return scored


def _same_questions(rows: Sequence[Judged], bound: Bound, findings: Findings) -> None:
    for judged in rows:
        if judged.row.query is not None and bound.questions.asks_otherwise(judged.row.query_id, judged.row.query):
            text = "is another text than the retrieval judgments have for this query_id: one id means one query"
            findings.error("query", judged.place, "query", text)


def align(inputs: Inputs, scored: Sequence[CorpusJudgment], progress: Progress | None = None) -> Aligned:
    """Bring judgments and results together; raises all errors at once, then NotComparable."""
    options, findings = inputs.options, inputs.findings
    path = inputs.config.corpus.results or ""
    rows = read_corpus_results(path, findings, lenient=options.lenient, allow_extra=options.allow_extra)
    checker = Checker(inputs.catalogue, findings, inputs.depth.per_collection or {}, options.lenient)
    columns, tally = align_routes(scored, _checked(rows, checker, len(scored), progress), inputs.corpus, inputs.depth)
    findings.raise_errors()
    return Aligned(columns, tally, _binding(tally, inputs))


def _checked(rows: Iterator[Routed], checker: Checker, total: int, progress: Progress | None) -> Iterator[Routed]:
    for n, routed in enumerate(rows):
        if progress and n % 500 == 0:
            progress(n, total)
        checker.result(routed)
        yield routed


def _binding(tally: RouteTally, inputs: Inputs) -> str:
    """How firmly the results are bound; raises NotComparable for results of another system."""
    if inputs.bound is None:
        return "unbound"
    own = inputs.bound.system
    foreign = {stamp: n for stamp, n in tally.stamps.items() if stamp not in (None, own)}
    if foreign:
        stamp = next(iter(foreign))
        told = f"{sum(foreign.values())} of {sum(tally.stamps.values())} corpus results were made by another system"
        raise NotComparable(f"{told}\n{explained_stamp(str(stamp), inputs.components)}")
    return "declared" if None in tally.stamps or not tally.stamps else "verified"


def measure(columns: CorpusColumns) -> Measured:
    """Every measure over all rows, by slice and by collection."""
    clusters = clusters_of(columns.rows)
    groups = [everyone(len(columns)), *slices_of(columns.rows)]
    figures = aggregate_rows(columns, CORPUS.values(), groups, clusters)
    slices = [
        Slice(by=group.by, value=group.value, rows=len(group.rows), measures=part)
        for group, part in zip(groups[1:], figures[1:], strict=True)
    ]
    return Measured(figures[0], slices, collection_reports(columns, clusters))


def seal(inputs: Inputs, aligned: Aligned, measured: Measured, paths: Mapping[str, str]) -> CorpusEvaluation:
    """Judge by the gates, bind to the fingerprint, and name the run by its content."""
    columns, tally = aligned.columns, aligned.tally
    exam = _exam(columns, inputs.corpus)
    gates = decide_gates(inputs, columns, measured, exam)
    reasons = Counter(reason for row in columns.reasons for reason in row)
    content: dict[str, Any] = {
        **_label(inputs),
        "exploratory": _exploratory(inputs),
        "fingerprint": _fingerprint(inputs),
        "judgments_digest": _judgments_digest(inputs.judgments),
        "results_digest": tally.results_digest,
        "binding": aligned.binding,
        "retrieval_run_id": None if inputs.bound is None else inputs.bound.report.run_id,
        "reading": inputs.options.model_dump(include={"split", "lenient", "allow_extra", "allow_incomplete"}),
        "rows": _rows(inputs, columns),
        "counts": _counts(tally, inputs.findings),
        "measures": measured.overall,
        "slices": measured.slices,
        "evidence": flow(columns),
        "collections": measured.collections,
        "expansion": expansion_report(columns, clusters_of(columns.rows)),
        "over_fan_out": over_fan_out(columns),
        "leak_exam": exam,
        "missed": sum(map(bool, columns.reasons)),
        "misses": dict(sorted(reasons.items())),
        "warnings": _warnings(inputs, tally),
        "gates": gates,
        "verdict": gating.verdict(gates),
        "provenance": _provenance(inputs, columns, paths),
    }
    draft = CorpusReport.model_validate({**content, "run_id": ""})
    run_id = digest(draft.model_dump(mode="json", exclude={"run_id", "provenance"}))
    report = draft.model_copy(update={"run_id": run_id})
    found = list(corpus_misses(columns, run_id, report.fingerprint.configuration))
    return CorpusEvaluation(report, columns, inputs.findings, found)


def _label(inputs: Inputs) -> dict[str, str]:
    """Name and scope: as configured, else those of the retrieval report."""
    config, bound = inputs.config, inputs.bound
    own = {"name": config.name, "scope": config.scope}
    if bound is None:
        return own
    theirs = {"name": bound.report.name, "scope": bound.report.scope}
    return {key: own[key] if key in config.model_fields_set else theirs[key] for key in own}


def _exam(columns: CorpusColumns, corpus: Corpus | None) -> LeakExam | None:
    asking = [row.principal.groups for row in columns.rows if row.principal is not None]
    if not asking or corpus is None:
        return None
    return LeakExam(rows=len(asking), could_leak=sum(map(corpus.bars_something, asking)))


def decide_gates(inputs: Inputs, columns: CorpusColumns, measured: Measured, exam: LeakExam | None) -> list[Gate]:
    """The gates every run has, then those asked for."""
    incomplete = int((~columns.complete).sum())
    gates = [gating.complete_gate(incomplete, len(columns), inputs.options.allow_incomplete)]
    limits = {"required": False, "leaks": bool(columns.asking.any()), "filter_violations": False}
    gates += gating.standing_gates(measured.overall, exam, limits)
    slices = corpus_gates.Parts(measured.overall, measured.slices, measured.collections)
    return gates + corpus_gates.asked_gates(inputs.config.gates, slices, inputs.depth.limit)


def _judgments_digest(judgments: Sequence[Judged]) -> str:
    rows = [j.row for j in judgments if j.row.review_status == "reviewed"]
    return unordered(row_digest(corpus_judgment_content(row)) for row in rows)


def _fingerprint(inputs: Inputs) -> dict[str, Any]:
    own = None if inputs.bound is None else inputs.bound.report.fingerprint
    measures = {name: record.version for name, record in {**CORPUS, **COLLECTION}.items()}
    reading = inputs.options.model_dump(include={"split", "lenient"})
    return {
        "configuration": None if own is None else own.configuration,
        "system": None if own is None else own.system,
        "measurement": digest({"measures": measures, "reading": reading}),
        "components": dict(inputs.components),
    }


def _exploratory(inputs: Inputs) -> list[str]:
    told = [] if inputs.bound is None else [f"retrieval report: {reason}" for reason in inputs.bound.report.exploratory]
    if inputs.options.lenient:
        let_pass = ", ".join(f"{kind}: {n}" for kind, n in sorted(inputs.findings.let_pass.items()))
        told.append("--lenient: " + (let_pass or "nothing had to be let pass"))
    return told


def _rows(inputs: Inputs, columns: CorpusColumns) -> dict[str, Any]:
    rows = [j.row for j in inputs.judgments]
    reviewed = sum(row.review_status == "reviewed" for row in rows)
    return {
        "total": len(rows),
        "by_status": _tally(row.review_status for row in rows),
        "by_category": _tally(row.category for row in columns.rows),
        "by_split": _tally(row.split or "none" for row in columns.rows),
        "scored": len(columns),
        "positives": int(columns.positive.sum()),
        "expected_none": int((~columns.positive).sum()),
        "other_split": reviewed - len(columns),
        "incomplete": [
            {"query_id": row.query_id, "because": "no row in the corpus results" if state == MISSING else story.error or ""}
            for row, state, story in zip(columns.rows, columns.state, columns.stories, strict=True)
            if state != OK
        ],
    }


def _tally(values: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _counts(tally: RouteTally, findings: Findings) -> dict[str, Any]:
    return {
        "result_rows": tally.result_rows,
        "without_judgment": tally.without_judgment,
        "beyond_top_k": tally.beyond_top_k,
        "not_searched": tally.not_searched,
        "lenient": dict(sorted(findings.let_pass.items())),
    }


def _warnings(inputs: Inputs, tally: RouteTally) -> list[str]:
    """What a reader of the report should know; file names and lines stay on stderr."""
    kinds = Counter(f.kind for f in inputs.findings.warnings)
    told = [f"{kind.replace('_', ' ')}: {n}" for kind, n in sorted(kinds.items())]
    if inputs.bound is None:
        told.append("unbound: no retrieval report, so that nothing says which configuration this was")
    if tally.not_searched:
        told.append(f"{tally.not_searched} routed collections were searched by no fan-out")
    return told


def inputs_of(config: Config) -> list[str]:
    """Paths of the files that an evaluation reads."""
    own = [config.judgments.corpus, config.corpus.results, config.corpus.retrieval_report]
    return [split_name(path)[1] for path in config.fragments] + [path for path in own if path]


def _provenance(inputs: Inputs, columns: CorpusColumns, paths: Mapping[str, str]) -> dict[str, Any]:
    config = inputs.config
    files = [("fragments", *split_name(path)[::-1]) for path in config.fragments]
    files += [("judgments", config.judgments.corpus or "", None), ("corpus_results", config.corpus.results or "", None)]
    files += [("retrieval_report", config.corpus.retrieval_report, None)] if config.corpus.retrieval_report else []
    return {
        "tool": f"tripos {__version__}",
        "inputs": [{"role": role, "path": paths.get(path, path), "collection": name} for role, path, name in files],
        "latency_ms": latency(columns.latency_ms),
        "fan_out_latency_ms": fan_out_latency(columns),
        "over_fan_out": over_fan_out_cost(columns),
    }
