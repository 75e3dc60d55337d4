"""doctor: looks at the files someone has, says what each is and what is wrong, and how to go on.

Nothing is changed. Each file is recognised by its content, looked at by itself, then all are looked at together.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from tripos.checks.lexical import Overlap, flipped, scale_evidence
from tripos.columns.ranking import ranked, without_duplicates
from tripos.curate import ailments as rows
from tripos.curate import naming
from tripos.curate.ailments import Ailment
from tripos.curate.diagnosis import Diagnosis, DoctorReport, FileSeen, made
from tripos.curate.foreign import foreign
from tripos.curate.meeting import corpus_of, meetings, rows_of
from tripos.curate.patients import Patient, Ward, admit
from tripos.curate.recognise import Container, Form, Look, recognise
from tripos.curate.repair import field, jq, mended
from tripos.errors import Finding, Findings, UsageError
from tripos.files.formats import trec
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import load_judgments, read_fragments
from tripos.files.streams import STDIN

FINDERS: tuple[Callable[[Look], Iterator[Ailment]], ...] = (
    rows.container, rows.repeated_ids, rows.no_id, rows.no_gold, rows.integer_ids, rows.objects_for_ids, rows.scalar_lists,
    rows.never_filled, rows.placeholders, rows.prose_for_ids, naming.foreign_booleans, naming.foreign_statuses,
    rows.empty_positives, naming.unknown_fields, naming.foreign_names,
)  # fmt: skip
"""How golden files are looked at, and in which order their steps are taken: rows first, then values, then names."""

_FEW_GRADES = 6
_COVERED = {
    "not_jsonl": {"container"},
    "string_type": {"integer_ids"},
    "tuple_type": {"scalar_list", "graded_sources", "objects_for_ids"},
    "missing": {"no_id"},
    "duplicate_id": {"repeated_id"},
    "bool_type": {"foreign_boolean"},
    "literal_error": {"foreign_status"},
    "contradiction": {"empty_positive", "never_filled"},
}
"""Faults of the contract that an ailment of one of these kinds, in the same field, has told already."""


def diagnose(paths: Sequence[str]) -> DoctorReport:
    """Look at files, each by itself and all together.

    Raises:
        InputError: A file cannot be read at all.
        UsageError: Standard input, which cannot be looked at twice.
    """
    if STDIN in paths:
        raise UsageError("doctor looks at files more than once, which standard input does not allow: name files")
    ward = Ward([admit(recognise(path)) for path in dict.fromkeys(paths)])
    found = [d for patient in ward.patients for d in examine(patient, ward)]
    found += meetings(ward)
    return DoctorReport(
        files=tuple(
            FileSeen(path=p.path, form=p.form.value, container=p.look.container.value, rows=p.rows) for p in ward.patients
        ),
        diagnoses=tuple(found),
        next=tuple(_next(ward, found)),
    )


def examine(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    """All that is wrong with one file by itself."""
    match patient.form:
        case Form.JUDGMENTS | Form.GOLDENS:
            yield from _golden(patient)
        case Form.FRAGMENTS:
            yield from _fragments(patient, ward)
        case Form.RANKED:
            yield from _ranked(patient, ward)
        case Form.QRELS:
            yield from _grouped(patient, patient.findings, lambda _: "")
            yield from _scale(patient, ward)
        case Form.RUN:
            yield from _grouped(patient, patient.findings, lambda _: "")
        case Form.TOPICS:
            yield from _topics(patient)
        case _:
            yield from foreign(patient)


def _golden(patient: Patient) -> Iterator[Diagnosis]:
    """Golden rows: each ailment with its own line; `all_at_once` gives one for all."""
    look = patient.look
    found = [a for find in FINDERS for a in find(look)]
    for a in found:
        fix = jq(look, [a.step], slurp=a.whole) if a.step else ""
        yield made(patient.path, a.kind, a.field, a.message, line=a.line, fix=fix, severity=a.severity)
    if patient.form is Form.JUDGMENTS and look.container is Container.JSONL:
        findings = Findings()
        load_judgments([patient.path], findings, allow_extra=True)
        yield from _grouped(patient, _untold(findings, found), lambda f: _contract_fix(look, f))


def _untold(findings: Findings, told: Sequence[Ailment]) -> Findings:
    """Without the faults of the contract that an ailment tells."""
    known = {(a.kind, a.field) for a in told}
    findings.kept = [f for f in findings.kept if not _is_told(f, known)]
    return findings


def _is_told(finding: Finding, known: set[tuple[str, str]]) -> bool:
    name = finding.field.partition("[")[0].partition(".")[0]
    if finding.kind == "contradiction":
        name = "expected_sources" if "expected_sources is empty" in finding.message else ""
    return any((kind, name) in known for kind in _COVERED.get(finding.kind, ()))


def _contract_fix(look: Look, finding: Finding) -> str:
    """The line for a near miss of a name, and for a field that rows lack."""
    meant = re.search(r"did you mean (\w+)", finding.message)
    if finding.kind == "extra_forbidden" and meant and finding.field in {name for r in look.records for name in r.value}:
        own, other = field(meant[1]), field(finding.field)
        return jq(look, [f"if has({json.dumps(finding.field)}) then {own} = {other} | del({other}) else . end"])
    if finding.kind == "missing" and finding.field in naming.DEFAULTS:
        return jq(look, [naming.defaults([finding.field])])
    return ""


def all_at_once(look: Look) -> str:
    """The line that takes every step there is; "" where there are fewer than two."""
    steps = [a for find in FINDERS for a in find(look) if a.step]
    ordered = [a.step for a in sorted(steps, key=lambda a: not a.whole)]
    return jq(look, ordered, slurp=any(a.whole for a in steps)) if len(steps) > 1 else ""


def _fragments(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    findings = Findings()
    deque(read_fragments([patient.path], findings), maxlen=0)  # for its findings alone
    yield from _values(patient, findings, lambda f: ward.lint("--allow-extra") if f.kind == "extra_forbidden" else "")


def _values(patient: Patient, findings: Findings, fix: Callable[[Finding], str]) -> Iterator[Diagnosis]:
    """Rows that are no JSONL and numbers for ids, then what the contract says beyond that."""
    found = [a for find in (rows.container, rows.integer_ids) for a in find(patient.look)]
    for a in found:
        yield made(patient.path, a.kind, a.field, a.message, line=a.line, fix=jq(patient.look, [a.step]))
    yield from _grouped(patient, _untold(findings, found), fix)


def _ranked(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    findings = Findings()
    for row in read_ranked(patient.path, findings):
        without_duplicates(ranked(row, "strict", findings), False, row.place, findings)
    flags = {
        "order": ("--order", "score"),
        "duplicate_result": ("--duplicates", "keep-first"),
        "extra_forbidden": ("--lenient",),
    }
    yield from _values(patient, findings, lambda f: ward.evaluation(*flags[f.kind]) if f.kind in flags else "")


def _topics(patient: Patient) -> Iterator[Diagnosis]:
    findings = Findings()
    if patient.look.container in (Container.JSONL, Container.COLUMNS):
        trec.read_topics(patient.path, findings)
    tell = _grouped if patient.look.container is Container.COLUMNS else _values
    yield from tell(patient, findings, lambda f: _topic_fix(patient.look, f))


def _topic_fix(look: Look, finding: Finding) -> str:
    if finding.kind == "header":
        return f"tail -n +2 {shlex.quote(look.path)} > {shlex.quote(mended(look.path))}"
    if finding.kind == "string_type" and finding.field in look.roles.values():
        return jq(look, [f"{field(finding.field)} |= tostring"])
    return ""


# ---- scales


def _scale(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    """Grades that look like another scale, or like a slip."""
    assert patient.qrels is not None
    count = Counter(judged.grade for docs in patient.qrels.topics.values() for judged in docs.values())
    grades = sorted(count)
    if len(grades) >= 3 and grades[0] > 0 and not _told_by_words(patient, ward):
        table = ", ".join(f"{grade}: {count[grade]}" for grade in grades)
        text = (
            f"grades run {grades[0]}..{grades[-1]} and none is 0 ({table}): either nothing was judged non-relevant, or the "
            f"scale is shifted or reversed; if {grades[0]} is best:"
        )
        fix = ward.import_qrels(patient, "--grade-map", flipped(grades))
        yield made(patient.path, "no_zero_grade", "rel", text, fix=fix, severity="warning")
    apart = [g for g in grades[1:] if count[g] <= max(1, sum(count.values()) // 1000) and g - 1 not in count]
    for grade in apart if len(apart) == 1 and len(grades) <= _FEW_GRADES else ():
        yield made(patient.path, "odd_grade", "rel", _odd(grade, count), line=_line_of(patient, grade), severity="warning")


def _odd(grade: int, count: Counter[int]) -> str:
    others = ", ".join(str(other) for other in sorted(count) if other != grade)
    return f"grade {grade} stands {count[grade]} time{'s' * (count[grade] != 1)}, and all others are {others}: a slip?"


def _line_of(patient: Patient, grade: int) -> int:
    assert patient.qrels is not None
    return min(j.line for docs in patient.qrels.topics.values() for j in docs.values() if j.grade == grade)


def _told_by_words(patient: Patient, ward: Ward) -> bool:
    """Whether texts were given that can tell which way the scale runs."""
    corpus = corpus_of(ward)
    found = [j.row for j in rows_of(ward, patient) if j.row.query is not None] if corpus.texts else []
    return bool(found) and scale_evidence(found, Overlap(found, corpus)) is not None


# ---- told


def _grouped(patient: Patient, findings: Findings, fix: Callable[[Finding], str]) -> Iterator[Diagnosis]:
    """One diagnosis for each kind and field, at its first place, with the count of the rest."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings.kept, key=lambda f: f.place):
        groups.setdefault((finding.kind, finding.field.partition("[")[0]), []).append(finding)
    for (kind, _), found in groups.items():
        first = found[0]
        more = f" (and {len(found) - 1} more such)" if len(found) > 1 else ""
        text, line = first.message + more, first.place.line
        yield made(patient.path, kind, first.field, text, line=line, fix=fix(first), severity=first.severity)


def _next(ward: Ward, found: Iterable[Diagnosis]) -> Iterator[str]:
    """The commands that go on from here, where nothing stands in their way."""
    yield from filter(None, (all_at_once(golden.look) for golden in ward.of(Form.JUDGMENTS, Form.GOLDENS)))
    wrong = {d.file for d in found if d.severity == "error"}
    needed = {d.fix for d in found if d.fix.startswith("tripos import")}
    for qrels in ward.of(Form.QRELS):
        if qrels.path not in wrong and not needed:
            yield ward.import_qrels(qrels)
    for run in ward.of(Form.RUN):
        if run.path not in wrong:
            yield ward.import_run(run)
    if ward.of(Form.JUDGMENTS) and not wrong:
        yield ward.evaluation() if ward.of(Form.RANKED) else ward.lint()
