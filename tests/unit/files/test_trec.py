"""TREC qrels, runs and topics: what is read, what is refused, and what comes back from a round trip."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from tripos.cli.importing import export_app, import_app
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import ExitCode, Findings, InputError, NothingToEvaluate, Place, TriposError, UsageError
from tripos.files.formats import trec, trec_rows
from tripos.files.jsonl import read_rows
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import Located, load_judgments

DATA = Path(__file__).parents[4] / "shared" / "data"
TREC_EVAL = DATA / "trec_eval_test"
CRANFIELD = DATA / "cranfield"


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def qrels_of(path: Path, content: str | bytes, **settings: Any) -> trec.Qrels:
    findings = Findings()
    qrels = trec.read_qrels(write(path / "q", content), findings, **settings)
    findings.raise_errors()
    return qrels


def run_of(path: Path, content: str | bytes) -> trec.Run:
    findings = Findings()
    run = trec.read_run(write(path / "r", content), findings)
    findings.raise_errors()
    return run


def grades(qrels: trec.Qrels) -> dict[str, dict[str, int]]:
    return {topic: {docno: judged.grade for docno, judged in docs.items()} for topic, docs in qrels.topics.items()}


def said(error: pytest.ExceptionInfo[InputError]) -> list[tuple[int, str, str]]:
    return [(f.place.line, f.field, f.message) for f in error.value.findings]


def judgment(**fields: Any) -> Located:
    defaults = {"query_id": "q1", "query": None, "expected_sources": ("a",), "should_match": True}
    row = RetrievalJudgment(**{**defaults, "category": "imported", "review_status": "reviewed", **fields})
    return Located(Place("j.jsonl", 7), row)


def table_of(*rows: Located) -> trec_rows.QrelsTable:
    findings = Findings()
    table = trec_rows.qrels_from(rows, findings)
    findings.raise_errors()
    return table


def ranked(ids: Sequence[str], scores: Sequence[float] | None = None, **fields: Any) -> RankedRow:
    return RankedRow(
        place=Place("r.jsonl", 3), query_id=fields.pop("query_id", "q1"), fragment_ids=ids, scores=scores, **fields
    )


def run_table(*rows: RankedRow, **settings: Any) -> trec_rows.RunTable:
    findings = Findings()
    table = trec_rows.run_from(rows, findings, **settings)
    findings.raise_errors()
    return table


def rows_in(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def invoke(app: Any, *arguments: str, stdin: bytes | None = None) -> Result:
    """The command's result; the errors that main() turns into exit codes are in `exception`."""
    return CliRunner().invoke(app, ["trec", *arguments], input=stdin)


def failed(result: Result) -> TriposError:
    assert isinstance(result.exception, TriposError), result.output
    return result.exception


class TestQrels:
    def test_reads_tabs_runs_of_spaces_crlf_bom_and_blank_lines(self, tmp_path: Path) -> None:
        qrels = qrels_of(tmp_path, b"\xef\xbb\xbf1\t0\td1\t1\r\n\r\n  1   0  d2  0  \r\n2 Q0 d1 +2")
        assert grades(qrels) == {"1": {"d1": 1, "d2": 0}, "2": {"d1": 2}}
        assert qrels.lines == {"1": 1, "2": 4}

    def test_a_line_that_begins_with_a_hash_is_a_comment_and_an_id_that_holds_one_is_not(self, tmp_path: Path) -> None:
        qrels = qrels_of(tmp_path, "# one\n#two in a row 1\n1 0 CR#93 0\n  # 4 columns 1\n1 0 #d 1\n1 # d 1\n")
        assert grades(qrels) == {"1": {"CR#93": 0, "#d": 1, "d": 1}}

    def test_only_ascii_white_space_separates(self, tmp_path: Path) -> None:
        assert grades(qrels_of(tmp_path, "1 0 a\u00a0b\u2003c 1\n")) == {"1": {"a\u00a0b\u2003c": 1}}

    def test_ids_are_compared_byte_for_byte(self, tmp_path: Path) -> None:
        assert grades(qrels_of(tmp_path, "1 0 D 1\n01 0 d 1\n1 0 d 0\n")) == {"1": {"D": 1, "d": 0}, "01": {"d": 1}}

    def test_negative_grades_are_left_out_and_counted(self, tmp_path: Path) -> None:
        qrels = qrels_of(tmp_path, "1 0 a -1\n1 0 b 1\n2 0 a -2\n")
        assert grades(qrels) == {"1": {"b": 1}, "2": {}}
        assert qrels.n_unjudged == 2

    def test_a_repeated_judgment_is_counted(self, tmp_path: Path) -> None:
        qrels = qrels_of(tmp_path, "1 0 a 1\n1 0 a 1\n2 0 a 1\n1 1 a 1\n")
        assert (qrels.n_repeated, grades(qrels)) == (2, {"1": {"a": 1}, "2": {"a": 1}})

    def test_all_bad_lines_come_at_once_with_their_lines(self, tmp_path: Path) -> None:
        lines = [
            "1 0 a 1",
            "1 0 b",
            "# 1 0 b",
            "",
            "1 0 c 1.0",
            "1 0 d x",
            "1 0 a 2",
            "1 Q0 e 1 2.0 t",
            "1 0 f 101",
            "1 0 g 1_0",
        ]
        with pytest.raises(InputError) as error:
            qrels_of(tmp_path, "\r\n".join(lines))
        found = said(error)
        assert [(line, field) for line, field, _ in found] == [
            (2, ""), (5, "rel"), (6, "rel"), (7, "rel"), (8, ""), (9, "rel"), (10, "rel"),
        ]  # fmt: skip
        assert "has 3 columns, not 4" in found[0][2]
        assert "awk" in found[0][2]
        assert found[1][2] == 'is "1.0": a grade is an integer'
        assert found[3][2] == 'grades "a" of topic "1" 2, but line 1 grades it 1: keep one'
        assert "--run" in found[4][2]
        assert "go up to 100" in found[5][2]
        assert error.value.findings[0].place == Place(str(tmp_path / "q"), 2)

    def test_a_conflict_with_an_unjudged_line_is_one(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="but line 1 grades it -1"):
            qrels_of(tmp_path, "1 0 a -1\n1 0 a 1\n")

    @pytest.mark.parametrize(
        ("raw", "message"), [(b"1 0 \xff 1\n", "UTF-8"), (b"1 0 a\0b 1\n", "NUL"), (b"# c\n\n", "no judgment")]
    )
    def test_what_is_no_text_and_what_is_empty_is_an_error(self, tmp_path: Path, raw: bytes, message: str) -> None:
        with pytest.raises(InputError, match=message) as error:
            qrels_of(tmp_path, raw)
        assert error.value.total == 1

    def test_a_whole_run_is_told_once(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="use --run") as error:
            qrels_of(tmp_path, "1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0 t\n")
        assert error.value.total == 1

    def test_grades_are_mapped_before_negative_ones_are_left_out(self, tmp_path: Path) -> None:
        qrels = qrels_of(tmp_path, "1 0 a 1\n1 0 b 5\n1 0 c -1\n1 0 d 7\n1 0 e -2\n", grade_map={1: 4, 5: 0, -1: 1, 7: -1})
        assert grades(qrels) == {"1": {"a": 4, "b": 0, "c": 1}}
        assert qrels.n_unjudged == 2

    def test_a_grade_that_the_map_does_not_name_is_one_error_with_its_count(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as error:
            qrels_of(tmp_path, "1 0 a 1\n1 0 b 3\n2 0 c 3\n2 0 d 200\n", grade_map={1: 4, 200: 2})
        assert said(error) == [(2, "rel", "is 3, which --grade-map does not name (2 judgments)")]

    @pytest.mark.parametrize(("text", "found"), [("1=4", {1: 4}), ("1=4, 5=0 ,-1=0", {1: 4, 5: 0, -1: 0})])
    def test_grade_maps_are_pairs_of_integers(self, text: str, found: dict[int, int]) -> None:
        assert trec_rows.parse_grade_map(text) == found

    @pytest.mark.parametrize("text", ["", "1", "1=", "1=a", "1=2,1=3", "1=0.5", "1=101", "1=2;2=3", "١=1"])
    def test_other_grade_maps_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="--grade-map"):
            trec_rows.parse_grade_map(text)


class TestRuns:
    def test_reads_tabs_comments_crlf_and_any_order_of_lines(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, b"# c\r\n1\tQ0\td1#2\t9\t  1.5e0\tt\r\n2 Q0 d1 1 -3 t\r\n\r\n1 0 d2 x .5 t\r\n")
        assert {t: {d: s.score for d, s in docs.items()} for t, docs in run.topics.items()} == {
            "1": {"d1#2": 1.5, "d2": 0.5},
            "2": {"d1": -3.0},
        }
        assert run.topics["1"]["d2"].line == 5

    def test_text_after_the_tag_is_ignored_and_counted_as_trec_eval_does(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, "1 Q0 a 1 2.0 tag more junk\n1 Q0 b 2 1.0 tag\n")
        assert (list(run.topics["1"]), run.n_trailing) == (["a", "b"], 1)

    def test_all_bad_lines_come_at_once_with_their_lines(self, tmp_path: Path) -> None:
        lines = [
            "1 Q0 a 1 2.0 t",
            "1 Q0 b 2 nan t",
            "1 Q0 c 3 -inf t",
            "1 Q0 d 4 1,5 t",
            "1 Q0 e 5 1.0",
            "1 0 f 1",
            "1 Q0 a 6 1.0 t",
            "1 Q0 g 7 1e39 t",
            "1 Q0 h 8 1e999 t",
            "1 Q0 my doc 9 1.0 t",
            "1 Q0 i 9 1_0 t",
        ]
        with pytest.raises(InputError) as error:
            run_of(tmp_path, "\n".join(lines))
        found = said(error)
        assert [line for line, _, _ in found] == list(range(2, 12))
        assert found[0] == (2, "score", 'is "nan": a score is a finite number')
        assert "where only the tag is missing" in found[3][2]
        assert "--qrels" in found[4][2]
        assert found[5] == (7, "docno", '"a" of topic "1" was ranked on line 1: keep one')
        assert "32-bit" in found[6][2]
        assert "does an id hold white space?" in found[8][2]

    def test_an_empty_run_and_whole_qrels_are_one_error(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="holds no result"):
            run_of(tmp_path, "# nothing\n")
        with pytest.raises(InputError, match="use --qrels") as error:
            run_of(tmp_path, "1 0 a 1\n1 0 b 1\n")
        assert error.value.total == 1

    def test_the_order_is_score_then_docno_both_descending(self, tmp_path: Path) -> None:
        run = run_of(
            tmp_path, "1 Q0 a 1 1 t\n1 Q0 b 2 1 t\n1 Q0 Z 3 1 t\n1 Q0 é 4 1 t\n1 Q0 c 5 2 t\n1 Q0 z 6 -0.0 t\n1 Q0 y 7 0 t\n"
        )
        assert trec.in_trec_order(run.topics["1"]) == (["c", "é", "b", "a", "Z", "z", "y"], [2, 1, 1, 1, 1, 0, 0], False)

    def test_docnos_are_ordered_by_bytes_beyond_the_basic_plane_too(self) -> None:
        # U+FF5E is EF BD 9E and U+10000 is F0 90 80 80 in UTF-8; in UTF-16 their order would be the other one
        docs = {"\uff5e": trec.Scored(1.0, 1), "\U00010000": trec.Scored(1.0, 2)}
        assert trec.in_trec_order(docs)[0] == ["\U00010000", "\uff5e"]

    def test_scores_that_are_one_32_bit_float_tie(self) -> None:
        # 1 + 2^-24 is halfway between two 32-bit floats and rounds to the even one, 1.0: "b" then precedes by docno
        near = 1 + 2**-24
        tied = {"a": trec.Scored(near, 1), "b": trec.Scored(1.0, 2), "c": trec.Scored(0.1, 3)}
        assert trec.in_trec_order(tied) == (["b", "a", "c"], [1.0, 1.0, trec.narrow([0.1])[0]], True)
        falling = {"a": trec.Scored(1.0, 1), "b": trec.Scored(near, 2), "c": trec.Scored(0.1, 3)}
        assert trec.in_trec_order(falling) == (["b", "a", "c"], [near, 1.0, 0.1], False)

    def test_pytrec_eval_ranks_32_bit_ties_alike(self, tmp_path: Path) -> None:
        near = 1 + 2**-24
        run = run_of(tmp_path, f"1 Q0 a 1 {near!r} t\n1 Q0 b 2 1.0 t\n")
        ids, _, _ = trec.in_trec_order(run.topics["1"])
        evaluator = pytrec_eval.RelevanceEvaluator({"1": {"a": 0, "b": 1}}, {"recip_rank"})
        assert evaluator.evaluate({"1": {"a": near, "b": 1.0}})["1"]["recip_rank"] == 1 / (1 + ids.index("b")) == 1.0

    def test_results_are_nested_or_columnar_and_cut_at_a_depth(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, "1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n1 Q0 b 2 2 t\n1 Q0 c 3 0.5 t\n")
        nested = [row for row, _ in trec_rows.results_from(run, depth=2)]
        assert nested[0] == {
            "query_id": "1",
            "results": [{"fragment_id": "b", "score": 2.0}, {"fragment_id": "a", "score": 1.0}],
        }
        columnar = [row for row, _ in trec_rows.results_from(run, form="columnar")]
        assert columnar[0] == {"query_id": "1", "fragment_ids": ["b", "a", "c"], "scores": [2.0, 1.0, 0.5]}
        assert [row["query_id"] for row in columnar] == ["1", "2"]


class TestTopics:
    def texts(self, path: Path, content: str | bytes) -> list[tuple[str, str]]:
        findings = Findings()
        topics = trec.read_topics(write(path / "t", content), findings)
        findings.raise_errors()
        return [(topic.topic_id, topic.text) for topic in topics]

    def test_reads_tsv(self, tmp_path: Path) -> None:
        assert self.texts(tmp_path, b"\xef\xbb\xbf\r\n001\thow so ?\r\n2\t{odd}\r\n") == [("001", "how so ?"), ("2", "{odd}")]

    def test_reads_jsonl_under_each_of_its_names(self, tmp_path: Path) -> None:
        lines = [
            '{"_id": "1", "text": "a", "metadata": {}}',
            '{"id": "2", "query": "b"}',
            '{"query_id": "3", "id": "x", "query": "c"}',
        ]
        assert self.texts(tmp_path, "\n" + "\n".join(lines)) == [("1", "a"), ("2", "b"), ("3", "c")]

    def test_nothing_else_is_read(self, tmp_path: Path) -> None:
        for content in ("<top>\n<num> 301\n", ".I 001\n.W\n", "1 spaces only\n"):
            with pytest.raises(InputError, match="neither id<TAB>text nor a JSON object"):
                self.texts(tmp_path, content)
        with pytest.raises(InputError, match="holds no topic"):
            self.texts(tmp_path, "\n")
        with pytest.raises(UsageError, match="standard input"):
            trec.read_topics("-", Findings())

    def test_all_bad_tsv_lines_come_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as error:
            self.texts(tmp_path, b"qid\tquery\n1\ta\tb\n2\t \n3\n\tx\n4\tfine\n5\t\xff\n")
        assert [line for line, _, _ in said(error)] == [1, 2, 3, 4, 5, 7]
        assert "is a header" in said(error)[0][2]

    def test_all_bad_json_lines_come_at_once(self, tmp_path: Path) -> None:
        lines = [
            '{"_id": 1, "text": "a"}',
            '{"text": ""}',
            "{",
            '{"id": "1", "query": "a\\u0000"}',
            '{"id": "", "query": null}',
        ]
        with pytest.raises(InputError) as error:
            self.texts(tmp_path, "\n".join(lines))
        assert [(line, field) for line, field, _ in said(error)] == [
            (1, "_id"), (2, "query_id"), (2, "text"), (3, ""), (4, "query"), (5, "id"), (5, "query"),
        ]  # fmt: skip


class TestTextsMeetTopics:
    """A small analog of Cranfield: texts numbered 001, 002, 004 (with gaps), qrels numbered by position."""

    QRELS = "1 0 d1 1\n2 0 d2 1\n3 0 d3 1\n"

    def meet(self, path: Path, qrels: str, ids: Sequence[str], *, ordinal: bool = False) -> dict[str, str]:
        findings = Findings()
        table = qrels_of(path, qrels)
        topics = trec.read_topics(write(path / "t.tsv", "".join(f"{i}\ttext of {i}\n" for i in ids)), findings)
        texts = trec_rows.texts_by_topic(table, topics, "t.tsv", ordinal=ordinal, findings=findings)
        findings.raise_errors()
        return texts

    def test_ids_that_meet(self, tmp_path: Path) -> None:
        assert self.meet(tmp_path, self.QRELS, ["3", "1", "2", "unjudged"]) == {
            "1": "text of 1",
            "2": "text of 2",
            "3": "text of 3",
        }

    def test_every_topic_without_a_text_is_listed_at_its_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as error:
            self.meet(tmp_path, "7 0 a 1\n7 0 b 1\n8 0 a 1\n9 0 a 1\n", ["9"])
        assert said(error) == [(1, "topic", '"7" has no text in t.tsv'), (3, "topic", '"8" has no text in t.tsv')]

    def test_ordinals_and_leading_zeros_are_told(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as error:
            self.meet(tmp_path, self.QRELS, ["001", "002", "004"])
        line, _, hint = said(error)[0]
        assert line == 0
        assert "exactly 1 to 3 and there are 3 texts" in hint
        assert "--query-ids ordinal" in hint
        assert '2 would meet a text if leading zeros were dropped ("1" and "001")' in hint
        assert "byte for byte" in hint
        assert "no proof of equal queries" in hint
        assert len(said(error)) == 4

    def test_ordinals_are_told_where_some_ids_meet_by_chance(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="--query-ids ordinal") as error:
            self.meet(tmp_path, self.QRELS, ["1", "2", "4"])
        assert "leading zeros" not in str(error.value)

    @pytest.mark.parametrize(("qrels", "ids"), [("1 0 a 1\n2 0 a 1\n", ["x", "y", "z"]), ("1 0 a 1\n3 0 a 1\n", ["x", "y"])])
    def test_ordinals_are_not_told_otherwise(self, tmp_path: Path, qrels: str, ids: list[str]) -> None:
        with pytest.raises(InputError) as error:
            self.meet(tmp_path, qrels, ids)
        assert "--query-ids" not in str(error.value)

    def test_by_ordinal_the_nth_text_is_topic_n(self, tmp_path: Path) -> None:
        texts = self.meet(tmp_path, self.QRELS, ["001", "002", "004"], ordinal=True)
        assert texts == {"1": "text of 001", "2": "text of 002", "3": "text of 004"}

    def test_an_ordinal_beyond_the_texts_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="numbers the 2 texts 1 to 2") as error:
            self.meet(tmp_path, self.QRELS, ["1", "3"], ordinal=True)
        assert [line for line, _, _ in said(error)] == [0, 3]

    def test_a_text_id_used_twice_is_an_error_unless_positions_count(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match='"1" was used on line 1') as error:
            self.meet(tmp_path, "1 0 a 1\n", ["1", "1"])
        assert said(error)[0][0] == 2
        assert self.meet(tmp_path, "2 0 a 1\n", ["1", "1"], ordinal=True) == {"2": "text of 1"}


class TestJudgments:
    def rows(self, path: Path, content: str, **settings: Any) -> list[dict[str, Any]]:
        found = trec_rows.judgments_from(qrels_of(path, content), **settings)
        return [trec_rows.judgment_line(row) for row in found.rows]

    def test_grades_of_1_are_implied(self, tmp_path: Path) -> None:
        assert self.rows(tmp_path, "1 0 b 1\n1 0 a 1\n1 0 c 0\n") == [
            {
                "query_id": "1",
                "query": None,
                "expected_sources": ["b", "a"],
                "should_match": True,
                "category": "imported",
                "review_status": "reviewed",
                "nonrelevant_sources": ["c"],
            }
        ]

    def test_other_grades_are_given_as_integers(self, tmp_path: Path) -> None:
        (row,) = self.rows(tmp_path, "1 0 a 1\n1 0 b 3\n", texts={"1": "why?"})
        assert (row["query"], row["expected_sources"]) == ("why?", ["a", "b"])
        assert json.dumps(row["relevance"]) == '{"a": 1, "b": 3}'
        assert "nonrelevant_sources" not in row

    def test_below_the_level_a_document_is_nonrelevant_and_keeps_its_gain(self, tmp_path: Path) -> None:
        (row,) = self.rows(tmp_path, "1 0 a 1\n1 0 b 2\n1 0 c 0\n", level=2)
        assert row["expected_sources"] == ["b"]
        assert row["relevance"] == {"a": 1, "b": 2}
        assert row["nonrelevant_sources"] == ["a", "c"]

    def test_topics_without_a_relevant_document_are_left_out_or_expected_empty(self, tmp_path: Path) -> None:
        content = "1 0 a 1\n2 0 a 0\n3 0 a -1\n"
        found = trec_rows.judgments_from(qrels_of(tmp_path, content))
        assert ([row.query_id for row in found.rows], found.empty) == (["1"], ["2", "3"])
        kept = self.rows(tmp_path, content, keep_empty=True)
        assert [(row["query_id"], row["should_match"], row["expected_sources"]) for row in kept] == [
            ("1", True, ["a"]),
            ("2", False, []),
            ("3", False, []),
        ]
        assert self.rows(tmp_path, "1 0 a 1\n", level=2, keep_empty=True)[0]["nonrelevant_sources"] == ["a"]

    def test_relevant_documents_must_be_sources_of_the_corpus(self, tmp_path: Path) -> None:
        corpus = write(tmp_path / "f.jsonl", '{"fragment_id": "doc-1::f1", "text": "x"}\n')
        qrels = write(tmp_path / "q", "1 0 doc-1 1\n1 0 doc-2 0\n1 0 doc-1::f1 1\n1 0 doc-11 1\n")
        error = failed(invoke(import_app, "--qrels", qrels, "--fragments", corpus, "--output", str(tmp_path / "o")))
        assert isinstance(error, InputError)
        assert [(f.place.line, f.message) for f in error.findings] == [
            (3, '"doc-1::f1" is a fragment of "doc-1": judgments name sources'),
            (4, '"doc-11" is the source of no fragment (did you mean "doc-1"?)'),
        ]
        assert not (tmp_path / "o").exists()


class TestQrelsFromJudgments:
    def test_grades_and_zeros(self) -> None:
        row = judgment(
            expected_sources=("a", "b"),
            relevance={"b": 3.0, "a": 1.0},
            nonrelevant_sources=("n",),
            forbidden_sources=("f",),
            category="hard_negative",
        )
        table = table_of(row, judgment(query_id="q2"))
        assert table.topics == {"q1": {"b": 3, "a": 1, "n": 0, "f": 0}, "q2": {"a": 1}}
        assert table.level == 1

    def test_a_nonrelevant_source_with_a_grade_keeps_it_and_the_level_is_told(self) -> None:
        row = judgment(relevance={"a": 3.0, "n": 1.0}, nonrelevant_sources=("n", "z"))
        table = table_of(row)
        assert (table.topics, table.level) == ({"q1": {"a": 3, "n": 1, "z": 0}}, 2)
        assert table_of(row, judgment(query_id="q2")).level is None  # "a" of q2 has grade 1, as "n" of q1

    def test_rows_without_a_line_are_counted(self) -> None:
        table = table_of(
            judgment(query_id="1", expected_sources=(), should_match=False),
            judgment(query_id="2", review_status="draft"),
            judgment(query_id="3", category="calibration"),
            judgment(query_id="4", required_sources=("r",), filters={"lang": "en"}),
        )
        assert (list(table.topics), table.n_negative, table.n_unscored) == (["4"], 1, 2)
        assert table.uncarried == {"required_sources": 1, "filters": 1}

    def test_all_that_qrels_cannot_carry_comes_at_once_naming_row_and_id(self) -> None:
        with pytest.raises(InputError) as error:
            table_of(
                judgment(query_id="#q", expected_sources=("a b", "#fine"), relevance={"a b": 1.0, "#fine": 0.5}),
                judgment(query_id="q 2", nonrelevant_sources=("t\tu",)),
            )
        assert [(f.place, f.field) for f in error.value.findings] == [
            (Place("j.jsonl", 7), field)
            for field in ("query_id", "expected_sources", "relevance", "query_id", "nonrelevant_sources")
        ]
        texts = [f.message for f in error.value.findings]
        assert texts[0].startswith('"#q" begins with "#"')
        assert texts[1].startswith('"a b" of query "#q" holds white space')
        assert texts[2].startswith('0.5 of "#fine" of query "#q" is no integer')
        assert '"t\\tu" of query "q 2" holds white space' in texts[4]

    @pytest.mark.parametrize("name", ["", "a b", "a\n", "\x0b", "a\0"])
    def test_ids_that_no_column_can_hold(self, name: str) -> None:
        assert trec.id_fault(name, leads=False)
        assert trec.id_fault(name, leads=True)

    @pytest.mark.parametrize("name", ["#a", "\ufeffa"])
    def test_ids_that_cannot_stand_first_on_a_line(self, name: str) -> None:
        assert trec.id_fault(name, leads=True)
        assert not trec.id_fault(name, leads=False)


class TestRunFromResults:
    def test_given_scores_are_kept_where_they_keep_the_order(self) -> None:
        table = run_table(ranked(["b", "a", "c"], [2.0, 2.0, 0.1]), ranked(["a"], [7.0], query_id="q2"))
        assert table.topics == {"q1": [("b", 2.0), ("a", 2.0), ("c", 0.1)], "q2": [("a", 7.0)]}
        assert table.synthetic == ""

    @pytest.mark.parametrize(
        "scores",
        [
            [2.0, 2.0],  # trec_eval would put "b" first in the tie
            [1.0, 2.0],  # rising
            [1 + 2**-24, 1.0],  # one 32-bit float: a tie
            [1e39, 1.0],  # no 32-bit float at all
            None,
        ],
    )
    def test_else_the_whole_run_gets_falling_scores_and_the_reason_is_told(self, scores: list[float] | None) -> None:
        table = run_table(
            ranked(["z", "y"], [5.5, 4.5], query_id="q0"), ranked(["a", "b"], scores), ranked(["c"], [1], query_id="q2")
        )
        assert table.topics == {"q0": [("z", 2.0), ("y", 1.0)], "q1": [("a", 2.0), ("b", 1.0)], "q2": [("c", 1.0)]}
        assert 'query "q1"' in table.synthetic

    def test_a_64_bit_reader_would_keep_the_order_too(self) -> None:
        # as 32-bit floats both are 1.0 and "b" stands first as it should; as 64-bit ones "a" would
        assert run_table(ranked(["b", "a"], [1.0, 1 + 2**-24])).synthetic

    def test_rows_with_an_error_or_without_results_have_no_line_and_are_counted(self) -> None:
        table = run_table(ranked(["a"], [1.0]), ranked([], query_id="q2"), ranked(["x"], [1.0], query_id="q3", error="timeout"))
        assert (list(table.topics), table.n_empty, table.n_failed, table.synthetic) == (["q1"], 1, 1, "")

    def test_by_source_each_source_stands_once_at_its_first_fragment(self) -> None:
        row = ranked(["s1::b", "s2::a", "s1::a", "plain"], [4.0, 3.0, 2.0, 1.0])
        assert run_table(row, unit="source").topics == {"q1": [("s1", 4.0), ("s2", 3.0), ("plain", 1.0)]}
        given = ranked(["x", "y", "z::1"], [3.0, 2.0, 1.0], sources=["s", "s", None])
        assert run_table(given, unit="source").topics == {"q1": [("s", 3.0), ("z", 1.0)]}

    def test_synthetic_scores_count_sources_not_fragments(self) -> None:
        row = ranked(["s1::b", "s2::a", "s1::a"])
        assert run_table(row, unit="source").topics == {"q1": [("s1", 2.0), ("s2", 1.0)]}

    def test_all_that_a_run_cannot_carry_comes_at_once(self) -> None:
        with pytest.raises(InputError) as error:
            run_table(
                ranked(["a b", "#fine"], [2.0, 1.0], query_id="#q"),
                ranked(["a", "b", "a"], [3.0, 2.0, 1.0], ranks=[1, 3, 2], query_id="q2"),
            )
        assert [f.field for f in error.value.findings] == ["query_id", "fragment_id", "fragment_id", "rank"]
        texts = [f.message for f in error.value.findings]
        assert texts[1].startswith('"a b" of query "#q" holds white space')
        assert texts[2].startswith('"a" stands more than once in the list of query "q2"')
        assert texts[3].startswith('is 3 at position 2 of query "q2"')


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0 \t\n\r\v\f"), min_size=1, max_size=6)
TOPICS = WORDS.filter(lambda name: name[0] not in "#\ufeff")
SCORES = st.floats(-1e30, 1e30, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1 + 2**-24, 1 + 2**-52, 1e-310, 0.1])


class TestRoundTrips:
    @given(
        table=st.dictionaries(TOPICS, st.dictionaries(WORDS, st.integers(0, 100), min_size=1), min_size=1),
        level=st.integers(1, 3),
    )
    def test_qrels(self, tmp_path_factory: pytest.TempPathFactory, table: dict[str, dict[str, int]], level: int) -> None:
        stream = io.BytesIO()
        assert trec.write_qrels(stream, table) == sum(map(len, table.values()))
        qrels = qrels_of(tmp_path_factory.mktemp("t"), stream.getvalue())
        assert grades(qrels) == table
        found = trec_rows.judgments_from(qrels, level=level)
        again = table_of(*(Located(Place("j"), row) for row in found.rows))
        assert again.topics == {t: docs for t, docs in table.items() if t not in found.empty}
        assert set(found.empty) == {t for t, docs in table.items() if max(docs.values()) < level}
        assert again.level is None or again.level <= level or not again.topics

    @given(table=st.dictionaries(TOPICS, st.dictionaries(WORDS, SCORES, min_size=1, max_size=8), min_size=1, max_size=4))
    def test_runs(self, tmp_path_factory: pytest.TempPathFactory, table: dict[str, dict[str, float]]) -> None:
        folder = tmp_path_factory.mktemp("t")
        stream = io.BytesIO()
        trec.write_run(stream, {t: list(docs.items()) for t, docs in table.items()}, "tag")
        run = run_of(folder, stream.getvalue())
        assert {t: {d: s.score for d, s in docs.items()} for t, docs in run.topics.items()} == table
        rows = [row for row, _ in trec_rows.results_from(run, form="columnar")]
        for row in rows:
            ids, scores = row["fragment_ids"], row["scores"]
            narrowed = dict(zip(table[row["query_id"]], trec.narrow(list(table[row["query_id"]].values())), strict=True))
            assert ids == sorted(narrowed, key=lambda d: (narrowed[d], d.encode()), reverse=True)
            assert scores == sorted(scores, reverse=True)
            assert scores == [table[row["query_id"]][d] for d in ids] or scores == [narrowed[d] for d in ids]
        back = run_table(*(ranked(r["fragment_ids"], r["scores"], query_id=r["query_id"]) for r in rows))
        assert back.synthetic == ""
        assert {t: [d for d, _ in docs] for t, docs in back.topics.items()} == {r["query_id"]: r["fragment_ids"] for r in rows}

    @given(
        lists=st.dictionaries(
            TOPICS, st.lists(st.tuples(WORDS, SCORES), min_size=1, max_size=8, unique_by=lambda p: p[0]), min_size=1
        )
    )
    def test_any_list_order_survives_export(
        self, tmp_path_factory: pytest.TempPathFactory, lists: dict[str, list[tuple[str, float]]]
    ) -> None:
        table = run_table(*(ranked([d for d, _ in docs], [s for _, s in docs], query_id=t) for t, docs in lists.items()))
        stream = io.BytesIO()
        trec.write_run(stream, table.topics, "tag")
        run = run_of(tmp_path_factory.mktemp("t"), stream.getvalue())
        assert {t: trec.in_trec_order(docs)[0] for t, docs in run.topics.items()} == {
            t: [d for d, _ in docs] for t, docs in lists.items()
        }


class TestCommands:
    def test_import_qrels_writes_rows_and_tells_what_it_left_out(self, tmp_path: Path) -> None:
        qrels = write(tmp_path / "q", "1 0 a 1\n1 0 a 1\n1 0 b -1\n2 0 a 0\n")
        queries = write(tmp_path / "t.tsv", "1\tone\n2\ttwo\n")
        output = str(tmp_path / "j.jsonl")
        result = invoke(import_app, "--qrels", qrels, "--queries", queries, "--output", output)
        assert (result.exit_code, result.stdout) == (0, "")
        findings = Findings()
        (located,) = load_judgments([output], findings)
        assert (findings.n_errors, located.row.query, located.row.expected_sources) == (0, "one", ("a",))
        assert "no document of grade 1 or above: 2\n" in result.stderr
        for text in ("1 row from 2 topics", "left out (--keep-empty keeps them): 1", "grade below 0) left out: 1", "once: 1"):
            assert text in result.stderr

    def test_import_qrels_with_level_map_and_ordinals(self, tmp_path: Path) -> None:
        qrels = write(tmp_path / "q", "1 0 a 1\n1 0 b 3\n2 0 c 5\n")
        queries = write(tmp_path / "t.tsv", "001\tone\n004\ttwo\n")
        output = str(tmp_path / "j.jsonl")
        options = ["--query-ids", "ordinal", "--grade-map", "1=3,3=1,5=0", "--relevance-level", "2", "--keep-empty"]
        result = invoke(import_app, "--qrels", qrels, "--queries", queries, "--output", output, *options)
        assert result.exit_code == 0, result.exception
        one, two = rows_in(output)
        assert (one["query"], one["relevance"], one["nonrelevant_sources"]) == ("one", {"a": 3, "b": 1}, ["b"])
        assert (two["query"], two["should_match"]) == ("two", False)

    def test_import_run_makes_results_that_the_strict_reader_takes(self, tmp_path: Path) -> None:
        run = write(tmp_path / "r", f"1 Q0 a 1 {1 + 2**-24!r} t\n1 Q0 b 2 1.0 t\n1 Q0 c 3 0.5 t\n")
        output = str(tmp_path / "r.jsonl.zst")
        result = invoke(import_app, "--run", run, "--output", output, "--depth", "2")
        assert result.exit_code == 0, result.exception
        assert "beyond depth 2 left out: 1" in result.stderr
        assert "32-bit scores, since a tie there decides their order: 1" in result.stderr
        findings = Findings()
        (row,) = read_ranked(output, findings)
        assert (findings.n_errors, row.fragment_ids, row.scores) == (0, ["b", "a"], [1.0, 1.0])

    def test_dash_is_standard_input_and_output(self) -> None:
        result = invoke(import_app, "--run", "-", "--output", "-", "--form", "columnar", stdin=b"1 Q0 a 1 2 t\n")
        assert result.stdout == '{"query_id":"1","fragment_ids":["a"],"scores":[2.0]}\n'
        assert "-: 1 row from 1 result" in result.stderr

    def test_a_pipe_as_output_is_written_to_and_stays_a_pipe(self, tmp_path: Path) -> None:
        pipe, received = tmp_path / "pipe", list[bytes]()
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
        reader.start()
        run = write(tmp_path / "r", "1 Q0 a 1 2 t\n")
        result = invoke(import_app, "--run", run, "--output", str(pipe), "--form", "columnar")
        assert result.exit_code == 0, result.exception
        assert pipe.is_fifo()
        reader.join(timeout=10)
        assert received == [b'{"query_id":"1","fragment_ids":["a"],"scores":[2.0]}\n']

    def test_export_tells_what_qrels_lose(self, tmp_path: Path) -> None:
        lines = [
            judgment(query_id="1", relevance={"a": 1.0, "b": 1.0}, filters={"lang": "en"}).row,
            judgment(query_id="2", expected_sources=(), should_match=False).row,
        ]
        path = write(tmp_path / "j", "\n".join(json.dumps(trec_rows.judgment_line(row)) for row in lines))
        result = invoke(export_app, "--judgments", path, "--output", "-")
        assert "no relevance level tells the expected sources from the other graded ones" in result.stderr
        assert "expected-empty rows have no line: 1" in result.stderr
        assert "rows with filters, which qrels cannot carry: 1" in result.stderr

    def test_export_writes_qrels_and_runs(self, tmp_path: Path) -> None:
        judgments = write(
            tmp_path / "j.jsonl",
            b'{"query_id":"1","query":null,"expected_sources":["a"],"should_match":true,'
            b'"category":"imported","review_status":"reviewed","relevance":{"a":2,"b":1},"nonrelevant_sources":["b"]}\n',
        )
        result = invoke(export_app, "--judgments", judgments, "--output", "-")
        assert result.stdout == "1 0 a 2\n1 0 b 1\n"
        assert "2 judgments of 1 topic; evaluate with trec_eval -l 2" in result.stderr
        results = write(tmp_path / "r.jsonl", '{"query_id":"1","fragment_ids":["s::1","t::1","s::2"]}\n')
        result = invoke(export_app, "--ranked-results", results, "--output", "-", "--tag", "mine")
        assert result.stdout == "1 Q0 s::1 1 3.0 mine\n1 Q0 t::1 2 2.0 mine\n1 Q0 s::2 3 1.0 mine\n"
        assert 'scores are n, n-1, … 1, because query "1" has no scores' in result.stderr
        result = invoke(export_app, "--ranked-results", results, "--output", "-", "--unit", "source")
        assert result.stdout == "1 Q0 s 1 2.0 tripos\n1 Q0 t 2 1.0 tripos\n"

    def test_export_by_the_sources_of_the_corpus(self, tmp_path: Path) -> None:
        corpus = write(
            tmp_path / "f.jsonl",
            '{"fragment_id":"x","source_id":"s","text":"a"}\n{"fragment_id":"y","source_id":"s","text":"b"}\n',
        )
        results = write(tmp_path / "r.jsonl", '{"query_id":"1","fragment_ids":["y","x"],"scores":[2,1]}\n')
        result = invoke(export_app, "--ranked-results", results, "--output", "-", "--fragments", corpus)
        assert result.stdout == "1 Q0 s 1 2.0 tripos\n"
        bad = write(
            tmp_path / "b.jsonl", '{"query_id":"1","results":[{"fragment_id":"x","source_id":"t"},{"fragment_id":"w"}]}\n'
        )
        error = failed(invoke(export_app, "--ranked-results", bad, "--output", "-", "--fragments", corpus))
        assert isinstance(error, InputError)
        assert [f.message for f in error.findings] == ['is "t", but the fragments say "s"', '"w" is not in the fragments']

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ([], "exactly one of --qrels and --run"),
            (["--qrels", "q", "--run", "r"], "exactly one of --qrels and --run"),
            (["--qrels", "q", "--depth", "3"], "--depth: only for --run"),
            (["--run", "r", "--queries", "t", "--keep-empty"], "--queries, --keep-empty: only for --qrels"),
            (["--qrels", "q", "--query-ids", "ordinal"], "give them"),
        ],
    )
    def test_import_refuses_flags_that_do_not_go_together(self, options: list[str], message: str) -> None:
        error = failed(invoke(import_app, "--output", "-", *options))
        assert error.exit_code == ExitCode.USAGE
        assert message in str(error)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ([], "exactly one of --judgments and --ranked-results"),
            (["--judgments", "j", "--tag", "x"], "--tag: only for --ranked-results"),
            (["--ranked-results", "r", "--tag", "a b"], "holds white space"),
            (["--ranked-results", "r", "--tag", ""], "is empty"),
            (["--ranked-results", "r", "--unit", "fragment", "--fragments", "f"], "drop one of the two"),
        ],
    )
    def test_export_refuses_flags_that_do_not_go_together(self, options: list[str], message: str) -> None:
        error = failed(invoke(export_app, "--output", "-", *options))
        assert error.exit_code == ExitCode.USAGE
        assert message in str(error)

    def test_nothing_to_write_leaves_the_old_file(self, tmp_path: Path) -> None:
        old = write(tmp_path / "j.jsonl", "old")
        qrels = write(tmp_path / "q", "1 0 a 0\n")
        assert isinstance(failed(invoke(import_app, "--qrels", qrels, "--output", old)), NothingToEvaluate)
        empty = write(tmp_path / "r.jsonl", '{"query_id":"1","fragment_ids":[]}\n')
        assert isinstance(failed(invoke(export_app, "--ranked-results", empty, "--output", old)), NothingToEvaluate)
        assert Path(old).read_text() == "old"

    def test_many_empty_topics_are_cut_at_20(self, tmp_path: Path) -> None:
        qrels = write(tmp_path / "q", "".join(f"t{i} 0 a {int(i == 0)}\n" for i in range(30)))
        result = invoke(import_app, "--qrels", qrels, "--output", str(tmp_path / "j"))
        assert "t1, t2, " in result.stderr
        assert "t20 … and 9 more\n" in result.stderr


needs_trec_eval = pytest.mark.skipif(not TREC_EVAL.is_dir(), reason="the real data are not here")
needs_cranfield = pytest.mark.skipif(not CRANFIELD.is_dir(), reason="the real data are not here")


def read_both(qrels: str, run: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    with open(qrels) as q, open(run) as r:
        return pytrec_eval.parse_qrel(q), pytrec_eval.parse_run(r)


@needs_trec_eval
class TestTrecEvalFiles:
    def read(self, name: str) -> trec.Qrels:
        findings = Findings()
        qrels = trec.read_qrels(str(TREC_EVAL / name), findings)
        findings.raise_errors()
        return qrels

    def test_comments_change_nothing_but_the_id_that_holds_a_hash(self) -> None:
        plain, commented = grades(self.read("qrels.test")), grades(self.read("qrels.test.with-comments"))
        plain["301"]["CR#93E-1860"] = plain["301"].pop("CR93E-1860")
        assert commented == plain

    def test_ids_with_hashes_are_read_whole(self) -> None:
        qrels = self.read("qrels.comment.test")
        assert sum(map(len, qrels.topics.values())) == 5890
        assert qrels.topics["2024-127266"]["msmarco_v2.1_doc_00_880019750#4_1633802806"].grade == 1

    def test_judgments_of_several_groups_in_one_file_conflict(self) -> None:
        with pytest.raises(InputError, match="keep one") as error:
            self.read("qrels.123")
        assert error.value.total == 146

    def test_text_after_the_tag(self) -> None:
        findings = Findings()
        run = trec.read_run(str(TREC_EVAL / "results.trunc"), findings)
        assert (findings.n_errors, run.n_trailing, sum(map(len, run.topics.values()))) == (0, 5, 584)

    @pytest.mark.parametrize(("qrels", "run"), [("qrels.test", "results.test"), ("qrels.comment.test", "results.comment.test")])
    def test_what_was_imported_and_exported_measures_the_same(self, tmp_path: Path, qrels: str, run: str) -> None:
        paths = {kind: str(tmp_path / kind) for kind in ("judgments", "results", "qrels", "run", "synthetic")}
        assert invoke(import_app, "--qrels", str(TREC_EVAL / qrels), "--output", paths["judgments"]).exit_code == 0
        assert invoke(import_app, "--run", str(TREC_EVAL / run), "--output", paths["results"]).exit_code == 0
        assert invoke(export_app, "--judgments", paths["judgments"], "--output", paths["qrels"]).exit_code == 0
        assert invoke(export_app, "--ranked-results", paths["results"], "--output", paths["run"]).exit_code == 0
        bare = [
            json.dumps({"query_id": r["query_id"], "fragment_ids": [i["fragment_id"] for i in r["results"]]})
            for r in rows_in(paths["results"])
        ]
        write(tmp_path / "bare", "\n".join(bare))
        assert invoke(export_app, "--ranked-results", str(tmp_path / "bare"), "--output", paths["synthetic"]).exit_code == 0
        wanted_qrels, wanted_run = read_both(str(TREC_EVAL / qrels), str(TREC_EVAL / run))
        wanted = pytrec_eval.RelevanceEvaluator(wanted_qrels, pytrec_eval.supported_measures).evaluate(wanted_run)
        for name in ("run", "synthetic"):
            now_qrels, now_run = read_both(paths["qrels"], paths[name])
            now = pytrec_eval.RelevanceEvaluator(now_qrels, pytrec_eval.supported_measures).evaluate(now_run)
            assert now == {topic: wanted[topic] for topic in now}
            assert set(wanted) - set(now) == {t for t in wanted if max(wanted_qrels[t].values()) < 1}


@needs_cranfield
class TestCranfield:
    def test_ordinals_are_told_and_a_reversed_scale_is_mapped(self, tmp_path: Path) -> None:
        records = (CRANFIELD / "cran.qry").read_text().split(".I ")[1:]
        lines = ["\t".join((head.strip(), " ".join(text.split()))) for head, text in (r.split("\n.W\n") for r in records)]
        queries, output = write(tmp_path / "t.tsv", "\n".join(lines)), str(tmp_path / "j.jsonl")
        arguments = ["--qrels", str(CRANFIELD / "cranqrel"), "--queries", queries, "--output", output]
        error = failed(invoke(import_app, *arguments))
        assert "--query-ids ordinal" in str(error)
        assert "leading zeros" in str(error)
        result = invoke(import_app, *arguments, "--query-ids", "ordinal", "--grade-map", "1=4,2=3,3=2,4=1,5=0")
        assert result.exit_code == 0, result.exception
        rows = list(read_rows(output, RetrievalJudgment, Findings()))
        assert len(rows) == 225
        assert rows[2][1].query == "what problems of heat conduction in composite slabs have been solved so far ."
        assert rows[0][1].relevance is not None
        assert rows[0][1].relevance["184"] == 3
