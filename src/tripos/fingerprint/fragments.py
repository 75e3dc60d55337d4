"""Component A: the corpus, however it is split into files."""

from __future__ import annotations

from typing import Any

from tripos.contracts.fragments import DEFAULT_COLLECTION, Fragment, text_digest
from tripos.contracts.reports import Component
from tripos.fingerprint.canonical import digest, round12, row_digest, unordered


class CorpusDigest:
    """Component A, built one fragment at a time."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []
        self._sources: dict[tuple[str, str | None], None] = {}
        self._collections: set[str] = set()
        self._names: set[str] = set()
        self._characters = 0
        self._has_all_texts = True

    def add(self, fragment: Fragment) -> None:
        """Count one fragment in."""
        row = fragment_content(fragment)
        self._rows.append(row_digest(row))
        self._sources[fragment.source, fragment.source_digest] = None
        self._names.add(fragment.source)
        self._collections.add(row["collection"])
        if fragment.text is None:
            self._has_all_texts = False
        else:
            self._characters += len(fragment.text)

    def component(self, acl_default: str | None) -> Component:
        """The component: what is digested, and beside it the means, which follow from it and need the texts."""
        n = len(self._rows)
        frozen = {
            "sources": unordered(row_digest(list(s)) for s in self._sources),
            "segmentation": unordered(self._rows),
            "counts": {"fragments": n, "sources": len(self._names), "collections": len(self._collections)},
            "acl_default": acl_default,
        }
        means = {
            "mean_characters_a_fragment": round12(self._characters / n) if n and self._has_all_texts else None,
            "mean_fragments_a_source": round12(n / len(self._names)) if n else None,
        }
        return Component(digest=digest(frozen), values={**frozen, **means})


def fragment_content(fragment: Fragment) -> dict[str, Any]:
    """What component A digests of one fragment."""
    return {
        "fragment_id": fragment.fragment_id,
        "source": fragment.source,
        "text_sha256": fragment.text_sha256 or text_digest(fragment.text or ""),
        "title": fragment.title,
        "collection": fragment.collection or DEFAULT_COLLECTION,
        "source_digest": fragment.source_digest,
        "acl": None if fragment.acl is None else sorted(set(fragment.acl)),
        "metadata": dict(fragment.metadata),
    }
