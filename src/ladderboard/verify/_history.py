"""The history of a ledger as its public side tells it: rules, amendments, who may ask what."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.ledger import broken_entry, digest
from ladderboard.verify._strict import has, is_whole, same, tells_value

if TYPE_CHECKING:
    from collections.abc import Callable

_DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
_GUARD = {"questions", "beta", "rows", "kind", "worth", "weighted"}
_LATER = {"zero_one", "ladders"}  # not in what was made before there were such rules
_FIXED = {"slug", "loss", "mechanism", "beta", "ladder", "baselines"}  # from the first question on
_FIXED_DISPLAY = ("direction", "as")
_COLUMNS = 3  # of 8 bytes each: nobody finds two digests that share so many


class Rules:
    """What holds at a moment of a chain, and is committed to."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self._decided = {each: opening[each] for each in _DECIDED}
        if digest("opening", self._decided).hex() != opening["commitment"]:
            raise broken_entry(0, "its commitment is not that of what it says")
        rules = opening["rules"]
        self.is_board = "board" in rules
        later = _LATER - {"ladders"} if self.is_board else _LATER
        wanted = (
            _GUARD
            | ({"board"} if self.is_board else set())
            | {each for each in later if each in rules}
        )
        if not has(rules, wanted):
            raise broken_entry(0, "its rules are not those of a board or a guard")
        if "ladders" in rules and not is_whole(rules["ladders"], at_least=1):
            raise broken_entry(0, "it declares what is no number of ladders")
        if not is_whole(rules["questions"], at_least=1):
            raise broken_entry(0, "its budget is no number of questions")
        if self.is_board:
            self._check_board(opening)
        self.largest = (1, 1)
        """The most bytes and rows that a file was ever allowed to have."""
        if self.is_board:
            self._widen(self.board["files"])

    @staticmethod
    def _check_board(opening: dict[str, Any]) -> None:
        """Refuse rules that people were shown, if they are not those that are followed."""
        rules, board = opening["rules"], opening["rules"]["board"]
        twice = [(rules[each], board[each]) for each in ("questions", "beta")]
        twice.append((_named(opening["loss"], "loss"), board["loss"]))
        if board["mechanism"] != "calibrated":
            twice.append((_named(opening["mechanism"], "mechanism"), board["mechanism"]))
        if not all(same(one, other) for one, other in twice):
            raise broken_entry(0, "its rules say two things about loss, mechanism, budget or beta")

    @property
    def questions(self) -> int:
        """How many are allowed."""
        allowed: int = self._decided["rules"]["questions"]
        return allowed

    @property
    def ladders(self) -> int | None:
        """On how many ladders a guard may be asked; None where that was not declared."""
        declared: int | None = self._decided["rules"].get("ladders")
        return declared

    @property
    def opened(self) -> dict[str, Any]:
        """What a guard's first entry says of its labels, and a board's too."""
        rules: dict[str, Any] = self._decided["rules"]
        return {"n": self._decided["n"], **rules}

    @property
    def board(self) -> dict[str, Any]:
        """The rules of a board."""
        board: dict[str, Any] = self._decided["rules"]["board"]
        return board

    @property
    def holdout(self) -> str:
        """The commitment to the labels of now."""
        shown: str = self._decided["holdout"]
        return shown

    @property
    def baselines(self) -> list[str]:
        """The names of baselines that are files, as a team's name is written."""
        told = [each["name"] for each in self.board["baselines"] if each.get("file") is not None]
        return [" ".join(each.split()) for each in told]

    def amend(self, number: int, fields: dict[str, Any]) -> None:
        """Take an amendment, or refuse one that changes what cannot change."""
        if not self.is_board:
            raise broken_entry(number, "it amends a guard, whose rules cannot change")
        changes = fields["changes"]
        if "labels" in changes:
            self._decided["holdout"] = fields["holdout"]
        else:
            self._change(number, changes)
        if digest("opening", self._decided).hex() != fields["commitment"]:
            raise broken_entry(number, "its commitment is not that of the rules as they are then")

    def _change(self, number: int, changes: dict[str, Any]) -> None:
        before = self.board
        if _FIXED & changes.keys():
            raise broken_entry(
                number, f"it changes {min(_FIXED & changes.keys())}, which cannot change"
            )
        if not changes or not changes.keys() <= before.keys() | {"play"}:
            raise broken_entry(number, "it changes nothing, or what is no rule")
        board = {**before, **changes}
        if board.get("play", True) is None:  # the one rule that is not there where it is not true
            del board["play"]
        for each in _FIXED_DISPLAY:
            if not same(board["display"][each], before["display"][each]):
                raise broken_entry(number, f"it changes display.{each}, which cannot change")
        fewer = board["teams"] < before["teams"]
        if fewer or (before["ladder"] == "team" and board["teams"] != before["teams"]):
            raise broken_entry(number, "it changes the number of teams, which cannot change so")
        rules = {**self._decided["rules"], "questions": board["questions"], "board": board}
        if not is_whole(board["questions"], at_least=1):
            raise broken_entry(number, "its budget is no number of questions")
        self._decided["rules"] = rules
        self._widen(board["files"])

    def _widen(self, files: dict[str, Any]) -> None:
        size, rows = self.largest
        self.largest = max(size, files["bytes"]), max(rows, files["rows"])


def _named(described: dict[str, Any], what: str) -> dict[str, Any]:
    """Return a description as a board's rules write it."""
    return {("name" if key == what else key): value for key, value in described.items()}


class Stands(NamedTuple):
    """What was released to a team, and when."""

    released: float | None
    since: int | None


class Walk:
    """Follows a chain entry by entry, and refuses one that the rules of then do not allow."""

    def __init__(self, opening: dict[str, Any]) -> None:
        if opening["kind"] != "opened":
            raise broken_entry(0, "it is not an opening")
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
            raise broken_entry(number, "it opens what is open already")

    def _ladder(self, number: int, fields: dict[str, Any]) -> None:
        if self.closed is not None:
            raise broken_entry(number, "it starts a ladder after the close")
        if type(fields["ladder"]) is not int or fields["ladder"] != len(self.ladders):
            raise broken_entry(number, "it starts another ladder than the next")
        self.ladders.append(0)

    def _question(self, number: int, fields: dict[str, Any]) -> None:
        ladder, question = fields["ladder"], fields["question"]
        if self.closed is not None:
            raise broken_entry(number, "it is a question after the close")
        if self.asked + self._charged >= self.rules.questions:
            raise broken_entry(number, "it is a question past the budget")
        if type(ladder) is not int or not 0 <= ladder < len(self.ladders):
            raise broken_entry(number, "its ladder was not started")
        if question != self.ladders[ladder] + 1 or type(question) is not int:
            raise broken_entry(number, "it is not the next question on its ladder")
        if type(fields["improved"]) is not bool:
            raise broken_entry(number, "it does not say whether it improved")
        if not (tells_value(fields["value"]) and tells_value(fields["score"])):
            raise broken_entry(number, "its release is no number")
        self.ladders[ladder] += 1
        self.asked += 1
        declared = self.rules.ladders
        if declared is not None and question == 1 and sum(map(bool, self.ladders)) > declared:
            raise broken_entry(number, "it is asked on a ladder more than were declared")
        self.last_asked = fields["time"]
        if self.rules.is_board:
            self._team(number, fields)

    def _team(self, number: int, fields: dict[str, Any]) -> None:
        """See that a team may ask, and note where it stands."""
        asker, board = fields["asker"], self.rules.board
        if type(asker) is not str:
            raise broken_entry(number, "it was asked by nobody")
        self.is_again = self._paused
        if self._paused:
            if not self.epoch or asker not in self.askers or asker in self._again:
                raise broken_entry(number, "it is a question while the board took none")
            self._again.add(asker)
        else:
            self.askers[asker] = self.askers.get(asker, 0) + 1
            if self.askers[asker] > board["per_team"]:
                raise broken_entry(number, "it is a question past the limit of its team")
            if len(self.askers) > board["teams"] + len(self.rules.baselines):
                raise broken_entry(number, "it was asked by a team more than there may be")
        self._climb(number, fields["ladder"], asker)
        if fields["improved"]:
            self.teams[asker] = Stands(fields["value"], fields["time"])

    def _climb(self, number: int, ladder: int, asker: str) -> None:
        """See that a team stays on its ladder: another one would be another draw of noise."""
        team = asker if self.rules.board["ladder"] == "team" else None
        climb = (team, self.epoch)
        if self._climbs.setdefault(climb, ladder) != ladder:
            raise broken_entry(number, "it was asked on another ladder than those before it")
        if self._owners.setdefault(ladder, climb) != climb:
            raise broken_entry(number, "it was asked on a ladder of somebody else")

    def _amended(self, number: int, fields: dict[str, Any]) -> None:
        changes = fields["changes"]
        corrected = "labels" in changes
        if self.closed is not None and changes.keys() != {"visibility"}:
            raise broken_entry(number, "it changes after the close what cannot change then")
        if corrected is not ("holdout" in fields):
            raise broken_entry(
                number, "it changes labels and does not say so, or says so and does not"
            )
        if corrected:
            told = changes["labels"]
            if type(told) is not int or told != self.epoch + 1 or len(changes) > 1:
                raise broken_entry(number, "it is not the next correction of labels")
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
            raise broken_entry(number, "it charges what is no number of questions")
        self._charged += fields["charged"]

    def _pause(self, _number: int, _fields: dict[str, Any]) -> None:
        self._paused = True

    def _close(self, number: int, fields: dict[str, Any]) -> None:
        if self.closed is not None:
            raise broken_entry(number, "it was closed before")
        if type(fields["values"]) is not list or len(fields["values"]) != len(self.ladders):
            raise broken_entry(number, "it does not end every ladder")
        self.closed = fields
        self.teams_at_close, self.out_then = dict(self.teams), set(self.disqualified)


class Repeats:
    """Takes every question, and tells at the end whether one should not have been answered.

    The same predictions of a team on a ladder are answered once: another answer would be another
    draw of noise about one model. Of each question 37 bytes are held.
    """

    def __init__(self) -> None:
        self._digests = bytearray()
        self._numbers: dict[str | None, int] = {}
        self._askers, self._ladders, self._entries = array("I"), array("I"), array("I")
        self._again = array("b")

    def take(
        self, number: int, ladder: int, asker: str | None, submission: bytes, *, again: bool
    ) -> None:
        """Take a question; ``again`` says that it must have been asked before."""
        self._digests += submission[: 8 * _COLUMNS]
        self._askers.append(self._numbers.setdefault(asker, len(self._numbers)))
        self._ladders.append(ladder)
        self._entries.append(number)
        self._again.append(again)

    def end(self) -> None:
        """Refuse the first question that was answered already, or should have been and was not."""
        if not self._entries:
            return
        digests = np.frombuffer(self._digests, np.uint64).reshape(-1, _COLUMNS)
        askers, ladders, entries = (
            np.frombuffer(each, np.uint32) for each in (self._askers, self._ladders, self._entries)
        )
        told = [askers, *digests.T]
        order = np.lexsort((entries, ladders, *told))
        alike = np.ones(len(order) - 1, bool)
        for each in told:
            alike &= each[order[1:]] == each[order[:-1]]
        twice = alike & (ladders[order[1:]] == ladders[order[:-1]])
        if twice.any():
            first = int(entries[order[1:][twice]].min())
            raise broken_entry(first, "the same was asked before it on its ladder, and answered")
        # Ladders are numbered as they start, so of those that are alike the first was asked first.
        new = order[np.concatenate(([True], ~alike))]
        wrong = entries[new[np.frombuffer(self._again, np.int8)[new] != 0]]
        if len(wrong):
            raise broken_entry(int(wrong.min()), "it is a question while the board took none")
