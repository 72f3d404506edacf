"""A little classification problem, and guards over its holdout."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.datasets import make_classification

import ladderboard as lb


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_holdout: np.ndarray
    y_holdout: np.ndarray


@pytest.fixture(scope="session")
def problem():
    """Three hundred rows to learn from, six hundred that are kept back."""
    X, y = make_classification(  # noqa: N806 - as scikit-learn writes it
        900,
        12,
        n_informative=6,
        n_clusters_per_class=3,
        class_sep=1.3,
        flip_y=0.02,
        random_state=4,
    )
    return Problem(X[:300], y[:300], X[300:], y[300:])


@pytest.fixture
def create_guard(problem, tmp_path):
    """Return a function that creates a guard over the holdout."""

    def make(**options):
        settings = {"questions": 40, "mechanism": lb.Ladder(step=0.01), **options}
        settings["ladders"] = min(2, settings["questions"])
        return lb.Holdout.create(tmp_path / "guard.db", problem.y_holdout, **settings)

    return make
