"""What answers were written from: the evidence file against what retrieval handed on, and multi-hop answers' own word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tripos.checks.generation import Shown as Passages
from tripos.columns.bound import Bound, Lists
from tripos.contracts.generation import EvidenceRow
from tripos.errors import Findings, InputError, Place, TriposError, quoted
from tripos.files.generation import Pair
from tripos.files.jsonl import read_rows
from tripos.fingerprint import RowDigests, row_digest
from tripos.runners.generation import Inputs


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """generation-evidence.jsonl, against the top K of the bound run."""

    path: str
    rows: int
    digest: str | None
    differences: tuple[str, ...] = ()
    fault: TriposError | None = None


@dataclass(slots=True)
class Shown:
    """What answers say they were shown, as far as the generation runner leaves it to the corpus layer."""

    multi_hop: dict[str, tuple[str, ...]] = field(default_factory=dict)
    evidence: EvidenceFile | None = None

    def watch(self, rows: Iterator[tuple[Pair, Passages]]) -> Iterator[tuple[Pair, Passages]]:
        """Pass rows on, noting what multi-hop answers were shown by their own word."""
        for pair, passages in rows:
            given = None if pair.answered is None else pair.answered.evidence_fragment_ids
            if given is not None and (pair.judged.category or "").startswith("multi_hop"):
                self.multi_hop[pair.judged.query_id] = given
            yield pair, passages


def compared(path: str, inputs: Inputs) -> EvidenceFile | None:
    """The evidence file beside the run against what the run hands on; None where there is no file."""
    if inputs.bound is None or inputs.lists is None or not Path(path).is_file():
        return None
    findings, digests, seen = Findings(), RowDigests(), set[str]()
    told: list[str] = []
    try:
        for place, row in read_rows(path, EvidenceRow, findings):
            told += _row(place, row, inputs.bound, inputs.lists, row.query_id in seen)
            seen.add(row.query_id)
            digests.add(row_digest(row.model_dump(mode="json")))
        findings.raise_errors()
    except InputError as fault:
        return EvidenceFile(path, len(seen), None, fault=fault)
    if missing := sum(query_id not in seen for query_id in inputs.lists):
        told.append(f"{path}: {missing} of {len(inputs.lists)} queries that retrieval answered have no row")
    return EvidenceFile(path, len(seen), digests.unordered(), tuple(told))


def _row(place: Place, row: EvidenceRow, bound: Bound, lists: Lists, is_second: bool) -> Iterator[str]:
    """Everything in which one row is not the evidence of this run."""
    where, corpus = f"{place}  {quoted(row.query_id)}", bound.corpus
    names = [part.fragment_id for part in row.evidence]
    wanted = lists.get(row.query_id)
    if is_second or wanted is None:
        yield f"{where}: {'a second row' if is_second else 'retrieval has no list for this query'}"
        return
    if row.system_fingerprint != bound.system:
        yield f"{where}: system_fingerprint {row.system_fingerprint[:12]}, this system is {bound.system[:12]}"
    if row.query is not None and bound.questions.asks_otherwise(row.query_id, row.query):
        yield f"{where}: query is another text than the judgments have"
    if names != wanted:
        n = next(
            (i for i, pair in enumerate(zip(names, wanted, strict=False)) if pair[0] != pair[1]), min(len(names), len(wanted))
        )
        yield f"{where}: evidence[{n}] is {_at(names, n)}, retrieval handed on {_at(wanted, n)}"
    elif corpus is not None:
        for n, part in enumerate(row.evidence):
            if (part.source_id, part.text) != (corpus.sources.get(part.fragment_id), corpus.texts.get(part.fragment_id)):
                yield f"{where}: evidence[{n}] has another text or source than fragment {quoted(part.fragment_id)}"


def _at(names: list[str], n: int) -> str:
    return quoted(names[n]) if n < len(names) else "nothing"
