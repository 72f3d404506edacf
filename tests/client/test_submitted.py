"""The sentence of an answer: in the displayed metric, and true under noise."""

from __future__ import annotations

import pytest

from ladderboard.client import SubmissionResult
from ladderboard.client._models import parse_model

SAID = {
    "id": "a", "number": 7, "time": "2026-11-16T13:00:00Z", "entry": None,
    "team": {"id": "b", "name": "Ada"}, "released": 0.1, "improved": True, "question": 1,
    "remaining": 19, "limit": "team", "limits": [{"name": "team", "remaining": 19, "allowed": 20}],
    "next_submission_at": "2026-11-16T13:00:00Z", "bound": None,
    "reason": "The best is now 0.1. 19 questions left.", "score": None, "ladder": "team",
    "again": False, "receipt": {}, "visible_gain": None,
}  # fmt: skip
DISPLAY = {"name": "accuracy", "direction": "higher", "digits": 3, "as": "complement"}
NOT_MEASURED = "No measurable improvement."


def make_answer(display=None, **changes):
    """Return the answer of a board that shows accuracies."""
    fields = {**SAID, **changes}  # as losses
    fields |= {"loss": fields["released"], "score_loss": fields["score"]}
    displayed = {
        name: None if fields[name] is None else round(1 - fields[name], 3)
        for name in ("released", "score")
    }
    fields |= displayed
    return parse_model(
        SubmissionResult, {**fields, "display": {**DISPLAY, **displayed, **(display or {})}}
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "A new best: accuracy 0.9"),
        ({"ladder": "board"}, "A new best of the whole board: accuracy 0.9"),
        ({"released": None}, "A new best; its score is not shown now"),
        ({"improved": False}, f"{NOT_MEASURED} Your best: accuracy 0.9"),
        (
            {"improved": False, "ladder": "board"},
            f"{NOT_MEASURED} The best of the whole board: accuracy 0.9",
        ),
        ({"improved": False, "released": None}, f"{NOT_MEASURED} Your best is unchanged"),
        (
            {"improved": False, "released": 1.0},
            "No score yet: not measurably better than the worst possible score",
        ),
        (
            {"improved": False, "score": 0.25},
            "This submission scored accuracy 0.75. Your best: accuracy 0.9",
        ),
        ({"score": 0.1}, "A new best: accuracy 0.9"),
    ],
)
def test_the_sentence_about_the_best_score(changes, sentence):
    assert str(make_answer(**changes)) == f"{sentence}. 19 submissions left."


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "After submission 7 your best was accuracy 0.9"),
        ({"improved": False}, "After submission 7 your best was accuracy 0.9"),
        ({"released": None}, "Submission 7 improved your best"),
        ({"released": 1.0, "improved": False}, "After submission 7 there was no score yet"),
        (
            {"score": 0.25, "improved": False},
            "This submission scored accuracy 0.75. After submission 7 your best was accuracy 0.9",
        ),
    ],
)
def test_a_duplicate_is_described_in_the_past_tense(changes, sentence):
    first = "Duplicate of submission 7; not counted. "
    assert str(make_answer(again=True, **changes)) == f"{first}{sentence}. 19 submissions left."


TEAM = {"name": "team", "remaining": 43, "allowed": 50}
WINDOW = {"name": "window", "remaining": 5, "allowed": 8}
LATER = "2026-11-16T14:04:01Z"


@pytest.mark.parametrize(
    ("limits", "following", "expected"),
    [
        ([TEAM], LATER, "43 submissions left"),
        ([{**TEAM, "remaining": 1}], LATER, "1 submission left"),
        ([WINDOW, TEAM], LATER, "43 submissions left, 5 available now"),
        (
            [{**WINDOW, "remaining": 0, "next": LATER}, TEAM],
            LATER,
            "43 submissions left; the next at 2026-11-16 14:05 UTC",
        ),
        ([{**WINDOW, "remaining": 0}, TEAM], None, "43 submissions left, none available now"),
        ([{**TEAM, "remaining": 0}, WINDOW], None, "No submissions left"),
        (
            [{"name": "board", "remaining": 0, "allowed": 9}, TEAM],
            LATER,
            (
                "Your reserved submissions are used up; you may still submit while the shared pool "
                "lasts, whose size is hidden"
            ),
        ),
    ],
)
def test_the_sentence_about_remaining_submissions(limits, following, expected):
    answer = make_answer(
        limits=limits, remaining=limits[0]["remaining"], next_submission_at=following
    )
    assert str(answer) == f"A new best: accuracy 0.9. {expected}."


def test_a_notebook_shows_the_same():
    assert make_answer()._repr_html_() == (
        "<p><b>Improved.</b> A new best: accuracy 0.9. 19 submissions left.</p>"
    )
    assert "&lt;b&gt; 0.9" in make_answer({"name": "<b>"})._repr_html_()


@pytest.mark.parametrize("display", [{"name": "a\x1b[2J"}, {"digits": -1}, {"digits": 10**6}])
def test_a_metric_that_no_board_has_is_refused(display):
    with pytest.raises(ValueError, match="unprintable name or too many digits"):
        make_answer(display)
