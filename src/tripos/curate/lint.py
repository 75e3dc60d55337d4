"""lint: everything that is wrong with judgments, their corpus and ranked results, before anything is measured.

Covers all rows but rejected ones. The same checks as an evaluation's, and more: the words that queries and sources share,
columns that nobody fills, and what a set of judgments cannot tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from tripos.checks.lexical import check_lexical
from tripos.checks.retrieval import check_against_corpus, check_depths, check_judgments
from tripos.contracts.base import Contract, Listed
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.curate.lint_results import LintOptions, ResultCounts, Results
from tripos.errors import Finding, Findings, Place, quoted
from tripos.files.retrieval import Located, load_corpus, load_judgments

OPTIONAL = (
    "relevance", "required_sources", "expected_groups", "expected_evidence", "expected_fragments", "nonrelevant_sources",
    "forbidden_sources", "filters", "principal", "k", "split", "slices", "cluster",
)  # fmt: skip
"""Optional fields that decide numbers; how many rows fill each is told."""


class LintFinding(Contract):
    """One finding, as the report carries it."""

    severity: Literal["error", "warning"]
    kind: str
    file: str
    line: int = Field(description="Physical line from 1; 0 means the whole file.")
    field: str
    message: str

    def __str__(self) -> str:
        place = Place(self.file, self.line)
        return str(Finding(self.kind, self.message, place, self.field, self.severity))


class RowCounts(Contract):
    """The judgments that could be read, counted."""

    total: int
    by_review_status: dict[str, int]
    by_category: dict[str, int] = Field(description="Of all rows but rejected ones, as are the following.")
    by_split: dict[str, int]
    by_should_match: dict[str, int]
    scored: int = Field(description="Reviewed rows that are no calibration rows.")
    filled: dict[str, int] = Field(description="Rows that fill each optional field; fields that no row fills are left out.")


class CorpusCounts(Contract):
    """The corpus that could be read, counted."""

    fragments: int
    sources: int
    collections: int
    without_text: int
    without_acl: int


class LintReport(Contract):
    """What lint found."""

    contract: Literal["tripos/lint-report@1"] = "tripos/lint-report@1"
    errors: int
    warnings: int
    by_kind: dict[str, dict[str, int]] = Field(description="Findings of each severity by kind, of those kept.")
    findings: Listed[LintFinding] = Field(description="Errors, then warnings, each by place; at most 10,000.")
    let_pass: dict[str, int] = Field(description="What --lenient or --allow-extra let pass, by kind.")
    rows: RowCounts
    corpus: CorpusCounts | None
    results: ResultCounts | None
    notes: Listed[str] = Field(description="What is no fault, and good to know.")


def lint(
    judgments: Sequence[str],
    fragments: Sequence[str] = (),
    *,
    ranked_results: str | None = None,
    options: LintOptions | None = None,
) -> LintReport:
    """Read the files and note all that is wrong with them.

    Args:
        judgments: Paths of retrieval judgments.
        fragments: Paths of the corpus, or NAME=PATH; without any, sources cannot be checked.
        ranked_results: Path of ranked results, if these are to be looked at too.
        options: How files are read and judged.

    Raises:
        InputError: A file cannot be read at all.
    """
    options, findings = options or LintOptions(), Findings()
    located = load_judgments(judgments, findings, **options.reading)
    if not located and not findings.n_errors:
        findings.error("empty_file", Place(judgments[0]), "", "holds no judgment")
    corpus, digest = None, None
    if fragments:
        corpus, built = load_corpus(fragments, options.acl_default, findings, **options.reading)
        digest = built.component(options.acl_default).digest
    kept = [j for j in located if j.row.review_status != "rejected"]
    _check(kept, corpus, options, findings)
    results = None
    if ranked_results:
        results = Results(kept, corpus, options, findings, digest).read(ranked_results)
    return _report(located, kept, corpus=corpus, results=results, options=options, findings=findings)


def _check(rows: Sequence[Located], corpus: Corpus | None, options: LintOptions, findings: Findings) -> None:
    check_judgments(rows, findings)
    check_depths(rows, options.limit, findings)
    _never_filled(rows, findings)
    if corpus is not None and corpus.sources:
        check_against_corpus(rows, corpus, findings, lenient=options.lenient)
        check_lexical(rows, corpus, findings)


def _never_filled(rows: Sequence[Located], findings: Findings) -> None:
    """Fields that a file writes in every row, and leaves empty in each."""
    by_file: dict[str, list[RetrievalJudgment]] = {}
    for located in rows:
        by_file.setdefault(located.place.file, []).append(located.row)
    for file, own in by_file.items():
        written = [f for f in ("expected_sources", *OPTIONAL) if len(own) > 1 and all(f in row.model_fields_set for row in own)]
        for field in written:
            if not any(getattr(row, field) for row in own):
                text = f"empty in {len(own)} of {len(own)} rows: fill it where it applies, or leave the field out"
                findings.warn("never_filled", Place(file), field, text)


def _report(
    located: Sequence[Located],
    kept: Sequence[Located],
    *,
    corpus: Corpus | None,
    results: ResultCounts | None,
    options: LintOptions,
    findings: Findings,
) -> LintReport:
    by_kind: dict[str, Counter[str]] = {"error": Counter(), "warning": Counter()}
    for finding in findings.kept:
        by_kind[finding.severity][finding.kind] += 1
    rows = [j.row for j in kept]
    return LintReport(
        errors=findings.n_errors,
        warnings=findings.n_warnings,
        by_kind={severity: dict(sorted(counts.items())) for severity, counts in by_kind.items()},
        findings=tuple(map(_as_finding, [*findings.errors, *findings.warnings])),
        let_pass=dict(sorted(findings.let_pass.items())),
        rows=_rows([j.row for j in located], rows),
        corpus=None if corpus is None else _corpus(corpus),
        results=results,
        notes=tuple(_notes(rows, corpus, options)),
    )


def _as_finding(f: Finding) -> LintFinding:
    return LintFinding(severity=f.severity, kind=f.kind, file=f.place.file, line=f.place.line, field=f.field, message=f.message)


def _rows(every: Sequence[RetrievalJudgment], rows: Sequence[RetrievalJudgment]) -> RowCounts:
    filled = {field: sum(bool(getattr(row, field)) for row in rows) for field in OPTIONAL}
    return RowCounts(
        total=len(every),
        by_review_status=_tally(row.review_status for row in every),
        by_category=_tally(row.category for row in rows),
        by_split=_tally(row.split or "none" for row in rows),
        by_should_match=_tally(str(row.should_match).lower() for row in rows),
        scored=sum(row.scored for row in rows),
        filled={field: n for field, n in filled.items() if n},
    )


def _tally(values: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _corpus(corpus: Corpus) -> CorpusCounts:
    return CorpusCounts(
        fragments=len(corpus.sources),
        sources=len(corpus.fragments),
        collections=len(set(corpus.collections.values())),
        without_text=len(corpus.sources) - len(corpus.texts),
        without_acl=len(corpus.sources) - len(corpus.acls),
    )


def _notes(rows: Sequence[RetrievalJudgment], corpus: Corpus | None, options: LintOptions) -> Iterator[str]:
    """What these judgments cannot tell, though nothing in them is wrong."""
    if not any(row.scored for row in rows):
        yield "no row is scored: only reviewed rows are, and no calibration rows"
    if len(rows) < 2:
        return
    if len(categories := {row.category for row in rows}) == 1:
        yield f'every row is of category "{quoted(categories.pop())}": a slice by category would say nothing'
    if all(row.should_match for row in rows):
        yield "every row expects a source: whether the system stays silent where it should is not examined"
    if unsplit := sum(row.split is None for row in rows):
        yield f"{unsplit} of {len(rows)} rows name no split: parameters chosen on them are judged on them too"
    if any(row.nonrelevant_sources for row in rows) and options.completeness == "known_item":
        yield "rows list nonrelevant_sources, yet completeness is known_item: if sources were pooled, say --completeness pooled"
    if corpus is None:
        yield "no --fragments: sources, quotes, filters and principals are not checked, and no lexical look is taken"
    elif corpus.sources and not corpus.texts:
        yield "the corpus is a catalogue without texts: quotes are not checked, and no lexical look is taken"
