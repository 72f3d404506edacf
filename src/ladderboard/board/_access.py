"""Who may do what on a board, and how often: roles, tokens, names; limits per team and window."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_size, format_time, format_utc
from ladderboard.board._repository import (
    Sender,
    count_pooled,
    list_submission_times,
    read_board,
    sum_submission_sizes,
    update_board,
)
from ladderboard.errors import (
    BudgetSpent,
    InvalidSetting,
    NotAllowed,
    NotOpen,
    QuotaExceeded,
    RateLimited,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ladderboard.board._model import BoardRow, TeamRow
    from ladderboard.board._rules import Rules
    from ladderboard.ledger import ChainState, Moment, ReadView, WriteView


_MAX_NAME_LENGTH = 64
_MAX_LISTED = 10_000
MAIL_ISSUER = "mail"
"""The issuer under which a list's email addresses are stored."""
_HIDDEN_CATEGORIES = {
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
}  # invisible, or changes the direction of writing
_JOINER = "\u200d"  # within emoji
_BLANK_CHARACTERS = set(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
)  # drawn as nothing or as a space
_EMOJI_JOINERS = {_JOINER, "\ufe0e", "\ufe0f"}
# Letters that look like Latin ones, to prevent look-alike team names.
_LOOKALIKES = str.maketrans("аеорсухкмнтвіјѕԁԛԝһοανκρτυχι", "aeopcyxkmhtbijsdqwhoavkptuxi")
_SCORES_ONLY_MESSAGE = (
    "This board takes scores from its evaluators only; teams cannot submit. Ask the organiser how "
    "your model is evaluated."
)


class Role(IntEnum):
    """The role of a caller. Each role may do everything that the roles before it may."""

    PUBLIC = 0
    TEAM = 1
    EVALUATOR = 2
    ORGANISER = 3


class Caller(NamedTuple):
    """The caller of a board: role, team number, and the hash of the token or session used.

    ``identity`` is the number of a person who signed in.
    """

    role: Role
    team: int | None = None
    credential: bytes | None = None
    identity: int | None = None

    @property
    def sender(self) -> Sender | None:
        """What proves that the caller acts for their team; None for callers made in a program."""
        if self.credential is None:
            return None
        return Sender(None if self.identity is not None else self.credential, self.identity)


PUBLIC = Caller(Role.PUBLIC)


def new_token(role: str, salt: Callable[[], bytes]) -> str:
    """Return a new 256-bit token; its prefix names the role, for people and secret scanners."""
    return f"lb_{role}_{base64.urlsafe_b64encode(salt()).decode().rstrip('=')}"


def hash_token(token: str) -> bytes:
    """Return the hash that is stored for a token. One SHA-256 suffices for 256 random bits."""
    return hashlib.sha256(b"ladderboard token\n" + token.encode("utf-8", "replace")).digest()


def check_text(
    label: str, text: str, *, at_most: int = _MAX_NAME_LENGTH, lines: bool = False
) -> str:
    """Return text in NFC, stripped; refuse invisible and direction-changing characters."""
    if not isinstance(text, str):
        raise InvalidSetting(f"{label} must be text.")
    text = unicodedata.normalize("NFC", text).strip()
    if lines:
        text = text.replace("\r\n", "\n")
    allowed = {*_EMOJI_JOINERS, "\n", "\t"} if lines else _EMOJI_JOINERS
    if any(
        (unicodedata.category(character) in _HIDDEN_CATEGORIES and character not in allowed)
        or character in _BLANK_CHARACTERS
        for character in text
    ):
        raise InvalidSetting(f"{label} must have no invisible characters.")
    if len(text) > at_most:
        raise InvalidSetting(f"{label} must have at most {at_most} characters.")
    return text


def check_name(name: str) -> str:
    """Return a team's name in its normal form, or refuse it."""
    name = " ".join(check_text("A team's name", name).split())
    if not comparable_name(name):
        raise InvalidSetting("A team needs a visible name.")
    return name


def comparable_name(name: str) -> str:
    """Return a key that is equal for names that look alike to people.

    >>> comparable_name("Team A") == comparable_name("team\u200d \u0430")
    True
    """
    visible = "".join(character for character in name if character not in _EMOJI_JOINERS)
    folded = unicodedata.normalize("NFKC", visible).casefold().translate(_LOOKALIKES)
    return "".join(folded.split())


def parse_people(entries: Iterable[str]) -> list[tuple[str, str]]:
    """Return issuer and subject of each entry of a list; refuse a malformed one.

    >>> parse_people(["Ada@example.edu", "https://orcid.org 0000-0002-1825-0097", ""])
    [('mail', 'ada@example.edu'), ('https://orcid.org', '0000-0002-1825-0097')]
    """
    parsed: dict[tuple[str, str], None] = {}
    for number, entry in enumerate(entries, 1):
        words = check_text(f"Entry {number} of the list", entry, at_most=600).split()
        if not words:
            continue
        if len(words) == 1 and words[0].count("@") == 1 and not words[0].startswith("@"):
            parsed[MAIL_ISSUER, words[0].casefold()] = None
        elif len(words) == 2 and words[0].startswith(("https://", "http://")):
            parsed[words[0], words[1]] = None
        else:
            raise InvalidSetting(
                f"Entry {number} of the list must be an email address, such as ada@example.edu, or "
                "an issuer and a subject, such as https://orcid.org 0000-0002-1825-0097."
            )
    if len(parsed) > _MAX_LISTED:
        raise InvalidSetting(f"A list has at most {_MAX_LISTED} people; got {len(parsed)}.")
    return list(parsed)


ACTIONS = {
    "look": Role.PUBLIC,
    "register": Role.PUBLIC,
    "submit": Role.TEAM,
    "choose": Role.TEAM,
    "own": Role.TEAM,
    "rotate own token": Role.TEAM,
    "see everything": Role.EVALUATOR,
    "teams": Role.ORGANISER,
    "tokens": Role.ORGANISER,
    "run": Role.ORGANISER,
}
"""The lowest role that may do each action."""


def check_permission(caller: Caller, action: str, rules: Rules | None = None) -> None:
    """Raise ``NotAllowed`` unless the caller may do the action under the board's rules.

    Teams submit predictions only: with scores they could simply claim the best ones.
    """
    if caller.role < ACTIONS[action]:
        role = ACTIONS[action].name.lower()
        article = "an" if role[0] in "aeiou" else "a"
        raise NotAllowed(f"This needs {article} {role}'s token.")
    if action in {"choose", "own", "rotate own token"} and caller.team is None:
        raise NotAllowed("This needs a team's own token.")
    scores = action == "submit" and rules is not None and rules.takes == "scores"
    if scores and caller.role < Role.EVALUATOR:
        raise NotAllowed(_SCORES_ONLY_MESSAGE)


def refuse_without_terms(rules: Rules, accepted: str) -> None:
    """Raise ``NotAllowed`` unless the version of the terms accepted last is the current one."""
    if rules.terms is None or accepted == rules.terms.version:
        return
    changed = "have changed since you accepted them" if accepted else "are not accepted yet"
    raise NotAllowed(
        f"The terms of this board {changed}. Accept them on the board's Terms page, or with "
        f"ladderboard terms {rules.slug}."
    )


_SPENT_MESSAGES = {
    "board": "This team has used its share of the submissions, and the shared pool is empty.",
    "team": "This team has used all its {0:,} submissions.",
}
_by_remaining = attrgetter("remaining")
_CLOSED_MESSAGES = {
    "paused": "The board is paused. Nothing was counted. Try again later.",
    "restored": "The board was restored and waits for its organiser. Nothing was counted.",
    "closing": "The board is being closed; it takes no more submissions.",
    "closed": "The board is closed; it takes no more submissions.",
    "moved": "The board has moved to another server; ask its organiser where.",
}


class QuotaLimit(NamedTuple):
    """One limit: its name, the questions remaining and allowed, and when a window has the next."""

    name: str
    remaining: int
    allowed: int
    next: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return the limit as JSON-able fields."""
        fields = {"name": self.name, "remaining": self.remaining, "allowed": self.allowed}
        return fields if self.next is None else {**fields, "next": format_time(self.next)}


class Quota(NamedTuple):
    """All limits of a team, the tightest first, and when it may submit next."""

    limits: tuple[QuotaLimit, ...]
    next: int | None

    @property
    def tightest(self) -> QuotaLimit:
        """The limit with the fewest questions remaining."""
        return self.limits[0]


class Shares(NamedTuple):
    """How many questions are reserved for each team, and how many any team may use."""

    share: int
    pool: int


def compute_shares(rules: Rules, row: BoardRow, state: ChainState) -> Shares:
    """Return each team's share and the pool, excluding baselines, charged and replayed questions.

    The shares and the pool add up to what all teams may ask.
    """
    shareable = rules.questions - rules.scored_baseline_count - state.charged - row.replayed
    share = max(min(rules.per_team, shareable // rules.teams), 0)
    return Shares(share, max(shareable - rules.teams * share, 0))


def recount_pooled(view: WriteView, rules: Rules, state: ChainState) -> None:
    """Count again the questions beyond the teams' shares. Call it whenever shares change."""
    share = compute_shares(rules, read_board(view), state).share
    update_board(view, pooled=count_pooled(view, share))


def remaining_quota(
    view: ReadView, rules: Rules, row: BoardRow, team: TeamRow, moment: Moment
) -> Quota:
    """Return how many questions a team has left now, limit by limit.

    Each team's share of the board's budget is reserved for it. Questions beyond the share come
    from a pool, so no team can use up another's share.
    """
    state, now = moment.chain_state, moment.now
    budget_left = max(rules.questions - state.asked - state.charged, 0)
    if team.kind == "baseline":  # its one question is reserved
        return Quota(
            (QuotaLimit("board", min(budget_left, max(1 - team.used, 0)), rules.questions),), now
        )
    share, pool = compute_shares(rules, row, state)
    reserved = max(share - team.used, 0) + max(pool - row.pooled, 0)
    # Shares are whole numbers, so after a charge the pool may be larger than it was. No team gets
    # more for that.
    reserved = min(reserved, max(rules.share + rules.pool - team.used, 0))
    limits = [
        QuotaLimit("team", max(rules.per_team - team.used, 0), rules.per_team),
        QuotaLimit("board", min(budget_left, reserved), rules.questions),
    ]
    window = rules.window
    if window is not None:  # reads only the last few times
        times = list_submission_times(view, team.number, team.used - window.questions)
        recent_times = [time for time in times if time > now - window.seconds]
        window_left = max(window.questions - len(recent_times), 0)
        following = None if window_left else recent_times[0] + window.seconds
        limits.append(QuotaLimit("window", window_left, window.questions, following))
    limits.sort(key=_by_remaining)
    if any(not limit.remaining and limit.next is None for limit in limits):
        return Quota(tuple(limits), None)
    soonest = max([now, *(limit.next for limit in limits if limit.next is not None)])
    return Quota(tuple(limits), _next_open_time(rules, soonest))


def _next_open_time(rules: Rules, time: int) -> int | None:
    """Return the first time from ``time`` on at which a phase is open; None if there is none."""
    if rules.phase_at(time) is not None:
        return time
    return rules.next_start(time)


def refuse_if_closed(rules: Rules, row: BoardRow, received: int | None) -> None:
    """Raise ``NotOpen`` if the board took no submissions at the time of receipt.

    ``received`` is None for a baseline, which is submitted before the first phase begins.
    """
    sentence = _CLOSED_MESSAGES.get(row.status)
    if sentence is not None:
        raise NotOpen(sentence)
    if received is not None and rules.phase_at(received) is None:
        start = rules.next_start(received)
        if start is None:
            raise NotOpen(f"The deadline was {format_utc(rules.deadline or 0)}.")
        raise NotOpen(f"The board opens at {format_utc(start, up=True)}.")


def refuse_if_over_limit(quota: Quota, clock: int) -> None:
    """Raise ``RateLimited`` or ``BudgetSpent`` past a limit, and name the limit.

    ``clock`` is the clock's own time, even if it is before the last entry: the caller must wait
    until that clock reaches the end of the window.
    """
    for limit in quota.limits:
        if limit.remaining:
            continue
        if limit.next is not None:
            wait = max(limit.next - clock, 1)
            raise RateLimited(
                f"This team has used its {limit.allowed:,} submissions for now. The next is at "
                f"{format_utc(limit.next, up=True)}.",
                wait=wait,
            )
        raise BudgetSpent(_SPENT_MESSAGES[limit.name].format(limit.allowed))


class StoredBytes:
    """Counts the stored bytes of each team's submissions; each row is read once.

    Rows are only added, so a cached sum stays right for the submissions that it counted.
    """

    def __init__(self) -> None:
        self._sums: dict[int, tuple[int, int]] = {}

    def team_total(self, view: ReadView, team: TeamRow, *, cache: bool) -> int:
        """Return a team's sum; ``cache`` caches it. Do not, if rows may be rolled back."""
        count, stored = self._sums.get(team.number, (0, 0))
        if count > team.used:  # another process restored an older copy
            count = stored = 0
        if count < team.used:
            stored += sum_submission_sizes(view, team.number, count, team.used)
        if cache:
            self._sums[team.number] = (team.used, stored)
        return stored

    def add(self, team: int, number: int, size: int) -> None:
        """Count a submission that was committed, if it follows the last one that was counted."""
        count, stored = self._sums.get(team, (0, 0))
        if number == count + 1:
            self._sums[team] = (number, stored + size)


def refuse_if_storage_full(
    rules: Rules, row: BoardRow, team: TeamRow, stored: int, size: int
) -> None:
    """Raise ``QuotaExceeded`` if a team's or the board's stored files would grow too large.

    Each team has its own quota, so none can use up the others' space.
    """
    quota = rules.team_quota
    if team.kind == "team" and stored + size > quota:
        raise QuotaExceeded(
            f"This team's stored predictions take {format_size(stored)} of its "
            f"{format_size(quota)}; these would need {format_size(size)} more. No submission was "
            "used. Ask the organiser to raise files: {team_quota: ...}."
        )
    if row.stored + size > rules.files.quota:
        raise QuotaExceeded(
            "The board's storage for submissions is full. No submission was used. Ask the "
            "organiser to raise files: {quota: ...}."
        )


def redact_quota(quota: Quota, team: TeamRow, share: int) -> Quota:
    """Return a team's quota without what would reveal how often others submitted.

    The pool depends on the others; the team's own share does not.
    """
    share_left = max(share - team.used, 0)
    limits = [
        limit._replace(remaining=share_left, allowed=share) if limit.name == "board" else limit
        for limit in quota.limits
    ]
    limits.sort(key=_by_remaining)
    return Quota(tuple(limits), quota.next)


def serialize_budget(rules: Rules, row: BoardRow, state: ChainState) -> dict[str, int]:
    """Return used and remaining submissions: the teams' shares, the pool and the baselines.

    ``used`` is ``asked`` plus ``charged``, which a restore adds. Of those asked, ``baselines`` and
    ``replayed`` (after labels were corrected) count against no team. Each team has ``share``
    reserved questions; teams have taken ``pooled`` of the ``pool``.
    """
    used = state.asked + state.charged
    share, pool = compute_shares(rules, row, state)
    return {
        "questions": rules.questions,
        "used": used,
        "remaining": max(rules.questions - used, 0),
        "asked": state.asked,
        "charged": state.charged,
        "baselines": rules.scored_baseline_count,
        "replayed": row.replayed,
        "share": share,
        "pool": pool,
        "pooled": min(row.pooled, pool),
        "teams": rules.teams,
        "registered": row.teams,
    }
