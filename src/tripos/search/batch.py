"""Every judged query through one search, into ranked results.

Only the questions reach the search: what is expected of it stays here. Clock readings stand in `timings.jsonl` beside the
output, so that the ranked results of the same inputs are the same bytes.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal

from tripos.contracts.base import Scalar
from tripos.contracts.config import SearchConfig
from tripos.contracts.index import AclDefault, Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Findings, NothingToEvaluate, Place, UsageError
from tripos.files.jsonl import dump_line, write_lines
from tripos.files.retrieval import Located, load_corpus, load_judgments, split_name
from tripos.files.streams import check_outputs, only_one_stdin, whole
from tripos.fingerprint import policy_component
from tripos.search.checked import checked
from tripos.search.protocol import Factory, Hit, Query, Searcher
from tripos.search.registry import told

TIMINGS = "timings.jsonl"
STDOUT = "-"

Latency = Literal["file", "inline", "none"]
Progress = Callable[[int], object]


def _untold(_done: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a batch reads, and how."""

    fragments: Sequence[str]
    judgments: Sequence[str]
    acl_default: AclDefault | None = None
    lenient: bool = False
    allow_extra: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """A corpus and the queries to put to it, sorted by query id."""

    corpus: Corpus
    corpus_digest: str | None
    queries: tuple[Query, ...]
    without_text: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What came for one query: hits, or an error."""

    query_id: str
    hits: Sequence[Hit]
    latency_ms: float
    error: str | None = None


@dataclass(slots=True)
class Outcome:
    """What was written."""

    queries: int = 0
    results: int = 0
    failed: list[str] = field(default_factory=list)

    def count(self, answer: Answer) -> None:
        """Count one answer in."""
        self.queries += 1
        self.results += len(answer.hits)
        if answer.error is not None:
            self.failed.append(answer.query_id)


def read(inputs: Inputs, findings: Findings) -> Batch:
    """Corpus and queries, checked against each other; raises InputError with all that is wrong."""
    only_one_stdin([*(split_name(f)[1] for f in inputs.fragments), *inputs.judgments])
    how = {"lenient": inputs.lenient, "allow_extra": inputs.allow_extra}
    corpus, digest = load_corpus(inputs.fragments, inputs.acl_default, findings, **how)
    rows = [located for path in inputs.judgments for located in _judgments(path, findings, **how)]
    asked = _distinct([r for r in rows if r.row.review_status != "rejected" and r.row.query is not None], findings)
    _check_acls(asked, corpus, findings)
    findings.raise_errors()
    kept = [r.row for r in rows if r.row.review_status != "rejected"]
    return Batch(
        corpus=corpus,
        corpus_digest=digest.component(inputs.acl_default).digest,
        queries=tuple(sorted((_query(r.row) for r in asked), key=lambda query: query.query_id)),
        without_text=sum(row.query is None for row in kept),
        rejected=len(rows) - len(kept),
    )


def _judgments(path: str, findings: Findings, **how: bool) -> list[Located]:
    before = findings.n_errors
    rows = load_judgments([path], findings, **how)
    if not rows and findings.n_errors == before:
        findings.error("empty_file", Place(path), "", "holds no judgment")
    return rows


def _distinct(rows: Iterable[Located], findings: Findings) -> list[Located]:
    """One row for each query id; another question under the same id is an error."""
    first: dict[str, Located] = {}
    for located in rows:
        known = first.setdefault(located.row.query_id, located)
        for name, one, other in zip(("query", "principal", "filters"), _asked(known.row), _asked(located.row), strict=True):
            if one != other:
                text = f'is another one for "{located.row.query_id}" at {known.place}: one query_id means one query'
                findings.error("query_id", located.place, name, text)
    return list(first.values())


def _asked(row: RetrievalJudgment) -> tuple[object, object, object]:
    groups = None if row.principal is None else frozenset(row.principal.groups)
    return row.query, groups, {name: (isinstance(value, bool), value) for name, value in row.filters.items()}


def _check_acls(rows: Sequence[Located], corpus: Corpus, findings: Findings) -> None:
    asking = [r for r in rows if r.row.principal is not None]
    if asking and corpus.lacks_acls and corpus.acl_default is None:
        silent = len(corpus.sources) - len(corpus.acls)
        text = (
            f"given (in {len(asking):,} rows), but {silent:,} of {len(corpus.sources):,} fragments have no acl: say who reads "
            "those with --acl-default public or --acl-default deny"
        )
        findings.error("acl_default", asking[0].place, "principal", text)


def _query(row: RetrievalJudgment) -> Query:
    groups = None if row.principal is None else tuple(sorted(set(row.principal.groups)))
    filters: dict[str, Scalar] = dict(row.filters)
    return Query(row.query_id, row.query or "", groups, MappingProxyType(filters))


def answers(searcher: Searcher, name: str, batch: Batch, limit: int) -> Iterator[Answer]:
    """The answer to each query, in order.

    An exception of the search becomes the error of that query. A list that breaks the protocol raises InputError.
    """
    known = batch.corpus.sources.keys()
    for query in batch.queries:
        start = time.perf_counter()
        error, returned = _tried(searcher, query, limit)
        latency_ms = round((time.perf_counter() - start) * 1000, 3)
        hits = [] if error is not None else checked(returned, limit, known, name, query.query_id)
        yield Answer(query.query_id, hits, latency_ms, error)


def _tried(searcher: Searcher, query: Query, limit: int) -> tuple[str | None, object]:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # a model that prints must not end up among the results
            return None, searcher.search(query, limit)
    except Exception as error:  # noqa: BLE001 - a customer's own search may raise anything; it is told in the row
        return told(error), None


def run(
    batch: Batch,
    factory: Factory,
    policy: SearchConfig,
    output: str,
    *,
    limit: int = 50,
    latency: Latency = "file",
    name: str = "lexical",
    progress: Progress = _untold,
) -> Outcome:
    """Search and write; the output is complete or untouched.

    Args:
        batch: What to search and what to ask.
        factory: Makes the search.
        policy: What the search follows; its digest goes into every row.
        output: The ranked results; "-" is standard output.
        limit: Results asked for, a query.
        latency: Where clock readings go: beside the output in timings.jsonl, into the rows, or nowhere.
        name: What errors call the search.
        progress: Told after each query how many are done.

    Raises:
        NothingToEvaluate: No row asks anything.
        UsageError: The search cannot be made.
        InputError: The search broke the protocol.
    """
    if not batch.queries:
        raise NothingToEvaluate("no query to search: every row is rejected or has no query text")
    stamp = {"corpus_digest": batch.corpus_digest, "policy_digest": policy_component(policy).digest}
    searcher, outcome = factory(batch.corpus, policy), Outcome()

    def counted() -> Iterator[Answer]:
        for answer in answers(searcher, name, batch, limit):
            outcome.count(answer)
            yield answer
            progress(outcome.queries)

    _write(counted(), output, stamp, latency)
    return outcome


def _write(found: Iterable[Answer], output: str, stamp: dict[str, str | None], latency: Latency) -> None:
    if output == STDOUT:
        lines = [dump_line(_row(answer, stamp, latency)) for answer in found]
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
        return
    with contextlib.ExitStack() as stack:
        timings = stack.enter_context(whole(beside(output))) if latency == "file" else None
        stream = stack.enter_context(whole(output))
        write_lines(stream, (_row(answer, stamp, latency) for answer in _timed(found, timings)))


def _timed(found: Iterable[Answer], timings: IO[bytes] | None) -> Iterator[Answer]:
    for answer in found:
        if timings is not None:
            timings.write(dump_line({"query_id": answer.query_id, "latency_ms": answer.latency_ms}))
        yield answer


def _row(answer: Answer, stamp: dict[str, str | None], latency: Latency) -> dict[str, Any]:
    results = [{"fragment_id": name, "score": score} for name, score in answer.hits]
    inline = {"latency_ms": answer.latency_ms} if latency == "inline" else {}
    return {"query_id": answer.query_id, "results": results, **inline, "error": answer.error, **stamp}


def beside(output: str) -> Path:
    """The timings of an output."""
    return Path(output).parent / TIMINGS


def check_output(output: str, latency: Latency, inputs: Inputs) -> None:
    """Raise UsageError where an output would replace an input or another output."""
    if output == STDOUT:
        if latency == "file":
            raise UsageError("--latency file needs a file to stand beside: with --output - use --latency inline or none")
        return
    inside = [*(split_name(f)[1] for f in inputs.fragments), *inputs.judgments]
    check_outputs([output, *([beside(output)] if latency == "file" else [])], inside)
