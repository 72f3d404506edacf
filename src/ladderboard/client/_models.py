"""The answers of a server as dataclasses, and how they are read from JSON.

``released``, ``score``, ``low`` and ``high`` are in the board's metric, ``display`` is ``released``
as it is printed, and ``loss`` is the loss behind it.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache
from html import escape
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ladderboard._formatting import format_count, round_down, round_up
from ladderboard.bounds import Certificate
from ladderboard.client._address import check_board_name
from ladderboard.holdout import Reply

_WORST = 1.0  # what stands on a ladder before anything was seen
_DIGITS = 15
T = TypeVar("T")
_RAW = "raw"  # where a shape keeps all of it, as it came
_OURS = "certify"  # what a guard's reply has, and no server says
# How a value is written in JSON, and what makes it of that.
_PLAIN: dict[Any, tuple[Any, Callable[[Any], Any] | None]] = {
    datetime: (str, datetime.fromisoformat),
    Certificate: (dict, Certificate.read),
    float: ((int, float), float),
}


@dataclass(frozen=True, kw_only=True)
class _ResponseModel:
    """What was said; ``raw`` is all of it, as it came."""

    raw: dict[str, Any] = field(repr=False, compare=False)

    def describe(self) -> dict[str, Any]:
        """Return everything that the server said, JSON-able."""
        return self.raw


@dataclass(frozen=True)
class MetricDisplay:
    """How losses are shown: under which name, which direction is better, how many digits."""

    name: str
    direction: str
    digits: int

    def __post_init__(self) -> None:
        """Refuse more digits than a number has, which somebody would have to print."""
        if not 0 <= self.digits <= 17:
            raise ValueError("digits must be from 0 to 17")


@dataclass(frozen=True)
class BestRelease:
    """The best release of a board."""

    released: float | None
    loss: float | None
    display: float | None


@dataclass(frozen=True, kw_only=True)
class MetricBound(_ResponseModel):
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
class RateLimit:
    """So many questions within so many seconds."""

    questions: int
    seconds: int


@dataclass(frozen=True)
class BoardPhase:
    """A time in which questions are answered."""

    name: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class FileLimits:
    """How large a file may be, unpacked."""

    bytes: int
    rows: int


@dataclass(frozen=True)
class LedgerHead:
    """How far the ledger has come, as far as it may be seen."""

    entries: int
    hash: str


@dataclass(frozen=True)
class TeamRef:
    """A team; its name is anybody's text, and None where teams go without."""

    id: str
    name: str | None


@dataclass(frozen=True)
class LimitStatus:
    """One limit, ``team``, ``board`` or ``window``, and what is left of it."""

    name: str
    remaining: int
    allowed: int
    next: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class BoardInfo(_ResponseModel):
    """What a board is, what it promises, and how far it has come.

    ``takes`` is ``"predictions"``, or ``"scores"`` that only evaluators hand in.
    """

    slug: str
    title: str
    description: str
    status: str
    loss: dict[str, Any]
    display: MetricDisplay
    mechanism: dict[str, Any]
    beta: float
    questions: int
    used: int | None
    teams: int
    registered: int | None
    per_team: int
    share: int
    window: RateLimit | None
    phases: tuple[BoardPhase, ...]
    phase: str | None
    deadline: datetime | None
    ladder: str
    registration: str
    visibility: str
    n: int
    rows: int
    kind: str
    files: FileLimits
    baselines: tuple[dict[str, Any], ...]
    epoch: int
    best: BestRelease
    bound: MetricBound | None
    commitment: str
    head: LedgerHead
    takes: str = "predictions"

    def __post_init__(self) -> None:
        """Refuse a name that is none: it is shown, and typed again."""
        check_board_name(self.slug)


@dataclass(frozen=True, kw_only=True)
class SubmissionInfo(_ResponseModel):
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
class LeaderboardRow(_ResponseModel):
    """A row of the standings; the rank is None for baselines and where nothing was released."""

    rank: int | None
    tied: bool
    team: TeamRef
    baseline: bool
    you: bool
    released: float | None
    loss: float | None
    display: float | None
    since: datetime | None
    submissions: int
    last: datetime | None


@dataclass(frozen=True, kw_only=True)
class BoardRecord(_ResponseModel):
    """A time at which the best of the whole board went down."""

    entry: int
    time: datetime
    released: float
    loss: float
    display: float
    team: TeamRef


@dataclass(frozen=True, kw_only=True)
class TeamStatus(_ResponseModel):
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
    limits: tuple[LimitStatus, ...]
    next_submission_at: datetime | None


@dataclass(frozen=True)
class TeamCredentials:
    """A team and its token, which is told once, and not by ``repr``."""

    id: str
    name: str
    token: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class FinalRankingRow(_ResponseModel):
    """A row of the final ranking, with an interval that holds for all rows at once."""

    rank: int | None
    team: TeamRef
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
class FinalRanking(_ResponseModel):
    """The final ranking, on the private split."""

    board: str
    closed: datetime
    n: int
    selected: int
    beta: float
    rows: tuple[FinalRankingRow, ...]


@dataclass(frozen=True)
class ReplyDisplay(MetricDisplay):
    """How losses are shown, with those of a reply."""

    released: float | None
    score: float | None

    def __post_init__(self) -> None:
        # It is part of a sentence, which a terminal might obey.
        if not (self.name.isprintable() and 0 <= self.digits <= _DIGITS):
            raise ValueError("a server of ours shows losses in another way")

    def text(self, value: float | None) -> str:
        """Return a number as people are told it, with its name."""
        return "-" if value is None else f"{self.name} {value:.{self.digits}f}"


@dataclass(frozen=True, kw_only=True)
class SubmissionResult(Reply):
    """The answer to a submission: a guard's reply, and what a board adds; prints as one sentence.

    ``released``, ``score`` and ``bound`` are in the board's metric; ``loss`` and ``score_loss`` are
    the losses behind them. ``bound`` is about the best on this ladder, None where it would tell of
    others.
    ``ladder`` says whose it is, ``team`` or ``board``. ``remaining`` is what is left of the
    tightest of ``limits``, which is ``limit``; ``next_submission_at`` is None where no question
    will ever be left. ``receipt`` is what proves later that it was answered. ``raw`` is all
    of it, as it came.
    """

    score: float | None = field()  # a board says all of these
    loss: float | None = field()
    score_loss: float | None = field()
    ladder: str = field()
    again: bool = field()
    id: str
    number: int
    time: datetime
    entry: int | None
    team: TeamRef
    limit: str
    limits: tuple[LimitStatus, ...]
    next_submission_at: datetime | None
    # A guard that is no board's always tells, and makes it when it is looked at.
    bound: MetricBound | None = field()  # type: ignore[assignment]
    display: ReplyDisplay
    receipt: dict[str, Any] = field(repr=False)
    raw: dict[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{_told(self)}; {_left(self)}."

    def describe(self) -> dict[str, Any]:
        """Return everything that the server said, JSON-able."""
        return self.raw

    def _repr_html_(self) -> str:
        """Show the sentence, and the interval where there is one, in a notebook."""
        told = "Improved" if self.improved else "Not improved"
        bound = "" if self.bound is None else f"<p>{escape(str(self.bound))}</p>"
        return f"<p><b>{told}.</b> {escape(str(self))}</p>{bound}"


def _told(said: SubmissionResult) -> str:
    """Return what was said of the best, and of this model where the mechanism says that too.

    It is never said that a model is no better: only that it was not seen to be.
    """
    best = _then(said) if said.again else _now(said)
    if said.score is not None and said.score != said.released:
        this = "then this" if said.again else "this"
        score = said.display.text(said.display.score)
        best = f"{this} model was put at {score}; {best}"
    if said.again:
        return (
            f"The same predictions were answered before, as submission {said.number}, and nothing "
            f"was counted; {best}"
        )
    return f"{best[0].upper()}{best[1:]}"


def _now(said: SubmissionResult) -> str:
    whose, value = _whose(said), said.display.text(said.display.released)
    if said.improved:
        best = "a new best" if said.ladder == "team" else "a new best of the whole board"
        return f"{best}; its value is not told now" if said.released is None else f"{best}: {value}"
    if said.released is None:
        return f"{whose} stays what it was: this one was not seen to be better"
    if said.loss is not None and said.loss >= _WORST:
        return "there is no best yet: no gain large enough was seen"
    if said.score is not None:
        return f"{whose} stays {value}"
    return f"{whose} stays {value}: this one was not seen to be better"


def _then(said: SubmissionResult) -> str:
    if said.released is None:
        return f"then {_whose(said)} {'improved' if said.improved else 'stayed what it was'}"
    if said.loss is not None and said.loss >= _WORST and not said.improved:
        return "then there was no best yet"
    verb = "became" if said.improved else "stayed"
    return f"then {_whose(said)} {verb} {said.display.text(said.display.released)}"


def _whose(said: SubmissionResult) -> str:
    return "your best" if said.ladder == "team" else "the best of the whole board"


def _left(said: SubmissionResult) -> str:
    """Return how many questions are left, and when the next may come if not now."""
    lasting = [each.remaining for each in said.limits if each.name != "window"]
    rest, following = min(lasting, default=said.remaining), said.next_submission_at
    if not rest:
        hidden = "your share is used up; whether others left any over is not shown"
        return "no questions left" if following is None else hidden
    told = f"{format_count(rest, 'question')} left"
    if said.remaining >= rest:
        return told
    if said.remaining:
        return f"{told}, {said.remaining} of them now"
    return told + (
        ", none of them now" if following is None else f"; the next at {_time(following)}"
    )


def _time(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


def parse_model(shape: Callable[..., T], said: Any) -> T:
    """Return what was said in a shape; TypeError or ValueError where it is of another.

    Fields that the shape does not have are left out: a server may be newer than we are. Those with
    a default may be missing.
    """
    if not isinstance(said, dict):
        raise TypeError("an object was expected")
    found: dict[str, Any] = {}
    for name, kind, needed in _fields(shape):
        if name == _RAW:
            found[name] = said
        elif name in said:
            found[name] = _read(kind, said[name])
        elif needed:
            raise ValueError(f"{name} is missing")
    return shape(**found)


@cache
def _fields(shape: Any) -> list[tuple[str, Any, bool]]:
    # A guard's reply names its types for checkers alone.
    hints = get_type_hints(shape, localns={"Callable": Callable, "Certificate": Certificate})
    return [
        (each.name, hints[each.name], each.default is MISSING and each.default_factory is MISSING)
        for each in fields(shape)
        if each.name != _OURS
    ]


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return None if value is None else _read(inner, value)
    if origin is tuple:
        return tuple(_read(get_args(kind)[0], each) for each in _exactly(list, value))
    if isinstance(kind, type) and is_dataclass(kind) and kind is not Certificate:
        return parse_model(kind, value)
    written, make = _PLAIN.get(kind, (origin or kind, None))
    value = _exactly(written, value)
    return value if make is None else make(value)


def _exactly(kind: Any, value: Any) -> Any:
    """Return a value of a type; a truth is no number here."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError("a value is of another type")
    return value
