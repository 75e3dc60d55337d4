"""`tripos baseline`: which run later ones are held against, and why."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tripos.cli.naming import ConfigPlaces, Json, StoreFolder, WhichLayer, configured, places

baseline_app = typer.Typer(
    name="baseline",
    help="Pin the run that later ones are held against, and show it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@baseline_app.command("pin")
def pin(
    run: Annotated[str, typer.Argument(help="A report, a folder, `.`, or a run id or label of the store.")],
    why: Annotated[str, typer.Option(help="Why this run is what others must hold up to.")],
    layer: WhichLayer = None,
    config: ConfigPlaces = None,
    store: StoreFolder = None,
) -> int:
    """Pin a run: writes baseline.yaml beside the configuration, to be committed.

    A baseline that moves with every run hides slow drift; a pinned one moves by a reviewed change. One run a layer.
    """
    from tripos.across.pinning import is_stored, pin_of, with_pin
    from tripos.files.pins import read_pins, write_pins

    where = places(config, configured(config), store)
    of, made = pin_of(run, why, where, layer.value if layer else None)
    write_pins(where.pins, with_pin(read_pins(where.pins), of, made))
    print(f"{of} baseline {made.run[:12]} ({made.name}) → {where.pins}")
    if not is_stored(where, made):
        text = f"kept in no store: the next evaluation into {run} replaces it; keep its files aside, or evaluate with --store"
        print(f"note: {text}", file=sys.stderr)
    return 0


@baseline_app.command("show")
def show(config: ConfigPlaces = None, store: StoreFolder = None, as_json: Json = False) -> int:
    """Show the pinned runs, their reasons, and where they are kept."""
    from tripos.across.pinning import kept
    from tripos.errors import quoted

    where = places(config, configured(config), store)
    pins, found = where.baseline, kept(where)
    if as_json:
        from tripos.files.reports import dump_report

        sys.stdout.write(dump_report(pins).decode())
        return 0
    for layer, place in found.items():
        own = pins.of(layer)
        assert own is not None
        print(f"{layer:<12}{own.run[:12]}  {quoted(own.name)}  {quoted(own.why)}\n{'':<12}{place}")
    return 0
