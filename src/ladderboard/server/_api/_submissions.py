"""Submissions: the way of a body from its receipt to the reply."""

import re
from collections.abc import Callable, Coroutine, Hashable
from typing import Annotated, Any, NamedTuple

from fastapi import Header, Query, Request, Response

from ladderboard.board import Board, Caller, IncomingSubmission, SubmissionAnswer, check_text
from ladderboard.errors import InvalidPredictions
from ladderboard.server._api._models import OneSubmission, SubmissionList, SubmissionReply
from ladderboard.server._api._routes import API, Route, Slug, SubmissionId, make_router, private
from ladderboard.server._content_types import CONTENT_TYPES
from ladderboard.server._context import Work, reply, work_of
from ladderboard.server._middleware import LARGE
from ladderboard.server._sandbox import Spec
from ladderboard.server._uploads import BodyLimits, Received, receive

router = make_router("submissions")
_MESSAGE = 500  # characters
OfTeam = Annotated[
    str | None,
    Query(pattern="^[0-9a-f]{16}$", description="A team's id, for evaluators and organisers."),
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern="^[ -~]+$",
        description="Under which this may be sent again, and is answered once.",
    ),
]
_FILE = {"schema": {"type": "string", "format": "binary"}}
_BODY = {
    "required": True,
    "description": (
        "Predictions: a table with a row for every id, as CSV, TSV, Parquet, Arrow, JSON Lines or "
        ".npy, which is found out. May be packed with gzip. "
        f"A raw body may also have its own content type: {', '.join(CONTENT_TYPES)}."
    ),
    "content": {
        "application/octet-stream": _FILE,
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "additionalProperties": False,
                "properties": {
                    "file": {"type": "string", "format": "binary"},
                    "message": {"type": "string", "maxLength": 500},
                },
            },
            "encoding": {"file": {"contentType": ", ".join(CONTENT_TYPES)}},
        },
    },
}
_LOCATION = {"Location": {"description": "The submission.", "schema": {"type": "string"}}}
_SUBMIT = private(408, 409, 413, 415, 507, requestBody=_BODY)
_SUBMIT["responses"] |= {
    201: {"description": "A question was asked, and this is the answer.", "headers": _LOCATION},
    200: {
        "description": "This was answered before; nothing was counted.",
        "model": SubmissionReply,
        "headers": _LOCATION,
    },
}


_PLAIN_SLUG = re.compile("[a-z0-9][a-z0-9-]{0,62}")
_PLAIN_KEY = re.compile("[ -~]{1,255}")


class _Straight(Route):
    """A route that goes straight to its function where there is little to look at.

    To find and check parameters takes as long as much of the rest, and most submissions have a
    token, perhaps a key, and nothing else. Whatever is unusual goes the long way, and is refused
    there if need be.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        handler = super().get_route_handler()

        async def straight(request: Request) -> Response:
            board, keys = request.path_params["board"], request.headers.getlist("idempotency-key")
            if (
                request.scope["query_string"]
                or "*/*" not in request.headers.get("accept", "*/*")
                or not _PLAIN_SLUG.fullmatch(board)
                or len(keys) > 1
                or not all(map(_PLAIN_KEY.fullmatch, keys))
            ):
                return await handler(request)
            return await submit(request, board, idempotency_key=keys[0] if keys else None)

        return straight


async def submit(
    request: Request,
    board: Slug,
    team: OfTeam = None,
    message: Annotated[str, Query(max_length=500, description="A note for yourselves.")] = "",
    idempotency_key: Key = None,
) -> Response:
    """Ask a question: send predictions, and hear at once what is released."""
    answer: SubmissionAnswer = await accept_submission(
        request, board, team=team, message=message, retry=idempotency_key
    )
    prefix = work_of(request).settings.prefix
    return reply(
        request,
        answer.describe(),
        200 if answer.again else 201,
        headers={"Location": f"{prefix}{API}/boards/{board}/submissions/{answer.id}"},
    )


router.add_api_route(
    "/boards/{board}/submissions",
    submit,
    methods=["POST"],
    status_code=201,
    response_model=SubmissionReply,
    route_class_override=_Straight,
    **_SUBMIT,
)


@router.get("/boards/{board}/submissions", response_model=SubmissionList, **private())
async def list_submissions(
    request: Request,
    board: Slug,
    team: OfTeam = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")] = 100,
    before: Annotated[
        int | None, Query(ge=1, le=2**53, description="The `next` of the page before.")
    ] = None,
) -> Response:
    """Return a team's submissions, newest first."""

    def look(found: Board, caller: Caller) -> list[dict[str, Any]]:
        return found.as_seen_by(caller).submissions(team, limit=limit, before=before)

    said = await work_of(request).on_board(request, board, look)
    last = said[-1]["number"] if len(said) == limit and said[-1]["number"] > 1 else None
    return reply(request, {"submissions": said, "next": last})


@router.get("/boards/{board}/submissions/{submission}", response_model=OneSubmission, **private())
async def get_submission(request: Request, board: Slug, submission: SubmissionId) -> Response:
    """Return one submission, with its receipt."""
    said = await work_of(request).on_board(
        request, board, lambda found, caller: found.as_seen_by(caller).submission(submission)
    )
    return reply(request, said)


class _Desk(NamedTuple):
    """What must be known before a body is read."""

    board: Board
    caller: Caller
    spec: Spec
    key: Hashable
    limits: BodyLimits


async def accept_submission(
    request: Request,
    slug: str,
    *,
    team: str | None = None,
    message: str = "",
    retry: str | None = None,
    form: bool = False,
) -> SubmissionAnswer:
    """Answer a submission. The time of receipt is when its head was there.

    A ``form`` of ours was checked before.
    """
    work = work_of(request)
    received = work.boards.world.clock()
    told = _Told(received, team, message, retry)
    desk = await work.on_board(request, slug, lambda *found: _sit(work, told, *found), form=form)
    # An evaluator is stopped for the team whose files are bad, and not for the others.
    culprit = (slug, desk.caller.team or (desk.caller.credential, team))
    work.invalid.check(culprit)
    async with work.uploads.turn(culprit) as waited:
        if waited:  # the submissions before this one may have used up a limit
            await work.in_thread(lambda: _authorize(desk.board, desk.caller, told))
            work.invalid.check(culprit)
        request.scope[LARGE] = True
        try:
            async with await receive(request, desk.limits, work.spool) as body:
                return await _ask(work, desk, body, told)
        except InvalidPredictions:
            work.invalid.spend(culprit)
            raise


class _Told(NamedTuple):
    """What came along with a body."""

    received: int
    team: str | None
    message: str
    retry: str | None


def _authorize(board: Board, caller: Caller, told: _Told) -> None:
    board.authorize_upload(caller, told.received, team=told.team, retry=told.retry)


def _sit(work: Work, told: _Told, board: Board, caller: Caller) -> _Desk:
    """Find out who sends; refuse what cannot be taken now, before its body is read."""
    _authorize(board, caller, told)
    row = board.cached_row()
    rules = board.rules_of(row)
    scorer = board.scorer_of(row)
    limits = rules.files.limits
    seconds = rules.files.seconds
    key = (board.book.name, row.epoch, limits.bytes, limits.rows, seconds)
    spec = work.specs.get(slug := board.slug)
    if spec is None or spec[0] != key:
        spec = work.specs[slug] = (key, Spec(scorer.roster, scorer.loss, limits, seconds))
    patience = work.settings.body_seconds
    return _Desk(board, caller, spec[1], key, BodyLimits(limits.bytes, patience))


async def _ask(work: Work, desk: _Desk, body: Received, told: _Told) -> SubmissionAnswer:
    said = told.message if body.message is None else body.message
    message = check_text("A message", said, at_most=_MESSAGE, lines=True)
    submission = await work.parsers.read(desk.key, desk.spec, body)
    sent = IncomingSubmission(
        submission=submission,
        received=told.received,
        message=message,
        retry=told.retry,
    )
    return await work.in_thread(lambda: desk.board.submit(desk.caller, sent, told.team), write=True)
