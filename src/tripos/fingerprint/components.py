"""The components B, C and D, what A–D combine to, and in which fields two of them differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tripos.contracts.base import shown
from tripos.contracts.config import DepthConfig, SearchConfig
from tripos.contracts.reports import Component
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.fingerprint.canonical import RowDigests, digest, row_digest
from tripos.fingerprint.retrieval import judgment_content

NO_CORPUS = Component(digest=None, values=None)


def judgments_component(rows: Iterable[RetrievalJudgment], version: str | None, completeness: str) -> Component:
    """Component B: the reviewed rows, the declared version and completeness."""
    reviewed = RowDigests()
    for row in rows:
        if row.review_status == "reviewed":
            reviewed.add(row_digest(judgment_content(row)))
    return component_b(reviewed, version, completeness)


def component_b(reviewed: RowDigests, version: str | None, completeness: str) -> Component:
    """Component B from the digests of the reviewed rows."""
    values = {"rows": reviewed.unordered(), "reviewed": len(reviewed), "version": version, "completeness": completeness}
    return Component(digest=digest(values), values=values)


def policy_component(search: SearchConfig) -> Component:
    """Component C: the search policy."""
    return Component(digest=digest(search.policy()), values=search.policy())


def depth_component(depth: DepthConfig) -> Component:
    """Component D: the evidence depth."""
    values = {
        "limit": depth.limit,
        "top_k": depth.handed_on,
        "unit": depth.unit,
        "per_collection": None if depth.per_collection is None else dict(depth.per_collection),
    }
    return Component(digest=digest(values), values=values)


def combined(components: Mapping[str, Component], letters: str) -> str:
    """sha256 over the named components, e.g. "ABCD" for the configuration and "ACD" for the system alone."""
    return digest({letter: components[letter].digest for letter in letters})


COMPONENT_NAMES = {"A": "corpus", "B": "judgments", "C": "search policy", "D": "evidence depth"}
"""What each component freezes."""


_DIGESTED = {
    "sources": "other source ids or versions",
    "segmentation": "other fragments (ids, texts, titles, acls or metadata)",
    "rows": "other reviewed rows",
}


DERIVED = ("mean_characters_a_fragment", "mean_fragments_a_source")
"""Values of component A that stand beside its digest: they follow from the rest, and a catalogue cannot know them."""


def differences(letter: str, retrieval: Component, here: Component, where: str = "here") -> list[str]:
    """Each field in which a component differs from the retrieval report's, in words; [] where the digests agree."""
    if retrieval.digest == here.digest:
        return []
    name, fields = f"{letter} {COMPONENT_NAMES[letter]}", differing(retrieval, here)
    if not fields:
        return [f"{name}: the digest in the retrieval report does not belong to the values beside it"]
    told = [f"{name}: {k} {one} in retrieval, {other} {where}" for k, one, other in fields if k not in _DIGESTED]
    return told + [f"{name}: {k}: {_DIGESTED[k]} {where} than in retrieval" for k, *_ in fields if k in _DIGESTED]


def differing(one: Component, other: Component) -> list[tuple[str, str, str]]:
    """Each field whose values differ, with both as one would type them; digests, which nobody types, are named as such."""
    ours, theirs = _flat(one.values or {}), _flat(other.values or {})
    keys = [k for k in {**ours, **theirs} if ours.get(k) != theirs.get(k) and k not in DERIVED]
    return [(k, _told(ours, k), _told(theirs, k)) for k in keys]


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        inner = {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
        flat |= {k.replace("counts.", "number of "): v for k, v in inner.items()}
    return flat


def _told(values: Mapping[str, Any], key: str) -> str:
    return shown(values[key]) if key in values else "not stated"
