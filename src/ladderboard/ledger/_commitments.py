"""Salted hashes that are published first and opened later."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenLedger
from ladderboard.ledger._encoding import MapEncoder, decode, digest, pad, unpad

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.ledger._encoding import Encoded

SALT_BYTES = 32
_FORM = MapEncoder("content", "salt")
DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
"""The fields of the first entry that its commitment is the hash of."""
_BLOCK = 512
_CONTENT = MapEncoder("risk", "training", "broken", "draws", "before", "after")
_PACKED = MapEncoder("content", "salt", "submission", "submission_salt")


def random_salt() -> bytes:
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
    def to(cls, domain: str, content: Any, salt: Callable[[], bytes] = random_salt) -> Commitment:
        """Commit to a content with a fresh salt."""
        return cls(domain, content, salt())

    @property
    def hash(self) -> bytes:
        """What is published."""
        return digest(self.domain, _FORM.encode({"salt": self.salt, "content": self.content}))

    def opens(self, published: bytes) -> bool:
        """Tell whether this is what was committed to."""
        return hmac.compare_digest(self.hash, published)


@dataclass(frozen=True)
class Opening:
    """Everything that decides releases.

    Parameters
    ----------
    n
        How many examples the risk is a mean of.
    loss, mechanism
        What their ``describe`` returns.
    rules
        JSON-able; ``questions`` is the budget.
    holdout
        The digest of ids, labels and what goes with them.
    """

    n: int
    loss: Mapping[str, Any]
    mechanism: Mapping[str, Any]
    rules: Mapping[str, Any]
    holdout: bytes

    def make_commitments(self, key: bytes, salts: tuple[bytes, bytes]) -> dict[str, Commitment]:
        """Commit to the holdout and to the noise key, each with a salt of its own."""
        return {
            "holdout": Commitment("holdout", self.holdout, salts[0]),
            "key": Commitment("key", hashlib.sha256(key).digest(), salts[1]),
        }

    def first_entry_fields(self, hidden: Mapping[str, Commitment]) -> dict[str, Any]:
        """Return the fields of the first entry; ``commitment`` is the hash of all the others."""
        fields = {
            "n": self.n,
            "loss": dict(self.loss),
            "mechanism": dict(self.mechanism),
            "rules": dict(self.rules),
            **{name: each.hash.hex() for name, each in hidden.items()},
        }
        return {**fields, "commitment": digest("opening", fields).hex()}


class SecretSide(NamedTuple):
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
    def submission_commitment(self) -> Commitment:
        """What the entry shows of the submission. Its salt is the participant's receipt."""
        return Commitment("submission", self.submission, self.submission_salt)

    def commit_and_pack(self) -> tuple[bytes, bytes, bytes]:
        """Return both hashes that the entry shows, submission first, and the packed form.

        Packed it is padded, so that its size tells nothing about risk and draws.
        """
        content = self.content
        shown = Commitment("secret", content, self.salt).hash
        return self.submission_commitment.hash, shown, pad(self._form(content), _BLOCK)

    def encode_opened(self) -> Encoded:
        """Return the form that a bundle shows once everything may be seen."""
        return self._form(self.content)

    def _form(self, content: Encoded) -> Encoded:
        return _PACKED.encode({**self._asdict(), "content": content})

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
