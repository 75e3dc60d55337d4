"""Gates: thresholds over aggregates, read at their worst, and the one verdict they lead to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tripos.contracts.config import GateConfig
from tripos.contracts.reports import Aggregate, Curve, Gate, LeakExam, Slice, Verdict
from tripos.errors import ConfigError, ExitCode, suggest
from tripos.measures.record import Measure

ALIASES = {"mrr": "rr", "map": "ap", "success": "hit", "p": "precision"}
"""Other names of measures, in gates."""

Figures = Mapping[str, Aggregate | Curve]


def canonical_name(name: str, measures: Mapping[str, Measure], limit: int, where: str) -> str:
    """The measure that a gate names, e.g. "mrr@10" → "rr@10"; a curve without a cutoff is read at limit.

    Raises ConfigError, with a suggestion, where there is no such measure or no such cutoff.
    """
    base, _, cutoff = name.strip().lower().partition("@")
    base = ALIASES.get(base, base)
    if base in measures and not cutoff:
        return base
    if f"{base}@k" not in measures:
        near = suggest(base, [m.removesuffix("@k") for m in measures])
        raise ConfigError.at(where, f'"{name}" is no measure{near}: tripos describe measures lists them', field=f"gates.{name}")
    if cutoff == "case":
        return f"{base}@case"
    if cutoff and not re.fullmatch(r"[0-9]{1,9}", cutoff):
        raise ConfigError.at(where, f'"{name}": the cutoff is a number, or case', field=f"gates.{name}")
    k = int(cutoff) if cutoff else limit
    if not 1 <= k <= limit:
        raise ConfigError.at(where, f'"{name}": the cutoff must be within 1..{limit} (limit)', field=f"gates.{name}")
    return f"{base}@{k}"


def worst_of(name: str, figures: Figures) -> tuple[float | None, Aggregate | Curve]:
    """The worst figure of a canonical name, and the aggregate it stands in."""
    if name in figures:
        single = figures[name]
        assert isinstance(single, Aggregate)
        return single.worst, single
    base, _, k = name.partition("@")
    curve = figures[f"{base}@k"]
    assert isinstance(curve, Curve)
    return curve.worst[int(k) - 1], curve


def asked_gate(name: str, config: GateConfig, figures: Figures, label: str | None) -> Gate:
    """A threshold that the user set, against the worst figure."""
    value, found = worst_of(name, figures)
    bound, threshold = ("min", config.min) if config.min is not None else ("max", config.max)
    assert threshold is not None
    if value is None:
        unbounded = found.n > 0
        why = "an incomplete row could be anything" if unbounded else f"undefined: {found.undefined}"
        status = "inconclusive" if unbounded or found.incomplete else "vacuous"
    else:
        passed = value >= threshold if bound == "min" else value <= threshold
        status, why = ("passed" if passed else "failed"), f"worst {value:g}"
    return _gate(_Threshold(name, bound, threshold), value, status, why, asked=True, part=label)


class _Threshold(NamedTuple):
    name: str
    bound: str
    threshold: float


def _gate(
    at: _Threshold, value: float | None, status: str, because: str, *, asked: bool = False, part: str | None = None
) -> Gate:
    fields = {**at._asdict(), "value": value, "status": status, "because": because, "asked": asked, "slice": part}
    return Gate.model_validate(fields)


def complete_gate(incomplete: int, total: int, allowed: bool) -> Gate:
    """Every scored row must have a usable result."""
    status = "passed" if not incomplete else "allowed" if allowed else "failed"
    text = f"{incomplete} of {total} queries have no usable result" if incomplete else f"all {total} queries have a result"
    return _gate(_Threshold("complete", "max", 0), incomplete, status, text)


def standing_gates(figures: Figures, exam: LeakExam | None, limits: Mapping[str, bool]) -> list[Gate]:
    """Gates that every run has: required sources present, no leak, no filter violation.

    Args:
        figures: The overall aggregates.
        exam: The leak exam, if some row has a principal.
        limits: Which of required, leaks and filter_violations some scored row calls for.
    """
    gates = [_required(figures)] if limits["required"] else []
    watched = [name for name in ("leaks", "filter_violations") if limits[name]]
    return gates + [_none_of(name, figures, exam if name == "leaks" else None) for name in watched]


def _required(figures: Figures) -> Gate:
    worst, found = worst_of("required", figures)
    if worst is None:
        return _gate(_Threshold("required", "min", 1), worst, "inconclusive", f"undefined: {found.undefined}")
    text = "all required sources are present" if worst >= 1 else f"worst {worst:g}: a required source is absent"
    return _gate(_Threshold("required", "min", 1), worst, "passed" if worst >= 1 else "failed", text)


def _none_of(name: str, figures: Figures, exam: LeakExam | None) -> Gate:
    single = figures[name]
    assert isinstance(single, Aggregate)
    label = name.replace("_", " ")
    if single.value:
        return _gate(_Threshold(name, "max", 0), single.value, "failed", f"{single.value:g} {label} in {single.n} rows")
    if single.value is None and single.undefined not in (None, "all_incomplete"):
        return _gate(_Threshold(name, "max", 0), None, "vacuous", f"undefined: {single.undefined}")
    if single.incomplete:
        return _gate(_Threshold(name, "max", 0), None, "inconclusive", f"{single.incomplete} rows have no result to look at")
    if exam is not None and not exam.could_leak:
        text = f"none of {exam.rows} rows had anything to leak: every principal may read every fragment"
        return _gate(_Threshold(name, "max", 0), 0, "vacuous", text)
    could = f", {exam.could_leak} of which could have leaked" if exam is not None else ""
    return _gate(_Threshold(name, "max", 0), 0, "passed", f"no {label} in {single.n} row{'' if single.n == 1 else 's'}{could}")


def slice_figures(slices: Sequence[Slice], wanted: Mapping[str, str | bool | int]) -> tuple[Figures | None, str]:
    """The figures of the slice that a gate names, and its label; None where no row is in it."""
    ((by, value),) = wanted.items()
    for part in slices:
        if part.by == by and type(part.value) is type(value) and part.value == value:
            return part.measures, f"{by}={value}"
    return None, f"{by}={value}"


def unfilled_gate(name: str, config: GateConfig, slices: Sequence[Slice], label: str) -> Gate:
    """A gate on a slice that no scored row is in: vacuous, with the slice that may be meant."""
    near = suggest(label, {f"{part.by}={part.value}" for part in slices})
    bound, threshold = ("min", config.min) if config.min is not None else ("max", config.max)
    assert threshold is not None
    text = f"no scored row is in slice {label}{near}"
    return _gate(_Threshold(name, bound, threshold), None, "vacuous", text, asked=True, part=label)


def verdict(gates: Sequence[Gate]) -> Verdict:
    """What the gates come to: incomplete (6) before failed (1) before passed (0)."""
    incomplete = [g for g in gates if g.status == "inconclusive" or (g.name == "complete" and g.status == "failed")]
    failed = [g for g in gates if g.status in ("failed", "vacuous") and g.name != "complete"]
    because = [f"{g.name}: {g.because}" for g in (*incomplete, *failed)]
    if incomplete:
        return Verdict.model_validate({"status": "incomplete", "exit_code": int(ExitCode.INCOMPLETE), "because": because})
    if failed:
        return Verdict.model_validate({"status": "failed", "exit_code": int(ExitCode.FAILED), "because": because})
    return Verdict.model_validate({"status": "passed", "exit_code": int(ExitCode.PASSED), "because": []})
