"""Lines put aside: read back by number, by another process too, and from several spools under one number."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from unittest.mock import patch

import pytest

from tripos.files import spool
from tripos.files.spool import Shelf, Spool

LINES = [b"one", b"", b"three\n", b"4" * 50]


@pytest.mark.parametrize("in_memory", [0, 5, 1 << 20])
def test_lines_come_back_by_number_before_and_after_they_are_stored(in_memory: int, tmp_path: Path) -> None:
    with patch.object(spool, "_IN_MEMORY", in_memory), Spool(tmp_path) as kept:
        for number, line in enumerate(LINES):
            assert kept.append(line) == number
            assert [kept.read(n) for n in range(len(kept))] == LINES[: number + 1]
        assert len(kept) == 4
        assert list(tmp_path.iterdir()) == []


def test_lines_that_a_child_put_aside_are_read_by_its_parent(tmp_path: Path) -> None:
    ours = Spool.shared()
    child = os.fork()
    if child == 0:
        for line in LINES:
            ours.append(line)
        (tmp_path / "sent").write_bytes(pickle.dumps(ours))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(ours) == 0
    ours.adopt(pickle.loads((tmp_path / "sent").read_bytes()))
    assert [ours.read(n) for n in range(len(ours))] == LINES
    ours.close()


def test_a_shelf_numbers_the_lines_of_several_spools() -> None:
    one, other, empty, whole = Shelf(), Shelf(), Shelf(), Shelf()
    for line in LINES[:2]:
        one.append(line)
    other.append(LINES[2])
    assert (whole.take(empty), whole.take(one), whole.take(other)) == (0, 0, 2)
    assert whole.append(LINES[3]) == 3
    assert list(whole) == LINES
    assert len(one) == 2, "what was taken may not grow, and has not"
    nested = Shelf()
    nested.append(b"first")
    assert nested.take(whole) == 1
    assert list(nested) == [b"first", *LINES]
    with pytest.raises(IndexError):
        nested.read(5)
