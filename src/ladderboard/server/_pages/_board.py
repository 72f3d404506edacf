"""The list of boards, and the page of one board."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from fastapi import Request
from markupsafe import Markup, escape
from starlette.responses import Response

from ladderboard._formatting import format_rank_range, format_time, round_outwards
from ladderboard.board import PUBLIC, Board, Caller
from ladderboard.server._api import Slug
from ladderboard.server._auth import is_organiser
from ladderboard.server._context import (
    CachedPage,
    ServerContext,
    get_context,
    is_public,
    open_page,
)
from ladderboard.server._pages._charts import history_chart, rank_chart
from ladderboard.server._pages._rendering import (
    compress_page,
    format_exact,
    format_value,
    html_response,
    none_if_hidden,
    page_response,
    page_router,
    render_public_page,
    server_url,
)
from ladderboard.server._pages._reply import remaining_text
from ladderboard.server._pages._wording import (
    board_state,
    confidence_percent,
    describe_prize,
    describe_rules,
    explain_scores,
    is_over,
    relative_time,
)

router = page_router()
_BOARDS_PER_PAGE = 48
_MAX_FINAL_ROWS = 100  # of a final ranking on the page; the rest is in the download
_ROW_CLASSES = {"": "", "you": "you", "baseline": "aside"}
_RECORDS_LISTED = 10  # below the chart
_RESTRICTED = {"hidden", "frozen"}


@router.get("/")
def boards_page(request: Request) -> Response:
    """Show the list of boards as the public sees them, page by page, open ones first."""
    context = get_context(request)
    now = int(context.boards.environment.clock())
    page = _page_number(request.query_params.get("page", "1"))
    caller = context.authenticator.authenticate_visitor(request, None)  # refuses a wrong token
    slugs = context.boards.list_open_first(
        _BOARDS_PER_PAGE + 1,
        _BOARDS_PER_PAGE * (page - 1),
        unlisted=_is_server_organiser(context, caller),
    )
    summaries = [context.boards.open(slug).as_seen_by(PUBLIC).summary() for slug in slugs]
    cards = [_board_card(summary, now) for summary in summaries]
    next_page = page + 1 if len(cards) > _BOARDS_PER_PAGE else None
    cards = sorted(cards[:_BOARDS_PER_PAGE], key=lambda card: card["state"].label != "open")
    return page_response(request, "boards.html", cards=cards, page=page, next_page=next_page)


def _is_server_organiser(context: ServerContext, caller: Caller) -> bool:
    """Tell whether a caller is an organiser of all boards, who sees those that are not listed."""
    if caller.credential is None or not is_organiser(caller):
        return False
    return context.boards.slug_of_token(caller.credential) is None


def _page_number(text: str) -> int:
    """Return the number of the requested page, or 1 if the text is not a page number."""
    is_number = text.isascii() and text.isdigit() and len(text) < 7
    return max(int(text), 1) if is_number else 1


def _board_card(board: dict[str, Any], now: int) -> dict[str, Any]:
    deadline = board["deadline"]
    return {
        "board": board,
        "state": board_state(board, now),
        "is_over": is_over(board),
        "time_to_deadline": None if deadline is None else relative_time(deadline, now),
    }


@router.get("/boards/{board}")
def board_page(request: Request, board: Slug) -> Response:
    """Show a board: standings, rules, what the scores mean, and how to submit."""
    context, url = get_context(request), server_url(request)
    root = context.settings.prefix
    cursor = request.query_params.get("cursor") or None
    now = int(context.boards.environment.clock())
    opened, caller = open_page(request, board)
    if not is_public(request):
        data = _read_board(opened, caller, cursor, now)
        return page_response(request, "board.html", **_template_variables(data))
    # Relative times ("in 3 days") change by the minute; phases start and end on a second.
    row, changed_at = opened.cache_key()
    key = (url, cursor, now // 60, opened.rules_of(row).phase_at(now), row, changed_at)
    # Hidden and frozen boards are not cached: the response time would tell whether somebody
    # submitted meanwhile.
    page = None if row.visibility in _RESTRICTED else context.pages.get(key)
    if page is None:
        variables = public_board_variables(opened, cursor, now)
        page = _render_public_board(url, root, variables)
        if row.visibility not in _RESTRICTED:
            context.pages.put(key, page)
    return html_response(request, page.content, lambda _: page.packed)


def _render_public_board(url: str, root: str, variables: dict[str, Any]) -> CachedPage:
    content = render_public_page("board.html", url=url, root=root, **variables).encode()
    return CachedPage(content, compress_page(content))


def _read_board(board: Board, caller: Caller, cursor: str | None, now: int) -> dict[str, Any]:
    """Return the data of the board page, as a caller may see it."""
    view = board.as_seen_by(caller)
    summary = view.summary()
    rules = board.rules  # another process may have amended them
    display = rules.display
    history = none_if_hidden(view.history)
    return {
        "board": summary,
        "display": display,
        "loss": rules.loss,
        "mechanism": board.book.mechanism,
        "gains": board.describe_gains(summary["best"]["loss"]),
        "standings": none_if_hidden(lambda: view.leaderboard(cursor=cursor)),
        "history": history,
        "finals": none_if_hidden(view.finals) if summary["status"] == "closed" else None,
        "is_later_page": cursor is not None,
        "role": caller.role.name.lower(),
        "team": view.team() if caller.team is not None else None,
        "now": now,
    }


def public_board_variables(board: Board, cursor: str | None, now: int) -> dict[str, Any]:
    """Return the template variables of the public board page."""
    return _template_variables(_read_board(board, PUBLIC, cursor, now))


def _remaining_text(board: dict[str, Any], team: dict[str, Any] | None, now: int) -> str | None:
    """Return how many submissions a team has left, in the words of its submit page."""
    if team is None:
        return None
    window = board["window"]
    seconds = None if window is None else window["seconds"]
    return remaining_text(team["limits"], seconds, team["next_submission_at"], format_time(now))


def _template_variables(data: dict[str, Any]) -> dict[str, Any]:
    """Return the template variables of the board page."""
    board, now, history = data["board"], data["now"], data["history"]
    display = data["display"]
    points = history["points"] if history is not None else []
    deadline = board["deadline"]
    standings = standings_table(data["standings"], display.digits)
    return {
        "board": board,
        "role": data["role"],
        "team": data["team"],
        "remaining": _remaining_text(board, data["team"], now),
        "state": board_state(board, now),
        "is_over": is_over(board),
        "time_to_deadline": None if deadline is None else relative_time(deadline, now),
        "closed_ago": None
        if data["finals"] is None
        else relative_time(data["finals"]["closed"], now),
        "digits": display.digits,
        "standings": standings,
        "finals": finals_table(data["finals"], data["team"]),
        "is_later_page": data["is_later_page"],
        "points": points[-2 : -_RECORDS_LISTED - 2 : -1],
        "history": history,
        "chart": None if history is None else history_chart(history),
        "rules": describe_rules(board, data["loss"], data["mechanism"]),
        "meaning": explain_scores(
            board,
            data["mechanism"],
            points[-1] if points else None,
            data["gains"],
            proven=standings is not None and standings["proven"],
        ),
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
    ranks: str
    starts_band: bool
    others: list[str]
    is_shaded: bool


def standings_table(page: dict[str, Any] | None, digits: int) -> dict[str, Any] | None:
    """Return a page of the standings, with declared baselines inserted by their score."""
    if page is None:
        return None
    by_mean = page["ranked_by"] == "mean_rank"
    rows = [(row["loss"], _standings_row(row, digits, by_mean=by_mean)) for row in page["rows"]]
    for declared in page["declared"]:
        name, loss = declared["name"], declared["loss"]
        if declared["source"]:
            name = f"{name} ({declared['source']})"
        value = format_value(declared["display"], digits)
        row = _StandingsRow("aside", "", name, "baseline", value, None, "", ())
        worse = (index for index, (other, _) in enumerate(rows) if other is None or other > loss)
        # By mean rank a number of one metric has no place among the teams.
        rows.insert(len(rows) if by_mean else next(worse, len(rows)), (loss, row))
    names = [metric["name"] for row in page["rows"][:1] for metric in row["metrics"]]
    return {
        "metrics": [*names, *(["Mean rank"] if by_mean else [])],
        "rows": Markup("\n".join(row.to_html() for _, row in rows)),  # noqa: S704 - escaped there
        "ties": any(row["tied"] for row in page["rows"]),
        "proven": any(row["proven"] for row in page["rows"]),
        "frozen": page["as_of"] if page["frozen"] else None,
        "next": page["next"],
    }


class _StandingsRow(NamedTuple):
    """A row of the standings; ``note`` is the text of its badge.

    ``proven`` marks a score that is proven better than the one before on its ladder.
    """

    kind: str
    rank: str
    name: str
    note: str
    value: str
    since: str | None
    submissions: str
    metrics: tuple[str, ...]
    proven: bool = False

    def to_html(self) -> str:
        """Return the row as HTML; style.css formats its columns by position.

        A page has many rows, so they are built here, which is faster than in a template. The name
        is the only text from users.

        >>> print(_StandingsRow("", "1=", "<b>", "", "0.780", None, "4", ("0.41",)).to_html())
        <tr><td>1=<td>&lt;b&gt;<td>0.780<td><td>4<td>0.41
        """
        kind, rank, name, note, value, since, submissions, metrics, proven = self
        start = f'<tr class="{kind}">' if kind else "<tr>"
        badge = f' <span class="badge">{note}</span>' if note else ""
        time = f'<time datetime="{since}">{since[:10]} {since[11:16]} UTC</time>' if since else ""
        mark = '<span role="img" aria-label="proven">✓</span> ' if proven else ""
        cells = (f"{escape(name)}{badge}", f"{mark}{value}", time, submissions, *metrics)
        return f"{start}<td>{rank}<td>{'<td>'.join(cells)}"


def _standings_row(row: dict[str, Any], digits: int, *, by_mean: bool) -> _StandingsRow:
    rank, note = row["rank"], ""
    if row["you"] or row["baseline"]:
        note = "you" if row["you"] else "baseline"
    return _StandingsRow(
        _ROW_CLASSES[note],
        "" if rank is None else f"{rank}=" if row["tied"] else f"{rank}",
        _team_label(row["team"]),
        note,
        format_value(row["display"], digits),
        row["since"],
        f"{row['submissions']:,}",
        (
            *(format_value(metric["display"], metric["digits"]) for metric in row["metrics"]),
            *(["" if row["mean_rank"] is None else f"{row['mean_rank']:.4g}"] if by_mean else []),
        ),
        proven=bool(row["proven"]),
    )


def _team_label(team: dict[str, Any]) -> str:
    return str(team["id"] if team["name"] is None else team["name"])


def finals_table(
    final: dict[str, Any] | None, team: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the first rows of the final ranking, and the row of the caller's own team."""
    if final is None:
        return None
    names = [metric["name"] for row in final["rows"][:1] for metric in row["metrics"]]
    names += ["Mean rank"] if final["metric"] == "mean_rank" else []
    own_id = None if team is None else team["id"]
    rank_counts = Counter(row["rank"] for row in final["rows"])
    # The first team of each band; a dict keeps the last value given for a key.
    band_leaders = {row["band"]: row["team"]["id"] for row in reversed(final["rows"])}.values()
    rows, band = [], 0
    for row in _shown_rows(final["rows"], own_id):
        band = row["band"] or band  # a baseline stands on the background of its neighbours
        rows.append(
            _final_row(
                row,
                final["display"]["digits"],
                own_id,
                tied=row["rank"] is not None and rank_counts[row["rank"]] > 1,
                starts_band=row["band"] is not None and row["team"]["id"] in band_leaders,
                is_shaded=band % 2 == 1,
            )
        )
    confidences = {
        "confidence": confidence_percent(final["beta"]),
        "joint_confidence": confidence_percent(min(2 * final["beta"], 1)),
    }
    return {
        **final,
        **confidences,
        "rows": rows,
        "others": names,
        "ranged": any(row.ranks for row in rows),
        "chart": rank_chart(final),
        "prizes": [
            (describe_prize(prize), [_team_label(winner) for winner in prize["teams"]])
            for prize in final["prizes"]
        ],
        "row_count": len(final["rows"]),
        "shown_count": len(rows),
    }


def _shown_rows(rows: Iterable[dict[str, Any]], own_id: str | None) -> Iterable[dict[str, Any]]:
    return (
        row
        for index, row in enumerate(rows)
        if index < _MAX_FINAL_ROWS or row["team"]["id"] == own_id
    )


def _final_row(
    row: dict[str, Any],
    digits: int,
    own_id: str | None,
    *,
    tied: bool,
    starts_band: bool,
    is_shaded: bool,
) -> FinalRow:
    is_own = row["team"]["id"] == own_id
    return FinalRow(
        "you" if is_own else "aside" if row["baseline"] else "",
        "" if row["rank"] is None else f"{row['rank']}{'=' if tied else ''}",
        _team_label(row["team"]),
        "you" if is_own else "baseline" if row["baseline"] else "",
        format_exact(row["display"], digits),
        "" if row["public_rank"] is None else str(row["public_rank"]),
        rank_change(row["move"]),
        *round_outwards(row["low"], row["high"], digits),
        format_rank_range(row["ranks"]),
        starts_band,
        [
            *(format_exact(metric["display"], metric["digits"]) for metric in row["metrics"]),
            *(() if row["mean_rank"] is None else (f"{row['mean_rank']:.4g}",)),
        ],
        is_shaded,
    )


def rank_change(move: int | None) -> str:
    """Return how far a team moved from its public rank to its final one.

    >>> rank_change(3), rank_change(-1), rank_change(0), rank_change(None)
    ('up 3', 'down 1', 'same', '')
    """
    if move is None:
        return ""
    return f"up {move}" if move > 0 else f"down {-move}" if move else "same"
