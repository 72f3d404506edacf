"""A gate's entries: promotions of an incumbent, and looks at a candidate beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ladderboard.errors import BrokenLedger
from ladderboard.ledger._commitments import Commitment
from ladderboard.ledger._encoding import Encoded, MapEncoder, decode, encode, pad, unpad

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.ledger._storage import ChainState

GATE_STATE = "gate"
"""The name under which the state of a gate is stored."""
INCUMBENT = "incumbent"
"""The name under which the incumbent's predictions are stored."""
_BLOCK = 512
_PACKED = MapEncoder("content", "salt", "submission", "submission_salt")
_STATE = MapEncoder("looks", "verdicts", "incumbent", "submission")


class GateState(NamedTuple):
    """What the looks and promotions so far decide about the next look.

    Parameters
    ----------
    looks
        How many looks were answered.
    verdicts
        For every look that said more than "cannot tell", how many verdicts it could have given.
    incumbent
        How often an incumbent was promoted; 0 before the first.
    submission
        The digest of the incumbent's predictions.
    """

    looks: int = 0
    verdicts: tuple[int, ...] = ()
    incumbent: int = 0
    submission: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes to store."""
        return _STATE.encode(*self)

    @classmethod
    def decode(cls, stored: bytes) -> Self:
        """Return the state that ``encode`` wrote."""
        try:
            fields = decode(stored)
            return cls(**{**fields, "verdicts": tuple(fields["verdicts"])})
        except (KeyError, TypeError, ValueError):
            raise BrokenLedger("The gate's state cannot be read; it was damaged.") from None

    def after_look(self, fields: dict[str, Any]) -> Self:
        """Return the state after a look, from the fields of its entry.

        A verdict counts if it depended on labels: "not worse" does not if it needs no win at all.
        """
        differing = fields["differing"]
        certain = differing is not None and fields["needed_not_worse"] == -differing
        silent = "not_worse" if certain else "cannot_tell"
        counted = () if fields["outcome"] == silent else (fields["options"],)
        return self._replace(looks=self.looks + 1, verdicts=self.verdicts + counted)

    def after_promotion(self, submission: bytes) -> Self:
        """Return the state after a promotion."""
        return self._replace(incumbent=self.incumbent + 1, submission=submission)


class LookDecision(NamedTuple):
    """What a look is answered, and why.

    Parameters
    ----------
    public
        Fields of the entry: ``nats``, ``options``, ``differing``, ``needed``, ``needed_not_worse``
        and ``outcome``.
    secret
        The evidence.
    """

    public: dict[str, Any]
    secret: dict[str, Any]


class ScoredLook(NamedTuple):
    """A look at a candidate that was scored but not answered yet.

    Parameters
    ----------
    submission
        The digest of the aligned predictions.
    margin
        Of "not worse".
    decide
        Called in the transaction, with the states of gate and chain and a function that returns
        the incumbent's stored predictions; returns the decision, or None if no look is needed.
    nonce
        As of a ``ScoredQuestion``: random bytes for scores.
    """

    submission: bytes
    margin: float
    decide: Callable[[GateState, ChainState, Callable[[], bytes]], LookDecision | None]
    nonce: bytes = b""


class RecordedLook(NamedTuple):
    """The answer to a look: its entry's fields and number, and the chain state after it."""

    fields: dict[str, Any]
    entry_number: int
    chain_state: ChainState
    repeated: bool
    dedupe_key: bytes


class GateSecret(NamedTuple):
    """The secret side of a look or a promotion; the content of a promotion is empty."""

    content: dict[str, Any]
    salt: bytes
    submission: bytes
    submission_salt: bytes

    @property
    def commitment(self) -> Commitment:
        """The entry's commitment to the content."""
        return Commitment("look", self.content, self.salt)

    @property
    def submission_commitment(self) -> Commitment:
        """The entry's commitment to the submission."""
        return Commitment("submission", self.submission, self.submission_salt)

    def commit_and_pack(self) -> tuple[bytes, bytes, bytes]:
        """Return the hashes of both commitments, the submission's first, and the packed form.

        The packed form is padded, so that its size reveals nothing.
        """
        content = Encoded(encode(self.content))
        return (
            self.submission_commitment.hash,
            Commitment("look", content, self.salt).hash,
            pad(_PACKED.encode(content, *self[1:]), _BLOCK),
        )

    def encode_opened(self) -> Encoded:
        """Return the form in which a bundle publishes it."""
        return _PACKED.encode(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return what ``pack`` wrote."""
        try:
            return cls(**decode(unpad(packed)))
        except (TypeError, ValueError):
            raise BrokenLedger(
                "The secret side of an entry cannot be read; it was damaged."
            ) from None

    def find_mismatch(self, fields: dict[str, Any]) -> str:
        """Return what the entry does not commit to, or an empty text."""
        if self.submission_commitment.hash.hex() != fields["submission"]:
            return "its submission is not what was committed to"
        if self.commitment.hash.hex() != fields["secret"]:
            return "its secret side is not what was committed to"
        return ""
