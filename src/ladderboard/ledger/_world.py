"""What a book takes from outside."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ladderboard.ledger._commitment import fresh_salt

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["World"]


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True)
class World:
    """The time, and randomness for salts and ids; fixed in tests, and nowhere else."""

    clock: Callable[[], int] = field(default=_now)
    salt: Callable[[], bytes] = field(default=fresh_salt)

    @property
    def real(self) -> bool:
        """Whether time is the machine's, so that a database that is shared may know better."""
        return self.clock is _now
