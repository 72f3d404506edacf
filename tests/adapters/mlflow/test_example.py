"""A real store of files of MLflow, written by a search over a judge."""

from pathlib import Path

import mlflow

import ladderboard as lb

PAGE = (Path(__file__).parents[3] / "docs/how-to/early-stopping.md").read_text()


def test_the_example_logs_the_guards_replies(example, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    module_globals, folder, printed = example("mlflow_judging")
    judge = module_globals["judge"]
    head, *rows = (line.rstrip() for line in printed.splitlines())
    assert "\n".join([head, *rows]) in PAGE
    assert len(rows) == 7
    assert sum(row.endswith("yes") for row in rows) == 1
    assert lb.Holdout.open(folder / "guard.db").check() == len(judge.judgements) > 2
    # Read again, from the files.
    assert len(list((folder / "runs").glob("*/*/meta.yaml"))) == 7
    client = mlflow.MlflowClient(f"file:{folder}/runs")
    runs = {search_run.info.run_id: search_run.data for search_run in client.search_runs(["0"])}
    assert len(runs) == 7
    assert [name for name, run in runs.items() if "guard_winner" in run.tags] == [judge.winner.name]
    expected = {
        name: (run.metrics["guard_question"], run.metrics["guard_improved"])
        for name, run in runs.items()
        if "guard_question" in run.metrics
    }
    assert expected == {
        judgement.name: (judgement.question, judgement.improved) for judgement in judge.judgements
    }
