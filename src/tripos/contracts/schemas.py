"""JSON Schemas of the files that users write and read, made from the models."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from tripos.contracts.baseline import Baseline
from tripos.contracts.certificate import Certificate, Verification
from tripos.contracts.comparison import Comparison, Power, Repeats
from tripos.contracts.config import Config
from tripos.contracts.corpus import CorpusJudgment, CorpusMiss, CorpusResult
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.fragments import Fragment
from tripos.contracts.generation import (
    EvidenceRow,
    GenerationAnswer,
    GenerationJudgment,
    GenerationMiss,
    GenerationResult,
    GenerationRow,
)
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.judges import ApprovedJudges
from tripos.contracts.reports import RetrievalReport
from tripos.contracts.retrieval import (
    ColumnarResults,
    FlatResult,
    NestedResults,
    RetrievalJudgment,
    RetrievalMiss,
    Timing,
)

FILES: dict[str, Any] = {
    "config": Config,
    "answers": GenerationAnswer,
    "approved-judges": ApprovedJudges,
    "baseline": Baseline,
    "certificate": Certificate,
    "certificate-verification": Verification,
    "comparison": Comparison,
    "corpus-judgments": CorpusJudgment,
    "corpus-misses": CorpusMiss,
    "corpus-report": CorpusReport,
    "corpus-results": CorpusResult,
    "fragments": Fragment,
    "generation-evidence": EvidenceRow,
    "generation-input": GenerationRow,
    "generation-judgments": GenerationJudgment,
    "generation-misses": GenerationMiss,
    "generation-report": GenerationReport,
    "generation-results": GenerationResult,
    "power": Power,
    "ranked-results": NestedResults | ColumnarResults | FlatResult,
    "repeats": Repeats,
    "retrieval-judgments": RetrievalJudgment,
    "retrieval-misses": RetrievalMiss,
    "retrieval-report": RetrievalReport,
    "timings": Timing,
}
"""Every contract by the name of its schema; rows of JSONL files are described one row at a time."""


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schema (draft 2020-12) of each file, by name."""
    return {name: _schema(name, model) for name, model in FILES.items()}


def _schema(name: str, model: Any) -> dict[str, Any]:
    schema = TypeAdapter(model).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"tripos {name}", **schema}
