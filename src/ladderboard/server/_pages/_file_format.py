"""The format of a submission file for a board, in words and with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.losses import (
    Absolute,
    Brier,
    Hamming,
    Log,
    Pinball,
    Shortfall,
    Squared,
    TopK,
    ZeroOne,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.files import Roster
    from ladderboard.losses import Loss

Columns = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_EXAMPLE_COLUMNS = 3  # shown at most
_MAX_CLASSES = 12  # named at most
_ELLIPSIS = "..."


class FileFormat(NamedTuple):
    """The number of rows of a file, a sentence for each kind of column, and its first lines."""

    rows: int
    column_rules: tuple[str, ...]
    example: tuple[tuple[str, ...], ...]


def describe_file_format(loss: Loss, roster: Roster) -> FileFormat:
    """Return the format of a file. It depends on the declared rules, never on the labels.

    >>> from ladderboard.files import Roster
    >>> loss, roster = ZeroOne(classes=("cat", "dog")), Roster.of(["a", "b", "c"])
    >>> file_format = describe_file_format(loss, roster)
    >>> file_format.column_rules[1]
    'prediction: one of cat, dog.'
    >>> file_format.example
    (('id', 'prediction'), ('a', 'cat'), ('b', 'cat'))
    """
    ids = roster.names_of(np.arange(min(2, roster.n)))
    id_rule = "the row's number, from 0" if roster.ids is None else "each id once, in any order"
    header, values, sentences = _describe_columns(loss, roster)
    lines = (("id", *header), *((str(id_), *values) for id_ in ids))
    return FileFormat(roster.n, (f"id: {id_rule}.", *sentences), lines)


def _describe_columns(loss: Loss, roster: Roster) -> Columns:
    """Return the column names of the example, its values, and sentences about the columns."""
    if isinstance(loss, Brier | Log):
        return _describe_probabilities(loss.classes)
    if isinstance(loss, TopK) and loss.classes is not None:
        names = _first_columns(f"p_{class_}" for class_ in loss.classes)
        sentence = "p_ and the class, one column for each: a score, higher is likelier."
        return (
            names,
            _example_values(names, "0.1"),
            (sentence, f"The classes are {_list_classes(loss.classes)}."),
        )
    if isinstance(loss, Absolute | Squared | Pinball):
        low, high = loss.range
        value = f"the {loss.quantile:g} quantile" if isinstance(loss, Pinball) else "a number"
        sentence = f"prediction: {value}; outside {low:g} to {high:g} it counts as the nearer end."
        return ("prediction",), (f"{(low + high) / 2:g}",), (sentence,)
    if isinstance(loss, Shortfall):
        return ("score",), ("0.5",), ("score: from 0 to 1 (best).",)
    return _describe_label_columns(loss, roster)


def _describe_label_columns(loss: Loss, roster: Roster) -> Columns:
    """Return the same for a loss that compares labels, or that the organiser defined."""
    if isinstance(loss, ZeroOne):
        return _describe_label_column(loss, roster)
    if isinstance(loss, TopK):
        return _describe_numbered_columns("guess", loss.k, f"{loss.k} columns: the guesses.")
    if isinstance(loss, Hamming) and roster.width is not None:
        return _describe_numbered_columns(
            "label", roster.width, f"{roster.width} columns, one for each label."
        )
    sentence = "All other columns, in the order given in the board's description."
    return ("prediction",), (_ELLIPSIS,), (sentence,)


def _describe_label_column(loss: ZeroOne, roster: Roster) -> Columns:
    if loss.allowed is not None:
        sentence = f"prediction: one of {_list_classes(loss.allowed)}."
        return ("prediction",), (str(loss.allowed[0]),), (sentence,)
    value = "a number" if roster.kind == "number" else "text, written as in the labels"
    return ("prediction",), (_ELLIPSIS,), (f"prediction: {value}.",)


def _describe_probabilities(classes: tuple[Any, ...]) -> Columns:
    names = _first_columns(f"p_{class_}" for class_ in classes)
    sentence = "p_ and the class, one column for each: its probability. A row sums to 1."
    second_sentence = f"The classes are {_list_classes(classes)}."
    if len(classes) == 2:
        second_sentence = f"Or one column, prediction: the probability of {classes[1]}."
    values = ("0.7", "0.3") if len(classes) == 2 else ("0.7", "0.2", "0.1", _ELLIPSIS)[: len(names)]
    return names, values, (sentence, second_sentence)


def _describe_numbered_columns(name: str, width: int, sentence: str) -> Columns:
    names = _first_columns(f"{name}_{number}" for number in range(1, width + 1))
    return (
        names,
        _example_values(names, _ELLIPSIS),
        (f"{sentence} Name them {name}_1, {name}_2 and so on.",),
    )


def _first_columns(names: Iterable[str]) -> tuple[str, ...]:
    all_names = tuple(names)
    return (
        all_names
        if len(all_names) <= _EXAMPLE_COLUMNS
        else (*all_names[:_EXAMPLE_COLUMNS], _ELLIPSIS)
    )


def _example_values(names: tuple[str, ...], value: str) -> tuple[str, ...]:
    return tuple(_ELLIPSIS if name == _ELLIPSIS else value for name in names)


def _list_classes(classes: tuple[Any, ...]) -> str:
    """Return the names of the first classes, and how many more there are.

    >>> _list_classes(tuple(range(40)))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 28 more'
    """
    listed = ", ".join(map(str, classes[:_MAX_CLASSES]))
    rest = len(classes) - _MAX_CLASSES
    return listed if rest <= 0 else f"{listed} and {rest} more"
