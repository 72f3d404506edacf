"""Evaluations by Inspect itself with its mock model: run, read, asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ladderboard.adapters.inspect import read_log
from ladderboard.errors import InvalidInput, InvalidPredictions
from support.adapters import inspect_runs

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "inspect_cases.json").read_text())
SUMS = tuple(f"sum-{index}" for index in range(6))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Every run, once, with a log in each format."""
    logs_by_name = {}

    def get(name, form):
        if (name, form) not in logs_by_name:
            folder = tmp_path_factory.mktemp(name)
            logs_by_name[name, form] = inspect_runs.run(
                folder, form=form, **inspect_runs.RUNS[name]
            )
        return logs_by_name[name, form]

    return get


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['log']} {case.get('ask', '')}")
@pytest.mark.parametrize("form", ["eval", "json", "kept"])
def test_scores_and_refusals_of_real_logs(logs, case, form):
    log = DATA / f"inspect/{case['log']}.json" if form == "kept" else logs(case["log"], form)
    if "refused" in case:
        with pytest.raises(InvalidInput, match=case["refused"]):
            read_log(log, **case.get("ask", {}))
        return
    scores = read_log(log, **case.get("ask", {}))
    ids = ("1", "2", "3") if case["log"] == "numbered" else SUMS[: len(scores)]
    assert dict(zip(scores.ids, scores.values.tolist(), strict=True)) == dict(
        zip(ids, case["values"], strict=True)
    )
    assert (scores.metric, scores.task, scores.model) == (case["metric"], "sums", "mockllm/model")
    assert scores.dataset_size == (3 if case["log"] == "numbered" else 6)


def test_samples_are_read_in_several_batches(tmp_path):
    from inspect_ai.dataset import Sample

    samples = [
        Sample(input=f"{index} + 2 =", target=str(index + 2), id=index) for index in range(230)
    ]
    log = inspect_runs.run(tmp_path, inspect_runs.correct_below_limit(100), samples=samples)
    scores = read_log(log)
    assert scores.ids == tuple(map(str, range(230)))
    assert scores.values.tolist() == [1.0] * 100 + [0.0] * 130


def test_the_default_reducer_is_the_mean(tmp_path):
    from inspect_ai import Epochs

    log = inspect_runs.run(tmp_path, scorers=[inspect_runs.gives(["C", "I"])], epochs=Epochs(3))
    assert read_log(log).values.tolist() == pytest.approx([2 / 3, 1 / 3] * 3)
    assert read_log(log, reducer="mean").values.tolist() == read_log(log).values.tolist()


@pytest.mark.parametrize("form", ["eval", "json"])
def test_scores_of_inspects_reducers_are_accepted(tmp_path, form):
    from inspect_ai import Epochs
    from inspect_ai.scorer import at_least

    ways = ["mean", "median", "mode", "majority", "max", "pass_at_2", "pass_k_2", at_least(2, 0.5)]
    scorers = [inspect_runs.gives([0.75, 0.75, 0.25])]
    log = inspect_runs.run(tmp_path, form=form, scorers=scorers, epochs=Epochs(3, ways))
    for name in [*ways[:-1], "at_least_2"]:
        assert len(read_log(log, reducer=name)) == 6, name
    assert read_log(log, reducer="at_least_2").values.tolist() == [1.0] * 6


@pytest.mark.parametrize("form", ["eval", "json"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_log_is_refused(logs, tmp_path, form, keep):
    data = logs("passed", form).read_bytes()
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(data[: keep if isinstance(keep, int) else int(len(data) * keep)])
    with pytest.raises(InvalidPredictions, match="cannot be read as a log of Inspect"):
        read_log(cut)


def test_a_changed_log_is_read_again(logs, tmp_path):
    log = tmp_path / "log.json"
    log.write_bytes((DATA / "inspect/passed.json").read_bytes())
    before = read_log(log).mean
    text = log.read_text().replace('"value": "I"', '"value": "C"')
    log.write_text(text)
    assert (before, read_log(log).mean) == (pytest.approx(2 / 3), 1)


def test_the_example(tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "examples/inspect_guard.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    head, *rows = ran.stdout.splitlines()
    assert head.split() == ["skill", "practice", "error", "released", "improved"]
    # That of 0.4 sets no record in practice.
    assert [row.split()[0] for row in rows] == ["0.3", "0.5", "0.8", "0.75"]
    improved = [row for row in rows if " yes" in row]
    assert [row for row in rows if row.endswith("yes, the winner")] == improved[-1:]
