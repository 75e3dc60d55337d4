"""Ways to change a certified run: behind its reports' backs, or with everything evaluated anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.certified_world import JUDGED, CertifiedRun, Row
from tests.generation_worlds import write

Make = Callable[[CertifiedRun], None]

FULL, TWO = "engagement/full", "engagement/two-collections"
FRAGMENTS = "fragments.jsonl"
GOLDEN, GOLDEN_ANSWERS, ANSWERS = JUDGED
RANKED = "ranked-results.jsonl"
HIDDEN = "support-016::f0001"
"""A fragment that admins alone may read."""


def put(name: str, row_id: str, key: str = "query_id", **values: Any) -> Make:
    """Set fields of one row."""
    return lambda run: run.change(name, row_id, lambda row: row.update(values), key)


def change(name: str, row_id: str, edit: Callable[[Row], object]) -> Make:
    """Edit one row."""
    return lambda run: run.change(name, row_id, edit)


def drop(name: str, row_id: str, key: str = "query_id") -> Make:
    """Take one row out."""
    return lambda run: run.remove(name, row_id, key)


def text(name: str, old: str, new: str) -> Make:
    """Replace a text in a file."""
    return lambda run: run.replace(name, old, new)


def report(name: str, edit: Callable[[Row], object], *, seal: bool = True) -> Make:
    """A report edited, its run_id made to fit."""
    return lambda run: run.edit(name, edit, seal=seal)


def again(*makes: Make, flags: tuple[str, ...] = ()) -> Make:
    """Make the changes, then evaluate retrieval and answers anew."""

    def make(run: CertifiedRun) -> None:
        for each in makes:
            each(run)
        run.evaluate(*flags)

    return make


def both(*makes: Make) -> Make:
    """One after the other."""

    def make(run: CertifiedRun) -> None:
        for each in makes:
            each(run)

    return make


def alone(command: str, *flags: str) -> Make:
    """Evaluate one layer anew, under other flags, and leave the other's report as it is."""

    def make(run: CertifiedRun) -> None:
        assert run.run(command, *flags).code in (0, 1, 6)

    return make


def gone(name: str) -> Make:
    """A file deleted."""
    return lambda run: (run.folder / name).unlink()


def torn(name: str) -> Make:
    """A file that ends in its middle."""

    def make(run: CertifiedRun) -> None:
        path = run.full / name
        path.write_bytes(path.read_bytes()[:-40])

    return make


def swapped(row: Row) -> None:
    """The first two results in each other's place."""
    first, second = row["results"][:2]
    row["results"][:2] = [{**second, "score": first["score"]}, {**first, "score": second["score"]}]


def unjudged(row: Row) -> None:
    """No score from the judge."""
    del row["faithfulness_score"]


def leaking(row: Row) -> None:
    """A page for admins, shown to everyone."""
    row["results"][0]["fragment_id"] = HIDDEN


def reversed_merge(row: Row) -> None:
    """What was merged, last first, and handed on like that."""
    row["merged"] = row["merged"][::-1]
    row.pop("final", None)


def better(name: str, k: int | None = None) -> Callable[[Row], object]:
    """A figure, a little better."""

    def edit(report: Row) -> None:
        figure = report["measures"][name]
        if k is None:
            figure["value"] += 1e-8
        else:
            figure["value"][k - 1] += 1e-8

    return edit


def weaker(report: Row) -> None:
    """The first gate that was asked for, weakened."""
    next(gate for gate in report["gates"] if gate["asked"])["threshold"] = 0.5


def flipped(report: Row) -> None:
    """A verdict made good, and every gate with it."""
    for gate in report["gates"]:
        gate["status"] = "passed"
    report["verdict"] = {"status": "passed", "exit_code": 0, "because": []}


def other_top_k(report: Row) -> None:
    """A value of the fingerprint, without its digest."""
    report["fingerprint"]["components"]["D"]["values"]["top_k"] = 9


def every_group(run: CertifiedRun) -> None:
    """Principals who belong to every group have nothing to be barred from."""
    groups = {"principal": {"groups": ["everyone", "admins", "partners", "staff"]}}
    write(run.full / GOLDEN, [row | groups if "principal" in row else row for row in run.rows(GOLDEN)])


def unstamped(run: CertifiedRun) -> None:
    """No answer says what it was written from."""
    write(run.full / ANSWERS, [{k: v for k, v in row.items() if k != "system_fingerprint"} for row in run.rows(ANSWERS)])


def joined(run: CertifiedRun) -> None:
    """Answers and what is expected of them on one line, as another file."""
    golden = {row["query_id"]: row for row in run.rows(GOLDEN_ANSWERS)}
    write(run.full / "joined.jsonl", [golden[row["query_id"]] | row for row in run.rows(ANSWERS)])


def draft(run: CertifiedRun) -> None:
    """One more judgment, which nobody reviewed."""
    row = {"query_id": "q-900", "query": "Is there a dark mode?", "expected_sources": [], "should_match": False}
    write(run.full / GOLDEN, [*run.rows(GOLDEN), row | {"category": "negative", "review_status": "draft"}])


def config(old: str, new: str) -> Make:
    """Edit the configuration."""
    return text("configs/support-kb.yaml", old, new)


def nothing(_: CertifiedRun) -> None:
    """The files stay as they are."""


def reversed_rows(*names: str) -> Make:
    """The same rows, last first."""

    def make(run: CertifiedRun) -> None:
        for name in names:
            write(run.full / name, run.rows(name)[::-1])

    return make


def spaced(*names: str) -> Make:
    """The same rows, their fields in another order, with blanks, blank lines and CRLF."""

    def make(run: CertifiedRun) -> None:
        for name in names:
            lines = [json.dumps(dict(sorted(row.items())), indent=None, separators=(" , ", " : ")) for row in run.rows(name)]
            (run.full / name).write_bytes("\r\n\r\n".join(lines).encode())

    return make


def laid_out(*names: str) -> Make:
    """The same JSON, laid out in another way."""

    def make(run: CertifiedRun) -> None:
        for name in names:
            path = run.full / name
            path.write_text(json.dumps(json.loads(path.read_bytes())))

    return make
