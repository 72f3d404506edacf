"""What a server says, typed.

``released``, ``score``, ``low`` and ``high`` are in the board's metric, ``display`` is ``released``
as it is printed, and ``loss`` is the loss behind it.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ladderboard._formatting import round_down, round_up
from ladderboard.bounds import Certificate
from ladderboard.client._address import check_board

__all__ = [
    "Best",
    "Board",
    "Bound",
    "Display",
    "Files",
    "Finalist",
    "Finals",
    "Head",
    "Limit",
    "NewTeam",
    "Phase",
    "Record",
    "Standing",
    "Submission",
    "Team",
    "TeamName",
    "Window",
]


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What was said; ``said`` is all of it, as it came."""

    said: dict[str, Any] = field(repr=False, compare=False)

    def describe(self) -> dict[str, Any]:
        """Return everything that the server said, JSON-able."""
        return self.said


@dataclass(frozen=True)
class Display:
    """How losses are shown: under which name, which direction is better, how many digits."""

    name: str
    direction: str
    digits: int

    def __post_init__(self) -> None:
        """Refuse more digits than a number has, which somebody would have to print."""
        if not 0 <= self.digits <= 17:
            raise ValueError("digits must be from 0 to 17")


@dataclass(frozen=True)
class Best:
    """The best release of a board."""

    released: float | None
    loss: float | None
    display: float | None


@dataclass(frozen=True, kw_only=True)
class Bound(_Told):
    """Where the best model's true value lies, in the board's metric; ``loss`` is the certificate.

    ``low`` and ``high`` are None where nothing was released.
    """

    low: float | None
    high: float | None
    beta: float
    vacuous: bool
    theorem: str
    assumptions: tuple[str, ...]
    loss: Certificate

    def __str__(self) -> str:
        if self.vacuous or self.low is None or self.high is None:
            return "Nothing is promised that was not known before."
        return (
            f"With confidence {1 - self.beta:.4g}, the best model's true value lies in "
            f"[{round_down(self.low)}, {round_up(self.high)}]."
        )


@dataclass(frozen=True)
class Window:
    """So many questions within so many seconds."""

    questions: int
    seconds: int


@dataclass(frozen=True)
class Phase:
    """A time in which questions are answered."""

    name: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class Files:
    """How large a file may be, unpacked."""

    bytes: int
    rows: int


@dataclass(frozen=True)
class Head:
    """How far the ledger has come, as far as it may be seen."""

    entries: int
    hash: str


@dataclass(frozen=True)
class TeamName:
    """A team; its name is anybody's text, and None where teams go without."""

    id: str
    name: str | None


@dataclass(frozen=True)
class Limit:
    """One limit, ``team``, ``board`` or ``window``, and what is left of it."""

    name: str
    remaining: int
    allowed: int
    next: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Board(_Told):
    """What a board is, what it promises, and how far it has come.

    ``takes`` is ``"predictions"``, or ``"scores"`` that only evaluators hand in.
    """

    slug: str
    title: str
    description: str
    status: str
    loss: dict[str, Any]
    display: Display
    mechanism: dict[str, Any]
    beta: float
    questions: int
    used: int | None
    teams: int
    registered: int | None
    per_team: int
    share: int
    window: Window | None
    phases: tuple[Phase, ...]
    phase: str | None
    deadline: datetime | None
    ladder: str
    registration: str
    visibility: str
    n: int
    rows: int
    kind: str
    files: Files
    baselines: tuple[dict[str, Any], ...]
    epoch: int
    best: Best
    bound: Bound | None
    commitment: str
    head: Head
    takes: str = "predictions"

    def __post_init__(self) -> None:
        """Refuse a name that is none: it is shown, and typed again."""
        check_board(self.slug)


@dataclass(frozen=True, kw_only=True)
class Submission(_Told):
    """A submission, as it was answered; with its ``receipt`` where one alone was asked for."""

    id: str
    number: int
    entry: int | None
    time: datetime
    message: str
    size: int | None
    selected: bool
    epoch: int
    released: float | None
    loss: float | None
    score: float | None
    score_loss: float | None
    improved: bool
    question: int
    display: float | None
    receipt: dict[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Standing(_Told):
    """A row of the standings; the rank is None for baselines and where nothing was released."""

    rank: int | None
    tied: bool
    team: TeamName
    baseline: bool
    you: bool
    released: float | None
    loss: float | None
    display: float | None
    since: datetime | None
    submissions: int
    last: datetime | None


@dataclass(frozen=True, kw_only=True)
class Record(_Told):
    """A time at which the best of the whole board went down."""

    entry: int
    time: datetime
    released: float
    loss: float
    display: float
    team: TeamName


@dataclass(frozen=True, kw_only=True)
class Team(_Told):
    """One's own affairs."""

    id: str
    name: str
    disqualified: bool
    released: float | None
    loss: float | None
    display: float | None
    submissions: int
    remaining: int
    limit: str
    limits: tuple[Limit, ...]
    next_submission_at: datetime | None


@dataclass(frozen=True)
class NewTeam:
    """A team and its token, which is told once, and not by ``repr``."""

    id: str
    name: str
    token: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Finalist(_Told):
    """A row of the final ranking, with an interval that holds for all rows at once."""

    rank: int | None
    team: TeamName
    baseline: bool
    score: float
    loss: float
    low: float
    high: float
    display: float
    submission: str
    public_rank: int | None
    move: int | None


@dataclass(frozen=True, kw_only=True)
class Finals(_Told):
    """The final ranking, on the private split."""

    board: str
    closed: datetime
    n: int
    selected: int
    beta: float
    rows: tuple[Finalist, ...]
