"""The flags of eval-retrieval that hold a run against a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tripos.errors import InputError, UsageError

if TYPE_CHECKING:
    from tripos.runners.drops import Against

Baseline = Annotated[
    str | None,
    typer.Option(metavar="RUN|REPORT", help="A report, a folder, baseline (pinned), a run id or a label of the store."),
]
RecallDrop = Annotated[float | None, typer.Option(min=0, max=1, help="Gate: how far recall at top K may fall below it.")]
MrrDrop = Annotated[float | None, typer.Option(min=0, max=1, help="Gate: how far MRR at top K may fall below it.")]
NdcgDrop = Annotated[float | None, typer.Option(min=0, max=1, help="Gate: how far NDCG at top K may fall below it.")]


def against(baseline: str | None, config: str | None, settings: Any, drops: dict[str, float | None]) -> Against | None:
    """The baseline and its gates; None where none is asked for.

    Raises UsageError for gates without a baseline, a baseline without gates, and a name that means no run.
    """
    most = {name: value for name, value in drops.items() if value is not None}
    if baseline is None and not most:
        return None
    if baseline is None:
        raise UsageError(f"--max-{next(iter(most))}-drop: name the run it is held against with --baseline")
    if not most:
        raise UsageError("--baseline: no gate reads it; add --max-recall-drop, --max-mrr-drop or --max-ndcg-drop")
    from tripos.across.named import report_of
    from tripos.cli.naming import places
    from tripos.contracts.reports import RetrievalReport
    from tripos.runners.drops import DROPS, held_against

    report = report_of(baseline, places(config, settings, settings.store), "retrieval")
    if not isinstance(report, RetrievalReport):
        raise InputError.at(baseline, "is a report of another layer: one of tripos eval-retrieval is expected")
    curves = {DROPS[name]: value for name, value in most.items()}
    return held_against(report, curves, settings.depth.handed_on, f"baseline {baseline}")
