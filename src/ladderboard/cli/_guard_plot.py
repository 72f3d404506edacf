"""Small drawings in text: a meter, and how the released value came down."""

import os
import sys
from collections.abc import Sequence

__all__ = ["can_draw", "history", "meter"]

_FULL, _EMPTY = "█", "░"
_BRAILLE = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row, then by column


def can_draw() -> bool:
    """Return whether stdout shows blocks and braille; some terminals and encodings cannot."""
    if os.environ.get("TERM") in {"dumb", "linux"} and sys.stdout.isatty():
        return False
    try:
        f"{_FULL}{_EMPTY}{chr(_BRAILLE)}".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeError):
        return False
    return True


def meter(used: int, budget: int, width: int, *, plain: bool) -> str:
    """Draw a bar; a question used shows, and one left shows, too.

    >>> meter(1, 1000, 10, plain=True), meter(999, 1000, 10, plain=True)
    ('#.........', '#########.')
    """
    full = round(width * used / budget)
    if 0 < used < budget:
        full = min(max(full, 1), width - 1)
    marks = "#." if plain else f"{_FULL}{_EMPTY}"
    return marks[0] * full + marks[1] * (width - full)


def history(values: Sequence[float], width: int, height: int, *, plain: bool) -> list[str]:
    r"""Draw values as steps, the largest at the top, with their numbers before and below.

    >>> print("\n".join(history([0.5, 0.5, 0.25, 0.25], 13, 3, plain=True)))
     0.5 #####
             #
    0.25     ####
         1      4
    """
    low, high = min(values), max(values)
    ends = [f"{high:.4g}", f"{low:.4g}"] if low < high else [f"{high:.4g}"]
    height = height if low < high else 1
    margin = max(map(len, ends))
    columns = max(width - margin - 1, 8)
    across, down = (columns, height) if plain else (2 * columns, 4 * height)
    dots = _steps(values, across, down)
    rows = _hashes(dots) if plain else _braille(dots)
    labels = [ends[0], *[""] * (height - 2), *ends[1:]]
    return [
        *(f"{label:>{margin}} {row}".rstrip() for label, row in zip(labels, rows, strict=True)),
        f"{'':{margin}} 1{f'{len(values):,}' if len(values) > 1 else '':>{columns - 1}}".rstrip(),
    ]


def _steps(values: Sequence[float], across: int, down: int) -> list[list[bool]]:
    """Return a grid of dots, the top row first: a step line through the values."""
    low, high = min(values), max(values)
    unit = (down - 1) / (high - low) if low < high else 0
    grid = [[False] * across for _ in range(down)]
    before = round((high - values[0]) * unit)
    for at in range(across):
        # The last of several questions on one dot; the one question on several dots.
        place = max(at * len(values) // across, (at + 1) * len(values) // across - 1)
        row = round((high - values[place]) * unit)
        top, bottom = sorted((before, row))
        for each in range(top, bottom + 1):
            grid[each][at] = True
        before = row
    return grid


def _hashes(dots: list[list[bool]]) -> list[str]:
    return ["".join("#" if each else " " for each in row) for row in dots]


def _braille(dots: list[list[bool]]) -> list[str]:
    rows = []
    for top in range(0, len(dots), 4):
        cells = []
        for left in range(0, len(dots[0]), 2):
            bits = sum(
                _DOTS[row][column]
                for row in range(4)
                for column in range(2)
                if dots[top + row][left + column]
            )
            cells.append(chr(_BRAILLE + bits) if bits else " ")
        rows.append("".join(cells))
    return rows
