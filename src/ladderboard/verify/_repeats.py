"""What was asked more than once: never twice on one ladder, and in a pause only what was before."""

from __future__ import annotations

from array import array

import numpy as np

from ladderboard.ledger import differs

__all__ = ["Repeats"]

_COLUMNS = 3  # of 8 bytes each: nobody finds two digests that share so many


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
            raise differs(first, "the same was asked before it on its ladder, and answered")
        # Ladders are numbered as they start, so of those that are alike the first was asked first.
        new = order[np.concatenate(([True], ~alike))]
        wrong = entries[new[np.frombuffer(self._again, np.int8)[new] != 0]]
        if len(wrong):
            raise differs(int(wrong.min()), "it is a question while the board took none")
