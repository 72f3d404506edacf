"""Downloads: all standings as CSV or JSON, and the whole ledger."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from ladderboard.errors import InvalidState
from ladderboard.server._api import Slug, standings_csv
from ladderboard.server._context import get_context, make_response, open_page
from ladderboard.server._middleware import OWN_BODY_LIMIT
from ladderboard.server._pages._rendering import PRIVATE, page_router

router = page_router()
_ENTRIES_PER_READ = 1000  # ledger entries
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
    head = json.dumps({key: first[key] for key in ("board", "as_of", "frozen", "declared")})
    rows = [json.dumps(row) for row in first["rows"]]  # text takes less memory than dictionaries
    for page in pages:
        rows += map(json.dumps, page["rows"])
    return f'{head[:-1]}, "rows": [{", ".join(rows)}]}}'.encode()


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
