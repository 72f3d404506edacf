"""The yardstick for attacks: the paper's procedure on dense matrices of floats."""

from __future__ import annotations

import numpy as np


def dense_majority_attack(n: int, k: int, sigma: float, rng: np.random.Generator) -> float:
    """Return the error of one majority attack, written as NumPy users write it.

    Every sign is a float64. Rows that do not correlate with the labels are turned around, and the
    columns are summed with a product, which is what BLAS is good at.
    """
    labels = 2.0 * rng.integers(0, 2, size=n) - 1.0
    signs = 2.0 * rng.integers(0, 2, size=(k, n)) - 1.0
    answers = signs @ labels / n
    if sigma > 0.0:
        answers += rng.normal(scale=sigma, size=k)
    good = answers > 0.0
    turned = np.concatenate([signs[good], -signs[~good]])
    votes = np.ones(k) @ turned
    guess = np.where(votes < 0.0, -1.0, 1.0)
    return float(np.mean(guess != labels))
