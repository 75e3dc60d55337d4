"""Where evaluations are kept, and what that costs those that are not."""

from __future__ import annotations

import pytest

from tests.architecture.test_structure import loaded
from tripos.contracts.config import Config
from tripos.errors import UsageError
from tripos.loop.storing import Storing, storing


@pytest.mark.parametrize(
    ("store", "from_file", "off", "folder"),
    [
        (None, False, False, None),
        (None, True, False, "engagement/store"),
        ("mine", False, False, "mine"),
        ("mine", True, False, "mine"),
        ("mine", True, True, None),
        (None, True, True, None),
    ],
)
def test_evaluations_with_a_file_or_a_store_are_kept(store: str | None, from_file: bool, off: bool, folder: str | None) -> None:
    chosen = storing(Config(store=store), from_file=from_file, off=off)
    assert chosen == (None if folder is None else Storing(folder, ()))


def test_a_label_given_twice_is_one() -> None:
    chosen = storing(Config(store="s"), from_file=False, labels=["a", "b", "a"])
    assert chosen == Storing("s", ("a", "b"))


@pytest.mark.parametrize("label", ["latest", "latest~2", "baseline", "0123abcd", "", " a", "a\n", "x" * 101])
def test_labels_that_mean_something_else_are_refused(label: str) -> None:
    with pytest.raises(UsageError, match="--label"):
        storing(Config(store="s"), from_file=False, labels=[label])


def test_an_evaluation_that_is_not_kept_loads_no_database() -> None:
    code = "from tripos.contracts.config import Config\nfrom tripos.loop.storing import storing\n"
    assert "duckdb" not in loaded(code + "assert storing(Config(store='s'), from_file=True, labels=['a'])")
