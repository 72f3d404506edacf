"""Settings with which a board would show false or useless numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.errors import Problem
from ladderboard.holdout import coarseness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board._check_promise import Promise
    from ladderboard.board._folder import BoardFolder

__all__ = ["refusals"]


def refusals(folder: BoardFolder, promise: Promise) -> Iterator[Problem]:
    """Yield a problem for each setting that must be changed before the board opens."""
    mechanism = promise.mechanism
    if mechanism.zero_one_only and not folder.zero_one:
        said = (
            f"mechanism: {mechanism.name} can be counted under zero-one loss only, without weights "
            "and groups. Here it would tell too much, a little with every question, and nothing "
            "could be promised. Leave mechanism out."
        )
        yield Problem("mechanism", "mechanism", 1, (), said)
    gap, coarse = promise.baseline, coarseness(mechanism)
    if not folder.zero_one and gap is not None and 0 < gap <= coarse:
        text = folder.rules.display.text
        said = (
            f"The answers are too coarse for this loss. From the best baseline (a constant, or one "
            f"of your files) to perfect predictions the loss falls by {gap:.2g}, and a gain below "
            f"{coarse:.2g} may go unseen: nothing may be shown between {text(coarse)} and "
            f"{text(0.0)} {folder.rules.display.name}. Use more examples, declare a narrower "
            "range, or set a mechanism with a finer step and grid."
        )
        yield Problem("too_coarse", "mechanism", 1, (), said)
