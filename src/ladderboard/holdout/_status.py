"""What is public about a guard at some time, and what can be promised then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.losses import Shortfall
from ladderboard.mechanisms import Ladder, OneBit, ShakyLadder

if TYPE_CHECKING:
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import Book, ChainState
    from ladderboard.mechanisms import Mechanism

_NEARLY = 1.645  # of 20 draws of a Gaussian, 19 are below so many deviations
_MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class Meter:
    """How many questions were used, and everything else that a certificate needs.

    Parameters
    ----------
    mechanism
        What answers.
    rules
        Of the first entry: ``questions``, ``beta``, ``worth``, ``weighted``, ``zero_one`` and
        ``ladders``, where their number was declared; guards made before there were these two lack
        them. And ``declared``, the budget at first, where it is another by now, and ``corrected``
        where labels were corrected.
    chain_state
        Where the book stands.
    """

    mechanism: Mechanism
    rules: dict[str, Any]
    chain_state: ChainState

    @property
    def budget(self) -> int:
        """How many questions are allowed."""
        return int(self.rules["questions"])

    @property
    def used(self) -> int:
        """How many were used: asked, or charged for answers that were lost."""
        return self.chain_state.asked + self.chain_state.charged

    @property
    def remaining(self) -> int:
        """How many questions are left; none after the end."""
        return 0 if self.chain_state.closed else max(self.budget - self.used, 0)

    def certificate(self, released: float | None) -> Certificate:
        """Return what can be promised about the best model so far, from what is public.

        ``released`` is the value that stands on the ladder in question. For weighted examples
        there is the Hoeffding form only.

        It never fails: the question is recorded by then, and its reply must not be lost. A
        certificate that cannot be computed promises nothing and says why.
        """
        from ladderboard.bounds import vacuous_certificate  # noqa: PLC0415 - few questions want it

        try:
            return self._certificate(released)
        except Exception as error:  # noqa: BLE001 - whatever it is, the reply comes first
            # Everything that goes in is public, so the message is too.
            return vacuous_certificate(
                f"No certificate could be computed: {error}", self.rules["beta"]
            )

    def _certificate(self, released: float | None) -> Certificate:
        from ladderboard.bounds import (  # noqa: PLC0415
            CORRECTED,
            NO_THEOREM,
            certificate,
        )

        chain_state, declared = self.chain_state, self.rules.get("ladders")
        if self.rules["weighted"] or released is None or released >= 1:
            released = None
        found = certificate(
            self.rules["worth"],
            self.rules.get("declared", self.budget),
            # Each lost answer may have been a change, on a ladder of its own.
            chain_state.changes + chain_state.charged,
            self.mechanism,
            self.rules["beta"],
            released,
            asked=max(self.used, 1),
            ladders=declared,
            opened=(declared or chain_state.ladders) + chain_state.charged,
            amendable=True,
            zero_one=self.rules.get("zero_one", False),
        )
        if self.rules.get("corrected") and found.theorem != NO_THEOREM:
            return replace(found, assumptions=(*found.assumptions, CORRECTED))
        return found


def smallest_visible_gain(mechanism: Mechanism) -> float | None:
    """Return the gain over the shown best that is seen 19 times out of 20; None if any may be.

    A Ladder sees a gain of more than its step. A Shaky Ladder must besides get over its noise, and
    over half a cell of its grid with the noise on what is told.
    """
    if isinstance(mechanism, ShakyLadder):
        compared = _NEARLY * (mechanism.compare_noise**2 + mechanism.threshold_noise**2) ** 0.5
        told = (mechanism.grid or 0) / 2 + _NEARLY * mechanism.release_noise
        return max(mechanism.step + compared, told) or None
    if isinstance(mechanism, Ladder):
        return max(mechanism.step, (mechanism.grid or mechanism.step) / 2) or None
    if isinstance(mechanism, OneBit):
        return mechanism.step
    return None


def smallest_distinguishable_gain(mechanism: Mechanism) -> float:
    """Return the gain below which models may look the same: of step, grid and noise; 0 for none."""
    step, grid = (getattr(mechanism, each, None) or 0.0 for each in ("step", "grid"))
    return float(max(step, grid, smallest_visible_gain(mechanism) or 0.0))


Takes = Literal["predictions", "scores"]


def takes_of(opening: dict[str, Any]) -> Takes:
    """Return what a guard is asked with, as its opening says for good."""
    return "scores" if opening["loss"]["loss"] == Shortfall.name else "predictions"


class QuestionRecord(NamedTuple):
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
    history: tuple[QuestionRecord, ...]
    commitment: str
    head: str

    @classmethod
    def of(cls, book: Book) -> Status:
        """Read the chain of a book, and check it on the way."""
        chain_state, values, entries = book.snapshot()
        names = list(values)
        told = [
            QuestionRecord(
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
        meter = Meter(book.mechanism, opening["rules"], chain_state)
        told_by = opening["commitment"], chain_state.head.hex()
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
        opening, chain_state = self.opening, self.meter.chain_state
        return {
            "n": opening["n"],
            "loss": opening["loss"],
            "mechanism": opening["mechanism"],
            **opening["rules"],
            "asked": chain_state.asked,
            "charged": chain_state.charged,
            "remaining": self.meter.remaining,
            "closed": chain_state.closed,
            "released": self.released,
            "bound": self.certificate.describe(),
            "declared_ladders": opening["rules"].get("ladders"),
            "ladders": [each._asdict() for each in self.ladders],
            "history": [each._asdict() for each in self.history],
            "commitment": self.commitment,
            "head": self.head,
        }


def check_ladder_name(name: Any) -> None:
    """Refuse what is no name for a ladder."""
    if (
        not isinstance(name, str)
        or not name
        or len(name) > _MAX_NAME_LENGTH
        or not name.isprintable()
    ):
        raise InvalidSetting(
            f"A ladder's name is a printable text of 1 to {_MAX_NAME_LENGTH} characters; "
            f"got {_settings.safe_repr(name)}."
        )
