"""The format of a submission file for a board, in words and with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.files import ID_SEPARATOR, DeclaredColumns

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

    With declared columns it has their names:

    >>> from ladderboard.files import DeclaredColumns
    >>> declared = DeclaredColumns(id=("image",), prediction=("animal",))
    >>> roster = Roster.of(["a", "b"], columns=declared)
    >>> describe_file_format(loss, roster).example[0]
    ('image', 'animal')
    >>> describe_file_format(loss, roster).column_rules
    ('image: each id once, in any order.', 'animal: one of cat, dog.')
    """
    declared = roster.columns or DeclaredColumns()
    id_names = declared.id or ("id",)
    ids = roster.names_of(np.arange(min(2, roster.n)))
    id_rule = "the row's number, from 0" if roster.ids is None else "each id once, in any order"
    columns = loss.columns(kind=roster.kind, width=roster.width)
    header, values = _first_columns(columns, declared.submitted or columns.names)
    cells = [str(id_).split(ID_SEPARATOR) if len(id_names) > 1 else [str(id_)] for id_ in ids]
    lines = ((*id_names, *header), *((*parts, *values) for parts in cells))
    rules = columns.rules
    if len(declared.submitted) == 1:
        rules = tuple(rule.replace("prediction:", f"{declared.submitted[0]}:", 1) for rule in rules)
    return FileFormat(roster.n, (f"{' and '.join(id_names)}: {id_rule}.", *rules), lines)


def _first_columns(
    columns: ExpectedColumns, all_names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the first columns and a value for each, dots in place of the rest."""
    names = all_names[:_EXAMPLE_COLUMNS]
    values = columns.example[:_EXAMPLE_COLUMNS] or (_ELLIPSIS,)
    values = (*values, *values[-1:] * len(names))[: len(names)]
    rest = (_ELLIPSIS,) * (len(all_names) > len(names))
    return (*names, *rest), (*values, *rest)
