"""The list of boards, and the pages of one board that only read: its tabs."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fastapi import Request
from markupsafe import Markup, escape
from starlette.responses import Response

from ladderboard._formatting import (
    format_confidence,
    format_fixed,
    format_interval,
    format_rank,
    format_rank_range,
    format_time,
    parse_number,
    shared_decimals,
)
from ladderboard.board import (
    PUBLIC,
    Board,
    CachedSummary,
    Caller,
    DisplayRules,
    View,
    has_useful_intervals,
)
from ladderboard.server._api import Slug
from ladderboard.server._auth import is_organiser
from ladderboard.server._context import (
    CachedPage,
    ServerContext,
    get_context,
    is_public,
    open_page,
)
from ladderboard.server._pages._charts import (
    coord,
    history_chart,
    mark_wide_bounds,
    rank_chart,
)
from ladderboard.server._pages._rendering import (
    compress_page,
    format_value,
    html_response,
    none_if_hidden,
    page_response,
    page_router,
    redirect,
    render_public_page,
    server_url,
)
from ladderboard.server._pages._reply import remaining_text
from ladderboard.server._pages._wording import (
    board_state,
    describe_prize,
    describe_rules,
    explain_scores,
    has_guarantee,
    is_over,
    relative_element,
    relative_time,
    summarize_scores,
    time_element,
)

router = page_router()
_BOARDS_PER_PAGE = 48
_ROWS_PER_PAGE = 25  # of the standings and of the final ranking: two screens
_ROWS_ON_OVERVIEW = 5
_ROWS_WITHOUT_PIN = 5  # readers see their own row among the first ones
_MEDALS = {1, 2, 3}
_SIGMAS = 1.96  # on both sides of a score: 95%
_ROW_CLASSES = {"": "", "you": "you", "baseline": "aside"}
_RECORDS_LISTED = 10  # below the chart
_RESTRICTED = {"hidden", "frozen"}


@router.get("/")
async def boards_page(request: Request) -> Response:
    """Show the list of boards as the public sees them, page by page, open ones first."""
    context, url = get_context(request), server_url(request)
    page = _page_number(request.query_params.get("page", "1"))
    if context.authenticator.read_credentials(request) is not None:
        return await context.run_in_thread(_boards_page_of_caller, request, page)
    read = partial(_render_boards, context, url, page)
    listed = await context.read_together(("boards page", url, page), read)
    return html_response(request, listed.content, lambda _: listed.packed)


def _boards_page_of_caller(request: Request, page: int) -> Response:
    context = get_context(request)
    now = int(context.boards.environment.clock())
    caller = context.authenticator.authenticate_visitor(request, None)  # refuses a wrong token
    organises = _is_server_organiser(context, caller)
    summaries = _summaries_on_page(context, page, unlisted=organises)
    variables = {**_list_variables(summaries, page, now), "organises": organises}
    return page_response(request, "boards.html", **variables)


def _render_boards(context: ServerContext, url: str, page: int) -> CachedPage:
    """Return the list of boards for visitors who are not signed in."""
    now, root = int(context.boards.environment.clock()), context.settings.prefix
    summaries = _summaries_on_page(context, page, unlisted=False)
    # Relative times change by the minute.
    key = (url, page, now // 60, *(summary.encoded for summary in summaries))
    listed = context.pages.get(key)
    if listed is None:
        variables = _list_variables(summaries, page, now)
        content = render_public_page("boards.html", url=url, root=root, **variables).encode()
        listed = CachedPage(content, compress_page(content))
        if all(summary.version for summary in summaries):
            context.pages.put(key, listed)
    return listed


def _summaries_on_page(
    context: ServerContext, page: int, *, unlisted: bool
) -> tuple[CachedSummary, ...]:
    """Return the summaries of the boards on a page, and of the next board if there is one."""
    slugs = context.boards.list_open_first(
        _BOARDS_PER_PAGE + 1, _BOARDS_PER_PAGE * (page - 1), unlisted=unlisted
    )
    return context.boards.summaries(slugs, lambda _: PUBLIC)


def _list_variables(summaries: Sequence[CachedSummary], page: int, now: int) -> dict[str, Any]:
    cards = [_board_card(summary.fields(), now) for summary in summaries]
    return {
        "cards": sorted(cards[:_BOARDS_PER_PAGE], key=lambda card: card["state"].label != "open"),
        "page": page,
        "next_page": page + 1 if len(cards) > _BOARDS_PER_PAGE else None,
    }


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
    deadline, state = board["deadline"], board_state(board, now)
    return {
        "board": board,
        "state": state,
        "time_to_opening": None if state.opens is None else relative_time(state.opens, now),
        "is_over": is_over(board),
        "time_to_deadline": None if deadline is None else relative_time(deadline, now),
    }


@router.get("/boards/{board}")
def board_page(request: Request, board: Slug) -> Response:
    """Show the overview of a board; an old link to a page of the standings is sent on."""
    if request.query_params.get("cursor"):
        return redirect(request, f"/boards/{board}/leaderboard?{request.url.query}")
    return _show_tab(request, board, "overview")


@router.get("/boards/{board}/leaderboard")
def leaderboard_page(request: Request, board: Slug) -> Response:
    """Show the leaderboard, page by page; of a closed board the final ranking."""
    return _show_tab(request, board, "leaderboard")


@router.get("/boards/{board}/rules")
def rules_page(request: Request, board: Slug) -> Response:
    """Show the rules, and what the scores mean."""
    return _show_tab(request, board, "rules")


@router.get("/boards/{board}/verify")
def verify_page(request: Request, board: Slug) -> Response:
    """Show what can be downloaded, and how to check it."""
    return _show_tab(request, board, "verify")


def _show_tab(request: Request, slug: str, tab: str) -> Response:
    """Return one of the pages that only read; the public ones are cached."""
    context, url = get_context(request), server_url(request)
    root = context.settings.prefix
    query = request.query_params
    place = TabPlace(
        query.get("cursor") or None, _page_number(query.get("page", "1")), query.get("view") or ""
    )
    now = int(context.boards.environment.clock())
    opened, caller = open_page(request, slug)
    if not is_public(request):
        variables = tab_variables(opened, caller, tab, place, now)
        return page_response(request, f"{tab}.html", **variables)
    # Relative times ("in 3 days") change by the minute; phases start and end on a second.
    row, changed_at = opened.cache_key()
    key = (tab, url, place, now // 60, opened.rules_of(row).phase_at(now), row, changed_at)
    # Hidden and frozen boards are not cached: the response time would tell whether somebody
    # submitted meanwhile.
    page = None if row.visibility in _RESTRICTED else context.pages.get(key)
    if page is None:
        variables = tab_variables(opened, PUBLIC, tab, place, now)
        page = _render_public_tab(f"{tab}.html", url, root, variables)
        if row.visibility not in _RESTRICTED:
            context.pages.put(key, page)
    return html_response(request, page.content, lambda _: page.packed)


def _render_public_tab(template: str, url: str, root: str, variables: dict[str, Any]) -> CachedPage:
    content = render_public_page(template, url=url, root=root, **variables).encode()
    return CachedPage(content, compress_page(content))


class TabPlace(NamedTuple):
    """Where in a tab a reader is: a page of the standings or of the final ranking.

    ``view`` is "public" for the public standings of a closed board; ``archived`` pages say when
    something was, not how long ago.
    """

    cursor: str | None = None
    page: int = 1
    view: str = ""
    archived: bool = False


def tab_variables(
    board: Board, caller: Caller, tab: str, place: TabPlace, now: int
) -> dict[str, Any]:
    """Return the template variables of a tab, as a caller may see it."""
    view = board.as_seen_by(caller)
    summary = view.summary()
    tab_data = _TABS[tab](_TabReader(board, view, caller, summary, place, now))
    return {
        "board": summary,
        "role": caller.role.name.lower(),
        "state": board_state(summary, now),
        "over": is_over(summary),
        "digits": summary["display"]["digits"],
        "now": now,
        **tab_data,
    }


class _TabReader(NamedTuple):
    """What a tab is made from."""

    board: Board
    view: View
    caller: Caller
    summary: dict[str, Any]
    place: TabPlace
    now: int

    @property
    def team(self) -> dict[str, Any] | None:
        """The caller's own team, if any."""
        return None if self.caller.team is None else self.view.team()

    @property
    def finals(self) -> dict[str, Any] | None:
        """The final ranking of a closed board, unless it is hidden."""
        is_closed = self.summary["status"] == "closed"
        return none_if_hidden(self.view.finals) if is_closed else None

    def history(self) -> dict[str, Any] | None:
        """Return the best over time, None if it is hidden; wide bounds count as vacuous."""
        history = none_if_hidden(self.view.history)
        if history is None:
            return None
        return mark_wide_bounds(history, self.board.rules.display)

    @property
    def is_guaranteed(self) -> bool:
        """Whether the board now says how far its best score may be off."""
        history, summary = self.history(), self.summary
        if history is None or not history["points"] or summary["bound"] is None:
            return False
        point = history["points"][-1]
        return has_guarantee(summary, self.board.rules.display, point)

    def has_useful_intervals(self, final: dict[str, Any]) -> bool:
        """Return whether to show the intervals of the final ranking."""
        return has_useful_intervals(final, self.board.rules)

    @property
    def own_row(self) -> dict[str, Any] | None:
        """The row of the caller's team in the standings, if it may be seen."""
        return none_if_hidden(self.view.own_standing)

    def standings(self, rows: int, own_row: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return a page of the standings, with the caller's row; None if they are hidden."""
        page = none_if_hidden(lambda: self.view.leaderboard(limit=rows, cursor=self.place.cursor))
        if page is None:
            return None
        now = None if self.place.archived or page["frozen"] else self.now
        page = {**page, "declared": self._declared_on(page)}
        return standings_table(page, own_row, self.scale(page, own_row), now=now)

    def _declared_on(self, page: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the declared baselines whose place is on this page of the standings."""
        declared = [line for line in self.summary["baselines"] if "file" not in line]
        if not declared:
            return []
        if page["ranked_by"] == "mean_rank":  # one metric gives them no place: they come last
            return declared if page["next"] is None else []
        first, end = -math.inf, math.inf
        if self.place.cursor and page["rows"]:
            first = _loss_or_worst(page["rows"][0])
        if page["next"] is not None:
            following = self.view.leaderboard(limit=1, cursor=page["next"])["rows"]
            end = _loss_or_worst(following[0]) if following else end
        return [line for line in declared if first <= line["loss"] < end]

    def scale(self, page: dict[str, Any], own_row: dict[str, Any] | None) -> "_ScoreScale":
        """Return the scale on which a page shows scores with their intervals."""
        first = self.view.leaderboard(limit=1)["rows"] if self.place.cursor else page["rows"][:1]
        rows = [*page["rows"], *first, *([] if own_row is None else [own_row])]
        losses = {row["team"]["id"]: row["loss"] for row in rows if row["loss"] is not None}
        errors = self.view.score_errors(losses)
        scores = [(loss, errors[team]) for team, loss in losses.items()]
        return _ScoreScale(self.board.rules.display, errors, scores)


def _loss_or_worst(row: Mapping[str, Any]) -> float:
    """Return the loss of a row; teams without one come last."""
    return math.inf if row["loss"] is None else row["loss"]


def _read_overview(reader: _TabReader) -> dict[str, Any]:
    summary = reader.summary
    history, finals, team = reader.history(), reader.finals, reader.team
    own_row = reader.own_row
    standings = reader.standings(_ROWS_ON_OVERVIEW, own_row)
    frozen = standings is not None and standings["frozen"] is not None
    ends = "at the close" if finals is not None else "at the freeze" if frozen else "now"
    ranking = (
        None
        if finals is None
        else finals_table(
            finals, team, rows=_ROWS_ON_OVERVIEW, intervals=reader.has_useful_intervals(finals)
        )
    )
    own_rows = [] if ranking is None else [*ranking["pinned"], *ranking["rows"]]
    return {
        "team": team,
        "own_rank": "" if own_row is None else format_rank(own_row["rank"], tied=own_row["tied"]),
        "remaining": _remaining_text(summary, team, reader.now),
        "standings": standings,
        "top": None if standings is None else standings["entries"],
        "finals": ranking,
        "own_final": next((row for row in own_rows if row.kind == "you"), None),
        "history": history,
        "frozen": standings["frozen"] if frozen and standings is not None else None,
        "chart": None
        if history is None
        else history_chart(history, summary["baselines"], ends, public=finals is not None),
        "meaning": summarize_scores(
            summary,
            reader.board.book.mechanism,
            private=None if finals is None else finals["n"],
            ranked=reader.board.epoch_of(reader.board.row()).ranked,
        ),
    }


def _read_leaderboard(reader: _TabReader) -> dict[str, Any]:
    finals, place = reader.finals, reader.place
    shown = finals if place.view != "public" else None
    return {
        "standings": None
        if shown is not None
        else reader.standings(_ROWS_PER_PAGE, reader.own_row),
        "finals": None
        if shown is None
        else finals_table(
            shown, reader.team, place.page, intervals=reader.has_useful_intervals(shown)
        ),
        "has_finals": finals is not None,
        "altered_how": reader.board.book.mechanism.altered_how,
        "guaranteed": shown is None and reader.is_guaranteed,
        "place": place,
    }


def _read_rules(reader: _TabReader) -> dict[str, Any]:
    board, summary = reader.board, reader.summary
    rules, mechanism = board.rules, board.book.mechanism  # another process may have amended them
    history = reader.history()
    points = history["points"] if history is not None else []
    proven = history is not None and any(
        row["proven"] for row in reader.view.leaderboard(limit=_ROWS_PER_PAGE)["rows"]
    )
    gains = board.describe_gains(summary["best"]["loss"])
    return {
        "rules": describe_rules(
            summary,
            rules.loss,
            mechanism,
            rules.columns,
            ranked=board.epoch_of(board.row()).ranked,
        ),
        "meaning": explain_scores(
            summary,
            mechanism,
            rules.display,
            points[-1] if points else None,
            gains,
            proven=proven,
        ),
    }


def _read_verify(reader: _TabReader) -> dict[str, Any]:
    history, name = reader.history(), f"{reader.board.slug}.bundle"
    data = reader.board.data.summary(reader.caller)
    offered = any(file["name"] == name and file["url"] is None for file in data["files"])
    return {
        "bundle": name if offered and data["allowed"] else None,
        "standings_hidden": history is None,
        "finals": reader.finals is not None,
        "history": history,
        "points": [] if history is None else history["points"][-2 : -_RECORDS_LISTED - 2 : -1],
    }


_TABS: dict[str, Callable[[_TabReader], dict[str, Any]]] = {
    "overview": _read_overview,
    "leaderboard": _read_leaderboard,
    "rules": _read_rules,
    "verify": _read_verify,
}


def public_tab_variables(board: Board, tab: str, place: TabPlace, now: int) -> dict[str, Any]:
    """Return the template variables of a public tab, for an archive."""
    return tab_variables(board, PUBLIC, tab, place._replace(archived=True), now)


def _remaining_text(board: dict[str, Any], team: dict[str, Any] | None, now: int) -> str | None:
    """Return how many submissions a team has left, in the words of its submit page."""
    if team is None:
        return None
    window = board["window"]
    seconds = None if window is None else window["seconds"]
    return remaining_text(team["limits"], seconds, team["next_submission_at"], format_time(now))


class _ScoreScale(NamedTuple):
    """How scores and their errors are drawn: beside each score, all on one scale.

    ``errors`` are the teams' standard errors by their ids: of the sample, and of the board's noise
    and rounding. ``scores`` are the losses with them;
    ``decimals`` are those of all scores in the column.
    """

    display: DisplayRules
    errors: dict[str, float]
    scores: list[tuple[float, float]]
    decimals: int = 0

    def format(self, value: float | None) -> str:
        """Return a score with as many decimals as the others in its column."""
        return "none yet" if value is None else format_fixed(value, self.decimals)

    def interval(self, loss: float, error: float) -> tuple[float, float]:
        """Return the ends of a score's 95% interval in the metric, the lower number first."""
        margin = _SIGMAS * error
        ends = (max(loss - margin, 0.0), min(loss + margin, 1.0))
        low, high = sorted(map(self.display.metric_value, ends))
        return low, high

    def is_level(self, loss: float, error: float = 0.0) -> bool:
        """Tell whether a score and the best one differ by no more than chance may do."""
        if not self.scores:
            return False
        best, error_of_best = min(self.scores)
        return abs(loss - best) <= _SIGMAS * math.hypot(error, error_of_best)

    @property
    def ends(self) -> tuple[str, str] | None:
        """The ends of the scale, as they are printed; None without scores."""
        return _scale_ends([self.interval(*score) for score in self.scores], self.display.digits)


def _scale_ends(intervals: Iterable[tuple[float, float]], digits: int) -> tuple[str, str] | None:
    """Return round numbers around all intervals, between which they are drawn.

    >>> _scale_ends([(0.7123, 0.7645), (0.75, 0.8231)], 4)
    ('0.71', '0.83')
    """
    ends = [end for interval in intervals for end in interval if math.isfinite(end)]
    return format_interval(min(ends), max(ends), digits) if ends else None


class FinalRow(NamedTuple):
    """A row of the final ranking; ``rank``, ``bar`` and ``move`` are HTML."""

    kind: str
    rank: Markup
    name: str
    note: str
    value: str
    bar: Markup
    public: str
    move: Markup
    ranks: str
    starts_band: bool
    others: list[str]
    is_shaded: bool


def standings_table(
    page: dict[str, Any], own_row: dict[str, Any] | None, scale: _ScoreScale, *, now: int | None
) -> dict[str, Any]:
    """Return a page of the standings, with declared baselines inserted by their score.

    ``own_row`` is that of the reader's team: it is pinned above unless it is near the top anyway.
    """
    numbers = [row["display"] for row in (*page["rows"], *page["declared"])]
    scale = scale._replace(
        decimals=shared_decimals(
            [number for number in numbers if number is not None], scale.display.digits
        )
    )
    ends = scale.ends
    by_mean = page["ranked_by"] == "mean_rank"
    level = [
        row
        for row in page["rows"]
        if row["rank"] and scale.is_level(row["loss"], scale.errors[row["team"]["id"]])
    ]
    # A score in one metric does not decide which teams can be told apart by their mean rank, and
    # the first team alone is no band.
    if by_mean or (len(level) == 1 and level[0]["rank"] == 1):
        level = []
    write = partial(
        _standings_row, scale=scale, ends=ends, now=now, by_mean=by_mean, shades=bool(level)
    )
    rows = [(row["loss"], write(row)) for row in page["rows"]]
    for declared in page["declared"]:
        name, loss = declared["name"], declared["loss"]
        if declared["source"]:
            name = f"{name} ({declared['source']})"
        value = scale.format(declared["display"])
        kind = "aside shaded" if level and scale.is_level(loss) else "aside"
        row = _StandingsRow(kind, "", name, "baseline", value, "", "", "", ())
        worse = (index for index, (other, _) in enumerate(rows) if other is None or other > loss)
        # By mean rank a number of one metric has no place among the teams.
        rows.insert(len(rows) if by_mean else next(worse, len(rows)), (loss, row))
    pinned = ""
    if own_row is not None and not any(row["you"] for row in page["rows"][:_ROWS_WITHOUT_PIN]):
        pinned = write(own_row)._replace(kind="you pinned").to_html()
    html = "\n".join([*([pinned] if pinned else []), *(row.to_html() for _, row in rows)])
    entries = [row._replace(rank=Markup(row.rank)) for _, row in rows]  # noqa: S704 - a number
    names = [metric["name"] for row in page["rows"][:1] for metric in row["metrics"]]
    return {
        "metrics": [*names, *(["Mean rank"] if by_mean else [])],
        "rows": Markup(html),  # noqa: S704 - escaped there
        "entries": entries,
        "scale": ends,
        "ties": any(row["tied"] for row in page["rows"]),
        "proven": any(row["proven"] for row in page["rows"]),
        "level": len(level),
        "level_goes_on": bool(level) and page["next"] is not None and level[-1] == page["rows"][-1],
        "frozen": page["as_of"] if page["frozen"] else None,
        "next": page["next"],
    }


def rank_html(rank: int | None, *, tied: bool) -> str:
    """Return a rank; the first three have medals.

    >>> rank_html(2, tied=False), rank_html(4, tied=True)
    ('<span class="medal medal-2">2</span>', '=4')
    """
    text = format_rank(rank, tied=tied)
    return f'<span class="medal medal-{rank}">{text}</span>' if rank in _MEDALS else text


def interval_html(
    value: float, interval: tuple[float, float], ends: tuple[str, str], digits: int
) -> str:
    """Return a thin bar for an interval with a dot at the score, on a scale between two ends.

    >>> print(interval_html(0.8, (0.7, 0.9), ("0.5", "1.0"), 4))
    <span title="0.70 to 0.90"><svg class="interval" viewBox="0 0 160 14" aria-hidden="true"><line
    x1="64" x2="128" y1="7" y2="7"/><circle cx="96" cy="7" r="3.5"/></svg><span
    class="visually-hidden">0.70 to 0.90</span></span>
    """
    text = " to ".join(format_interval(*interval, digits))
    first, last = map(parse_number, ends)
    width = last - first or 1.0
    low, middle, high = (
        coord(160 * min(max((end - first) / width, 0.0), 1.0))
        for end in (interval[0], value, interval[1])
    )
    return (
        f'<span title="{text}"><svg class="interval" viewBox="0 0 160 14" aria-hidden="true">'
        f'<line x1="{low}" x2="{high}" y1="7" y2="7"/><circle cx="{middle}" cy="7" r="3.5"/></svg>'
        f'<span class="visually-hidden">{text}</span></span>'
    )


class _StandingsRow(NamedTuple):
    """A row of the standings; ``note`` is the text of its badge.

    ``rank``, ``bar`` and ``since`` are HTML. ``proven`` marks a score that is proven better than
    the one before on its ladder.
    """

    kind: str
    rank: str
    name: str
    note: str
    value: str
    bar: str
    submissions: str
    since: str
    metrics: tuple[str, ...]
    proven: bool = False

    def to_html(self) -> str:
        """Return the row as HTML; style.css formats its columns by position.

        A page has many rows, so they are built here, which is faster than in a template. The name
        is the only text from users.

        >>> print(_StandingsRow("", "=1", "<b>", "", "0.780", "", "4", "", ("0.41",)).to_html())
        <tr><td>=1<td>&lt;b&gt;<td>0.780<td><td>4<td><td>0.41
        """
        kind, rank, name, note, value, bar, submissions, since, metrics, proven = self
        start = f'<tr class="{kind}">' if kind else "<tr>"
        badge = f' <span class="badge">{note}</span>' if note else ""
        mark = '<span role="img" aria-label="proven">✓</span> ' if proven else ""
        cells = (f"{escape(name)}{badge}", f"{mark}{value}", bar, submissions, since, *metrics)
        return f"{start}<td>{rank}<td>{'<td>'.join(cells)}"


def _standings_row(
    row: dict[str, Any],
    *,
    scale: _ScoreScale,
    ends: tuple[str, str] | None,
    now: int | None,
    by_mean: bool,
    shades: bool,
) -> _StandingsRow:
    note = "you" if row["you"] else "baseline" if row["baseline"] else ""
    loss, display = row["loss"], scale.display
    kind, bar = _ROW_CLASSES[note], ""
    if loss is not None and ends is not None:
        error = scale.errors[row["team"]["id"]]
        if shades and scale.is_level(loss, error):
            kind = f"{kind} shaded".strip()
        interval = scale.interval(loss, error)
        bar = interval_html(display.metric_value(loss), interval, ends, display.digits)
    return _StandingsRow(
        kind,
        rank_html(row["rank"], tied=row["tied"]),
        _team_label(row["team"]),
        note,
        scale.format(row["display"]),
        bar,
        f"{row['submissions']:,}",
        _since_html(row["since"], now),
        (
            *(format_value(metric["display"], metric["digits"]) for metric in row["metrics"]),
            *(["" if row["mean_rank"] is None else f"{row['mean_rank']:.4g}"] if by_mean else []),
        ),
        proven=bool(row["proven"]),
    )


def _since_html(since: str | None, now: int | None) -> str:
    if since is None:
        return ""
    return str(time_element(since) if now is None else relative_element(since, now))


def _team_label(team: dict[str, Any]) -> str:
    return str(team["id"] if team["name"] is None else team["name"])


def finals_table(
    final: dict[str, Any],
    team: dict[str, Any] | None,
    page: int = 1,
    rows: int = _ROWS_PER_PAGE,
    *,
    intervals: bool = True,
) -> dict[str, Any]:
    """Return a page of the final ranking; the row of the reader's team is on every page."""
    names = [metric["name"] for row in final["rows"][:1] for metric in row["metrics"]]
    names += ["Mean rank"] if final["metric"] == "mean_rank" else []
    all_rows = final["rows"]
    first = min((page - 1) * rows, max(len(all_rows) - 1, 0) // rows * rows)
    shown = all_rows[first : first + rows]
    own_id = None if team is None else team["id"]
    pinned = [row for row in all_rows if row["team"]["id"] == own_id and row not in shown]
    writer = _FinalRowWriter(final, own_id)
    return {
        **final,
        "confidence": format_confidence(final["beta"]),
        "pinned": [writer.write(row) for row in pinned],
        "rows": [writer.write(row) for row in shown],
        "others": names,
        "intervals": intervals,
        "scale": writer.ends,
        "ranged": any(row["ranks"] is not None for row in all_rows),
        "bands": len({row["band"] for row in shown} - {None}),
        "chart": rank_chart(final) if first == 0 else None,
        "prizes": [
            (describe_prize(prize), [_team_label(winner) for winner in prize["teams"]])
            for prize in final["prizes"]
        ],
        "row_count": len(all_rows),
        "page": first // rows + 1,
        "pages": -(-len(all_rows) // rows) or 1,
    }


class _FinalRowWriter:
    """Writes rows of a final ranking: with ties, bands, and intervals on one scale."""

    def __init__(self, final: dict[str, Any], own_id: str | None) -> None:
        rows = final["rows"]
        self._digits, self._own_id = final["display"]["digits"], own_id
        # As on the other pages: columns have the digits that they need together.
        self._decimals = shared_decimals((row["display"] for row in rows), self._digits)
        self._other_decimals = [
            shared_decimals((metric["display"] for metric in column), column[0]["digits"])
            for column in zip(*(row["metrics"] for row in rows), strict=True)
        ]
        self._rank_counts = Counter(row["rank"] for row in rows)
        # The first team of each band; a dict keeps the last value given for a key.
        self._band_leaders = {row["band"]: row["team"]["id"] for row in reversed(rows)}
        self.ends = _scale_ends([(row["low"], row["high"]) for row in rows], self._digits)

    def write(self, row: dict[str, Any]) -> FinalRow:
        """Return the texts of a row."""
        rank, digits, team_id = row["rank"], self._digits, row["team"]["id"]
        is_own, bar = team_id == self._own_id, ""
        if self.ends is not None:
            bar = interval_html(row["display"], (row["low"], row["high"]), self.ends, digits)
        note = "you" if is_own else "baseline" if row["baseline"] else ""
        tied = rank is not None and self._rank_counts[rank] > 1
        return FinalRow(
            _ROW_CLASSES[note],
            Markup(rank_html(rank, tied=tied)),  # noqa: S704 - a number
            _team_label(row["team"]),
            note,
            format_fixed(row["display"], self._decimals),
            Markup(bar),  # noqa: S704 - numbers
            "" if row["public_rank"] is None else str(row["public_rank"]),
            rank_change(row["move"]),
            format_rank_range(row["ranks"]),
            row["band"] is not None and team_id == self._band_leaders[row["band"]],
            [
                *(
                    format_fixed(metric["display"], decimals)
                    for metric, decimals in zip(row["metrics"], self._other_decimals, strict=True)
                ),
                *(() if row["mean_rank"] is None else (f"{row['mean_rank']:.4g}",)),
            ],
            row["band"] is not None and row["band"] % 2 == 1,
        )


def rank_change(move: int | None) -> Markup:
    """Return how far a team moved from its public rank to its final one.

    >>> rank_change(3).striptags(), rank_change(-1).striptags(), rank_change(0), rank_change(None)
    ('▲ up 3', '▼ down 1', Markup('same'), Markup(''))
    """
    if not move:
        return escape("" if move is None else "same")
    arrow, way = ("▲", "up") if move > 0 else ("▼", "down")
    return Markup('<span class="{}"><span aria-hidden="true">{}</span> {} {}</span>').format(
        way, arrow, way, abs(move)
    )
