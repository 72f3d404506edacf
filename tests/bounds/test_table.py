"""Numbers that people will look up: every figure of the table, or better."""

import json
import math

import pytest

import ladderboard as lb
from ladderboard import bounds
from ladderboard.bounds._kl import kl_lower, kl_upper

#       n, questions, paper, worst case, after 3, 5, 10, kl at 5% after 5, floor
TABLE = [
    (10**3, 10**3, 6.6, 0.243, 0.164, 0.190, 0.233, 0.129, 0.073),
    (10**4, 10**3, 2.7, 0.104, 0.054, 0.063, 0.078, 0.035, 0.023),
    (10**5, 10**4, 1.2, 0.052, 0.019, 0.022, 0.029, 0.0114, 0.0080),
    (10**6, 10**5, 0.54, 0.025, 0.0066, 0.0078, 0.0101, 0.0038, 0.0028),
]


def shown(value, like):
    """Return a value rounded as the table's figure is printed."""
    return round(value, len(str(like).split(".")[1]))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_table(row):
    n, k, paper, worst, *after, at_five, nonadaptive = row
    eta = 1 / math.sqrt(n)
    ladder = lb.Ladder(step=eta, grid=eta / 2)
    assert shown(bounds.paper(n, k).bound, paper) == paper
    assert shown(bounds.best_ladder(n, k)[1].half_width, worst) <= worst
    assert shown(bounds.nonadaptive_error(n, k), nonadaptive) == nonadaptive
    for changes, figure in zip((3, 5, 10), after, strict=True):
        result = bounds.certificate(n, k, changes, ladder)
        assert shown(result.half_width, figure) <= figure
    result = bounds.certificate(n, k, 5, ladder)
    # 0.05 is a multiple of the grid in one row only; the table speaks of 5% all the same.
    low = kl_lower(0.05 - result.sample[1], result.nats / n)
    high = kl_upper(0.05 - result.sample[0], result.nats / n)
    assert max(high - 0.05, (high - low) / 2) <= at_five


def test_what_was_promised():
    ladder = lb.Ladder(step=0.01, grid=0.005)
    result = bounds.certificate(n=10_000, questions=1_000, changes=5, mechanism=ladder)
    assert result.half_width <= 0.063
    result = bounds.certificate(10_000, 1_000, 5, ladder, released=0.05)
    assert result.half_width <= 0.037
    assert max(result.high - 0.05, 0.05 - result.low) <= 0.037
    assert bounds.best_ladder(10_000, 1_000)[1].half_width <= 0.104


def test_the_best_ladder_is_not_worse_than_its_neighbours():
    ladder, result = bounds.best_ladder(1_000, 100)
    for factor in (0.8, 0.9, 1.1, 1.25):
        other = lb.Ladder(step=ladder.step * factor, grid=ladder.grid * factor)
        assert bounds.certificate(1_000, 100, None, other).half_width >= result.half_width
    for finer in (2, 3, 5):
        other = lb.Ladder(step=(finer - 0.5) * ladder.grid / finer, grid=ladder.grid / finer)
        assert bounds.certificate(1_000, 100, None, other).half_width >= result.half_width


def test_a_sharper_ladder_says_more_and_a_duller_one_misses_more():
    """The worst case has a best step: the two parts pull against each other."""
    widths = [
        bounds.certificate(10_000, 1_000, None, lb.Ladder(step=step)).half_width
        for step in (0.002, 0.05, 0.5)
    ]
    assert widths[1] < min(widths[0], widths[2])


def test_the_papers_bound_and_its_privacy():
    result = bounds.paper(n=10_000, questions=1_000, beta=0.05)
    assert result.holds
    assert result.vacuous
    assert result.claimed.epsilon == pytest.approx(0.1062, abs=5e-5)
    assert result.per_epoch == pytest.approx(4 / (10_000 * result.settings.noise_scale))
    assert result.epochs == 7
    assert result.accounted.epsilon == pytest.approx(7 * result.per_epoch)
    assert "basic composition, stopped after 7 updates" in result.accounted.source
    assert result.bound == pytest.approx(18 * 0.10623 + 1.5 * 0.5171, abs=1e-3)
    assert result.accounted_bound > result.bound
    assert json.loads(json.dumps(result.describe(), allow_nan=False))["vacuous"] is True
    assert "(vacuous)" in str(result)


def test_many_small_epochs_compose_the_advanced_way():
    result = bounds.paper(n=10**12, questions=10, beta=0.05)
    assert "advanced" in result.accounted.source
    assert result.accounted.delta == result.settings.delta
    assert result.accounted.epsilon < result.epochs * result.per_epoch


def test_where_the_conditions_fail_the_paper_promises_nothing():
    result = bounds.paper(n=100, questions=1_000)
    assert not result.holds
    assert result.vacuous
    assert "must be below 1/3" in str(result)
