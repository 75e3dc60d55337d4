"""One batch: what reaches the search, what is written, and what a search of one's own may not do."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tripos.contracts.config import SearchConfig
from tripos.contracts.index import AclDefault, Corpus
from tripos.errors import Findings, InputError, NothingToEvaluate, UsageError
from tripos.files.ranked import read_ranked
from tripos.files.retrieval import load_corpus
from tripos.fingerprint import policy_component
from tripos.search import Factory, Hit, Query, Searcher
from tripos.search.batch import Batch, Inputs, Latency, Outcome, check_output, read, run
from tripos.search.registry import embedded, plugged

LEXICAL = SearchConfig(mode="lexical")
Row = dict[str, Any]


def judged(query_id: str, query: str | None, **more: Any) -> Row:
    return {
        "query_id": query_id, "query": query, "expected_sources": ["a"], "should_match": True,
        "category": "single_hop_factual", "review_status": "reviewed", **more,
    }  # fmt: skip


FRAGMENTS: list[Row] = [
    {"fragment_id": "a::1", "text": "rotate the API token", "metadata": {"lang": "en"}},
    {"fragment_id": "a::2", "text": "rotate keys", "metadata": {"lang": "de"}},
    {"fragment_id": "🙂", "text": "billing for the token"},
]


class Project:
    """A folder with the files of a batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fragments = self.write("fragments.jsonl", FRAGMENTS)
        self.output = str(folder / "out" / "ranked-results.jsonl")

    def write(self, name: str, rows: Sequence[Row]) -> str:
        path = self.folder / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return str(path)

    def read(self, *files: Sequence[Row], acl_default: AclDefault | None = None) -> Batch:
        paths = [self.write(f"golden-{n}.jsonl", rows) for n, rows in enumerate(files)]
        return read(Inputs([self.fragments], paths, acl_default), Findings())

    def run(self, *files: Sequence[Row], factory: Factory | None = None, latency: Latency = "file", limit: int = 50) -> Outcome:
        made = factory or embedded("lexical")
        return run(self.read(*files), made, LEXICAL, self.output, latency=latency, limit=limit, name="mine:make")

    def rows(self) -> list[Row]:
        return [json.loads(line) for line in Path(self.output).read_text().splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


class Spy:
    """Answers with what it is told to, and keeps what it was asked."""

    def __init__(self, answer: Callable[[Query], Any] = lambda query: []) -> None:
        self.answer = answer
        self.asked: list[tuple[Query, int]] = []

    def __call__(self, corpus: Corpus, policy: SearchConfig) -> Searcher:
        return self

    def search(self, query: Query, limit: int) -> Any:
        self.asked.append((query, limit))
        return self.answer(query)


# --- what is written


def test_rows_are_nested_results_sorted_by_query_id(project: Project) -> None:
    outcome = project.run([judged("q2", "billing"), judged("q1", "rotate token"), judged("q3", "unheard")])
    assert [row["query_id"] for row in project.rows()] == ["q1", "q2", "q3"]
    first, second, third = project.rows()
    assert [hit["fragment_id"] for hit in first["results"]] == ["a::1", "a::2", "🙂"]
    assert [hit["fragment_id"] for hit in second["results"]] == ["🙂"]
    assert third["results"] == []
    assert list(first) == ["query_id", "results", "error", "corpus_digest", "policy_digest"]
    assert (outcome.queries, outcome.results, outcome.failed) == (3, 4, [])


def test_rows_carry_the_digests_of_corpus_and_policy(project: Project) -> None:
    project.run([judged("q1", "rotate")])
    _, digest = load_corpus([project.fragments], None, Findings())
    (row,) = read_ranked(project.output, findings := Findings())
    findings.raise_errors()
    assert row.corpus_digest == digest.component(None).digest
    assert row.policy_digest == policy_component(SearchConfig(mode="lexical")).digest
    assert row.error is None


def test_latencies_stand_beside_the_output(project: Project) -> None:
    project.run([judged("q2", "rotate"), judged("q1", "billing")])
    timings = [json.loads(line) for line in (Path(project.output).parent / "timings.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in timings] == ["q1", "q2"]
    assert all(row["latency_ms"] >= 0 for row in timings)
    assert "latency_ms" not in project.rows()[0]


def test_latencies_may_stand_in_the_rows_or_nowhere(project: Project) -> None:
    project.run([judged("q1", "rotate")], latency="inline")
    assert project.rows()[0]["latency_ms"] >= 0
    project.run([judged("q1", "rotate")], latency="none")
    assert "latency_ms" not in project.rows()[0]
    assert [path.name for path in Path(project.output).parent.iterdir()] == ["ranked-results.jsonl"]


def test_standard_output_takes_the_rows_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer))
    before = sorted(project.folder.rglob("*"))
    batch = project.read([judged("q1", "rotate")])
    run(batch, embedded("lexical"), LEXICAL, "-", latency="none")
    assert json.loads(buffer.getvalue())["query_id"] == "q1"
    assert [p for p in sorted(project.folder.rglob("*")) if p not in before] == [project.folder / "golden-0.jsonl"]


# --- what is asked


def test_no_expectation_reaches_the_search(project: Project) -> None:
    spy = Spy()
    row = judged("q1", "rotate", required_sources=["a"], forbidden_sources=["x"], filters={"lang": "en"}, notes="SECRET", k=3)
    project.run([row], factory=spy, limit=7)
    ((query, limit),) = spy.asked
    assert limit == 7
    assert dataclasses.asdict(dataclasses.replace(query, filters=dict(query.filters))) == {
        "query_id": "q1", "text": "rotate", "groups": None, "filters": {"lang": "en"},
    }  # fmt: skip
    assert [f.name for f in dataclasses.fields(Query)] == ["query_id", "text", "groups", "filters"]
    with pytest.raises(TypeError):
        query.filters["lang"] = "de"  # type: ignore[index]


def test_every_status_but_rejected_is_asked_and_rows_without_text_are_counted(project: Project) -> None:
    rows = [
        judged("q1", "a"),
        judged("q2", "b", review_status="draft"),
        judged("q3", "c", review_status="in_review", category="calibration"),
        judged("q4", "d", review_status="rejected"),
        judged("q5", None, category="imported"),
        judged("q6", ""),
    ]
    spy = Spy()
    project.run(rows, factory=spy)
    assert [query.query_id for query, _ in spy.asked] == ["q1", "q2", "q3", "q6"]
    batch = project.read(rows)
    assert (batch.without_text, batch.rejected) == (1, 1)


def test_one_query_of_two_files_is_asked_once(project: Project) -> None:
    one = judged("q1", "rotate", principal={"groups": ["b", "a"]}, filters={"n": 1})
    other = {**one, "principal": {"groups": ["a", "b", "b"]}, "filters": {"n": 1.0}, "expected_sources": ["🙂"]}
    batch = project.read([one], [other, judged("q2", "x")], acl_default="public")
    assert [query.query_id for query in batch.queries] == ["q1", "q2"]
    assert batch.queries[0].groups == ("a", "b")


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("query", {"query": "turn"}),
        ("principal", {"principal": {"groups": []}}),
        ("filters", {"filters": {"n": True}}),
    ],
)
def test_another_question_under_the_same_id_is_an_error(project: Project, field: str, other: Row) -> None:
    one = judged("q1", "rotate", filters={"n": 1})
    with pytest.raises(InputError, match="one query_id means one query") as error:
        project.read([one], [one | other], acl_default="public")
    (finding,) = error.value.findings
    assert (finding.field, finding.place.line) == (field, 1)
    assert finding.place.file.endswith("golden-1.jsonl")


def test_a_principal_needs_to_know_who_reads_what(project: Project) -> None:
    rows = [judged("q0", "x"), judged("q1", "rotate", principal={"groups": ["staff"]})]
    with pytest.raises(InputError, match=r"golden-0.jsonl:2  principal  .*3 of 3 fragments have no acl.*--acl-default public"):
        project.read(rows)
    assert len(project.read(rows, acl_default="deny").queries) == 2


def test_all_errors_come_at_once(project: Project) -> None:
    project.fragments = project.write("fragments.jsonl", [FRAGMENTS[0], FRAGMENTS[0], {"fragment_id": "b"}])
    with pytest.raises(InputError) as error:
        project.read([judged("q1", "x"), judged("q1", "y"), {"query_id": 7}], [])
    assert {finding.place.file.rsplit("/", 1)[1] for finding in error.value.findings} == {
        "fragments.jsonl", "golden-0.jsonl", "golden-1.jsonl",
    }  # fmt: skip


def test_nothing_to_ask_is_told(project: Project) -> None:
    with pytest.raises(NothingToEvaluate, match="every row is rejected or has no query text"):
        project.run([judged("q1", None, category="imported")])
    with pytest.raises(InputError, match="holds no judgment"):
        project.run([])


# --- a search of one's own


def test_an_exception_is_the_error_of_its_row_alone(project: Project) -> None:
    def answer(query: Query) -> list[Hit]:
        if query.query_id == "q1":
            raise TimeoutError("no answer\nafter 30 s " + "x" * 200)
        return [Hit("a::1", 1.0)]

    outcome = project.run([judged("q1", "x"), judged("q2", "y")], factory=Spy(answer))
    first, second = project.rows()
    assert first["results"] == []
    assert first["error"].startswith("TimeoutError: no answer after 30 s xxx")
    assert len(first["error"]) < 120
    assert (second["error"], len(second["results"])) == (None, 1)
    assert outcome.failed == ["q1"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([Hit("a::3", 1.0)], 'rank 1: "a::3" is in no fragment (did you mean "a::2"?)'),
        ([Hit("a::1", 2.0), Hit("a::2", 1.0), Hit("a::1", 1.0)], 'rank 3: "a::1" is also at rank 1: return each fragment once'),
        ([Hit("a::1", 1.0), Hit("a::2", 1.5)], "rank 2: the score 1.5 is above 1 at the rank before: return the best first"),
        ([Hit("a::1", math.nan)], "rank 1: the score is nan: return finite numbers"),
        ([Hit("a::1", math.inf)], "rank 1: the score is inf: return finite numbers"),
        ([Hit("a::1", 3.0), Hit("a::2", 2.0), Hit("🙂", 1.0)], "returned 3 hits for limit 2: cut the list at the limit"),
        ([("a::1", 1.0)], "rank 1 is ('a::1', 1.0): return tripos.search.Hit(fragment_id, score), a string and a number"),
        ([Hit("a::1", "high")], "a string and a number"),  # type: ignore[arg-type]
        ([Hit(7, 1.0)], "a string and a number"),  # type: ignore[arg-type]
        ([Hit("a::1", True)], "a string and a number"),
        (None, "returned an object of type NoneType: return a list of tripos.search.Hit"),
        ("a::1", "returned an object of type str: return a list of tripos.search.Hit"),
        (iter([]), "return a list of tripos.search.Hit"),
    ],
)
def test_a_list_that_breaks_the_protocol_stops_the_batch(project: Project, returned: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        project.run([judged("q1", "x")], factory=Spy(lambda query: returned), limit=2)
    assert f'searcher mine:make, query "q1"  {said}' in str(error.value) or str(error.value).endswith(said)
    assert not Path(project.output).exists()


def test_numpy_scores_are_written_as_numbers(project: Project) -> None:
    found: Any = np.float32(0.5)
    project.run([judged("q1", "x")], factory=Spy(lambda query: (Hit(np.str_("a::1"), found), Hit("a::2", 0))))
    assert project.rows()[0]["results"] == [{"fragment_id": "a::1", "score": 0.5}, {"fragment_id": "a::2", "score": 0.0}]


def test_what_a_search_prints_is_kept_from_standard_output(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(query: Query) -> list[Hit]:
        print("loading model")
        return []

    project.run([judged("q1", "x")], factory=Spy(answer))
    assert capsys.readouterr() == ("", "loading model\n")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_batch_leaves_the_old_output(project: Project, stop: type[BaseException]) -> None:
    project.run([judged("q1", "rotate")])
    folder = Path(project.output).parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def answer(query: Query) -> list[Hit]:
        if query.query_id == "q2":
            raise stop
        return []

    with pytest.raises(stop):
        project.run([judged("q1", "x"), judged("q2", "y")], factory=Spy(answer))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# --- where a search comes from


def test_other_modes_are_not_embedded() -> None:
    with pytest.raises(UsageError, match=r'mode "dense": only lexical is embedded.*ranked results.*--searcher'):
        embedded("dense")
    with pytest.raises(UsageError, match=r'did you mean "lexical"'):
        embedded("lexcial")


MODULE = """
from tripos.search import Hit

class Mine:
    def search(self, query, limit):
        return [Hit("a::1", 1.0)][:limit]

def make(corpus, policy):
    return Mine()

def failing(corpus, policy):
    raise RuntimeError("no index\\nat localhost")

def nothing(corpus, policy):
    pass

def a_class(corpus, policy):
    return Mine

constant = 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_search_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import surely_not_installed\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


def test_a_search_of_ones_own_is_found_in_the_current_folder(module: str, project: Project) -> None:
    project.run([judged("q1", "anything")], factory=plugged(f"{module}:make"))
    assert project.rows()[0]["results"] == [{"fragment_id": "a::1", "score": 1.0}]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("make", "write package.module:factory"),
        ("{}:", "write package.module:factory"),
        ("{}_absent:make", "{}_absent cannot be imported: ModuleNotFoundError: No module named"),
        ("{}_broken:make", "{}_broken cannot be imported: ModuleNotFoundError: No module named 'surely_not_installed'"),
        ("{}:mak", '{} has no "mak" (did you mean "make"?)'),
        ("{}:constant", "is no function but an object of type int: name one that takes (corpus, policy)"),
        ("{}:failing", "failed when called with (corpus, policy): RuntimeError: no index at localhost"),
        ("{}:nothing", "returned None, which has no method search(query, limit)"),
        ("{}:a_class", "returned the class Mine, which has no method search(query, limit)"),
    ],
)
def test_what_cannot_be_plugged_in_is_told(module: str, reference: str, said: str) -> None:
    reference, said = reference.replace("{}", module), said.replace("{}", module)
    with pytest.raises(UsageError) as error:
        plugged(reference)(Corpus(), LEXICAL)
    assert f"--searcher {reference}" in str(error.value) or f'--searcher "{reference}"' in str(error.value)
    assert said[:60] in str(error.value)


# --- outputs


@pytest.mark.parametrize(
    ("output", "latency", "said"),
    [
        ("golden.jsonl", "none", "golden.jsonl is an input of this command"),
        ("../{}/fragments.jsonl", "none", "fragments.jsonl is an input of this command"),
        ("timings.jsonl", "file", "two outputs would be one file"),
        ("-", "file", "--latency file needs a file to stand beside"),
    ],
)
def test_an_output_never_replaces_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, latency: Latency, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said):
        check_output(output.format(tmp_path.name), latency, Inputs(["kb=fragments.jsonl"], ["-", "golden.jsonl"]))


def test_timings_never_replace_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"timings\.jsonl is an input"):
        check_output("ranked.jsonl", "file", Inputs(["fragments.jsonl"], ["timings.jsonl"]))
    check_output("ranked.jsonl", "none", Inputs(["fragments.jsonl"], ["timings.jsonl"]))
