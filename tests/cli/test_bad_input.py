"""Bad input: each kind has its exit code, its line of `file:line  field  message`, and loses nothing that was there."""

from __future__ import annotations

import gzip
import json
import os
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import zstandard

from tests.cli.world import (
    FRAGMENTS,
    JUDGMENTS,
    MISSES,
    OLD,
    REPORT,
    RESULTS,
    Outcome,
    World,
    columnar,
    contents,
    flat,
    fragment,
    judgment,
    lines,
    result,
    run,
)

Change = Callable[[World], object]
Check = Callable[[Outcome], object]

ESCAPE = "\x1b[2J\x9b7m\u202e"
"""Clears the screen, sets a colour by the one-byte form, turns the writing direction."""


class Line(NamedTuple):
    """One line of standard error: where, which field, and words of the message."""

    place: str
    field: str
    words: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Whether the text is this line."""
        head = f"{self.place} " if self.place == "tripos:" else f"{self.place}  " + (f"{self.field}  " if self.field else "")
        return text.startswith(head) and all(word in text.removeprefix(head) for word in self.words)


def line(place: str, field: str, *words: str) -> Line:
    """A finding; `place` is its file and line."""
    return Line(place, field, words)


def tripos(*words: str) -> Line:
    """An error that stands in no file."""
    return Line("tripos:", "", words)


class Case(NamedTuple):
    """One thing done to the world, and what must come of it."""

    name: str
    change: Change
    code: int
    expected: Sequence[Line] = ()
    flags: Sequence[str] = ()
    check: Check | None = None


def case(name: str, change: Change, code: int, *expected: Line, flags: str = "") -> Case:
    """Input that is refused with exactly the expected lines."""
    return Case(name, change, code, expected, flags.split(), None)


def scored(name: str, change: Change, code: int, check: Check, *, flags: str = "") -> Case:
    """Input that is measured; `check` looks at the numbers."""
    return Case(name, change, code, (), flags.split(), check)


def table(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """The cases as parameters."""
    return pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in cases])


def nothing(_world: World) -> None:
    """Change nothing."""


def rows_of(world: World, name: str) -> list[dict[str, Any]]:
    """The rows of one input."""
    return {FRAGMENTS: world.fragments, JUDGMENTS: world.judgments, RESULTS: world.results}[name]


def swap(name: str, old: str | bytes, new: str | bytes, count: int = 1) -> Change:
    """Replace bytes of one input."""
    before, after = (part.encode() if isinstance(part, str) else part for part in (old, new))

    def change(world: World) -> None:
        content = world.raw.get(name) or lines(rows_of(world, name))
        assert before in content
        world.raw[name] = content.replace(before, after, count)

    return change


def recode(name: str, code: Callable[[bytes], bytes | None]) -> Change:
    """Turn the bytes of one input into others; None removes the file."""

    def change(world: World) -> None:
        world.raw[name] = code(lines(rows_of(world, name)))

    return change


def packed(name: str, suffix: str, code: Callable[[bytes], bytes]) -> Change:
    """Give one input compressed."""

    def change(world: World) -> None:
        world.raw[name] = None
        world.files[name + suffix] = code(lines(rows_of(world, name)))
        world.names[name] = name + suffix

    return change


def named(name: str, other: str) -> Change:
    """Call one input by another name."""
    return lambda world: world.names.update({name: other})


def both(*changes: Change) -> Change:
    """One change after the other."""

    def change(world: World) -> None:
        for one in changes:
            one(world)

    return change


def q2(**fields: Any) -> Change:
    """Set fields of judgment q2, line 2."""
    return lambda world: world.judgments[1].update(fields)


def r2(**fields: Any) -> Change:
    """Set fields of the results of q2, line 2."""
    return lambda world: world.results[1].update(fields)


def items(*pairs: tuple[str, Any]) -> Change:
    """Give q2 these results with these scores (None: without)."""
    made = [{"fragment_id": name} | ({} if score is None else {"score": score}) for name, score in pairs]
    return r2(results=made)


def item(**fields: Any) -> Change:
    """Set fields of the first result of q2."""
    return lambda world: world.results[1]["results"][0].update(fields)


def f1(**fields: Any) -> Change:
    """Set fields of the first fragment, s1::f1."""
    return lambda world: world.fragments[0].update(fields)


def without(row: Callable[[World], dict[str, Any]], field: str, new: str | None = None) -> Change:
    """Drop a field of a row, or give it another name."""

    def change(world: World) -> None:
        value = row(world).pop(field)
        if new is not None:
            row(world)[new] = value

    return change


def every_result(name: str) -> Change:
    """Name every result of q2 after another corpus."""

    def change(world: World) -> None:
        for one in world.results[1]["results"]:
            one["fragment_id"] = one["fragment_id"].replace("s", name)

    return change


F, J, R = FRAGMENTS, JUDGMENTS, RESULTS
J2, R2 = f"{J}:2", f"{R}:2"
BIG = 2**53 + 1
SCALARS = (
    "a value that is no scalar is told once for each type it might have been, none of them named as a field the user wrote"
)
BIG_INT = "whole numbers beyond 2^53 end in exit 70: canonical JSON refuses them and nobody asks before"
CASCADE = "rows of a faulty fragments file are skipped, then missed by the judgments: one fault is told as many"
FLAT_LINE = "faults of a flat file are told at the query's first line, not at the line they stand on"
LENIENT = "--lenient does not accept what the design says it accepts"
GATE_FLAG = "a gate flag that names no measure exits 3 as if a file were at fault; wrong flags are exit 2"
GATE_LINE = "gates of a configuration file are refused without their line"

IDS = [
    case("integer query id", q2(query_id=2), 3, line(J2, "query_id", "number 2", 'write "2"')),
    case("integer source id", q2(expected_sources=[2]), 3, line(J2, "expected_sources[0]", "number 2", 'write "2"')),
    case("integer result id", item(fragment_id=3), 3, line(R2, "results[0].fragment_id", "number 3", 'write "3"')),
    case("integer fragment id", lambda w: w.fragments[3].update(fragment_id=7), 3, line(f"{F}:4", "fragment_id", "number 7")),
    case("id of a decimal number", q2(query_id=2.5), 3, line(J2, "query_id", 'write "2.5"')),
    case("null id", q2(query_id=None), 3, line(J2, "query_id", "null", "string")),
    case("empty id", q2(query_id=""), 3, line(J2, "query_id", "empty")),
    case("NUL in an id", q2(query_id="q\0two"), 3, line(J2, "query_id", "NUL", "remove it")),
    case("NUL in a source", q2(expected_sources=["s\0two"]), 3, line(J2, "expected_sources[0]", "NUL")),
    case("raw NUL", swap(J, '"q2"', b'"q\x002"'), 3, line(J2, "", "no JSON", "control character")),
    case("a query id used twice", q2(query_id="q1"), 3, line(J2, "query_id", '"q1" was used at judgments.jsonl:1')),
    case(
        "a fragment id used twice",
        lambda w: w.fragments.append(fragment("s1")),
        3,
        line(f"{F}:7", "fragment_id", '"s1::f1" was used at fragments.jsonl:1'),
    ),
    case("results of a query twice", r2(query_id="q1"), 3, line(R2, "query_id", '"q1" was used at results.jsonl:1')),
    case(
        "a composed id is not the decomposed one",
        q2(expected_sources=["cafe\u0301"]),
        3,
        line(J2, "expected_sources", "cafe\u0301", "is in no fragment"),
    ),
    case(
        "a long id is cut in an error",
        q2(expected_sources=["long" * 2500]),
        3,
        line(J2, "expected_sources", "longlong", "(10,000 characters)", "is in no fragment"),
    ),
]

SYNTAX = [
    case("NaN score", swap(R, "0.8", "NaN"), 3, line(f"{R}:1", "", "NaN or Infinity", "null")),
    case("Infinity", swap(R, "0.8", "Infinity"), 3, line(f"{R}:1", "", "NaN or Infinity")),
    case("minus Infinity", swap(R, "0.8", "-Infinity"), 3, line(f"{R}:1", "", "NaN or Infinity")),
    case("1e999", swap(R, "0.8", "1e999"), 3, line(f"{R}:1", "results[1].score", "not a finite number")),
    case("a score of 401 digits", swap(R, "0.8", f"1{'0' * 400}"), 3, line(f"{R}:1", "results[1].score", "number")),
    case("score as a string", swap(R, "0.8", '"0.8"'), 3, line(f"{R}:1", "results[1].score", "a number is expected")),
    case("score as true", swap(R, "0.8", "true"), 3, line(f"{R}:1", "results[1].score", "a number is expected")),
    case("duplicate key", swap(J, '"q2", ', '"q2", "query_id": "q9", '), 3, line(J2, "query_id", "given twice")),
    case(
        "blank lines are counted", both(swap(J, "\n", "\n\n\n"), swap(J, '"q2"', "2")), 3, line(f"{J}:4", "query_id", "number")
    ),
    case("CRLF lines are counted", both(swap(J, "\n", "\r\n", 9), swap(J, '"q2"', "2")), 3, line(J2, "query_id", "number")),
    case("torn judgments", recode(J, lambda b: b[:-30]), 3, line(f"{J}:3", "", "torn", "middle of a row")),
    case("torn results", recode(R, lambda b: b[:-5]), 3, line(f"{R}:3", "", "torn")),
    case("torn fragments", recode(F, lambda b: b[:-30]), 3, line(f"{F}:6", "", "torn")),
    case("invalid UTF-8", swap(J, "question q2", b"question \xff"), 3, line(J2, "", "not UTF-8", "byte")),
    case("lone surrogate", swap(J, '"q2"', r'"q\ud800"'), 3, line(J2, "", "no JSON")),
    case("lone low surrogate", swap(J, "question q2", r"question \udc00"), 3, line(J2, "", "no JSON", "surrogate")),
    case(
        "array for JSONL", recode(J, lambda b: b"[" + b.replace(b"\n", b",") + b"]"), 3, line(f"{J}:1", "", "JSON array", "jq")
    ),
    case(
        "pretty-printed object", recode(R, lambda _: json.dumps({"a": 1}, indent=1).encode()), 3, line(f"{R}:1", "", "jq -c .")
    ),
    case("pretty-printed array", recode(F, lambda _: b"[\n{}\n]\n"), 3, line(f"{F}:1", "", "JSON array", "one object a line")),
    case("a line that is a list", recode(J, lambda b: b + b"[1]\n"), 3, line(f"{J}:4", "", "a list", "one JSON object a line")),
    case(
        "a line that is a number", recode(R, lambda b: b + b"7\n"), 3, line(f"{R}:4", "", "a number", "one JSON object a line")
    ),
    case("Parquet bytes", recode(R, lambda _: b"PAR1\x15\x04"), 3, line(R, "", "Parquet")),
    case("nested too deeply", recode(J, lambda b: b + b'{"a":' * 5000 + b"\n"), 3, line(f"{J}:4", "", "")),
]

FILES = [
    case("0 bytes of judgments", recode(J, lambda _: b""), 5, tripos(J, "nothing to evaluate", "no judgment")),
    case("0 bytes of fragments", recode(F, lambda _: b""), 3, line(F, "", "holds no fragment")),
    case("blank judgments", recode(J, lambda _: b"\xef\xbb\xbf\n \r\n"), 5, tripos("no judgment")),
    case("a directory for a file", named(J, "out"), 3, line("out", "", "is a directory", "name a file")),
    case("a missing file", named(J, "judgmnts.jsonl"), 3, line("judgmnts.jsonl", "", "no such file", 'mean "judgments.jsonl"')),
    case("missing results", named(R, "result.jsonl"), 3, line("result.jsonl", "", "no such file", 'mean "results.jsonl"')),
    case("missing fragments", named(F, "framents.jsonl"), 3, line("framents.jsonl", "", 'mean "fragments.jsonl"')),
    case("a missing folder", named(J, "kb/judgments.jsonl"), 3, line("kb/judgments.jsonl", "", "no such file", "no folder kb")),
    case("a file for a folder", named(J, f"{F}/x"), 3, line(f"{F}/x", "", "cannot be read", "Not a directory")),
    case("a name too long", named(J, "x" * 300), 3, line("x" * 300, "", "cannot be read", "too long")),
    case("a device that fails", named(J, "/proc/self/mem"), 3, line("/proc/self/mem", "", "cannot be read")),
    case("a torn .gz", packed(J, ".gz", lambda b: gzip.compress(b)[:-9]), 3, line(f"{J}.gz", "", "torn or damaged")),
    case("a torn .zst", packed(R, ".zst", lambda b: zstandard.compress(b)[:-9]), 3, line(f"{R}.zst", "", "torn or damaged")),
    case("a .zst torn in its head", packed(F, ".zst", lambda b: zstandard.compress(b)[:3]), 3, line(f"{F}.zst", "", "torn")),
    case("no .gz at all", packed(F, ".gz", bytes), 3, line(f"{F}.gz", "", "torn or damaged")),
    case("no .zst at all", packed(J, ".zst", bytes), 3, line(f"{J}.zst", "", "torn or damaged")),
    case("rubbish after a .gz", packed(R, ".gz", lambda b: gzip.compress(b) + b"x"), 3, line(f"{R}.gz", "", "torn or damaged")),
    case("two inputs on stdin", both(named(J, "-"), named(R, "-")), 2, tripos('"-"', "more than one input")),
    case(
        "two inputs on stdin, one with a collection",
        both(named(F, "kb=-"), named(R, "-")),
        2,
        tripos('"-"', "more than one input"),
    ),
    case("stdin is told by its name", both(named(J, "-"), lambda w: setattr(w, "stdin", b"{}\n")), 3, *(
        line("-:1", field, "missing")
        for field in ("query_id", "query", "expected_sources", "should_match", "category", "review_status")
    )),
]  # fmt: skip

OUTPUTS = [
    case("a file where the folder should be", nothing, 2, tripos(F, "is a file, not a folder"), flags=f"--output {F}"),
    case("a file within the path", nothing, 2, tripos("a part of this path is a file"), flags=f"--output {F}/deeper"),
    case("/proc", nothing, 2, tripos("/proc/tripos", "cannot be written"), flags="--output /proc/tripos"),
    case("per-query into a folder", nothing, 2, tripos("out", "is a directory"), flags="--per-query out"),
    case("per-query into /proc", nothing, 2, tripos("/proc/x", "cannot be written"), flags="--per-query /proc/x"),
    case(
        "per-query over an input", nothing, 2, tripos(J), flags=f"--per-query {J}",
    ),
    case(
        "per-query over the report", nothing, 2, tripos(REPORT), flags=f"--per-query out/{REPORT}",
    ),
]  # fmt: skip

JUDGED = [
    case("only drafts", lambda w: [row.update(review_status="draft") for row in w.judgments], 5,
         tripos("none of 3", "reviewed")),
    case("only calibration", lambda w: [row.update(category="calibration") for row in w.judgments], 5, tripos("calibration")),
    case("a split without rows", nothing, 5, tripos("no reviewed row is in split tune"), flags="--split tune"),
    case("k: 0", q2(k=0), 3, line(J2, "k", "is 0", "at least 1")),
    case("k beyond limit", q2(k=4), 3, line(J2, "k", "4 is beyond limit 3", "--limit")),
    case("k of a decimal number", q2(k=2.0), 3, line(J2, "k", "whole number")),
    case("a huge grade", q2(relevance={"s2": 1e300}), 3, line(J2, "relevance.s2", "1e+300", "at most 100")),
    case("a negative grade", q2(relevance={"s2": -1}), 3, line(J2, "relevance.s2", "-1", "above 0")),
    case("grade 0", q2(relevance={"s2": 0}), 3, line(J2, "relevance.s2", "is 0", "above 0")),
    case("grade 1e999", swap(J, '"q2", ', '"q2", "relevance": {"s2": 1e999}, '), 3, line(J2, "relevance.s2", "not a finite")),
    case("an ungraded expected source", q2(relevance={"s1": 1}), 3, line(J2, "relevance", '"s2"', "cover every expected")),
    case("multi_hop", q2(category="multi_hop_bridge"), 3, line(J2, "category", "multi_hop is refused", "eval-corpus")),
    case("should_match false", q2(should_match=False), 3, line(J2, "should_match", "false, but expected_sources is not empty")),
    case("should_match true", lambda w: w.judgments[2].update(should_match=True), 3,
         line(f"{J}:3", "should_match", "is empty")),
    case("should_match as a string", q2(should_match="true"), 3, line(J2, "should_match", "true or false is expected")),
    case("a string for a list", q2(expected_sources="s2"), 3, line(J2, "expected_sources", "a list is expected", '["s2"]')),
    case("unknown field, near", q2(expected_source=["s1"]), 3, line(J2, "expected_source", "did you mean expected_sources?")),
    case("unknown field, far", q2(zzz=1), 3, line(J2, "zzz", "unknown field", "metadata", "--allow-extra")),
    case("alias of a field", without(lambda w: w.judgments[1], "expected_sources", "gold"), 3,
         line(J2, "expected_sources", "missing", 'rename "gold" to "expected_sources"'),
         line(J2, "gold", "unknown field", "did you mean expected_sources?")),
    case("alias of query", without(lambda w: w.judgments[1], "query", "question"), 3,
         line(J2, "query", "missing", 'rename "question"'), line(J2, "question", "did you mean query?")),
    case("alias of results", without(lambda w: w.results[1], "results", "hits"), 3, line(R2, "hits", "did you mean results?")),
    case("unknown review status", q2(review_status="reviewd"), 3, line(J2, "review_status", "not one of", 'mean "reviewed"')),
    case("expected source not in corpus", q2(expected_sources=["s22"]), 3,
         line(J2, "expected_sources", '"s22" is in no fragment', 'did you mean "s2"?')),
    case("required source not in corpus", q2(required_sources=["s9"]), 3,
         line(J2, "required_sources", '"s9" is in no fragment')),
    case("forbidden source not in corpus", q2(forbidden_sources=["s9"]), 3, line(J2, "forbidden_sources", '"s9" is in no')),
    case("forbidden and expected", q2(forbidden_sources=["s2"]), 3, line(J2, "forbidden_sources", "also in expected_sources")),
    case("quote found nowhere", q2(expected_evidence=[{"source_id": "s2", "quote": "not a word of it"}]), 3,
         line(J2, "expected_evidence[0].quote", '"not a word of it" is nowhere in "s2"')),
    case("quote of an unknown source", q2(expected_evidence=[{"source_id": "s9", "quote": "What"}]), 3,
         line(J2, "expected_evidence[0].source_id", '"s9" is in no fragment')),
    case("unknown expected fragment", q2(expected_fragments=["s2::f2"]), 3, line(J2, "expected_fragments", '"s2::f2"', "mean")),
    case("principal without acl_default",
         both(without(lambda w: w.fragments[0], "acl"), q2(principal={"groups": ["everyone"]})),
         3, line(J2, "principal", "1 of 6 fragments have no acl", "--acl-default public")),
    case("nothing open to the principal", q2(principal={"groups": []}), 3, line(J2, "expected_sources", '"s2"', "admit")),
    case("authorization without principal", q2(category="authorization"), 3, line(J2, "principal", "missing")),
    case("hard negative without the near miss", q2(category="hard_negative"), 3, line(J2, "forbidden_sources", "empty")),
    case("placeholder", q2(query="REPLACE_WITH_QUESTION"), 3, line(J2, "query", "is a placeholder")),
    case("a filter that is a list", q2(filters={"tag": ["a"]}), 3, line(J2, "filters.tag", '["a"]')),
    case("metadata that is a list", f1(metadata={"tags": ["a"]}), 3, line(f"{F}:1", "metadata.tags", '["a"]')),
    case("metadata beyond 2^53", f1(metadata={"n": BIG}), 3, line(f"{F}:1", "metadata.n", str(BIG))),
    case("a filter beyond 2^53", q2(filters={"n": BIG}), 3, line(J2, "filters.n", str(BIG))),
    case("a slice beyond 2^53", q2(slices={"n": BIG}), 3, line(J2, "slices.n", str(BIG))),
    case("limit beyond 2^53", nothing, 2, tripos("depth.limit"), flags=f"--limit {BIG}"),
    case("one bad fragment is told once", lambda w: w.fragments[2].update(fragment_id=7), 3,
         line(f"{F}:3", "fragment_id", "7")),
    case("neither text nor digest", without(lambda w: w.fragments[3], "text"), 3,
         line(f"{F}:4", "text", "missing", "text_sha256")),
    case("a wrong text digest", f1(text_sha256="0" * 64), 3, line(f"{F}:1", "text_sha256", "not the sha256")),
    case("another collection", f1(collection="b"), 3, line(f"{F}:1", "collection", 'is "b"', '"a"'),
         flags=f"--fragments a={F}"),
]  # fmt: skip


def ranked_flat(*names: str) -> Change:
    """All results in the flat form; q2's begin on line 2."""
    return lambda world: setattr(world, "results", [*flat("q1", "s1::f1"), *flat("q2", *names)])


RANKED = [
    case("mixed forms", lambda w: w.results.__setitem__(1, columnar("q2", "s2::f1")), 3, line(R2, "", "one form a file")),
    case("flat among nested", lambda w: w.results.extend(flat("q9", "s2::f1")), 3, line(f"{R}:4", "", "one form a file")),
    case("no form at all", without(lambda w: w.results[1], "results"), 3, line(R2, "", "no ranked result")),
    case("a fragment twice", items(("s3::f1", 1), ("s3::f1", 0)), 3,
         line(R2, "results", '"s3::f1"', "more than once", "keep-first")),
    case("a rank that disagrees", item(rank=2), 3, line(R2, "rank", "2 stands at position 1", "--order")),
    case("rank 0", item(rank=0), 3, line(R2, "results[0].rank", "at least 1")),
    case("scores that rise", items(("s3::f1", 0.5), ("s2::f1", 0.9)), 3,
         line(R2, "scores", "rise from 0.5 to 0.9", "position 2")),
    case("scores that rise in the eighth digit", items(("s3::f1", 0.50000001), ("s2::f1", 0.50000002)), 3,
         line(R2, "scores", "0.50000001 to 0.50000002")),
    case("scores for some only", items(("s3::f1", None), ("s2::f1", 0.9)), 3,
         line(R2, "score", "1 of 2 results", "all or none")),
    case("columns of two lengths", lambda w: setattr(w, "results", [columnar("q2", "s2::f1", scores=[])]), 3,
         line(f"{R}:1", "scores", "0 values for 1 fragment_ids")),
    case("min_score without scores", items(("s3::f1", None)), 3, line(R2, "scores", "missing", "min_score 0.5"),
         flags="--min-score 0.5"),
    case("trec order without scores", items(("s3::f1", None)), 3, line(R2, "scores", "missing", "--order trec"),
         flags="--order trec"),
    case("a run of another corpus", every_result("t"), 3, *(
        line(R2, "fragment_id", f'"t{n}::f1" is in no fragment', f'mean "s{n}::f1"', "another corpus") for n in (3, 2, 4))),
    case("the wrong source", item(source_id="s9"), 3, line(R2, "source_id", '"s3::f1" is "s9"', 'corpus says "s3"')),
    case("stamp of another corpus", r2(corpus_digest="0" * 64), 4,
         tripos("another configuration"), line("A corpus", R2, "000000000000")),
    case("stamp of another policy", r2(policy_digest="0" * 64), 4,
         tripos("another configuration"), line("C search policy", R2, "000000000000")),
    case("a stamp that is none", r2(corpus_digest="abc"), 3, line(R2, "corpus_digest", "64 hexadecimal digits")),
    case("faults before stamps", both(r2(corpus_digest="0" * 64), lambda w: w.results[2].update(reslts=1)), 3,
         line(f"{R}:3", "reslts", "did you mean results?")),
    case("unknown field in a result", item(socre=1), 3, line(R2, "results[0].socre", "did you mean score?")),
    case("flat: unknown fragment", ranked_flat("s3::f1", "s2::f1", "t4::f1"), 3, line(f"{R}:4", "fragment_id", '"t4::f1"')),
    case("flat: a rank twice", both(ranked_flat("s3::f1", "s2::f1", "s4::f1"), lambda w: w.results[3].update(rank=2)), 3,
         line(f"{R}:4", "rank", "2 stands at position 3")),
    case("flat: a faulty line is told once", both(ranked_flat("s3::f1", "s2::f1"), lambda w: w.results[1].update(run="x")), 3,
         line(R2, "run", "unknown field")),
]  # fmt: skip

FLAGS = [
    case("--limit 0", nothing, 2, tripos("depth.limit", "is 0", "at least 1"), flags="--limit 0"),
    case("--top-k 0", nothing, 2, tripos("depth.top_k", "is 0"), flags="--top-k 0"),
    case("--top-k beyond limit", nothing, 2, tripos("4 is beyond limit 3"), flags="--top-k 4"),
    case("--cutoffs 0", nothing, 2, tripos("cutoff 0", "1..3"), flags="--cutoffs 0"),
    case("--cutoffs beyond limit", nothing, 2, tripos("cutoff 4", "1..3"), flags="--cutoffs 1,4"),
    case("--cutoffs in words", nothing, 2, tripos('"one"', "whole numbers"), flags="--cutoffs one"),
    case("--cutoffs with a gap", nothing, 2, tripos("whole numbers"), flags="--cutoffs 1,,3"),
    case("--min-score nan", nothing, 2, tripos("min_score", "finite"), flags="--min-score nan"),
    case("gate without a number", nothing, 2, tripos("hit@3", "MEASURE=NUMBER"), flags="--fail-under hit@3"),
    case("gate at NaN", nothing, 2, tripos("MEASURE=NUMBER"), flags="--fail-under hit@3=nan"),
    case("gate twice", nothing, 2, tripos('"hit@3" is given twice'), flags="--fail-under hit@3=.1 --fail-over hit@3=.9"),
    case("gate hit@0", nothing, 2, tripos('"hit@0"', "1..3"), flags="--fail-under hit@0=.5"),
    case("gate over no measure", nothing, 2, tripos('"precison@3"', '"precision"'), flags="--fail-under precison@3=1"),
]  # fmt: skip

REFUSED = [*IDS, *SYNTAX, *FILES, *OUTPUTS, *JUDGED, *RANKED, *FLAGS]


def assert_refused(before: dict[str, bytes], after: dict[str, bytes], outcome: Outcome, case: Case) -> None:
    """Exit code and lines as expected, nothing on stdout, no traceback, and every file as it was."""
    assert (outcome.code, outcome.out) == (case.code, ""), outcome.err
    assert "Traceback" not in outcome.err
    assert len(outcome.errors) == len(case.expected), outcome.err
    for text, expected in zip(outcome.errors, case.expected, strict=True):
        assert expected.matches(text), (text, expected)
        assert len(text) < 1000
    assert after == before


@table(REFUSED)
def test_refused(case: Case, world: World) -> None:
    case.change(world)
    world.write()
    before = world.everything()
    outcome = run(world.folder, world.arguments(*case.flags), world.stdin)
    assert_refused(before, world.everything(), outcome, case)


@pytest.mark.parametrize("gate", ["hit@0", "hit@4", "hit@k", "hit@3@3", "precison@3", "nosuch", "complete", ""])
def test_a_gate_that_names_nothing_stops_before_anything_is_written(gate: str, world: World) -> None:
    outcome = world.run("--fail-under", f"{gate}=0.5")
    assert (outcome.code in (2, 3), outcome.out) == (True, "")
    assert f'"{gate}"' in outcome.err
    assert contents(world.output) == OLD


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("--nosuch", "--nosuch"), ("--order sideways", "sideways"), ("--limit many", "--limit"), ("surplus", "surplus"),
     ("--split", "--split"), ("--scope whole", "whole")],
)  # fmt: skip
def test_flags_that_do_not_exist_are_usage_errors(arguments: str, said: str, world: World) -> None:
    outcome = world.run(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert contents(world.output) == OLD


@pytest.mark.parametrize(
    "flag", ["--judgments", "--ranked-results", "--fragments", "--timings", "--config", "--output", "--per-query"]
)
def test_a_name_too_long_for_any_file_is_told_in_a_line(flag: str, world: World) -> None:
    outcome = world.run(flag, "x" * 5000)
    assert outcome.code in (2, 3)
    assert outcome.out == ""
    assert "File name too long" in outcome.err
    assert "internal error" not in outcome.err


def test_a_file_without_permission(world: World) -> None:
    world.write()
    (world.folder / J).chmod(0)
    if os.access(world.folder / J, os.R_OK):  # root reads it all the same
        (world.folder / J).unlink()
        (world.folder / J).symlink_to(J)
    outcome = run(world.folder, world.arguments())
    assert (outcome.code, outcome.out) == (3, "")
    assert len(outcome.errors) == 1
    assert line(J, "", "cannot be read").matches(outcome.errors[0])
    assert contents(world.output) == OLD


def test_a_folder_in_place_of_the_report_costs_neither_file(world: World) -> None:
    world.write()
    (world.output / REPORT).unlink()
    (world.output / REPORT).mkdir()
    outcome = run(world.folder, world.arguments())
    assert (outcome.code, outcome.out) == (2, "")
    assert "is a directory" in outcome.err
    assert contents(world.output) == {MISSES: OLD[MISSES]}


def test_a_folder_in_place_of_the_misses_costs_neither_file(world: World) -> None:
    world.write()
    (world.output / MISSES).unlink()
    (world.output / MISSES).mkdir()
    outcome = run(world.folder, world.arguments())
    assert (outcome.code, outcome.out) == (2, "")
    assert contents(world.output) == {REPORT: OLD[REPORT]}


@pytest.mark.parametrize(("name", "as_output"), [(J, REPORT), (R, MISSES)])
def test_an_output_never_replaces_an_input(name: str, as_output: str, world: World) -> None:
    world.write()
    (world.output / as_output).write_bytes(lines(rows_of(world, name)))
    world.names[name] = f"out/{as_output}"
    before = world.everything()
    outcome = run(world.folder, world.arguments())
    assert (outcome.code, world.everything() == before) == (2, True)


def test_warnings_beyond_twenty_are_counted(world: World) -> None:
    world.judgments += [judgment(f"x{n:03}", "s1", query="Same?") for n in range(31)]
    outcome = world.run()
    assert len(outcome.errors) == 21
    assert "10 more warnings" in outcome.errors[-1]


def test_all_errors_come_at_once_capped_at_twenty(world: World) -> None:
    world.judgments += [judgment(f"x{n:03}", "s9") for n in range(30)]
    outcome = world.run()
    assert outcome.code == 3
    assert outcome.errors[0].startswith(f"{J}:4  expected_sources  ")
    assert outcome.errors[19].startswith(f"{J}:23  expected_sources  ")
    assert outcome.errors[20:] == ["… 10 more errors (--all-errors shows them)"]
    every = run(world.folder, world.arguments("--all-errors"))
    assert [text.partition("  ")[0] for text in every.errors] == [f"{J}:{n}" for n in range(4, 34)]


def test_faults_of_two_files_come_together(world: World) -> None:
    world.fragments[3]["acl"] = "everyone"
    world.judgments[1]["k"] = 0
    outcome = world.run()
    assert [text.split("  ")[:2] for text in outcome.errors] == [[f"{F}:4", "acl"], [J2, "k"]]


# What is measured, and what it comes to.


def hit(outcome: Outcome) -> tuple[list[float | None], list[float | None]]:
    """hit@k at k = 1..limit: value and worst."""
    curve = outcome.curve("hit")
    return list(curve.value), list(curve.worst)


def as_always(outcome: Outcome) -> None:
    """The numbers of the unchanged world: q1 at rank 1, q2 at rank 2, q3 left with nothing."""
    assert hit(outcome) == ([0.5, 1, 1], [0.5, 1, 1])
    assert outcome.curve("rr").value == (0.5, 0.75, 0.75)
    assert (outcome.single("expected_empty").value, outcome.single("expected_empty").n) == (1, 1)
    assert outcome.misses == {}


def one_incomplete(because: str) -> Check:
    """q2 is incomplete: value is of q1 alone, worst counts q2 as a failure."""

    def check(outcome: Outcome) -> None:
        assert hit(outcome) == ([1, 1, 1], [0.5, 0.5, 0.5])
        assert (outcome.curve("hit").n, outcome.curve("hit").incomplete) == (1, 1)
        assert [(row.query_id, row.because) for row in outcome.report.rows.incomplete] == [("q2", because)]
        assert outcome.misses["q2"].reasons == ("incomplete",)
        assert "q2" in outcome.out

    return check


def no_results(outcome: Outcome) -> None:
    """Every row is incomplete: no value at all, and worst 0."""
    assert hit(outcome) == ([None, None, None], [0, 0, 0])
    assert outcome.curve("hit").undefined == "all_incomplete"
    assert outcome.gate("complete") == ("failed", "3 of 3 queries have no usable result")


def empty_is_a_miss(outcome: Outcome) -> None:
    """An empty list is a measurement: q2 counts as 0, and is no incomplete row."""
    assert hit(outcome) == ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    assert (outcome.curve("hit").n, outcome.curve("hit").incomplete) == (2, 0)
    assert outcome.misses["q2"].reasons == ("no_hit",)
    assert outcome.gate("complete")[0] == "passed"


def all_expected_empty(outcome: Outcome) -> None:
    """No positive row: ranked means are undefined, not 0 and not 1; 1 of 3 is left with nothing."""
    assert hit(outcome) == ([None, None, None], [None, None, None])
    assert (outcome.curve("hit").undefined, outcome.curve("hit").n) == ("no_rows", 0)
    assert outcome.single("expected_empty").value == pytest.approx(1 / 3, abs=1e-12)
    assert {name: miss.reasons for name, miss in outcome.misses.items()} == {"q1": ("not_empty",), "q2": ("not_empty",)}


def vacuous(name: str) -> Check:
    """The gate has nothing to look at, and fails."""

    def check(outcome: Outcome) -> None:
        status, because = outcome.gate(name)
        assert (status, "undefined" in because) == ("vacuous", True)
        assert outcome.report.verdict.status == "failed"

    return check


def found_at(rank: int) -> Check:
    """s2 is found for q2 at this rank, and s1 for q1 at rank 1."""

    def check(outcome: Outcome) -> None:
        assert hit(outcome)[0] == [(1 + (k >= rank)) / 2 for k in (1, 2, 3)]

    return check


def tied(outcome: Outcome) -> None:
    """Constant scores: list order counts, and the reach of the ties is told."""
    as_always(outcome)
    (tie,) = outcome.report.ties
    assert (tie.k, tie.rows, tie.best["hit@1"], tie.worst["hit@1"]) == (1, 2, 1, 0)


def by_id_descending(outcome: Outcome) -> None:
    """Constant scores in trec order: s2, s1 for q1 and s4, s3, s2 for q2, so s1 is at rank 2 and s2 at rank 3."""
    assert hit(outcome)[0] == [0, 0.5, 1]


def beyond_the_list(outcome: Outcome) -> None:
    """K beyond the list: hit stays, precision goes on being divided by k; (1/10 + 1/10) / 2 at 10."""
    assert hit(outcome)[0] == [0.5] + [1] * 9
    assert outcome.curve("precision").value[9] == 0.1


def repeated_cutoffs(outcome: Outcome) -> None:
    """5,5,10 are two cutoffs."""
    assert list(outcome.curve("hit").ci) == ["5", "10"]
    assert outcome.out.splitlines()[2].split() == ["@5", "@10"]


def above_the_floor(outcome: Outcome) -> None:
    """min_score 0.85 leaves the first result of each list: q2 loses s2; three results go."""
    assert hit(outcome)[0] == [0.5, 0.5, 0.5]
    assert outcome.report.counts.below_min_score == 3


def constant(world: World) -> None:
    """Give every result the same score."""
    for row in world.results:
        for one in row["results"]:
            one["score"] = 0.5


def renamed(one: str, two: str) -> Change:
    """Call the sources s1 and s2 by other names throughout."""

    def change(world: World) -> None:
        for name in (F, J, R):
            content = lines(rows_of(world, name)).decode()
            for old, new in (("s1", one), ("s2", two)):
                start = json.dumps(new, ensure_ascii=False)[:-1]
                content = content.replace(f'"{old}"', f'{start}"').replace(f'"{old}::', f"{start}::")
            world.raw[name] = content.encode()

    return change


def on_stdin(name: str) -> Change:
    """Give one input on standard input."""

    def change(world: World) -> None:
        world.stdin = lines(rows_of(world, name))
        world.raw[name] = None
        world.names[name] = "-"

    return change


def only(*rows: dict[str, Any]) -> Change:
    """These judgments alone."""
    return lambda world: setattr(world, "judgments", list(rows))


EIGHTH = items(("s2::f1", 0.50000002), ("s3::f1", 0.50000001), ("s4::f1", 0.1))
ALL_EMPTY = only(judgment("q1"), judgment("q2"), judgment("q3"))

MEASURED = [
    scored("BOM", recode(J, lambda b: b"\xef\xbb\xbf" + b), 0, as_always),
    scored("CRLF", both(*(swap(name, "\n", "\r\n", 99) for name in (F, J, R))), 0, as_always),
    scored("blank lines", both(*(swap(name, "\n", "\n \n\n", 99) for name in (F, J, R))), 0, as_always),
    scored("no newline at the end", recode(R, lambda b: b[:-1]), 0, as_always),
    scored("ids with spaces", renamed(" a b ", "a b"), 0, as_always),
    scored("ids with a hash", renamed("#1", "a#b"), 0, as_always),
    scored("emoji", renamed("🦉", "👩‍🚀"), 0, as_always),
    scored("numbers as strings", renamed("1", "0001"), 0, as_always),
    scored("composed and decomposed ids differ", renamed("caf\u00e9", "cafe\u0301"), 0, as_always),
    scored("a 10,000-character id", renamed("long" * 2500, "b" * 10_000), 0, as_always),
    scored("K beyond the list", nothing, 0, beyond_the_list, flags="--limit 10"),
    scored("repeated K", nothing, 0, repeated_cutoffs, flags="--limit 10 --cutoffs 5,5,10"),
    scored("0 bytes of results", recode(R, lambda _: b""), 6, no_results),
    scored("a query missing from the run", lambda w: w.results.pop(1), 6, one_incomplete("no row in the ranked results")),
    scored("an error row", r2(error="timeout"), 6, one_incomplete("timeout")),
    scored("missing, and allowed", lambda w: w.results.pop(1), 0, one_incomplete("no row in the ranked results"),
           flags="--allow-incomplete"),
    scored("missing, allowed, and its gate reads worst", lambda w: w.results.pop(1), 1,
           lambda o: o.gate("hit@3") == ("failed", "worst 0.5") or pytest.fail(str(o.report.gates)),
           flags="--allow-incomplete --fail-under hit@3=0.6"),
    scored("an empty list", r2(results=[]), 0, empty_is_a_miss),
    scored("all expected-empty", ALL_EMPTY, 0, all_expected_empty),
    scored("a gate over no positives", ALL_EMPTY, 1, vacuous("hit@3"), flags="--fail-under hit@3=0"),
    scored("a gate over no forbidden", nothing, 1, vacuous("forbidden@3"), flags="--fail-over forbidden@3=1"),
    scored("a gate over no evidence", nothing, 1, vacuous("evidence_hit@3"), flags="--fail-under evidence_hit@3=0"),
    scored("a gate over no principal", nothing, 1, vacuous("leaks"), flags="--fail-over leaks=9"),
    scored("constant scores", constant, 0, tied),
    scored("constant scores in trec order", constant, 0, by_id_descending, flags="--order trec"),
    scored("the eighth digit, strict", EIGHTH, 0, found_at(1)),
    scored("the eighth digit in trec order", EIGHTH, 0, found_at(2), flags="--order trec"),
    scored("rising scores, list trusted", items(("s3::f1", 0.1), ("s2::f1", 0.9)), 0, found_at(2), flags="--order list"),
    scored("rising scores, sorted", items(("s3::f1", 0.1), ("s2::f1", 0.9)), 0, found_at(1), flags="--order score"),
    scored("a fragment twice, first kept", items(("s3::f1", 3), ("s3::f1", 2), ("s2::f1", 1)), 0, found_at(2),
           flags="--duplicates keep-first"),
    scored("min_score", nothing, 0, above_the_floor, flags="--min-score 0.85"),
    scored("results without a judgment", lambda w: w.results.append(result("q9", "unknown::f1")), 0,
           lambda o: o.report.counts.without_judgment == 1 or pytest.fail("not counted")),
    *(scored(f"{name}{suffix}", packed(name, suffix, pack), 0, as_always)
      for name in (F, J, R) for suffix, pack in ((".gz", gzip.compress), (".zst", zstandard.compress))),
    *(scored(f"{name} on stdin", on_stdin(name), 0, as_always) for name in (F, J, R)),
]  # fmt: skip


@table(MEASURED)
def test_measured(case: Case, world: World) -> None:
    case.change(world)
    outcome = world.run(*case.flags)
    assert outcome.code == case.code, outcome.err
    assert outcome.err == ""
    assert outcome.report.verdict.exit_code == case.code
    assert set(contents(world.output)) == {REPORT, MISSES}
    assert case.check is not None
    case.check(outcome)


def test_an_error_row_says_what_went_wrong(world: World) -> None:
    world.results[1]["error"] = ""
    outcome = world.run()
    assert outcome.code == 3
    assert line(R2, "error", "is empty").matches(outcome.errors[0])


# --lenient and --allow-extra.

LET_PASS = [
    scored("unknown field", q2(zzz=1), 0, lambda o: o.report.counts.lenient == {"unknown_fields": 1} or pytest.fail("count")),
    scored("duplicate result", items(("s3::f1", 3), ("s3::f1", 2), ("s2::f1", 1)), 0,
           lambda o: (o.report.counts.duplicates, found_at(2)(o)) == (1, None) or pytest.fail("count")),
    scored("unknown fragment", item(fragment_id="t3::f1"), 0,
           lambda o: o.report.counts.unknown_fragments == 1 or pytest.fail("count")),
    scored("unknown source", q2(expected_sources=["s9"]), 0,
           lambda o: (o.report.counts.lenient, hit(o)[0]) == ({"unknown_sources": 1}, [0.5] * 3) or pytest.fail("count")),
    scored("scores that rise", items(("s3::f1", 0.1), ("s2::f1", 0.9)), 0,
           lambda o: (o.report.counts.reordered, found_at(2)(o)) == (1, None) or pytest.fail("count")),
    scored("unknown field in a result", item(text="What it says"), 0,
           lambda o: o.report.counts.lenient == {"unknown_fields": 1} or pytest.fail("count")),
    scored("evidence of an unknown source", q2(expected_evidence=[{"source_id": "s9", "quote": "x"}]), 0,
           lambda o: o.report.counts.lenient == {"unknown_sources": 1} or pytest.fail("count")),
]  # fmt: skip


@table(LET_PASS)
def test_lenient_accepts_counts_and_marks(case: Case, world: World) -> None:
    case.change(world)
    strict = world.run()
    assert (strict.code, contents(world.output)) == (3, OLD)
    outcome = world.run("--lenient")
    assert outcome.code == 0, outcome.err
    assert outcome.report.exploratory
    assert "EXPLORATORY, cannot certify" in outcome.out
    assert case.check is not None
    case.check(outcome)


@pytest.mark.parametrize(
    "change",
    [q2(query_id=2), q2(query_id="q1"), q2(should_match=False), swap(R, "0.8", "NaN"), swap(J, '"q2", ', '"q2", "query": 1, '),
     q2(relevance={"s2": 0}), recode(J, lambda b: b[:-30]), item(rank=0), q2(k=9), swap(J, "question q2", b"\xff")],
)  # fmt: skip
def test_lenient_does_not_accept_what_changes_a_meaning(change: Change, world: World) -> None:
    change(world)
    outcome = world.run("--lenient")
    assert (outcome.code, outcome.out) == (3, "")
    assert contents(world.output) == OLD


def test_lenient_marks_even_what_needed_nothing(world: World) -> None:
    outcome = world.run("--lenient")
    assert outcome.code == 0
    assert outcome.report.exploratory == ("--lenient: nothing had to be let pass",)


def test_allow_extra_takes_own_fields_and_counts_them(world: World) -> None:
    for rows in (world.fragments, world.judgments, world.results):
        rows[0]["zzz"] = "own"
    assert world.run().code == 3
    outcome = world.run("--allow-extra")
    assert outcome.code == 0, outcome.err
    as_always(outcome)
    assert (outcome.report.counts.lenient, outcome.report.exploratory) == ({"unknown_fields": 3}, ())


def test_allow_extra_still_refuses_a_near_miss(world: World) -> None:
    world.judgments[1]["expected_source"] = ["s1"]
    outcome = world.run("--allow-extra")
    assert (outcome.code, outcome.out, contents(world.output)) == (3, "", OLD)
    assert outcome.errors == [f"{J2}  expected_source  unknown field; did you mean expected_sources?"]


# Configuration files.

CONFIG = f"""\
name: kb
fragments: [{F}]
judgments:
  retrieval: {J}
ranked_results: {R}
search:
  mode: hybrid
depth:
  limit: 3
"""


def config(old: str, new: str) -> Change:
    """Configuration with one part replaced; an empty `old` adds at the end."""
    text = CONFIG.replace(old, new) if old else CONFIG + new
    return lambda world: world.files.update({"kb.yaml": text.encode()})


def option(value: str) -> Change:
    """A policy option with this value, on line 8."""
    return config("hybrid", f"hybrid\n  options: {{a: {value}}}")


def torn_gzip(content: bytes) -> bytes:
    """The content, its compressed form cut short."""
    return gzip.compress(content)[:-9]


def torn_zstd(content: bytes) -> bytes:
    """The content, its compressed form cut short."""
    return zstandard.compress(content)[:-9]


def zipped(suffix: str, pack: Callable[[bytes], bytes]) -> Change:
    """The configuration, compressed."""
    return lambda world: world.files.update({f"kb{suffix}": pack(CONFIG.encode())})


UNREAD = "a configuration that cannot be read is told only where it is a plain file"
OPTIONS = "a policy option that canonical JSON cannot carry ends in exit 70"
CONFIGS = [
    case("unknown key, near", config("", "nmae: x\n"), 3, line("kb.yaml:10", "nmae", "did you mean name?")),
    case("unknown key, nested", config("", "  limt: 3\n"), 3, line("kb.yaml:10", "depth.limt", "did you mean limit?")),
    case("unknown key, far", config("name: kb\n", "zzz: 1\n"), 3, line("kb.yaml:1", "zzz", "unknown field")),
    case("two unknown keys", config("", "aaa: 1\nzzz: 1\n"), 3, line("kb.yaml:10", "aaa", "unknown"),
         line("kb.yaml:11", "zzz", "un")),
    case("duplicate key", config("", "name: other\n"), 3, line("kb.yaml:10", "", "duplicate key", "name")),
    case("duplicate nested key", config("", "  limit: 4\n"), 3, line("kb.yaml:10", "", "duplicate key", "limit")),
    case("1e3 is a number with a point", config("limit: 3", "limit: 1e3"), 3,
         line("kb.yaml:9", "depth.limit", "1000", "whole number")),
    case("1e3 is no string", config("name: kb", "name: 1e3"), 3, line("kb.yaml:1", "name", "is the number 1000")),
    case("sexagesimal is no number", config("limit: 3", "limit: 1:30"), 3,
         line("kb.yaml:9", "depth.limit", '"1:30"', "whole number")),
    case("limit 0", config("limit: 3", "limit: 0"), 3, line("kb.yaml:9", "depth.limit", "at least 1")),
    case("limit as a string", config("limit: 3", "limit: '3'"), 3, line("kb.yaml:9", "depth.limit", "whole number")),
    case("top_k beyond limit", config("", "  top_k: 4\n"), 3, line("kb.yaml:10", "depth.top_k", "4 is beyond limit 3")),
    case("unquoted version", config(f"  retrieval: {J}", f"  retrieval: {J}\n  version: 1.10"), 3,
         line("kb.yaml:5", "judgments.version", "is the number 1.1")),
    case("a string for a list", config(f"[{F}]", F), 3, line("kb.yaml:2", "fragments", "a list is expected")),
    case("gate as a number", config("", "gates: {hit@3: 0.9}\n"), 3, line("kb.yaml:10", "gates.hit@3", "object")),
    case("gate with both bounds", config("", "gates:\n  hit@3: {min: 0, max: 1}\n"), 3,
         line("kb.yaml:11", "gates.hit@3.min", "exactly one")),
    case("gate without a bound", config("", "gates:\n  hit@3: {}\n"), 3, line("kb.yaml:11", "gates.hit@3.min", "exactly one")),
    case("gate at .nan", config("", "gates:\n  hit@3: {min: .nan}\n"), 3, line("kb.yaml:11", "gates.hit@3.min", "finite")),
    case("gate over no measure", config("", "gates:\n  precison@3: {min: 1}\n"), 3,
         line("kb.yaml:11", "gates.precison@3", "no measure", '"precision"')),
    case("gate hit@0", config("", "gates:\n  hit@0: {min: 1}\n"), 3, line("kb.yaml:11", "gates.hit@0", "1..3")),
    case("no settings", config(CONFIG, ""), 3, line("kb.yaml", "", "no settings")),
    case("a list", config(CONFIG, "- name\n"), 3, line("kb.yaml", "", "no settings")),
    case("no YAML", config("", "a: [1,\n"), 3, line("kb.yaml:11", "", "no YAML")),
    case("a tab", config("", "\tname: kb\n"), 3, line("kb.yaml:10", "", "no YAML")),
    case("two documents", config("", "---\nname: kb\n"), 3, line("kb.yaml:10", "", "no YAML", "document")),
    case("a tag that would run code", config("", "z: !!python/object/apply:os.system [ls]\n"), 3,
         line("kb.yaml:10", "", "no YAML")),
    case("invalid UTF-8", lambda w: w.files.update({"kb.yaml": CONFIG.encode() + b"z: \xff\n"}), 3,
         line("kb.yaml", "", "not UTF-8")),
    case("a key that is a number", config("", "1: 2\n"), 3, line("kb.yaml:10", "1", "string")),
    case("an option .nan", option(".nan"), 3, line("kb.yaml:8", "search.options.a", "nan")),
    case("an option that is a date", option("2026-01-31"), 3, line("kb.yaml:8", "search.options.a")),
    case("an option beyond 2^53", option(str(BIG)), 3, line("kb.yaml:8", "search.options.a")),
    case("a nested fusion", config("hybrid", "hybrid\n  fusion: {a: {b: 1}}"), 3, line("kb.yaml:8", "search.fusion.a")),
    *(case(f"a torn configuration{suffix}", zipped(suffix, pack), 3, line(f"kb{suffix}", "", "torn or damaged"),
           flags=f"--config kb{suffix}")
      for suffix, pack, became in ((".gz", torn_gzip, "130, without a word"), (".zst", torn_zstd, "130, without a word"),
                                   (".yaml.gz", bytes, "70"), (".yaml.zst", bytes, "70"))),
    case("a configuration on a device that fails", nothing, 3, line("/proc/self/mem", "", "cannot be read"),
         flags="--config /proc/self/mem"),
    case("a configuration nested too deeply", config("", "a: " + "[" * 5000), 3, line("kb.yaml", "", "nested")),
    case("a missing configuration", lambda w: w.files.update({"kb.yml": b""}), 3,
         line("kb.yaml", "", "no such file", 'mean "kb.yml"')),
    case("a missing input", config(J, "judgmnts.jsonl"), 3,
         line("judgmnts.jsonl", "", "no such file", 'mean "judgments.jsonl"')),
]  # fmt: skip


@table(CONFIGS)
def test_configuration_refused(case: Case, world: World) -> None:
    case.change(world)
    world.write()
    before = world.everything()
    flags = case.flags or ["--config", "kb.yaml"]
    outcome = run(world.folder, ["eval-retrieval", *flags, "--output", "out"])
    assert_refused(before, world.everything(), outcome, case)


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [('nmae = "kb"\n', "nmae", "did you mean name?"), ("name = \n", "", "no TOML"), ('name = "a"\nname = "b"\n', "", "no TOML"),
     ("[search]\nmin_score = inf\n", "search.min_score", "finite")],
)  # fmt: skip
def test_toml_refused(text: str, fault: str, words: str, world: World) -> None:
    world.files["kb.toml"] = text.encode()
    world.write()
    outcome = run(world.folder, ["eval-retrieval", "--config", "kb.toml", "--output", "out"])
    assert (outcome.code, outcome.out, len(outcome.errors)) == (3, "", 1)
    assert line("kb.toml", fault, words).matches(outcome.errors[0])
    assert contents(world.output) == OLD


@pytest.mark.parametrize(("text", "read"), [("no", "no"), ("12:30:45", "12:30:45"), ("on", "on"), ("0o17", None), ("~", None)])
def test_yaml_means_what_version_1_2_says(text: str, read: str | None, world: World) -> None:
    config("hybrid", text)(world)
    world.write()
    outcome = run(world.folder, ["eval-retrieval", "--config", "kb.yaml", "--print-config", "--json"])
    assert (outcome.code == 0) == (read is not None or text == "~")
    if outcome.code == 0:
        assert json.loads(outcome.out)["search.mode"]["value"] == read


def test_missing_settings_are_named_by_flag(world: World) -> None:
    outcome = run(world.folder, ["eval-retrieval", "--fragments", F])
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors[0].startswith("tripos: missing --judgments, --ranked-results, --retrieval-mode ")


def test_a_gate_over_an_empty_slice_is_vacuous(world: World) -> None:
    config("", "gates:\n  hit@3: {min: 0, slice: {split: holdout}}\n")(world)
    world.write()
    outcome = run(world.folder, ["eval-retrieval", "--config", "kb.yaml", "--output", "out"])
    assert outcome.code == 1, outcome.err
    assert outcome.gate("hit@3")[0] == "vacuous"


# Terminal escapes.

SHOWN = "shown raw on the terminal"
ESCAPES = [
    case("query id twice", lambda w: [row.update(query_id=ESCAPE) for row in w.judgments], 3),
    case("fragment id twice", lambda w: [row.update(fragment_id=ESCAPE) for row in w.fragments], 3),
    case("results twice", lambda w: [row.update(query_id=ESCAPE) for row in w.results], 3),
    case("unknown source", q2(expected_sources=[ESCAPE]), 3),
    case("unknown field", q2(**{ESCAPE: 1}), 3),
    case("duplicate key", swap(J, '"q2"', r'"q2", "\u001b": 1, "\u001b": 2'), 3),
    case("unknown fragment", item(fragment_id=ESCAPE), 3),
    case("a fragment twice", both(lambda w: w.fragments.append(fragment(ESCAPE)),
                                  items((f"{ESCAPE}::f1", 2), (f"{ESCAPE}::f1", 1))), 3),
    case("the wrong source", item(source_id=ESCAPE), 3),
    case("the wrong source of", both(lambda w: w.fragments.append(fragment(ESCAPE)),
                                     item(fragment_id=f"{ESCAPE}::f1", source_id="x")), 3),
    case("a suggestion", both(lambda w: w.fragments.append(fragment("abcdefghijklmno" + ESCAPE)),
                              q2(expected_sources=["abcdefghijklmno"])), 3),
    case("category", q2(category="multi_hop" + ESCAPE), 3),
    case("review status", q2(review_status=ESCAPE), 3),
    case("collection", f1(collection=ESCAPE), 3, flags=f"--fragments a={F}"),
    case("quote", q2(expected_evidence=[{"source_id": "s2", "quote": ESCAPE}]), 3),
    case("placeholder", q2(query=f"TODO {ESCAPE}"), 3),
    case("a twin", both(q2(query="Same?" + ESCAPE, query_id="q" + ESCAPE),
         lambda w: w.judgments[0].update(query="Same?" + ESCAPE)), 6),
    case("an id without results", q2(query_id="q" + ESCAPE), 6),
    case("an error of the search", r2(error="failed: " + ESCAPE), 6),
    case("an id and text that miss", both(q2(query="Why?" + ESCAPE), r2(results=[])), 0),
    case("a category scored", q2(category=ESCAPE), 0),
    case("a slice", q2(slices={ESCAPE: ESCAPE}), 0),
    Case("a name", nothing, 0, flags=["--name", ESCAPE]),
    Case("a mode", nothing, 0, flags=["--retrieval-mode", ESCAPE]),
    Case("a mode of another policy", r2(policy_digest="0" * 64), 4, flags=["--retrieval-mode", ESCAPE]),
    Case("a gate", nothing, 2, flags=["--fail-under", f"{ESCAPE}=1"]),
    Case("a gate without a number", nothing, 2, flags=["--fail-under", ESCAPE]),
    Case("cutoffs", nothing, 2, flags=["--cutoffs", ESCAPE]),
    Case("a file name", named(J, f"j{ESCAPE}"), 3),
    Case("a folder name", nothing, 2, flags=["--output", f"{F}/{ESCAPE}"]),
    Case("a key of the configuration", lambda w: w.files.update({"kb.yaml": b'"z\\e[2J": 1\n'}), 3,
         flags=["--config", "kb.yaml"]),
]  # fmt: skip


def dangerous(text: str) -> set[str]:
    """Characters that move a cursor, change colours or turn the writing direction."""
    return {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")}


@table(ESCAPES)
def test_no_terminal_escape_reaches_the_terminal(case: Case, world: World) -> None:
    case.change(world)
    outcome = world.run(*case.flags)
    assert outcome.code == case.code, outcome.err
    assert dangerous(outcome.out + outcome.err) == set()
    if outcome.code in (0, 6):
        for content in contents(world.output).values():
            assert b"\x1b" not in content
