"""The format of a submission file for a board, in words and with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ladderboard.files import Roster
    from ladderboard.losses import ExpectedColumns, Loss

_EXAMPLE_COLUMNS = 3  # shown at most
_ELLIPSIS = "..."


class FileFormat(NamedTuple):
    """The number of rows of a file, a sentence for each kind of column, and its first lines."""

    rows: int
    column_rules: tuple[str, ...]
    example: tuple[tuple[str, ...], ...]


def describe_file_format(loss: Loss, roster: Roster) -> FileFormat:
    """Return the format of a file. It depends on the declared rules, never on the labels.

    >>> from ladderboard.files import Roster
    >>> from ladderboard.losses import ZeroOne
    >>> loss, roster = ZeroOne(classes=("cat", "dog")), Roster.of(["a", "b", "c"])
    >>> file_format = describe_file_format(loss, roster)
    >>> file_format.column_rules[1]
    'prediction: one of cat, dog.'
    >>> file_format.example
    (('id', 'prediction'), ('a', 'cat'), ('b', 'cat'))
    """
    ids = roster.names_of(np.arange(min(2, roster.n)))
    id_rule = "the row's number, from 0" if roster.ids is None else "each id once, in any order"
    columns = loss.columns(kind=roster.kind, width=roster.width)
    header, values = _first_columns(columns)
    lines = (("id", *header), *((str(id_), *values) for id_ in ids))
    return FileFormat(roster.n, (f"id: {id_rule}.", *columns.rules), lines)


def _first_columns(columns: ExpectedColumns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the first columns and a value for each, dots in place of the rest."""
    names = columns.names[:_EXAMPLE_COLUMNS]
    values = columns.example[:_EXAMPLE_COLUMNS] or (_ELLIPSIS,) * len(names)
    rest = (_ELLIPSIS,) * (len(columns.names) > len(names))
    return (*names, *rest), (*values, *rest)
