"""What is wrong between files: ids that should meet and do not, texts and judgments that do not belong together."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tripos.checks.lexical import check_lexical, flipped
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.curate.diagnosis import Diagnosis, made
from tripos.curate.idspaces import Reason, why_apart
from tripos.curate.patients import CORPUS, JUDGED, ORDINAL, RESULTS, Patient, Ward, distinct
from tripos.curate.recognise import Container, Form, Look, opened
from tripos.curate.repair import field, jq, mended
from tripos.errors import Findings, Place, quoted, suggest
from tripos.files.formats import trec_rows
from tripos.files.retrieval import Located, load_judgments, read_fragments


def meetings(ward: Ward) -> Iterator[Diagnosis]:
    """Every pair of files whose ids should meet, then the lexical look."""
    for find in (topics_and_texts, results_and_judgments, sources_and_corpus, results_and_corpus, lexical):
        yield from find(ward)


def topics_and_texts(ward: Ward) -> Iterator[Diagnosis]:
    """Topics of qrels that have no text."""
    for qrels in ward.of(Form.QRELS):
        for texts in ward.of(Form.TOPICS)[:1]:
            if not (missing := _lacking(qrels.queries, texts.queries)):
                continue
            reason = why_apart(qrels.queries, texts.queries)
            message = f"{_some(missing, qrels.queries, 'topics')} no text in {texts.path}{_because(reason)}"
            if reason is not None and reason.kind != "ordinals":
                message += "; equal numbers are no proof of equal queries: compare some by eye"
            yield _apart(qrels, "query_id", message, _mend_texts(ward, qrels, texts, reason))


def _mend_texts(ward: Ward, qrels: Patient, texts: Patient, reason: Reason | None) -> str:
    if reason is not None and reason.kind == "ordinals":
        return ward.import_qrels(qrels)
    other_way = why_apart(texts.queries, qrels.queries)
    if other_way is None or not other_way.jq:
        return ""
    if texts.look.container is not Container.COLUMNS:
        return jq(texts.look, [_change(texts.look, "query_id", other_way)])
    program = 'split("\\t") | {query_id: .[0], query: .[1]} | .query_id |= (' + other_way.jq + ")"
    return f"jq -Rc {shlex.quote(program)} {shlex.quote(texts.path)} > {shlex.quote(mended(texts.path))}"


def results_and_judgments(ward: Ward) -> Iterator[Diagnosis]:
    """Ranked results of queries that nobody judged, and judged queries without results."""
    judged = distinct(name for patient in ward.of(*JUDGED) for name in patient.queries)
    for results in ward.of(*RESULTS) if judged else ():
        missing = _lacking(results.queries, judged)
        reason = why_apart(results.queries, judged)
        if missing and (reason is not None or len(missing) == len(results.queries)):
            message = f"{_some(missing, results.queries, 'queries')} no judgment{_because(reason)}"
            yield _apart(results, "query_id", message, _mend(ward, results, "query_id", reason))
        elif absent := _lacking(judged, results.queries):
            message = f"{_some(absent, judged, 'judged queries')} no results here: they are incomplete until they are run"
            yield made(results.path, "missing_result", "query_id", message, severity="warning")


def sources_and_corpus(ward: Ward) -> Iterator[Diagnosis]:
    """Expected sources that no fragment belongs to."""
    corpus = distinct(name for patient in ward.of(*CORPUS) for name in patient.sources)
    fragments = {name for patient in ward.of(*CORPUS) for name in patient.fragments}
    for judged in ward.of(*JUDGED) if corpus else ():
        if missing := _lacking(judged.sources, corpus):
            reason = why_apart(judged.sources, corpus)
            near = "" if reason else suggest(missing[0], corpus)
            if reason is None and any(name in fragments for name in missing):
                near = "; some are ids of fragments, whose source is another"
            message = f"{_some(missing, judged.sources, 'expected sources')} no fragment{near}{_because(reason)}"
            is_finer = fragments.issuperset(missing) and judged.form is Form.JUDGMENTS
            yield _apart(
                judged, "expected_sources", message, _mend(ward, judged, "expected_sources", reason, is_finer=is_finer)
            )


def results_and_corpus(ward: Ward) -> Iterator[Diagnosis]:
    """Results that the corpus lacks."""
    corpus = distinct(name for patient in ward.of(*CORPUS) for name in patient.fragments)
    sources = {name for patient in ward.of(*CORPUS) for name in patient.sources}
    for results in ward.of(*RESULTS) if corpus else ():
        if missing := _lacking(results.fragments, corpus):
            reason = why_apart(results.fragments, corpus)
            why = _because(reason)
            if reason is None and 2 * sum(name in sources for name in missing) >= len(missing):
                why = ": they are source ids, and results name fragments (where each source is one fragment, give them one id)"
            message = f"{_some(missing, results.fragments, 'results')} no fragment{why}"
            yield _apart(results, "fragment_id", message, _mend(ward, results, "fragment_id", reason))


def _lacking(here: Sequence[str], there: Collection[str]) -> list[str]:
    known = set(there)
    return [name for name in here if name not in known]


def _some(missing: Sequence[str], every: Sequence[str], noun: str) -> str:
    return f'{len(missing)} of {len(every)} {noun} ("{quoted(missing[0])}" first) have'


def _because(reason: Reason | None) -> str:
    return f": {reason.told()}" if reason else ""


def _mend(ward: Ward, patient: Patient, role: str, reason: Reason | None, *, is_finer: bool = False) -> str:
    """The line that rewrites the ids; where none does, the one that accepts them for a first look.

    `is_finer`: the ids are fragments that the corpus has, and are kept as expected_fragments.
    """
    if reason is None:
        return ward.evaluation("--lenient") if role != "query_id" else ""
    if not reason.jq:
        return ""
    if patient.qrels is None and patient.form is not Form.RUN:
        finer = [".expected_fragments = .expected_sources"] if is_finer else []
        return jq(patient.look, [*finer, _change(patient.look, role, reason)])
    if patient.form is Form.RUN:
        first, look = ward.import_run(patient), Look(mended(patient.path, "ranked"), Form.RANKED, Container.JSONL)
    else:
        first, look = ward.import_qrels(patient), Look(mended(patient.path, "judgments"), Form.JUDGMENTS, Container.JSONL)
    return f"{first} && {jq(look, [_change(look, role, reason)])}"


def _change(look: Look, role: str, reason: Reason) -> str:
    """The jq filter that rewrites every id in the field that plays `role`."""
    key = field(look.roles.get(role, role))
    if role == "expected_sources":
        grades = f"if .relevance then .relevance |= with_entries(.key |= ({reason.jq})) else . end"
        one = f"tostring | {reason.jq}"
        return f'{key} |= (if type == "array" then map({one}) | unique else ({one}) end) | {grades}'
    if role == "fragment_id" and "fragment_ids" in look.roles:
        return f".fragment_ids |= map({reason.jq})"
    if role == "fragment_id" and "fragment_id" not in look.roles:
        return f".results[].fragment_id |= ({reason.jq})"
    return f"{key} |= ({reason.jq})"


def _apart(patient: Patient, name: str, message: str, fix: str) -> Diagnosis:
    return made(patient.path, "ids_do_not_meet", name, message, fix=fix)


# ---- by the words


def lexical(ward: Ward) -> Iterator[Diagnosis]:
    """Sources that look unrelated to their queries, and scales that look reversed, where texts were given."""
    judged_files = ward.of(*JUDGED)
    corpus = corpus_of(ward) if judged_files else Corpus()
    for judged in judged_files if corpus.texts else ():
        findings = Findings()
        check_lexical(rows_of(ward, judged), corpus, findings)
        for found in findings.warnings:
            fix = _mend_import(ward, judged, found.kind)
            yield made(judged.path, found.kind, found.field, found.message, fix=fix, severity="warning")


def _mend_import(ward: Ward, judged: Patient, kind: str) -> str:
    """The import that reads qrels by position, or with the scale turned over; "" for other files."""
    if judged.qrels is None:
        return ""
    if kind == "reversed_scale":
        grades = sorted({j.grade for docs in judged.qrels.topics.values() for j in docs.values()})
        return ward.import_qrels(judged, "--grade-map", flipped(grades))
    n = sum(texts.rows for texts in ward.of(Form.TOPICS)[:1])
    countable = all(name.isdecimal() and 1 <= int(name) <= n for name in judged.queries)
    return ward.import_qrels(judged, *ORDINAL) if countable else ""


def corpus_of(ward: Ward) -> Corpus:
    """All passages that could be read."""
    paths = [patient.path for patient in ward.of(Form.FRAGMENTS)]
    corpus = Corpus()
    for _, fragment in read_fragments(paths, Findings()):
        corpus.add(fragment)
    for look in (patient.look for patient in ward.of(Form.PASSAGES)):
        for record in look.records:
            row = {role: str(given) for role, key in look.roles.items() if (given := record.value.get(key)) not in (None, "")}
            if (name := row.get("fragment_id")) is not None and name not in corpus.sources:
                with suppress(ValidationError):
                    corpus.add(Fragment.model_validate({"text": "", **row}))
    return corpus


def rows_of(ward: Ward, judged: Patient) -> list[Located]:
    """The judgments of a file with their texts, as far as they can be read."""
    if judged.form is Form.JUDGMENTS:
        return load_judgments([judged.path], Findings(), lenient=True)
    if judged.qrels is not None:
        texts = _texts(ward, ordinal=ward.is_ordinal(judged))
        known = replace(judged.qrels, topics={t: docs for t, docs in judged.qrels.topics.items() if t in texts})
        rows = trec_rows.judgments_from(known, texts=texts).rows
    else:
        rows = list(_golden_rows(judged.look))
    return [Located(Place(judged.path), row) for row in rows]


def _texts(ward: Ward, *, ordinal: bool) -> dict[str, str]:
    """Texts by topic, or by position."""
    looks = [patient.look for patient in ward.of(Form.TOPICS)[:1]]
    pairs = [(r.value.get(look.roles["query_id"]), r.value.get(look.roles["query"])) for look in looks for r in look.records]
    numbered = enumerate((text for _, text in pairs), 1) if ordinal else pairs
    return {str(name): str(text) for name, text in numbered if name is not None and text}


def _golden_rows(look: Look) -> Iterator[RetrievalJudgment]:
    for number, record in enumerate(look.records):
        value: dict[str, Any] = {role: record.value.get(key) for role, key in look.roles.items()}
        expected = tuple(str(v) for v in opened(value.get("expected_sources")) if isinstance(v, str | int) and v != "")
        fixed = {"should_match": True, "category": "imported", "review_status": "reviewed"}
        if expected and value.get("query"):
            try:
                yield RetrievalJudgment.model_validate(
                    {"query_id": f"{number:09}", "query": str(value["query"]), "expected_sources": expected, **fixed}
                )
            except ValidationError:
                continue
