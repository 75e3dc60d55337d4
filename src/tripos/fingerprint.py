"""Canonical digests and the A–D components of a configuration.

Every digest is sha256 over canonical JSON (RFC 8785, JCS), so that equal content has equal digests whatever the order of
lines, keys or sets, and however the corpus is split into files.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import rfc8785

from tripos.contracts.base import shown
from tripos.contracts.config import DepthConfig, SearchConfig
from tripos.contracts.fragments import DEFAULT_COLLECTION, Fragment, text_digest
from tripos.contracts.reports import Component
from tripos.contracts.retrieval import RetrievalJudgment

if TYPE_CHECKING:  # contracts of other layers are made when their rows are: to make them takes 20 ms
    from tripos.contracts.corpus import CorpusJudgment, CorpusResult
    from tripos.contracts.generation import Answered, Judged, Requirement

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
    "CorpusJudgment": {
        "review_status": "selects the rows: only reviewed ones are digested",
        "notes": "a note to reviewers",
        "reviewer": "who reviewed decides no number",
        "reviewed_at": "when it was reviewed decides no number",
        "source_file": "provenance",
        "tags": "a note to reviewers",
        "metadata": "the user's own",
    },
    "CorpusResult": {
        "latency_ms": "a clock reading",
        "system_fingerprint": "checked against the retrieval report",
        "metadata": "the user's own",
    },
    "FanOut": {"latency_ms": "a clock reading"},
    "FanOutHit": {"score": "the list order decides every figure; scores may not contradict it"},
    "Config": {
        "name": "a label, kept in the report itself",
        "scope": "kept in the report itself; certification asks for full",
        "ranked_results": "a path; the content has results_digest",
        "timings": "a path to clock readings",
        "run": "a path",
        "corpus": "paths; the contents have their digests in the corpus report",
        "generation": "its parts are covered or excluded one by one (GenerationConfig)",
        "gates": "thresholds decide the verdict, no figure; kept in the report itself",
        "store": "a path",
        "certification": "what a certificate demands decides no figure; kept in the certificate itself",
    },
    "JudgmentsConfig": {
        "retrieval": "a path; the content is component B",
        "generation": "a path; the content has the judgments_digest of the generation report",
        "corpus": "a path; the content has the judgments_digest of the corpus report",
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
    "CorpusConfig": {
        "results": "a path; the content has the results_digest of the corpus report",
        "retrieval_report": "a path; its fingerprint is taken over",
    },
    "CertificationConfig": {
        "layers": "which layers a certificate covers",
        "min_limit": "a demand on depth.limit, which component D covers",
        "binding": "a demand on stamps, whose state is in the reports",
        "approved_judges": "a path; the approval is in the certificate",
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
_MAX_PLAIN_INT = 2**53


def canonical(value: Any) -> bytes:
    """RFC 8785 canonical JSON of `value`.

    Raises ValueError for NaN, Infinity and integers beyond 2^53, which canonical JSON cannot carry.
    """
    try:
        return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)
    except _NotPlainError:
        return rfc8785.dumps(value)


_AS_THEY_ARE = {str, bool, type(None)}


class _NotPlainError(Exception):
    """The value needs the general writer."""


def _plain(value: Any) -> Any:
    """The value with whole floats as integers, where orjson then writes it the canonical way; else _NotPlainError.

    That is: keys of ASCII alone, integers within 2^53, other floats of a size that no writer puts in exponent form.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        if not "".join(value).isascii():
            raise _NotPlainError
        return {key: inner if type(inner) in _AS_THEY_ARE else _plain(inner) for key, inner in value.items()}
    if kind is list or kind is tuple:
        return value if set(map(type, value)) <= _AS_THEY_ARE else [_plain(inner) for inner in value]
    if kind is int and -_MAX_PLAIN_INT < value < _MAX_PLAIN_INT:
        return value
    if kind is float:
        if value.is_integer() and -_MAX_PLAIN_INT < value < _MAX_PLAIN_INT:
            return int(value)
        if 1e-6 <= abs(value) < 1e15:
            return value
    raise _NotPlainError


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
    content: dict[str, Any] = {name: getattr(row, name) for name in _JUDGMENT_FIELDS}
    for name in _SETS & content.keys():
        content[name] = sorted(set(content[name]))
    content["expected_groups"] = sorted(sorted(set(g)) for g in row.expected_groups)
    quotes = sorted((e.source_id, e.quote) for e in row.expected_evidence)
    content["expected_evidence"] = [{"source_id": source, "quote": quote} for source, quote in quotes]
    content["relevance"] = row.grades
    content["principal"] = None if row.principal is None else {"groups": sorted(set(row.principal.groups))}
    return content


_JUDGMENT_FIELDS = sorted(set(RetrievalJudgment.model_fields) - set(EXCLUDED["RetrievalJudgment"]))
_NO_DIGEST = frozenset(EXCLUDED["RetrievalJudgment"])
_ABSENT: dict[str, Any] = {
    name: [] if name.endswith(("sources", "groups", "evidence", "fragments")) else {} if name in ("filters", "slices") else None
    for name in _JUDGMENT_FIELDS
}
"""What the fields of a judgment are where its line does not give them."""


def judged_digest(value: Mapping[str, Any]) -> bytes:
    """The row digest of a sound judgment, from its parsed line: that of `judgment_content`, without the contract row."""
    content = {**_ABSENT, **value}
    for name in _NO_DIGEST.intersection(value):
        del content[name]
    content["expected_sources"] = sorted(set(content["expected_sources"]))
    grades = content["relevance"]
    if grades is None:
        grades = content["relevance"] = dict.fromkeys(content["expected_sources"], 1)
    if _FINER.isdisjoint(value) and set(map(type, grades.values())) <= _INT and "".join(grades).isascii():
        return _of_plain(content)
    for name in _SETS.intersection(value):
        content[name] = sorted(set(content[name]))
    if content["expected_groups"]:
        content["expected_groups"] = sorted(sorted(set(group)) for group in content["expected_groups"])
    if content["expected_evidence"]:
        quotes = sorted((e["source_id"], e["quote"]) for e in content["expected_evidence"])
        content["expected_evidence"] = [{"source_id": source, "quote": quote} for source, quote in quotes]
    if content["principal"] is not None:
        content["principal"] = {"groups": sorted(set(content["principal"]["groups"]))}
    try:
        content |= {name: _plain(content[name]) for name in _KEYED if content[name]}
    except _NotPlainError:
        return row_digest(content)
    return _of_plain(content)


_KEYED = ("relevance", "filters", "slices")
"""Fields of a judgment that hold keys of the user's, or numbers beyond small whole ones."""
_FINER = frozenset(_ABSENT) - {"query_id", "query", "expected_sources", "should_match", "category", "relevance"}
_INT = {int}


def _of_plain(content: Mapping[str, Any]) -> bytes:
    """The row digest of what orjson writes the canonical way."""
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


@functools.cache
def judged_fields() -> frozenset[str]:
    """Fields of a generation judgment that its digest covers."""
    from tripos.contracts.generation import GenerationJudgment

    return frozenset(GenerationJudgment.model_fields) - EXCLUDED["GenerationJudgment"].keys()


@functools.cache
def answered_fields() -> frozenset[str]:
    """Fields of an answer that its digest covers."""
    from tripos.contracts.generation import GenerationAnswer

    return frozenset(GenerationAnswer.model_fields) - EXCLUDED["GenerationAnswer"].keys()


def generation_judgment_content(row: Judged) -> dict[str, Any]:
    """What judgments_digest covers of one reviewed part, whichever form it came in: defaults filled in, sets sorted."""
    content: dict[str, Any] = row.model_dump(mode="json", include=set(judged_fields()))
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
    content: dict[str, Any] = row.model_dump(mode="json", include=set(answered_fields()))
    content["cited_fragment_ids"] = sorted(set(row.cited_fragment_ids))
    if row.evidence_fragment_ids is not None:
        content["evidence_fragment_ids"] = sorted(set(row.evidence_fragment_ids))
    return content


def corpus_judgment_content(row: CorpusJudgment) -> dict[str, Any]:
    """What judgments_digest covers of one reviewed corpus judgment: defaults filled in, sets sorted."""
    content: dict[str, Any] = row.model_dump(mode="json", exclude=set(EXCLUDED["CorpusJudgment"]))
    content["expected_collections"] = sorted(set(row.expected_collections))
    content["expected_sources"] = {name: sorted(set(sources)) for name, sources in row.expected_sources.items()}
    content["expected_relationships"] = sorted({r.triple for r in row.expected_relationships})
    content["principal"] = None if row.principal is None else {"groups": sorted(set(row.principal.groups))}
    return content


def corpus_result_content(row: CorpusResult) -> dict[str, Any]:
    """What results_digest covers of one corpus result: every list in its order, and `final` as it is by default."""
    fans = [[f.collection, f.k, [hit.fragment_id for hit in f.results]] for f in row.fan_out or ()]
    expansion = row.expansion and {
        "relationships": sorted({r.triple for r in row.expansion.relationships}),
        "added_fragment_ids": list(row.expansion.added_fragment_ids),
    }
    return {
        "query_id": row.query_id,
        "routed_collections": row.routed_collections,
        "fan_out": sorted(fans),
        "merged": row.merged,
        "expansion": expansion,
        "final": row.handed_on,
        "error": row.error,
    }


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


def results_content(query_id: str, fragment_ids: Sequence[str], scores: Sequence[float] | None, error: str | None) -> bytes:
    """What the results digest covers of one query: ids in rank order, the error, and each score as its eight bytes.

    Ids hold no NUL, so that NUL between them keeps them apart.
    """
    packed = None if scores is None else eight_bytes_each(scores)
    return packed_content(query_id, "\0".join(fragment_ids) if fragment_ids else None, packed, error)


def packed_content(query_id: str, fragment_ids: str | None, scores: bytes | None, error: str | None) -> bytes:
    """The same from ids joined by NUL (None where there are none) and packed scores."""
    content = (query_id if fragment_ids is None else f"{query_id}\0{fragment_ids}").encode()
    if error is not None:
        content += f"\0\0e{len(error)}:{error}".encode()
    return content if scores is None else content + b"\0\0s" + scores


_MINUS_ZERO = array("d", [-0.0]).tobytes()


def eight_bytes_each(scores: Iterable[float] | bytes) -> bytes:
    """IEEE 754 doubles, little-endian; −0 as 0. Bytes are doubles as this machine has them."""
    packed = array("d", scores)
    if _MINUS_ZERO in packed.tobytes():
        packed = array("d", [score + 0.0 for score in packed])
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


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


class RowDigests:
    """Digests of many rows, one by one; the result does not depend on their order. 32 bytes a row."""

    def __init__(self) -> None:
        self._rows = bytearray()

    def __len__(self) -> int:
        return len(self._rows) // 32

    def add(self, row: bytes) -> None:
        """Add one row's 32-byte digest."""
        self._rows += row

    def extend(self, other: RowDigests) -> None:
        """Add the digests of other rows."""
        self._rows += other._rows

    def unordered(self) -> str:
        """One digest of all."""
        return unordered(bytes(self._rows[i : i + 32]) for i in range(0, len(self._rows), 32))
