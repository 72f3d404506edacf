"""Teams of a board: registration, invitations, tokens and disqualification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_time
from ladderboard.board._access import (
    Caller,
    Role,
    check_name,
    check_permission,
    comparable_name,
    hash_token,
    new_token,
)
from ladderboard.board._tables import ENDED_STATUSES, current_time, find_team, read_board, read_team
from ladderboard.errors import Conflict, InvalidSetting, NotAllowed, NotFound, NotOpen

if TYPE_CHECKING:
    from ladderboard.board._board import Board
    from ladderboard.board._tables import TeamRow
    from ladderboard.ledger import BookTransaction, ReadView, WriteView

NAMELESS_VISIBILITIES = frozenset({"hidden", "anonymous"})
"""Visibilities under which other teams' names are not shown."""

_INSERT_TEAM = (
    "INSERT INTO main.team (book, number, id, name, folded, kind, disqualified, made, used) "
    "VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0)"
)
_COUNT_TEAM = "UPDATE main.board SET teams = teams + 1 WHERE book = ?"
_NEXT_NUMBER = "SELECT COALESCE(MAX(number), 0) + 1 FROM main.team WHERE book = ?"
_SAME_NAME = "SELECT kind FROM main.team WHERE book = ? AND folded = ?"
_DUPLICATES = (
    "SELECT number, id, name FROM main.team WHERE book = ? AND folded LIKE ? ORDER BY number"
)
_RENAME = "UPDATE main.team SET name = ?, folded = ? WHERE book = ? AND number = ?"
_INSERT_CREDENTIAL = (
    "INSERT INTO main.credential (hash, book, role, team, made, expires) VALUES (?, ?, ?, ?, ?, ?)"
)
_FIND_INVITATION = (
    "SELECT expires, ended FROM main.credential WHERE hash = ? AND book = ? AND role = 'invitation'"
)
_USE_INVITATION = "UPDATE main.credential SET ended = ?, team = ? WHERE hash = ?"
_END_TEAM_CREDENTIALS = (
    "UPDATE main.credential SET ended = ? "
    "WHERE book = ? AND role = 'team' AND team = ? AND ended IS NULL"
)
_END_CREDENTIAL = (
    "UPDATE main.credential SET ended = ? WHERE book = ? AND hash = ? AND ended IS NULL"
)
_VALID_CREDENTIALS = (
    "SELECT c.hash, c.role, t.id, c.made, c.expires FROM main.credential c "
    "LEFT JOIN main.team t ON t.book = c.book AND t.number = c.team "
    "WHERE c.book = ? AND c.ended IS NULL AND (c.expires IS NULL OR c.expires > ?) "
    "ORDER BY c.made, c.hash"
)
_SET_DISQUALIFIED = "UPDATE main.team SET disqualified = ? WHERE book = ? AND number = ?"
_INVALID_INVITATION = "This invitation is unknown, was used before, or has expired."


class TeamWithToken(NamedTuple):
    """A team with its new token, which is shown only once."""

    id: str
    name: str
    token: str


class Teams:
    """Registers the teams of one board and manages their tokens."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def register(self, name: str, invitation: str | None = None) -> TeamWithToken:
        """Register a team; without open registration this needs an invitation."""
        registration = self._board.rules.registration
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

        def insert(transaction: BookTransaction) -> TeamWithToken:
            view, now = transaction.view, transaction.now
            row = read_board(view)
            if row.status in ENDED_STATUSES:
                raise NotOpen(f"The board is {row.status}; it takes no more teams.")
            hashed = None
            if invitation is not None:
                hashed = hash_token(invitation)
                rows = view.query(_FIND_INVITATION, (hashed, view.book_id))
                if not rows or rows[0][1] is not None or (rows[0][0] or now + 1) <= now:
                    raise NotAllowed(_INVALID_INVITATION)
            if row.teams >= self._board.rules_of(row).teams:
                raise Conflict(f"The board is full: it has {row.teams} teams.")
            names_hidden = self_registered and row.visibility in NAMELESS_VISIBILITIES
            number = _insert_team(view, team, name, "team", now, names_hidden=names_hidden)
            view.execute(_COUNT_TEAM, (view.book_id,))
            add_credential(view, token, "team", now, team=number)
            if hashed is not None:
                view.execute(_USE_INVITATION, (now, number, hashed))
            return TeamWithToken(team, name, token)

        return self._board.queue.run(insert)

    def invite(self, caller: Caller, *, days: float = 7) -> str:
        """Return an invitation for one team, valid for the given number of days."""
        check_permission(caller, "teams")
        if not 0 < days <= 366:
            raise InvalidSetting(
                "An invitation must be valid for more than 0 and at most 366 days."
            )
        token = new_token("invitation", self._board.book.environment.salt)

        def insert(transaction: BookTransaction) -> str:
            view = transaction.view
            expires = transaction.now + int(days * 86400)
            add_credential(view, token, "invitation", transaction.now, expires=expires)
            return token

        return self._board.queue.run(insert)

    def rotate_token(self, caller: Caller, team: str | None = None) -> TeamWithToken:
        """Give a team a new token; the old one and its sessions end."""
        token = new_token("team", self._board.book.environment.salt)

        def replace_credentials(transaction: BookTransaction) -> TeamWithToken:
            view = transaction.view
            row = self._team_to_rotate(view, caller, team)
            if row.kind != "team":
                raise NotFound("There is no such team.")
            revoke_credentials(view, transaction.now, row.number)
            add_credential(view, token, "team", transaction.now, team=row.number)
            return TeamWithToken(row.id, row.name, token)

        return self._board.queue.run(replace_credentials)

    def revoke_team_tokens(self, caller: Caller, team: str) -> None:
        """Revoke all tokens of a team; ``rotate_token`` can give it a new one."""
        check_permission(caller, "tokens")

        def revoke(transaction: BookTransaction) -> None:
            view = transaction.view
            revoke_credentials(view, transaction.now, find_team(view, team).number)

        self._board.queue.run(revoke)

    def list_tokens(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the board's valid tokens, without the tokens themselves.

        An ``id`` is the beginning of a token's hash.
        """
        check_permission(caller, "tokens")
        with self._board.reading() as view:
            rows = view.query(
                _VALID_CREDENTIALS, (view.book_id, current_time(view, self._board.book.environment))
            )
        return [
            {
                "id": bytes(hashed)[:8].hex(),
                "role": role,
                "team": team,
                "made": format_time(created),
                "expires": None if expires is None else format_time(expires),
            }
            for hashed, role, team, created, expires in rows
        ]

    def revoke_token(self, caller: Caller, token: str) -> None:
        """Revoke one token or invitation of the board by its id."""
        check_permission(caller, "tokens")

        def revoke(transaction: BookTransaction) -> None:
            view = transaction.view
            valid = view.query(_VALID_CREDENTIALS, (view.book_id, transaction.now))
            hashes = [bytes(row[0]) for row in valid if bytes(row[0])[:8].hex() == token]
            if not hashes:
                raise NotFound("There is no such token.")
            for hashed in hashes:
                view.execute(_END_CREDENTIAL, (transaction.now, view.book_id, hashed))

        self._board.queue.run(revoke)

    def issue_staff_token(self, caller: Caller, role: Role) -> str:
        """Return a new token for an organiser or evaluator of this board."""
        check_permission(caller, "tokens")
        if role not in {Role.EVALUATOR, Role.ORGANISER}:
            raise InvalidSetting("Only evaluators and organisers can have a token without a team.")
        token = new_token(role.name.lower(), self._board.book.environment.salt)

        def insert(transaction: BookTransaction) -> str:
            add_credential(transaction.view, token, role.name.lower(), transaction.now)
            return token

        return self._board.queue.run(insert)

    def disqualify(self, caller: Caller, team: str, *, reinstate: bool = False) -> None:
        """Hide a team from the standings, or show it again. Ladders and meter do not change."""
        check_permission(caller, "teams")

        def record_change(transaction: BookTransaction) -> None:
            view = transaction.view
            if read_board(view).status == "moved":
                raise NotOpen("The board has moved to another server and cannot change here.")
            row = find_team(view, team)
            if bool(row.disqualified) == (not reinstate):
                return
            transaction.append_entry(
                "reinstated" if reinstate else "disqualified", {"asker": row.id}
            )
            view.execute(_SET_DISQUALIFIED, (int(not reinstate), view.book_id, row.number))

        self._board.queue.run(record_change)

    def add_baseline(self, name: str) -> Caller:
        """Add a baseline; it has no token, the organiser submits for it."""
        team = self._board.book.environment.salt()[-8:].hex()

        def insert(transaction: BookTransaction) -> Caller:
            view = transaction.view
            number = _insert_team(view, team, check_name(name), "baseline", transaction.now)
            return Caller(Role.ORGANISER, number)

        return self._board.queue.run(insert)

    @staticmethod
    def _team_to_rotate(view: ReadView, caller: Caller, team: str | None) -> TeamRow:
        if team is not None:
            row = find_team(view, team) if caller.role >= Role.ORGANISER else None
            if caller.team is not None:
                own_row = read_team(view, caller.team)
                row = own_row if own_row.id == team else None
            if row is None:
                check_permission(caller, "tokens")
                raise NotAllowed("A team can rotate only its own token.")
            return row
        check_permission(caller, "rotate own token")
        return read_team(view, caller.team or 0)


def _insert_team(
    view: WriteView, team: str, name: str, kind: str, now: int, *, names_hidden: bool = False
) -> int:
    """Insert a team and return its number; ``names_hidden`` accepts duplicates.

    The ``folded`` form of a duplicate has a space and the team's id at its end, so it is unique.
    """
    folded = comparable_name(name)
    same_name = view.query(_SAME_NAME, (view.book_id, folded))
    # The names of baselines are public.
    if same_name and names_hidden and same_name[0][0] != "baseline":
        folded = f"{folded} {team}"
    elif same_name:
        raise Conflict("Another team has this name or one that looks like it. Choose another.")
    number = int(view.query(_NEXT_NUMBER, (view.book_id,))[0][0])
    view.execute(_INSERT_TEAM, (view.book_id, number, team, name, folded, kind, now))
    return number


def disambiguate_team_names(view: WriteView) -> None:
    """Append the beginning of the id to duplicate names, because names are shown from now on."""
    for number, team, name in view.query(_DUPLICATES, (view.book_id, "% %")):
        names = [f"{name} ({team[:size]})" for size in (4, 8, len(team))]
        free = (
            candidate
            for candidate in names
            if not view.query(_SAME_NAME, (view.book_id, comparable_name(candidate)))
        )
        shown_name = next(free, names[-1])
        view.execute(_RENAME, (shown_name, comparable_name(shown_name), view.book_id, number))


def add_credential(view: WriteView, token: str, role: str, now: int, **fields: Any) -> None:
    """Store the hash of a token."""
    values = (hash_token(token), view.book_id, role, fields.get("team"), now, fields.get("expires"))
    view.execute(_INSERT_CREDENTIAL, values)


def revoke_credentials(view: WriteView, now: int, team: int) -> None:
    """Revoke all tokens of a team."""
    view.execute(_END_TEAM_CREDENTIALS, (now, view.book_id, team))
