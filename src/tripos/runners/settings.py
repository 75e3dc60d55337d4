"""The settings that a report was made with, taken from the report alone, so that the same runner can make it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tripos.contracts.config import Config, GateConfig, Options
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Component, DropGate, Gate, RetrievalReport, Slice
from tripos.errors import InputError
from tripos.files.reports import input_paths

Report = RetrievalReport | GenerationReport | CorpusReport
Values = dict[str, Any]


class Rerun(NamedTuple):
    """What one runner needs to make a report again."""

    config: Config
    options: Options


def retrieval_settings(report: RetrievalReport, path: str) -> Rerun:
    """Of a retrieval report; its headline cutoffs are `report.cutoffs`."""
    a, b, c, d = (_values(report.fingerprint.components[letter]) for letter in "ABCD")
    settings = {
        **_label(report),
        "fragments": input_paths(report, path, "fragments"),
        "acl_default": a.get("acl_default"),
        "judgments": {
            "retrieval": _needed(report, path, "judgments"),
            "version": b.get("version"),
            "completeness": b.get("completeness"),
        },
        "ranked_results": _needed(report, path, "ranked_results"),
        "timings": _only(report, path, "timings"),
        "search": c,
        "depth": d,
        "gates": gates_again(report.gates, report.slices),
    }
    return Rerun(Config.model_validate(_given(settings)), _options(report))


def generation_settings(report: GenerationReport, path: str, retrieval_report: str | None) -> Rerun:
    """Of a generation report, bound to the retrieval report named."""
    targets = report.targets
    own = {
        "input": _only(report, path, "input"),
        "answers": _only(report, path, "answers"),
        "retrieval_report": retrieval_report,
        "model": report.model and report.model.name,
        "judge_model": report.judge and report.judge.name,
        "faithfulness_target": targets.faithfulness,
        "qualified_answer_target": targets.qualified,
        "abstention_target": targets.abstention,
        "dropped_gates": targets.dropped,
        "abstention": report.abstention.model_dump(),
    }
    standing = 1 + 3 - len(targets.dropped)  # complete and the targets come first
    settings = {
        **_label(report),
        "fragments": [] if retrieval_report else input_paths(report, path, "fragments"),
        "judgments": {"generation": _only(report, path, "judgments")},
        "generation": own,
        "gates": gates_again(report.gates[standing:], report.slices),
    }
    return Rerun(Config.model_validate(_given(settings)), _options(report))


def corpus_settings(report: CorpusReport, path: str, retrieval_report: str | None) -> Rerun:
    """Of a corpus report, bound to the retrieval report named."""
    a, c, d = (_values(report.fingerprint.components[letter]) for letter in "ACD")
    alone = {"acl_default": a.get("acl_default"), "search": c, "depth": d}
    collections = [Slice(by="collection", value=part.collection, rows=0, measures={}) for part in report.collections]
    settings = {
        **_label(report),
        "fragments": [] if retrieval_report else input_paths(report, path, "fragments"),
        "judgments": {"corpus": _only(report, path, "judgments")},
        "corpus": {"results": _only(report, path, "corpus_results"), "retrieval_report": retrieval_report},
        **({} if retrieval_report else alone),
        "gates": gates_again(report.gates, [*report.slices, *collections]),
    }
    return Rerun(Config.model_validate(_given(settings)), _options(report))


def gates_again(gates: Sequence[Gate], slices: Sequence[Slice]) -> dict[str, GateConfig]:
    """The gates that were asked for, by name; where two have one name, spaces keep them apart, which a name may have."""
    found: dict[str, GateConfig] = {}
    for gate in gates:
        if gate.asked and not isinstance(gate, DropGate):  # those are held against another run, see runners/drops.py
            name = gate.name
            while name in found:
                name += " "
            found[name] = GateConfig.model_validate({gate.bound: gate.threshold, "slice": _slice(gate.slice, slices)})
    return found


def _slice(label: str | None, slices: Sequence[Slice]) -> dict[str, str | bool | int] | None:
    """A slice by its label; one that no row is in has the text alone."""
    if label is None:
        return None
    part = next((part for part in slices if f"{part.by}={part.value}" == label), None)
    if part is not None:
        return {part.by: part.value}
    by, _, value = label.partition("=")
    return {by: value}


def _label(report: Report) -> Values:
    return {"name": report.name, "scope": report.scope}


def _values(component: Component) -> Mapping[str, Any]:
    return component.values or {}


def _only(report: Report, path: str, role: str) -> str | None:
    return next(iter(input_paths(report, path, role)), None)


def _needed(report: Report, path: str, role: str) -> str:
    found = _only(report, path, role)
    if found is None:
        raise InputError.at(path, f"names no {role.replace('_', ' ')}", field="provenance.inputs")
    return found


def _given(settings: Values) -> Values:
    """Settings without those that are null."""
    return {key: _given(value) if isinstance(value, dict) else value for key, value in settings.items() if value is not None}


def _options(report: Report) -> Options:
    return Options.model_validate({key: value for key, value in report.reading.items() if key in Options.model_fields})
