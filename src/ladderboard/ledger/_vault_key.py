"""What a vault is closed and opened with: a passphrase, or a pair of keys.

The head of a vault says how its key is made. Of 64 bytes from HKDF-SHA256 the first half is the
key; the second half stands at the end of the head, so that a wrong key is told from damage, and no
vault can be made that opens with two keys.
"""

from __future__ import annotations

import hmac
import secrets
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed, WrongKey
from ladderboard.ledger._crypto import HKDF, SHA256, Scrypt, X25519PrivateKey, X25519PublicKey

__all__ = ["CHECK", "Closer", "Cost", "Opener", "Passphrase", "PublicKey", "SecretKey"]

CHECK = 32  # bytes at the end of a head
_DOMAIN = b"ladderboard:1:vault\n"
_SALT = 32
_SHORTEST = 8
_MOST_WORK = 2**23  # N * r * p of a vault that we open: 1 GiB, and some seconds


class Closer(ABC):
    """Something that a vault can be closed with."""

    @abstractmethod
    def close(self, start: bytes) -> tuple[bytes, bytes]:
        """Return the head of a new vault, which begins with ``start``, and its key."""


class Opener(ABC):
    """Something that a vault can be opened with."""

    kind: bytes
    """The byte that says so in the head."""
    size: int
    """How many bytes follow it, without the check."""

    @abstractmethod
    def open(self, head: bytes) -> bytes:
        """Return the key of a vault with this head, or refuse."""


class Cost(NamedTuple):
    """What scrypt has to do for a guess: N = 2**``doublings``, r = ``blocks``, p = ``lanes``."""

    doublings: int
    blocks: int
    lanes: int


_COST = Cost(17, 8, 1)  # 128 MiB, and about a third of a second


@dataclass(frozen=True, repr=False)
class Passphrase(Closer, Opener):
    """Words that a person knows; scrypt makes each guess at them cost 128 MiB.

    Parameters
    ----------
    words
        At least eight characters, in Unicode's form NFC whatever a keyboard sent.
    cost
        Of a new vault; one that is opened says its own.
    """

    words: str
    cost: Cost = _COST
    kind = b"p"
    size = len(Cost._fields) + _SALT

    def close(self, start: bytes) -> tuple[bytes, bytes]:
        """Return a head with a salt of its own, and the key; refuse words that are soon guessed."""
        if len(self.words.strip()) < _SHORTEST:
            raise InvalidSetting(
                f"A passphrase must have at least {_SHORTEST} characters; take four words that "
                "nobody would guess."
            )
        head = start + self.kind + bytes(self.cost) + secrets.token_bytes(_SALT)
        return _with_check(head, self._stretch(head))

    def open(self, head: bytes) -> bytes:
        """Return the key that these words and the head make."""
        return _checked(
            head,
            self._stretch(head[:-CHECK]),
            "The passphrase is another one, or the beginning of the file was damaged.",
        )

    def _stretch(self, head: bytes) -> bytes:
        doublings, blocks, lanes = head[-_SALT - len(Cost._fields) : -_SALT]
        size = 2**doublings
        sound = lanes and 0 < doublings < 16 * blocks  # RFC 7914, section 2
        if not sound or size * blocks * lanes > _MOST_WORK:
            raise InvalidState(
                "The file asks for more memory or work than a passphrase takes; it was damaged, or "
                "made to keep you busy."
            )
        words = unicodedata.normalize("NFC", self.words).encode("utf-8", "surrogatepass")
        scrypt = Scrypt(salt=head[-_SALT:], length=32, n=size, r=blocks, p=lanes)
        try:
            made = scrypt.derive(words)
        except MemoryError:
            needed = size * blocks * 128 // 2**20
            raise StorageFailed(f"A passphrase needs {needed} MiB of memory here.") from None
        return _expand(made, head)


@dataclass(frozen=True)
class PublicKey(Closer):
    """Whoever has it may close a vault, and only the owner of the secret key opens it.

    It says who may read, not who wrote.
    """

    key: bytes

    def close(self, start: bytes) -> tuple[bytes, bytes]:
        """Return a head with a key that is used this once, and the key that both make."""
        once = X25519PrivateKey.generate()
        head = start + SecretKey.kind + once.public_key().public_bytes_raw()
        try:
            shared = once.exchange(X25519PublicKey.from_public_bytes(self.key))
        except ValueError:  # a point of low order, with which everybody shares the same
            raise InvalidSetting("This public key protects nothing; take another one.") from None
        return _with_check(head, _expand(shared, head + self.key))


@dataclass(frozen=True, repr=False)
class SecretKey(Opener):
    """The other half of a public key: 32 bytes that nobody else has."""

    key: bytes
    kind = b"k"
    size = 32

    @classmethod
    def make(cls) -> SecretKey:
        """Return a new one."""
        return cls(X25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> PublicKey:
        """The half that others may have."""
        own = X25519PrivateKey.from_private_bytes(self.key)
        return PublicKey(own.public_key().public_bytes_raw())

    def open(self, head: bytes) -> bytes:
        """Return the key that this one and the head make."""
        once = head[-CHECK - self.size : -CHECK]
        try:
            own = X25519PrivateKey.from_private_bytes(self.key)
            shared = own.exchange(X25519PublicKey.from_public_bytes(once))
        except ValueError:
            shared = b""
        return _checked(
            head,
            _expand(shared, head[:-CHECK] + self.public.key),
            "The file was closed for another key, or its beginning was damaged.",
        )


def _expand(shared: bytes, context: bytes) -> bytes:
    return HKDF(SHA256(), length=32 + CHECK, salt=None, info=_DOMAIN + context).derive(shared)


def _with_check(head: bytes, made: bytes) -> tuple[bytes, bytes]:
    return head + made[32:], made[:32]


def _checked(head: bytes, made: bytes, wrong: str) -> bytes:
    if not hmac.compare_digest(head[-CHECK:], made[32:]):
        raise WrongKey(wrong)
    return made[:32]
