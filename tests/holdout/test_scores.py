"""A guard of scores: no labels, and an evaluator's score for each example."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.files import read_holdout

N = 100
IDS = [f"task_{number}" for number in range(N)]
LADDER = lb.Ladder(step=0.02)


def scores(wrong, ids=IDS):
    return {"id": list(ids), "score": [float(number >= wrong) for number in range(len(ids))]}


def create(path, **settings):
    settings = {"ids": IDS, "loss": "score", "questions": 10, "ladders": 2} | settings
    settings.setdefault("mechanism", LADDER)
    return lb.Holdout.create(path, **settings)


def test_a_score_guard_has_ids_and_answers_scores(path):
    guard = create(path)
    assert guard.ask(scores(20)).released == 0.2
    assert guard.ask(scores(30)).released == 0.2
    reply = guard.ask({"id": IDS[::-1], "score": [0.9] * N})
    assert (reply.released, reply.improved, reply.remaining) == (0.1, True, 7)
    again = lb.Holdout.open(path)
    # Whether scores are equal depends on the labels, so it is another question.
    reply = again.ask({"id": IDS, "Score": [0.9] * N})
    assert (reply.again, reply.question, reply.remaining) == (False, 4, 6)
    assert again.status().describe()["loss"] == {"loss": "shortfall"}
    assert again.check() == 4
    assert (guard.takes, again.ladder("other").takes) == ("scores", "scores")
    assert lb.Holdout.create(path.with_name("l.db"), [0, 1], questions=1).takes == "predictions"


@pytest.mark.parametrize("name", ["prediction", "label", "p"])
def test_only_a_column_named_score_is_accepted(path, name):
    """One file of predictions, all 0 and 1, would be the best for good."""
    guard = create(path)
    with pytest.raises(InvalidPredictions, match="The column must be named score") as refused:
        guard.ask({"id": IDS, name: [1] * N})
    assert [problem.code for problem in refused.value.problems] == ["missing_column"]
    with pytest.raises(InvalidPredictions, match=r"1 unexpected column: .* Remove it"):
        guard.ask({"id": IDS, name: [1] * N, "score": [1] * N})
    assert guard.remaining == 10


def test_fast_paths_check_every_score(path):
    guard = create(path, ids=range(N))
    assert guard.ask({"id": list(range(N)), "score": [1] * 80 + [0] * 20}).released == 0.2
    rows = "".join(f"{number},{2 if number == 7 else 1}\n" for number in range(N))
    for bad, number in (
        (f"id,score\n{rows}".encode(), "7"),
        ({"id": list(range(N)), "score": [1] * 99 + [2]}, 99),
        ([1] * 99 + [-1], "row 100"),
        (np.array([1] * 99 + [2]), "row 100"),
        (np.array([1.0] * 99 + [1.0000001]), "row 100"),
    ):
        with pytest.raises(InvalidPredictions, match=r"Scores must lie in \[0, 1\]") as refused:
            guard.ask(bad)
        (problems,) = refused.value.problems
        assert (problems.count, [str(id_) for id_ in problems.ids]) == (1, [str(number)])
    assert guard.remaining == 9


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "right", -0.01, 1.01])
def test_invalid_scores_are_refused_by_id_and_cost_nothing(path, bad):
    guard = create(path)
    with pytest.raises(InvalidPredictions, match="task_3"):
        guard.ask({"id": IDS, "score": [0.5, 0.5, 0.5, bad, *[0.5] * (N - 4)]})
    assert guard.remaining == 10


def test_groups_and_weights(path, tmp_path):
    grouped = create(path, group=[max(number, 49) for number in range(N)])
    assert grouped.ask(scores(50)).released == 0.02  # one group of 51
    weighted = create(tmp_path / "weighted.db", weight=[3.0] * 50 + [1.0] * 50)
    assert weighted.ask(scores(50)).released == pytest.approx(0.76)


@pytest.mark.parametrize("key", [False, True])
def test_a_score_guard_from_a_file_with_and_without_encryption(path, tmp_path, key):
    file = tmp_path / "ids.csv"
    file.write_text("id,group\n" + "".join(f"{id_},{id_}\n" for id_ in IDS))
    key_file = tmp_path / "key" if key else None
    guard = create(path, labels=file, ids=None, key_file=key_file)
    assert guard.ask(scores(20)).released == 0.2
    assert lb.Holdout.open(path, labels=file, key_file=key_file).remaining == 9


def test_unused_labels_are_refused(path, tmp_path):
    with pytest.raises(InvalidLabels, match=r"uses no labels.* give ids= and leave labels= "):
        create(path, labels=[0] * N)
    with pytest.raises(InvalidLabels, match=r"uses no labels.*remove 'label'"):
        create(path, ids=None, labels={"id": IDS, "label": [0] * N})
    with pytest.raises(InvalidLabels, match="no column named id"):
        create(path, ids=None, labels={"group": IDS})
    with pytest.raises(InvalidLabels, match="give ids="):
        create(path, ids=None)
    assert not list(tmp_path.iterdir())


def test_unused_labels_of_a_table_are_dropped(path):
    table = read_holdout({"id": IDS, "label": list(range(N))})
    guard = create(path, labels=table, ids=None)
    assert guard.ask(scores(20)).released == 0.2
    guard.close()
    assert lb.Holdout.open(path, ids=IDS).remaining == 9


def test_other_losses_need_labels(path):
    with pytest.raises(InvalidLabels, match="give labels="):
        create(path, loss="zero_one")
    with pytest.raises(InvalidLabels, match="no column named label"):
        create(path, loss="zero_one", ids=None, labels={"id": IDS})


def test_a_score_guard_can_be_reopened(path, tmp_path):
    create(path)
    with pytest.raises(InvalidSetting, match="another loss"):
        lb.Holdout.open(path, loss="zero_one")
    with pytest.raises(InvalidLabels, match=r"missing \('task_0'\).*unknown \('other'\)"):
        lb.Holdout.open(path, ids=["other", *IDS[1:]])
    labels = tmp_path / "labels.db"
    lb.Holdout.create(labels, [0, 1] * 50, ids=IDS, questions=10)
    with pytest.raises(InvalidLabels, match="give labels="):
        lb.Holdout.open(labels, ids=IDS)


def test_displayed_as_a_score():
    metric = lb.metric("score")
    assert (metric.direction, metric.loss.name, metric.display(0.25)) == (
        "higher",
        "shortfall",
        0.75,
    )
    assert lb.loss("score") == lb.loss({"loss": "shortfall"})
