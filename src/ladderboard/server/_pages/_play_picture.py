"""The picture of Play: what a board shows under attack, beside what is true."""

from markupsafe import Markup

from ladderboard.server._pages._chart_svg import number, tag
from ladderboard.server._pages._play_data import Board, Curve

__all__ = ["PLOT", "RANGE", "picture"]

_WIDTH, _HEIGHT = 340, 264
# Left, right, top and bottom of the plot; play.js is told, and draws the same.
PLOT = (40.0, 332.0, 30.0, 236.0)
# One range for all choices, so that one can be compared with another.
RANGE = (0.7, 1.0)
_TICKS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_LINE = 15.0  # what a line of text takes
_NAME = 125.0  # and how long it is


def picture(board: Board, questions: int) -> Markup:
    """Return one board's picture, with everything that is true at the end visible."""
    left, right, top, bottom = PLOT
    worth = board.patient.worth
    inside = tag("rect", x=left, y=top - 6, width=right - left, height=bottom - top + 6)
    key = f"play-{board.key}"
    return tag(
        "svg",
        tag("title", f"{board.name}: what the board shows, against questions", id=f"{key}-title"),
        tag("desc", _summary(board, questions), id=f"{key}-desc"),
        tag("clipPath", inside, id=f"{key}-clip"),
        *_axes(questions),
        tag(
            "g",
            *[_area(each) for each in board.curves],
            *[_line(each) for each in board.curves],
            clip_path=f"url(#{key}-clip)",
        ),
        _level(worth, "play-truth"),
        _text(f"truly worth {worth:.2f}", left + 6, _y(worth) + 16, "play-true"),
        *[_end(each) for each in board.curves],
        *_labels(board),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
    )


def _x(part: float) -> float:
    return PLOT[0] + part * (PLOT[1] - PLOT[0])


def _y(accuracy: float) -> float:
    low, high = RANGE
    inside = min(max(accuracy, low), high)
    return PLOT[3] - (inside - low) / (high - low) * (PLOT[3] - PLOT[2])


def _text(said: str, x: float, y: float, class_: str, anchor: str = "start") -> Markup:
    return tag("text", said, x=x, y=y, class_=class_, text_anchor=anchor)


def _level(accuracy: float, class_: str) -> Markup:
    y = _y(accuracy)
    return tag("line", x1=PLOT[0], x2=PLOT[1], y1=y, y2=y, class_=class_)


def _axes(questions: int) -> list[Markup]:
    left, _, _, bottom = PLOT
    found = [_level(each, "play-grid") for each in _TICKS]
    found.append(_text("accuracy shown", 4, 11, "play-tick"))
    found += [_text(f"{each:.2f}", left - 6, _y(each) + 4, "play-tick", "end") for each in _TICKS]
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        said = f"{round(part * questions):,}{' questions' if part == 1 else ''}"
        found.append(_text(said, _x(part), bottom + 20, "play-tick", anchor))
    return found


def _points(curve: Curve) -> list[tuple[float, float]]:
    count = len(curve.shown)
    return [(_x(at / count), _y(value)) for at, value in enumerate(curve.shown, 1)]


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _area(curve: Curve) -> Markup:
    """Shade what the board shows beyond the truth, and nothing below it."""
    truth = _y(curve.worth)
    above = [(x, min(y, truth)) for x, y in _points(curve)]
    around = [(above[0][0], truth), *above, (above[-1][0], truth)]
    return tag("path", d=f"{_path(around)}Z", class_=f"play-area play-{curve.attack}")


def _line(curve: Curve) -> Markup:
    return tag("path", d=_path(_points(curve)), class_=f"play-line play-{curve.attack}")


def _end(curve: Curve) -> Markup:
    """Mark the end: a disc for one attack, a square for the other, not by colour alone."""
    x, y = _points(curve)[-1]
    class_ = f"play-end play-{curve.attack}"
    if curve.attack == "majority":
        inside = tag("rect", x=-4.0, y=-4.0, width=8, height=8)
    else:
        inside = tag("circle", r=4.5)
    return tag("g", inside, class_=class_, transform=f"translate({number(x)} {number(y)})")


def _labels(board: Board) -> list[Markup]:
    """Name the lines at their ends: the upper one above it, the lower one where there is room."""
    upper, lower = sorted(board.curves, key=lambda each: -each.shown[-1])
    high, low = _y(upper.shown[-1]), _y(lower.shown[-1])
    truth = _y(upper.worth)
    # Below the line also where it was lower before.
    under = max(y for x, y in _points(lower) if x >= PLOT[1] - _NAME) + _LINE
    if under <= truth - 4:
        place = under
    elif low - high >= _LINE + 4:
        place = low - 8
    else:
        place = max(truth, low) + _LINE + 1
    return [_label(upper, high - 8), _label(lower, place)]


def _label(curve: Curve, y: float) -> Markup:
    said = f"{curve.name.split()[0]} {curve.gap:+.3f}"
    return _text(said, PLOT[1] - 9, y, f"play-label play-{curve.attack}", "end")


def _summary(board: Board, questions: int) -> str:
    told = [
        f"the {each.name} rises from {each.shown[0]:.3f} to {each.shown[-1]:.3f}"
        for each in board.curves
    ]
    return (
        f"Over {questions:,} questions {' and '.join(told)}. "
        f"The flat line is what the models are truly worth: {board.patient.worth:.3f}."
    )
