"""People who sign in: who may register a team, approvals, and their sessions.

An identity is an issuer and a subject, as OpenID Connect defines them. An email address may change
hands, so it only decides who may register, and only if the provider has verified it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.board._access import (
    MAIL_ISSUER,
    Caller,
    Role,
    check_name,
    check_permission,
    check_text,
    hash_token,
    new_token,
    parse_people,
)
from ladderboard.board._model import CREDENTIAL, Person, SessionRow, make_document
from ladderboard.board._people._erasure import refuse_erased
from ladderboard.board._people._members import bind, read_person, refuse_to_join, release
from ladderboard.board._people._teams import TeamWithToken, add_team, new_credential
from ladderboard.board._repository import (
    count_listed,
    delete_identity_sessions,
    find_identity,
    insert,
    insert_identity,
    insert_session,
    list_identities,
    list_members,
    read_board,
    read_identity,
    read_team,
    update_identity,
)
from ladderboard.board._webhooks import queue_event
from ladderboard.errors import Conflict, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import IdentityRow
    from ladderboard.board._rules import SignInRules
    from ladderboard.ledger import BookTransaction, ReadView

_MAX_CLAIM_LENGTH = 255
_NOT_ADMITTED = (
    "This board is not open to you. The provider that you signed in with must confirm a mail "
    "address that the organiser admits. Ask the organiser, or sign in with another provider."
)


class VerifiedIdentity(NamedTuple):
    """What a provider vouches for: issuer and subject, a name, and a verified email address."""

    provider: str
    issuer: str
    subject: str
    name: str = ""
    mail: str | None = None


class Identities:
    """Signs people in on one board, and decides who of them may register."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def sign_in(self, person: VerifiedIdentity, *, seconds: int) -> bytes:
        """Start a session that lasts for ``seconds``, and return its hash, which cookies hold.

        A person who may not register is refused, and nothing is stored.
        """
        hashed = hash_token(new_token("session", self._board.book.environment.salt))

        def start(transaction: BookTransaction) -> bytes:
            view, now = transaction.view, transaction.now
            rules = self._sign_in_rules(view)
            row = find_identity(view, person.issuer, person.subject)
            described: dict[str, Any] = {
                "name": _clean(person.name),
                "mail": None if person.mail is None else person.mail.casefold(),
            }
            if row is None:
                refuse_erased(self._board.book, view, person.issuer, person.subject)
                check_admission(view, rules, person.provider, described["mail"])
                row = insert_identity(
                    view,
                    issuer=person.issuer,
                    subject=person.subject,
                    state="signed_in",
                    made=now,
                    **described,
                )
            else:
                state = "signed_in" if row.state == "listed" else row.state
                update_identity(view, row.number, state=state, **described)
            insert_session(
                view, SessionRow(hash=hashed, identity=row.number, made=now, expires=now + seconds)
            )
            return hashed

        return self._board.queue.run(start)

    def own_registration(self, caller: Caller) -> dict[str, Any] | None:
        """Return the caller's own registration; None for a caller who did not sign in."""
        if caller.identity is None:
            return None
        with self._board.reading() as view:
            return _serialize(view, read_identity(view, caller.identity))

    def register(self, caller: Caller, name: str) -> TeamWithToken | None:
        """Register the team of a person who signed in; None if the organiser must approve it.

        A person has one team on a board.
        """
        name, salt = check_name(name), self._board.book.environment.salt
        token, team_id = new_token("team", salt), salt()[-8:].hex()

        def register_person(transaction: BookTransaction) -> TeamWithToken | None:
            view = transaction.view
            rules = self._sign_in_rules(view)
            if caller.identity is None:
                raise NotAllowed("Sign in on the board's Join page to register a team.")
            row = read_identity(view, caller.identity)
            if row.state == "registered":
                raise Conflict("You have a team on this board. One person has one team.")
            refuse_to_join(view, row)
            if rules.approval:
                update_identity(view, row.number, state="waiting", team_name=name)
                if row.state != "waiting":
                    queue_event(self._board, transaction, "registration_waiting")
                return None
            number = add_team(self._board, transaction, team_id, name, self_registered=True)
            bind(view, row, number, role="owner")
            insert(view, CREDENTIAL, new_credential(token, "team", transaction.now, team=number))
            return TeamWithToken(team_id, name, token)

        return self._board.queue.run(register_person)

    def _sign_in_rules(self, view: ReadView) -> SignInRules:
        rules = self._board.rules_of(read_board(view)).sign_in
        if rules is None:
            raise NotAllowed("This board has no sign-in; teams have tokens.")
        return rules

    # For organisers.

    def registrations(self, caller: Caller) -> dict[str, Any]:
        """Return who signed in, and how many people of the list did not yet."""
        check_permission(caller, "teams")
        with self._board.reading() as view:
            people = [_serialize(view, row) for row in list_identities(view)]
            return {"registrations": people, "listed": count_listed(view)}

    def approve(self, caller: Caller, number: int) -> None:
        """Register the team of a person whose registration waits or was rejected.

        A person who was removed from a team that has submitted may return to that team.
        """
        check_permission(caller, "teams")
        team_id = self._board.book.environment.salt()[-8:].hex()

        def approve_person(transaction: BookTransaction) -> None:
            view = transaction.view
            row = read_person(view, number)
            if row.state == "registered":
                return
            if row.state == "rejected" and row.team is not None:  # the organiser removed them
                update_identity(view, number, state="left", reason="")
                return
            if not row.team_name:
                raise Conflict("This person has not asked for a team.")
            refuse_to_join(view, replace(row, state="waiting"))
            team = add_team(self._board, transaction, team_id, row.team_name, self_registered=True)
            bind(view, row, team, role="owner")
            queue_event(self._board, transaction, "registration_approved", team=team_id)

        self._board.queue.run(approve_person)

    def reject(self, caller: Caller, number: int, reason: str) -> None:
        """Reject a registration with a reason, which the person is shown.

        A person in a team with others is removed from it.
        """
        check_permission(caller, "teams")
        reason = check_text("The reason", reason, at_most=300)

        def reject_person(transaction: BookTransaction) -> None:
            view = transaction.view
            row = read_person(view, number)
            if row.role == "organiser":
                raise Conflict("This person organises the board.")
            if row.state != "registered":
                update_identity(view, number, state="rejected", reason=reason)
                return
            others = [other for other in list_members(view, row.team or 0) if other != row]
            if not others:
                raise Conflict("This person has a team. Disqualify it instead.")
            if not any(other.role == "owner" for other in others):
                update_identity(view, others[0].number, role="owner")
            release(view, row, state="rejected", reason=reason)

        self._board.queue.run(reject_person)

    def sign_out_everywhere(self, caller: Caller, number: int) -> None:
        """End all sessions of a person."""
        check_permission(caller, "teams")

        def end_sessions(transaction: BookTransaction) -> None:
            row = read_person(transaction.view, number)
            delete_identity_sessions(transaction.view, row.number)

        self._board.queue.run(end_sessions)

    def extend_list(self, caller: Caller, entries: Iterable[str]) -> int:
        """Add people to the list of those who may register; return how many were new.

        An entry is an email address, or an issuer and a subject with a space between them.
        """
        check_permission(caller, "teams")
        parsed = parse_people(entries)

        def insert_entries(transaction: BookTransaction) -> int:
            view = transaction.view
            new = [entry for entry in parsed if find_identity(view, *entry) is None]
            for issuer, subject in new:
                insert_identity(
                    view, issuer=issuer, subject=subject, state="listed", made=transaction.now
                )
            return len(new)

        return self._board.queue.run(insert_entries)


def check_admission(view: ReadView, rules: SignInRules, provider: str, mail: str | None) -> None:
    """Refuse a person whom the board's rules do not admit."""
    if rules.providers and provider not in rules.providers:
        raise NotAllowed(_NOT_ADMITTED)
    if not rules.domains and rules.people is None:
        return
    domain = "" if mail is None else mail.rpartition("@")[2]
    if domain in rules.domains:
        return
    if mail is None or find_identity(view, MAIL_ISSUER, mail) is None:
        raise NotAllowed(_NOT_ADMITTED)


def caller_of(row: IdentityRow, hashed: bytes) -> Caller:
    """Return the caller that a session stands for: an organiser, a team, or else the public."""
    if row.role == "organiser":
        return Caller(Role.ORGANISER, None, hashed, row.number)
    if row.state != "registered":
        return Caller(Role.PUBLIC, None, hashed, row.number)
    return Caller(Role.TEAM, row.team, hashed, row.number)


def _serialize(view: ReadView, row: IdentityRow) -> dict[str, Any]:
    return make_document(
        Person,
        row,
        team=None if row.team is None else read_team(view, row.team).id,
        role=row.role if row.state == "registered" or row.role == "organiser" else None,
    )


def _clean(text: str) -> str:
    """Return a provider's text on one line, without what cannot be printed."""
    visible = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(visible.split())[:_MAX_CLAIM_LENGTH]
