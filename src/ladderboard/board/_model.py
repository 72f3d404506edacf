"""What a board consists of, each thing defined once.

A stored thing is a dataclass whose fields are the columns of its table: :class:`Table` makes the
statements that create, read, insert and update its rows, and dumps and restores check rows by it.
An answer is a dataclass whose fields are those of a JSON document: :func:`make_document` builds the
document, the server describes it in its API, and the client parses it into the dataclass.
"""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from types import NoneType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_type_hints,
)

from ladderboard._formatting import (
    format_confidence,
    format_decimals,
    format_promise,
    format_time,
    round_down,
    round_up,
)
from ladderboard.bounds import Certificate

Row = TypeVar("Row")
_SINCE = "since"
_RAW = "raw"
_SQL_TYPES = {int: "{whole}", bool: "{whole}", float: "{real}", str: "TEXT", bytes: "{blob}"}
_INT_LIMIT = 2**63
_REPLY_DIGITS = 15


def added_in(table_format: int, default: float | str | None) -> Any:
    """Return the field of a column that a later format added; earlier rows get ``default``."""
    return field(default=default, metadata={_SINCE: table_format})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A board.

    ``status`` is open, paused, restored (paused until the organiser charges questions), closing,
    closed or moved. ``rules`` are the current ones; ``amended`` counts their changes. While the
    board is frozen, others see ``horizon`` entries and the epoch ``seen_epoch``. ``pooled`` counts
    questions beyond the teams' shares, ``replayed`` those asked again after labels were corrected,
    ``stored`` the bytes of all submissions. ``best`` is the lowest released loss.
    """

    slug: str
    rules: str
    status: str = "open"
    visibility: str
    horizon: int = 2
    seen_epoch: int = 0
    epoch: int = 0
    amended: int = 0
    teams: int = 0
    pooled: int = 0
    replayed: int = 0
    stored: int = 0
    best: float | None = None
    final: str | None = None
    made: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    """A team; ``kind`` is team or baseline, ``since`` the release's time.

    ``proven`` is whether that release was proven better than the record before on its ladder; None
    if it was not tested.

    ``folded`` is equal for names that look alike. ``seen_*`` is what others see while the board is
    frozen. ``accepted`` is the version of the terms that the team accepted last. An erased team has
    a pseudonym; its ``folded`` begins with a space and only confirms the old name.
    """

    number: int
    id: str
    name: str
    folded: str
    kind: str
    disqualified: bool = False
    made: int
    used: int = 0
    last: int | None = None
    released: float | None = None
    since: int | None = None
    seen_used: int | None = None
    seen_last: int | None = None
    seen_released: float | None = None
    seen_since: int | None = None
    accepted: str = added_in(4, "")
    proven: bool | None = added_in(5, None)
    seen_proven: bool | None = added_in(5, None)

    @property
    def erased(self) -> bool:
        """Whether the team's name was erased."""
        return self.folded.startswith(" ")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRow:
    """A token or an invitation, by its hash; ``ended`` is when it was revoked or used up.

    ``uses`` is how many people an invitation to a team still admits.
    """

    hash: bytes
    role: str
    team: int | None = None
    made: int
    expires: int | None = None
    ended: int | None = None
    uses: int = added_in(4, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRow:
    """A submission with its release.

    ``team`` and ``number`` are the team's number and the submission's within the team; ``place``
    and ``format`` say where and how its predictions are stored, ``chosen`` whether it was selected
    for the finals.
    """

    team: int
    number: int
    id: str
    entry: int
    time: int
    message: str
    format: str | None
    size: int
    place: str
    chosen: bool = False
    epoch: int
    value: float | None
    score: float | None
    improved: bool
    question: int
    proven: bool | None = added_in(5, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A release that was a new best of the whole board, and the team that got it."""

    entry: int
    epoch: int
    time: int
    team: int
    value: float
    proven: bool | None = added_in(5, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRow:
    """A person who signed in, by issuer and subject; or a person on the organiser's list.

    ``state`` is listed (may register, has not signed in yet), signed_in, waiting (for approval),
    registered, left (a team that has submitted, which stays the only one that they may be in),
    rejected or erased (only the number and the team are left). ``name`` and ``mail`` are what the
    provider said, for the organiser and the team only. ``team_name`` is the name asked for while
    the registration waits. ``role`` is owner or member in a team, or organiser of the board;
    ``accepted`` is the version of the terms accepted last.
    """

    number: int
    issuer: str
    subject: str
    name: str = ""
    mail: str | None = None
    state: str
    team_name: str = ""
    reason: str = ""
    team: int | None = None
    made: int
    role: str = added_in(4, "owner")
    accepted: str = added_in(4, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A sign-in of an identity on one board; a sign-out deletes it."""

    hash: bytes
    identity: int
    made: int
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileRow:
    """A file for participants; ``digest`` is its SHA-256, ``place`` where it is stored."""

    name: str
    id: str
    size: int
    digest: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """A subscription; ``events`` are names with a space around each, ``secret`` is encrypted."""

    number: int
    url: str
    format: str
    events: str
    secret: bytes
    made: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """An event for one subscription; ``due`` is None once it was delivered or has failed."""

    webhook: int
    id: str
    event: str
    team: str | None = None
    time: int
    attempts: int = 0
    due: int | None
    last: int | None = None
    result: str = ""
    delivered: bool = False


class Column(NamedTuple):
    """A column: its type in Python, whether it may be null, and the format that added it."""

    kind: type
    optional: bool
    since: int
    default: Any

    def definition(self, name: str) -> str:
        """Return the column's definition in SQL."""
        words = [name, _SQL_TYPES[self.kind]] + ["NOT NULL"] * (not self.optional)
        return " ".join(words)

    def added_definition(self, name: str) -> str:
        """Return the definition of a column that a table gets later; older rows get a default."""
        default = "" if self.optional else f" DEFAULT {stored_value(self.default)!r}"
        return self.definition(name) + default

    def accepts(self, value: Any) -> bool:
        """Return whether the database would store a value and return it unchanged."""
        if value is None:
            return self.optional
        if type(value) is not (int if self.kind is bool else self.kind):
            return False
        if type(value) is int:
            return -_INT_LIMIT <= value < _INT_LIMIT
        return type(value) is not str or ("\0" not in value and _is_unicode(value))


def _is_unicode(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


class Table(Generic[Row]):
    """A table of boards' rows, with the statements that follow from its dataclass.

    Each row belongs to the book of its board, by the column ``book`` beside those of the dataclass.
    ``key`` identifies a row of a book, ``constraints`` are the table's in SQL, and ``since`` is the
    format that added the table.
    """

    def __init__(
        self,
        name: str,
        row: type[Row],
        key: tuple[str, ...],
        *constraints: str,
        book: str = "{whole} NOT NULL",
        tail: str = "",
        since: int = 1,
    ) -> None:
        self.name, self.row, self.key, self.since = name, row, key, since
        hints = get_type_hints(row)
        self.columns = {
            item.name: _column(hints[item.name], item.default, item.metadata.get(_SINCE, since))
            for item in fields(row)  # type: ignore[arg-type]  # a dataclass
        }
        """The columns but ``book``, in the order of the dataclass."""
        self._constraints, self._book, self._tail = constraints, book, tail
        self._names = ", ".join(self.columns)
        self._flags = [
            place for place, column in enumerate(self.columns.values()) if column.kind is bool
        ]
        places = ", ".join("?" * (len(self.columns) + 1))
        self.insert = f"INSERT INTO main.{name} (book, {self._names}) VALUES ({places})"  # noqa: S608
        """The statement that inserts a row; its values are the book's number and ``values``."""
        self._updates: dict[tuple[str, ...], str] = {}

    def create(self) -> str:
        """Return the statement that creates the table in its first format."""
        columns = [f"book {self._book}"]
        columns += [
            column.definition(name)
            for name, column in self.columns.items()
            if column.since == self.since
        ]
        body = ", ".join([*columns, *self._constraints])
        return f"CREATE TABLE main.{self.name} ({body}){self._tail}"

    def migration(self, table_format: int) -> list[str]:
        """Return the statements that bring the table to a format from the one before."""
        if table_format == self.since:
            return [self.create()]
        return [
            f"ALTER TABLE main.{self.name} ADD COLUMN {column.added_definition(name)}"
            for name, column in self.columns.items()
            if column.since == table_format
        ]

    def select(self, rest: str, *, alias: str = "", extra: str = "") -> str:
        """Return a statement that reads whole rows, and ``extra`` columns after them.

        >>> DATA_FILE.select("WHERE book = ?", alias="d", extra="d.book")
        'SELECT d.name, d.id, d.size, d.digest, d.place, d.book FROM main.datafile d WHERE book = ?'
        """
        prefix = f"{alias}." if alias else ""
        names = [prefix + name for name in self.columns] + [extra] * bool(extra)
        table = f"main.{self.name} {alias}".rstrip()
        return f"SELECT {', '.join(names)} FROM {table} {rest}"  # noqa: S608 - no values

    def update(self, columns: tuple[str, ...]) -> str:
        """Return the statement that changes columns of one row.

        Its values are the new ones, the book's number and the key's.
        """
        statement = self._updates.get(columns)
        if statement is None:
            unknown = set(columns) - set(self.columns)
            if unknown:
                raise KeyError(f"{self.name} has no column {min(unknown)}")
            changes = ", ".join(f"{name} = ?" for name in columns)
            keys = "".join(f" AND {name} = ?" for name in self.key)
            statement = f"UPDATE main.{self.name} SET {changes} WHERE book = ?{keys}"  # noqa: S608
            self._updates[columns] = statement
        return statement

    def read(self, values: Sequence[Any]) -> Row:
        """Return the row that ``select`` found; further values are ignored."""
        fields = list(values[: len(self.columns)])
        for place in self._flags:
            fields[place] = None if fields[place] is None else fields[place] != 0
        return self.row(**dict(zip(self.columns, fields, strict=True)))

    def values(self, row: Row) -> tuple[Any, ...]:
        """Return the values of a row as the database stores them."""
        values = [getattr(row, name) for name in self.columns]
        for place in self._flags:
            values[place] = stored_value(values[place])
        return tuple(values)


def stored_value(value: Any) -> Any:
    """Return a value as the database stores it: a truth value is an integer."""
    return int(value) if type(value) is bool else value


def _column(hint: Any, default: Any, since: int) -> Column:
    kinds = get_args(hint) or (hint,)
    (kind,) = (part for part in kinds if part is not NoneType)
    return Column(kind, NoneType in kinds, since, None if default is MISSING else default)


BOARD = Table("board", BoardRow, (), "PRIMARY KEY (book)", "UNIQUE (slug)")
TEAM = Table(
    "team",
    TeamRow,
    ("number",),
    *("PRIMARY KEY (book, number)", "UNIQUE (book, folded)", "UNIQUE (book, id)"),
)
# Without a book it is valid on all boards.
CREDENTIAL = Table("credential", CredentialRow, ("hash",), "PRIMARY KEY (hash)", book="{whole}")
SUBMISSION = Table(
    "submission",
    SubmissionRow,
    ("team", "number"),
    *("PRIMARY KEY (book, team, number)", "UNIQUE (id)", "UNIQUE (book, entry)"),
)
RECORD = Table("record", RecordRow, ("entry",), "PRIMARY KEY (book, entry)", tail="{tail}")
IDENTITY = Table(
    "identity",
    IdentityRow,
    ("number",),
    *("PRIMARY KEY (book, number)", "UNIQUE (book, issuer, subject)"),
    since=2,
)
SESSION = Table("session", SessionRow, ("hash",), "PRIMARY KEY (hash)", since=2)
DATA_FILE = Table(
    "datafile",
    DataFileRow,
    ("name",),
    *("PRIMARY KEY (book, name)", "UNIQUE (id)"),
    since=3,
)
WEBHOOK = Table("webhook", WebhookRow, ("number",), "PRIMARY KEY (book, number)")
DELIVERY = Table("delivery", DeliveryRow, ("webhook", "id"), "PRIMARY KEY (book, webhook, id)")
TABLES: tuple[Table[Any], ...] = (
    BOARD, TEAM, CREDENTIAL, SUBMISSION, RECORD, IDENTITY, DATA_FILE,
)  # fmt: skip
"""All tables with rows of a board that are dumped, in the order of a dump."""


class Description(NamedTuple):
    """What the API says about a field."""

    text: str
    pattern: str | None = None


Id = Annotated[str, Description("", "^[0-9a-f]{16,64}$")]
Metric = Annotated[
    float | None, Description("In the board's metric; null where there is none yet.")
]
Loss = Annotated[
    float | None, Description("The loss behind it, lower is better; null where there is none.")
]
VisibleGain = Annotated[
    float | None,
    Description(
        "The smallest gain in the metric that surely shows now; null where every one does, or "
        "where it is withheld."
    ),
]
Proven = Annotated[
    bool | None,
    Description(
        "Whether the record is proven better than the one before on its ladder; null where that "
        "was not tested, or is withheld."
    ),
]
DisplayValue = Annotated[float | None, Description("The same as the metric that people are shown.")]
ReceiptFields = Annotated[dict[str, Any], Description("Proves that the submission was answered.")]
BoardStatus = Literal["open", "paused", "restored", "closing", "closed", "moved"]
LadderScope = Literal["team", "board"]
WebhookEvent = Literal[
    "registration_waiting", "registration_approved", "deadline_near", "paused", "closed", "results"
]
WebhookFormat = Literal["json", "slack", "discord"]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document of the API; ``raw`` is the whole JSON object that was parsed."""

    raw: dict[str, Any] = field(repr=False, compare=False)

    def describe(self) -> dict[str, Any]:
        """Return the whole document, ready for ``json.dumps``."""
        return self.raw


@dataclass(frozen=True)
class MetricDisplay:
    """How losses are shown: the metric's name, its better direction and its digits."""

    name: str
    direction: Literal["higher", "lower"]
    digits: int

    def __post_init__(self) -> None:
        """Refuse more digits than a double has: a huge number would fill the memory."""
        if not 0 <= self.digits <= 17:
            raise ValueError("digits must be from 0 to 17")


@dataclass(frozen=True)
class ReplyDisplay(MetricDisplay):
    """How losses are shown, with the numbers of a reply as people see them."""

    released: DisplayValue
    score: DisplayValue

    def __post_init__(self) -> None:
        # Both are printed: control characters would reach the terminal.
        if not (self.name.isprintable() and 0 <= self.digits <= _REPLY_DIGITS):
            raise ValueError("unprintable name or too many digits")

    def text(self, value: float | None) -> str:
        """Return a number with the metric's name, or ``-`` for None."""
        return "-" if value is None else f"{self.name} {format_decimals(value, self.digits)}"


@dataclass(frozen=True)
class BestRelease:
    """The best release of a board."""

    released: Metric
    loss: Loss
    display: DisplayValue


@dataclass(frozen=True, kw_only=True)
class MetricBound(Document):
    """An interval for the best model's true value in the board's metric; ``loss`` certifies it.

    ``low`` and ``high`` are None if nothing was released. ``overfitting`` is how much too good the
    value shown is at most, ``hidden`` by how much a better model may be hidden at most; None if
    that is not limited.
    """

    low: float | None
    high: float | None
    overfitting: float | None
    hidden: float | None
    beta: float
    vacuous: bool
    theorem: str
    assumptions: tuple[str, ...]
    loss: Certificate

    def __str__(self) -> str:
        if self.vacuous or self.low is None or self.high is None:
            return "No useful bound yet."
        return (
            f"With confidence {format_confidence(self.beta)}, the best model's true value lies in "
            f"[{round_down(self.low)}, {round_up(self.high)}]. "
            f"{format_promise(self.overfitting, self.hidden)}"
        )


@dataclass(frozen=True)
class RateLimit:
    """A team may make at most ``questions`` submissions in any period of ``seconds``."""

    questions: int
    seconds: int


@dataclass(frozen=True)
class BoardPhase:
    """A period in which the board takes submissions."""

    name: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class FinalsRule:
    """How many submissions a team selects for the final ranking."""

    selections: int


PrizeTarget = Literal["range", "band", "rank"]


@dataclass(frozen=True)
class PrizeRule:
    """A prize for a place; ``to`` is whether a range of ranks, a band or a rank gets it."""

    name: str
    place: int
    to: PrizeTarget


@dataclass(frozen=True)
class SignInRule:
    """Who may register by signing in; without ``domains`` and ``people`` everybody may."""

    providers: tuple[str, ...]
    domains: tuple[str, ...]
    people: bool
    approval: bool


@dataclass(frozen=True)
class DataRule:
    """Whether only teams may download the data; ``GET /boards/{board}/data`` lists them."""

    members: bool


@dataclass(frozen=True)
class FileLimits:
    """The largest file the board takes, after decompression."""

    bytes: int
    rows: int


@dataclass(frozen=True)
class LedgerHead:
    """The ledger's visible length and the hash of its last visible entry."""

    entries: int
    hash: str


@dataclass(frozen=True)
class TeamRef:
    """A team's id and name. The name is untrusted text; None on boards that hide names."""

    id: Id
    name: str | None


@dataclass(frozen=True)
class LimitStatus:
    """A limit (``team``, ``board`` or ``window``) and how much of it is left.

    ``next`` is when a full window has room again.
    """

    name: Literal["team", "board", "window"]
    remaining: int
    allowed: int
    next: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class BoardInfo(Document):
    """A board: its rules, its guarantees and how many submissions were used.

    ``takes`` is ``"predictions"``, or ``"scores"``, which only evaluators submit.
    """

    slug: str
    title: str
    description: Annotated[str, Description("Markdown; sanitise it before you display it.")]
    loss: dict[str, Any]
    display: MetricDisplay
    mechanism: dict[str, Any]
    beta: float
    questions: int
    teams: int
    per_team: int
    window: RateLimit | None
    phases: tuple[BoardPhase, ...]
    ladder: LadderScope
    registration: Literal["open", "invited", "organiser", "sign_in"]
    visibility: Literal["public", "hidden", "anonymous", "frozen"]
    baselines: tuple[dict[str, Any], ...]
    finals: FinalsRule | None = None
    status: BoardStatus
    n: int
    rows: int
    kind: str
    takes: Literal["predictions", "scores"] = "predictions"
    metrics: tuple[dict[str, Any], ...] = ()
    leaderboard_metric: str | None = None
    final_metric: str | None = None
    accounts: int | None = None
    protection: str | None = None
    columns: dict[str, Any] | None = None
    share: int
    phase: str | None
    deadline: datetime | None
    files: FileLimits
    play: bool = False
    data: DataRule | None = None
    listing: Literal["listed", "unlisted", "members"] = "listed"
    prizes: tuple[PrizeRule, ...] = ()
    sign_in: SignInRule | None = None
    terms: Annotated[
        str | None, Description("The version of the terms to accept; null without terms.")
    ] = None
    organisers: tuple[str, ...] = ()
    used: int | None
    changes: int | None = None
    registered: int | None
    epoch: int
    best: BestRelease
    bound: MetricBound | None
    book: str = ""
    commitment: str
    head: LedgerHead


@dataclass(frozen=True)
class MetricRelease:
    """A release by one of the further metrics that are shown while the board runs.

    ``improved`` is None for the best of a team.
    """

    name: str
    released: Metric
    loss: Loss
    display: DisplayValue
    digits: int
    improved: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what would spoil a terminal or fill the memory."""
        _check_printed(self.name, self.digits)


def _check_printed(name: str, digits: int) -> None:
    if not (name.isprintable() and 0 <= digits <= 17):
        raise ValueError("unprintable name or too many digits")


@dataclass(frozen=True, kw_only=True)
class SubmissionReply(Document):
    """The answer to a submission.

    ``released`` is the best so far on the ladder, ``score`` the submission's own value if the
    mechanism releases one. ``remaining`` is what is left of the tightest of ``limits``, which
    ``limit`` names. ``bound`` is about the best, and None if it would reveal other teams' activity.
    """

    id: Id
    number: int
    time: datetime
    entry: int | None
    team: TeamRef
    released: Metric
    loss: Loss
    improved: bool
    question: int
    remaining: int
    limit: str
    limits: tuple[LimitStatus, ...]
    next_submission_at: datetime | None
    bound: MetricBound | None
    reason: str
    visible_gain: VisibleGain
    score: Metric
    score_loss: Loss
    proven: Proven = None
    ladder: LadderScope
    again: bool
    metrics: tuple[MetricRelease, ...] = ()
    receipt: ReceiptFields = field(repr=False)
    display: ReplyDisplay


@dataclass(frozen=True, kw_only=True)
class SubmissionInfo(Document):
    """An answered submission; lists of submissions leave out the ``receipt``."""

    id: Id
    number: int
    entry: int | None
    time: datetime
    message: Annotated[str, Description("Untrusted text.")]
    size: Annotated[int | None, Description("The bytes stored of it.")]
    selected: bool
    epoch: int
    released: Metric
    loss: Loss
    score: Metric
    score_loss: Loss
    improved: bool
    question: int
    display: DisplayValue
    metrics: tuple[MetricRelease, ...] = ()
    proven: Proven = None
    receipt: ReceiptFields | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow(Document):
    """A row of the leaderboard; ``rank`` is None for baselines and before the first release.

    ``mean_rank`` is the mean of the ranks in all live metrics where that decides the rank.
    """

    rank: int | None
    tied: Annotated[bool, Description("Whether another team has the same rank.")]
    team: TeamRef
    baseline: bool
    you: bool
    released: Metric
    loss: Loss
    display: DisplayValue
    since: datetime | None
    submissions: int
    last: datetime | None
    metrics: tuple[MetricRelease, ...] = ()
    mean_rank: float | None = None
    proven: Proven = None


@dataclass(frozen=True)
class DeclaredBaseline:
    """A baseline that is a value from elsewhere, not a submission."""

    name: str
    value: float
    loss: float
    display: float
    source: str


@dataclass(frozen=True)
class Leaderboard:
    """A page of the leaderboard; ``next`` is the ``cursor`` of the next page."""

    board: str
    as_of: datetime
    frozen: bool
    ranked_by: Annotated[str, Description("The metric that decides the ranks, or `mean_rank`.")]
    rows: tuple[LeaderboardRow, ...]
    declared: tuple[DeclaredBaseline, ...]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class BoardRecord(Document):
    """A release that was a new best of the whole board."""

    entry: int
    time: datetime
    released: float
    loss: float
    display: float
    team: TeamRef
    proven: Proven = None


@dataclass(frozen=True, kw_only=True)
class TeamStatus(Document):
    """The caller's team: its best, its limits and when it may submit next."""

    id: Id
    name: str
    disqualified: bool
    released: Metric
    loss: Loss
    display: DisplayValue
    submissions: int
    visible_gain: VisibleGain = None
    remaining: int
    limit: str
    limits: tuple[LimitStatus, ...]
    next_submission_at: datetime | None
    metrics: tuple[MetricRelease, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ListedTeam(Document):
    """A team as its organiser sees it."""

    number: int
    id: Id
    name: str
    kind: Literal["team", "baseline"]
    disqualified: bool
    erased: Annotated[bool, Description("Its name was erased; `name` is a pseudonym.")]
    made: datetime
    submissions: int
    last: datetime | None
    released: Metric
    loss: Loss
    stored: Annotated[int, Description("The bytes stored of its submissions.")]


@dataclass(frozen=True)
class TeamCredentials:
    """A team with its token, which is shown only once."""

    id: Id
    name: str
    token: str = field(repr=False)  # not in logs


@dataclass(frozen=True, kw_only=True)
class ListedToken(Document):
    """A valid token or invitation; ``id`` is the beginning of its hash."""

    id: Id
    role: Literal["organiser", "evaluator", "team", "invitation", "member"]
    team: Id | None
    made: datetime
    expires: datetime | None


@dataclass(frozen=True)
class FinalMetric:
    """A metric in a row of the final ranking, besides the one that decides."""

    name: str
    score: float
    loss: float
    display: float
    digits: int

    def __post_init__(self) -> None:
        """Refuse what would spoil a terminal or fill the memory."""
        _check_printed(self.name, self.digits)


@dataclass(frozen=True, kw_only=True)
class BoardTerms(Document):
    """The terms of a board; ``accepted`` is None for callers without a team."""

    text: Annotated[str, Description("Markdown; sanitise it before you display it.")]
    version: Annotated[str, Description("The SHA-256 of the text.")]
    accepted: bool | None


@dataclass(frozen=True)
class DataFile:
    """A file for participants; ``url`` is None if this server stores it."""

    name: str
    bytes: int | None
    sha256: str | None
    url: str | None


@dataclass(frozen=True)
class DataList:
    """The data files of a board, besides sample_submission.csv."""

    files: tuple[DataFile, ...]
    members: Annotated[bool, Description("Whether only teams may download them.")]
    allowed: Annotated[bool, Description("Whether the caller may download them.")]
    refusal: Annotated[str | None, Description("Why the caller may not; null if they may.")]


@dataclass(frozen=True)
class Person:
    """A person who signed in. Names are untrusted text."""

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
    made: datetime


@dataclass(frozen=True)
class TeamMember:
    """A member of a team; ``you`` marks the caller. Names are untrusted text."""

    number: int
    name: Annotated[str, Description("Untrusted text.")]
    role: Literal["owner", "member"]
    you: bool


@dataclass(frozen=True)
class TeamInvitation:
    """A valid invitation to a team; ``id`` is the beginning of its hash."""

    id: Id
    uses: int
    expires: datetime


@dataclass(frozen=True, kw_only=True)
class TeamMembers(Document):
    """The members of a team, and its valid invitations."""

    team: TeamRef
    members: tuple[TeamMember, ...]
    invitations: tuple[TeamInvitation, ...]


@dataclass(frozen=True, kw_only=True)
class ListedWebhook(Document):
    """A webhook with the time and the result of its last delivery.

    ``delivered`` is None before the first attempt; ``waiting`` counts the deliveries to come.
    """

    number: int
    url: str
    format: WebhookFormat
    events: tuple[WebhookEvent, ...]
    made: datetime
    last: datetime | None
    delivered: bool | None
    result: str
    waiting: int


@dataclass(frozen=True, kw_only=True)
class FinalRankingRow(Document):
    """A row of the final ranking; the intervals of all rows hold together.

    ``score`` is in the metric that decides, ``metrics`` are the others. ``mean_rank`` is the mean
    of the ranks in all metrics where that decides; ``score`` is then in the first metric.

    ``ranks`` are the first and last rank that the data allow the team, for all teams at once. Teams
    of one ``band`` cannot be told apart from the first of them. Both are None for baselines.
    """

    rank: int | None
    team: TeamRef
    baseline: bool
    score: float
    loss: float
    low: float
    high: float
    display: float
    submission: Id
    public_rank: int | None
    move: int | None
    ranks: tuple[int, int] | None = None
    band: int | None = None
    metrics: tuple[FinalMetric, ...] = ()
    mean_rank: float | None = None


@dataclass(frozen=True)
class AwardedPrize:
    """A prize, and the teams that get it."""

    name: str
    place: int
    to: PrizeTarget
    teams: tuple[TeamRef, ...]


@dataclass(frozen=True, kw_only=True)
class FinalRanking(Document):
    """The final ranking, on the private split."""

    board: str
    closed: datetime
    n: int
    selected: int
    beta: float
    rows: tuple[FinalRankingRow, ...]
    metric: str | None = None
    display: MetricDisplay | None = None
    prizes: tuple[AwardedPrize, ...] = ()


def make_document(model: type, source: object, /, **values: Any) -> dict[str, Any]:
    """Return the JSON object of a document.

    A field has the given value, or that of the same name in ``source``; times are whole seconds.
    Fields with a default are left out unless they are given. It is fastest if all are given, in
    their order.
    """
    layout = _document_layout(model)
    document = values
    if list(values) != layout.names:
        document = {}
        for name in layout.names:
            if name in values:
                document[name] = values.pop(name)
            elif name in layout.required:
                document[name] = getattr(source, name)
        if values:
            raise TypeError(f"{model.__name__} has no field {min(values)}")
    for name in layout.times:
        if document.get(name) is not None:
            document[name] = format_time(document[name])
    return document


class _DocumentLayout(NamedTuple):
    """The fields of a document: all, those without a default, and those that are times."""

    names: list[str]
    required: frozenset[str]
    times: list[str]


@cache
def _document_layout(model: type) -> _DocumentLayout:
    hints = get_type_hints(model)
    listed = [item for item in fields(model) if item.name != _RAW]
    return _DocumentLayout(
        [item.name for item in listed],
        frozenset(item.name for item in listed if item.default is item.default_factory is MISSING),
        [
            item.name
            for item in listed
            if datetime in (hints[item.name], *get_args(hints[item.name]))
        ],
    )
