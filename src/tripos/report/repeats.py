"""The noise floor of repeated runs, and what a golden set can show, for a person at a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tripos.contracts.comparison import NoiseFloor, Power, Reach, Repeats
from tripos.errors import printable, quoted
from tripos.report.terminal import WIDTH, figure, squeezed

_MAX_NAMED = 8


def render_repeats(found: Repeats) -> str:
    """What moves between runs of one system, as text without colour."""
    lines = [f"aa · {found.layer} · {found.run.name}: {len(found.run.runs)} runs of one system", ""]
    lines.append(f"{'':<24}{'mean':>7}{'sd':>8}{'lowest':>9}{'highest':>9}{'floor':>8}{'rows moving':>13}{'alarms':>9}")
    lines += [_floor(one, found.pairs) for one in found.measures]
    lines += ["", *_flips(found), *_changing(found.changing), ""]
    lines += [line for text in found.told for line in textwrap.wrap(f"note: {text}", WIDTH, subsequent_indent="      ")]
    lines += ["floor: two single runs of this system differ by more once in twenty; alarms: pairs with p ≤ .05"]
    return printable("\n".join(squeezed(lines))) + "\n"


def _floor(one: NoiseFloor, pairs: int) -> str:
    numbers = f"{figure(one.mean):>7}{figure(one.sd):>8}{figure(one.lowest):>9}{figure(one.highest):>9}{figure(one.floor):>8}"
    return f"{one.measure[:23]:<24}{numbers}{f'{one.changing} of {one.n}':>13}{f'{one.alarms} of {pairs}':>9}"


def _flips(found: Repeats) -> Iterator[str]:
    for flip in found.flips:
        word = "FLIPS" if flip.flips else "steady"
        yield f"gate  {flip.gate}: {word}   passed {flip.passed} of {flip.trials}"


def _changing(names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" … {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        yield f"pass in some runs and fail in others ({len(names)}): {' '.join(map(quoted, names[:_MAX_NAMED]))}{more}"


def render_power(found: Power) -> str:
    """What the rows can show, as text without colour."""
    drops = list(found.measures[0].rows_needed or found.measures[0].rows_to_exclude) if found.measures else []
    lines = [f"power · {found.layer} · from {'a ' if found.source == 'golden set' else ''}{found.source}"]
    lines += [*textwrap.wrap(found.assumed, WIDTH), ""]
    columns = "".join(f"{f'rows for {drop}':>15}" for drop in drops)
    excluded = "".join(f"{f'to exclude {drop}':>17}" for drop in drops)
    lines.append(f"{'':<24}{'n':>6}{'sd':>8}{'could see':>11}{'at least':>10}{columns}{excluded}")
    lines += [_reach(one, drops) for one in found.measures]
    lines += ["", *_legend()]
    return printable("\n".join(squeezed(lines))) + "\n"


def _reach(one: Reach, drops: Sequence[str]) -> str:
    numbers = f"{one.n:>6}{figure(one.sd):>8}{figure(one.could_see):>11}{figure(one.at_least):>10}"
    needed = "".join(f"{_whole(one.rows_needed.get(drop)):>15}" for drop in drops)
    excluded = "".join(f"{_whole(one.rows_to_exclude.get(drop)):>17}" for drop in drops)
    return f"{one.measure[:23]:<24}{numbers}{needed}{excluded}"


def _whole(n: int | None) -> str:
    return "–" if n is None else f"{n:,}"


def _legend() -> Iterator[str]:
    yield "could see: the smallest true difference that is shown four times in five (two-sided 5 %)"
    yield "at least: of rows of 0 or 1, a drop below it is never evidence: six lost and none won"
    yield "to exclude: rows with which a gate with --confidence 0.95 could ever pass"
