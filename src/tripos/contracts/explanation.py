"""What explain tells: where each failed query was lost, and one query's story through all layers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tripos.contracts.base import Contract, Listed
from tripos.contracts.config import LayerName

Layer = LayerName

Lost = Literal[
    "incomplete",
    "leak",
    "filter_violation",
    "forbidden",
    "not_empty",
    "answered_unanswerable",
    "absent",
    "routing",
    "rank",
    "merge",
    "displaced",
    "link_not_followed",
    "not_shown",
    "wrongly_abstained",
    "not_cited",
    "bad_citation",
    "unfaithful",
    "not_judged",
]

PLACES: dict[Lost, str] = {
    "incomplete": "no usable result or answer",
    "leak": "something the reader may not see came back",
    "filter_violation": "something that breaks the query's filters came back",
    "forbidden": "a forbidden source came back",
    "not_empty": "something came back, or was routed, though nothing should be",
    "answered_unanswerable": "an answer was given, though nothing in the corpus gives one",
    "absent": "the evidence is not in the corpus",
    "routing": "its collection was not routed to",
    "rank": "not within limit, or not within its collection's k",
    "merge": "its collection returned it, and merging left it out of the top K",
    "displaced": "what expansion added pushed it out of the top K",
    "link_not_followed": "an expected relationship was not followed, though no source was lost",
    "not_shown": "ranked beyond the top K, or not shown to the model",
    "wrongly_abstained": "the evidence was shown, and the model declined",
    "not_cited": "the evidence was shown, and the answer does not cite it",
    "bad_citation": "a citation is made up, was not shown, or is not accepted",
    "unfaithful": "the answer says what its evidence does not",
    "not_judged": "nothing is wrong but that no faithfulness score is there",
}
"""Where a failed query can be charged, in the order in which the first that applies is taken."""


class Charge(Contract):
    """One failed query, and the one place it is charged to."""

    query_id: str
    query: str | None
    lost: Lost
    layer: Layer = Field(description="Whose report tells it.")
    unit: str | None = Field(description="The requirement or source that was lost first; null where it is the whole query.")
    told: str = Field(description="What happened there.")
    remedy: str | None = Field(description="What would have kept it; null where nothing measured says.")


class Explanation(Contract):
    """Every failed query of the reports of one fingerprint, each charged once."""

    contract: Literal["tripos/explanation@1"] = "tripos/explanation@1"
    name: str
    configuration: str
    exploratory: Listed[str]
    runs: dict[Layer, str] = Field(description="run_id of each report.")
    scored: dict[Layer, int] = Field(description="Scored queries of each layer.")
    failures: dict[Layer, int] = Field(description="Failed queries of each layer; one query can fail in several.")
    failed: int = Field(description="Distinct failed queries: what lost adds up to.")
    lost: dict[Lost, int]
    charges: Listed[Charge] = Field(description="By query id.")


class Step(Contract):
    """One stage of one query's story."""

    stage: Literal["corpus", "routing", "retrieval", "merge", "expansion", "shown", "cited", "faithful"]
    kept: bool | None = Field(description="null: this stage was not reached, or nothing tells.")
    told: str
    lost_here: bool


class Story(Contract):
    """One query through all layers."""

    contract: Literal["tripos/story@1"] = "tripos/story@1"
    query_id: str
    query: str | None
    configuration: str
    outcome: Listed[str] = Field(description="What each layer found; empty: the query failed nowhere.")
    charge: Charge | None
    needs: str = Field(description="The requirement or source that is followed.")
    others: int = Field(description="Requirements or sources beside it.")
    steps: Listed[Step]
