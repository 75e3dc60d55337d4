"""The steps and sums that figures are made of: the same as matrices of every cell, and the same however rows are split."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import Row, World, config_of, judgment, scored
from tests.worlds import worlds
from tripos.columns.align import Aligner, Reading
from tripos.columns.groups import everyone
from tripos.columns.retrieval import OK, RetrievalColumns
from tripos.contracts.config import Options
from tripos.errors import Findings, InputError
from tripos.files.ranked import read_ranked
from tripos.measures import figures, intervals, totals
from tripos.measures.aggregate import per_row, population
from tripos.measures.exact import ExactSum
from tripos.measures.figures import sums_of
from tripos.measures.retrieval import RETRIEVAL
from tripos.measures.scores import Plan, Scores
from tripos.measures.steps import Steps, ordinals, running
from tripos.runners import parts
from tripos.runners.retrieval import check, evaluate, per_query_rows, read

QUICK = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
N, LIMIT = 5, 6


# ---- steps


@st.composite
def steps_of(draw: st.DrawFn, over: bool) -> Steps:
    """Steps of five queries within six ranks; two at one rank now and then."""
    place = st.tuples(st.integers(0, N - 1), st.integers(1, LIMIT))
    places = sorted(draw(st.lists(place, max_size=12)))
    query, rank = [q for q, _ in places], [k for _, k in places]
    values = [draw(st.integers(0, 4) if over else st.floats(0, 1)) for _ in query]
    ends = np.array([draw(st.integers(1, LIMIT)) for _ in range(N)]) if over else None
    return Steps(np.array(query, dtype=np.int64), np.array(rank, dtype=np.int64), np.array(values, dtype=np.float64), ends)


def cell(steps: Steps, query: int, k: int) -> float:
    """The figure of one query at one cutoff, looked up step by step."""
    value = 0.0
    for q, rank, changed in zip(steps.query.tolist(), steps.rank.tolist(), steps.value.tolist(), strict=True):
        if q == query and rank <= k:
            value = changed
    return value if steps.over is None else value / min(k, int(steps.over[query]))


@given(steps_of(False) | steps_of(True))
@QUICK
def test_cells_of_steps(steps: Steps) -> None:
    wanted = [[cell(steps, query, k) for k in range(1, LIMIT + 1)] for query in range(N)]
    assert steps.dense(N, LIMIT).tolist() == wanted
    for k in range(1, LIMIT + 1):
        assert steps.at(np.full(N, k)).tolist() == [row[k - 1] for row in wanted]
    own = np.array([1, 6, 3, 2, 5])
    assert steps.at(own).tolist() == [row[k - 1] for row, k in zip(wanted, own.tolist(), strict=True)]


@given(steps_of(False))
@QUICK
def test_running_sums(steps: Steps) -> None:
    sums, numbers, counts = running(steps.query, steps.value).tolist(), ordinals(steps.query).tolist(), dict[int, int]()
    totals_of: dict[int, float] = {}
    for query, value, total, number in zip(steps.query.tolist(), steps.value.tolist(), sums, numbers, strict=True):
        totals_of[query] = totals_of.get(query, 0.0) + value
        counts[query] = counts.get(query, 0) + 1
        assert (total, number) == (totals_of[query], counts[query])


# ---- totals


class Case:
    """A world's rows, read and checked, to be dealt to any number of scores."""

    def __init__(self, world: World) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = config_of(Path(folder), world)
            inputs = read(config, Options(order=world.order, **world.options), world.cutoffs)
            self.judged = check(inputs)
            score = config.search.min_score
            self.reading = Reading(inputs.corpus, config.depth, score, inputs.options, Findings(), inputs.headline)
            assert config.ranked_results is not None
            self.rows = list(read_ranked(config.ranked_results, Findings()))
        self.groups = [everyone(len(self.judged)), *self.judged.groups()]
        self.clusters = self.judged.clusters()
        members = totals.Members.of(self.groups, len(self.judged), self.clusters is not None)
        self.plan = Plan(tuple(RETRIEVAL), len(self.judged), config.depth.limit, inputs.headline, members)

    def columns(self, rows: Sequence[Any]) -> RetrievalColumns:
        """The columns of some rows alone."""
        aligner = Aligner(self.judged, self.reading)
        for row in rows:
            aligner.take(row)
        return aligner.batch()

    def whole(self) -> RetrievalColumns:
        """The columns of all, those among them that nothing came for."""
        aligner = Aligner(self.judged, self.reading)
        for row in self.rows:
            aligner.take(row)
        return aligner.columns()

    def scores(self, *columns: RetrievalColumns) -> Scores:
        """The scores of some columns, batch by batch."""
        made = Scores(self.plan)
        for own in columns:
            made.add(own)
        return made

    def told(self, scores: Scores) -> Any:
        """All that is told of scores."""
        return scores.figures(self.clusters), scores.ties()


def case_of(world: World) -> Case | None:
    """None where the world has a fault."""
    try:
        return Case(world)
    except InputError:
        return None


cases = worlds(max_rows=6).map(case_of)


@given(cases)
@QUICK
def test_sums_are_those_of_every_cell(case: Case | None) -> None:
    if case is None:
        return
    columns = case.whole()
    made = case.scores(columns)
    for name, record in RETRIEVAL.items():
        values = per_row(columns, record)
        counts = (values.undefined == 0) & (columns.state == OK) & population(record, columns.positive)
        matrix = values.value if record.is_curve else values.value[:, None]
        if record.is_curve:
            matrix = np.column_stack([matrix, np.take_along_axis(matrix, columns.depth[:, None] - 1, axis=1)])
        for number, group in enumerate(case.groups):
            rows = group.rows[counts[group.rows]]
            wanted = ExactSum(matrix.shape[1])
            wanted.add(matrix[rows])
            assert sums_of(made.tables.totals[name], number) == wanted.units(), (name, group.by)
            assert made.tables.totals[name].counts[number, 0] == len(rows)


@contextmanager
def resampling_up_to(n: int) -> Iterator[None]:
    """The bound between intervals by resampling and normal ones, where a small world crosses it."""
    with ExitStack() as stack:
        for module in (intervals, totals, figures):
            stack.enter_context(patch.object(module, "MAX_BOOTSTRAP", n))
        yield


@given(cases, st.data(), st.sampled_from([1, 2, 10_000]))
@settings(QUICK, max_examples=20)
def test_merging_is_commutative_and_associative_with_an_identity(case: Case | None, data: st.DataObject, bound: int) -> None:
    if case is None:
        return
    dealt: list[list[Any]] = [[], [], []]
    for row in case.rows:
        dealt[data.draw(st.integers(0, 2))].append(row)
    shares = [case.columns(rows) for rows in dealt]
    with resampling_up_to(bound):

        def part(*which: int) -> Scores:
            return case.scores(*(shares[n] for n in which))

        def sum_of(*several: Scores) -> Scores:
            made = Scores(case.plan)
            for scores in several:
                made.merge(scores.state)
            return made

        wanted = case.told(case.scores(case.columns(case.rows)))
        ways = [sum_of(*map(part, order)) for order in itertools.permutations(range(3))]
        ways += [sum_of(sum_of(part(0), part(1)), part(2)), sum_of(part(0), sum_of(part(1), part(2)))]
        ways += [sum_of(part(), part(0, 1, 2)), sum_of(part(0, 1, 2), part()), part(2, 0, 1)]
        for way in ways:
            assert case.told(way) == wanted


# ---- batches, and rows of which there are too many to resample


def slicing(n: int) -> World:
    """Rows with ties, slices of different sizes, misses of every figure, rows without results."""
    judgments: list[Row] = []
    results: list[Row] = []
    for i in range(n):
        own: Row = {"expected_groups": [["a"], ["b"]]} if i % 3 == 0 else {}
        own |= {"forbidden_sources": ["d"]} if i % 4 == 0 else {}
        slices = {"odd": bool(i % 2), "tenth": i % 10 == 0}
        judgments.append(judgment(f"q{i:02}", "a", "b", nonrelevant_sources=["c"], slices=slices, k=1 + i % 3, **own))
        names = [("a", "b", "c", "d", "e")[(i * step) % 5] for step in (1, 2, 3, 4)][: 1 + i % 4]
        results.append(
            scored(f"q{i:02}", dict.fromkeys(names, 0.5) if i % 5 == 0 else {n: 1 / k for k, n in enumerate(names, 1)})
        )
    return World(judgments, [row for i, row in enumerate(results) if i % 7], limit=4)


def told(world: World, **options: Any) -> tuple[str, list[bytes], list[Row]]:
    with tempfile.TemporaryDirectory() as folder:
        outcome = evaluate(config_of(Path(folder), world), Options(**options))
        return outcome.report.run_id, list(outcome.miss_lines()), list(per_query_rows(outcome))


def test_the_size_of_batches_and_the_number_of_processes_do_not_matter() -> None:
    world = slicing(40)
    for bound in (10_000, 10):
        with resampling_up_to(bound):
            wanted = told(world, workers=1)
            assert len(wanted[1]) > 10
            assert len(wanted[2]) == 40
            for size, workers in ((1, 1), (2, 7), (7, 2), (64, 3)):
                with patch.object(parts, "ROWS", size):
                    assert told(world, workers=workers) == wanted


def test_large_groups_get_normal_intervals_and_small_ones_are_resampled() -> None:
    # 40 rows, 34 with results: all of them and the even and odd ones are more than 10, the tenth rows four
    with tempfile.TemporaryDirectory() as folder, resampling_up_to(10):
        outcome = evaluate(config_of(Path(folder), slicing(40)), Options())
    report, columns = outcome.report, outcome.columns
    values = per_row(columns, RETRIEVAL["recall@k"]).value[columns.complete][:, [0, 3]]
    with resampling_up_to(10):
        wanted = intervals.mean_intervals(values, None)
    found: Any = report.measures["recall@k"]
    assert [found.ci["1"], found.ci["4"]] == wanted
    methods = {(own.by, own.value): own.measures["recall@k"].ci["4"].method for own in report.slices}  # type: ignore[index]
    assert methods["tenth", True] == "bootstrap"
    assert methods["odd", True] == methods["odd", False] == methods["tenth", False] == "normal"


def test_rows_of_large_groups_are_let_go() -> None:
    case = Case(slicing(40))
    recall = case.scores(case.columns(case.rows)).tables.totals["recall@k"]
    assert len(recall.kept.rows) == 34
    with resampling_up_to(10):
        recall = case.scores(case.columns(case.rows)).tables.totals["recall@k"]
    tenth = [i for i in range(0, 40, 10) if i % 7]
    assert sorted(recall.kept.rows.tolist()) == tenth  # only the slice of tenth rows is small enough
