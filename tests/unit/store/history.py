"""Small worlds evaluated by the real runners and kept in a store, at times of the test's choosing."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.builders import Row, World, config_of, write_jsonl
from tripos.columns.rows import Kept
from tripos.contracts.config import Config, GenerationConfig, Options
from tripos.runners import generation, retrieval
from tripos.store.generation import content_of as of_generation
from tripos.store.retrieval import content_of as of_retrieval
from tripos.store.sandbox import Query, run
from tripos.store.saved import given, saved
from tripos.store.writing import Stored, store

FRAGMENTS = [
    {"fragment_id": f"{name}::f1", "text": f"text of {name}", "acl": ["board" if name == "d" else "staff"]} for name in "abcd"
]


def day(number: int) -> datetime:
    """Noon of a day in January."""
    return datetime(2026, 1, number, 12, tzinfo=UTC)


def keep(folder: Path, world: World, number: int = 1, *, name: str = "kb", labels: Sequence[str] = ()) -> Stored:
    """Evaluate a world and store it as executed on that day."""
    with tempfile.TemporaryDirectory() as inputs:
        config = config_of(Path(inputs), world).model_copy(update={"name": name})
        options = Options(order=world.order, **world.options)
        outcome = retrieval.evaluate(config, options, cutoffs=world.cutoffs)
        return store(of_retrieval(outcome, config, options), folder, labels, now=day(number))


def keep_answers(folder: Path, rows: Sequence[Row], number: int = 1, *, name: str = "kb") -> Stored:
    """Evaluate answers over FRAGMENTS and store them as executed on that day."""
    with tempfile.TemporaryDirectory() as inputs:
        fragments = write_jsonl(Path(inputs) / "fragments.jsonl", FRAGMENTS)
        path = write_jsonl(Path(inputs) / "answers.jsonl", rows)
        config = Config(name=name, fragments=(fragments,), generation=GenerationConfig(input=path))
        with Kept() as kept:
            outcome = generation.evaluate(config, kept=kept)
            return store(of_generation(outcome, kept, config, Options()), folder, now=day(number))


def ask(folder: Path, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a query, as `tripos query` would read them."""
    with run(Query(str(folder), sql, parameters, timeout_s=20)) as result:
        return list(result.rows())


def ask_saved(folder: Path, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
    """The rows of a saved query, by column."""
    found = saved(name)
    values = given({key: str(value) for key, value in parameters.items()}, found.parameters)
    with run(Query(str(folder), found.sql, values, timeout_s=20, looks_back=found.recent(values))) as result:
        names = [column for column, _ in result.columns]
        return [dict(zip(names, row, strict=True)) for row in result.rows()]


def only(rows: Sequence[Mapping[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of rows."""
    return [tuple(row[name] for name in names) for row in rows]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
