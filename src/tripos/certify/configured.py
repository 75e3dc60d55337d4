"""A configuration against the reports that were made under it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tripos.certify.dossier import Dossier
from tripos.certify.inventory import bytes_digest, inventory
from tripos.contracts.base import shown
from tripos.contracts.config import Config, LayerName
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Component
from tripos.errors import InputError
from tripos.files.retrieval import split_name
from tripos.fingerprint import COMPONENT_NAMES, DERIVED, depth_component, differences, digest, policy_component
from tripos.runners.settings import Report


def deviations(dossier: Dossier, config: Config) -> Iterator[str]:
    """Everything that the configuration states and a report does not bear out."""
    own = dossier.report("retrieval").fingerprint.components
    stated = _components(own, config)
    for letter in COMPONENT_NAMES:
        told = differences(letter, own[letter], stated[letter], "in the configuration")
        yield from (line.replace(" in retrieval,", " in the report,") for line in told)
    for layer in dossier.layers:
        yield from (f"{layer}: {line}" for line in _label(dossier.report(layer), config))
    report = dossier.reports.get("generation")
    if "generation" in dossier.layers and isinstance(report, GenerationReport):
        yield from _generation(report, config)
    yield from _files(dossier, config)


def _components(own: Mapping[str, Component], config: Config) -> dict[str, Component]:
    """A to D with what the configuration states in the place of the report's values."""
    frozen = {key: value for key, value in (own["A"].values or {}).items() if key not in DERIVED}
    a = {**frozen, "acl_default": config.acl_default}
    b = {**(own["B"].values or {}), "version": config.judgments.version, "completeness": config.judgments.completeness}
    return {
        "A": Component(digest=digest(a), values=a) if frozen else own["A"],
        "B": Component(digest=digest(b), values=b),
        "C": policy_component(config.search),
        "D": depth_component(config.depth),
    }


def _label(report: Report, config: Config) -> Iterator[str]:
    """Name and scope, where the configuration states them."""
    for key in ("name", "scope"):
        here, there = getattr(config, key), getattr(report, key)
        if key in config.model_fields_set and here != there:
            yield _told(key, there, here)


def _generation(report: GenerationReport, config: Config) -> Iterator[str]:
    """Targets and ways of measuring as stated, the models where the configuration names them."""
    own, targets = config.generation, report.targets
    pairs: list[tuple[str, Any, Any]] = [
        ("faithfulness_target", targets.faithfulness, own.faithfulness_target),
        ("qualified_answer_target", targets.qualified, own.qualified_answer_target),
        ("abstention_target", targets.abstention, own.abstention_target),
        ("dropped_gates", sorted(targets.dropped), sorted(own.dropped_gates)),
        ("abstention.languages", sorted(report.abstention.languages), sorted(own.abstention.languages)),
        ("abstention.phrases", sorted(report.abstention.phrases), sorted(own.abstention.phrases)),
        ("model", report.model and report.model.name, own.model or (report.model and report.model.name)),
        ("judge_model", report.judge and report.judge.name, own.judge_model or (report.judge and report.judge.name)),
    ]
    yield from (_told(f"generation.{key}", there, here) for key, there, here in pairs if there != here)


def _told(key: str, report: Any, config: Any) -> str:
    return f"{key}: {shown(report)} in the report, {shown(config)} in the configuration"


def _files(dossier: Dossier, config: Config) -> Iterator[str]:
    """Files that the configuration names, against those that the reports read: the same, or of the same bytes."""
    found = inventory(dossier)
    combined = config.generation.answers is None
    named: list[tuple[str, list[str | None]]] = [
        ("fragments", [split_name(path)[1] for path in config.fragments]),
        ("retrieval_judgments", [config.judgments.retrieval]),
        ("ranked_results", [config.ranked_results]),
        ("generation_judgments", [None if combined else config.judgments.generation]),
        ("answers", [config.generation.answers]),
        ("generation_input", [config.generation.input if combined else None]),
        ("corpus_judgments", [config.judgments.corpus]),
        ("corpus_results", [config.corpus.results]),
    ]
    for role, paths in named:
        if _LAYERS.get(role, "retrieval") in dossier.layers:
            yield from _role(role, [path for path in paths if path], [path for name, path in found if name == role])


_LAYERS: dict[str, LayerName] = {
    "generation_judgments": "generation",
    "answers": "generation",
    "generation_input": "generation",
    "corpus_judgments": "corpus",
    "corpus_results": "corpus",
}
"""Which layer reads the files of a role, where it is not retrieval."""


def _role(role: str, stated: list[str], read: list[str]) -> Iterator[str]:
    """Files of one role; what the configuration does not name is the report's own affair."""
    if not stated:
        return
    if not read:
        yield f"{role}: none in the report, {', '.join(stated)} in the configuration"
    elif len(stated) != len(read):
        yield f"{role}: {len(read)} files in the report, {len(stated)} in the configuration"
    elif set(map(os.path.realpath, stated)) != set(map(os.path.realpath, read)) and _bytes(stated) != _bytes(read):
        yield f"{role}: {', '.join(read)} in the report, {', '.join(stated)} in the configuration"


def _bytes(paths: list[str]) -> list[str]:
    """Digests of the files' bytes; of one that cannot be read, its path, which equals none."""
    digests = []
    for path in paths:
        try:
            digests.append(bytes_digest(path))
        except InputError:
            digests.append(path)
    return sorted(digests)
