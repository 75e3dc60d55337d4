"""The lexical look: which joins and which scales it speaks of, on small worlds and on Cranfield and support-kb."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tripos.checks.lexical import (
    MAX_ROWS,
    JoinEvidence,
    Overlap,
    check_lexical,
    flipped,
    join_evidence,
    scale_evidence,
    spaced,
    whole_grades_without_zero,
    words,
)
from tripos.contracts.fragments import Fragment
from tripos.contracts.index import Corpus
from tripos.contracts.retrieval import RetrievalJudgment
from tripos.errors import Finding, Findings, Place
from tripos.files.retrieval import Located, load_corpus, load_judgments

ROOT = Path(__file__).parents[3]
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
SUPPORT_KB = ROOT / "golden" / "support-kb"


def corpus_of(texts: Mapping[str, str]) -> Corpus:
    corpus = Corpus()
    for name, text in texts.items():
        corpus.add(Fragment(fragment_id=name, text=text))
    return corpus


def row(query_id: str, query: str | None, grades: Mapping[str, float], **fields: Any) -> RetrievalJudgment:
    plain: dict[str, Any] = {
        "query_id": query_id,
        "query": query,
        "expected_sources": tuple(grades),
        "should_match": True,
        "category": "imported",
        "review_status": "reviewed",
        "relevance": dict(grades),
    }
    return RetrievalJudgment(**{**plain, **fields})


def found(rows: list[RetrievalJudgment], corpus: Corpus) -> list[Finding]:
    findings = Findings()
    check_lexical([Located(Place("j.jsonl", n), r) for n, r in enumerate(rows, 1)], corpus, findings)
    assert findings.n_errors == 0
    return findings.warnings


# ---- affinity


def test_affinity_weighs_rare_words_more() -> None:
    corpus = corpus_of({"a": "common rare", "b": "common", "c": "common"})
    overlap = Overlap([row("q", "x", {"a": 1, "b": 1, "c": 1})], corpus)
    # N = 3. idf(common), df 3: ln(1 + 0.5/3.5) = 0.1335; idf(rare), df 1: ln(1 + 2.5/1.5) = 0.9808
    common, rare = math.log(1 + 0.5 / 3.5), math.log(1 + 2.5 / 1.5)
    assert overlap.affinity("common rare", "a") == 1
    assert overlap.affinity("common rare", "b") == pytest.approx(common / (common + rare), abs=1e-15)
    assert overlap.affinity("...", "a") == 0


def test_affinity_reads_titles_and_every_fragment_of_a_source() -> None:
    corpus = Corpus()
    corpus.add(Fragment(fragment_id="s::1", text="one", title="Heading"))
    corpus.add(Fragment(fragment_id="s::2", text="two"))
    overlap = Overlap([row("q", "x", {"s": 1})], corpus)
    assert overlap.affinity("HEADING one Two", "s") == 1


def test_words_are_lower_case_and_compatible_forms_meet() -> None:
    assert words("The ﬁle, THE 5 GB") == {"the", "file", "5", "gb"}


def test_sources_without_texts_are_left_out() -> None:
    corpus = corpus_of({"a": "alpha", "blank": " "})
    overlap = Overlap([row("q", "alpha", {"a": 1, "blank": 1, "absent": 1})], corpus)
    assert "a" in overlap
    assert "blank" not in overlap
    assert "absent" not in overlap
    assert overlap.mean("alpha", ["a", "blank", "absent"]) == 1
    assert overlap.mean("alpha", ["absent"]) is None


def test_spaced_takes_rows_over_the_whole_list() -> None:
    rows = [row(f"{n:05}", "x", {"a": 1}) for n in range(3 * MAX_ROWS)]
    chosen = spaced(rows, MAX_ROWS)
    assert len(chosen) == MAX_ROWS
    assert [r.query_id for r in chosen[:3]] == ["00000", "00003", "00006"]


# ---- joins on small worlds


def topics(n: int, shift: int = 0) -> tuple[list[RetrievalJudgment], Corpus]:
    """n queries of a topic each, joined to the source `shift` places on; every third text is of one kind."""
    corpus = corpus_of({f"s{i:02}": f"how does one w{i:02} x{i:02} kind{i % 3}" for i in range(n)})
    rows = [row(f"q{i:02}", f"how does one w{i:02} go kind{i % 3}", {f"s{(i + shift) % n:02}": 1}) for i in range(n)]
    return rows, corpus


def test_a_right_join_is_silent_and_a_wrong_one_is_told() -> None:
    assert found(*topics(24)) == []
    (finding,) = found(*topics(24, shift=1))
    assert (finding.kind, finding.field, finding.severity) == ("unrelated_sources", "expected_sources", "warning")
    assert finding.place == Place("j.jsonl")
    assert "(24 rows)" in finding.message
    assert "tripos import trec … --query-ids ordinal" in finding.message


def test_fewer_than_twenty_rows_say_nothing() -> None:
    assert found(*topics(19, shift=1)) == []
    assert len(found(*topics(20, shift=1))) == 1


def test_another_language_is_not_called_a_wrong_join() -> None:
    rows, corpus = topics(24, shift=1)
    foreign = [r.model_copy(update={"query": f"wie geht das {n}"}) for n, r in enumerate(rows)]
    assert found(foreign, corpus) == []


def test_rows_that_share_their_sources_are_not_compared_with_each_other() -> None:
    corpus = corpus_of({"s": "how does one go"})
    rows = [row(f"q{n:02}", "how does one go", {"s": 1}) for n in range(30)]
    assert join_evidence(rows, Overlap(rows, corpus)) is None


def test_rejected_rows_and_rows_without_a_text_do_not_count() -> None:
    rows, corpus = topics(24, shift=1)
    assert found([r.model_copy(update={"review_status": "rejected"}) for r in rows], corpus) == []
    assert found([r.model_copy(update={"query": None}) for r in rows], corpus) == []


def test_files_are_judged_apart() -> None:
    right, corpus = topics(24)
    wrong, _ = topics(24, shift=1)
    findings = Findings()
    located = [Located(Place("right.jsonl", n), r) for n, r in enumerate(right, 1)]
    located += [Located(Place("wrong.jsonl", n), r) for n, r in enumerate(wrong, 1)]
    check_lexical(located, corpus, findings)
    assert [f.place.file for f in findings.warnings] == ["wrong.jsonl"]


def test_line_order_does_not_matter() -> None:
    rows, corpus = topics(24, shift=1)
    assert [f.message for f in found(rows, corpus)] == [f.message for f in found(rows[::-1], corpus)]


@pytest.mark.parametrize(
    ("own", "others", "t", "is_unrelated"),
    [
        (0.07, 0.08, -1.5, True),
        (0.08, 0.08, 0.0, True),
        (0.10, 0.08, 2.0, True),
        (0.10, 0.08, 3.0, False),  # small, but too clear to be chance
        (0.12, 0.08, 2.0, False),  # half as much again
        (0.0, 0.0, 0.0, False),  # no shared words at all: another language, say
    ],
)
def test_what_counts_as_unrelated(own: float, others: float, t: float, is_unrelated: bool) -> None:
    assert JoinEvidence(100, own, others, t).unrelated is is_unrelated


# ---- scales on small worlds


def scale_world(share_by_grade: Mapping[int, int], n: int = 24, **fields: Any) -> tuple[list[RetrievalJudgment], Corpus]:
    """n rows with a source of each grade, which holds so many of the query's four own words."""
    texts, rows = {}, []
    for i in range(n):
        own = [f"w{i}a", f"w{i}b", f"w{i}c", f"w{i}d"]
        for grade, share in share_by_grade.items():
            texts[f"s{i}-{grade}"] = " ".join(["filler", *own[:share]])
        rows.append(row(f"q{i:02}", " ".join(own), {f"s{i}-{g}": float(g) for g in share_by_grade}, **fields))
    return rows, corpus_of(texts)


def test_a_reversed_scale_is_told_with_its_table_and_the_flag_that_mends_it() -> None:
    (finding,) = found(*scale_world({1: 4, 2: 2, 3: 0}))
    assert (finding.kind, finding.field, finding.severity) == ("reversed_scale", "relevance", "warning")
    assert "grades run 1..3, none is 0" in finding.message
    assert re.search(r"by grade: 1 1\.00, 2 \.\d\d, 3 \.00\)", finding.message)
    assert finding.message.endswith("if 1 is best: tripos import trec … --grade-map 1=2,2=1,3=0")


def test_a_right_scale_without_zero_is_silent() -> None:
    assert found(*scale_world({1: 0, 2: 2, 3: 4})) == []


def test_near_non_relevant_documents_do_not_hide_a_reversed_scale() -> None:
    assert [f.kind for f in found(*scale_world({1: 3, 2: 2, 3: 1, 4: 0, 5: 4}))] == ["reversed_scale"]


def test_a_scale_shifted_by_one_is_not_called_reversed() -> None:
    assert found(*scale_world({1: 4, 2: 0, 3: 1, 4: 2, 5: 3})) == []


def test_two_grades_or_too_few_rows_say_nothing() -> None:
    assert found(*scale_world({1: 4, 2: 0})) == []
    assert found(*scale_world({1: 4, 2: 2, 3: 0}, n=19)) == []


def test_judgments_that_name_non_relevant_sources_have_a_zero() -> None:
    assert found(*scale_world({1: 4, 2: 2, 3: 0}, nonrelevant_sources=("elsewhere",))) == []


def test_grades_that_are_no_integers_are_no_such_scale() -> None:
    assert whole_grades_without_zero([row("q", "x", {"a": 1.5, "b": 2, "c": 3})]) == []
    assert whole_grades_without_zero([row("q", "x", {"a": 3, "b": 1})]) == [1, 3]


def test_the_map_turns_a_scale_over_and_leaves_gaps() -> None:
    assert flipped([1, 2, 3, 4, 5]) == "1=4,2=3,3=2,4=1,5=0"
    assert flipped([4, 1]) == "1=3,4=0"


# ---- on real data


def smart(path: Path) -> list[tuple[str, str]]:
    """(.I, .W) of each record."""
    records = re.split(r"^\.I\s+", path.read_text("latin-1"), flags=re.MULTILINE)[1:]
    return [(r.split()[0], " ".join(re.split(r"^\.W\s*$", r, flags=re.MULTILINE)[-1].split())) for r in records]


def qrels() -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = defaultdict(dict)
    for topic, _, docno, grade in map(str.split, (CRANFIELD / "cranqrel").read_text().splitlines()):
        table[topic][docno] = int(grade)
    return table


def cranfield(texts: Mapping[str, str], grade: Callable[[int], int], *, keep_zeros: bool = True) -> list[RetrievalJudgment]:
    rows = []
    for topic, docs in qrels().items():
        grades = {name: grade(g) for name, g in docs.items()}
        positive = {name: float(g) for name, g in grades.items() if g > 0}
        zeros = tuple(name for name, g in grades.items() if g == 0) if keep_zeros else ()
        if topic in texts and positive:
            rows.append(row(topic, texts[topic], positive, nonrelevant_sources=zeros))
    return rows


@pytest.fixture(scope="module")
def documents() -> Corpus:
    if not CRANFIELD.is_dir():
        pytest.skip("no ../shared/data/cranfield")
    return corpus_of(dict(smart(CRANFIELD / "cran.all.1400")))


def ordinal() -> dict[str, str]:
    return {str(n): text for n, (_, text) in enumerate(smart(CRANFIELD / "cran.qry"), 1)}


def naive() -> dict[str, str]:
    return {str(int(name)): text for name, text in smart(CRANFIELD / "cran.qry")}


def test_cranfield_read_right_is_silent(documents: Corpus) -> None:
    assert found(cranfield(ordinal(), lambda g: 5 - g), documents) == []
    assert found(cranfield(ordinal(), lambda g: 5 - g, keep_zeros=False), documents) == []


def test_cranfield_joined_by_equal_numbers_is_told(documents: Corpus) -> None:
    rows = cranfield(naive(), lambda g: 5 - g)
    (finding,) = found(rows, documents)
    assert finding.kind == "unrelated_sources"
    assert "(152 rows)" in finding.message
    right = join_evidence(cranfield(ordinal(), lambda g: 5 - g), Overlap(cranfield(ordinal(), lambda g: 5 - g), documents))
    assert right is not None
    assert right.own > 3 * right.others


def test_cranfield_with_its_scale_left_is_told(documents: Corpus) -> None:
    (finding,) = found(cranfield(ordinal(), lambda g: g), documents)
    assert finding.kind == "reversed_scale"
    assert "grades run 1..5, none is 0" in finding.message
    assert finding.message.endswith("--grade-map 1=4,2=3,3=2,4=1,5=0")


def test_cranfield_joined_wrongly_is_not_blamed_on_its_scale(documents: Corpus) -> None:
    assert [f.kind for f in found(cranfield(naive(), lambda g: g), documents)] == ["unrelated_sources"]


def test_the_grade_five_of_cranfield_is_nearest_and_left_out_of_the_trend(documents: Corpus) -> None:
    rows = cranfield(ordinal(), lambda g: g)
    evidence = scale_evidence(rows, Overlap(rows, documents))
    assert evidence is not None
    assert max(evidence.affinity, key=lambda g: evidence.affinity[g]) == 5
    assert (evidence.falls, evidence.rises) == (6, 4)
    assert evidence.t < -4


def test_support_kb_is_silent() -> None:
    findings = Findings()
    corpus, _ = load_corpus([str(SUPPORT_KB / "fragments.jsonl")], None, findings)
    check_lexical(load_judgments([str(SUPPORT_KB / "retrieval_golden_single.jsonl")], findings), corpus, findings)
    assert findings.kept == []


def test_support_kb_with_shuffled_expectations_is_told() -> None:
    findings = Findings()
    corpus, _ = load_corpus([str(SUPPORT_KB / "fragments.jsonl")], None, findings)
    lines = [json.loads(line) for line in (SUPPORT_KB / "retrieval_golden_single.jsonl").read_text().splitlines()]
    asked = [(line["query_id"], line["query"], line["expected_sources"]) for line in lines if line["expected_sources"]]
    half = len(asked) // 2
    rows = [row(name, text, dict.fromkeys(asked[(i + half) % len(asked)][2], 1.0)) for i, (name, text, _) in enumerate(asked)]
    assert [f.kind for f in found(rows, corpus)] == ["unrelated_sources"]
