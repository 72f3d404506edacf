"""Requests: every verb as what is sent, and how its answer is read. Nothing is sent here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from ladderboard import _settings
from ladderboard.client._address import check_board_name
from ladderboard.client._models import (
    BoardInfo,
    BoardRecord,
    FinalRanking,
    LeaderboardRow,
    SubmissionInfo,
    SubmissionResult,
    TeamCredentials,
    TeamStatus,
    parse_model,
)
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

_CHUNK_BYTES = 2**16
T = TypeVar("T")
S = TypeVar("S")
_PAGE_SIZE = 1000  # the most that a server gives at once
_LEDGER_PAGE_SIZE = 100
_BOARDS_PAGE_SIZE = 200  # each is told in full


@dataclass(frozen=True)
class Request(Generic[T]):
    """What is sent, and how the answer is read.

    ``read`` gets the JSON that was said, or the bytes if ``raw``. ``again`` says whether it is
    safe to send it twice.
    """

    method: str
    path: str
    read: Callable[[Any], T]
    board: str | None = None
    content: bytes | None = field(default=None, repr=False)
    body: UploadBody | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    idempotent: bool = True
    as_bytes: bool = False


@dataclass(frozen=True)
class ResultPage(Generic[T]):
    """Rows, and where the next page begins; None after the last."""

    rows: tuple[T, ...]
    next: Any


@dataclass(frozen=True)
class UploadBody:
    """Bytes with their media type; ``progress`` hears how many of how many were sent."""

    data: bytes = field(repr=False)
    kind: str
    progress: Callable[[int, int], object] | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes."""
        return sha256(self.data).hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield all of it, from the start."""
        size = len(self.data)
        for at in range(0, size, _CHUNK_BYTES):
            yield self.data[at : at + _CHUNK_BYTES]
            if self.progress is not None:
                self.progress(min(at + _CHUNK_BYTES, size), size)

    async def async_chunks(self) -> AsyncIterator[bytes]:
        """Yield the same, for those who wait."""
        for each in self.chunks():
            yield each


def make_upload_body(
    predictions: Any,
    format: str | None = None,  # noqa: A002 - the word people use
    progress: Callable[[int, int], object] | None = None,
) -> UploadBody:
    """Return predictions as they are sent: a file as it is, a table or an array packed."""
    return UploadBody(*pack(predictions, format), progress)


def boards(cursor: str | None) -> Request[ResultPage[BoardInfo]]:
    """A page of all boards."""
    asked = {"limit": _BOARDS_PAGE_SIZE} | ({} if cursor is None else {"cursor": cursor})
    return Request(
        "GET",
        f"/boards?{urlencode(asked)}",
        lambda said: ResultPage(
            _parse_rows(BoardInfo, said["boards"]), _optional_text(said.get("next"))
        ),
    )


def board(slug: str) -> Request[BoardInfo]:
    """What a board is."""
    return _get(slug, "", lambda said: parse_model(BoardInfo, said))


def submit(
    slug: str, body: UploadBody, key: str, message: str, team: str | None
) -> Request[SubmissionResult]:
    """Ask a question."""
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
    """A page of a team's own, newest first."""
    return _get(
        slug,
        "/submissions",
        lambda said: ResultPage(
            _parse_rows(SubmissionInfo, said["submissions"]), _optional_int(said["next"])
        ),
        team=team,
        before=before,
        limit=_PAGE_SIZE,
    )


def submission(slug: str, submission: str) -> Request[SubmissionInfo]:
    """One of them."""
    place = f"/submissions/{quote(submission, safe='')}"
    return _get(slug, place, lambda said: parse_model(SubmissionInfo, said))


def leaderboard(slug: str, cursor: str | None) -> Request[ResultPage[LeaderboardRow]]:
    """A page of the standings."""
    return _get(
        slug,
        "/leaderboard",
        lambda said: ResultPage(
            _parse_rows(LeaderboardRow, said["rows"]), _optional_text(said["next"])
        ),
        cursor=cursor,
        limit=_PAGE_SIZE,
    )


def records(slug: str) -> Request[tuple[BoardRecord, ...]]:
    """Every time that the best of the whole board went down."""
    return _get(slug, "/records", lambda said: _parse_rows(BoardRecord, said["records"]))


def finals(slug: str) -> Request[FinalRanking]:
    """The final ranking."""
    return _get(slug, "/finals", lambda said: parse_model(FinalRanking, said))


def ledger(slug: str, first: int) -> Request[ResultPage[bytes]]:
    """Entries of the ledger."""

    def read(said: bytes) -> ResultPage[bytes]:
        lines = tuple(said.splitlines())
        return ResultPage(lines, first + len(lines) if lines else None)

    path = _board_path(slug, "/ledger", first=first, limit=_LEDGER_PAGE_SIZE)
    return Request("GET", path, read, board=slug, as_bytes=True)


def team(slug: str) -> Request[TeamStatus]:
    """One's own affairs."""
    return _get(slug, "/team", lambda said: parse_model(TeamStatus, said))


def register(slug: str, name: str, invitation: str | None) -> Request[TeamCredentials]:
    """Make a team."""
    wanted = {"name": name} if invitation is None else {"name": name, "invitation": invitation}
    return _send("POST", slug, "/teams", wanted, lambda said: parse_model(TeamCredentials, said))


def rotate_token(slug: str) -> Request[TeamCredentials]:
    """Another token for one's own team."""
    return _send("POST", slug, "/team/token", None, lambda said: parse_model(TeamCredentials, said))


def selections(slug: str) -> Request[tuple[str, ...]]:
    """What one's own team selected."""
    return _get(slug, "/selections", _parse_submission_ids)


def select(slug: str, submissions: Sequence[str]) -> Request[tuple[str, ...]]:
    """Select, in place of what was selected before."""
    chosen = [submissions] if isinstance(submissions, str) else list(submissions)
    strange = [each for each in chosen if not isinstance(each, str)]
    if strange or isinstance(submissions, str):
        raise InvalidSetting(
            "Submissions are selected by a list of their ids, as submissions(board) has them; "
            f"got {_settings.safe_repr(strange[0] if strange else submissions)}."
        )
    wanted = {"submissions": chosen}
    return _send("PUT", slug, "/selections", wanted, _parse_submission_ids)


def _parse_result(said: Any) -> SubmissionResult:
    """Read an answer; a sentence that a terminal might obey is no server's of ours."""
    found = parse_model(SubmissionResult, said)
    if not found.reason.isprintable():
        raise ValueError("a sentence has no control characters")
    return found


def _get(slug: str, place: str, read: Callable[[Any], T], **query: Any) -> Request[T]:
    return Request("GET", _board_path(slug, place, **query), read, board=slug)


def _send(method: str, slug: str, place: str, wanted: Any, read: Callable[[Any], T]) -> Request[T]:
    content = None if wanted is None else json.dumps(wanted).encode()
    return Request(
        method,
        _board_path(slug, place),
        read,
        board=slug,
        content=content,
        headers={} if content is None else {"Content-Type": "application/json"},
        idempotent=method == "PUT",
    )


def _board_path(slug: str, place: str, **query: Any) -> str:
    kept = {name: each for name, each in query.items() if each is not None and each != ""}
    try:
        asked = f"?{urlencode(kept)}" if kept else ""
    except UnicodeEncodeError:  # bytes of a command line that were no text
        raise InvalidSetting("What is sent along must be text.") from None
    return f"/boards/{check_board_name(slug)}{place}{asked}"


def _parse_rows(shape: type[S], said: Any) -> tuple[S, ...]:
    if not isinstance(said, list):
        raise TypeError
    return tuple(parse_model(shape, each) for each in said)


def _parse_submission_ids(said: Any) -> tuple[str, ...]:
    return tuple(map(str, said["submissions"]))


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)
