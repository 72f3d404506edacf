"""The columns of predictions that a loss expects in a file, for programs and for people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ladderboard.errors import InvalidSetting

LabelKind = Literal["number", "text"]

_MAX_CLASSES_NAMED = 12


@dataclass(frozen=True)
class ExpectedColumns:
    """The columns of predictions that a loss expects.

    ``form`` is one value per row, one per class, or several; ``width`` is the number of columns, if
    known. ``classes`` are the declared ones; ``single`` says that one column is enough, the
    probabilities of the second class. ``strict`` says that the loss refuses some numbers, so it
    must check all of them; ``complete`` that values which fit the columns fit the loss, so it need
    not check any. ``column`` is the required name of the only column: predictions in place of an
    evaluator's scores would spoil a ladder for good. ``stem`` names several columns: label_1,
    label_2 and so on. ``empty`` says that an empty value means something. ``rules`` describe the
    columns to people, a sentence each; ``example`` has a value for each of the first columns, dots
    where they say nothing.
    """

    kind: str
    form: Literal["one", "classes", "several"]
    classes: tuple[Any, ...] | None = None
    width: int | None = 1
    single: bool = False
    strict: bool = False
    complete: bool = False
    column: str | None = None
    stem: str = "prediction"
    empty: bool = False
    rules: tuple[str, ...] = ()
    example: tuple[str, ...] = ()

    @cached_property
    def number(self) -> bool:
        """Whether the values must be numbers."""
        return self.kind == "number"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in an example file."""
        if self.form == "classes":
            return tuple(f"p_{class_}" for class_ in self.classes or ())
        if self.form == "several" and self.width is not None:
            return tuple(f"{self.stem}_{number}" for number in range(1, self.width + 1))
        return (self.column or "prediction",)


def label_kind_of(classes: tuple[Any, ...] | None) -> LabelKind | None:
    """Return whether classes are numbers or text; None if they are both, or there are none."""
    are_text = {isinstance(class_, str) for class_ in classes or ()}
    return None if len(are_text) != 1 else "text" if are_text.pop() else "number"


def require_one_kind(classes: tuple[Any, ...]) -> LabelKind:
    """Return whether classes are numbers or text; raise if they are both."""
    kind = label_kind_of(classes)
    if kind is None:
        raise InvalidSetting(
            "Files hold one kind of label; declare classes that are all numbers or all text."
        )
    return kind


def require_kind(name: str, kind: str | None) -> str:
    """Return the declared kind of the labels; raise without one, in the name of a loss."""
    if kind is None:
        raise InvalidSetting(
            f"The loss {name} compares labels, so their kind must be declared; "
            'try Roster.of(ids, kind="number"), or kind="text".'
        )
    return kind


def probability_columns(classes: tuple[Any, ...]) -> ExpectedColumns:
    """Return a column of probabilities for each class; of two classes one is enough."""
    two = len(classes) == 2
    listed = (
        f"Or one column, prediction: the probability of {classes[1]}."
        if two
        else f"The classes are {list_classes(classes)}."
    )
    return ExpectedColumns(
        "number",
        "classes",
        classes,
        len(classes),
        single=two,
        rules=("p_ and the class, one column for each: its probability. A row sums to 1.", listed),
        example=("0.7", "0.3") if two else ("0.7", "0.2", "0.1"),
    )


def numbered_columns(kind: str, width: int | None, stem: str, sentence: str) -> ExpectedColumns:
    """Return several columns of labels; ``sentence`` describes them."""
    rule = f"{sentence} Name them {stem}_1, {stem}_2 and so on."
    if width is None:
        rule = "All other columns, in the order given in the board's description."
    return ExpectedColumns(kind, "several", width=width, stem=stem, rules=(rule,))


def list_classes(classes: tuple[Any, ...]) -> str:
    """Return the names of the first classes, and how many more there are.

    >>> list_classes(tuple(range(40)))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 28 more'
    """
    listed = ", ".join(map(str, classes[:_MAX_CLASSES_NAMED]))
    rest = len(classes) - _MAX_CLASSES_NAMED
    return listed if rest <= 0 else f"{listed} and {rest} more"
