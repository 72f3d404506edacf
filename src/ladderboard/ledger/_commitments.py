"""The secret side: salted hashes, published first and opened later, and its encryption."""

from __future__ import annotations

import hashlib
import hmac
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger, InvalidState, MissingDependency, WrongKey
from ladderboard.ledger._encoding import MapEncoder, decode, digest, pad, unpad

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.ledger._encoding import Encoded


KEY_BYTES = 32
_NONCE = 12
_OPEN, _CLOSED = b"\0", b"\1"
_DAMAGED = "A secret is damaged: it is neither encrypted nor plain."


class Encryption(ABC):
    """Encrypts what the database stores, and decrypts it again.

    ``context`` names the value and where it is stored, so that it cannot be moved elsewhere.
    """

    @abstractmethod
    def encrypt(self, context: str, content: bytes) -> bytes:
        """Return the bytes to store."""

    @abstractmethod
    def decrypt(self, context: str, encrypted: bytes) -> bytes:
        """Return the content."""


class NoEncryption(Encryption):
    """No encryption: everyone with access to the database can read the secrets."""

    def encrypt(self, context: str, content: bytes) -> bytes:
        """Return the content unchanged, after a byte that says so."""
        return _OPEN + content

    def decrypt(self, context: str, encrypted: bytes) -> bytes:
        """Return the content; refuse an encrypted one."""
        if encrypted[:1] == _CLOSED:
            raise WrongKey(
                "Labels and other secrets are encrypted; give the key file: --key-file, or "
                "key_file= in Python."
            )
        if encrypted[:1] != _OPEN:
            raise InvalidState(_DAMAGED)
        return encrypted[1:]


class Cipher(Encryption):
    """ChaCha20-Poly1305 (RFC 8439) with a key for each book and the context as associated data.

    Parameters
    ----------
    key
        32 secret bytes.
    book
        The book's id.
    """

    def __init__(self, key: bytes, book: str) -> None:
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra
            from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415
                ChaCha20Poly1305,
            )
        except ImportError:
            raise MissingDependency(
                "A key file needs cryptography: pip install 'ladderboard[guard]'."
            ) from None
        book_key = hashlib.blake2b(
            book.encode(), key=key, digest_size=32, person=b"ladderboard.seal"
        )
        self._cipher = ChaCha20Poly1305(book_key.digest())
        self._wrong = InvalidTag

    def __repr__(self) -> str:
        return "Cipher(<key hidden>)"

    def encrypt(self, context: str, content: bytes) -> bytes:
        """Encrypt with a fresh nonce, which is stored before the ciphertext."""
        nonce = os.urandom(_NONCE)
        return _CLOSED + nonce + self._cipher.encrypt(nonce, content, context.encode())

    def decrypt(self, context: str, encrypted: bytes) -> bytes:
        """Decrypt; refuse what was encrypted with another key or for another context."""
        if encrypted[:1] == _OPEN:
            raise WrongKey("Labels and other secrets are not encrypted; leave the key file out.")
        if encrypted[:1] != _CLOSED:
            raise InvalidState(_DAMAGED)
        nonce, content = encrypted[1 : _NONCE + 1], encrypted[_NONCE + 1 :]
        try:
            return self._cipher.decrypt(nonce, content, context.encode())
        except (self._wrong, ValueError):
            raise WrongKey(
                "A secret cannot be decrypted: the key file is wrong, or the secret was damaged."
            ) from None


SALT_BYTES = 32
_ENCODER = MapEncoder("content", "salt")
COMMITTED_FIELDS = ("n", "loss", "mechanism", "rules", "holdout", "key")
"""The fields of the first entry that its commitment is the hash of."""
_BLOCK = 512
_CONTENT = MapEncoder("risk", "training", "broken", "draws", "before", "after")
_CONTENT_WITH_ERROR = MapEncoder(
    "risk", "training", "broken", "draws", "before", "after", "standard_error"
)
_PACKED = MapEncoder("content", "salt", "submission", "submission_salt")


random_salt = partial(os.urandom, SALT_BYTES)
"""Returns a random salt; every commitment has its own."""


class Commitment(NamedTuple):
    """A content that was committed to, with the salt that hides it.

    Parameters
    ----------
    domain
        The kind of content; the same content has another hash in another domain.
    content
        Anything with a canonical form.
    salt
        Thirty-two random bytes.
    """

    domain: str
    content: Any
    salt: bytes

    @classmethod
    def create(
        cls, domain: str, content: Any, salt: Callable[[], bytes] = random_salt
    ) -> Commitment:
        """Commit to a content with a fresh salt."""
        return cls(domain, content, salt())

    @property
    def hash(self) -> bytes:
        """The hash, which is published."""
        return _ENCODER.digest(self.domain, self.content, self.salt)

    def opens(self, published: bytes) -> bool:
        """Return whether a published hash commits to this content."""
        return hmac.compare_digest(self.hash, published)


@dataclass(frozen=True)
class Opening:
    """The settings that decide all releases; a book's first entry commits to them.

    Parameters
    ----------
    n
        The number of examples of the holdout.
    loss, mechanism
        What their ``describe`` returns.
    rules
        The rules, as JSON values; ``questions`` is the budget.
    holdout
        The digest of the holdout: its ids, its labels and its other columns.
    """

    n: int
    loss: Mapping[str, Any]
    mechanism: Mapping[str, Any]
    rules: Mapping[str, Any]
    holdout: bytes

    def make_commitments(self, key: bytes, salts: tuple[bytes, bytes]) -> dict[str, Commitment]:
        """Commit to the holdout and to the noise key, each with its own salt."""
        return {
            "holdout": Commitment("holdout", self.holdout, salts[0]),
            "key": Commitment("key", hashlib.sha256(key).digest(), salts[1]),
        }

    def first_entry_fields(self, commitments: Mapping[str, Commitment]) -> dict[str, Any]:
        """Return the fields of the first entry; ``commitment`` is the hash of all the others."""
        fields = {
            "n": self.n,
            "loss": dict(self.loss),
            "mechanism": dict(self.mechanism),
            "rules": dict(self.rules),
            **{name: commitment.hash.hex() for name, commitment in commitments.items()},
        }
        return {**fields, "commitment": digest("opening", fields).hex()}


class SecretSide(NamedTuple):
    """Risk, draws and states of one question, with the salt that hides them.

    Parameters
    ----------
    risk
        The mean loss on the holdout.
    training
        The mean loss on the training data, if the mechanism uses it.
    broken
        Whether computing the loss failed, so that the worst possible risk was used.
    draws
        Every number drawn for the question.
    before, after
        Digests of the ladder's state before and after the question. (Some states hold a number for
        every example.)
    salt
        The salt of the entry's commitment to these values.
    submission
        The digest of the aligned predictions.
    submission_salt
        The salt of the entry's commitment to that digest.
    standard_error
        That of the risk, if the mechanism needs it; otherwise None and not committed to.
    """

    risk: float
    training: float | None
    broken: bool
    draws: tuple[Any, ...]
    before: bytes
    after: bytes
    salt: bytes
    submission: bytes
    submission_salt: bytes
    standard_error: float | None = None

    @property
    def content(self) -> Encoded:
        """The values that the entry commits to, in canonical form."""
        if self.standard_error is None:
            return _CONTENT.encode(*self[:6])
        return _CONTENT_WITH_ERROR.encode(*self[:6], self.standard_error)

    @property
    def commitment(self) -> Commitment:
        """The entry's commitment to the secret side: one salted hash."""
        return Commitment("secret", self.content, self.salt)

    @property
    def submission_commitment(self) -> Commitment:
        """The entry's commitment to the submission. Its salt is part of the receipt."""
        return Commitment("submission", self.submission, self.submission_salt)

    def commit_and_pack(self) -> tuple[bytes, bytes, bytes]:
        """Return the hashes of both commitments, the submission's first, and the packed form.

        The packed form is padded, so that its size reveals nothing about risk and draws.
        """
        content = self.content
        return (
            self.submission_commitment.hash,
            Commitment("secret", content, self.salt).hash,
            pad(self._form(content), _BLOCK),
        )

    def encode_opened(self) -> Encoded:
        """Return the form in which a bundle publishes it."""
        return self._form(self.content)

    def _form(self, content: Encoded) -> Encoded:
        return _PACKED.encode(content, self.salt, self.submission, self.submission_salt)

    def pack(self) -> bytes:
        """Return the packed form alone."""
        return self.commit_and_pack()[2]

    @classmethod
    def unpack(cls, packed: bytes) -> SecretSide:
        """Read what ``pack`` wrote."""
        try:
            fields = decode(unpad(packed))
            content = fields.pop("content")
            return cls(**{**content, "draws": tuple(content["draws"])}, **fields)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise BrokenLedger(
                "The secret side of an entry cannot be read; it was damaged."
            ) from None
