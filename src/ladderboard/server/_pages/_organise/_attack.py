"""The organiser's page that simulates attacks and shows how much they gain."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from ladderboard._formatting import format_count, format_time
from ladderboard.board import Board, Caller, DisplayRules, Role, Target, check_permission
from ladderboard.errors import InvalidSetting, WorkerError
from ladderboard.server._api import Slug
from ladderboard.server._attack_jobs import AttackRunning, JobStatus
from ladderboard.server._auth import InvalidToken
from ladderboard.server._context import PRIVATE, get_context, make_response
from ladderboard.server._pages._charts import ChartLine, line_chart
from ladderboard.server._pages._rendering import page_response, read_form, redirect
from ladderboard.server._problems import RequestRefused

router = APIRouter(include_in_schema=False)
_ATTACK_NAMES = {
    "majority": "Majority",
    "shifted_majority": "Shifted majority",
    "sybil": "Many accounts",
}
_BOARD_NAMES = {"board": "this board", "exact": "exact scores"}
_SINGLE_ACCOUNT_ATTACKS = ("majority", "shifted_majority")  # a single team can run these
_REFERENCE_LOSS = 0.5  # gains start from it, if the metric is not linear in the loss
_PRIVATE_ROUTE: dict[str, Any] = {"security": PRIVATE}
_UNKNOWN_MECHANISM = "This board uses a custom mechanism, which cannot be simulated."


class AttackReport(NamedTuple):
    """The results of simulated attacks: a chart, its table and sentences about them."""

    chart: Markup | None
    attack_names: list[str]
    rows: list[dict[str, Any]]
    sentences: list[str]


def attack_report(result: Mapping[str, Any], target: Target, display: DisplayRules) -> AttackReport:
    """Return the report on simulated attacks against a target.

    ``result`` holds the points, the seed and the time.
    """
    points = result["points"]
    names = list(points[0]["attacks"])
    lines = [
        ChartLine(
            f"{_ATTACK_NAMES[name]}: {_BOARD_NAMES[side]}",
            [
                (point["questions"], displayed_gain(display, point["attacks"][name][side]))
                for point in points
            ],
        )
        for name in names
        for side in _BOARD_NAMES
    ]
    rows = [
        {
            "questions": point["questions"],
            "games": point["games"],
            "gains": [
                displayed_gain(display, point["attacks"][name][side])
                for name in names
                for side in _BOARD_NAMES
            ],
        }
        for point in points
    ]
    sentences = _summarise_gains(points, target, display)
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
    return AttackReport(chart, [_ATTACK_NAMES[name] for name in names], rows, sentences)


def displayed_gain(display: DisplayRules, gain: float) -> float:
    """Return a gain in loss as a gain in the displayed metric.

    >>> from ladderboard.board import DisplayRules
    >>> displayed_gain(DisplayRules("accuracy", shown_as="complement"), 0.125)
    0.125
    >>> displayed_gain(DisplayRules("RMSE", shown_as="root", unit=100.0), 0.32)
    2.828...
    """
    gain = min(max(gain, 0.0), _REFERENCE_LOSS)
    return abs(display.metric_value(_REFERENCE_LOSS - gain) - display.metric_value(_REFERENCE_LOSS))


def _summarise_gains(
    points: list[dict[str, Any]], target: Target, display: DisplayRules
) -> list[str]:
    """Return sentences about the strongest attack: with all questions, and by one team."""

    def format_gain(gain: float) -> str:
        return f"{displayed_gain(display, gain):.{display.digits}f}"

    last = points[-1]
    name, gain = _strongest_attack(last, tuple(last["attacks"]))
    exact_gain = max(gains["exact"] for gains in last["attacks"].values())
    all_questions = ", all that there are," if last["questions"] == target.questions else ""
    sentence = (
        f"With {format_count(last['questions'], 'question')}{all_questions} the strongest of these "
        f"attacks ({name}) ends with a model that looks {format_gain(gain)} better than it is; "
        f"against exact scores one would look {format_gain(exact_gain)} better."
    )
    sentences = [sentence]
    team_point = next((point for point in points if point["questions"] == target.per_team), None)
    if team_point is not None and team_point is not last:
        name, gain = _strongest_attack(team_point, _SINGLE_ACCOUNT_ATTACKS)
        sentences.append(
            f"A single team, which may ask {format_count(team_point['questions'], 'question')}, "
            f"gains {format_gain(gain)} ({name})."
        )
    error = max(gains["error"] for point in points for gains in point["attacks"].values())
    sentences.append(
        f"These are means of a few games; their standard error is at most {format_gain(error)}."
    )
    return sentences


def _strongest_attack(point: dict[str, Any], attacks: tuple[str, ...]) -> tuple[str, float]:
    """Return the name of the attack that gained most against the board, and its gain."""
    gains = {name: point["attacks"][name]["board"] for name in attacks}
    name = max(gains, key=lambda attack: gains[attack])
    return _ATTACK_NAMES[name].lower(), gains[name]


def size_notes(target: Target) -> list[str]:
    """Return sentences on how the simulated board is smaller than the real one."""
    notes = []
    if target.n < target.effective_n:
        notes.append(
            f"The board's holdout is worth {target.effective_n:,} examples; to be quick, "
            f"{target.n:,} are played with, on which attackers gain more."
        )
    if target.max_questions < target.questions:
        notes.append(
            f"The board allows {target.questions:,} questions; to be quick, at most "
            f"{target.max_questions:,} are played, with which attackers gain less."
        )
    if notes and target.calibrated:
        notes.append("The noise is that of a board of the size that is played.")
    return notes


@router.get("/boards/{board}/attack", openapi_extra=_PRIVATE_ROUTE)
async def attack_page(request: Request, board: Slug) -> Response:
    """Show the progress of the simulation, and its last results."""
    return await _show_attack_page(request, board)


async def _show_attack_page(
    request: Request, board: str, status: int = 200, problem: str | None = None
) -> Response:
    context = get_context(request)

    def read_page(opened_board: Board, caller: Caller) -> dict[str, Any]:
        check_permission(caller, "run")
        job, target, rules = (
            context.attack_jobs.status(board),
            Target.from_board(opened_board),
            opened_board.rules,
        )
        result = job.last_result
        played_target = target if result is None else Target(**result["target"])
        return {
            "board": opened_board.as_seen_by(caller).summary(),
            "role": caller.role.name.lower(),
            "job": job,
            "other_board": _visible_other_board(request, job),
            "target": target,
            "playable": _is_playable(target),
            "size_notes": size_notes(target),
            "report": None
            if result is None
            else attack_report(result, played_target, rules.display),
            "rules_changed": result is not None and result["target"] != _as_json(target),
        }

    variables = await context.with_board(request, board, read_page, form=True)
    return page_response(request, "attack.html", status, problem=problem, **variables)


def _as_json(target: Target) -> Any:
    """Return a target as it looks after a round trip through JSON."""
    return json.loads(json.dumps(target.describe()))


def _is_playable(target: Target) -> bool:
    try:
        target.played()
    except InvalidSetting:
        return False
    return True


def _visible_other_board(request: Request, job: JobStatus) -> str | None:
    """Return the board of another running simulation, if the caller also organises it."""
    context, slug = get_context(request), job.other_board
    if slug is None:
        return None
    try:
        caller = context.authenticator.resolve(
            context.authenticator.read_credentials(request), slug
        )
    except InvalidToken:
        return None
    return slug if caller.role >= Role.ORGANISER else None


@router.post("/boards/{board}/attack", openapi_extra=_PRIVATE_ROUTE)
async def start_attack(request: Request, board: Slug) -> Response:
    """Start the simulation."""
    await read_form(request)
    context = get_context(request)

    def start(opened_board: Board, caller: Caller) -> None:
        check_permission(caller, "run")
        target = Target.from_board(opened_board)
        if not _is_playable(target):
            raise InvalidSetting(_UNKNOWN_MECHANISM)
        context.attack_jobs.start(
            board, target.describe(), format_time(context.boards.environment.clock())
        )

    try:
        await context.with_board(request, board, start, form=True)
    except InvalidSetting as error:
        return await _show_attack_page(request, board, 422, str(error))
    except AttackRunning as busy:
        which_board = "for this board" if busy.board == board else "for another board"
        message = f"A simulation is already running {which_board}. Wait for it or cancel it."
        return await _show_attack_page(request, board, 409, message)
    except WorkerError:
        raise RequestRefused(
            503, "busy", "No process could be started for the simulation; try again later."
        ) from None
    return redirect(request, f"/boards/{board}/attack")


@router.post("/boards/{board}/attack/cancel", openapi_extra=_PRIVATE_ROUTE)
async def cancel_attack(request: Request, board: Slug) -> Response:
    """Stop the simulation."""
    await read_form(request)
    context = get_context(request)

    def cancel(_: Board, caller: Caller) -> None:
        check_permission(caller, "run")
        context.attack_jobs.cancel(board)

    await context.with_board(request, board, cancel, form=True)
    return redirect(request, f"/boards/{board}/attack")


@router.get("/boards/{board}/attack/progress", openapi_extra=_PRIVATE_ROUTE)
async def attack_progress(request: Request, board: Slug) -> Response:
    """Return the progress of the simulation as JSON, for the page's script."""
    context = get_context(request)

    def read_status(_: Board, caller: Caller) -> dict[str, Any]:
        check_permission(caller, "run")
        return context.attack_jobs.status(board).describe()

    return make_response(request, await context.with_board(request, board, read_status, form=True))
