"""An Optuna study over scikit-learn's digits, whose records a guard judges.

python examples/optuna_search.py
"""

import tempfile
from pathlib import Path

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.svm import SVC

import ladderboard as lb
from ladderboard.adapters.optuna import guard_objective, judged_trials, winning_trial

X, y = load_digits(return_X_y=True)
X, X_holdout, y, labels = train_test_split(X, y, train_size=400, random_state=0)


def objective(trial: optuna.Trial) -> tuple[float, object]:
    """Return the error on our own data, and a function that predicts, called for records only."""
    size = {name: trial.suggest_float(name, 1e-5, 100, log=True) for name in ("C", "gamma")}
    model = SVC(**size)
    return 1 - cross_val_score(model, X, y, cv=3).mean(), lambda: model.fit(X, y).predict(X_holdout)


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
with tempfile.TemporaryDirectory() as folder:
    guard = lb.Holdout.create(Path(folder) / "guard.db", labels, questions=20)
    study.optimize(guard_objective(objective, guard), n_trials=30)
    guard.close()

print("trial  own error  question  improved  released")
for row in judged_trials(study):
    note = "  the winner" if row["trial"] == winning_trial(study).number else ""
    answer = f"{row['question']:8}  {row['improved']!s:>8}  {row['released']:8.3f}"
    print(f"{row['trial']:5}  {row['value']:9.3f}  {answer}{note}")
