"""The rules of a history: what was decided at the start, and what every amendment made of it."""

from __future__ import annotations

from typing import Any

from ladderboard.ledger import differs, digest
from ladderboard.verify._strict import has, is_whole, same

__all__ = ["Rules"]

_DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
_GUARD = {"questions", "beta", "rows", "kind", "worth", "weighted"}
_LATER = {"zero_one", "ladders"}  # not in what was made before there were such rules
_FIXED = {"slug", "loss", "mechanism", "beta", "ladder", "baselines"}  # from the first question on
_FIXED_DISPLAY = ("direction", "as")


class Rules:
    """What holds at a moment of a chain, and is committed to."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self._decided = {each: opening[each] for each in _DECIDED}
        if digest("opening", self._decided).hex() != opening["commitment"]:
            raise differs(0, "its commitment is not that of what it says")
        rules = opening["rules"]
        self.is_board = "board" in rules
        later = _LATER - {"ladders"} if self.is_board else _LATER
        wanted = (
            _GUARD
            | ({"board"} if self.is_board else set())
            | {each for each in later if each in rules}
        )
        if not has(rules, wanted):
            raise differs(0, "its rules are not those of a board or a guard")
        if "ladders" in rules and not is_whole(rules["ladders"], at_least=1):
            raise differs(0, "it declares what is no number of ladders")
        if not is_whole(rules["questions"], at_least=1):
            raise differs(0, "its budget is no number of questions")
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
            raise differs(0, "its rules say two things about loss, mechanism, budget or beta")

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
            raise differs(number, "it amends a guard, whose rules cannot change")
        changes = fields["changes"]
        if "labels" in changes:
            self._decided["holdout"] = fields["holdout"]
        else:
            self._change(number, changes)
        if digest("opening", self._decided).hex() != fields["commitment"]:
            raise differs(number, "its commitment is not that of the rules as they are then")

    def _change(self, number: int, changes: dict[str, Any]) -> None:
        before = self.board
        if _FIXED & changes.keys():
            raise differs(number, f"it changes {min(_FIXED & changes.keys())}, which cannot change")
        if not changes or not changes.keys() <= before.keys() | {"play"}:
            raise differs(number, "it changes nothing, or what is no rule")
        board = {**before, **changes}
        if board.get("play", True) is None:  # the one rule that is not there where it is not true
            del board["play"]
        for each in _FIXED_DISPLAY:
            if not same(board["display"][each], before["display"][each]):
                raise differs(number, f"it changes display.{each}, which cannot change")
        fewer = board["teams"] < before["teams"]
        if fewer or (before["ladder"] == "team" and board["teams"] != before["teams"]):
            raise differs(number, "it changes the number of teams, which cannot change so")
        rules = {**self._decided["rules"], "questions": board["questions"], "board": board}
        if not is_whole(board["questions"], at_least=1):
            raise differs(number, "its budget is no number of questions")
        self._decided["rules"] = rules
        self._widen(board["files"])

    def _widen(self, files: dict[str, Any]) -> None:
        size, rows = self.largest
        self.largest = max(size, files["bytes"]), max(rows, files["rows"])


def _named(described: dict[str, Any], what: str) -> dict[str, Any]:
    """Return a description as a board's rules write it."""
    return {("name" if key == what else key): value for key, value in described.items()}
