"""Canonical digests and the A–D components of a configuration.

Every digest is sha256 over canonical JSON (RFC 8785, JCS), so that equal content has equal digests whatever the order of
lines, keys or sets, and however the corpus is split into files.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import rfc8785

from tripos.contracts.base import shown
from tripos.contracts.config import DepthConfig, SearchConfig
from tripos.contracts.fragments import DEFAULT_COLLECTION, Fragment, text_digest
from tripos.contracts.generation import Answered, GenerationAnswer, GenerationJudgment, Judged, Requirement
from tripos.contracts.reports import Component
from tripos.contracts.retrieval import RetrievalJudgment

EXCLUDED: dict[str, dict[str, str]] = {
    "Fragment": {
        "text": "covered by text_sha256, so that a catalogue without texts has the digest of the full corpus",
        "source_id": "covered by its resolved value",
    },
    "RetrievalJudgment": {
        "review_status": "selects the rows: only reviewed ones are digested",
        "information_need": "a note to reviewers",
        "notes": "a note to reviewers",
        "reviewer": "who reviewed decides no number",
        "reviewed_at": "when it was reviewed decides no number",
        "source_file": "provenance",
        "tags": "a note to reviewers",
        "metadata": "the user's own",
    },
    "GenerationJudgment": {
        "review_status": "selects the rows: only reviewed ones are digested",
        "notes": "a note to reviewers",
        "reviewer": "who reviewed decides no number",
        "reviewed_at": "when it was reviewed decides no number",
        "metadata": "the user's own",
    },
    "Requirement": {"text": "the fact in words, for reviewers"},
    "GenerationAnswer": {
        "query": "checked to be the judged text",
        "model": "must agree with the report's model",
        "system_fingerprint": "checked against the retrieval report",
        "latency_ms": "a clock reading",
        "metadata": "the user's own",
    },
    "Config": {
        "name": "a label, kept in the report itself",
        "scope": "kept in the report itself; certification asks for full",
        "ranked_results": "a path; the content has results_digest",
        "timings": "a path to clock readings",
        "run": "a path",
        "generation": "its parts are covered or excluded one by one (GenerationConfig)",
        "gates": "thresholds decide the verdict, no figure; kept in the report itself",
    },
    "JudgmentsConfig": {
        "retrieval": "a path; the content is component B",
        "generation": "a path; the content has the judgments_digest of the generation report",
    },
    "GenerationConfig": {
        "input": "a path; the content has judgments_digest and answers_digest",
        "answers": "a path; the content has answers_digest",
        "retrieval_report": "a path; its fingerprint is taken over",
        "model": "what is measured, no way of measuring; kept in the report itself",
        "approved_judges": "approval changes no figure; kept in provenance",
        "faithfulness_target": "a target, kept in the report itself; binds qualified alone",
        "qualified_answer_target": "a target, kept in the report itself",
        "abstention_target": "a target, kept in the report itself",
        "dropped_gates": "gates decide the verdict, no figure; kept in the report itself",
    },
    "SearchConfig": {},
    "DepthConfig": {},
    "RankedRow": {
        "rank": "must agree with the position in the list",
        "source_id": "must agree with the corpus; without one nothing certifies",
        "collection": "no retrieval figure depends on it",
        "latency_ms": "a clock reading",
        "corpus_digest": "a claim about component A, checked against it",
        "policy_digest": "a claim about component C, checked against it",
        "metadata": "the user's own",
    },
}
"""Fields of the contracts that no digest covers, each with the reason. A test walks every field: it is here or in a digest."""

_SETS = frozenset(
    {"expected_sources", "required_sources", "nonrelevant_sources", "forbidden_sources", "expected_fragments", "groups", "acl"}
)
_PLAIN = (str, int, bool, type(None))
_MAX_PLAIN_INT = 2**53


def canonical(value: Any) -> bytes:
    """RFC 8785 canonical JSON of `value`.

    Raises ValueError for NaN, Infinity and integers beyond 2^53, which canonical JSON cannot carry.
    """
    if _is_plain(value):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return rfc8785.dumps(value)


def _is_plain(value: Any) -> bool:
    """Whether orjson writes this the canonical way: no floats, no large integers, keys of ASCII alone."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and k.isascii() and _is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return -_MAX_PLAIN_INT < value < _MAX_PLAIN_INT
    return isinstance(value, _PLAIN)


def digest(value: Any) -> str:
    """sha256 of the canonical JSON of `value`, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def unordered(digests: Iterable[bytes]) -> str:
    """One digest of many row digests, whatever their order: sha256 over them sorted."""
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def row_digest(value: Any) -> bytes:
    """sha256 of the canonical JSON of one row."""
    return hashlib.sha256(canonical(value)).digest()


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


def judgment_content(row: RetrievalJudgment) -> dict[str, Any]:
    """What component B digests of one reviewed row: defaults filled in, sets sorted."""
    excluded = EXCLUDED["RetrievalJudgment"]
    content: dict[str, Any] = row.model_dump(mode="json", exclude=set(excluded))
    for name in _SETS & content.keys():
        content[name] = sorted(set(content[name]))
    content["expected_groups"] = sorted(sorted(set(g)) for g in content["expected_groups"])
    content["expected_evidence"] = sorted(content["expected_evidence"], key=lambda e: (e["source_id"], e["quote"]))
    content["relevance"] = row.grades
    if content["principal"] is not None:
        content["principal"] = {"groups": sorted(set(content["principal"]["groups"]))}
    return content


JUDGED_FIELDS = frozenset(GenerationJudgment.model_fields) - EXCLUDED["GenerationJudgment"].keys()
ANSWERED_FIELDS = frozenset(GenerationAnswer.model_fields) - EXCLUDED["GenerationAnswer"].keys()


def generation_judgment_content(row: Judged) -> dict[str, Any]:
    """What judgments_digest covers of one reviewed part, whichever form it came in: defaults filled in, sets sorted."""
    content: dict[str, Any] = row.model_dump(mode="json", include=set(JUDGED_FIELDS))
    content["accepted_fragment_ids"] = sorted(set(row.accepted_fragment_ids))
    content["citation_requirements"] = sorted(map(_requirement, row.citation_requirements), key=lambda r: r["requirement_id"])
    return content


def _requirement(row: Requirement) -> dict[str, Any]:
    return {
        "requirement_id": row.requirement_id,
        "acceptable_fragment_ids": sorted(set(row.acceptable_fragment_ids)),
        "acceptable_evidence": sorted([e.source_id, e.quote] for e in row.acceptable_evidence),
        "importance": row.importance,
    }


def answer_content(row: Answered) -> dict[str, Any]:
    """What answers_digest covers of one answer: citations and evidence as sets."""
    content: dict[str, Any] = row.model_dump(mode="json", include=set(ANSWERED_FIELDS))
    content["cited_fragment_ids"] = sorted(set(row.cited_fragment_ids))
    if row.evidence_fragment_ids is not None:
        content["evidence_fragment_ids"] = sorted(set(row.evidence_fragment_ids))
    return content


def judgments_component(rows: Iterable[RetrievalJudgment], version: str | None, completeness: str) -> Component:
    """Component B: the reviewed rows, the declared version and completeness."""
    reviewed = [row_digest(judgment_content(row)) for row in rows if row.review_status == "reviewed"]
    values = {"rows": unordered(reviewed), "reviewed": len(reviewed), "version": version, "completeness": completeness}
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


def results_content(query_id: str, fragment_ids: Sequence[str], scores: Sequence[float] | None, error: str | None) -> bytes:
    """What the results digest covers of one query: ids in rank order, the error, and each score as its eight bytes."""
    head = canonical([query_id, list(fragment_ids), error])
    return head if scores is None else head + struct.pack(f">{len(scores)}d", *(s + 0.0 for s in scores))


NO_CORPUS = Component(digest=None, values=None)


def combined(components: Mapping[str, Component], letters: str) -> str:
    """sha256 over the named components, e.g. "ABCD" for the configuration and "ACD" for the system alone."""
    return digest({letter: components[letter].digest for letter in letters})


def round12(value: float) -> float:
    """`value` to 12 significant digits, as reports carry it; −0 becomes 0."""
    return float(f"{value:.12g}") + 0.0


COMPONENT_NAMES = {"A": "corpus", "B": "judgments", "C": "search policy", "D": "evidence depth"}
"""What each component freezes."""

_DIGESTED = {
    "sources": "other source ids or versions",
    "segmentation": "other fragments (ids, texts, titles, acls or metadata)",
    "rows": "other reviewed rows",
}
_DERIVED = ("mean_characters_a_fragment", "mean_fragments_a_source")


def differences(letter: str, retrieval: Component, here: Component) -> list[str]:
    """Each field in which a component differs from the retrieval report's, in words; [] where the digests agree."""
    if retrieval.digest == here.digest:
        return []
    one, other = _flat(retrieval.values or {}), _flat(here.values or {})
    keys = [k for k in {**one, **other} if one.get(k) != other.get(k) and k not in _DERIVED]
    name = f"{letter} {COMPONENT_NAMES[letter]}"
    if not keys:
        return [f"{name}: the digest in the retrieval report does not belong to the values beside it"]
    told = [f"{name}: {k} {_told(one, k)} in retrieval, {_told(other, k)} here" for k in keys if k not in _DIGESTED]
    return told + [f"{name}: {k}: {_DIGESTED[k]} here than in retrieval" for k in keys if k in _DIGESTED]


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values by dotted key, counts by their own names."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        inner = {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
        flat |= {k.removeprefix("counts."): v for k, v in inner.items()}
    return flat


def _told(values: Mapping[str, Any], key: str) -> str:
    return shown(values[key]) if key in values else "not stated"


class RowDigests:
    """Digests of many rows, one by one; the result does not depend on their order. 32 bytes a row."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def add(self, row: bytes) -> None:
        """Add one row's 32-byte digest."""
        self._rows += row

    def unordered(self) -> str:
        """One digest of all."""
        return unordered(bytes(self._rows[i : i + 32]) for i in range(0, len(self._rows), 32))
