"""`tripos certify`: parse, call, print, exit code."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tripos.cli.naming import FULL, OneLayer
from tripos.cli.options import AllErrors, NoStore, Quiet, StoreFolder
from tripos.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from tripos.certify.demands import Demands
    from tripos.certify.dossier import Dossier
    from tripos.contracts.certificate import Certificate
    from tripos.contracts.config import Config
    from tripos.loop.storing import Storing


class CertificateFormat(enum.StrEnum):
    """How a certification is told."""

    text = "text"
    json = "json"
    markdown = "markdown"
    junit = "junit"
    in_toto = "in-toto"


def certify(
    folder: Annotated[str | None, typer.Argument(help=f"The full run. [default: the config's run, else {FULL}]")] = None,
    config: Annotated[str | None, typer.Option(help="The YAML or TOML file that the run was made with.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="DATE", help="The day on which approvals must hold. [default: today]")
    ] = None,
    layer: Annotated[
        list[OneLayer] | None,
        typer.Option(help="Layers to certify. Repeats. [default: the config's, else retrieval, generation and those found]"),
    ] = None,
    approved_judges: Annotated[str | None, typer.Option(help="The list of approved judges, YAML or TOML.")] = None,
    output: Annotated[str | None, typer.Option(help="Where the certificate goes. [default: FOLDER/certificate.json]")] = None,
    verify: Annotated[
        str | None, typer.Option(metavar="CERTIFICATE", help="Only compare the files with a certificate, byte by byte.")
    ] = None,
    format: Annotated[
        CertificateFormat, typer.Option("--format", help="markdown: for a pull request; junit; in-toto: to be signed.")
    ] = CertificateFormat.text,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also tell the checks that passed.")] = False,
    store: StoreFolder = None,
    no_store: NoStore = False,
    all_errors: AllErrors = False,  # noqa: ARG001 - looked for where errors are printed
    quiet: Quiet = False,
) -> int:
    """Does the full run hold, figure by figure, under one configuration?

    Reads every file again, scores it again, and compares; trusts no figure. Writes certificate.json only where all checks
    pass, and removes an earlier one where they do not. Exits 0 certified, 1 a check failed, 4 fingerprints differ,
    6 incomplete, 3 a file cannot be read; 2 usage. With --verify: 0 every byte is as certified, 1 some file is not.
    """
    told = _told(format, as_json=as_json)
    if verify is not None:
        return _verify(verify, folder or config or output, told)
    day = _day(as_of)
    settled = _configured(config)
    run = folder or (settled.run if settled is not None else None) or FULL
    target, history = _target(output, run), _history(settled, store, no_store)
    from tripos.certify.seal import certify as seal
    from tripos.cli.storing import stored

    asked = _demands(run, settled, config, day, approved_judges, layer or ())
    dossier = _gathered(run, asked, quiet)
    _check_output(target, dossier)
    certificate = seal(dossier, target)
    written = _publish(certificate, target)
    with stored(history, lambda own: own.certificate(certificate), quiet=quiet, what="certificate"):
        _show(certificate, target if written else None, told, every)
    return certificate.verdict.exit_code


def _told(format: CertificateFormat, *, as_json: bool) -> CertificateFormat:
    if as_json and format not in (CertificateFormat.text, CertificateFormat.json):
        raise UsageError(f"--json and --format {format}: give one of the two")
    return CertificateFormat.json if as_json else format


def _day(text: str | None) -> date:
    from datetime import UTC, date, datetime

    if text is None:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f'--as-of "{text}": a day is expected, e.g. 2026-10-31') from None


def _configured(path: str | None) -> Config | None:
    if path is None:
        return None
    from tripos.cli.settings import settle

    return settle(path, {}).config


def _history(config: Config | None, store: str | None, no_store: bool) -> Storing | None:
    """Where the certificate is kept: by the rule of evaluations."""
    from tripos.loop.storing import Storing
    from tripos.store.layout import DEFAULT

    if store and no_store:
        raise UsageError("--store and --no-store: give one of the two")
    folder = store or (config.store or DEFAULT if config is not None else None)
    return None if no_store or folder is None else Storing(folder, ())


def _target(output: str | None, run: str) -> str:
    if output == "-":
        raise UsageError("--output names a file; --json prints the certificate")
    if not Path(run).is_dir():
        what = "is a file, not a folder" if Path(run).exists() else "there is no such folder"
        raise UsageError(f"{run}: {what}: name the folder of the full run, or a configuration that does")
    return output or str(Path(run) / "certificate.json")


def _demands(
    run: str, config: Config | None, path: str | None, day: date, approved_judges: str | None, layers: Sequence[OneLayer]
) -> Demands:
    from tripos.across.runs import found_in
    from tripos.certify.demands import demanded

    return demanded(
        config, path, frozenset(found_in(run)), day, approved_judges=approved_judges, only=[layer.value for layer in layers]
    )


def _gathered(run: str, demands: Demands, quiet: bool) -> Dossier:
    from tripos.certify.dossier import gathered
    from tripos.cli.progress import Progress

    return gathered(run, demands, lambda layer: Progress(f"{layer} queries", quiet=quiet))


def _check_output(target: str, dossier: Dossier) -> None:
    from tripos.certify.inventory import inventory
    from tripos.files.streams import check_outputs

    check_outputs([target], [item.path for item in inventory(dossier)])


def _publish(certificate: Certificate, target: str) -> bool:
    from tripos.certify.publish import published, withdrawn

    if published(certificate, target):
        return True
    if withdrawn(target):
        print(f"{target}: removed: the run is not certified", file=sys.stderr)
    return False


def _show(certificate: Certificate, written: str | None, told: CertificateFormat, every: bool) -> None:
    sys.stdout.write(_text(certificate, written, told, every))
    sys.stdout.flush()


def _text(certificate: Certificate, written: str | None, told: CertificateFormat, every: bool) -> str:
    if told is CertificateFormat.json:
        from tripos.certify.seal import dump

        return dump(certificate).decode()
    if told is CertificateFormat.junit:
        from tripos.report.junit import render_junit

        return render_junit(certificate)
    if told is CertificateFormat.in_toto:
        from tripos.report.intoto import render_statement

        return render_statement(certificate)
    if told is CertificateFormat.markdown:
        from tripos.report.certificate_markdown import render_certificate_markdown

        return render_certificate_markdown(certificate)
    from tripos.report.certificate import render_certificate

    return render_certificate(certificate, written, every=every)


def _verify(path: str, other: str | None, told: CertificateFormat) -> int:
    """Bytes against the certificate; nothing is scored."""
    if other is not None:
        raise UsageError(f"--verify takes the certificate alone, not {other}")
    if told not in (CertificateFormat.text, CertificateFormat.json):
        raise UsageError("--verify is told as text, or with --json")
    from tripos.certify.verify import verified
    from tripos.files.reports import dump_report
    from tripos.report.certificate import render_verification

    found = verified(path)
    sys.stdout.write(dump_report(found).decode() if told is CertificateFormat.json else render_verification(found))
    sys.stdout.flush()
    return 0 if found.status == "intact" else 1
