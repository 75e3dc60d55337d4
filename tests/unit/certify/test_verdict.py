"""Outcomes, what blocks what, the exit code that wins; demands; other forms of a certification."""

from __future__ import annotations

import json
from datetime import date
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from tripos.certify.checks import MODULES, every_check
from tripos.certify.demands import demanded
from tripos.certify.dossier import Dossier
from tripos.certify.record import CHECKS, MAX_TOLD, CannotTell, Check, Outcome, failed, not_applicable, passed, warned
from tripos.certify.seal import decide, first_cause
from tripos.contracts.certificate import Artifact, Certificate, CertificateVerdict, CheckResult
from tripos.contracts.config import CertificationConfig, Config
from tripos.errors import ExitCode
from tripos.report.certificate import render_certificate
from tripos.report.certificate_markdown import render_certificate_markdown
from tripos.report.intoto import statement
from tripos.report.junit import render_junit

NO_DOSSIER = cast("Dossier", SimpleNamespace())


def check(name: str, examine: Any, code: ExitCode = ExitCode.FAILED, module: str = "tripos.certify.artifacts") -> Check:
    examine.__module__ = module
    return Check(name, f"{name} holds.", code, examine)


def outcomes(**found: Outcome) -> dict[Check, Outcome]:
    return {check(name, lambda _: passed("")): outcome for name, outcome in found.items()}


def test_every_check_is_in_the_order_of_its_module_and_has_a_sentence() -> None:
    checks = every_check()
    assert {c.id for c in checks} == set(CHECKS)
    places = [[module.__name__ for module in MODULES].index(c.examine.__module__) for c in checks]
    assert places == sorted(places)
    assert all(c.sentence.endswith(".") and len(c.sentence) > 20 for c in checks)
    assert all(c.id == c.id.lower() and "_" not in c.id for c in checks)


def test_what_cannot_be_told_is_an_error_and_never_a_pass() -> None:
    def examine(_: Dossier) -> Outcome:
        raise CannotTell("no report", fix="make it")

    found = check("x", examine).run(NO_DOSSIER)
    assert (found.status, found.told, found.fix, found.exit_code, found.is_own) == ("error", "no report", "make it", 1, False)


def test_a_failure_has_the_exit_code_of_its_check_unless_it_names_another() -> None:
    assert check("x", lambda _: failed("no"), ExitCode.NOT_COMPARABLE).run(NO_DOSSIER).exit_code == 4
    assert check("x", lambda _: failed("no", exit_code=1), ExitCode.NOT_COMPARABLE).run(NO_DOSSIER).exit_code == 1
    assert check("x", lambda _: warned("so so"), ExitCode.NOT_COMPARABLE).run(NO_DOSSIER).exit_code == 0


def test_differences_are_cut_and_counted() -> None:
    found = failed("no", (str(n) for n in range(MAX_TOLD + 5)))
    assert (len(found.differences), found.in_all) == (MAX_TOLD, MAX_TOLD + 5)


def failing(code: int, *, own: bool = True) -> Outcome:
    return Outcome("error" if not own else "failed", "no", exit_code=code, is_own=own)


@pytest.mark.parametrize(
    ("codes", "wins"),
    [((1,), 1), ((1, 6), 6), ((6, 4), 4), ((1, 6, 4, 3), 3), ((), 0)],
)
def test_the_first_of_3_4_6_1_wins(codes: tuple[int, ...], wins: int) -> None:
    found = outcomes(fine=passed("yes"), **{f"c{code}": failing(code) for code in codes})
    verdict = decide(found, first_cause(found))
    assert verdict.exit_code == wins
    assert verdict.status == ("not_certified" if codes else "certified")
    assert verdict.failed == tuple(f"c{code}" for code in codes)


def test_what_is_blocked_leads_to_no_exit_code_of_its_own() -> None:
    found = outcomes(root=failing(1), other=failing(3, own=False))
    assert first_cause(found) == "root"
    assert decide(found, "root").exit_code == 1
    alone = outcomes(other=failing(3, own=False))
    assert first_cause(alone) is None
    assert decide(alone, None).exit_code == 3


def test_a_failure_of_another_kind_blocks_nothing() -> None:
    judge = check("judge", lambda _: passed(""), module="tripos.certify.models")
    found = {judge: failing(1), **outcomes(bound=failing(4, own=False))}
    assert first_cause(found) is None
    assert decide(found, None).exit_code == 4


def test_warnings_certify_and_what_does_not_apply_is_not_counted() -> None:
    verdict = decide(outcomes(a=passed("yes"), b=warned("so so"), c=not_applicable("nothing")), None)
    assert (verdict.status, verdict.checks, verdict.warned) == ("certified", 2, ("b",))


TODAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("config", "found", "only", "layers"),
    [
        (None, (), (), ("retrieval", "generation")),
        (None, ("retrieval", "corpus"), (), ("retrieval", "generation", "corpus")),
        (None, ("retrieval", "corpus"), ("corpus",), ("retrieval", "corpus")),
        (Config(), ("corpus",), (), ("retrieval", "generation")),
        (Config(certification=CertificationConfig(layers=("corpus",))), (), (), ("retrieval", "corpus")),
        (Config(certification=CertificationConfig(layers=("corpus",))), (), ("generation",), ("retrieval", "generation")),
    ],
)
def test_which_layers_are_demanded(config: Config | None, found: Any, only: Any, layers: tuple[str, ...]) -> None:
    assert demanded(config, None, frozenset(found), TODAY, only=only).layers == layers


def test_the_list_of_judges_is_the_flag_then_certifications_then_generations() -> None:
    base: dict[str, Any] = {"generation": {"approved_judges": "g"}}
    both = Config.model_validate({**base, "certification": {"approved_judges": "c"}})
    assert demanded(both, None, frozenset(), TODAY, approved_judges="flag").approved_judges == "flag"
    assert demanded(both, None, frozenset(), TODAY).approved_judges == "c"
    assert demanded(Config.model_validate(base), None, frozenset(), TODAY).approved_judges == "g"
    assert demanded(None, None, frozenset(), TODAY).approved_judges is None


NASTY = "a\x00b\x1b[31m <b>&\"' | `x` \u202e \ud7ff ]]>"


def certificate(*checks: CheckResult) -> Certificate:
    verdict = CertificateVerdict(status="not_certified", exit_code=1, checks=len(checks), failed=("c1",), warned=())
    return Certificate(
        digest="", tool="tripos", name=NASTY, verdict=verdict, fingerprint=None, layers={}, models=None, rests_on=None,
        committed=(), checks=checks,
        artifacts=(
            Artifact(role="fragments", path="fragments.jsonl", sha256="0" * 64, digest=None),
            Artifact(role="configuration", path="../c.yaml", sha256="1" * 64, digest=None),
        ),
    )  # fmt: skip


EVERY_STATUS = certificate(
    CheckResult(id="c0", sentence="It holds.", status="passed", told="yes"),
    CheckResult(
        id="c1", sentence="It holds.", status="failed", told=NASTY, differences=(NASTY,), differences_in_all=30, fix=NASTY
    ),
    CheckResult(id="c2", sentence="It holds.", status="error", told="no", blocked_by="c1"),
    CheckResult(id="c3", sentence="It holds.", status="not_applicable", told="nothing"),
    CheckResult(id="c4", sentence="It holds.", status="warned", told="so so"),
)


def test_junit_is_xml_whatever_the_texts_hold() -> None:
    text = render_junit(EVERY_STATUS)
    suite = ET.fromstring(text).find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {"c0": ["system-out"], "c1": ["failure"], "c2": ["error"], "c3": ["skipped"], "c4": ["system-out"]}
    (failure,) = suite.findall("testcase/failure")
    assert "\\x00" in (failure.get("message") or "")
    assert "… 29 more" in (failure.text or "")
    assert "fix: " in (failure.text or "")


def test_the_statement_is_in_totos_with_what_was_examined_and_by_what_settings() -> None:
    found = statement(EVERY_STATUS)
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert found["subject"] == [{"name": "fragments.jsonl", "digest": {"sha256": "0" * 64}}]
    assert found["predicate"] == {
        "result": "FAILED",
        "configuration": [{"name": "../c.yaml", "digest": {"sha256": "1" * 64}}],
        "passedTests": ["c0"],
        "warnedTests": ["c4"],
        "failedTests": ["c1", "c2"],
    }
    json.dumps(found)


def test_texts_steer_no_terminal_and_no_page() -> None:
    text = render_certificate(EVERY_STATUS, None, every=True)
    assert "\x1b" not in text
    assert "\u202e" not in text
    page = render_certificate_markdown(EVERY_STATUS)
    assert "\x1b" not in page
    assert "\\<b\\>" in page
    assert all(line.count("|") - line.count("\\|") in (0, 5) for line in page.splitlines()), "a text broke a table"


def test_a_blocked_check_is_told_in_one_line_with_the_others() -> None:
    text = render_certificate(EVERY_STATUS, None)
    assert "✗ could not be evaluated, since c1 failed: c2" in text
