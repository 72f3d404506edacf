"""What a trial found, for people: a chart, a table of the same numbers, and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.server._pages._chart import Line, line_chart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from ladderboard.board import Display, Target

__all__ = ["Found", "found", "sizes"]

_NAMES = {
    "majority": "Majority",
    "shifted_majority": "Shifted majority",
    "sybil": "Many accounts",
}
_SIDES = {"board": "this board", "exact": "exact scores"}
_ALONE = ("majority", "shifted_majority")  # which need one account
_TRUTH = 0.5  # the loss that gains are counted from, where it matters


class Found(NamedTuple):
    """A chart, its table, and what is to be said about them."""

    chart: Markup | None
    attacks: list[str]
    rows: list[dict[str, Any]]
    sentences: list[str]


def found(kept: Mapping[str, Any], target: Target, display: Display) -> Found:
    """Return what there is to show of games against a target.

    ``kept`` has the points, the seed and the time.
    """
    points = kept["points"]
    names = list(points[0]["attacks"])
    lines = [
        Line(
            f"{_NAMES[name]}: {_SIDES[side]}",
            [(each["questions"], better(display, each["attacks"][name][side])) for each in points],
        )
        for name in names
        for side in _SIDES
    ]
    rows = [
        {
            "questions": each["questions"],
            "games": each["games"],
            "gains": [
                better(display, each["attacks"][name][side]) for name in names for side in _SIDES
            ],
        }
        for each in points
    ]
    sentences = _sentences(points, target, display)
    chart = line_chart(
        lines,
        key="attack",
        title="How much better the attacker's last model looks than it is",
        summary=" ".join(sentences),
        x_title="questions asked",
        y_title=f"looks better by ({display.name})",
        log_x=True,
        zero=True,
    )
    return Found(chart, [_NAMES[name] for name in names], rows, sentences)


def better(display: Display, gain: float) -> float:
    """Return how much better a loss that is lower by so much is, as the metric that is shown.

    >>> from ladderboard.board import Display
    >>> better(Display("accuracy", shown_as="complement"), 0.125)
    0.125
    >>> better(Display("RMSE", shown_as="root", unit=100.0), 0.32)
    2.828...
    """
    gain = min(max(gain, 0.0), _TRUTH)
    return abs(display.shown(_TRUTH - gain) - display.shown(_TRUTH))


def _sentences(points: list[dict[str, Any]], target: Target, display: Display) -> list[str]:
    """Return what the strongest of the attacks came to: with all questions, and for one team."""

    def said(gain: float) -> str:
        return f"{better(display, gain):.{display.digits}f}"

    last = points[-1]
    name, most = _strongest(last, tuple(last["attacks"]))
    exact = max(each["exact"] for each in last["attacks"].values())
    whole = f"With {_questions(last['questions'])}"
    if last["questions"] == target.questions:
        whole += ", all that there are,"
    whole += f" the strongest of these attacks ({name}) ends with a model that looks {said(most)} "
    told = [f"{whole}better than it is; against exact scores one would look {said(exact)} better."]
    own = next((each for each in points if each["questions"] == target.per_team), None)
    if own is not None and own is not last:
        name, most = _strongest(own, _ALONE)
        told.append(
            f"A single team, which may ask {_questions(own['questions'])}, gains {said(most)} "
            f"({name})."
        )
    error = max(each["error"] for point in points for each in point["attacks"].values())
    told.append(f"These are means of a few games; their standard error is at most {said(error)}.")
    return told


def _strongest(point: dict[str, Any], among: tuple[str, ...]) -> tuple[str, float]:
    """Return who gained most against the board, and how much."""
    gains = {name: point["attacks"][name]["board"] for name in among}
    name = max(gains, key=lambda each: gains[each])
    return _NAMES[name].lower(), gains[name]


def sizes(target: Target) -> list[str]:
    """Return what is played, and how that differs from the board."""
    told = []
    if target.n < target.worth:
        told.append(
            f"The board's holdout is worth {target.worth:,} examples; to be quick, {target.n:,} "
            "are played with, on which attackers gain more."
        )
    if target.most < target.questions:
        told.append(
            f"The board allows {target.questions:,} questions; to be quick, at most "
            f"{target.most:,} are played, with which attackers gain less."
        )
    if told and target.calibrated:
        told.append("The noise is that of a board of the size that is played.")
    return told


def _questions(count: int) -> str:
    return f"{count:,} question{'s' * (count != 1)}"
