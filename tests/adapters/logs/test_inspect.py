"""Inspect logs of every kind of real run, and logs that were changed."""

import json
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.adapters.inspect import read_log
from ladderboard.errors import InvalidInput, InvalidPredictions, InvalidSetting

pytestmark = pytest.mark.usefixtures("inspect_ai")

CASES = json.loads((Path(__file__).parents[1] / "data/inspect_cases.json").read_text())
SUMS = tuple(f"sum-{index}" for index in range(6))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['log']} {case.get('ask', '')}")
@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_scores_and_refusals_of_logs(data, tmp_path, case, suffix):
    log = (tmp_path / case["log"]).with_suffix(suffix)
    log.write_bytes((data / "inspect" / f"{case['log']}.json").read_bytes())
    if "refused" in case:
        with pytest.raises(InvalidInput, match=case["refused"]):
            read_log(log, **case.get("ask", {}))
        return
    scores = read_log(log, **case.get("ask", {}))
    assert scores.values.tolist() == case["values"]
    ids = ("1", "2", "3") if case["log"] == "numbered" else SUMS[: len(scores)]
    assert scores.ids == ids
    assert (scores.metric, scores.task, scores.model) == (case["metric"], "sums", "mockllm/model")
    assert scores.dataset_size == (3 if case["log"] == "numbered" else 6)


@pytest.fixture
def changed(data, tmp_path):
    """Return a function that writes a changed log."""

    def change(edit, name="passed", suffix=".json"):
        log_document = json.loads((data / "inspect" / f"{name}.json").read_text())
        edit(log_document)
        path = (tmp_path / "changed").with_suffix(suffix)
        path.write_text(json.dumps(log_document))
        return path

    return change


@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_only_successful_runs_are_accepted(changed, status):
    with pytest.raises(InvalidPredictions, match=f"is '{status}'"):
        read_log(changed(lambda log_document: log_document.update(status=status)))


def test_samples_marked_as_invalid_are_refused(changed):
    with pytest.raises(InvalidPredictions, match="marked as invalid"):
        read_log(changed(lambda log_document: log_document.update(invalidated=True)))


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_missing_samples_are_named(changed, suffix):
    log = changed(lambda log_document: log_document["samples"].pop(1), suffix=suffix)
    with pytest.raises(InvalidPredictions, match=r"Missing from the log: 1 sample \('sum-1'\)"):
        read_log(log)
    with pytest.raises(InvalidPredictions) as refused:
        read_log(changed(lambda log_document: log_document["samples"].clear(), suffix=suffix))
    (problem,) = refused.value.problems
    assert (problem.code, problem.count, problem.ids) == ("missing_sample", 6, SUMS)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_missing_epoch_is_named(changed, suffix):
    log = changed(lambda log_document: log_document["samples"].pop(), "epochs", suffix)
    with pytest.raises(InvalidPredictions, match=r"\('sum-5 in epoch 2'\)"):
        read_log(log, reducer="mean")


def test_a_repeated_sample_is_named(changed):
    log = changed(lambda log_document: log_document["samples"].append(log_document["samples"][2]))
    with pytest.raises(InvalidPredictions, match=r"More than once in the log: 1 sample \('sum-2'"):
        read_log(log)


def test_ids_must_be_different_as_text(changed):
    def same(log_document):
        log_document["eval"]["dataset"]["sample_ids"][:2] = [1, "1"]
        log_document["samples"][0]["id"], log_document["samples"][1]["id"] = 1, "1"

    with pytest.raises(InvalidPredictions, match="More than once"):
        read_log(changed(same))
    listed_twice = changed(
        lambda log_document: log_document["eval"]["dataset"]["sample_ids"].append("sum-0")
    )
    with pytest.raises(InvalidPredictions, match="lists 7 samples in 1 epoch and has 6 results"):
        read_log(listed_twice)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_log_that_claims_too_many_results_is_refused(changed, suffix):
    log = changed(
        lambda log_document: log_document["eval"]["config"].update(epochs=10**12), suffix=suffix
    )
    with pytest.raises(InvalidPredictions, match="claims 6 samples in 1,000,000,000,000 epochs"):
        read_log(log)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_unlisted_results_are_refused(changed, suffix):
    log = changed(
        lambda log_document: log_document["eval"]["dataset"]["sample_ids"].pop(), suffix=suffix
    )
    with pytest.raises(InvalidPredictions, match="lists 5 samples in 1 epoch and has 6 results"):
        read_log(log)


def test_unscored_samples_are_refused(changed):
    log = changed(lambda log_document: log_document["samples"][4].update(scores={}))
    with pytest.raises(InvalidPredictions, match=r"Without a score of match: 1 sample \('sum-4'\)"):
        read_log(log)
    log = changed(
        lambda log_document: [sample.update(scores=None) for sample in log_document["samples"]]
    )
    with pytest.raises(InvalidPredictions, match=r"Nothing .* was scored.*inspect score"):
        read_log(log)


def test_an_unscored_epoch_is_refused(changed):
    def forget(log_document):
        log_document["samples"][0]["scores"]["gives"]["value"] = float("nan")

    with pytest.raises(InvalidPredictions, match="Without a score of gives: 1 sample"):
        read_log(changed(forget, "epochs"), reducer="mean")
    log = changed(lambda log_document: log_document.update(reductions=None), "epochs")
    with pytest.raises(InvalidPredictions, match="2 epochs, and the log has no reduced scores"):
        read_log(log)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
@pytest.mark.parametrize("reducer", ["mean", "median", "max", "mode", "pass_at_2", None])
def test_a_reduced_score_must_fit_its_epochs(changed, suffix, reducer):
    """All epochs are wrong, but the reduced score is right."""

    def claim(log_document):
        for sample in log_document["samples"]:
            sample["scores"]["gives"]["value"] = "I"
        log_document["reductions"] = log_document["reductions"][:1]
        log_document["reductions"][0]["reducer"] = reducer
        for sample in log_document["reductions"][0]["samples"]:
            sample["value"] = 1.0

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
def test_scores_of_reducers_are_accepted(changed, reducer, epochs, value):
    def reduce(log_document):
        for sample in log_document["samples"]:
            sample["scores"]["gives"]["value"] = epochs[sample["epoch"] - 1]
        log_document["reductions"] = log_document["reductions"][:1]
        log_document["reductions"][0]["reducer"] = reducer
        for sample in log_document["reductions"][0]["samples"]:
            sample["value"] = value

    values = read_log(changed(reduce, "epochs")).values.tolist()
    assert values == [1.0 if value == "C" else value] * 6


def test_repeated_reductions_are_refused(changed):
    def sample(log_document):
        log_document["reductions"][0]["samples"].append({"sample_id": "sum-2", "value": 0.5})

    with pytest.raises(InvalidPredictions, match=r"Reduced more than once: 1 sample \('sum-2'"):
        read_log(changed(sample, "epochs"), reducer="mean")
    log = changed(
        lambda log_document: log_document["reductions"].append(log_document["reductions"][0]),
        "epochs",
    )
    with pytest.raises(InvalidPredictions, match="twice by one reducer"):
        read_log(log, reducer="mean")


def test_other_files_are_refused(tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_text('{"version": 2, "status": "succ')
    with pytest.raises(InvalidPredictions, match=r"cut\.json cannot be read as a log of Inspect"):
        read_log(cut)
    with pytest.raises(InvalidSetting, match=r"no file .*missing\.eval"):
        read_log(tmp_path / "missing.eval")
    with pytest.raises(InvalidSetting, match=r"is a folder; give .*It contains 'cut\.json'"):
        read_log(tmp_path)


def test_missing_and_unknown_ids_are_refused_by_the_guard(data, tmp_path):
    complete, limited = (read_log(data / f"inspect/{name}.json") for name in ("passed", "limited"))
    settings = {"loss": "score", "questions": 5, "mechanism": "exact"}
    guard = lb.Holdout.create(tmp_path / "whole.db", ids=complete.ids, **settings)
    with pytest.raises(InvalidPredictions, match="3 missing ids: sum-3, sum-4, sum-5"):
        limited.ask(guard)
    assert complete.ask(guard).released == pytest.approx(1 / 3)
    few = lb.Holdout.create(tmp_path / "few.db", ids=limited.ids, **settings)
    with pytest.raises(InvalidPredictions, match="3 unknown ids"):
        complete.ask(few)
    assert limited.ask(few, ladder="first").released == 0


def test_a_guard_of_predictions_refuses_scores(data, tmp_path):
    scores = read_log(data / "inspect/passed.json")
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=[0, 1] * 3, ids=SUMS, questions=5)
    with pytest.raises(InvalidSetting, match=r"takes predictions, .* --inspect LOG"):
        scores.ask(guard)
    assert guard.remaining == 5
