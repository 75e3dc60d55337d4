"""`tripos compare`: runs against a base, and gates on what they may lose."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.cli.naming import (
    ConfigPlaces,
    Cutoffs,
    Json,
    Measures,
    StoreFolder,
    WhichLayer,
    chosen_layer,
    configured,
    numbers,
    places,
    told_as_usage,
)
from tripos.cli.options import AllErrors
from tripos.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tripos.contracts.comparison import Comparison
    from tripos.contracts.config import Config
    from tripos.contracts.explanation import Layer
    from tripos.measures.drops import Band


class Format(enum.StrEnum):
    """How a comparison is told."""

    text = "text"
    markdown = "markdown"
    json = "json"


Told = Annotated[Format, typer.Option("--format", help="markdown: for a pull request.")]


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="BASE CANDIDATE…", help="Two runs or more; see above.")],
    layer: WhichLayer = None,
    measure: Measures = None,
    cutoffs: Cutoffs = None,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(help="Gate, e.g. recall@10=0.02, or category=structural:recall@10=0.05 for one slice. Repeats."),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Gates pass only where an interval at this level shows it, e.g. 0.95.")
    ] = None,
    min_n: Annotated[int, typer.Option(min=1, help="A gate over fewer rows fails.")] = 1,
    common_queries: Annotated[
        bool, typer.Option("--common-queries", help="Other judgments: compare the rows that both judge alike.")
    ] = False,
    rescore: Annotated[bool, typer.Option("--rescore", help="Score the rankings of all by today's judgments.")] = False,
    judgments: Annotated[str | None, typer.Option(help="Today's judgments, for --rescore. [default: the config's]")] = None,
    config: ConfigPlaces = None,
    store: StoreFolder = None,
    as_json: Json = False,
    format: Told = Format.text,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
) -> int:
    """What changed from one run to another, and is it more than chance?

    A run is a report file, a folder of reports, `.` (the run of --config, else engagement/full), `baseline` (pinned), or what
    the store knows: a run id, a label, `latest`, `latest~1`. RUN,RUN,… are repeats of one system. Reports are measured again
    from the inputs they name. Exits 0, 1 a gate failed, 2 usage, 3 invalid input, 4 not comparable, 6 a gate is inconclusive.
    """
    if as_json and format is Format.markdown:
        raise UsageError("--json and --format markdown: give one of the two")
    from tripos.across.compare import Request
    from tripos.across.compare import compare as compared
    from tripos.across.named import sides

    if len(runs) < 2:
        raise UsageError("name a base and at least one candidate: tripos compare BASE CANDIDATE")
    if (confidence is not None or min_n > 1) and not max_drop:
        raise UsageError("--confidence and --min-n are about gates: add --max-drop MEASURE=NUMBER")
    if common_queries and (rescore or judgments):
        raise UsageError("--common-queries and --rescore are two ways out of different judgments: choose one")
    settings = configured(config)
    where = places(config, settings, store)
    one = chosen_layer(layer, runs, where)
    if rescore or judgments:
        where.judgments = _todays(judgments, settings, one)
    loaded = sides(runs, where, one)
    limit = min(side.header.limit for side in loaded)
    request = Request(
        measures=tuple(measure or ()),
        cutoffs=tuple(numbers(cutoffs)),
        bands=tuple(bands(max_drop or [], one, limit)),
        confidence=level(confidence),
        min_n=min_n,
        common_queries=common_queries,
        rescored=where.judgments is not None,
    )
    with told_as_usage():
        found = compared(loaded[0], loaded[1:], request)
    _show(found, Format.json if as_json else format)
    return found.verdict.exit_code


def _todays(judgments: str | None, config: Config, layer: Layer) -> str:
    """Today's judgments: as named, else the configuration's."""
    found = judgments or getattr(config.judgments, layer)
    if not found:
        raise UsageError(f"--rescore: name today's judgments with --judgments, or --config with judgments.{layer}")
    return str(found)


def level(confidence: float | None) -> float | None:
    """A level strictly between 0 and 1; raises UsageError."""
    if confidence is not None and not 0.5 <= confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: a level from 0.5 to below 1 is expected, e.g. 0.95")
    return confidence


def bands(texts: Sequence[str], layer: Layer, limit: int) -> list[Band]:
    """Gates from `MEASURE=NUMBER` or `SLICE=VALUE:MEASURE=NUMBER`; raises UsageError for what is none, or is given twice."""
    found: list[Band] = []
    for text in texts:
        band = _band(text, layer, limit)
        if any((one.measure, one.slice) == (band.measure, band.slice) for one in found):
            raise UsageError(f'--max-drop "{text}": this gate is given twice')
        found.append(band)
    return found


def _band(text: str, layer: Layer, limit: int) -> Band:
    from tripos.across.chosen import comparable
    from tripos.measures.drops import Band

    name, separator, number = text.rpartition("=")
    part, _, measure = name.rpartition(":")
    by, equals, value = part.partition("=")
    try:
        most = float(number)
    except ValueError:
        most = -1.0
    if not separator or not 0 <= most <= 1 or (part and not (equals and by and value)):
        raise UsageError(
            f'--max-drop "{text}": MEASURE=NUMBER or SLICE=VALUE:MEASURE=NUMBER is expected, a number from 0 to 1, '
            "e.g. recall@10=0.02"
        )
    with told_as_usage():
        return Band(comparable(measure, layer, limit), most, (by, value) if part else None)


def _show(found: Comparison, format: Format) -> None:
    match format:
        case Format.json:
            from tripos.files.reports import dump_report

            text = dump_report(found).decode()
        case Format.markdown:
            from tripos.report.compare_markdown import comparison_markdown

            text = comparison_markdown(found)
        case Format.text:
            from tripos.report.compare import render_comparison

            text = render_comparison(found)
    sys.stdout.write(text)
    sys.stdout.flush()
