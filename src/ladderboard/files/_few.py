"""Few rows of plain text, read without polars.

Loading polars takes longer than all the rest of one question asked from a shell. So as long as
nobody has loaded it, a small file that leaves no doubt is split here: no quotes, no blanks, nothing
but ASCII, no empty fields, numbers written as everybody writes them.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.files._columns import Mixed, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ladderboard.files._columns import Column

__all__ = ["FEW", "cold", "read_few"]

FEW = 2**20  # bytes; past them loading polars is worth it
_SEPARATORS = (",", ";", "|")
_DOUBTFUL = rb'[^\n!#-~]|"'
_WHOLE = r"-?[0-9]{1,18}"
_REAL = r"-?[0-9]{1,300}\.[0-9]{1,300}"


def cold() -> bool:
    """Return whether polars is not loaded yet."""
    return "polars" not in sys.modules


def read_few(lines: bytes, separator: str, kinds: Sequence[str]) -> list[Column] | None:
    r"""Return the columns of some lines, None if anything is unusual.

    ``kinds`` says of each column whether it is of ``"whole"`` or ``"real"`` numbers or ``"text"``.

    >>> [each.show(np.array([0, 1])) for each in read_few(b"a,1\nb,2\n", ",", ["text", "whole"])]
    [['a', 'b'], [1, 2]]
    """
    if separator not in _SEPARATORS or re.search(_DOUBTFUL, lines):
        return None
    rows = [line.split(separator) for line in lines.decode().removesuffix("\n").split("\n")]
    if any(len(row) != len(kinds) for row in rows):
        return None
    fields = zip(zip(*rows, strict=True), kinds, strict=True)
    found = [_column(list(values), kind) for values, kind in fields]
    columns = [each for each in found if each is not None]
    return columns if len(columns) == len(found) else None


def _column(values: list[str], kind: str) -> Column | None:
    if kind == "text":
        return Mixed(values) if all(values) else None
    joined = "\n".join(values)
    pattern = _WHOLE if kind == "whole" else _REAL
    if not re.fullmatch(rf"(?:{pattern}\n)*{pattern}", joined):
        return None
    if kind == "whole":
        return Numbers(np.array(list(map(int, values)), dtype=np.int64))
    return Numbers(np.array(list(map(float, values))))
