"""The growing ladder: its rungs in integers, by hand, and what it shows on losses of all kinds."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidRisk, InvalidSetting
from ladderboard.mechanisms import Observation, Setup
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.mechanisms._fixed_point import exact_standard_error, to_units
from ladderboard.mechanisms._growing._ladder import (
    MILLION,
    GrowingLadderState,
    growth_millionths,
    readable_grid,
    standard_error_units,
)
from ladderboard.mechanisms._session import largest_standard_error, standard_error_class

UNIT = 10**12


def test_a_trace_worked_by_hand(scripted):
    """n = 10,000: a standard error is .005 at R >= 1/2, .004 at R = .2 and .003 at R = .1."""
    mechanism = lb.GrowingLadder(
        step=2, growth=0.5, compare_noise=0.5, release_noise=0.1, grid=0.4, cut=3
    )
    m = MILLION
    tape = scripted(
        [
            (0, 0),
            (m, -m),  # R = 1, step .01: .2 + .005 < .99; .2 - .001 on a grid of .005 is .2
            (0, 0),  # R = .2, step .008 sqrt(2) = .0113: .19 < .1887 is not true
            (-m, 3 * m),  # .19 - .0057 < .1887; .19 + .0034 on a grid of .005 is .195
            (-3 * m, 0),  # R = .195, step .013724: .1951 - .0206 < .1813, but .195 is not lower
            (0, 0),  # .1 < .1813; grid .4 x .0137 = .0055, so .005: .1
            (0, 0),  # R = .1, step .006 x 2 = .012: .088 < .088 is not true
            (-1, 0),  # noise of one millionth of .006: crosses; grid .0048, so .005: .09
        ]
    )
    session = mechanism.start(n=10_000, tape=tape)
    risks = [0.2, 0.19, 0.19, 0.1951, 0.1, 0.088, 0.088]
    values = [session.ask(risk=risk).value for risk in risks]
    assert values == [0.2, 0.2, 0.195, 0.195, 0.1, 0.1, 0.09]
    assert session.state["state"] == {"best": 9 * UNIT // 100, "changes": 4, "error_class": 0}


@given(
    best=st.integers(0, UNIT),
    n=st.integers(1, 10**9),
    changes=st.integers(0, 10**6),
    quarters=st.integers(0, 4),
)
def test_roots_are_the_true_ones_rounded_down(best, n, changes, quarters):
    error = standard_error_units(Setup(n, 0.0, 1.0), best)
    half = UNIT // 2
    variance = max(Fraction(best * (UNIT - best) if best < half else half**2), Fraction(UNIT**2, n))
    assert error**2 <= variance / n
    assert (error + 1) ** 2 > variance / n - 2
    multiple = growth_millionths(changes * MILLION, quarters)
    exact = (1 + changes) ** quarters * MILLION**4
    assert multiple**4 <= exact < (multiple + 2) ** 4


@given(units=st.integers(1, 10**15))
def test_a_grid_is_one_two_or_five_times_a_power_of_ten_and_near(units):
    grid = readable_grid(units)
    assert str(grid).rstrip("0") in {"1", "2", "5"}
    # Neighbours differ by a factor of 2.5 at most, so the nearer one is within its root.
    assert 1 / 1.6 < grid / units < 1.6 or units < 4


@given(
    changes=st.integers(0, 200),
    best=st.floats(0, 1),
    others=st.integers(0, 500),
    data=st.data(),
)
def test_steps_grow_with_changes_and_shrink_with_examples(changes, best, others, data):
    mechanism = lb.GrowingLadder(step=1, accounts=3, sharing=0.25, sharing_cap=1.5)
    state = GrowingLadderState(round(best * UNIT), changes, 0)

    def step(n=1_000, state=state, others=0):
        question = Observation(0.0, None, None, others=others)
        return mechanism.rung(Setup(n, 0.0, 1.0), state, question).step

    more = data.draw(st.integers(1, 10**6))
    assert step(n=1_000 + more) <= step()
    assert step(state=state._replace(changes=changes + 1)) >= step()
    assert step() <= step(others=others) <= step(others=others + 1) <= 1.5 * step() + 1


def test_a_cap_ends_the_growth():
    mechanism = lb.GrowingLadder(step=1, growth=1, cap=4)
    assert [mechanism.step_multiple(changes) // MILLION for changes in (0, 1, 3, 9)] == [1, 2, 4, 4]


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 0},
        {"growth": 0.3},
        {"growth": 1.25},
        {"compare_noise": -0.1},
        {"grid": 0},
        {"cap": 0.5},
        {"cut": 0.5},
        {"accounts": 0},
        {"sharing": 2},
        {"sharing_cap": 0.9},
        {"scale": "loss"},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidSetting):
        lb.GrowingLadder(**{"step": 1, **wrong})


def test_releases_are_short_decimals_that_fall():
    rng = np.random.default_rng(3)
    mechanism = lb.GrowingLadder(step=1, growth=0.25)
    for n in (300, 4_321):
        releases = mechanism.start(n=n, tape=lb.NumpyTape(seed=n)).ask_many(
            np.clip(np.linspace(0.6, 0.02, 400) + 0.02 * rng.standard_normal(400), 0, 1)
        )
        values = [release.value for release in releases if release.improved]
        assert len(values) > 5
        assert all(after < before for before, after in pairwise(values))
        assert max(len(repr(value)) for value in values) <= 6


def rmse_losses(rng, rmse, n=1_828):
    """Squared errors over a range of 600, for labels with a standard deviation of 80."""
    return np.clip((rmse * rng.standard_normal(n) / 600) ** 2, 0, 1)


@pytest.mark.parametrize("seed", range(5))
def test_errors_of_any_size_are_released_near_the_truth(seed):
    """Each model is many standard errors better; missing one has a chance below 1e-6."""
    rng = np.random.default_rng(seed)
    session = lb.GrowingLadder(step=1.2, compare_noise=0.3, scale="model").start(
        n=1_828, tape=lb.Tape(seed=seed)
    )
    for rmse in (78, 60, 30, 5):
        losses = rmse_losses(rng, rmse)
        release = session.ask(losses=losses)
        assert release.improved
        assert math.sqrt(release.value / losses.mean()) == pytest.approx(1, abs=0.05)


def test_a_loud_model_is_compared_with_its_own_standard_error():
    """After a quiet record, the step for a loud guess is that of the guess."""
    mechanism = lb.GrowingLadder(step=1, growth=0, compare_noise=0, release_noise=0, scale="model")
    session = mechanism.start(n=10_000)
    assert session.ask(risk=0.25, standard_error=0.00001).improved
    assert not session.ask(risk=0.2475, standard_error=0.004).improved
    assert session.ask(risk=0.2475, standard_error=0.001).improved


def test_a_standard_error_is_needed_and_checked():
    session = lb.GrowingLadder(step=1, scale="model").start(n=100)
    with pytest.raises(InvalidRisk, match="losses="):
        session.ask(risk=0.3)
    with pytest.raises(InvalidRisk, match="not both"):
        session.ask(losses=np.zeros(100), standard_error=0.1)
    for wrong in (-0.1, 2.0, math.nan, "0.1", True):
        with pytest.raises(InvalidRisk):
            session.ask(risk=0.3, standard_error=wrong)
    with pytest.raises(InvalidRisk, match="one question at a time"):
        session.ask_many([0.3])
    assert session.questions == 0
    with pytest.raises(InvalidSetting, match="does not use"):
        lb.GrowingLadder(step=1).start(n=100).ask(risk=0.3, standard_error=0.1)


@given(
    losses=st.lists(st.floats(0, 1), min_size=2, max_size=50),
    repeat=st.sampled_from([1, 400]),
    width=st.sampled_from([1.0, 1e-3, 7.5, 900.0]),
)
def test_standard_errors_are_exact(losses, repeat, width):
    vector = np.tile(np.array(losses) * width, repeat)
    error = exact_standard_error(vector)
    plain = float(vector.std() / math.sqrt(len(vector)))
    # Losses are rounded to units, of the width if it is above 1.
    assert error == pytest.approx(plain, rel=1e-9, abs=2e-12 * max(width, 1))
    assert error == exact_standard_error(vector[::-1])


def test_losses_and_their_standard_error_are_the_same_question():
    losses = rmse_losses(np.random.default_rng(0), 40)
    mechanism = lb.GrowingLadder(step=1, scale="model")
    by_losses = mechanism.start(n=len(losses), tape=lb.Tape(seed=1))
    by_numbers = mechanism.start(n=len(losses), tape=lb.Tape(seed=1))
    error = exact_standard_error(losses)
    risk = float(losses.mean())
    assert by_losses.ask(losses=losses) == by_numbers.ask(risk=risk, standard_error=error)
    assert json.dumps(by_losses.state) == json.dumps(by_numbers.state)


def sizes():
    return {
        "n": st.sampled_from([300, 1_000, 5_000, 100_000]),
        "questions": st.integers(1, 100_000),
        "teams": st.integers(1, 200),
    }


@given(
    data=st.data(),
    protection=st.sampled_from(["open", "balanced", "strict"]),
    scale=st.sampled_from(["value", "model"]),
)
def test_calibrated_steps_are_monotone(data, protection, scale):
    """Never coarser with fewer questions, fewer accounts, more examples or less protection."""
    size = {name: data.draw(strategy) for name, strategy in sizes().items()}
    accounts = data.draw(st.integers(1, size["teams"]))
    changes, released = data.draw(st.integers(0, 12)), data.draw(st.floats(0.02, 0.9))

    others = data.draw(st.integers(0, 12))  # of each other account

    def gain(
        n=size["n"],
        questions=size["questions"],
        teams=size["teams"],
        accounts=accounts,
        protection=protection,
    ):
        mechanism = lb.GrowingLadder.calibrated(
            n, questions, teams, accounts, protection, scale=scale
        )
        return mechanism.smallest_visible_gain(
            n=n, released=released, changes=changes, others=others * mechanism.shared_ladders
        )

    usual = gain()
    assert gain(questions=size["questions"] * 3) >= usual
    assert gain(n=2 * size["n"]) <= usual
    assert gain(teams=2 * size["teams"]) == usual
    assert gain(teams=2 * size["teams"], accounts=None) >= gain(accounts=None)
    assert gain(accounts=max(accounts // 2, 1)) <= usual
    assert gain(protection="open") <= gain(protection="balanced") <= gain(protection="strict")


@pytest.mark.parametrize("scale", ["value", "model"])
def test_calibrated_steps_are_monotone_from_each_number_of_accounts_to_the_next(scale):
    for protection in ("open", "balanced", "strict"):
        gains = [
            [
                ladder.smallest_visible_gain(
                    n=2_000, released=0.2, changes=changes, others=changes * (accounts - 1)
                )
                for changes in (0, 1, 3, 8, 20)
            ]
            for accounts in range(1, 61)
            for ladder in [
                lb.GrowingLadder.calibrated(2_000, 500, 60, accounts, protection, scale=scale)
            ]
        ]
        assert (np.diff(gains, axis=0) >= 0).all()
        assert (np.diff(gains, axis=1) > 0).all()


def test_calibrated_settings_show_what_is_promised():
    """In units of 1/sqrt(n): after three changes at most 1.6 at R = .1 and 2.5 at R = .3."""
    for n in (1_000, 5_000, 10_000, 100_000):
        for questions in (100, 1_000):
            ladder = lb.GrowingLadder.calibrated(n=n, questions=questions)
            root = math.sqrt(n)
            assert root * ladder.smallest_visible_gain(n=n, released=0.1, changes=3) < 1.6
            assert root * ladder.smallest_visible_gain(n=n, released=0.3, changes=3) < 2.5
            assert root * ladder.smallest_visible_gain(n=n, released=0.1, changes=8) < 3


def test_calibrated_steps_that_follow_the_model_show_what_is_promised():
    """In released standard errors: 1 at first, 3.6 after three changes and 8 after eight.

    From 10,000 examples on, an eighth more.
    """
    error = largest_standard_error(standard_error_class(1e-3))
    for n, factor in ((1_000, 1), (5_000, 1), (10_000, 1.13), (100_000, 1.13)):
        for questions in (100, 1_000):
            ladder = lb.GrowingLadder.calibrated(n, questions, scale="model")
            for changes, limit in ((0, 1), (3, 3.6 * factor), (8, 8 * factor)):
                gain = ladder.smallest_visible_gain(
                    n=n, released=0.01, changes=changes, standard_error=error
                )
                assert gain < limit * error


@pytest.mark.parametrize(
    ("n", "released", "classes"), [(5_000, 0.05, range(60, 68)), (10**6, 0.008, (53,))]
)
def test_a_stated_gain_goes_by_the_standard_error_as_the_ladder_rounds_it_up(n, released, classes):
    """A ladder knows classes only: every error of one has the gain of its largest."""
    ladder = lb.GrowingLadder.calibrated(n, 1_000, scale="model")

    def gain(error):
        return ladder.smallest_visible_gain(n=n, released=released, standard_error=error)

    for error_class in classes:
        largest = largest_standard_error(error_class)
        assert gain(largest) == gain(0.75 * largest)  # the class before ends at 0.71 of it
        assert gain(1.0001 * largest) == pytest.approx(math.sqrt(2) * gain(largest), rel=1e-3)


# The number of examples and standard errors of models with AUC .70, .80, .85 and .90 and normal
# scores, by the share of positives; and how often all four must be shown.
AUC_BOARDS = {
    "5,000 with 10%": (5_000, (0.0120, 0.0104, 0.0090, 0.0072), 0.97),
    "3,000 with 10%": (3_000, (0.0156, 0.0140, 0.0120, 0.0096), 0.93),
    "5,000 with 5%": (5_000, (0.0168, 0.0146, 0.0121, 0.0106), 0.93),
    "1,000 with 50%": (1_000, (0.0163, 0.0137, 0.0118, 0.0094), 0.94),
}


@pytest.mark.parametrize("board", AUC_BOARDS)
def test_four_models_are_shown_near_their_auc(board):
    """400 keys at chances of .994, .97, .97 and .98: each fails with probability below 1e-3."""
    n, errors, share = AUC_BOARDS[board]
    ladder = lb.GrowingLadder.calibrated(n, 1_000, teams=20, scale="model").for_board()
    shown = 0
    for seed in range(400):
        session = ladder.start(n=n, tape=lb.NumpyTape(seed=seed))
        releases = [
            session.ask(risk=risk, standard_error=error)
            for risk, error in zip((0.30, 0.20, 0.15, 0.10), errors, strict=True)
        ]
        near = [abs(release.value - risk) <= 0.015 for release, risk in zip(
            releases, (0.30, 0.20, 0.15, 0.10), strict=True)]  # fmt: skip
        shown += all(near) and all(release.improved for release in releases)
    assert shown >= share * 400


def test_calibrated_settings_show_what_is_promised_to_twenty_teams():
    """Three changes each: at most 1.8/sqrt(n) if an attacker holds two accounts, 3.5 if all."""
    for n in (1_000, 5_000, 10_000, 100_000):
        for questions in (100, 1_000):
            for accounts, limit in ((2, 1.8), (20, 3.5)):
                ladder = lb.GrowingLadder.calibrated(n, questions, teams=20, accounts=accounts)
                gain = ladder.smallest_visible_gain(n=n, changes=3, others=3 * (accounts - 1))
                assert math.sqrt(n) * gain < limit
                assert gain > ladder.smallest_visible_gain(n=n, changes=3)
    organised = lb.GrowingLadder.calibrated(1_828, 1_000, teams=20)
    assert organised.smallest_visible_gain(n=1_828, released=0.2, changes=3, others=3) < 0.055


def test_a_gain_that_shows_with_probability_95_does():
    """400 games at a chance of .95: below .91 with probability 1e-3, above .985 with 1e-4."""
    ladder = lb.GrowingLadder.calibrated(n=5_000, questions=100)
    state = {"best": UNIT // 5, "changes": 3, "error_class": 0}
    gain = ladder.smallest_visible_gain(n=5_000, released=0.2, changes=3)
    shown = 0
    for seed in range(400):
        tape = lb.NumpyTape(seed=seed)
        saved = ladder.start(n=5_000, tape=tape).state
        session = ladder.resume({**saved, "state": state}, tape)
        shown += session.ask(risk=0.2 - gain).improved
    assert 0.91 < shown / 400 < 0.985


def test_the_class_of_a_standard_error_is_released_with_a_record():
    session = lb.GrowingLadder(step=1, scale="model").start(n=400, tape=lb.Tape(seed=3))
    first = session.ask(risk=0.2, standard_error=0.003)
    assert 0.003 <= first.standard_error < 0.003 * 2**0.5
    assert first.error_class == 63
    assert "error_class=63" in repr(first)
    unchanged = session.ask(risk=0.199, standard_error=0.01)
    assert (unchanged.standard_error, unchanged.improved) == (None, False)
    by_value = lb.GrowingLadder(step=1).start(n=400, tape=lb.Tape(seed=3)).ask(risk=0.2)
    assert by_value.improved
    assert by_value.error_class is None


def read_labels_one_by_one(mechanism, n):
    """Return the share of labels that single probes get right, for three-class log loss.

    No example has the third class, so its probability moves all losses alike, and a guess of one
    label can leave every loss equal if it is right. The probe is placed where the ladder shows it.
    """
    labels = np.random.default_rng(0).integers(2, size=n)
    loss = lb.loss("log", classes=[0, 1, 2])
    session = mechanism.start(n=n, tape=lb.Tape(seed=1))

    def ask(level, row=None, guess=0):
        share = 0.01**level  # the probability of a class whose loss is the level
        predictions = np.tile([share, share, 1 - 2 * share], (n, 1))
        if row is not None:
            predictions[row] = 0.0, 0.0, 1 - share
            predictions[row, guess] = share
        return session.ask(losses=loss(labels, predictions))

    released, changes, right = ask(0.9).value, 1, 0
    for row in range(n):
        guess = row % 2
        gain = mechanism.smallest_visible_gain(
            n=n, released=released, changes=changes, standard_error=1e-12
        )
        level = released - max(gain, 1e-7)  # more than rounding errors
        if level < 0.16:  # two classes with a half each cost 0.15: the rest is guessed
            return (right + (n - row) / 2) / n
        release = ask(level, row, guess)
        released, changes = release.value, changes + release.improved
        right += labels[row] == (guess if release.improved else 1 - guess)
    return right / n


def test_labels_cannot_be_read_one_by_one():
    """A right guess without a trace in the losses still has to pass a step.

    Chance gets half of 300 labels right, and 0.62 once in 30,000 such games.
    """
    mechanism = lb.GrowingLadder.calibrated(300, 301, scale="model")
    assert read_labels_one_by_one(replace(mechanism, least_deviation=0.0), 300) == 1
    assert read_labels_one_by_one(mechanism, 300) < 0.62


def test_the_least_deviation_raises_the_step_and_not_the_release():
    setup, quiet = Setup(400, 0.0, 1.0), standard_error_class(1e-6)
    without = lb.GrowingLadder(step=1, scale="model")
    ladder = replace(without, least_deviation=0.5)
    state = GrowingLadderState(to_units(0.2), 3, quiet)
    before, after = (made.rung_for(setup, state, quiet, 0) for made in (without, ladder))
    assert after.step == pytest.approx(4**0.75 * to_units(0.5 * 0.2 / 20), rel=1e-6)
    assert before.step < after.step / 1_000
    assert (after.release_noise, after.grid) == (before.release_noise, before.grid)
    loud = standard_error_class(0.1)
    assert ladder.rung_for(setup, state, loud, 0) == without.rung_for(setup, state, loud, 0)
    gains = [
        made.smallest_visible_gain(n=400, released=0.2, changes=3, standard_error=1e-6)
        for made in (without, ladder)
    ]
    assert gains[0] < gains[1] / 1_000


def test_ladders_of_older_versions_have_no_least_deviation():
    old = lb.GrowingLadder(step=1, scale="model")
    assert "least_deviation" not in old.describe()
    new = lb.GrowingLadder.calibrated(1_000, 100, scale="model")
    assert mechanism_of(new.describe()) == new
    assert new.describe()["least_deviation"] == 0.5
