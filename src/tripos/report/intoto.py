"""A certification as an in-toto Statement v1 with the test-result predicate v0.1, for the user's own signing tool.

Source: github.com/in-toto/attestation, spec/v1/statement.md and spec/predicates/test-result.md.
"""

from __future__ import annotations

from typing import Any

from tripos.contracts.certificate import Artifact, Certificate
from tripos.fingerprint import canonical

_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
_SETTINGS = ("configuration", "approved_judges")
"""Roles of the files that say what was demanded; all others are what was examined."""


def render_statement(certificate: Certificate) -> str:
    """The statement as canonical JSON: subjects are the files of the run, tests are the checks that apply."""
    return canonical(statement(certificate)).decode() + "\n"


def statement(certificate: Certificate) -> dict[str, Any]:
    """The statement as JSON values."""
    examined = [artifact for artifact in certificate.artifacts if artifact.role not in _SETTINGS]
    settings = [artifact for artifact in certificate.artifacts if artifact.role in _SETTINGS]
    return {
        "_type": _STATEMENT,
        "subject": list(map(_descriptor, examined)),
        "predicateType": _PREDICATE,
        "predicate": {
            "result": _result(certificate),
            "configuration": list(map(_descriptor, settings)),
            "passedTests": _tests(certificate, "passed"),
            "warnedTests": _tests(certificate, "warned"),
            "failedTests": _tests(certificate, "failed", "error"),
        },
    }


def _descriptor(artifact: Artifact) -> dict[str, Any]:
    return {"name": artifact.path, "digest": {"sha256": artifact.sha256}}


def _result(certificate: Certificate) -> str:
    if certificate.verdict.status != "certified":
        return "FAILED"
    return "WARNED" if certificate.verdict.warned else "PASSED"


def _tests(certificate: Certificate, *statuses: str) -> list[str]:
    return [check.id for check in certificate.checks if check.status in statuses]
