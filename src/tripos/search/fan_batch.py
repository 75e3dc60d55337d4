"""Every question of the corpus judgments through the reference system, into corpus results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tripos.contracts.config import Config
from tripos.contracts.corpus import CorpusJudgment, CorpusResult
from tripos.errors import Findings, NothingToEvaluate, UsageError
from tripos.files.corpus import load_corpus_judgments
from tripos.files.reports import plain
from tripos.files.retrieval import load_corpus
from tripos.fingerprint import combined, depth_component, policy_component
from tripos.search.fan_out import FanOutSystem
from tripos.search.protocol import Query
from tripos.search.registry import told

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FanOutBatch:
    """A system, the questions to put to it, and the stamp of both."""

    system: FanOutSystem
    queries: list[Query]
    stamp: str


def read_fan_out(config: Config, findings: Findings, *, lenient: bool = False, allow_extra: bool = False) -> FanOutBatch:
    """The corpus and the questions; what is expected of them stays behind.

    Raises UsageError for a setting that is missing, InputError with all that is wrong in the files.
    """
    missing = [f for f, value in (("--fragments", config.fragments), ("--judgments", config.judgments.corpus)) if not value]
    if missing:
        raise UsageError(f"missing {', '.join(missing)} (or --config with fragments, judgments.corpus)")
    reading = {"lenient": lenient, "allow_extra": allow_extra}
    corpus, built = load_corpus(config.fragments, config.acl_default, findings, **reading)
    judged = load_corpus_judgments(config.judgments.corpus or "", findings, **reading)
    findings.raise_errors()
    queries = [_query(j.row) for j in judged if j.row.review_status != "rejected" and j.row.query]
    if not queries:
        raise NothingToEvaluate("no question to ask: every row is rejected or has no query text")
    components = {"A": built.component(config.acl_default), "C": policy_component(config.search)}
    stamp = combined({**components, "D": depth_component(config.depth)}, "ACD")
    system = FanOutSystem(corpus, config.search, config.depth)
    return FanOutBatch(system, sorted(queries, key=lambda query: query.query_id), stamp)


def _query(row: CorpusJudgment) -> Query:
    groups = None if row.principal is None else tuple(sorted(set(row.principal.groups)))
    return Query(row.query_id, row.query or "", groups)


def results_of(
    batch: FanOutBatch, failed: list[str], *, timed: bool, progress: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """One row a question, in order; an exception becomes the error of its row, and its query is noted in `failed`."""
    for n, query in enumerate(batch.queries):
        if progress:
            progress(n, len(batch.queries))
        try:
            row = batch.system.answer(query, timed=timed)
        except Exception as error:  # noqa: BLE001 - whatever one question breaks is told in its row
            row = CorpusResult(query_id=query.query_id, error=told(error))
            failed.append(query.query_id)
        content = plain(row.model_copy(update={"system_fingerprint": batch.stamp}))
        yield {key: value for key, value in content.items() if value is not None and value != {}}
