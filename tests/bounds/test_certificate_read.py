"""A certificate that was described is read back whole, ends at infinity included."""

import json
from dataclasses import replace

import pytest

import ladderboard as lb
from ladderboard.bounds import Certificate, certificate
from ladderboard.errors import InvalidState

MECHANISMS = [
    *(lb.ShakyLadder.calibrated(1000, 100), lb.Ladder(step=0.02), lb.Exact(), lb.Rounded(digits=2)),
    *(lb.Noisy(sd=0.1), lb.OneBit(step=0.02), lb.ParameterFreeLadder(), lb.BootstrapLadder()),
    lb.ShakyLadder(step=0.02, compare_noise=0.01, release_noise=0.01, grid=None),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("released", [None, 0.24])
def test_a_certificate_survives_a_round_trip(mechanism, released):
    original = certificate(1000, 100, 3, mechanism, 0.05, released)
    assert (
        Certificate.read(json.loads(json.dumps(original.describe(), allow_nan=False))) == original
    )


def test_among_them_are_infinite_ones():
    original = certificate(1000, 100, 3, lb.Noisy(sd=0.1))
    assert original.high == float("inf")
    assert Certificate.read(original.describe()).low == float("-inf")
    one_end = replace(original, low=0.25, sample=(0.0, float("inf")))
    assert Certificate.read(one_end.describe()) == one_end


@pytest.mark.parametrize(
    "wrong", [{}, {"low": "x"}, {"sample": 1}, {"sample": [1, 2, 3]}, {"assumptions": None}]
)
def test_what_is_none_is_refused(wrong):
    written = certificate(1000, 100, 3, lb.Ladder(step=0.02)).describe()
    with pytest.raises(InvalidState, match="certificate"):
        Certificate.read({**written, **wrong} if wrong else {})
