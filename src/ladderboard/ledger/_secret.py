"""The secret side of an entry: what decided a release, kept apart from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger
from ladderboard.ledger._canonical import Record, decode
from ladderboard.ledger._commitment import Commitment
from ladderboard.ledger._padding import pad, unpad

if TYPE_CHECKING:
    from ladderboard.ledger._canonical import Encoded

__all__ = ["Secret"]

_BLOCK = 512
_CONTENT = Record("risk", "training", "broken", "draws", "before", "after")
_PACKED = Record("content", "salt", "submission", "submission_salt")


class Secret(NamedTuple):
    """Risk, draws and states of one question, with the salt that hides them.

    Parameters
    ----------
    risk
        The mean loss on the holdout.
    training
        The mean loss on the training data, where the mechanism looks at it.
    broken
        Whether the loss broke down, so that the worst risk there is was taken.
    draws
        Every number drawn for the question.
    before, after
        Digests of the ladder's state. Not the states: some hold a number for every example.
    salt
        Of the hash that the entry shows.
    submission
        The digest of the aligned predictions.
    submission_salt
        Of that digest's own commitment.
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

    @property
    def content(self) -> Encoded:
        """What is committed to, in canonical form."""
        return _CONTENT.encode(self._asdict())

    @property
    def commitment(self) -> Commitment:
        """What the entry shows of the secret side: one salted hash."""
        return Commitment("secret", self.content, self.salt)

    @property
    def submitted(self) -> Commitment:
        """What the entry shows of the submission. Its salt is the participant's receipt."""
        return Commitment("submission", self.submission, self.submission_salt)

    def written(self) -> tuple[bytes, bytes, bytes]:
        """Return both hashes that the entry shows, submission first, and the packed form.

        Packed it is padded, so that its size tells nothing about risk and draws.
        """
        content = self.content
        shown = Commitment("secret", content, self.salt).hash
        return self.submitted.hash, shown, pad(self._form(content), _BLOCK)

    def opened(self) -> Encoded:
        """Return the form that a bundle shows once everything may be seen."""
        return self._form(self.content)

    def _form(self, content: Encoded) -> Encoded:
        return _PACKED.encode({**self._asdict(), "content": content})

    def pack(self) -> bytes:
        """Return the packed form alone."""
        return self.written()[2]

    @classmethod
    def unpack(cls, packed: bytes) -> Secret:
        """Read what ``pack`` wrote."""
        try:
            fields = decode(unpad(packed))
            content = fields.pop("content")
            return cls(**{**content, "draws": tuple(content["draws"])}, **fields)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise BrokenLedger(
                "The secret side of an entry cannot be read; it was damaged."
            ) from None
