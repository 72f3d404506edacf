"""Groups and weights: exact, in any order, and worth what they say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidLabels, InvalidRisk
from ladderboard.files import read_holdout
from ladderboard.mechanisms import Grouping

losses = st.integers(0, 10**12).map(lambda units: units / 10**12)
rows = st.lists(st.tuples(losses, st.sampled_from("pqrs")), min_size=1, max_size=30)


@given(rows, st.randoms(use_true_random=False))
def test_groups_are_averaged_and_order_does_not_matter(table, random):
    shuffled = table[:]
    random.shuffle(shuffled)
    risks = []
    for pairs in (table, shuffled):
        values, group = map(list, zip(*pairs, strict=True))
        grouping = Grouping(group)
        risks.append(grouping.risk(values))
        first = list(dict.fromkeys(group))
        assert grouping.n == grouping.effective_n == len(first)
        exact = [
            Fraction(sum(round(v * 10**12) for v, g in pairs if g == name), group.count(name))
            for name in first
        ]
        assert [round(loss * 10**12) for loss in grouping.losses(values)] == list(map(round, exact))
    assert risks[0] == risks[1]


def scaled(weight):
    """Weights as whole numbers, by other means than the library's."""
    if len(set(weight)) == 1:
        return [1] * len(weight)
    power = Fraction(2) ** (40 - math.frexp(max(weight))[1])
    return [max(1, round(Fraction(value) * power)) for value in weight]


weights = st.one_of(st.floats(1e-3, 1e3), st.floats(1e-300, 1e300), st.integers(1, 5).map(float))


@given(
    st.lists(st.tuples(losses, weights), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_weighted_risks_are_exact_and_order_does_not_matter(table, random):
    for _ in range(2):
        values, weight = map(list, zip(*table, strict=True))
        whole = scaled(weight)
        grouping = Grouping(weight=weight)
        top = sum(w * round(v * 10**12) for v, w in zip(values, whole, strict=True))
        assert grouping.risk(values) == float(Fraction(top, sum(whole) * 10**12))
        worth = Fraction(sum(whole) ** 2, sum(w * w for w in whole))
        assert grouping.effective_n == float(worth)
        random.shuffle(table)


@given(st.lists(st.tuples(losses, st.floats(1e-3, 1e3)), min_size=1, max_size=30))
def test_rounding_weights_moves_little(table):
    values, weight = map(list, zip(*table, strict=True))
    total = sum(map(Fraction, weight))
    exact = sum(Fraction(w) * Fraction(v) for v, w in table) / total
    grouping = Grouping(weight=weight)
    # Each weight by half of 2^-39 of the largest at most, losses by half of a unit.
    assert abs(Fraction(grouping.risk(values)) - exact) <= len(table) * 2.0**-40 + 1e-12
    worth = float(total**2 / sum(Fraction(w) ** 2 for w in weight))
    assert grouping.effective_n == pytest.approx(worth, rel=1e-9)


def test_a_million_weights_do_not_overflow():
    weight = np.full(5_000_000, 1.0)  # past one chunk
    weight[-1] = 1 - 2**-30
    grouping = Grouping(weight=weight)
    whole = 4_999_999 * 2**39 + (2**39 - 2**9)
    losses = np.ones(5_000_000)
    assert grouping.risk(losses) == 1.0
    losses[-1] = 0
    assert grouping.risk(losses) == float(Fraction(4_999_999 * 2**39, whole))
    squares = 4_999_999 * 2**78 + (2**39 - 2**9) ** 2
    assert grouping.effective_n == float(Fraction(whole**2, squares))


def test_no_weight_is_too_small_to_count():
    grouping = Grouping(weight=[1e300, 1e-300])
    assert grouping.risk([0.0, 1.0]) == 1 / (round(math.frexp(1e300)[0] * 2**40) + 1)


def test_equal_weights_are_no_weights():
    values = np.random.default_rng(0).random(1000)
    plain = Grouping(n=1000)
    assert Grouping(weight=[0.3] * 1000).risk(values) == plain.risk(values)
    assert plain.risk(values) == lb.Exact().start(n=1000).ask(losses=values).score
    assert Grouping(weight=[0.3] * 1000).effective_n == 1000


def test_a_large_group_does_not_overflow():
    values = np.ones(3_000_000)
    assert Grouping(np.zeros(3_000_000)).risk(values) == 1.0


def test_groups_and_weights_together():
    grouping = Grouping(["p", "q", "p"], [1, 3, 1])
    assert grouping.n == 2
    assert grouping.risk([1.0, 0.0, 0.0]) == 0.125
    assert grouping.effective_n == 16 / 10


def test_from_a_table():
    table = read_holdout(b"id,label,group\na,1,x\nb,0,x\nc,1,y\n")
    assert table.grouping.risk([1, 0, 1]) == 0.75
    assert read_holdout(b"label\n1\n2\n").grouping.n == 2


@pytest.mark.parametrize(
    ("group", "weight"),
    [
        (["p", "p"], [1, 2]), (None, [1, 0]), (None, [1, -1]), (None, [1, np.nan]),
        (None, [1, np.inf]), ([1, 2, 3], [1, 2]), ([], None), (None, None), ([[1], [2]], None),
    ],
)  # fmt: skip
def test_what_is_refused(group, weight):
    with pytest.raises(InvalidLabels):
        Grouping(group, weight)


@pytest.mark.parametrize("losses", [[0.5], [0.5, 1.5], [0.5, np.nan], [[0.5], [0.5]]])
def test_losses_that_are_none(losses):
    with pytest.raises(InvalidRisk):
        Grouping(n=2).risk(losses)


@pytest.mark.parametrize("seed", range(4))
def test_standard_errors_of_weighted_and_grouped_means(seed):
    rng = np.random.default_rng(seed)
    losses, weight = rng.random(300) ** 4, rng.integers(1, 50, 100).astype(float)
    groups = rng.permutation(300) % 100
    means = np.array([losses[groups == group].mean() for group in range(100)])

    def expected(values, weights):
        mean = np.average(values, weights=weights)
        return np.sqrt(np.sum((weights * (values - mean)) ** 2)) / weights.sum()

    plain = Grouping(n=300)
    assert plain.standard_error(losses) == pytest.approx(losses.std() / np.sqrt(300), rel=1e-9)
    grouped = Grouping(groups)
    assert grouped.standard_error(losses) == pytest.approx(means.std() / 10, rel=1e-9)
    weighted = Grouping(groups, weight[groups])
    assert weighted.standard_error(losses) == pytest.approx(expected(means, weight), rel=1e-5)
    tiny = weighted.standard_error(losses * 1e-8)
    assert tiny == pytest.approx(expected(means, weight) * 1e-8, rel=1e-3)
    assert weighted.standard_error(np.full(300, 0.25)) == 0
