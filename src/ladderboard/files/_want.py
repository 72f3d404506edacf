"""What a loss wants of a file: one column or several, numbers or text, which classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ladderboard.errors import InvalidSetting
from ladderboard.losses import (
    Absolute,
    Brier,
    Hamming,
    Log,
    Loss,
    Pinball,
    Shortfall,
    Squared,
    TopK,
    ZeroOne,
)

if TYPE_CHECKING:
    from ladderboard.files._roster import Roster

__all__ = ["Want", "wanted"]


@dataclass(frozen=True)
class Want:
    """What predictions are made of.

    ``form`` is one value a row, one for each class, or several; ``width`` is how many, where that
    is known. ``classes`` are those that were declared; ``single`` says that one column of
    probabilities will do, those of the second class. ``strict`` says that the loss refuses some
    numbers, so that all of them must be shown to it. ``column`` is a name that the one column must
    have: predictions in place of an evaluator's scores would spoil a ladder for good. ``stem`` is
    how messages name several columns: label_1, label_2 and so on.
    """

    kind: str
    form: Literal["one", "classes", "several"]
    classes: tuple[Any, ...] | None = None
    width: int | None = 1
    single: bool = False
    strict: bool = False
    column: str | None = None
    stem: str = "prediction"

    @property
    def number(self) -> bool:
        """Whether numbers are wanted."""
        return self.kind == "number"


def wanted(loss: Loss, roster: Roster) -> Want:
    """Return what a loss wants."""
    if isinstance(loss, Brier | Log):
        two = len(loss.classes) == 2
        return Want("number", "classes", loss.classes, len(loss.classes), single=two)
    if isinstance(loss, TopK) and loss.classes is not None:
        return Want("number", "classes", loss.classes, len(loss.classes))
    if isinstance(loss, Absolute | Squared | Pinball):
        return Want("number", "one")
    if isinstance(loss, Shortfall):
        return Want("number", "one", strict=True, column="score")
    if isinstance(loss, ZeroOne) and loss.allowed is not None:
        return Want(_kind_of(loss.allowed), "one", loss.allowed)
    return _compared(loss, roster)


def _compared(loss: Loss, roster: Roster) -> Want:
    """Return what a loss wants that compares labels of whatever kind was declared."""
    if roster.kind is None:
        raise InvalidSetting(
            f"The loss {loss.name} compares labels, so what they are must be declared; "
            'try Roster.of(ids, kind="number"), or kind="text".'
        )
    if isinstance(loss, ZeroOne):
        return Want(roster.kind, "one")
    if isinstance(loss, TopK):
        return Want(roster.kind, "several", width=loss.k, stem="guess")
    width = roster.width if isinstance(loss, Hamming) else None
    return Want(roster.kind, "several", width=width, stem="label")


def _kind_of(classes: tuple[Any, ...]) -> str:
    text = {isinstance(each, str) for each in classes}
    if len(text) > 1:
        raise InvalidSetting(
            "Files hold one kind of label; declare classes that are all numbers or all text."
        )
    return "text" if text.pop() else "number"
