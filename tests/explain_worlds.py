"""A run of all three layers over forty queries, of which one in ten can be broken at a known stage."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.world import Outcome, run
from tests.corpus_worlds import expects, fan, link, result
from tripos.contracts.explanation import Lost

Row = dict[str, Any]
LIMIT, TOP_K, QUERIES = 10, 3, 40
FILLERS = [f"filler{n}" for n in range(12)]
GRADED = {"lang": "en"}


@dataclass
class Case:
    """All rows of one query; a break changes some of them. None: the layer does not have the query."""

    name: str
    home: str
    retrieval: Row = field(default_factory=dict)
    ranked: Row = field(default_factory=dict)
    generation: Row | None = field(default_factory=dict)
    answer: Row | None = field(default_factory=dict)
    route: Row | None = field(default_factory=dict)
    did: Row | None = field(default_factory=dict)

    @property
    def source(self) -> str:
        return f"s-{self.name}"

    @property
    def fragment(self) -> str:
        return f"{self.source}::f1"


def case(n: int) -> Case:
    """A query that every layer passes: found first, routed, merged, shown, cited, faithful."""
    one = Case(f"q{n:02d}", "even" if n % 2 == 0 else "odd")
    fillers = [f"{name}::f1" for name in FILLERS]
    reader = {"groups": ["everyone"]}
    one.retrieval = {
        "query_id": one.name,
        "query": f"What of {one.name}?",
        "expected_sources": [one.source],
        "should_match": True,
        "category": "single_hop_factual",
        "review_status": "reviewed",
        "forbidden_sources": ["bad"],
        "filters": GRADED,
        "principal": reader,
    }
    one.ranked = {"query_id": one.name, "fragment_ids": [one.fragment, *fillers[:6]]}
    one.generation = {
        "query_id": one.name,
        "query": f"What of {one.name}?",
        "citation_requirements": [{"requirement_id": f"r-{one.name}", "acceptable_fragment_ids": [one.fragment]}],
        "accepted_fragment_ids": [one.fragment],
        "expected_answerable": True,
    }
    one.answer = {"query_id": one.name, "answer": "It is so.", "cited_fragment_ids": [one.fragment], "faithfulness_score": 1.0}
    chain = [link(one.source, "next", "filler0")]
    route = expects(one.name, {one.home: [one.source]}, expected_relationships=chain, principal=reader)
    one.route = route
    one.did = result(one.name, fan(one.home, one.fragment, k=3), expansion={"relationships": chain})
    return one


def _answered_without(one: Case) -> None:
    assert one.answer is not None
    one.answer["cited_fragment_ids"] = []


def _incomplete(one: Case) -> None:
    one.answer = {"query_id": one.name, "answer": None, "error": "timeout"}


def _leak(one: Case) -> None:
    one.ranked["fragment_ids"].append("secret::f1")


def _filter(one: Case) -> None:
    one.ranked["fragment_ids"].append("foreign::f1")


def _forbidden(one: Case) -> None:
    one.ranked["fragment_ids"].insert(1, "bad::f1")


def _unanswerable(one: Case) -> None:
    assert one.generation is not None
    one.retrieval |= {"expected_sources": [], "should_match": False, "category": "negative"}
    one.ranked["fragment_ids"] = []
    one.generation |= {"citation_requirements": [], "accepted_fragment_ids": [], "expected_answerable": False}
    one.answer = {"query_id": one.name, "answer": "", "faithfulness_score": None}
    one.route, one.did = expects(one.name, {}), result(one.name)


def _not_empty(one: Case) -> None:
    _unanswerable(one)
    one.ranked["fragment_ids"] = ["filler1::f1"]


def _answered_unanswerable(one: Case) -> None:
    _unanswerable(one)
    one.answer = {"query_id": one.name, "answer": "Surely.", "faithfulness_score": 1.0}


def _absent(one: Case) -> None:
    one.retrieval |= {"expected_sources": ["gone"]}
    one.generation = one.answer = one.route = one.did = None


def _routing(one: Case) -> None:
    assert one.did is not None
    other = "odd" if one.home == "even" else "even"
    one.did |= {"routed_collections": [other], "fan_out": [fan(other)], "merged": []}
    _answered_without(one)


def _rank(one: Case) -> None:
    assert one.did is not None
    one.ranked["fragment_ids"].remove(one.fragment)
    one.did |= {"fan_out": [fan(one.home)], "merged": []}
    _answered_without(one)


def _merge(one: Case) -> None:
    assert one.did is not None
    one.did["merged"] = []
    _answered_without(one)


def _displaced(one: Case) -> None:
    assert one.did is not None
    added = [f"filler{n}::f1" for n in range(3)]
    one.did["expansion"]["added_fragment_ids"] = added
    one.did["final"] = [*added, one.fragment]
    _answered_without(one)


def _link(one: Case) -> None:
    assert one.did is not None
    one.did["expansion"]["relationships"] = []


def _not_shown(one: Case) -> None:
    names = one.ranked["fragment_ids"]
    one.ranked["fragment_ids"] = [*names[1:5], names[0], *names[5:]]
    one.route = one.did = None
    _answered_without(one)


def _abstained(one: Case) -> None:
    assert one.answer is not None
    one.answer |= {"answer": "", "cited_fragment_ids": [], "faithfulness_score": None}


def _bad_citation(one: Case) -> None:
    assert one.answer is not None
    one.answer["cited_fragment_ids"].append("filler0::f1")


def _unfaithful(one: Case) -> None:
    assert one.answer is not None
    one.answer["faithfulness_score"] = 0.2


def _not_judged(one: Case) -> None:
    assert one.answer is not None
    one.answer["faithfulness_score"] = None


BREAKS: dict[Lost, Callable[[Case], None]] = {
    "incomplete": _incomplete,
    "leak": _leak,
    "filter_violation": _filter,
    "forbidden": _forbidden,
    "not_empty": _not_empty,
    "answered_unanswerable": _answered_unanswerable,
    "absent": _absent,
    "routing": _routing,
    "rank": _rank,
    "merge": _merge,
    "displaced": _displaced,
    "link_not_followed": _link,
    "not_shown": _not_shown,
    "wrongly_abstained": _abstained,
    "not_cited": _answered_without,
    "bad_citation": _bad_citation,
    "unfaithful": _unfaithful,
    "not_judged": _not_judged,
}
"""How to break a query at each place, so that nothing earlier in the order is broken."""


def shelf() -> list[Row]:
    """Every source, in its collection, readable and in English but for the two that are there to be wrong."""
    cases = [case(n) for n in range(QUERIES)]
    homes = {one.source: one.home for one in cases} | dict.fromkeys([*FILLERS, "bad"], "even")
    rows = [
        {"fragment_id": f"{source}::f1", "text": source, "collection": home, "acl": ["everyone"], "metadata": GRADED}
        for source, home in homes.items()
    ]
    secret = {"fragment_id": "secret::f1", "text": "secret", "collection": "even", "acl": ["staff"], "metadata": GRADED}
    return [*rows, secret, {**rows[-1], "fragment_id": "foreign::f1", "metadata": {"lang": "de"}}]


def write(folder: Path, cases: list[Case]) -> None:
    """The files of a run."""
    files: dict[str, list[Row | None]] = {
        "fragments.jsonl": list(shelf()),
        "retrieval.jsonl": [one.retrieval for one in cases],
        "ranked-results.jsonl": [one.ranked for one in cases],
        "generation.jsonl": [one.generation for one in cases],
        "answers.jsonl": [one.answer for one in cases],
        "corpus.jsonl": [one.route for one in cases],
        "corpus-results.jsonl": [one.did for one in cases],
    }
    for name, rows in files.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None))


RETRIEVAL = ["--judgments", "retrieval.jsonl", "--ranked-results", "ranked-results.jsonl", "--retrieval-mode", "lexical"]


def evaluate(folder: Path, *flags: str) -> dict[str, Outcome]:
    """All three layers."""
    depth = ["--limit", str(LIMIT), "--top-k", str(TOP_K)]
    bound = ["--retrieval-report", "retrieval/report.json"]
    answers = ["--judgments", "generation.jsonl", "--answers", "answers.jsonl"]
    routes = ["--judgments", "corpus.jsonl", "--results", "corpus-results.jsonl"]
    calls = {
        "retrieval": ["eval-retrieval", "--fragments", "fragments.jsonl", *RETRIEVAL, *depth, "--output", "retrieval"],
        "generation": ["eval-generation", *answers, *bound, "--output", "generation"],
        "corpus": ["eval-corpus", *routes, *bound, "--output", "corpus"],
    }
    done = {layer: run(folder, [*call, *flags]) for layer, call in calls.items()}
    assert all(outcome.code in (0, 1, 6) for outcome in done.values()), [o.err for o in done.values()]
    return done
