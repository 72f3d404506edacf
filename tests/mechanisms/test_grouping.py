"""Groups and weights: exact, in any order, and worth what they say."""

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
    for each in (table, shuffled):
        values, group = map(list, zip(*each, strict=True))
        grouping = Grouping(group)
        risks.append(grouping.risk(values))
        first = list(dict.fromkeys(group))
        assert grouping.n == grouping.effective_n == len(first)
        exact = [
            Fraction(sum(round(v * 10**12) for v, g in each if g == name), group.count(name))
            for name in first
        ]
        assert [round(each * 10**12) for each in grouping.losses(values)] == list(map(round, exact))
    assert risks[0] == risks[1]


@given(
    st.lists(st.tuples(losses, st.floats(1e-3, 1e3)), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_weights(table, random):
    values, weight = map(list, zip(*table, strict=True))
    grouping = Grouping(weight=weight)
    grouping_risk = grouping.risk(values)
    total = sum(map(Fraction, weight))
    exact = sum(Fraction(w) * Fraction(v) for v, w in table) / total
    assert grouping.risk(values) == pytest.approx(float(exact), abs=1e-12)
    worth = float(total**2 / sum(Fraction(w) ** 2 for w in weight))
    assert grouping.effective_n == pytest.approx(worth)
    random.shuffle(table)
    values, weight = map(list, zip(*table, strict=True))
    assert Grouping(weight=weight).risk(values) == grouping_risk
    assert Grouping(weight=weight).effective_n == grouping.effective_n


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
