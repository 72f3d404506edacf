"""Routes of submissions: from the upload to the answer."""

import hashlib
from collections.abc import Hashable
from contextlib import ExitStack
from typing import Annotated, NamedTuple

from fastapi import Header, Query, Request, Response

from ladderboard.board import (
    AuthorizedUpload,
    Board,
    Caller,
    IncomingSubmission,
    SubmissionAnswer,
    SubmissionRequest,
)
from ladderboard.errors import InvalidPredictions, LadderboardError
from ladderboard.server._api._models import OneSubmission, SubmissionList, SubmissionReply
from ladderboard.server._api._routes import (
    API,
    Slug,
    SubmissionId,
    make_router,
    private_route,
)
from ladderboard.server._context import get_context, make_response, open_board
from ladderboard.server._middleware import OWN_BODY_LIMIT
from ladderboard.server._sandbox import Spec
from ladderboard.server._uploads import CONTENT_TYPES, BodyLimits, receive_body

_MAX_AUTHORIZED = 1000  # uploads that are remembered

router = make_router("submissions")
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
        description="A repeated request with the same key gets the first answer again.",
    ),
]
_FILE = {"schema": {"type": "string", "format": "binary"}}
_BODY = {
    "required": True,
    "description": (
        "Predictions: a table with a row for every id, as CSV, TSV, Parquet, Arrow, JSON Lines or "
        ".npy, which is detected. May be compressed with gzip. "
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
    201: {
        "description": "The submission was scored and counted.",
        "headers": _LOCATION,
    },
    200: {
        "description": "The same submission was answered before, so it was not counted again.",
        "model": SubmissionReply,
        "headers": _LOCATION,
    },
}


@router.post(
    "/boards/{board}/submissions", status_code=201, response_model=SubmissionReply, **_SUBMIT
)
async def submit(
    request: Request,
    board: Slug,
    team: OfTeam = None,
    message: Annotated[str, Query(max_length=500, description="A note for the team.")] = "",
    idempotency_key: Key = None,
) -> Response:
    """Submit predictions, and get the answer at once."""
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


@router.get("/boards/{board}/submissions", response_model=SubmissionList, **private_route())
def list_submissions(
    request: Request,
    board: Slug,
    team: OfTeam = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")] = 100,
    before: Annotated[
        int | None, Query(ge=1, le=2**53, description="The `next` of the page before.")
    ] = None,
) -> Response:
    """Return a team's submissions, newest first."""
    opened, caller = open_board(request, board)
    submissions = opened.as_seen_by(caller).submissions(team, limit=limit, before=before)
    next_cursor = (
        submissions[-1]["number"]
        if len(submissions) == limit and submissions[-1]["number"] > 1
        else None
    )
    return make_response(request, {"submissions": submissions, "next": next_cursor})


@router.get(
    "/boards/{board}/submissions/{submission}", response_model=OneSubmission, **private_route()
)
def get_submission(request: Request, board: Slug, submission: SubmissionId) -> Response:
    """Return one submission, with its receipt."""
    opened, caller = open_board(request, board)
    description = opened.as_seen_by(caller).submission(submission)
    return make_response(request, description)


class SubmissionMeta(NamedTuple):
    """The metadata of a submission; ``received`` is when the request's header arrived."""

    received: int
    team: str | None
    message: str
    idempotency_key: str | None


class _Upload(NamedTuple):
    """An upload that may be read: to which board, by whom, as what, and how it is parsed."""

    board: Board
    caller: Caller
    authorized: AuthorizedUpload
    spec: Spec


async def accept_submission(
    request: Request,
    slug: str,
    *,
    team: str | None = None,
    message: str = "",
    idempotency_key: str | None = None,
    csrf_checked: bool = False,
) -> SubmissionAnswer:
    """Receive, parse and score a submission."""
    context = get_context(request)
    received = context.log.clock()
    meta = SubmissionMeta(received, team, message, idempotency_key)
    key = _authorization_key(request, slug, meta)

    async def authorize(*, anew: bool = False) -> _Upload:
        known: _Upload | None = context.authorized_uploads.pop(key, None)
        if known is not None and known.authorized.fresh and not anew:
            return known
        return await context.authorize_upload(slug, request, _authorize_upload, meta, csrf_checked)

    upload = await authorize()
    # An evaluator is limited for the team whose files are invalid, not for the others.
    sender = (slug, upload.caller.team or (upload.caller.credential, team))
    context.invalid_limiter.check(sender)
    async with context.uploads.slot(sender) as waited:
        if waited:  # the submissions before this one may have used up a limit
            upload = await authorize()
            context.invalid_limiter.check(sender)
        request.scope[OWN_BODY_LIMIT] = True
        try:
            limits = BodyLimits(upload.spec.limits.bytes, context.settings.body_seconds)
            with ExitStack() as announced:
                async with await receive_body(request, limits, context.spool) as body:
                    message = meta.message if body.message is None else body.message
                    come = announced.enter_context(context.announce_submission(upload.board))
                    predictions = await context.parsers.read(upload.spec, body)
                incoming = IncomingSubmission(
                    submission=predictions,
                    received=meta.received,
                    message=message,
                    idempotency_key=meta.idempotency_key,
                )
                sent = SubmissionRequest(upload.caller, incoming, meta.team, upload.authorized)
                answer = await context.submit(upload.board, sent, come)
        except InvalidPredictions:
            context.invalid_limiter.record(sender)
            raise
        except LadderboardError:
            if key is not None:  # refused since it was authorized: say why as if it had not been
                await authorize(anew=True)
            raise
    may_go_on = all(limit.remaining for limit in answer.quota.limits)
    if key is not None and upload.caller.team is not None and may_go_on:
        if len(context.authorized_uploads) >= _MAX_AUTHORIZED:
            context.authorized_uploads.clear()
        context.authorized_uploads[key] = upload
    return answer


def _authorization_key(request: Request, slug: str, meta: SubmissionMeta) -> Hashable:
    """Return what requests have in common that are authorized together; None if they are not.

    A team that submits one file after another is authorized once a second. Whatever changes within
    it, its token included, is checked in the transaction of each submission. After a refusal, and
    after the last submission that a limit allows, the next one is authorized anew.
    """
    headers = request.headers.getlist("authorization")
    if not headers or meta.idempotency_key is not None or meta.team is not None:
        return None
    return slug, hashlib.sha256("\n".join(headers).encode()).digest()


async def check_file(request: Request, slug: str) -> list[str]:
    """Receive and parse a team's file from a form; nothing is scored or counted.

    Returns how the file is read, in sentences. The team's limits do not matter. Every check counts
    as an invalid file, because no submission pays for it.
    """
    context = get_context(request)
    meta = SubmissionMeta(context.log.clock(), None, "", None)
    upload = await context.run_in_thread(_authorize_upload, request, slug, meta, True, True)
    sender = (slug, upload.caller.team)
    context.invalid_limiter.check(sender)
    async with context.uploads.slot(sender):
        context.invalid_limiter.check(sender)
        context.invalid_limiter.record(sender)
        request.scope[OWN_BODY_LIMIT] = True
        limits = BodyLimits(upload.spec.limits.bytes, context.settings.body_seconds)
        async with await receive_body(request, limits, context.spool) as body:
            return await context.parsers.check(upload.spec, body)


def _authorize_upload(
    request: Request,
    slug: str,
    meta: SubmissionMeta,
    csrf_checked: bool,
    check_only: bool = False,
) -> _Upload:
    """Refuse a submission that is not allowed now, before its body is read."""
    context = get_context(request)
    board, caller = open_board(request, slug, csrf_checked=csrf_checked)
    authorized = board.submissions.authorize_upload(
        caller,
        meta.received,
        team=meta.team,
        idempotency_key=meta.idempotency_key,
        check_only=check_only,
    )
    row, specs = authorized.board, context.parser_specs
    key = (board.book.name, row.epoch, row.rules)
    known_key, spec = specs.get(slug, (None, None))
    if spec is None or known_key != key:
        files, scorer = board.rules_of(row).files, board.scorer_of(row)
        spec = Spec(scorer.roster, scorer.loss, files.limits, files.seconds)
        specs[slug] = (key, spec)
    return _Upload(board, caller, authorized, spec)
