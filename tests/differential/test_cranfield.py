"""Cranfield through the commands a user would type: read right, joined naively, and with its scale left reversed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.world import Outcome, run

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cranfield"
MAP = "1=4,2=3,3=2,4=1,5=0"


def tripos(*arguments: str) -> Outcome:
    return run(DATA, arguments)


pytestmark = pytest.mark.skipif(not DATA.exists(), reason="shared data is not here")


def entries(name: str) -> list[tuple[str, str]]:
    """(the number after .I, the text after .W) of each entry of a file in Cranfield's own format."""
    text = (DATA / name).read_text().replace("\r\n", "\n")
    found = []
    for block in re.split(r"^\.I ", text, flags=re.MULTILINE)[1:]:
        number, _, rest = block.partition("\n")
        found.append((number.strip(), " ".join(rest.partition(".W\n")[2].split())))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cranfield")
    rows = [{"fragment_id": number, "text": text} for number, text in entries("cran.all.1400")]
    (path / "fragments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "topics.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in entries("cran.qry")))
    stripped = "".join(f"{int(number)}\t{text}\n" for number, text in entries("cran.qry"))
    (path / "naive.tsv").write_text(stripped)
    return path


def golden(folder: Path, name: str, *flags: str, topics: str = "topics.tsv") -> str:
    out = str(folder / name)
    done = tripos(
        "import", "trec", "--qrels", str(DATA / "cranqrel"), "--queries", str(folder / topics), "--output", out, *flags
    )
    assert done.code == 0, done.err
    return out


def figures(folder: Path, judgments: str) -> tuple[float, float]:
    """nDCG@10 and MAP of BM25 against these judgments."""
    fragments, results = str(folder / "fragments.jsonl"), judgments + ".results.jsonl"
    tripos("search", "--fragments", fragments, "--judgments", judgments, "--limit", "1000", "--output", results)
    done = tripos(
        "eval-retrieval", "--fragments", fragments, "--judgments", judgments, "--retrieval-mode", "lexical",
        "--ranked-results", results, "--limit", "1000", "--json",
    )  # fmt: skip
    report = json.loads(done.out)
    assert report["rows"]["scored"] == report["measures"]["ndcg@k"]["n"] >= 150
    return report["measures"]["ndcg@k"]["value"][9], report["measures"]["ap@k"]["value"][-1]


def test_read_right(folder: Path) -> None:
    judgments = golden(folder, "right.jsonl", "--query-ids", "ordinal", "--grade-map", MAP)
    ndcg, average = figures(folder, judgments)
    assert ndcg == pytest.approx(0.337, abs=0.01)
    assert average == pytest.approx(0.26, abs=0.015)
    lint = tripos("lint", "--judgments", judgments, "--fragments", str(folder / "fragments.jsonl"))
    assert lint.code == 0
    assert "look unrelated" not in lint.out
    assert "reversed" not in lint.out


def test_the_scale_left_as_it_is_scores_better_and_lint_says_why(folder: Path) -> None:
    judgments = golden(folder, "reversed.jsonl", "--query-ids", "ordinal")
    ndcg, _ = figures(folder, judgments)
    assert ndcg == pytest.approx(0.463, abs=0.01)
    lint = tripos("lint", "--judgments", judgments, "--fragments", str(folder / "fragments.jsonl"))
    assert "shifted or reversed" in lint.out
    assert f"--grade-map {MAP}" in lint.out


def test_ids_do_not_meet_as_they_are(folder: Path) -> None:
    out = str(folder / "never.jsonl")
    done = tripos("import", "trec", "--qrels", str(DATA / "cranqrel"), "--queries", str(folder / "topics.tsv"), "--output", out)
    assert done.code == 3
    assert "--query-ids ordinal" in done.err
    assert not Path(out).exists()


def test_the_naive_join_is_near_chance_and_lint_says_why(folder: Path) -> None:
    topics = {line.split("\t")[0] for line in (folder / "naive.tsv").read_text().splitlines()}
    lines = [line for line in (DATA / "cranqrel").read_text().splitlines() if line.split()[0] in topics]
    (folder / "met.qrels").write_text("\n".join(lines) + "\n")
    judgments = str(folder / "naive.jsonl")
    done = tripos(
        "import", "trec", "--qrels", str(folder / "met.qrels"), "--queries", str(folder / "naive.tsv"),
        "--output", judgments, "--grade-map", MAP,
    )  # fmt: skip
    assert done.code == 0, done.err
    ndcg, _ = figures(folder, judgments)
    assert ndcg == pytest.approx(0.014, abs=0.006)
    lint = tripos("lint", "--judgments", judgments, "--fragments", str(folder / "fragments.jsonl"))
    assert "look unrelated to their queries" in lint.out
    assert "--query-ids ordinal" in lint.out


def test_doctor_looks_at_the_files_as_they_are(folder: Path) -> None:
    done = tripos("doctor", str(folder / "topics.tsv"), str(DATA / "cranqrel"), str(folder / "fragments.jsonl"))
    assert done.code == 3
    assert "they look like positions" in done.out
    assert "shifted or reversed" in done.out
    assert f"--query-ids ordinal --grade-map {MAP}" in done.out
