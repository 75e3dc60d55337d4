"""Seeded synthetic worlds of retrieval: judgments and a run, in every form that Tripos and its peers read.

Usage: python benchmarks/generate.py FOLDER [--rows 1e6] [--depth 100] [--seed 7] [--forms nested,columnar,…]

Every query has `depth` results; the result at rank r is relevant with probability 1 / (r + 2), so that five of six queries
have one in the top ten. Relevant documents that were not found come on top: five judged a query in all, of grades 1 to 3.
Scores fall; one result in fifty has the score of the one before it, where both have the same grade, so that tools which
break ties otherwise still give the same figures. Tied documents stand in trec_eval's order.

The same seed gives the same bytes on any machine: only the raw PCG64 stream is used, which NumPy keeps stable. Results are
written in blocks of 5,000 queries, as fixed-width text filled by NumPy; memory does not grow with rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

BLOCK = 5_000
FORMS = ("nested", "columnar", "flat", "parquet", "trec", "json")
FILES = {
    "nested": "run.nested.jsonl",
    "columnar": "run.columnar.jsonl",
    "flat": "run.flat.jsonl",
    "parquet": "run.parquet",
    "trec": "run.trec",
    "json": "run.json",
}
SPARE = 4
"""Documents drawn beyond the list: those judged relevant that were not found."""
SCALE = 10_000
"""Scores are whole multiples of 1 / SCALE, apart enough to differ as 32-bit floats too."""


@dataclass(frozen=True)
class World:
    """What decides every byte."""

    rows: int
    depth: int = 100
    seed: int = 7

    @property
    def queries(self) -> int:
        """Queries, each with `depth` results."""
        return self.rows // self.depth

    @property
    def documents(self) -> int:
        """Documents to choose from: a prime, so that steps of any size visit each of them once."""
        return _prime(min(max(1_000, 10 * self.queries), 1_000_000))


@dataclass(frozen=True)
class Block:
    """Some queries: documents and scores by query and rank, and the grades of what was and was not found."""

    first: int
    documents: Ints
    scores: Ints
    grades: Ints

    @property
    def numbers(self) -> Ints:
        """The queries' numbers."""
        return np.arange(self.first, self.first + len(self.documents))

    def judged(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Each query's id and the grades of its relevant documents, found ones first."""
        at, places = np.nonzero(self.grades)
        names = [f"doc{n:07d}" for n in self.documents[at, places].tolist()]
        pairs = list(zip(names, self.grades[at, places].tolist(), strict=True))
        ends = np.searchsorted(at, np.arange(len(self.documents) + 1)).tolist()
        for i, number in enumerate(self.numbers.tolist()):
            yield f"q{number:07d}", dict(pairs[ends[i] : ends[i + 1]])


def _prime(least: int) -> int:
    return next(n for n in range(least, 2 * least) if all(n % d for d in range(2, int(n**0.5) + 1)))


# ---- what is drawn


def blocks(world: World) -> Iterator[Block]:
    """The world, 5,000 queries at a time."""
    names = np.argsort(_raw(world.seed, 0, world.documents), kind="stable")
    for number, first in enumerate(range(0, world.queries, BLOCK)):
        yield _block(world, names, number + 1, first, min(BLOCK, world.queries - first))


def _raw(seed: int, stream: int, n: int) -> NDArray[np.uint64]:
    return np.random.PCG64(np.random.SeedSequence((seed, stream))).random_raw(n)


def _block(world: World, names: Ints, number: int, first: int, queries: int) -> Block:
    depth = world.depth
    raw = _raw(world.seed, number, queries * (4 * depth + 3 * SPARE))
    units = (raw >> np.uint64(11)).astype(np.float64).reshape(queries, -1) * 2.0**-53
    chosen, graded, gaps, tied, rest = np.split(units, [depth, 2 * depth, 3 * depth, 4 * depth], axis=1)
    grades = np.concatenate([_found(chosen, graded), _unfound(rest)], axis=1)
    grades[grades.sum(axis=1) == 0, depth] = 1
    steps = _gaps(gaps, tied, grades[:, :depth])
    scores = 90 * SCALE + (rest[:, -1:] * 9 * SCALE).astype(np.int64) - np.cumsum(steps, axis=1)
    documents = names[_steps(rest, depth + SPARE, len(names))]
    return Block(first, _in_order(documents, steps), scores, grades)


def _found(chosen: NDArray[np.float64], graded: NDArray[np.float64]) -> Ints:
    ranks = np.arange(1, chosen.shape[1] + 1)
    return np.where(chosen < 1 / (ranks + 2), _grade(graded), 0)


def _unfound(rest: NDArray[np.float64]) -> Ints:
    """0 to 3 relevant documents beyond the list, 1.25 in the mean."""
    many = np.searchsorted(np.array([0.25, 0.65, 0.85]), rest[:, :1], side="right")
    return np.where(np.arange(SPARE) < many, _grade(rest[:, SPARE : 2 * SPARE]), 0)


def _grade(unit: NDArray[np.float64]) -> Ints:
    return 1 + np.searchsorted(np.array([0.6, 0.9]), unit, side="right")


def _gaps(unit: NDArray[np.float64], tied: NDArray[np.float64], grades: Ints) -> Ints:
    """How far each score is below the one before; 0 where they tie: even ranks alone, so that ties are pairs."""
    gaps = 1 + (unit * 70 * SCALE / unit.shape[1]).astype(np.int64)  # 70 in all at most: scores keep six digits
    ties = tied < 0.04
    ties[:, ::2] = False
    ties[:, 1:] &= grades[:, 1:] == grades[:, :-1]
    return np.where(ties, 0, gaps)


def _steps(rest: NDArray[np.float64], n: int, size: int) -> Ints:
    """Distinct places for each query: a start, and steps of one length around a circle of prime size."""
    start = (rest[:, 2 * SPARE] * size).astype(np.int64)
    step = 1 + (rest[:, 2 * SPARE + 1] * (size - 1)).astype(np.int64)
    return np.asarray((start[:, None] + step[:, None] * np.arange(n)) % size, dtype=np.int64)


def _in_order(documents: Ints, steps: Ints) -> Ints:
    """Tied pairs in trec_eval's order: the greater id first."""
    at, rank = np.nonzero(steps[:, 1:] == 0)
    above, below = documents[at, rank], documents[at, rank + 1]
    documents[at, rank], documents[at, rank + 1] = np.maximum(above, below), np.minimum(above, below)
    return documents


# ---- what is written of the run

QUERY, DOCUMENT, SCORE = "q" + 7 * "\x01", "doc" + 7 * "\x02", "\x03\x03.\x03\x03\x03\x03"


def _texts(depth: int) -> dict[str, str]:
    """The text of one query's results in each form, with marks where digits go."""
    nested = ",".join([f'{{"fragment_id":"{DOCUMENT}","score":{SCORE}}}'] * depth)
    ids, scores = ",".join([f'"{DOCUMENT}"'] * depth), ",".join([SCORE] * depth)
    flat = f'{{"query_id":"{QUERY}","fragment_id":"{DOCUMENT}","rank":%d,"score":{SCORE}}}\n'
    trec = f"{QUERY} Q0 {DOCUMENT} %d {SCORE} bench\n"
    pairs = ",".join([f'"{DOCUMENT}":{SCORE}'] * depth)
    return {
        "nested": f'{{"query_id":"{QUERY}","results":[{nested}]}}\n',
        "columnar": f'{{"query_id":"{QUERY}","fragment_ids":[{ids}],"scores":[{scores}]}}\n',
        "flat": "".join(flat % rank for rank in range(1, depth + 1)),
        "trec": "".join(trec % rank for rank in range(1, depth + 1)),
        "json": f',\n"{QUERY}":{{{pairs}}}',
    }


class Template:
    """One query's text as bytes, filled for many queries at once."""

    def __init__(self, text: str) -> None:
        self._blank = np.frombuffer(text.encode(), np.uint8)
        self._query, self._document, self._score = (np.flatnonzero(self._blank == mark) for mark in (1, 2, 3))

    def fill(self, queries: Bytes, documents: Bytes, scores: Bytes) -> Bytes:
        """The text of all queries; digits by query, one after another."""
        text = np.repeat(self._blank[None], len(queries), axis=0)
        text[:, self._query] = np.tile(queries, len(self._query) // queries.shape[1])
        text[:, self._document] = documents
        text[:, self._score] = scores
        return text


def _digits(values: Ints, width: int) -> Bytes:
    places = 10 ** np.arange(width - 1, -1, -1)
    return (values[..., None] // places % 10 + ord("0")).astype(np.uint8).reshape(len(values), -1)


class RunFiles:
    """The run in each form that is text."""

    def __init__(self, folder: Path, depth: int, forms: set[str], stack: ExitStack) -> None:
        texts = _texts(depth)
        self._depth = depth
        self._templates = {form: Template(texts[form]) for form in texts if form in forms}
        self._files = {form: stack.enter_context((folder / FILES[form]).open("wb")) for form in self._templates}

    def write(self, block: Block) -> None:
        """Append a block to every file."""
        queries = _digits(block.numbers, 7)
        documents, scores = _digits(block.documents[:, : self._depth], 7), _digits(block.scores, 6)
        for form, template in self._templates.items():
            text = template.fill(queries, documents, scores)
            if form == "json" and block.first == 0:
                self._files[form].write(b"{")
                text = text.reshape(-1)[2:]
            self._files[form].write(text.data)

    def end(self) -> None:
        """Close what is open."""
        if "json" in self._files:
            self._files["json"].write(b"}\n")


def write_parquet(trec: Path, path: Path) -> None:
    """The run as flat rows in Parquet, in the order of the TREC run."""
    import duckdb

    columns = {
        "query_id": "VARCHAR",
        "q0": "VARCHAR",
        "fragment_id": "VARCHAR",
        "rank": "INTEGER",
        "score": "DOUBLE",
        "tag": "VARCHAR",
    }
    with duckdb.connect(config={"memory_limit": "1GB", "threads": "2"}) as connection:
        rows = f"read_csv('{trec}', delim=' ', header=false, quote='', auto_detect=false, columns={columns})"
        connection.execute(f"COPY (SELECT query_id, fragment_id, rank, score FROM {rows}) TO '{path}' (FORMAT parquet)")


# ---- what is written of the judgments


def _judgment(name: str, grades: dict[str, int]) -> str:
    row = {
        "query_id": name,
        "query": f"What is known of topic {name[1:].lstrip('0') or 0}?",
        "expected_sources": list(grades),
        "should_match": True,
        "category": "imported",
        "review_status": "reviewed",
        "relevance": grades,
    }
    return json.dumps(row, separators=(",", ":")) + "\n"


def _qrels(name: str, grades: dict[str, int]) -> str:
    return "".join(f"{name} 0 {document} {grade}\n" for document, grade in grades.items())


def _qrels_json(name: str, grades: dict[str, int]) -> str:
    return f',\n"{name}":{json.dumps(grades, separators=(",", ":"))}'


class JudgmentFiles:
    """The judgments as contract rows, and for peers as qrels and as a dictionary."""

    def __init__(self, folder: Path, forms: set[str], stack: ExitStack) -> None:
        writers: list[tuple[str, str, Callable[[str, dict[str, int]], str]]] = [
            ("nested", "judgments.jsonl", _judgment),
            ("trec", "qrels.txt", _qrels),
            ("json", "qrels.json", _qrels_json),
        ]
        self._writers: list[tuple[str, IO[str], Callable[[str, dict[str, int]], str]]] = [
            (form, stack.enter_context((folder / name).open("w")), text)
            for form, name, text in writers
            if form in forms or form == "nested"
        ]

    def write(self, block: Block) -> None:
        """Append a block to every file."""
        judged = list(block.judged())
        for form, file, text in self._writers:
            lines = "".join(text(name, grades) for name, grades in judged)
            file.write("{" + lines[2:] if form == "json" and block.first == 0 else lines)

    def end(self) -> None:
        """Close what is open."""
        for form, file, _ in self._writers:
            if form == "json":
                file.write("}\n")


# ---- all of it


def generate(world: World, folder: Path, forms: tuple[str, ...] = FORMS) -> None:
    """Write a world to a folder; `world.json` comes last and says that all of it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "world.json").unlink(missing_ok=True)
    texts = set(forms) | ({"trec"} if "parquet" in forms else set())
    with ExitStack() as stack:
        writers = (RunFiles(folder, world.depth, texts, stack), JudgmentFiles(folder, set(forms), stack))
        for block in blocks(world):
            for writer in writers:
                writer.write(block)
        for writer in writers:
            writer.end()
    if "parquet" in forms:
        write_parquet(folder / FILES["trec"], folder / FILES["parquet"])
    if "trec" not in forms:
        (folder / FILES["trec"]).unlink(missing_ok=True)
    (folder / "world.json").write_text(json.dumps(described(world, forms)))


def described(world: World, forms: tuple[str, ...]) -> dict[str, Any]:
    """What `world.json` says; data of another version of this script are made afresh."""
    return {**asdict(world), "forms": sorted(forms), "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}


def main() -> None:
    """Generate the world that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--forms", type=lambda text: tuple(text.split(",")), default=FORMS)
    args = parser.parse_args()
    started = time.perf_counter()
    world = World(args.rows, args.depth, args.seed)
    generate(world, args.folder, args.forms)
    print(f"{world.queries} queries, {world.queries * world.depth} results: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
