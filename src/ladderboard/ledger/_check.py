"""Checking a book from the inside: with its key and its secret side, everything again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, LadderboardError
from ladderboard.ledger._asked import release_of
from ladderboard.ledger._canonical import digest
from ladderboard.ledger._chain import differs, follow
from ladderboard.ledger._commitment import Commitment
from ladderboard.ledger._opening import DECIDED
from ladderboard.ledger._secret import Secret
from ladderboard.ledger._state import state_digest, write_state
from ladderboard.ledger._storage import START

if TYPE_CHECKING:
    from ladderboard.ledger._ladders import Ladders
    from ladderboard.ledger._seal import Seal
    from ladderboard.ledger._storage import At, Reading
    from ladderboard.mechanisms import Session

__all__ = ["check", "check_opening", "moved"]


def check_opening(opening: dict[str, Any], key: bytes, salt: bytes) -> None:
    """Recompute what the first entry commits to, as far as the key and its salt go."""
    if Commitment("key", hashlib.sha256(key).digest(), salt).hash.hex() != opening["key"]:
        raise BrokenLedger("The noise key is not the one that was committed to.")
    decided = {each: opening[each] for each in DECIDED}
    if digest("opening", decided).hex() != opening["commitment"]:
        raise BrokenLedger("The commitment is not that of what the first entry says.")


def check(book: Reading, name: str, ladders: Ladders, seal: Seal) -> int:
    """Follow the chain, open every secret side, ask every question again; return how many.

    Of a mechanism that looks at the losses of examples, which are not kept, no question can be
    asked again; it is seen that its states follow each other, and the return is 0.
    """
    sessions: list[Session] = []
    stood: list[bytes] = []
    at = START
    for number, (entry, fields) in enumerate(follow(book.entries(), name)):
        changed = moved(at, fields)
        at = at._replace(entries=number + 1, head=entry.hash, time=fields["time"], **changed)
        if fields["kind"] == "ladder":
            sessions.append(ladders.start(fields["ladder"]))
            stood.append(state_digest(write_state(sessions[-1])))
        elif fields["kind"] == "question":
            packed = book.secret(number)
            if packed is None:
                raise differs(number, "its secret side is missing")
            secret = Secret.unpack(seal.open(f"secret {number}", packed))
            ladder = fields["ladder"]
            _check_hashes(number, fields, secret, stood[ladder])
            stood[ladder] = secret.after
            if ladders.replay:
                _ask_again(number, fields, secret, sessions[ladder])
    if at != book.at():
        raise BrokenLedger("The ledger's last entry is not where the book says it stands.")
    for ladder, last in enumerate(stood):
        if state_digest(ladders.form(book, ladder)) != last:
            raise BrokenLedger(f"The state of ladder {ladder} does not follow from its questions.")
    return at.asked if ladders.replay else 0


def moved(at: At, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry moves."""
    kind = fields["kind"]
    if kind == "question":
        return {"asked": at.asked + 1, "changes": at.changes + fields["improved"]}
    if kind == "ladder":
        return {"ladders": at.ladders + 1}
    if kind == "restored":
        return {"lost": at.lost + 1, "charged": at.charged + fields["charged"]}
    if kind == "resumed":
        return {"charged": at.charged + fields["charged"]}
    return {"closed": True} if kind == "closed" else {}


def _check_hashes(number: int, fields: dict[str, Any], secret: Secret, stood: bytes) -> None:
    for shown, commitment in (("secret", secret.commitment), ("submission", secret.submitted)):
        if commitment.hash.hex() != fields[shown]:
            raise differs(number, f"its {shown} is not what was committed to")
    if secret.before != stood:
        raise differs(number, "its ladder stood elsewhere before it")


def _ask_again(number: int, fields: dict[str, Any], secret: Secret, session: Session) -> None:
    try:
        given = {} if secret.training is None else {"training": secret.training}
        release = session.ask(risk=secret.risk, context=secret.submission, **given)
    except LadderboardError as error:
        raise differs(number, f"it cannot be asked again ({error})") from None
    if session.draws != secret.draws:
        raise differs(number, "its noise was not drawn from the key")
    if release != release_of(fields):
        raise differs(number, "its release does not follow from its risk and noise")
    if state_digest(write_state(session)) != secret.after:
        raise differs(number, "its ladder stood elsewhere after it")
