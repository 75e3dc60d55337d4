"""eval-retrieval: was the reviewed evidence found, and at what rank?

The steps, in order: read, check, align, measure, aggregate, seal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tripos.checks.retrieval import check_against_corpus, check_depths, check_judgments
from tripos.columns.align import Reading
from tripos.columns.groups import clusters_of, everyone, slices_of
from tripos.columns.misses import REASONS, miss_lines
from tripos.columns.retrieval import Hits, RetrievalColumns
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
from tripos.contracts.retrieval import RetrievalJudgment, RetrievalMiss
from tripos.errors import ConfigError, Findings, NothingToEvaluate, UsageError
from tripos.files.retrieval import Located, load_corpus, load_judgments, load_timings
from tripos.fingerprint import (
    NO_CORPUS,
    combined,
    depth_component,
    digest,
    judgments_component,
    policy_component,
    round12,
)
from tripos.measures import gates as gating
from tripos.measures.aggregate import Figures, aggregate, per_row, population
from tripos.measures.layers import gates_of
from tripos.measures.record import Measure
from tripos.measures.retrieval import INTEGRATION, RETRIEVAL, TIED
from tripos.runners.contents import counts_of, exploratory, provenance_of, rows_of, warnings_of
from tripos.runners.drops import Against
from tripos.runners.parts import Job, Progress, align_file

MAX_CUTOFFS = 40

HEADLINE = (1, 5, 10, 20, 50)
"""Cutoffs that get intervals, where the user names none."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was read: rows, corpus and components."""

    config: Config
    options: Options
    headline: tuple[int, ...]
    judgments: list[Located]
    corpus: Corpus | None
    corpus_is_whole: bool
    components: dict[str, Component]
    findings: Findings


class Aligned(NamedTuple):
    """Judgments and results brought together, what that took, and how firmly the results are bound to A and C."""

    columns: RetrievalColumns
    tally: Tally
    binding: dict[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured: aggregates over all rows and by slice."""

    overall: Figures
    slices: list[Slice]
    ties: list[Ties]
    exam: LeakExam | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outcome of one evaluation: the sealed report, its misses, and the columns they came from."""

    report: RetrievalReport
    columns: RetrievalColumns
    findings: Findings
    cutoffs: tuple[int, ...]

    def miss_lines(self) -> Iterator[bytes]:
        """The lines of misses.jsonl, by query id."""
        return miss_lines(self.columns, self.report.run_id, self.report.fingerprint.configuration)

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
) -> Evaluation:
    """Evaluate ranked results against reviewed judgments.

    Args:
        config: The merged configuration; names the files.
        options: How files are read.
        cutoffs: Headline cutoffs; default 1, 5, 10, 20, 50 within limit, top_k and limit.
        paths: Input paths as the report should name them, by the path given.
        progress: Called with (queries read, queries to read) as results are read.
        against: A baseline, and how far this run may drop below it.

    Raises:
        InputError: A file breaks its contract; all faults at once.
        NotComparable: The results carry the digest of another corpus or policy; or the baseline has other judgments.
        NothingToEvaluate: No reviewed row is left to score.
    """
    require(config, judgments=True, ranked_results=True, mode=True)
    inputs = read(config, options or Options(), cutoffs)
    scored = check(inputs)
    if against is not None:
        against.refuse(inputs.components["B"].digest, inputs.options, measures_of(config))
    aligned = align_results(inputs, scored, progress)
    measured = measure(inputs, aligned.columns)
    return seal(inputs, aligned, measured, paths or {}, against)


def read(config: Config, options: Options, cutoffs: Sequence[int]) -> Inputs:
    """Read the judgments and the corpus, and make A–D."""
    findings = Findings()
    reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
    assert config.judgments.retrieval is not None
    judgments = load_judgments([config.judgments.retrieval], findings, **reading)
    corpus, component = None, NO_CORPUS
    before = findings.n_errors
    if config.fragments:
        corpus, built = load_corpus(config.fragments, config.acl_default, findings, **reading)
        component = built.component(config.acl_default)
    components = {
        "A": component,
        "B": judgments_component((j.row for j in judgments), config.judgments.version, config.judgments.completeness),
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


def check(inputs: Inputs) -> list[RetrievalJudgment]:
    """Check the reviewed rows, and choose those that are scored; raises all errors at once."""
    config, options, findings = inputs.config, inputs.options, inputs.findings
    reviewed = [j for j in inputs.judgments if j.row.review_status == "reviewed"]
    check_judgments(reviewed, findings)
    check_depths(reviewed, config.depth.limit, findings)
    if inputs.corpus is not None and inputs.corpus_is_whole:  # else a faulty fragment would be told as missing, too
        check_against_corpus(reviewed, inputs.corpus, findings, lenient=options.lenient)
    findings.raise_errors()
    scored = [j.row for j in reviewed if j.row.scored and options.split in ("all", j.row.split)]
    if not scored:
        where = config.judgments.retrieval
        raise NothingToEvaluate(f"{where}: nothing to evaluate: {_why_nothing(inputs.judgments, reviewed, options.split)}")
    return scored


def _why_nothing(rows: Sequence[Located], reviewed: Sequence[Located], split: str) -> str:
    if not rows:
        return "the file holds no judgment"
    if not reviewed:
        return f"none of {len(rows)} rows is reviewed (review_status: reviewed)"
    if split != "all" and not any(j.row.split == split for j in reviewed):
        return f"no reviewed row is in split {split}"
    return "all reviewed rows are calibration rows, which are in no measure"


def align_results(inputs: Inputs, scored: Sequence[RetrievalJudgment], progress: Progress | None = None) -> Aligned:
    """Bring judgments and ranked results together; raises all errors at once, then NotComparable."""
    config, options, findings = inputs.config, inputs.options, inputs.findings
    assert config.ranked_results is not None
    reading = Reading(inputs.corpus, config.depth, config.search.min_score, options, findings, inputs.headline)
    job = Job(config.ranked_results, scored, reading, inputs.components, config.search, options.workers, options.memory_limit)
    aligner, stamps = align_file(job, progress)
    columns, tally = aligner.columns(), aligner.tally
    if config.timings:
        columns.take_timings(load_timings(config.timings, findings))
    if all(f.kind == "unknown_fragment" for f in findings.errors):
        stamps.refuse()  # results of another corpus are full of unknown fragments: that is told as what it is
    findings.raise_errors()
    stamps.refuse()
    return Aligned(columns, tally, stamps.binding())


def measure(inputs: Inputs, columns: RetrievalColumns) -> Measured:
    """Every measure over all rows and by slice; ties; the leak exam."""
    chosen = measures_of(inputs.config).values()
    groups = [everyone(len(columns))]
    if inputs.config.scope == "full":
        groups += slices_of(columns.rows)
    figures = aggregate(columns, chosen, groups, inputs.headline, clusters_of(columns.rows))
    slices = [
        Slice(by=group.by, value=group.value, rows=len(group.rows), measures=part)
        for group, part in zip(groups[1:], figures[1:], strict=True)
    ]
    return Measured(figures[0], slices, ties_of(columns, inputs.headline), exam_of(columns, inputs.corpus))


def ties_of(columns: RetrievalColumns, headline: Sequence[int]) -> list[Ties]:
    """Where equal scores straddle a headline cutoff: how many rows, and the measures at both ends."""
    if not columns.tied.any():
        return []
    ends = columns.ends
    best = _ends(columns, headline, ends.best, ends.best_gain)
    worst = _ends(columns, headline, ends.worst, ends.worst_gain)
    return [
        Ties(k=k, rows=tied, best=_at(best, k), worst=_at(worst, k))
        for n, k in enumerate(headline)
        if (tied := int((columns.tied >> n & 1).sum()))
    ]


def _ends(columns: RetrievalColumns, headline: Sequence[int], hits: Hits, gains: Hits) -> Figures:
    """The measures that ties move, at one end of their orders."""
    figures: Figures = {}
    for name in TIED:
        ordered = replace(columns, hits=gains if name.startswith("ndcg") else hits)
        figures |= aggregate(ordered, [RETRIEVAL[name]], [everyone(len(columns))], headline, None)[0]
    return figures


def _at(figures: Figures, k: int) -> dict[str, float | None]:
    values = {name: figures[name].value for name in TIED}
    return {RETRIEVAL[name].at(k): value[k - 1] for name, value in values.items() if isinstance(value, tuple)}


def exam_of(columns: RetrievalColumns, corpus: Corpus | None) -> LeakExam | None:
    """How many rows had a principal, and how many of those are barred from something."""
    asking = [row.principal.groups for row in columns.rows if row.principal is not None]
    if not asking or corpus is None:
        return None
    barred = {groups: corpus.bars_something(groups) for groups in set(asking)}
    return LeakExam(rows=len(asking), could_leak=sum(barred[groups] for groups in asking))


def seal(
    inputs: Inputs, aligned: Aligned, measured: Measured, paths: Mapping[str, str], against: Against | None = None
) -> Evaluation:
    """Judge by the gates, bind to the fingerprint, and name the run by its content."""
    columns, tally, binding = aligned
    gates = decide_gates(inputs, columns, measured)
    gates += [] if against is None else against.gates(measured.overall)
    counts = {reason: int((columns.reasons >> bit & 1).sum()) for bit, reason in enumerate(REASONS)}
    content: dict[str, Any] = {
        "name": inputs.config.name,
        "scope": inputs.config.scope,
        "exploratory": exploratory(inputs.options, inputs.findings),
        "fingerprint": fingerprint_of(inputs),
        "judgments_digest": inputs.components["B"].digest,
        "results_digest": tally.results_digest,
        "binding": dict(binding),
        "reading": inputs.options.model_dump(exclude={"all_errors", "workers", "memory_limit"}),
        "cutoffs": inputs.headline,
        "rows": rows_of([j.row for j in inputs.judgments], columns),
        "counts": counts_of(tally, inputs.findings),
        "measures": measured.overall,
        "slices": measured.slices,
        "ties": measured.ties,
        "leak_exam": measured.exam,
        "missed": int((columns.reasons > 0).sum()),
        "misses": {reason: n for reason, n in sorted(counts.items()) if n},
        "warnings": [
            *warnings_of(inputs.findings, inputs.config.judgments.completeness, gates),
            *(() if against is None else against.warnings(measured.overall)),
        ],
        "gates": gates,
        "verdict": gating.verdict(gates),
        "provenance": provenance_of(columns, inputs.config, paths),
    }
    draft = RetrievalReport.model_validate({**content, "run_id": ""})
    run_id = digest(draft.model_dump(mode="json", exclude={"run_id", "provenance"}))
    report = draft.model_copy(update={"run_id": run_id})
    return Evaluation(report, columns, inputs.findings, inputs.headline)


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


def decide_gates(inputs: Inputs, columns: RetrievalColumns, measured: Measured) -> list[Gate]:
    """The gates every run has, then those asked for."""
    incomplete = int((~columns.complete).sum())
    limits = {
        "required": bool(columns.flagged("required_sources").any()),
        "leaks": bool(columns.flagged("principal").any()),
        "filter_violations": bool(columns.flagged("filters").any()),
    }
    gates = [gating.complete_gate(incomplete, len(columns), inputs.options.allow_incomplete)]
    gates += gating.standing_gates(measured.overall, measured.exam, limits)
    for name, config in gates_of("retrieval", inputs.config.gates).items():
        canonical = gating.canonical_name(name, measures_of(inputs.config), columns.limit, "gates")
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
    """One row a scored query: every measure on it, curves at the headline cutoffs; null where undefined or incomplete."""
    columns = evaluation.columns
    tables = {}
    for record in RETRIEVAL.values():
        values = per_row(columns, record)
        open_rows = (values.undefined == 0) & columns.complete & population(record, columns.positive)
        for k in evaluation.cutoffs if record.is_curve else (1,):
            column = values.value[:, k - 1] if record.is_curve else values.value
            tables[record.at(k)] = [round12(v) if defined else None for v, defined in zip(column, open_rows, strict=True)]
    for i, row in enumerate(columns.rows):
        figures = {name: values[i] for name, values in tables.items()}
        yield {"query_id": row.query_id, "complete": bool(columns.complete[i]), **figures}
