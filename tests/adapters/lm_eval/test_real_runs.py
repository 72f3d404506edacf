"""Runs of lm-evaluation-harness itself with its dummy model on a local task: run, read, asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ladderboard.adapters.lm_eval import read_samples
from ladderboard.errors import NoPerExampleLoss
from support.adapters import lm_eval_runs

pytest.importorskip("lm_eval")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
DATA = Path(__file__).parents[1] / "data/lm_eval"


@pytest.fixture(scope="module")
def complete_run(tmp_path_factory):
    return lm_eval_runs.run(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    return lm_eval_runs.run(
        tmp_path_factory.mktemp("limited"), "--limit", "5", "--num_fewshot", "0"
    )


def test_the_mean_is_that_of_the_harness(complete_run):
    (results,) = complete_run["sums"].parent.glob("results_*.json")
    results = json.loads(results.read_text())["results"]
    assert read_samples(complete_run["sums"]).mean == pytest.approx(results["sums"]["acc,none"])
    loose = read_samples(complete_run["sums_written"], "exact_match", "loose")
    assert loose.mean == pytest.approx(results["sums_written"]["exact_match,loose"])
    assert loose.mean == pytest.approx(1 / 3)
    with pytest.raises(NoPerExampleLoss, match="bleu"):
        read_samples(complete_run["sums_written"], "bleu", "loose")


def test_ids_are_equal_in_another_run(complete_run):
    recorded = {path.name.split("_2")[0]: path for path in DATA.glob("samples_*.jsonl")}
    assert read_samples(complete_run["sums"]).ids == read_samples(recorded["samples_sums"]).ids
    new, old = (
        read_samples(path, "exact_match", "strict")
        for path in (complete_run["sums_written"], recorded["samples_sums_written"])
    )
    assert new.ids == old.ids
    assert (new.task, new.model, new.dataset_size) == (old.task, old.model, old.dataset_size)
    assert new.dataset_size == len(lm_eval_runs.SUMS)


def test_the_example(tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "examples/lm_eval_guard.py"],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    head, *rows = ran.stdout[ran.stdout.rindex("run ") :].splitlines()
    assert head.split() == ["run", "practice", "error", "released", "improved"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]  # each sets a record in practice
    practice = [float(row.split()[1]) for row in rows]
    assert practice == sorted(practice, reverse=True)
    improved = [row for row in rows if " yes" in row]
    assert [row for row in rows if row.endswith("yes, the winner")] == improved[-1:]
