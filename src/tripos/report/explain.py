"""An explanation, and one query's story, for a person at a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tripos.contracts.explanation import PLACES, Charge, Explanation, Story
from tripos.errors import printable, quoted
from tripos.report.terminal import WIDTH, figure, squeezed

_MAX_NAMED = 6


def render_explanation(explanation: Explanation, where: str = "") -> str:
    """Where the failed queries were lost, as text without colour; `where` are the flags that name the run."""
    lines = [*_head(explanation), "", *_places(explanation), "", *_end(explanation, where)]
    return printable("\n".join(squeezed(lines))) + "\n"


def _head(explanation: Explanation) -> Iterator[str]:
    left = f"explain · {explanation.name} · {', '.join(explanation.runs)}"
    right = f"fingerprint {explanation.configuration[:12]}"
    yield left + " " * max(3, WIDTH - len(left) - len(right)) + right
    for reason in explanation.exploratory:
        yield f"EXPLORATORY, cannot certify: {reason}"
    layers = (f"{layer} {n} of {explanation.scored[layer]}" for layer, n in explanation.failures.items())
    yield f"failed: {', '.join(layers)}; {explanation.failed} distinct queries, each charged once"


def _places(explanation: Explanation) -> Iterator[str]:
    if not explanation.failed:
        return
    yield f"{'lost':<24}{'queries':>8}{'share':>8}   first of them"
    for place, n in explanation.lost.items():
        names = [quoted(one.query_id) for one in explanation.charges if one.lost == place]
        more = " …" if len(names) > _MAX_NAMED else ""
        yield f"{place.replace('_', ' '):<24}{n:>8}{figure(n / explanation.failed):>8}   {' '.join(names[:_MAX_NAMED])}{more}"
        yield f"{'':<6}{PLACES[place]}"


def _end(explanation: Explanation, where: str) -> Iterator[str]:
    if not explanation.charges:
        yield "no query failed"
        return
    first = max(explanation.lost, key=lambda place: explanation.lost[place])
    example = next(one for one in explanation.charges if one.lost == first)
    yield f"next: tripos explain {quoted(example.query_id)}{where}"


def render_story(story: Story) -> str:
    """One query's story, as text without colour."""
    lines = [_title(story), f"{'needs':<12}{_needs(story)}", *_steps(story), *_keeps(story.charge)]
    return printable("\n".join(lines)) + "\n"


def _title(story: Story) -> str:
    asked = f'"{story.query}"' if story.query else "(no text)"
    state = f"failed: {story.charge.lost.replace('_', ' ')}" if story.charge else "failed nowhere"
    lines = textwrap.wrap(f"{quoted(story.query_id)}  {asked}      {state}", WIDTH, subsequent_indent=" " * 12)
    return "\n".join([*lines, *(f"{'':<12}{line}" for line in story.outcome)])


def _needs(story: Story) -> str:
    return story.needs + (f"   (and {story.others} more)" if story.others else "")


def _steps(story: Story) -> Iterator[str]:
    signs = {True: "✓", False: "✗", None: "–"}
    for step in story.steps:
        here = "     ← lost here" if step.lost_here else ""
        yield f"{step.stage:<12}{signs[step.kept]} {step.told}{here}".rstrip()


def _keeps(charge: Charge | None) -> Iterator[str]:
    if charge is None:
        return
    if not charge.unit or charge.lost in ("bad_citation", "unfaithful", "not_judged"):
        yield from textwrap.wrap(f"charged to: {charge.told}", WIDTH)
    if charge.remedy:
        yield f"what would keep it: {charge.remedy}"
