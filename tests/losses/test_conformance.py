"""Our own losses pass the public suite, in every form of input."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.testing import check_loss

RNG = np.random.default_rng(0)
P2 = RNG.random(20)
P3 = RNG.dirichlet([1, 1, 1], size=20)
Y3 = RNG.integers(0, 3, 20)
TARGETS = RNG.random(20) * 10

CASES = [
    (lb.loss("zero_one"), list("abc") * 6, list("cba") * 6),
    (lb.loss("zero_one"), Y3, RNG.integers(0, 3, 20)),
    (lb.loss("zero_one"), Y3.astype(float), Y3 > 1),
    (lb.loss("zero_one", classes=["a", "b", "c"]), list("abc") * 6, list("bca") * 6),
    (lb.loss("top_k", k=2), Y3, RNG.integers(0, 3, (20, 2))),
    (lb.loss("top_k", k=2, classes=[0, 1, 2]), Y3, P3),
    (lb.loss("brier"), (P2 > 0.5).astype(int), P2),
    (lb.loss("brier", classes=[0, 1, 2]), Y3, P3),
    (lb.loss("log"), P2 > 0.7, P2),
    (lb.loss("log", classes=[2, 1, 0], clip=0.1), Y3, P3),
    (lb.loss("absolute", range=(0, 10)), TARGETS, TARGETS[::-1]),
    (lb.loss("squared", range=(0, 10)), TARGETS, TARGETS * 2),
    (lb.loss("pinball", range=(0, 10), quantile=0.9), TARGETS, TARGETS[::-1]),
    (lb.loss("hamming"), RNG.integers(0, 2, (20, 5)), RNG.integers(0, 2, (20, 5))),
    (lb.loss("score"), list("abc") * 6, P2[:18]),
    (lb.loss("score"), Y3, P2 > 0.5),
    (lb.loss("operator:ne"), Y3, RNG.integers(0, 3, 20)),
    (lb.loss("0.7 accuracy + 0.3 brier"), (P2 > 0.5).astype(int), P2),
    (lb.loss("1 accuracy + 2 log_loss", classes=[0, 1, 2]), Y3, P3),
    (lb.loss("1 mae + 3 mse", range=(0, 10)), TARGETS, TARGETS[::-1]),
    (lb.loss("1 map@5 + 1 hit@5"), ["a b", "c", "d e f"], ["a x b", "d", "f e d"]),
]


@pytest.mark.parametrize(("loss", "labels", "predictions"), CASES)
def test_conformance(loss, labels, predictions):
    check_loss(loss, labels, predictions)
