"""Routes of submissions: from the upload to the answer."""

import re
from collections.abc import Callable, Coroutine, Hashable
from typing import Annotated, Any, NamedTuple

from fastapi import Header, Query, Request, Response

from ladderboard.board import Board, Caller, IncomingSubmission, SubmissionAnswer, check_text
from ladderboard.errors import InvalidPredictions
from ladderboard.server._api._models import OneSubmission, SubmissionList, SubmissionReply
from ladderboard.server._api._routes import (
    API,
    Route,
    Slug,
    SubmissionId,
    make_router,
    private_route,
)
from ladderboard.server._content_types import CONTENT_TYPES
from ladderboard.server._context import ServerContext, get_context, make_response
from ladderboard.server._middleware import OWN_BODY_LIMIT
from ladderboard.server._sandbox import Spec
from ladderboard.server._uploads import BodyLimits, ReceivedBody, receive_body

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
_SUBMIT = private_route(408, 409, 413, 415, 507, requestBody=_BODY)
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


class _UploadRoute(Route):
    """A route that skips FastAPI's validation for ordinary requests.

    Validation takes as long as much of the rest, and most submissions have only a token and perhaps
    an idempotency key. Any other request takes the normal path and is refused there if needed.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        handler = super().get_route_handler()

        async def skip_validation(request: Request) -> Response:
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

        return skip_validation


async def submit(
    request: Request,
    board: Slug,
    team: OfTeam = None,
    message: Annotated[str, Query(max_length=500, description="A note for yourselves.")] = "",
    idempotency_key: Key = None,
) -> Response:
    """Ask a question: send predictions, and hear at once what is released."""
    answer: SubmissionAnswer = await accept_submission(
        request, board, team=team, message=message, idempotency_key=idempotency_key
    )
    prefix = get_context(request).settings.prefix
    return make_response(
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
    route_class_override=_UploadRoute,
    **_SUBMIT,
)


@router.get("/boards/{board}/submissions", response_model=SubmissionList, **private_route())
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

    def read(opened: Board, caller: Caller) -> list[dict[str, Any]]:
        return opened.as_seen_by(caller).submissions(team, limit=limit, before=before)

    submissions = await get_context(request).with_board(request, board, read)
    next_cursor = (
        submissions[-1]["number"]
        if len(submissions) == limit and submissions[-1]["number"] > 1
        else None
    )
    return make_response(request, {"submissions": submissions, "next": next_cursor})


@router.get(
    "/boards/{board}/submissions/{submission}", response_model=OneSubmission, **private_route()
)
async def get_submission(request: Request, board: Slug, submission: SubmissionId) -> Response:
    """Return one submission, with its receipt."""
    description = await get_context(request).with_board(
        request, board, lambda opened, caller: opened.as_seen_by(caller).submission(submission)
    )
    return make_response(request, description)


class UploadContext(NamedTuple):
    """What is needed before a body is read."""

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
    idempotency_key: str | None = None,
    form: bool = False,
) -> SubmissionAnswer:
    """Receive, parse and score a submission. Its time is when the request's header arrived.

    With ``form`` the CSRF token has been checked already.
    """
    context = get_context(request)
    received = context.boards.environment.clock()
    meta = SubmissionMeta(received, team, message, idempotency_key)
    upload = await context.with_board(
        request, slug, lambda *args: _authorize_upload(context, meta, *args), form=form
    )
    # An evaluator is limited for the team whose files are invalid, not for the others.
    sender = (slug, upload.caller.team or (upload.caller.credential, team))
    context.invalid_limiter.check(sender)
    async with context.uploads.slot(sender) as waited:
        if waited:  # the submissions before this one may have used up a limit
            await context.run_in_thread(
                lambda: _check_may_submit(upload.board, upload.caller, meta)
            )
            context.invalid_limiter.check(sender)
        request.scope[OWN_BODY_LIMIT] = True
        try:
            async with await receive_body(request, upload.limits, context.spool) as body:
                return await _score_upload(context, upload, body, meta)
        except InvalidPredictions:
            context.invalid_limiter.record(sender)
            raise


class SubmissionMeta(NamedTuple):
    """The metadata of a submission."""

    received: int
    team: str | None
    message: str
    idempotency_key: str | None


def _check_may_submit(board: Board, caller: Caller, meta: SubmissionMeta) -> None:
    board.authorize_upload(
        caller, meta.received, team=meta.team, idempotency_key=meta.idempotency_key
    )


def _authorize_upload(
    context: ServerContext, meta: SubmissionMeta, board: Board, caller: Caller
) -> UploadContext:
    """Refuse a submission that is not allowed now, before its body is read."""
    _check_may_submit(board, caller, meta)
    row = board.cached_row()
    rules = board.rules_of(row)
    scorer = board.scorer_of(row)
    limits = rules.files.limits
    seconds = rules.files.seconds
    key = (board.book.name, row.epoch, limits.bytes, limits.rows, seconds)
    spec = context.parser_specs.get(slug := board.slug)
    if spec is None or spec[0] != key:
        spec = context.parser_specs[slug] = (key, Spec(scorer.roster, scorer.loss, limits, seconds))
    patience = context.settings.body_seconds
    return UploadContext(board, caller, spec[1], key, BodyLimits(limits.bytes, patience))


async def _score_upload(
    context: ServerContext, upload: UploadContext, body: ReceivedBody, meta: SubmissionMeta
) -> SubmissionAnswer:
    text = meta.message if body.message is None else body.message
    message = check_text("A message", text, at_most=_MESSAGE, lines=True)
    submission = await context.parsers.read(upload.key, upload.spec, body)
    incoming = IncomingSubmission(
        submission=submission,
        received=meta.received,
        message=message,
        idempotency_key=meta.idempotency_key,
    )
    return await context.run_in_thread(
        lambda: upload.board.submit(upload.caller, incoming, meta.team), write=True
    )
