"""A certification as JUnit XML: a check that fails is a failure, one that could not be evaluated an error."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from tripos.contracts.certificate import Certificate, CheckResult

_SUITE = "tripos certify"


def render_junit(certificate: Certificate) -> str:
    """One suite, one case a check, in the order of the certificate; no times and no host."""
    counts = Counter(check.status for check in certificate.checks)
    totals = {
        "name": _clean(f"{_SUITE} {certificate.name}"),
        "tests": str(len(certificate.checks)),
        "failures": str(counts["failed"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["not_applicable"]),
    }
    root = ET.Element("testsuites", {key: value for key, value in totals.items() if key != "skipped"})
    suite = ET.SubElement(root, "testsuite", totals)
    for check in certificate.checks:
        _case(suite, check)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, check: CheckResult) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": "tripos.certify", "name": check.id})
    text = _clean("\n".join(_lines(check)))
    if check.status == "not_applicable":
        ET.SubElement(case, "skipped", {"message": _clean(check.told)})
    elif check.status in ("failed", "error"):
        tag = "failure" if check.status == "failed" else "error"
        ET.SubElement(case, tag, {"message": _clean(check.told), "type": check.id}).text = text
    else:
        ET.SubElement(case, "system-out").text = text


def _lines(check: CheckResult) -> list[str]:
    lines = [check.sentence, f"{check.status}: {check.told}", *check.differences]
    if (rest := check.differences_in_all - len(check.differences)) > 0:
        lines.append(f"… {rest} more")
    return lines + ([f"fix: {check.fix}"] if check.fix else [])


def _clean(text: str) -> str:
    """The text with every character that XML 1.0 cannot carry written as its escape."""
    return "".join(c if _is_xml(ord(c)) else c.encode("unicode_escape").decode("ascii") for c in text)


def _is_xml(code: int) -> bool:
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
