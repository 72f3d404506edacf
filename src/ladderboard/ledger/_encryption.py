"""Encryption of the secret side in the database."""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod

from ladderboard.errors import InvalidState, MissingDependency, WrongKey

KEY_BYTES = 32
_NONCE = 12
_OPEN, _CLOSED = b"\0", b"\1"
_DAMAGED = "The secret side is damaged: it is neither encrypted nor open."


class Encryption(ABC):
    """Something that closes what is kept and opens it again.

    ``place`` says what it is and where it is kept, so that nothing can be put elsewhere.
    """

    @abstractmethod
    def encrypt(self, place: str, content: bytes) -> bytes:
        """Return what is kept."""

    @abstractmethod
    def decrypt(self, place: str, kept: bytes) -> bytes:
        """Return the content."""


class NoEncryption(Encryption):
    """Nothing is encrypted; whoever reads the database reads the secrets."""

    def encrypt(self, place: str, content: bytes) -> bytes:
        """Return it as it is, after a byte that says so."""
        return _OPEN + content

    def decrypt(self, place: str, kept: bytes) -> bytes:
        """Return it, unless it is encrypted."""
        if kept[:1] == _CLOSED:
            raise WrongKey("The secret side is encrypted; give the key file it was made with.")
        if kept[:1] != _OPEN:
            raise InvalidState(_DAMAGED)
        return kept[1:]


class Cipher(Encryption):
    """ChaCha20-Poly1305 (RFC 8439), a key for each book, the place authenticated with the content.

    Parameters
    ----------
    key
        Thirty-two secret bytes.
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
        own = hashlib.blake2b(book.encode(), key=key, digest_size=32, person=b"ladderboard.seal")
        self._cipher = ChaCha20Poly1305(own.digest())
        self._wrong = InvalidTag

    def __repr__(self) -> str:
        return "Cipher(<key hidden>)"

    def encrypt(self, place: str, content: bytes) -> bytes:
        """Encrypt under a fresh nonce, which goes before it."""
        nonce = secrets.token_bytes(_NONCE)
        return _CLOSED + nonce + self._cipher.encrypt(nonce, content, place.encode())

    def decrypt(self, place: str, kept: bytes) -> bytes:
        """Decrypt, or refuse what this key did not close here."""
        if kept[:1] == _OPEN:
            raise WrongKey("The secret side is not encrypted; leave the key file out.")
        if kept[:1] != _CLOSED:
            raise InvalidState(_DAMAGED)
        nonce, content = kept[1 : _NONCE + 1], kept[_NONCE + 1 :]
        try:
            return self._cipher.decrypt(nonce, content, place.encode())
        except (self._wrong, ValueError):
            raise WrongKey(
                "The secret side cannot be opened: the key file is another one, or it was damaged."
            ) from None
