"""The models of requests and responses, for /openapi.json.

The fields of a response are those of a dataclass in ``ladderboard.board``.
"""

from dataclasses import is_dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, RootModel

from ladderboard import board
from ladderboard.board import BoardStatus
from ladderboard.bounds import Certificate as BoundCertificate

_PERSON = "^(?:[!-?A-~]+@[!-?A-~]+|https?://[!-~]+ [!-~]+)$"


class RequestModel(BaseModel):
    """A body that holds nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Registration(RequestModel):
    """A team that wants to come in."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    invitation: Annotated[str | None, Field(max_length=100)] = None


class Days(RequestModel):
    """How long an invitation is good."""

    days: Annotated[float, Field(gt=0, le=366)] = 7


class Trust(RequestModel):
    """Whose token is wanted."""

    role: Literal["evaluator", "organiser"]


class Decision(RequestModel):
    """What the organiser decides about a registration; the reason is for a rejection."""

    approve: bool
    reason: Annotated[str, Field(max_length=300)] = ""


class People(RequestModel):
    """Mail addresses, or issuers and subjects with a space between them."""

    people: Annotated[
        list[Annotated[str, Field(max_length=320, pattern=_PERSON)]], Field(max_length=100)
    ]


class MemberInvitation(RequestModel):
    """How long an invitation to a team is good, and how many people it admits."""

    days: Annotated[float, Field(gt=0, le=366)] = 7
    uses: Annotated[int, Field(ge=1, le=100)] = 1


class Joining(RequestModel):
    """An invitation to a team; with ``merge``, one's own team is merged into it."""

    invitation: Annotated[str, Field(max_length=100)]
    merge: bool = False


class RoleChange(RequestModel):
    """What a person in a team is."""

    role: Literal["owner", "member"]


class Merge(RequestModel):
    """The id of the team that another is merged into."""

    into: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class Acceptance(RequestModel):
    """The version of the terms that was read and is accepted."""

    version: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class NewWebhook(RequestModel):
    """A receiver of a board's events; without ``events``, of all."""

    url: Annotated[str, Field(min_length=1, max_length=2000, pattern="^https?://[!-~]+$")]
    events: Annotated[list[board.WebhookEvent] | None, Field(min_length=1, max_length=10)] = None
    format: board.WebhookFormat = "json"


class Charge(RequestModel):
    """How many questions may have been answered since a copy was made that was put back."""

    charge: Annotated[int | None, Field(ge=0, le=2**53)] = None


class Choice(RequestModel):
    """Submissions for the finals."""

    submissions: Annotated[
        list[Annotated[str, Field(pattern="^[0-9a-f]{32}$")]], Field(max_length=100)
    ]


class Amendment(RootModel[dict[str, Any]]):
    """Keys of ``board.yaml`` that change, with their new values."""

    root: Annotated[dict[str, Any], Field(min_length=1, max_length=50)]


Moment = Annotated[
    str, Field(description="A time in UTC, to the second.", pattern=r"^\d{4,}-\d\d-\d\dT[\d:]{8}Z$")
]
# The published names of documents that are part of others.
_SCHEMAS: dict[Any, str] = {
    BoundCertificate: "Certificate",
    board.BestRelease: "Best",
    board.BoardInfo: "BoardSummary",
    board.BoardPhase: "Phase",
    board.DataRule: "DataRule",
    board.FileLimits: "FileRule",
    board.FinalMetric: "FinalMetric",
    board.FinalRankingRow: "Finalist",
    board.FinalsRule: "FinalsRule",
    board.PrizeRule: "PrizeRule",
    board.AwardedPrize: "AwardedPrize",
    board.LedgerHead: "Head",
    board.LimitStatus: "Limit",
    board.MetricBound: "Bound",
    board.MetricDisplay: "Display",
    board.MetricRelease: "MetricRelease",
    board.RateLimit: "Window",
    board.SignInRule: "SignInRule",
    board.TeamInvitation: "ListedInvitation",
    board.TeamMember: "Member",
    board.TeamRef: "TeamName",
}


def fields_of(model: type, *, without: str = "") -> dict[str, Any]:
    """Return the fields of a document with their types for pydantic."""
    return {
        item.name: _schema_type(item.hint)
        for item in board.document_fields(model)
        if item.name != without
    }


def _schema_type(hint: Any) -> Any:
    """Return the type of a field as the API describes it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        text, pattern = parts[1]
        described = Field(description=text or None, pattern=pattern)
        return Annotated[_schema_type(parts[0]), described]
    if origin is UnionType or NoneType in parts:
        (inner,) = (part for part in parts if part is not NoneType)
        return Optional[_schema_type(inner)]  # noqa: UP045 - a name may be text
    if origin is tuple:
        return list[_schema_type(parts[0])]  # type: ignore[misc]  # a type at run time
    if hint is datetime:
        return Moment
    return _SCHEMAS[hint] if is_dataclass(hint) else hint


if TYPE_CHECKING:
    Id = str
    Metric = float | None
    Loss = float | None
    DisplayValue = float | None
    Proven = bool | None
    VisibleGain = float | None
else:
    Id = _schema_type(board.Id)
    Metric = _schema_type(board.Metric)
    Loss = _schema_type(board.Loss)
    DisplayValue = _schema_type(board.DisplayValue)
    Proven = _schema_type(board.Proven)
    VisibleGain = _schema_type(board.VisibleGain)


class ResponseModel(BaseModel):
    """A description that leaves nothing out."""

    model_config = ConfigDict(extra="forbid")


class Item(ResponseModel):
    """One thing that is wrong."""

    code: str
    column: str | None
    count: int
    ids: list[str]
    message: str


class Problem(ResponseModel):
    """What cannot be done, and why (RFC 9457)."""

    type: Annotated[str, Field(description="urn:ladderboard:problem: and the code.")]
    title: str
    status: int
    detail: str
    code: str
    errors: list[Item]


class Certificate(ResponseModel):
    """A bound with its confidence and assumptions; null stands for an infinite end."""

    low: float | None
    high: float | None
    generalisation: list[float | None]
    sample: list[float | None]
    beta: float
    nats: float | None
    differences: bool
    span: list[float | None]
    known: list[float | None]
    theorem: str
    assumptions: list[str]
    changer_nats: float | None
    released: float | None
    half_width: float | None
    centre: float | None
    error: float | None
    overfitting: float | None
    hidden: float | None
    vacuous: bool


class Bound(ResponseModel):
    """Where the best model's true value lies, in the board's metric."""

    __annotations__ = fields_of(board.MetricBound)


class Display(ResponseModel):
    """How losses are shown."""

    __annotations__ = {
        **fields_of(board.MetricDisplay),
        "as_": Annotated[str, Field(alias="as")],
    }


class DisplayedReply(Display):
    """How losses are shown, with those of a reply."""

    released: DisplayValue
    score: DisplayValue


class Best(ResponseModel):
    """The best release of a board."""

    __annotations__ = fields_of(board.BestRelease)


class Window(ResponseModel):
    """So many questions within so many seconds."""

    __annotations__ = fields_of(board.RateLimit)


class Phase(ResponseModel):
    """A time in which questions are answered."""

    __annotations__ = fields_of(board.BoardPhase)


class FinalsRule(ResponseModel):
    """How many submissions a team selects."""

    __annotations__ = fields_of(board.FinalsRule)


class PrizeRule(ResponseModel):
    """A prize for a place in the final ranking."""

    __annotations__ = fields_of(board.PrizeRule)


class SignInRule(ResponseModel):
    """Who may register by signing in."""

    __annotations__ = fields_of(board.SignInRule)


class DataRule(ResponseModel):
    """Who may download the data."""

    __annotations__ = fields_of(board.DataRule)


class DataFile(ResponseModel):
    """A file for participants; ``url`` is null if this server has it."""

    name: str
    bytes: int | None
    sha256: str | None
    url: str | None


class DataList(ResponseModel):
    """The files for participants, besides sample_submission.csv, and whether the caller may."""

    files: list[DataFile]
    members: bool
    allowed: bool
    refusal: Annotated[
        str | None, Field(description="Why the caller may not have them; null if they may.")
    ]


class TermsText(ResponseModel):
    """The terms of a board."""

    __annotations__ = fields_of(board.BoardTerms)


class Head(ResponseModel):
    """How far the ledger has come, as far as it may be seen."""

    __annotations__ = fields_of(board.LedgerHead)


class FileRule(ResponseModel):
    """How large a file may be, unpacked."""

    __annotations__ = fields_of(board.FileLimits)


class BoardSummary(ResponseModel):
    """What a board is, what it promises, and how far it has come."""

    __annotations__ = fields_of(board.BoardInfo)


class BoardList(ResponseModel):
    """A page of all boards; ``next`` is the ``cursor`` of the next one."""

    boards: list[BoardSummary]
    next: str | None


class TeamName(ResponseModel):
    """A team; its name is untrusted text, and null where teams go without."""

    __annotations__ = fields_of(board.TeamRef)


class Limit(ResponseModel):
    """What is left of a team's submissions, of the board's, or of the window of time.

    ``next`` is when a full window has room again.
    """

    __annotations__ = fields_of(board.LimitStatus)
    next = None


class Standing(ResponseModel):
    """A row of the standings; the rank is null for baselines and where nothing was released."""

    __annotations__ = fields_of(board.LeaderboardRow)


class Declared(ResponseModel):
    """A baseline that is a number from elsewhere."""

    name: str
    value: float
    loss: float
    display: float
    source: str


class Leaderboard(ResponseModel):
    """A page of the standings; ``next`` is the ``cursor`` of the next one."""

    board: str
    as_of: Moment
    frozen: bool
    ranked_by: Annotated[
        str, Field(description="The metric that decides the ranks, or `mean_rank`.")
    ]
    rows: list[Standing]
    declared: list[Declared]
    next: str | None


class Record(ResponseModel):
    """A time at which the best of the whole board went down."""

    __annotations__ = fields_of(board.BoardRecord)


class RecordList(ResponseModel):
    """Records, oldest first."""

    records: list[Record]


class Team(ResponseModel):
    """A team's own affairs."""

    __annotations__ = fields_of(board.TeamStatus)


class ListedTeam(ResponseModel):
    """A team, for the organiser."""

    __annotations__ = fields_of(board.ListedTeam)


class TeamList(ResponseModel):
    """Teams in the order in which they came; ``next`` is the ``after`` of the next page."""

    teams: list[ListedTeam]
    next: int | None


class NewTeam(ResponseModel):
    """A team and its token, which is told once."""

    __annotations__ = fields_of(board.TeamCredentials)


class ErasureResult(ResponseModel):
    """What an erasure left."""

    team: Annotated[str | None, Field(description="The team's id; null if its name stays.")]
    name: Annotated[str | None, Field(description="The team's pseudonym.")]
    kept_in_ledger: Annotated[
        bool,
        Field(description="An older version closed the board; its ledger commits to the name."),
    ]
    scrubbed: Annotated[
        bool, Field(description="Nothing is left in the free space of the database's file.")
    ]


class NewToken(ResponseModel):
    """A token, which is told once."""

    token: str


class Invitation(ResponseModel):
    """An invitation, good for one team."""

    invitation: str


class ListedToken(ResponseModel):
    """A token or an invitation that is good; ``id`` is the beginning of its hash."""

    __annotations__ = fields_of(board.ListedToken)


class TokenList(ResponseModel):
    """The tokens and invitations of a board."""

    tokens: list[ListedToken]


class Person(ResponseModel):
    """A person who signed in; names are untrusted text."""

    number: int
    issuer: str
    subject: str
    name: str
    mail: str | None
    state: Literal["signed_in", "waiting", "registered", "left", "rejected"]
    team_name: str
    reason: str
    team: Id | None
    role: Literal["owner", "member", "organiser"] | None
    made: Moment


class RegistrationList(ResponseModel):
    """The people who signed in, and how many on the list did not yet."""

    registrations: list[Person]
    listed: int


class Member(ResponseModel):
    """A person in one's own team."""

    __annotations__ = fields_of(board.TeamMember)


class ListedInvitation(ResponseModel):
    """An invitation to one's own team that is good; ``id`` is the beginning of its hash."""

    __annotations__ = fields_of(board.TeamInvitation)


class MemberList(ResponseModel):
    """The people in one's own team, and its invitations."""

    __annotations__ = fields_of(board.TeamMembers)


class Membership(ResponseModel):
    """The team that a person is in now."""

    team: Id


class ListedWebhook(ResponseModel):
    """A webhook with what came of its last delivery."""

    __annotations__ = fields_of(board.ListedWebhook)


class WebhookList(ResponseModel):
    """The webhooks of a board."""

    webhooks: list[ListedWebhook]


class WebhookSecret(ResponseModel):
    """A new webhook, and the secret that its deliveries are signed with, which is told once."""

    number: int
    url: str
    secret: str


class SelectionList(ResponseModel):
    """What a team selected for the finals; empty where the default holds."""

    submissions: list[Id]


class MetricRelease(ResponseModel):
    """A release by one of the further metrics that are shown while the board runs."""

    __annotations__ = fields_of(board.MetricRelease)


class FinalMetric(ResponseModel):
    """A metric in a row of the final ranking, besides the one that decides."""

    __annotations__ = fields_of(board.FinalMetric)


class Finalist(ResponseModel):
    """A row of the final ranking, with an interval that holds for all rows at once."""

    __annotations__ = fields_of(board.FinalRankingRow)


class AwardedPrize(ResponseModel):
    """A prize, and the teams that get it."""

    __annotations__ = fields_of(board.AwardedPrize)


class Finals(ResponseModel):
    """The final ranking, on the private split."""

    __annotations__ = fields_of(board.FinalRanking)


class State(ResponseModel):
    """How a board stands."""

    board: str
    status: BoardStatus


class Health(ResponseModel):
    """Whether the server works."""

    status: Literal["ok"]


Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Receipt(ResponseModel):
    """What proves that a question was answered: it opens one's own part of an entry."""

    format: Literal[1]
    book: Id
    entry: int | None
    hash: Hash
    submission: Hash
    salt: Hash


class SubmissionReply(ResponseModel):
    """The answer to a submission."""

    id: Id
    number: int
    time: Moment
    entry: int | None
    team: TeamName
    released: Metric
    loss: Loss
    improved: bool
    question: int
    remaining: int
    limit: str
    limits: list[Limit]
    next_submission_at: Moment | None
    bound: Bound | None
    reason: str
    visible_gain: VisibleGain
    score: Metric
    score_loss: Loss
    proven: Proven
    ladder: Literal["team", "board"]
    again: bool
    metrics: list[MetricRelease]
    receipt: Receipt
    display: DisplayedReply


class Submission(ResponseModel):
    """A submission, as it was answered."""

    __annotations__ = fields_of(board.SubmissionInfo, without="receipt")


class OneSubmission(Submission):
    """A submission with its receipt, which is null to a team whose scores evaluators hand in."""

    receipt: Receipt | None


class SubmissionList(ResponseModel):
    """Submissions, newest first; ``next`` is the ``before`` of the next page."""

    submissions: list[Submission]
    next: int | None
