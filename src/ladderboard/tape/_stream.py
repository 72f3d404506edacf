"""A stream: the endless random bytes at one address of a keyed tape."""

from __future__ import annotations

import hashlib
import struct

__all__ = ["Stream"]

# Sixteen bytes that set these hashes apart from any other use of the same key (RFC 7693).
_PERSON = b"ladderboard.tape"
_BLOCK = 64


class Stream:
    """Random bytes at (ladder, question, slot, context), each a pure function of the key.

    Block ``i`` of the stream is keyed BLAKE2b (RFC 7693) with 64 bytes of output over the fixed
    width message ``ladder (8) | question (8) | SHA-256(context) (32) | slot (4) | i (4)``, all
    big-endian. Numbers are read as whole big-endian bytes, so that a verifier in another language
    needs no bit twiddling.
    """

    __slots__ = ("_at", "_buffer", "_head", "_key", "_next")

    def __init__(self, key: bytes, place: bytes, slot: int) -> None:
        self._key = key
        self._head = place + slot.to_bytes(4, "big")
        self._buffer = b""
        self._at = 0
        self._next = 0

    @staticmethod
    def place(ladder: int, question: int, context: bytes = b"") -> bytes:
        """Return the part of the address that all slots of a question share."""
        return struct.pack(">QQ", ladder, question) + hashlib.sha256(context).digest()

    def __repr__(self) -> str:
        return "Stream(<key hidden>)"

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        end = self._at + count
        while end > len(self._buffer):
            block = hashlib.blake2b(
                self._head + self._next.to_bytes(4, "big"),
                digest_size=_BLOCK,
                key=self._key,
                person=_PERSON,
            ).digest()
            self._buffer = self._buffer[self._at :] + block
            end -= self._at
            self._at = 0
            self._next += 1
        taken = self._buffer[self._at : end]
        self._at = end
        return taken

    def below(self, bound: int) -> int:
        """Return an exactly uniform integer in 0 .. bound - 1.

        Takes as many bytes as ``bound - 1`` needs, drops the surplus high bits, and tries again
        while the result is not below the bound.
        """
        bits = (bound - 1).bit_length()
        count = (bits + 7) >> 3
        mask = (1 << bits) - 1
        while True:
            start = self._at
            end = start + count
            if end <= len(self._buffer):  # as take does, without the call
                taken = self._buffer[start:end]
                self._at = end
            else:
                taken = self.take(count)
            drawn = int.from_bytes(taken, "big") & mask
            if drawn < bound:
                return drawn
