"""A search logged by MLflow: each model is a run, with the guard's reply."""

import os
import tempfile

import mlflow
import numpy as np

import ladderboard as lb


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 100))
    return x, (x[:, 0] + x[:, 1] + rng.normal(size=n) > 0)


(x, y), (x_valid, y_valid), (x_holdout, y_holdout) = map(sample, (110, 500, 10_000), (1, 2, 3))
with tempfile.TemporaryDirectory() as folder:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a database needs no such permission
    mlflow.set_tracking_uri(f"file:{folder}/runs")
    key = bytes(32)  # only so that the docs can show what is printed: leave it out
    guard = lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=100, key=key)
    judge = lb.Judge(guard.ladder("penalties"))
    for penalty in 10.0 ** np.arange(-2, 5):
        with mlflow.start_run(run_name=f"penalty {penalty:g}") as run:
            model = np.linalg.solve(x.T @ x + penalty * np.eye(100), x.T @ (2 * y - 1))
            error = float(np.mean((x_valid @ model > 0) != y_valid))
            mlflow.log_metric("valid_error", error)
            row = judge.consider(error, lambda: x_holdout @ model > 0, name=run.info.run_id)  # noqa: B023
            if row is not None:  # it set a record, and the guard was asked
                mlflow.log_metric("guard_question", row.question)
                mlflow.log_metric("guard_released", row.reply.released)
                mlflow.log_metric("guard_improved", row.improved)
    mlflow.MlflowClient().set_tag(judge.winner.name, "guard_winner", "yes")
    runs = mlflow.search_runs(order_by=["attributes.start_time"])
    runs = runs.rename(columns=lambda name: name.rpartition(".")[2])
    shown = ["runName", "valid_error", "guard_question", "guard_released", "guard_winner"]
    print(runs[shown].to_string(index=False, na_rep=""))
