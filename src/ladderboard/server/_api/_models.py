"""The models of requests and responses, for /openapi.json.

The fields of a response are those of the class that the response is made from, mostly a dataclass
in ``ladderboard.board``.
"""

import inspect
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Optional, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from ladderboard import board
from ladderboard.board import BoardStatus
from ladderboard.bounds import Certificate as BoundCertificate

_PERSON = "^(?:[!-?A-~]+@[!-?A-~]+|https?://[!-~]+ [!-~]+)$"


class RequestModel(BaseModel):
    """A body that holds nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Registration(RequestModel):
    """A team to register, with an invitation if the board requires one."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    invitation: Annotated[str | None, Field(max_length=100)] = None


class InvitationRequest(RequestModel):
    """The number of days for which an invitation is valid."""

    days: Annotated[float, Field(gt=0, le=366)] = 7


class StaffTokenRequest(RequestModel):
    """The role that a new token gives; it belongs to no team."""

    role: Literal["evaluator", "organiser"]


class RegistrationDecision(RequestModel):
    """Whether a registration is approved, and the reason that a rejected person is shown."""

    approve: bool
    reason: Annotated[str, Field(max_length=300)] = ""


class PeopleRequest(RequestModel):
    """People who may register: email addresses, or issuer and subject separated by a space."""

    people: Annotated[
        list[Annotated[str, Field(max_length=320, pattern=_PERSON)]], Field(max_length=100)
    ]


class MemberInvitationRequest(RequestModel):
    """The number of days for which an invitation is valid, and how many people can use it."""

    days: Annotated[float, Field(gt=0, le=366)] = 7
    uses: Annotated[int, Field(ge=1, le=100)] = 1


class JoinRequest(RequestModel):
    """An invitation to a team; with `merge` the caller's present team is merged into it."""

    invitation: Annotated[str, Field(max_length=100)]
    merge: bool = False


class RoleChange(RequestModel):
    """The new role of a member of a team."""

    role: Literal["owner", "member"]


class MergeRequest(RequestModel):
    """The id of the team that remains."""

    into: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class TermsAcceptance(RequestModel):
    """The version of the terms that the caller has read."""

    version: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class WebhookRequest(RequestModel):
    """A URL that receives a board's events: all of them, unless `events` lists some."""

    url: Annotated[str, Field(min_length=1, max_length=2000, pattern="^https?://[!-~]+$")]
    events: Annotated[list[board.WebhookEvent] | None, Field(min_length=1, max_length=10)] = None
    format: board.WebhookFormat = "json"


class ResumeRequest(RequestModel):
    """After a restore: how many submissions may have been answered since the copy was made."""

    charge: Annotated[int | None, Field(ge=0, le=2**53)] = None


class SelectionRequest(RequestModel):
    """The ids of the submissions that a team selects for the final ranking."""

    submissions: Annotated[
        list[Annotated[str, Field(pattern="^[0-9a-f]{32}$")]], Field(max_length=100)
    ]


class Amendment(RootModel[dict[str, Any]]):
    """The keys of `board.yaml` to change, with their new values."""

    root: Annotated[dict[str, Any], Field(min_length=1, max_length=50)]


Moment = Annotated[
    str, Field(description="A time in UTC, to the second.", pattern=r"^\d{4,}-\d\d-\d\dT[\d:]{8}Z$")
]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
# The published names of documents whose dataclasses have other ones.
_PUBLISHED_NAMES = {
    "BestRelease": "Best",
    "BoardInfo": "BoardSummary",
    "BoardPhase": "Phase",
    "BoardRecord": "Record",
    "BoardTerms": "TermsText",
    "DeclaredBaseline": "Declared",
    "Erased": "ErasureResult",
    "FileLimits": "FileRule",
    "FinalRanking": "Finals",
    "FinalRankingRow": "Finalist",
    "LeaderboardRow": "Standing",
    "LedgerHead": "Head",
    "LimitStatus": "Limit",
    "MetricBound": "Bound",
    "MetricDisplay": "Display",
    "RateLimit": "Window",
    "ReplyDisplay": "DisplayedReply",
    "SubmissionInfo": "Submission",
    "TeamCredentials": "NewTeam",
    "TeamInvitation": "ListedInvitation",
    "TeamMember": "Member",
    "TeamMembers": "MemberList",
    "TeamRef": "TeamName",
    "TeamStatus": "Team",
    "WebhookWithSecret": "WebhookSecret",
}
# Fields that a response has only if they are set, and one that it never has.
_SOMETIMES = {"Limit": {"next"}, "BoardSummary": {"accounts", "columns", "protection"}}
_NEVER = {"Submission": {"receipt"}}


class ResponseModel(BaseModel):
    """A description that leaves nothing out."""

    model_config = ConfigDict(extra="forbid")


class Item(ResponseModel):
    """One thing that is wrong with the request."""

    code: str
    column: str | None
    count: int
    ids: list[str]
    message: str


class Problem(ResponseModel):
    """An error: what was refused and why, as RFC 9457 describes it."""

    type: Annotated[str, Field(description="urn:ladderboard:problem: and the code.")]
    title: str
    status: int
    detail: str
    code: str
    errors: list[Item]


class Receipt(ResponseModel):
    """Proves that a submission was answered: it opens the team's part of a ledger entry."""

    format: Literal[1]
    book: Annotated[str, Field(pattern="^[0-9a-f]{16,64}$")]
    entry: int | None
    hash: Hash
    submission: Hash
    salt: Hash


# An end of an interval may be infinite, which is null in JSON.
_ENDS: dict[Any, Any] = {float: float | None, tuple[float, float]: list[float | None]}
_CERTIFICATE = {
    **{name: _ENDS.get(hint, hint) for name, hint in get_type_hints(BoundCertificate).items()},
    "beta": float,
    **dict.fromkeys(("half_width", "centre", "error", "overfitting", "hidden"), float | None),
    "vacuous": bool,
}
Certificate = create_model(
    "Certificate",
    __base__=ResponseModel,
    __doc__="A bound with its confidence and assumptions; null stands for an infinite end.",
    **{name: (hint, ...) for name, hint in _CERTIFICATE.items()},  # type: ignore[call-overload]
)
_JSON_TYPES: dict[Any, Any] = {
    datetime: Moment,
    BoundCertificate: Certificate,
    board.ReceiptFields: Receipt,
}


@cache
def response_model(document: type) -> type[ResponseModel]:
    """Return the schema of a document: the fields and the docstring of its class."""
    name = _PUBLISHED_NAMES.get(document.__name__, document.__name__)
    hints = get_type_hints(document, include_extras=True)
    if issubclass(document, board.MetricDisplay):
        hints["as"] = str
    fields: dict[str, Any] = {
        field: (Optional[_schema_type(hint)], None)  # noqa: UP045 - same
        if field in _SOMETIMES.get(name, ())
        else (_schema_type(hint), ...)
        for field, hint in hints.items()
        if field != "raw" and field not in _NEVER.get(name, ())
    }
    text = (inspect.getdoc(document) or "").replace("``", "`").replace("None", "null")
    return create_model(name, __base__=ResponseModel, __doc__=text, **fields)


def _schema_type(hint: Any) -> Any:
    """Return the type of a field as the API describes it."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _JSON_TYPES:
        return _JSON_TYPES[hint]
    if origin is Annotated:
        text, pattern = parts[1]
        described = Field(description=text or None, pattern=pattern)
        return Annotated[_schema_type(parts[0]), described]
    if origin is UnionType or NoneType in parts:
        (inner,) = (part for part in parts if part is not NoneType)
        return Optional[_schema_type(inner)]  # noqa: UP045 - a name may be text
    if origin is tuple:
        return list[_schema_type(parts[0])]  # type: ignore[misc]  # a type at run time
    return response_model(hint) if isinstance(hint, type) and is_dataclass(hint) else hint


BoardSummary = response_model(board.BoardInfo)
DataList = response_model(board.DataList)
ErasureResult = response_model(board.Erased)
Finals = response_model(board.FinalRanking)
Leaderboard = response_model(board.Leaderboard)
MemberList = response_model(board.TeamMembers)
NewTeam = response_model(board.TeamCredentials)
Person = response_model(board.Person)
SubmissionReply = response_model(board.SubmissionReply)
Team = response_model(board.TeamStatus)
TermsText = response_model(board.BoardTerms)
WebhookSecret = response_model(board.WebhookWithSecret)


@response_model
class BoardList:
    """A page of the boards; ``next`` is the ``cursor`` of the next page."""

    boards: tuple[board.BoardInfo, ...]
    next: str | None


@response_model
class RecordList:
    """The records of a board, oldest first."""

    records: tuple[board.BoardRecord, ...]


@response_model
class TeamList:
    """A page of the teams in the order of registration; ``next`` is the next page's ``after``."""

    teams: tuple[board.ListedTeam, ...]
    next: int | None


@response_model
class TokenList:
    """The valid tokens and invitations of a board."""

    tokens: tuple[board.ListedToken, ...]


@response_model
class RegistrationList:
    """The people who signed in; ``listed`` counts those on the list who have not signed in yet."""

    registrations: tuple[board.Person, ...]
    listed: int


@response_model
class WebhookList:
    """The webhooks of a board."""

    webhooks: tuple[board.ListedWebhook, ...]


@response_model
class OneSubmission(board.SubmissionInfo):
    """A submission with its receipt, which is null for teams whose scores evaluators submit."""


@response_model
class SubmissionList:
    """A page of a team's submissions, newest first; ``next`` is the ``before`` of the next page."""

    submissions: tuple[board.SubmissionInfo, ...]
    next: int | None


@response_model
class SelectionList:
    """The submissions that a team selected for the final ranking; none if the default applies."""

    submissions: tuple[board.Id, ...]


@response_model
class Membership:
    """The id of the caller's team."""

    team: board.Id


class NewToken(ResponseModel):
    """A new token, which is shown only once."""

    token: str


class Invitation(ResponseModel):
    """A new invitation, which is shown only once."""

    invitation: str


class State(ResponseModel):
    """The status of a board."""

    board: str
    status: BoardStatus


class Health(ResponseModel):
    """The server and its database work."""

    status: Literal["ok"]
