"""Predictions as they were kept at submission, for the close and for corrected labels."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.files import Limits
from ladderboard.holdout import ALIGNED, Submission
from ladderboard.ledger import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ladderboard.board._board import Board
    from ladderboard.board._tables import BoardRow
    from ladderboard.files import Roster
    from ladderboard.losses import Loss

    Sandbox = Callable[[], AbstractContextManager["Parse"]]

__all__ = ["KeptSubmission", "Parse", "kept_predictions"]

_LARGEST = 2**30  # bytes of a file that was accepted under limits that may have been lowered since


class Parse(Protocol):
    """Reads a submitted file in another process, which knows no label and no key."""

    def __call__(
        self,
        roster: Roster,
        loss: Loss,
        limits: Limits,
        body: bytes,
        format: str | None,  # noqa: A002 - the word people use
    ) -> Submission:
        """Return the predictions in the file."""


class KeptSubmission(NamedTuple):
    """Where a submission's predictions are kept, and the entry that has their digest."""

    entry: int
    place: str
    format: str | None


@contextmanager
def kept_predictions(
    board: Board, row: BoardRow, sandbox: Sandbox | None
) -> Iterator[Callable[[KeptSubmission], Submission]]:
    """Give a function that returns what was submitted, checked against the ledger.

    What is kept since 0.1 is the aligned array, which needs no parsing. Older boards kept the file
    as it came. Such files are parsed by ``sandbox`` only, never in this process: it has the labels
    and the key in its memory.
    """
    scorer = board.scorer_of(row)
    with ExitStack() as stack:
        parse: Parse | None = None

        def read(kept: KeptSubmission) -> Submission:
            nonlocal parse
            body = board.stored(kept.place)
            if kept.format == ALIGNED:
                submission = Submission.unpack(body)
            else:
                if parse is None:
                    parse = stack.enter_context(_needed(sandbox)())
                largest = max(board.rules_of(row).files.bytes, len(body), _LARGEST)
                limits = Limits(bytes=largest, rows=2**50, columns=2**20)
                submission = parse(scorer.roster, scorer.loss, limits, body, kept.format)
            if submission.digest != _digest(board, kept.entry):
                raise BrokenLedger(
                    f"The predictions kept for entry {kept.entry} are not those in the ledger."
                )
            return submission

        yield read


def _needed(sandbox: Sandbox | None) -> Sandbox:
    if sandbox is None:
        raise InvalidState(
            "This board keeps submitted files as they came, which are read by a separate process: "
            "use ladderboard board close, or pass sandbox=ladderboard.server.sandbox."
        )
    return sandbox


def _digest(board: Board, entry: int) -> bytes:
    """Return the digest of the predictions that an entry was scored for."""
    with board.reading() as view:
        packed = view.secret(entry)
    if packed is None:
        raise BrokenLedger(f"The secret side of entry {entry} of the ledger is missing.")
    return Secret.unpack(board.book.seal.open(f"secret {entry}", packed)).submission
