"""lint's look at ranked results: their form, order and ids, and the queries they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from tripos.columns.ranking import ranked, without_duplicates
from tripos.contracts.base import Contract
from tripos.contracts.index import AclDefault, Corpus
from tripos.contracts.retrieval import Completeness, RankedRow
from tripos.curate.idspaces import why_apart
from tripos.errors import MAX_SHOWN, Findings, Place, quoted, suggest
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import Located


@dataclass(frozen=True, slots=True)
class LintOptions:
    """How files are read and judged."""

    acl_default: AclDefault | None = None
    completeness: Completeness = "known_item"
    limit: int = 50
    lenient: bool = False
    allow_extra: bool = False

    @property
    def reading(self) -> dict[str, bool]:
        """The arguments of every reader."""
        return {"lenient": self.lenient, "allow_extra": self.allow_extra}


class ResultCounts(Contract):
    """The ranked results that could be read, counted."""

    rows: int
    results: int
    without_judgment: int = Field(description="Queries with results and no judgment; they are not scored.")
    missing: int = Field(description="Scored queries without a row of results: incomplete.")
    failed: int = Field(description="Rows with an error: incomplete.")


class Results:
    """Looks at ranked results, a row at a time."""

    def __init__(
        self, rows: Sequence[Located], corpus: Corpus | None, options: LintOptions, findings: Findings, digest: str | None
    ) -> None:
        self.known = {j.row.query_id: j for j in rows}
        self.corpus = corpus if corpus is not None and corpus.sources else None
        self.options, self.findings, self.digest = options, findings, digest
        self.seen: dict[str, None] = {}
        self.n_results = self.n_failed = self.n_foreign_stamps = 0

    def read(self, path: str) -> ResultCounts:
        """Check every row of the file, then what the file lacks."""
        before, options = self.findings.n_errors, self.options
        for row in read_ranked(path, self.findings, lenient=options.lenient, allow_extra=options.allow_extra):
            self._row(row)
        if not self.seen and self.findings.n_errors == before:
            self.findings.error("empty_file", Place(path), "", "holds no result")
        foreign = sum(name not in self.known for name in self.seen)
        missing = [j for name, j in self.known.items() if j.row.scored and name not in self.seen]
        if self.seen and self.known and foreign == len(self.seen):
            self._apart(path)
        elif self.seen:
            self._absent(path, missing)
        return ResultCounts(
            rows=len(self.seen),
            results=self.n_results,
            without_judgment=foreign,
            missing=len(missing),
            failed=self.n_failed,
        )

    def _row(self, row: RankedRow) -> None:
        self.seen[row.query_id] = None
        found = ranked(row, "list" if self.options.lenient else "strict", self.findings)
        found = without_duplicates(found, self.options.lenient, row.place, self.findings)
        self.n_results += len(found.ids)
        if row.error is not None:
            self.n_failed += 1
            self.findings.warn("failed", row.place, "error", f"{quoted(row.error)}: the query is incomplete until it is rerun")
        self._stamp(row)
        for name, source in zip(found.ids, found.sources or [None] * len(found.ids), strict=True):
            self._fragment(row, name, source)

    def _stamp(self, row: RankedRow) -> None:
        """The corpus digest of a row must be that of the corpus given; said once."""
        if self.corpus is None or row.corpus_digest in (None, self.digest):
            return
        self.n_foreign_stamps += 1
        if self.n_foreign_stamps == 1:
            text = (
                f"is {str(row.corpus_digest)[:12]}, but the fragments given have {str(self.digest)[:12]}: run the search again"
            )
            self.findings.error("corpus_digest", row.place, "corpus_digest", text)

    def _fragment(self, row: RankedRow, name: str, source: str | None) -> None:
        if self.corpus is None:
            return
        own = self.corpus.sources.get(name)
        if own is None and self.options.lenient:
            self.findings.lenient("unknown_fragments")
        elif own is None:
            near = suggest(name, self.corpus.sources) if self.findings.n_errors < MAX_SHOWN else ""
            text = f'"{quoted(name)}" is in no fragment{near}: a run of another corpus?'
            self.findings.error("unknown_fragment", row.place, "fragment_id", text)
        elif source not in (None, own):
            text = f'of "{quoted(name)}" is "{quoted(source or "")}", but the corpus says "{quoted(own)}"'
            self.findings.error("source_id", row.place, "source_id", text)

    def _apart(self, path: str) -> None:
        reason = why_apart(self.seen, self.known)
        why = reason.told() if reason else "results of another set of queries?"
        text = f"none of {len(self.seen)} queries with results is judged: {why}"
        self.findings.error("ids_do_not_meet", Place(path), "query_id", text)

    def _absent(self, path: str, missing: Sequence[Located]) -> None:
        for located in missing:
            text = f'"{quoted(located.row.query_id)}" has no row in {path}: the query is incomplete until it is run'
            self.findings.warn("missing_result", located.place, "query_id", text)
