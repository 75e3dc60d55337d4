"""A certification for a person: what fails first, with each exact difference and what to do; then what the numbers rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tripos.contracts.certificate import Certificate, CheckResult, Verification
from tripos.errors import ExitCode, printable

WIDTH = 120
_SIGNS = {"passed": "✓", "warned": "!", "failed": "✗", "error": "✗", "not_applicable": "–"}
_INDENT = " " * 4


def render_certificate(certificate: Certificate, written: str | None, *, every: bool = False) -> str:
    """The certification as text, without colour.

    Args:
        certificate: What was sealed.
        written: Path of the certificate, where one was written.
        every: Also tell the checks that passed.
    """
    lines = [headline(certificate), "", *_checks(certificate, every), "", *_rests(certificate), *_end(certificate, written)]
    return printable("\n".join(_squeezed(lines))) + "\n"


def _squeezed(lines: list[str]) -> Iterator[str]:
    previous = "x"
    for line in lines:
        if line or previous:
            yield line.rstrip()
        previous = line


def headline(certificate: Certificate) -> str:
    """The answer in one line."""
    verdict, own = certificate.verdict, certificate.fingerprint
    if verdict.status == "certified":
        mark = f"    fingerprint {own.configuration[:12]}" if own is not None and own.configuration else ""
        warned = f", {len(verdict.warned)} with a warning" if verdict.warned else ""
        return f"CERTIFIED · {certificate.name} · all {verdict.checks} checks passed{warned}{mark}"
    blocked = sum(check.blocked_by is not None for check in certificate.checks)
    untold = f", and {blocked} could not be evaluated for it" if blocked else ""
    return f"NOT CERTIFIED · {certificate.name} · {len(verdict.failed) - blocked} of {verdict.checks} checks failed{untold}"


def _checks(certificate: Certificate, every: bool) -> Iterator[str]:
    failing = [check for check in certificate.checks if check.status in ("failed", "error")]
    for check in failing:
        yield from _check(check) if check.blocked_by is None else ()
    if blocked := [check for check in failing if check.blocked_by is not None]:
        head = f"✗ could not be evaluated, since {blocked[0].blocked_by} failed: "
        yield from textwrap.wrap(
            head + ", ".join(check.id for check in blocked), WIDTH, subsequent_indent=_INDENT, break_on_hyphens=False
        )
    for check in certificate.checks:
        if check.status == "warned" or (every and check.status in ("passed", "not_applicable")):
            yield from _check(check)
    passed = sum(check.status == "passed" for check in certificate.checks)
    if not every and passed:
        what = "other" if certificate.verdict.failed else "check"
        yield f"✓ {passed} {what}{'' if passed == 1 else 's'} (--all)"


def _check(check: CheckResult) -> Iterator[str]:
    told = f"could not be evaluated: {check.told}" if check.status == "error" else check.told
    yield from _wrapped(f"{_SIGNS[check.status]} {check.id:<22} ", told)
    if check.status in ("failed", "error"):
        yield f"{_INDENT}it must hold that: {check.sentence}"
    for line in check.differences:
        yield from _wrapped(_INDENT, line)
    if (rest := check.differences_in_all - len(check.differences)) > 0:
        yield f"{_INDENT}… {rest} more"


def _wrapped(head: str, text: str) -> list[str]:
    indent = " " * len(head)
    return textwrap.wrap(head + text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _rests(certificate: Certificate) -> Iterator[str]:
    if certificate.verdict.status != "certified" or certificate.rests_on is None:
        return
    yield "the numbers rest on"
    for line in certificate.rests_on.told:
        yield from _wrapped("  · ", line)
    yield from _wrapped("  · ", models_told(certificate)) if certificate.models else ()
    yield ""


def models_told(certificate: Certificate) -> str:
    """Who answered and who judged, in one line."""
    models = certificate.models
    if models is None:
        return ""
    told = f"answers by {models.model}"
    if models.judge is not None and models.approval is not None:
        own = models.approval
        told += f", judged by {models.judge}, which {own.by} approved from {own.valid_from} to {own.valid_until}"
    return told


def _end(certificate: Certificate, written: str | None) -> Iterator[str]:
    verdict = certificate.verdict
    if verdict.status == "certified":
        if written:
            yield f"certificate of {len(certificate.artifacts)} files → {written}"
            yield f"any byte of them, later: tripos certify --verify {written}"
        return
    if (fix := first_fix(certificate)) is not None:
        yield from _wrapped("fix: ", fix)
    yield f"not certified{' ' * 50}(exit {verdict.exit_code})"


def first_fix(certificate: Certificate) -> str | None:
    """What to do first: of the check that decides the exit code, as far as checks say."""
    failing = [check for check in certificate.checks if check.status in ("failed", "error") and check.blocked_by is None]
    fixes = [check.fix for check in failing if check.fix]
    return fixes[0] if fixes else None


def render_verification(found: Verification) -> str:
    """Whether every file is as its certificate says."""
    if found.status == "intact":
        return printable(f"INTACT · {found.name} · the certificate and all {found.files} files are as they were\n")
    lines = [f"NOT INTACT · {found.name or found.certificate} · {len(found.deviations)} of {found.files + 1} files"]
    lines += [
        f"✗ {printable(one.path, keep='')}  {one.what.replace('_', ' ')}: {one.told} ({one.role.replace('_', ' ')})"
        for one in found.deviations
    ]
    code = int(ExitCode.FAILED)
    lines.append(f"certify the run again: tripos certify{' ' * 30}(exit {code})")
    return printable("\n".join(lines)) + "\n"
