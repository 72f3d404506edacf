"""What the number on a board means, and what it does not, with the board's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard.server._pages._words import count, percent
from ladderboard.server._pages._words_rules import EVERY

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["bound_in_words", "meaning_in_words"]

_TRUE = {
    "predictions": "True means over fresh labels for these same examples; for models that were "
    "made without a look at the test inputs, over fresh data of the same kind. It holds if the "
    "examples are independent, and if nothing public but the answers of this board, the "
    "organiser's acts included, depends on their labels.",
    "scores": "True means over fresh examples of the same kind, scored in the same way, for models "
    "that were made without a look at these. It holds if the examples are independent, if the "
    "evaluators' scores are right, and if nothing public but the answers of this board, the "
    "organiser's acts included, depends on them.",
}
_CORRECTED = (
    " Labels were corrected: each new one must follow from its own example, its old label and what "
    "is public, not from other labels."
)


def meaning_in_words(
    board: Mapping[str, Any], point: Mapping[str, Any] | None, gain: str | None
) -> list[tuple[str, str]]:
    """Return the words of the board, with what they mean.

    ``point`` is how the board's best stands now, if it has one; ``gain`` is what may go unseen, as
    people are shown it, None where every gain is told or there is no number for it.
    """
    found = [("Released", _released(board)), ("Improved", _improved(board, gain))]
    if board["bound"] is not None:  # which it is where the standings are hidden
        found.append(("Bound", bound_in_words(board, point)))
    return [*found, ("What it does not mean", _not(board))]


def _released(board: Mapping[str, Any]) -> str:
    mechanism, name = board["mechanism"]["mechanism"], board["display"]["name"]
    about = count(board["n"], "hidden example")
    whose = "the best submission" if board["ladder"] == "board" else "a team's best submission"
    if mechanism in EVERY:
        return (
            f"A released number is the {name} of {whose} on {about}{EVERY[mechanism]}. Every "
            "submission is told its own, so whoever asks often enough can climb without a better "
            "model."
        )
    if mechanism == "one_bit":
        return f"No number is released before the close: only whether {whose} on {about} improved."
    how = "by more than the standard error of the difference"
    if mechanism != "parameter_free_ladder":
        how = f"by enough, rounded{' and with noise' if mechanism == 'shaky_ladder' else ''}"
    return (
        f"A released number is about the {name} of {whose} on {about}. A new one is told only when "
        f"a submission beats the one before {how}. The exact score of every file is not told: "
        "people could climb by asking again and again, without better models."
    )


def _improved(board: Mapping[str, Any], gain: str | None) -> str:
    said = "A submission improved if it made the released number better."
    if board["mechanism"]["mechanism"] in EVERY:
        return said
    may = "a gain may go unseen" if gain is None else f"gains below about {gain} may go unseen"
    return f"{said} One that did not may still be better than what stands: {may}."


def bound_in_words(board: Mapping[str, Any], point: Mapping[str, Any] | None) -> str:
    """Say what is promised about the best of all models so far, and on which conditions.

    >>> display = {"name": "accuracy", "digits": 2}
    >>> board = {"beta": 0.05, "display": display, "takes": "predictions"}
    >>> bound = {"least": 0.2, "vacuous": False, "display": {"low": 0.7, "high": 0.85}}
    >>> point = {"used": 12, "released": 0.2, "bound": bound}
    >>> print(bound_in_words(board, point))
    With confidence 95%, the true accuracy of the best model asked so far lies between 0.70 and
    0.85. This counts all 12 questions of all teams together, and holds at all times at once,
    whatever they try, even if they work together. True means over fresh labels for these same
    examples; for models that were made without a look at the test inputs, over fresh data of the
    same kind. It holds if the examples are independent, and if nothing public but the answers of
    this board, the organiser's acts included, depends on their labels.
    """
    name, digits = board["display"]["name"], board["display"]["digits"]
    if point is None:
        return "Once a number is released, this says where the best model's true score lies."
    if point["bound"]["vacuous"]:
        return (
            f"After {count(point['used'], 'question')} nothing can be promised about the true "
            f"{name} of the best model that was not known before: there are too few examples for "
            "so many answers, or this way of answering bears no promise."
        )
    low, high = (f"{point['bound']['display'][each]:.{digits}f}" for each in ("low", "high"))
    gone, sure = "", percent(board["beta"])
    if point["bound"]["least"] < point["released"]:
        gone = " That is a model of a team that was disqualified, and is not shown."
    return (
        f"With confidence {sure}%, the true {name} of the best model asked so far lies "
        f"between {low} and {high}.{gone} This counts all {count(point['used'], 'question')} of "
        "all teams together, and holds at all times at once, whatever they try, even if they work "
        f"together. {_TRUE[board['takes']]}{_CORRECTED if board.get('epoch') else ''}"
    )


def _not(board: Mapping[str, Any]) -> str:
    said = "A rank is no proof: teams that stand close together may be in another order."
    if board["mechanism"]["mechanism"] not in EVERY:
        said += " A number that does not move does not mean that nothing got better."
    said += " The bound is about the best of all models, not about every row."
    if board["finals"] is not None:
        said += " The final ranking is made on other examples, so it may differ from this one."
    return said
