"""A book's ladders: sessions whose state is stored in its database."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenLedger, InvalidSetting
from ladderboard.ledger._encoding import PREFIX, MapEncoder, decode, encode, pad, unpad
from ladderboard.mechanisms import changes_of_others

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ladderboard.ledger._commitments import Encryption
    from ladderboard.ledger._storage import ReadView, WriteView
    from ladderboard.mechanisms import Mechanism, Session
    from ladderboard.tape import Tape

_BLOCK = 256
_DOUBLE = len(encode(0.0))
_MUTABLE_FIELDS = ("question", "closed", "state")
_ENCODER = MapEncoder(*_MUTABLE_FIELDS)


def examples_in_sessions(n: int, rules: Mapping[str, Any]) -> int:
    """Return the number of examples that sessions count with: the effective one with weights."""
    return int(rules["worth"]) if rules.get("weighted") else n


def encode_state(session: Session) -> bytes:
    """Encode the part of a session that changes; mechanism, n and tape belong to the book."""
    return _ENCODER.encode(session.mutable_state)


def decode_state(encoded: bytes) -> dict[str, Any]:
    """Return the fields that ``encode_state`` wrote, or raise ``BrokenLedger``."""
    try:
        fields = decode(encoded)
        return {field: fields[field] for field in _MUTABLE_FIELDS}
    except (KeyError, TypeError, ValueError):
        raise _damaged_state() from None


def digest_state(encoded: bytes) -> bytes:
    """Return the digest of an encoded state, the same as ``digest("state", ...)``."""
    return hashlib.sha256(PREFIX + b"state\n" + encoded).digest()


def pad_state(encoded: bytes, losses: int) -> bytes:
    """Pad an encoded state to a constant size that can hold so many losses."""
    return pad(encoded, _BLOCK + losses * _DOUBLE)


def unpad_state(padded: bytes) -> bytes:
    """Return the encoded state, or raise ``BrokenLedger``."""
    try:
        return unpad(padded)
    except ValueError:
        raise _damaged_state() from None


def _damaged_state() -> BrokenLedger:
    return BrokenLedger("A ladder's state cannot be read; it was damaged.")


class LadderSessions:
    """The sessions of a book's ladders, read from and written to its storage."""

    def __init__(self, mechanism: Mechanism, n: int, tape: Tape, encryption: Encryption) -> None:
        self._mechanism, self._n, self._tape, self._encryption = mechanism, n, tape, encryption
        self.shared_ladders = mechanism.shared_ladders
        """How many other ladders count on a ladder; see ``Mechanism``."""
        self._initial_state = self.start(0).state
        # The session of the last question on each ladder, with the state it was stored in.
        self._cached_sessions: dict[int, tuple[bytes, bytes, Session]] = {}

    @property
    def can_replay(self) -> bool:
        """Whether a question can be replayed without the losses of examples."""
        return self._mechanism.needs != "losses"

    def start(self, ladder: int) -> Session:
        """Return a session on a new ladder."""
        return self._mechanism.start(n=self._n, tape=self._tape, ladder=ladder)

    def add(self, book: WriteView, ladder: int, name: str) -> None:
        """Store a new ladder."""
        book.add_ladder(ladder, name, self._encrypt_state(ladder, encode_state(self.start(ladder))))

    def encoded_state(self, book: ReadView, ladder: int) -> bytes:
        """Return the encoded state of a ladder."""
        return self._decrypt_state(self._read_stored(book, ladder), ladder)

    def resume(self, book: ReadView, ladder: int) -> Session:
        """Return a new session in the current state of a ladder."""
        return self._resume_from(self.encoded_state(book, ladder), ladder)

    def resume_for_update(self, book: WriteView, ladder: int) -> tuple[bytes, Session]:
        """Return the encoded state of a ladder and a session in it, for a writer to advance.

        This takes the session out of the cache, because its next state may not be committed. There
        is one writer at a time, so no other one can advance the ladder meanwhile.
        """
        stored = self._read_stored(book, ladder)
        cached = self._cached_sessions.pop(ladder, None)
        if cached is not None and cached[0] == stored:
            return cached[1], cached[2]
        encoded = self._decrypt_state(stored, ladder)
        return encoded, self._resume_from(encoded, ladder)

    def store(
        self, book: WriteView, ladder: int, encoded: bytes, session: Session, *, changed: bool
    ) -> None:
        """Store the new state of a session, and cache the session."""
        stored = self._encrypt_state(ladder, encoded)
        book.set_ladder_state(ladder, stored, changed=changed)
        self._cached_sessions[ladder] = (stored, encoded, session)

    def changes_of_others(self, book: ReadView, ladder: int) -> int:
        """Return the changes of other ladders that count on a ladder, which must be started.

        If all ladders count, the sum is in the chain state; otherwise one statement reads a row for
        each ladder. The cost does not grow with the number of questions.
        """
        count = self.shared_ladders + 1
        if count == 1:
            return 0
        chain_state = book.chain_state()
        largest = (
            (chain_state.changes, 0)
            if count >= chain_state.ladders
            else book.largest_ladder_changes(count)
        )
        return changes_of_others(book.ladder_changes(ladder), *largest)

    def _encrypt_state(self, ladder: int, encoded: bytes) -> bytes:
        """Pad and encrypt a state, to one size whether or not it holds the leader's losses.

        Otherwise the size would reveal a secret change.
        """
        return self._encryption.encrypt(
            f"state {ladder}", pad_state(encoded, 0 if self.can_replay else self._n)
        )

    def _read_stored(self, book: ReadView, ladder: int) -> bytes:
        stored = book.ladder_state(ladder)
        if stored is None:
            raise InvalidSetting("There is no such ladder.")
        return stored

    def _decrypt_state(self, stored: bytes, ladder: int) -> bytes:
        return unpad_state(self._encryption.decrypt(f"state {ladder}", stored))

    def _resume_from(self, encoded: bytes, ladder: int) -> Session:
        state = {**self._initial_state, **decode_state(encoded), "ladder": ladder}
        return self._mechanism.resume(state, self._tape)
