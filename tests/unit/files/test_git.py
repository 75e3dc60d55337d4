"""What git knows of a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tripos.files.git import GitProblem, committed, head


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_outside_a_repository_there_is_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert committed(str(tmp_path / "a")) is None
    assert head(str(tmp_path)) is None


def test_a_file_before_the_first_commit_after_it_and_changed(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.write_text("x")
    git(tmp_path, "init", "-q")
    found = committed(str(place))
    assert found is not None
    assert (found.head, found.commit, found.root) == (None, None, str(tmp_path))
    assert head(str(tmp_path)) is None
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    found = committed(str(place))
    assert found is not None
    assert found.here == found.head == git(tmp_path, "rev-parse", "HEAD:a b")
    assert found.commit == git(tmp_path, "rev-parse", "HEAD")
    assert head(str(tmp_path)) == (found.commit, False)
    place.write_text("y")
    found = committed(str(place))
    assert found is not None
    assert found.here != found.head
    assert head(str(tmp_path)) == (found.commit, True)


def test_a_commit_of_other_files_leaves_the_files_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    before = committed(str(tmp_path / "a"))
    (tmp_path / "b").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "two")
    assert committed(str(tmp_path / "a")) == before


def test_an_ignored_file_is_not_committed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("inner/\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/a").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    found = committed(str(tmp_path / "inner/a"))
    assert found is not None
    assert found.head is None


def test_variables_lead_to_no_other_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, own = tmp_path / "other", tmp_path / "own"
    for folder in (other, own):
        folder.mkdir()
        (folder / "a").write_text(folder.name)
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "one")
    expected = committed(str(own / "a"))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert committed(str(own / "a")) == expected


def test_a_repository_without_git_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    git(tmp_path, "init", "-q")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitProblem, match="git is not installed"):
        committed(str(tmp_path / "a"))
    assert head(str(tmp_path)) is None
