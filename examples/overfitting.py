"""Four searches of 1,000 steps on real images: each winner's released and fresh error.

    python examples/overfitting.py [SPLIT [STEPS]]

A nearest-neighbour classifier may remember 30 of your own 400 images. Which? A step swaps one.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import ladderboard as lb

OWN, HOLDOUT, KEPT, STEPS = 400, 400, 30, 1_000
GUARD = lb.GrowingLadder.calibrated(n=HOLDOUT, questions=STEPS)
SEARCHES = {  # what answers on the holdout, and whether the search goes by a score of its own
    "exact scores lead": (lb.Exact(), False),
    "the guard leads": (GUARD, False),
    "own score leads, exact scores judge": (lb.Exact(), True),
    "own score leads, the guard judges": (GUARD, True),
}
pixels, labels = load_digits(return_X_y=True)
far = (pixels**2).sum(axis=1)[:, None] - 2 * pixels @ pixels.T  # least where a row is nearest


class Standing(NamedTuple):
    """The state of a search: errors, and how many questions were asked and improved."""

    shown: float  # the released score of the winner
    fresh: float  # of the winner, on fresh data
    own: float  # of the model that the search is at, on the own images
    last: float  # of that model, on fresh data
    asked: int
    improved: int


def predict(model: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the label of the nearest remembered image."""
    return labels[model[far[model][:, rows].argmin(axis=0)]]


def error(model: np.ndarray, rows: np.ndarray) -> float:
    """Return how many of these images it gets wrong, as a share."""
    return float(np.mean(predict(model, rows) != labels[rows]))


def search(
    split: int, mechanism: lb.Mechanism, *, own_score: bool, steps: int = STEPS
) -> Iterator[Standing]:
    """Search, and yield the state after every step."""
    rng = np.random.RandomState(split)  # its stream never changes
    own, holdout, fresh = np.split(rng.permutation(len(labels)), [OWN, OWN + HOLDOUT])
    model = rng.choice(own, KEPT, replace=False)
    # The key is fixed so that the output repeats; otherwise leave it out, and it is secret.
    settings = {"questions": STEPS, "mechanism": mechanism, "key": bytes([split] * 32)}
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(lb.Holdout.create(f"{folder}/guard.db", labels[holdout], **settings)) as guard,
    ):
        judge = lb.Judge(guard)
        for _ in range(steps):
            candidate = model.copy()
            candidate[rng.randint(KEPT)] = rng.choice(own)
            if own_score:
                score = error(candidate, own)
                judge.consider(score, predict(candidate, holdout), name=candidate)
                accepted = score <= judge.best
            else:
                judgement = judge.ask(predict(candidate, holdout), name=candidate)
                accepted = judgement.reply.score == guard.released
            model = candidate if accepted else model
            winner = judge.winner
            asked = {judgement.question: judgement.improved for judgement in judge.judgements}
            yield Standing(
                shown=winner.reply.released,
                fresh=error(winner.name, fresh),
                own=error(model, own),
                last=error(model, fresh),
                asked=len(asked),
                improved=sum(asked.values()),
            )


if __name__ == "__main__":
    split = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
    print(f"{'':36}{'shown':>7}{'fresh':>8}{'questions':>11}{'improved':>10}")
    for name, (mechanism, own_score) in SEARCHES.items():
        *_, end = search(split, mechanism, own_score=own_score, steps=steps)
        print(f"{name:36}{end.shown:7.4f}{end.fresh:8.4f}{end.asked:11}{end.improved:10}")
