"""Amending: pausing, going on, changing what may change, and correcting labels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ladderboard.board._access import allow
from ladderboard.board._limits import recount
from ladderboard.board._replay import replay
from ladderboard.board._seats import UNNAMED, tell_names_apart
from ladderboard.board._tables import ENDED, read_board, written
from ladderboard.errors import InvalidLabels, InvalidSetting, NotOpen
from ladderboard.holdout import keep_sample, sample_digest, write_sample
from ladderboard.ledger import Commitment, Entry, digest, write_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board._board import Board
    from ladderboard.board._kept import Sandbox
    from ladderboard.board._people import Caller
    from ladderboard.board._rules import Rules
    from ladderboard.board._tables import BoardRow
    from ladderboard.files import HoldoutTable
    from ladderboard.ledger import SqlReading, SqlWriting, Turn

__all__ = ["Amending", "refuse_unlabelled"]

_STATUS = "UPDATE main.board SET status = ? WHERE book = ?"
_RULES = (
    "UPDATE main.board SET rules = ?, visibility = ?, horizon = ?, seen_epoch = ?, "
    "amended = amended + 1 WHERE book = ?"
)
_FREEZE = (
    "UPDATE main.team SET seen_used = used, seen_last = last, seen_released = released, "
    "seen_since = since WHERE book = ?"
)
_EPOCH = "UPDATE main.board SET epoch = ?, best = NULL, amended = amended + 1 WHERE book = ?"
_FORGET = "UPDATE main.team SET released = NULL, since = NULL WHERE book = ?"


def waits_for_charge(view: SqlReading, row: BoardRow) -> bool:
    """Tell whether a board was restored and has not gone on since.

    The ledger tells it of a board whose close was cut short: its status says ``closing`` by then.
    """
    if row.status != "closing":
        return row.status == "restored"
    for number in reversed(range(view.at().entries)):
        fields = Entry(next(iter(view.entries(number, number + 1)))).read()
        if fields["kind"] == "restored":
            return not fields["charged"]
        if fields["kind"] in {"question", "resumed", "opened"}:
            break
    return False


class Amending:
    """What an organiser may change after the start; all of it is in the chain."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def pause(self, caller: Caller) -> None:
        """Take no questions until further notice."""
        allow(caller, "run")

        def work(turn: Turn) -> None:
            view, row = self._rows(turn)
            if row.status == "open":
                turn.note("paused", {})
                view.change(_STATUS, ("paused", view.number))

        self._board.queue.do(work)

    def resume(self, caller: Caller, charge: int | None = None) -> None:
        """Go on, also after a close that was cut short: nothing was told of the private split.

        After a restore ``charge`` says how many questions may have been lost.
        """
        allow(caller, "run")
        if charge is not None and (type(charge) is not int or charge < 0):
            raise InvalidSetting("charge must be 0 or more questions.")

        def work(turn: Turn) -> None:
            view, row = cast("SqlWriting", turn.view), read_board(cast("SqlWriting", turn.view))
            if row.status in {"closed", "moved"}:
                raise NotOpen(f"The board is {row.status}; it takes no more questions.")
            if row.status == "open":
                if charge:
                    raise InvalidSetting("The board is open; pause it before you charge anything.")
                return
            if charge is None and waits_for_charge(view, row):
                raise InvalidSetting(
                    "This board was restored from a copy: say how many questions may have been "
                    "answered since the copy was made; they are charged."
                )
            charged = charge or 0
            spent = turn.at.asked + turn.at.charged
            if charged > self._board.rules_of(row).questions - spent:
                raise InvalidSetting("No more can be charged than questions are left.")
            turn.note("resumed", {"charged": charged}, charged=turn.at.charged + charged)
            view.change(_STATUS, ("open", view.number))
            if charged:
                recount(view, self._board.rules_of(row), turn.at)

        self._board.queue.do(work)

    def _rows(self, turn: Turn) -> tuple[SqlWriting, BoardRow]:
        view = cast("SqlWriting", turn.view)
        row = read_board(view)
        if row.status in ENDED:
            raise NotOpen(f"The board is {row.status}; it takes no more questions.")
        return view, row

    def amend(self, caller: Caller, changes: Mapping[str, Any]) -> Rules:
        """Change deadlines, limits, the budget, texts or who sees what; return the new rules.

        Only the visibility can change after the close.
        """
        allow(caller, "run")

        def work(turn: Turn) -> Rules:
            view = cast("SqlWriting", turn.view)
            row = read_board(view)
            if row.status == "moved":
                raise NotOpen("The board has moved; nothing about it can change here.")
            if row.status in ENDED and set(changes) != {"visibility"}:
                raise NotOpen(f"The board is {row.status}; only its visibility can change.")
            before = self._board.rules_of(row)
            after = before.amended(changes, used=turn.at.asked + turn.at.charged)
            if after.teams < row.teams:
                raise InvalidSetting(f"There are {row.teams} teams already.")
            if after == before:
                return after
            self._note(turn, after, _differences(before, after))
            horizon = (row.horizon, row.seen_epoch)
            if after.visibility == "frozen" != row.visibility:
                horizon = (turn.at.entries, row.epoch)
                view.change(_FREEZE, (view.number,))
            if row.visibility in UNNAMED and after.visibility not in UNNAMED:
                tell_names_apart(view)
            values = (written(after.describe()), after.visibility, *horizon)
            view.change(_RULES, (*values, view.number))
            recount(view, after, turn.at)
            return after

        return self._board.queue.do(work)

    def _note(
        self, turn: Turn, rules: Rules, changes: dict[str, Any], holdout: str | None = None
    ) -> None:
        """Append the entry: what changed, and the commitment to everything as it is now."""
        opening = self._board.book.opening
        decided = {
            "n": opening["n"],
            "loss": opening["loss"],
            "mechanism": opening["mechanism"],
            "rules": {
                **opening["rules"],
                "questions": rules.questions,
                "board": rules.describe(),
            },
            "holdout": holdout or self._holdout(turn),
            "key": opening["key"],
        }
        fields: dict[str, Any] = {"changes": changes}
        if holdout is not None:
            fields["holdout"] = holdout
        turn.note("amended", {**fields, "commitment": digest("opening", decided).hex()})

    def _holdout(self, turn: Turn) -> str:
        """Return the commitment to the labels of now."""
        held = turn.view.kept("holdout of now")
        return self._board.book.opening["holdout"] if held is None else held.decode()

    def correct(
        self,
        caller: Caller,
        table: HoldoutTable,
        *,
        again: str = "best",
        sandbox: Sandbox | None = None,
    ) -> int:
        """Correct labels: a new epoch, with new ladders and the old budget.

        ``again`` says which submissions are asked again: ``"best"``, each team's that holds its
        release; or ``"none"``. They count as questions. Returns how many were. Cut short, it can be
        called again with the same labels, and goes on where it was. ``sandbox`` parses files that
        an older version kept as they came.
        """
        allow(caller, "run")
        if again not in {"best", "none"}:
            raise InvalidSetting('Which submissions are asked again is "best" or "none".')
        board = self._board
        row = board.row()
        if row.status == "restored":
            raise NotOpen("The board waits for its charge; board resume says how many first.")
        refuse_unlabelled(board.rules_of(row))
        before = board.epoch_of(row).table
        _check_correction(before, table)
        if row.epoch and write_sample(before) == write_sample(table):  # it was cut short
            self.pause(caller)  # if somebody went on since: who is asked again is not limited
            count = replay(board, row.epoch - 1, commit=None, again=again, sandbox=sandbox)
            self.resume(caller)
            return count
        board.rules_of(row).loss.read_labels(table.labels)
        salt, epoch = board.book.world.salt(), row.epoch + 1
        holdout = Commitment("holdout", sample_digest(write_sample(table)), salt).hash.hex()

        def work(turn: Turn) -> str:
            view, now = self._rows(turn)
            if now.epoch != row.epoch:
                raise InvalidSetting("Labels were corrected a moment ago; look again.")
            rules = board.rules_of(now)
            self._note(turn, rules, {"labels": epoch}, holdout)
            board.book.keep(view, f"sample {epoch}", keep_sample(table))
            board.book.keep(view, f"salt of the holdout {epoch}", salt)
            view.keep("holdout of now", holdout.encode())
            view.change(_EPOCH, (epoch, view.number))
            view.change(_FORGET, (view.number,))
            if now.status == "open":  # nobody else comes before those who were there
                turn.note("paused", {})
                view.change(_STATUS, ("paused", view.number))
            return now.status

        count = replay(
            board, row.epoch, commit=lambda: board.queue.do(work), again=again, sandbox=sandbox
        )
        if row.status == "open":
            self.resume(caller)
        return count


def refuse_unlabelled(rules: Rules) -> None:
    """Refuse to correct labels where there are none."""
    if rules.takes == "scores":
        raise InvalidSetting(
            "This board takes scores, so it has no labels to correct. What an evaluator scored "
            "wrongly is handed in again, as another question."
        )


def _differences(before: Rules, after: Rules) -> dict[str, Any]:
    old, new = before.describe(), after.describe()
    changed = [key for key in {**old, **new} if new.get(key) != old.get(key)]
    return {key: json.loads(written(new.get(key))) for key in changed}


def _check_correction(before: HoldoutTable, after: HoldoutTable) -> None:
    """Refuse a table that differs in anything but labels."""
    if before.kind != after.kind or before.labels.shape != after.labels.shape:
        raise InvalidLabels("Corrected labels must be of the same kind, for the same rows.")
    for name in ("ids", "split", "group", "weight"):
        old, new = getattr(before, name), getattr(after, name)
        if (old is None) != (new is None) or (old is not None and _form(old) != _form(new)):
            raise InvalidLabels(
                f"Only labels can be corrected, in the order of the first file: {name} differ."
            )


def _form(values: Any) -> bytes:
    if not isinstance(values, np.ndarray):
        values = np.array(list(values), dtype=object)
    return digest("column", write_array(values))
