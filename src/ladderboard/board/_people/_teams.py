"""Teams of a board: registration, invitations, tokens and disqualification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.board._access import (
    Caller,
    Role,
    check_name,
    check_permission,
    comparable_name,
    hash_token,
    new_token,
)
from ladderboard.board._model import (
    CREDENTIAL,
    TEAM,
    CredentialRow,
    ListedToken,
    TeamRow,
    make_document,
)
from ladderboard.board._people._erasure import is_erased_name
from ladderboard.board._repository import (
    ENDED_STATUSES,
    end_team_credentials,
    find_credential_of_role,
    find_team,
    find_team_by_name,
    insert,
    list_teams_with_duplicate_names,
    list_valid_credentials,
    move_invitations,
    next_team_number,
    read_board,
    read_board_and_team,
    read_identity,
    update_board,
    update_credential,
    update_team,
)
from ladderboard.errors import Conflict, InvalidSetting, NotAllowed, NotFound, NotOpen

if TYPE_CHECKING:
    from ladderboard.board._board import BoardContext
    from ladderboard.ledger import Book, BookTransaction, ReadView, WriteView

NAMELESS_VISIBILITIES = frozenset({"hidden", "anonymous"})
"""Visibilities under which other teams' names are not shown."""

_USUAL_DAYS, _MAX_DAYS = 7, 366  # of an invitation
_INVALID_INVITATION = (
    "This invitation is unknown, was used before, or has expired. Ask for a new one."
)


class TeamWithToken(NamedTuple):
    """A team with its new token, which is shown only once."""

    id: str
    name: str
    token: str


class Teams:
    """Registers the teams of one board and manages their tokens."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def register(self, name: str, invitation: str | None = None) -> TeamWithToken:
        """Register a team; without open registration this needs an invitation."""
        registration = self._board.rules.registration
        if invitation is None and registration == "sign_in":
            raise NotAllowed("Sign in on the board's Join page to register a team.")
        if invitation is None and registration != "open":
            raise NotAllowed("This board needs an invitation. Ask the organiser for one.")
        return self._add_team(name, invitation, self_registered=True)

    def register_or_create(
        self, caller: Caller, name: str, invitation: str | None = None
    ) -> TeamWithToken:
        """Create a team for an organiser, or register one for anybody else."""
        if invitation is None and caller.role >= Role.ORGANISER:
            return self.create(caller, name)
        return self.register(name, invitation)

    def create(self, caller: Caller, name: str) -> TeamWithToken:
        """Create a team as an organiser."""
        check_permission(caller, "teams")
        return self._add_team(name, None)

    def _add_team(
        self, name: str, invitation: str | None, *, self_registered: bool = False
    ) -> TeamWithToken:
        name, salt = check_name(name), self._board.book.environment.salt
        token, team = new_token("team", salt), salt()[-8:].hex()

        def insert_team(transaction: BookTransaction) -> TeamWithToken:
            view, now = transaction.view, transaction.now
            hashed = None
            if invitation is not None:
                hashed = hash_token(invitation)
                invite = find_credential_of_role(view, hashed, "invitation")
                if invite is None or invite.ended is not None or (invite.expires or now + 1) <= now:
                    raise NotAllowed(_INVALID_INVITATION)
            number = add_team(self._board, transaction, team, name, self_registered=self_registered)
            insert(view, CREDENTIAL, new_credential(token, "team", now, team=number))
            if hashed is not None:
                update_credential(view, hashed, ended=now, team=number)
            return TeamWithToken(team, name, token)

        return self._board.queue.run(insert_team)

    def invitation_end(self, now: float, days: float | None = None) -> int:
        """Return when an invitation made now ends.

        After the given number of days; without one at the deadline, or after 7 days.
        """
        if days is None:
            left = (self._board.rules.deadline or 0) - int(now)
            return int(now) + (min(left, _MAX_DAYS * 86400) if left > 0 else _USUAL_DAYS * 86400)
        check_days(days)
        return int(now) + int(days * 86400)

    def invite_team(self, caller: Caller, *, days: float | None = None) -> str:
        """Return an invitation for one team, which ends as :meth:`invitation_end` says."""
        check_permission(caller, "teams")
        if days is not None:
            check_days(days)
        token = new_token("invitation", self._board.book.environment.salt)

        def insert_invitation(transaction: BookTransaction) -> str:
            now = transaction.now
            end = self.invitation_end(now, days)
            credential = new_credential(token, "invitation", now, expires=end)
            insert(transaction.view, CREDENTIAL, credential)
            return token

        return self._board.queue.run(insert_invitation)

    def rotate_token(self, caller: Caller, team: str | None = None) -> TeamWithToken:
        """Give a team a new token; the old one and its sessions end."""
        token = new_token("team", self._board.book.environment.salt)

        def replace_credentials(transaction: BookTransaction) -> TeamWithToken:
            view = transaction.view
            row = self._team_to_rotate(view, caller, team)
            if row.kind != "team":
                raise NotFound("There is no such team.")
            end_team_credentials(view, row.number, transaction.now)
            credential = new_credential(token, "team", transaction.now, team=row.number)
            insert(view, CREDENTIAL, credential)
            return TeamWithToken(row.id, row.name, token)

        return self._board.queue.run(replace_credentials)

    def revoke_team_tokens(self, caller: Caller, team: str) -> None:
        """Revoke all tokens of a team; ``rotate_token`` can give it a new one."""
        check_permission(caller, "tokens")

        def revoke(transaction: BookTransaction) -> None:
            view = transaction.view
            end_team_credentials(view, find_team(view, team).number, transaction.now)

        self._board.queue.run(revoke)

    def list_tokens(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the board's valid tokens, without the tokens themselves.

        An ``id`` is the beginning of a token's hash.
        """
        check_permission(caller, "tokens")
        with self._board.reading() as view:
            now = self._board.book.environment.current_time(view)
            valid = list_valid_credentials(view, now)
        return [
            make_document(
                ListedToken,
                credential_row.credential,
                id=token_id(credential_row.credential),
                team=credential_row.team,
            )
            for credential_row in valid
        ]

    def revoke_token(self, caller: Caller, token: str) -> None:
        """Revoke one token or invitation of the board by its id."""
        check_permission(caller, "tokens")

        def revoke(transaction: BookTransaction) -> None:
            view = transaction.view
            valid = list_valid_credentials(view, transaction.now)
            hashes = [
                credential_row.credential.hash
                for credential_row in valid
                if token_id(credential_row.credential) == token
            ]
            if not hashes:
                raise NotFound("There is no such token.")
            for hashed in hashes:
                update_credential(view, hashed, ended=transaction.now)

        self._board.queue.run(revoke)

    def issue_staff_token(self, caller: Caller, role: Role) -> str:
        """Return a new token for an organiser or evaluator of this board."""
        check_permission(caller, "tokens")
        if role not in {Role.EVALUATOR, Role.ORGANISER}:
            raise InvalidSetting("Only evaluators and organisers can have a token without a team.")
        token = new_token(role.name.lower(), self._board.book.environment.salt)

        def insert_token(transaction: BookTransaction) -> str:
            credential = new_credential(token, role.name.lower(), transaction.now)
            insert(transaction.view, CREDENTIAL, credential)
            return token

        return self._board.queue.run(insert_token)

    def disqualify(self, caller: Caller, team: str, *, reinstate: bool = False) -> None:
        """Hide a team from the standings, or show it again. Ladders and meter do not change."""
        check_permission(caller, "teams")

        def record_change(transaction: BookTransaction) -> None:
            view = transaction.view
            if read_board(view).status == "moved":
                raise NotOpen("The board has moved to another server and cannot change here.")
            row = find_team(view, team)
            if row.disqualified == (not reinstate):
                return
            transaction.append_entry(
                "reinstated" if reinstate else "disqualified", {"asker": row.id}
            )
            update_team(view, row.number, disqualified=not reinstate)

        self._board.queue.run(record_change)

    def add_baseline(self, name: str) -> Caller:
        """Add a baseline; it has no token, the organiser submits for it."""
        team = self._board.book.environment.salt()[-8:].hex()

        def insert_baseline(transaction: BookTransaction) -> Caller:
            wanted = check_name(name)
            number = _insert_team(self._board.book, transaction, team, wanted, "baseline")
            return Caller(Role.ORGANISER, number)

        return self._board.queue.run(insert_baseline)

    @staticmethod
    def _team_to_rotate(view: ReadView, caller: Caller, team: str | None) -> TeamRow:
        if team is not None:
            row = find_team(view, team) if caller.role >= Role.ORGANISER else None
            if caller.team is not None:
                own_row = check_owner(view, caller)
                row = own_row if own_row.id == team else None
            if row is None:
                check_permission(caller, "tokens")
                raise NotAllowed("A team can rotate only its own token.")
            return row
        check_permission(caller, "rotate own token")
        return check_owner(view, caller)


def add_team(
    board: BoardContext,
    transaction: BookTransaction,
    team: str,
    name: str,
    *,
    self_registered: bool,
) -> int:
    """Add a team to a board that takes teams and is not full; return its number."""
    view = transaction.view
    row = read_board(view)
    if row.status in ENDED_STATUSES:
        raise NotOpen(f"The board is {row.status}; it takes no more teams.")
    if row.teams >= board.rules_of(row).teams:
        raise Conflict(f"The board is full: it has {row.teams:,} teams.")
    names_hidden = self_registered and row.visibility in NAMELESS_VISIBILITIES
    number = _insert_team(board.book, transaction, team, name, "team", names_hidden=names_hidden)
    update_board(view, teams=row.teams + 1)
    return number


def _insert_team(
    book: Book,
    transaction: BookTransaction,
    team: str,
    name: str,
    kind: str,
    *,
    names_hidden: bool = False,
) -> int:
    """Insert a team and return its number; ``names_hidden`` accepts duplicates.

    The ``folded`` form of a duplicate has a space and the team's id at its end, so it is unique.
    """
    view, folded = transaction.view, comparable_name(name)
    same_name = find_team_by_name(view, folded)
    is_taken = same_name is not None or is_erased_name(book, view, folded)
    # The names of baselines are public.
    if is_taken and names_hidden and (same_name is None or same_name.kind != "baseline"):
        folded = f"{folded} {team}"
    elif is_taken:
        raise Conflict("Another team has this name or one that looks like it. Choose another.")
    number = next_team_number(view)
    row = TeamRow(number=number, id=team, name=name, folded=folded, kind=kind, made=transaction.now)
    insert(view, TEAM, row)
    return number


def disambiguate_team_names(view: WriteView) -> None:
    """Append the beginning of the id to duplicate names, because names are shown from now on."""
    for team in list_teams_with_duplicate_names(view):
        names = [f"{team.name} ({team.id[:size]})" for size in (4, 8, len(team.id))]
        free = (
            candidate
            for candidate in names
            if find_team_by_name(view, comparable_name(candidate)) is None
        )
        shown_name = next(free, names[-1])
        update_team(view, team.number, name=shown_name, folded=comparable_name(shown_name))


def move_invitations_with_deadline(
    view: WriteView, now: int, before: int | None, after: int | None
) -> None:
    """Let unused invitations that end at the deadline end at the new one, if there is one."""
    if before is not None and after not in {None, before}:
        move_invitations(view, before, min(after, now + _MAX_DAYS * 86400))


def new_credential(
    token: str,
    role: str,
    now: int,
    *,
    team: int | None = None,
    expires: int | None = None,
    uses: int = 1,
) -> CredentialRow:
    """Return the credential of a token, which holds the token's hash."""
    hashed = hash_token(token)
    return CredentialRow(hash=hashed, role=role, team=team, made=now, expires=expires, uses=uses)


def check_days(days: float) -> None:
    """Refuse the lifetime of an invitation that is too short or too long."""
    if not 0 < days <= _MAX_DAYS:
        raise InvalidSetting(
            f"An invitation must be valid for more than 0 and at most {_MAX_DAYS} days."
        )


def check_owner(view: ReadView, caller: Caller) -> TeamRow:
    """Return the caller's team; refuse a member who does not own it. A token owns its team."""
    check_permission(caller, "own")
    _, team = read_board_and_team(view, caller.team or 0, caller.sender)
    if caller.identity is not None and read_identity(view, caller.identity).role != "owner":
        raise NotAllowed("Only an owner of the team may do this.")
    return team


def token_id(credential: CredentialRow) -> str:
    """Return the public id of a token or invitation: the beginning of its hash."""
    return credential.hash[:8].hex()
