"""The kernel, bit for bit, against the same procedure in plain NumPy with NumPy's own SFC64."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.arena._kernels._majority import _COINS, _DEEP, _NARROW, _WARM
from ladderboard.arena._kernels._threads import MajorityAttackRun

MASK = 2**64 - 1


def mixed(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


class Lanes:
    """Sixteen generators side by side."""

    def __init__(self, key, repetition, chunk):
        a, b, c = (int(word) for word in key)
        self.lanes = []
        for lane in range(16):
            sfc = np.random.SFC64()
            start = [a, b ^ mixed(repetition), c ^ mixed(16 * chunk + lane), 1]
            sfc.state = {**sfc.state, "state": {"state": np.array(start, np.uint64)}}
            sfc.random_raw(_WARM)
            self.lanes.append(sfc)

    def draw(self, count=1):
        """Return ``count`` rows of 16 words."""
        return np.column_stack([lane.random_raw(count) for lane in self.lanes])


def bits(words, n):
    """Return rows of words as rows of n bits, the lowest bit of the first word first."""
    rows = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(rows, axis=-1, bitorder="little")[..., :n]


def plain(n, k, sigma, seed, repetition):
    run = MajorityAttackRun(n, k, sigma, seed)
    setting, tiles = run.setting, run.words // 16
    deep = _DEEP if tiles > _NARROW else 1
    votes = np.zeros(n, int)
    for chunk in range(run.chunks):
        lanes = Lanes(setting.key, repetition, chunk)
        end = min(k, (chunk + 1) * setting.rows)
        for row in range(chunk * setting.rows, end, 16 * deep):
            blocks = min(deep, math.ceil((end - row) / 16))
            luck = np.concatenate([lanes.draw()[0] for _ in range(blocks)]) >> np.uint64(11)
            words = [[lanes.draw(16) for _ in range(blocks)] for _ in range(tiles)]
            block = bits(np.concatenate([np.concatenate(tile) for tile in words], axis=1), n)
            for draw, agree in zip(luck[: end - row], block[: end - row], strict=False):
                c = int(agree.sum())
                if sigma:
                    accepted = int(draw) < int(2**52 * math.erfc(-(2 * c - n) / n / sigma / 2**0.5))
                else:
                    accepted = 2 * c > n
                votes += agree if accepted else 1 - agree
    lanes = Lanes(setting.key, repetition, _COINS)
    coins = bits(np.concatenate([lanes.draw()[0] for _ in range(tiles)])[None, :], n)[0]
    return np.mean((2 * votes < k) | ((2 * votes == k) & (coins == 1)))


@pytest.mark.parametrize(
    ("n", "k", "noise", "repetitions"),
    [
        (1, 1, 1, 5),
        (2, 2, 0, 5),
        (63, 40, 1, 3),
        (64, 64, 0, 3),
        (1_000, 101, 0, 2),
        (1_024, 16, 1, 2),
        (1_025, 48, 0, 2),
        (9_999, 700, 1, 1),  # two chunks
        (140_001, 150, 1, 1),  # wide rows, drawn twice
    ],
)
def test_every_bit_is_accounted_for(n, k, noise, repetitions):
    sigma = noise / math.sqrt(n)
    errors = lb.majority_attack(n, k, sigma, repetitions, seed=9, first=4)
    want = [plain(n, k, sigma, 9, 4 + index) for index in range(repetitions)]
    assert errors.tolist() == pytest.approx(want, abs=1e-15)
