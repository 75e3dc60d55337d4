"""Which queries two sides may be compared over: those of the same judgments, or those that both judge alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tripos.across.sides import Rows, Side
from tripos.errors import NotComparable, UsageError, quoted
from tripos.fingerprint import COMPONENT_NAMES, differing

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Shared:
    """Query ids that are compared, ascending, and those that are not, by reason."""

    ids: list[str]
    alone: Mapping[str, list[str]]


def check_repeats(side: Side) -> None:
    """Raise NotComparable for repeats that are not runs of one system over the same judgments."""
    first = side.runs[0].header
    for run in side.runs[1:]:
        own = run.header
        if own.layer != first.layer:
            raise NotComparable(f"{side.given}: repeats of one system are of one layer")
        other = [f"{x} {COMPONENT_NAMES[x]}" for x in "ACD" if first.components[x].digest != own.components[x].digest]
        if first.settings.get("model") != own.settings.get("model"):
            other.append("the model")
        if first.judgments_digest != own.judgments_digest:
            other.append("the judgments")
        if other:
            told = ", ".join(other)
            raise NotComparable(
                f"{side.given}: not repeats of one system, {told} differ{'s' if len(other) == 1 else ''} between "
                f"{first.run_id[:12]} and {own.run_id[:12]}; name different systems as candidates, with spaces between"
            )


def shared(base: Side, side: Side, *, common_queries: bool) -> Shared:
    """The queries that may be compared.

    Raises:
        NotComparable: The judgments differ, or no query is left.
        UsageError: Queries that are judged alike cannot be told, for the judgments are not at hand.
    """
    same = base.header.judgments_digest == side.header.judgments_digest
    if not same and not common_queries:
        raise NotComparable(_differing(base, side))
    ours, theirs = set(base.ids), set(side.ids)
    alone = {"scored_in_base_alone": sorted(ours - theirs), "scored_here_alone": sorted(theirs - ours)}
    ids = sorted(ours & theirs)
    if not same:
        one, other = _content(base), _content(side)
        alone["judged_differently"] = [name for name in ids if one[name] != other[name]]
        ids = [name for name in ids if one[name] == other[name]]
    if not ids:
        raise NotComparable(f"{base.given} and {side.given} have no query in common that both judge alike")
    return Shared(ids, alone)


def _content(side: Side) -> dict[str, bytes]:
    run = side.runs[0]
    if run.content is None:
        text = "--common-queries needs the judgments of both runs, and a store keeps none: name report files instead"
        raise UsageError(f"{side.given}: {text}")
    return dict(zip(run.ids, run.content, strict=True))


def _differing(base: Side, side: Side) -> str:
    """What is not the same about the judgments, as far as can be told, and what to do."""
    told = [f"the judgments differ: {base.given} and {side.given} were not scored by the same reviewed rows"]
    runs = base.runs[0], side.runs[0]
    one, other = (run.header.components["B"] for run in runs)
    fields = [(k, ours, theirs) for k, ours, theirs in differing(one, other) if k in ("version", "completeness")]
    told += [f"{name} {ours} in the base, {theirs} in the candidate" for name, ours, theirs in fields]
    if all(run.content is not None for run in runs):
        told += _rows(*runs)
    told.append("--common-queries compares the rows that both judge alike; --rescore scores both by today's judgments")
    return "\n".join(told)


def _rows(one: Rows, other: Rows) -> list[str]:
    ours, theirs = (dict(zip(run.ids, run.content or (), strict=True)) for run in (one, other))
    alike = [name for name in ours if theirs.get(name) == ours[name]]
    otherwise = [name for name in ours if name in theirs and theirs[name] != ours[name]]
    parts = (
        ("in the base alone", sorted(ours.keys() - theirs.keys())),
        ("in the candidate alone", sorted(theirs.keys() - ours.keys())),
        ("judged differently", otherwise),
    )
    told = [f"{len(alike)} {'query is' if len(alike) == 1 else 'queries are'} judged alike"]
    return told + [f"{len(names)} {text}: {_named(names)}" for text, names in parts if names]


def _named(names: Sequence[str]) -> str:
    more = f", … {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(map(quoted, names[:_MAX_NAMED])) + more
