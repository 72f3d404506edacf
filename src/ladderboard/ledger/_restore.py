"""Going on with an old copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.ledger._chain import append
from ladderboard.ledger._entry import Entry
from ladderboard.ledger._water import HighWater, Level, lacking
from ladderboard.ledger._world import World

if TYPE_CHECKING:
    from ladderboard.ledger._storage import At, Storage

__all__ = ["restore"]


def restore(
    storage: Storage,
    name: str,
    charge: int,
    *,
    water: HighWater | None = None,
    world: World | None = None,
    budget: int | None = None,
) -> At:
    """Charge what may have been asked since a copy was made, and say so in the chain.

    At least as many are charged as the mark shows to be missing. The certificate counts what is
    lost as answers of a ladder of its own, about which nothing is known. ``budget`` is that of
    now, where it was amended.
    """
    charge = _settings.whole("charge", charge, at_least=0)
    world = World() if world is None else world
    level = None if water is None else water.read_if_whole()
    with storage.writing(name) as book:
        at = book.at()
        missing = 0
        if level is not None and level.book == name:
            missing = lacking(level, at, book) or 0
        if charge < missing:
            raise InvalidSetting(
                f"Questions used since this copy was made: at least {missing}; charge so many, or "
                "more."
            )
        if budget is None:
            budget = int(Entry(next(iter(book.entries(0, 1)))).read()["rules"]["questions"])
        left = budget - at.asked - at.charged
        if charge > left:
            raise InvalidSetting(
                f"No more than {left} can be charged: that is how many questions are left."
            )
        book.adopt()
        now = append(
            book,
            name,
            at,
            "restored",
            world.clock(),
            {"charged": charge},
            lost=at.lost + 1,
            charged=at.charged + charge,
        )
    if water is not None:
        water.replace(Level.of(name, now))
    return now
