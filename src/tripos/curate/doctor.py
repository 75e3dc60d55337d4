"""doctor: looks at the files someone has, says what each is and what is wrong, and how to go on.

Nothing is changed. Each file is recognised by its content, looked at by itself, then all are looked at together.
"""

from __future__ import annotations

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
_TOLD_BY_FINDERS = {
    "not_jsonl", "string_type", "tuple_type", "missing", "missing_field", "extra_forbidden", "duplicate_id", "placeholder",
    "bool_type", "literal_error", "contradiction",
}  # fmt: skip


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
            yield from _golden(patient, ward)
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


def _golden(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    """Golden rows: each ailment with its own line; `all_at_once` gives one for all."""
    look = patient.look
    found = [a for find in FINDERS for a in find(look)]
    for a in found:
        fix = jq(look, [a.step], slurp=a.whole) if a.step else ""
        yield made(patient.path, a.kind, a.field, a.message, line=a.line, fix=fix, severity=a.severity)
    if patient.form is Form.JUDGMENTS and look.container is Container.JSONL:
        yield from _contract(patient, ward)


def all_at_once(look: Look) -> str:
    """The line that takes every step there is; "" where there are fewer than two."""
    steps = [a for find in FINDERS for a in find(look) if a.step]
    ordered = [a.step for a in sorted(steps, key=lambda a: not a.whole)]
    return jq(look, ordered, slurp=any(a.whole for a in steps)) if len(steps) > 1 else ""


def _contract(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    """What the contract says beyond that."""
    findings = Findings()
    load_judgments([patient.path], findings, allow_extra=True)
    findings.kept = [f for f in findings.kept if f.kind not in _TOLD_BY_FINDERS or f.field not in _plain(patient.look)]
    yield from _grouped(patient, findings, lambda f: ward.lint("--allow-extra") if f.kind == "extra_forbidden" else "")


def _plain(look: Look) -> set[str]:
    """Fields that the finders look at."""
    return {"", "expected_sources", *look.roles, *(name for record in look.records for name in record.value)}


def _fragments(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    yield from _values(patient)
    findings = Findings()
    deque(read_fragments([patient.path], findings), maxlen=0)  # for its findings alone
    mended_here = {"not_jsonl", "string_type"}
    findings.kept = [
        f for f in findings.kept if f.kind not in mended_here or ("number" not in f.message and f.kind == "string_type")
    ]
    yield from _grouped(patient, findings, lambda f: ward.lint("--allow-extra") if f.kind == "extra_forbidden" else "")


def _values(patient: Patient) -> Iterator[Diagnosis]:
    """Rows that are no JSONL, and numbers for ids."""
    for find in (rows.container, rows.integer_ids):
        for a in find(patient.look):
            yield made(patient.path, a.kind, a.field, a.message, line=a.line, fix=jq(patient.look, [a.step]))


def _ranked(patient: Patient, ward: Ward) -> Iterator[Diagnosis]:
    yield from _values(patient)
    findings = Findings()
    for row in read_ranked(patient.path, findings):
        without_duplicates(ranked(row, "strict", findings), False, row.place, findings)
    flags = {
        "order": ("--order", "score"),
        "duplicate_result": ("--duplicates", "keep-first"),
        "extra_forbidden": ("--lenient",),
    }
    findings.kept = [f for f in findings.kept if f.kind != "not_jsonl"]
    yield from _grouped(patient, findings, lambda f: ward.evaluation(*flags[f.kind]) if f.kind in flags else "")


def _topics(patient: Patient) -> Iterator[Diagnosis]:
    if patient.look.container not in (Container.JSONL, Container.COLUMNS):
        yield from _values(patient)
        return
    findings = Findings()
    trec.read_topics(patient.path, findings)
    yield from _grouped(patient, findings, lambda f: _topic_fix(patient.look, f))


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
