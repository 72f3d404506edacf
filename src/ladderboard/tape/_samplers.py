"""Random bytes at an address of a keyed tape, and exact samplers in integer arithmetic.

Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms
1 to 3. No logarithm, no exponential and no floating-point number is computed, so the law holds
exactly and every machine draws the same integer from the same stream. Why they are exact:
docs/explanation/tape.md.
"""

from __future__ import annotations

import hashlib
import struct

# Sixteen bytes that set these hashes apart from any other use of the same key (RFC 7693).
_PERSON = b"ladderboard.tape"
_BLOCK_BYTES = 64


class Stream:
    """Random bytes at (ladder, question, slot, context), each a pure function of the key.

    Block ``i`` of the stream is keyed BLAKE2b (RFC 7693) with 64 bytes of output over the fixed
    width message ``ladder (8) | question (8) | SHA-256(context) (32) | slot (4) | i (4)``, all
    big-endian. Numbers are read as whole big-endian bytes, so that a verifier in another language
    needs no bit twiddling.
    """

    __slots__ = ("_at", "_buffer", "_head", "_key", "_next")

    def __init__(self, key: bytes, address: bytes, slot: int) -> None:
        self._key = key
        self._head = address + slot.to_bytes(4, "big")
        self._buffer = b""
        self._at = 0
        self._next = 0

    @staticmethod
    def address(ladder: int, question: int, context: bytes = b"") -> bytes:
        """Return the encoded address that all slots of a question share."""
        return struct.pack(">QQ", ladder, question) + hashlib.sha256(context).digest()

    def __repr__(self) -> str:
        return "Stream(<key hidden>)"

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        end = self._at + count
        while end > len(self._buffer):
            block = hashlib.blake2b(
                self._head + self._next.to_bytes(4, "big"),
                digest_size=_BLOCK_BYTES,
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

    def uniform_below(self, bound: int) -> int:
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
            if end <= len(self._buffer):  # the same as take(), inlined for speed
                taken = self._buffer[start:end]
                self._at = end
            else:
                taken = self.take(count)
            drawn = int.from_bytes(taken, "big") & mask
            if drawn < bound:
                return drawn


def bernoulli_exp(stream: Stream, numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator/denominator), for a ratio >= 0 (Alg. 1)."""
    units, rest = divmod(numerator, denominator)
    for _ in range(units):
        if not _bernoulli_exp_below_one(stream, 1, 1):
            return False
    return _bernoulli_exp_below_one(stream, rest, denominator)


def _bernoulli_exp_below_one(stream: Stream, numerator: int, denominator: int) -> bool:
    """Alg. 1 for a ratio in [0, 1]: the first K that fails Bernoulli(ratio/K) is odd."""
    if numerator == 0:
        return True
    k = 1
    below = stream.uniform_below
    while below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(stream: Stream, numerator: int, denominator: int = 1) -> int:
    """Draw x with probability proportional to exp(-|x| denominator/numerator) (Alg. 2).

    The scale is numerator/denominator.
    """
    while True:
        low = stream.uniform_below(numerator)
        if not _bernoulli_exp_below_one(stream, low, numerator):
            continue
        high = 0
        while _bernoulli_exp_below_one(stream, 1, 1):
            high += 1
        magnitude = (low + numerator * high) // denominator
        negative = stream.take(1)[0] & 1
        if negative and magnitude == 0:  # zero has one sign only
            continue
        return -magnitude if negative else magnitude


def discrete_gaussian(stream: Stream, numerator: int, denominator: int = 1) -> int:
    """Draw x with probability proportional to exp(-x² / (2 sd²)), sd = numerator/denominator.

    Alg. 3: a discrete Laplace draw of scale t = floor(sd) + 1, accepted with probability
    exp(-(|x| - sd²/t)² / (2 sd²)).
    """
    t = numerator // denominator + 1
    variance_top = numerator * numerator
    variance_bottom = denominator * denominator
    accept_bottom = 2 * variance_top * variance_bottom * t * t
    while True:
        x = discrete_laplace(stream, t)
        distance = abs(x) * t * variance_bottom - variance_top
        if bernoulli_exp(stream, distance * distance, accept_bottom):
            return x
