"""Evaluations by Inspect itself with its mock model: run, read, asked."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.adapters.inspect import read_log
from ladderboard.errors import InvalidInput, InvalidPredictions
from support.adapters import inspect_runs

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "inspect_cases.json").read_text())
SUMS = tuple(f"sum-{at}" for at in range(6))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Every run, once, with a log in each format."""
    made = {}

    def get(name, form):
        if (name, form) not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name, form] = inspect_runs.run(folder, form=form, **inspect_runs.RUNS[name])
        return made[name, form]

    return get


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['log']} {case.get('ask', '')}")
@pytest.mark.parametrize("form", ["eval", "json", "kept"])
def test_what_a_log_says(logs, case, form):
    log = DATA / f"inspect/{case['log']}.json" if form == "kept" else logs(case["log"], form)
    if "refused" in case:
        with pytest.raises(InvalidInput, match=case["refused"]):
            read_log(log, **case.get("ask", {}))
        return
    scores = read_log(log, **case.get("ask", {}))
    named = ("1", "2", "3") if case["log"] == "numbered" else SUMS[: len(scores)]
    assert dict(zip(scores.ids, scores.values.tolist(), strict=True)) == dict(
        zip(named, case["values"], strict=True)
    )
    assert (scores.metric, scores.task, scores.model) == (case["metric"], "sums", "mockllm/model")
    assert scores.dataset_size == (3 if case["log"] == "numbered" else 6)


def test_more_samples_than_are_read_at_once(tmp_path):
    from inspect_ai.dataset import Sample

    samples = [Sample(input=f"{at} + 2 =", target=str(at + 2), id=at) for at in range(230)]
    log = inspect_runs.run(tmp_path, inspect_runs.correct_below(100), samples=samples)
    scores = read_log(log)
    assert scores.ids == tuple(map(str, range(230)))
    assert scores.values.tolist() == [1.0] * 100 + [0.0] * 130


def test_the_default_reducer_is_the_mean(tmp_path):
    from inspect_ai import Epochs

    log = inspect_runs.run(tmp_path, scorers=[inspect_runs.gives(["C", "I"])], epochs=Epochs(3))
    assert read_log(log).values.tolist() == pytest.approx([2 / 3, 1 / 3] * 3)
    assert read_log(log, reducer="mean").values.tolist() == read_log(log).values.tolist()


@pytest.mark.parametrize("form", ["eval", "json"])
def test_what_inspects_reducers_make_is_believed(tmp_path, form):
    from inspect_ai import Epochs
    from inspect_ai.scorer import at_least

    ways = ["mean", "median", "mode", "majority", "max", "pass_at_2", "pass_k_2", at_least(2, 0.5)]
    scorers = [inspect_runs.gives([0.75, 0.75, 0.25])]
    log = inspect_runs.run(tmp_path, form=form, scorers=scorers, epochs=Epochs(3, ways))
    for name in [*ways[:-1], "at_least_2"]:
        assert len(read_log(log, reducer=name)) == 6, name
    assert read_log(log, reducer="at_least_2").values.tolist() == [1.0] * 6


@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_reduced_score_is_that_of_its_epochs(logs, tmp_path, form):
    from inspect_ai.log import read_eval_log, write_eval_log

    log = read_eval_log(str(logs("epochs", form)))
    log.reductions[0].samples[2].value = 0.75
    write_eval_log(log, str(tmp_path / f"log.{form}"))
    with pytest.raises(InvalidPredictions, match=r"its epochs: 1 sample \('sum-2'\)"):
        read_log(tmp_path / f"log.{form}", reducer="mean")


@pytest.mark.parametrize("form", ["eval", "json"])
def test_results_that_are_not_listed(logs, tmp_path, form):
    from inspect_ai.log import read_eval_log, write_eval_log

    log = read_eval_log(str(logs("passed", form)))
    log.eval.dataset.sample_ids.pop()
    write_eval_log(log, str(tmp_path / f"log.{form}"))
    with pytest.raises(InvalidPredictions, match="lists 5 samples in 1 epoch and has 6 results"):
        read_log(tmp_path / f"log.{form}")


def test_a_sample_taken_out_of_a_log_is_named(logs, tmp_path):
    whole, cut = zipfile.ZipFile(logs("passed", "eval")), tmp_path / "cut.eval"
    with zipfile.ZipFile(cut, "w") as out:
        for name in whole.namelist():
            if "sum-4" not in name:
                out.writestr(name, whole.read(name))
    with pytest.raises(InvalidPredictions, match=r"Missing .*\('sum-4'\)"):
        read_log(cut)


@pytest.mark.parametrize("form", ["eval", "json"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_log_that_was_cut_off(logs, tmp_path, form, keep):
    data = logs("passed", form).read_bytes()
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(data[: keep if isinstance(keep, int) else int(len(data) * keep)])
    with pytest.raises(InvalidPredictions, match="cannot be read as a log of Inspect"):
        read_log(cut)


def test_a_log_that_changed_is_read_anew(logs, tmp_path):
    log = tmp_path / "log.json"
    log.write_bytes((DATA / "inspect/passed.json").read_bytes())
    before = read_log(log).mean
    text = log.read_text().replace('"value": "I"', '"value": "C"')
    log.write_text(text)
    assert (before, read_log(log).mean) == (pytest.approx(2 / 3), 1)


def test_samples_that_were_invalidated(logs, tmp_path):
    from inspect_ai.log import ProvenanceData, invalidate_samples, read_eval_log, write_eval_log

    log = read_eval_log(str(logs("passed", "eval")))
    uuids = [log.samples[0].uuid]
    changed = invalidate_samples(log, uuids, ProvenanceData(author="us", reason="a test"))
    path = tmp_path / "invalid.eval"
    write_eval_log(changed, str(path))
    with pytest.raises(InvalidPredictions, match="marked as invalid"):
        read_log(path)


def test_a_guard_from_the_first_log_and_questions_from_the_others(logs, tmp_path):
    def ladderboard(*words):
        command = [sys.executable, "-m", "ladderboard", "guard", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    first = logs("passed", "eval")
    exact = ("--mechanism", "exact", "--questions", 5)
    made = ladderboard("create", "guard.db", "--inspect", first, *exact)
    assert made.returncode == 0, made.stderr
    assert "6 examples; 5 questions" in made.stdout
    asked = ladderboard("ask", "guard.db", "--inspect", first)
    assert asked.stdout == "The best is now 0.333333; 4 questions left.\n"
    better = ladderboard(
        "ask", "guard.db", "--inspect", logs("epochs", "json"), "--metric=gives,max"
    )
    assert better.stdout == "The best is now 0; 3 questions left.\n"
    for name, said in {"limited": "Missing", "one_error": "'sum-3'", "failed": "succeeded"}.items():
        refused = ladderboard("ask", "guard.db", "--inspect", logs(name, "eval"))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert said in refused.stderr
    assert lb.Holdout.open(tmp_path / "guard.db").remaining == 3


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
