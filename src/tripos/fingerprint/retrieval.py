"""What is digested of retrieval judgments and of ranked results."""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from tripos.contracts.retrieval import RetrievalJudgment
from tripos.fingerprint.canonical import NotPlainError, plain, row_digest
from tripos.fingerprint.coverage import EXCLUDED

_SETS = frozenset(
    {"expected_sources", "required_sources", "nonrelevant_sources", "forbidden_sources", "expected_fragments", "groups", "acl"}
)


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
        content |= {name: plain(content[name]) for name in _KEYED if content[name]}
    except NotPlainError:
        return row_digest(content)
    return _of_plain(content)


_KEYED = ("relevance", "filters", "slices")
"""Fields of a judgment that hold keys of the user's, or numbers beyond small whole ones."""


_FINER = frozenset(_ABSENT) - {"query_id", "query", "expected_sources", "should_match", "category", "relevance"}


_INT = {int}


def _of_plain(content: Mapping[str, Any]) -> bytes:
    """The row digest of what orjson writes the canonical way."""
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()


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
