"""A comparison for a person at a terminal: the figures, the queries, what else differs, the gates."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tripos.contracts.comparison import Candidate, Cell, ComparedRun, Comparison
from tripos.contracts.reports import DropGate
from tripos.errors import printable, quoted
from tripos.measures.paired import ALPHA
from tripos.report.terminal import GATE_WORDS, WIDTH, figure, squeezed, verdict_line

_MAX_NAMED = 8
_ALONE = {
    "scored_in_base_alone": "scored in the base alone",
    "scored_here_alone": "scored here alone",
    "judged_differently": "judged differently",
}
LEFT_OUT = {
    "no_result_in_base": "no result in the base",
    "no_result_here": "no result here",
    "no_result_in_both": "no result in either",
    "defined_in_base_alone": "defined in the base alone",
    "defined_here_alone": "defined here alone",
}


def render_comparison(comparison: Comparison) -> str:
    """The comparison as text, without colour."""
    lines = [*_head(comparison), ""]
    for candidate in comparison.candidates:
        lines += [*_candidate(candidate), ""]
    lines += [*_notes(comparison), "", *_end(comparison)]
    return printable("\n".join(squeezed(lines))) + "\n"


def signed(value: float | None) -> str:
    """A difference as it is read: +.002, −.028."""
    return figure(value) if value is None or value <= 0 else f"+{figure(value)}"


def chances(p: float | None) -> str:
    """A p-value as it is read."""
    return "–" if p is None else "<.001" if p < 0.001 else figure(p)


def run_label(run: ComparedRun) -> str:
    """A run by its name and id, or repeats by their number."""
    ids = run.runs[0][:12] if len(run.runs) == 1 else f"{len(run.runs)} runs"
    return f"{quoted(run.given)} ({ids})" if run.given != run.runs[0] else ids


def _head(comparison: Comparison) -> Iterator[str]:
    left = f"compare · {comparison.layer} · {comparison.base.name}"
    right = comparison.basis
    yield left + " " * max(3, WIDTH - len(left) - len(right)) + right
    yield f"base       {run_label(comparison.base)}: {_scored(comparison.base)}"


def _scored(run: ComparedRun) -> str:
    return f"{run.scored} scored" + (f", {run.incomplete} without a result" if run.incomplete else "")


def _candidate(candidate: Candidate) -> Iterator[str]:
    yield f"candidate  {run_label(candidate.run)}: {_scored(candidate.run)}; {in_both(candidate.paired)}"
    for reason, names in candidate.alone.items():
        yield from _named(f"not compared, {_ALONE[reason]}", names)
    yield ""
    yield f"{'':<25}{'base':>7}{'now':>8}   {'difference [95 %]':<27}{'p':>6}{'p (Holm)':>10}{'n':>8}{'up':>7}{'down':>7}"
    for cell in candidate.cells:
        yield from _cell(cell)
    yield ""
    yield from _named("lost", candidate.lost)
    yield from _named("gained", candidate.gained)
    if candidate.undecided:
        yield f"undecided on one side or both: {candidate.undecided}"
    yield from differs(candidate)
    yield from _gates(candidate.gates)


def in_both(n: int) -> str:
    """How many queries both runs have."""
    return f"{n} {'query' if n == 1 else 'queries'} in both"


def _cell(cell: Cell) -> Iterator[str]:
    label = f"{cell.measure[:24]:<25}"
    if cell.difference is None:
        yield f"{label}{'–':>7}{'–':>8}   {cell.undefined}"
        return
    span = f"[{signed(cell.ci.low)}, {signed(cell.ci.high)}]" if cell.ci else "[no interval]"
    moved = f"{signed(cell.difference):<7}{span}"
    numbers = f"{figure(cell.base):>7}{figure(cell.value):>8}   {moved:<27}{chances(cell.p):>6}{chances(cell.p_holm):>10}"
    yield f"{label}{numbers}{cell.n:>8}{cell.up:>7}{cell.down:>7}   {word(cell)}"
    if cell.noise and cell.noise.of_difference is not None:
        yield f"{'':<25}from run to run alone: ± {figure(cell.noise.of_difference)} (standard error of the difference)"
    for text in left_out(cell):
        yield f"{'':<25}{text}"


def word(cell: Cell) -> str:
    """The verdict of a cell; where no difference was seen, what stood in the way, or what could have been seen."""
    if cell.verdict != "no difference seen":
        return cell.verdict
    if cell.p_holm is not None and cell.p_holm <= ALPHA:
        return "no difference seen (within the noise of runs)"
    if cell.p is not None and cell.p <= ALPHA:
        return "no difference seen (once adjusted)"
    return "no difference seen" + (f" (could see ≥ {figure(cell.could_see)})" if cell.could_see is not None else "")


def left_out(cell: Cell) -> Iterator[str]:
    """Rows that are not paired, and what they could do."""
    if not cell.left_out:
        return
    told = ", ".join(f"{n} {LEFT_OUT[reason]}" for reason, n in cell.left_out.items())
    at_worst = "" if cell.worst == cell.difference else f"; at worst the difference is {signed(cell.worst)}"
    yield f"not paired: {told}{at_worst}"


def _named(label: str, names: Sequence[str]) -> Iterator[str]:
    if not names:
        return
    more = f" … {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    yield f"{label} ({len(names)}): {' '.join(map(quoted, names[:_MAX_NAMED]))}{more}"


def differs(candidate: Candidate) -> Iterator[str]:
    """What is not the same of the two configurations, one line a component."""
    grouped: dict[str, list[str]] = {}
    for one in candidate.differs:
        field = f"{one.field} " if one.field else ""
        is_digest = len(one.base) == 66 and len(one.value) == 66  # a quoted sha256 says nothing to a reader
        told = f"{field}changed" if is_digest else f"{field}{one.base} → {one.value}"
        grouped.setdefault(one.component, []).append(told)
    for component, parts in grouped.items():
        yield from textwrap.wrap(f"differs in {component}: {'; '.join(parts)}", WIDTH, subsequent_indent="    ")
    if not candidate.differs:
        yield "differs in nothing that was frozen: the same corpus, judgments, policy and depth"


def _gates(gates: Sequence[DropGate]) -> Iterator[str]:
    for n, gate in enumerate(gates):
        if n == 0:
            yield ""
        label = gate.name + (f" [{gate.slice}]" if gate.slice else "") + f" ≤ {gate.threshold:g}"
        at = f" at {gate.confidence:.0%}" if gate.confidence is not None else ""
        yield f"gate  {label}{at}: {GATE_WORDS[gate.status]}   {gate.because}"


def _notes(comparison: Comparison) -> Iterator[str]:
    for text in comparison.told:
        yield from textwrap.wrap(f"note: {text}", WIDTH, subsequent_indent="      ")


def _end(comparison: Comparison) -> Iterator[str]:
    yield f"passes: {comparison.passes}"
    yield f"p by sign flips; Holm over {comparison.family} cells; worse and better at p (Holm) ≤ .05"
    if any(candidate.gates for candidate in comparison.candidates):
        yield verdict_line(comparison.verdict)
