"""The smallest visible gain is what it says: in games, by hand and in its limits."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import MECHANISMS, Observation, Setup
from ladderboard.mechanisms._by_example import LeaderState

N = 10_000
SETUP = Setup(N, 0.0, 1.0)
GAMES = 5_000
# One of a million correct shares is off by more than five standard errors.
SPREAD = 5 * math.sqrt(0.95 * 0.05 / GAMES)

NOISY = [
    lb.ShakyLadder.calibrated(n=N, questions=1_000),
    lb.ShakyLadder(step=0.0207, compare_noise=0.011, release_noise=0.007, grid=0.03),
    lb.ShakyLadder(step=0.01, compare_noise=0.004, release_noise=0.02, grid=0.01, law="laplace"),
    lb.ShakyLadder(step=0.01, compare_noise=0.01, release_noise=0.002, law="laplace"),
    lb.ShakyLadder(0.01, 0.01, 0, law="laplace", standing_noise=0.003),
    lb.Noisy(sd=0.01),
    lb.Thresholdout(threshold=0.04, noise=0.01),
]


def rows_of_draws(mechanism, seed):
    rng = np.random.default_rng(seed)
    return list(zip(*(law.simulate(rng, GAMES).tolist() for law in mechanism.laws), strict=True))


@pytest.mark.parametrize("power", [0.95, 0.5])
@pytest.mark.parametrize("mechanism", NOISY, ids=repr)
def test_gains_are_shown_as_often_as_stated(mechanism, power):
    released = 0.9  # a multiple of every grid, with room below
    gain = mechanism.smallest_visible_gain(n=N, released=released, power=power)
    # The training risk that Thresholdout takes longest to distrust: it shows no gain.
    question = Observation(released - gain, None, released)
    shown = 0
    for first, draws in zip(rows_of_draws(mechanism, 1), rows_of_draws(mechanism, 2), strict=True):
        state = mechanism.begin(SETUP, first)
        in_units = isinstance(state.best, int)
        state = state._replace(best=round(released * 10**12) if in_units else released)
        shown += mechanism.advance(SETUP, state, question, draws).improved
    assert abs(shown / GAMES - power) < SPREAD * math.sqrt(power * (1 - power) / 0.0475)


@pytest.mark.parametrize(
    ("mechanism", "gain"),
    [
        (lb.Exact(), 0),
        (lb.ShakyLadder(0, 0, 0), 0),
        (lb.Rounded(digits=2), 0.005),
        (lb.Ladder(step=0.01), 0.01),
        (lb.OneBit(step=0.02), 0.02),
        (lb.Ladder(step=0.01, grid=0.1), 0.05),
        (lb.Ladder(0, 1e-6), 5e-7),
        (lb.ShakyLadder(0.01, 0, 0, grid=0.03), 0.015),
        (lb.Thresholdout(threshold=0.04, noise=0), 0.04),
    ],
    ids=repr,
)
def test_without_noise_it_is_the_step_or_half_a_cell(mechanism, gain):
    assert mechanism.smallest_visible_gain(n=N) == gain
    session = mechanism.start(n=N)
    training = {"training": 0.9} if mechanism.needs_training else {}
    session.ask(risk=0.6, **training)
    hidden, shown = 0.6 - gain + 1e-9, 0.6 - gain - 1e-9
    if gain:
        assert not session.ask(risk=hidden, **({"training": 0.6} if training else {})).improved
    assert session.ask(risk=shown, **training).improved


@pytest.mark.parametrize("released", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    "mechanism", [lb.ParameterFreeLadder(), lb.BootstrapLadder(resample=False)], ids=repr
)
def test_by_example_it_is_enough_whichever_examples_differ(mechanism, released):
    gain = mechanism.smallest_visible_gain(n=N, released=released)
    errors = round(released * N)
    leader = np.zeros(N)
    leader[:errors] = 1

    def improves(fixed, shift):
        """Ask about a model with ``fixed`` fewer errors, moved by ``shift`` examples."""
        losses = np.zeros(N)
        losses[: errors - fixed] = 1
        losses = np.roll(losses, shift)
        question = Observation(float(losses.mean()), losses, None)
        draws = [law.simulate(np.random.default_rng(1), 1)[0] for law in mechanism.laws]
        return mechanism.advance(SETUP, LeaderState(released, leader), question, draws).improved

    enough = math.floor(gain * N) + 1
    assert all(improves(enough, shift) for shift in range(0, N, N // 20))
    # The models that differ most: their errors, or what they get right, lie apart.
    assert not improves(math.ceil(gain * N) - 1, errors if released <= 0.5 else errors - N)


def test_bootstrap_scores_need_a_larger_gain():
    exact = lb.BootstrapLadder(resample=False).smallest_visible_gain(n=N)
    paired = lb.BootstrapLadder().smallest_visible_gain(n=N)
    bayes = lb.BootstrapLadder(test="bayes").smallest_visible_gain(n=N)
    assert exact < paired < bayes < 0.015


@pytest.mark.parametrize("name", MECHANISMS)
def test_more_power_needs_more_gain_and_more_examples_never_do(name):
    settings = {
        "step": 0.01,
        "compare_noise": 0.004,
        "release_noise": 0.001,
        "digits": 2,
        "sd": 0.01,
    }
    kind = MECHANISMS[name]
    mechanism = kind(**{key: settings[key] for key in settings if key in kind.__dataclass_fields__})
    gains = [mechanism.smallest_visible_gain(n=N, power=power) for power in (0.01, 0.5, 0.9, 0.999)]
    assert gains == sorted(gains)
    assert mechanism.smallest_visible_gain(n=10 * N) <= mechanism.smallest_visible_gain(n=N)
    assert mechanism.smallest_distinguishable_gain(n=N) >= gains[0]


@pytest.mark.parametrize("power", [0, 1, -1, float("nan"), "0.5"])
def test_a_power_is_a_probability(power):
    for mechanism in (lb.Ladder(0.01), NOISY[0], lb.ParameterFreeLadder(), lb.BootstrapLadder()):
        with pytest.raises(InvalidSetting, match="power must be a number above 0 and below 1"):
            mechanism.smallest_visible_gain(n=N, power=power)
