"""Canonical digests and the A–D components of a configuration.

Every digest is sha256 over canonical JSON (RFC 8785, JCS), so that equal content has equal digests whatever the order of
lines, keys or sets, and however the corpus is split into files.
"""

from tripos.fingerprint.canonical import RowDigests, canonical, digest, round12, row_digest, unordered
from tripos.fingerprint.components import (
    COMPONENT_NAMES,
    DERIVED,
    NO_CORPUS,
    combined,
    component_b,
    depth_component,
    differences,
    differing,
    judgments_component,
    policy_component,
)
from tripos.fingerprint.corpus import corpus_judgment_content, corpus_result_content
from tripos.fingerprint.coverage import EXCLUDED
from tripos.fingerprint.fragments import CorpusDigest, fragment_content
from tripos.fingerprint.generation import answer_content, answered_fields, generation_judgment_content, judged_fields
from tripos.fingerprint.retrieval import eight_bytes_each, judged_digest, judgment_content, packed_content, results_content

__all__ = [
    "COMPONENT_NAMES",
    "DERIVED",
    "EXCLUDED",
    "NO_CORPUS",
    "CorpusDigest",
    "RowDigests",
    "answer_content",
    "answered_fields",
    "canonical",
    "combined",
    "component_b",
    "corpus_judgment_content",
    "corpus_result_content",
    "depth_component",
    "differences",
    "differing",
    "digest",
    "eight_bytes_each",
    "fragment_content",
    "generation_judgment_content",
    "judged_digest",
    "judged_fields",
    "judgment_content",
    "judgments_component",
    "packed_content",
    "policy_component",
    "results_content",
    "round12",
    "row_digest",
    "unordered",
]
