"""Boosting stopped by a guard: the validation loss decides when to ask, the guard what won."""

import tempfile

import numpy as np
import xgboost as xgb

import ladderboard as lb
from ladderboard.adapters.xgboost import GuardStopping


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    return x, (np.sum(x[:, :3] ** 2, axis=1) + rng.normal(size=n) > 2.4).astype(int)


train, valid = (xgb.DMatrix(*sample(n, seed)) for n, seed in ((500, 1), (1_000, 2)))
x_holdout, y_holdout = sample(10_000, 3)  # the labels go to the guard, and nowhere else
with tempfile.TemporaryDirectory() as folder:
    key = bytes(32)  # only so that the docs can show what is printed: leave it out
    guard = lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=100, key=key)
    stopping = GuardStopping(
        guard,
        lambda booster: (booster.inplace_predict(x_holdout) > 0.5).astype(int),
        run="depth 3",
        monitor="valid-logloss",
        patience=20,
        min_delta=0.005,
        save_best=True,
    )
    settings = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.2, "nthread": 1}
    watched = {"evals": [(valid, "valid")], "callbacks": [stopping], "verbose_eval": False}
    xgb.train(settings, train, 300, **watched)
print(stopping.reason)
print("round   valid loss   released   improved")
for row in stopping.judge.judgements:
    note = "yes, the winner" if row is stopping.winner else "yes" if row.improved else "no"
    print(f"{row.name:>5}{row.score:>13.4f}{row.reply.released:>11.3f}   {note}")
