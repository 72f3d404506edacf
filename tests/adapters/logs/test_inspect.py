"""Logs of Inspect: every kind of run that a real one wrote, and logs that were tampered with."""

import json
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.adapters.inspect import read_log
from ladderboard.errors import InvalidInput, InvalidPredictions, InvalidSetting

pytestmark = pytest.mark.usefixtures("inspect_ai")

CASES = json.loads((Path(__file__).parents[1] / "data/inspect_cases.json").read_text())
SUMS = tuple(f"sum-{at}" for at in range(6))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['log']} {case.get('ask', '')}")
@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_what_a_log_says(data, tmp_path, case, suffix):
    log = (tmp_path / case["log"]).with_suffix(suffix)
    log.write_bytes((data / "inspect" / f"{case['log']}.json").read_bytes())
    if "refused" in case:
        with pytest.raises(InvalidInput, match=case["refused"]):
            read_log(log, **case.get("ask", {}))
        return
    scores = read_log(log, **case.get("ask", {}))
    assert scores.values.tolist() == case["values"]
    named = ("1", "2", "3") if case["log"] == "numbered" else SUMS[: len(scores)]
    assert scores.ids == named
    assert (scores.metric, scores.task, scores.model) == (case["metric"], "sums", "mockllm/model")
    assert scores.dataset_size == (3 if case["log"] == "numbered" else 6)


@pytest.fixture
def changed(data, tmp_path):
    """Return a log that somebody changed."""

    def change(how, name="passed", suffix=".json"):
        told = json.loads((data / "inspect" / f"{name}.json").read_text())
        how(told)
        path = (tmp_path / "changed").with_suffix(suffix)
        path.write_text(json.dumps(told))
        return path

    return change


@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_only_a_run_that_succeeded(changed, status):
    with pytest.raises(InvalidPredictions, match=f"is '{status}'"):
        read_log(changed(lambda told: told.update(status=status)))


def test_samples_that_were_marked_as_invalid(changed):
    with pytest.raises(InvalidPredictions, match="marked as invalid"):
        read_log(changed(lambda told: told.update(invalidated=True)))


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_samples_that_are_missing_are_named(changed, suffix):
    log = changed(lambda told: told["samples"].pop(1), suffix=suffix)
    with pytest.raises(InvalidPredictions, match=r"Missing from the log: 1 sample \('sum-1'\)"):
        read_log(log)
    with pytest.raises(InvalidPredictions) as refused:
        read_log(changed(lambda told: told["samples"].clear(), suffix=suffix))
    (problem,) = refused.value.problems
    assert (problem.code, problem.count, problem.ids) == ("missing_sample", 6, SUMS)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_an_epoch_that_is_missing_is_named(changed, suffix):
    log = changed(lambda told: told["samples"].pop(), "epochs", suffix)
    with pytest.raises(InvalidPredictions, match=r"\('sum-5 in epoch 2'\)"):
        read_log(log, reducer="mean")


def test_a_sample_that_is_there_twice_is_named(changed):
    log = changed(lambda told: told["samples"].append(told["samples"][2]))
    with pytest.raises(InvalidPredictions, match=r"More than once in the log: 1 sample \('sum-2'"):
        read_log(log)


def test_ids_are_different_as_text(changed):
    def same(told):
        told["eval"]["dataset"]["sample_ids"][:2] = [1, "1"]
        told["samples"][0]["id"], told["samples"][1]["id"] = 1, "1"

    with pytest.raises(InvalidPredictions, match="More than once"):
        read_log(changed(same))
    listed_twice = changed(lambda told: told["eval"]["dataset"]["sample_ids"].append("sum-0"))
    with pytest.raises(InvalidPredictions, match="lists 7 samples in 1 epoch and has 6 results"):
        read_log(listed_twice)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_log_that_claims_more_than_there_can_be(changed, suffix):
    log = changed(lambda told: told["eval"]["config"].update(epochs=10**12), suffix=suffix)
    with pytest.raises(InvalidPredictions, match="claims 6 samples in 1,000,000,000,000 epochs"):
        read_log(log)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_results_that_are_not_listed(changed, suffix):
    log = changed(lambda told: told["eval"]["dataset"]["sample_ids"].pop(), suffix=suffix)
    with pytest.raises(InvalidPredictions, match="lists 5 samples in 1 epoch and has 6 results"):
        read_log(log)


def test_a_score_that_only_some_have(changed):
    log = changed(lambda told: told["samples"][4].update(scores={}))
    with pytest.raises(InvalidPredictions, match=r"Without a score of match: 1 sample \('sum-4'\)"):
        read_log(log)
    log = changed(lambda told: [each.update(scores=None) for each in told["samples"]])
    with pytest.raises(InvalidPredictions, match=r"Nothing .* was scored.*inspect score"):
        read_log(log)


def test_epochs_of_which_one_was_not_scored_are_no_mean_of_the_others(changed):
    def forget(told):
        told["samples"][0]["scores"]["gives"]["value"] = float("nan")

    with pytest.raises(InvalidPredictions, match="Without a score of gives: 1 sample"):
        read_log(changed(forget, "epochs"), reducer="mean")
    log = changed(lambda told: told.update(reductions=None), "epochs")
    with pytest.raises(InvalidPredictions, match="2 epochs, and the log has no reduced scores"):
        read_log(log)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
@pytest.mark.parametrize("reducer", ["mean", "median", "max", "mode", "pass_at_2", None])
def test_a_reduced_score_is_that_of_its_epochs(changed, suffix, reducer):
    """All epochs are wrong, and what was made of them is right."""

    def claim(told):
        for sample in told["samples"]:
            sample["scores"]["gives"]["value"] = "I"
        told["reductions"] = told["reductions"][:1]
        told["reductions"][0]["reducer"] = reducer
        for each in told["reductions"][0]["samples"]:
            each["value"] = 1.0

    rule = r"reduced, is not that of its epochs: 6 samples \('sum-0'"
    with pytest.raises(InvalidPredictions, match=rule):
        read_log(changed(claim, "epochs", suffix))


@pytest.mark.parametrize(
    ("reducer", "epochs", "value"),
    [
        ("median", (0.25, 0.75), 0.5),
        ("mode", ("C", "I"), "C"),
        ("at_least_1", (0.25, 0.75), 1),  # at least 0.5 in one of them, say
        ("pass_at_2", ("I", "C"), 1.0),
        ("pass_k_2", (0.75, 1), 0.0),
    ],
)
def test_what_reducers_make_is_believed(changed, reducer, epochs, value):
    def reduce(told):
        for sample in told["samples"]:
            sample["scores"]["gives"]["value"] = epochs[sample["epoch"] - 1]
        told["reductions"] = told["reductions"][:1]
        told["reductions"][0]["reducer"] = reducer
        for each in told["reductions"][0]["samples"]:
            each["value"] = value

    found = read_log(changed(reduce, "epochs")).values.tolist()
    assert found == [1.0 if value == "C" else value] * 6


def test_nothing_is_reduced_twice(changed):
    def sample(told):
        told["reductions"][0]["samples"].append({"sample_id": "sum-2", "value": 0.5})

    with pytest.raises(InvalidPredictions, match=r"Reduced more than once: 1 sample \('sum-2'"):
        read_log(changed(sample, "epochs"), reducer="mean")
    log = changed(lambda told: told["reductions"].append(told["reductions"][0]), "epochs")
    with pytest.raises(InvalidPredictions, match="reduced twice in one way"):
        read_log(log, reducer="mean")


def test_what_is_no_log(tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_text('{"version": 2, "status": "succ')
    with pytest.raises(InvalidPredictions, match=r"cut\.json cannot be read as a log of Inspect"):
        read_log(cut)
    with pytest.raises(InvalidSetting, match=r"no file .*missing\.eval"):
        read_log(tmp_path / "missing.eval")
    with pytest.raises(InvalidSetting, match=r"is a folder; give .*It contains 'cut\.json'"):
        read_log(tmp_path)


def test_the_guards_ids_decide_what_is_whole(data, tmp_path):
    whole, limited = (read_log(data / f"inspect/{each}.json") for each in ("passed", "limited"))
    settings = {"loss": "score", "questions": 5, "mechanism": "exact"}
    guard = lb.Holdout.create(tmp_path / "whole.db", ids=whole.ids, **settings)
    with pytest.raises(InvalidPredictions, match=r"Missing .*: 3 ids \('sum-3', 'sum-4', 'sum-5'"):
        limited.ask(guard)
    assert whole.ask(guard).released == pytest.approx(1 / 3)
    few = lb.Holdout.create(tmp_path / "few.db", ids=limited.ids, **settings)
    with pytest.raises(InvalidPredictions, match=r"Not among the holdout's ids: 3 ids"):
        whole.ask(few)
    assert limited.ask(few, ladder="first").released == 0


def test_a_guard_of_predictions_is_not_asked_with_scores(data, tmp_path):
    scores = read_log(data / "inspect/passed.json")
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=[0, 1] * 3, ids=SUMS, questions=5)
    with pytest.raises(InvalidSetting, match=r"takes predictions, .* --inspect LOG"):
        scores.ask(guard)
    assert guard.remaining == 5
