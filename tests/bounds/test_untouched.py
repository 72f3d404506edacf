"""The interval of a final ranking covers as often as it says."""

import numpy as np
import pytest

from ladderboard.bounds import fresh_sample_interval
from ladderboard.errors import InvalidSetting


@pytest.mark.parametrize("weighted", [False, True])
def test_all_intervals_hold_at_once_as_often_as_promised(weighted):
    """With beta=0.2 a run fails with probability at most 0.2.

    Of 400 runs more than 110 fail with probability below 1e-3 if the promise is kept (binomial
    tail); usually far fewer do, for the bound is not tight.
    """
    rng = np.random.default_rng(5)
    n, models, failed = 200, 10, 0
    truth = np.linspace(0.02, 0.5, models)
    for _ in range(400):
        if weighted:
            weight = rng.exponential(size=n)
            worth = int(weight.sum() ** 2 / (weight**2).sum())
            losses = rng.random((models, n)) < truth[:, None]
            risks = losses @ weight / weight.sum()
        else:
            worth, risks = n, rng.binomial(n, truth) / n
        ends = [
            fresh_sample_interval(worth, risk, models=models, beta=0.2, weighted=weighted)
            for risk in risks
        ]
        failed += any(
            not low <= true <= high for (low, high), true in zip(ends, truth, strict=True)
        )
    assert failed <= 110


def test_more_models_and_fewer_examples_widen_it():
    low, high = fresh_sample_interval(1000, 0.1)
    assert (
        fresh_sample_interval(1000, 0.1, models=20)[0]
        < low
        < 0.1
        < high
        < fresh_sample_interval(500, 0.1)[1]
    )
    assert fresh_sample_interval(1000, 0.0)[0] == 0
    assert fresh_sample_interval(1000, 1.0)[1] == 1
    wide = fresh_sample_interval(1000, 0.1, weighted=True)
    assert wide[0] <= low
    assert wide[1] >= high


def test_invalid_arguments_are_refused():
    for n, risk, models in ((0, 0.1, 1), (10, 1.1, 1), (10, 0.1, 0)):
        with pytest.raises(InvalidSetting):
            fresh_sample_interval(n, risk, models=models)
