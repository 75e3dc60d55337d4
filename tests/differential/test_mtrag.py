"""MT-RAG: every query has one right collection; the reference router over the 350 passages that are there, by collection.

Of 777 queries those are asked whose right passages are, at least in part, among the 350 passages with texts (168); the
others could be routed, but nothing would tell whether to anything.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.builders import Row
from tests.corpus_worlds import CorpusWorld, collection, evaluated, expects, own, value
from tripos.contracts.config import DepthConfig, FanOutPolicy, SearchConfig
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import Corpus
from tripos.search.fan_out import FanOutSystem
from tripos.search.protocol import Query

DATA = Path(__file__).parents[3] / "shared" / "data" / "mtrag"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data is not here")
NAMES = {"clapnq": "clapnq", "cloud": "ibmcloud", "fiqa": "fiqa", "govt": "govt"}


def passages() -> list[Row]:
    """The passages, each in the collection of the task that shows it."""
    whole = json.loads((DATA / "reference_subset_with_human_evaluations.json").read_text())
    homes = {context["document_id"]: task["Collection"] for task in whole["tasks"] for context in task["contexts"]}
    short = {name: next(c for c, part in NAMES.items() if f"-{part}-" in home) for name, home in homes.items()}
    return [
        {
            "fragment_id": d["document_id"],
            "source_id": d["document_id"],
            "text": d["text"],
            "collection": short[d["document_id"]],
        }
        for d in whole["documents"]
    ]


def judged(there: set[str]) -> list[Row]:
    """Queries with a right passage among those that are there."""
    rows = []
    for name in NAMES:
        lines = (DATA / name / f"{name}_rewrite.jsonl").read_text().splitlines()
        texts = {row["_id"]: row["text"] for row in map(json.loads, lines)}
        right: dict[str, list[str]] = {}
        for line in (DATA / name / "dev.tsv").read_text().splitlines()[1:]:
            query, passage, _ = line.split("\t")
            right.setdefault(query, []).append(passage)
        kept = {query: [p for p in own if p in there] for query, own in right.items()}
        rows += [expects(query, {name: own}, query=texts[query]) for query, own in kept.items() if own]
    return rows


def test_routing_by_collection_equals_a_count_by_hand() -> None:
    shelf = passages()
    rows = judged({row["fragment_id"] for row in shelf})
    assert (len(shelf), len(rows)) == (350, 168)
    corpus = Corpus()
    for row in shelf:
        corpus.add(Fragment.model_validate(row))
    policy = SearchConfig(mode="lexical", fan_out=FanOutPolicy(most=1))
    system = FanOutSystem(corpus, policy, DepthConfig(limit=10, top_k=5))
    did = [system.answer(Query(row["query_id"], row["query"])).model_dump(mode="json") for row in rows]
    report = evaluated(CorpusWorld(rows, did, shelf, top_k=5)).report

    right = {row["query_id"]: row["expected_collections"][0] for row in rows}
    first = {row["query_id"]: row["routed_collections"][0] for row in did if row["routed_collections"]}
    hits = Counter(name for query, name in right.items() if first.get(query) == name)
    totals = Counter(right.values())
    assert value(report, "first_choice") == value(report, "routing_exact") == pytest.approx(hits.total() / len(rows), abs=1e-9)
    for name in NAMES:
        assert own(report, name, "routed") == pytest.approx(hits[name] / totals[name], abs=1e-9)
        assert collection(report, name).not_routed == totals[name] - hits[name]
    assert hits.total() / len(rows) > 0.9  # four subjects far apart: BM25 tells them
    wanted = [{source for own in row["expected_sources"].values() for source in own} for row in rows]
    got = [{hit["fragment_id"] for part in row["fan_out"] for hit in part["results"]} for row in did]
    assert report.evidence.kept["retrieved"] == sum(len(w & g) for w, g in zip(wanted, got, strict=True))
