"""Random streams at the sizes where work is split: they stay the same, and failures raise."""

import math
import threading

import pytest

import ladderboard as lb
from ladderboard.arena._kernels import _majority


# Wrong columns of three repetitions with seed 5. People cite figures made with a seed, so these may
# only change together with a note in the changelog.
@pytest.mark.parametrize(
    ("n", "k", "noise", "wrong"),
    [
        (100_000, 70, 1, [49500, 49491, 49341]),
        (131_072, 70, 1, [64772, 64831, 64928]),  # the widest rows that are kept
        (131_073, 70, 1, [65038, 64809, 64894]),  # the narrowest that are drawn twice
        (140_000, 70, 0, [68874, 68840, 69165]),
        (3_000, 3_000, 0, [621, 650, 633]),
        (3_000, 10_000, 1, [457, 448, 472]),  # three chunks
        (1_024, 16_383, 5, [274, 283, 256]),  # the longest single chunk of such rows
        (1_024, 16_384, 5, [262, 277, 277]),  # the shortest pair of chunks
    ],
)
def test_released_streams_do_not_change_at_larger_sizes(n, k, noise, wrong):
    errors = lb.majority_attack(n, k, noise / math.sqrt(n), repetitions=3, seed=5, threads=2)
    assert (errors * n).round().astype(int).tolist() == wrong


def test_an_error_in_a_thread_is_raised(monkeypatch):
    def fails_once(setting, first, chunks, planes, errors):
        errors.fill(0.0)
        if first <= 2 < first + errors.size:
            raise MemoryError(threading.current_thread().name)

    monkeypatch.setattr(_majority, "run_repetitions", fails_once)
    with pytest.raises(MemoryError, match=r"^majority_attack"):
        lb.majority_attack(10_000, 1_000, repetitions=4, threads=2)
