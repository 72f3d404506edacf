"""Data for tiny trainings: a noisy, non-linear classification problem."""

from __future__ import annotations

import numpy as np

import ladderboard as lb

FEATURES = 10


def make_sample(n, seed):
    """Return features and noisy labels, the same for the same seed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, FEATURES)).astype("float32")
    signal = x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=n)
    return x, (signal > 0).astype(int)


def make_guard(folder, *, questions=100, n=2_000):
    """Return a guard over fresh labels, and their features."""
    x, y = make_sample(n, seed=3)
    settings = {"questions": questions, "ladders": min(3, questions)}
    path, mechanism = folder / "guard.db", lb.Ladder(step=0.01)
    return lb.Holdout.create(path, y, mechanism=mechanism, **settings), x
