"""Golden traces, worked by hand from each mechanism's published description."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BudgetSpent

UNIT = 10**12


def play(session, risks, **options):
    return [session.ask(risk=risk, **options) for risk in risks]


def test_shaky_ladder_as_printed(scripted):
    """Fig. 1 with Laplace noise and no grid; rows are (xi_t, xi'_t, xi''_t)."""
    mechanism = lb.ShakyLadder(step=0.125, compare_noise=1, release_noise=1, law="laplace")
    tape = scripted(
        [
            (9.0, 9.0, 0.0625),  # question 0: only xi is used
            (0.0, -0.03125, 0.0625),  # .5 < 1 - .125 + .0625: R = .46875, xi = .0625
            (-0.03125, 0.0625, 0.0),  # .4375-.03125 < .46875-.125+.0625? .40625 < .40625: no
            (-0.0625, 0.0625, 0.0),  # .375 < .40625: R = .4375+.0625 = .5, higher than before
            (0.0, 0.25, -0.5),  # .375 < .5 - .125 + 0? no: a tie does not cross
            (0.0, -0.5, 0.0),  # .25 < .375: R = -.25, as printed, outside [0, 1]
        ]
    )
    session = mechanism.start(n=64, tape=tape)
    assert session.value == 1
    releases = play(session, [0.5, 0.4375, 0.4375, 0.375, 0.25])
    assert [release.value for release in releases] == [0.46875, 0.46875, 0.5, 0.5, -0.25]
    assert [release.score for release in releases] == [0.46875, None, 0.5, None, -0.25]
    # The paper's B counts rounds with R_t < R_{t-1}; question 3 moved up.
    assert [release.improved for release in releases] == [True, False, False, False, True]


def test_shaky_ladder_on_a_grid(scripted):
    """The default form: integers of 1e-12, releases rounded and never rising."""
    mechanism = lb.ShakyLadder(step=0.1, compare_noise=0.05, release_noise=0.05, grid=0.02)
    u = UNIT // 100
    tape = scripted(
        [
            (-90 * u, -90 * u, 1 * u),  # question 0: only the last is used, as xi
            (2 * u, 3 * u, -1 * u),  # .50+.02 < 1-.1+.01: release .53 -> .52 (53/2 = 26.5)
            (0, 0, 5 * u),  # .42 < .52-.1-.01 = .41? no
            (-2 * u, 9 * u, 5 * u),  # .44-.02 = .42? no: .42 < .41 fails
            (-4 * u, 13 * u, 2 * u),  # .40 < .41 crosses; .44+.13 = .57 is not lower: silent
            (3 * u, 1 * u, 0),  # xi is .02 now: .42+.03 < .44? no
            (0, 1 * u, 0),  # .42 < .44 crosses: .43 -> .44 (21.5 -> 22), lower than .52
            (0, -60 * u, 0),  # .2 < .34 crosses: -.40 is clipped to 0
            (-30 * u, 0, 0),  # -.2 < -.1 crosses; nothing is below 0: silent
        ]
    )
    session = mechanism.start(n=64, tape=tape)
    releases = play(session, [0.50, 0.42, 0.44, 0.44, 0.42, 0.42, 0.2, 0.1])
    assert [release.value for release in releases] == [0.52, 0.52, 0.52, 0.52, 0.52, 0.44, 0.0, 0.0]
    assert [release.score for release in releases] == [
        0.52,
        None,
        None,
        None,
        None,
        0.44,
        0.0,
        None,
    ]
    assert [release.improved for release in releases] == [
        release.score is not None for release in releases
    ]


def test_ladder():
    """Update iff R_S < R - eta; release the nearest multiple of eta (here, of the grid)."""
    releases = play(lb.Ladder(step=0.1).start(n=100), [0.95, 0.58, 0.5, 0.47, 0.4, 0.39, 0.29])
    assert [release.value for release in releases] == [1.0, 0.6, 0.6, 0.5, 0.5, 0.4, 0.3]
    releases = play(lb.Ladder(step=0.1, grid=0.01).start(n=100), [0.584, 0.48, 0.478, 0.477])
    assert [release.value for release in releases] == [0.58, 0.58, 0.48, 0.48]
    assert [release.improved for release in releases] == [True, False, True, False]


def test_a_decimal_tie_is_a_tie():
    """0.8 - 0.1 is 0.7, though in doubles 0.7 < 0.8 - 0.1."""
    assert 0.7 < 0.8 - 0.1
    session = lb.Ladder(step=0.1).start(n=100)
    assert [session.ask(risk=risk).value for risk in [0.8, 0.7, 0.6]] == [0.8, 0.8, 0.6]
    assert lb.Ladder(step=0.1, grid=0.3).start(n=100).ask(risk=0.45).value == 0.6


def test_parameter_free_ladder():
    """n = 4; the margin is std(difference, ddof=1) / sqrt(4), the rest as the Ladder."""
    session = lb.ParameterFreeLadder().start(n=4)
    rows = [
        ([1, 1, 1, 1], 1.0),  # 1 < 1 - 0? no
        ([1, 1, 1, 0], 0.75),  # s = .5, .75 < 1 - .25? no, a tie
        ([1, 1, 0, 0], 0.5),  # s = .577, .5 < 1 - .289: yes
        ([1, 0, 0, 0], 0.25),  # differs once: s = .5, .25 < .5 - .25? no
        ([0.75, 0.25, 0, 0], 0.25),  # s = .354, .25 < .5 - .177: yes
        ([0.5, 0.1, 0.01, 0], 0.1525),  # s = .119, .1525 < .25 - .06: yes, told to 1/4: .25
    ]
    releases = [session.ask(losses=losses) for losses, _ in rows]
    assert [release.value for release in releases] == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    assert [release.improved for release in releases] == [False, False, True, False, True, False]


def test_tellers(scripted):
    risks = [0.3333, 0.35, 0.3149]
    exact = play(lb.Exact().start(n=10_000), risks)
    assert [release.score for release in exact] == risks
    assert [release.value for release in exact] == [0.3333, 0.3333, 0.3149]
    assert [release.improved for release in exact] == [True, False, True]
    assert not lb.Exact().resume(lb.Exact().start(n=5).state).ask_many([0.5, 0.5])[1].improved
    again = lb.Exact().start(n=5)
    assert [again.ask(risk=0.5).improved, again.ask(risk=0.5).improved] == [True, False]
    rounded = play(lb.Rounded(digits=2).start(n=10_000), risks)
    assert [release.score for release in rounded] == [0.33, 0.35, 0.31]
    tape = scripted([(0,), (UNIT // 10,), (-UNIT // 10,), (1,)])
    noisy = play(lb.Noisy(sd=0.1).start(n=10_000, tape=tape), risks)
    assert [release.score for release in noisy] == [0.4333, 0.25, 0.314900000001]
    assert [release.value for release in noisy] == [0.4333, 0.25, 0.25]


def test_one_bit_says_one_bit():
    session = lb.OneBit(step=0.1).start(n=100)
    releases = play(session, [0.58, 0.55, 0.41])
    assert [(release.value, release.score) for release in releases] == [(None, None)] * 3
    assert [release.improved for release in releases] == [True, False, True]
    assert session.value is None
    assert session.close() == 0.4
    assert session.value == 0.4


def test_thresholdout(scripted):
    """T = .25, rows are (eta, xi, gamma): comparison, answer, next threshold."""
    mechanism = lb.Thresholdout(threshold=0.25, noise=1, budget=2)
    tape = scripted(
        [
            (0, 0, 0.125),
            (0.0, 9, 9),  # |.5 - .25| > .25 + .125? no: training
            (-0.25, 0.0625, 0.0),  # .25 > .25 + .125 - .25: holdout .5 + .0625, gamma = 0
            (0.0, 9, 9),  # .25 > .25? no
            (0.0, -0.5, 0.5),  # .5 > .25: holdout, spent
            (0.0, 0, 0),
        ]
    )
    session = mechanism.start(n=64, tape=tape)
    asked = [(0.5, 0.25), (0.5, 0.25), (0.5, 0.25), (0.75, 0.25)]
    releases = [session.ask(risk=risk, training=training) for risk, training in asked]
    assert [release.score for release in releases] == [0.25, 0.5625, 0.25, 0.25]
    assert [release.value for release in releases] == [0.25] * 4
    before = session.state
    with pytest.raises(BudgetSpent, match="budget of 2"):
        session.ask(risk=0.5, training=0.5)
    assert session.state == before


def test_bootstrap_ladder_tells_the_score_of_a_resample(scripted):
    """The draw of a resample, written again in plain Python from NumPy's raw words."""
    losses = np.linspace(0, 0.5, 8)
    seed = bytes(range(32))
    raw = np.random.PCG64(int.from_bytes(seed, "big"))
    picks = [int((int(raw.random_raw()) >> 11) / 2**53 * 8) for _ in range(8)]
    tape = scripted([(seed, seed)] * 3)
    session = lb.BootstrapLadder(test="paired").start(n=8, tape=tape)
    expected = sum(losses[i] for i in picks) / 8
    assert session.ask(losses=losses).value == pytest.approx(expected, abs=1e-12)
    # The test is between models, not between scores: a worse model leaves the score alone.
    assert session.ask(losses=losses + 0.1).score is None


def test_bootstrap_ladder_asks_the_posterior():
    """P(sum w d < 0) for d = (-1, +1, ..., +1 on m examples) is that of a flat Dirichlet.

    With n = 2 and d = (-a, b) the first weight u is uniform and the sum is negative when
    u a > (1 - u) b, so with probability a / (a + b).
    """
    leader = np.array([1.0, 0.0])
    for lower, higher, expected in [(0.9, 0.1, 0.9), (0.5, 0.5, 0.5), (1.0, 0.0, 1.0)]:
        challenger = leader + np.array([-lower, higher])
        for alpha, updates in [(1 - expected + 0.03, True), (1 - expected - 0.03, False)]:
            if not 0 < alpha < 1:
                continue
            mechanism = lb.BootstrapLadder(
                test="bayes", alpha=alpha, replicates=20_000, resample=False
            )
            session = mechanism.start(n=2, tape=lb.Tape(seed=1))
            session.ask(losses=leader)
            # 20,000 replicates: sd .0035, so .03 is more than 8 sd; false alarms below 1e-15.
            assert (session.ask(losses=challenger).score is not None) == updates


def test_no_noise_makes_fig_1_the_ladder_test_with_exact_release():
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = float(rng.choice([0.0, 0.01, 0.1]))
        risks = rng.random(200) * 0.5 + np.linspace(0.5, 0, 200)
        best, expected = 1.0, []
        for risk in risks:
            best = risk if risk < best - step else best
            expected.append(best)
        silent = lb.ShakyLadder(step=step, compare_noise=0, release_noise=0, law="laplace")
        session = silent.start(n=1000)
        assert [session.ask(risk=float(risk)).value for risk in risks] == expected


def test_no_noise_makes_the_grid_form_a_ladder():
    rng = np.random.default_rng(1)
    for step, grid in [(0.01, 0.01), (0.05, 0.01), (0.01, 0.005), (0.0, 0.02)]:
        risks = rng.random(300) * np.linspace(1, 0.1, 300)
        shaky = lb.ShakyLadder(step=step, compare_noise=0, release_noise=0, grid=grid)
        assert play(shaky.start(n=100), risks) == play(lb.Ladder(step, grid).start(n=100), risks)


def test_leaderboard_error_is_definition_1():
    risks = [0.5, 0.4, 0.45, 0.2]
    released = [0.5, 0.5, 0.3, 0.25]
    # best so far: .5 .4 .4 .2; gaps 0 .1 .1 .05
    assert lb.leaderboard_error(risks, released) == pytest.approx(0.1)
    for bad in ([], [0.5], [[0.5] * 4], ["a"] * 4, [None] * 4, [np.nan] * 4):
        with pytest.raises(lb.errors.InvalidRisk):
            lb.leaderboard_error(risks, bad)
