"""Invariants, over random mechanisms and random questions."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import LadderboardError

step = st.one_of(st.just(0.0), st.floats(1e-12, 0.3))
noise = st.one_of(st.just(0.0), st.floats(1e-12, 0.2))
grid = st.floats(1e-3, 0.3)
laws = st.sampled_from(["gaussian", "laplace"])

ladders = st.one_of(
    st.builds(lb.Ladder, step=st.floats(1e-3, 0.3), grid=st.one_of(st.none(), grid)),
    st.builds(
        lb.ShakyLadder, step=step, compare_noise=noise, release_noise=noise, grid=grid, law=laws
    ),
)
others = st.one_of(
    st.builds(lb.ShakyLadder, step=step, compare_noise=noise, release_noise=noise, law=laws),
    st.builds(lb.OneBit, step=st.floats(1e-3, 0.3)),
    st.just(lb.Exact()),
    st.builds(lb.Rounded, digits=st.integers(0, 12)),
    st.builds(lb.Noisy, sd=noise),
)
by_risk = st.one_of(ladders, others)
tapes = st.builds(lambda kind, seed: kind(seed=seed), st.sampled_from([lb.Tape, lb.NumpyTape]),
                  st.integers(0, 50))  # fmt: skip
ranges = st.sampled_from([(0, 1), (-0.5, 1), (0, 0.3)])
fractions = st.lists(st.floats(0, 1), min_size=1, max_size=25)


def scaled(risk_range, parts):
    low, high = risk_range
    return [min(max(low + (high - low) * part, low), high) for part in parts]


def ask(session, risks):
    return [session.ask(risk=risk) for risk in risks]


@given(ladders, tapes, ranges, fractions)
def test_releases_of_a_ladder_never_rise_and_stay_on_the_grid(mechanism, tape, span, parts):
    session = mechanism.start(n=100, tape=tape, risk_range=span)
    releases = ask(session, scaled(span, parts))
    values = [span[1], *(release.value for release in releases)]
    cell = mechanism.grid or mechanism.step
    for before, after, release in zip(values, values[1:], releases, strict=False):
        assert after <= before
        assert release.improved == (after < before) == (release.score is not None)
        if after != span[1]:
            assert abs(after / cell - round(after / cell)) < 1e-6 * max(1, abs(after) / cell)
            assert span[0] - cell / 2 - 1e-12 <= after <= span[1] + cell / 2 + 1e-12


@given(by_risk, tapes, ranges, fractions, st.data())
def test_replay_from_any_prefix_is_the_original(mechanism, tape, span, parts, data):
    risks = scaled(span, parts)
    cut = data.draw(st.integers(0, len(risks)))
    original = mechanism.start(n=100, tape=tape, risk_range=span, ladder=3)
    releases = ask(original, risks)
    session = mechanism.start(n=100, tape=tape, risk_range=span, ladder=3)
    ask(session, risks[:cut])
    written = json.dumps(session.state, allow_nan=False)
    again = mechanism.resume(json.loads(written), tape)
    assert json.dumps(again.state) == written
    assert again.value == session.value
    assert ask(again, risks[cut:]) == releases[cut:]
    assert again.state == original.state


@given(by_risk, tapes, ranges, fractions, st.data())
def test_step_by_step_is_bulk(mechanism, tape, span, parts, data):
    risks = scaled(span, parts)
    cut = data.draw(st.integers(0, len(risks)))
    stepwise = mechanism.start(n=100, tape=tape, risk_range=span)
    in_bulk = mechanism.start(n=100, tape=tape, risk_range=span)
    releases = ask(stepwise, risks)
    bulk = [*in_bulk.ask_many(risks[:cut]), *in_bulk.ask_many(risks[cut:])]
    assert bulk == releases
    assert in_bulk.state == stepwise.state


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("cell", [None, 0.005])
def test_step_by_step_is_bulk_over_many_blocks_of_noise(law, cell):
    """Long enough to cross several blocks of the NumPy tape and strides of the search."""
    rng = np.random.default_rng(5)
    risks = 0.3 + 0.2 * rng.random(5_000) * np.linspace(1, 0, 5_000)
    mechanism = lb.ShakyLadder(0.01, 0.02, 0.01, grid=cell, law=law)
    stepwise = mechanism.start(n=1000, tape=lb.NumpyTape(seed=1))
    in_bulk = mechanism.start(n=1000, tape=lb.NumpyTape(seed=1))
    assert list(in_bulk.ask_many(risks)) == ask(stepwise, risks.tolist())
    assert in_bulk.state == stepwise.state


@given(by_risk, tapes, st.lists(st.floats(0, 1), max_size=5), st.data())
def test_a_refusal_leaves_no_trace(mechanism, tape, parts, data):
    session = mechanism.start(n=10, tape=tape)
    ask(session, parts)
    before = session.state
    bad = data.draw(st.sampled_from([-1e-9, 1 + 1e-9, float("nan"), float("inf"), "x", None, []]))
    for arguments in ({"risk": bad}, {"losses": [0.0] * 9}, {"losses": bad}):
        with pytest.raises(LadderboardError):
            session.ask(**arguments)
    with pytest.raises(LadderboardError):
        session.ask_many([0.5, bad])
    assert session.state == before


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_losses_and_risk_are_one_question(losses):
    exact = lb.Exact().start(n=len(losses))
    assert exact.ask(losses=losses).score == pytest.approx(sum(losses) / len(losses), abs=1e-12)
    backwards = lb.Exact().start(n=len(losses))
    assert backwards.ask(losses=losses[::-1]).score == exact.value


@given(st.integers(1, 300), st.data())
def test_the_risk_of_zero_one_losses_is_the_nearest_double(n, data):
    wrong = data.draw(st.integers(0, n))
    losses = np.zeros(n)
    losses[:wrong] = 1
    assert lb.Exact().start(n=n).ask(losses=losses).score == wrong / n
