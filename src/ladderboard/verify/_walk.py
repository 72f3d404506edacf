"""The walk: where a chain stands by its public side alone, and what may come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.ledger import differs
from ladderboard.verify._rules import Rules
from ladderboard.verify._strict import is_whole, tells_value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Stands", "Walk"]


class Stands(NamedTuple):
    """What was released to a team, and when."""

    released: float | None
    since: int | None


class Walk:
    """Follows a chain entry by entry, and refuses one that the rules of then do not allow."""

    def __init__(self, opening: dict[str, Any]) -> None:
        if opening["kind"] != "opened":
            raise differs(0, "it is not an opening")
        self.opening = opening
        self.rules = Rules(opening)
        """The rules of now."""
        self.epoch = 0
        self.asked = self._charged = 0
        self.ladders: list[int] = []
        """How many questions were asked on each ladder."""
        self.closed: dict[str, Any] | None = None
        """The entry that ended it."""
        self.last_asked = 0
        """The time of the last question."""
        self.teams: dict[str, Stands] = {}
        self.askers: dict[str, int] = {}
        """How many questions each team asked, but for those that were asked again."""
        self.disqualified: set[str] = set()
        self.teams_at_close: dict[str, Stands] = {}
        self.out_then: set[str] = set()
        self.is_again = False
        """Whether the last question was one that is asked again because labels were corrected."""
        self._paused = False
        self._again: set[str] = set()
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
        if type(fields["ladder"]) is not int or fields["ladder"] != len(self.ladders):
            raise differs(number, "it starts another ladder than the next")
        self.ladders.append(0)

    def _question(self, number: int, fields: dict[str, Any]) -> None:
        ladder, question = fields["ladder"], fields["question"]
        if self.closed is not None:
            raise differs(number, "it is a question after the close")
        if self.asked + self._charged >= self.rules.questions:
            raise differs(number, "it is a question past the budget")
        if type(ladder) is not int or not 0 <= ladder < len(self.ladders):
            raise differs(number, "its ladder was not started")
        if question != self.ladders[ladder] + 1 or type(question) is not int:
            raise differs(number, "it is not the next question on its ladder")
        if type(fields["improved"]) is not bool:
            raise differs(number, "it does not say whether it improved")
        if not (tells_value(fields["value"]) and tells_value(fields["score"])):
            raise differs(number, "its release is no number")
        self.ladders[ladder] += 1
        self.asked += 1
        declared = self.rules.ladders
        if declared is not None and question == 1 and sum(map(bool, self.ladders)) > declared:
            raise differs(number, "it is asked on a ladder more than were declared")
        self.last_asked = fields["time"]
        if self.rules.is_board:
            self._team(number, fields)

    def _team(self, number: int, fields: dict[str, Any]) -> None:
        """See that a team may ask, and note where it stands."""
        asker, board = fields["asker"], self.rules.board
        if type(asker) is not str:
            raise differs(number, "it was asked by nobody")
        self.is_again = self._paused
        if self._paused:
            if not self.epoch or asker not in self.askers or asker in self._again:
                raise differs(number, "it is a question while the board took none")
            self._again.add(asker)
        else:
            self.askers[asker] = self.askers.get(asker, 0) + 1
            if self.askers[asker] > board["per_team"]:
                raise differs(number, "it is a question past the limit of its team")
            if len(self.askers) > board["teams"] + len(self.rules.baselines):
                raise differs(number, "it was asked by a team more than there may be")
        self._climb(number, fields["ladder"], asker)
        if fields["improved"]:
            self.teams[asker] = Stands(fields["value"], fields["time"])

    def _climb(self, number: int, ladder: int, asker: str) -> None:
        """See that a team stays on its ladder: another one would be another draw of noise."""
        team = asker if self.rules.board["ladder"] == "team" else None
        climb = (team, self.epoch)
        if self._climbs.setdefault(climb, ladder) != ladder:
            raise differs(number, "it was asked on another ladder than those before it")
        if self._owners.setdefault(ladder, climb) != climb:
            raise differs(number, "it was asked on a ladder of somebody else")

    def _amended(self, number: int, fields: dict[str, Any]) -> None:
        changes = fields["changes"]
        corrected = "labels" in changes
        if self.closed is not None and changes.keys() != {"visibility"}:
            raise differs(number, "it changes after the close what cannot change then")
        if corrected is not ("holdout" in fields):
            raise differs(number, "it changes labels and does not say so, or says so and does not")
        if corrected:
            told = changes["labels"]
            if type(told) is not int or told != self.epoch + 1 or len(changes) > 1:
                raise differs(number, "it is not the next correction of labels")
            self.epoch = told
            self.teams.clear()
            self._again.clear()
        self.rules.amend(number, fields)

    def _restored(self, number: int, fields: dict[str, Any]) -> None:
        self._charge(number, fields)
        self._paused = self.rules.is_board

    def _resumed(self, number: int, fields: dict[str, Any]) -> None:
        self._charge(number, fields)
        self._paused = False

    def _charge(self, number: int, fields: dict[str, Any]) -> None:
        if not is_whole(fields["charged"]):
            raise differs(number, "it charges what is no number of questions")
        self._charged += fields["charged"]

    def _pause(self, _number: int, _fields: dict[str, Any]) -> None:
        self._paused = True

    def _close(self, number: int, fields: dict[str, Any]) -> None:
        if self.closed is not None:
            raise differs(number, "it was closed before")
        if type(fields["values"]) is not list or len(fields["values"]) != len(self.ladders):
            raise differs(number, "it does not end every ladder")
        self.closed = fields
        self.teams_at_close, self.out_then = dict(self.teams), set(self.disqualified)
