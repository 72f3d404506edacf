"""A receipt, with which a team can prove later that its question was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger
from ladderboard.ledger._chain import Entry
from ladderboard.ledger._commitments import SecretSide

if TYPE_CHECKING:
    from ladderboard.ledger._encryption import Encryption
    from ladderboard.ledger._storage import ReadView

_FORMAT = 1


class Receipt(NamedTuple):
    """Proves that a submission was answered, and that the ledger up to it was not rewritten.

    Parameters
    ----------
    book
        The id of the chain.
    entry
        The entry's number; None if it would reveal how often others asked.
    hash
        The entry's hash.
    submission, salt
        The digest of the aligned predictions, and the salt with which the entry commits to it.
    """

    book: str
    entry: int | None
    hash: bytes
    submission: bytes
    salt: bytes

    def redacted(self) -> Receipt:
        """Return the receipt without the entry's number, which shows how often others asked.

        The hash stays. The entry and every one before it contain a salted hash whose salt is
        secret, so their contents cannot be guessed from it.
        """
        return self._replace(entry=None)

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON values.

        >>> Receipt("example", 3, b"h" * 32, b"m" * 32, bytes(32)).describe()["submission"][:8]
        '6d6d6d6d'
        """
        return {
            "format": _FORMAT,
            "book": self.book,
            "entry": self.entry,
            "hash": self.hash.hex(),
            "submission": self.submission.hex(),
            "salt": self.salt.hex(),
        }


def read_receipt(view: ReadView, book: str, number: int, encryption: Encryption) -> Receipt:
    """Return the receipt of a question that was answered before."""
    packed = view.secret_side(number)
    if packed is None:
        raise BrokenLedger(f"Entry {number} of the ledger has no secret side, so no receipt.")
    secret = SecretSide.unpack(encryption.decrypt(f"secret {number}", packed))
    encoded = next(iter(view.entries(number, number + 1)))
    return Receipt(book, number, Entry(encoded).hash, secret.submission, secret.submission_salt)
