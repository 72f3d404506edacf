"""The guard, as its owner and its askers use it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ladderboard as lb
from ladderboard.errors import (
    InvalidInput,
    InvalidLabels,
    InvalidPredictions,
    InvalidSetting,
    InvalidState,
    StorageFailed,
)
from ladderboard.files import read_holdout

N = 200
LABELS = np.random.default_rng(1).integers(2, size=N)
IDS = [f"img_{number}" for number in range(N)]
LADDER = lb.Ladder(step=0.02)
SCORE = "This model's score:"


def wrong(count, labels=LABELS):
    """Return predictions of which this many are wrong."""
    return np.where(np.arange(len(labels)) < count, 1 - labels, labels)


def create(path, labels=LABELS, **settings):
    return lb.Holdout.create(path, labels, **{"questions": 20, "mechanism": LADDER, **settings})


def csv(ids=IDS, labels=LABELS, name="label"):
    rows = "".join(f"{row},{label}\n" for row, label in zip(ids, labels, strict=True))
    return f"id,{name}\n{rows}".encode()


def test_a_reply_has_all_fields_and_prints_as_one_sentence(path):
    guard = create(path)
    reply = guard.ask(wrong(50))
    assert (reply.released, reply.score, reply.improved) == (0.24, 0.24, True)
    assert (reply.question, reply.remaining, reply.again) == (1, 19, False)
    assert str(reply) == "The best is now loss 0.24. 19 questions left."
    assert str(guard.ask(wrong(49))) == (
        "No measurable improvement. The best: loss 0.24. "
        "Improvements smaller than about 0.02 may not be detected. 18 questions left."
    )


@pytest.mark.parametrize(
    ("mechanism", "first", "second"),
    [
        (lb.Exact(), "The best is now loss 0.25", f"{SCORE} loss 0.3. The best: loss 0.25"),
        (lb.Rounded(digits=1), "The best is now loss 0.2", f"{SCORE} loss 0.3. The best: loss 0.2"),
        (
            lb.OneBit(step=0.1),
            "The best improved; its value is published at the close",
            "No measurable improvement. Improvements smaller than about 0.1 may not be detected",
        ),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
def test_every_mechanism_has_its_sentence(path, mechanism, first, second):
    guard = create(path, mechanism=mechanism)
    assert str(guard.ask(wrong(50))) == f"{first}. 19 questions left."
    assert str(guard.ask(wrong(60))) == f"{second}. 18 questions left."


def test_a_repeated_answer_says_so(path):
    guard = create(path)
    for count in (50, 49, 10):
        guard.ask(wrong(count))
    for number, count in ((1, 50), (2, 49)):
        assert str(guard.ask(wrong(count))) == (
            f"Duplicate of question {number}; not counted. "
            f"After question {number} the best was loss 0.24. 17 questions left."
        )


def test_the_last_questions_are_counted_in_words(path):
    guard = create(path, questions=2)
    assert str(guard.ask(wrong(50))).endswith(". 1 question left.")
    assert str(guard.ask(wrong(10))).endswith(". No questions left.")


def test_repeated_predictions_in_any_form_cost_nothing(path):
    guard = create(path, ids=IDS)
    first = guard.ask(wrong(50))
    guard.ask(wrong(10))
    shuffled = np.random.default_rng(0).permutation(N)
    forms = [
        wrong(50).astype(float),
        wrong(50).tolist(),
        wrong(50).astype(bool),
        {"id": [IDS[number] for number in shuffled], "prediction": wrong(50)[shuffled]},
        csv([IDS[number] for number in shuffled], wrong(50)[shuffled], "prediction"),
        pd.DataFrame({"id": IDS, "y_pred": wrong(50)}),
        pl.DataFrame({"id": IDS, "y_pred": wrong(50)}),
        pd.Series(wrong(50), index=pd.Index(IDS, name="id")),
    ]
    for form in forms:
        again = guard.ask(form)
        assert again.again
        assert (again.released, again.question) == (first.released, first.question)
        assert again.remaining == 18
        assert "Duplicate of question 1; not counted." in str(again)


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        LABELS.tolist(),
        LABELS.astype(float),
        LABELS.astype(bool),
        pd.Series(LABELS),
        pl.Series(LABELS),
        read_holdout(csv()),
        csv(),
        pd.DataFrame({"id": IDS, "label": LABELS}),
        pl.DataFrame({"id": IDS, "label": LABELS}),
        {"id": IDS, "label": LABELS},
    ],
    ids=lambda case: type(case).__module__ + "." + type(case).__name__,
)
def test_labels_in_many_forms(path, labels):
    assert create(path, labels).ask(wrong(50)).released == 0.24


def test_labels_from_a_file(path, tmp_path):
    (tmp_path / "labels.csv").write_bytes(csv())
    assert create(path, tmp_path / "labels.csv").ask(wrong(50)).released == 0.24
    with pytest.raises(InvalidLabels, match="add id as columns"):
        create(tmp_path / "other.db", str(tmp_path / "labels.csv"), ids=IDS)
    assert not (tmp_path / "other.db").exists()


def test_labels_may_be_text_and_several(path, tmp_path):
    words = np.array(["no", "yes"])[LABELS]
    assert create(path, words).ask(np.array(["no", "yes"])[wrong(50)]).released == 0.24
    both = np.column_stack([LABELS, LABELS])
    guard = create(tmp_path / "several.db", both, loss="hamming")
    assert guard.ask(np.column_stack([LABELS, wrong(50)])).released == 0.12


def test_other_values_than_classes_are_refused(path, tmp_path):
    # Undeclared, the classes are those of the labels; nothing that is surely wrong can be asked.
    for name, predictions in (("declared", [0, 1]), ("taken", None)):
        guard = create(tmp_path / f"{name}.db", classes=predictions)
        with pytest.raises(InvalidPredictions, match=r"classes 0, 1; got 2") as refused:
            guard.ask(wrong(50) * 2)
        assert [problem.code for problem in refused.value.problems] == ["unknown_class"]
        assert guard.remaining == 20
        assert guard.status().opening["loss"] == {"loss": "zero_one", "classes": [0, 1]}
        assert lb.Holdout.open(tmp_path / f"{name}.db", loss="zero_one").loss == guard.loss
    guard = create(tmp_path / "open.db", classes="any")
    assert guard.status().opening["loss"] == {"loss": "zero_one", "classes": "any"}
    assert guard.ask(wrong(50) * 7).improved


def test_text_answers_are_not_published_as_classes(path):
    # One answer has four labels: it may be somebody's own.
    answers = np.array([*["Paris"] * 100, *["Rome"] * 96, *["Ys"] * 4])
    guard = create(path, answers)
    assert guard.status().opening["loss"] == {"loss": "zero_one", "classes": None}
    assert guard.ask(np.full(N, "Atlantis")).question == 1


def test_classes_match_by_spelling(path):
    words = np.array(["cat", "1"])[LABELS]
    guard = create(path, words)
    with pytest.raises(InvalidPredictions) as refused:
        guard.ask(np.array([" Cat", "1.0"])[LABELS])
    for hint in ("' Cat' (did you mean 'cat'?)", "'1.0' (did you mean '1'?)"):
        assert hint in str(refused.value)


def test_groups_count_as_one_example_each(path):
    group = np.arange(N) // 2
    guard = create(path, group=group, mechanism=lb.Exact())
    assert guard.status().opening["n"] == N // 2
    assert guard.ask(wrong(50)).released == 0.25
    assert guard.meter.rules["worth"] == N // 2


def test_weights_lower_the_effective_size_and_need_the_hoeffding_form(path):
    weight = np.where(np.arange(N) < 100, 1.0, 3.0)
    guard = create(path, weight=weight, mechanism=lb.Ladder(step=0.02, grid=0.01))
    reply = guard.ask(wrong(100))
    assert reply.released == 0.25
    assert guard.meter.rules["worth"] == 160  # (400)^2 / (100 + 900)
    assert reply.bound.differences
    assert "Hoeffding" in reply.bound.theorem
    assert "binomial" in create(path.with_name("b.db")).ask(wrong(100)).bound.theorem


def test_a_mechanism_that_compares_losses_refuses_weights(path):
    weight = np.arange(1, N + 1)
    with pytest.raises(InvalidSetting, match="weights"):
        create(path, weight=weight, mechanism=lb.ParameterFreeLadder())
    assert not path.exists()


def test_a_mechanism_that_compares_losses_receives_them(path):
    guard = create(path, mechanism=lb.ParameterFreeLadder())
    session = lb.ParameterFreeLadder().start(n=N)
    for count in (80, 60, 59, 20):
        losses = (wrong(count) != LABELS).astype(float)
        assert guard.ask(wrong(count)).released == session.ask(losses=losses).value


def test_the_default_is_calibrated_for_size_and_budget(path):
    guard = lb.Holdout.create(path, LABELS, questions=30)
    expected = lb.GrowingLadder.calibrated(n=N, questions=30).describe()
    assert guard.status().opening["mechanism"] == expected


@pytest.mark.parametrize("protection", ["open", "strict"])
def test_the_default_follows_the_loss_and_the_protection(path, protection):
    labels, loss = np.linspace(0, 1, N), lb.loss("squared", range=(0, 1))
    guard = lb.Holdout.create(
        path, labels, loss=loss, questions=30, ladders=4, protection=protection
    )
    assert guard.meter.mechanism == lb.GrowingLadder.calibrated(
        N, 30, teams=4, accounts=4, protection=protection, scale="model"
    )


def test_a_protection_is_refused_with_a_mechanism_and_if_unknown(path):
    with pytest.raises(InvalidSetting, match="leave one of them out"):
        create(path, mechanism="exact", protection="open")
    with pytest.raises(InvalidSetting, match="protection must be"):
        lb.Holdout.create(path, LABELS, questions=30, protection="most")
    assert not path.exists()


def test_a_mechanism_may_be_named_or_described(path, tmp_path):
    create(path, mechanism={"mechanism": "ladder", "step": 0.02})
    assert create(tmp_path / "b.db", mechanism="exact").ask(wrong(50)).released == 0.25


def test_training_losses_are_part_of_the_question(path):
    guard = create(path, mechanism=lb.Thresholdout(threshold=0.1, noise=0))
    assert guard.ask(wrong(50), training=0.2).score == 0.2
    assert guard.ask(wrong(50), training=0.24).score == 0.24  # another question
    assert guard.ask(wrong(50), training=0.2).again
    for bad in (None, -1, 2, "x"):
        with pytest.raises(InvalidInput, match="training"):
            guard.ask(wrong(51), training=bad)
    assert guard.remaining == 18


def test_a_reopened_guard_continues(path):
    first = create(path)
    first.ask(wrong(50))
    again = lb.Holdout.open(path)
    assert again.remaining == 19
    assert again.released == 0.24
    assert again.ask(wrong(10)).released == 0.04
    assert first.remaining == 18


def test_another_holdout_is_refused(path):
    create(path, ids=IDS)
    order = np.random.default_rng(0).permutation(N)
    lb.Holdout.open(path, labels=LABELS[order], ids=[IDS[number] for number in order])
    with pytest.raises(InvalidLabels, match=r"2 ids missing \('img_0', 'img_1'\) and 1 id unknown"):
        lb.Holdout.open(path, labels=LABELS[1:], ids=["new", *IDS[2:]])
    with pytest.raises(InvalidLabels, match="has ids, this one has none"):
        lb.Holdout.open(path, labels=LABELS)
    message = []
    for number in (0, 100):
        changed = LABELS.copy()
        changed[number] = 1 - changed[number]
        with pytest.raises(InvalidLabels) as refused:
            lb.Holdout.open(path, labels=changed, ids=IDS)
        message.append(str(refused.value))
    assert (
        message
        == ["These labels belong to another holdout: its labels differ from the guard's."] * 2
    )


def test_another_holdout_without_ids_is_refused(path):
    create(path)
    lb.Holdout.open(path, labels=LABELS.astype(float))
    with pytest.raises(InvalidLabels, match="it has 199 rows, the guard's has 200"):
        lb.Holdout.open(path, labels=LABELS[1:])
    with pytest.raises(InvalidLabels, match="its group differ"):
        lb.Holdout.open(path, labels=LABELS, group=np.arange(N))


def test_existing_files_are_never_overwritten(path):
    create(path).ask(wrong(50))
    with pytest.raises(InvalidState, match="exists already"):
        create(path)
    assert lb.Holdout.open(path).remaining == 19


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"questions": 0}, "questions"),
        ({"questions": 1.5}, "questions"),
        ({"beta": 0}, "beta"),
        ({"loss": "max_error"}, "max_error"),
        ({"loss": "nothing"}, "no metric"),
        ({"mechanism": "nothing"}, "no mechanism"),
        ({"labels": []}, "."),
        ({"labels": [0, None]}, "missing"),
        ({"ids": ["a"]}, "one length"),
        ({"ids": ["a"] * N}, "Duplicate ids"),
        ({"loss": "brier", "classes": [5, 6]}, "."),
        ({"key": b"short"}, "32 bytes"),
    ],
)
def test_invalid_settings_are_refused_and_leave_no_file(path, settings, words):
    with pytest.raises(InvalidInput, match=words):
        create(path, **settings)
    assert list(path.parent.iterdir()) == []


def test_invalid_paths_are_refused(tmp_path):
    with pytest.raises(StorageFailed, match="cannot be created"):
        create(tmp_path / "nowhere" / "guard.db")
    with pytest.raises(InvalidState, match="no file"):
        lb.Holdout.open(tmp_path / "guard.db")
    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(InvalidState, match="not a file of Ladderboard"):
        lb.Holdout.open(tmp_path / "text.db")
