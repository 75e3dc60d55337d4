"""What is counted and kept of rows while they stream through: tallies, digests, and finished lines put aside."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson

from tripos.checks.generation import Shown
from tripos.columns.generation import ANSWERABLE, CODES, PARTIAL, UNANSWERABLE, GenerationColumns, Label
from tripos.contracts.generation import PASSING, GenerationMiss, GenerationResult
from tripos.contracts.reports import Incomplete
from tripos.files.generation import Pair, Seen, Source
from tripos.files.spool import Spool
from tripos.fingerprint import RowDigests

_MAX_NAMED = 1000
_MAX_MODELS = 100
_MAX_ANSWER = 2000


@dataclass(slots=True)
class Tally:
    """Counts and digests of one run; everything comes out the same whatever the order of rows."""

    seen: Seen = field(default_factory=Seen)
    judged: RowDigests = field(default_factory=RowDigests)
    answered: RowDigests = field(default_factory=RowDigests)
    without_list: int = 0
    missed: int = 0
    citations: int = 0
    duplicate_citations: int = 0
    abstained_with_text: int = 0
    origins: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    models: set[str] = field(default_factory=set)
    incomplete: list[tuple[str, str]] = field(default_factory=list)

    def note(self, pair: Pair, *, without_list: bool) -> None:
        """Count what a pair is, before any verdict."""
        self.without_list += without_list
        if pair.answered is None:
            return
        given = pair.answered.cited_fragment_ids
        self.duplicate_citations += len(given) - len(set(given))
        self.abstained_with_text += bool(pair.answered.abstained and (pair.answered.answer or "").strip())
        if pair.answered.model is not None:
            self.models.add(pair.answered.model)
            if len(self.models) > 2 * _MAX_MODELS:
                self.models = set(sorted(self.models)[:_MAX_MODELS])

    def digest(self, judged: bytes, answered: bytes) -> None:
        """Take the digests of a pair's two parts."""
        self.judged.add(judged)
        self.answered.add(answered)

    def judge(self, result: GenerationResult) -> None:
        """Count a verdict."""
        self.missed += result.status not in PASSING
        self.citations += len(result.citations)
        if result.abstention_origin is not None:
            self.origins[result.abstention_origin] += 1
        if result.faithfulness_source is not None:
            self.sources[result.faithfulness_source] += 1
        if result.status == "incomplete":
            self.incomplete.append((result.query_id, result.reasons[0]))
            if len(self.incomplete) >= 2 * _MAX_NAMED:
                self.incomplete = sorted(self.incomplete)[:_MAX_NAMED]

    @property
    def only_model(self) -> str | None:
        """The one model that the answers name."""
        return next(iter(self.models)) if len(self.models) == 1 else None

    def why_nothing(self, source: Source) -> str:
        """Why no row was scored."""
        where = source.combined or source.judgments
        if not self.seen.judgments:
            return f"{where} holds no row"
        return f"none of {self.seen.judgments} rows in {where} is reviewed (review_status: reviewed)"

    def rows(self, columns: GenerationColumns, labels: list[Label]) -> dict[str, Any]:
        """Which rows were scored."""
        named = Counter(labels[code].category or "none" for code in columns.label.tolist())
        kinds = np.bincount(columns.kind, minlength=3).tolist()
        statuses = np.bincount(columns.status, minlength=len(CODES)).tolist()
        return {
            "total": self.seen.judgments,
            "by_status": dict(sorted(self.seen.by_status.items())),
            "by_category": dict(sorted(named.items())),
            "scored": len(columns),
            "answerable": kinds[ANSWERABLE],
            "unanswerable": kinds[UNANSWERABLE],
            "partial": kinds[PARTIAL],
            "incomplete": statuses[CODES["incomplete"]],
            "not_judged": statuses[CODES["not_judged"]],
            "incomplete_rows": [Incomplete(query_id=n, because=b) for n, b in sorted(self.incomplete)[:_MAX_NAMED]],
        }

    def counts(self, stamped: int, let_pass: Mapping[str, int]) -> dict[str, Any]:
        """What was seen on the way."""
        return {
            "answers": self.seen.answers,
            "without_judgment": self.seen.without_judgment,
            "abstention_origins": dict(sorted(self.origins.items())),
            "abstained_with_text": self.abstained_with_text,
            "citations": self.citations,
            "duplicate_citations": self.duplicate_citations,
            "without_list": self.without_list,
            "stamped": stamped,
            "faithfulness_sources": dict(sorted(self.sources.items())),
            "lenient": dict(sorted(let_pass.items())),
        }


class Kept:
    """The lines of generation-results.jsonl and generation-misses.jsonl, finished but for the run that they belong to."""

    def __init__(self, folder: Path | None = None) -> None:
        self._results, self._misses = Spool(folder), Spool(folder)
        self._missed = array("q")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._results.close()
        self._misses.close()

    def take(self, pair: Pair, result: GenerationResult, evidence: Shown) -> None:
        """Put one row aside."""
        row = result.model_dump(mode="json")
        self._results.append(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        is_miss = result.status not in PASSING
        self._missed.append(self._misses.append(orjson.dumps({**row, **_story(pair, evidence)})) if is_miss else -1)

    def results(self, order: Iterable[int]) -> Iterator[bytes]:
        """Every row, in the order asked for."""
        return map(self._results.read, order)

    def misses(self, order: Iterable[int], run_id: str, configuration: str | None) -> Iterator[bytes]:
        """Every missed row, in the order asked for, with the run it belongs to."""
        end = b"," + orjson.dumps({"run_id": run_id, "configuration_fingerprint": configuration})[1:] + b"\n"
        for number in order:
            if self._missed[number] >= 0:
                yield self._misses.read(self._missed[number])[:-1] + end


_RUN_FIELDS = {"run_id", "configuration_fingerprint"}


def _story(pair: Pair, evidence: Shown) -> dict[str, Any]:
    """What a miss tells beyond its verdict; the model's own fields, so that none is forgotten."""
    answer = None if pair.answered is None else pair.answered.answer
    story = {
        "query": pair.judged.query if pair.judged.query is not None or pair.answered is None else pair.answered.query,
        "answer": None if answer is None else answer[:_MAX_ANSWER],
        "answer_characters": len(answer or ""),
        "shown": None if evidence.evidence is None else list(evidence.evidence),
        "error": None if pair.answered is None else pair.answered.error,
    }
    assert story.keys() == GenerationMiss.model_fields.keys() - GenerationResult.model_fields.keys() - _RUN_FIELDS
    return story
