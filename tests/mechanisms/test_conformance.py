"""Our own mechanisms pass the public suite."""

import pytest

import ladderboard as lb
from ladderboard.mechanisms import MECHANISMS
from ladderboard.testing import check_mechanism

OURS = [
    lb.ShakyLadder(step=0.05, compare_noise=0.02, release_noise=0.02, grid=0.01),
    lb.ShakyLadder(step=0.05, compare_noise=0.02, release_noise=0.02, grid=0.01, law="laplace"),
    lb.ShakyLadder(step=0.05, compare_noise=0.02, release_noise=0.02),
    lb.ShakyLadder.from_paper(n=10_000, questions=1_000),
    lb.ShakyLadder.calibrated(n=50, questions=30),
    lb.Ladder(step=0.05),
    lb.Ladder(step=0.05, grid=0.01),
    lb.ParameterFreeLadder(),
    lb.Exact(),
    lb.Rounded(digits=2),
    lb.Noisy(sd=0.05),
    lb.Thresholdout(),
    lb.Thresholdout(noise=0, budget=100),
    lb.BootstrapLadder(),
    lb.BootstrapLadder(test="bayes", replicates=100),
    lb.BootstrapLadder(test="bayes", replicates=100, resample=False),
    lb.OneBit(step=0.05),
]


@pytest.mark.parametrize("mechanism", OURS, ids=repr)
def test_conformance(mechanism):
    check_mechanism(mechanism, n=40, questions=15)


def test_none_is_forgotten():
    assert {each.name for each in OURS} == set(MECHANISMS)
