"""The paper's settings, their conditions, and how often its ladder moves.

Statistical tests have fixed seeds and allow 5 standard errors: a false alarm below 6e-7 each.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import ladderboard as lb
from ladderboard.errors import InvalidSetting, OutsideTheorem
from ladderboard.mechanisms import PaperSettings, paper_settings
from ladderboard.mechanisms._shaky_ladder import least_n


def test_the_anchor():
    mechanism = lb.ShakyLadder.from_paper(n=10_000, questions=1_000, beta=0.05)
    assert f"{mechanism.epsilon:.4g}" == "0.03818"
    assert f"{mechanism.delta:.4g}" == "5e-09"
    assert f"{mechanism.noise_scale:.4g}" == "0.01145"
    assert f"{mechanism.step:.4g}" == "0.5171"
    assert f"{mechanism.origin.transfer_epsilon:.4g}" == "0.1062"
    assert mechanism.compare_noise == mechanism.release_noise == mechanism.noise_scale
    assert (mechanism.law, mechanism.grid) == ("laplace", None)


def test_other_ladders_have_no_epsilon():
    mechanism = lb.ShakyLadder.calibrated(n=10_000, questions=1_000)
    assert mechanism.epsilon is mechanism.delta is mechanism.noise_scale is None


def test_a_small_holdout_is_refused_with_the_condition_and_the_least_n():
    with pytest.raises(OutsideTheorem) as caught:
        lb.ShakyLadder.from_paper(n=100, questions=1_000, beta=0.05)
    message = str(caught.value)
    assert "e = epsilon sqrt(B) must be below 1/3 and is 0.6342" in message
    assert str(caught.value.least_n) in message
    lb.ShakyLadder.from_paper(n=caught.value.least_n, questions=1_000, beta=0.05)
    with pytest.raises(OutsideTheorem):
        lb.ShakyLadder.from_paper(n=caught.value.least_n - 1, questions=1_000, beta=0.05)


def test_conditions_are_tested_at_epsilon_sqrt_b():
    """On epsilon itself the third condition would fail past 5e3, and this would be refused."""
    chosen = paper_settings(10_000, 1_000, 0.05)
    assert chosen.n < math.log(4 * chosen.epsilon / chosen.delta) / chosen.epsilon**2
    assert not chosen.failed_conditions()


def test_each_condition_can_fail_and_is_named():
    """Few questions and a large beta make e small: then it is n that does not suffice."""
    message = "; ".join(paper_settings(1000, 1, 0.9).failed_conditions())
    assert "n must be at least log(4e/delta)/e^2" in message
    with pytest.raises(OutsideTheorem, match="sufficient n"):
        lb.ShakyLadder.from_paper(n=1000, questions=1, beta=0.9)


def test_the_conditions_at_their_edges():
    """Each of the three, just kept and just broken, on settings written down by hand."""

    def failures(n, delta, e):
        return PaperSettings(n, 10, 0.05, 0.01, delta, 0.01, 0.1, 40, e).failed_conditions()

    assert not failures(10**4, 1e-9, 0.333)
    assert len(failures(10**4, 1e-9, 0.334)) == 1
    assert len(failures(10**4, 0.026, 0.1)) == 1
    assert not failures(10**4, 0.024, 0.1)
    # log(4 x 0.1 / 1e-9) / 0.01 = 1980.7
    assert len(failures(1980, 1e-9, 0.1)) == 1
    assert not failures(1981, 1e-9, 0.1)


@given(st.integers(1, 10**6), st.floats(1e-6, 0.99))
def test_the_least_n_is_least_and_everything_above_holds_too(questions, beta):
    minimum = least_n(questions, beta)
    if minimum is None:
        return
    assert not paper_settings(minimum, questions, beta).failed_conditions()
    if minimum > 1:
        assert paper_settings(minimum - 1, questions, beta).failed_conditions()
    for factor in (1.5, 10, 1e3, 1e6):
        assert not paper_settings(int(minimum * factor) + 1, questions, beta).failed_conditions()


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0, "questions": 10},
        {"n": 10.5, "questions": 10},
        {"n": 100, "questions": 0},
        {"n": 100, "questions": 10, "beta": 0},
        {"n": 100, "questions": 10, "beta": 1},
        {"n": 100, "questions": 10, "beta": math.nan},
        {"n": 100, "questions": 10, "beta": 5e-324},
        {"n": 10**400, "questions": 10},
        {"n": 100, "questions": 10**5000},
    ],
)
def test_bad_sizes_are_refused(arguments):
    with pytest.raises(InvalidSetting):
        lb.ShakyLadder.from_paper(**arguments)


def beyond(x, scale):
    """P(xi - xi_t > x) for two independent Laplace numbers of one scale."""
    z = abs(x) / scale
    tail = (0.5 + z / 4) * math.exp(-z)
    return tail if x >= 0 else 1 - tail


@pytest.mark.parametrize(("tape", "sessions"), [(lb.NumpyTape(seed=21), 8_000),
                                                (lb.Tape(seed=21), 4_000)])  # fmt: skip
@pytest.mark.parametrize("offset", [-2.0, -0.5, 0.0, 1.0, 3.0])
def test_the_first_question_crosses_as_often_as_its_closed_form(tape, sessions, offset):
    """R_S + xi_1 < 1 - step + xi, one session a ladder; offset in units of the noise scale."""
    mechanism = lb.ShakyLadder.from_paper(n=10_000, questions=1_000)
    risk = 1 - mechanism.step - offset * mechanism.noise_scale
    crossed = 0
    for ladder in range(sessions):
        session = mechanism.start(n=10_000, tape=tape, ladder=ladder)
        crossed += session.ask(risk=risk).score is not None
    p = 1 - beyond(offset * mechanism.noise_scale, mechanism.noise_scale)
    assert abs(crossed / sessions - p) < 5 * math.sqrt(p * (1 - p) / sessions)


def test_silence_over_many_questions_matches_its_integral():
    """All comparisons share one xi: P(no crossing in m) = E over xi of F(xi)^m, F of a Laplace."""
    mechanism = lb.ShakyLadder.from_paper(n=10_000, questions=1_000)
    scale, m, sessions = mechanism.noise_scale, 20, 4_000
    offset = 3 * scale
    risk = 1 - mechanism.step + offset
    tape = lb.NumpyTape(seed=22)
    silent = 0
    for ladder in range(sessions):
        session = mechanism.start(n=10_000, tape=tape, ladder=ladder)
        silent += not np.isfinite(session.ask_many(np.full(m, risk)).score).any()
    law = stats.laplace(scale=scale)
    p, _ = integrate.quad(
        lambda xi: law.pdf(xi) * law.sf(xi - offset) ** m,
        -30 * scale,
        30 * scale,
        points=[0, offset],
    )
    assert abs(silent / sessions - p) < 5 * math.sqrt(p * (1 - p) / sessions)


def test_the_release_carries_its_own_noise():
    """After a crossing the release is R_S + Lap(s), independent of what made it cross."""
    mechanism = lb.ShakyLadder.from_paper(n=10_000, questions=1_000)
    tape = lb.NumpyTape(seed=23)
    released = [
        mechanism.start(n=10_000, tape=tape, ladder=ladder).ask(risk=0.2).value - 0.2
        for ladder in range(4_000)
    ]
    assert stats.kstest(released, stats.laplace(scale=mechanism.noise_scale).cdf).pvalue > 1e-6
