"""What the services of one board share: its ledger and its store, its rules and its labels."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.board._folder import split_mask
from ladderboard.board._queue import TransactionQueue
from ladderboard.board._repository import read_board, sample_key
from ladderboard.board._rules import Rules
from ladderboard.board._standings import read_records
from ladderboard.holdout import Meter, Scorer, decode_sample

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ladderboard.board._model import BoardRow, TeamRow
    from ladderboard.board._standings import RecordHistory
    from ladderboard.board._store import SubmissionStore
    from ladderboard.files import HoldoutTable, Limits
    from ladderboard.ledger import Book, ChainState, ReadView


class _LabelEpoch(NamedTuple):
    """The labels between two corrections, and the scorer that uses them."""

    number: int
    limits: Limits
    table: HoldoutTable
    scorer: Scorer
    ranked: bool
    """Whether the split has private rows, so that there is a final ranking."""


class BoardContext:
    """A board's ledger and store, with its cached rules and labels; thread-safe.

    The database is authoritative: rules, status and epoch are read with every submission, and
    cached values are used only if they still match.
    """

    def __init__(self, book: Book, store: SubmissionStore, slug: str) -> None:
        self.book, self.store, self.slug = book, store, slug
        self.queue = TransactionQueue(book)
        self._rules: tuple[str, Rules] | None = None
        self._epoch: _LabelEpoch | None = None
        self._records: tuple[BoardRow, ChainState, RecordHistory] | None = None

    def reading(self) -> AbstractContextManager[ReadView]:
        """Begin to read the board's tables, as they are now."""
        return self.book.reading()

    def row(self) -> BoardRow:
        """Return the board's current row."""
        with self.reading() as view:
            return self.read_row(view)

    def read_row(self, view: ReadView) -> BoardRow:
        """Return the board's row in an open view."""
        return read_board(view)

    def cache_key(self) -> tuple[BoardRow, ChainState]:
        """Return a value that changes whenever anything visible on the board changes.

        Every change to teams or records also appends an entry or changes the board's row. On a
        hidden or frozen board the value is secret: compare it, but never show it.
        """
        with self.reading() as view:
            return self.read_row(view), view.chain_state()

    @property
    def rules(self) -> Rules:
        """The current rules."""
        return self.rules_of(self.row())

    def rules_of(self, row: BoardRow) -> Rules:
        """Return the rules in a row; they are parsed again only if they changed."""
        cached = self._rules
        if cached is None or cached[0] != row.rules:
            cached = (row.rules, Rules.from_description(json.loads(row.rules)))
            self._rules = cached
        return cached[1]

    def epoch_of(self, row: BoardRow) -> _LabelEpoch:
        """Return the labels of the row's epoch, with their scorer; cached."""
        cached, limits = self._epoch, self.rules_of(row).files.limits
        if cached is None or cached.number != row.epoch:
            table = decode_sample(self.book.read_encrypted(sample_key(row.epoch)))
            loss = self.rules_of(row).loss
            scorer = Scorer(table, loss, limits, rows=split_mask(table, "public"))
            private = split_mask(table, "private")
            ranked = private is not None and bool(private.any())
            cached = self._epoch = _LabelEpoch(row.epoch, limits, table, scorer, ranked)
        elif cached.limits != limits:
            scorer = cached.scorer.with_limits(limits)
            cached = self._epoch = cached._replace(limits=limits, scorer=scorer)
        return cached

    def scorer_of(self, row: BoardRow) -> Scorer:
        """Return the scorer of the public split."""
        return self.epoch_of(row).scorer

    def scorer(self) -> Scorer:
        """Return the current scorer of the public split."""
        return self.scorer_of(self.row())

    def ladder_of(self, row: BoardRow, team: TeamRow) -> str:
        """Return the name of a team's ladder in the row's epoch."""
        name = "" if self.rules_of(row).ladder == "board" else team.id
        return name if row.epoch == 0 else f"{name} epoch {row.epoch}".strip()

    def cached_records(self, view: ReadView, row: BoardRow, state: ChainState) -> RecordHistory:
        """Return the board's records; they are read again only if anything changed."""
        cached = self._records
        if cached is None or cached[:2] != (row, state):
            cached = self._records = (row, state, read_records(view, row.epoch, state))
        return cached[2]

    def meter(self, row: BoardRow, state: ChainState) -> Meter:
        """Return the meter: how much of the budget is used, and what can be promised."""
        opened = self.book.opening["rules"]
        rules: dict[str, Any] = {
            **opened,
            "questions": self.rules_of(row).questions,
            "declared": opened["questions"],
        }
        rules["corrected"] = row.epoch > 0
        return Meter(self.book.mechanism, rules, state)

    def smallest_visible_gain(self, released: float | None) -> float:
        """Return the gain over a released value that is shown 19 times out of 20; 0 for any."""
        visible = partial(
            self.book.mechanism.smallest_visible_gain, n=self.book.opening["rules"]["worth"]
        )
        return visible() if released is None else visible(released=released)

    def read_stored_file(self, location: str) -> bytes:
        """Return the stored bytes of a submission."""
        with self.store.get(location) as file:
            return file.read()
