"""Random small worlds: fragments with sources, readers and metadata; judgments of every kind; results in every form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.builders import Order, Row, World, judgment
from tests.differential.oracle import Oracle, catalogued, in_order

SOURCES = ("a", "b", "é", "日本", "d::e")
GROUPS = ("staff", "board")
WORDS = ("alpha", "beta", "cafe\u0301", "delta")
SCORES = (0.9, 0.5 + 1e-9, 0.5, 0.25, 0.0)
"""The second and third differ as 64-bit floats alone."""
LANGUAGES: tuple[Any, ...] = ("de", 1, True, None)
MIN_SCORES = (None, None, 0.0, 0.3, 0.5, 2.0)


def some(values: Sequence[str], **sizes: Any) -> st.SearchStrategy[list[str]]:
    """Some of the values, each once, in any order."""
    if not values:
        return st.just([])
    return st.lists(st.sampled_from(values), unique=True, **sizes)


@st.composite
def fragments_of(draw: st.DrawFn) -> list[Row]:
    """A corpus; sources given or left to the id."""
    rows: list[Row] = []
    for source in draw(some(SOURCES, min_size=1)):
        for number in range(draw(st.integers(1, 3))):
            row: Row = {"fragment_id": f"{source}::f{number}"}
            if draw(st.booleans()):
                row = {"fragment_id": f"{number}-{source}", "source_id": source}
            row["text"] = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=4)))
            if draw(st.booleans()):
                row["acl"] = draw(some(GROUPS))
            if draw(st.booleans()):
                row["metadata"] = {"lang": draw(st.sampled_from(LANGUAGES))}
            rows.append(row)
    return rows


@st.composite
def judgments_of(draw: st.DrawFn, query_id: str, world: World, limit: int) -> Row:
    """One judgment that the world's corpus can carry."""
    corpus = Oracle(world)
    sources = sorted({corpus.source(name, None) for name in corpus.corpus}) or list(SOURCES)
    kinds = ("expected", "expected", "graded", "graded and nonrelevant", "nonrelevant", "forbidden", "both", "unjudged")
    roles = {source: draw(st.sampled_from(kinds)) for source in sources}
    expected = [s for s in sources if roles[s] == "expected"]
    row = judgment(
        query_id,
        *expected,
        nonrelevant_sources=[s for s in sources if roles[s] in ("nonrelevant", "graded and nonrelevant", "both")],
        forbidden_sources=[s for s in sources if roles[s] in ("forbidden", "both")],
    )
    row["required_sources"] = draw(some([s for s in sources if s not in row["forbidden_sources"]], max_size=2))
    row["slices"] = draw(st.sampled_from([{}, {"lang": "de"}, {"lang": 1}, {"lang": True}]))
    if draw(st.booleans()):
        row["k"] = draw(st.integers(1, limit))
    if draw(st.integers(0, 9)) == 0:
        row |= draw(st.sampled_from([{"review_status": "draft"}, {"category": "calibration"}]))
    if draw(st.booleans()):
        row["principal"] = {"groups": draw(some(GROUPS))}
    if draw(st.booleans()):
        row["filters"] = {"lang": draw(st.sampled_from(LANGUAGES))}
    if world.fragments and not all(corpus.admits(source, row) for source in expected):
        row.pop("principal", None)
        row.pop("filters", None)
    return row | draw(_finer(row, roles, world)) if expected else row


@st.composite
def _finer(draw: st.DrawFn, row: Row, roles: dict[str, str], world: World) -> Row:
    """Grades, groups, evidence, and a name given twice."""
    expected, finer = row["expected_sources"], Row()
    if draw(st.booleans()):
        held = [s for s, role in roles.items() if role.startswith(("expected", "graded"))]
        finer["relevance"] = {source: draw(st.sampled_from([0.5, 1, 2, 3, 4])) for source in held}
    finer["expected_groups"] = draw(st.lists(some(expected, min_size=1), max_size=2))
    match draw(st.sampled_from(["none", "fragments", "quotes"])):
        case "fragments":
            names = [fragment["fragment_id"] for fragment in world.fragments] or ["a::f0", "b"]
            finer["expected_fragments"] = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        case "quotes":
            finer["expected_evidence"] = draw(st.lists(quotes(world), min_size=1, max_size=2))
    if draw(st.integers(0, 4)) == 0:
        finer["expected_sources"] = [*expected, expected[0]]
    return finer


@st.composite
def quotes(draw: st.DrawFn, world: World) -> Row:
    """A passage of one source, within a fragment or across two neighbours; any words where the corpus has no texts."""
    if not world.fragments or "text" not in world.fragments[0]:
        names = [Oracle(world).source(row["fragment_id"], None) for row in world.fragments] or ["a"]
        return {"source_id": draw(st.sampled_from(names)), "quote": "alpha  beta"}
    oracle, chosen = Oracle(world), draw(st.sampled_from(list(world.fragments)))
    source = oracle.source(chosen["fragment_id"], None)
    rows = [row for row in world.fragments if oracle.source(row["fragment_id"], None) == source]
    own = [row["text"] for row in sorted(rows, key=lambda row: in_order(row["fragment_id"]))]
    start = draw(st.integers(0, len(own) - 1))
    words = " ".join(own[start : start + draw(st.integers(1, 2))]).split()
    first = draw(st.integers(0, len(words) - 1))
    return {"source_id": source, "quote": "  ".join(words[first : first + draw(st.integers(1, 4))])}


@st.composite
def results_of(draw: st.DrawFn, query_id: str, form: str, world: World) -> list[Row]:
    """The lines of one query's results in the form asked for; sometimes none, sometimes an error."""
    names = [row["fragment_id"] for row in world.fragments] or [f"{source}::f{n}" for source in SOURCES for n in (0, 1)]
    if not world.fragments:
        names += ["a", "plain"]
    ids = draw(st.lists(st.sampled_from(names), max_size=9, unique="duplicates" not in world.options))
    needed = world.min_score is not None or world.order in ("trec", "score")
    scores = [draw(st.sampled_from(SCORES)) for _ in ids] if needed or draw(st.booleans()) else None
    if scores is not None and world.order == "strict":
        scores = sorted(scores, reverse=True)
    blank: list[float | None] = [None] * len(ids)
    pairs = list(zip(ids, blank if scores is None else scores, strict=True))
    if form == "flat":
        lines: list[Row] = [{"query_id": query_id, "fragment_id": n, "rank": i} for i, (n, _) in enumerate(pairs, 1)]
        return [line if score is None else line | {"score": score} for line, (_, score) in zip(lines, pairs, strict=True)]
    failed = {"error": "timeout"} if draw(st.integers(0, 7)) == 0 else {}
    if form == "columnar":
        row: Row = {"query_id": query_id, "fragment_ids": ids, **failed}
        return [row | ({} if scores is None else {"scores": scores})]
    items = [{"fragment_id": name} | ({} if score is None else {"score": score}) for name, score in pairs]
    if not world.fragments and draw(st.booleans()):
        items = [item | {"source_id": draw(st.sampled_from(SOURCES))} for item in items]
    return [{"query_id": query_id, "results": items, **failed}]


@st.composite
def worlds(draw: st.DrawFn, max_rows: int = 4) -> World:
    """A whole world; the files of one evaluation."""
    fragments = draw(fragments_of()) if draw(st.integers(0, 3)) else []
    if fragments and draw(st.integers(0, 4)) == 0:
        fragments = [catalogued(row) for row in fragments]
    limit = draw(st.integers(1, 6))
    orders: list[Order] = ["strict", "strict", "score", "trec"]
    frame = World(
        judgments=[],
        results=[],
        fragments=fragments,
        limit=limit,
        top_k=draw(st.none() | st.integers(1, limit)),
        unit=draw(st.sampled_from(["fragment", "source"])),
        min_score=draw(st.sampled_from(MIN_SCORES)),
        acl_default=draw(st.sampled_from(["public", "deny"])),
        order=draw(st.sampled_from(orders)),
        options={"duplicates": "keep-first"} if draw(st.booleans()) else {},
    )
    names = [f"q{i}" for i in range(draw(st.integers(1, max_rows)))]
    judgments = [draw(judgments_of(name, frame, limit)) for name in names]
    judgments[0] |= {"review_status": "reviewed"}
    if judgments[0]["category"] == "calibration":
        judgments[0]["category"] = "structural"
    form = draw(st.sampled_from(["nested", "columnar", "flat"]))
    answered = [*(name for name in names if draw(st.integers(0, 7))), "unasked"]
    results = [line for name in answered for line in draw(results_of(name, form, frame))]
    return World(**{**vars(frame), "judgments": judgments, "results": draw(st.permutations(results))})
