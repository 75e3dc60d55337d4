"""`tripos describe` and `tripos fingerprint`: what is measured, what files mean, what a run is bound to."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tripos.cli.options import (
    AllErrors,
    ConfigFile,
    Fragments,
    HowComplete,
    Limit,
    PositionUnit,
    RetrievalJudgments,
    RetrievalMode,
    TopK,
    WhoReads,
)

describe_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Tell what is measured, and what files mean.")


@describe_app.command("measures")
def measures(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown table.")] = False,
) -> None:
    """Every measure: its formula, the rows it is taken over, when it is undefined, where it comes from."""
    from tripos.measures.layers import titles
    from tripos.report.describe import listed_by_layer, measure_rows

    if as_json:
        import orjson

        rows = [{"layer": layer, **row} for layer, measures in titles().items() for row in measure_rows(measures.values())]
        sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        sys.stdout.write(listed_by_layer(titles(), markdown=markdown))


@describe_app.command("schemas")
def schemas(
    output: Annotated[str | None, typer.Option(help="Folder to write NAME.schema.json files to; default: print them.")] = None,
) -> None:
    """JSON Schemas of every file that Tripos reads or writes."""
    import orjson

    from tripos.contracts.schemas import schemas as every
    from tripos.files.streams import whole, writable_folder

    if output is None:
        sys.stdout.write(orjson.dumps(every(), option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    folder = writable_folder(output)
    for name, schema in every().items():
        with whole(folder / f"{name}.schema.json") as stream:
            stream.write(orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def fingerprint(
    fragments: Fragments = None,
    judgments: RetrievalJudgments = None,
    retrieval_mode: RetrievalMode = None,
    limit: Limit = None,
    top_k: TopK = None,
    unit: PositionUnit = None,
    min_score: Annotated[float | None, typer.Option(help="Results below it are dropped before any measure.")] = None,
    config: ConfigFile = None,
    completeness: HowComplete = None,
    judgments_version: Annotated[str | None, typer.Option(help="Version of the golden set.")] = None,
    acl_default: WhoReads = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    all_errors: AllErrors = False,
) -> None:
    """Print the A–D configuration fingerprint and the values it is made from."""
    from tripos.cli.settings import settle
    from tripos.contracts.config import Options
    from tripos.runners.retrieval import fingerprint_of, read, require

    flags = {
        "fragments": fragments,
        "acl_default": acl_default and acl_default.value,
        "judgments.retrieval": judgments,
        "judgments.version": judgments_version,
        "judgments.completeness": completeness and completeness.value,
        "search.mode": retrieval_mode,
        "search.min_score": min_score,
        "depth.limit": limit,
        "depth.top_k": top_k,
        "depth.unit": unit and unit.value,
    }
    settled = settle(config, flags).config
    require(settled, judgments=True, ranked_results=False, mode=True)
    inputs = read(settled, Options(all_errors=all_errors), ())
    inputs.findings.raise_errors()
    made = fingerprint_of(inputs)
    if as_json:
        import orjson

        sys.stdout.write(orjson.dumps(made.model_dump(mode="json"), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        from tripos.report.fingerprint import render_fingerprint

        sys.stdout.write(render_fingerprint(made))
