"""The page of all boards, and that of each."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup, escape
from starlette.responses import Response

from ladderboard._formatting import format_time, round_outwards
from ladderboard.board import PUBLIC, Board, Caller, DisplayRules
from ladderboard.holdout import smallest_visible_gain
from ladderboard.server._api import Slug
from ladderboard.server._auth import Credentials
from ladderboard.server._context import CachedPage, get_context, is_public
from ladderboard.server._pages._charts import history_chart
from ladderboard.server._pages._rendering import (
    compress_page,
    format_value,
    html_response,
    none_if_hidden,
    page_response,
    render_public_page,
    server_url,
)
from ladderboard.server._pages._reply import remaining_text
from ladderboard.server._pages._wording import (
    board_state,
    confidence_percent,
    describe_rules,
    explain_scores,
    is_over,
    relative_time,
)

router = APIRouter(include_in_schema=False)
_BOARDS_PER_PAGE = 48
_MAX_FINAL_ROWS = 100  # rows of a final ranking that a page shows
_ROW_CLASSES = {"": "", "you": "you", "baseline": "aside"}
_RECORDS_LISTED = 10  # records that are listed below the chart
_RESTRICTED = {"hidden", "frozen"}


@router.get("/")
async def boards_page(request: Request) -> Response:
    """Show all boards, as everybody sees them, a page at a time: those that are open first."""
    context = get_context(request)
    now = int(context.boards.world.clock())
    page = _page_number(request.query_params.get("page", "1"))

    def look(shown: Credentials | None) -> list[dict[str, Any]]:
        context.authenticator.resolve_or_public(request, shown, None)  # refuses a wrong token
        slugs = context.boards.list_open_first(_BOARDS_PER_PAGE + 1, _BOARDS_PER_PAGE * (page - 1))
        found = [context.boards.open(slug).as_seen_by(PUBLIC).summary() for slug in slugs]
        return [_board_card(each, now) for each in found]

    cards = await context.run_authenticated(request, look, form=True)
    later = page + 1 if len(cards) > _BOARDS_PER_PAGE else None
    cards = sorted(cards[:_BOARDS_PER_PAGE], key=lambda card: card["state"].word != "open")
    return page_response(request, "boards.html", cards=cards, page=page, later=later)


def _page_number(said: str) -> int:
    """Return a page that may be there; the first, for what is none."""
    known = said.isascii() and said.isdigit() and len(said) < 7
    return max(int(said), 1) if known else 1


def _board_card(board: dict[str, Any], now: int) -> dict[str, Any]:
    deadline = board["deadline"]
    return {
        "board": board,
        "state": board_state(board, now),
        "over": is_over(board),
        "away": None if deadline is None else relative_time(deadline, now),
    }


@router.get("/boards/{board}")
async def board_page(request: Request, board: Slug) -> Response:
    """Show a board: standings, rules, what they mean, and how to submit."""
    context, url = get_context(request), server_url(request)
    root = context.settings.prefix
    cursor = request.query_params.get("cursor") or None
    now = int(context.boards.world.clock())
    everybodys = is_public(request)

    def look(found: Board, caller: Caller) -> CachedPage | dict[str, Any]:
        if not everybodys:
            return _read_board(found, caller, cursor, now)
        # To the minute, as "in 3 days" is; but a phase begins and ends at its second.
        row, at = found.cache_key()
        if row.visibility in _RESTRICTED:
            # How long a reply takes must not tell that somebody asked: that changes the stamp.
            return _render_for_cache(url, root, _read_board(found, PUBLIC, cursor, now))
        phase = found.rules_of(row).phase_at(now)
        key = (url, cursor, now // 60, phase, row, at)
        return context.pages.get(
            key, lambda: _render_for_cache(url, root, _read_board(found, PUBLIC, cursor, now))
        )

    seen = await context.for_page(request, board, look)
    if isinstance(seen, CachedPage):
        return html_response(request, seen.content, lambda _: seen.packed)
    return page_response(request, "board.html", **_template_variables(seen))


def _render_for_cache(url: str, root: str, seen: dict[str, Any]) -> CachedPage:
    content = render_public_page(
        "board.html", url=url, root=root, **_template_variables(seen)
    ).encode()
    return CachedPage(content, compress_page(content))


def _read_board(found: Board, caller: Caller, cursor: str | None, now: int) -> dict[str, Any]:
    """Return everything that goes into the page."""
    view = found.as_seen_by(caller)
    board = view.summary()
    display = found.rules.display  # another process may have amended it
    history = none_if_hidden(view.history)
    return {
        "board": board,
        "display": display,
        "gain": display.gain_text(
            smallest_visible_gain(found.book.mechanism), board["best"]["loss"]
        ),
        "standings": none_if_hidden(lambda: view.leaderboard(cursor=cursor)),
        "history": history,
        "finals": none_if_hidden(view.finals) if board["status"] == "closed" else None,
        "later": cursor is not None,
        "role": caller.role.name.lower(),
        "team": view.team() if caller.team is not None else None,
        "now": now,
    }


def public_board_variables(found: Board, cursor: str | None, now: int) -> dict[str, Any]:
    """Return what the template says to everybody."""
    return _template_variables(_read_board(found, PUBLIC, cursor, now))


def _remaining_text(board: dict[str, Any], team: dict[str, Any] | None, now: int) -> str | None:
    """Return what a team has left, as its own page says it."""
    if team is None:
        return None
    window = board["window"]
    seconds = None if window is None else window["seconds"]
    return remaining_text(team["limits"], seconds, team["next_submission_at"], format_time(now))


def _template_variables(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what the template says of what was seen."""
    board, now, history = seen["board"], seen["now"], seen["history"]
    display = seen["display"]
    points = history["points"] if history is not None else []
    deadline = board["deadline"]
    return {
        "board": board,
        "role": seen["role"],
        "team": seen["team"],
        "left": _remaining_text(board, seen["team"], now),
        "state": board_state(board, now),
        "over": is_over(board),
        "away": None if deadline is None else relative_time(deadline, now),
        "closed": None if seen["finals"] is None else relative_time(seen["finals"]["closed"], now),
        "digits": display.digits,
        "standings": standings_table(seen["standings"], display.digits),
        "finals": finals_table(seen["finals"], display, seen["team"]),
        "later": seen["later"],
        "points": points[-2 : -_RECORDS_LISTED - 2 : -1],
        "history": history,
        "chart": None if history is None else history_chart(history),
        "rules": describe_rules(board),
        "meaning": explain_scores(board, points[-1] if points else None, seen["gain"]),
    }


class FinalRow(NamedTuple):
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
    rows = [(each["loss"], _standings_row(each, digits)) for each in page["rows"]]
    for each in page["declared"]:
        name = f"{each['name']} ({each['source']})" if each["source"] else each["name"]
        row = _StandingsRow(
            "aside", "", name, "baseline", format_value(each["display"], digits), None, ""
        )
        at = (at for at, (value, _) in enumerate(rows) if value is None or value > each["loss"])
        rows.insert(next(at, len(rows)), (each["loss"], row))
    return {
        "rows": Markup("\n".join(row.written() for _, row in rows)),  # noqa: S704 - see there
        "ties": any(each["tied"] for each in page["rows"]),
        "frozen": page["as_of"] if page["frozen"] else None,
        "next": page["next"],
    }


class _StandingsRow(NamedTuple):
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

        >>> print(_StandingsRow("", "1=", "<b>", "", "0.780", None, "4").written())
        <tr><td>1=<td>&lt;b&gt;<td>0.780<td><td>4
        """
        kind, rank, name, note, value, since, asked = self
        start = f'<tr class="{kind}">' if kind else "<tr>"
        badge = f' <span class="badge">{note}</span>' if note else ""
        when = f'<time datetime="{since}">{since[:10]} {since[11:16]} UTC</time>' if since else ""
        return f"{start}<td>{rank}<td>{escape(name)}{badge}<td>{value}<td>{when}<td>{asked}"


def _standings_row(each: dict[str, Any], digits: int) -> _StandingsRow:
    rank, note = each["rank"], ""
    if each["you"] or each["baseline"]:
        note = "you" if each["you"] else "baseline"
    return _StandingsRow(
        _ROW_CLASSES[note],
        "" if rank is None else f"{rank}=" if each["tied"] else f"{rank}",
        _team_label(each["team"]),
        note,
        format_value(each["display"], digits),
        each["since"],
        f"{each['submissions']:,}",
    )


def _team_label(team: dict[str, Any]) -> str:
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
        _final_row(each, display, own, tied=each["rank"] is not None and many[each["rank"]] > 1)
        for each in _shown_rows(final["rows"], own)
    ]
    sure = {
        "sure": confidence_percent(final["beta"]),
        "sure_together": confidence_percent(min(2 * final["beta"], 1)),
    }
    return {**final, **sure, "rows": rows, "all": len(final["rows"]), "shown": len(rows)}


def _shown_rows(rows: Iterable[dict[str, Any]], own: str | None) -> Iterable[dict[str, Any]]:
    return (
        each for at, each in enumerate(rows) if at < _MAX_FINAL_ROWS or each["team"]["id"] == own
    )


def _final_row(
    each: dict[str, Any], display: DisplayRules, own: str | None, *, tied: bool
) -> FinalRow:
    you = each["team"]["id"] == own
    return FinalRow(
        "you" if you else "aside" if each["baseline"] else "",
        "" if each["rank"] is None else f"{each['rank']}{'=' if tied else ''}",
        _team_label(each["team"]),
        "you" if you else "baseline" if each["baseline"] else "",
        format_value(each["display"], display.digits),
        "" if each["public_rank"] is None else str(each["public_rank"]),
        rank_change(each["move"]),
        *round_outwards(each["low"], each["high"], display.digits),
    )


def rank_change(move: int | None) -> str:
    """Return how far a team moved from its public rank to its final one.

    >>> rank_change(3), rank_change(-1), rank_change(0), rank_change(None)
    ('up 3', 'down 1', 'same', '')
    """
    if move is None:
        return ""
    return f"up {move}" if move > 0 else f"down {-move}" if move else "same"
