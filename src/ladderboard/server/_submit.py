"""The way of a submission: receipt, who sends it, its body, a parser, the desk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ladderboard.board import Sent, check_text
from ladderboard.errors import InvalidPredictions
from ladderboard.server._context import work_of
from ladderboard.server._middleware import LARGE
from ladderboard.server._sandbox import Spec
from ladderboard.server._uploads import BodyLimits, receive

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fastapi import Request

    from ladderboard.board import Answer, Board, Caller
    from ladderboard.server._context import Work
    from ladderboard.server._uploads import Received

__all__ = ["submit"]

_MESSAGE = 500  # characters


class _Desk(NamedTuple):
    """What must be known before a body is read."""

    board: Board
    caller: Caller
    spec: Spec
    key: Hashable
    limits: BodyLimits


async def submit(
    request: Request,
    slug: str,
    *,
    team: str | None = None,
    message: str = "",
    retry: str | None = None,
    form: bool = False,
) -> Answer:
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
    row = board.lately()
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


async def _ask(work: Work, desk: _Desk, body: Received, told: _Told) -> Answer:
    said = told.message if body.message is None else body.message
    message = check_text("A message", said, at_most=_MESSAGE, lines=True)
    submission = await work.parsers.read(desk.key, desk.spec, body)
    sent = Sent(
        submission=submission,
        received=told.received,
        message=message,
        retry=told.retry,
    )
    return await work.in_thread(lambda: desk.board.submit(desk.caller, sent, told.team), write=True)
