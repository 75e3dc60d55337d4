"""`tripos aa` and `tripos power`: what moves by itself, and what so many rows can show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.cli.naming import (
    ConfigPlaces,
    Cutoffs,
    Json,
    Measures,
    OneLayer,
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
    from tripos.across.named import Places
    from tripos.across.reach import Assumed
    from tripos.contracts.comparison import Power

_ROWS = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def aa(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Two runs or more of one system; see compare.")],
    layer: WhichLayer = None,
    measure: Measures = None,
    cutoffs: Cutoffs = None,
    max_drop: Annotated[
        list[str] | None, typer.Option(help="Try this gate on every ordered pair, e.g. recall@10=0.02. Repeats.")
    ] = None,
    confidence: Annotated[float | None, typer.Option(help="At which level the gate must be shown, as in compare.")] = None,
    config: ConfigPlaces = None,
    store: StoreFolder = None,
    as_json: Json = False,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
) -> int:
    """How much do runs of one system differ by themselves?

    The noise floor of each measure, the queries that pass in some runs and fail in others, and how often a gate would flip
    though nothing was changed. Exits 0, 2 usage, 3 invalid input, 4 not one system or other judgments.
    """
    from tripos.across.compare import Request
    from tripos.across.named import sides
    from tripos.across.repeated import repeats
    from tripos.cli.comparing import bands, level
    from tripos.report.repeats import render_repeats

    where = places(config, configured(config), store)
    one = chosen_layer(layer, runs, where)
    (side,) = sides([runs[0] if len(runs) == 1 else tuple(runs)], where, one)
    request = Request(
        measures=tuple(measure or ()),
        cutoffs=tuple(numbers(cutoffs)),
        bands=tuple(bands(max_drop or [], one, side.header.limit)),
        confidence=level(confidence),
    )
    with told_as_usage():
        found = repeats(side, request)
    if as_json:
        from tripos.files.reports import dump_report

        sys.stdout.write(dump_report(found).decode())
    else:
        sys.stdout.write(render_repeats(found))
    return 0


def power(
    runs: Annotated[
        list[str], typer.Argument(metavar="GOLDEN|RUN [RUN]", help="A judgments file; one run; or two, for their own spread.")
    ],
    drop: Annotated[
        list[float] | None, typer.Option(min=0, max=1, help="A drop to show. Repeats. [default: .02 and .05]")
    ] = None,
    sd: Annotated[float | None, typer.Option(help="Of a judgments file: spread of row differences. [default: .316]")] = None,
    correlation: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Of one run: with the run that it is held against. [default: .5]")
    ] = None,
    layer: WhichLayer = None,
    measure: Measures = None,
    cutoffs: Cutoffs = None,
    config: ConfigPlaces = None,
    store: StoreFolder = None,
    as_json: Json = False,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
) -> int:
    """What can this golden set show, and what would a gate need?

    For each measure: rows, spread, the smallest difference that they show four times in five, the drop below which nothing is
    evidence, and the rows that a gate on a drop would need. Exits 0, 2 usage, 3 invalid input, 4 not comparable, 5 no row.
    """
    from tripos.report.repeats import render_power

    if len(runs) > 2:
        raise UsageError("power takes a judgments file, one run, or two runs")
    asked = _asked(drop, sd, correlation, measure, cutoffs)
    where = places(config, configured(config), store)
    with told_as_usage():
        found = _power(runs, layer, where, asked)
    if as_json:
        from tripos.files.reports import dump_report

        sys.stdout.write(dump_report(found).decode())
    else:
        sys.stdout.write(render_power(found))
    return 0


def _asked(
    drop: list[float] | None, sd: float | None, correlation: float | None, measure: list[str] | None, cutoffs: str | None
) -> Assumed:
    from tripos.across.reach import Assumed

    if drop and min(drop) <= 0:
        raise UsageError("--drop 0: no number of rows shows that there is no difference at all")
    if sd is not None and not 0 < sd <= 1:
        raise UsageError(f"--sd {sd:g}: above 0 and at most 1 is expected")
    given = {"drops": tuple(drop) if drop else None, "sd": sd, "correlation": correlation}
    own = {key: value for key, value in given.items() if value is not None}
    return Assumed(measures=tuple(measure or ()), cutoffs=tuple(numbers(cutoffs)), **own)  # type: ignore[arg-type]


def _power(runs: list[str], layer: OneLayer | None, where: Places, asked: Assumed) -> Power:
    from tripos.across.named import sides
    from tripos.across.reach import of_golden, of_run, of_two

    if runs[0].endswith(_ROWS):
        if len(runs) > 1:
            raise UsageError("a judgments file stands alone: power takes it, one run, or two runs")
        return of_golden(runs[0], layer.value if layer else "retrieval", asked)
    found = sides(runs, where, chosen_layer(layer, runs, where))
    return of_run(found[0], asked) if len(found) == 1 else of_two(found[0], found[1], asked)
