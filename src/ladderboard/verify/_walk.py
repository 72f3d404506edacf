"""The walk: where a chain stands by its public side alone, and what may come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.ledger import differs, digest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Stands", "Walk"]

_DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
_FIXED = {"slug", "loss", "mechanism", "beta", "ladder", "baselines"}  # from the first question on


class Stands(NamedTuple):
    """What was released to a team, and when."""

    released: float | None
    since: int | None


class Walk:
    """Follows a chain entry by entry, and refuses one that the rules of then do not allow."""

    def __init__(self, opening: dict[str, Any]) -> None:
        if opening["kind"] != "opened":
            raise differs(0, "it is not an opening")
        decided = {each: opening[each] for each in _DECIDED}
        if digest("opening", decided).hex() != opening["commitment"]:
            raise differs(0, "its commitment is not that of what it says")
        self.opening = opening
        self.rules: dict[str, Any] = opening["rules"]
        """The rules of now."""
        self.holdout: str = opening["holdout"]
        """The commitment to the labels of now."""
        self.epoch = 0
        self.asked = self._charged = 0
        self.ladders: list[int] = []
        """How many questions were asked on each ladder."""
        self.closed: dict[str, Any] | None = None
        """The entry that ended it."""
        self.teams: dict[str, Stands] = {}
        self.disqualified: set[str] = set()
        self.teams_at_close: dict[str, Stands] = {}
        self.out_then: set[str] = set()
        self._paused = self._asking_again = False
        self._climbs: dict[tuple[str | None, int], int] = {}
        self._owners: dict[int, tuple[str | None, int]] = {}
        self._takers: dict[str, Callable[[int, dict[str, Any]], None]] = {
            "question": self._question,
            "ladder": self._ladder,
            "opened": self._opened,
            "amended": self._amended,
            "restored": self._restored,
            "resumed": self._resumed,
            "paused": self._pause,
            "disqualified": lambda _, fields: self.disqualified.add(fields["asker"]),
            "reinstated": lambda _, fields: self.disqualified.discard(fields["asker"]),
            "closed": self._close,
        }

    @property
    def is_board(self) -> bool:
        """Whether it is a board's ledger, not a guard's."""
        return "board" in self.opening["rules"]

    def take(self, number: int, fields: dict[str, Any]) -> None:
        """Take one entry more; of kinds that are not known nothing is asked."""
        taker = self._takers.get(fields["kind"])
        if taker is not None:
            taker(number, fields)

    def _opened(self, number: int, _fields: dict[str, Any]) -> None:
        if number:
            raise differs(number, "it opens what is open already")

    def _ladder(self, number: int, fields: dict[str, Any]) -> None:
        if self.closed is not None:
            raise differs(number, "it starts a ladder after the close")
        if fields["ladder"] != len(self.ladders):
            raise differs(number, "it starts another ladder than the next")
        self.ladders.append(0)

    def _question(self, number: int, fields: dict[str, Any]) -> None:
        ladder, asker = fields["ladder"], fields["asker"]
        if self.closed is not None:
            raise differs(number, "it is a question after the close")
        if self._paused and not self._asking_again:
            raise differs(number, "it is a question while the board took none")
        if self.asked + self._charged >= self.rules["questions"]:
            raise differs(number, "it is a question past the budget")
        if type(ladder) is not int or not 0 <= ladder < len(self.ladders):
            raise differs(number, "its ladder was not started")
        if fields["question"] != self.ladders[ladder] + 1:
            raise differs(number, "it is not the next question on its ladder")
        if type(fields["improved"]) is not bool:
            raise differs(number, "it does not say whether it improved")
        self.ladders[ladder] += 1
        self.asked += 1
        if self.is_board:
            self._climb(number, ladder, asker)
            if fields["improved"]:
                self.teams[asker] = Stands(fields["value"], fields["time"])

    def _climb(self, number: int, ladder: int, asker: str) -> None:
        """See that a team stays on its ladder: another one would be another draw of noise."""
        team = asker if self.rules["board"]["ladder"] == "team" else None
        climb = (team, self.epoch)
        if self._climbs.setdefault(climb, ladder) != ladder:
            raise differs(number, "it was asked on another ladder than those before it")
        if self._owners.setdefault(ladder, climb) != climb:
            raise differs(number, "it was asked on a ladder of somebody else")

    def _amended(self, number: int, fields: dict[str, Any]) -> None:
        changes = dict(fields["changes"])
        labels = changes.pop("labels", None)
        if labels is not None:
            if labels != self.epoch + 1 or changes:
                raise differs(number, "it is not the next correction of labels")
            self.epoch, self.holdout = labels, fields["holdout"]
            self.teams.clear()
            self._asking_again = True
        elif "holdout" in fields:
            raise differs(number, "it changes labels, and does not say so")
        if self.closed is not None and (labels is not None or set(changes) - {"visibility"}):
            raise differs(number, "it changes after the close what cannot change then")
        if _FIXED & set(changes):
            raise differs(number, f"it changes {min(_FIXED & set(changes))}, which cannot change")
        board = {**self.rules["board"], **changes}
        if board.get("play", True) is None:  # the one rule that is not there where it is not true
            del board["play"]
        self.rules = {**self.rules, "questions": board["questions"], "board": board}
        decided = {**self.opening, "rules": self.rules, "holdout": self.holdout}
        commitment = digest("opening", {each: decided[each] for each in _DECIDED})
        if commitment.hex() != fields["commitment"]:
            raise differs(number, "its commitment is not that of the rules as they are then")

    def _restored(self, number: int, fields: dict[str, Any]) -> None:
        self._charge(number, fields)
        self._paused = self.is_board

    def _resumed(self, number: int, fields: dict[str, Any]) -> None:
        self._charge(number, fields)
        self._paused = self._asking_again = False

    def _charge(self, number: int, fields: dict[str, Any]) -> None:
        charged = fields["charged"]
        if type(charged) is not int or charged < 0:
            raise differs(number, "it charges what is no number of questions")
        self._charged += charged

    def _pause(self, _number: int, _fields: dict[str, Any]) -> None:
        self._paused = True

    def _close(self, number: int, fields: dict[str, Any]) -> None:
        if self.closed is not None:
            raise differs(number, "it was closed before")
        if len(fields["values"]) != len(self.ladders):
            raise differs(number, "it does not end every ladder")
        self.closed = fields
        self.teams_at_close, self.out_then = dict(self.teams), set(self.disqualified)
