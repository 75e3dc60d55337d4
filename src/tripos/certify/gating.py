"""Checks: every gate passed, and they are the gates that were asked for."""

from __future__ import annotations

from collections.abc import Iterator

from tripos.certify.dossier import Dossier
from tripos.certify.record import Outcome, by_layer, check, not_applicable
from tripos.contracts.config import Config, GateConfig, LayerName
from tripos.contracts.reports import Gate
from tripos.measures.gates import canonical_name
from tripos.measures.layers import gates_of, registry

Found = dict[tuple[str, str, str | None], Gate]
"""Gates of a report by name, bound and slice."""


@check("gates-passed", "Every gate passed, read at its worst.")
def gates_passed(dossier: Dossier) -> Outcome:
    """Completeness has a check of its own, which no option softens."""

    def standing(layer: LayerName) -> Iterator[str]:
        for gate in dossier.made(layer).gates:
            if gate.status != "passed" and gate.name != "complete":
                yield f"{layer}: {asked_of(gate)}: {gate.status}, {gate.because}"

    gates = sum(len(again.report.gates) for again in dossier.again.values() if again.report is not None)
    return by_layer(dossier, standing, f"{gates} gates", "a gate did not pass", "mend the system, and run it again")


def asked_of(gate: Gate) -> str:
    """What a gate asks, e.g. "hit@8 ≥ 0.75"."""
    sign = "≥" if gate.bound == "min" else "≤"
    return f"{gate.name}{f' ({gate.slice})' if gate.slice else ''} {sign} {gate.threshold:g}"


@check("gates-as-configured", "The gates of the reports are those of the configuration, or stricter.")
def gates_as_configured(dossier: Dossier) -> Outcome:
    """A report that was made under weaker gates than the configuration's passed something else."""
    config = dossier.demands.config
    if config is None:
        return not_applicable("no configuration was given: the gates are those of the reports")

    def weaker(layer: LayerName) -> Iterator[str]:
        found: Found = {(gate.name, gate.bound, gate.slice): gate for gate in dossier.report(layer).gates if gate.asked}
        for name, asked in gates_of(layer, config.gates).items():
            yield from (
                f"{layer}: {line}" for line in _weaker(_canonical(layer, name, asked, _limit(dossier, config)), asked, found)
            )

    return by_layer(
        dossier, weaker, f"{len(config.gates)} gates", "weaker gates than configured", "evaluate with the configuration"
    )


def _limit(dossier: Dossier, config: Config) -> tuple[int, int]:
    """The depth that was measured, which a gate without a cutoff is read at, and the last cutoff that a gate may name."""
    stated = (dossier.report("retrieval").fingerprint.components["D"].values or {}).get("limit")
    measured = stated if isinstance(stated, int) else config.depth.limit  # fingerprints-follow tells what else it may be
    return measured, max(measured, config.depth.limit)


def _canonical(layer: LayerName, name: str, gate: GateConfig, limits: tuple[int, int]) -> str:
    """The gate's name as the report has it; that of one collection keeps its own cutoff."""
    of_collection = gate.slice is not None and "collection" in gate.slice
    measures = registry("collection" if of_collection else layer)
    return canonical_name(name, measures, 1 if layer == "generation" else limits["@" in name], "gates")


def _weaker(name: str, asked: GateConfig, found: Found) -> Iterator[str]:
    bound, threshold = ("min", asked.min) if asked.min is not None else ("max", asked.max)
    label = next((f"{by}={value}" for by, value in (asked.slice or {}).items()), None)
    text = f"{name}{f' ({label})' if label else ''}"
    gate = found.get((name, bound, label))
    assert threshold is not None
    if gate is None:
        yield f"{text}: {bound} {threshold:g} in the configuration, no such gate in the report"
    elif (gate.threshold < threshold) if bound == "min" else (gate.threshold > threshold):
        yield f"{text}: {bound} {threshold:g} in the configuration, {gate.threshold:g} in the report"
