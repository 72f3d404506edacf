"""A book's ladders: sessions whose state is kept in its storage."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenLedger, InvalidSetting
from ladderboard.ledger._encoding import PREFIX, MapEncoder, decode, encode, pad, unpad

if TYPE_CHECKING:
    from typing import Any

    from ladderboard.ledger._encryption import Encryption
    from ladderboard.ledger._storage import ReadView, WriteView
    from ladderboard.mechanisms import Mechanism, Session
    from ladderboard.tape import Tape

_BLOCK = 256
_DOUBLE = len(encode(0.0))
_MOVING = ("question", "closed", "state")
_FORM = MapEncoder(*_MOVING)


def encode_state(session: Session) -> bytes:
    """Return the form of what moves; mechanism, n and tape are the book's, and stay."""
    return _FORM.encode(session.progress)


def decode_state(form: bytes) -> dict[str, Any]:
    """Return what moves, or refuse."""
    try:
        moving = decode(form)
        return {each: moving[each] for each in _MOVING}
    except (KeyError, TypeError, ValueError):
        raise _damaged() from None


def digest_state(form: bytes) -> bytes:
    """Return the digest of a state from its form: the same as ``digest("state", ...)``."""
    return hashlib.sha256(PREFIX + b"state\n" + form).digest()


def pad_state(form: bytes, losses: int) -> bytes:
    """Return a form of constant size, with room for so many losses."""
    return pad(form, _BLOCK + losses * _DOUBLE)


def unpad_state(padded: bytes) -> bytes:
    """Return the form, or refuse."""
    try:
        return unpad(padded)
    except ValueError:
        raise _damaged() from None


def _damaged() -> BrokenLedger:
    return BrokenLedger("A ladder's state cannot be read; it was damaged.")


class LadderSessions:
    """Sessions of one mechanism on one tape, as a storage keeps them."""

    def __init__(self, mechanism: Mechanism, n: int, tape: Tape, encryption: Encryption) -> None:
        self._mechanism, self._n, self._tape, self._encryption = mechanism, n, tape, encryption
        self._still = self.start(0).state
        # The session of the last question on each ladder, with the state it was stored in.
        self._at_hand: dict[int, tuple[bytes, bytes, Session]] = {}

    @property
    def replay(self) -> bool:
        """Whether a question can be asked again from its risk alone."""
        return self._mechanism.needs == "risk"

    def start(self, ladder: int) -> Session:
        """Return a session on a new ladder."""
        return self._mechanism.start(n=self._n, tape=self._tape, ladder=ladder)

    def add(self, book: WriteView, ladder: int, name: str) -> None:
        """Store a new ladder."""
        book.add_ladder(ladder, name, self._close(ladder, encode_state(self.start(ladder))))

    def form(self, book: ReadView, ladder: int) -> bytes:
        """Return the form of the state in which a ladder is."""
        return self._form(self._stored(book, ladder), ladder)

    def resume(self, book: ReadView, ladder: int) -> Session:
        """Return a session of one's own, in the state in which a ladder is."""
        return self._resume(self.form(book, ladder), ladder)

    def take(self, book: WriteView, ladder: int) -> tuple[bytes, Session]:
        """Return the form of a ladder's state and a session in it, to be moved by a writer.

        It is the one at hand if it is still in that state. It is not at hand any more: what it
        moves to may not be committed. Writers come one by one, so nobody else moves it meanwhile.
        """
        stored = self._stored(book, ladder)
        held = self._at_hand.pop(ladder, None)
        if held is not None and held[0] == stored:
            return held[1], held[2]
        form = self._form(stored, ladder)
        return form, self._resume(form, ladder)

    def put(self, book: WriteView, ladder: int, form: bytes, session: Session) -> None:
        """Store the state to which a session was moved, and keep it at hand."""
        stored = self._close(ladder, form)
        book.set_ladder_state(ladder, stored)
        self._at_hand[ladder] = (stored, form, session)

    def _close(self, ladder: int, form: bytes) -> bytes:
        """Return a state as it is stored: of one size, whether a leader's losses are in it or not.

        Otherwise the size would tell of a change that nobody should see.
        """
        return self._encryption.encrypt(
            f"state {ladder}", pad_state(form, 0 if self.replay else self._n)
        )

    def _stored(self, book: ReadView, ladder: int) -> bytes:
        stored = book.ladder_state(ladder)
        if stored is None:
            raise InvalidSetting("There is no such ladder.")
        return stored

    def _form(self, stored: bytes, ladder: int) -> bytes:
        return unpad_state(self._encryption.decrypt(f"state {ladder}", stored))

    def _resume(self, form: bytes, ladder: int) -> Session:
        state = {**self._still, **decode_state(form), "ladder": ladder}
        return self._mechanism.resume(state, self._tape)
