"""What holds the architecture: layers, start-up, public names, schemas, generated documents."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import tripos
from tripos.errors import TriposError

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "tripos").rglob("*.py"))


def loaded(code: str) -> set[str]:
    """Top-level modules that are loaded after running `code` in a fresh interpreter."""
    command = f"import sys\n{code}\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_help_loads_nothing_heavy() -> None:
    heavy = {"numpy", "pydantic", "orjson", "duckdb", "bm25s", "litellm", "rich", "ruamel", "zstandard", "scipy"}
    assert loaded("import tripos.cli.app") & heavy == set()


def test_importing_the_package_loads_nothing() -> None:
    assert loaded("import tripos") & {"numpy", "pydantic", "typer"} == set()


@pytest.mark.parametrize("module", ["runners.retrieval", "runners.generation", "runners.corpus", "across.stories"])
def test_an_evaluation_loads_no_search_and_no_network(module: str) -> None:
    assert loaded(f"import tripos.{module}") & {"bm25s", "duckdb", "litellm", "typer", "rich", "httpx", "requests"} == set()


def test_public_names_are_sorted_and_there() -> None:
    assert tripos.__all__ == sorted(tripos.__all__)
    for name in tripos.__all__:
        assert getattr(tripos, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = tripos.nothing_like_it


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_no_module_outgrows_its_room(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500


def test_errors_draw_their_own_tree() -> None:
    module = importlib.import_module("tripos.errors")
    drawn = module.__doc__ or ""
    classes: list[type[TriposError]] = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, TriposError)]
    assert len(classes) >= 7
    for error in classes:
        line = next(text for text in drawn.splitlines() if error.__name__ in text.split())
        assert str(int(error.exit_code)) in line.split(), error.__name__


def test_generated_files_are_up_to_date() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        generated = importlib.import_module("generate").generated()
    finally:
        sys.path.pop(0)
    stale = [path for path, text in generated.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    assert stale == [], "make docs"


def rows(path: str) -> list[object]:
    return [json.loads(line) for line in (ROOT / path).read_text().splitlines()]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("fragments", "golden/support-kb/fragments.jsonl"),
        ("retrieval-judgments", "golden/support-kb/retrieval_golden_single.jsonl"),
        ("ranked-results", "golden/support-kb/integration/ranked-results.jsonl"),
        ("fragments", "golden/drug-labels/fragments.jsonl"),
        ("corpus-judgments", "golden/drug-labels/corpus_golden.jsonl"),
    ],
)
def test_shipped_examples_fit_the_schemas(schema: str, path: str) -> None:
    validator = jsonschema.Draft202012Validator(json.loads((ROOT / f"schemas/{schema}.schema.json").read_text()))
    content = rows(path)
    assert content
    for row in content:
        validator.validate(row)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"query_id": 7})


def test_the_full_run_has_the_golden_inputs() -> None:
    for name in ("fragments.jsonl", "retrieval_golden_single.jsonl", "generation_golden.jsonl"):
        assert (ROOT / "engagement/full" / name).read_bytes() == (ROOT / "golden/support-kb" / name).read_bytes()
    judged = ROOT / "engagement/full/corpus_golden.jsonl"
    assert judged.read_bytes() == (ROOT / "golden/drug-labels/corpus_golden.jsonl").read_bytes()


def test_the_example_answers_are_in_step_with_its_corpus_policy_and_depth() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        restamped = importlib.import_module("restamp").restamped()
    finally:
        sys.path.pop(0)
    assert len(restamped) == 2
    stale = [path for path, text in restamped.items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert stale == [], "read the answers again, then make restamp"


@pytest.mark.parametrize("path", sorted(path.relative_to(ROOT) for path in (ROOT / "golden").rglob("*_golden*.jsonl")), ids=str)
def test_shipped_judgments_are_decided(path: Path) -> None:
    statuses = {row["review_status"] for row in map(json.loads, (ROOT / path).read_text().splitlines())}
    assert "reviewed" in statuses
    assert statuses <= {"reviewed", "rejected"}, "a certificate takes no draft or in_review row"


def test_no_broad_except_without_its_reason() -> None:
    for path in SOURCES:
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name) and node.type.id == "Exception":
                assert " - " in lines[node.lineno - 1], f"{path}:{node.lineno}"
