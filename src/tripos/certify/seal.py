"""The checks run, and what they come to: one verdict, one certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tripos import __version__
from tripos.certify import artifacts as artifact_checks
from tripos.certify import recomputation, standing
from tripos.certify.checks import every_check
from tripos.certify.committed import judgments
from tripos.certify.dossier import Dossier
from tripos.certify.inventory import artifacts, relative
from tripos.certify.record import Check, Outcome
from tripos.contracts.certificate import Certificate, CertificateVerdict, CheckResult, CommittedFile
from tripos.errors import ExitCode
from tripos.files.git import GitProblem, committed
from tripos.files.reports import plain
from tripos.fingerprint import canonical, digest

_FIRST = (ExitCode.INVALID_INPUT, ExitCode.NOT_COMPARABLE, ExitCode.INCOMPLETE, ExitCode.FAILED)
"""Which exit code wins where several apply."""

_GROUND = tuple(module.__name__ for module in (artifact_checks, recomputation))
FAILING = ("failed", "error")


def certify(dossier: Dossier, certificate: str) -> Certificate:
    """Run every check, and seal what came of it.

    Args:
        dossier: The run.
        certificate: Where the certificate will stand: its paths are relative to it.
    """
    outcomes = {check: check.run(dossier) for check in every_check()}
    root = first_cause(outcomes)
    verdict = decide(outcomes, root)
    is_certified = verdict.status == "certified"
    content: dict[str, Any] = {
        "tool": f"tripos {__version__}",
        "name": _name(dossier),
        "verdict": verdict,
        "fingerprint": standing.configuration(dossier),
        "layers": standing.layers(dossier),
        "models": standing.models(dossier),
        "rests_on": standing.rests_on(dossier),
        "committed": _committed(dossier, certificate) if is_certified else [],
        "artifacts": artifacts(dossier, certificate),
        "checks": [_result(check, outcome, root) for check, outcome in outcomes.items()],
    }
    draft = Certificate.model_validate({**content, "digest": ""})
    return draft.model_copy(update={"digest": own_digest(draft)})


def own_digest(certificate: Certificate) -> str:
    """What a certificate's `digest` must be."""
    return digest(certificate.model_dump(mode="json", exclude={"digest"}))


def dump(certificate: Certificate) -> bytes:
    """The one form of certificate.json: canonical JSON and a line end."""
    return canonical(plain(certificate)) + b"\n"


def first_cause(outcomes: Mapping[Check, Outcome]) -> str | None:
    """The first check of files and figures that fails of its own: others may not be evaluated for it. None: there is none."""
    failing = (check for check, outcome in outcomes.items() if outcome.status in FAILING and outcome.is_own)
    return next((check.id for check in failing if check.examine.__module__ in _GROUND), None)


def _is_blocked(outcome: Outcome, root: str | None) -> bool:
    return outcome.status == "error" and not outcome.is_own and root is not None


def decide(outcomes: Mapping[Check, Outcome], root: str | None) -> CertificateVerdict:
    """Certified where no check failed and none was left open; else the first of 3, 4, 6, 1 that some check leads to.

    What is blocked by another check's failure leads nowhere of its own.
    """
    failing = {check.id: outcome for check, outcome in outcomes.items() if outcome.status in FAILING}
    codes = {outcome.exit_code for outcome in failing.values() if not _is_blocked(outcome, root)}
    code = next((int(code) for code in _FIRST if code in codes), int(ExitCode.FAILED) if failing else 0)
    return CertificateVerdict(
        status="not_certified" if failing else "certified",
        exit_code=code,
        checks=sum(outcome.status != "not_applicable" for outcome in outcomes.values()),
        failed=tuple(failing),
        warned=tuple(check.id for check, outcome in outcomes.items() if outcome.status == "warned"),
    )


def _result(check: Check, outcome: Outcome, root: str | None) -> CheckResult:
    return CheckResult(
        id=check.id,
        sentence=check.sentence,
        status=outcome.status,
        told=outcome.told,
        differences=outcome.differences,
        differences_in_all=outcome.in_all,
        fix=outcome.fix,
        blocked_by=root if _is_blocked(outcome, root) else None,
    )


def _name(dossier: Dossier) -> str:
    if dossier.reports:
        return next(iter(dossier.reports.values())).name
    return dossier.demands.config.name if dossier.demands.config is not None else "unnamed"


def _committed(dossier: Dossier, certificate: str) -> Sequence[CommittedFile]:
    """The golden files as git has them; none where git cannot say, which a check has told already."""
    try:
        found = {item.path: committed(item.path) for item in judgments(dossier)}
    except GitProblem:
        return []
    return [
        CommittedFile(path=relative(path, certificate), blob=state.head, commit=state.commit)
        for path, state in sorted(found.items(), key=lambda pair: relative(pair[0], certificate))
        if state is not None and state.head is not None and state.commit is not None
    ]
