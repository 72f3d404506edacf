"""Sessions: state that survives, refusals in words, ladders kept apart."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidRisk, InvalidSetting, InvalidState, SessionClosed


def test_ladders_on_one_tape_have_noise_of_their_own():
    mechanism = lb.Noisy(sd=0.1)
    tape = lb.Tape(seed=1)
    scores = {mechanism.start(n=10, tape=tape, ladder=j).ask(risk=0.5).score for j in range(20)}
    assert len(scores) == 20


def test_the_context_changes_the_noise_and_nothing_else_does():
    start = lb.Noisy(sd=0.1).start
    tape = lb.Tape(seed=1)
    plain = start(n=10, tape=tape).ask(risk=0.5)
    assert start(n=10, tape=tape).ask(risk=0.5) == plain
    assert start(n=10, tape=tape).ask(risk=0.5, context=b"digest") != plain


def test_without_a_tape_the_noise_is_fresh():
    mechanism = lb.Noisy(sd=0.1)
    assert mechanism.start(n=10).ask(risk=0.5) != mechanism.start(n=10).ask(risk=0.5)


def test_a_state_of_another_kind_is_refused_in_words():
    mechanism = lb.ShakyLadder(step=0.1, compare_noise=0.1, release_noise=0, grid=0.05)
    session = mechanism.start(n=100, tape=lb.Tape(seed=1))
    session.ask(risk=0.4)
    state = json.loads(json.dumps(session.state))
    other = lb.ShakyLadder(step=0.2, compare_noise=0.1, release_noise=0, grid=0.05)
    with pytest.raises(InvalidState, match="another mechanism"):
        other.resume(state, lb.Tape(seed=1))
    for tape in (None, lb.Tape(seed=2), lb.NumpyTape(seed=1)):
        with pytest.raises(InvalidState, match="another tape"):
            mechanism.resume(state, tape)
    with pytest.raises(InvalidState, match="format 99"):
        mechanism.resume({**state, "format": 99}, lb.Tape(seed=1))
    for damage in ("n", "state", "question", "ladder", "tape", "risk_range", "closed"):
        damaged = {key: value for key, value in state.items() if key != damage}
        with pytest.raises(InvalidState, match="damaged"):
            mechanism.resume(damaged, lb.Tape(seed=1))
    for damaged in ({}, {"format": 1}, {**state, "state": {"odd": 1}}, {**state, "n": "many"}):
        with pytest.raises(InvalidState, match="damaged"):
            mechanism.resume(damaged, lb.Tape(seed=1))


@pytest.mark.parametrize("value", ["0.3", None, 0.3, math.nan, True, [1]])
def test_a_damaged_number_in_a_state_is_refused(value):
    mechanism = lb.Ladder(step=0.1)
    state = mechanism.start(n=10).state
    state["state"]["best"] = value
    with pytest.raises(InvalidState, match="damaged"):
        mechanism.resume(state)
    teller = lb.Exact().start(n=10).state
    teller["state"]["best"] = "0.3"
    with pytest.raises(InvalidState, match="damaged"):
        lb.Exact().resume(teller)
    for closed in ("no", None, 2):
        with pytest.raises(InvalidState, match="damaged"):
            lb.Exact().resume({**lb.Exact().start(n=10).state, "closed": closed})


def test_the_context_is_bytes():
    for tape in (lb.Tape(seed=1), lb.NumpyTape(seed=1)):
        session = lb.Noisy(sd=0.1).start(n=10, tape=tape)
        for bad in ("abc", None, 3):
            with pytest.raises(InvalidSetting, match="context must be bytes"):
                session.ask(risk=0.1, context=bad)


def test_sums_do_not_overflow():
    for top in (1, 600, 1000):
        exact = lb.Exact().start(n=20_000, risk_range=(0, 1000))
        assert exact.ask(losses=np.full(20_000, float(top))).score == top
    wide = lb.Exact().start(n=9_500_000)
    assert wide.ask(losses=np.ones(9_500_000)).score == 1


def test_settings_may_be_any_kind_of_number():
    shaky = lb.ShakyLadder(
        step=np.float32(0.5), compare_noise=Fraction(1, 4), release_noise=0, grid=np.float64(0.25)
    )
    assert shaky == lb.ShakyLadder(0.5, 0.25, 0.0, 0.25)
    for mechanism in (
        shaky,
        lb.Rounded(digits=np.int64(2)),
        lb.BootstrapLadder(test="bayes", replicates=1e2, alpha=np.float64(0.1)),
        lb.Thresholdout(threshold=Fraction(1, 8), noise=np.float32(0.5), budget=3.0),
    ):
        assert lb.mechanism(json.loads(json.dumps(mechanism.describe()))) == mechanism
        assert json.dumps(mechanism.start(n=10).state)


def test_a_release_of_the_parameter_free_ladder_stays_in_the_range():
    session = lb.ParameterFreeLadder().start(n=4, risk_range=(0, 0.4))
    assert session.ask(losses=[0.39] * 4).value <= 0.4


def test_parts_of_many_releases():
    releases = lb.Exact().start(n=10).ask_many([0.5, 0.4, 0.6])
    assert list(releases[1:]) == [releases[1], releases[2]]
    assert releases[-1] == lb.Release(0.4, 0.6, False, 3)


def test_losses_of_another_length_in_a_state_are_refused():
    mechanism = lb.ParameterFreeLadder()
    session = mechanism.start(n=3)
    session.ask(losses=[0, 0, 1])
    state = session.state
    state["state"]["losses"] = [0.0, 1.0]
    with pytest.raises(InvalidState, match="does not hold 3 losses"):
        mechanism.resume(state)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"risk": 1.5}, r"risk must be a finite number in \[0, 1\]"),
        ({"risk": math.nan}, r"risk must be a finite number in \[0, 1\]"),
        ({}, "ask needs risk=, one number, or losses="),
        ({"risk": 10**400}, r"risk must be a finite number in \[0, 1\]"),
        ({"risk": "0.3"}, "ask needs risk=, one number, or losses="),
        ({"losses": [0.1, 0.2]}, "one number for each of the 3 examples; got 2"),
        ({"losses": [0.1, 0.2, 7]}, r"losses must be finite numbers in \[0, 1\]; 1 are not"),
        ({"losses": [["0.1", "0.2", "0.3"]]}, "losses must be a vector of numbers"),
        ({"losses": ["0.1", "0.2", "0.3"]}, "losses must be a vector of numbers"),
        ({"losses": [[0.1], [0.2, 0.3], [0.1]]}, "losses must be a vector of numbers"),
        ({"risk": 0.1, "losses": [0.1] * 3}, "risk or losses, not both"),
        ({"losses": np.ma.array([0.0, 1.0, 0.0], mask=[0, 1, 0])}, "losses must not be masked"),
        ({"losses": np.array(["2020"] * 3, dtype="M8[Y]")}, "losses must be a vector of numbers"),
    ],
)
def test_bad_questions_are_refused_without_printing_the_risk(question, message):
    with pytest.raises(InvalidRisk, match=message) as caught:
        lb.Ladder(step=0.1).start(n=3).ask(**question)
    assert "1.5" not in str(caught.value)


def test_mechanisms_say_what_they_need():
    with pytest.raises(InvalidRisk, match="parameter_free_ladder compares models example by"):
        lb.ParameterFreeLadder().start(n=3).ask(risk=0.1)
    with pytest.raises(InvalidRisk, match="losses="):
        lb.BootstrapLadder().start(n=3).ask_many([0.1])
    with pytest.raises(InvalidSetting, match="n of at least 2"):
        lb.ParameterFreeLadder().start(n=1)
    thresholdout = lb.Thresholdout().start(n=3)
    with pytest.raises(InvalidRisk, match="needs training="):
        thresholdout.ask(risk=0.1)
    with pytest.raises(InvalidRisk, match="needs training="):
        thresholdout.ask_many([0.1])
    with pytest.raises(InvalidRisk, match="one number for each of the 2 risks; got 1"):
        thresholdout.ask_many([0.1, 0.2], training=[0.1])
    with pytest.raises(InvalidSetting, match="training="):
        lb.Exact().start(n=3).ask(risk=0.1, training=0.1)
    with pytest.raises(InvalidSetting, match="training="):
        lb.Exact().start(n=3).ask_many([0.1], training=[0.1])


def test_another_range_of_risks():
    """The reduction of the paper's section 3 needs [-1/2, 1]."""
    session = lb.Ladder(step=0.1).start(n=10, risk_range=(-0.5, 1))
    assert session.ask(risk=-0.45).value == pytest.approx(-0.4)
    assert session.ask(losses=[-0.5] * 10).value == pytest.approx(-0.4)
    with pytest.raises(InvalidRisk, match=r"\[-0.5, 1\]"):
        session.ask(risk=-0.6)
    for bad in ((1, 0), (0, math.inf), (0, 2000), "01", None, (0, 1, 2)):
        with pytest.raises(InvalidSetting, match="risk_range"):
            lb.Exact().start(n=10, risk_range=bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1; got 0"),
        ({"n": 10, "tape": 7}, "tape must be a Tape; got int; try"),
        ({"n": 10, "ladder": -1}, "ladder must be"),
    ],
)
def test_bad_starts_are_refused(arguments, message):
    with pytest.raises(InvalidSetting, match=message):
        lb.Exact().start(**arguments)


def test_a_closed_session_says_no_more():
    session = lb.Exact().start(n=3)
    session.ask(risk=0.5)
    assert session.close() == 0.5
    for ask in (lambda: session.ask(risk=0.1), lambda: session.ask_many([0.1])):
        with pytest.raises(SessionClosed, match="start another"):
            ask()
    assert session.questions == 1


def test_before_the_first_question():
    assert lb.Ladder(step=0.1).start(n=3).value == 1
    assert lb.Ladder(step=0.1).start(n=3, risk_range=(0, 0.5)).value == 0.5
    assert lb.Exact().start(n=3).value is None
    assert lb.Exact().start(n=3).close() is None


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ladder", {"step": -1}, "step must be a number at least 0 and at most 1000; got -1"),
        ("ladder", {"step": 0}, "step must be at least 1e-12; got 0"),
        ("ladder", {"step": 0.1, "grid": 0}, "grid must be at least 1e-12; got 0"),
        ("ladder", {}, "does not take these settings"),
        ("ladder", {"step": 0.1, "size": 2}, "does not take these settings"),
        ("ladder", {"step": 1e-13}, "step must be at least 1e-12"),
        ("ladder", {"step": 10**400}, "step must be a number at least 0 and at most 1000"),
        ("noisy", {"sd": 1e5}, "sd must be a number at least 0 and at most 1000"),
        ("noisy", {"sd": 1e-13}, "sd must be 0, or at least 1e-12"),
        (3, {}, "no mechanism named 3"),
        ({"step": 0.1}, {}, "no mechanism named None"),
        (lb.Exact(), {"step": 0.1}, "an instance already"),
        ("lader", {"step": 0.1}, "no mechanism named 'lader'; choose from bootstrap_ladder"),
        ("rounded", {"digits": 13}, "digits must be a whole number of at least 0 and at most 12"),
        ("noisy", {"sd": math.inf}, "sd must be a number at least 0"),
        ("thresholdout", {"budget": 0}, "budget must be a whole number of at least 1"),
        ("bootstrap_ladder", {"test": "t"}, "test must be 'paired' or 'bayes'"),
        ("bootstrap_ladder", {"alpha": 1}, "alpha must be a number above 0 and below 1"),
        ("bootstrap_ladder", {"resample": 1}, "resample must be True or False"),
        (
            "shaky_ladder",
            {"step": 0.1, "compare_noise": 0, "release_noise": 0, "law": "cauchy"},
            "law must be 'gaussian' or 'laplace'",
        ),
    ],
)
def test_settings_are_refused_in_words(name, settings, message):
    with pytest.raises(InvalidSetting, match=message):
        lb.mechanism(name, **settings)


def test_a_name_too_long_to_print_is_refused_too():
    with pytest.raises(InvalidSetting, match="type int that cannot be printed"):
        lb.mechanism(10**5000)


def test_zero_has_one_sign():
    for ask in (lambda s: s.ask(risk=-0.0), lambda s: s.ask_many([-0.0]),
                lambda s: s.ask(losses=[-0.0] * 3)):  # fmt: skip
        session = lb.Exact().start(n=3)
        ask(session)
        assert math.copysign(1, session.value) == 1
