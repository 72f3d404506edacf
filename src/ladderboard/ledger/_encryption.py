"""Encryption of the secret side in the database."""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod

from ladderboard.errors import InvalidState, MissingDependency, WrongKey

KEY_BYTES = 32
_NONCE = 12
_OPEN, _CLOSED = b"\0", b"\1"
_DAMAGED = "The secret side is damaged: it is neither encrypted nor plain."


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
                "The secret side is encrypted; give the key file that it was created with."
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
        nonce = secrets.token_bytes(_NONCE)
        return _CLOSED + nonce + self._cipher.encrypt(nonce, content, context.encode())

    def decrypt(self, context: str, encrypted: bytes) -> bytes:
        """Decrypt; refuse what was encrypted with another key or for another context."""
        if encrypted[:1] == _OPEN:
            raise WrongKey("The secret side is not encrypted; leave the key file out.")
        if encrypted[:1] != _CLOSED:
            raise InvalidState(_DAMAGED)
        nonce, content = encrypted[1 : _NONCE + 1], encrypted[_NONCE + 1 :]
        try:
            return self._cipher.decrypt(nonce, content, context.encode())
        except (self._wrong, ValueError):
            raise WrongKey(
                "The secret side cannot be decrypted: the key file is wrong, or it was damaged."
            ) from None
