"""TREC tables to contract rows and back: what a judged document, a topic without a text or a tie means to Tripos."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tripos.contracts.fragments import source_of
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import MAX_SHOWN, Findings, Place, UsageError, quoted, suggest
from tripos.files.formats.trec import MAX_GRADE, Judged, Qrels, Run, Topic, id_fault, in_trec_order, keeps_order
from tripos.files.retrieval import Located

Form = Literal["nested", "columnar"]
Unit = Literal["fragment", "source"]

UNCARRIED = (
    "required_sources", "expected_groups", "expected_evidence", "expected_fragments", "filters", "principal", "k",
)  # fmt: skip
"""Fields that decide a score and that qrels have no place for."""


def parse_grade_map(text: str) -> dict[int, int]:
    """`1=4,2=3` as {1: 4, 2: 3}; raises UsageError where it is none."""
    grades: dict[int, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(-?\d{1,9})=(-?\d{1,9})\s*", part, re.ASCII)
        if not match:
            raise UsageError(f'--grade-map: "{quoted(part)}" is no OLD=NEW pair of integers, such as 1=4,2=3')
        old, new = int(match[1]), int(match[2])
        if old in grades:
            raise UsageError(f"--grade-map: {old} is given twice")
        if new > MAX_GRADE:
            raise UsageError(f"--grade-map: {new} is above {MAX_GRADE}, the highest grade")
        grades[old] = new
    return grades


# ---- qrels and topics to judgments


@dataclass(slots=True)
class ImportedJudgments:
    """Rows, and the topics without a document at the level (left out unless they were to be kept)."""

    rows: list[RetrievalJudgment] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)


def texts_by_topic(qrels: Qrels, topics: Sequence[Topic], path: str, *, ordinal: bool, findings: Findings) -> dict[str, str]:
    """The text of each topic of the qrels; every topic without one is an error.

    Args:
        qrels: The judgments.
        topics: The texts in file order.
        path: Their file.
        ordinal: The n-th text belongs to topic "n", whatever its own id.
        findings: Takes every fault.
    """
    texts: dict[str, Topic] = {}
    for n, topic in enumerate(topics, 1):
        first = texts.setdefault(str(n) if ordinal else topic.topic_id, topic)
        if first is not topic:
            said = f'"{quoted(topic.topic_id)}" was used on line {first.place.line}'
            findings.error("duplicate_id", topic.place, "query_id", said)
    missing = [name for name in qrels.topics if name not in texts]
    for name in missing:
        said = f'"{quoted(name)}" has no text in {path}'
        findings.error("no_text", Place(qrels.path, qrels.lines[name]), "topic", said)
    if missing and (hints := _hints(qrels, texts, missing, ordinal)):
        findings.error("ids_do_not_meet", Place(qrels.path), "", "; ".join(hints))
    return {name: topic.text for name, topic in texts.items() if name in qrels.topics}


def _hints(qrels: Qrels, texts: Mapping[str, Topic], missing: Sequence[str], ordinal: bool) -> list[str]:
    """What is probably wrong where topics lack a text."""
    if ordinal:
        return [f"--query-ids ordinal numbers the {len(texts)} texts 1 to {len(texts)}, and ids are compared byte for byte"]
    hints, n = [], len(qrels.topics)
    if len(texts) == n and set(qrels.topics) == {str(i) for i in range(1, n + 1)}:
        hints.append(
            f"the topic ids are exactly 1 to {n} and there are {n} texts: they look like ordinals (the n-th text is "
            'topic "n"); if so, use --query-ids ordinal'
        )
    bare = {name.lstrip("0"): name for name in texts}
    alike = [(name, bare[name.lstrip("0")]) for name in missing if name.lstrip("0") in bare]
    if alike:
        name, other = alike[0]
        hints.append(
            f'{len(alike)} would meet a text if leading zeros were dropped ("{quoted(name)}" and "{quoted(other)}"), but ids '
            "are compared byte for byte, and equal numbers are no proof of equal queries"
        )
    return hints


def check_sources(qrels: Qrels, level: int, corpus: Corpus, findings: Findings) -> int:
    """Note each relevant document that the corpus lacks as an error; returns how many others it lacks."""
    n_absent = 0
    for docs in qrels.topics.values():
        for docno, judged in docs.items():
            if docno in corpus.fragments:
                continue
            n_absent += judged.grade < level
            if judged.grade >= level:
                message = f'"{quoted(docno)}" {_absent(docno, corpus, findings)}'
                findings.error("unknown_source", Place(qrels.path, judged.line), "docno", message)
    return n_absent


def _absent(docno: str, corpus: Corpus, findings: Findings) -> str:
    if source := corpus.sources.get(docno):
        return f'is a fragment of "{quoted(source)}": judgments name sources'
    near = suggest(docno, corpus.fragments.keys()) if findings.n_errors < MAX_SHOWN else ""
    return f"is the source of no fragment{near}"


def judgments_from(
    qrels: Qrels, *, level: int = 1, texts: Mapping[str, str] | None = None, keep_empty: bool = False
) -> ImportedJudgments:
    """Reviewed rows of category "imported", one a topic.

    Documents graded `level` or above are expected; other judged ones are nonrelevant, and keep a grade above 0 as their
    gain, as with trec_eval -l. A topic without an expected document is left out, or kept as expected empty.
    """
    found = ImportedJudgments()
    for topic, docs in qrels.topics.items():
        row = _judgment(topic, docs, level, None if texts is None else texts[topic])
        if not row.expected_sources:
            found.empty.append(topic)
        if row.expected_sources or keep_empty:
            found.rows.append(row)
    return found


def _judgment(topic: str, docs: Mapping[str, Judged], level: int, text: str | None) -> RetrievalJudgment:
    expected = [docno for docno, judged in docs.items() if judged.grade >= level]
    nonrelevant = [docno for docno, judged in docs.items() if judged.grade < level]
    gains = {docno: float(judged.grade) for docno, judged in docs.items() if judged.grade > 0}
    optional: dict[str, Any] = {}
    if expected and gains != dict.fromkeys(expected, 1.0):
        optional["relevance"] = gains
    if nonrelevant:
        optional["nonrelevant_sources"] = nonrelevant
    return RetrievalJudgment(
        query_id=topic,
        query=text,
        expected_sources=tuple(expected),
        should_match=bool(expected),
        category="imported",
        review_status="reviewed",
        **optional,
    )


def judgment_line(row: RetrievalJudgment) -> dict[str, Any]:
    """The row as its file gives it: nothing that is a default, whole grades as integers."""
    value = row.model_dump(mode="json", exclude_unset=True)
    if row.relevance is not None:
        value["relevance"] = {name: int(g) if g.is_integer() else g for name, g in row.relevance.items()}
    return value


# ---- a run to ranked results


def results_from(run: Run, *, depth: int | None = None, form: Form = "nested") -> Iterator[tuple[dict[str, Any], bool]]:
    """Ranked results, one row a topic, and whether its scores had to be rounded to 32 bits (see `in_trec_order`).

    Args:
        run: The run.
        depth: Results kept of each topic, as trec_eval -M; None keeps all.
        form: How the rows are written.
    """
    for topic, docs in run.topics.items():
        ids, scores, rounded = in_trec_order(docs)
        ids, scores = ids[:depth], scores[:depth]
        if form == "columnar":
            yield {"query_id": topic, "fragment_ids": ids, "scores": scores}, rounded
        else:
            items = [{"fragment_id": i, "score": s} for i, s in zip(ids, scores, strict=True)]
            yield {"query_id": topic, "results": items}, rounded


# ---- judgments to qrels


@dataclass(slots=True)
class QrelsTable:
    """Grades by topic; the rows that have none, by why; and what qrels could not carry.

    `level` is the relevance level that tells expected from other graded sources; None where no level does.
    """

    topics: dict[str, dict[str, int]] = field(default_factory=dict)
    n_negative: int = 0
    n_unscored: int = 0
    level: int | None = 1
    uncarried: Counter[str] = field(default_factory=Counter)


def qrels_from(rows: Iterable[Located], findings: Findings) -> QrelsTable:
    """Qrels of the scored rows: grades of relevant sources, 0 for nonrelevant and forbidden ones.

    Drafts, rejected and calibration rows are left out, and counted; so are expected-empty rows, which qrels cannot state.
    An id that TREC cannot carry, or a grade that is no integer, is an error.
    """
    table = QrelsTable()
    expected, others = [MAX_GRADE], [0]
    for place, row in ((located.place, located.row) for located in rows):
        if not row.scored or not row.should_match:
            table.n_unscored += not row.scored
            table.n_negative += row.scored
            continue
        grades = _grades(place, row, findings)
        table.topics[row.query_id] = grades
        relevant = set(row.expected_sources)
        expected += [grades[name] for name in relevant]
        others += [grade for name, grade in grades.items() if name not in relevant]
        table.uncarried.update(name for name in UNCARRIED if getattr(row, name))
    table.level = max(others) + 1 if max(others) < min(expected) else None
    return table


def _grades(place: Place, row: RetrievalJudgment, findings: Findings) -> dict[str, int]:
    """The judged sources of one row that qrels can carry, relevant ones first."""
    where = f'of query "{quoted(row.query_id)}"'
    if fault := id_fault(row.query_id, leads=True):
        findings.error("trec_id", place, "query_id", f'"{quoted(row.query_id)}" {fault}')
    zeros = dict.fromkeys((*row.nonrelevant_sources, *row.forbidden_sources), 0.0)
    grades = {**row.grades, **{name: zero for name, zero in zeros.items() if name not in row.grades}}
    for name, grade in grades.items():
        if fault := id_fault(name, leads=False):
            findings.error(
                "trec_id", place, "expected_sources" if grade else "nonrelevant_sources", f'"{quoted(name)}" {where} {fault}'
            )
        if not grade.is_integer():
            text = f'{grade:g} of "{quoted(name)}" {where} is no integer, and qrels hold nothing else: scale the grades'
            findings.error("grade", place, "relevance", text)
    return {name: int(grade) for name, grade in grades.items()}


# ---- ranked results to a run


@dataclass(slots=True)
class RunTable:
    """Scored documents by topic, best first; `synthetic` says why the scores are not the given ones, or is ""."""

    topics: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    n_empty: int = 0
    n_failed: int = 0
    synthetic: str = ""


def run_from(
    rows: Iterable[RankedRow], findings: Findings, *, unit: Unit = "fragment", corpus: Corpus | None = None
) -> RunTable:
    """A run that trec_eval ranks as the lists stand.

    The given scores are written where sorting by them gives every list back, in 32-bit and in 64-bit floats; else the whole
    run gets n, n − 1, … 1. Rows with an error, and rows without results, have no line, and are counted.

    Args:
        rows: Ranked results.
        findings: Takes every fault: a document twice, a rank that disagrees, an id that TREC cannot carry.
        unit: "source" writes each source once, at its first fragment.
        corpus: Tells sources; without it, source_id of the result does, else the fragment id itself.
    """
    table = RunTable()
    for row in rows:
        if row.error is not None or not row.fragment_ids:
            table.n_failed += row.error is not None
            table.n_empty += row.error is None
            continue
        _check_list(row, findings)
        names = list(row.fragment_ids) if unit == "fragment" else _sources(row, corpus, findings)
        _check_ids(row, names, findings)
        first = {name: at for at, name in reversed(list(enumerate(names)))}
        kept = sorted(first.values())
        ids = [names[at] for at in kept]
        scores = [row.scores[at] for at in kept] if row.scores is not None else [0.0] * len(kept)
        table.synthetic = table.synthetic or _why_synthetic(row, ids, scores)
        table.topics[row.query_id] = list(zip(ids, scores, strict=True))
    if table.synthetic:
        table.topics = {topic: _counted(docs) for topic, docs in table.topics.items()}
    return table


def _counted(docs: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(name, float(len(docs) - at)) for at, (name, _) in enumerate(docs)]


def _why_synthetic(row: RankedRow, ids: Sequence[str], scores: Sequence[float]) -> str:
    if row.scores is None:
        return f'query "{quoted(row.query_id)}" has no scores'
    if not keeps_order(ids, scores):
        return f'trec_eval, sorting by the given scores, would change the order of query "{quoted(row.query_id)}"'
    return ""


def _check_list(row: RankedRow, findings: Findings) -> None:
    """The list is one that can be ranked: nothing twice, and given ranks agree with it."""
    if doubled := [name for name, n in Counter(row.fragment_ids).items() if n > 1]:
        text = f'"{quoted(doubled[0])}" stands more than once in the list of query "{quoted(row.query_id)}": keep one'
        findings.error("duplicate_id", row.place, "fragment_id", text)
    for at, rank in enumerate(row.ranks or (), 1):
        if rank is not None and rank != at:
            text = f'is {rank} at position {at} of query "{quoted(row.query_id)}": list order is the rank'
            findings.error("rank", row.place, "rank", text)
            return


def _sources(row: RankedRow, corpus: Corpus | None, findings: Findings) -> list[str]:
    """The source of each result."""
    given = row.sources or [None] * len(row.fragment_ids)
    if corpus is None:
        return [source or source_of(name) for name, source in zip(row.fragment_ids, given, strict=True)]
    for name, source in zip(row.fragment_ids, given, strict=True):
        if name not in corpus.sources:
            near = suggest(name, corpus.sources.keys()) if findings.n_errors < MAX_SHOWN else ""
            findings.error("unknown_fragment", row.place, "fragment_id", f'"{quoted(name)}" is not in the fragments{near}')
        elif source not in (None, corpus.sources[name]):
            text = f'is "{quoted(source or "")}", but the fragments say "{quoted(corpus.sources[name])}"'
            findings.error("source", row.place, "source_id", text)
    return [corpus.sources.get(name, name) for name in row.fragment_ids]


def _check_ids(row: RankedRow, names: Iterable[str], findings: Findings) -> None:
    """Every id is one that a TREC line can carry."""
    if fault := id_fault(row.query_id, leads=True):
        findings.error("trec_id", row.place, "query_id", f'"{quoted(row.query_id)}" {fault}')
    for name in names:
        if fault := id_fault(name, leads=False):
            text = f'"{quoted(name)}" of query "{quoted(row.query_id)}" {fault}'
            findings.error("trec_id", row.place, "fragment_id", text)
