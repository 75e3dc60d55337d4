"""Ranked results from files to rows: nested, columnar and flat JSONL, recognised by their fields."""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tripos.contracts.base import Contract
from tripos.contracts.retrieval import ALIASES, ColumnarResults, FlatResult, NestedResults, RankedRow
from tripos.errors import Findings, Place, quoted
from tripos.files.jsonl import not_lines, parsed, validated
from tripos.files.quick import quick_flat, quick_row
from tripos.files.streams import STDIN, physical_lines, spans

if TYPE_CHECKING:
    from tripos.files.formats.parquet import Table

FORMS: dict[str, type[Contract]] = {"results": NestedResults, "fragment_ids": ColumnarResults, "fragment_id": FlatResult}


DEFAULT_MEMORY = 1 << 30
"""Bytes that reading may take where the user sets no limit."""

MAX_BUCKETS = 100


class _FlatLine(NamedTuple):
    """One flat line, kept until its query is whole; sorts by rank."""

    rank: int
    number: int
    fragment_id: str
    score: float | None
    file: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file of ranked results that can be read by itself.

    kind: lines (a span of bytes), bucket (flat lines of some queries, put aside with their numbers), or table (a range of
    Parquet rows). `file` is where it is read, `path` what the user calls it.
    """

    kind: Literal["lines", "bucket", "table"]
    path: str
    file: str
    span: tuple[int, int] = (0, -1)
    table: Table | None = None


def read_ranked(path: str, findings: Findings, *, lenient: bool = False, allow_extra: bool = False) -> Iterator[RankedRow]:
    """Ranked results, one row a query, whatever the form; a file that mixes forms is an error.

    Flat files come query by query at the end, since the lines of a query may stand anywhere.

    Args:
        path: JSONL (nested, columnar or flat), or Parquet.
        findings: Takes every fault.
        lenient: Drop unknown fields, and count them.
        allow_extra: Move unknown fields under `metadata`, and count them.
    """
    with pieces(path, 1, relaxed=lenient or allow_extra) as found:
        for piece in found:
            yield from read_piece(piece, findings, lenient=lenient, allow_extra=allow_extra)


@contextlib.contextmanager
def pieces(path: str, n: int, memory_limit: int = 0, *, relaxed: bool = False) -> Iterator[list[Piece]]:
    """The file in about n pieces, none of which shares a query with another, as far as the file allows.

    Flat lines that would need more than `memory_limit` bytes are put aside by query in a temporary folder, and unsorted
    flat Parquet is sorted there; the folder is gone when the block is left.
    """
    if is_parquet(path):
        with tempfile.TemporaryDirectory(prefix="tripos-") as folder:
            yield _tables(path, n, memory_limit, folder, relaxed)
    elif _needs_buckets(path, n, memory_limit):
        with tempfile.TemporaryDirectory(prefix="tripos-") as folder:
            files = _buckets(path, n, memory_limit, folder)
            yield [Piece("bucket", path, file) for file in files] if files else [Piece("lines", path, path)]
    else:
        flat = n > 1 and _is_flat(path)
        yield [Piece("lines", path, path, span) for span in spans(path, 1 if flat else n)]


def _tables(path: str, n: int, memory_limit: int, folder: str, relaxed: bool) -> list[Piece]:
    from tripos.files.formats import parquet

    table, file = parquet.table_of(path, relaxed=relaxed), path
    if table.layout == "flat" and not parquet.is_clustered(path):
        file = f"{folder}/sorted.parquet"
        parquet.clustered(path, file, memory_limit)
    return [Piece("table", path, file, span, table) for span in parquet.cuts(file, table, n)]


def is_parquet(path: str) -> bool:
    """Whether the file is Parquet, by its name or its first bytes."""
    if path.endswith(".parquet"):
        return True
    with contextlib.suppress(OSError, ValueError):
        return path != STDIN and Path(path).is_file() and _first_bytes(path, 4) == b"PAR1"
    return False


def _first_bytes(path: str, n: int) -> bytes:
    with Path(path).open("rb") as stream:
        return stream.read(n)


def _is_flat(path: str) -> bool:
    """Whether the first line of a plain file looks flat; whatever it is, reading decides."""
    if path == STDIN or not Path(path).is_file():
        return False
    line = next((line for _, line, _ in physical_lines(path)), b"")
    return b'"fragment_id"' in line and b'"results"' not in line


def _needs_buckets(path: str, n: int, memory_limit: int) -> bool:
    """Whether flat lines are too many to be grouped in memory (a line of 80 bytes takes about 320)."""
    if path == STDIN or path.endswith((".gz", ".zst")) or not Path(path).is_file():
        return False
    return 4 * Path(path).stat().st_size > (memory_limit or DEFAULT_MEMORY) // n and _is_flat(path)


def _buckets(path: str, n: int, memory_limit: int, folder: str) -> list[str]:
    """Put flat lines aside by query, each behind its number; [] where a line is not plainly flat: then all are read at once."""
    count = min(n * (1 + 4 * Path(path).stat().st_size * n // (memory_limit or DEFAULT_MEMORY)), MAX_BUCKETS)
    files = [f"{folder}/{number}.jsonl" for number in range(count)]
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(Path(file).open("wb")) for file in files]
        for number, line, _ in physical_lines(path):
            if (quick := quick_flat(line)) is None:
                return []
            streams[zlib.crc32(quick[0].encode()) % count].write(b"%d\t%b\n" % (number, line))
    return files


def read_piece(
    piece: Piece, findings: Findings, form: Form | None = None, *, lenient: bool = False, allow_extra: bool = False
) -> Iterator[RankedRow]:
    """The ranked rows of one piece; options as for `read_ranked`.

    Line numbers of a span that does not begin the file count from its start, good for nothing but order.
    """
    if piece.kind == "table":
        from tripos.files.formats.parquet_rows import Slice, read_table

        assert piece.table is not None
        yield from _once(read_table(Slice(piece.file, piece.path, piece.table, *piece.span), findings), findings)
        return
    lines = _numbered(piece.file) if piece.kind == "bucket" else physical_lines(piece.file, piece.span)
    relaxed = {"lenient": lenient, "allow_extra": allow_extra}
    yield from _read_lines(piece.path, lines, findings, form or Form(), relaxed)


def _once(rows: Iterator[RankedRow], findings: Findings) -> Iterator[RankedRow]:
    seen: dict[str, Place] = {}
    for row in rows:
        if (first := seen.setdefault(row.query_id, row.place)) is not row.place:
            findings.error("duplicate_id", row.place, "query_id", f'"{quoted(row.query_id)}" was used at {first}')
            continue
        yield row


def _numbered(path: str) -> Iterator[tuple[int, bytes, bool]]:
    with Path(path).open("rb") as stream:
        for raw in stream:
            number, _, line = raw.partition(b"\t")
            yield int(number), line.rstrip(b"\n"), True


def _read_lines(
    path: str, lines: Iterable[tuple[int, bytes, bool]], findings: Findings, form: Form, relaxed: Mapping[str, bool]
) -> Iterator[RankedRow]:
    seen: dict[str, int] = {}
    flat: dict[str, list[_FlatLine]] = {}
    before = findings.n_errors
    for number, line, ended in lines:
        if form.is_flat and (quick := quick_flat(line)) is not None:
            name, fragment, rank, score = quick
            flat.setdefault(name, []).append(_FlatLine(rank, number, fragment, score, path))
            continue
        place = Place(path, number)
        if number == 1 and (reason := not_lines(line)):
            findings.error("not_jsonl", place, "", reason)
            return
        row = quick_row(line, place) if form.is_quick(line) else None
        if row is None:
            value = parsed(line, place, findings, ended=ended)
            strict = None if value is None else form.strict(value, place, findings, relaxed)
            if isinstance(strict, FlatResult):
                line_of = _FlatLine(strict.rank, number, strict.fragment_id, strict.score, path)
                flat.setdefault(strict.query_id, []).append(line_of)
                continue
            if strict is None:
                continue
            row = _nested(place, strict, findings) if isinstance(strict, NestedResults) else _columnar(place, strict)
        if (first := seen.setdefault(row.query_id, number)) != number:
            findings.error("duplicate_id", place, "query_id", f'"{quoted(row.query_id)}" was used at {Place(path, first)}')
            continue
        yield row
    is_faulty = findings.n_errors > before
    for name, own in flat.items():
        row = flat_row(name, own, findings)
        if is_faulty and row.ranks is not None and len(set(row.ranks)) == len(row.ranks):
            row.ranks = None  # a gap may be where the faulty line was
        yield row


class Form:
    """The one form of a file, known from its first row."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._mark = b""

    @property
    def is_flat(self) -> bool:
        """Whether the file is known to be flat."""
        return self.name == "fragment_id"

    def is_quick(self, line: bytes) -> bool:
        """Whether the quick reader may try this line: the file's form is known, and the line names its field."""
        return self._mark != b"" and self._mark in line

    def strict(
        self, value: dict[str, Any], place: Place, findings: Findings, relaxed: Mapping[str, bool]
    ) -> NestedResults | ColumnarResults | FlatResult | None:
        """The contract row, or None with what is wrong noted."""
        name = next((f for f in FORMS if f in value), None)
        if name is None:
            meant = next(((k, f) for f in FORMS for k in value if k in ALIASES.get(f, ())), None)
            if meant:
                findings.error("unknown_form", place, quoted(meant[0]), f"unknown field; did you mean {meant[1]}?")
            else:
                text = "has none of results, fragment_ids and fragment_id: this is no ranked result"
                findings.error("unknown_form", place, "", text)
            return None
        if self.name is None:
            self.name, self._mark = name, b"" if name == "fragment_id" else f'"{name}"'.encode()
        if name != self.name:
            text = f'has "{name}", but the file began with "{self.name}": one form a file'
            findings.error("unknown_form", place, "", text)
            return None
        row = validated(value, FORMS[name], place, findings, **relaxed)
        return row if isinstance(row, NestedResults | ColumnarResults | FlatResult) else None


def _nested(place: Place, row: NestedResults, findings: Findings) -> RankedRow:
    items = row.results
    return RankedRow(
        place=place,
        query_id=row.query_id,
        fragment_ids=[i.fragment_id for i in items],
        scores=_all_or_none([i.score for i in items], place, findings),
        ranks=[i.rank for i in items] if any(i.rank is not None for i in items) else None,
        sources=[i.source_id for i in items] if any(i.source_id is not None for i in items) else None,
        latency_ms=row.latency_ms,
        error=row.error,
        corpus_digest=row.corpus_digest,
        policy_digest=row.policy_digest,
    )


def _columnar(place: Place, row: ColumnarResults) -> RankedRow:
    return RankedRow(
        place=place,
        query_id=row.query_id,
        fragment_ids=row.fragment_ids,
        scores=row.scores or None,
        latency_ms=row.latency_ms,
        error=row.error,
        corpus_digest=row.corpus_digest,
        policy_digest=row.policy_digest,
    )


def flat_row(name: str, lines: list[_FlatLine], findings: Findings) -> RankedRow:
    """The row that the flat lines of one query make, by rank."""
    lines.sort()
    place = Place(lines[0].file, min(line.number for line in lines))
    scores = _all_or_none([line.score for line in lines], place, findings)
    ranks = [line.rank for line in lines]
    ids, numbers = [line.fragment_id for line in lines], [line.number for line in lines]
    return RankedRow(place, name, ids, scores, ranks=ranks, lines=numbers)


def _all_or_none(scores: list[float | None], place: Place, findings: Findings) -> list[float] | None:
    given = [s for s in scores if s is not None]
    if given and len(given) < len(scores):
        findings.error("scores", place, "score", f"given for {len(given)} of {len(scores)} results: give all or none")
        return None
    return given or None
