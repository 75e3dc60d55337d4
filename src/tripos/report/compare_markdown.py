"""A comparison as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tripos.contracts.comparison import Candidate, Cell, Comparison
from tripos.contracts.reports import Gate
from tripos.errors import printable
from tripos.report.compare import chances, differs, in_both, left_out, run_label, signed, word
from tripos.report.terminal import figure, verdict_line

_MAX_NAMED = 50
_SIGNS = {"better": "🟢", "worse": "🔴", "no difference seen": "⚪", "undefined": "–"}


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as GitHub renders it: the verdict first, long lists of queries folded."""
    lines = [f"### {comparison.layer}: {_safe(comparison.base.name)}", ""]
    if any(candidate.gates for candidate in comparison.candidates):
        lines += [f"**{_safe(verdict_line(comparison.verdict))}**", ""]
    for candidate in comparison.candidates:
        lines += [*_candidate(candidate, comparison), ""]
    lines += [f"- {_safe(text)}" for text in comparison.told]
    lines += ["", f"<sub>{_foot(comparison)}</sub>"]
    return printable("\n".join(lines)) + "\n"


def _foot(comparison: Comparison) -> str:
    return (
        f"{comparison.basis}; p by sign flips, Holm over {comparison.family} cells; "
        f"a query passes with {_safe(comparison.passes)}"
    )


def _candidate(candidate: Candidate, comparison: Comparison) -> Iterator[str]:
    yield f"{_safe(run_label(candidate.run))} against {_safe(run_label(comparison.base))}, {in_both(candidate.paired)}"
    yield ""
    yield "| | measure | base | now | difference [95 %] | p (Holm) | n | up | down | |"
    yield "|---|---|--:|--:|---|--:|--:|--:|--:|---|"
    yield from map(_row, candidate.cells)
    yield ""
    yield from (f"- {_safe(text)}" for text in differs(candidate))
    yield from _gates(candidate.gates)
    for label, names in (("Lost", candidate.lost), ("Gained", candidate.gained)):
        yield from _folded(label, names)


def _row(cell: Cell) -> str:
    name = f"| {_SIGNS[cell.verdict]} | `{cell.measure}` "
    if cell.difference is None:
        return f"{name}| – | – | {cell.undefined} | – | {cell.n} | | | |"
    span = f" [{signed(cell.ci.low)}, {signed(cell.ci.high)}]" if cell.ci else ""
    told = "; ".join([word(cell), *left_out(cell)])
    return (
        f"{name}| {figure(cell.base)} | {figure(cell.value)} | {signed(cell.difference)}{span} "
        f"| {chances(cell.p_holm)} | {cell.n} | {cell.up} | {cell.down} | {told} |"
    )


def _gates(gates: Sequence[Gate]) -> Iterator[str]:
    for gate in gates:
        part = f" [{gate.slice}]" if gate.slice else ""
        sign = "✅" if gate.status == "passed" else "❌"
        yield f"- {sign} gate {_safe(gate.name + part)} ≤ {gate.threshold:g}: {gate.status}, {_safe(gate.because)}"


def _folded(label: str, names: Sequence[str]) -> Iterator[str]:
    if not names:
        return
    more = f" … {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    yield f"- <details><summary>{label}: {len(names)}</summary>{' '.join(map(_safe, names[:_MAX_NAMED]))}{more}</details>"


def _safe(text: str) -> str:
    """Text that no Markdown or HTML is read into."""
    for character in "\\`*_[]<>|#~":
        text = text.replace(character, {"<": "&lt;", ">": "&gt;"}.get(character, f"\\{character}"))
    return text.replace("\n", " ")
