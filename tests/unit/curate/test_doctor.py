"""doctor: what files are, what is wrong with them, and that every line it prints really accepts or mends them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer import Exit
from typer.testing import CliRunner

from tripos.cli.app import app
from tripos.cli.linting import doctor as command
from tripos.curate.diagnosis import Diagnosis, DoctorReport
from tripos.curate.doctor import diagnose
from tripos.curate.idspaces import why_apart
from tripos.curate.lint import lint
from tripos.curate.recognise import Container, Form, recognise
from tripos.errors import Findings, InputError, UsageError
from tripos.files.retrieval import load_corpus, load_judgments

ROOT = Path(__file__).parents[3]
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
SUPPORT_KB = ROOT / "golden" / "support-kb"

needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="no jq")
needs_cranfield = pytest.mark.skipif(not CRANFIELD.is_dir(), reason="no ../shared/data/cranfield")


def row(query_id: str = "q1", *expected: str, **fields: Any) -> dict[str, Any]:
    plain = {
        "query_id": query_id,
        "query": f"What of {query_id}?",
        "expected_sources": list(expected),
        "should_match": bool(expected),
        "category": "single_hop_factual" if expected else "negative",
        "review_status": "reviewed",
    }
    return {**plain, **fields}


def fragments(*names: str) -> list[dict[str, str]]:
    return [{"fragment_id": name, "text": f"text of {name}"} for name in names]


class Folder:
    """Files of one test, and the shell in which printed lines are run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self, name: str, text: str) -> str:
        target = self.path / name
        target.write_text(text)
        return str(target)

    def rows(self, name: str, rows: Iterable[Any]) -> str:
        return self.text(name, "".join(json.dumps(r) + "\n" for r in rows))

    def run(self, line: str) -> None:
        """Run a printed line: its tripos commands in this process, the rest in a shell."""
        for part in line.split(" && "):
            words = shlex.split(part)
            if words[0] == "tripos":
                result = CliRunner().invoke(app, words[1:])
                assert result.exit_code == 0, result.output
            else:
                subprocess.run(["bash", "-o", "pipefail", "-c", part], cwd=self.path, check=True)

    def read(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.path / name).read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def kinds(report: DoctorReport) -> dict[str, Diagnosis]:
    return {d.kind: d for d in report.diagnoses}


# ---- recognising


@pytest.mark.parametrize(
    ("text", "form", "container"),
    [
        (json.dumps(row("q1", "a")), Form.JUDGMENTS, Container.JSONL),
        (json.dumps(fragments("a")[0]), Form.FRAGMENTS, Container.JSONL),
        ('{"query_id": "q", "fragment_ids": []}', Form.RANKED, Container.JSONL),
        ('{"query_id": "q", "fragment_id": "a", "rank": 1}', Form.RANKED, Container.JSONL),
        ('{"query_id": "q", "results": []}\n{"query_id": "r", "results": []}', Form.RANKED, Container.JSONL),
        ('[{"id": 1, "question": "x", "gold": "a"}]', Form.GOLDENS, Container.ARRAY),
        ('{"goldens": [{"id": 1, "question": "x", "refs": ["a"]}]}', Form.GOLDENS, Container.OBJECT),
        ('{\n"q1": {"question": "x", "refs": ["a"]},\n"q2": {"question": "y", "refs": []}}', Form.GOLDENS, Container.MAPPING),
        ("id,question,gold\n1,x,a\n2,y,b\n", Form.GOLDENS, Container.CSV),
        ("id;question;gold\n1;x;a\n2;y;b\n", Form.GOLDENS, Container.CSV),
        ("1 0 a 1\n1 0  b   0\n# a comment\n2\t0\tc\t-1\n", Form.QRELS, Container.COLUMNS),
        ("query-id\tcorpus-id\tscore\nq1\ta\t1\n", Form.BEIR_QRELS, Container.COLUMNS),
        ("1 Q0 a 1 2.5 tag\n", Form.RUN, Container.COLUMNS),
        ("1\twhat of it\n2\tand that\n", Form.TOPICS, Container.COLUMNS),
        ('{"_id": "1", "text": "what of it"}', Form.TOPICS, Container.JSONL),
        ('{"_id": "1", "title": "t", "text": "x"}', Form.PASSAGES, Container.JSONL),
        ('{"qid": "1", "hits": ["a"]}', Form.RESULTS, Container.JSONL),
        ('{"query_id": "q", "answer": "x", "cited_fragment_ids": []}', Form.GENERATION, Container.JSONL),
        ('{"query_id": "q", "expected_collections": [], "expected_sources": {}}', Form.CORPUS, Container.JSONL),
        ('{\n"contract": "tripos/retrieval-report@1"\n}', Form.REPORT, Container.OBJECT),
        (".I 001\n.W\nwhat of it\n", Form.SMART, Container.OTHER),
        ("", Form.EMPTY, Container.OTHER),
        ("PAR1xx", Form.OTHER, Container.OTHER),
        ("some prose, that is all\nand more of it\n", Form.OTHER, Container.OTHER),
        ("[1, 2", Form.OTHER, Container.OTHER),
    ],
)
def test_files_are_recognised_by_content(folder: Folder, text: str, form: Form, container: Container) -> None:
    look = recognise(folder.text("anything.dat", text))
    assert (look.form, look.container) == (form, container)


def test_one_faulty_line_does_not_hide_what_a_file_is(folder: Folder) -> None:
    assert recognise(folder.text("q", "1 0 a 1\n" * 9 + "1 0 a\n")).form is Form.QRELS


def test_bytes_that_are_no_text(folder: Folder) -> None:
    (folder.path / "x").write_bytes(b"caf\xe9\n")
    assert "UTF-8" in kinds(diagnose([str(folder.path / "x")]))["unknown_form"].message


def test_files_that_are_not_there_and_standard_input(folder: Folder) -> None:
    with pytest.raises(InputError, match="no such file"):
        diagnose([str(folder.path / "none")])
    with pytest.raises(InputError, match="directory"):
        diagnose([str(folder.path)])
    with pytest.raises(UsageError, match="standard input"):
        diagnose(["-"])


# ---- golden rows


GOLDENS = {
    "version": 2,
    "cases": [
        {"id": 1, "question": "Rotate a token?", "gold": "doc-4", "type": "structural", "answerable": "yes", "owner": None},
        {"id": 2, "question": "Where are invoices?", "gold": "doc-5", "type": "structural", "answerable": "yes", "owner": None},
        {"id": 2, "question": "Where are invoices?", "gold": "doc-6", "type": "structural", "answerable": "yes", "owner": None},
        {"id": 3, "question": "And the rest?", "gold": "", "type": "negative", "answerable": "no", "owner": None},
    ],
}


def test_every_fault_of_foreign_goldens_is_told(folder: Folder) -> None:
    report = diagnose([folder.text("cases.json", json.dumps(GOLDENS))])
    found = kinds(report)
    assert set(found) == {
        "container", "repeated_id", "integer_ids", "scalar_list", "never_filled", "foreign_boolean", "unknown_fields",
        "foreign_names", "missing_fields",
    }  # fmt: skip
    assert "in 4 of 4 rows" in found["integer_ids"].message
    assert found["integer_ids"].field == "id"
    assert 'write ["doc-4"]' in found["scalar_list"].message
    assert found["never_filled"].message.startswith("empty in 4 of 4 rows")
    assert (found["never_filled"].field, found["never_filled"].severity) == ("owner", "warning")
    assert "gold → expected_sources, answerable → should_match" in found["foreign_names"].message
    assert report.errors == 8


@needs_jq
def test_the_line_for_all_at_once_makes_judgments_that_are_read(folder: Folder) -> None:
    report = diagnose([folder.text("my cases.json", json.dumps(GOLDENS))])
    folder.run(report.next[0])
    findings = Findings()
    rows = [j.row for j in load_judgments([str(folder.path / "my cases.mended.jsonl")], findings)]
    assert findings.kept == []
    assert [(r.query_id, r.expected_sources, r.should_match, r.review_status) for r in rows] == [
        ("1", ("doc-4",), True, "draft"),
        ("2", ("doc-5", "doc-6"), True, "draft"),
        ("3", (), False, "draft"),
    ]
    assert rows[0].metadata == {"owner": None}


@needs_jq
@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("integer_ids", {"query_id": 7}, {"query_id": "7"}),
        ("integer_ids", {"expected_sources": [4, "b"]}, {"expected_sources": ["4", "b"]}),
        ("scalar_list", {"expected_sources": "a"}, {"expected_sources": ["a"]}),
        ("scalar_list", {"expected_sources": "a; b"}, {"expected_sources": ["a", "b"]}),
        ("scalar_list", {"expected_sources": None}, {"expected_sources": []}),
        ("graded_sources", {"expected_sources": {"a": 2, "b": 0}}, {"expected_sources": ["a"], "relevance": {"a": 2}}),
        ("objects_for_ids", {"expected_sources": [{"doc_id": "a"}, "b"]}, {"expected_sources": ["a", "b"]}),
        ("foreign_boolean", {"should_match": "Yes"}, {"should_match": True}),
        ("foreign_boolean", {"should_match": 0}, {"should_match": False}),
        ("foreign_status", {"review_status": "Approved"}, {"review_status": "reviewed"}),
        ("foreign_status", {"review_status": "open"}, {"review_status": "draft"}),
        ("empty_positive", {"expected_sources": []}, {"expected_sources": [], "should_match": False}),
        ("unknown_fields", {"owner": "me", "my-own": 1}, {"metadata": {"owner": "me", "my-own": 1}}),
    ],
)
def test_each_line_mends_its_own_fault(folder: Folder, kind: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    sound = row("q0", "z")
    path = folder.rows("j.jsonl", [sound, row("q1", "z") | before])
    found = kinds(diagnose([path]))[kind]
    assert (found.severity, found.line) == ("error", 2 if kind != "unknown_fields" else 0)
    folder.run(found.fix)
    mended = folder.read("j.mended.jsonl")
    assert {key: mended[1][key] for key in after} == after
    assert {key: value for key, value in mended[0].items() if key != "metadata"} == sound
    assert kind not in kinds(diagnose([str(folder.path / "j.mended.jsonl")]))


@needs_jq
@pytest.mark.parametrize("as_array", [True, False])
def test_rows_without_an_id_are_numbered(folder: Folder, as_array: bool) -> None:
    rows = [{"question": f"What of {n}?", "refs": ["a"]} for n in range(3)]
    path = folder.text("g.json", json.dumps(rows) if as_array else "\n".join(map(json.dumps, rows)) + "\n")
    report = diagnose([path])
    assert kinds(report)["no_id"].field == "query_id"
    folder.run(report.next[0])
    assert [r["query_id"] for r in folder.read("g.mended.jsonl")] == ["q-1", "q-2", "q-3"]


@needs_jq
def test_csv_goes_all_the_way(folder: Folder) -> None:
    report = diagnose([folder.text("g.csv", 'id,question,gold,answerable\n007,"What, then?",a|b,true\n8,Nothing?,,false\n')])
    folder.run(report.next[0])
    rows = folder.read("g.mended.jsonl")
    assert [(r["query_id"], r["query"], r["expected_sources"], r["should_match"]) for r in rows] == [
        ("007", "What, then?", ["a", "b"], True),
        ("8", "Nothing?", [], False),
    ]


def test_an_empty_gold_column(folder: Folder) -> None:
    rows = [{"id": str(n), "question": "x?", "gold": []} for n in range(20)]
    found = kinds(diagnose([folder.rows("g.jsonl", rows)]))["never_filled"]
    assert (found.severity, found.field) == ("error", "gold")
    assert found.message.startswith("empty in 20 of 20 rows")


def test_placeholders_quotes_for_ids_and_repeated_ids_need_a_person(folder: Folder) -> None:
    quote = "Tokens are rotated every month by the person who made them."
    rows = [
        {"id": "1", "question": "TODO", "gold": [quote]},
        {"id": "2", "question": "A?", "gold": [quote]},
        {"id": "2", "question": "B?", "gold": [quote]},
    ]
    found = kinds(diagnose([folder.rows("g.jsonl", rows)]))
    assert (found["placeholder"].line, found["placeholder"].fix) == (1, "")
    assert "expected_evidence" in found["prose_for_ids"].message
    assert "with different queries" in found["repeated_id"].message
    assert found["repeated_id"].fix == ""


def test_goldens_that_name_no_source(folder: Folder) -> None:
    found = kinds(diagnose([folder.text("g.json", '[{"input": "x", "expected_output": "y", "context": ["z"]}]')]))
    assert "input, expected_output, context" in found["no_gold"].message


def test_contract_faults_beyond_names_are_told_once_each(folder: Folder) -> None:
    rows = [row("q1", "a", k=0), row("q2", "a", k=-1), row("q3", "a", category="multi_hop")]
    report = diagnose([folder.rows("j.jsonl", rows)])
    assert [(d.kind, d.line, d.field) for d in report.diagnoses] == [
        ("greater_than_equal", 1, "k"),
        ("category", 3, "category"),
    ]
    assert report.diagnoses[0].message.endswith("(and 1 more such)")


@needs_jq
def test_a_slip_in_a_name_is_renamed_and_not_put_aside(folder: Folder) -> None:
    slip = {("expected_source" if k == "expected_sources" else k): v for k, v in row("q1", "a").items()}
    report = diagnose([folder.rows("j.jsonl", [slip, row("q2", "a"), row("q3", "b")])])
    found = kinds(report)["extra_forbidden"]
    assert (found.line, found.field) == (1, "expected_source")
    assert "did you mean expected_sources" in found.message
    folder.run(found.fix)
    assert folder.read("j.mended.jsonl")[0] == row("q1", "a")
    assert folder.read("j.mended.jsonl")[1] == row("q2", "a")


@needs_jq
def test_fields_that_some_rows_lack_are_filled_in(folder: Folder) -> None:
    rows = [row("q1", "a"), {k: v for k, v in row("q2", "a").items() if k != "category"}]
    found = kinds(diagnose([folder.rows("j.jsonl", rows)]))["missing"]
    assert (found.line, found.field) == (2, "category")
    folder.run(found.fix)
    assert [r["category"] for r in folder.read("j.mended.jsonl")] == ["single_hop_factual", "imported"]


def test_contradictions_of_other_fields_are_not_hidden(folder: Folder) -> None:
    rows = [row("q1", "a", forbidden_sources=["a"]), row("q2", "a", should_match=False)]
    report = diagnose([folder.rows("j.jsonl", rows)])
    assert [(d.kind, d.line, d.field) for d in report.diagnoses] == [
        ("contradiction", 1, "forbidden_sources"),
        ("contradiction", 2, "should_match"),
    ]


def test_numbers_in_fields_that_hold_no_id_are_told_by_the_contract(folder: Folder) -> None:
    report = diagnose([folder.rows("f.jsonl", [{"fragment_id": 1, "text": "x", "collection": 2}])])
    assert [(d.kind, d.field) for d in report.diagnoses] == [("integer_ids", "fragment_id"), ("string_type", "collection")]


# ---- between files


@needs_jq
@pytest.mark.parametrize(
    ("expected", "corpus", "kind"),
    [
        (["a::f001", "b::f2"], ["a::f001", "b::f2"], "fragment ids stand where source ids belong"),
        (["001", "002"], ["1", "2"], "leading zeros differ"),
        (["1", "2"], ["001", "002"], "leading zeros differ"),
        (["Doc-A", "Doc-B"], ["doc-a", "doc-b"], "upper and lower case differ"),
        ([" a", "b "], ["a", "b"], "white space stands around ids"),
        (["kb/a", "kb/b"], ["a", "b"], "a prefix differs"),
        (["a", "b"], ["a.md", "b.md"], "a suffix differs"),
    ],
)
def test_sources_that_do_not_meet_the_corpus(folder: Folder, expected: list[str], corpus: list[str], kind: str) -> None:
    judgments = folder.rows("j.jsonl", [row(f"q{n}", name) for n, name in enumerate(expected)])
    passages = folder.rows("f.jsonl", fragments(*corpus))
    found = kinds(diagnose([judgments, passages]))["ids_do_not_meet"]
    assert (found.severity, found.file, found.field) == ("error", judgments, "expected_sources")
    assert found.message.startswith(f'2 of 2 expected sources ("{expected[0]}" first) have no fragment: {kind}')
    folder.run(found.fix)
    assert lint([str(folder.path / "j.mended.jsonl")], [passages]).errors == 0


@needs_jq
def test_fragment_ids_are_kept_as_finer_evidence_where_the_corpus_has_them(folder: Folder) -> None:
    judgments = folder.rows("j.jsonl", [row("q1", "a::1", "a::2", relevance={"a::1": 1, "a::2": 1})])
    found = kinds(diagnose([judgments, folder.rows("f.jsonl", fragments("a::1", "a::2"))]))["ids_do_not_meet"]
    folder.run(found.fix)
    (mended,) = folder.read("j.mended.jsonl")
    assert mended["expected_sources"] == ["a"]
    assert mended["expected_fragments"] == ["a::1", "a::2"]
    assert mended["relevance"] == {"a": 1}


def test_sources_without_an_explanation_are_accepted_leniently(folder: Folder) -> None:
    judgments = folder.rows("j.jsonl", [row("q1", "alpha"), row("q2", "gamma-7")])
    passages = folder.rows("f.jsonl", fragments("alpha", "beta"))
    found = kinds(diagnose([judgments, passages]))["ids_do_not_meet"]
    assert found.message == '1 of 2 expected sources ("gamma-7" first) have no fragment'
    assert found.fix.startswith(f"tripos eval-retrieval --fragments {passages} --judgments {judgments} ")
    assert found.fix.endswith("--lenient")


@needs_jq
def test_results_that_meet_neither_queries_nor_fragments(folder: Folder) -> None:
    judgments = folder.rows("j.jsonl", [row("q-1", "a"), row("q-2", "b")])
    passages = folder.rows("f.jsonl", fragments("a::1", "b::1"))
    nested = [{"query_id": f"{n}", "results": [{"fragment_id": f"x/{name}::1"}]} for n, name in ((1, "a"), (2, "b"))]
    results = folder.rows("r.jsonl", nested)
    queries, names = [d for d in diagnose([judgments, passages, results]).diagnoses if d.kind == "ids_do_not_meet"]
    assert (queries.field, names.field) == ("query_id", "fragment_id")
    folder.run(queries.fix)
    folder.run(
        names.fix.replace(results, str(folder.path / "r.mended.jsonl")).replace("mended.jsonl >", "mended.jsonl | cat >")
    )
    assert 'a prefix differs ("1" here, "q-1" there)' in queries.message
    assert 'a prefix differs ("x/a::1" here, "a::1" there)' in names.message


def test_judged_queries_without_results_are_a_warning(folder: Folder) -> None:
    paths = [
        folder.rows("j.jsonl", [row("q1", "a"), row("q2", "b")]),
        folder.rows("r.jsonl", [{"query_id": "q1", "fragment_ids": []}]),
    ]
    report = diagnose(paths)
    assert [(d.kind, d.severity) for d in report.diagnoses] == [("missing_result", "warning")]


def test_order_and_duplicates_name_the_flags_that_decide(folder: Folder) -> None:
    ranked = [
        {"query_id": "q1", "fragment_ids": ["a", "b"], "scores": [1, 2]},
        {"query_id": "q2", "fragment_ids": ["a", "a"]},
    ]
    found = kinds(diagnose([folder.rows("r.jsonl", ranked)]))
    assert found["order"].fix.endswith("--order score")
    assert found["duplicate_result"].fix.endswith("--duplicates keep-first")


@pytest.mark.parametrize(
    ("here", "there", "kind"),
    [
        (["1", "2", "3"], ["001", "002", "004"], "ordinals"),
        (["1", "2", "3"], ["001", "002", "003"], "leading_zeros"),
        (["q001"], ["q1"], "leading_zeros"),
        (["x", "y"], ["a", "b"], None),
        ([], ["a"], None),
        (["a"], ["a", "b"], None),
        (["a", "b", "c", "d", "e"], ["A", "q", "r"], None),  # one in five explains nothing
    ],
)
def test_why_ids_do_not_meet(here: list[str], there: list[str], kind: str | None) -> None:
    reason = why_apart(here, there)
    assert (reason.kind if reason else None) == kind


def test_names_that_would_become_one_are_not_called_the_same() -> None:
    assert why_apart(["A", "a"], ["á", "Á"]) is None
    assert why_apart(["01", "001"], ["1"]) is None


# ---- other forms


@needs_jq
def test_passages_and_results_of_other_projects(folder: Folder) -> None:
    passages = folder.rows("c.jsonl", [{"_id": 4, "title": "T", "text": "x", "lang": "en", "tags": ["a"], "metadata": {}}])
    results = folder.rows("h.jsonl", [{"qid": 1, "hits": [{"doc_id": 4, "score": 0.5}]}])
    for diagnosis in diagnose([passages, results]).diagnoses:
        folder.run(diagnosis.fix)
    assert folder.read("c.mended.jsonl") == [{"fragment_id": "4", "text": "x", "title": "T", "metadata": {"lang": "en"}}]
    assert folder.read("h.mended.jsonl") == [{"query_id": "1", "results": [{"fragment_id": "4", "score": 0.5}]}]
    findings = Findings()
    load_corpus([str(folder.path / "c.mended.jsonl")], None, findings)
    assert findings.kept == []


def test_beir_qrels_become_trec_qrels(folder: Folder) -> None:
    path = folder.text("test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t2\n")
    folder.run(kinds(diagnose([path]))["columns"].fix)
    made = folder.path / "test.mended.qrels"
    assert made.read_text() == "q1 0 a 1\nq2 0 b 2\n"
    assert recognise(str(made)).form is Form.QRELS


def test_a_header_among_topics_is_cut_off(folder: Folder) -> None:
    path = folder.text("t.tsv", "qid\ttext of it\n1\tx\n")
    folder.run(kinds(diagnose([path]))["header"].fix)
    assert (folder.path / "t.mended.jsonl").read_text() == "1\tx\n"


def test_a_grade_that_stands_alone(folder: Folder) -> None:
    path = folder.text("q", "".join(f"1 0 d{n} {n % 2}\n" for n in range(50)) + "1 0 x 3\n")
    found = kinds(diagnose([path]))["odd_grade"]
    assert (found.line, found.message) == (51, "grade 3 stands 1 time, and all others are 0, 1: a slip?")


def test_qrels_without_a_zero_get_the_map_that_would_turn_them(folder: Folder) -> None:
    report = diagnose([folder.text("q", "1 0 a 1\n1 0 b 2\n1 0 c 3\n")])
    found = kinds(report)["no_zero_grade"]
    assert (found.severity, report.errors) == ("warning", 0)
    folder.run(found.fix)
    (made,) = folder.read("q.judgments.jsonl")
    assert made["relevance"] == {"a": 2, "b": 1}
    assert made["nonrelevant_sources"] == ["c"]


@pytest.mark.parametrize("text", ["1 0 a 0\n1 0 b 1\n1 0 c 2\n", "1 0 a 1\n1 0 b 2\n"])
def test_qrels_with_a_zero_or_two_grades_are_silent(folder: Folder, text: str) -> None:
    report = diagnose([folder.text("q", text)])
    assert report.diagnoses == ()
    folder.run(report.next[0])
    assert folder.read("q.judgments.jsonl")


def test_a_run_is_imported_next(folder: Folder) -> None:
    report = diagnose([folder.text("run", "1 Q0 a 1 2.5 tag\n1 Q0 b 2 1.5 tag\n")])
    assert report.diagnoses == ()
    folder.run(report.next[0])
    assert recognise(str(folder.path / "run.ranked.jsonl")).form is Form.RANKED


def test_files_of_other_layers_are_not_examined_and_stop_nothing(folder: Folder) -> None:
    report = diagnose([folder.rows("a.jsonl", [{"query_id": "q", "answer": "", "cited_fragment_ids": []}])])
    assert [(d.kind, d.severity) for d in report.diagnoses] == [("not_examined", "warning")]


# ---- on real data


def test_support_kb_is_well_and_is_evaluated_next() -> None:
    paths = [str(SUPPORT_KB / name) for name in ("fragments.jsonl", "retrieval_golden_single.jsonl")]
    report = diagnose(paths)
    assert report.diagnoses == ()
    assert report.next == (f"tripos lint --judgments {paths[1]} --fragments {paths[0]}",)


@pytest.fixture
def cranfield(folder: Folder) -> tuple[str, str]:
    """The qrels as published, and the corpus as doctor's own line makes it."""
    if not CRANFIELD.is_dir() or not shutil.which("jq"):
        pytest.skip("no ../shared/data/cranfield, or no jq")
    for name in ("cran.all.1400", "cran.qry", "cranqrel"):
        shutil.copy(CRANFIELD / name, folder.path)
    for name in ("cran.all.1400", "cran.qry"):
        folder.run(kinds(diagnose([str(folder.path / name)]))["smart"].fix)
    return str(folder.path / "cranqrel"), str(folder.path / "cran.all.mended.jsonl")


def test_smart_files_become_fragments_and_texts(folder: Folder, cranfield: tuple[str, str]) -> None:
    assert len(folder.read("cran.all.mended.jsonl")) == 1400
    texts = (folder.path / "cran.mended.tsv").read_text().splitlines()
    assert len(texts) == 225
    assert texts[2].startswith("004\twhat problems of heat conduction in composite slabs")


def test_cranfield_as_published_needs_ordinals_and_its_scale_turned(folder: Folder, cranfield: tuple[str, str]) -> None:
    report = diagnose([*cranfield, str(folder.path / "cran.mended.tsv")])
    found = kinds(report)
    assert "131 of 225 topics" in found["ids_do_not_meet"].message
    assert "1 to N" in found["ids_do_not_meet"].message
    assert "--query-ids ordinal" in found["ids_do_not_meet"].fix
    assert found["reversed_scale"].fix.endswith(
        f"--query-ids ordinal --grade-map 1=4,2=3,3=2,4=1,5=0 --output {folder.path}/cranqrel.judgments.jsonl"
    )
    folder.run(found["reversed_scale"].fix)
    read_right = lint([str(folder.path / "cranqrel.judgments.jsonl")], [cranfield[1]])
    assert (read_right.errors, read_right.by_kind["warning"]) == (0, {"empty_text": 2})
    assert read_right.rows.scored == 225


def test_cranfield_joined_by_equal_numbers_is_told_by_its_words(folder: Folder, cranfield: tuple[str, str]) -> None:
    """All topics have a text here, which only the words can tell is another's."""
    lines = (folder.path / "cran.mended.tsv").read_text().splitlines()
    texts = {int(line.split("\t")[0]): line.split("\t")[1] for line in lines}
    padded = [f"{n}\t{texts.get(n, 'nothing of the kind')}" for n in range(1, 366)]
    found = kinds(diagnose([*cranfield, folder.text("t.tsv", "\n".join(padded) + "\n")]))
    assert "ids_do_not_meet" not in found
    assert found["unrelated_sources"].severity == "warning"
    assert "--query-ids ordinal" in found["unrelated_sources"].fix


# ---- the command


def test_the_command_prints_files_faults_lines_and_a_verdict(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder.text("g.json", '[{"id": "1", "question": "x?", "gold": ["a"]}]')
    with pytest.raises(Exit) as stopped:
        command([path])
    assert stopped.value.exit_code == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}  is golden rows with other names in a JSON array, 1 row"
    assert f"{path}  a JSON array, not JSONL: write one object a line" in lines
    assert f"    jq -c '.[]' {path} > {folder.path}/g.mended.jsonl" in lines
    assert lines[-1] == "3 kinds of fault would be refused, 0 warnings"


def test_the_command_passes_where_nothing_would_be_refused(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    command([folder.rows("j.jsonl", [row("q1", "a")])])
    assert capsys.readouterr().out.splitlines()[-1] == "nothing would be refused, 0 warnings"


def test_the_command_prints_one_json_document(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exit):
        command([folder.text("x", "")], json_=True)
    report = DoctorReport.model_validate_json(capsys.readouterr().out)
    assert (report.files[0].form, report.errors) == ("nothing", 1)


def test_every_tripos_line_names_a_command_that_exists(folder: Folder) -> None:
    paths = [
        folder.text("q", "1 0 a 1\n1 0 b 2\n1 0 c 3\n"),
        folder.text("run", "2 Q0 a 1 2.5 tag\n"),
        folder.rows("j.jsonl", [row("q1", "zz", mine=1)]),
        folder.rows("f.jsonl", fragments("a")),
        folder.rows("r.jsonl", [{"query_id": "q1", "fragment_ids": ["a", "a"]}]),
    ]
    report = diagnose(paths)
    lines = [*report.next, *(d.fix for d in report.diagnoses)]
    named = {match[1] for line in lines for match in re.finditer(r"\btripos ([a-z-]+)", line)}
    assert {"import", "eval-retrieval"} <= named <= {"import", "eval-retrieval", "lint"}
