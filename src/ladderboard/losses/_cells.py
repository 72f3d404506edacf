"""Values with structure in one cell of a file: ranked lists, sets, and run-length masks.

A cell is text: items separated by blanks or by a declared separator. In memory a list of items
will do as well. A run-length mask is text too: start and length of each run of pixels, numbered
from 1, as in "1 3 10 2"; an empty cell or "-" is an empty mask.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidInput, InvalidLabels, InvalidPredictions, Problem
from ladderboard.losses._arrays import ExpectedColumns, LabelKind
from ladderboard.losses._base import Loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

ErrorClass = type[InvalidInput]

EMPTY_MASK = "-"
_MAX_ROWS_SHOWN = 10


def read_cells(values: Any, name: str, error_class: ErrorClass, n: int | None = None) -> list[Any]:
    """Return the cells as plain text or lists of plain text; refuse a wrong number of rows."""
    if hasattr(values, "to_numpy"):  # pandas and polars
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise error_class(f"{name} must be an array with a row for each example.")
    if n is not None and len(values) != n:
        raise error_class(
            f"{name} must hold one value for each of the {n} examples; got {len(values)}."
        )
    if not len(values):
        raise error_class(f"{name} must not be empty.")
    cells = [_plain_cell(value) for value in values]
    refuse_rows([cell is None for cell in cells], f"{name} must be text or lists", error_class)
    return cells


def _plain_cell(value: Any) -> Any:
    """Return text for a text or a number, a list of text for a list; None for anything else."""
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        items = [_plain_cell(item) for item in value]
        return None if any(not isinstance(item, str) for item in items) else items
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool_) or value is None:
        return None
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return None


def refuse_rows(bad: list[bool], rule: str, error_class: ErrorClass) -> None:
    """Raise if any row is bad, with their number and the positions of the first ten."""
    positions = [position for position, is_bad in enumerate(bad) if is_bad]
    if not positions:
        return
    shown = tuple(positions[:_MAX_ROWS_SHOWN])
    which = ", ".join(map(str, shown)) + (", ..." if len(positions) > len(shown) else "")
    raise error_class(
        f"{rule}; {len(positions):,} of {len(bad):,} rows break this rule (at position {which}).",
        positions=shown,
        problems=(Problem("rows", None, len(positions), (), rule),),
    )


def split_cell(cell: Any, separator: str | None) -> list[str]:
    """Return the items of a cell; blanks separate them if no separator is declared.

    >>> split_cell("71 108  339", None), split_cell("a b|c", "|"), split_cell("", None)
    (['71', '108', '339'], ['a b', 'c'], [])
    """
    if not isinstance(cell, str):
        return list(cell)
    blank = separator is None or not separator.strip()
    items = cell.split() if blank else [item.strip() for item in cell.split(separator)]
    return [item for item in items if item]


def object_array(items: list[Any]) -> NDArray[Any]:
    """Return a vector that holds each item as it is.

    >>> object_array([[1, 2], [3, 4]]).shape
    (2,)
    """
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@dataclass(frozen=True)
class CellLoss(Loss):
    """A loss of labels and predictions with one cell of text each; an empty one is an answer."""

    @property
    def label_kind(self) -> LabelKind:
        """Text, so that 0706016001 keeps its zero."""
        return "text"

    @property
    def takes_empty(self) -> bool:
        """Always true."""
        return True

    @abstractmethod
    def read_cell(self, cell: Any) -> Any:
        """Return what a cell holds, from text or a list of text."""

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """What the cells hold."""
        return self._read(labels, "labels", InvalidLabels)

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """What the cells hold."""
        return self._read(predictions, "predictions", InvalidPredictions, shape[0])

    def _read(
        self, values: Any, name: str, error_class: ErrorClass, n: int | None = None
    ) -> NDArray[Any]:
        cells = read_cells(values, name, error_class, n)
        return object_array([self.read_cell(cell) for cell in cells])


@dataclass(frozen=True)
class FreeText(CellLoss):
    """A loss of free text."""

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of text."""
        rules = ("prediction: text; may be empty.",)
        return ExpectedColumns("text", "one", rules=rules, example=("some words",), empty=True)

    def read_cell(self, cell: Any) -> str:
        """The text; the items of a list are joined with blanks."""
        return cell if isinstance(cell, str) else " ".join(cell)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Nothing at all."""
        return [np.full(len(labels), "", dtype=object)]


def parse_mask(cell: Any) -> NDArray[np.int64] | None:
    """Return the runs of a mask, start and end of each in order; None if it is not a mask.

    >>> parse_mask("10 2 1 3").tolist(), parse_mask("-").tolist(), parse_mask("1 3 2 2")
    ([[1, 4], [10, 12]], [], None)
    """
    words = cell.split() if isinstance(cell, str) else list(cell)
    if words in ([], [EMPTY_MASK]):
        return np.empty((0, 2), np.int64)
    if len(words) % 2 or not all(word.isascii() and word.isdigit() for word in words):
        return None
    if max(map(len, words)) > 15:
        return None
    runs = np.array(words, dtype=np.int64).reshape(-1, 2)
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    starts, ends = runs[:, 0], runs.sum(axis=1)
    if starts[0] < 1 or (runs[:, 1] < 1).any() or (starts[1:] < ends[:-1]).any():
        return None
    return np.column_stack((starts, ends))


def mask_size(runs: NDArray[np.int64]) -> int:
    """Return the number of pixels of a mask."""
    return int((runs[:, 1] - runs[:, 0]).sum())


def mask_overlap(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """Return the number of pixels that two masks share.

    >>> mask_overlap(parse_mask("1 3 10 5"), parse_mask("3 8"))
    2
    """
    if not len(left) or not len(right):
        return 0
    return _covered_below(left, right[:, 1]) - _covered_below(left, right[:, 0])


def _covered_below(runs: NDArray[np.int64], pixels: NDArray[np.int64]) -> int:
    """Return the sum, over some pixels, of how many pixels of a mask lie below each."""
    lengths = runs[:, 1] - runs[:, 0]
    before = np.concatenate(([0], np.cumsum(lengths)))
    index = np.searchsorted(runs[:, 0], pixels, side="left")
    last = np.maximum(index - 1, 0)
    inside = np.clip(pixels - runs[last, 0], 0, lengths[last])
    return int(np.where(index > 0, before[last] + inside, 0).sum())


def parse_named(cell: Any, numbers: int) -> list[tuple[str, tuple[float, ...]]] | None:
    """Return names, each with some numbers behind it; None if the cell is not made of these.

    >>> parse_named("U+003F 1 1 U+306F 5 7.5", 2)
    [('U+003F', (1.0, 1.0)), ('U+306F', (5.0, 7.5))]
    """
    words = cell.split() if isinstance(cell, str) else list(cell)
    if len(words) % (numbers + 1):
        return None
    entries = []
    for start in range(0, len(words), numbers + 1):
        try:
            values = tuple(map(float, words[start + 1 : start + numbers + 1]))
        except ValueError:
            return None
        if not all(map(np.isfinite, values)):
            return None
        entries.append((words[start], values))
    return entries


def count_points_in_boxes(
    boxes: list[tuple[str, tuple[float, ...]]], points: list[tuple[str, tuple[float, ...]]]
) -> int:
    """Return how many points lie in a box (x, y, width, height) of their name, one in each."""
    free = list(boxes)
    hits = 0
    for name, (x, y) in points:
        for box in free:
            left, top, width, height = box[1]
            if box[0] == name and left <= x <= left + width and top <= y <= top + height:
                free.remove(box)
                hits += 1
                break
    return hits
