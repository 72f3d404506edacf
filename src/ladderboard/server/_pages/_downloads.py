"""Downloads: the Data page, all standings, a feed of records, and the whole ledger."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Annotated, Any, BinaryIO
from uuid import UUID, uuid5

from fastapi import Path, Request
from starlette.responses import Response, StreamingResponse

from ladderboard.board import DataFileRow
from ladderboard.errors import InvalidState, NotAllowed, NotFound
from ladderboard.server._api import Slug, SubmissionId, finals_csv, standings_csv
from ladderboard.server._context import PRIVATE as PRIVATE_ROUTE
from ladderboard.server._context import get_context, is_public, make_response, open_board, open_page
from ladderboard.server._middleware import OWN_BODY_LIMIT
from ladderboard.server._pages._charts import tag
from ladderboard.server._pages._rendering import (
    PRIVATE,
    format_value,
    page_response,
    page_router,
    server_url,
)

router = page_router()
_ENTRIES_PER_READ = 1000  # ledger entries
_FEED_ENTRIES = 100  # the newest records
StandingsPages = Iterator[dict[str, Any]]


@router.get("/boards/{board}/standings.csv")
def download_standings_csv(request: Request, board: Slug) -> Response:
    """Return all standings as CSV."""
    return _download_standings(request, board, all_standings_csv, "text/csv")


@router.get("/boards/{board}/standings.json")
def download_standings_json(request: Request, board: Slug) -> Response:
    """Return all standings as JSON, in the format of the API."""
    return _download_standings(request, board, all_standings_json, "application/json")


def _download_standings(
    request: Request, slug: str, write: Callable[[StandingsPages], bytes], media_type: str
) -> Response:
    """Return all pages of the standings, as of one moment, in one file."""
    board, caller = open_page(request, slug)
    content = write(board.as_seen_by(caller).standings())
    headers = _attachment_headers(f"{slug}-standings.{media_type.rpartition('/')[2]}")
    return make_response(request, content, media_type=media_type, headers=headers)


def _attachment_headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def all_standings_csv(pages: StandingsPages) -> bytes:
    """Return all pages of the standings as one CSV."""
    return b"".join(standings_csv(page, header=index == 0) for index, page in enumerate(pages))


def all_standings_json(pages: StandingsPages) -> bytes:
    """Return all pages of the standings as one JSON object in the format of the API."""
    first = next(pages)
    head = json.dumps(
        {key: first[key] for key in ("board", "as_of", "frozen", "ranked_by", "declared")}
    )
    rows = [json.dumps(row) for row in first["rows"]]  # text takes less memory than dictionaries
    for page in pages:
        rows += map(json.dumps, page["rows"])
    return f'{head[:-1]}, "rows": [{", ".join(rows)}]}}'.encode()


@router.get("/boards/{board}/finals.csv")
def download_finals_csv(request: Request, board: Slug) -> Response:
    """Return the final ranking of a closed board as CSV."""
    opened, caller = open_page(request, board)
    content = finals_csv(opened.as_seen_by(caller).finals())
    headers = _attachment_headers(f"{board}-finals.csv")
    return make_response(request, content, media_type="text/csv", headers=headers)


@router.get("/boards/{board}/records.atom")
def records_feed(request: Request, board: Slug) -> Response:
    """Return the newest records as an Atom feed; a board that hides its standings has none."""
    opened, caller = open_page(request, board)
    view = opened.as_seen_by(caller)
    try:
        standings, records = view.leaderboard(limit=1), view.records()
    except NotAllowed:
        raise NotFound("This board has no feed: its standings are hidden.") from None
    changed = standings["as_of"]
    content = atom_feed(view.summary(), records, changed, server_url(request))
    # What changes the feed appends an entry, so it was modified with the last one. Within the same
    # second it may change again, so it has no time until then; nor has a frozen board's feed, which
    # a disqualification changes without an entry that may be seen.
    modified, headers = datetime.fromisoformat(changed), {}
    if not standings["frozen"] and opened.book.environment.clock() > modified.timestamp():
        headers["Last-Modified"] = format_datetime(modified.astimezone(UTC), usegmt=True)
        if is_public(request) and _has_since(request, modified):
            return Response(b"", 304, {**headers, "Cache-Control": "public, no-cache"})
    return make_response(request, content, media_type="application/atom+xml", headers=headers)


def _has_since(request: Request, modified: datetime) -> bool:
    """Tell whether a client without an ETag has what was last modified at a time."""
    since = request.headers.get("if-modified-since")
    if since is None or "if-none-match" in request.headers:
        return False
    try:
        known = parsedate_to_datetime(since)
    except ValueError:
        return False
    return known.tzinfo is not None and known >= modified


def atom_feed(
    board: dict[str, Any], records: list[dict[str, Any]], changed: str, url: str
) -> bytes:
    """Return the records of a board as an Atom feed (RFC 4287), the newest first."""
    book, page = UUID(board["book"]), f"{url}/boards/{board['slug']}"
    metric, digits = board["display"]["name"], board["display"]["digits"]
    entries = []
    for record in records[: -_FEED_ENTRIES - 1 : -1]:
        team = record["team"]["name"] or record["team"]["id"]
        value = format_value(record["display"], digits)
        sentence = f"{team} set a new best of {board['title']}: {metric} {value}."
        if record["proven"]:
            whose = "the board's" if board["ladder"] == "board" else "the team's"
            sentence += f" It is proven better than {whose} best before."
        entry = tag(
            "entry",
            tag("id", uuid5(book, f"record {record['entry']}").urn),
            tag("title", f"{metric} {value} by {team}"),
            tag("updated", record["time"]),
            tag("author", tag("name", team)),
            tag("link", rel="alternate", type="text/html", href=page),
            tag("content", sentence),
        )
        entries.append(entry)
    feed = tag(
        "feed",
        tag("id", uuid5(book, "records").urn),
        tag("title", f"Records of {board['title']}"),
        tag("updated", records[-1]["time"] if records else changed),
        tag("author", tag("name", board["title"])),
        tag("link", rel="self", type="application/atom+xml", href=f"{page}/records.atom"),
        tag("link", rel="alternate", type="text/html", href=page),
        *entries,
        xmlns="http://www.w3.org/2005/Atom",
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n{feed}\n'.encode()


@router.get("/boards/{board}/ledger.jsonl")
async def download_ledger(request: Request, board: Slug) -> Response:
    """Return all visible entries, one per line: exactly the bytes that were hashed."""
    # A slow reader must not use up its address's slots; there is no body to wait for.
    request.scope[OWN_BODY_LIMIT] = True
    run_in_thread = get_context(request).run_in_thread
    first_entries, entry_count, head = await run_in_thread(
        _read_ledger, request, board, 0, _ENTRIES_PER_READ
    )

    async def lines() -> AsyncIterator[bytes]:
        sent, batch = 0, first_entries[:entry_count]
        while batch:
            yield b"".join(entry + b"\n" for entry in batch)
            sent += len(batch)
            limit = min(_ENTRIES_PER_READ, entry_count - sent)
            batch = []
            if limit:
                batch, *_ = await run_in_thread(_read_ledger, request, board, sent, limit)
        if sent != entry_count:  # hidden meanwhile: an error, so that this is not taken for all
            raise InvalidState(
                "The ledger was hidden while it was sent; the download is incomplete."
            )

    headers = {**PRIVATE, **_attachment_headers(f"{board}-ledger.jsonl")}
    headers |= {"Ledger-Entries": str(entry_count), "Ledger-Head": head}
    return StreamingResponse(lines(), 200, headers, "application/x-ndjson")


def _read_ledger(
    request: Request, slug: str, first: int, limit: int
) -> tuple[list[bytes], int, str]:
    """Return entries, and the number of all visible ones with the hash of the last."""
    board, caller = open_page(request, slug)
    view = board.as_seen_by(caller)
    entry_count, head = view.head()
    return view.ledger(first=first, limit=limit), entry_count, head


@router.get("/boards/{board}/receipts/{submission}", openapi_extra={"security": PRIVATE_ROUTE})
def download_receipt(request: Request, board: Slug, submission: SubmissionId) -> Response:
    """Return the receipt of one of the team's submissions, for ``ladderboard verify``."""
    opened, caller = open_board(request, board)
    described = opened.as_seen_by(caller).submission(submission)
    if described["receipt"] is None:
        raise NotFound("On this board receipts go to the evaluators who submit.")
    headers = {**PRIVATE, **_attachment_headers(f"{board}-receipt-{described['number']}.json")}
    content = json.dumps(described["receipt"], indent=1).encode() + b"\n"
    return Response(content, 200, headers, "application/json")


FileName = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
_CHUNK_BYTES = 2**18
_SAMPLE = "sample_submission.csv"


@router.get("/boards/{board}/data")
def data_page(request: Request, board: Slug) -> Response:
    """Show the files to download."""
    opened, caller = open_page(request, board)
    return page_response(
        request,
        "data.html",
        board=opened.as_seen_by(caller).summary(),
        role=caller.role.name.lower(),
        data=opened.data.summary(caller),
        sample=_SAMPLE,
    )


@router.get("/boards/{board}/sample_submission.csv")
def download_sample(request: Request, board: Slug) -> Response:
    """Return a submission that can be scored."""
    opened, caller = open_page(request, board)
    headers = {"Content-Disposition": f'attachment; filename="{_SAMPLE}"'}
    return make_response(
        request, opened.data.sample(caller), media_type="text/csv", headers=headers
    )


@router.get("/boards/{board}/data/{name}")
async def download_file(request: Request, board: Slug, name: FileName) -> Response:
    """Return a file."""
    # A slow reader must not use up its address's slots; there is no body to wait for.
    request.scope[OWN_BODY_LIMIT] = True
    run_in_thread = get_context(request).run_in_thread

    def open_file() -> tuple[DataFileRow, BinaryIO]:
        opened, caller = open_page(request, board)
        return opened.data.open(caller, name)

    row, file = await run_in_thread(open_file)

    async def chunks() -> AsyncIterator[bytes]:
        with file:
            while chunk := await run_in_thread(file.read, _CHUNK_BYTES):
                yield chunk

    # Never shown by a browser: the file is the organiser's, and not to be trusted.
    headers = {
        **PRIVATE,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(row.size),
    }
    return StreamingResponse(chunks(), 200, headers, "application/octet-stream")
