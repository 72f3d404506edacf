"""One function per API call: it returns the request and how to parse its response. No I/O here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from ladderboard import _settings
from ladderboard.board import (
    BoardInfo,
    BoardRecord,
    BoardTerms,
    FinalRanking,
    LeaderboardRow,
    SubmissionInfo,
    TeamCredentials,
    TeamMembers,
    TeamStatus,
)
from ladderboard.client._config import check_board_name
from ladderboard.client._models import SubmissionResult, parse_model
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import encode_predictions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

_CHUNK_BYTES = 2**16
T = TypeVar("T")
S = TypeVar("S")
_PAGE_SIZE = 1000  # the server's maximum
_LEDGER_PAGE_SIZE = 100
_BOARDS_PAGE_SIZE = 200  # a board's document is large


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request, and how to parse its response.

    ``parse`` gets the parsed JSON, or the bytes if ``as_bytes``. Only an ``idempotent`` request is
    sent again after a failure.
    """

    method: str
    path: str
    parse: Callable[[Any], T]
    board: str | None = None
    content: bytes | None = field(default=None, repr=False)
    body: UploadBody | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    idempotent: bool = True
    as_bytes: bool = False


@dataclass(frozen=True)
class ResultPage(Generic[T]):
    """Rows of one page, and the cursor of the next; None after the last."""

    rows: tuple[T, ...]
    next: Any


@dataclass(frozen=True)
class UploadBody:
    """Bytes with their media type; ``progress`` is called with the bytes sent and in total."""

    data: bytes = field(repr=False)
    kind: str
    progress: Callable[[int, int], object] | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes."""
        return sha256(self.data).hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the start."""
        size = len(self.data)
        for start in range(0, size, _CHUNK_BYTES):
            yield self.data[start : start + _CHUNK_BYTES]
            if self.progress is not None:
                self.progress(min(start + _CHUNK_BYTES, size), size)

    async def async_chunks(self) -> AsyncIterator[bytes]:
        """Yield the same chunks asynchronously."""
        for chunk in self.chunks():
            yield chunk


def make_upload_body(
    predictions: Any,
    file_format: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> UploadBody:
    """Return predictions as a body: a file's bytes as they are, a table or an array encoded."""
    return UploadBody(*encode_predictions(predictions, file_format), progress)


def boards(cursor: str | None) -> Request[ResultPage[BoardInfo]]:
    """A page of all boards."""
    query = {"limit": _BOARDS_PAGE_SIZE} | ({} if cursor is None else {"cursor": cursor})
    return Request(
        "GET",
        f"/boards?{urlencode(query)}",
        lambda document: ResultPage(
            _parse_rows(BoardInfo, document["boards"]), _optional_text(document.get("next"))
        ),
    )


def board(slug: str) -> Request[BoardInfo]:
    """One board."""
    return _get(slug, "", lambda document: parse_model(BoardInfo, document))


def submit(
    slug: str, body: UploadBody, key: str, message: str, team: str | None
) -> Request[SubmissionResult]:
    """Submit predictions."""
    return Request(
        "POST",
        _board_path(slug, "/submissions", message=message, team=team),
        _parse_result,
        board=slug,
        body=body,
        headers={"Content-Type": body.kind, "Idempotency-Key": key},
    )


def submissions(
    slug: str, team: str | None, before: int | None
) -> Request[ResultPage[SubmissionInfo]]:
    """A page of a team's submissions, newest first."""
    return _get(
        slug,
        "/submissions",
        lambda document: ResultPage(
            _parse_rows(SubmissionInfo, document["submissions"]), _optional_int(document["next"])
        ),
        team=team,
        before=before,
        limit=_PAGE_SIZE,
    )


def submission(slug: str, submission: str) -> Request[SubmissionInfo]:
    """One submission."""
    path = f"/submissions/{quote(submission, safe='')}"
    return _get(slug, path, lambda document: parse_model(SubmissionInfo, document))


def leaderboard(slug: str, cursor: str | None) -> Request[ResultPage[LeaderboardRow]]:
    """A page of the leaderboard."""
    return _get(
        slug,
        "/leaderboard",
        lambda document: ResultPage(
            _parse_rows(LeaderboardRow, document["rows"]), _optional_text(document["next"])
        ),
        cursor=cursor,
        limit=_PAGE_SIZE,
    )


def records(slug: str) -> Request[tuple[BoardRecord, ...]]:
    """Every improvement of the best on the whole board."""
    return _get(slug, "/records", lambda document: _parse_rows(BoardRecord, document["records"]))


def finals(slug: str) -> Request[FinalRanking]:
    """The final ranking."""
    return _get(slug, "/finals", lambda document: parse_model(FinalRanking, document))


def ledger(slug: str, first: int) -> Request[ResultPage[bytes]]:
    """A page of the ledger's entries."""

    def parse(content: bytes) -> ResultPage[bytes]:
        lines = tuple(content.splitlines())
        return ResultPage(lines, first + len(lines) if lines else None)

    path = _board_path(slug, "/ledger", first=first, limit=_LEDGER_PAGE_SIZE)
    return Request("GET", path, parse, board=slug, as_bytes=True)


def team(slug: str) -> Request[TeamStatus]:
    """The caller's team."""
    return _get(slug, "/team", lambda document: parse_model(TeamStatus, document))


def register(slug: str, name: str, invitation: str | None) -> Request[TeamCredentials]:
    """Register a team."""
    payload = {"name": name} if invitation is None else {"name": name, "invitation": invitation}
    return _send(
        "POST", slug, "/teams", payload, lambda document: parse_model(TeamCredentials, document)
    )


def rotate_token(slug: str) -> Request[TeamCredentials]:
    """Replace the team's token."""
    return _send(
        "POST", slug, "/team/token", None, lambda document: parse_model(TeamCredentials, document)
    )


def terms(slug: str) -> Request[BoardTerms]:
    """The terms of a board."""
    return _get(slug, "/terms", lambda document: parse_model(BoardTerms, document))


def accept_terms(slug: str, version: str) -> Request[BoardTerms]:
    """Accept the terms."""
    return _send(
        "POST",
        slug,
        "/terms",
        {"version": version},
        lambda document: parse_model(BoardTerms, document),
    )


def members(slug: str) -> Request[TeamMembers]:
    """The people in the caller's team."""
    return _get(slug, "/team/members", lambda document: parse_model(TeamMembers, document))


def set_role(slug: str, member: int, role: str) -> Request[TeamMembers]:
    """Change the role of a person in the caller's team."""
    path, payload = f"/team/members/{int(member)}", {"role": role}
    return _send("PUT", slug, path, payload, lambda document: parse_model(TeamMembers, document))


def remove_member(slug: str, member: int) -> Request[None]:
    """Remove a person from the caller's team."""
    return _delete(slug, f"/team/members/{int(member)}")


def invite_member(slug: str, days: float, uses: int) -> Request[str]:
    """Make an invitation to the caller's team."""
    payload = {"days": days, "uses": uses}
    return _send(
        "POST", slug, "/team/invitations", payload, lambda document: str(document["invitation"])
    )


def revoke_invitation(slug: str, invitation: str) -> Request[None]:
    """End an invitation to the caller's team."""
    return _delete(slug, f"/team/invitations/{quote(invitation, safe='')}")


def selections(slug: str) -> Request[tuple[str, ...]]:
    """The ids that the team selected for the finals."""
    return _get(slug, "/selections", _parse_submission_ids)


def select(slug: str, submissions: Sequence[str]) -> Request[tuple[str, ...]]:
    """Replace the team's selected submissions."""
    ids = [submissions] if isinstance(submissions, str) else list(submissions)
    invalid = [chosen_id for chosen_id in ids if not isinstance(chosen_id, str)]
    if invalid or isinstance(submissions, str):
        raise InvalidSetting(
            "select takes a list of submission ids, such as those of submissions(board); "
            f"got {_settings.safe_repr(invalid[0] if invalid else submissions)}."
        )
    payload = {"submissions": ids}
    return _send("PUT", slug, "/selections", payload, _parse_submission_ids)


def _parse_result(document: Any) -> SubmissionResult:
    """Parse an answer; refuse a ``reason`` with control characters, which a terminal would obey."""
    result = parse_model(SubmissionResult, document)
    if not result.reason.isprintable():
        raise ValueError("control characters in reason")
    return result


def _get(slug: str, path: str, parse: Callable[[Any], T], **query: Any) -> Request[T]:
    return Request("GET", _board_path(slug, path, **query), parse, board=slug)


def _delete(slug: str, path: str) -> Request[None]:
    return Request("DELETE", _board_path(slug, path), _ignore, board=slug, as_bytes=True)


def _ignore(_: bytes) -> None:
    """Take an empty response."""


def _send(method: str, slug: str, path: str, payload: Any, parse: Callable[[Any], T]) -> Request[T]:
    content = None if payload is None else json.dumps(payload).encode()
    return Request(
        method,
        _board_path(slug, path),
        parse,
        board=slug,
        content=content,
        headers={} if content is None else {"Content-Type": "application/json"},
        idempotent=method == "PUT",
    )


def _board_path(slug: str, path: str, **query: Any) -> str:
    present = {name: value for name, value in query.items() if value is not None and value != ""}
    try:
        suffix = f"?{urlencode(present)}" if present else ""
    except UnicodeEncodeError:  # a command line's bytes that are not valid UTF-8
        raise InvalidSetting("The message and the team's id must be text.") from None
    return f"/boards/{check_board_name(slug)}{path}{suffix}"


def _parse_rows(model: type[S], rows: Any) -> tuple[S, ...]:
    if not isinstance(rows, list):
        raise TypeError
    return tuple(parse_model(model, row) for row in rows)


def _parse_submission_ids(document: Any) -> tuple[str, ...]:
    return tuple(map(str, document["submissions"]))


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)
