"""A report's inputs evaluated again by the ordinary runner, and refused unless they are what the report measured."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from tripos.across.sides import Header, Rows
from tripos.across.tables import Noted, corpus_rows, generation_rows, header_of, retrieval_rows
from tripos.contracts.base import shown
from tripos.contracts.config import Config, Options
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import InputFile, RetrievalReport
from tripos.errors import Finding, InputError, NotComparable, Place
from tripos.files.jsonl import explained
from tripos.files.streams import STDIN, read_text
from tripos.fingerprint import COMPONENT_NAMES, differences, digest
from tripos.runners import corpus, generation, retrieval

Report = RetrievalReport | GenerationReport | CorpusReport

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
    match report:
        case RetrievalReport():
            return _retrieval(report, path, judgments)
        case GenerationReport():
            return _generation(report, path, judgments)
        case CorpusReport():
            return _corpus(report, path, judgments)


def _retrieval(report: RetrievalReport, path: str, judgments: str | None) -> Rows:
    values = {letter: component.values or {} for letter, component in report.fingerprint.components.items()}
    inputs = _inputs(report, path)
    settings = {
        "name": report.name,
        "scope": report.scope,
        "fragments": inputs.get("fragments", []),
        "acl_default": values["A"].get("acl_default"),
        "judgments": {
            "retrieval": judgments or inputs["judgments"][0],
            "version": values["B"].get("version"),
            "completeness": values["B"].get("completeness"),
        },
        "ranked_results": inputs["ranked_results"][0],
        "search": values["C"],
        "depth": values["D"],
    }
    return retrieval_rows(retrieval.evaluate(Config.model_validate(settings), _options(report)))


def _generation(report: GenerationReport, path: str, judgments: str | None) -> Rows:
    inputs = _inputs(report, path)
    if judgments and report.form == "combined":
        text = "holds answers and judgments on one line: only answers of their own can be scored by other judgments"
        raise InputError.at(path, text, field="form")
    own = {
        "input": _first(inputs, "input"),
        "answers": _first(inputs, "answers"),
        "retrieval_report": _first(inputs, "retrieval_report"),
        "model": report.model and report.model.name,
        "judge_model": report.judge and report.judge.name,
        "faithfulness_target": report.targets.faithfulness,
        "qualified_answer_target": report.targets.qualified,
        "abstention_target": report.targets.abstention,
        "abstention": report.abstention.model_dump(),
    }
    settings = {
        "name": report.name,
        "scope": report.scope,
        "fragments": inputs.get("fragments", []),
        "judgments": {"generation": judgments or _first(inputs, "judgments")},
        "generation": own,
    }
    with Noted() as noted:
        made = generation.evaluate(Config.model_validate(_given(settings)), _options(report), kept=noted)
        return generation_rows(made, noted)


def _corpus(report: CorpusReport, path: str, judgments: str | None) -> Rows:
    inputs = _inputs(report, path)
    bound = _first(inputs, "retrieval_report")
    values = {letter: component.values or {} for letter, component in report.fingerprint.components.items()}
    alone = {"acl_default": values["A"].get("acl_default"), "search": values["C"], "depth": values["D"]}
    settings = {
        "name": report.name,
        "scope": report.scope,
        "fragments": inputs.get("fragments", []),
        "judgments": {"corpus": judgments or inputs["judgments"][0]},
        "corpus": {"results": inputs["corpus_results"][0], "retrieval_report": bound},
        **({} if bound else alone),
    }
    return corpus_rows(corpus.evaluate(Config.model_validate(_given(settings)), _options(report)))


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without those that are null."""
    return {key: _given(value) if isinstance(value, dict) else value for key, value in settings.items() if value is not None}


def _options(report: Report) -> Options:
    """How the report's files were read; incomplete rows fail no gate here."""
    stated = {key: value for key, value in report.reading.items() if key in Options.model_fields}
    return Options.model_validate({**stated, "allow_incomplete": True})


def _inputs(report: Report, path: str) -> dict[str, list[str]]:
    """The report's inputs by role, as they are found from here."""
    found: dict[str, list[str]] = {}
    for entry in report.provenance.inputs:
        found.setdefault(entry.role, []).append(_located(entry, path))
    return found


def _located(entry: InputFile, report: str) -> str:
    if entry.path == STDIN:
        text = f"{entry.role.replace('_', ' ')} came from standard input, which cannot be read again: evaluate from a file"
        raise InputError.at(report, text, field="provenance.inputs")
    path = os.path.normpath(Path(report).parent / entry.path)
    return f"{entry.collection}={path}" if entry.collection else path


def _first(inputs: dict[str, list[str]], role: str) -> str | None:
    return next(iter(inputs.get(role, [])), None)


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


_MEASUREMENT = "measurement: this version of tripos does not take the figures as they were taken then"
_UNVERIFIED = "rescored; other rows are scored than then, so that nothing proves the results to be those of that run"
