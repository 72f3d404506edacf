"""Which columns of a file hold ids, predictions and labels: declared, or guessed from a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_list
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files._column_matching import is_index_name, looks_like_id_name, normalize_name
from ladderboard.files._columns import MixedColumn
from ladderboard.files._formats import open_table
from ladderboard.files._source import Limits, Problems, format_names, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.files._columns import Column
    from ladderboard.files._source import ErrorClass

ID_SEPARATOR = "|"
"""Between the parts of an id that is made of several columns."""
_KEYS = ("id", "prediction", "label")
_DEFAULT = Limits()


@dataclass(frozen=True)
class DeclaredColumns:
    """The names of the columns of ids, predictions and labels, as the owner declares them.

    Several id columns make one id: their values with ``|`` between them. Without declared
    predictions a submission has all other columns, or those of the labels if there are several.

    Examples
    --------
    >>> DeclaredColumns.read({"id": ["tripId", "time"], "prediction": ["lat", "lng"]})
    DeclaredColumns(id=('tripId', 'time'), prediction=('lat', 'lng'), label=())
    """

    id: tuple[str, ...] = ()
    prediction: tuple[str, ...] = ()
    label: tuple[str, ...] = ()

    @classmethod
    def read(cls, declared: DeclaredColumns | Mapping[str, Any] | None) -> DeclaredColumns | None:
        """Return declared columns from a mapping of names or lists of names."""
        if declared is None or isinstance(declared, DeclaredColumns):
            return declared
        try:
            parts = dict(declared)
        except (TypeError, ValueError):
            raise InvalidSetting(
                "columns must name columns by their use, as in {id: image, prediction: label}; "
                f"got {_settings.safe_repr(declared)}."
            ) from None
        unknown = [key for key in parts if key not in _KEYS]
        if unknown:
            raise InvalidSetting(
                f"columns has no key {_settings.safe_repr(unknown[0])}; the keys are id, "
                "prediction and label."
            )
        return cls(**{key: _read_names(key, names) for key, names in parts.items()})

    def describe(self) -> dict[str, list[str]]:
        """Return what was declared, JSON-able."""
        parts = {"id": self.id, "prediction": self.prediction, "label": self.label}
        return {key: list(names) for key, names in parts.items() if names}

    @property
    def submitted(self) -> tuple[str, ...]:
        """The names of the prediction columns; empty if any will do."""
        return self.prediction or (self.label if len(self.label) > 1 else ())


def _read_names(key: str, names: Any) -> tuple[str, ...]:
    listed = [names] if isinstance(names, str) else names
    valid = isinstance(listed, list | tuple) and all(isinstance(name, str) for name in listed)
    if not valid or not listed or len(set(map(normalize_name, listed))) != len(listed):
        raise InvalidSetting(
            f"columns.{key} must be a column's name or a list of different names; "
            f"got {_settings.safe_repr(names)}."
        )
    return tuple(listed)


def find_columns(
    names: Sequence[str], wanted: Mapping[str, Sequence[str]], error_class: ErrorClass
) -> list[list[int]]:
    """Return the positions of declared columns, by what they hold; refuse and list missing ones.

    A name is compared exactly first, then without capitals and surrounding blanks.
    """
    normalized = [normalize_name(name) for name in names]
    positions_by_use: list[list[int]] = []
    missing: list[tuple[str, str]] = []
    for use, columns in wanted.items():
        positions = []
        for name in columns:
            if name in names:
                positions.append(list(names).index(name))
            elif normalized.count(normalize_name(name)) == 1:
                positions.append(normalized.index(normalize_name(name)))
            else:
                missing.append((name, use))
        positions_by_use.append(positions)
    problems = Problems(error_class)
    for name, use in missing:
        end = f"; the columns are {format_names(names)}." if (name, use) == missing[-1] else "."
        message = f"There is no column {_settings.safe_repr(name)}, which holds the {use}{end}"
        problems.add("missing_column", message, column=name)
    problems.refuse_if_any()
    return positions_by_use


def combine_ids(columns: Sequence[Column]) -> Column:
    """Return several id columns as one, of text; an id with an empty part is empty."""
    if len(columns) == 1:
        return columns[0]
    parts = [column.text_ids() for column in columns]
    listed = [part if isinstance(part, list) else part.to_list() for part in parts]
    return MixedColumn(
        [None if not all(row) else ID_SEPARATOR.join(row) for row in zip(*listed, strict=True)]
    )


def guess_columns(
    sample: Any, *, width: int | None = 1, limits: Limits = _DEFAULT
) -> tuple[DeclaredColumns, str]:
    r"""Return the columns of a sample submission, and a sentence that says what was guessed.

    The id is the first column whose name looks like one, with those behind it until no id occurs
    twice; otherwise the first column without a repeated value. ``width`` is the number of
    prediction columns that the metric needs, None for all others.

    >>> guess_columns(b"image_id,label\na.jpg,4\nb.jpg,4\n")[1]
    "Guessed from the sample submission: ids are in 'image_id', predictions in 'label'."
    """
    table = open_table(
        sample,
        file_format=None,
        limits=limits,
        max_rows=limits.rows,
        error_class=InvalidPredictions,
        has_header=lambda *_: True,
    )
    names = table.names or []
    usable = [position for position, name in enumerate(names) if not is_index_name(name)]
    if len(usable) < 2:
        refuse(InvalidPredictions, "header", "A sample submission needs columns with names: an id "
               "and a prediction.")  # fmt: skip
    columns = dict(zip(usable, table.load_columns(usable, [False] * len(usable)), strict=True))
    ids = _guess_ids(names, usable, columns)
    others = [position for position in usable if position not in ids]
    predictions = others if width is None else others[: max(width, 1)]
    declared = DeclaredColumns(
        tuple(names[position] for position in ids),
        tuple(names[position] for position in predictions),
    )
    shown = [repr(name) for name in declared.prediction[:4]]
    if len(declared.prediction) > len(shown):
        shown.append(f"{len(declared.prediction) - len(shown)} more")
    sentence = (
        f"Guessed from the sample submission: ids are in "
        f"{format_list([repr(name) for name in declared.id])}, predictions in {format_list(shown)}"
    )
    left = [repr(names[position]) for position in others if position not in predictions]
    return declared, f"{sentence}; {format_list(left)} is not used." if left else f"{sentence}."


def _guess_ids(names: list[str], usable: list[int], columns: dict[int, Column]) -> list[int]:
    candidates = usable[:-1]  # a submission ends with a prediction
    named = [position for position in candidates if looks_like_id_name(names[position])]
    if named:
        ids = [named[0]]
        for position in candidates[candidates.index(named[0]) + 1 :]:
            if _are_unique([columns[used] for used in ids]):
                break
            ids.append(position)
        if _are_unique([columns[used] for used in ids]):
            return ids
    unique = [position for position in usable if _are_unique([columns[position]])]
    return unique[:1] or usable[:1]


def _are_unique(columns: Sequence[Column]) -> bool:
    values = columns[0] if len(columns) == 1 else combine_ids(columns)
    listed = values.values_at(np.arange(len(values)))
    return len({str(value) for value in listed}) == len(listed)
