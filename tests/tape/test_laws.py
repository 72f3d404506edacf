"""Draws follow their laws: against closed forms and against SciPy.

Every test has a fixed seed and rejects below P_REJECT, so each would raise a false alarm with
that probability over seeds; there are fewer than forty in this file.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ladderboard.errors import InvalidSetting
from ladderboard.tape import (
    CutGaussian,
    DiscreteGaussian,
    DiscreteLaplace,
    Laplace,
    NumpyTape,
    Seed,
    Tape,
)

P_REJECT = 1e-6
TAPES = [(Tape(seed=11), 20_000), (NumpyTape(seed=11), 200_000)]


def drawn(tape, law, count):
    return tape.draw_many((law,), ladder=5, first=1, count=count)[0]


def chi_square(sample, support, pmf):
    """P-value of the sample against a law; the tails are pooled."""
    inside = pmf * len(sample) >= 10
    low, high = support[inside][0], support[inside][-1]
    clipped = np.clip(sample, low - 1, high + 1)
    seen = np.array([np.count_nonzero(clipped == x) for x in range(low - 1, high + 2)])
    middle = pmf[inside]
    expected = np.concatenate(([pmf[support < low].sum()], middle, [pmf[support > high].sum()]))
    expected *= len(sample) / expected.sum()
    keep = expected > 1
    return stats.chisquare(
        seen[keep], expected[keep] * seen[keep].sum() / expected[keep].sum()
    ).pvalue


@pytest.mark.parametrize(("tape", "count"), TAPES)
@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, Fraction(7, 3), 20])
def test_discrete_laplace_against_scipy(tape, count, scale):
    support = np.arange(-400, 401)
    pmf = stats.dlaplace.pmf(support, 1 / float(scale))
    assert chi_square(drawn(tape, DiscreteLaplace(scale), count), support, pmf) > P_REJECT


@pytest.mark.parametrize(("tape", "count"), TAPES)
@pytest.mark.parametrize("scale", [Fraction(7, 3), 20])
def test_discrete_laplace_against_draws_of_scipy(tape, count, scale):
    mine = drawn(tape, DiscreteLaplace(scale), count)
    theirs = stats.dlaplace.rvs(1 / float(scale), size=count, random_state=3)
    edges = np.arange(-3, 4)
    table = np.array(
        [np.bincount(np.searchsorted(edges, sample), minlength=8) for sample in (mine, theirs)]
    )
    assert stats.chi2_contingency(table).pvalue > P_REJECT


@pytest.mark.parametrize(("tape", "count"), TAPES)
@pytest.mark.parametrize("sd", [Fraction(1, 2), 1, Fraction(5, 2), 30])
def test_discrete_gaussian_against_its_closed_form(tape, count, sd):
    support = np.arange(-400, 401)
    mass = np.exp(-0.5 * (support / float(sd)) ** 2)
    pmf = mass / mass.sum()
    assert chi_square(drawn(tape, DiscreteGaussian(sd), count), support, pmf) > P_REJECT


@pytest.mark.parametrize(("tape", "count"), TAPES)
@pytest.mark.parametrize(("sd", "limit"), [(Fraction(5, 2), 4), (10, 25), (30, 90)])
def test_a_cut_gaussian_against_its_closed_form(tape, count, sd, limit):
    support = np.arange(-limit, limit + 1)
    mass = np.exp(-0.5 * (support / float(sd)) ** 2)
    sample = drawn(tape, CutGaussian(sd, limit), count)
    assert abs(sample).max() <= limit
    assert chi_square(sample, support, mass / mass.sum()) > P_REJECT


def test_a_cut_gaussian_is_the_first_draw_within_its_limit():
    """The exact law by rejection: where nothing is rejected, the draws of the plain law."""
    tape = Tape(seed=3)
    plain, cut = drawn(tape, DiscreteGaussian(100), 500), drawn(tape, CutGaussian(100, 150), 500)
    inside = abs(plain) <= 150
    assert (plain[inside] == cut[inside]).all()
    assert not inside.all()


@pytest.mark.parametrize("limit", [9, 2.5, True, "30"])
def test_a_limit_below_the_deviation_is_refused(limit):
    with pytest.raises(InvalidSetting, match="limit"):
        CutGaussian(10, limit)


@pytest.mark.parametrize(("tape", "count"), [(Tape(seed=12), 6_000), TAPES[1]])
def test_wide_and_continuous_laws_against_scipy(tape, count):
    gauss = drawn(tape, DiscreteGaussian(4 * 10**9), count) / 4e9
    laplace = drawn(tape, DiscreteLaplace(10**10), count) / 1e10
    continuous = drawn(tape, Laplace(0.01145), count) / 0.01145
    assert stats.kstest(gauss, "norm").pvalue > P_REJECT
    assert stats.kstest(laplace, "laplace").pvalue > P_REJECT
    assert stats.kstest(continuous, "laplace").pvalue > P_REJECT


@pytest.mark.parametrize(("tape", "count"), [(Tape(seed=13), 6_000), TAPES[1]])
def test_addresses_are_independent(tape, count):
    """Neighbouring questions, slots and ladders: correlations of order 1/sqrt(count)."""
    laws = (DiscreteGaussian(10**6),) * 2
    first, second = tape.draw_many(laws, ladder=0, first=1, count=count)
    (other, _) = tape.draw_many(laws, ladder=1, first=1, count=count)
    pairs = [(first, second), (first, other), (first[1:], first[:-1]), (second, other)]
    for left, right in pairs:
        assert abs(np.corrcoef(left, right)[0, 1]) < 5 / np.sqrt(count)  # p < 6e-7 each


@pytest.mark.parametrize("tape", [Tape(seed=1), NumpyTape(seed=1)])
def test_no_noise_is_none(tape):
    laws = (DiscreteLaplace(0), DiscreteGaussian(0), Laplace(0))
    assert tape.draw(laws, ladder=0, question=1) == (0, 0, 0)
    assert [column.tolist() for column in tape.draw_many(laws, ladder=0, first=1, count=2)] == [
        [0, 0],
        [0, 0],
        [0.0, 0.0],
    ]


def test_seeds_are_bytes():
    for tape in (Tape(seed=1), NumpyTape(seed=1)):
        (one,) = tape.draw((Seed(),), ladder=0, question=1)
        (many,) = tape.draw_many((Seed(),), ladder=0, first=1, count=3)
        assert isinstance(one, bytes)
        assert len(one) == 32
        assert many[0] == one
        assert len(set(many)) == 3


@pytest.mark.parametrize("bad", [-1, 0.5, True, "1", None])
def test_scales_are_exact_and_not_negative(bad):
    with pytest.raises(InvalidSetting, match="must be a whole number or a Fraction"):
        DiscreteLaplace(bad)
    with pytest.raises(InvalidSetting, match="must be a whole number or a Fraction"):
        DiscreteGaussian(bad)


@pytest.mark.slow
@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(5, 2)), DiscreteLaplace(Fraction(7, 3))])
def test_the_exact_samplers_at_length(law):
    """Half a million draws see deviations of a tenth of a percent."""
    support = np.arange(-400, 401)
    if isinstance(law, DiscreteGaussian):
        mass = np.exp(-0.5 * (support / float(law.sd)) ** 2)
        pmf = mass / mass.sum()
    else:
        pmf = stats.dlaplace.pmf(support, 1 / float(law.scale))
    assert chi_square(drawn(Tape(seed=14), law, 500_000), support, pmf) > P_REJECT


@pytest.mark.parametrize("sd", [3, 30, 900, 1_000, 10**5])
def test_the_twin_has_the_variance_of_its_law(sd):
    """A million draws: the sample variance is off by 0.14% in sd, so 0.7% is 5 sd."""
    sample = drawn(NumpyTape(seed=15), DiscreteGaussian(sd), 1_000_000)
    assert np.var(sample) == pytest.approx(sd**2, rel=0.007)
    # The largest of a million is beyond 4.2 sd but for one in 10^11.
    assert np.abs(sample).max() > 4.2 * sd
