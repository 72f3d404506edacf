"""Members of teams: invitations, roles, leaving, merging teams; and the terms that they accept.

One person is in one team of a board. A person who leaves a team that has submitted may return to
that team only: otherwise one person could have the submissions of several teams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ladderboard._formatting import format_count
from ladderboard.board._access import (
    MAIL_ISSUER,
    check_permission,
    hash_token,
    new_token,
)
from ladderboard.board._model import (
    CREDENTIAL,
    BoardTerms,
    TeamInvitation,
    TeamMember,
    TeamMembers,
    make_document,
)
from ladderboard.board._people._teams import check_days, check_owner, new_credential, token_id
from ladderboard.board._repository import (
    ENDED_STATUSES,
    delete_team,
    find_credential_of_role,
    find_identity,
    find_team,
    insert,
    list_member_invitations,
    list_members,
    move_identities,
    read_board,
    read_board_and_team,
    read_identity,
    read_team,
    update_board,
    update_credential,
    update_identity,
    update_team,
)
from ladderboard.errors import Conflict, InvalidSetting, NotAllowed, NotFound, NotOpen

if TYPE_CHECKING:
    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import CredentialRow, IdentityRow, TeamRow
    from ladderboard.ledger import BookTransaction, ReadView, WriteView

_MAX_USES = 100
_MAX_INVITATIONS = 20
_INVALID_INVITATION = (
    "This invitation to a team is unknown, was used up or revoked, or has expired."
)
_NOT_SIGNED_IN = "This is for people who signed in. Sign in on the board's Join page."
_ONLY_OWNER = "A team needs an owner. Make another member an owner first."
_LEFT = (
    "You left a team that has submitted, and one person is in one team on this board. You can "
    "return to that team with an invitation from it."
)
_SUBMITTED = "Teams can be merged only before either has submitted, and one of them has."
WAS_ORGANISER = "You were an organiser of this board."
"""Why a former organiser cannot be in a team: they may have seen what teams may not."""


class Members:
    """The people in the teams of one board, and its organisers by person."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    # For the people of a team, and for its token.

    def list(self, caller: Caller) -> dict[str, Any]:
        """Return the people of the caller's team, and its invitations that are still valid."""
        check_permission(caller, "own")
        with self._board.reading() as view:
            team = read_team(view, caller.team or 0)
            now = self._board.book.environment.current_time(view)
            invitations = list_member_invitations(view, team.number, now)
            people = list_members(view, team.number)
        return make_document(
            TeamMembers,
            None,
            team={"id": team.id, "name": team.name},
            members=[
                make_document(TeamMember, row, you=row.number == caller.identity) for row in people
            ],
            invitations=[
                make_document(TeamInvitation, invitation, id=token_id(invitation))
                for invitation in invitations
            ],
        )

    def invite_member(self, caller: Caller, *, days: float = 7, uses: int = 1) -> str:
        """Return an invitation with which people who signed in join the caller's team."""
        check_days(days)
        if type(uses) is not int or not 1 <= uses <= _MAX_USES:
            raise InvalidSetting(f"An invitation admits 1 to {_MAX_USES} people.")
        token = new_token("member", self._board.book.environment.salt)

        def insert_invitation(transaction: BookTransaction) -> str:
            view, now = transaction.view, transaction.now
            team = check_owner(view, caller)
            if self._board.rules_of(read_board(view)).sign_in is None:
                raise Conflict("This board has no sign-in; people share the team's token.")
            if len(list_member_invitations(view, team.number, now)) >= _MAX_INVITATIONS:
                raise Conflict(
                    f"A team has at most {_MAX_INVITATIONS} valid invitations. Revoke one first."
                )
            credential = new_credential(
                token, "member", now, team=team.number, expires=now + int(days * 86400), uses=uses
            )
            insert(view, CREDENTIAL, credential)
            return token

        return self._board.queue.run(insert_invitation)

    def revoke_invitation(self, caller: Caller, invitation: str) -> None:
        """Revoke an invitation to the caller's team by its id."""

        def revoke(transaction: BookTransaction) -> None:
            view, now = transaction.view, transaction.now
            team = check_owner(view, caller)
            for row in list_member_invitations(view, team.number, now):
                if token_id(row) == invitation:
                    update_credential(view, row.hash, ended=now)
                    return
            raise NotFound("There is no such invitation.")

        self._board.queue.run(revoke)

    def join(self, caller: Caller, invitation: str, *, merge: bool = False) -> str:
        """Join the team that sent an invitation, and return its id.

        With ``merge`` an owner brings the own team along: it is merged into the other, and the
        invitation must admit all its people.
        """
        hashed = hash_token(invitation)

        def join_team(transaction: BookTransaction) -> str:
            view = transaction.view
            row = _read_caller(view, caller)
            invite = find_credential_of_role(view, hashed, "member")
            if (
                invite is None
                or invite.ended is not None
                or (invite.expires or 0) <= transaction.now
            ):
                raise NotAllowed(_INVALID_INVITATION)
            team = read_team(view, invite.team or 0)
            if row.state == "registered" and row.team == team.number:
                return team.id
            count = 1
            if row.state == "registered":
                if not merge:
                    raise Conflict("You are in a team. Leave it first, or merge it into this one.")
                own_team = check_owner(view, caller)
                count = len(list_members(view, own_team.number))
                _check_uses(invite, count)
                merge_teams(transaction, own_team, team, person=row.number)
            else:
                refuse_to_join(view, row, team.number)
                self._refuse_if_ended(view)
                bind(view, row, team.number, role="member")
            left = invite.uses - count
            update_credential(view, hashed, uses=left, ended=None if left else transaction.now)
            return team.id

        return self._board.queue.run(join_team)

    def leave(self, caller: Caller) -> None:
        """Leave the caller's team; it ends if nobody remains and it has not submitted."""

        def leave_team(transaction: BookTransaction) -> None:
            view = transaction.view
            row = _read_caller(view, caller)
            if row.state != "registered":
                raise Conflict("You are not in a team.")
            others = [other for other in list_members(view, row.team or 0) if other != row]
            if others and not any(other.role == "owner" for other in others):
                raise Conflict(_ONLY_OWNER)
            release(view, row)

        self._board.queue.run(leave_team)

    def remove(self, caller: Caller, number: int) -> None:
        """Remove a person from the caller's team; they may know its token."""

        def remove_person(transaction: BookTransaction) -> None:
            view = transaction.view
            team = check_owner(view, caller)
            row = _find_member(view, team, number)
            _check_owner_remains(view, team, row)
            release(view, row)

        self._board.queue.run(remove_person)

    def set_role(self, caller: Caller, number: int, role: Literal["owner", "member"]) -> None:
        """Make a person of the caller's team an owner or a member."""
        if role not in {"owner", "member"}:
            raise InvalidSetting("The role must be owner or member.")

        def change_role(transaction: BookTransaction) -> None:
            view = transaction.view
            team = check_owner(view, caller)
            row = _find_member(view, team, number)
            if role == "member":
                _check_owner_remains(view, team, row)
            update_identity(view, number, role=role)

        self._board.queue.run(change_role)

    def _refuse_if_ended(self, view: ReadView) -> None:
        status = read_board(view).status
        if status in ENDED_STATUSES:
            raise NotOpen(f"The board is {status}; its teams do not change any more.")

    # For organisers.

    def merge(self, caller: Caller, team: str, into: str) -> None:
        """Merge a team into another, if neither has submitted."""
        check_permission(caller, "teams")

        def merge_both(transaction: BookTransaction) -> None:
            view = transaction.view
            merge_teams(transaction, find_team(view, team), find_team(view, into))

        self._board.queue.run(merge_both)

    def set_organiser(self, caller: Caller, number: int, *, organiser: bool) -> None:
        """Make a person who signed in an organiser of the board, or end that.

        The ledger records both, with the person's number. A former organiser cannot be in a team.
        """
        check_permission(caller, "tokens")

        def change_organiser(transaction: BookTransaction) -> None:
            view = transaction.view
            if read_board(view).status == "moved":
                raise NotOpen("The board has moved to another server and cannot change here.")
            row = read_person(view, number)
            if (row.role == "organiser") == organiser:
                return
            if row.state == "registered":
                raise Conflict("This person is in a team; an organiser cannot be in one.")
            transaction.append_entry("appointed" if organiser else "dismissed", {"person": number})
            changes = {"role": "organiser", "state": "signed_in", "reason": ""}
            if not organiser:
                changes = {"role": "owner", "state": "rejected", "reason": WAS_ORGANISER}
            update_identity(view, number, team=None, team_name="", **changes)

        self._board.queue.run(change_organiser)


class Terms:
    """The terms of one board, and who accepted them."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def summary(self, caller: Caller) -> dict[str, Any]:
        """Return the text and its version; ``accepted`` is None for a caller without a team."""
        with self._board.reading() as view:
            terms = self._board.rules_of(read_board(view)).terms
            if terms is None:
                raise NotFound("This board has no terms to accept.")
            accepted = None
            if caller.team is not None:
                team = read_team(view, caller.team)
                accepted = terms.version == team.accepted == accepted_version(view, caller)
        return make_document(BoardTerms, terms, accepted=accepted)

    def accept(self, caller: Caller, version: str) -> None:
        """Accept the version that was read, for the team and for the person who signed in.

        The ledger records it, with the team's id and the person's number.
        """
        check_permission(caller, "own")

        def record_acceptance(transaction: BookTransaction) -> None:
            view = transaction.view
            row, team = read_board_and_team(view, caller.team or 0, caller.sender)
            terms = self._board.rules_of(row).terms
            if terms is None:
                raise NotFound("This board has no terms to accept.")
            if row.status == "moved":
                raise NotOpen("The board has moved to another server and cannot change here.")
            if version != terms.version:
                raise Conflict("The terms have changed since you read them. Read them again.")
            if version == team.accepted == accepted_version(view, caller):
                return
            person = {} if caller.identity is None else {"person": caller.identity}
            transaction.append_entry("accepted", {"asker": team.id, "terms": version, **person})
            update_team(view, team.number, accepted=version)
            if caller.identity is not None:
                update_identity(view, caller.identity, accepted=version)

        self._board.queue.run(record_acceptance)


def accepted_version(view: ReadView, caller: Caller) -> str:
    """Return the version that a caller with a team accepted last.

    A person accepts for themselves; for a token it is what the team accepted.
    """
    if caller.identity is not None:
        return read_identity(view, caller.identity).accepted
    return read_team(view, caller.team or 0).accepted


def refuse_to_join(view: ReadView, row: IdentityRow, team: int | None = None) -> None:
    """Refuse a person who may not be in a team, or not in this one (None for a new one).

    An entry of the organiser's list admits one person.
    """
    if row.role == "organiser":
        raise NotAllowed("You organise this board, so you cannot be in a team.")
    if row.state == "rejected":
        raise NotAllowed(f"The organiser rejected your registration. {row.reason}".strip())
    if row.state == "left":
        if row.team != team:
            raise NotAllowed(_LEFT)
        return
    listed = _find_listed(view, row)
    if listed is not None and listed.team is not None:
        raise Conflict("This email address is registered already.")


def bind(view: WriteView, row: IdentityRow, team: int, *, role: str) -> None:
    """Put a person into a team; call ``refuse_to_join`` before anything is written."""
    listed = _find_listed(view, row)
    if listed is not None:
        update_identity(view, listed.number, team=team)
    update_identity(
        view, row.number, state="registered", team=team, team_name="", reason="", role=role
    )


def release(view: WriteView, row: IdentityRow, **changes: str) -> None:
    """Take a person out of their team.

    They stay bound to a team that has submitted. One that has not ends with its last person.
    """
    team = read_team(view, row.team or 0)
    if team.used:
        update_identity(view, row.number, **{"state": "left", "role": "member", **changes})
        return
    listed = _find_listed(view, row)
    if listed is not None and listed.team == team.number:
        update_identity(view, listed.number, team=None)
    fields = {"state": "signed_in", "role": "owner", **changes}
    update_identity(view, row.number, team=None, **fields)
    if not list_members(view, team.number):
        _end_team(view, team)


def merge_teams(
    transaction: BookTransaction, source: TeamRow, target: TeamRow, *, person: int | None = None
) -> None:
    """Move the people of a team into another and end it, unless either has submitted.

    What teams learn from submissions must not be pooled, and each has its own share of them. The
    ledger records it with the teams' ids and, unless an organiser did it, the person's number.
    """
    view = transaction.view
    status = read_board(view).status
    if status in ENDED_STATUSES:
        raise NotOpen(f"The board is {status}; its teams do not change any more.")
    if source.number == target.number:
        raise Conflict("A team cannot be merged into itself.")
    if "baseline" in {source.kind, target.kind}:
        raise NotFound("There is no such team.")
    if source.used or target.used:
        raise Conflict(_SUBMITTED)
    if source.disqualified or target.disqualified:
        raise Conflict("A disqualified team cannot be merged. Reinstate it first.")
    by = {} if person is None else {"person": person}
    transaction.append_entry("merged", {"asker": source.id, "into": target.id, **by})
    move_identities(view, source.number, target.number)
    _end_team(view, source)


def _end_team(view: WriteView, team: TeamRow) -> None:
    """Delete a team that has not submitted, with its tokens and invitations."""
    delete_team(view, team.number)
    update_board(view, teams=read_board(view).teams - 1)


def read_person(view: ReadView, number: int) -> IdentityRow:
    """Return a person who signed in."""
    row = read_identity(view, number)
    if row.state in {"listed", "erased"}:
        raise NotFound("There is no such registration.")
    return row


def _find_listed(view: ReadView, row: IdentityRow) -> IdentityRow | None:
    """Return the entry of the organiser's list with a person's email address."""
    return None if row.mail is None else find_identity(view, MAIL_ISSUER, row.mail)


def _read_caller(view: ReadView, caller: Caller) -> IdentityRow:
    if caller.identity is None:
        raise NotAllowed(_NOT_SIGNED_IN)
    return read_identity(view, caller.identity)


def _find_member(view: ReadView, team: TeamRow, number: int) -> IdentityRow:
    row = next((row for row in list_members(view, team.number) if row.number == number), None)
    if row is None:
        raise NotFound("There is no such member of your team.")
    return row


def _check_owner_remains(view: ReadView, team: TeamRow, row: IdentityRow) -> None:
    others = (other for other in list_members(view, team.number) if other.number != row.number)
    if not any(other.role == "owner" for other in others):
        raise Conflict(_ONLY_OWNER)


def _check_uses(invitation: CredentialRow, count: int) -> None:
    if count > invitation.uses:
        raise Conflict(
            f"Your team has {format_count(count, 'person', 'people')}, and this invitation admits "
            f"{invitation.uses}. Ask for one that admits more."
        )
