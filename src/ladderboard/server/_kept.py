"""Pages that everybody gets, kept for as long as what they are made of stays the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Kept", "Made"]

_MOST = 64


class Made(NamedTuple):
    """A page as it is, and packed."""

    content: bytes
    packed: bytes


class Kept:
    """The pages of one server that were asked for last; for any thread."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, Made] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the page of a key, made now if it is not kept."""
        with self._lock:
            found = self._pages.get(key)
            if found is not None:
                self._pages.move_to_end(key)
                return found
        made = make()
        with self._lock:
            self._pages[key] = made
            while len(self._pages) > _MOST:
                self._pages.popitem(last=False)
        return made
