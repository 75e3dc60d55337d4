"""Checks: every file is there, and holds what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from tripos.certify.dossier import Dossier
from tripos.certify.inventory import missing
from tripos.certify.record import CannotTell, Outcome, by_layer, check, failed, lines_of, not_applicable, passed
from tripos.contracts.config import LayerName
from tripos.contracts.generation_report import GenerationReport
from tripos.errors import ExitCode, NotComparable
from tripos.fingerprint import differences


def command(dossier: Dossier, layer: LayerName) -> str:
    """The command that makes a layer's report."""
    config = dossier.demands.config_path
    if config is not None:
        return f"tripos eval-{layer} --config {config}"
    bound = "" if layer == "retrieval" else f" --retrieval-report {dossier.path('retrieval')}"
    return f"tripos eval-{layer}{bound} … --output {dossier.folder}/{layer}"


@check("reports-present", "Every layer that is asked for has its report.")
def reports_present(dossier: Dossier) -> Outcome:
    """A report that is there and cannot be read is an error of its own, told with every fault."""
    absent = [layer for layer in dossier.layers if layer not in dossier.reports and layer not in dossier.faults]
    if dossier.faults:
        layer, fault = next(iter(dossier.faults.items()))
        more = f" (and {fault.total - 1} more)" if fault.total > 1 else ""
        fix = f"put it back, or make it again: {command(dossier, layer)}"
        raise CannotTell(f"{next(lines_of(fault))}{more}", fault.exit_code, fix, is_own=True)
    if absent:
        told = [f"{layer}: there is no {dossier.path(layer)}" for layer in absent]
        fix = f"{command(dossier, absent[0])}, or name the layers to certify (certification.layers, --layer)"
        return failed(f"no report of {', '.join(absent)}", told, fix)
    return passed(f"{', '.join(dossier.layers)}")


@check(
    "artifacts-present", "Every file that the reports name, or that is written beside them, is there.", ExitCode.INVALID_INPUT
)
def artifacts_present(dossier: Dossier) -> Outcome:
    """Reports themselves are told of by reports-present."""
    own = {dossier.path(layer) for layer in dossier.layers if layer not in dossier.reports}
    told = [line for line in missing(dossier) if not any(line.startswith(f"{path}:") for path in own)]
    if told:
        more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
        fix = f"put it back, or make the run again, first: {command(dossier, 'retrieval')}"
        raise CannotTell("; ".join(told[:3]) + more, ExitCode.INVALID_INPUT, fix, is_own=True)
    return passed("all there")


@check("fragments-unchanged", "The corpus is the one that was measured (A).", ExitCode.NOT_COMPARABLE)
def fragments_unchanged(dossier: Dossier) -> Outcome:
    """A as derived from the files, against the retrieval report's."""
    own = dossier.report("retrieval").fingerprint.components["A"]
    if own.digest is None:
        return failed("the retrieval report has no corpus: leaks, filters and sources could not be checked",
                      fix="evaluate with --fragments", exit_code=ExitCode.FAILED)  # fmt: skip
    again = dossier.anew("retrieval").components
    if again is None:
        raise CannotTell("the fragments or the judgments cannot be read")
    if told := differences("A", own, again["A"], "in the files"):
        return failed("the fragments are not those that were measured", told, f"restore them, or {_evaluate(dossier)}")
    counts = (own.values or {}).get("counts") or {}
    return passed(f"{counts.get('fragments')} fragments of {counts.get('sources')} sources")


def _evaluate(dossier: Dossier) -> str:
    return f"evaluate again, first: {command(dossier, 'retrieval')}"


@check("judgments-unchanged", "Each layer's golden file is the one that was measured.", ExitCode.NOT_COMPARABLE)
def judgments_unchanged(dossier: Dossier) -> Outcome:
    """Reviewed rows as derived from the files, against each report's judgments_digest; B field by field."""

    def differing(layer: LayerName) -> Iterator[str]:
        report, again = dossier.report(layer), dossier.anew(layer)
        if again.judgments_digest is None:
            raise CannotTell(f"the {layer} judgments cannot be read")
        if layer == "retrieval" and again.components is not None:
            yield from differences("B", report.fingerprint.components["B"], again.components["B"], "in the file")
        if again.judgments_digest != report.judgments_digest:
            yield _digests(f"{layer} judgments_digest", report.judgments_digest, again.judgments_digest)

    bad = "reviewed rows are not those that were measured"
    return by_layer(dossier, differing, f"{len(dossier.layers)} golden files", bad, f"restore them, or {_evaluate(dossier)}")


@check("results-unchanged", "Ranked results, answers and corpus results are those that were measured.", ExitCode.NOT_COMPARABLE)
def results_unchanged(dossier: Dossier) -> Outcome:
    """What systems gave, as derived from the files, against each report's own digest of it."""

    def differing(layer: LayerName) -> Iterator[str]:
        report, again = dossier.report(layer), dossier.anew(layer)
        if again.results_digest is None:
            dossier.made(layer)
            raise CannotTell(f"the results of the {layer} layer cannot be read")
        name = "answers_digest" if layer == "generation" else "results_digest"
        if again.results_digest != (own := stated_results(report)):
            yield _digests(f"{layer} {name}", own, again.results_digest)

    bad = "what was scored is not what the files hold"
    return by_layer(dossier, differing, "as recorded", bad, f"restore them, or {_evaluate(dossier)}")


def stated_results(report: object) -> str:
    """The digest of what the system gave, as a report states it."""
    return str(report.answers_digest if isinstance(report, GenerationReport) else report.results_digest)  # type: ignore[attr-defined]


def _digests(what: str, stated: str, found: str) -> str:
    return f"{what}: {stated[:12]} in the report, {found[:12]} in the file"


@check("stamps", "No ranked row, answer or corpus result carries the stamp of another system.", ExitCode.NOT_COMPARABLE)
def stamps(dossier: Dossier) -> Outcome:
    """A foreign stamp ends a layer's evaluation as it aligns, and says which component differs."""

    def differing(layer: LayerName) -> Iterator[str]:
        again = dossier.anew(layer)
        if again.stage == "align" and isinstance(again.fault, NotComparable):
            yield from (f"{layer}: {line}" for line in lines_of(again.fault))
        else:
            dossier.made(layer)

    fix = "rerun the system on this corpus, policy and depth, or put back what it gave"
    return by_layer(dossier, differing, "none", "rows of another system", fix)


@check("evidence-recomputed", "generation-evidence.jsonl is what retrieval hands on under this fingerprint.")
def evidence_recomputed(dossier: Dossier) -> Outcome:
    """Where the run keeps the file: its rows against the top K of the ranked results."""
    if "generation" not in dossier.layers:
        return not_applicable("no generation layer is asked for")
    found = dossier.anew("generation").shown.evidence
    if found is None:
        dossier.made("generation")
        return not_applicable("the run keeps no generation-evidence.jsonl")
    if found.fault is not None:
        raise CannotTell(next(lines_of(found.fault)), found.fault.exit_code, is_own=True)
    if found.differences:
        report = dossier.path("retrieval")
        fix = f"tripos evidence --retrieval-report {report} --output {found.path}, and answer from it"
        return failed("the evidence file is not what retrieval hands on", found.differences, fix)
    return passed(f"{found.rows} rows")
