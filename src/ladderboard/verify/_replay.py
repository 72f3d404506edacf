"""The replay: every question asked again, of a mechanism and a tape of our own."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ladderboard.errors import LadderboardError
from ladderboard.ledger import decode, differs, encode
from ladderboard.tape import Tape
from ladderboard.verify._opened import form_of
from ladderboard.verify._strict import same

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism, Session
    from ladderboard.verify._opened import Opened

__all__ = ["Replay"]

# What a state's digest is made of, but for the question's number and the mechanism's own part.
_STATE = b"ladderboard:1:state\nM" + (3).to_bytes(8, "big") + encode("closed") + encode(False)
_STATE += encode("question") + b"I"
_TO_STATE = encode("state")


class Replay:
    """Sessions on the ladders of a book; it counts the releases that hold.

    Without a mechanism, which may be the owner's own, draws and releases are taken on trust.
    """

    def __init__(self, mechanism: Mechanism | None, n: int, key: bytes) -> None:
        self._mechanism, self._n, self._tape = mechanism, n, Tape(key=key)
        self._sessions: list[Session] = []
        self._stood: list[bytes | None] = []
        self._lost: set[int] = set()  # ladders of which a question could not be asked again
        self._forms: dict[int, tuple[Any, bytes]] = {}
        self.releases = self.draws = 0

    @property
    def needs(self) -> str | None:
        """What the mechanism looks at; None where it is not known."""
        return None if self._mechanism is None else self._mechanism.needs

    def start(self) -> None:
        """Start the next ladder."""
        if self._mechanism is None:
            self._stood.append(None)
            return
        number = len(self._sessions)
        session = self._mechanism.start(n=self._n, tape=self._tape, ladder=number)
        self._sessions.append(session)
        self._stood.append(self._digest(session, number))

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
        ladder = fields["ladder"]
        if self._stood[ladder] != opened.before and self._stood[ladder] is not None:
            raise differs(number, "its ladder stood elsewhere before it")
        self._stood[ladder] = opened.after
        if self._mechanism is None:
            decode(opened.draws)  # which refuses what is in no canonical form
            return
        if self._mechanism.needs == "risk":
            self._ask(number, fields, opened, None)
        elif losses is None or ladder in self._lost:
            self._lost.add(ladder)
            self._draw(number, fields, opened)
        else:
            self._ask(number, fields, opened, losses)
        self.draws += 1

    def _ask(
        self, number: int, fields: dict[str, Any], opened: Opened, losses: NDArray[Any] | None
    ) -> None:
        session = self._sessions[fields["ladder"]]
        risk = opened.risk if losses is None else None
        try:
            release = session.ask(
                risk=risk, losses=losses, training=opened.training, context=opened.submission
            )
        except LadderboardError as error:
            raise differs(number, f"it cannot be asked again ({error})") from None
        if form_of(session.draws) != opened.draws:
            raise differs(number, "its noise was not drawn from the key")
        # Of their own types: the walk has seen to that.
        if release != (fields["value"], fields["score"], fields["improved"], fields["question"]):
            raise differs(number, "its release does not follow from its risk and noise")
        if self._digest(session, fields["ladder"]) != opened.after:
            raise differs(number, "its ladder stood elsewhere after it")
        self.releases += 1

    def _draw(self, number: int, fields: dict[str, Any], opened: Opened) -> None:
        """Draw the noise alone: what the mechanism looks at besides the risk is not there."""
        mechanism = self._sessions[fields["ladder"]].mechanism
        place = {"ladder": fields["ladder"], "question": fields["question"]}
        drawn = self._tape.draw(mechanism.laws, **place, context=opened.submission)
        if form_of(drawn) != opened.draws:
            raise differs(number, "its noise was not drawn from the key")

    def close(self, number: int, fields: dict[str, Any]) -> None:
        """See that what was told of every ladder at the end is where it stood."""
        for ladder, session in enumerate(self._sessions):
            if ladder not in self._lost and not same(session.close(), fields["values"][ladder]):
                raise differs(number, f"its value of ladder {ladder} is not where that stood")

    def _digest(self, session: Session, ladder: int) -> bytes:
        """Return the digest of where a session is; most questions move nothing but their number."""
        position, question = session.position, b"%d" % session.questions
        held, form = self._forms.get(ladder, (None, b""))
        if not form or self.needs == "losses" or position != held:  # arrays are not compared
            form = encode(session.progress["state"])
            self._forms[ladder] = (position, form)
        size = len(question).to_bytes(8, "big")
        return hashlib.sha256(_STATE + size + question + _TO_STATE + form).digest()
