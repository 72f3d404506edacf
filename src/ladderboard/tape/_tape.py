"""The keyed tape, the laws of its draws, and exact samplers in integer arithmetic.

Every draw is a pure function of its address. A law can draw exactly, or fast for simulation. The
samplers are algorithms 1 to 3 of Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential
Privacy" (2020). They compute no logarithm, no exponential and no floating-point number, so the law
holds exactly and every machine draws the same integer from the same stream. Why they are exact:

Uniform below m. Bits beyond those m - 1 needs are dropped; each value below 2^b is equally
likely, and values that are not below m are thrown away.

Bernoulli(exp(-γ)), 0 ≤ γ ≤ 1. Let K be the first k = 1, 2, ... at which an independent
Bernoulli(γ/k) fails. Then P(K > k) = γ^k / k!, and

P(K is odd) = Σ_{j even} (P(K > j) - P(K > j+1)) = Σ_j (-γ)^j / j! = exp(-γ).

For larger γ, exp(-γ) is a product of exp(-1)'s and one such factor.

Discrete Laplace of scale t/s. U uniform on 0 .. t-1, kept with probability exp(-U/t), and V
counting successes of Bernoulli(exp(-1)), have P(U = u, V = v) proportional to exp(-u/t - v).
Every x ≥ 0 is u + tv in one way, so X = U + tV has P(X = x) proportional to exp(-x/t), and Y =
⌊X/s⌋ has P(Y = y) proportional to exp(-ys/t). A fair sign, with minus zero thrown away so that
zero is not counted twice, makes it two-sided.

Discrete Gaussian of standard deviation parameter σ. Draw Y from the discrete Laplace law of scale
t = ⌊σ⌋ + 1 and keep it with probability exp(-(|Y| - σ²/t)² / (2σ²)). The product of the two is

exp(-|y|/t - (y² - 2|y|σ²/t + σ⁴/t²) / (2σ²)) = exp(-y²/(2σ²)) · exp(-σ²/(2t²)),

and the last factor does not depend on y. With σ = a/b the exponent is the fraction (|y| t b² -
a²)² / (2a²b²t²), so Bernoulli(exp(-·)) of it is drawn exactly.

Continuous Laplace. A discrete Laplace number of scale 2^53, divided by 2^53: its law differs from
the continuous one by rounding to a lattice of 2^-53, finer than what a double near 1 can tell. No
logarithm is taken, so every machine agrees.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from numbers import Integral, Rational
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from fractions import Fraction  # with decimal it takes as long as the rest of this module

# Sixteen bytes that set these hashes apart from any other use of the same key (RFC 7693).
_PERSON = b"ladderboard.tape"
_BLOCK_BYTES = 64
# Trials with a chance of 1/k that a byte decides: k, and the bits of it that are used.
_FEW_TRIALS = tuple((k, (1 << (k - 1).bit_length()) - 1) for k in range(2, 8))
_FEW_BYTES = 8


class Stream:
    """Random bytes at (ladder, question, slot, context), each a pure function of the key.

    Block ``i`` of the stream is keyed BLAKE2b (RFC 7693) with 64 bytes of output over the fixed
    width message ``ladder (8) | question (8) | SHA-256(context) (32) | slot (4) | i (4)``, all
    big-endian. Numbers are read as whole big-endian bytes, so that a verifier in another language
    needs no bit twiddling.
    """

    __slots__ = ("_at", "_buffer", "_keyed", "_next")

    def __init__(self, key: bytes, address: bytes, slot: int, keyed: Any = None) -> None:
        # Copying a hash that has the key is faster than giving the key to each block.
        self._keyed = self.keyed(key) if keyed is None else keyed.copy()
        self._keyed.update(address + slot.to_bytes(4, "big"))
        self._buffer = b""
        self._at = 0
        self._next = 0

    @staticmethod
    def keyed(key: bytes) -> Any:
        """Return the keyed hash that all streams of a key start from."""
        return hashlib.blake2b(digest_size=_BLOCK_BYTES, key=key, person=_PERSON)

    @staticmethod
    def address(ladder: int, question: int, context: bytes = b"") -> bytes:
        """Return the encoded address that all slots of a question share."""
        return struct.pack(">QQ", ladder, question) + hashlib.sha256(context).digest()

    def __repr__(self) -> str:
        return "Stream(<key hidden>)"

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if self._at + count > len(self._buffer):
            self._refill(count)
        start = self._at
        self._at = end = start + count
        return self._buffer[start:end]

    def _refill(self, count: int) -> None:
        """Make the next ``count`` bytes available, at the start of the buffer."""
        buffer = self._buffer[self._at :]
        while len(buffer) < count:
            block = self._keyed.copy()
            block.update(self._next.to_bytes(4, "big"))
            buffer += block.digest()
            self._next += 1
        self._buffer, self._at = buffer, 0

    def uniform_below(self, bound: int) -> int:
        """Return an exactly uniform integer in 0 .. bound - 1.

        Takes as many bytes as ``bound - 1`` needs, drops the surplus high bits, and tries again
        while the result is not below the bound.
        """
        bits = (bound - 1).bit_length()
        count, mask, drawn = (bits + 7) >> 3, (1 << bits) - 1, bound
        while drawn >= bound:
            drawn = int.from_bytes(self.take(count), "big") & mask
        return drawn

    def first_failure(self, numerator: int, denominator: int, k: int) -> int:
        """Return the first k, from this one on, at which Bernoulli(ratio/k) fails.

        The same as ``uniform_below(denominator * k) < numerator`` for each k, without its calls.
        """
        buffer, at, bound = self._buffer, self._at, denominator * k
        while True:
            bits = (bound - 1).bit_length()
            end = at + ((bits + 7) >> 3)
            if end > len(buffer):
                self._at = at
                self._refill(end - at)
                buffer, at, end = self._buffer, 0, end - at
            drawn = int.from_bytes(buffer[at:end], "big") & ((1 << bits) - 1)
            at = end
            if drawn < numerator:
                k += 1
                bound += denominator
            elif drawn < bound:
                self._at = at
                return k

    def bernoulli_exp_one(self) -> bool:
        """Return True with probability 1/e: Alg. 1 for a ratio of 1, a byte for each trial.

        The first trial takes no byte and succeeds. After the seventh, whose chance is 1 in 5,040,
        the general sampler goes on.
        """
        buffer, at = self._buffer, self._at
        if at + _FEW_BYTES > len(buffer):
            return self.first_failure(1, 1, 1) % 2 == 1
        for k, mask in _FEW_TRIALS:
            drawn = k
            while drawn >= k:  # in two of three cases, at most
                drawn = buffer[at] & mask
                at += 1
                if at == len(buffer):
                    return self.first_failure(1, 1, 1) % 2 == 1  # begin again with more bytes
            if drawn:
                self._at = at
                return k % 2 == 1
        self._at = at
        return self.first_failure(1, 1, _FEW_TRIALS[-1][0] + 1) % 2 == 1


def bernoulli_exp(stream: Stream, numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator/denominator), for a ratio >= 0 (Alg. 1)."""
    units, rest = divmod(numerator, denominator)
    for _ in range(units):
        if not stream.bernoulli_exp_one():
            return False
    return not rest or stream.first_failure(rest, denominator, 1) % 2 == 1


def discrete_laplace(stream: Stream, numerator: int, denominator: int = 1) -> int:
    """Draw x with probability proportional to exp(-|x| denominator/numerator) (Alg. 2).

    The scale is numerator/denominator.
    """
    while True:
        low = stream.uniform_below(numerator)
        if low and stream.first_failure(low, numerator, 1) % 2 == 0:
            continue
        high = 0
        while stream.bernoulli_exp_one():
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


# A continuous draw is an integer number of steps of 2^-53, the precision of a double.
_STEPS_PER_UNIT = 1 << 53
# From this sd on, a rounded normal has the variance of the discrete Gaussian to seven digits.
_ROUNDING_IS_EXACT_FROM = 1000


class Law(ABC):
    """The distribution of the number drawn at a slot."""

    dtype: ClassVar[type] = np.int64

    @abstractmethod
    def sample(self, stream: Stream) -> Any:
        """Draw exactly, from a keyed stream."""

    @abstractmethod
    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw ``count`` times from a NumPy generator, with floating-point precision."""


def _check_rational(name: str, value: int | Fraction) -> None:
    # No floats: the law must be the same on every machine, so its scale is exact.
    is_fraction = isinstance(value, Rational) and not isinstance(value, Integral)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not (is_whole or is_fraction) or value < 0:
        raise InvalidSetting(
            f"{name} must be a whole number or a Fraction, at least 0; "
            f"got {_settings.safe_repr(value)}."
        )


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """Integers with probability proportional to exp(-|x| / scale); scale 0 is always 0."""

    scale: int | Fraction

    def __post_init__(self) -> None:
        _check_rational("scale", self.scale)

    def sample(self, stream: Stream) -> int:
        """Draw exactly."""
        if self.scale == 0:
            return 0
        return discrete_laplace(stream, *self.scale.as_integer_ratio())

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw as the difference of two geometric numbers, floor(scale x exponential)."""
        halves = np.floor(rng.standard_exponential((2, count)) * float(self.scale))
        return (halves[0] - halves[1]).astype(np.int64)


@dataclass(frozen=True)
class DiscreteGaussian(Law):
    """Integers with probability proportional to exp(-x² / (2 sd²)); sd 0 is always 0."""

    sd: int | Fraction

    def __post_init__(self) -> None:
        _check_rational("sd", self.sd)

    def sample(self, stream: Stream) -> int:
        """Draw exactly."""
        if self.sd == 0:
            return 0
        return discrete_gaussian(stream, *self.sd.as_integer_ratio())

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Round a normal number; a narrow law, where rounding would show, inverts its CDF."""
        if self.sd == 0:
            return np.zeros(count, dtype=np.int64)
        if self.sd >= _ROUNDING_IS_EXACT_FROM:
            return np.rint(rng.standard_normal(count) * float(self.sd)).astype(np.int64)
        cumulative = _cumulative_probabilities(self.sd)
        return np.searchsorted(cumulative, rng.random(count), side="right") - len(cumulative) // 2


@dataclass(frozen=True)
class CutGaussian(Law):
    """A discrete Gaussian given that it is at most ``limit`` in size, drawn by rejection.

    >>> import numpy as np
    >>> drawn = CutGaussian(1_000, 2_500).simulate(np.random.default_rng(0), 10_000)
    >>> int(abs(drawn).max()) <= 2_500
    True
    """

    sd: int | Fraction
    limit: int

    def __post_init__(self) -> None:
        _check_rational("sd", self.sd)
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < self.sd:
            raise InvalidSetting(
                "limit must be a whole number of at least the standard deviation; "
                f"got {_settings.safe_repr(self.limit)}."
            )

    def sample(self, stream: Stream) -> int:
        """Draw exactly: again and again, until a draw is within the limit."""
        if self.sd == 0:
            return 0
        numerator, denominator = self.sd.as_integer_ratio()
        while abs(drawn := discrete_gaussian(stream, numerator, denominator)) > self.limit:
            pass
        return drawn

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw as ``DiscreteGaussian`` does, and those beyond the limit again."""
        law = DiscreteGaussian(self.sd)
        drawn = law.simulate(rng, count)
        while len(beyond := np.flatnonzero(np.abs(drawn) > self.limit)):
            drawn[beyond] = law.simulate(rng, len(beyond))
        return drawn


@lru_cache(maxsize=64)
def _cumulative_probabilities(sd: int | Fraction) -> np.ndarray[Any, Any]:
    reach = math.ceil(9 * sd) + 1
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (x / float(sd)) ** 2)
    cumulative: np.ndarray[Any, Any] = np.cumsum(mass / mass.sum())
    cumulative[-1] = 1.0
    return cumulative


@dataclass(frozen=True)
class Laplace(Law):
    """The continuous Laplace law with this scale (its standard deviation is sqrt(2) scale)."""

    dtype: ClassVar[type] = np.float64
    scale: float

    def __post_init__(self) -> None:
        _settings.number("scale", self.scale, at_least=0)

    def sample(self, stream: Stream) -> float:
        """Draw a discrete Laplace number of scale 2^53 and scale it down, without logarithms."""
        if self.scale == 0:
            return 0.0
        return discrete_laplace(stream, _STEPS_PER_UNIT) / _STEPS_PER_UNIT * self.scale

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Draw as the difference of two exponential numbers."""
        halves = rng.standard_exponential((2, count))
        return (halves[0] - halves[1]) * self.scale


@dataclass(frozen=True)
class Seed(Law):
    """Thirty-two uniform bytes, for mechanisms that shuffle or resample."""

    dtype: ClassVar[type] = object

    def sample(self, stream: Stream) -> bytes:
        """Take 32 bytes."""
        return stream.take(32)

    def simulate(self, rng: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        """Take 32 bytes, ``count`` times."""
        raw = rng.bytes(32 * count)
        drawn = np.empty(count, dtype=object)
        drawn[:] = [raw[32 * i : 32 * i + 32] for i in range(count)]
        return drawn


Draws = tuple[Any, ...]
DrawsMany = tuple[np.ndarray[Any, Any], ...]

_KEY_BYTES = 32
_SEED_LIMIT = 2**256


class Tape:
    """Exact noise from a secret key.

    Parameters
    ----------
    seed
        A number for simulations and tests. Anyone can try small numbers, so a guard or a board
        refuses a tape made from a seed.
    key
        Thirty-two secret bytes, for real use.

    Without either the key comes from the operating system. Neither ``repr`` nor any message ever
    shows it.

    Examples
    --------
    >>> from ladderboard.tape import DiscreteGaussian
    >>> laws = (DiscreteGaussian(1000), DiscreteGaussian(1000))
    >>> Tape(seed=7).draw(laws, ladder=0, question=1)
    (1303, 61)
    >>> Tape(seed=7).draw(laws, ladder=0, question=1)  # the same address, the same draw
    (1303, 61)
    >>> Tape()
    Tape(<key hidden>)
    """

    def __init__(self, *, seed: int | None = None, key: bytes | None = None) -> None:
        if seed is not None and key is not None:
            raise InvalidSetting("A tape takes a seed or a key, not both.")
        if key is not None and (not isinstance(key, bytes) or len(key) != _KEY_BYTES):
            raise InvalidSetting(
                f"key must be {_KEY_BYTES} bytes; make one with secrets.token_bytes({_KEY_BYTES})."
            )
        if seed is not None:
            seed = read_seed(seed)
            key = hashlib.sha256(b"ladderboard.tape seed %d" % seed).digest()
        self._key = os.urandom(_KEY_BYTES) if key is None else key
        self._seeded = seed is not None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{'seed' if self._seeded else 'key'} hidden>)"

    @cached_property
    def _keyed(self) -> Any:
        return Stream.keyed(self._key)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the hash that has the key, which cannot be pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "_keyed"}

    @property
    def seeded(self) -> bool:
        """Whether the tape was made from a seed, and so is only for simulation."""
        return self._seeded

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that distinguish tapes. Stored with secret state, never published."""
        kind = type(self).__name__.encode()
        return hmac.digest(self._key, b"ladderboard.tape fingerprint " + kind, "sha256")[:8].hex()

    def draw(
        self, laws: tuple[Law, ...], *, ladder: int, question: int, context: bytes = b""
    ) -> Draws:
        """Draw one number for each law; the law's index in the tuple is its slot."""
        try:
            address = Stream.address(ladder, question, context)
        except struct.error:
            raise invalid_address() from None
        key, keyed = self._key, self._keyed
        return tuple(
            [law.sample(Stream(key, address, slot, keyed)) for slot, law in enumerate(laws)]
        )

    def draw_many(self, laws: tuple[Law, ...], *, ladder: int, first: int, count: int) -> DrawsMany:
        """Draw for ``count`` questions from ``first`` on: one array for each law."""
        rows = [
            self.draw(laws, ladder=ladder, question=question)
            for question in range(first, first + count)
        ]
        return tuple(
            np.array([row[slot] for row in rows], dtype=law.dtype) for slot, law in enumerate(laws)
        )


def read_seed(seed: int) -> int:
    """Return a valid seed. Messages never show it: it may be a key passed by mistake."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < _SEED_LIMIT:
        raise InvalidSetting(
            "seed must be a whole number of at least 0 and below 2^256; a key goes to key=."
        )
    return seed


def invalid_address() -> InvalidSetting:
    """Return the error for an address outside the tape."""
    return InvalidSetting("ladder and question must be whole numbers from 0 to 2^64 - 1.")
