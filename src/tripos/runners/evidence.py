"""evidence: what an answer to each question must be written from, stamped with the system that found it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tripos.columns.bound import Bound, bind, handed_on
from tripos.contracts.config import Config
from tripos.contracts.generation import EvidenceFragment, EvidenceRow
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, InputError
from tripos.files.jsonl import read_rows
from tripos.files.reports import input_paths

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Exported:
    """What was exported, counted while the rows are written."""

    bound: Bound
    rows: int = 0
    failed: int = 0
    empty: int = 0
    without_query: int = 0


def evidence(
    retrieval_report: str, config: Config | None = None, progress: Progress | None = None
) -> tuple[Exported, Iterator[EvidenceRow]]:
    """The evidence of every query of a retrieval run, in the order of its ranked results.

    Args:
        retrieval_report: The report; its inputs are read again, and A to D derived again.
        config: Fragments named here are read instead of the report's; a policy or depth stated here must agree.
        progress: Called with (queries read, queries to read).

    Returns:
        Counts, complete once the rows are, and the rows. Queries whose results carry an error have no row.

    Raises:
        InputError: A file breaks its contract, or the corpus holds no texts.
        NotComparable: The run is not the one that the report measured; raised at the last row at the latest.
    """
    findings = Findings()
    bound = bind(retrieval_report, config or Config(), findings)
    if bound.corpus is None or len(bound.corpus.texts) < len(bound.corpus.sources):
        raise InputError.at(retrieval_report, "evidence needs the texts of all fragments: evaluate with --fragments that have")
    exported = Exported(bound)
    return exported, _rows(exported, _queries(bound, findings), findings, progress)


def _queries(bound: Bound, findings: Findings) -> dict[str, str | None]:
    paths = input_paths(bound.report, bound.path, "judgments")
    lenient = bool(bound.report.reading.get("lenient"))
    extra = bool(bound.report.reading.get("allow_extra"))
    return {
        row.query_id: row.query
        for path in paths
        for _, row in read_rows(path, RetrievalJudgment, findings, lenient=lenient, allow_extra=extra)
    }


def _rows(
    exported: Exported, queries: Mapping[str, str | None], findings: Findings, progress: Progress | None
) -> Iterator[EvidenceRow]:
    for row, names in handed_on(exported.bound, findings, progress):
        if names is None:
            exported.failed += 1
            continue
        query = queries.get(row.query_id)
        exported.rows += 1
        exported.empty += not names
        exported.without_query += query is None
        fragments = tuple(_fragment(name, exported.bound) for name in names)
        yield EvidenceRow(query_id=row.query_id, query=query, system_fingerprint=exported.bound.system, evidence=fragments)


def _fragment(name: str, bound: Bound) -> EvidenceFragment:
    corpus = bound.corpus
    assert corpus is not None
    return EvidenceFragment(fragment_id=name, source_id=corpus.sources.get(name, ""), text=corpus.texts.get(name, ""))
