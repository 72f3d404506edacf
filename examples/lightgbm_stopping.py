"""Boosting stopped by a guard: the validation loss decides when to ask, the guard what won."""

import tempfile

import lightgbm as lgb
import numpy as np

import ladderboard as lb
from ladderboard.adapters.lightgbm import GuardStopping


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    return x, (np.sum(x[:, :3] ** 2, axis=1) + rng.normal(size=n) > 2.4).astype(int)


train = lgb.Dataset(*sample(500, 1))
valid = lgb.Dataset(*sample(1_000, 2), reference=train)
x_holdout, y_holdout = sample(10_000, 3)  # the labels go to the guard, and nowhere else
with tempfile.TemporaryDirectory() as folder:
    guard = lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=100)
    stopping = GuardStopping(
        guard,
        lambda booster: (booster.predict(x_holdout) > 0.5).astype(int),
        run="7 leaves",
        monitor="valid_0-binary_logloss",
        patience=20,
        min_delta=0.005,
    )
    settings = {"objective": "binary", "num_leaves": 7, "num_threads": 1, "verbose": -1}
    booster = lgb.train(settings, train, 300, valid_sets=[valid], callbacks=[stopping])
print(stopping.reason, f"The booster has {booster.num_trees()} trees.")
print("round   valid loss   released   improved")
for row in stopping.judge.judgements:
    note = "yes, the winner" if row is stopping.winner else "yes" if row.improved else "no"
    print(f"{row.name:>5}{row.score:>13.4f}{row.reply.released:>11.3f}   {note}")
