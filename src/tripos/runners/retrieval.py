"""eval-retrieval: was the reviewed evidence found, and at what rank?

The steps, in order: read, check, align, measure, aggregate, seal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tripos.checks.retrieval import check_against_corpus, check_depths, check_judgments, is_at_home, may_matter
from tripos.columns.align import Aligner, Reading
from tripos.columns.groups import Group, everyone
from tripos.columns.judged import Judged
from tripos.columns.misses import REASONS, miss_lines
from tripos.columns.retrieval import Floats, RetrievalColumns, RetrievalRows
from tripos.columns.slots import Tally
from tripos.contracts.config import Config, Options
from tripos.contracts.index import Corpus
from tripos.contracts.reports import (
    Component,
    Fingerprint,
    Gate,
    LeakExam,
    RetrievalReport,
    Slice,
    Ties,
)
from tripos.contracts.retrieval import RetrievalMiss
from tripos.errors import ConfigError, Findings, NothingToEvaluate, UsageError
from tripos.files.judgments import How, JudgmentTable
from tripos.files.retrieval import load_corpus, load_timings
from tripos.files.spool import Spool
from tripos.fingerprint import (
    NO_CORPUS,
    combined,
    component_b,
    depth_component,
    digest,
    policy_component,
    round12,
)
from tripos.measures import gates as gating
from tripos.measures.aggregate import Figures, per_row, population
from tripos.measures.block import ROWS
from tripos.measures.layers import gates_of
from tripos.measures.record import Measure
from tripos.measures.retrieval import INTEGRATION, RETRIEVAL
from tripos.measures.scores import Plan
from tripos.measures.totals import Members
from tripos.runners import judging
from tripos.runners.contents import counts_of, exploratory, provenance_of, rows_of, warnings_of
from tripos.runners.drops import Against
from tripos.runners.parts import Job, Progress, Share, align_file

MAX_CUTOFFS = 40

HEADLINE = (1, 5, 10, 20, 50)
"""Cutoffs that get intervals, where the user names none."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was read: rows, corpus and components."""

    config: Config
    options: Options
    headline: tuple[int, ...]
    judgments: JudgmentTable
    corpus: Corpus | None
    corpus_is_whole: bool
    components: dict[str, Component]
    findings: Findings
    keep_misses: bool = True


class Aligned(NamedTuple):
    """Judgments and results brought together and measured, and how firmly the results are bound to A and C."""

    share: Share
    groups: list[Group]
    rows: RetrievalRows
    binding: dict[str, str]

    @property
    def tally(self) -> Tally:
        """What was done to the results, counted."""
        return self.share.aligner.tally


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured: aggregates over all rows and by slice."""

    overall: Figures
    slices: list[Slice]
    ties: list[Ties]
    exam: LeakExam | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome of one evaluation: the sealed report, its misses, and the aligned rows they came from."""

    report: RetrievalReport
    rows: RetrievalRows
    aligner: Aligner
    findings: Findings
    cutoffs: tuple[int, ...]

    @property
    def columns(self) -> RetrievalColumns:
        """All rows at once, with their judged positions; made when asked for, since memory grows with them."""
        return self.aligner.columns()

    def miss_lines(self) -> Iterator[bytes]:
        """The lines of misses.jsonl, by query id."""
        return miss_lines(self.rows, self.report.run_id, self.report.fingerprint.configuration)

    @property
    def misses(self) -> list[RetrievalMiss]:
        """Every missed row with its story, by query id."""
        return [RetrievalMiss.model_validate_json(line) for line in self.miss_lines()]


def evaluate(
    config: Config,
    options: Options | None = None,
    *,
    cutoffs: Sequence[int] = (),
    paths: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    against: Against | None = None,
    keep_misses: bool = True,
) -> Evaluation:
    """Evaluate ranked results against reviewed judgments.

    Args:
        config: The merged configuration; names the files.
        options: How files are read.
        cutoffs: Headline cutoffs; default 1, 5, 10, 20, 50 within limit, top_k and limit.
        paths: Input paths as the report should name them, by the path given.
        progress: Called with (queries read, queries to read) as results are read.
        against: A baseline, and how far this run may drop below it.
        keep_misses: Whether the stories of missed rows are kept for `misses`; the report counts them all the same.

    Raises:
        InputError: A file breaks its contract; all faults at once.
        NotComparable: The results carry the digest of another corpus or policy; or the baseline has other judgments.
        NothingToEvaluate: No reviewed row is left to score.
    """
    require(config, judgments=True, ranked_results=True, mode=True)
    inputs = replace(read(config, options or Options(), cutoffs), keep_misses=keep_misses)
    scored = check(inputs)
    if against is not None:
        against.refuse(inputs.components["B"].digest, inputs.options, measures_of(config))
    aligned = align_results(inputs, scored, progress)
    measured = measure(inputs, aligned)
    return seal(inputs, aligned, measured, paths or {}, against)


def read(config: Config, options: Options, cutoffs: Sequence[int]) -> Inputs:
    """Read the judgments and the corpus, and make A–D."""
    findings = Findings()
    reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
    assert config.judgments.retrieval is not None
    judgments = judging.load(config.judgments.retrieval, findings, How(may_matter, **reading), options.workers)
    corpus, component = None, NO_CORPUS
    before = findings.n_errors
    if config.fragments:
        corpus, built = load_corpus(config.fragments, config.acl_default, findings, **reading)
        component = built.component(config.acl_default)
    components = {
        "A": component,
        "B": component_b(judgments.reviewed, config.judgments.version, config.judgments.completeness),
        "C": policy_component(config.search),
        "D": depth_component(config.depth),
    }
    headline = headline_cutoffs(config.depth.limit, config.depth.handed_on, cutoffs)
    is_whole = findings.n_errors == before
    return Inputs(config, options, headline, judgments, corpus, is_whole, components, findings)


def require(config: Config, *, judgments: bool, ranked_results: bool, mode: bool) -> None:
    """Raise UsageError naming every setting that is called for and not given."""
    settings = (
        ("--judgments", judgments, config.judgments.retrieval),
        ("--ranked-results", ranked_results, config.ranked_results),
        ("--retrieval-mode", mode, config.search.mode),
    )
    if missing := [flag for flag, needed, value in settings if needed and not value]:
        keys = "judgments.retrieval, ranked_results or run, search.mode"
        raise UsageError(f"missing {', '.join(missing)} (or --config with {keys})")


def headline_cutoffs(limit: int, top_k: int, asked: Sequence[int]) -> tuple[int, ...]:
    """The cutoffs that get intervals, ascending and distinct; raises UsageError for one outside 1..limit."""
    if len(asked) > MAX_CUTOFFS:
        raise UsageError(f"{len(asked)} cutoffs: at most {MAX_CUTOFFS} may be asked for; report.json has every k anyway")
    outside = [k for k in asked if not 1 <= k <= limit]
    if outside:
        raise UsageError(f"cutoff {outside[0]} is outside 1..{limit} (limit)")
    chosen = asked or [k for k in (*HEADLINE, top_k, limit) if k <= limit]
    return tuple(sorted(set(chosen)))


def check(inputs: Inputs) -> Judged:
    """Check the reviewed rows, and choose those that are scored; raises all errors at once."""
    config, options, findings, table = inputs.config, inputs.options, inputs.findings, inputs.judgments
    reviewed = table.chosen(lambda kind: kind.status == "reviewed")
    check_judgments(
        [located for row in table.remarkable() if (located := table.located(row)).row.review_status == "reviewed"], findings
    )
    limit = config.depth.limit
    check_depths([table.located(row) for row in reviewed if table.k[row] > limit], limit, findings)
    if inputs.corpus is not None and inputs.corpus_is_whole:  # else a faulty fragment would be told as missing, too
        strangers = (row for row in reviewed if not is_at_home(table.value(row), inputs.corpus))
        check_against_corpus(map(table.located, strangers), inputs.corpus, findings, lenient=options.lenient)
    findings.raise_errors()
    scored = table.chosen(lambda kind: kind.scored and options.split in ("all", kind.split))
    if not scored:
        where = config.judgments.retrieval
        raise NothingToEvaluate(f"{where}: nothing to evaluate: {_why_nothing(table, len(reviewed), options.split)}")
    return Judged(table, scored)


def _why_nothing(table: JudgmentTable, reviewed: int, split: str) -> str:
    if not table:
        return "the file holds no judgment"
    if not reviewed:
        return f"none of {len(table)} rows is reviewed (review_status: reviewed)"
    if split != "all" and not any(kind.status == "reviewed" and kind.split == split for kind in table.kinds):
        return f"no reviewed row is in split {split}"
    return "all reviewed rows are calibration rows, which are in no measure"


def align_results(inputs: Inputs, scored: Judged, progress: Progress | None = None) -> Aligned:
    """Bring judgments and ranked results together; raises all errors at once, then NotComparable."""
    config, options, findings = inputs.config, inputs.options, inputs.findings
    assert config.ranked_results is not None
    how = (config.depth, config.search.min_score, options, findings, inputs.headline, inputs.keep_misses)
    reading = Reading(inputs.corpus, *how)
    groups = groups_of(inputs, scored)
    plan = plan_of(inputs, scored, groups)
    job = Job(
        config.ranked_results, scored, reading, inputs.components, config.search, plan, options.workers, options.memory_limit
    )
    share = align_file(job, progress)
    rows, stamps = share.aligner.rows_taken(), share.stamps
    if config.timings:
        rows.take_timings(load_timings(config.timings, findings))
    if all(f.kind == "unknown_fragment" for f in findings.errors):
        stamps.refuse()  # results of another corpus are full of unknown fragments: that is told as what it is
    findings.raise_errors()
    stamps.refuse()
    return Aligned(share, groups, rows, stamps.binding())


def groups_of(inputs: Inputs, scored: Judged) -> list[Group]:
    """All rows, and the slices that are reported."""
    return [everyone(len(scored)), *(scored.groups() if inputs.config.scope == "full" else [])]


def plan_of(inputs: Inputs, scored: Judged, groups: Sequence[Group]) -> Plan:
    """What is measured of the scored rows."""
    members = Members.of(groups, len(scored), scored.clusters() is not None)
    return Plan(tuple(measures_of(inputs.config)), len(scored), inputs.config.depth.limit, inputs.headline, members)


def measure(inputs: Inputs, aligned: Aligned) -> Measured:
    """Every measure over all rows and by slice; ties; the leak exam."""
    scores, judged = aligned.share.scores, aligned.rows.rows
    overall, *figures = scores.figures(judged.clusters())
    slices = [
        Slice(by=group.by, value=group.value, rows=len(group.rows), measures=part)
        for group, part in zip(aligned.groups[1:], figures, strict=True)
    ]
    return Measured(overall, slices, scores.ties(), exam_of(judged, inputs.corpus))


def exam_of(judged: Judged, corpus: Corpus | None) -> LeakExam | None:
    """How many rows had a principal, and how many of those are barred from something."""
    asking = judged.principals()
    if not asking or corpus is None:
        return None
    return LeakExam(
        rows=sum(asking.values()), could_leak=sum(n for groups, n in asking.items() if corpus.bars_something(groups))
    )


def seal(
    inputs: Inputs, aligned: Aligned, measured: Measured, paths: Mapping[str, str], against: Against | None = None
) -> Evaluation:
    """Judge by the gates, bind to the fingerprint, and name the run by its content."""
    rows, tally = aligned.rows, aligned.tally
    gates = decide_gates(inputs, rows, measured)
    gates += [] if against is None else against.gates(measured.overall)
    counts = {reason: int((rows.reasons >> bit & 1).sum()) for bit, reason in enumerate(REASONS)}
    content: dict[str, Any] = {
        "name": inputs.config.name,
        "scope": inputs.config.scope,
        "exploratory": exploratory(inputs.options, inputs.findings),
        "fingerprint": fingerprint_of(inputs),
        "judgments_digest": inputs.components["B"].digest,
        "results_digest": tally.results_digest,
        "binding": dict(aligned.binding),
        "reading": inputs.options.model_dump(exclude={"all_errors", "workers", "memory_limit"}),
        "cutoffs": inputs.headline,
        "rows": rows_of(inputs.judgments, rows),
        "counts": counts_of(tally, inputs.findings),
        "measures": measured.overall,
        "slices": measured.slices,
        "ties": measured.ties,
        "leak_exam": measured.exam,
        "missed": int((rows.reasons > 0).sum()),
        "misses": {reason: n for reason, n in sorted(counts.items()) if n},
        "warnings": [
            *warnings_of(inputs.findings, inputs.config.judgments.completeness, gates),
            *(() if against is None else against.warnings(measured.overall)),
        ],
        "gates": gates,
        "verdict": gating.verdict(gates),
        "provenance": provenance_of(rows, inputs.config, paths),
    }
    draft = RetrievalReport.model_validate({**content, "run_id": ""})
    run_id = digest(draft.model_dump(mode="json", exclude={"run_id", "provenance"}))
    report = draft.model_copy(update={"run_id": run_id})
    return Evaluation(report, rows, aligned.share.aligner, inputs.findings, inputs.headline)


def fingerprint_of(inputs: Inputs) -> Fingerprint:
    """A–D, what they combine to, and how the numbers were taken."""
    measures = {name: record.version for name, record in RETRIEVAL.items()}
    reading = inputs.options.model_dump(include={"order", "duplicates", "split", "lenient"})
    return Fingerprint(
        configuration=combined(inputs.components, "ABCD"),
        system=combined(inputs.components, "ACD"),
        measurement=digest({"measures": measures, "reading": reading}),
        components=inputs.components,
    )


def decide_gates(inputs: Inputs, rows: RetrievalRows, measured: Measured) -> list[Gate]:
    """The gates every run has, then those asked for."""
    incomplete = int((~rows.complete).sum())
    limits = {
        "required": bool(rows.flagged("required_sources").any()),
        "leaks": bool(rows.flagged("principal").any()),
        "filter_violations": bool(rows.flagged("filters").any()),
    }
    gates = [gating.complete_gate(incomplete, len(rows), inputs.options.allow_incomplete)]
    gates += gating.standing_gates(measured.overall, measured.exam, limits)
    for name, config in gates_of("retrieval", inputs.config.gates).items():
        canonical = gating.canonical_name(name, measures_of(inputs.config), rows.limit, "gates")
        figures, label = gating.slice_figures(measured.slices, config.slice) if config.slice else (measured.overall, "")
        if figures is None:
            gates.append(gating.unfilled_gate(canonical, config, measured.slices, label))
        else:
            gates.append(gating.asked_gate(canonical, config, figures, label or None))
    return gates


def check_gates(config: Config) -> None:
    """Raise ConfigError for a gate that names no measure or no cutoff, before anything is read."""
    seen: dict[tuple[str, str], str] = {}
    for name, gate in gates_of("retrieval", config.gates).items():
        canonical = gating.canonical_name(name, measures_of(config), config.depth.limit, "gates")
        other = seen.setdefault((canonical, str(gate.slice)), name)
        if other != name:
            raise ConfigError.at("gates", f'"{name}" and "{other}" are one gate: keep one', field=f"gates.{name}")


def measures_of(config: Config) -> dict[str, Measure]:
    """The measures of the scope: all, or the few of an integration check."""
    return {name: RETRIEVAL[name] for name in (INTEGRATION if config.scope == "integration" else RETRIEVAL)}


def per_query_rows(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """One row a scored query: every measure on it, curves at the headline cutoffs; null where undefined or incomplete.

    Batches are measured again, in whatever order they came, and their rows put aside until each has its turn.
    """
    aligner, cutoffs = evaluation.aligner, evaluation.cutoffs
    names = [record.at(k) for record in RETRIEVAL.values() for k in (cutoffs if record.is_curve else (1,))]
    places = np.zeros(len(evaluation.rows), dtype=np.int64)
    with Spool() as aside:
        for columns in chain(aligner.finished(), aligner.missing(ROWS)):
            for number, row in zip(columns.numbers.tolist(), row_figures(columns, cutoffs), strict=True):
                places[number] = aside.append(row.tobytes())
        complete = evaluation.rows.complete.tolist()
        for query_id, place, whole in zip(evaluation.rows.rows.query_ids, places.tolist(), complete, strict=True):
            values = np.frombuffer(aside.read(place)).tolist()
            figures = {name: None if math.isnan(value) else value for name, value in zip(names, values, strict=True)}
            yield {"query_id": query_id, "complete": whole, **figures}


def row_figures(columns: RetrievalColumns, cutoffs: Sequence[int]) -> Floats:
    """Every measure on each row as it is told, curves at the cutoffs; NaN where undefined or incomplete; shape (n, figures)."""
    table: list[Floats] = []
    for record in RETRIEVAL.values():
        values = per_row(columns, record, cutoffs)
        is_open = (values.undefined == 0) & columns.complete & population(record, columns.positive)
        matrix = values.value if record.is_curve else values.value[:, None]
        table.append(np.where(is_open[:, None], matrix, np.nan))
    distinct, places = np.unique(np.concatenate(table, axis=1), return_inverse=True)  # few of many, and rounding is slow
    return np.array([round12(value) for value in distinct.tolist()])[places]
