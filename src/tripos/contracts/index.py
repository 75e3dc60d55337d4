"""The fragments of a run, indexed: what checks, alignment and search ask of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tripos.contracts.base import Scalar
from tripos.contracts.fragments import DEFAULT_COLLECTION, Fragment

AclDefault = Literal["public", "deny"]


@dataclass(slots=True)
class Corpus:
    """Fragments by id and by source.

    `texts` and `metadata` hold a key for each fragment only where the file gave one; `acls` likewise, so that an absent
    key means "no acl given" and `acl_default` decides.
    """

    acl_default: AclDefault | None = None
    sources: dict[str, str] = field(default_factory=dict)
    fragments: dict[str, list[str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    acls: dict[str, tuple[str, ...]] = field(default_factory=dict)
    metadata: dict[str, Mapping[str, Scalar]] = field(default_factory=dict)
    collections: dict[str, str] = field(default_factory=dict)

    def add(self, fragment: Fragment) -> None:
        """Index one fragment; ids are checked to be unique by the reader."""
        name = fragment.fragment_id
        source = self.sources[name] = fragment.source
        self.fragments.setdefault(source, []).append(name)
        self.collections[name] = fragment.collection or DEFAULT_COLLECTION
        if fragment.text is not None:
            self.texts[name] = fragment.text
        if fragment.title is not None:
            self.titles[name] = fragment.title
        if fragment.acl is not None:
            self.acls[name] = fragment.acl
        if fragment.metadata:
            self.metadata[name] = fragment.metadata

    def within(self, collection: str) -> Corpus:
        """The fragments of one collection, as a corpus of its own."""
        part = Corpus(acl_default=self.acl_default)
        names = [name for name, home in self.collections.items() if home == collection]
        for field_ in ("sources", "texts", "titles", "acls", "metadata", "collections"):
            whole = getattr(self, field_)
            getattr(part, field_).update({name: whole[name] for name in names if name in whole})
        for name in names:
            part.fragments.setdefault(self.sources[name], []).append(name)
        return part

    def readable(self, fragment_id: str, groups: Iterable[str]) -> bool:
        """Whether one of `groups` may read the fragment."""
        acl = self.acls.get(fragment_id)
        if acl is None:
            return self.acl_default == "public"
        return not set(acl).isdisjoint(groups)

    def passes(self, fragment_id: str, filters: Mapping[str, Scalar]) -> bool:
        """Whether the fragment's metadata equal every filter, type and all; a lacking field fails."""
        own = self.metadata.get(fragment_id, {})
        return all(name in own and same(own[name], wanted) for name, wanted in filters.items())

    def admits(self, fragment_id: str, groups: Iterable[str] | None, filters: Mapping[str, Scalar]) -> bool:
        """Whether a query with this principal and these filters may see the fragment at all."""
        return self.passes(fragment_id, filters) and (groups is None or self.readable(fragment_id, groups))

    def bars_something(self, groups: Iterable[str]) -> bool:
        """Whether there is any fragment that none of `groups` may read."""
        own = set(groups)
        barred = any(own.isdisjoint(acl) for acl in set(self.acls.values()))
        return barred or (self.lacks_acls and self.acl_default != "public")

    @property
    def lacks_acls(self) -> bool:
        """Whether some fragment leaves its readers to acl_default."""
        return len(self.acls) < len(self.sources)


def same(one: Scalar, other: Scalar) -> bool:
    """Typed equality: 1 equals 1.0, but neither equals true or "1"."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return (type(one) is type(other) and one == other) or (
        isinstance(one, int | float) and isinstance(other, int | float) and one == other
    )
