"""The README's commands do what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def sessions(text: str) -> list[tuple[str, str]]:
    """(command, output shown) of every ```console block."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def matches(shown: str, real: str) -> bool:
    """Whether the output is as shown: "…" stands for anything within a line, a line "[…]" for any lines."""
    pattern = "\n".join(
        r"(?:.*\n)*?.*" if line == "[…]" else re.escape(line.rstrip()).replace("…", ".*") for line in shown.strip().splitlines()
    )
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in real.strip().splitlines())) is not None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the sessions use, as a fresh clone has it: committed, whatever is being edited here, without earlier outputs."""
    for name in ("configs", "golden"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in (".gitignore", *re.findall(r"^!/(.+)$", (ROOT / ".gitignore").read_text(), flags=re.MULTILINE)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "--message", "the example"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env=outside_git())
    return tmp_path


def outside_git() -> dict[str, str]:
    """The environment without what a git hook sets, which would lead to the repository that the hook runs for."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_shown_sessions_are_real(checkout: Path) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    shown = [session for page in pages for session in sessions(page.read_text())]
    assert len(shown) >= 5
    environment = outside_git() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command, output in shown:
        done = subprocess.run(command.split(), cwd=checkout, capture_output=True, text=True, check=False, env=environment)
        told = re.search(r"\(exit (\d+)\)$", output, flags=re.MULTILINE)
        assert done.returncode == (int(told[1]) if told else 0), done.stderr
        assert matches(output, done.stderr + done.stdout), done.stderr + done.stdout


def test_matching_notices_a_changed_figure() -> None:
    assert matches("hit .581 … n 62", "hit .581 whatever n 62")
    assert not matches("hit .581 … n 62", "hit .582 whatever n 62")
    assert not matches("one line", "one line\nanother")
    assert matches("first\n[…]\nlast", "first\n\nany\nlast")
    assert not matches("first\n[…]\nlast", "first\nany\nlost")


def test_linked_files_exist() -> None:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_two_commands_come_first_and_ci_runs_them() -> None:
    first = re.search(r"```\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert first is not None
    assert first[1].split("\n") == ["make demo", "make test", ""]
    script = (ROOT / ".ci/run").read_text().splitlines()
    assert script.index("make test") < script.index("make demo")


def test_every_command_is_in_the_readme_or_the_commands_page() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tripos.cli.app import main; main()", "--help"], capture_output=True, text=True, check=True
    )
    names = re.findall(r"^  ([a-z-]+)  ", done.stdout.split("Commands:")[1], flags=re.MULTILINE)
    assert "eval-retrieval" in names
    page = (ROOT / "docs/commands.md").read_text()
    assert [name for name in names if f"## tripos {name}" not in page] == []
