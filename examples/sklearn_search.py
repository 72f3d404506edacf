"""A random search over scikit-learn's digits, whose records a guard judges.

python examples/sklearn_search.py
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import RandomizedSearchCV, train_test_split
from sklearn.svm import SVC

import ladderboard as lb
from ladderboard.adapters.sklearn import judge_search

X, y = load_digits(return_X_y=True)
X, X_holdout, y, labels = train_test_split(X, y, train_size=400, random_state=0)
space = {"C": np.logspace(-2, 3, 40), "gamma": np.logspace(-5, -1, 40)}

with tempfile.TemporaryDirectory() as folder:
    key = bytes(32)  # only so that the docs can show what is printed: leave it out
    settings = {"questions": 50, "classes": list(range(10)), "key": key}
    guard = lb.Holdout.create(Path(folder) / "guard.db", labels, **settings)
    search = RandomizedSearchCV(SVC(), space, n_iter=40, cv=3, n_jobs=2, random_state=0)
    search.fit(X, y)
    judged = judge_search(search, guard, X_holdout, X, y)
    guard.close()

print("candidate  own error  question  improved  best error")
for judgement in judged.judgements:
    reply, won = judgement.reply, "  the winner" if judgement.name == judged.index else ""
    row = f"{1 - judgement.score:9.3f}  {reply.question:8}  {reply.improved!s:>8}"
    print(f"{judgement.name:9}  {row}  {reply.released:10.3f}{won}")
