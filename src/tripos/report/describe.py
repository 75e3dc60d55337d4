"""The measures' records as tables for people and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tripos.measures.record import Measure


def measure_rows(measures: Iterable[Measure]) -> list[dict[str, Any]]:
    """Each record as plain data, without its function."""
    return [
        {
            "name": m.name,
            "title": m.title,
            "formula": m.formula,
            "rows": m.population,
            "better": m.direction,
            "aggregate": m.aggregate,
            "interval": _interval(m),
            "marked_under_known_item": m.needs_completeness,
            "undefined": dict(m.reasons),
            "source": m.source,
            "version": m.version,
        }
        for m in measures
    ]


def _interval(measure: Measure) -> str | None:
    if measure.aggregate == "sum":
        return None
    return "wilson" if measure.proportion else "bootstrap"


def measures_text(measures: Iterable[Measure]) -> str:
    """The records as a list for a terminal."""
    lines = []
    for m in measures:
        arrow = "↑" if m.direction == "higher" else "↓"
        lines.append(f"{m.name:<18}{arrow} {m.title}\n{'':<20}{m.formula}")
        lines += [f"{'':<20}undefined where {text} ({reason})" for reason, text in m.reasons.items()]
    return "\n".join(lines) + "\n"


def measures_markdown(measures: Iterable[Measure]) -> str:
    """The records as a Markdown table."""
    lines = ["| measure | value of a row | over | better | undefined where | source |", "|---|---|---|---|---|---|"]
    for m in measures:
        mark = "\\*" if m.needs_completeness else ""
        reasons = "; ".join(f"{text} (`{reason}`)" for reason, text in m.reasons.items()) or "–"
        over = f"{m.population.replace('_', ' ')}, {m.aggregate}"
        lines.append(f"| `{m.name}`{mark} {m.title} | {m.formula} | {over} | {m.direction} | {reasons} | {m.source} |")
    return "\n".join(lines) + "\n"


def listed_by_layer(layers: Mapping[str, Mapping[str, Measure]], *, markdown: bool = False) -> str:
    """The records of every layer, each under its heading."""
    table, mark = (measures_markdown, "### ") if markdown else (measures_text, "")
    return "\n".join(f"{mark}{title}\n\n{table(measures.values())}" for title, measures in layers.items())
