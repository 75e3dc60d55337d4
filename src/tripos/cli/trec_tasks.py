"""What `tripos import trec` and `tripos export trec` do, apart from their flags, so that the flags load without it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from tripos.contracts.index import Corpus
from tripos.errors import MAX_SHOWN, Findings, NothingToEvaluate, UsageError, quoted
from tripos.files.formats import trec, trec_rows
from tripos.files.jsonl import dump_line, write_lines
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import load_corpus, load_judgments
from tripos.files.streams import whole


def import_qrels(
    path: str,
    output: str,
    *,
    texts_from: str | None,
    ordinal: bool,
    level: int,
    grade_map: str | None,
    fragments: Sequence[str],
    keep_empty: bool,
) -> None:
    """Read qrels and write judgments."""
    if ordinal and texts_from is None:
        raise UsageError("--query-ids ordinal numbers the texts of --queries: give them")
    findings = Findings()
    qrels = trec.read_qrels(path, findings, None if grade_map is None else trec_rows.parse_grade_map(grade_map))
    texts = None if texts_from is None else _texts(qrels, texts_from, ordinal, findings)
    corpus = _corpus(fragments, findings)
    n_absent = 0 if corpus is None else trec_rows.check_sources(qrels, level, corpus, findings)
    findings.raise_errors()
    found = trec_rows.judgments_from(qrels, level=level, texts=texts, keep_empty=keep_empty)
    if found.empty:
        _say(f"no document of grade {level} or above: {_listed(found.empty)}")
    if not found.rows:
        raise NothingToEvaluate(f"{path}: no topic has a document of grade {level} or above")
    with whole(output) as stream:
        n = write_lines(stream, map(trec_rows.judgment_line, found.rows))
    fate = "kept as expected empty" if keep_empty else "left out (--keep-empty keeps them)"
    counts = {
        f"topics without a relevant document, {fate}": len(found.empty),
        "unjudged documents (grade below 0) left out": qrels.n_unjudged,
        "repeated judgments read once": qrels.n_repeated,
        "nonrelevant documents that the corpus lacks": n_absent,
    }
    _summary(f"{path}: {_n(n, 'row')} from {_n(len(qrels.topics), 'topic')}", counts)


def _texts(qrels: trec.Qrels, path: str, ordinal: bool, findings: Findings) -> dict[str, str]:
    """The texts by topic; what is wrong with their file comes before what they do not meet."""
    topics = trec.read_topics(path, findings)
    findings.raise_errors()
    return trec_rows.texts_by_topic(qrels, topics, path, ordinal=ordinal, findings=findings)


def import_run(path: str, output: str, depth: int | None, form: Literal["nested", "columnar"]) -> None:
    """Read a run and write ranked results in trec_eval order."""
    findings = Findings()
    run = trec.read_run(path, findings)
    findings.raise_errors()
    n_read = sum(map(len, run.topics.values()))
    n_kept = sum(min(len(docs), depth or len(docs)) for docs in run.topics.values())
    with whole(output) as stream:
        n_rounded = 0
        for row, rounded in trec_rows.results_from(run, depth=depth, form=form):
            n_rounded += rounded
            stream.write(dump_line(row))
    counts = {
        f"results beyond depth {depth} left out": n_read - n_kept,
        "topics with 32-bit scores, since a tie there decides their order": n_rounded,
        "lines with text after the tag, which is ignored": run.n_trailing,
    }
    _summary(f"{path}: {_n(len(run.topics), 'row')} from {_n(n_read, 'result')}, in trec_eval order", counts)


def export_qrels(paths: Sequence[str], output: str) -> None:
    """Read judgments and write qrels."""
    findings = Findings()
    table = trec_rows.qrels_from(load_judgments(paths, findings), findings)
    findings.raise_errors()
    if not table.topics:
        raise NothingToEvaluate(f"{', '.join(paths)}: no reviewed row expects a source, so qrels would be empty")
    with whole(output) as stream:
        n = trec.write_qrels(stream, table.topics)
    counts = {
        "expected-empty rows have no line": table.n_negative,
        "unscored rows (draft, in review, rejected, calibration) left out": table.n_unscored,
        **{f"rows with {name}, which qrels cannot carry": n for name, n in table.uncarried.items()},
    }
    _summary(f"{', '.join(paths)}: {_n(n, 'judgment')} of {_n(len(table.topics), 'topic')}{_level(table.level)}", counts)


def _level(level: int | None) -> str:
    """The clause on trec_eval's relevance level, where it is not the usual 1."""
    if level is None:
        return "; no relevance level tells the expected sources from the other graded ones"
    return "" if level == 1 else f"; evaluate with trec_eval -l {level}"


def export_run(path: str, output: str, tag: str, unit: Literal["fragment", "source"] | None, fragments: Sequence[str]) -> None:
    """Read ranked results and write a run."""
    if fault := trec.id_fault(tag, leads=False):
        raise UsageError(f'--tag "{tag}" {fault}')
    if fragments and unit == "fragment":
        raise UsageError("--fragments tells sources, which --unit fragment does not write: drop one of the two")
    findings = Findings()
    corpus = _corpus(fragments, findings)
    chosen: Literal["fragment", "source"] = unit or ("fragment" if corpus is None else "source")
    table = trec_rows.run_from(read_ranked(path, findings), findings, unit=chosen, corpus=corpus)
    findings.raise_errors()
    if not table.topics:
        raise NothingToEvaluate(f"{path}: no query has a result, so the run would be empty")
    with whole(output) as stream:
        n = trec.write_run(stream, table.topics, tag)
    said = f"scores are n, n-1, … 1, because {table.synthetic}" if table.synthetic else "scores as given"
    counts = {"queries without results have no line": table.n_empty, "queries with an error have no line": table.n_failed}
    _summary(f"{path}: {_n(n, chosen)} of {_n(len(table.topics), 'topic')}; {said}", counts)


def _corpus(fragments: Sequence[str], findings: Findings) -> Corpus | None:
    return load_corpus(fragments, None, findings)[0] if fragments else None


def _listed(names: Sequence[str]) -> str:
    """The first 20 names, and how many more there are."""
    more = f" … and {len(names) - MAX_SHOWN:,} more" if len(names) > MAX_SHOWN else ""
    return ", ".join(map(quoted, names[:MAX_SHOWN])) + more


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _summary(head: str, counts: dict[str, int]) -> None:
    """One paragraph: what was written, and every count that is not zero."""
    _say("; ".join([head, *(f"{what}: {count:,}" for what, count in counts.items() if count)]))


def _say(text: str) -> None:
    print(text, file=sys.stderr)
