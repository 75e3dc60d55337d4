"""Each finding of the checks over judgments: its kind, its line, its field and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from tripos.checks.retrieval import check_against_corpus, check_depths, check_judgments, is_placeholder
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import AclDefault, Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Finding, Findings, Place
from tripos.files.retrieval import Located

Told = tuple[str, int, str, str]


def row(query_id: str = "q1", **fields: Any) -> RetrievalJudgment:
    expected = tuple(fields.get("expected_sources", ("doc-1",)))
    plain: dict[str, Any] = {
        "query_id": query_id,
        "query": f"What of {query_id}?",
        "expected_sources": expected,
        "should_match": bool(expected),
        "category": "single_hop_factual",
        "review_status": "reviewed",
    }
    return RetrievalJudgment.model_validate({**plain, **fields})


def located(*rows: RetrievalJudgment) -> list[Located]:
    return [Located(Place("j.jsonl", n), r) for n, r in enumerate(rows, 1)]


def corpus(acl_default: AclDefault | None = None, **fields: Any) -> Corpus:
    own = Corpus(acl_default=acl_default)
    own.add(Fragment(fragment_id="doc-1::f1", text="Tokens rotate monthly.", **fields))
    own.add(Fragment(fragment_id="doc-1::f2", text="Ask an admin.", **fields))
    own.add(Fragment(fragment_id="doc-2::f1", text="Invoices are yearly.", **fields))
    return own


def of_judgments(*rows: RetrievalJudgment) -> list[Finding]:
    findings = Findings()
    check_judgments(located(*rows), findings)
    return findings.errors + findings.warnings


def of_corpus(*rows: RetrievalJudgment, against: Corpus | None = None, lenient: bool = False) -> list[Finding]:
    findings = Findings()
    check_against_corpus(located(*rows), against or corpus(), findings, lenient=lenient)
    return findings.errors + findings.warnings


def told(findings: list[Finding]) -> list[Told]:
    return [(f.kind, f.place.line, f.field, f.severity) for f in findings]


# ---- by themselves


def test_a_sound_row_is_silent() -> None:
    assert of_judgments(row()) == []


@pytest.mark.parametrize(
    "value",
    ["TODO", "todo", "TODO_1", "todo: ask", "REPLACE_WITH_ID", "replace_me", "<your id>", " FIXME: later ", "xxx", "TBD"],
)
def test_whole_values_that_are_placeholders(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize("value", ["todo-list", "the TODO page", "a < b > c", "XXX-large", "", "TODOS", "<1.2@mail.example>"])
def test_values_that_only_look_alike_are_none(value: str) -> None:
    assert not is_placeholder(value)


def test_a_placeholder_is_an_error_in_every_field_that_holds_ids() -> None:
    fields: dict[str, Any] = {
        "query": "TODO",
        "expected_sources": ("doc-1", "REPLACE_WITH_SOURCE"),
        "required_sources": ("TBD",),
        "forbidden_sources": ("<near miss>",),
        "nonrelevant_sources": ("FIXME",),
        "expected_fragments": ("CHANGE_ME",),
    }
    found = of_judgments(row("q1"), row("TODO", **fields))
    assert {f.field for f in found if f.kind == "placeholder"} == {"query_id", *fields}
    assert all(f.place == Place("j.jsonl", 2) for f in found)
    by_field = {f.field: f.message for f in found}
    assert by_field["expected_sources"] == '"REPLACE_WITH_SOURCE" is a placeholder: fill it in'


def test_a_placeholder_for_the_source_of_a_quote() -> None:
    evidence = [{"source_id": "TODO", "quote": "<b>"}]
    assert told(of_judgments(row(expected_evidence=evidence))) == [("placeholder", 1, "expected_evidence", "error")]


def test_a_source_named_twice_is_a_warning() -> None:
    (finding,) = of_judgments(row(expected_sources=("doc-1", "doc-1")))
    assert told([finding]) == [("repeated_name", 1, "expected_sources", "warning")]
    assert "counts once" in finding.message


def test_a_category_that_looks_misspelt_is_a_warning_and_one_of_the_users_own_is_none() -> None:
    (finding,) = of_judgments(row(category="single_hop_factul"), row("q2", category="billing"))
    assert told([finding]) == [("category", 1, "category", "warning")]
    assert 'did you mean "single_hop_factual"?' in finding.message


def test_rows_without_a_text() -> None:
    found = of_judgments(row(query=None), row("q2", query="  "), row("q3", query=None, category="imported"))
    assert told(found) == [("no_query", 1, "query", "warning"), ("no_query", 2, "query", "warning")]
    assert "only imported rows" in found[0].message


def test_twins_that_expect_something_else() -> None:
    (finding,) = of_judgments(row("q1", query="Same?"), row("q2", query=" Same? ", expected_sources=("doc-2",)))
    assert told([finding]) == [("contradictory_twin", 2, "query", "warning")]
    assert finding.message == 'asks what "q1" asks (j.jsonl:1), and expects something else'


def test_twins_that_agree_count_twice() -> None:
    (finding,) = of_judgments(row("q1", query="Same?"), row("q2", query="Same?"))
    assert told([finding]) == [("repeated_query", 2, "query", "warning")]


def test_the_same_question_of_another_reader_or_under_other_filters_is_no_twin() -> None:
    rows = [
        row("q1", query="Same?"),
        row("q2", query="Same?", principal={"groups": ["staff"]}, expected_sources=()),
        row("q3", query="Same?", filters={"version": 2}, expected_sources=("doc-2",)),
        row("q4", query="Same?", filters={"version": "2"}, expected_sources=()),
        row("q5", query="Same?", review_status="rejected", expected_sources=()),
    ]
    assert of_judgments(*rows) == []


def test_a_depth_beyond_the_limit() -> None:
    findings = Findings()
    check_depths(located(row(k=10), row("q2", k=11)), 10, findings)
    (finding,) = findings.errors
    assert told([finding]) == [("depth", 2, "k", "error")]
    assert finding.message.startswith("11 is beyond limit 10")


# ---- against the corpus


def test_names_that_the_corpus_holds_are_silent() -> None:
    fine = row(
        expected_sources=("doc-1",),
        required_sources=("doc-2",),
        expected_evidence=[{"source_id": "doc-1", "quote": "rotate  monthly"}],
    )
    assert of_corpus(fine) == []


def test_an_unknown_source_is_an_error_where_it_is_sought_and_a_warning_where_not() -> None:
    found = of_corpus(
        row(
            expected_sources=("doc-1", "doc-11"),
            required_sources=("doc-3",),
            forbidden_sources=("doc-4",),
            nonrelevant_sources=("doc-5",),
            relevance={"doc-1": 2, "doc-11": 1, "doc-6": 1},
        )
    )
    assert told(found) == [
        ("unknown_source", 1, "expected_sources", "error"),
        ("unknown_source", 1, "required_sources", "error"),
        ("unknown_source", 1, "forbidden_sources", "error"),
        ("unknown_source", 1, "nonrelevant_sources", "warning"),
        ("unknown_source", 1, "relevance", "warning"),
    ]
    assert found[0].message == '"doc-11" is in no fragment (did you mean "doc-1"?)'


def test_a_fragment_id_where_a_source_belongs_is_told_as_such() -> None:
    (finding,) = of_corpus(row(expected_sources=("doc-1::f1",)))
    assert (
        finding.message == '"doc-1::f1" is a fragment of "doc-1": name the source here, and the fragment in expected_fragments'
    )


def test_lenient_counts_unknown_sources_and_stops_nothing() -> None:
    findings = Findings()
    rows = located(row(expected_sources=("doc-9",), expected_fragments=("doc-9::f1",)))
    check_against_corpus(rows, corpus(), findings, lenient=True)
    assert (findings.kept, findings.let_pass) == ([], {"unknown_sources": 2})


def test_an_unknown_fragment() -> None:
    (finding,) = of_corpus(row(expected_fragments=("doc-1::f1", "doc-1::f9")))
    assert told([finding]) == [("unknown_fragment", 1, "expected_fragments", "error")]
    assert '"doc-1::f9" is in no fragment (did you mean "doc-1::f' in finding.message


def test_a_quote_that_is_nowhere_and_one_of_an_unknown_source() -> None:
    evidence = [
        {"source_id": "doc-1", "quote": "Tokens rotate monthly. Ask"},
        {"source_id": "doc-1", "quote": "rotate weekly"},
        {"source_id": "doc-7", "quote": "x"},
    ]
    found = of_corpus(row(expected_evidence=evidence))
    assert told(found) == [
        ("quote", 1, "expected_evidence[1].quote", "error"),
        ("unknown_source", 1, "expected_evidence[2].source_id", "error"),
    ]
    assert found[0].message == '"rotate weekly" is nowhere in "doc-1": copy the passage as it stands there'


def test_quotes_are_not_looked_for_in_a_catalogue() -> None:
    catalogue = Corpus()
    catalogue.add(Fragment(fragment_id="doc-1::f1", text_sha256="0" * 64))
    assert of_corpus(row(expected_evidence=[{"source_id": "doc-1", "quote": "x"}]), against=catalogue) == []


def test_an_expected_source_that_the_rows_own_principal_or_filters_bar() -> None:
    staff = corpus(acl=("staff",), metadata={"version": 3})
    found = of_corpus(
        row(principal={"groups": ["guests"]}),
        row("q2", filters={"version": 2}),
        row("q3", principal={"groups": ["staff"]}, filters={"version": 3}),
        row("q4", principal={"groups": ["guests"]}, expected_sources=()),
        against=staff,
    )
    assert told(found) == [("not_admitted", 1, "expected_sources", "error"), ("not_admitted", 2, "expected_sources", "error")]
    assert "it measures the filter" in found[0].message


def test_principals_need_to_know_who_reads_what_said_once() -> None:
    rows = [
        row(),
        row("q2", principal={"groups": ["a"]}, expected_sources=()),
        row("q3", principal={"groups": []}, expected_sources=()),
    ]
    (finding,) = of_corpus(*rows)
    assert told([finding]) == [("acl_default", 2, "principal", "error")]
    assert finding.message == "given, but 3 of 3 fragments have no acl: say --acl-default public, or deny"
    assert of_corpus(*rows, against=corpus("public")) == []
    assert of_corpus(*rows, against=corpus(acl=("a",))) == []


def test_near_names_are_looked_up_for_the_first_findings_alone() -> None:
    names = tuple(f"doc-1{n}" for n in range(300))
    found = of_corpus(row(expected_sources=names))
    assert len(found) == 300
    assert sum("did you mean" in f.message for f in found) == 20
