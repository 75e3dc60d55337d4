"""Checks: who answered and who judged are pinned, approved, and not the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from tripos.certify.dossier import Dossier
from tripos.certify.record import CannotTell, Outcome, check, failed, lines_of, not_applicable, passed
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.judges import ApprovedJudge
from tripos.errors import ConfigError, InputError, quoted
from tripos.files.judges import load_judges
from tripos.files.streams import read_text
from tripos.runners.generation_contents import pinned

_KINDS = {"given": "external", "judged": "tripos"}
"""Which kind of approval scores of each source need; human ones need none."""


@check("models-pinned", "Every model is named with its revision, and answers name the one that is certified.")
def models_pinned(dossier: Dossier) -> Outcome:
    """Generator and judge, and what the search policy names."""
    told = list(_unpinned(dossier))
    if told:
        fix = "name them name@revision: generation.model, generation.judge_model, search.embedding_model, search.reranker"
        return failed("a model is not pinned", told, fix)
    return passed("by @revision")


def _unpinned(dossier: Dossier) -> Iterator[str]:
    policy = dossier.retrieval.fingerprint.components["C"].values or {}
    for key in ("embedding_model", "reranker"):
        if (name := policy.get(key)) is not None and not pinned(name):
            yield f"search.{key}: {quoted(name)} has no @revision"
    if (report := dossier.generation) is None:
        return
    for role, model in (("model", report.model), ("judge_model", report.judge)):
        if model is not None and not model.pinned:
            yield f"generation.{role}: {quoted(model.name)} has no @revision"
    if report.model is None:
        yield "generation.model: nobody is named who answered"
    elif others := sorted(dossier.anew("generation").models - {report.model.name}):
        yield f"generation.model: {quoted(report.model.name)}, but answers name {', '.join(map(quoted, others[:3]))}"


@check("judge-approved", "The judge whose scores count is approved on this day.")
def judge_approved(dossier: Dossier) -> Outcome:
    """Only the days of the approval go into the certificate."""
    report = dossier.generation
    if report is None:
        return not_applicable("no generation layer is asked for")
    if not (kinds := needed_kinds(report)):
        return not_applicable("no score rests on a judge")
    if report.judge is None:
        return failed("nobody is named who gave the scores", fix="name the judge: generation.judge_model")
    listed, path = _listed(dossier), str(dossier.approved_judges)
    told = [line for kind in kinds for line in _objections(report.judge.name, kind, listed, path, dossier.demands.as_of)]
    if told:
        return failed("the judge is not approved", told, f"have it approved in {path}, or use a judge that is")
    approval = approval_of(dossier)
    assert approval is not None
    return passed(f"{report.judge.name} by {approval.by}, {approval.from_} to {approval.until}")


def needed_kinds(report: GenerationReport) -> list[str]:
    """Kinds of approval that the scores of a report need."""
    return [kind for source, kind in _KINDS.items() if report.counts.faithfulness_sources.get(source)]  # type: ignore[call-overload]


def _listed(dossier: Dossier) -> tuple[ApprovedJudge, ...]:
    path = dossier.approved_judges
    if path is None:
        fix = "name the list: certification.approved_judges in the configuration, or --approved-judges"
        raise CannotTell("no list of approved judges is named", fix=fix, is_own=True)
    try:
        return load_judges(path)
    except InputError as fault:
        raise CannotTell(next(lines_of(fault)), fault.exit_code, is_own=True) from None


def _objections(name: str, kind: str, listed: tuple[ApprovedJudge, ...], path: str, day: date) -> Iterator[str]:
    """Why the list does not approve a judge on a day; nothing where it does."""
    own = [judge for judge in listed if judge.name == name and judge.kind == kind]
    if any(judge.from_ <= day <= judge.until for judge in own):
        return
    where = f"({path}{_line(path, name)})"
    if not own:
        other = next((judge.kind for judge in listed if judge.name == name), None)
        listed_as = f", only as {other}" if other else ""
        yield f"{quoted(name)} is not on the list as {kind}{listed_as} {where}"
    for judge in own:
        told = f"expired on {judge.until}" if judge.until < day else f"is approved from {judge.from_}"
        yield f"{quoted(name)} {told}, this is {day} {where}"


def _line(path: str, name: str) -> str:
    """Where the list names the judge, as `:line`."""
    try:
        lines = read_text(path).splitlines()
    except (InputError, ConfigError):
        return ""
    return next((f":{n}" for n, line in enumerate(lines, 1) if name in line.partition("#")[0]), "")


def approval_of(dossier: Dossier) -> ApprovedJudge | None:
    """The approval that holds on the day, the longest where several do; None where no score needs one."""
    report = dossier.generation
    if report is None or report.judge is None or not (kinds := needed_kinds(report)):
        return None
    day = dossier.demands.as_of
    own = [
        judge
        for judge in _listed(dossier)
        if judge.name == report.judge.name and judge.kind in kinds and judge.from_ <= day <= judge.until
    ]
    return max(own, key=lambda judge: (judge.until, judge.from_, judge.by), default=None)


@check("judge-independent", "The judge is not the model under test.")
def judge_independent(dossier: Dossier) -> Outcome:
    """A model does not mark its own answers, whatever its revision."""
    report = dossier.generation
    if report is None or not needed_kinds(report) or report.judge is None or report.model is None:
        return not_applicable("no score rests on a named judge")
    if report.judge.name.rpartition("@")[0] == report.model.name.rpartition("@")[0]:
        told = [f"model {quoted(report.model.name)}, judge {quoted(report.judge.name)}"]
        return failed("the model marks its own answers", told, "use another judge")
    return passed("two models")
