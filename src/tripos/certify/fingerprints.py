"""Checks: one configuration, one run, and how firmly they are bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tripos.certify.artifacts import command, stated_results
from tripos.certify.dossier import Dossier
from tripos.certify.record import Outcome, by_layer, check, failed, not_applicable, passed
from tripos.contracts.certificate import Binding
from tripos.contracts.config import LayerName
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Component
from tripos.errors import ExitCode
from tripos.fingerprint import COMPONENT_NAMES, DERIVED, combined, differences, digest
from tripos.runners.settings import Report


@check(
    "fingerprints-follow",
    "Each fingerprint follows from its own components, and they from their values.",
    ExitCode.NOT_COMPARABLE,
)
def fingerprints_follow(dossier: Dossier) -> Outcome:
    """Nothing is looked up: digests of what the report itself states."""

    def broken(layer: LayerName) -> Iterator[str]:
        own = dossier.report(layer).fingerprint
        for letter, component in own.components.items():
            if component.digest != _digest_of(component):
                yield f"{layer}: {letter} {COMPONENT_NAMES[letter]}: the digest does not belong to the values beside it"
        for name, letters in (("configuration", "ABCD"), ("system", "ACD")):
            stated = getattr(own, name)
            if stated is not None and stated != (made := combined(own.components, letters)):
                yield f"{layer}: fingerprint.{name}: {stated[:12]} in the report, its components make {made[:12]}"

    return by_layer(dossier, broken, "they do", "a fingerprint was changed", "evaluate the layer again")


def _digest_of(component: Component) -> str | None:
    if component.values is None:
        return None
    return digest({key: value for key, value in component.values.items() if key not in DERIVED})


@check("one-fingerprint", "Retrieval, generation and corpus measured one configuration (A to D).", ExitCode.NOT_COMPARABLE)
def one_fingerprint(dossier: Dossier) -> Outcome:
    """The components that each report states, against the retrieval report's, field by field."""
    own = dossier.report("retrieval").fingerprint

    def other(layer: LayerName) -> Iterator[str]:
        theirs = dossier.report(layer).fingerprint
        if theirs.configuration is None:
            yield f"{layer}: the report is unbound: it was evaluated without --retrieval-report"
            return
        for letter in COMPONENT_NAMES:
            yield from differences(letter, own.components[letter], theirs.components[letter], f"in {layer}")
        if theirs.configuration != own.configuration:
            yield f"{layer}: configuration {theirs.configuration[:12]}, in retrieval {own.configuration or '':.12}"

    fix = f"rerun with the retrieval report of this run: {command(dossier, _bound_layer(dossier))}"
    return by_layer(dossier, other, f"{own.configuration or '':.12}", "layers measured different configurations", fix)


def _bound_layer(dossier: Dossier) -> LayerName:
    return next((layer for layer in dossier.layers if layer != "retrieval"), "retrieval")


@check("one-run", "Generation and corpus were evaluated from this retrieval report.", ExitCode.NOT_COMPARABLE)
def one_run(dossier: Dossier) -> Outcome:
    """The retrieval run that each later report names, against the one that stands here."""
    if dossier.layers == ("retrieval",):
        return not_applicable("only the retrieval layer is asked for")
    own = dossier.report("retrieval")

    def other(layer: LayerName) -> Iterator[str]:
        report = dossier.report(layer)
        named = {"run_id": own.run_id, "results_digest": stated_results(own)}
        if isinstance(report, GenerationReport) and report.retrieval is not None:
            theirs = {"run_id": report.retrieval.run_id, "results_digest": report.retrieval.results_digest}
        elif isinstance(report, CorpusReport) and report.retrieval_run_id is not None:
            theirs = {"run_id": report.retrieval_run_id}
        elif layer == "retrieval":
            return
        else:
            yield f"{layer}: the report names no retrieval run"
            return
        for key, value in theirs.items():
            if value != named[key]:
                yield f"{layer}: retrieval {key} {value[:12]}, here it is {named[key][:12]}"

    fix = f"{command(dossier, _bound_layer(dossier))}"
    return by_layer(dossier, other, f"{own.run_id[:12]}", "a report comes from another run", fix)


@check("binding", "Results and answers are bound to the configuration as firmly as demanded.")
def binding(dossier: Dossier) -> Outcome:
    """verified: every row carries its stamp; declared: the configuration says so; unbound never certifies."""
    wanted = dossier.demands.binding

    def loose(layer: LayerName) -> Iterator[str]:
        found = weakest(dossier.made(layer))
        if found == "unbound" or (found == "declared" and wanted == "verified"):
            yield f"{layer}: {found}, where {wanted} is demanded"

    fix = "copy system_fingerprint (answers), corpus_digest and policy_digest (results) into the rows, or demand declared"
    return by_layer(dossier, loose, wanted, "rows do not say which system they came from", fix)


def weakest(report: Report) -> Binding:
    """How firmly a layer is bound, by its weakest part."""
    if not isinstance(report.binding, dict):
        return report.binding
    states = set(report.binding.values())
    return "unbound" if "absent" in states else "declared" if "declared" in states else "verified"


@check("as-configured", "The reports measured what the configuration states.", ExitCode.NOT_COMPARABLE)
def as_configured(dossier: Dossier) -> Outcome:
    """A to D, files, targets, models, names: the configuration's, against the reports'."""
    from tripos.certify.configured import deviations

    if dossier.demands.config is None:
        return not_applicable("no configuration was given: the reports say what was measured")
    told = list(deviations(dossier, dossier.demands.config))
    if told:
        path = Path(dossier.demands.config_path or "").name
        return failed(f"the reports were not made by {path}", told, f"evaluate again, first: {command(dossier, 'retrieval')}")
    return passed("all settings agree")
