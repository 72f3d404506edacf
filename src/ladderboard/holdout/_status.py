"""The status of a guard: what is public, gathered from its chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ladderboard.holdout._meter import Meter
from ladderboard.losses import Shortfall

if TYPE_CHECKING:
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import Book

__all__ = ["LadderStatus", "Status", "Takes", "Told", "takes_of"]

Takes = Literal["predictions", "scores"]


def takes_of(opening: dict[str, Any]) -> Takes:
    """Return what a guard is asked with, as its opening says for good."""
    return "scores" if opening["loss"]["loss"] == Shortfall.name else "predictions"


class Told(NamedTuple):
    """One question of the history: its ladder's name, its number, and what was said when."""

    ladder: str
    question: int
    value: float | None
    improved: bool
    time: int


class LadderStatus(NamedTuple):
    """One ladder: what stands, after how many questions and changes."""

    name: str
    released: float | None
    questions: int
    changes: int


@dataclass(frozen=True)
class Status:
    """Everything that is public about a guard."""

    opening: dict[str, Any]
    meter: Meter
    ladders: tuple[LadderStatus, ...]
    history: tuple[Told, ...]
    commitment: str
    head: str

    @classmethod
    def of(cls, book: Book) -> Status:
        """Read the chain of a book, and check it on the way."""
        at, values, entries = book.standing()
        names = list(values)
        told = [
            Told(
                names[fields["ladder"]],
                *(fields[each] for each in ("question", "value", "improved", "time")),
            )
            for fields in entries
            if fields["kind"] == "question"
        ]
        own: dict[str, list[bool]] = {name: [] for name in names}
        for each in told:
            own[each.ladder].append(each.improved)
        ladders = [
            LadderStatus(name, value, len(own[name]), sum(own[name]))
            for name, value in values.items()
        ]
        opening = book.opening
        meter = Meter(book.mechanism, opening["rules"], at)
        told_by = opening["commitment"], at.head.hex()
        return cls(opening, meter, tuple(ladders), tuple(told), *told_by)

    @property
    def released(self) -> float | None:
        """The least value that stands; None where none is told."""
        told = [each.released for each in self.ladders if each.released is not None]
        return min(told, default=None)

    @property
    def certificate(self) -> Certificate:
        """What can be promised about the best model asked on any ladder."""
        return self.meter.certificate(self.released)

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        opening, at = self.opening, self.meter.at
        return {
            "n": opening["n"],
            "loss": opening["loss"],
            "mechanism": opening["mechanism"],
            **opening["rules"],
            "asked": at.asked,
            "charged": at.charged,
            "remaining": self.meter.remaining,
            "closed": at.closed,
            "released": self.released,
            "bound": self.certificate.describe(),
            "declared_ladders": opening["rules"].get("ladders"),
            "ladders": [each._asdict() for each in self.ladders],
            "history": [each._asdict() for each in self.history],
            "commitment": self.commitment,
            "head": self.head,
        }
