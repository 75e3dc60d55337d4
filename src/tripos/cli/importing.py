"""`tripos import` and `tripos export`: files of other formats to contract rows and back."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from tripos.errors import UsageError
from tripos.files.streams import only_one_stdin

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
    from tripos.cli import trec_tasks

    if (qrels is None) == (run is None):
        raise UsageError("give exactly one of --qrels and --run")
    if qrels is not None:
        _refuse("--run", {"--depth": depth, "--form": form})
        only_one_stdin([qrels, *(fragments or [])])
        trec_tasks.import_qrels(
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
        trec_tasks.import_run(run, output, depth, "columnar" if form is Form.COLUMNAR else "nested")


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
    from tripos.cli import trec_tasks

    if (not judgments) == (ranked_results is None):
        raise UsageError("give exactly one of --judgments and --ranked-results")
    if judgments:
        _refuse("--ranked-results", {"--tag": tag, "--unit": unit, "--fragments": fragments or None})
        only_one_stdin(judgments)
        trec_tasks.export_qrels(judgments, output)
    elif ranked_results is not None:
        only_one_stdin([ranked_results, *(fragments or [])])
        trec_tasks.export_run(
            ranked_results,
            output,
            "tripos" if tag is None else tag,
            None if unit is None else "source" if unit is Unit.SOURCE else "fragment",
            fragments or [],
        )


def _refuse(other: str, given: dict[str, object]) -> None:
    """Raise UsageError for the options that serve only the other kind of file."""
    if names := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"{', '.join(names)}: only for {other}")
