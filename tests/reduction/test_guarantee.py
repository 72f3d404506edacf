"""What a general estimator promises before the data."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting, OutsideTheorem
from ladderboard.reduction import _estimator


def _log_binomial(total: int, chosen: int) -> float:
    return math.log(math.comb(total, chosen)) if 0 <= chosen <= total else -math.inf


@pytest.mark.parametrize("n", [1_797, 10_000, 1_000_000])
@pytest.mark.parametrize("beta", [0.05, 0.001])
def test_the_error_is_that_of_the_counting_theorem(n: int, beta: float) -> None:
    # theory.md 4, written again: values over [-1/2, 1], all numbers of changes.
    guarantee = lb.reduction.accuracy_guarantee(n, beta)
    step, grid = (
        Fraction(str(number)) for number in (guarantee.mechanism.step, guarantee.mechanism.grid)
    )
    points = math.floor(1 / grid) + math.floor(Fraction(1, 2) / grid) + 1
    drop = math.floor((step - grid / 2) / grid) + 1  # strictly more than this many cells
    questions = guarantee.classifiers
    nats = max(
        _log_binomial(questions, b + 1)
        + (_log_binomial(points - (b - 1) * (drop - 1), b) if b else 0)
        + math.log((b + 1) * (b + 2))
        + math.log(2 / beta)
        for b in range(questions)
        if b == 0 or points - (b - 1) * (drop - 1) >= b
    )
    error = max(float(step), float(grid) / 2) + 0.5 * math.sqrt(nats / (2 * n))
    assert guarantee.error == pytest.approx(error, rel=1e-3)
    assert guarantee.error < guarantee.alpha / 4
    estimator = lb.GeneralEstimator(guarantee.mechanism, n=n, alpha=guarantee.alpha)
    assert (estimator.queries, estimator.max_classifiers) == (guarantee.queries, questions)


def test_more_examples_promise_more() -> None:
    sizes = [600, 1_000, 3_000, 10_000, 100_000, 10**6, 10**8]
    guarantee = [lb.reduction.accuracy_guarantee(n) for n in sizes]
    assert all(more.alpha < less.alpha for less, more in pairwise(guarantee))
    assert (
        lb.reduction.accuracy_guarantee(10_000, 0.001).alpha
        > lb.reduction.accuracy_guarantee(10_000, 0.05).alpha
    )


def test_the_guarantee_holds() -> None:
    # At most one seed in 20 may break it; it is far from tight, and none of these does.
    n = 10_000
    guarantee = lb.reduction.accuracy_guarantee(n)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        estimator = lb.GeneralEstimator(guarantee.mechanism, n=n, alpha=guarantee.alpha)
        for mean in rng.random(guarantee.queries):
            answer = estimator.ask(rng.random(n) < mean)
            assert abs(answer.value - mean) < guarantee.alpha


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(OutsideTheorem, match=r"n = 100; .* n = 406") as refusal:
        lb.reduction.accuracy_guarantee(100)
    assert refusal.value.least_n == 406
    assert all(lb.reduction.accuracy_guarantee(n).alpha <= 1 / 3 for n in range(406, 420))
    with pytest.raises(OutsideTheorem):
        lb.reduction.accuracy_guarantee(405)
    with pytest.raises(InvalidSetting, match="beta must be"):
        lb.reduction.accuracy_guarantee(1_000, beta=0)


@pytest.mark.parametrize("n", [600, 1_797, 10_000, 100_000, 10**6, 10**7])
def test_no_smaller_alpha_and_no_better_ladder_was_passed_over(n: int) -> None:
    guarantee = lb.reduction.accuracy_guarantee(n)
    unit = 10 ** (math.floor(math.log10(guarantee.alpha)) - 2)
    smaller = [guarantee.alpha - steps * unit for steps in (1, 2, 3)]
    assert not any(_estimator._guarantee_for(n, 0.05, round(number, 12)) for number in smaller)
    step, grid = guarantee.mechanism.step, guarantee.mechanism.grid
    assert grid is not None
    for times in (0.5, 0.7, 1.4, 2):
        other = lb.Ladder(step=times * step, grid=times * grid)
        assert (
            _estimator._error_bound(n, 0.05, guarantee.classifiers, other) > 0.995 * guarantee.error
        )


def test_the_table_in_the_docs_is_what_is_promised() -> None:
    page = Path(__file__).parents[2] / "docs/explanation/reduction.md"
    lines = page.read_text().split("| splitting the sample |\n", 1)[1].splitlines()[1:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    assert len(rows) == 5
    for n_, alpha, queries, classifiers, rate, splitting in rows:
        n = int(n_.replace(",", ""))
        guarantee = lb.reduction.accuracy_guarantee(n)
        assert (float(alpha), int(queries), int(classifiers)) == (
            guarantee.alpha,
            guarantee.queries,
            guarantee.classifiers,
        )
        assert float(rate) == pytest.approx(guarantee.alpha * n ** (1 / 3), abs=0.05)
        part = n / guarantee.queries
        hoeffding = math.sqrt(math.log(2 * guarantee.queries / 0.05) / (2 * part))
        assert float(splitting) == pytest.approx(hoeffding, rel=0.03)
