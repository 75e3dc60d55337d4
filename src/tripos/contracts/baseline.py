"""configs/baseline.yaml: the run that later ones are compared with, one a layer, pinned with its reason."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tripos.contracts.base import Contract, Digest
from tripos.contracts.explanation import Layer


class Pin(Contract):
    """One pinned run."""

    run: Digest = Field(description="Its run_id.")
    why: Annotated[str, Field(min_length=1)] = Field(description="Why this run is what others must hold up to.")
    name: str = Field(description="Name of the system or corpus, as on its report.")
    judgments_digest: Digest = Field(description="Of the judgments it was scored by.")
    report: str | None = Field(None, description="The report it was pinned from, relative to this file; null: from a store.")


class Baseline(Contract):
    """The file: pins by layer."""

    retrieval: Pin | None = None
    generation: Pin | None = None
    corpus: Pin | None = None

    def of(self, layer: Layer) -> Pin | None:
        """The pin of one layer."""
        pin: Pin | None = getattr(self, layer)
        return pin
