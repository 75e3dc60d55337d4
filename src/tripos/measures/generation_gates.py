"""The gates of every generation run: complete, faithfulness, qualified, abstention; read at their worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tripos.contracts.config import GateConfig, GenerationConfig, TargetName
from tripos.contracts.reports import Aggregate, Curve, Gate, Slice
from tripos.errors import ConfigError, suggest
from tripos.measures.answers import value_of
from tripos.measures.gates import asked_gate, canonical_name, slice_figures, unfilled_gate
from tripos.measures.generation import GENERATION

Figures = Mapping[str, Aggregate | Curve]

_EMPTY: dict[TargetName, str] = {
    "faithfulness": "no answerable question was answered",
    "qualified": "no question is answerable",
    "abstention": "no question is unanswerable, so that nothing shows whether the system declines",
}


def target_gates(figures: Figures, config: GenerationConfig) -> list[Gate]:
    """The three targets, those that the configuration drops left out."""
    targets: dict[TargetName, float] = {
        "faithfulness": config.faithfulness_target,
        "qualified": config.qualified_answer_target,
        "abstention": config.abstention_target,
    }
    return [_target(name, figures, at) for name, at in targets.items() if name not in config.dropped_gates]


def _target(name: TargetName, figures: Figures, at: float) -> Gate:
    found = value_of(figures, name)
    gate = measured_gate(name, GateConfig(min=at), figures, None)
    if gate.status == "vacuous" and found.undefined == "no_rows":
        return gate.model_copy(update={"because": f"undefined: {_EMPTY[name]}; drop the gate where that is meant"})
    return gate


def measured_gate(name: str, config: GateConfig, figures: Figures, label: str | None) -> Gate:
    """A threshold against the worst figure; inconclusive where rows there are, but none could be measured."""
    found, gate = value_of(figures, name), asked_gate(name, config, figures, label)
    if found.value is None and found.incomplete:
        text = f"undecided: {found.incomplete} rows lack an answer or a score, and none says enough"
        return gate.model_copy(update={"status": "inconclusive", "value": None, "because": text})
    reason = GENERATION[name].reasons.get(found.undefined or "")
    if found.value is None and reason is not None:
        text = f"undefined: {reason}"
        return gate.model_copy(update={"status": "vacuous", "value": None, "because": text})
    return gate


def complete_gate(absent: int, unjudged: int, total: int, allowed: bool) -> Gate:
    """Every scored question must have an answer, and every answer that a score decides must have one."""
    parts = [f"{absent} of {total} questions have no usable answer"] if absent else []
    parts += [f"{unjudged} of {total} answers have no faithfulness score, which alone would decide them"] if unjudged else []
    status = "passed" if not parts else "allowed" if allowed else "failed"
    text = "; ".join(parts) or f"all {total} questions have what decides them"
    fields = {"name": "complete", "bound": "max", "threshold": 0, "value": absent + unjudged, "status": status}
    return Gate.model_validate({**fields, "because": text, "asked": False, "slice": None})


def asked_gates(config: Mapping[str, GateConfig], figures: Figures, slices: Iterable[Slice]) -> list[Gate]:
    """The gates of the configuration, those of this layer alone."""
    gates, parts = [], list(slices)
    for name, gate in config.items():
        own, label = slice_figures(parts, gate.slice) if gate.slice else (figures, "")
        canonical = canonical_name(name, GENERATION, 1, "gates")
        if own is None:
            gates.append(unfilled_gate(canonical, gate, parts, label))
        else:
            gates.append(measured_gate(canonical, gate, own, label or None))
    return gates


def check_asked(config: Mapping[str, GateConfig], others: Iterable[str]) -> None:
    """Raise ConfigError for a gate that names no measure of this layer nor, by `others`, of another."""
    known = {name.partition("@")[0] for name in others}
    for name in config:
        if name not in GENERATION and name.strip().lower().partition("@")[0] not in known:
            near = suggest(name, GENERATION)
            raise ConfigError.at("gates", f'"{name}" is no measure{near}: {", ".join(GENERATION)}', field="gates")
