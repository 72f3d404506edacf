"""The way of a submission: receipt, who sends it, its body, a parser, the desk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ladderboard.board import Sent, allow, check_text
from ladderboard.errors import InvalidPredictions
from ladderboard.server._front import LARGE
from ladderboard.server._intake import BodyLimits, receive
from ladderboard.server._parse import Spec
from ladderboard.server._work import work_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fastapi import Request

    from ladderboard.board import Answer, Board, Caller
    from ladderboard.server._intake import Received
    from ladderboard.server._work import Work

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
    desk = await work.on_board(request, slug, lambda *found: _sit(work, *found), form=form)
    # Who submits for teams is stopped for the team whose files are bad, and not for the others.
    culprit = (slug, desk.caller.team or (desk.caller.credential, team))
    work.invalid.check(culprit)
    request.scope[LARGE] = True
    try:
        async with await receive(request, desk.limits, work.spool) as body:
            return await _ask(work, desk, body, _Told(received, team, message, retry))
    except InvalidPredictions:
        work.invalid.spend(culprit)
        raise


class _Told(NamedTuple):
    """What came along with a body."""

    received: int
    team: str | None
    message: str
    retry: str | None


def _sit(work: Work, board: Board, caller: Caller) -> _Desk:
    """Find out who sends, and what for; those who may not are not read from."""
    allow(caller, "submit")
    row = board.lately()  # limits on files: what counts is looked at again
    rules = board.rules_of(row)
    allow(caller, "submit", rules)
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
