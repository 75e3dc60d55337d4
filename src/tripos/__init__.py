"""Tripos examines a retrieval-augmented system layer by layer, under one configuration fingerprint.

The public API, loaded on first use so that `import tripos` costs nothing:

    >>> import tripos
    >>> config = tripos.load_config("configs/support-kb.yaml")
    >>> outcome = tripos.evaluate_retrieval(config)
    >>> outcome.report.measures["hit@k"].value[9]     # hit@10
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tripos.contracts.config import Config, Options
    from tripos.contracts.corpus_report import CorpusReport
    from tripos.contracts.reports import RetrievalReport
    from tripos.contracts.retrieval import RetrievalJudgment
    from tripos.errors import InputError, TriposError
    from tripos.files.configs import load_config
    from tripos.runners.corpus import evaluate as evaluate_corpus
    from tripos.runners.retrieval import Evaluation
    from tripos.runners.retrieval import evaluate as evaluate_retrieval
    from tripos.search.protocol import Hit, Query, Searcher
    from tripos.store.views import connect

__version__ = "0.1.0"

__all__ = [
    "Config",
    "CorpusReport",
    "Evaluation",
    "Hit",
    "InputError",
    "Options",
    "Query",
    "RetrievalJudgment",
    "RetrievalReport",
    "Searcher",
    "TriposError",
    "connect",
    "evaluate_corpus",
    "evaluate_retrieval",
    "load_config",
]

_HOMES = {
    "Config": "tripos.contracts.config",
    "CorpusReport": "tripos.contracts.corpus_report",
    "Evaluation": "tripos.runners.retrieval",
    "Hit": "tripos.search.protocol",
    "InputError": "tripos.errors",
    "Options": "tripos.contracts.config",
    "Query": "tripos.search.protocol",
    "RetrievalJudgment": "tripos.contracts.retrieval",
    "RetrievalReport": "tripos.contracts.reports",
    "Searcher": "tripos.search.protocol",
    "TriposError": "tripos.errors",
    "connect": "tripos.store.views",
    "evaluate_corpus": "tripos.runners.corpus:evaluate",
    "evaluate_retrieval": "tripos.runners.retrieval:evaluate",
    "load_config": "tripos.files.configs",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tripos' has no attribute {name!r}")
    module, _, other = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), other or name)
