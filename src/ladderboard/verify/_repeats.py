"""What was asked more than once: never twice on one ladder, and in a pause only what was before."""

from __future__ import annotations

import hashlib
import secrets
from array import array

import numpy as np

from ladderboard.ledger import differs

__all__ = ["Repeats"]

_BYTES = 16


class Repeats:
    """Takes every question, and tells at the end whether one should not have been answered.

    The same predictions of a team on a ladder are answered once: another answer would be another
    draw of noise about one model. Of each question 33 bytes are held. They are hashed with a key
    that is made anew each time, so nobody can choose predictions that look alike.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(_BYTES)
        self._asked = bytearray()
        self._ladders, self._entries, self._again = array("q"), array("q"), array("b")

    def take(
        self, number: int, ladder: int, asker: str | None, submission: bytes, *, again: bool
    ) -> None:
        """Take a question; ``again`` says that it must have been asked before."""
        told = submission + (b"" if asker is None else asker.encode("utf-8", "surrogatepass"))
        self._asked += hashlib.blake2b(told, digest_size=_BYTES, key=self._key).digest()
        self._ladders.append(ladder)
        self._entries.append(number)
        self._again.append(again)

    def end(self) -> None:
        """Refuse the first question that was answered already, or should have been and was not."""
        if not self._entries:
            return
        halves = np.frombuffer(self._asked, dtype=">u8").reshape(-1, 2)
        ladders, entries = np.frombuffer(self._ladders, "q"), np.frombuffer(self._entries, "q")
        again = np.frombuffer(self._again, "b").astype(bool)
        order = np.lexsort((entries, ladders, halves[:, 1], halves[:, 0]))
        alike = (halves[order][1:] == halves[order][:-1]).all(axis=1)
        twice = alike & (ladders[order][1:] == ladders[order][:-1])
        if twice.any():
            first = int(entries[order][1:][twice].min())
            raise differs(first, "the same was asked before it on its ladder, and answered")
        # Ladders are numbered as they start, so what comes first of those alike came first.
        new = order[np.flatnonzero(np.concatenate(([True], ~alike)))]
        if again[new].any():
            first = int(entries[new][again[new]].min())
            raise differs(first, "it is a question while the board took none")
