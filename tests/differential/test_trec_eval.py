"""NIST's own test files: every figure that trec_eval prints and we share, equal to its last digit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import curve, single, write_jsonl
from tripos.columns.retrieval import FIRST
from tripos.contracts.config import Config, DepthConfig, JudgmentsConfig, Options, SearchConfig
from tripos.contracts.reports import Curve
from tripos.errors import Findings
from tripos.files.formats import trec, trec_rows
from tripos.measures.aggregate import per_row
from tripos.measures.block import blocks
from tripos.measures.retrieval import RETRIEVAL
from tripos.runners.retrieval import Evaluation, evaluate

DATA = Path(__file__).parents[3] / "shared" / "data" / "trec_eval_test"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="NIST's test files are not in this checkout")

LIMIT = 1000
OURS = {
    "map": "ap@k",
    "map_cut": "ap@k",
    "recip_rank": "rr@k",
    "P": "precision@k",
    "recall": "recall@k",
    "ndcg": "ndcg@k",
    "ndcg_cut": "ndcg@k",
    "success": "hit@k",
    "bpref": "bpref",
    "unj": "judged@k",
}
"""Our measure by trec_eval's name, the cutoff taken off; a name without cutoff is read at LIMIT, beyond every list here."""

COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret")


@dataclass(frozen=True)
class Case:
    """One published output and the command that made it."""

    output: str
    qrels: str
    run: str
    cells: int
    complete: bool = False
    level: int = 1
    depth: int | None = None
    empty: int = 0


# The four outputs of `all_trec -q` print for each of 3 topics 49 figures that we share: num_ret, num_rel, num_rel_ret, map,
# recip_rank, bpref and ndcg (7), P, recall, ndcg_cut and map_cut at 9 cutoffs each (36), success and unj at 3 each (6); and
# on the `all` line these and num_q (50). 3 × 49 + 50 = 197. Under -c the 3 cells of unj of the topic that is missing are
# left out: see `_topic`. out.comment.test prints the `all` line of the official measures alone: 4 counts, map, recip_rank,
# bpref and P at 9 cutoffs, 16; one of its 31 topics has no relevant document, and trec_eval takes it into its means as 0.
CASES = [
    Case("out.test.aq", "qrels.test", "results.test", 197),
    Case("out.test.aqc", "qrels.test", "results.trunc", 194, complete=True),
    Case("out.test.aqcM", "qrels.test", "results.trunc", 194, complete=True, depth=100),
    Case("out.test.aql", "qrels.rel_level", "results.test", 197, level=2),
    Case("out.comment.test", "qrels.comment.test", "results.comment.test", 16, empty=1),
]


def imported(case: Case, folder: Path) -> Evaluation:
    """The case through `import trec` and the runner."""
    findings = Findings()
    qrels = trec.read_qrels(str(DATA / case.qrels), findings)
    run = trec.read_run(str(DATA / case.run), findings)
    findings.raise_errors()
    found = trec_rows.judgments_from(qrels, level=case.level, keep_empty=True)
    assert len(found.empty) == case.empty
    results = (row for row, _ in trec_rows.results_from(run, depth=case.depth, form="columnar"))
    config = Config(
        judgments=JudgmentsConfig(retrieval=write_jsonl(folder / "judgments.jsonl", map(trec_rows.judgment_line, found.rows))),
        ranked_results=write_jsonl(folder / "ranked-results.jsonl", results),
        search=SearchConfig(mode="trec"),
        depth=DepthConfig(limit=LIMIT),
    )
    return evaluate(config, Options(order="trec"))


def printed(case: Case) -> Iterator[tuple[str, str, str]]:
    """(measure, topic, figure) of every line of the output that is about something we measure."""
    for line in (DATA / case.output).read_text().splitlines():
        measure, topic, figure = line.split()
        if _parsed(measure)[0] in OURS or measure in COUNTS:
            yield measure, topic, figure


def _parsed(measure: str) -> tuple[str, int]:
    """trec_eval's name without its cutoff, and the cutoff."""
    match = re.fullmatch(r"(\w+?)_(\d+)", measure)
    return (match[1], int(match[2])) if match else (measure, LIMIT)


class Figures:
    """Our figures of one evaluation, in trec_eval's words."""

    def __init__(self, evaluation: Evaluation, case: Case) -> None:
        self.report, self.columns = evaluation.report, evaluation.columns
        self.complete, self.empty = case.complete, case.empty
        self.row = {row.query_id: i for i, row in enumerate(self.columns.rows)}
        self.values = {name: per_row(self.columns, RETRIEVAL[name]) for name in set(OURS.values())}
        self.relevant_found: dict[int, int] = defaultdict(int)
        for block in blocks(self.columns):
            for i in block.expected.query.tolist():
                self.relevant_found[block.start + i] += 1

    def count(self, measure: str, rows: list[int]) -> str:
        """num_q, num_ret, num_rel or num_rel_ret of the rows."""
        rows = [i for i in rows if self.complete or self.columns.complete[i]]
        match measure:
            case "num_q":
                return str(len(rows))
            case "num_ret":
                return str(sum(int(self.columns.n_results[i]) for i in rows))
            case "num_rel":
                return str(sum(int(self.columns.n_expected[i]) for i in rows))
            case _:
                return str(sum(self.relevant_found[i] for i in rows))

    def topic(self, measure: str, topic: str) -> str | None:
        """The figure of one topic; None where trec_eval's is no claim of ours."""
        i = self.row[topic]
        if measure in COUNTS:
            return self.count(measure, [i])
        base, k = _parsed(measure)
        name = OURS[base]
        if not self.columns.complete[i]:
            # a missing topic is incomplete: no figure, and in `worst` at the measure's bad end, as trec_eval -c prints it;
            # but unj, being 1 − judged, is printed as 0, its good end
            return None if base == "unj" else f"{RETRIEVAL[name].worst_end:.4f}"
        values = self.values[name]
        assert values.undefined[i] == 0
        value = float(values.value[i, k - 1] if RETRIEVAL[name].is_curve else values.value[i])
        return f"{1 - value if base == 'unj' else value:.4f}"

    def overall(self, measure: str) -> str:
        """The figure over all topics, from the report."""
        if measure in COUNTS:
            return self.count(measure, list(self.row.values()))
        base, k = _parsed(measure)
        found = self.report.measures[OURS[base]]
        value, worst = (found.value[k - 1], found.worst[k - 1]) if isinstance(found, Curve) else (found.value, found.worst)
        assert value is not None
        assert worst is not None
        if base == "unj":
            # over the topics that came; -c adds 0 for each that did not: (n · (1 − value) + missing · 0) / (n + missing)
            return f"{(1 - value) * found.n / (found.n + (found.incomplete if self.complete else 0)):.4f}"
        if self.complete:
            return f"{worst:.4f}"
        # expected-empty rows are in none of our ranked means; trec_eval has them there as 0
        rows, total = found.n + found.n_undefined + self.empty, value * found.n
        if base == "bpref":
            total += self.without_nonrelevant()
        return f"{total / rows:.4f}"

    def without_nonrelevant(self) -> float:
        """What trec_eval's bpref comes to over topics that list no non-relevant document, where ours is undefined.

        Nothing can stand above a relevant document there, so each one found counts 1/R: the topic's recall.
        """
        recall, undefined = self.values["recall@k"].value[:, -1], self.values["bpref"].undefined
        rows = [i for i in self.row.values() if undefined[i] and self.columns.positive[i]]
        return float(sum(recall[i] for i in rows))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.output)
def test_every_shared_figure_is_the_printed_one(case: Case, tmp_path: Path) -> None:
    figures = Figures(imported(case, tmp_path), case)
    differing, compared = [], 0
    for measure, topic, figure in printed(case):
        ours = figures.overall(measure) if topic == "all" else figures.topic(measure, topic)
        if ours is None:
            continue
        compared += 1
        if ours != figure:
            differing.append(f"{measure} {topic}: trec_eval {figure}, ours {ours}")
    assert not differing
    assert compared == case.cells


def test_missing_topics_are_incomplete_and_count_in_worst_alone(tmp_path: Path) -> None:
    # out.test.aqc: map .0324 (301) and .2723 (303) of three topics; (.0324 + .2723) / 3 = .1016, over the two .1524
    report = imported(CASES[1], tmp_path).report
    found = curve(report, "ap@k")
    assert [row.query_id for row in report.rows.incomplete] == ["302"]
    assert (found.n, found.incomplete) == (2, 1)
    assert found.worst[-1] == pytest.approx(0.1016, abs=5e-5)
    assert found.value[-1] == pytest.approx((0.0324 + 0.2723) / 2, abs=1e-4)
    assert single(report, "bpref").n == 2


def test_another_level_fits_less(tmp_path: Path) -> None:
    # out.test.aql counts 97 relevant documents: 14 of grade 2, 77 of grade 3 and 6 of grade 4; level 1 would count 559
    case = CASES[3]
    columns = imported(case, tmp_path).columns
    assert int(columns.n_expected.sum()) == 14 + 77 + 6
    assert all(flags & FIRST for flags in columns.hits.flags.tolist())  # documents are their own sources: none repeats
