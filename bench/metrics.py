"""Metrics of a million rows. Yardstick: scikit-learn's function of the same metric."""

from __future__ import annotations

import numpy as np
import sklearn.metrics as reference

import ladderboard as lb
from _timing import min_seconds, report_ratio

ROWS = 1_000_000


def main() -> None:
    """Print the ratio of times, ours over scikit-learn's, for each metric."""
    rng = np.random.default_rng(0)
    labels = (rng.random(ROWS) < 0.1).astype(np.int64)
    scores = rng.normal(size=ROWS) + labels
    decisions = (scores > 1).astype(np.int64)
    grades = rng.integers(5, size=ROWS)
    rated = np.clip(grades + rng.integers(-1, 2, size=ROWS), 0, 4)
    cases = [
        ("roc_auc", labels, scores, reference.roc_auc_score),
        ("f1", labels, decisions, reference.f1_score),
        ("f1_macro", grades, rated, lambda y, p: reference.f1_score(y, p, average="macro")),
        ("qwk", grades, rated, lambda y, p: reference.cohen_kappa_score(y, p, weights="quadratic")),
        ("average_precision", labels, scores, reference.average_precision_score),
    ]
    for name, y, p, theirs in cases:
        metric = lb.metric(name)
        ours, other = min_seconds(
            lambda y=y, p=p, metric=metric: metric.value(y, p),
            lambda y=y, p=p, theirs=theirs: theirs(y, p),
            rounds=5,
        )
        report_ratio(
            f"{name} of a million rows / scikit-learn",
            ours / other,
            "at most 1",
            detail=f"{1e3 * ours:.0f} ms / {1e3 * other:.0f} ms",
        )


if __name__ == "__main__":
    main()
