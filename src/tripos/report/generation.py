"""A generation report for a person at a terminal: the answer, why to believe it, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tripos.contracts.generation import STATUSES
from tripos.contracts.generation_report import GenerationReport, NamedModel
from tripos.contracts.reports import Aggregate, Curve, Slice
from tripos.errors import printable, quoted
from tripos.measures.generation import GENERATION
from tripos.report.terminal import WIDTH, figure, gate_lines, squeezed, verdict_line

_MAX_SLICES = 16
_MAX_NAMED = 5
_ROWS = (
    "qualified", "requirement_coverage", "requirement_coverage_vital", "all_requirements", "citation_precision",
    "citation_precision_micro", "faithfulness", "abstention", "abstention_precision", "abstention_recall", "abstention_f1",
    "over_refusal", "false_answer", "balanced_accuracy", "truthfulness", "aurc",
)  # fmt: skip
_PARTIAL = ("requirement_coverage", "citation_precision", "faithfulness", "over_refusal")


def render_generation(report: GenerationReport, written: Sequence[str] = ()) -> str:
    """The summary as text, without colour.

    Args:
        report: The sealed report.
        written: Paths of the files that were written: report, results, misses.
    """
    lines = [*_head(report), "", *_table(report), "", *_statuses(report), "", *_slices(report.slices), *_apart(report)]
    lines += [*_citations(report), *_abstentions(report), *_incomplete(report), *_remarks(report), ""]
    lines += [*gate_lines(report.gates), "", *_end(report, written)]
    return printable("\n".join(squeezed(lines))) + "\n"


def _head(report: GenerationReport) -> Iterator[str]:
    basis = report.retrieval
    ground = f"{basis.mode}, limit {basis.limit}, top K {basis.top_k}" if basis else "no retrieval report"
    left = f"generation · {report.name} · {ground}"
    own = report.fingerprint.configuration
    right = f"fingerprint {own[:12]}" if own else "unbound"
    yield left + " " * max(3, WIDTH - len(left) - len(right)) + right
    approval = report.provenance.judge_approval.replace("_", " ")
    judge = f"judge {_name(report.judge)} ({'approval ' if approval == 'not checked' else ''}{approval})"
    yield f"model {_name(report.model)} · {judge} · binding {report.binding}"
    for reason in report.exploratory:
        yield f"EXPLORATORY, cannot certify: {reason}"


def _name(model: NamedModel | None) -> str:
    return "not named" if model is None else quoted(model.name) + ("" if model.pinned else " (unpinned)")


def _of(figures: Mapping[str, Aggregate | Curve], name: str) -> Aggregate:
    found = figures[name]
    assert isinstance(found, Aggregate)
    return found


def _table(report: GenerationReport) -> Iterator[str]:
    yield f"{'':<34}{'value':>7}   {'95 % interval':<17}{'worst':>7}{'n':>7}"
    for name in _ROWS:
        found = _of(report.measures, name)
        if found.value is None and found.undefined in ("no_confidence", "no_vital"):
            continue
        arrow = " ↓" if GENERATION[name].direction == "lower" else ""
        span = f"[{figure(found.ci.low)}, {figure(found.ci.high)}]" if found.ci else ""
        worst = figure(found.worst) if found.incomplete and found.value is not None else ""
        why = f"   {_why(name, found.undefined)}" if found.undefined else ""
        yield f"{GENERATION[name].title + arrow:<34}{figure(found.value):>7}   {span:<17}{worst:>7}{found.n:>7}{why}"


def _why(name: str, reason: str) -> str:
    known = {"no_rows": "no such row", "all_incomplete": "no row has an answer or a score"}
    return GENERATION[name].reasons.get(reason, known.get(reason, reason))


def _statuses(report: GenerationReport) -> Iterator[str]:
    yield f"{'what became of the rows':<34}{'rows':>7}"
    for status, text in STATUSES.items():
        if count := report.statuses.get(status):
            yield f"  {status:<32}{count:>7}   {text}"


def _slices(slices: Sequence[Slice]) -> Iterator[str]:
    if not slices:
        return
    titles = ("qualified", "coverage", "precision", "faithful", "abstention")
    yield f"{'slices':<38}{'rows':>6}" + "".join(f"{title:>12}" for title in titles)
    names = ("qualified", "requirement_coverage", "citation_precision", "faithfulness", "abstention")
    for part in slices[:_MAX_SLICES]:
        cells = "".join(f"{figure(_of(part.measures, name).value):>12}" for name in names)
        yield f"  {f'{part.by}: {part.value}'[:35]:<36}{part.rows:>6}{cells}"
    if len(slices) > _MAX_SLICES:
        yield f"  … {len(slices) - _MAX_SLICES} more in generation-report.json"
    yield ""


def _apart(report: GenerationReport) -> Iterator[str]:
    if report.partial is None:
        return
    told = [f"{GENERATION[name].title.lower()} {figure(_of(report.partial.measures, name).value)}" for name in _PARTIAL]
    yield f"partial          {report.partial.rows} partly answerable rows, apart from all above: {', '.join(told)}"


def _citations(report: GenerationReport) -> Iterator[str]:
    told = []
    for name in ("nonexistent", "not_shown", "not_accepted"):
        found = _of(report.measures, name)
        count = f"{found.value:g}" if found.value is not None else f"– ({_why(name, found.undefined or '')})"
        told.append(f"{name.replace('_', ' ')} {count}")
    yield f"citations        {report.counts.citations} distinct; {', '.join(told)}"


def _abstentions(report: GenerationReport) -> Iterator[str]:
    told = [f"{count} {origin}" for origin, count in report.counts.abstention_origins.items() if origin != "answered"]
    more = f"; {report.counts.abstained_with_text} say so beside a text" if report.counts.abstained_with_text else ""
    yield f"abstention       told from: {', '.join(told) or 'nothing'}{more}"
    latency = report.provenance.latency_ms
    if latency.n:
        yield f"latency          p50 {latency.p50:g} ms, p95 {latency.p95:g} ms, p99 {latency.p99:g} ms (n {latency.n})"


def _incomplete(report: GenerationReport) -> Iterator[str]:
    rows = report.rows.incomplete_rows
    if rows:
        named = ", ".join(f"{quoted(r.query_id)} ({quoted(r.because)})" for r in rows[:_MAX_NAMED])
        more = f", … {report.rows.incomplete - _MAX_NAMED} more" if report.rows.incomplete > _MAX_NAMED else ""
        yield f"incomplete       {report.rows.incomplete} of {report.rows.scored}: {named}{more}"
    if report.completeness == "not_checkable":
        yield "completeness     not checkable: in one file an absent answer cannot be noticed (--judgments and --answers can)"


def _remarks(report: GenerationReport) -> Iterator[str]:
    counts = report.counts
    told = [
        (counts.without_judgment, "answers have no reviewed part"),
        (counts.duplicate_citations, "citations repeat another of the same answer"),
    ]
    remarks = [f"{n} {text}" for n, text in told if n] + list(report.warnings)
    yield from (f"{'note' if n == 0 else '':<17}{text}" for n, text in enumerate(remarks))


def _end(report: GenerationReport, written: Sequence[str]) -> Iterator[str]:
    missed = f"{report.missed} rows failed or are undecided"
    if written:
        yield from (written[0], f"{written[1]}: every verdict with its reason", f"{written[2]}: {missed}, each with its story")
    else:
        yield f"{missed} (--output DIR writes every verdict with its reason)"
    yield verdict_line(report.verdict)
