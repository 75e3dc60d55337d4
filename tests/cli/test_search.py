"""`tripos search`: streams, exit codes, files, and the same bytes whatever the machine does."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tripos.cli.searching import search
from tripos.contracts.config import SearchConfig
from tripos.errors import ConfigError, InputError, TriposError, UsageError
from tripos.fingerprint import policy_component

app = typer.Typer()
app.command()(search)

Row = dict[str, Any]
ALONE = "import typer; from tripos.cli.searching import search; app = typer.Typer(); app.command()(search); app()"


def judged(query_id: str, query: str, **more: Any) -> Row:
    return {
        "query_id": query_id, "query": query, "expected_sources": ["d1"], "should_match": True,
        "category": "single_hop_factual", "review_status": "reviewed", **more,
    }  # fmt: skip


def jsonl(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    words = ["rotate", "token", "key", "billing", "plan", "größe", "🙂"]
    rng = random.Random(7)
    rows = [
        {"fragment_id": f"d{n}::🙂{n % 3}", "text": " ".join(rng.choices(words, k=n % 9 + 1)), "acl": [f"g{n % 2}"]}
        for n in range(60)
    ]
    jsonl(tmp_path / "fragments.jsonl", rows)
    queries = [judged(f"q{n:02}", " ".join(rng.choices(words, k=3))) for n in range(20)]
    jsonl(tmp_path / "golden.jsonl", [*queries, judged("q99", "rotate", principal={"groups": ["g1"]})])
    return tmp_path


FILES = ("--fragments", "fragments.jsonl", "--judgments", "golden.jsonl")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments])


def fails(*arguments: str) -> TriposError:
    result = invoke(*arguments)
    assert isinstance(result.exception, TriposError), result.output
    return result.exception


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_results_go_to_the_file_and_one_line_to_stderr(folder: Path) -> None:
    result = invoke(*FILES, "--output", "out/ranked.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    n = sum(len(row["results"]) for row in rows(folder / "out/ranked.jsonl"))
    assert result.stderr.startswith(f"21 queries, {n:,} results → out/ranked.jsonl (")
    assert result.stderr.endswith(" s)\n")
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["ranked.jsonl", "timings.jsonl"]


def test_the_policy_of_flags_alone_is_its_mode(folder: Path) -> None:
    invoke(*FILES, "-o", "ranked.jsonl")
    assert {row["policy_digest"] for row in rows(folder / "ranked.jsonl")} == {
        policy_component(SearchConfig(mode="lexical")).digest
    }
    invoke(*FILES, "-o", "ranked.jsonl", "--lexical", "k1=0.9", "--lexical", "stopwords=english")
    stated = SearchConfig(mode="lexical", lexical={"k1": 0.9, "stopwords": "english"})
    assert {row["policy_digest"] for row in rows(folder / "ranked.jsonl")} == {policy_component(stated).digest}


def test_standard_output_holds_the_rows_alone(folder: Path) -> None:
    before = sorted(folder.iterdir())
    result = invoke(*FILES, "--output", "-", "--limit", "3")
    assert [len(json.loads(line)["results"]) for line in result.stdout.splitlines()] == [3] * 21
    assert "→ standard output" in result.stderr
    assert sorted(folder.iterdir()) == before


def test_quiet_is_quiet(folder: Path) -> None:
    result = invoke(*FILES, "--output", "ranked.jsonl", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_nobody_reads_what_is_not_theirs(folder: Path) -> None:
    invoke(*FILES, "--output", "ranked.jsonl", "--limit", "60")
    found = next(row for row in rows(folder / "ranked.jsonl") if row["query_id"] == "q99")["results"]
    assert found
    assert all(int(hit["fragment_id"].removeprefix("d").split("::")[0]) % 2 == 1 for hit in found)


def test_what_is_not_searched_is_told(folder: Path) -> None:
    jsonl(folder / "golden.jsonl", [judged("q1", "rotate"), judged("q2", "x", review_status="rejected")])
    jsonl(folder / "fragments.jsonl", [{"fragment_id": "a", "text": "rotate"}, {"fragment_id": "b", "text": ""}])
    result = invoke(*FILES, "--output", "ranked.jsonl")
    assert "warning: fragments.jsonl:2  text  empty" in result.stderr
    assert "1 query, 1 result → ranked.jsonl" in result.stderr
    assert "not searched: 1 rejected" in result.stderr


def test_a_configuration_names_files_and_policy(folder: Path) -> None:
    (folder / "kb.yaml").write_text(
        "fragments: [fragments.jsonl]\njudgments: {retrieval: golden.jsonl}\nranked_results: out/r.jsonl\n"
        "search: {mode: lexical, lexical: {k1: 0.9, b: 0.4}}\ndepth: {limit: 2}\n"
    )
    assert invoke("--config", "kb.yaml", "--lexical", "b=0.5").exit_code == 0
    stated = SearchConfig(mode="lexical", lexical={"k1": 0.9, "b": 0.5})
    assert {row["policy_digest"] for row in rows(folder / "out/r.jsonl")} == {policy_component(stated).digest}
    assert max(len(row["results"]) for row in rows(folder / "out/r.jsonl")) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((*FILES, "-o", "r", "--mode", "hybrid"), UsageError, "only lexical is embedded"),
        ((*FILES, "-o", "r", "--mode", ""), UsageError, "--mode is empty"),
        ((*FILES, "-o", "r", "--lexical", "k1"), UsageError, "write KEY=VALUE"),
        ((*FILES, "-o", "r", "--lexical", "k1=null"), UsageError, "the value must be a string, a number"),
        ((*FILES, "-o", "r", "--lexical", f"k1={2**60}"), UsageError, "the value must be a string, a number"),
        ((*FILES, "-o", "r", "--lexical", "K1=2"), ConfigError, "unknown parameter"),
        ((*FILES, "-o", "r", "--lexical", "stemmer=inglish"), ConfigError, 'did you mean "english"'),
        ((*FILES, "-o", "golden.jsonl"), UsageError, "is an input of this command"),
        ((*FILES, "-o", "-", "--latency", "file"), UsageError, "needs a file to stand beside"),
        ((*FILES,), UsageError, "--output"),
        ((*FILES[:2], "-o", "r"), UsageError, "--judgments"),
        ((*FILES[2:], "-o", "r"), UsageError, "--fragments"),
        (("--fragments", "-", "--judgments", "-", "-o", "r"), UsageError, "only one can read it"),
        (("--fragments", "fragment.jsonl", *FILES[2:], "-o", "r"), InputError, 'did you mean "fragments.jsonl"'),
        ((*FILES, "-o", "r", "--searcher", "nowhere"), UsageError, "write package.module:factory"),
    ],
)
def test_errors_say_what_to_do_and_write_nothing(
    folder: Path, arguments: tuple[str, ...], error: type[TriposError], said: str
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = fails(*arguments)
    assert type(found) is error
    assert said in str(found)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_limit_of_none_is_a_usage_error(folder: Path) -> None:
    assert invoke(*FILES, "-o", "r", "--limit", "0").exit_code == 2


OWN = """
from tripos.search import Hit

class Own:
    def __init__(self, corpus, policy):
        print("loading", policy.mode)
        self.ids = sorted(corpus.sources)

    def search(self, query, limit):
        if query.query_id == "q03":
            raise TimeoutError("after 30 s")
        return [Hit(name, -float(rank)) for rank, name in enumerate(self.ids[:limit])]

def bad(corpus, policy):
    own = Own(corpus, policy)
    own.search = lambda query, limit: [Hit("nowhere", 1.0)]
    return own
"""


def own(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "own.py").write_text(OWN)
    return subprocess.run([sys.executable, "-c", ALONE, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_a_search_of_ones_own_may_fail_on_a_query(folder: Path) -> None:
    result = own(folder, *FILES, "-o", "-", "--searcher", "own:Own", "--mode", "dense", "--limit", "2")
    assert result.returncode == 6
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["query_id"] for row in found if row["error"]] == ["q03"]
    assert found[3]["error"] == "TimeoutError: after 30 s"
    assert found[0]["policy_digest"] == policy_component(SearchConfig(mode="dense")).digest
    assert result.stderr.startswith("loading dense\n")
    assert "incomplete: the search failed on q03: see error in its row" in result.stderr


def test_a_search_that_breaks_the_protocol_is_named(folder: Path) -> None:
    (folder / "ranked.jsonl").write_text("old\n")
    result = own(folder, *FILES, "-o", "ranked.jsonl", "--searcher", "own:bad")
    assert result.returncode != 0
    assert 'searcher own:bad, query "q00"  rank 1: "nowhere" is in no fragment' in result.stderr
    assert (folder / "ranked.jsonl").read_text() == "old\n"
    assert not (folder / "timings.jsonl").exists()


def shuffled(path: Path, seed: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    path.write_text("".join(lines))


def test_the_same_inputs_give_the_same_bytes(folder: Path) -> None:
    seen = set()
    for seed, threads in (("0", "1"), ("1", "4"), ("12345", "2")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "TZ": f"UTC+{threads}"}
        arguments = [sys.executable, "-c", ALONE, *FILES, "-o", "out.jsonl", "--quiet"]
        subprocess.run(arguments, cwd=folder, env=environment, check=True, capture_output=True)
        seen.add((folder / "out.jsonl").read_bytes())
        shuffled(folder / "fragments.jsonl", int(seed))
        shuffled(folder / "golden.jsonl", int(seed))
    assert len(seen) == 1


def test_a_corpus_may_be_split_into_files(folder: Path) -> None:
    invoke(*FILES, "-o", "one.jsonl", "-q")
    lines = (folder / "fragments.jsonl").read_text().splitlines(keepends=True)
    (folder / "b.jsonl").write_text("".join(lines[30:]))
    (folder / "a.jsonl").write_text("".join(lines[:30]))
    invoke("--fragments", "b.jsonl", "--fragments", "default=a.jsonl", *FILES[2:], "-o", "two.jsonl", "-q")
    assert (folder / "one.jsonl").read_bytes() == (folder / "two.jsonl").read_bytes()


def test_starting_up_loads_no_search() -> None:
    code = "import sys; import tripos.cli.searching; print({'numpy', 'bm25s', 'pydantic', 'orjson'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
