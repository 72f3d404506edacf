"""Commitments: a hash that tells nothing until it is opened, and then cannot be denied."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.ledger._canonical import Record, digest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SALT_BYTES", "Commitment", "fresh_salt"]

SALT_BYTES = 32
_FORM = Record("content", "salt")


def fresh_salt() -> bytes:
    """Return a salt from the operating system; every commitment has one of its own."""
    return secrets.token_bytes(SALT_BYTES)


@dataclass(frozen=True)
class Commitment:
    """What was committed to, with the salt that hides it.

    Parameters
    ----------
    domain
        What kind of thing it is; the same content in two domains has two hashes.
    content
        Anything with a canonical form.
    salt
        Thirty-two random bytes.
    """

    domain: str
    content: Any
    salt: bytes

    @classmethod
    def to(cls, domain: str, content: Any, salt: Callable[[], bytes] = fresh_salt) -> Commitment:
        """Commit to a content with a fresh salt."""
        return cls(domain, content, salt())

    @property
    def hash(self) -> bytes:
        """What is published."""
        return digest(self.domain, _FORM.encode({"salt": self.salt, "content": self.content}))

    def opens(self, published: bytes) -> bool:
        """Tell whether this is what was committed to."""
        return hmac.compare_digest(self.hash, published)
