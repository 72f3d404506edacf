"""Sheets: named columns, or bare ones, that are loaded when it is known which are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ladderboard.files._columns import Column

__all__ = ["Loaded", "Sheet"]


class Sheet(Protocol):
    """What every format is brought to. ``names`` is None where columns have none."""

    @property
    def names(self) -> list[str] | None:
        """The columns' names."""

    @property
    def width(self) -> int:
        """How many columns there are."""

    def load(self, which: Sequence[int], number: Sequence[bool]) -> list[Column]:
        """Load some columns; ``number`` says of which numbers are wanted."""

    def few(self, which: Sequence[int], number: Sequence[bool]) -> list[Column] | None:
        """Load columns in a light way, None if there is none."""

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Load every column; None for one that holds neither numbers nor text nor booleans."""

    def pour(self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]) -> bool:
        """Hand whole numbers of some columns to ``use``, piece by piece.

        False if there is anything unusual or ``use`` says so: then the columns are to be loaded.
        """


class Loaded:
    """A sheet that is in memory already."""

    def __init__(self, names: list[str] | None, columns: list[Column]) -> None:
        self.names = names
        self.columns = columns
        self.width = len(columns)

    def load(self, which: Sequence[int], number: Sequence[bool]) -> list[Column]:
        """Return some columns."""
        return [self.columns[each] for each in which]

    def few(self, which: Sequence[int], number: Sequence[bool]) -> list[Column] | None:
        """There is no lighter way."""

    def load_all(self, *, number: bool) -> list[Column | None]:
        """Return every column."""
        return list(self.columns)

    def pour(self, which: Sequence[int], use: Callable[[list[NDArray[Any]]], bool]) -> bool:
        """Nothing is gained where columns are in memory."""
        return False
