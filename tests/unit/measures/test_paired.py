"""Paired differences, intervals and chance: by hand, against scipy, and by simulation."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from tripos.measures.intervals import mean_intervals
from tripos.measures.paired import FLIPS, Floats, chance, holm, interval, mean_of, standard_error, units_of
from tripos.measures.power import (
    can_ever_show,
    never_excluded,
    rows_needed,
    rows_to_exclude,
    shown_by,
    smallest_shown,
    t_quantile,
)


def differences(n: int, seed: int, shift: float = 0.03) -> Floats:
    return np.clip(np.random.default_rng(seed).normal(shift, 0.2, n), -1, 1)


def mean_difference(a: Floats, b: Floats, axis: int) -> Floats:
    found: Floats = np.mean(a - b, axis=axis)
    return found


@pytest.mark.parametrize(("lost", "p"), [(5, 2 / 32), (6, 2 / 64), (0, 1.0)])
def test_six_to_none_are_evidence_and_five_are_not(lost: int, p: float) -> None:
    """All one way: two of 2^k sign patterns are as extreme."""
    found = chance(units_of(np.r_[-np.ones(lost), np.zeros(35)]))
    assert found == (p, "exact")
    assert (p <= 0.05) == (lost == 6)


def test_one_gained_against_six_lost_by_hand() -> None:
    """|lost − gained| ≥ 5 among 7 signs: 2 · (C(7,0) + C(7,1)) of 128 patterns."""
    assert chance(units_of(np.r_[-np.ones(6), np.ones(1), np.zeros(9)])).p == pytest.approx(16 / 128)


def test_values_that_tie_but_for_rounding_count_as_ties() -> None:
    """Thirds against a whole: of eight patterns of (1/3, 1/3, 1/3) and of sixteen with 1, those with |Σ| ≥ 2 are two."""
    assert chance(units_of(np.array([1 / 3, 1 / 3, 1 / 3, 1.0]))).p == pytest.approx(2 / 16)
    assert chance(units_of(np.array([1 / 3, 1 / 3, 1 / 3, -1.0]))).p == 1.0


@pytest.mark.parametrize("n", [8, 13])
def test_exact_p_equals_scipys(n: int) -> None:
    values = differences(n, n)
    zero = np.zeros(n)
    theirs = stats.permutation_test((values, zero), mean_difference, permutation_type="samples", n_resamples=np.inf)
    assert chance(units_of(values)).p == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize(("n", "seed"), [(14, 1), (60, 2), (400, 3)])
def test_random_p_is_scipys_within_four_standard_errors(n: int, seed: int) -> None:
    values = differences(n, seed)
    own = chance(units_of(values))
    theirs = stats.permutation_test(
        (values, np.zeros(n)), mean_difference, permutation_type="samples", n_resamples=20_000, rng=7
    ).pvalue
    assert own.method == "random"
    assert own.p == pytest.approx(theirs, abs=4 * (theirs * (1 - theirs) * (1 / FLIPS + 1 / 20_000)) ** 0.5)
    assert own.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.03)


def test_the_normal_limit_continues_the_random_one() -> None:
    near, beyond = (chance(units_of(differences(n, 5, shift=0.003))) for n in (10_000, 10_001))
    assert (near.method, beyond.method) == ("random", "normal")
    values = differences(10_001, 5, shift=0.003)
    assert beyond.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=1e-3)
    assert 0 < chance(units_of(differences(400_000, 5))).p < 1e-200, "never 0, however far out"


def test_p_is_never_zero_by_random_signs() -> None:
    assert chance(units_of(np.ones(50))).p == pytest.approx(1 / (FLIPS + 1))


@pytest.mark.parametrize(("n", "seed"), [(30, 1), (500, 2)])
def test_the_interval_is_scipys_bootstrap(n: int, seed: int) -> None:
    """Another generator: ends agree within four standard errors of a percentile, of which each has 2,000 or 20,000 draws."""
    values = differences(n, seed)
    own = interval(units_of(values))
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=3)
    assert own is not None
    spread = theirs.standard_error * 2.67 * (1 / 2_000 + 1 / 20_000) ** 0.5 * 4  # sqrt(.025·.975) / φ(1.96) = 2.67
    assert own.low == pytest.approx(theirs.confidence_interval.low, abs=spread)
    assert own.high == pytest.approx(theirs.confidence_interval.high, abs=spread)


@pytest.mark.parametrize("n", [40, 10_001])
def test_the_interval_is_the_one_that_reports_have(n: int) -> None:
    values = np.random.default_rng(n).random(n)
    clusters = np.arange(n) // 3 if n == 40 else None
    assert interval(units_of(values, clusters)) == mean_intervals(values[:, None], clusters)[0]


def test_the_normal_interval_is_the_t_interval_of_many_rows() -> None:
    values = differences(20_000, 4)
    own = interval(units_of(values), 0.9)
    low, high = stats.t.interval(0.9, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    assert own is not None
    assert own.method == "normal"
    assert own.low == pytest.approx(low, abs=1e-6)
    assert own.high == pytest.approx(high, abs=1e-6)


def test_whole_clusters_are_flipped_and_resampled() -> None:
    """Twelve rows in two clusters: two of four sign patterns are as extreme, however many rows agree."""
    clusters = np.r_[np.zeros(6, int), np.ones(6, int)]
    units = units_of(np.ones(12), clusters)
    assert (len(units), units.rows) == (2, 12)
    assert chance(units).p == 0.5
    assert chance(units_of(np.ones(12))).p == pytest.approx(2 / 4096)


def test_fewer_than_two_clusters_say_nothing() -> None:
    alone = units_of(np.ones(9), np.zeros(9, int))
    assert interval(alone) is None
    assert standard_error(alone) is None
    assert smallest_shown(alone, zero_one=True) is None


def test_names_of_clusters_decide_nothing() -> None:
    values, clusters = differences(60, 8), np.arange(60) % 20
    renamed = np.random.default_rng(0).permutation(20)[clusters]
    one, other = units_of(values, clusters), units_of(values, renamed)
    assert (interval(one), chance(one)) == (interval(other), chance(other))


def test_clusters_of_one_row_are_rows() -> None:
    values = differences(60, 9)
    one, other = units_of(values), units_of(values, np.arange(60)[::-1].copy())
    assert (interval(one), chance(one)) == (interval(other), chance(other))


def test_holm_by_hand() -> None:
    """.01·4, .02·3, max with .03·2, .04·1 → .04, .06, .06, .06; a missing p is not in the family."""
    assert holm([0.04, None, 0.01, 0.03, 0.02]) == [0.06, None, 0.04, 0.06, 0.06]
    assert holm([None]) == [None]
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_mean_of_nothing_is_none() -> None:
    assert mean_of(np.array([])) is None
    assert mean_of(np.array([0.1] * 10)) == 0.1


@pytest.mark.parametrize("degrees", [3, 5, 10, 40, 1000])
@pytest.mark.parametrize("q", [0.8, 0.975])
def test_t_quantiles(degrees: int, q: float) -> None:
    assert t_quantile(q, degrees) == pytest.approx(stats.t.ppf(q, degrees), rel=0.01 if degrees < 10 else 1e-5)


def test_forty_one_rows_cannot_show_a_drop_of_two_hundredths() -> None:
    """41 · .02 is less than one row; six are needed, a drop of 6/41."""
    assert not can_ever_show(41, 0.02)
    assert can_ever_show(41, 6 / 41)
    assert can_ever_show(300, 0.02)
    assert not can_ever_show(299, 0.02)
    assert shown_by(41, 0.0, zero_one=True) == pytest.approx(6 / 41)


def test_what_unchanged_rows_cannot_exclude() -> None:
    """z² / (n + z²): 3.8415 / 44.8415."""
    assert never_excluded(41, 0.95) == pytest.approx(0.0856676, abs=1e-6)
    need = rows_to_exclude(0.02, 0.95)
    assert never_excluded(need, 0.95) <= 0.02 < never_excluded(need - 1, 0.95)


def test_rows_needed_and_smallest_shown_are_inverse() -> None:
    for drop, sd in [(0.02, 0.4), (0.1, 0.3), (0.3, 0.1)]:
        need = rows_needed(drop, sd, zero_one=False)
        shown, before = shown_by(need, sd, zero_one=False), shown_by(need - 1, sd, zero_one=False)
        assert shown is not None
        assert shown <= drop + 1e-12
        assert before is None or before > drop
    assert rows_needed(0.02, 0.01, zero_one=True) == 300


def test_no_spread_is_no_smallest_difference() -> None:
    assert smallest_shown(units_of(np.zeros(50)), zero_one=False) is None
    assert smallest_shown(units_of(np.zeros(50)), zero_one=True) == pytest.approx(6 / 50)
    assert smallest_shown(units_of(np.array([1.0, -1, 1, -1])), zero_one=False) is None, "beyond 1: no run could show it"


def test_p_is_uniform_under_the_null() -> None:
    """400 pairs of runs that differ by chance alone; Kolmogorov–Smirnov against the uniform, and the share below 5 %.

    By hand over 20,000 pairs (docs/comparison.md): shares below .01, .05, .1, .5 within three standard errors.
    """
    rng = np.random.default_rng(11)
    found = [chance(units_of(rng.choice([-1, 1], 40) * rng.random(40))).p for _ in range(400)]
    assert stats.kstest(found, "uniform").pvalue > 0.01
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.09


def test_intervals_cover_the_truth() -> None:
    """400 samples of 100 rows whose true mean difference is known, .02; 95 % is 380 of them, ± 3 standard errors is 13."""
    rng = np.random.default_rng(12)
    inside = 0
    for _ in range(400):
        own = interval(units_of(rng.choice([-1.0, 0.0, 0.5], 100, p=[0.08, 0.72, 0.2])))
        assert own is not None
        inside += own.low <= 0.02 <= own.high
    assert 0.95 * 400 - 20 <= inside <= 0.95 * 400 + 13


def test_the_smallest_shown_difference_is_shown_four_times_in_five() -> None:
    rng, n = np.random.default_rng(13), 60
    true = shown_by(n, 0.2, zero_one=False)
    assert true is not None
    shown = [chance(units_of(rng.normal(true, 0.2, n))).p <= 0.05 for _ in range(300)]
    assert 0.72 <= np.mean(shown) <= 0.88


SCRIPT = """
import numpy as np
from tripos.measures.paired import *
d = np.random.default_rng(3).random(3000) - .48
for clusters in (None, np.arange(3000) // 7):
    u = units_of(d, clusters)
    print(interval(u), chance(u), mean_of(d))
"""


def test_the_same_figures_whatever_the_threads_and_the_hash_seed() -> None:
    told = set()
    for threads, seed in (("1", "0"), ("2", "1"), ("7", "2")):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
        told.add(done.stdout)
    assert len(told) == 1
    assert "bootstrap" in told.pop()
