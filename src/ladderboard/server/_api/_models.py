"""The models of requests and responses, for /openapi.json."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel


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
Id = Annotated[str, Field(pattern="^[0-9a-f]{16,64}$")]
Metric = Annotated[
    float | None, Field(description="In the board's metric; null where there is none yet.")
]
Loss = Annotated[
    float | None,
    Field(description="The loss behind it, lower is better; null where there is none."),
]
DisplayValue = Annotated[
    float | None, Field(description="The same as the metric that people are shown.")
]
Visibility = Literal["public", "hidden", "anonymous", "frozen"]
BoardStatus = Literal["open", "paused", "restored", "closing", "closed", "moved"]


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
    half_width: float | None
    centre: float | None
    error: float | None
    vacuous: bool


class Bound(ResponseModel):
    """Where the best model's true value lies, in the board's metric."""

    low: float | None
    high: float | None
    beta: float
    vacuous: bool
    theorem: str
    assumptions: list[str]
    loss: Certificate


class Display(ResponseModel):
    """How losses are shown."""

    name: str
    direction: Literal["higher", "lower"]
    digits: int
    as_: Annotated[str, Field(alias="as")]


class DisplayedReply(Display):
    """How losses are shown, with those of a reply."""

    released: DisplayValue
    score: DisplayValue


class Best(ResponseModel):
    """The best release of a board."""

    released: Metric
    loss: Loss
    display: DisplayValue


class Window(ResponseModel):
    """So many questions within so many seconds."""

    questions: int
    seconds: int


class Phase(ResponseModel):
    """A time in which questions are answered."""

    name: str
    start: Moment | None
    end: Moment | None


class FinalsRule(ResponseModel):
    """How many submissions a team selects."""

    selections: int


class Head(ResponseModel):
    """How far the ledger has come, as far as it may be seen."""

    entries: int
    hash: str


class FileRule(ResponseModel):
    """How large a file may be, unpacked."""

    bytes: int
    rows: int


class BoardSummary(ResponseModel):
    """What a board is, what it promises, and how far it has come."""

    slug: str
    title: str
    description: Annotated[str, Field(description="Markdown; not to be trusted.")]
    loss: dict[str, Any]
    display: Display
    mechanism: dict[str, Any]
    beta: float
    questions: int
    teams: int
    per_team: int
    window: Window | None
    phases: list[Phase]
    ladder: Literal["team", "board"]
    registration: Literal["open", "invited", "organiser"]
    visibility: Visibility
    baselines: list[dict[str, Any]]
    finals: FinalsRule | None
    status: BoardStatus
    n: int
    rows: int
    kind: str
    takes: Literal["predictions", "scores"]
    share: int
    phase: str | None
    deadline: Moment | None
    files: FileRule
    play: bool
    used: int | None
    changes: int | None
    registered: int | None
    epoch: int
    best: Best
    bound: Bound | None
    book: str
    commitment: str
    head: Head


class BoardList(ResponseModel):
    """A page of all boards; ``next`` is the ``cursor`` of the next one."""

    boards: list[BoardSummary]
    next: str | None


class TeamName(ResponseModel):
    """A team; its name is untrusted text, and null where teams go without."""

    id: Id
    name: str | None


class Limit(ResponseModel):
    """One limit, and what is left of it."""

    name: Literal["team", "board", "window"]
    remaining: int
    allowed: int
    next: Moment | None = None


class Standing(ResponseModel):
    """A row of the standings; the rank is null for baselines and where nothing was released."""

    rank: int | None
    tied: Annotated[bool, Field(description="Whether another team has the same rank.")]
    team: TeamName
    baseline: bool
    you: bool
    released: Metric
    loss: Loss
    display: DisplayValue
    since: Moment | None
    submissions: int
    last: Moment | None


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
    rows: list[Standing]
    declared: list[Declared]
    next: str | None


class Record(ResponseModel):
    """A time at which the best of the whole board went down."""

    entry: int
    time: Moment
    released: float
    loss: float
    display: float
    team: TeamName


class RecordList(ResponseModel):
    """Records, oldest first."""

    records: list[Record]


class Team(ResponseModel):
    """A team's own affairs."""

    id: Id
    name: str
    disqualified: bool
    released: Metric
    loss: Loss
    display: DisplayValue
    submissions: int
    remaining: int
    limit: str
    limits: list[Limit]
    next_submission_at: Moment | None


class ListedTeam(ResponseModel):
    """A team, for the organiser."""

    number: int
    id: Id
    name: str
    kind: Literal["team", "baseline"]
    disqualified: bool
    made: Moment
    submissions: int
    last: Moment | None
    released: Metric
    loss: Loss
    stored: Annotated[int, Field(description="Bytes that are kept of its submissions.")]


class TeamList(ResponseModel):
    """Teams in the order in which they came; ``next`` is the ``after`` of the next page."""

    teams: list[ListedTeam]
    next: int | None


class NewTeam(ResponseModel):
    """A team and its token, which is told once."""

    id: Id
    name: str
    token: str


class NewToken(ResponseModel):
    """A token, which is told once."""

    token: str


class Invitation(ResponseModel):
    """An invitation, good for one team."""

    invitation: str


class ListedToken(ResponseModel):
    """A token or an invitation that is good; ``id`` is the beginning of its hash."""

    id: Id
    role: Literal["organiser", "evaluator", "team", "invitation"]
    team: Id | None
    made: Moment
    expires: Moment | None


class TokenList(ResponseModel):
    """The tokens and invitations of a board."""

    tokens: list[ListedToken]


class SelectionList(ResponseModel):
    """What a team selected for the finals; empty where the default holds."""

    submissions: list[Id]


class Finalist(ResponseModel):
    """A row of the final ranking, with an interval that holds for all rows at once."""

    rank: int | None
    team: TeamName
    baseline: bool
    score: float
    loss: float
    low: float
    high: float
    display: float
    submission: Id
    public_rank: int | None
    move: int | None


class Finals(ResponseModel):
    """The final ranking, on the private split."""

    board: str
    closed: Moment
    n: int
    selected: int
    beta: float
    rows: list[Finalist]


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
    score: Metric
    score_loss: Loss
    ladder: Literal["team", "board"]
    again: bool
    receipt: Receipt
    display: DisplayedReply


class Submission(ResponseModel):
    """A submission, as it was answered."""

    id: Id
    number: int
    entry: int | None
    time: Moment
    message: Annotated[str, Field(description="Untrusted text.")]
    size: Annotated[int | None, Field(description="Bytes that are kept of it.")]
    selected: bool
    epoch: int
    released: Metric
    loss: Loss
    score: Metric
    score_loss: Loss
    improved: bool
    question: int
    display: DisplayValue


class OneSubmission(Submission):
    """A submission with its receipt, which is null to a team whose scores evaluators hand in."""

    receipt: Receipt | None


class SubmissionList(ResponseModel):
    """Submissions, newest first; ``next`` is the ``before`` of the next page."""

    submissions: list[Submission]
    next: int | None
