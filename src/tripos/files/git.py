"""What git knows: of a file, its committed content and the commit that made it so; of a folder, where it stands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60


class GitProblem(Exception):  # noqa: N818 - a state of the repository, which the caller words
    """Git could not say: it is missing, or refuses."""


class Committed(NamedTuple):
    """A file as HEAD of the repository at `root` has it, and as it is; both are git's own ids of the content."""

    root: str
    here: str
    head: str | None
    commit: str | None


def committed(path: str) -> Committed | None:
    """How a file compares with HEAD; None outside a repository.

    A link is followed. `head` is None where HEAD lacks the file, or there is no commit yet. Raises GitProblem.
    """
    place = Path(os.path.realpath(path))
    root = _root_above(place)
    if root is None:
        return None
    here = _git(place, "hash-object", "--", place.name)
    if here is None:
        raise GitProblem(f"git cannot read {path}")
    head = _git(place, "rev-parse", "--verify", "--quiet", f"HEAD:./{place.name}")
    commit = _git(place, "log", "-1", "--format=%H", "--", place.name) if head else None
    return Committed(str(root), here, head, commit)


def _root_above(place: Path) -> Path | None:
    """The folder that holds .git, looked for without git, so that its absence there can be told from git's own."""
    return next((folder for folder in place.parents if (folder / ".git").exists()), None)


def _git(place: Path, *words: str) -> str | None:
    """One answer of git; None where there is none. Variables that would point it elsewhere are taken out."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *words], cwd=place.parent, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError:
        raise GitProblem("git is not installed, and this is a repository: install git") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitProblem(f"git gave no answer: {error}") from None
    if "dubious ownership" in done.stderr:
        raise GitProblem("git refuses a repository of another owner: git config --global --add safe.directory FOLDER")
    return done.stdout.strip() or None if done.returncode == 0 else None


class Head(NamedTuple):
    """Where a working folder stands."""

    commit: str
    is_dirty: bool


def head(folder: str = ".") -> Head | None:
    """The commit checked out around a folder, and whether tracked files differ from it; None where git cannot say."""
    place = Path(os.path.realpath(folder)) / "_"
    try:
        commit = _git(place, "rev-parse", "--verify", "--quiet", "HEAD")
        changed = _git(place, "status", "--porcelain", "--untracked-files=no")
    except GitProblem:
        return None
    return None if commit is None else Head(commit, changed is not None)
