"""Checks: every figure is what the files give."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tripos.certify.artifacts import command, stated_results
from tripos.certify.comparing import differing
from tripos.certify.dossier import Dossier
from tripos.certify.inventory import missing
from tripos.certify.record import CannotTell, Outcome, by_layer, check, failed, lines_of, not_applicable, passed
from tripos.contracts.config import LayerName
from tripos.errors import InputError, NotComparable
from tripos.fingerprint import DERIVED, digest
from tripos.runners.settings import Report

_OWN_CHECKS = {"run_id", "judgments_digest", "results_digest", "answers_digest", "retrieval_run_id"}
"""Parts of a report that checks of their own compare; so are those of the fingerprint, and of the retrieval run named."""

_NOT_COMPARED = ("tool", "inputs", "judge_approval")
"""Parts of provenance that say where and when, which may be elsewhere and later now."""


@check("retrieval-recomputed", "Every figure of the retrieval report is what its files give (1e-9).")
def retrieval_recomputed(dossier: Dossier) -> Outcome:
    """The whole report against the one that the ordinary runner makes."""
    return _recomputed(dossier, "retrieval")


@check("generation-recomputed", "Every figure of the generation report is what its files give (1e-9).")
def generation_recomputed(dossier: Dossier) -> Outcome:
    """The same of the generation layer."""
    return _recomputed(dossier, "generation")


@check("corpus-recomputed", "Every figure of the corpus report is what its files give (1e-9).")
def corpus_recomputed(dossier: Dossier) -> Outcome:
    """The same of the corpus layer."""
    return _recomputed(dossier, "corpus")


def _recomputed(dossier: Dossier, layer: LayerName) -> Outcome:
    if layer not in dossier.layers:
        return not_applicable(f"no {layer} layer is asked for")
    report, again = dossier.report(layer), dossier.anew(layer)
    if isinstance(again.fault, InputError):
        fix = f"mend the file, and evaluate again: {command(dossier, layer)}"
        raise CannotTell(_first(again.fault), again.fault.exit_code, fix, is_own=_is_own(dossier, layer))
    if isinstance(again.fault, NotComparable):
        raise CannotTell("; ".join(lines_of(again.fault)), again.fault.exit_code)
    made = dossier.made(layer)
    told = list(differing(_compared(report), _compared(made)))
    if told:
        fix = f"{command(dossier, layer)} (the report was changed, or made from other files or by another version)"
        what = "1 field is" if len(told) == 1 else f"{len(told)} fields are"
        return failed(f"{what} not what the files give", told, fix)
    return passed(f"{_count(_compared(made)['measures'])} figures over {made.rows.scored} rows")


def _first(fault: InputError) -> str:
    told = [line for line, _ in zip(lines_of(fault), range(3), strict=False)]
    return "; ".join(told) + (f" (and {fault.total - len(told)} more)" if fault.total > len(told) else "")


def _is_own(dossier: Dossier, layer: LayerName) -> bool:
    """Whether a fault of a file is this layer's to tell: nothing that it stands on is missing, faulty or changed."""
    below = dossier.again.get("retrieval")
    stands = layer == "retrieval" or (below is not None and below.report is not None)
    return stands and not missing(dossier) and not changed(dossier, layer)


def changed(dossier: Dossier, layer: LayerName) -> bool:
    """Whether a layer's files are others than it measured: what no longer fits together is then a consequence of that."""
    report, again = dossier.report(layer), dossier.anew(layer)
    pairs: list[tuple[str | None, str | None]] = [
        (again.judgments_digest, report.judgments_digest),
        (again.results_digest, stated_results(report)),
    ]
    if again.components is not None:
        pairs += [(again.components[letter].digest, report.fingerprint.components[letter].digest) for letter in "ABCD"]
    return any(found not in (None, stated) for found, stated in pairs)


def _compared(report: Report) -> dict[str, Any]:
    content = report.model_dump(mode="json", exclude=_OWN_CHECKS)
    components = content["fingerprint"]["components"]
    content["fingerprint"] = {
        "measurement": content["fingerprint"]["measurement"],
        "components": {"A": {"values": _part(components["A"]["values"], DERIVED)}},
    }
    if "retrieval" in content:
        content["retrieval"] = _part(content["retrieval"], content["retrieval"].keys() - {"run_id", "results_digest"})
    content["provenance"] = {key: value for key, value in content["provenance"].items() if key not in _NOT_COMPARED}
    return content


def _part(values: dict[str, Any] | None, keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in (values or {}).items() if key in keys}


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else isinstance(value, int | float)


@check("run-ids", "Each report's run_id is the digest of its own content.")
def run_ids(dossier: Dossier) -> Outcome:
    """A report that was edited after it was written shows here even where no figure is wrong."""

    def edited(layer: LayerName) -> Iterator[str]:
        report = dossier.report(layer)
        made = digest(report.model_dump(mode="json", exclude={"run_id", "provenance"}))
        if made != report.run_id:
            yield f"{layer} run_id: {report.run_id[:12]} in the report, its content makes {made[:12]}"

    return by_layer(dossier, edited, "as recorded", "a report was changed after it was written", "evaluate the layer again")


@check("rows-recomputed", "Misses and results files hold the rows that the files give.")
def rows_recomputed(dossier: Dossier) -> Outcome:
    """Every file of rows beside a report, row by row."""

    def rows(layer: LayerName) -> Iterator[str]:
        dossier.made(layer)
        for found in dossier.anew(layer).beside.values():
            if found.fault is not None:
                raise CannotTell(next(lines_of(found.fault)), found.fault.exit_code)
            yield from found.differences

    return by_layer(dossier, rows, "row by row", "rows are not what the files give", "evaluate the layer again")
