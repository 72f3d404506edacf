"""Routes that read: boards, standings, records, the ledger and the final ranking."""

import csv
import io
import json
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from ladderboard._formatting import round_outwards
from ladderboard.board import PUBLIC, Caller
from ladderboard.files import escape_formula
from ladderboard.server._api._models import (
    BoardList,
    BoardSummary,
    DataList,
    Finals,
    Leaderboard,
    RecordList,
)
from ladderboard.server._api._routes import API, Slug, make_router, public_route
from ladderboard.server._auth import is_organiser
from ladderboard.server._context import (
    CachedPage,
    ServerContext,
    get_context,
    make_response,
    make_tag,
    open_board,
)

_COLUMNS = (
    "rank", "team", "name", "baseline", "released", "shown", "since", "submissions", "last",
    "loss", "proven",
)  # fmt: skip
_PROVEN_WORDS = {None: "", False: "no", True: "yes"}
_FINALS = (
    "rank", "team", "name", "baseline", "score", "shown", "low", "high", "public_rank", "move",
    "loss", "best_rank", "worst_rank", "band",
)  # fmt: skip


router = make_router("boards")
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")]
_MAX_CACHED_BOARDS = 100  # of a page; each has about 4 KB
_CSV, _LINES, _PLAIN = "text/csv", "application/x-ndjson", "text/plain"
_NEXT = {"Link": {"description": 'The next page, rel="next".', "schema": {"type": "string"}}}
_TEXT = {"schema": {"type": "string"}}


_BOARDS = public_route()
_BOARDS["responses"][200]["headers"] = {**_BOARDS["responses"][200]["headers"], **_NEXT}


@router.get("/boards", response_model=BoardList, **_BOARDS)
async def list_boards(
    request: Request,
    limit: Limit = 100,
    cursor: Annotated[
        str | None, Query(max_length=300, description="The `next` of the page before.")
    ] = None,
) -> Response:
    """Return a page of all boards, oldest first."""
    context = get_context(request)
    if context.authenticator.read_credentials(request) is None:
        read = partial(_read_boards, context, PUBLIC, None, limit, cursor)
        page = await context.read_together(("boards", limit, cursor), read)
    else:
        page = await context.run_in_thread(_read_boards_as_caller, request, limit, cursor)
    headers = {}
    if page.next is not None:
        url = f"{context.settings.prefix}{API}/boards?limit={limit}&cursor={page.next}"
        headers["Link"] = f'<{url}>; rel="next"'
    return make_response(request, page.content, headers=headers, tag=page.tag)


def _read_boards_as_caller(request: Request, limit: int, cursor: str | None) -> CachedPage:
    context = get_context(request)
    caller, home = context.authenticator.authenticate_with_board(request)
    return _read_boards(context, caller, home, limit, cursor)


def _read_boards(
    context: ServerContext, caller: Caller, home: str | None, limit: int, cursor: str | None
) -> CachedPage:
    """Return a page of all boards; ``home`` is the only board that knows the caller, if any."""
    unlisted = home is None and is_organiser(caller)
    slugs = context.boards.list_page(limit + 1, cursor, unlisted=unlisted)
    summaries = context.boards.summaries(
        slugs[:limit], lambda slug: caller if home in {None, slug} else PUBLIC
    )
    next_cursor = slugs[limit - 1] if len(slugs) > limit else None
    # The bytes of a reused summary are the same object, so the key is compared quickly.
    key = (next_cursor, *(summary.encoded for summary in summaries))
    page = context.pages.get(key) if limit <= _MAX_CACHED_BOARDS else None
    if page is None:
        listed = b",".join(summary.encoded for summary in summaries)
        content = b'{"boards":[%b],"next":%b}' % (listed, json.dumps(next_cursor).encode("ascii"))
        page = CachedPage(content, tag=make_tag(content), next=next_cursor)
        if limit <= _MAX_CACHED_BOARDS and all(summary.version for summary in summaries):
            context.pages.put(key, page)
    return page


@router.get("/boards/{board}", response_model=BoardSummary, **public_route())
def get_board(request: Request, board: Slug) -> Response:
    """Return a board: its rules, its guarantees and its progress."""
    opened, caller = open_board(request, board)
    summary = opened.as_seen_by(caller).summary()
    return make_response(request, summary)


_STANDINGS = public_route(types=["application/json", _CSV])
_STANDINGS["responses"][200]["content"] = {_CSV: _TEXT}
_STANDINGS["responses"][200]["headers"] = {**_STANDINGS["responses"][200]["headers"], **_NEXT}


@router.get("/boards/{board}/leaderboard", response_model=Leaderboard, **_STANDINGS)
def leaderboard(
    request: Request,
    board: Slug,
    limit: Limit = 100,
    cursor: Annotated[
        str | None, Query(max_length=300, description="The `next` of the page before.")
    ] = None,
    file_format: Annotated[
        str | None,
        Query(alias="format", pattern="^(json|csv)$", description="json or csv, before Accept."),
    ] = None,
) -> Response:
    """Return a page of the leaderboard, as JSON or as CSV."""
    opened, caller = open_board(request, board)
    page = opened.as_seen_by(caller).leaderboard(limit=limit, cursor=cursor)
    headers = {}
    if page["next"] is not None:
        prefix = get_context(request).settings.prefix
        url = f"{prefix}{API}/boards/{board}/leaderboard?limit={limit}&cursor={page['next']}"
        url += "" if file_format is None else f"&format={file_format}"
        headers["Link"] = f'<{url}>; rel="next"'
    if file_format == "csv" or (file_format is None and _prefers_csv(request)):
        return make_response(request, standings_csv(page), media_type=_CSV, headers=headers)
    return make_response(request, page, headers=headers)


def _prefers_csv(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return _CSV in accept and "application/json" not in accept


@router.get("/boards/{board}/data", response_model=DataList, **public_route())
def list_data(request: Request, board: Slug) -> Response:
    """Return the list of data files; the Data page has the files themselves."""
    opened, caller = open_board(request, board)
    return make_response(request, opened.data.summary(caller))


@router.get("/boards/{board}/records", response_model=RecordList, **public_route())
def records(request: Request, board: Slug) -> Response:
    """Return the records: every release that was a new best of the whole board."""
    opened, caller = open_board(request, board)
    entries = opened.as_seen_by(caller).records()
    return make_response(request, {"records": entries})


_LEDGER = public_route(types=[_LINES, _PLAIN])
_LEDGER["responses"][200] |= {
    "description": "The entries: the bytes that were hashed, each followed by a line feed.",
    "content": {_LINES: _TEXT, _PLAIN: _TEXT},
    "headers": {
        **_LEDGER["responses"][200]["headers"],
        "Ledger-Entries": {
            "description": "The number of visible entries.",
            "schema": {"type": "integer"},
        },
        "Ledger-Head": {
            "description": "The hash of the last visible entry.",
            "schema": {"type": "string"},
        },
    },
}


@router.get("/boards/{board}/ledger", response_class=Response, **_LEDGER)
def ledger(
    request: Request,
    board: Slug,
    first: Annotated[int, Query(ge=0, le=2**53, description="The first entry to return.")] = 0,
    limit: Limit = 100,
) -> Response:
    """Return entries of the ledger, one per line."""
    opened, caller = open_board(request, board)
    view = opened.as_seen_by(caller)
    # First: entries may be added meanwhile, and none may lie beyond the head.
    entries, head = view.head()
    count = min(limit, max(entries - first, 0))
    lines = view.ledger(first=first, limit=count) if count else []
    accept = request.headers.get("accept", "")
    return make_response(
        request,
        b"".join(line + b"\n" for line in lines),
        media_type=_PLAIN if _PLAIN in accept and _LINES not in accept else _LINES,
        headers={"Ledger-Entries": str(entries), "Ledger-Head": head},
    )


@router.get("/boards/{board}/finals", response_model=Finals, **public_route())
def finals(request: Request, board: Slug) -> Response:
    """Return the final ranking of a closed board."""
    opened, caller = open_board(request, board)
    ranking = opened.as_seen_by(caller).finals()
    return make_response(request, ranking)


def standings_csv(page: dict[str, Any], *, header: bool = True) -> bytes:
    """Return a page of the standings as CSV."""
    by_mean = page["ranked_by"] == "mean_rank"
    rows = [
        (*_team_columns(row), row["released"], row["display"], row["since"], row["submissions"],
         row["last"], row["loss"], _PROVEN_WORDS[row["proven"]],
         *(metric["released"] for metric in row["metrics"]),
         *([row["mean_rank"]] if by_mean else []))
        for row in page["rows"]
    ]  # fmt: skip
    names = [metric["name"] for row in page["rows"][:1] for metric in row["metrics"]]
    names += ["mean_rank"] if by_mean else []
    return _to_csv([(*_COLUMNS, *map(escape_formula, names)), *rows] if header else rows)


def finals_csv(ranking: dict[str, Any]) -> bytes:
    """Return the final ranking as CSV; the ends of intervals are rounded outwards, as shown."""
    digits = ranking["display"]["digits"]
    rows = [
        (*_team_columns(row), row["score"], row["display"],
         *round_outwards(row["low"], row["high"], digits),
         row["public_rank"], row["move"], row["loss"], *(row["ranks"] or (None, None)),
         row["band"], *(metric["score"] for metric in row["metrics"]))
        for row in ranking["rows"]
    ]  # fmt: skip
    names = [metric["name"] for row in ranking["rows"][:1] for metric in row["metrics"]]
    return _to_csv([(*_FINALS, *map(escape_formula, names)), *rows])


def _team_columns(row: dict[str, Any]) -> tuple[Any, ...]:
    team = row["team"]
    baseline = "yes" if row["baseline"] else "no"
    return row["rank"], team["id"], escape_formula(team["name"]), baseline


def _to_csv(rows: Iterable[tuple[Any, ...]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode()
