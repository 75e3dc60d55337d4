"""The seam: what a search is given, what it gives back, and the protocol that any search follows.

The embedded lexical search implements `Searcher`; a dense, a hybrid or a customer's own search plugs in at the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

from tripos.contracts.base import Scalar
from tripos.contracts.config import SearchConfig
from tripos.contracts.index import Corpus


@dataclass(frozen=True, slots=True)
class Query:
    """One question as it is asked. It carries no expectation: the ruler stays outside the thing measured.

    Attributes:
        query_id: The name of the question.
        text: The question.
        groups: Groups of the reader; None asks for nobody in particular and may see everything.
        filters: Metadata that every result must carry; the query's own, those of the policy come with the policy.
    """

    query_id: str
    text: str
    groups: tuple[str, ...] | None = None
    filters: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))


class Hit(NamedTuple):
    """One fragment found, and how well it matches: higher is better."""

    fragment_id: str
    score: float


@runtime_checkable
class Searcher(Protocol):
    """Anything that ranks the fragments of a corpus for a query."""

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        """At most `limit` hits, best first: known fragments, each once, with finite scores that never rise.

        An exception stands for this query alone: it becomes the error of its row, and the batch goes on.
        """
        ...


Factory = Callable[[Corpus, SearchConfig], Searcher]
"""Makes a search over a corpus that follows a policy."""
