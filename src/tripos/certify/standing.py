"""What a certificate says beside its checks: the layers, the models, and what the numbers rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tripos.certify.artifacts import stated_results
from tripos.certify.dossier import Dossier
from tripos.certify.fingerprints import weakest
from tripos.certify.gating import asked_of
from tripos.certify.models import approval_of, needed_kinds
from tripos.certify.record import CannotTell
from tripos.contracts.certificate import (
    CertifiedApproval,
    CertifiedConfiguration,
    CertifiedLayer,
    CertifiedRows,
    ChosenOn,
    Models,
    RestsOn,
    Unjudged,
)
from tripos.contracts.config import LayerName
from tripos.contracts.reports import Curve, RetrievalReport
from tripos.fingerprint import round12
from tripos.runners.settings import Report


def configuration(dossier: Dossier) -> CertifiedConfiguration | None:
    """What the layers share, as derived from the files; None where that failed."""
    again = dossier.again.get("retrieval")
    if again is None or again.report is None:
        return None
    own = again.report.fingerprint
    return CertifiedConfiguration(configuration=own.configuration, system=own.system, components=dict(own.components))


def layers(dossier: Dossier) -> dict[LayerName, CertifiedLayer]:
    """Every layer that could be evaluated again."""
    made = {layer: again.report for layer, again in dossier.again.items()}
    return {layer: _layer(report) for layer, report in made.items() if report is not None}


def _layer(report: Report) -> CertifiedLayer:
    rows = report.rows
    return CertifiedLayer(
        run_id=report.run_id,
        measurement=report.fingerprint.measurement,
        judgments_digest=report.judgments_digest,
        results_digest=stated_results(report),
        binding=weakest(report),
        rows=CertifiedRows(
            total=rows.total,
            scored=rows.scored,
            rejected=rows.by_status.get("rejected", 0),
            by_split=getattr(rows, "by_split", {}),
        ),
        leak_exam=getattr(report, "leak_exam", None),
    )


def models(dossier: Dossier) -> Models | None:
    """Who answered and who judged; None without a generation layer that could be evaluated again."""
    try:
        report, approval = dossier.generation, approval_of(dossier)
    except CannotTell:
        return None
    if report is None:
        return None
    judge = report.judge.name if report.judge is not None and needed_kinds(report) else None
    return Models(
        model=None if report.model is None else report.model.name,
        judge=judge,
        approval=None
        if approval is None
        else CertifiedApproval(by=approval.by, valid_from=approval.from_, valid_until=approval.until, kind=approval.kind),
    )


def rests_on(dossier: Dossier) -> RestsOn | None:
    """What the numbers rest on; None where the retrieval layer could not be evaluated again."""
    try:
        report, answers = dossier.retrieval, dossier.generation
    except CannotTell:
        return None
    b = report.fingerprint.components["B"].values or {}
    found = RestsOn(
        chosen_on=_chosen_on(report),
        completeness=b.get("completeness"),
        judgments_version=b.get("version"),
        answers=None if answers is None else answers.completeness,
        unjudged=_unjudged(report),
        faithfulness_sources={} if answers is None else {str(k): n for k, n in answers.counts.faithfulness_sources.items()},
        told=(),
    )
    return found.model_copy(update={"told": (*_demanded(dossier), *_sentences(found, report))})


def _demanded(dossier: Dossier) -> Iterator[str]:
    """What had to be reached, and what nothing was asked of."""
    config = dossier.demands.config
    if config is None:
        yield "no configuration was given: settings and gates are what the reports themselves say"
    elif left := [layer for layer in config.certification.layers if layer not in dossier.layers]:
        yield f"the configuration asks for {', '.join(left)}, too, which was left out (--layer)"
    reports = {layer: again.report for layer, again in dossier.again.items() if again.report is not None}
    for layer, report in reports.items():
        asked = ", ".join(asked_of(gate) for gate in report.gates if gate.asked) or "none, its figures may be anything"
        yield f"{layer}, {report.rows.scored} rows scored; gates: {asked}"
        if weakest(report) == "declared":
            yield f"{layer}: the system is declared: not every row carries its stamp"
    for what, rows in _apart(reports).items():
        if told := ", ".join(f"{n} {layer}" for layer, n in rows.items() if n):
            yield f"{what}, which no gate reads: {told}"


def _apart(reports: Mapping[LayerName, Report]) -> dict[str, dict[LayerName, int]]:
    """Rows of golden files that no gate reads, by kind: to make a row one of them is to take it out of the exam."""
    return {
        "rows rejected in review": {layer: report.rows.by_status.get("rejected", 0) for layer, report in reports.items()},
        "calibration rows": {layer: getattr(report.rows, "calibration", 0) for layer, report in reports.items()},
        "partly answerable rows": {layer: getattr(report.rows, "partial", 0) for layer, report in reports.items()},
    }


def _chosen_on(report: RetrievalReport) -> ChosenOn:
    """Whether the rows on which settings may have been chosen are among those that are certified."""
    splits = report.rows.by_split
    if splits.get("tune"):
        return "rows_among_the_certified"
    return "rows_kept_apart" if report.rows.other_split or report.rows.calibration else "nothing_kept_apart"


def _unjudged(report: RetrievalReport) -> Unjudged:
    k = int((report.fingerprint.components["D"].values or {})["top_k"])
    judged = report.measures.get("judged@k")
    if not isinstance(judged, Curve):
        return Unjudged(k=k, share=None, undefined="not_measured", n=0)
    value = judged.value[k - 1] if k <= len(judged.value) else None
    return Unjudged(k=k, share=None if value is None else round12(1 - value), undefined=judged.undefined, n=judged.n)


def _sentences(found: RestsOn, report: RetrievalReport) -> Iterator[str]:
    splits, rows = report.rows.by_split, report.rows
    tune, held = splits.get("tune", 0), splits.get("holdout", 0)
    if found.chosen_on == "rows_among_the_certified":
        rest = f"; {held} are holdout rows" if held else ""
        yield f"{tune} of {rows.scored} retrieval rows are tune rows: settings may have been chosen on certified rows{rest}"
    elif found.chosen_on == "rows_kept_apart":
        apart = rows.other_split + rows.calibration
        yield f"settings can have been chosen on {apart} rows that are not among the {rows.scored} certified"
    else:
        yield f"no row was kept apart: settings were chosen, if at all, on the {rows.scored} certified rows themselves"
    if found.completeness == "known_item":
        yield "judgments are known_item: an answer that nobody listed may be right too"
    elif found.completeness is not None:
        yield f"judgments are {found.completeness}"
    yield from _unjudged_told(found.unjudged)
    if found.answers == "not_checkable":
        yield "answers and judgments share a file: an absent answer could not be noticed"
    if found.faithfulness_sources:
        told = ", ".join(f"{n} {source}" for source, n in sorted(found.faithfulness_sources.items()))
        human = " (human ones need no approval)" if found.faithfulness_sources.get("human") else ""
        yield f"faithfulness scores: {told}{human}"


def _unjudged_told(found: Unjudged | None) -> Iterator[str]:
    if found is not None and found.share is not None:
        yield f"{found.share:.1%} of the top {found.k} results are judged by nobody ({found.n} rows)"
    elif found is not None:
        yield f"the share of unjudged results cannot be told ({(found.undefined or 'undefined').replace('_', ' ')})"
