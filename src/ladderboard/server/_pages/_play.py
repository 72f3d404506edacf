"""The Play page: an animation of two attacks on three kinds of boards."""

import json
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from ladderboard.errors import NotFound
from ladderboard.mechanisms import Mechanism, mechanism
from ladderboard.server._api import Slug
from ladderboard.server._context import open_page
from ladderboard.server._pages._charts import coord, tag
from ladderboard.server._pages._rendering import page_response, page_router

router = page_router()
_RECORDED_GAMES = json.loads((Path(__file__).parent / "play.json").read_text())
_SCALE = 10_000  # play.json holds accuracies in ten thousandths
GAMES: int = _RECORDED_GAMES["games"]
CHOICES: dict[str, tuple[int, ...]] = {
    key: tuple(_RECORDED_GAMES[key]) for key in ("n", "questions")
}
_CHOICE_NAMES = {"n": "Hidden labels", "questions": "Submissions", "noise": "Noise"}
NOISES = {"none": "none", "half": "half", "calibrated": "as calibrated", "double": "double"}
_NOISE_TEXTS = {
    "none": "here without its noise",
    "half": "with half of its noise",
    "calibrated": "with noise in every comparison",
    "double": "with twice its noise",
}
BOARDS = {"exact": "Exact scores", "ladder": "Ladder", "growing_ladder": "Growing Ladder"}
ATTACKS = {"shifted_majority": "patient attack", "majority": "majority attack"}
_DEFAULT_CHOICE = (1_000, 1_000, "calibrated")
_WIDTH, _HEIGHT = 340, 264
# Left, right, top and bottom of the plot; play.js gets the same values.
PLOT = (40.0, 332.0, 30.0, 236.0)
# The same for all choices, so that they can be compared.
ACCURACY_RANGE = (0.7, 1.0)
_TICKS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_LINE_HEIGHT = 15.0  # of a label
_LABEL_WIDTH = 125.0  # of a label
_TABLE_ROWS = 10


class PlayChoice(NamedTuple):
    """What the visitor chose: hidden labels, questions, and the Growing Ladder's noise."""

    n: int
    questions: int
    noise: str

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple["PlayChoice", list[str]]:
        """Return the choice in a query, with defaults, and a sentence for each invalid value.

        >>> PlayChoice.from_query({"n": "4000", "noise": "much"})[1]
        ["Noise cannot be 'much'; showing as calibrated."]
        """
        chosen: dict[str, Any] = {}
        problems = []
        for key, default in zip(cls._fields, _DEFAULT_CHOICE, strict=True):
            options = (
                {name: name for name in NOISES} if key == "noise" else _parse_table(CHOICES[key])
            )
            chosen[key] = options.get(query.get(key, str(default)))
            if chosen[key] is None:
                chosen[key] = default
                default_text = NOISES[default] if isinstance(default, str) else f"{default:,}"
                problems.append(
                    f"{_CHOICE_NAMES[key]} cannot be {query[key][:20]!r}; showing {default_text}."
                )
        return cls(**chosen), problems


def _parse_table(numbers: tuple[int, ...]) -> dict[str, Any]:
    return {str(number): number for number in numbers}


class Curve(NamedTuple):
    """An attack on a board, as accuracies.

    ``shown`` is, for each frame, what the board shows if the attack stops at its best moment so
    far; ``true_accuracy`` that of the best possible model; ``holdout_accuracy`` that of the
    attack's last model on the hidden labels.
    """

    attack: str
    shown: tuple[float, ...]
    holdout_accuracy: float
    true_accuracy: float

    @property
    def name(self) -> str:
        """The displayed name of the attack."""
        return ATTACKS[self.attack]

    @property
    def gap(self) -> float:
        """The final shown accuracy minus the true one."""
        return self.shown[-1] - self.true_accuracy


_BoardKey = tuple[int, int, str, str | None]


class SimulatedBoard(NamedTuple):
    """A simulated board and both attacks on it; ``noise`` is None if there is no choice of it."""

    n: int
    questions: int
    key: str
    noise: str | None
    mechanism: Mechanism
    patient: Curve
    majority: Curve

    @property
    def name(self) -> str:
        """The displayed name of the board."""
        return BOARDS[self.key]

    @property
    def curves(self) -> tuple[Curve, Curve]:
        """Both attacks."""
        return self.patient, self.majority

    @property
    def undetected_gain(self) -> float:
        """The gain below which an honest improvement may not be shown; 0 if all are shown."""
        return self.mechanism.smallest_visible_gain(n=self.n)


def simulated_board(choice: PlayChoice, key: str) -> SimulatedBoard:
    """Return the simulated board for a choice, with its noise if there is a choice of it."""
    boards, game = _load_boards(), (choice.n, choice.questions, key)
    return boards.get((*game, choice.noise)) or boards[*game, None]


@cache
def _load_boards() -> dict[_BoardKey, SimulatedBoard]:
    curves: dict[_BoardKey, dict[str, Curve]] = {}
    mechanisms: dict[_BoardKey, Mechanism] = {}
    for scene in _RECORDED_GAMES["scenes"]:
        key = scene["n"], scene["questions"], scene["board"], scene["noise"]
        shown = tuple(value / _SCALE for value in accumulate(scene["shown"], max))
        curves.setdefault(key, {})[scene["attack"]] = Curve(
            scene["attack"], shown, scene["fits"] / _SCALE, scene["worth"] / _SCALE
        )
        mechanisms[key] = mechanism(scene["mechanism"])
    return {
        key: SimulatedBoard(*key, mechanisms[key], attacks["shifted_majority"], attacks["majority"])
        for key, attacks in curves.items()
    }


def draw_board(board: SimulatedBoard, questions: int) -> Markup:
    """Return the chart of a board at the last frame, which is complete without a script."""
    left, right, top, bottom = PLOT
    worth = board.patient.true_accuracy
    inside = tag("rect", x=left, y=top - 6, width=right - left, height=bottom - top + 6)
    key = f"play-{board.key}"
    return tag(
        "svg",
        tag("title", f"{board.name}: what the board shows, against submissions", id=f"{key}-title"),
        tag("desc", _describe_curves(board, questions), id=f"{key}-desc"),
        tag("clipPath", inside, id=f"{key}-clip"),
        *_draw_axes(questions),
        tag(
            "g",
            *[_draw_area(curve) for curve in board.curves],
            *[_draw_curve(curve) for curve in board.curves],
            clip_path=f"url(#{key}-clip)",
        ),
        _draw_level(worth, "play-truth"),
        _draw_text(f"true accuracy {worth:.2f}", left + 6, _to_y(worth) + 16, "play-true"),
        *[_draw_end_marker(curve) for curve in board.curves],
        *_draw_labels(board),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
    )


def _to_x(part: float) -> float:
    return PLOT[0] + part * (PLOT[1] - PLOT[0])


def _to_y(accuracy: float) -> float:
    low, high = ACCURACY_RANGE
    inside = min(max(accuracy, low), high)
    return PLOT[3] - (inside - low) / (high - low) * (PLOT[3] - PLOT[2])


def _draw_text(content: str, x: float, y: float, class_: str, anchor: str = "start") -> Markup:
    return tag("text", content, x=x, y=y, class_=class_, text_anchor=anchor)


def _draw_level(accuracy: float, class_: str) -> Markup:
    y = _to_y(accuracy)
    return tag("line", x1=PLOT[0], x2=PLOT[1], y1=y, y2=y, class_=class_)


def _draw_axes(questions: int) -> list[Markup]:
    left, _, _, bottom = PLOT
    elements = [_draw_level(tick, "play-grid") for tick in _TICKS]
    elements.append(_draw_text("Accuracy shown", 4, 11, "play-tick"))
    elements += [
        _draw_text(f"{tick:.2f}", left - 6, _to_y(tick) + 4, "play-tick", "end") for tick in _TICKS
    ]
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        label = f"{round(part * questions):,}{' submissions' if part == 1 else ''}"
        elements.append(_draw_text(label, _to_x(part), bottom + 20, "play-tick", anchor))
    return elements


def _plot_points(curve: Curve) -> list[tuple[float, float]]:
    count = len(curve.shown)
    return [(_to_x(frame / count), _to_y(value)) for frame, value in enumerate(curve.shown, 1)]


def _polyline(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{coord(x)} {coord(y)}" for x, y in points)


def _draw_area(curve: Curve) -> Markup:
    """Return the area between the shown and the true accuracy, where the shown one is higher."""
    truth = _to_y(curve.true_accuracy)
    above = [(x, min(y, truth)) for x, y in _plot_points(curve)]
    around = [(above[0][0], truth), *above, (above[-1][0], truth)]
    return tag("path", d=f"{_polyline(around)}Z", class_=f"play-area play-{curve.attack}")


def _draw_curve(curve: Curve) -> Markup:
    return tag("path", d=_polyline(_plot_points(curve)), class_=f"play-line play-{curve.attack}")


def _draw_end_marker(curve: Curve) -> Markup:
    """Return the marker at the end of a curve; its shape tells the attacks apart."""
    x, y = _plot_points(curve)[-1]
    class_ = f"play-end play-{curve.attack}"
    if curve.attack == "majority":
        inside = tag("rect", x=-4.0, y=-4.0, width=8, height=8)
    else:
        inside = tag("circle", r=4.5)
    return tag(
        "g",
        inside,
        class_=class_,
        transform=f"translate({coord(x)} {coord(y)})",
    )


def _draw_labels(board: SimulatedBoard) -> list[Markup]:
    """Return labels at the ends of the curves: above the upper one, the other where it fits."""
    upper, lower = sorted(board.curves, key=lambda curve: -curve.shown[-1])
    high, low = _to_y(upper.shown[-1]), _to_y(lower.shown[-1])
    truth = _to_y(upper.true_accuracy)
    # Below the whole part of the curve that the label spans.
    below_line = (
        max(y for x, y in _plot_points(lower) if x >= PLOT[1] - _LABEL_WIDTH) + _LINE_HEIGHT
    )
    if below_line <= truth - 4:
        lower_y = below_line
    elif low - high >= _LINE_HEIGHT + 4:
        lower_y = low - 8
    else:
        lower_y = max(truth, low) + _LINE_HEIGHT + 1
    return [_draw_label(upper, high - 8), _draw_label(lower, lower_y)]


def _draw_label(curve: Curve, y: float) -> Markup:
    content = f"{curve.name.split()[0]} {curve.gap:+.3f}"
    return _draw_text(content, PLOT[1] - 9, y, f"play-label play-{curve.attack}", "end")


def _describe_curves(board: SimulatedBoard, questions: int) -> str:
    rises = [
        f"the {curve.name} rises from {curve.shown[0]:.3f} to {curve.shown[-1]:.3f}"
        for curve in board.curves
    ]
    return (
        f"Over {questions:,} submissions {' and '.join(rises)}. "
        f"The flat line is the true accuracy of the models: {board.patient.true_accuracy:.3f}."
    )


def gap_text(gap: float) -> str:
    """Return the gap between the shown and the true accuracy in words.

    >>> gap_text(0.0821), gap_text(-0.004), gap_text(0.0001)
    ('looks 0.082 better than it is', 'looks 0.004 worse than it is', 'looks as good as it is')
    """
    if abs(gap) < 0.0005:
        return "looks as good as it is"
    return f"looks {abs(gap):.3f} {'better' if gap > 0 else 'worse'} than it is"


def cost_text(gain: float) -> str:
    """Return what a board costs honest teams.

    >>> cost_text(0.0491), cost_text(0.0)
    ('gains below 0.049 may not show.', 'none: every gain shows.')
    """
    if not gain:
        return "none: every gain shows."
    return f"gains below {gain:.3f} may not show."


def describe_board(board: SimulatedBoard) -> str:
    """Return a sentence about what a board reveals."""
    rule = board.mechanism.explain(board.n)
    return f"{rule}." if board.noise is None else f"{rule}, {_NOISE_TEXTS[board.noise]}."


def noise_costs(choice: PlayChoice) -> list[dict[str, Any]]:
    """Return, for each amount of noise, what attacks gain and what honest teams lose."""
    rows = []
    for noise, name in NOISES.items():
        board = simulated_board(choice._replace(noise=noise), "growing_ladder")
        mechanism = board.mechanism
        rows.append(
            {
                "noise": name,
                "is_chosen": noise == choice.noise,
                "sd": mechanism.comparison(choice.n).compare_noise,
                "patient": board.patient,
                "majority": board.majority,
                "undetected_gain": board.undetected_gain,
            }
        )
    return rows


def table_rows(boards: list[SimulatedBoard], choice: PlayChoice) -> list[tuple[int, list[float]]]:
    """Return the numbers of the charts at ten frames, for each board and attack."""
    count = len(boards[0].patient.shown)
    frames = [count * number // _TABLE_ROWS for number in range(1, _TABLE_ROWS + 1)]
    return [
        (
            choice.questions * frame // count,
            [curve.shown[frame - 1] for board in boards for curve in board.curves],
        )
        for frame in frames
    ]


@router.get("/boards/{board}/play")
def play_page(request: Request, board: Slug) -> Response:
    """Show the Play page, on boards whose rules enable it."""
    choice, problems = PlayChoice.from_query(request.query_params)
    opened, caller = open_page(request, board)
    summary = opened.as_seen_by(caller).summary()
    if not summary["play"]:
        raise NotFound("The Play page is not enabled on this board.")
    return page_response(
        request,
        "play.html",
        problems=problems,
        board=summary,
        role=caller.role.name.lower(),
        **_template_variables(choice),
    )


def _template_variables(choice: PlayChoice) -> dict[str, Any]:
    """Return the template variables for a choice."""
    boards = [simulated_board(choice, key) for key in BOARDS]
    panels = [
        {
            "key": board.key,
            "name": board.name,
            "about": describe_board(board),
            "picture": draw_board(board, choice.questions),
            "curves": [(curve, gap_text(curve.gap)) for curve in board.curves],
            "cost": cost_text(board.undetected_gain),
        }
        for board in boards
    ]
    return {
        "choice": choice,
        "choices": CHOICES,
        "noises": NOISES,
        "games": GAMES,
        "worth": boards[0].patient.true_accuracy,
        "panels": panels,
        "animation": json.dumps(_animation_data(boards, choice), separators=(",", ":")),
        "boards": {board.key: board for board in boards},
        "noise_costs": noise_costs(choice),
        "table_rows": table_rows(boards, choice),
    }


def _animation_data(boards: list[SimulatedBoard], choice: PlayChoice) -> dict[str, Any]:
    """Return the data that play.js animates."""
    return {
        "questions": choice.questions,
        "plot": PLOT,
        "range": ACCURACY_RANGE,
        "worth": boards[0].patient.true_accuracy,
        "shown": {
            board.key: {curve.attack: curve.shown for curve in board.curves} for board in boards
        },
    }
