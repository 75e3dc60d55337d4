"""Where evaluations are kept, and what that costs those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.test_structure import loaded
from tests.unit.store.history import ask
from tripos.contracts.certificate import Certificate, CertificateVerdict
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


def test_a_certificate_is_kept_granted_or_refused(tmp_path: Path) -> None:
    verdict = CertificateVerdict(status="not_certified", exit_code=1, checks=2, failed=("complete",), warned=())
    refused = Certificate(
        digest="",
        tool="tripos",
        name="kb",
        verdict=verdict,
        fingerprint=None,
        layers={},
        models=None,
        rests_on=None,
        committed=(),
        artifacts=(),
        checks=(),
    )
    first, second = (Storing(str(tmp_path), ()).certificate(refused) for _ in range(2))
    assert (first.is_new, second.is_new) == (True, False)
    sql = "SELECT certificate_id, certified, name, run_ids, failed_checks FROM certificates"
    assert ask(tmp_path, sql) == [(first.run_id, False, "kb", [], ["complete"])]
