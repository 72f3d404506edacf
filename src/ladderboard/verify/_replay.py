"""The replay: every question asked again, of a mechanism and a tape of our own."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ladderboard.ledger import differs, encode
from ladderboard.mechanisms import Seen, Setup, risk_of
from ladderboard.tape import Tape
from ladderboard.verify._opened import are_draws, form_of
from ladderboard.verify._strict import is_whole, same

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism
    from ladderboard.verify._opened import Opened

__all__ = ["Replay"]

# What a state's digest is made of, but for the question's number and the mechanism's own part.
_STATE = b"ladderboard:1:state\nM" + (3).to_bytes(8, "big") + encode("closed") + encode(False)
_STATE += encode("question") + b"I"
_TO_STATE = encode("state")


class _Ladder:
    """Where a ladder stands: the mechanism's state and its form, and the digest that was opened."""

    __slots__ = ("form", "lost", "state", "stood")

    def __init__(self) -> None:
        self.state: Any = None
        self.form = b""
        self.stood: bytes | None = None
        self.lost = False
        """Whether a question could not be asked again, so that the state is not known."""


class Replay:
    """The ladders of a book; it counts the releases that hold.

    Without a mechanism, which may be the owner's own, draws and releases are taken on trust.
    """

    def __init__(self, mechanism: Mechanism | None, n: int, key: bytes) -> None:
        if not is_whole(n, at_least=1):
            raise differs(0, "it does not say of how many examples a risk is the mean")
        self._mechanism, self._setup, self._tape = mechanism, Setup(n, 0.0, 1.0), Tape(key=key)
        self._laws = () if mechanism is None else mechanism.laws
        if mechanism is not None:
            mechanism.check(self._setup)
        self._ladders: list[_Ladder] = []
        self.releases = self.draws = 0

    @property
    def needs(self) -> str | None:
        """What the mechanism looks at; None where it is not known."""
        return None if self._mechanism is None else self._mechanism.needs

    def start(self) -> None:
        """Start the next ladder."""
        ladder, mechanism, number = _Ladder(), self._mechanism, len(self._ladders)
        self._ladders.append(ladder)
        if mechanism is not None:
            draws = self._tape.draw(self._laws, ladder=number, question=0)
            ladder.state = mechanism.begin(self._setup, draws)
            ladder.form = encode(mechanism.freeze(ladder.state))
            ladder.stood = _digest(0, ladder.form)

    def question(
        self,
        number: int,
        fields: dict[str, Any],
        opened: Opened,
        losses: NDArray[Any] | None,
    ) -> None:
        """Ask a question again, as far as that can be done."""
        if opened.shown_submission != fields["submission"]:
            raise differs(number, "its submission is not what was committed to")
        if opened.shown_secret != fields["secret"]:
            raise differs(number, "its secret side is not what was committed to")
        mechanism, ladder = self._mechanism, self._ladders[fields["ladder"]]
        if ladder.stood != opened.before and ladder.stood is not None:
            raise differs(number, "its ladder stood elsewhere before it")
        ladder.stood = opened.after
        if mechanism is None:
            if not are_draws(opened.draws):
                raise differs(number, "its draws are none")
            return
        draws = self._tape.draw(
            self._laws,
            ladder=fields["ladder"],
            question=fields["question"],
            context=opened.submission,
        )
        if form_of(draws) != opened.draws:
            raise differs(number, "its noise was not drawn from the key")
        self.draws += 1
        if mechanism.needs == "losses" and (losses is None or ladder.lost):
            ladder.lost = True  # what it looks at besides the risk is not there
        else:
            self._ask(mechanism, ladder, fields, opened, losses, draws)

    def _ask(  # noqa: PLR0917 - all that decides a release
        self,
        mechanism: Mechanism,
        ladder: _Ladder,
        fields: dict[str, Any],
        opened: Opened,
        losses: NDArray[Any] | None,
        draws: tuple[Any, ...],
    ) -> None:
        number, risk = fields["number"], opened.risk
        if not 0 <= risk <= 1:
            raise differs(number, "its risk is not between 0 and 1")
        if (opened.training is not None) is not mechanism.needs_training:
            raise differs(number, "it lacks a training loss, or has one that nobody looks at")
        if mechanism.needs == "losses" and losses is not None:
            risk = risk_of(self._setup, losses)
        else:
            losses = None
        step = mechanism.advance(
            self._setup, ladder.state, Seen(risk, losses, opened.training), draws
        )
        # Of their own types: the walk has seen to that.
        if step[1:] != (fields["value"], fields["score"], fields["improved"]):
            raise differs(number, "its release does not follow from its risk and noise")
        # Most questions move nothing but their number; states that hold arrays are not compared.
        if losses is not None or step.state != ladder.state:
            ladder.form = encode(mechanism.freeze(step.state))
        ladder.state = step.state
        if _digest(fields["question"], ladder.form) != opened.after:
            raise differs(number, "its ladder stood elsewhere after it")
        self.releases += 1

    def close(self, number: int, fields: dict[str, Any]) -> None:
        """See that what was told of every ladder at the end is where it stood."""
        if self._mechanism is None:
            return
        for at, (ladder, told) in enumerate(zip(self._ladders, fields["values"], strict=True)):
            if not ladder.lost and not same(self._mechanism.close(ladder.state), told):
                raise differs(number, f"its value of ladder {at} is not where that stood")


def _digest(question: int, form: bytes) -> bytes:
    """Return the digest of where a ladder is after a question."""
    own = b"%d" % question
    size = len(own).to_bytes(8, "big")
    return hashlib.sha256(_STATE + size + own + _TO_STATE + form).digest()
