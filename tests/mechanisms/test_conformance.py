"""Our own mechanisms pass the public suite."""

import json
import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.mechanisms import MECHANISMS
from ladderboard.testing import check_mechanism

OURS = [
    lb.GrowingLadder(step=1),
    lb.GrowingLadder(step=0.5, growth=1, compare_noise=0, release_noise=0.5, grid=0.1, cap=4),
    lb.GrowingLadder(step=1, scale="model"),
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


RESUME = """
import json, sys
import ladderboard as lb
for saved in json.load(sys.stdin):
    session = lb.mechanism(saved["mechanism"]).resume(saved["state"], lb.Tape(seed=5))
    print(json.dumps([session.ask(**question) for question in saved["questions"]]))
"""


def test_every_mechanism_resumed_in_another_process_has_the_same_future():
    rng = np.random.default_rng(8)
    cases, futures = [], []
    for mechanism in OURS:
        questions = []
        for quality in np.linspace(0.9, 0.2, 12):
            losses = (rng.random(40) < quality).astype(float)
            by_vector = mechanism.needs != "risk"
            question = {"losses": losses.tolist()} if by_vector else {"risk": float(losses.mean())}
            if mechanism.needs_training:
                question["training"] = 0.5
            questions.append(question)
        for stop in (0, 1, 5, 12):
            session = mechanism.start(n=40, tape=lb.Tape(seed=5), ladder=2)
            for question in questions[:stop]:
                session.ask(**question)
            cases.append(
                {
                    "mechanism": mechanism.describe(),
                    "state": session.state,
                    "questions": questions[stop:],
                }
            )
            futures.append([list(session.ask(**question)) for question in questions[stop:]])
    done = subprocess.run(
        [sys.executable, "-c", RESUME],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == futures


@pytest.mark.parametrize("mechanism", OURS, ids=repr)
def test_conformance(mechanism):
    check_mechanism(mechanism, n=40, questions=15)


def test_none_is_forgotten():
    assert {mechanism.name for mechanism in OURS} == set(MECHANISMS)
