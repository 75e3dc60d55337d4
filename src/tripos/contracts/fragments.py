"""fragments.jsonl: the corpus that a system searches, one fragment a row (component A)."""

from __future__ import annotations

import hashlib

from pydantic import Field, model_validator

from tripos.contracts.base import Contract, Digest, Id, Listed, RowProblem, RowProblems, Scalar

DEFAULT_COLLECTION = "default"


class Fragment(Contract):
    """One fragment of one source, as the search returns it."""

    fragment_id: Id = Field(description='Unique over all files, e.g. "support-004::f0001".')
    source_id: Id | None = Field(None, description='The document; default: fragment_id up to its last "::", else the whole id.')
    text: str | None = Field(None, description="The text; or give text_sha256 instead.")
    text_sha256: Digest | None = Field(None, description="sha256 of the UTF-8 text, for a catalogue that holds no texts.")
    title: str | None = Field(None, description="The title of the source or section.")
    collection: Id | None = Field(None, description='The collection it is searched in; default "default".')
    source_digest: str | None = Field(None, description="Version of the whole source, whatever the chunking.")
    acl: Listed[Id] | None = Field(None, description="Groups that may read it; [] = nobody; absent: acl_default decides.")
    metadata: dict[str, Scalar] = Field(default_factory=dict, description="Scalars that filters compare.")

    @model_validator(mode="after")
    def _text_or_digest(self) -> Fragment:
        if self.text is None and self.text_sha256 is None:
            raise RowProblems([RowProblem("missing_field", "text", "missing: give the text, or text_sha256 for a catalogue")])
        if self.text is not None and self.text_sha256 is not None and self.text_sha256 != text_digest(self.text):
            raise RowProblems(
                [RowProblem("digest", "text_sha256", "is not the sha256 of this row's text: drop one of the two")]
            )
        return self

    @property
    def source(self) -> str:
        """The source id, given or derived."""
        return self.source_id if self.source_id is not None else source_of(self.fragment_id)


def text_digest(text: str) -> str:
    """sha256 of the UTF-8 text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def source_of(fragment_id: str) -> str:
    """The source that a fragment id names by itself: all before the last "::", else the whole id."""
    head, separator, _ = fragment_id.rpartition("::")
    return head if separator and head else fragment_id
