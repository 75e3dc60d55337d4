"""Reading answers with their reviewed part from one file or two; lines put aside and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generation_worlds import answer, refusal, write
from tripos.errors import Findings
from tripos.files import spool
from tripos.files.generation import Pair, Seen, Source, read_pairs
from tripos.files.spool import Spool


def test_lines_come_back_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_IN_MEMORY", 50)
    lines = [f"line {n}".encode() * n for n in range(20)]
    with Spool(tmp_path) as aside:
        assert [aside.append(line) for line in lines] == list(range(20))
        assert [aside.read(n) for n in (19, 0, 7)] == [lines[19], lines[0], lines[7]]
        assert aside.append(b"more") == 20
        assert (aside.read(20), len(aside)) == (b"more", 21)
    assert list(tmp_path.iterdir()) == []


def pairs(source: Source) -> tuple[list[Pair], Seen, Findings]:
    seen, findings = Seen(), Findings()
    return list(read_pairs(source, seen, findings)), seen, findings


def test_answers_come_in_their_order_and_absent_ones_last(tmp_path: Path) -> None:
    golden, answers = tmp_path / "g.jsonl", tmp_path / "a.jsonl"
    reviewed = ("query_id", "query", "citation_requirements", "accepted_fragment_ids", "expected_answerable")
    rows = [answer("a"), answer("b"), refusal("c"), answer("d")]
    write(golden, [{k: row[k] for k in reviewed} | ({"review_status": "draft"} if row is rows[3] else {}) for row in rows])
    write(answers, [{"query_id": name, "answer": f"from {name}"} for name in ("c", "x", "a", "d")])
    found, seen, findings = pairs(Source(None, str(golden), str(answers)))
    told = [(p.judged.query_id, None if p.answered is None else p.answered.answer, p.place.line) for p in found]
    assert told == [("c", "from c", 1), ("a", "from a", 3), ("b", None, 2)]
    assert (seen.judgments, seen.answers, seen.without_judgment) == (4, 4, 1)
    assert (seen.by_status, findings.n_errors) == ({"reviewed": 3, "draft": 1}, 0)


def test_one_query_has_one_text_in_both_files(tmp_path: Path) -> None:
    golden, answers = tmp_path / "g.jsonl", tmp_path / "a.jsonl"
    judged = {"citation_requirements": [], "accepted_fragment_ids": [], "expected_answerable": False}
    write(golden, [{"query_id": "a", "query": "One?", **judged}])
    write(answers, [{"query_id": "a", "query": "Another?", "answer": "x"}])
    _, _, findings = pairs(Source(None, str(golden), str(answers)))
    assert [f.field for f in findings.errors] == ["query"]


@pytest.mark.parametrize("twice", ["g", "a"])
def test_a_query_used_twice_is_an_error_in_either_file(tmp_path: Path, twice: str) -> None:
    judged = {"query_id": "q", "citation_requirements": [], "accepted_fragment_ids": [], "expected_answerable": False}
    write(tmp_path / "g", [judged] * (2 if twice == "g" else 1))
    write(tmp_path / "a", [{"query_id": "q", "answer": ""}] * (2 if twice == "a" else 1))
    _, _, findings = pairs(Source(None, str(tmp_path / "g"), str(tmp_path / "a")))
    assert [str(f.place).rpartition("/")[2] for f in findings.errors] == [f"{twice}:2"]
