"""`tripos import` and `tripos export`: files of other formats to contract rows and back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from tripos.contracts.corpus import Corpus
from tripos.errors import MAX_SHOWN, Findings, NothingToEvaluate, UsageError, quoted
from tripos.files.formats import trec, trec_rows
from tripos.files.jsonl import dump_line, write_lines
from tripos.files.retrieval import load_corpus, load_judgments, read_ranked
from tripos.files.streams import only_one_stdin, whole

import_app = typer.Typer(
    help="Turn files of other formats into judgments and ranked results.", rich_markup_mode=None, no_args_is_help=True
)
export_app = typer.Typer(
    help="Write judgments and ranked results in other formats.", rich_markup_mode=None, no_args_is_help=True
)


class QueryIds(StrEnum):
    """How topics of qrels name their texts."""

    AS_IS = "as-is"
    ORDINAL = "ordinal"


class Form(StrEnum):
    """How ranked results are written."""

    NESTED = "nested"
    COLUMNAR = "columnar"


class Unit(StrEnum):
    """What a line of an exported run names."""

    FRAGMENT = "fragment"
    SOURCE = "source"


STDOUT = "-"
STDOUT = "-"

Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help='The file to write; "-" is standard output.')]
AllErrors = Annotated[bool, typer.Option("--all-errors", help="Show every error, not only the first 20.")]


def _option(text: str, **settings: Any) -> Any:
    return typer.Option(help=text, **settings)


def _file(text: str) -> Any:
    return _option(text, metavar="FILE")


@import_app.callback()
def _import() -> None:
    """Turn files of other formats into judgments and ranked results."""


@export_app.callback()
def _export() -> None:
    """Write judgments and ranked results in other formats."""


@import_app.command("trec")
def import_trec(
    output: Output,
    qrels: Annotated[str | None, _file("Qrels (topic iter docno rel) to read; makes judgments.")] = None,
    run: Annotated[str | None, _file("A run (topic Q0 docno rank score tag) to read; makes ranked results.")] = None,
    queries: Annotated[str | None, _file("Texts of the topics: id<TAB>text, or JSONL with query_id and query.")] = None,
    query_ids: Annotated[QueryIds | None, _option("ordinal: the n-th text is topic n (default as-is).")] = None,
    relevance_level: Annotated[int | None, _option("Lowest grade that is relevant (default 1).", min=1)] = None,
    grade_map: Annotated[str | None, _option("New grades, OLD=NEW: 1=4,2=3,3=2,4=1,5=0.", metavar="PAIRS")] = None,
    fragments: Annotated[list[str] | None, _file("The corpus: relevant documents must be in it; repeats.")] = None,
    keep_empty: Annotated[bool, typer.Option("--keep-empty", help="Keep topics without a relevant document.")] = False,
    depth: Annotated[int | None, _option("Results kept of each topic (trec_eval -M; default all).", min=1)] = None,
    form: Annotated[Form | None, _option("Form of the ranked results (default nested).")] = None,
    _all_errors: AllErrors = False,
) -> None:
    """Read TREC qrels as judgments, or a TREC run as ranked results.

    Give exactly one of --qrels and --run.

    Qrels are judged by people, so their rows come out as reviewed, in category "imported". Negative grades mean "not judged"
    and are left out. Topics without a relevant document are listed and left out; --keep-empty makes them expected empty.

    Runs are put in trec_eval's order: score descending as 32-bit floats, then docno descending. Scores stay as given, except
    for topics where a 32-bit tie puts the smaller of two scores first: these get their 32-bit scores.
    """
    if (qrels is None) == (run is None):
        raise UsageError("give exactly one of --qrels and --run")
    if qrels is not None:
        _refuse("--run", {"--depth": depth, "--form": form})
        only_one_stdin([qrels, *(fragments or [])])
        _import_qrels(
            qrels,
            output,
            texts_from=queries,
            ordinal=query_ids is QueryIds.ORDINAL,
            level=relevance_level or 1,
            grade_map=grade_map,
            fragments=fragments or [],
            keep_empty=keep_empty,
        )
    elif run is not None:
        _refuse("--qrels", {
            "--queries": queries, "--query-ids": query_ids, "--relevance-level": relevance_level, "--grade-map": grade_map,
            "--fragments": fragments or None, "--keep-empty": keep_empty or None,
        })  # fmt: skip
        _import_run(run, output, depth, form or Form.NESTED)


@export_app.command("trec")
def export_trec(
    output: Output,
    judgments: Annotated[list[str] | None, _file("Retrieval judgments to write as qrels; repeats.")] = None,
    ranked_results: Annotated[str | None, _file("Ranked results to write as a run.")] = None,
    tag: Annotated[str | None, _option("Name of the run, its last column (default tripos).", metavar="NAME")] = None,
    unit: Annotated[Unit | None, _option("source: each source once, at its first fragment (default fragment).")] = None,
    fragments: Annotated[list[str] | None, _file("The corpus, which tells sources; implies --unit source; repeats.")] = None,
    _all_errors: AllErrors = False,
) -> None:
    """Write judgments as TREC qrels, or ranked results as a TREC run.

    Give exactly one of --judgments and --ranked-results.

    Qrels hold the reviewed rows that expect something: grades of relevant sources, 0 for nonrelevant and forbidden ones.

    A run keeps the order of the lists: where sorting by the given scores would change it, the whole run is scored n, n-1, … 1,
    and that is said. Sources come from --fragments, else from source_id, else from the fragment id up to its last "::".
    """
    if (not judgments) == (ranked_results is None):
        raise UsageError("give exactly one of --judgments and --ranked-results")
    if judgments:
        _refuse("--ranked-results", {"--tag": tag, "--unit": unit, "--fragments": fragments or None})
        only_one_stdin(judgments)
        _export_qrels(judgments, output)
    elif ranked_results is not None:
        only_one_stdin([ranked_results, *(fragments or [])])
        _export_run(ranked_results, output, "tripos" if tag is None else tag, unit, fragments or [])


def _import_qrels(
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


def _import_run(path: str, output: str, depth: int | None, form: Form) -> None:
    findings = Findings()
    run = trec.read_run(path, findings)
    findings.raise_errors()
    n_read = sum(map(len, run.topics.values()))
    n_kept = sum(min(len(docs), depth or len(docs)) for docs in run.topics.values())
    with whole(output) as stream:
        n_rounded = 0
        for row, rounded in trec_rows.results_from(run, depth=depth, form=form.value):
            n_rounded += rounded
            stream.write(dump_line(row))
    counts = {
        f"results beyond depth {depth} left out": n_read - n_kept,
        "topics with 32-bit scores, since a tie there decides their order": n_rounded,
        "lines with text after the tag, which is ignored": run.n_trailing,
    }
    _summary(f"{path}: {_n(len(run.topics), 'row')} from {_n(n_read, 'result')}, in trec_eval order", counts)


def _export_qrels(paths: Sequence[str], output: str) -> None:
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


def _export_run(path: str, output: str, tag: str, unit: Unit | None, fragments: Sequence[str]) -> None:
    if fault := trec.id_fault(tag, leads=False):
        raise UsageError(f'--tag "{tag}" {fault}')
    if fragments and unit is Unit.FRAGMENT:
        raise UsageError("--fragments tells sources, which --unit fragment does not write: drop one of the two")
    findings = Findings()
    corpus = _corpus(fragments, findings)
    chosen = Unit.FRAGMENT if corpus is None and unit is None else Unit.SOURCE if unit is None else unit
    table = trec_rows.run_from(read_ranked(path, findings), findings, unit=chosen.value, corpus=corpus)
    findings.raise_errors()
    if not table.topics:
        raise NothingToEvaluate(f"{path}: no query has a result, so the run would be empty")
    with whole(output) as stream:
        n = trec.write_run(stream, table.topics, tag)
    said = f"scores are n, n-1, … 1, because {table.synthetic}" if table.synthetic else "scores as given"
    counts = {"queries without results have no line": table.n_empty, "queries with an error have no line": table.n_failed}
    _summary(f"{path}: {_n(n, chosen.value)} of {_n(len(table.topics), 'topic')}; {said}", counts)


def _corpus(fragments: Sequence[str], findings: Findings) -> Corpus | None:
    return load_corpus(fragments, None, findings)[0] if fragments else None


def _refuse(other: str, given: dict[str, object]) -> None:
    """Raise UsageError for the options that serve only the other kind of file."""
    if names := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"{', '.join(names)}: only for {other}")


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
