"""Certificates where the number of ladders is not known beforehand."""

import math

import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting

LADDER = lb.Ladder(step=0.01, grid=0.005)


def certificate(**given):
    return lb.bounds.certificate(10_000, 1_000, 3, LADDER, **given)


def test_a_number_not_known_beforehand_costs_the_share_of_beta_that_just_so_many_have():
    for opened, share in ((1, 0.9), (2, 0.05), (3, 0.1 / 6)):
        result = certificate(ladders=None, opened=opened)
        known = certificate(ladders=opened, beta=0.05 * share)
        assert result.nats == pytest.approx(known.nats, rel=1e-12)
        assert result.beta == 0.05  # what all of them together keep


def test_the_shares_of_beta_sum_to_at_most_one():
    shares = [
        math.exp(certificate(ladders=opened).nats - certificate(ladders=None, opened=opened).nats)
        for opened in range(1, 200)
    ]
    assert sum(shares) == pytest.approx(1 - 0.1 / 199, rel=1e-9)  # 1/(m(m-1)) telescopes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ladders": None}, "opened must be"),
        ({"ladders": None, "opened": 0}, "opened must be"),
        ({"ladders": None, "opened": 2, "private": True}, "known beforehand"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(InvalidSetting, match=message):
        certificate(**given)
