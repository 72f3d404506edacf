"""The texts of the submit page for all kinds of answers, mechanisms and losses."""

from itertools import product

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.board import DisplayRules
from ladderboard.files import Roster, read_predictions
from ladderboard.holdout import ReplyTexts, format_reply
from ladderboard.mechanisms import Release
from ladderboard.server._pages._reply import ReplyContext, describe_reply, problem_items
from ladderboard.server._pages._submit import describe_file_format

TEAM = {"name": "team", "remaining": 9, "allowed": 10}


def make_answer(**changes):
    fields = {"loss": 0.2, "improved": False, "again": False, "score_loss": None, "number": 3}
    fields |= {"ladder": "team", "limits": [TEAM], "next_submission_at": None, "bound": None}
    fields["visible_gain"] = 0.02
    return fields | changes


def test_no_reply_claims_that_a_model_is_not_better():
    """All say how many submissions are left; those without gain or score mention unseen gains."""
    context = ReplyContext(DisplayRules("accuracy", 3, "complement"))
    for released, improved, again, ladder, score, restriction in product(
        (None, 0.2, 1.0), (False, True), (False, True), ("team", "board"), (None, 0.3),
        (None, "hidden", "frozen"),
    ):  # fmt: skip
        reply_answer = make_answer(
            loss=released, improved=improved, again=again, ladder=ladder, score_loss=score
        )
        reply = describe_reply(reply_answer, context._replace(restriction=restriction))
        text = f"{reply.headline}. {reply.why} {reply.left}"
        assert text.endswith(" 9 submissions left.")
        assert text[0].isupper()
        assert not any(phrase in text for phrase in ("not better", "no better", "worse", "None"))
        unchanged = not improved and not again and score is None
        assert ("may not be detected" in text) == unchanged
        assert ("Duplicate of submission 3. Not counted." in text) == again
        assert reply.good == (improved and not again)
        shown = again or not improved
        assert ("0.7" in text) == (score is not None and shown)
        assert ("0.8" in text) == (released == 0.2)


def test_a_released_score_of_the_model_is_shown_beside_the_best():
    reply = describe_reply(make_answer(score_loss=0.25), ReplyContext(DisplayRules("error", 2)))
    assert (reply.headline, reply.why) == ("Score: 0.25", "Your best: error 0.2.")


def test_a_new_best_that_rounds_to_the_old_one_is_shown_once():
    context = ReplyContext(DisplayRules("error", 2), previous_best=0.201)
    reply = describe_reply(make_answer(improved=True), context)
    assert reply.headline == "New best: 0.2"
    assert reply.why == "Error improved by less than its digits show."


def test_metric_names_are_not_markup():
    reply = describe_reply(make_answer(), ReplyContext(DisplayRules("<b>", 2)))
    assert "<b>" in reply.why  # the template escapes it
    assert not hasattr(reply.why, "__html__")


def test_bounds_are_rounded_outwards():
    rng = np.random.default_rng(0)
    for _ in range(200):
        low, high = sorted(rng.random(2))
        kind = str(rng.choice(["loss", "complement", "scaled", "root"]))
        display = DisplayRules("m", int(rng.integers(0, 6)), kind, 7.0)
        shown_low, shown_high = map(float, display.format_interval(low, high))
        ends = sorted((display.metric_value(low), display.metric_value(high)))
        assert shown_low <= ends[0] + 1e-8
        assert shown_high >= ends[1] - 1e-8
        assert shown_high - shown_low <= ends[1] - ends[0] + 2.001 * 10.0**-display.digits


def test_gains_of_a_root_metric_depend_on_the_best():
    display = DisplayRules("rmse", shown_as="root", unit=100.0)
    assert display.gain_text(0.07, None) is None
    assert display.gain_text(0.01, 0.01) == "1"
    assert display.gain_text(5.0, 0.01) == "1"
    assert display.gain_text(0.0, 0.01) is None
    assert display.gain_text(0.07, 0.0) is None  # not "gains below about 0"


def test_replies_use_the_displayed_metric():
    def text(release, display, remaining):
        numbers = ReplyTexts(
            display.named_text(release.value),
            display.named_text(release.score),
            display.gain_text(0.02, release.value),
        )
        return format_reply(release, numbers, again=False, remaining=remaining)

    display = DisplayRules("accuracy", 3, "complement")
    assert text(Release(0.2, None, False, 2), display, 9) == (
        "No measurable improvement. The best: accuracy 0.8. Improvements smaller than about 0.02 "
        "may not be detected. 9 questions left."
    )
    assert (
        text(Release(0.2, 0.2, True, 2), display, 9)
        == "The best is now accuracy 0.8. 9 questions left."
    )
    root = DisplayRules("rmse", 2, "root", 100.0)
    assert text(Release(0.0, None, False, 2), root, 1) == (
        "No measurable improvement. The best: rmse 0. 1 question left."
    )


LOSSES = [
    lb.loss("zero_one", classes=["cat", "dog"]),
    lb.loss("zero_one", classes=list(range(10))),
    lb.loss("brier", classes=["a", "b", "c"]),
    lb.loss("log", classes=["a", "b"]),
    lb.loss("top_k", k=1, classes=["a", "b", "c"]),
    lb.loss("absolute", range=(0, 10)),
    lb.loss("squared", range=(-1, 1)),
    lb.loss("pinball", range=(0, 10), quantile=0.9),
    lb.loss("0.7 accuracy + 0.3 brier", classes=["a", "b"]),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_example_of_the_file_format_can_be_parsed(loss):
    """With as many rows as the holdout it is a valid file."""
    file_format = describe_file_format(loss, Roster.of(["x", "y"], kind="text"))
    if "..." in file_format.example[0]:
        pytest.skip("It has more columns than are shown.")
    text = "\n".join(map(",".join, file_format.example)) + "\n"
    assert len(read_predictions(text.encode(), Roster.of(["x", "y"], kind="text"), loss)) == 2


def test_file_formats_of_other_losses():
    roster = Roster(3, None, "number", 4)
    assert describe_file_format(lb.loss("hamming"), roster).example[0] == (
        "id", "label_1", "label_2", "label_3", "..."
    )  # fmt: skip
    assert describe_file_format(lb.loss("top_k", k=2), roster).example[0] == (
        "id",
        "guess_1",
        "guess_2",
    )
    custom = describe_file_format(lb.loss(absolute_error), roster)
    assert "in the order given in the board's description" in custom.column_rules[1]
    assert custom.column_rules[0] == "id: the row's number, from 0."


def absolute_error(labels, predictions):
    return np.abs(labels - predictions)


def test_long_lists_of_errors_are_cut():
    error = {"code": "x", "column": None, "count": 1, "ids": [], "message": "Wrong."}
    items, more = problem_items([error] * 33)
    assert (len(items), more) == (20, 13)
    odd = {**error, "ids": ["a"], "message": "Something else about 'a'."}
    assert problem_items([odd])[0][0][:3] == ("Something else about 'a'.", (), 0)
