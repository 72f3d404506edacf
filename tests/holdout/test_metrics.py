"""Guards of metrics that are not means, with files as people have them."""

import pickle

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.verify import verify_bundle
from support.server.guard_server import GuardServer
from support.verify.second_verifier import run_second_verifier

N = 5_000
KEY = b"k" * 32
LABELS = (np.arange(N) % 10 == 0).astype(int)


def scores_with_auc(auc, seed):
    """Return scores whose area under the ROC curve on the labels is as wanted, to 0.001."""
    noise = np.random.default_rng(seed).normal(size=N)
    low, high = 0.0, 5.0
    for _ in range(30):
        shift = (low + high) / 2
        if lb.metric("roc_auc").value(LABELS, noise + shift * LABELS) < auc:
            low = shift
        else:
            high = shift
    return noise + high * LABELS


@pytest.fixture
def guard(tmp_path):
    holdout = lb.Holdout.create(
        tmp_path / "guard.db", labels=LABELS, metric="roc_auc", questions=1_000, key=KEY
    )
    yield holdout
    holdout.close()


def test_four_models_are_told_near_their_auc(guard, tmp_path):
    for seed, auc in enumerate((0.70, 0.80, 0.85, 0.90)):
        reply = guard.ask(scores_with_auc(auc, seed))
        assert reply.improved
        shown = lb.metric("roc_auc").display(reply.released)
        assert shown == pytest.approx(auc, abs=0.015)
        assert str(reply).startswith(f"The best is now AUC {shown:.6g}.")
    assert guard.verify_ledger() == 4
    reopened = lb.Holdout.open(tmp_path / "guard.db")
    assert reopened.loss == guard.loss
    reopened.close()
    guard.close_for_good()
    guard.reveal(tmp_path / "bundle", labels=True)
    assert verify_bundle(tmp_path / "bundle").releases == 4
    assert run_second_verifier(tmp_path / "bundle").startswith("7 entries, 4 questions")


def test_classes_in_place_of_scores_are_answered_with_advice(guard):
    scores = scores_with_auc(0.8, 1)
    advice = "These predictions have only two values, but this metric orders the rows by them: "
    for _ in range(2):  # a repeated answer, too
        reply = guard.ask((scores > 1).astype(int))
        assert advice in str(reply)
    assert advice not in str(guard.ask(scores))
    assert advice not in str(guard.ask(np.zeros(len(LABELS))))


def test_the_certificate_counts_with_the_effective_number_of_examples(guard):
    reply = guard.ask(scores_with_auc(0.8, 1))
    promise = guard.status().opening["rules"]["promise"]
    assert promise["effective_n"] == 486
    assert promise["published"] == {"counts": [4500, 500]}
    assert reply.bound.beta == 0.05
    assert reply.bound.high - reply.bound.low > 0.1


def test_two_worlds_with_other_labels_get_the_same_refusals(tmp_path):
    """A refusal must not depend on labels: the same predictions, two sets of labels."""
    messages = []
    for world, labels in enumerate((LABELS, 1 - LABELS)):
        guard = lb.Holdout.create(tmp_path / f"{world}.db", labels=labels.astype(float),
                                  metric="pearson", questions=9, key=KEY)  # fmt: skip
        for predictions in (np.ones(N), np.full(N, np.nan), np.ones(3), ["a"] * N):
            with pytest.raises(InvalidPredictions) as caught:
                guard.ask(predictions)
            messages.append((world, str(caught.value)))
        assert guard.remaining == 9
        guard.close()
    half = len(messages) // 2
    assert [text for _, text in messages[:half]] == [text for _, text in messages[half:]]
    assert "All predictions are equal" in messages[0][1]


@pytest.mark.parametrize("name", ["average_precision", "spearman"])
def test_a_metric_of_which_nothing_is_proved_says_so(tmp_path, name):
    guard = lb.Holdout.create(tmp_path / "g.db", labels=LABELS, metric=name, questions=9, key=KEY)
    reply = guard.ask(scores_with_auc(0.8, 1))
    assert reply.improved
    assert reply.bound.vacuous
    assert "Nothing is proved about this metric" in str(reply.bound.describe())
    guard.close()


def test_declared_columns_and_sets_in_a_file(tmp_path):
    holdout = tmp_path / "solution.csv"
    rows = [f"img{i},{'rust scab' if i % 3 else ''}" for i in range(60)]
    holdout.write_text("\n".join(["image,labels", *rows]) + "\n")
    guard = lb.Holdout.create(
        tmp_path / "g.db", labels=str(holdout), metric=lb.metric("f1_micro", of="sets"),
        columns={"id": "image", "prediction": "labels"}, questions=9, key=KEY,
    )  # fmt: skip
    submission = "\n".join(["image,labels", *reversed(rows)]) + "\n"
    reply = guard.ask(submission.encode())
    assert lb.metric("f1").display(reply.released) == pytest.approx(1, abs=0.1)
    guard.close()
    again = lb.Holdout.open(tmp_path / "g.db")
    assert again.ask(submission.encode()).again
    with pytest.raises(InvalidPredictions, match="There is no column 'image'"):
        again.ask(b"id,labels\nimg0,a\n")
    again.close()


def test_what_does_not_go_together_is_refused(tmp_path):
    common = {"labels": LABELS, "questions": 9, "metric": "roc_auc"}
    with pytest.raises(InvalidSetting, match="no groups and no weights"):
        lb.Holdout.create(tmp_path / "a.db", **common, weight=1 + LABELS)
    with pytest.raises(InvalidSetting, match="neither weights nor statistics"):
        lb.Holdout.create(tmp_path / "b.db", **common, mechanism=lb.ParameterFreeLadder())
    hint = r'^rmse needs a range.*; try lb\.metric\("rmse", range=\(0, 100\)\)\.$'
    with pytest.raises(InvalidSetting, match=hint):
        lb.Holdout.create(tmp_path / "c.db", **{**common, "metric": "rmse"})
    with pytest.raises(InvalidSetting, match="example by example"):
        lb.Gate.create(tmp_path / "d.db", labels=LABELS, looks=9, loss="roc_auc")
    for choice in ({"metric": "rmse"}, {"loss": "rmse"}, {"metric": {"name": "rmse"}}):
        with pytest.raises(InvalidSetting, match=hint):
            lb.Gate.create(tmp_path / "e.db", labels=LABELS, looks=9, **choice)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["name", "loss"])
def test_a_description_of_a_metric_keeps_its_name(tmp_path, key):
    described = {key: "rmse", "range": [0, 1]}
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=9, metric=described)
    assert str(guard.ask(LABELS * 0.9)).startswith("The best is now RMSE 0.")
    guard.close()


@pytest.mark.parametrize("metric", ["zero_one", "accuracy", "f1_macro"])
def test_measurements_are_not_taken_for_classes(tmp_path, metric):
    prices = np.random.default_rng(0).random(50) * 100
    with pytest.raises(InvalidLabels, match="50 different values, not classes; name a metric"):
        lb.Holdout.create(tmp_path / "a.db", labels=prices, questions=9, metric=metric)
    assert not list(tmp_path.iterdir())


def test_numbers_may_be_classes(tmp_path):
    ratings = np.arange(1, 100) % 45 / 2  # 45 values, each twice or more
    for name, labels in {"half": ratings, "whole": np.arange(99.0), "few": ratings[:20]}.items():
        lb.Holdout.create(tmp_path / f"{name}.db", labels=labels, questions=9).close()
    prices = np.random.default_rng(0).random(50)
    with pytest.raises(InvalidLabels, match=r"metric=lb\.metric"):
        lb.Gate.create(tmp_path / "gate.db", labels=prices, looks=9)
    loss = lb.loss("zero_one", classes="any")
    lb.Gate.create(tmp_path / "gate.db", labels=prices, looks=9, loss=loss).close()


def test_a_guard_of_a_weighted_sum(tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "sum.db", labels=LABELS, metric="0.7 accuracy + 0.3 brier", questions=100
    )
    chances = np.where(np.arange(N) % 10 < 2, 0.6, 0.1)  # half of those above 1/2 are positive
    reply = guard.ask(chances)
    value = 0.7 * 0.1 + 0.3 * (0.1 * 0.16 + 0.1 * 0.36 + 0.8 * 0.01)
    assert reply.value == pytest.approx(value, abs=0.02)
    assert str(reply).startswith("The best is now 0.7 (1 - accuracy) + 0.3 brier 0.0")
    with pytest.raises(InvalidPredictions, match="must lie in"):
        guard.ask(chances * 2)
    assert guard.verify_ledger() == 1
    guard.close_for_good()
    guard.reveal(tmp_path / "bundle", labels=True)
    guard.close()
    assert verify_bundle(tmp_path / "bundle").releases == 1
    assert "1 questions" in run_second_verifier(tmp_path / "bundle")


def test_a_gate_compares_models_by_a_weighted_sum(tmp_path):
    metric = {"sum": {"accuracy": 1, "brier": 1}}
    gate = lb.Gate.create(tmp_path / "g.db", LABELS, looks=10, metric=metric)
    gate.promote(np.full(N, 0.9))
    assert gate.check(np.full(N, 0.1)).outcome == "better"
    gate.close()


def test_probabilities_of_both_classes_count_as_scores_of_the_second(guard, tmp_path):
    other = lb.Holdout.create(
        tmp_path / "other.db", labels=LABELS, metric="roc_auc", questions=1_000, key=KEY
    )
    score = 1 / (1 + np.exp(-scores_with_auc(0.85, 3)))
    both = np.column_stack([1 - score, score])
    reply = guard.ask(both)
    assert reply.released == other.ask(score).released
    assert guard.ask(both.tolist()).again
    with pytest.raises(InvalidPredictions, match=r"scores\[:, 1\]"):
        guard.ask(both + 1)
    assert guard.meter.used == 1
    other.close()


def test_auc_of_numbers_is_refused_with_what_would_do(tmp_path):
    numbers = np.random.default_rng(0).normal(size=N)
    with pytest.raises(InvalidLabels, match="these labels have 5,000 different values"):
        lb.Holdout.create(tmp_path / "auc.db", labels=numbers, metric="roc_auc", questions=10)


@pytest.mark.parametrize("metric", ["roc_auc", "accuracy"])
def test_guard_reply_and_status_agree_in_the_metric(tmp_path, metric):
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, metric=metric, questions=9, key=KEY)
    title = lb.metric(metric).title
    assert guard.metric == title
    assert "best" not in repr(guard)  # nothing was asked
    assert str(guard.status()) == "No questions were asked yet. 9 questions left."
    assert guard.interval is guard.status().interval is None
    assert guard.status().describe()["interval"] is None
    with GuardServer(guard) as server, lb.Holdout.connect(server.url) as remote:
        assert remote.interval is remote.status().interval is None
    scores = scores_with_auc(0.9, 1)
    reply = guard.ask(scores if metric == "roc_auc" else LABELS ^ (np.arange(N) % 5 == 0))
    status = guard.status()
    low, high = reply.interval
    assert low < reply.value < high
    assert (reply.metric, reply.value, reply.interval) == (title, guard.value, guard.interval)
    assert (status.metric, status.value, status.interval) == (title, guard.value, guard.interval)
    assert reply.value == pytest.approx(1 - reply.released)
    assert f"best='{title} {reply.value:g}'" in repr(guard)
    assert str(status).startswith(f"The best: {title} {reply.value:g}. With confidence 95%, ")
    assert f"the true {title} of the best model lies in [" in str(status)
    assert str(status).endswith(" 8 questions left.")
    assert f"the true {title} of the best model" in reply._repr_html_()
    assert reply.describe()["interval"] == pytest.approx(guard.status().describe()["interval"])
    copied = pickle.loads(pickle.dumps(reply))
    assert (copied.value, copied.interval) == (reply.value, reply.interval)
    with GuardServer(guard) as server, lb.Holdout.connect(server.url) as remote:
        assert (remote.metric, remote.value) == (title, guard.value)
        assert remote.interval == pytest.approx(guard.interval)
        again = remote.ask(scores if metric == "roc_auc" else LABELS ^ (np.arange(N) % 5 == 0))
        assert (again.value, again.interval) == (reply.value, pytest.approx(reply.interval))
        assert str(remote.status()) == str(status)


def test_without_a_metric_values_and_intervals_are_losses(tmp_path):
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=9, key=KEY)
    reply = guard.ask(LABELS ^ (np.arange(N) % 5 == 0))
    assert (reply.metric, reply.value) == (None, reply.released)
    assert (guard.metric, guard.value) == (None, guard.released)
    assert reply.interval == (reply.bound.low, reply.bound.high)
    assert guard.interval == (guard.certificate.low, guard.certificate.high)
    assert "interval" not in reply.describe()


@pytest.mark.parametrize("case", ["roc_auc", "accuracy", "zero_one", "weighted"])
def test_the_interval_of_a_repeated_answer_is_about_the_best_now(tmp_path, case):
    options = {"weight": 1 + np.arange(N) % 3} if case == "weighted" else {"metric": case}
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=9, key=KEY, **options)
    if case == "roc_auc":
        worse, better = scores_with_auc(0.6, 1), scores_with_auc(0.9, 2)
    else:
        worse, better = (LABELS ^ (np.arange(N) % often == 0) for often in (2, 10))
    first, second = guard.ask(worse), guard.ask(better)
    assert second.improved
    again = guard.ask(worse)
    assert (again.again, again.value) == (True, first.value)
    assert again.interval == second.interval == guard.interval
    assert (again.bound.low, again.bound.high) == (second.bound.low, second.bound.high)
    assert pickle.loads(pickle.dumps(again)).interval == again.interval
    with GuardServer(guard) as server, lb.Holdout.connect(server.url) as remote:
        answer = remote.ask(worse)
        assert (answer.again, answer.value) == (True, first.value)
        assert answer.interval == pytest.approx(again.interval)
    guard.close()
