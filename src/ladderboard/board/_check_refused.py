"""Settings with which a board would show false or useless numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.errors import Problem

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
