"""The page to submit with: what is left, the form, the reply, and one's own history."""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ladderboard.board import Answer, Board, Caller, Role, View, moment
from ladderboard.errors import LadderboardError
from ladderboard.holdout import unseen
from ladderboard.server._api import Slug, accept_submission
from ladderboard.server._auth import Session, Shown
from ladderboard.server._context import Work, work_of
from ladderboard.server._pages._own import own_affairs
from ladderboard.server._pages._page import or_none, show
from ladderboard.server._pages._refused import Trouble, trouble_of
from ladderboard.server._pages._reply import Reply, Scene, reply_words
from ladderboard.server._pages._words_rules import EVERY
from ladderboard.server._problems import Refused

__all__ = ["Said", "router", "show_submit"]

router = APIRouter(include_in_schema=False)
Before = Annotated[int | None, Query(ge=1, le=2**53)]


class Said(NamedTuple):
    """What the page says besides what it always does: an answer, a refusal, a new token."""

    answer: Answer | None = None
    trouble: Trouble | None = None
    token: str | None = None
    begun: Session | None = None


@router.get("/boards/{board}/submit")
async def submit_page(request: Request, board: Slug, before: Before = None) -> Response:
    """Show the form to submit with, and one's own history."""
    return await show_submit(request, board, Said(), before)


@router.post("/boards/{board}/submit")
async def send_page(request: Request, board: Slug) -> Response:
    """Take the form, and show the answer."""
    work = work_of(request)
    work.who.check_form(request, work.sessions.read(request), request.query_params.get("csrf", ""))
    try:
        answer: Answer = await accept_submission(request, board, form=True)
    except (LadderboardError, Refused) as error:
        return await show_submit(request, board, Said(trouble=trouble_of(error)))
    return await show_submit(request, board, Said(answer))


async def show_submit(
    request: Request, slug: str, said: Said, before: int | None = None
) -> Response:
    """Show the page, with what came of a form."""
    work = work_of(request)

    def look(board: Board, caller: Caller) -> dict[str, Any]:
        return _look(work, board, caller, said, before)

    # Whoever has just got a new token is known by that one.
    begun, trouble = said.begun, said.trouble
    found = await (
        work.on_page(request, slug, lambda board, caller: look(_there(board), caller))
        if begun is None
        else work.in_thread(
            lambda: look(work.boards.open(slug), work.who.find(Shown(begun.hashed, begun), slug))
        )
    )
    response = show(
        request,
        "submit.html",
        200 if trouble is None else trouble.status,
        begun=begun,
        trouble=trouble,
        token=said.token,
        **found,
    )
    if trouble is not None and trouble.retry is not None:
        response.headers["Retry-After"] = trouble.retry
    return response


def _there(board: Board | None) -> Board:
    assert board is not None  # noqa: S101 - it was asked for
    return board


class _Sight(NamedTuple):
    """A board through somebody's eyes, now."""

    board: Board
    caller: Caller
    view: View
    summary: dict[str, Any]
    now: str


def _look(
    work: Work, board: Board, caller: Caller, said: Said, before: int | None
) -> dict[str, Any]:
    view = board.as_seen_by(caller)
    summary, now = view.summary(), moment(work.boards.world.clock())
    sight, own = _Sight(board, caller, view, summary, now), caller.team is not None
    return {
        "board": summary,
        "role": caller.role.name.lower(),
        "own": own_affairs(board, view, summary, before, now) if own else None,
        "answer": said.answer,
        "every": summary["mechanism"]["mechanism"] in EVERY,
        "reply": None if said.answer is None else _reply(sight, said.answer),
    }


def _reply(sight: _Sight, answer: Answer) -> Reply:
    """Return an answer in words."""
    visibility, window = sight.summary["visibility"], sight.summary["window"]
    veiled = visibility in {"hidden", "frozen"} and sight.caller.role < Role.EVALUATOR
    scene = Scene(
        answer.rules.display,
        gain=unseen(sight.board.book.mechanism),
        before=_before(sight.view, answer),
        window=None if window is None else window["seconds"],
        veil=visibility if veiled else None,
        now=sight.now,
    )
    return reply_words(answer.describe(), scene)


def _before(view: View, answer: Answer) -> float | None:
    """Return what stood on the ladder before, as far as it may be seen."""
    found: float | None = None
    if not answer.release.improved or answer.again:
        return found
    if answer.rules.ladder == "team":
        this = view.submission(answer.id)
        earlier = view.submissions(limit=1, before=answer.number)
        if earlier and earlier[0]["epoch"] == this["epoch"]:  # else labels were corrected
            found = earlier[0]["loss"]
    elif answer.entry is not None:
        records = or_none(view.records) or []
        found = next(
            (each["loss"] for each in reversed(records) if each["entry"] < answer.entry), None
        )
    return found
