"""A report for a person at a terminal: the answer, why to believe it, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tripos.contracts.reports import Aggregate, Curve, Gate, RetrievalReport, Slice, Verdict
from tripos.errors import printable
from tripos.measures.retrieval import RETRIEVAL

WIDTH = 100
_BARS = "▁▂▃▄▅▆▇█"
_ROWS = ("hit@k", "recall@k", "ndcg@k", "rr@k", "ap@k", "group_recall@k", "evidence_recall@k")
_LABELS = {"rr@k": "mrr", "ap@k": "map"}
_MAX_SLICES = 16
GATE_WORDS = {
    "passed": "pass",
    "failed": "FAIL",
    "vacuous": "FAIL (vacuous)",
    "inconclusive": "INCONCLUSIVE",
    "allowed": "allowed",
}
"""What became of a gate, as it is read."""

_MAX_NAMED = 5


def figure(value: float | None) -> str:
    """A share as it is read: .714, 1.00; – where there is none."""
    if value is None:
        return "–"
    if value < 0:
        return f"−{figure(-value)}"
    if value > 1:
        return f"{value:g}"
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1.00"


def render(report: RetrievalReport, cutoffs: Sequence[int], written: Sequence[str] = ()) -> str:
    """The summary as text, without colour.

    Args:
        report: The sealed report.
        cutoffs: The headline cutoffs, ascending.
        written: Paths of the files that were written: report, misses.
    """
    shown = _columns(cutoffs)
    lines = [*_head(report), ""]
    lines += _integration(report) if report.scope == "integration" else [*_table(report, shown), *_curve(report), ""]
    lines += [*_slices(report.slices, shown), *_exams(report), *_incomplete(report, shown), *_ties(report)]
    lines += [*_remarks(report), "", *gate_lines(report.gates), "", *_end(report, written)]
    return printable("\n".join(squeezed(lines))) + "\n"


def squeezed(lines: Sequence[str]) -> Iterator[str]:
    """Drop the second of two blank lines, and trailing white space."""
    previous = "x"
    for line in lines:
        if line or previous:
            yield line.rstrip()
        previous = line


def _columns(cutoffs: Sequence[int]) -> list[int]:
    """At most six cutoffs: the first five and the last."""
    return list(cutoffs) if len(cutoffs) <= 6 else [*cutoffs[:5], cutoffs[-1]]


def _head(report: RetrievalReport) -> Iterator[str]:
    depth = report.fingerprint.components["D"].values or {}
    policy = report.fingerprint.components["C"].values or {}
    unit = ", by source" if depth["unit"] == "source" else ""
    floor = f", min score {policy['min_score']:g}" if "min_score" in policy else ""
    left = f"retrieval · {report.name} · {policy.get('mode')}, limit {depth['limit']}, top K {depth['top_k']}{unit}{floor}"
    right = f"fingerprint {report.fingerprint.configuration[:12]}"
    yield left + " " * max(3, WIDTH - len(left) - len(right)) + right
    if report.scope == "integration":
        yield "integration: a check of wiring, not of quality"
    for reason in report.exploratory:
        yield f"EXPLORATORY, cannot certify: {reason}"


def _integration(report: RetrievalReport) -> Iterator[str]:
    hit, mrr, empty = report.measures["hit@k"], report.measures["rr@k"], report.measures["expected_empty"]
    assert isinstance(hit, Curve)
    assert isinstance(mrr, Curve)
    assert isinstance(empty, Aggregate)
    for k in (1, 3):
        if k <= len(hit.value):
            yield f"Hit@{k}             {figure(hit.value[k - 1]):>5}   n {hit.n}"
    yield f"MRR               {figure(mrr.value[-1]):>5}   n {mrr.n}"
    yield f"expected-empty    {figure(empty.value):>5}   n {empty.n}"


def _table(report: RetrievalReport, cutoffs: Sequence[int]) -> Iterator[str]:
    yield " " * 17 + "".join(f"{'@' + str(k):<13}" for k in cutoffs)
    marked = False
    for name in _ROWS:
        curve = report.measures[name]
        assert isinstance(curve, Curve)
        if curve.undefined and name != "hit@k":
            continue
        star = RETRIEVAL[name].needs_completeness and _known_item(report)
        marked |= star
        label = _LABELS.get(name, name.removesuffix("@k").replace("_", " ")) + ("*" if star else "")
        yield f"{label:<17}" + "".join(f"{_cell(curve, k):<13}" for k in cutoffs) + f"n {curve.n}"
    yield ""
    if marked:
        yield "* judgments are known_item: a source that nobody listed may be right too"
    yield "± half of the 95 % interval; report.json has the ends, and every k"


def _known_item(report: RetrievalReport) -> bool:
    return (report.fingerprint.components["B"].values or {}).get("completeness") == "known_item"


def _cell(curve: Curve, k: int) -> str:
    interval = curve.ci.get(str(k))
    spread = f" ±{figure((interval.high - interval.low) / 2)}" if interval else ""
    return figure(curve.value[k - 1]) + spread


def _curve(report: RetrievalReport) -> Iterator[str]:
    hit = report.measures["hit@k"]
    assert isinstance(hit, Curve)
    values = [v for v in hit.value if v is not None]
    if not values:
        return
    step = -(-len(values) // 50)
    bars = "".join(_BARS[round(v * (len(_BARS) - 1))] for v in values[::step])
    plateau = values.index(values[-1]) + 1
    yield ""
    yield f"hit@k    1 {bars} {len(values)}    plateau {figure(values[-1])} from k = {plateau}"


def _slices(slices: Sequence[Slice], cutoffs: Sequence[int]) -> Iterator[str]:
    ranked = [s for s in slices if _curve_of(s, "hit@k").n or _curve_of(s, "hit@k").incomplete]
    if not ranked:
        return
    low, high = cutoffs[0], max((k for k in cutoffs if k <= 10), default=cutoffs[0])
    yield f"{'slices':<38}{'n':>5}{f'hit@{low}':>10}{f'hit@{high}':>10}{'mrr':>8}{f'recall@{high}':>12}"
    for part in ranked[:_MAX_SLICES]:
        hit, mrr, recall = (_curve_of(part, name) for name in ("hit@k", "rr@k", "recall@k"))
        cells = f"{figure(hit.value[low - 1]):>10}{figure(hit.value[high - 1]):>10}{figure(mrr.value[-1]):>8}"
        yield f"  {f'{part.by}: {part.value}'[:35]:<36}{hit.n:>5}{cells}{figure(recall.value[high - 1]):>12}"
    if len(ranked) > _MAX_SLICES:
        yield f"  … {len(ranked) - _MAX_SLICES} more in report.json"
    yield ""


def _curve_of(part: Slice, name: str) -> Curve:
    curve = part.measures[name]
    assert isinstance(curve, Curve)
    return curve


def _exams(report: RetrievalReport) -> Iterator[str]:
    """Expected-empty, hard negatives and authorization, each in a sentence."""
    figures = report.measures
    empty = figures["expected_empty"]
    if report.scope == "full" and isinstance(empty, Aggregate) and empty.value is not None:
        yield f"expected-empty   {round(empty.value * empty.n)} of {empty.n} left with nothing"
    surfaced = figures.get("forbidden@k")
    if isinstance(surfaced, Curve) and surfaced.n:
        k = min(10, len(surfaced.value))
        value = surfaced.value[k - 1] or 0.0
        yield f"hard negatives   {round(value * surfaced.n)} of {surfaced.n} surfaced a forbidden source in the top {k}"
    leaks = figures["leaks"]
    if report.leak_exam is not None and isinstance(leaks, Aggregate) and leaks.value is not None:
        exam, found = report.leak_exam, f"{leaks.value:g} leaked results" if leaks.value else "no leak"
        yield f"authorization    {found} in {_n(leaks.n, 'row')}, {exam.could_leak} of which could have leaked"
    latency = report.provenance.latency_ms
    if latency.n:
        yield f"latency          p50 {latency.p50:g} ms, p95 {latency.p95:g} ms, p99 {latency.p99:g} ms (n {latency.n})"


def _incomplete(report: RetrievalReport, cutoffs: Sequence[int]) -> Iterator[str]:
    rows = report.rows.incomplete
    if not rows:
        return
    named = ", ".join(f"{_safe(r.query_id)} ({_safe(r.because)})" for r in rows[:_MAX_NAMED])
    more = f", … {len(rows) - _MAX_NAMED} more" if len(rows) > _MAX_NAMED else ""
    yield f"incomplete       {len(rows)} of {report.rows.scored}: {named}{more}"
    hit = report.measures["hit@k"]
    if isinstance(hit, Curve) and hit.incomplete:
        high = max((k for k in cutoffs if k <= 10), default=cutoffs[0])
        yield f"                 counting them as failures: hit@{high} {figure(hit.worst[high - 1])}"


def _n(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def _safe(text: str) -> str:
    from tripos.errors import quoted

    return quoted(text)


def _ties(report: RetrievalReport) -> Iterator[str]:
    moved = [tie for tie in report.ties if tie.best != tie.worst]
    for tie in moved[:1]:
        ends = ", ".join(f"{name} {figure(tie.worst[name])}–{figure(value)}" for name, value in tie.best.items())
        yield f"ties             {_n(tie.rows, 'row')} with equal scores across rank {tie.k}; by their order {ends}"


def _remarks(report: RetrievalReport) -> Iterator[str]:
    counts = report.counts
    told = [
        (counts.without_judgment, "queries have results but no scored judgment"),
        (counts.below_min_score, "results were below min_score"),
        (counts.duplicates, "repeated results were dropped"),
        (counts.reordered, "lists were not in order"),
        (counts.unknown_fragments, "results are in no fragment"),
    ]
    remarks = [f"{n} {text}" for n, text in told if n]
    if remarks or report.warnings:
        yield "counted          " + "; ".join([*remarks, *report.warnings])


def gate_lines(gates: Sequence[Gate]) -> Iterator[str]:
    """One line a gate: what it asks, what became of it, and why."""
    for number, gate in enumerate(gates):
        sign = "≥" if gate.bound == "min" else "≤"
        label = gate.name + (f" [{gate.slice}]" if gate.slice else "") + (f" {sign} {gate.threshold:g}" if gate.asked else "")
        yield f"{'gates' if number == 0 else '':<8}{label:<34}{GATE_WORDS[gate.status]:<16}{gate.because}"


def _end(report: RetrievalReport, written: Sequence[str]) -> Iterator[str]:
    reasons = ", ".join(f"{n} {reason}" for reason, n in report.misses.items())
    yield f"{_n(report.missed, 'missed query', 'missed queries')}" + (f": {reasons}" if reasons else "")
    yield f"  → {', '.join(written)}" if written else "  (--output DIR writes the report, and each miss with its story)"
    yield verdict_line(report.verdict)


def verdict_line(verdict: Verdict) -> str:
    """What the run came to, its first reason, and the exit code."""
    text = verdict.status if not verdict.because else f"{verdict.status}: {verdict.because[0]}"
    more = f", and {len(verdict.because) - 1} more" if len(verdict.because) > 1 else ""
    return f"{text}{more}" + (f"   (exit {verdict.exit_code})" if verdict.exit_code else "")
