"""A corpus report for a person at a terminal: where the evidence went, why to believe it, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tripos.contracts.corpus_report import CollectionReport, CorpusReport
from tripos.contracts.reports import Aggregate, Curve
from tripos.errors import printable, quoted
from tripos.report.terminal import WIDTH, figure, gate_lines, squeezed, verdict_line

_MAX_SLICES = 12
_MAX_COLLECTIONS = 20
_MAX_NAMED = 5
_ROUTING = ("routing_exact", "routing_precision", "routing_recall", "routing_f1", "first_choice")
_STAGES = {"routed": "routed", "retrieved": "retrieved", "merged": "merged", "final": "handed on"}


def render_corpus(report: CorpusReport, written: Sequence[str] = ()) -> str:
    """The summary as text, without colour.

    Args:
        report: The sealed report.
        written: Paths of the files that were written: report, misses.
    """
    lines = [*_head(report), "", *_routing(report), "", *_flow(report), "", *_collections(report), *_links(report)]
    lines += [*_slices(report), "", *_exams(report), *_incomplete(report), *_remarks(report), "", *gate_lines(report.gates), ""]
    return printable("\n".join(squeezed([*lines, *_end(report, written)]))) + "\n"


def _head(report: CorpusReport) -> Iterator[str]:
    depth = report.fingerprint.components["D"].values or {}
    policy = report.fingerprint.components["C"].values or {}
    left = f"corpus · {report.name} · {policy.get('mode', 'no search policy stated')}, top K {depth['top_k']}"
    stated = report.fingerprint.configuration
    right = f"fingerprint {stated[:12]}" if stated else "unbound"
    yield left + " " * max(3, WIDTH - len(left) - len(right)) + right
    for reason in report.exploratory:
        yield f"EXPLORATORY, cannot certify: {reason}"


def _single(report: CorpusReport, name: str) -> Aggregate:
    found = report.measures[name]
    assert isinstance(found, Aggregate)
    return found


def _told(found: Aggregate) -> str:
    spread = f" ±{figure((found.ci.high - found.ci.low) / 2)}" if found.ci else ""
    return figure(found.value) + spread


def _routing(report: CorpusReport) -> Iterator[str]:
    names = {name: name.removeprefix("routing_").replace("_", " ") for name in _ROUTING}
    yield f"{'':<17}" + "".join(f"{label:<14}" for label in names.values())
    cells = "".join(f"{_told(_single(report, name)):<14}" for name in names)
    yield f"{'routing':<17}{cells}n {_single(report, 'routing_exact').n}"
    extra, over = _single(report, "extra_fan_out_share"), report.over_fan_out
    cost = report.provenance.over_fan_out
    took = f", {cost.in_vain_ms:g} of {cost.latency_ms:g} ms" if cost.in_vain_ms is not None else ""
    yield f"{'in vain':<17}{over.in_vain} of {over.searches} searches, in {over.rows} rows{took} (share a row {_told(extra)})"


def _flow(report: CorpusReport) -> Iterator[str]:
    """Expected sources through the stages, and where each lost one is charged."""
    flow = report.evidence
    yield f"{'evidence':<17}{'expected':<14}" + "".join(f"{label:<14}" for label in _STAGES.values())
    yield f"{'sources':<17}{flow.expected:<14}" + "".join(f"{flow.kept[stage]:<14}" for stage in flow.kept)
    cells = "".join(f"{_told(_single(report, f'kept_{stage}')):<14}" for stage in _STAGES)
    yield f"{'kept':<17}{'':<14}{cells}n {_single(report, 'kept_final').n}"
    lost = [f"{n} {loss.replace('_', ' ')}" for loss, n in flow.lost.items() if n]
    yield f"{'lost':<17}{sum(flow.lost.values())} of {flow.expected}" + (f": {', '.join(lost)}" if lost else "")
    if side := report.expansion:
        off, on = side.off, side.on
        yield (
            f"{'expansion':<17}off {figure(off.kept.value)} kept, {off.fragments.value:.3g} fragments a row"
            f" · on {figure(on.kept.value)} kept, {on.fragments.value:.3g} fragments"
            f" · recovered {flow.recovered_by_expansion}, displaced {flow.lost['displaced_by_expansion']}"
            f" (better in {side.better} rows, worse in {side.worse} of {side.rows})"
        )


def _collections(report: CorpusReport) -> Iterator[str]:
    heads = ("rows", "routed", "in vain", "own k", "hit", "recall", "enough k", "p95 ms")
    yield f"{'collections':<26}" + "".join(f"{head:>9}" for head in heads)
    for part in report.collections[:_MAX_COLLECTIONS]:
        latency = report.provenance.fan_out_latency_ms[part.collection].p95
        cells = [str(part.rows), _share(part, "routed"), str(part.in_vain), _own_k(part)]
        cells += [_share(part, "hit@case"), _share(part, "recall@case"), _enough(part)]
        cells += ["–" if latency is None else f"{latency:.4g}"]
        yield f"  {quoted(part.collection)[:23]:<24}" + "".join(f"{cell:>9}" for cell in cells)
    if (rest := len(report.collections) - _MAX_COLLECTIONS) > 0:
        yield f"  … {rest} more in corpus-report.json"
    yield "hit and recall are of a collection's own list at its own k; enough k keeps every expected source"
    yield ""


def _share(part: CollectionReport, name: str) -> str:
    found = part.measures[name]
    return figure(found.value) if isinstance(found, Aggregate) else "–"


def _own_k(part: CollectionReport) -> str:
    values = sorted(map(int, part.own_k))
    return "–" if not values else str(values[0]) if len(values) == 1 else f"{values[0]}–{values[-1]}"


def _enough(part: CollectionReport) -> str:
    if part.sufficient_k is not None:
        return str(part.sufficient_k)
    curve = part.measures["hit@k"]
    return f"> {len(curve.value)}" if isinstance(curve, Curve) and part.beyond_k else "–"


def _links(report: CorpusReport) -> Iterator[str]:
    coverage, precision, chain = (_single(report, f"{n}") for n in ("relationship_coverage", "relationship_precision", "chain"))
    hops = _single(report, "all_hops")
    if coverage.n:
        told = f"coverage {_told(coverage)}, precision {_told(precision)}, whole chain {_told(chain)}"
        yield f"{'relationships':<17}{told}   n {coverage.n}"
    if hops.n:
        yield f"{'all hops':<17}{_told(hops)}   n {hops.n} of two or more"


def _slices(report: CorpusReport) -> Iterator[str]:
    shown = [part for part in report.slices if (kept := part.measures["kept_final"]).n or kept.incomplete]
    if not shown:
        return
    names = {"routing_exact": "exact", "kept_routed": "routed", "kept_merged": "merged", "kept_final": "handed on"}
    yield ""
    yield f"{'slices':<38}{'n':>5}" + "".join(f"{label:>11}" for label in names.values())
    for part in shown[:_MAX_SLICES]:
        figures = [part.measures[name] for name in names]
        cells = "".join(f"{figure(f.value):>11}" for f in figures if isinstance(f, Aggregate))
        yield f"  {quoted(f'{part.by}: {part.value}')[:35]:<36}{figures[-1].n:>5}{cells}"
    if len(shown) > _MAX_SLICES:
        yield f"  … {len(shown) - _MAX_SLICES} more in corpus-report.json"


def _exams(report: CorpusReport) -> Iterator[str]:
    none, leaks = _single(report, "expected_none"), _single(report, "leaks")
    if none.n and none.value is not None:
        yield f"{'expected-none':<17}{round(none.value * none.n)} of {none.n} routed nowhere"
    if report.leak_exam is not None and leaks.value is not None:
        stages = {
            stage: _single(report, f"leaks_{stage}").value or 0 for stage in ("retrieved", "merged", "expansion", "final")
        }
        told = ", ".join(f"{n:g} {stage}" for stage, n in stages.items() if n)
        found = f"{leaks.value:g} leaked fragments ({told})" if leaks.value else "no leak at any stage"
        yield f"{'authorization':<17}{found} in {leaks.n} rows, {report.leak_exam.could_leak} of which could have leaked"
    latency = report.provenance.latency_ms
    if latency.n:
        yield f"{'latency':<17}p50 {latency.p50:g} ms, p95 {latency.p95:g} ms, p99 {latency.p99:g} ms (n {latency.n})"


def _incomplete(report: CorpusReport) -> Iterator[str]:
    rows = report.rows.incomplete
    if not rows:
        return
    named = ", ".join(f"{quoted(row.query_id)} ({quoted(row.because)})" for row in rows[:_MAX_NAMED])
    more = f", … {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else ""
    yield f"{'incomplete':<17}{len(rows)} of {report.rows.scored}: {named}{more}"
    yield f"{'':<17}counting them as failures: handed on {figure(_single(report, 'kept_final').worst)}"


def _remarks(report: CorpusReport) -> Iterator[str]:
    counts = report.counts
    told = [
        (counts.without_judgment, "query has results but no scored judgment", "queries have results but no scored judgment"),
        (counts.beyond_top_k, "merged fragment lies beyond top K", "merged fragments lie beyond top K"),
    ]
    remarks = [f"{n} {one if n == 1 else many}" for n, one, many in told if n]
    if remarks or report.warnings:
        yield f"{'counted':<17}" + "; ".join([*remarks, *report.warnings])


def _end(report: CorpusReport, written: Sequence[str]) -> Iterator[str]:
    reasons = ", ".join(f"{n} {reason}" for reason, n in report.misses.items())
    noun = "missed query" if report.missed == 1 else "missed queries"
    yield f"{report.missed} {noun}" + (f": {reasons}" if reasons else "")
    yield f"  → {written[0]}, {written[1]}" if written else "  (--output DIR writes the report, and each miss with its story)"
    if report.missed and written and report.fingerprint.configuration and Path(written[0]).parent.name == "corpus":
        yield f"next: tripos explain --run {Path(written[0]).parent.parent}"
    yield verdict_line(report.verdict)
