"""The reports of one run and the rows beside them, read together; other fingerprints are refused, component by component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from tripos.columns.bound import Bound, bind
from tripos.contracts.base import Contract
from tripos.contracts.config import Config
from tripos.contracts.corpus import CorpusJudgment, CorpusMiss, CorpusResult
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.explanation import Layer
from tripos.contracts.generation import GenerationMiss, GenerationResult
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import Component, InputFile, RetrievalReport
from tripos.contracts.retrieval import RetrievalJudgment, RetrievalMiss
from tripos.errors import Finding, Findings, InputError, NotComparable, Place
from tripos.files.corpus import load_corpus_judgments, read_corpus_results
from tripos.files.jsonl import explained, read_rows
from tripos.files.reports import input_paths
from tripos.files.streams import STDIN, read_text
from tripos.fingerprint import (
    COMPONENT_NAMES,
    corpus_judgment_content,
    corpus_result_content,
    differences,
    row_digest,
    unordered,
)

FILES: dict[Layer, tuple[str, str]] = {
    "retrieval": ("retrieval/report.json", "misses.jsonl"),
    "generation": ("generation/generation-report.json", "generation-misses.jsonl"),
    "corpus": ("corpus/corpus-report.json", "corpus-misses.jsonl"),
}
"""Where a full run keeps each report, and the name of the misses beside it."""

RESULTS = "generation-results.jsonl"
Model = TypeVar("Model", bound=Contract)


@dataclass(frozen=True, slots=True)
class Routes:
    """The corpus layer's inputs: reviewed judgments and results, by query id."""

    judgments: dict[str, CorpusJudgment] = field(default_factory=dict)
    results: dict[str, CorpusResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """The reports of one fingerprint. The retrieval report is there always; the others where they were given."""

    bound: Bound
    generation: GenerationReport | None
    corpus: CorpusReport | None
    retrieval_misses: dict[str, RetrievalMiss] = field(default_factory=dict)
    generation_misses: dict[str, GenerationMiss] = field(default_factory=dict)
    corpus_misses: dict[str, CorpusMiss] = field(default_factory=dict)
    generation_results: dict[str, GenerationResult] = field(default_factory=dict)
    routes: Routes = field(default_factory=Routes)

    @property
    def reports(self) -> dict[Layer, RetrievalReport | GenerationReport | CorpusReport]:
        """The reports that are there."""
        every: dict[Layer, RetrievalReport | GenerationReport | CorpusReport | None] = {
            "retrieval": self.bound.report,
            "generation": self.generation,
            "corpus": self.corpus,
        }
        return {layer: report for layer, report in every.items() if report is not None}

    def failures(self, layer: Layer) -> int:
        """Failed queries of one layer."""
        counts: dict[Layer, Sized] = {
            "retrieval": self.retrieval_misses,
            "generation": self.generation_misses,
            "corpus": self.corpus_misses,
        }
        return len(counts[layer])

    @property
    def failed(self) -> list[str]:
        """Distinct failed queries, by id."""
        return sorted({*self.retrieval_misses, *self.generation_misses, *self.corpus_misses})


def found_in(folder: str) -> dict[Layer, str]:
    """The reports that a run folder holds."""
    paths = {layer: Path(folder) / name for layer, (name, _) in FILES.items()}
    return {layer: str(path) for layer, path in paths.items() if path.is_file()}


def load_run(paths: Mapping[Layer, str]) -> Run:
    """Read the reports, their misses, and the inputs they name.

    Raises InputError for what is missing or broken, NotComparable for reports of other configurations.
    """
    findings = Findings()
    bound = bind(paths["retrieval"], Config(), findings)
    generation = _report(paths.get("generation"), GenerationReport)
    corpus = _report(paths.get("corpus"), CorpusReport)
    _refuse(bound, {"generation": generation, "corpus": corpus})
    run = Run(
        bound=bound,
        generation=generation,
        corpus=corpus,
        retrieval_misses=_misses("retrieval", paths, RetrievalMiss, bound.report.run_id, findings),
        generation_misses=_misses("generation", paths, GenerationMiss, _run_id(generation), findings),
        corpus_misses=_misses("corpus", paths, CorpusMiss, _run_id(corpus), findings),
        generation_results=_results(paths.get("generation"), generation, findings),
        routes=_routes(paths.get("corpus"), corpus, findings),
    )
    findings.raise_errors()
    return run


def _report(path: str | None, model: type[Model]) -> Model | None:
    if path is None:
        return None
    text = read_text(path)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        found = [Finding(kind, message, Place(path), field) for kind, field, message in explained(error, model)]
    raise InputError(found)


def _run_id(report: GenerationReport | CorpusReport | None) -> str | None:
    return None if report is None else report.run_id


def _refuse(bound: Bound, others: Mapping[str, GenerationReport | CorpusReport | None]) -> None:
    own, told = bound.report.fingerprint, []
    for layer, report in others.items():
        if report is None:
            continue
        fingerprint = report.fingerprint
        if fingerprint.configuration is None:
            told.append(f"{layer}: the report is unbound: evaluate it again with --retrieval-report {bound.path}")
            continue
        told += _differing(own.components, fingerprint.components, f"in {layer}")
        if not told and isinstance(report, GenerationReport) and _other_results(bound, report):
            told.append(f"{layer}: the answers were written from other ranked results than those of {bound.path}")
    if told:
        raise NotComparable("the reports measured different configurations\n" + "\n".join(told))


def _other_results(bound: Bound, report: GenerationReport) -> bool:
    return report.retrieval is not None and report.retrieval.results_digest != bound.report.results_digest


def _differing(own: Mapping[str, Component], other: Mapping[str, Component], where: str) -> list[str]:
    return [line for letter in COMPONENT_NAMES for line in differences(letter, own[letter], other[letter], where)]


def _misses(
    layer: Layer, paths: Mapping[Layer, str], model: type[Model], run_id: str | None, findings: Findings
) -> dict[str, Model]:
    """The misses beside a report, which must be of the same run."""
    if layer not in paths:
        return {}
    path = str(Path(paths[layer]).parent / FILES[layer][1])
    found: dict[str, Model] = {}
    for place, row in read_rows(path, model, findings):
        if row.run_id != run_id:  # type: ignore[attr-defined]
            text = f"is not the run_id of {paths[layer]}: the two were not written together; evaluate again"
            findings.error("run_id", place, "run_id", text)
            break
        found[row.query_id] = row  # type: ignore[attr-defined]
    return found


def _results(path: str | None, report: GenerationReport | None, findings: Findings) -> dict[str, GenerationResult]:
    """The verdicts beside a generation report, which must be those that it counts."""
    if path is None or report is None:
        return {}
    beside = str(Path(path).parent / RESULTS)
    found = {row.query_id: row for _, row in read_rows(beside, GenerationResult, findings)}
    counted = Counter(row.status for row in found.values())
    if not findings.n_errors and dict(counted) != {status: n for status, n in report.statuses.items() if n}:
        text = f"the statuses are not those that {path} counts: the two were not written together; evaluate again"
        findings.error("statuses", Place(beside), "status", text)
    return found


def _routes(path: str | None, report: CorpusReport | None, findings: Findings) -> Routes:
    """The judgments and results that the corpus report measured, checked to be those."""
    if path is None or report is None:
        return Routes()
    reading = {name: bool(report.reading.get(name)) for name in ("lenient", "allow_extra")}
    files = {entry.role: located(entry, path) for entry in report.provenance.inputs}
    rows = [j.row for j in load_corpus_judgments(files["judgments"], findings, **reading)]
    judged = {row.query_id: row for row in rows if row.review_status == "reviewed"}
    results = {r.row.query_id: r.row for r in read_corpus_results(files["corpus_results"], findings, **reading)}
    findings.raise_errors()
    split = report.reading.get("split", "all")
    scored = [results[name] for name, row in judged.items() if name in results and split in ("all", row.split)]
    _same(report.judgments_digest, (row_digest(corpus_judgment_content(row)) for row in judged.values()), "judgments", path)
    _same(report.results_digest, (row_digest(corpus_result_content(row)) for row in scored), "corpus results", path)
    return Routes(judged, results)


def located(entry: InputFile, report: str) -> str:
    """Where an input of a report is, seen from here."""
    if entry.path == STDIN:
        text = f"{entry.role.replace('_', ' ')} came from standard input, which cannot be read again: evaluate from a file"
        raise InputError.at(report, text, field="provenance.inputs")
    return str(Path(report).parent / entry.path)


def _same(stated: str, digests: Iterable[bytes], what: str, path: str) -> None:
    if unordered(digests) != stated:
        raise NotComparable(f"the {what} are not those that the report measured: evaluate them again\n{path}: {what}")


def judgments_of(run: Run, findings: Findings) -> Iterator[RetrievalJudgment]:
    """The retrieval judgments, read again."""
    reading = {name: bool(run.bound.report.reading.get(name)) for name in ("lenient", "allow_extra")}
    for path in input_paths(run.bound.report, run.bound.path, "judgments"):
        yield from (row for _, row in read_rows(path, RetrievalJudgment, findings, **reading))
