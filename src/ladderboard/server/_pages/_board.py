"""The page of all boards, and that of each."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from ladderboard._formatting import format_time, round_outwards
from ladderboard.board import PUBLIC, Board, Caller, DisplayRules
from ladderboard.holdout import unseen
from ladderboard.server._api import Slug
from ladderboard.server._auth import Credentials
from ladderboard.server._context import CachedPage, get_context, is_public
from ladderboard.server._pages._charts import history_chart
from ladderboard.server._pages._rendering import figure, or_none, pack, render, send, show, url_of
from ladderboard.server._pages._reply import left_words
from ladderboard.server._pages._wording import (
    is_over,
    meaning_in_words,
    percent,
    rules_in_words,
    state_of,
    until,
)

router = APIRouter(include_in_schema=False)
_MANY = 48
_MOST = 100  # rows of a final ranking that a page shows
_KINDS = {"": "", "you": "you", "baseline": "aside"}
_TABLE = 10  # records that are listed below the chart
_VEILED = {"hidden", "frozen"}


@router.get("/")
async def boards_page(request: Request) -> Response:
    """Show all boards, as everybody sees them, a page at a time: those that are open first."""
    context = get_context(request)
    now = int(context.boards.world.clock())
    page = _page_number(request.query_params.get("page", "1"))

    def look(shown: Credentials | None) -> list[dict[str, Any]]:
        context.authenticator.resolve_or_public(request, shown, None)  # refuses a wrong token
        slugs = context.boards.list_open_first(_MANY + 1, _MANY * (page - 1))
        found = [context.boards.open(slug).as_seen_by(PUBLIC).summary() for slug in slugs]
        return [_card(each, now) for each in found]

    cards = await context.run_authenticated(request, look, form=True)
    later = page + 1 if len(cards) > _MANY else None
    cards = sorted(cards[:_MANY], key=lambda card: card["state"].word != "open")
    return show(request, "boards.html", cards=cards, page=page, later=later)


def _page_number(said: str) -> int:
    """Return a page that may be there; the first, for what is none."""
    known = said.isascii() and said.isdigit() and len(said) < 7
    return max(int(said), 1) if known else 1


def _card(board: dict[str, Any], now: int) -> dict[str, Any]:
    deadline = board["deadline"]
    return {
        "board": board,
        "state": state_of(board, now),
        "over": is_over(board),
        "away": None if deadline is None else until(deadline, now),
    }


@router.get("/boards/{board}")
async def board_page(request: Request, board: Slug) -> Response:
    """Show a board: standings, rules, what they mean, and how to submit."""
    context, url = get_context(request), url_of(request)
    root = context.settings.prefix
    cursor = request.query_params.get("cursor") or None
    now = int(context.boards.world.clock())
    everybodys = is_public(request)

    def look(found: Board, caller: Caller) -> CachedPage | dict[str, Any]:
        if not everybodys:
            return _look(found, caller, cursor, now)
        # To the minute, as "in 3 days" is; but a phase begins and ends at its second.
        row, at = found.cache_key()
        if row.visibility in _VEILED:
            # How long a reply takes must not tell that somebody asked: that changes the stamp.
            return _make(url, root, _look(found, PUBLIC, cursor, now))
        phase = found.rules_of(row).phase_at(now)
        key = (url, cursor, now // 60, phase, row, at)
        return context.pages.get(key, lambda: _make(url, root, _look(found, PUBLIC, cursor, now)))

    seen = await context.for_page(request, board, look)
    if isinstance(seen, CachedPage):
        return send(request, seen.content, lambda _: seen.packed)
    return show(request, "board.html", **_told(seen))


def _make(url: str, root: str, seen: dict[str, Any]) -> CachedPage:
    content = render("board.html", url=url, root=root, **_told(seen)).encode()
    return CachedPage(content, pack(content))


def _look(found: Board, caller: Caller, cursor: str | None, now: int) -> dict[str, Any]:
    """Return everything that goes into the page."""
    view = found.as_seen_by(caller)
    board = view.summary()
    display = found.rules.display  # another process may have amended it
    history = or_none(view.history)
    return {
        "board": board,
        "display": display,
        "gain": display.gain_text(unseen(found.book.mechanism), board["best"]["loss"]),
        "standings": or_none(lambda: view.leaderboard(cursor=cursor)),
        "history": history,
        "finals": or_none(view.finals) if board["status"] == "closed" else None,
        "later": cursor is not None,
        "role": caller.role.name.lower(),
        "team": view.team() if caller.team is not None else None,
        "now": now,
    }


def told_to_all(found: Board, cursor: str | None, now: int) -> dict[str, Any]:
    """Return what the template says to everybody."""
    return _told(_look(found, PUBLIC, cursor, now))


def _left(board: dict[str, Any], team: dict[str, Any] | None, now: int) -> str | None:
    """Return what a team has left, as its own page says it."""
    if team is None:
        return None
    window = board["window"]
    seconds = None if window is None else window["seconds"]
    return left_words(team["limits"], seconds, team["next_submission_at"], format_time(now))


def _told(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what the template says of what was seen."""
    board, now, history = seen["board"], seen["now"], seen["history"]
    display = seen["display"]
    points = history["points"] if history is not None else []
    deadline = board["deadline"]
    return {
        "board": board,
        "role": seen["role"],
        "team": seen["team"],
        "left": _left(board, seen["team"], now),
        "state": state_of(board, now),
        "over": is_over(board),
        "away": None if deadline is None else until(deadline, now),
        "closed": None if seen["finals"] is None else until(seen["finals"]["closed"], now),
        "digits": display.digits,
        "standings": standings_table(seen["standings"], display.digits),
        "finals": finals_table(seen["finals"], display, seen["team"]),
        "later": seen["later"],
        "points": points[-2 : -_TABLE - 2 : -1],
        "history": history,
        "chart": None if history is None else history_chart(history),
        "rules": rules_in_words(board),
        "meaning": meaning_in_words(board, points[-1] if points else None, seen["gain"]),
    }


class Final(NamedTuple):
    """A row of the final ranking."""

    kind: str
    rank: str
    name: str
    note: str
    value: str
    public: str
    move: str
    low: str
    high: str


def standings_table(page: dict[str, Any] | None, digits: int) -> dict[str, Any] | None:
    """Return a page of the standings, with the baselines from elsewhere where they belong."""
    if page is None:
        return None
    rows = [(each["loss"], _row(each, digits)) for each in page["rows"]]
    for each in page["declared"]:
        name = f"{each['name']} ({each['source']})" if each["source"] else each["name"]
        row = _Line("aside", "", name, "baseline", figure(each["display"], digits), None, "")
        at = (at for at, (value, _) in enumerate(rows) if value is None or value > each["loss"])
        rows.insert(next(at, len(rows)), (each["loss"], row))
    return {
        "rows": Markup("\n".join(row.written() for _, row in rows)),  # noqa: S704 - see there
        "ties": any(each["tied"] for each in page["rows"]),
        "frozen": page["as_of"] if page["frozen"] else None,
        "next": page["next"],
    }


class _Line(NamedTuple):
    """A row of the standings; ``note`` says what it is besides a team."""

    kind: str
    rank: str
    name: str
    note: str
    value: str
    since: str | None
    asked: str

    def written(self) -> str:
        """Return it as HTML. Its columns look as their places say (style.css).

        A page has many of these rows, so they are written here and not by a template; the name is
        the only text that is not ours.

        >>> print(_Line("", "1=", "<b>", "", "0.780", None, "4").written())
        <tr><td>1=<td>&lt;b&gt;<td>0.780<td><td>4
        """
        kind, rank, name, note, value, since, asked = self
        start = f'<tr class="{kind}">' if kind else "<tr>"
        badge = f' <span class="badge">{note}</span>' if note else ""
        when = f'<time datetime="{since}">{since[:10]} {since[11:16]} UTC</time>' if since else ""
        return f"{start}<td>{rank}<td>{escape(name)}{badge}<td>{value}<td>{when}<td>{asked}"


def _row(each: dict[str, Any], digits: int) -> _Line:
    rank, note = each["rank"], ""
    if each["you"] or each["baseline"]:
        note = "you" if each["you"] else "baseline"
    return _Line(
        _KINDS[note],
        "" if rank is None else f"{rank}=" if each["tied"] else f"{rank}",
        _name(each["team"]),
        note,
        figure(each["display"], digits),
        each["since"],
        f"{each['submissions']:,}",
    )


def _name(team: dict[str, Any]) -> str:
    return str(team["id"] if team["name"] is None else team["name"])


def finals_table(
    final: dict[str, Any] | None, display: DisplayRules, team: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the final ranking: the first rows, and one's own wherever it stands."""
    if final is None:
        return None
    own = None if team is None else team["id"]
    many = Counter(each["rank"] for each in final["rows"])
    rows = [
        _final(each, display, own, tied=each["rank"] is not None and many[each["rank"]] > 1)
        for each in _some(final["rows"], own)
    ]
    sure = {"sure": percent(final["beta"]), "sure_together": percent(min(2 * final["beta"], 1))}
    return {**final, **sure, "rows": rows, "all": len(final["rows"]), "shown": len(rows)}


def _some(rows: Iterable[dict[str, Any]], own: str | None) -> Iterable[dict[str, Any]]:
    return (each for at, each in enumerate(rows) if at < _MOST or each["team"]["id"] == own)


def _final(each: dict[str, Any], display: DisplayRules, own: str | None, *, tied: bool) -> Final:
    you = each["team"]["id"] == own
    return Final(
        "you" if you else "aside" if each["baseline"] else "",
        "" if each["rank"] is None else f"{each['rank']}{'=' if tied else ''}",
        _name(each["team"]),
        "you" if you else "baseline" if each["baseline"] else "",
        figure(each["display"], display.digits),
        "" if each["public_rank"] is None else str(each["public_rank"]),
        moved(each["move"]),
        *round_outwards(each["low"], each["high"], display.digits),
    )


def moved(move: int | None) -> str:
    """Return how far a team moved from its public rank to its final one.

    >>> moved(3), moved(-1), moved(0), moved(None)
    ('up 3', 'down 1', 'same', '')
    """
    if move is None:
        return ""
    return f"up {move}" if move > 0 else f"down {-move}" if move else "same"
