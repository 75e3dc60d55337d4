"""The ten saved queries on worlds whose answers are derived by hand.

Three nights of one system, top K 2; d is for the board alone, and q4 is asked by staff:

    night   q1 (needs a)     q2 (needs b)     q3 (needs c)            q4 (needs a)
    1       a b    found     b      found     a b c  at rank 3: miss  a d   d leaks: miss
    2       b c    miss      b      found     a b    miss             a     found
    3       a      found     a c    miss      a b c  at rank 3: miss  a     found
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import World, judgment
from tests.unit.store.history import FRAGMENTS, ask_saved, day, keep, keep_answers, only
from tripos.errors import InputError, UsageError
from tripos.store.sandbox import Query, run
from tripos.store.saved import given, guessed, load, saved, saved_queries

STAFF = {"groups": ["staff"]}
JUDGMENTS = [
    judgment("q1", "a"),
    judgment("q2", "b", category="structural"),
    judgment("q3", "c"),
    judgment("q4", "a", category="authorization", principal=STAFF),
]
NIGHTS = {
    1: {"q1": "ab", "q2": "b", "q3": "abc", "q4": "ad"},
    2: {"q1": "bc", "q2": "b", "q3": "ab", "q4": "a"},
    3: {"q1": "a", "q2": "ac", "q3": "abc", "q4": "a"},
}
LATENCIES = {1: {"q1": 10.0, "q2": 5.0}, 2: {"q1": 30.0, "q2": 5.0}, 3: {"q1": 20.0, "q2": 50.0}}


def night(number: int) -> World:
    results = [
        {"query_id": query, "fragment_ids": [f"{name}::f1" for name in found], "latency_ms": LATENCIES[number].get(query)}
        for query, found in NIGHTS[number].items()
    ]
    return World(judgments=JUDGMENTS, results=results, fragments=FRAGMENTS, top_k=2)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    for number in (2, 1, 3):  # the order in which they are written decides nothing
        keep(folder, night(number), number)
    keep(folder, night(1), 2, name="another")
    return folder


def test_regressed_tells_what_failed_last_and_not_before(nights: Path) -> None:
    rows = ask_saved(nights, "regressed", name="kb")
    assert only(rows, "query_id", "reasons", "rank_before", "rank_now", "judgments_changed") == [
        ("q2", ["no_hit"], 1, None, False)
    ]


def test_regressed_is_empty_where_a_system_ran_once(nights: Path) -> None:
    assert ask_saved(nights, "regressed", name="another") == []


def test_regressed_says_where_the_judgments_changed(tmp_path: Path) -> None:
    keep(tmp_path, night(1), 1)
    changed = [judgment("q1", "c"), *JUDGMENTS[1:]]
    keep(tmp_path, World(changed, night(1).results, FRAGMENTS, top_k=2), 2)
    assert only(ask_saved(tmp_path, "regressed"), "query_id", "judgments_changed") == [("q1", True)]


def test_never_hit(nights: Path) -> None:
    rows = ask_saved(nights, "never-hit", name="kb")
    assert only(rows, "query_id", "executions", "best_rank") == [("q3", 3, 3)]
    last = ask_saved(nights, "never-hit", name="kb", last=1)
    assert only(last, "query_id", "executions", "best_rank") == [("q3", 1, 3), ("q2", 1, None)]


def test_flapping(nights: Path) -> None:
    rows = ask_saved(nights, "flapping", name="kb")
    assert only(rows, "query_id", "executions", "failed", "changes", "fails_now") == [
        ("q1", 3, 1, 2, False),
        ("q2", 3, 1, 1, True),
        ("q4", 3, 1, 1, False),
    ]


def test_sources_most_often_missed(nights: Path) -> None:
    rows = ask_saved(nights, "missed-sources", name="kb")
    assert only(rows, "source_id", "misses", "queries", "executions", "for_example") == [
        ("c", 3, 1, 3, "q3"),
        ("a", 1, 1, 1, "q1"),
        ("b", 1, 1, 1, "q2"),
    ]


def test_misses_by_category_over_time(nights: Path) -> None:
    rows = ask_saved(nights, "misses-by-category", name="kb")
    assert only(rows, "category", "scored", "missed", "share") == [
        *[("authorization", 1, 0, 0.0), ("single_hop_factual", 2, 1, 0.5), ("structural", 1, 1, 1.0)],
        *[("authorization", 1, 0, 0.0), ("single_hop_factual", 2, 2, 1.0), ("structural", 1, 0, 0.0)],
        *[("authorization", 1, 1, 1.0), ("single_hop_factual", 2, 1, 0.5), ("structural", 1, 0, 0.0)],
    ]
    assert [row["time"].day for row in rows] == [3, 3, 3, 2, 2, 2, 1, 1, 1]


def test_unjudged_results_of_failed_queries_come_first(nights: Path) -> None:
    rows = ask_saved(nights, "unjudged", name="kb")
    assert only(rows, "query_id", "rank", "source_id", "failed") == [
        ("q2", 1, "a", True),
        ("q3", 1, "a", True),
        ("q2", 2, "c", True),
        ("q3", 2, "b", True),
    ]


def test_a_judged_source_is_not_to_be_reviewed_again(tmp_path: Path) -> None:
    judged = [judgment("q1", "a", nonrelevant_sources=["b"], forbidden_sources=["c"])]
    results = [{"query_id": "q1", "fragment_ids": ["b::f1", "c::f1", "a::f1", "d::f1"]}]
    keep(tmp_path, World(judged, results, FRAGMENTS))
    assert only(ask_saved(tmp_path, "unjudged"), "source_id", "rank") == [("d", 4)]


def test_slowest(nights: Path) -> None:
    rows = ask_saved(nights, "slowest", name="kb")
    assert only(rows, "query_id", "executions", "median_ms", "max_ms", "latest_ms") == [
        ("q1", 3, 20.0, 30.0, 20.0),
        ("q2", 3, 5.0, 50.0, 50.0),
    ]


def test_leaks_ever(nights: Path) -> None:
    rows = ask_saved(nights, "leaks")
    assert only(rows, "name", "layer", "query_id", "executions", "still") == [
        ("another", "retrieval", "q4", 1, True),
        ("kb", "retrieval", "q4", 1, False),
    ]
    assert rows[1]["first_seen"] == rows[1]["last_seen"] == day(1).replace(tzinfo=None)


def answered(query_id: str, needs: str, *cited: str, model: str) -> dict[str, object]:
    return {
        "query_id": query_id,
        "answer": "So it is.",
        "cited_fragment_ids": list(cited),
        "accepted_fragment_ids": [needs],
        "citation_requirements": [{"requirement_id": f"r-{query_id}", "acceptable_fragment_ids": [needs]}],
        "expected_answerable": True,
        "faithfulness_score": 1.0,
        "model": model,
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Night 1, m1: q1 is right, q2 cites what does not exist. Night 2, m2: q1 cites nothing, q2 is right."""
    folder = tmp_path_factory.mktemp("store")
    keep_answers(folder, [answered("q1", "a::f1", "a::f1", model="m1"), answered("q2", "b::f1", "x::f9", model="m1")], 1)
    keep_answers(folder, [answered("q1", "a::f1", model="m2"), answered("q2", "b::f1", "b::f1", model="m2")], 2)
    return folder


def test_requirements_most_often_unmet(answers: Path) -> None:
    rows = ask_saved(answers, "unmet-requirements")
    assert only(rows, "requirement_id", "unmet", "executions", "unmet_now") == [("r-q1", 1, 2, True), ("r-q2", 1, 2, False)]
    assert only(ask_saved(answers, "unmet-requirements", last=1), "requirement_id") == [("r-q1",)]


def test_fabricated_citations_by_model(answers: Path) -> None:
    rows = ask_saved(answers, "fabricated-citations")
    names = ("model", "runs", "answers", "answers_fabricating", "citations", "fabricated", "share", "for_example")
    assert only(rows, *names) == [("m1", 1, 2, 1, 2, 1, 0.5, "q2"), ("m2", 1, 2, 0, 1, 0, 0.0, None)]


@pytest.mark.parametrize("name", sorted(saved_queries()))
def test_every_saved_query_runs_on_a_store_with_nothing_in_it(tmp_path: Path, name: str) -> None:
    assert ask_saved(tmp_path, name) == []


def test_the_ten_ship_with_title_and_meaning() -> None:
    every = saved_queries()
    assert len(every) == 10
    assert all(one.meaning and one.title != name for name, one in every.items())


def test_a_saved_query_that_is_none_suggests_one() -> None:
    with pytest.raises(UsageError, match='did you mean "regressed"'):
        saved("regresed")


def test_parameters_are_typed_and_known(tmp_path: Path) -> None:
    path = tmp_path / "own.sql"
    path.write_text("-- title: Own\n-- parameter last whole = 5: How many.\nSELECT $last\n")
    (parameter,) = load(str(path)).parameters
    assert given({}, (parameter,)) == {"last": 5}
    with pytest.raises(UsageError, match='"five" is no whole number'):
        given({"last": "five"}, (parameter,))
    with pytest.raises(UsageError, match='did you mean "last"'):
        given({"lats": "5"}, (parameter,))


def test_looking_back_changes_no_answer(nights: Path) -> None:
    """Each query that says how far it looks back finds the same where every run is there."""
    for name, found in saved_queries().items():
        values = given({}, found.parameters)
        recent = found.recent(values)
        with (
            run(Query(str(nights), found.sql, values, looks_back=recent)) as one,
            run(Query(str(nights), found.sql, values)) as all_,
        ):
            assert list(one.rows()) == list(all_.rows()), name
    assert sum(found.looks_back is not None for found in saved_queries().values()) == 7


@pytest.mark.parametrize(
    "line",
    ["-- parameter last: 5", "-- parameter last whole = x: How many.", "-- looks back: last"],
)
def test_a_broken_header_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "own.sql"
    path.write_text(f"-- title: Own\n{line}\nSELECT 1\n")
    with pytest.raises(InputError, match=r"own\.sql:2"):
        load(str(path))


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), ("-0.5", -0.5), ("1e3", 1000.0), ('"7"', "7"), ("007", "007"), ("hit@10", "hit@10"), ("", "")]
)
def test_values_of_ad_hoc_parameters(text: str, value: object) -> None:
    assert guessed(text) == value
    assert type(guessed(text)) is type(value)
