"""What is digested of corpus judgments and of corpus results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tripos.fingerprint.coverage import EXCLUDED

if TYPE_CHECKING:  # contracts of other layers are made when their rows are: to make them takes 20 ms
    from tripos.contracts.corpus import CorpusJudgment, CorpusResult


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
