"""Multi-hop questions of HoVer and Adaptive-RAG: chains and all-hops-found of a seeded retriever, against plain Python."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.builders import Row
from tests.corpus_worlds import CorpusWorld, evaluated, expects, fan, link, result, value
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.reports import Aggregate

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data is not here")
SHELVES = ("north", "south", "east", "west")
TOP_K = 3


class Chain(NamedTuple):
    """One question and the titles that its steps need, in order."""

    name: str
    titles: list[str]
    hops: int


def hover() -> list[Chain]:
    """4,000 claims; supporting titles in the order given."""
    rows = json.loads((DATA / "hover" / "hover_dev_release_v1.1.json").read_text())
    return [Chain(r["uid"], list(dict.fromkeys(title for title, _ in r["supporting_facts"])), r["num_hops"]) for r in rows]


def adaptive_rag() -> list[Chain]:
    """69 questions with ordered reasoning steps. The two keys that matter are plain JSON strings in this Jsonnet."""
    chains: list[Chain] = []
    for path in sorted((DATA / "adaptive_rag").glob("*.jsonnet")):
        for key, text in re.findall(r'"(question_id|title)": ("(?:[^"\\]|\\.)*")', path.read_text()):
            if key == "question_id":
                chains.append(Chain(json.loads(text), [], 0))
            elif json.loads(text) not in chains[-1].titles:
                chains[-1].titles.append(json.loads(text))
    return [chain._replace(hops=len(chain.titles)) for chain in chains]


def shelf(title: str) -> str:
    """Titles are spread over four collections."""
    return SHELVES[sum(title.encode()) % len(SHELVES)]


def links(titles: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each title leads to the next."""
    return [(one, "leads to", other) for one, other in pairwise(titles)]


class Did(NamedTuple):
    """What the seeded retriever did with one chain."""

    chain: Chain
    found: list[str]
    added: list[str]
    followed: list[tuple[str, str, str]]

    @property
    def final(self) -> list[str]:
        """What is handed on."""
        return list(dict.fromkeys([*self.found, *self.added]))[:TOP_K]


def play(chain: Chain, dice: random.Random) -> Did:
    """Each title is found with .75, each link followed with .7, and a wrong link with .3; a followed link adds its end."""
    found = [title for title in chain.titles if dice.random() < 0.75]
    followed = [one for one in links(chain.titles) if dice.random() < 0.7]
    added = [end for _, _, end in followed if end not in found]
    wrong = [(chain.titles[-1], "leads to", "nowhere")] if dice.random() < 0.3 else []
    return Did(chain, found, added, followed + wrong)


def rows_of(did: Did) -> tuple[Row, Row]:
    """The judgment and the result of one chain."""
    by_shelf: dict[str, list[str]] = defaultdict(list)
    got: dict[str, list[str]] = defaultdict(list)
    for title in did.chain.titles:
        by_shelf[shelf(title)].append(title)
    for title in did.found:
        got[shelf(title)].append(title)
    expected = [link(*one) for one in links(did.chain.titles)]
    judged = expects(did.chain.name, by_shelf, expected_relationships=expected, hops=did.chain.hops)
    expansion = {"relationships": [link(*one) for one in did.followed], "added_fragment_ids": did.added}
    fans = [fan(name, *titles, k=10) for name, titles in got.items()]
    return judged, result(did.chain.name, *fans, merged=did.found, expansion=expansion)


def mean(values: Sequence[Fraction | int | bool]) -> float:
    """Exact mean as a float."""
    return float(Fraction(sum(Fraction(v) for v in values), len(values)))


def figures(played: Sequence[Did]) -> dict[str, float]:
    """The same figures by themselves, without a line of Tripos."""
    own = [(set(links(d.chain.titles)), set(d.followed), set(d.chain.titles) <= set(d.final), d) for d in played]
    linked = [one for one in own if one[0]]
    return {
        "all_kept": mean([whole for *_, whole, _ in own]),
        "all_hops": mean([whole for *_, whole, d in own if d.chain.hops >= 2]),
        "kept_final": mean([Fraction(len({*d.chain.titles} & {*d.final}), len(d.chain.titles)) for *_, d in own]),
        "kept_merged": mean([Fraction(len({*d.chain.titles} & {*d.found[:TOP_K]}), len(d.chain.titles)) for *_, d in own]),
        "relationship_coverage": mean([Fraction(len(e & f), len(e)) for e, f, *_ in linked]),
        "relationship_precision": mean([Fraction(len(e & f), len(f)) for e, f, *_ in linked if f]),
        "chain": mean([whole and e <= f for e, f, whole, _ in linked]),
    }


def sliced(report: CorpusReport, hops: int, name: str) -> float | None:
    (part,) = [part for part in report.slices if part.by == "hops" and part.value == hops]
    found = part.measures[name]
    assert isinstance(found, Aggregate)
    return found.value


@pytest.mark.parametrize(("chains", "count"), [(hover, 4000), (adaptive_rag, 69)], ids=["hover", "adaptive_rag"])
def test_chains_equal_plain_python(chains: Any, count: int) -> None:
    dice = random.Random(5)
    played = [play(chain, dice) for chain in chains()]
    assert len(played) == count
    judged, did = zip(*map(rows_of, played), strict=True)
    report = evaluated(CorpusWorld(judged, did, top_k=TOP_K)).report
    for name, figure in figures(played).items():
        assert value(report, name) == pytest.approx(figure, abs=1e-9), name
    for hops in sorted({d.chain.hops for d in played}):
        own = figures([d for d in played if d.chain.hops == hops]) if hops > 1 else {}
        for name, figure in own.items():
            assert sliced(report, hops, name) == pytest.approx(figure, abs=1e-9), (hops, name)


def test_claims_that_occur_twice_are_told() -> None:
    """18 claims of HoVer occur twice: other ids, the same question; the second is told where it expects something else."""
    rows = json.loads((DATA / "hover" / "hover_dev_release_v1.1.json").read_text())
    texts = {row["uid"]: row["claim"] for row in rows}
    assert len(texts) - len(set(texts.values())) == 18
    judged = [{**rows_of(Did(chain, [], [], []))[0], "query": texts[chain.name]} for chain in hover()]
    outcome = evaluated(CorpusWorld(judged, [result(row["query_id"]) for row in judged]))
    twins = [f for f in outcome.findings.warnings if f.kind == "contradictory_twin"]
    again = [f for f in outcome.findings.warnings if f.kind == "repeated_query"]
    assert len(twins) + len(again) == 18
