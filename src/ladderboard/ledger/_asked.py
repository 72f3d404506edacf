"""A question on its way through the ledger, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.mechanisms import Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.ledger._receipt import Receipt
    from ladderboard.ledger._storage import At

__all__ = ["Asked", "Outcome"]


class Asked(NamedTuple):
    """A question as it reaches the ledger: everything computed, nothing released.

    Parameters
    ----------
    submission
        The digest of the aligned predictions.
    risk
        Their mean loss on the holdout.
    losses
        The loss of every example, where the mechanism wants them.
    training
        The mean loss on the training data, where the mechanism looks at it.
    broken
        Whether the loss broke down, so that the risk is the worst there is.
    ladder
        The name of the ladder; it is started with the question if it is new.
    asker
        An opaque id.
    retry
        A key under which the same question may be sent again.
    """

    submission: bytes
    risk: float
    losses: NDArray[Any] | None = None
    training: float | None = None
    broken: bool = False
    ladder: str = ""
    asker: str | None = None
    retry: str | None = None


class Outcome(NamedTuple):
    """What came of a question: its release, its entry, and where the book stands.

    ``number`` is the entry's; ``again`` says that it had been answered before. Then there is no
    ``receipt`` here: it is read from the book by whoever wants it.
    """

    release: Release
    number: int
    at: At
    again: bool
    receipt: Receipt | None = None


def release_of(fields: dict[str, Any]) -> Release:
    """Return the release that an entry tells."""
    return Release(fields["value"], fields["score"], fields["improved"], fields["question"])
