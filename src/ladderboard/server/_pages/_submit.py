"""A team's submit page: remaining submissions, the form, the reply, and its history."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from ladderboard._formatting import format_fixed, format_rank, format_time, shared_decimals
from ladderboard.board import (
    Board,
    Caller,
    Role,
    SubmissionAnswer,
    View,
    hash_token,
)
from ladderboard.errors import LadderboardError, NotAllowed
from ladderboard.files import ID_SEPARATOR, DeclaredColumns, Roster
from ladderboard.losses import ExpectedColumns, Loss
from ladderboard.server._api import Slug, accept_submission, check_file
from ladderboard.server._auth import CookieSession, Credentials
from ladderboard.server._context import ServerContext, get_context, open_board, open_page
from ladderboard.server._pages._charts import team_history_chart
from ladderboard.server._pages._rendering import (
    FormFields,
    format_value,
    none_if_hidden,
    page_response,
    page_router,
    read_form,
    redirect,
)
from ladderboard.server._pages._reply import (
    PageProblem,
    ReplyContext,
    ReplyText,
    describe_reply,
    page_problem,
    remaining_text,
)
from ladderboard.server._pages._wording import (
    FILE_FORMATS,
    format_bytes,
    next_minute,
    time_element,
)
from ladderboard.server._problems import RequestRefused

router = page_router()
BeforeNumber = Annotated[int | None, Query(ge=1, le=2**53)]
_SUBMISSIONS_PER_PAGE = 7
_ENDED = {"closing", "closed", "moved"}
_CLOSED_REASONS = {
    "paused": "The board is paused. It takes no submissions until the organiser resumes it.",
    "restored": "The board was restored from a dump, and waits for its organiser.",
    "closing": "The board is being closed. It takes no more submissions.",
    "closed": "The board is closed. It takes no more submissions.",
    "moved": "The board has moved to another server; ask its organiser where.",
}


class FormOutcome(NamedTuple):
    """The outcome of a form: an answer, a problem, or a new token with its session.

    ``is_selection`` if the form was a selection for the finals: nothing is counted for it.
    ``notes`` say how a file was read that was only checked, and can be scored.
    """

    answer: SubmissionAnswer | None = None
    problem: PageProblem | None = None
    is_selection: bool = False
    notes: list[str] | None = None
    token: str | None = None
    new_session: CookieSession | None = None


@router.get("/boards/{board}/submit")
def submit_page(request: Request, board: Slug, before: BeforeNumber = None) -> Response:
    """Show the submit form and the team's history."""
    outcome = FormOutcome(is_selection=request.query_params.get("done") == "selected")
    return show_submit_page(request, board, outcome, before)


@router.post("/boards/{board}/submit")
async def submit_form(request: Request, board: Slug) -> Response:
    """Score the submitted file and show the answer."""
    _check_csrf(request)
    try:
        outcome = FormOutcome(await accept_submission(request, board, csrf_checked=True))
    except (LadderboardError, RequestRefused) as error:
        outcome = FormOutcome(problem=page_problem(error))
    return await get_context(request).run_in_thread(show_submit_page, request, board, outcome)


@router.post("/boards/{board}/check")
async def check_uploaded_file(request: Request, board: Slug) -> Response:
    """Check the file without scoring it, whatever the team has left, and show the result."""
    _check_csrf(request)
    try:
        outcome = FormOutcome(notes=await check_file(request, board))
    except (LadderboardError, RequestRefused) as error:
        outcome = FormOutcome(problem=page_problem(error))
    return await get_context(request).run_in_thread(show_submit_page, request, board, outcome)


def _check_csrf(request: Request) -> None:
    """Refuse a form with a file if its CSRF token, in the query, is wrong."""
    context = get_context(request)
    context.authenticator.check_form(
        request, context.sessions.read(request), request.query_params.get("csrf", "")
    )


def show_submit_page(
    request: Request, slug: str, outcome: FormOutcome, before: int | None = None
) -> Response:
    """Show the page with the outcome of a form."""
    context = get_context(request)
    new_session, problem = outcome.new_session, outcome.problem
    board, caller = open_page(request, slug)
    if new_session is not None:  # the token of the request's own cookie is no longer valid
        credentials = Credentials(session=new_session)
        caller = context.authenticator.resolve(credentials, slug)
    variables = _read_submit_page(context, board, caller, outcome, before)
    response = page_response(
        request,
        "submit.html",
        200 if problem is None else problem.status,
        new_session=new_session,
        problem=problem,
        is_selection=outcome.is_selection,
        notes=outcome.notes,
        token=outcome.token,
        **variables,
    )
    if problem is not None and problem.retry is not None:
        response.headers["Retry-After"] = problem.retry
    return response


class _BoardSnapshot(NamedTuple):
    """A board as a caller sees it at a time."""

    board: Board
    caller: Caller
    view: View
    summary: dict[str, Any]
    now: str


def _read_submit_page(
    context: ServerContext, board: Board, caller: Caller, outcome: FormOutcome, before: int | None
) -> dict[str, Any]:
    view = board.as_seen_by(caller)
    summary, now = view.summary(), format_time(context.boards.environment.clock())
    snapshot, has_team = _BoardSnapshot(board, caller, view, summary, now), caller.team is not None
    team_info = team_variables(board, view, summary, before, now) if has_team else None
    return {
        "board": summary,
        "role": caller.role.name.lower(),
        "team_info": team_info,
        "terms_missing": has_team
        and summary["terms"] is not None
        and not board.terms.summary(caller)["accepted"],
        "answer": outcome.answer,
        "reply": None
        if outcome.answer is None
        else _describe_answer(snapshot, outcome.answer, team_info),
    }


def _describe_answer(
    snapshot: _BoardSnapshot, answer: SubmissionAnswer, team_info: Mapping[str, Any] | None
) -> ReplyText:
    """Return the text of the reply to an answer, with the digits of the team's other scores."""
    visibility, window = snapshot.summary["visibility"], snapshot.summary["window"]
    is_restricted = visibility in {"hidden", "frozen"} and snapshot.caller.role < Role.EVALUATOR
    context = ReplyContext(
        answer.rules.display,
        previous_best=_previous_best(snapshot.view, answer),
        window_seconds=None if window is None else window["seconds"],
        restriction=visibility if is_restricted else None,
        now=snapshot.now,
        decimals=0 if team_info is None else team_info["decimals"],
        rank=None if is_restricted else _own_rank(snapshot.view),
    )
    return describe_reply(answer.describe(), context)


def _own_rank(view: View) -> str | None:
    """Return the rank of the caller's team in the standings, if it has one."""
    row = none_if_hidden(view.own_standing)
    return None if row is None else format_rank(row["rank"], tied=row["tied"]) or None


def _previous_best(view: View, answer: SubmissionAnswer) -> float | None:
    """Return the best loss before this answer, if the caller may see it."""
    previous: float | None = None
    if not answer.release.improved or answer.again:
        return previous
    if answer.rules.ladder == "team":
        submission = view.submission(answer.id)
        earlier = view.submissions(limit=1, before=answer.number)
        # Losses of different epochs, before and after a correction of labels, do not compare.
        if earlier and earlier[0]["epoch"] == submission["epoch"]:
            previous = earlier[0]["loss"]
    elif answer.entry is not None:
        records = none_if_hidden(view.records) or []
        previous = next(
            (record["loss"] for record in reversed(records) if record["entry"] < answer.entry), None
        )
    return previous


@router.post("/boards/{board}/selections")
def select_submissions(request: Request, board: Slug, fields: FormFields) -> Response:
    """Replace the team's selection of submissions for the finals."""
    submission_ids = [value for name, value in fields if name == "submission"]
    try:
        opened, caller = open_board(request, board, csrf_checked=True)
        opened.closer.select_submissions(caller, submission_ids)
    except (LadderboardError, RequestRefused) as error:
        outcome = FormOutcome(problem=page_problem(error), is_selection=True)
        return show_submit_page(request, board, outcome)
    return redirect(request, f"/boards/{board}/submit?done=selected#finals")


@router.post("/boards/{board}/token", dependencies=[Depends(read_form)])
def rotate_token(request: Request, board: Slug) -> Response:
    """Replace the team's token and show the new one once; the browser stays signed in."""
    try:
        opened, caller = open_board(request, board, csrf_checked=True)
        created = opened.teams.rotate_token(caller)
    except (LadderboardError, RequestRefused) as error:
        return show_submit_page(request, board, FormOutcome(problem=page_problem(error)))
    new_session = None
    if caller.identity is None:  # otherwise the session is a person's, and goes on
        new_session = get_context(request).sessions.start(hash_token(created.token))
    return show_submit_page(
        request, board, FormOutcome(token=created.token, new_session=new_session)
    )


class FinalSelection(NamedTuple):
    """A team's selection for the finals: the limit, how many it selected, and whether it is final.

    ``on_other_pages`` are selected submissions that this page of the history does not list;
    ``unselected_best`` is the number of the team's best one if it selected only others, and
    ``counted`` the number of the one that decided its place in the final ranking, whose row is
    ``final``.
    """

    limit: int
    selected: int
    on_other_pages: tuple[Mapping[str, Any], ...]
    unselected_best: int | None
    locked: bool
    counted: int | None
    final: Mapping[str, Any] | None


def team_variables(
    board: Board, view: View, summary: Mapping[str, Any], before: int | None, now: str
) -> dict[str, Any]:
    """Return the template variables that only a team's members see."""
    team, window = view.team(), summary["window"]
    submissions = view.submissions(limit=_SUBMISSIONS_PER_PAGE, before=before)
    seconds = None if window is None else window["seconds"]
    following = team["next_submission_at"]
    decimals = release_decimals(submissions, summary["display"]["digits"])
    row = board.row()
    chart = older = selection = None
    history = view.own_history() if team["submissions"] else None
    if submissions and history is not None:
        chart = team_history_chart(history_from_first_record(history))
        if len(submissions) == _SUBMISSIONS_PER_PAGE and submissions[-1]["number"] > 1:
            older = submissions[-1]["number"]
    if history is not None:
        bests = [point["number"] for point in history["points"] if point["improved"]]
        selection = _read_selection(board, view, summary, submissions, bests[-1:])
    return {
        "team": team,
        "remaining": remaining_text(team["limits"], seconds, following, now),
        "closed_reason": closed_reason(summary, now),
        "has_none_left": following is None and not team["remaining"],
        "submissions": [
            {
                **submission,
                "release": release_text(submission, decimals),
                "further": [
                    format_value(metric["display"], metric["digits"]) if metric["improved"] else "–"
                    for metric in submission["metrics"]
                ],
            }
            for submission in submissions
        ],
        "decimals": decimals,
        "all_scored": board.book.mechanism.scores_every_question,
        "chart": chart,
        "older": older,
        "newer": before is not None,
        "file_format": describe_file_format(board.rules_of(row).loss, board.scorer_of(row).roster),
        "size": format_bytes(summary["files"]["bytes"]),
        "formats": FILE_FORMATS,
        "selection": selection,
    }


def history_from_first_record(history: Mapping[str, Any]) -> dict[str, Any]:
    """Return a history for the chart, without the points before the first record.

    >>> start = {"loss": 1.0, "display": 0.0, "improved": False}
    >>> first = {"loss": 0.2, "display": 0.8, "improved": True}
    >>> history = history_from_first_record({"points": [start, first]})
    >>> [point["display"] for point in history["points"]]
    [None, 0.8]
    """
    points = [
        {**point, "display": None} if _has_no_record(point) else point
        for point in history["points"]
    ]
    return {**history, "points": points}


def _has_no_record(submission: Mapping[str, Any]) -> bool:
    """Tell whether the team had no record after a submission."""
    return submission["loss"] is not None and submission["loss"] >= 1 and not submission["improved"]


def release_decimals(submissions: Iterable[Mapping[str, Any]], digits: int) -> int:
    """Return how many decimals a column of released scores needs, at most ``digits``."""
    shown = [row for row in submissions if row["display"] is not None and not _has_no_record(row)]
    numbers = [row["display"] if row["score"] is None else row["score"] for row in shown]
    return shared_decimals(numbers, digits)


def release_text(submission: Mapping[str, Any], decimals: int) -> str:
    """Return the score of a submission, for a table cell; a dash if it was not released.

    >>> release_text({"display": 0.8, "loss": 0.2, "improved": True, "score": None}, 2)
    '0.80'
    >>> release_text({"display": 0.8, "loss": 0.2, "improved": False, "score": None}, 2)
    '–'
    >>> release_text({"display": 0.8, "loss": 0.2, "improved": False, "score": 0.7}, 2)
    '0.70'
    >>> release_text({"display": 0.0, "loss": 1.0, "improved": False}, 2)
    'none yet'
    >>> release_text({"display": None, "loss": None, "improved": True}, 2)
    'not shown'
    """
    if submission["display"] is None:
        return "not shown"
    if _has_no_record(submission):
        return "none yet"
    if submission["score"] is not None:  # every submission gets its score
        return format_fixed(submission["score"], decimals)
    return format_fixed(submission["display"], decimals) if submission["improved"] else "–"


def closed_reason(summary: Mapping[str, Any], now: str) -> Markup | None:
    """Return why a board accepts no submissions now; None if it does.

    >>> phase = {"name": "main", "start": "2026-11-20T00:00:00Z", "end": None}
    >>> board = {"status": "open", "phase": None, "phases": [phase], "deadline": None}
    >>> closed_reason(board, "2026-11-16T14:05:00Z").striptags()
    'The board opens at 2026-11-20 00:00 UTC.'
    >>> closed_reason({**board, "phase": "main"}, "2026-11-20T14:05:00Z")
    """
    if summary["status"] in _CLOSED_REASONS:
        return Markup("{}").format(_CLOSED_REASONS[summary["status"]])
    if summary["phase"] is not None:
        return None
    starts = [phase["start"] for phase in summary["phases"] if phase["start"] is not None]
    soonest = min((start for start in starts if start > now), default=None)
    if soonest is not None:
        return Markup("The board opens at {}.").format(time_element(next_minute(soonest)))
    if summary["deadline"] is None:
        return Markup("The board takes no submissions now.")
    return Markup("The deadline was {}.").format(time_element(summary["deadline"]))


def _read_selection(
    board: Board,
    view: View,
    summary: Mapping[str, Any],
    submissions: list[dict[str, Any]],
    best: list[int],
) -> FinalSelection | None:
    """Return the selection; ``best`` is the number of the team's best submission, if it has one."""
    row = board.row()
    if not board.epoch_of(row).ranked:
        return None
    selected, listed = view.selections(), {submission["id"] for submission in submissions}
    others = tuple(view.submission(id_) for id_ in selected if id_ not in listed)
    limit = board.rules_of(row).selections
    numbers = {row["number"] for row in (*submissions, *others) if row["selected"]}
    unselected = next((number for number in best if numbers and number not in numbers), None)
    is_ranked = row.status == "closed" and row.final is not None
    final = _own_final_row(view) if is_ranked else None
    counted = None if final is None else view.submission(final["submission"])["number"]
    locked = summary["status"] in _ENDED
    return FinalSelection(limit, len(selected), others, unselected, locked, counted, final)


def _own_final_row(view: View) -> dict[str, Any] | None:
    """Return the team's row in the final ranking, with its rank and score as text; None if none."""
    try:
        final, own_id = view.finals(), view.team()["id"]
    except NotAllowed:  # the standings are hidden
        return None
    row = next((row for row in final["rows"] if row["team"]["id"] == own_id), None)
    if row is None:
        return None
    decimals = shared_decimals(
        (other["display"] for other in final["rows"]), final["display"]["digits"]
    )
    is_tied = sum(other["rank"] == row["rank"] for other in final["rows"]) > 1
    rank = format_rank(row["rank"], tied=is_tied)
    return {**row, "rank_text": rank, "score_text": format_fixed(row["display"], decimals)}


_EXAMPLE_COLUMNS = 3  # shown at most
_ELLIPSIS = "..."


class FileFormat(NamedTuple):
    """The number of rows of a file, a sentence for each kind of column, and its first lines."""

    rows: int
    column_rules: tuple[str, ...]
    example: tuple[tuple[str, ...], ...]


def describe_file_format(loss: Loss, roster: Roster) -> FileFormat:
    """Return the format of a file. It depends on the declared rules, never on the labels.

    >>> from ladderboard.files import Roster
    >>> from ladderboard.losses import ZeroOne
    >>> loss, roster = ZeroOne(classes=("cat", "dog")), Roster.of(["a", "b", "c"])
    >>> file_format = describe_file_format(loss, roster)
    >>> file_format.column_rules[1]
    'prediction: one of cat, dog.'
    >>> file_format.example
    (('id', 'prediction'), ('a', 'cat'), ('b', 'cat'))

    With declared columns it has their names:

    >>> from ladderboard.files import DeclaredColumns
    >>> declared = DeclaredColumns(id=("image",), prediction=("animal",))
    >>> roster = Roster.of(["a", "b"], columns=declared)
    >>> describe_file_format(loss, roster).example[0]
    ('image', 'animal')
    >>> describe_file_format(loss, roster).column_rules
    ('image: each id once, in any order.', 'animal: one of cat, dog.')
    """
    declared = roster.columns or DeclaredColumns()
    id_names = declared.id or ("id",)
    ids = roster.first_ids[:2]
    id_rule = "the row's number, from 0" if roster.ids is None else "each id once, in any order"
    columns = loss.columns(kind=roster.kind, width=roster.width)
    header, values = _first_columns(columns, declared.submitted or columns.names)
    cells = [str(id_).split(ID_SEPARATOR) if len(id_names) > 1 else [str(id_)] for id_ in ids]
    lines = ((*id_names, *header), *((*parts, *values) for parts in cells))
    rules = columns.rules
    if len(declared.submitted) == 1:
        rules = tuple(rule.replace("prediction:", f"{declared.submitted[0]}:", 1) for rule in rules)
    if not declared.id:
        rules = (*rules, "A file without ids is matched by position.")
    return FileFormat(roster.n, (f"{' and '.join(id_names)}: {id_rule}.", *rules), lines)


def _first_columns(
    columns: ExpectedColumns, all_names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the first columns and a value for each, dots in place of the rest."""
    names = all_names[:_EXAMPLE_COLUMNS]
    values = columns.example[:_EXAMPLE_COLUMNS] or (_ELLIPSIS,)
    values = (*values, *values[-1:] * len(names))[: len(names)]
    rest = (_ELLIPSIS,) * (len(all_names) > len(names))
    return (*names, *rest), (*values, *rest)
