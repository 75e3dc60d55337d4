"""Checks: enough was examined, of reviewed rows alone, with nothing missing and nothing leaked."""

from __future__ import annotations

from collections.abc import Iterator

from tripos.certify.dossier import Dossier
from tripos.certify.record import Outcome, by_layer, check, failed, not_applicable, passed, warned
from tripos.contracts.config import LayerName
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Aggregate
from tripos.errors import ExitCode, Findings, quoted
from tripos.files.corpus import read_corpus_results
from tripos.runners.settings import corpus_settings

_UNREVIEWED = ("draft", "in_review")


@check("full-scope", "Every layer was evaluated in full scope, and not on tune rows alone.")
def full_scope(dossier: Dossier) -> Outcome:
    """An integration run is a check of wiring, not of quality."""

    def narrow(layer: LayerName) -> Iterator[str]:
        if (scope := dossier.made(layer).scope) != "full":
            yield f"{layer}: scope is {scope}"
        if dossier.made(layer).reading.get("split") == "tune":
            yield f"{layer}: evaluated on split tune alone, the rows on which settings are chosen"

    fix = "set scope: full, and evaluate the real system on all rows, or on those of split holdout"
    return by_layer(dossier, narrow, "full", "not a full run", fix)


@check("limit", "Rankings were examined to the depth that certification asks for.")
def limit(dossier: Dossier) -> Outcome:
    """D's limit against certification.min_limit."""
    depth = int((dossier.retrieval.fingerprint.components["D"].values or {}).get("limit", 0))
    least = dossier.demands.min_limit
    if depth < least:
        fix = f"search and evaluate with depth.limit {least} or more"
        return failed(f"limit {depth} is below {least}", [f"depth.limit: {depth}, at least {least} is demanded"], fix)
    return passed(f"limit {depth}, at least {least} asked for")


@check("reviewed-only", "No row of a golden file is a draft or still in review.")
def reviewed_only(dossier: Dossier) -> Outcome:
    """Rejected rows may stay: reviewers have decided, and nothing is scored by them."""

    def unreviewed(layer: LayerName) -> Iterator[str]:
        by_status = dossier.made(layer).rows.by_status
        told = ", ".join(f"{by_status[status]} {status}" for status in _UNREVIEWED if by_status.get(status))
        if told:
            yield f"{layer} judgments: {told}"

    made = [again.report for again in dossier.again.values() if again.report is not None]
    rejected = sum(report.rows.by_status.get("rejected", 0) for report in made)
    good = f"all reviewed{f', {rejected} rejected' if rejected else ''}"
    fix = "review them (review_status: reviewed or rejected), or move them to a file of their own"
    return by_layer(dossier, unreviewed, good, "rows nobody has decided on", fix)


@check("nothing-incomplete", "Every scored query has a usable result, and every answer what decides it.", ExitCode.INCOMPLETE)
def nothing_incomplete(dossier: Dossier) -> Outcome:
    """--allow-incomplete lets a report pass, and no certificate."""

    def open_rows(layer: LayerName) -> Iterator[str]:
        report = dossier.made(layer)
        if isinstance(report, GenerationReport):
            yield from (f"generation: {quoted(row.query_id)}: {row.because}" for row in report.rows.incomplete_rows)
            if report.rows.not_judged:
                yield f"generation: {report.rows.not_judged} answers have no faithfulness score, which alone would decide them"
        else:
            yield from (f"{layer}: {quoted(row.query_id)}: {row.because}" for row in report.rows.incomplete)

    found = by_layer(dossier, open_rows, "nothing missing", "rows are incomplete", "rerun or judge them, and evaluate again")
    if found.status == "passed" and (own := dossier.generation) is not None and own.completeness == "not_checkable":
        return warned("answers and judgments share a file, so that an absent answer could not be noticed")
    return found


@check("not-exploratory", "Nothing was let pass by --lenient.")
def not_exploratory(dossier: Dossier) -> Outcome:
    """Exploratory reports are a first look."""

    def let_pass(layer: LayerName) -> Iterator[str]:
        yield from (f"{layer}: {reason}" for reason in dossier.made(layer).exploratory)

    return by_layer(dossier, let_pass, "strict", "a report is exploratory", "mend the files, and evaluate without --lenient")


@check("no-leaks", "No result was shown to somebody who may not read it, and no filter was violated.")
def no_leaks(dossier: Dossier) -> Outcome:
    """At any rank, before any cut."""

    def leaks(layer: LayerName) -> Iterator[str]:
        for name in ("leaks", "filter_violations"):
            found = dossier.made(layer).measures.get(name)
            if isinstance(found, Aggregate) and found.value:
                yield f"{layer}: {found.value:g} {name.replace('_', ' ')} in {found.n} rows"

    return by_layer(dossier, leaks, "none", "access was not kept", "see the misses with reason leak or filter_violation")


@check("leak-exam", "Where rows ask as somebody, something could have leaked.")
def leak_exam(dossier: Dossier) -> Outcome:
    """An exam in which every principal may read everything shows nothing."""
    asking = [layer for layer in dossier.layers if layer != "generation"]
    exams = {layer: exam for layer in asking if (exam := getattr(dossier.made(layer), "leak_exam", None)) is not None}
    if not exams:
        return not_applicable("no row asks as somebody (principal)")
    vacuous = [
        f"{layer}: none of {exam.rows} rows had anything to leak" for layer, exam in exams.items() if not exam.could_leak
    ]
    if vacuous:
        fix = "give fragments an acl that bars some principal, or set acl_default: deny"
        return failed("the leak exam is vacuous", vacuous, fix)
    told = (f"{exam.could_leak} of {exam.rows} {layer} rows could have leaked" for layer, exam in exams.items())
    return passed(", ".join(told))


@check("multi-hop-evidence", "Multi-hop answers were written from what the corpus layer handed on.")
def multi_hop_evidence(dossier: Dossier) -> Outcome:
    """The generation runner takes their word for what they were shown; the corpus results say what that was."""
    if "generation" not in dossier.layers or not dossier.anew("generation").shown.multi_hop:
        return not_applicable("no multi-hop answer says what it was shown")
    dossier.made("generation")
    shown = dossier.anew("generation").shown.multi_hop
    if "corpus" not in dossier.layers:
        return warned(
            f"{len(shown)} multi-hop answers say what they were shown, and no corpus layer is certified to check it by"
        )
    final = _final(dossier, set(shown))
    told = [
        f"{quoted(query_id)}: {quoted(names[0])}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {where}"
        for query_id, given in sorted(shown.items())
        if (names := [name for name in given if name not in final.get(query_id, ())])
        for where in ["outside the corpus layer's final list" if query_id in final else "the corpus results have no such query"]
    ]
    if told:
        return failed("evidence that no layer handed on", told, "answer from the final list of each corpus result")
    return passed(f"{len(shown)} answers")


def _final(dossier: Dossier, wanted: set[str]) -> dict[str, frozenset[str]]:
    """What the corpus layer handed on, of the queries wanted, within top_k."""
    dossier.made("corpus")
    report = dossier.report("corpus")
    assert isinstance(report, CorpusReport)
    config, options = corpus_settings(report, dossier.path("corpus"), dossier.path("retrieval"))
    top_k = int((dossier.retrieval.fingerprint.components["D"].values or {})["top_k"])
    reading = {"lenient": options.lenient, "allow_extra": options.allow_extra}
    rows = (routed.row for routed in read_corpus_results(config.corpus.results or "", Findings(), **reading))
    return {row.query_id: frozenset((row.handed_on or ())[:top_k]) for row in rows if row.query_id in wanted}
