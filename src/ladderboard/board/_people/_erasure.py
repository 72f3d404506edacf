"""Erasure: the name and identity of a person or a team are removed, and a pseudonym stays.

The ledger commits to ids, so it verifies as before. While a board is open, keyed hashes of the
erased identity and name stay, so a person gets no second team, and the name is not given again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from ladderboard.board._access import MAIL_ISSUER, check_permission, comparable_name
from ladderboard.board._model import Description
from ladderboard.board._repository import (
    ENDED_STATUSES,
    clear_messages,
    delete_identity_sessions,
    end_all_of_team,
    find_identity,
    find_team,
    find_team_by_name,
    list_erased_identities,
    list_erased_teams,
    list_team_identities,
    list_teams,
    read_board,
    read_board_and_team,
    read_identity,
    read_team,
    update_board,
    update_identity,
    update_team,
)
from ladderboard.errors import Conflict, NotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import IdentityRow, TeamRow
    from ladderboard.ledger import Book, BookTransaction, ReadView, WriteView

ERASED_ISSUER = "erased"
"""The issuer of identities that were erased; providers have addresses."""
MAX_REWRITTEN_BYTES = 2**30
"""The largest database file that is written anew while others wait for an answer."""
_ERASED_BEFORE = (
    "Your name and identity were removed from this board. One person has one team, so you cannot "
    "sign in again before the board is closed."
)
_IS_ORGANISER = "This person organises the board. Another organiser must end that first."
_SIGN_IN_FIRST = "This team has people in it. Each must sign in to remove their own name."


class Erased(NamedTuple):
    """The result of an erasure."""

    team: Annotated[str | None, Description("The team's id; null if its name stays.")]
    name: Annotated[str | None, Description("The team's pseudonym.")]
    kept_in_ledger: Annotated[
        bool,
        Description("An older version closed the board; its ledger commits to the name."),
    ]
    scrubbed: Annotated[
        bool, Description("Nothing is left in the free space of the database's file.")
    ]


class ErasurePreview(NamedTuple):
    """What an erasure of the caller would do, to be confirmed.

    ``team`` is the pseudonym that the team would get; None if its name stays, because others are in
    it, or there is no team. ``refusal`` is why the caller cannot be erased.
    """

    team: str | None
    kept_in_ledger: bool
    refusal: str | None = None


class Erasure:
    """Erases names and identities on one board."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def erase_own(self, caller: Caller) -> Erased:
        """Erase the caller: the person who signed in, or else the team of the token.

        The team's name goes with the last person in it.
        """
        if caller.identity is not None:
            return self._run(lambda view, now: self._erase_person(view, caller.identity or 0, now))
        check_permission(caller, "own")

        def erase_token_team(view: WriteView, now: int) -> TeamRow:
            _, team = read_board_and_team(view, caller.team or 0, caller.sender)
            if _list_people(view, team.number):
                raise Conflict(_SIGN_IN_FIRST)
            return self._erase_team(view, team, now)

        return self._run(erase_token_team)

    def preview_own(self, caller: Caller) -> ErasurePreview | None:
        """Return what ``erase_own`` would do; None for a caller without a team or a sign-in."""
        with self._board.reading() as view:
            in_ledger, number = self._board.names_in_ledger(view), caller.team
            person = None
            if caller.identity is not None:
                person = read_identity(view, caller.identity)
                number = person.team if person.state == "registered" else None
                if number is None:
                    refusal = _IS_ORGANISER if person.role == "organiser" else None
                    return ErasurePreview(None, in_ledger, refusal)
            if number is None:
                return None
            team, people = read_team(view, number), _list_people(view, number)
            if person is None and people:
                return ErasurePreview(None, in_ledger, _SIGN_IN_FIRST)
            others = [other for other in people if other != person]
            pseudonym = team.name if team.erased else _pseudonym(view, team)
            return ErasurePreview(None if others else pseudonym, in_ledger)

    def erase_team(self, caller: Caller, team: str) -> Erased:
        """Erase a team as an organiser, with everybody who is or was in it."""
        check_permission(caller, "teams")
        return self._run(lambda view, now: self._erase_team(view, find_team(view, team), now))

    def erase_person(self, caller: Caller, number: int) -> Erased:
        """Erase a person as an organiser; the team's name goes with the last person in it."""
        check_permission(caller, "teams")
        return self._run(lambda view, now: self._erase_person(view, number, now))

    def keeps_names(self) -> bool:
        """Return whether an older version closed the board: its ledger commits to names."""
        with self._board.reading() as view:
            return self._board.names_in_ledger(view)

    def scrub(self) -> bool:
        """Remove erased content from the database's file, however large; return whether it is."""
        return self._board.book.storage.erase_deleted()

    def _run(self, erase: Callable[[WriteView, int], TeamRow | None]) -> Erased:
        def run(transaction: BookTransaction) -> tuple[TeamRow | None, bool]:
            view = transaction.view
            team = erase(view, transaction.now)
            # Pages are rendered again when the board's row changes.
            update_board(view, amended=read_board(view).amended + 1)
            return team, self._board.names_in_ledger(view)

        team, in_ledger = self._board.queue.run(run)
        scrubbed = self._board.book.storage.erase_deleted(at_most=MAX_REWRITTEN_BYTES)
        if team is None:
            return Erased(None, None, in_ledger, scrubbed)
        return Erased(team.id, team.name, in_ledger, scrubbed)

    def _erase_team(self, view: WriteView, team: TeamRow, now: int) -> TeamRow:
        if team.kind != "team":
            raise NotFound("There is no such team.")
        for row in list_team_identities(view, team.number):
            self._erase_identity(view, row)
        clear_messages(view, team.number)
        end_all_of_team(view, team.number, now)
        if not team.erased:
            base, _, _ = team.folded.partition(" ")
            key = erased_name_key(self._board.book, base)
            if _is_ended(view):
                key = f" {team.id}"
            elif find_team_by_name(view, key) is not None:  # on a board that hides names
                key = f"{key} {team.id}"
            update_team(view, team.number, name=_pseudonym(view, team), folded=key)
        return read_team(view, team.number)

    def _erase_person(self, view: WriteView, number: int, now: int) -> TeamRow | None:
        row = read_identity(view, number)
        if row.state in {"listed", "erased"}:
            raise NotFound("There is no such registration.")
        if row.role == "organiser":
            raise Conflict(_IS_ORGANISER)
        if row.team is None:
            self._erase_identity(view, row)
            return None
        others = [other for other in _list_people(view, row.team) if other != row]
        if not others and row.state == "registered":
            return self._erase_team(view, read_team(view, row.team), now)
        if others and not any(other.role == "owner" for other in others):
            update_identity(view, others[0].number, role="owner")
        self._erase_identity(view, row)
        return None

    def _erase_identity(self, view: WriteView, row: IdentityRow) -> None:
        """Leave the number of a person, and a hash if they may not register again."""
        if row.state == "erased":
            return
        delete_identity_sessions(view, row.number)
        listed = None if row.mail is None else find_identity(view, MAIL_ISSUER, row.mail)
        for erased in [row] if listed is None or listed == row else [row, listed]:
            barred = erased.team is not None or erased.state == "rejected"
            subject = self._board.book.environment.salt().hex()
            if barred and not _is_ended(view):
                subject = erased_subject(self._board.book, erased.issuer, erased.subject)
            update_identity(
                view,
                erased.number,
                issuer=ERASED_ISSUER,
                subject=subject,
                name="",
                mail=None,
                state="erased",
                team_name="",
                reason="",
            )


def _list_people(view: ReadView, team: int) -> list[IdentityRow]:
    """Return the people who are in a team."""
    return [row for row in list_team_identities(view, team) if row.state == "registered"]


def erased_name_key(book: Book, folded: str) -> str:
    """Return what stays of a comparable name; the key of its hash never leaves the server."""
    return f" {book.mac('erased name', folded).hex()}"


def erased_subject(book: Book, issuer: str, subject: str) -> str:
    """Return what stays of an identity, so that the same one is recognised."""
    return book.mac("erased identity", issuer, subject).hex()


def refuse_erased(book: Book, view: ReadView, issuer: str, subject: str) -> None:
    """Refuse a person who was erased from this board, and may not register again."""
    if find_identity(view, ERASED_ISSUER, erased_subject(book, issuer, subject)) is not None:
        raise NotAllowed(_ERASED_BEFORE)


def is_erased_name(book: Book, view: ReadView, folded: str) -> bool:
    """Return whether a comparable name is that of an erased team, or its pseudonym."""
    if find_team_by_name(view, erased_name_key(book, folded)) is not None:
        return True
    return any(comparable_name(team.name) == folded for team in list_erased_teams(view))


def forget_erased(book: Book, view: WriteView) -> None:
    """Remove the hashes of erased names and identities: after a close nobody registers."""
    for team in list_erased_teams(view):
        update_team(view, team.number, folded=f" {team.id}")
    for row in list_erased_identities(view):
        update_identity(view, row.number, subject=book.environment.salt().hex())


def _pseudonym(view: ReadView, team: TeamRow) -> str:
    """Return a name made of the beginning of a team's id that no other team has."""
    taken = {comparable_name(other.name) for other in list_teams(view)}
    names = [f"Team {team.id[:size]}" for size in (4, 8, len(team.id))]
    return next((name for name in names if comparable_name(name) not in taken), names[-1])


def _is_ended(view: ReadView) -> bool:
    return read_board(view).status in ENDED_STATUSES - {"closing"}
