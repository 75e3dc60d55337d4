"""A certification as Markdown, for a pull request: the answer, what fails, what the numbers rest on; the rest folded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tripos.contracts.certificate import Certificate, CheckResult
from tripos.errors import printable
from tripos.report.certificate import first_fix, headline, models_told

_SIGNS = {"passed": "✅", "warned": "⚠️", "failed": "❌", "error": "❌", "not_applicable": "➖"}
_FAILING = ("failed", "error")


def render_certificate_markdown(certificate: Certificate) -> str:
    """The certification as GitHub renders it."""
    lines = [f"### {_safe(headline(certificate))}", "", *_failing(certificate), *_rests(certificate), *_layers(certificate)]
    lines += [*_every(certificate), *_end(certificate)]
    return printable("\n".join(lines)) + "\n"


def _failing(certificate: Certificate) -> Iterator[str]:
    for check in certificate.checks:
        if check.status in (*_FAILING, "warned") and check.blocked_by is None:
            could = "could not be evaluated: " if check.status == "error" else ""
            yield f"- {_SIGNS[check.status]} **{check.id}** {could}{_safe(check.told)}"
            yield from (f"  - {_safe(line)}" for line in check.differences)
            if (rest := check.differences_in_all - len(check.differences)) > 0:
                yield f"  - … {rest} more"
    if (fix := first_fix(certificate)) is not None:
        yield f"\nfix: {_safe(fix)}"
    yield ""


def _rests(certificate: Certificate) -> Iterator[str]:
    if certificate.rests_on is None:
        return
    yield "The numbers rest on:"
    yield ""
    told = [*certificate.rests_on.told, *([models_told(certificate)] if certificate.models else [])]
    yield from (f"- {_safe(line)}" for line in told)
    yield ""


def _layers(certificate: Certificate) -> Iterator[str]:
    if not certificate.layers:
        return
    yield "| layer | rows scored | binding | run | judgments |"
    yield "|---|--:|---|---|---|"
    for name, layer in certificate.layers.items():
        ids = f"`{layer.run_id[:12]}` | `{layer.judgments_digest[:12]}`"
        yield f"| {name} | {layer.rows.scored} of {layer.rows.total} | {layer.binding} | {ids} |"
    yield ""


def _every(certificate: Certificate) -> Iterator[str]:
    yield f"<details><summary>All {len(certificate.checks)} checks</summary>"
    yield ""
    yield "| | check | it must hold that | found |"
    yield "|---|---|---|---|"
    yield from map(_row, certificate.checks)
    yield ""
    yield "</details>"


def _row(check: CheckResult) -> str:
    return f"| {_SIGNS[check.status]} | `{check.id}` | {_safe(check.sentence)} | {_safe(check.told)} |"


def _end(certificate: Certificate) -> Iterator[str]:
    own = certificate.fingerprint
    if certificate.verdict.status == "certified" and own is not None:
        yield ""
        yield f"<sub>configuration `{own.configuration}` · certificate `{certificate.digest[:12]}`</sub>"


def _safe(text: str) -> str:
    """Text that Markdown, HTML and a table cell leave as it is."""
    one_line = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]|<>#@~])", r"\\\1", one_line)
