"""The opening: what a book commits to before its first question."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.ledger._canonical import digest
from ladderboard.ledger._commitment import Commitment

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DECIDED", "Opening"]

DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
"""The fields of the first entry that its commitment is the hash of."""


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

    def hidden(self, key: bytes, salts: tuple[bytes, bytes]) -> dict[str, Commitment]:
        """Commit to the holdout and to the noise key, each with a salt of its own."""
        return {
            "holdout": Commitment("holdout", self.holdout, salts[0]),
            "key": Commitment("key", hashlib.sha256(key).digest(), salts[1]),
        }

    def public(self, hidden: Mapping[str, Commitment]) -> dict[str, Any]:
        """Return the fields of the first entry; ``commitment`` is the hash of all the others."""
        fields = {
            "n": self.n,
            "loss": dict(self.loss),
            "mechanism": dict(self.mechanism),
            "rules": dict(self.rules),
            **{name: each.hash.hex() for name, each in hidden.items()},
        }
        return {**fields, "commitment": digest("opening", fields).hex()}
