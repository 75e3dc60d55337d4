"""lint: every fault of judgments, corpus and results, counted by kind, and what is no fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer import Exit

from tripos.cli.linting import lint as command
from tripos.curate.lint import LintReport, lint
from tripos.curate.lint_results import LintOptions
from tripos.errors import InputError, UsageError

ROOT = Path(__file__).parents[3]
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
SUPPORT_KB = ROOT / "golden" / "support-kb"

FRAGMENTS = [
    {"fragment_id": "doc-1::f1", "text": "Tokens rotate monthly.", "acl": ["staff"]},
    {"fragment_id": "doc-2::f1", "text": "Invoices are yearly.", "acl": ["staff", "guests"], "metadata": {"version": 3}},
]


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


class Folder:
    """Files of one test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, rows: Iterable[Any]) -> str:
        target = self.path / name
        target.write_text("".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in rows))
        return str(target)

    def lint(self, rows: Iterable[Any], results: Iterable[Any] | None = None, **options: Any) -> LintReport:
        ranked = self.write("r.jsonl", results) if results is not None else None
        corpus = [self.write("f.jsonl", FRAGMENTS)]
        return lint([self.write("j.jsonl", rows)], corpus, ranked_results=ranked, options=LintOptions(**options))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def told(report: LintReport) -> list[tuple[str, str, int, str]]:
    return [(f.severity, f.kind, f.line, f.field) for f in report.findings]


# ---- judgments


def test_sound_files_have_no_finding_and_are_counted(folder: Folder) -> None:
    rows = [
        row("q1", "doc-1", split="tune", principal={"groups": ["staff"]}),
        row("q2", "doc-2", split="holdout", review_status="draft"),
        row("q3", category="calibration"),
        row("q4", "doc-9", review_status="rejected"),
    ]
    report = folder.lint(rows)
    assert (report.errors, report.warnings, report.findings) == (0, 0, ())
    assert report.rows.total == 4
    assert report.rows.by_review_status == {"draft": 1, "rejected": 1, "reviewed": 2}
    assert report.rows.by_category == {"calibration": 1, "single_hop_factual": 2}
    assert report.rows.by_split == {"holdout": 1, "none": 1, "tune": 1}
    assert report.rows.by_should_match == {"false": 1, "true": 2}
    assert (report.rows.scored, report.rows.filled) == (1, {"principal": 1, "split": 2})
    assert report.corpus is not None
    assert (report.corpus.fragments, report.corpus.sources, report.corpus.without_acl) == (2, 2, 0)


def test_findings_of_every_check_come_at_once_errors_first(folder: Folder) -> None:
    rows = [
        row("q1", "doc-1", query="Same?"),
        "{",
        row("q1", "doc-1"),
        row("q3", "doc-3"),
        row("q4", "doc-1", k=51),
        row("q5", "doc-2", query="Same?"),
        row("TODO", "doc-2", query="Other?"),
        row("q7", "doc-2", filters={"version": 2}),
        row("q8", "doc-2", expected_source=["x"]),
    ]
    report = folder.lint(rows)
    assert told(report) == [
        ("error", "syntax", 2, ""),
        ("error", "duplicate_id", 3, "query_id"),
        ("error", "unknown_source", 4, "expected_sources"),
        ("error", "depth", 5, "k"),
        ("error", "placeholder", 7, "query_id"),
        ("error", "not_admitted", 8, "expected_sources"),
        ("error", "extra_forbidden", 9, "expected_source"),
        ("warning", "contradictory_twin", 6, "query"),
    ]
    assert (report.errors, report.warnings) == (7, 1)
    assert report.by_kind["warning"] == {"contradictory_twin": 1}
    assert report.by_kind["error"]["unknown_source"] == 1
    line = str(report.findings[2])
    assert (
        line == f'{folder.path}/j.jsonl:4  expected_sources  "doc-3" is in no fragment (did you mean "doc-2"?)'
        or "doc-1" in line
    )


def test_drafts_are_checked_and_rejected_rows_are_not(folder: Folder) -> None:
    report = folder.lint([row("q1", "doc-9", review_status="draft"), row("q2", "doc-9", review_status="rejected")])
    assert told(report) == [("error", "unknown_source", 1, "expected_sources")]


def test_one_id_in_two_files_is_an_error_that_names_both(folder: Folder) -> None:
    paths = [folder.write("a.jsonl", [row("q1", "doc-1")]), folder.write("b.jsonl", [row("q1", "doc-1", query="Other?")])]
    report = lint(paths, [])
    assert [(f.kind, f.file) for f in report.findings] == [("duplicate_id", paths[1])]
    assert f"{paths[0]}:1" in report.findings[0].message


def test_a_limit_given_decides_depths(folder: Folder) -> None:
    rows = [row("q1", "doc-1", k=51)]
    assert folder.lint(rows, limit=51).errors == 0
    assert folder.lint(rows, limit=50).errors == 1


def test_what_is_let_pass_is_counted(folder: Folder) -> None:
    rows = [row("q1", "doc-9", mine=1)]
    assert told(folder.lint(rows)) == [("error", "extra_forbidden", 1, "mine")]
    assert folder.lint(rows, lenient=True).let_pass == {"unknown_fields": 1, "unknown_sources": 1}
    extra = folder.lint(rows, allow_extra=True)
    assert (extra.errors, extra.let_pass) == (1, {"unknown_fields": 1})


def test_principals_need_acl_default(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    judgments = folder.write("j.jsonl", [row("q1", principal={"groups": ["a"]})])
    corpus = [folder.write("f.jsonl", [{"fragment_id": "a", "text": "a"}])]
    assert [f.kind for f in lint([judgments], corpus).findings] == ["acl_default"]
    assert lint([judgments], corpus, options=LintOptions(acl_default="deny")).findings == ()


def test_columns_that_nobody_fills(folder: Folder) -> None:
    report = folder.lint([row(f"q{n}", "doc-1", relevance=None, slices={}, forbidden_sources=[]) for n in range(20)])
    filled = {f.field: f.message for f in report.findings if f.kind == "never_filled"}
    assert set(filled) == {"relevance", "slices", "forbidden_sources"}
    assert filled["slices"].startswith("empty in 20 of 20 rows")
    some = [row(f"q{n}", "doc-1", slices={"a": 1} if n == 7 else {}) for n in range(20)]
    assert "never_filled" not in folder.lint(some).by_kind["warning"]


def test_a_gold_column_that_is_empty_in_every_row(folder: Folder) -> None:
    report = folder.lint([row(f"q{n}") for n in range(20)])
    assert [(f.kind, f.field) for f in report.findings] == [("never_filled", "expected_sources")]


def test_what_is_no_fault_is_noted(folder: Folder) -> None:
    notes = "\n".join(folder.lint([row("q1", "doc-1"), row("q2", "doc-2", nonrelevant_sources=["doc-1"])]).notes)
    assert 'every row is of category "single_hop_factual"' in notes
    assert "every row expects a source" in notes
    assert "2 of 2 rows name no split" in notes
    assert "--completeness pooled" in notes
    pooled = folder.lint([row("q2", "doc-2", nonrelevant_sources=["doc-1"]), row("q3")], completeness="pooled")
    assert "completeness" not in "\n".join(pooled.notes)


def test_without_a_corpus_sources_are_not_checked_and_that_is_said(folder: Folder) -> None:
    report = lint([folder.write("j.jsonl", [row("q1", "anything"), row("q2")])])
    assert (report.errors, report.corpus) == (0, None)
    assert any("no --fragments" in note for note in report.notes)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file_is_an_error(folder: Folder, text: str) -> None:
    path = folder.path / "j.jsonl"
    path.write_text(text)
    assert [f.kind for f in lint([str(path)]).findings] == ["empty_file"]


# ---- ranked results


def results(query_id: str, *fragments: str, **fields: Any) -> dict[str, Any]:
    return {"query_id": query_id, "fragment_ids": list(fragments), **fields}


def test_sound_results_are_counted(folder: Folder) -> None:
    rows = [row("q1", "doc-1"), row("q2"), row("q3", review_status="draft")]
    report = folder.lint(rows, [results("q1", "doc-1::f1", "doc-2::f1"), results("q2"), results("other", "doc-1::f1")])
    assert report.findings == ()
    assert report.results is not None
    assert report.results.model_dump() == {"rows": 3, "results": 3, "without_judgment": 1, "missing": 0, "failed": 0}


def test_faults_of_results(folder: Folder) -> None:
    rows = [row(f"q{n}", "doc-1") for n in range(1, 8)]
    ranked = [
        results("q1", "doc-1::f1", "doc-2::f1", scores=[0.1, 0.2]),
        results("q2", "doc-1::f1", "doc-1::f1"),
        results("q3", "doc-1::f2"),
        results("q4", error="timeout"),
        results("q5", "doc-1::f1", corpus_digest="0" * 64),
        results("q1", "doc-1::f1"),
        results("q6", "doc-1::f1", query="?"),
    ]
    report = folder.lint(rows, ranked)
    by_file = [(f.severity, f.kind, f.line) for f in report.findings if f.file.endswith("r.jsonl")]
    assert by_file == [
        ("error", "order", 1),
        ("error", "duplicate_result", 2),
        ("error", "unknown_fragment", 3),
        ("error", "corpus_digest", 5),
        ("error", "duplicate_id", 6),
        ("error", "extra_forbidden", 7),
        ("warning", "failed", 4),
    ]
    missing = [(f.kind, f.line, f.message) for f in report.findings if f.file.endswith("j.jsonl")]
    assert [(kind, line) for kind, line, _ in missing] == [("missing_result", 6), ("missing_result", 7)]
    assert '"q6" has no row in' in missing[0][2]


def test_lenient_lets_results_pass_and_counts_them(folder: Folder) -> None:
    ranked = [results("q1", "doc-1::f1", "doc-9", "doc-1::f1", scores=[0.1, 0.2, 0.3])]
    report = folder.lint([row("q1", "doc-1")], ranked, lenient=True)
    assert (report.errors, report.let_pass) == (0, {"duplicates": 1, "reordered": 1, "unknown_fragments": 1})


def test_a_source_that_the_corpus_tells_otherwise(folder: Folder) -> None:
    nested = [{"query_id": "q1", "results": [{"fragment_id": "doc-1::f1", "source_id": "doc-2"}]}]
    (finding,) = folder.lint([row("q1", "doc-1")], nested).findings
    assert (finding.kind, finding.message) == ("source_id", 'of "doc-1::f1" is "doc-2", but the corpus says "doc-1"')


def test_results_of_other_queries_altogether_are_one_error_with_the_reason(folder: Folder) -> None:
    rows = [row(f"{n:03}", "doc-1") for n in range(1, 6)]
    report = folder.lint(rows, [results(str(n), "doc-1::f1") for n in range(1, 6)])
    (finding,) = report.findings
    assert (finding.kind, finding.field) == ("ids_do_not_meet", "query_id")
    assert finding.message == 'none of 5 queries with results is judged: leading zeros differ ("1" here, "001" there)'


# ---- on real data


def test_support_kb_is_clean() -> None:
    report = lint([str(SUPPORT_KB / "retrieval_golden_single.jsonl")], [str(SUPPORT_KB / "fragments.jsonl")])
    assert report.findings == ()


def smart(path: Path) -> list[tuple[str, str]]:
    records = re.split(r"^\.I\s+", path.read_text("latin-1"), flags=re.MULTILINE)[1:]
    return [(r.split()[0], " ".join(re.split(r"^\.W\s*$", r, flags=re.MULTILINE)[-1].split())) for r in records]


@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="no ../shared/data/cranfield")
@pytest.mark.parametrize(
    ("naive", "reversed_", "kinds"),
    [
        (False, False, {"empty_text": 2}),
        (True, False, {"empty_text": 2, "unrelated_sources": 1}),
        (False, True, {"empty_text": 2, "reversed_scale": 1}),
    ],
)
def test_cranfield(folder: Folder, naive: bool, reversed_: bool, kinds: dict[str, int]) -> None:
    corpus = folder.write("f.jsonl", [{"fragment_id": i, "text": text} for i, text in smart(CRANFIELD / "cran.all.1400")])
    asked = smart(CRANFIELD / "cran.qry")
    texts = {str(int(i)) if naive else str(n): text for n, (i, text) in enumerate(asked, 1)}
    grades: dict[str, dict[str, int]] = {}
    for topic, _, docno, grade in map(str.split, (CRANFIELD / "cranqrel").read_text().splitlines()):
        grades.setdefault(topic, {})[docno] = int(grade) if reversed_ else 5 - int(grade)
    rows = []
    for topic, docs in grades.items():
        relevant = {name: g for name, g in docs.items() if g}
        rest = [name for name, g in docs.items() if not g]
        if topic in texts:
            fields = {"query": texts[topic], "relevance": relevant, "category": "imported"}
            rows.append(row(topic, *relevant, **fields, **({"nonrelevant_sources": rest} if rest else {})))
    report = lint([folder.write("j.jsonl", rows)], [corpus])
    assert (report.errors, report.by_kind["warning"]) == (0, kinds)


# ---- the command


def test_the_command_prints_findings_counts_and_a_verdict(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    judgments = folder.write("j.jsonl", [row("q1", "doc-9"), row("q2", "doc-2")])
    with pytest.raises(Exit) as stopped:
        command(judgments=[judgments], fragments=[folder.write("f.jsonl", FRAGMENTS)])
    assert stopped.value.exit_code == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f'{judgments}:1  expected_sources  "doc-9" is in no fragment')
    assert "rows              2, of which 2 would be scored" in lines
    assert lines[-1] == "1 error, 0 warnings: an evaluation would refuse these files"


def test_the_command_passes_with_warnings(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    command(judgments=[folder.write("j.jsonl", [row("q1", "doc-1", "doc-1"), row("q2")])])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("warning: ")
    assert lines[-1] == "no errors, 1 warning: 2 rows would be scored"


def test_the_command_shows_twenty_findings_unless_asked_for_all(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    judgments = folder.write("j.jsonl", ["1"] * 25)
    for every, shown in ((False, 20), (True, 25)):
        with pytest.raises(Exit):
            command(judgments=[judgments], all_errors=every)
        out = capsys.readouterr().out
        assert out.count("one JSON object a line is expected") == shown
        assert ("… 5 more errors (--all-errors shows them)" in out) is not every


def test_the_command_prints_one_json_document(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exit):
        command(judgments=[folder.write("j.jsonl", [row("TODO", "doc-1")])], json_=True)
    report = LintReport.model_validate_json(capsys.readouterr().out)
    assert (report.errors, report.findings[0].kind) == (1, "placeholder")


def test_the_command_needs_judgments_and_files_that_are_there(folder: Folder) -> None:
    with pytest.raises(UsageError, match="--judgments"):
        command()
    with pytest.raises(InputError, match="no such file"):
        command(judgments=[str(folder.path / "none.jsonl")])
    with pytest.raises(UsageError, match="standard input"):
        command(judgments=["-", "-"])
