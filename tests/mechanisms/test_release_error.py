"""How far released values are from the risk: what mechanisms say, against many releases."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.mechanisms import Exact, Ladder, Noisy, Rounded, ShakyLadder, VisibleChange

GAMES, N = 2_000, 1_000


def first_errors(mechanism, risks):
    """Return how far the first release of each game is from its risk."""
    values = [
        mechanism.start(n=N, tape=lb.Tape(seed=seed)).ask(risk=risk).value
        for seed, risk in enumerate(risks)
    ]
    return np.array(values) - risks


@pytest.mark.parametrize(
    "mechanism",
    [
        Exact(),
        Rounded(digits=2),
        Noisy(sd=0.02),
        Ladder(step=0.02),
        ShakyLadder(step=0.02, compare_noise=0.01, release_noise=0.015, grid=0.01),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_the_error_of_a_release_is_that_of_many_releases(mechanism):
    risks = np.random.default_rng(0).uniform(0.2, 0.4, GAMES)
    spread = first_errors(mechanism, risks).std()
    assert spread == pytest.approx(mechanism.release_error(N), rel=0.08, abs=1e-9)
    changes = VisibleChange(1, 0.3, 0), VisibleChange(2, 0.2, 0)
    assert mechanism.release_errors(N, changes) == [mechanism.release_error(N)] * 2


def test_a_growing_ladder_knows_the_noise_of_each_change():
    mechanism = lb.GrowingLadder.calibrated(N, 1_000, teams=40, accounts=40)
    risks = np.random.default_rng(0).uniform(0.2, 0.3, GAMES)
    errors = first_errors(mechanism, risks)
    changes = VisibleChange(1, 0.3, "a"), VisibleChange(2, 0.2, "b")
    first, other = mechanism.release_errors(N, changes)
    assert errors.std() == pytest.approx(first, rel=0.08)
    assert other > first  # another account's change makes the next step larger
    later = VisibleChange(3, 0.1, "b")
    assert mechanism.release_errors(N, (*changes, later))[:2] == [first, other]
