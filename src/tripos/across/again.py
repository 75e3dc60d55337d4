"""A report's inputs evaluated again by the ordinary runner, and refused unless they are what the report measured."""

from __future__ import annotations

from dataclasses import replace

import orjson
from pydantic import ValidationError

from tripos.across.sides import Header, Rows
from tripos.across.tables import Noted, corpus_rows, generation_rows, header_of, retrieval_rows
from tripos.contracts.base import shown
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.explanation import Layer
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import RetrievalReport
from tripos.errors import Finding, InputError, NotComparable, Place
from tripos.files.jsonl import explained
from tripos.files.reports import input_paths
from tripos.files.streams import read_text
from tripos.fingerprint import COMPONENT_NAMES, differences, digest
from tripos.runners import corpus, generation, retrieval
from tripos.runners.settings import Report, Rerun, corpus_settings, generation_settings, retrieval_settings

_CONTRACTS: dict[str, type[Report]] = {
    str(model.model_fields["contract"].default): model for model in (RetrievalReport, GenerationReport, CorpusReport)
}


def load_report(path: str) -> Report:
    """A report of any layer, strictly; raises InputError with every fault, and for one that was edited."""
    text = read_text(path)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise InputError.at(path, "is no JSON: a report of tripos eval-… is expected") from None
    stated = value.get("contract") if isinstance(value, dict) else None
    if stated not in _CONTRACTS:
        what = f"is {shown(stated)}" if stated else "is no report"
        raise InputError.at(path, f"{what}: a report of tripos eval-retrieval, eval-generation or eval-corpus is expected")
    model = _CONTRACTS[stated]
    try:
        report = model.model_validate_json(text)
    except ValidationError as error:
        raise InputError([Finding(k, message, Place(path), name) for k, name, message in explained(error, model)]) from None
    if digest(report.model_dump(mode="json", exclude={"run_id", "provenance"})) != report.run_id:
        raise NotComparable(f"{path} was changed after it was written: its content does not make its run_id")
    return report


def evaluated_again(path: str, judgments: str | None = None) -> Rows:
    """The rows of a report, from its own inputs.

    Args:
        path: The report.
        judgments: Today's judgments instead of the report's own (`--rescore`).

    Raises:
        NotComparable: The inputs are not those that the report measured, told field by field.
        InputError: The report or an input breaks its contract, or is not there.
    """
    report = load_report(path)
    rows, stated = _rows(report, path, judgments), header_of(report)
    _refuse(stated, rows.header, path, rescored=judgments is not None)
    if judgments is None:
        return replace(rows, header=stated)
    told = () if stated.results_digest == rows.header.results_digest else (f"{path}: {_UNVERIFIED}",)
    return replace(rows, header=stated.scored_by(rows.header), told=told)


def _rows(report: Report, path: str, judgments: str | None) -> Rows:
    bound = next(iter(input_paths(report, path, "retrieval_report")), None)
    match report:
        case RetrievalReport():
            config, options = _rerun(retrieval_settings(report, path), "retrieval", judgments)
            return retrieval_rows(retrieval.evaluate(config, options))
        case GenerationReport():
            if judgments and report.form == "combined":
                raise InputError.at(path, _COMBINED, field="form")
            config, options = _rerun(generation_settings(report, path, bound), "generation", judgments)
            with Noted() as noted:
                return generation_rows(generation.evaluate(config, options, kept=noted), noted)
        case CorpusReport():
            config, options = _rerun(corpus_settings(report, path, bound), "corpus", judgments)
            return corpus_rows(corpus.evaluate(config, options))


def _rerun(rerun: Rerun, layer: Layer, judgments: str | None) -> Rerun:
    """The same evaluation without what decides no figure: gates, and clock readings."""
    own = rerun.config.judgments.model_copy(update={layer: judgments} if judgments else {})
    return rerun._replace(config=rerun.config.model_copy(update={"judgments": own, "gates": {}, "timings": None}))


def _refuse(stated: Header, here: Header, path: str, *, rescored: bool) -> None:
    """Raise NotComparable where the inputs as they are now do not give what the report measured."""
    letters = [letter for letter in COMPONENT_NAMES if not (rescored and letter == "B")]
    told = [line for x in letters for line in differences(x, stated.components[x], here.components[x], "in its files now")]
    if not rescored:
        if stated.judgments_digest != here.judgments_digest:
            told.append("judgments: other reviewed rows than the report measured")
        if not told and stated.results_digest != here.results_digest:
            told.append("results: other ranked results or answers than the report measured")
        if not told and stated.measurement != here.measurement:
            told.append(_MEASUREMENT)
    if told:
        raise NotComparable(
            f"{path}: the files it names are not those that it measured: evaluate them again\n" + "\n".join(told)
        )


_COMBINED = "holds answers and judgments on one line: only answers of their own can be scored by other judgments"
_MEASUREMENT = "measurement: this version of tripos does not take the figures as they were taken then"
_UNVERIFIED = "rescored; other rows are scored than then, so that nothing proves the results to be those of that run"
