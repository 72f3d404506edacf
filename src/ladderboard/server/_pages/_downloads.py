"""Downloads: all standings as CSV or JSON, and the whole ledger."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from ladderboard.board import Board, Caller
from ladderboard.errors import InvalidState
from ladderboard.server._api import Slug, standings_csv
from ladderboard.server._context import get_context, make_response
from ladderboard.server._middleware import OWN_BODY_LIMIT
from ladderboard.server._pages._rendering import PRIVATE

router = APIRouter(include_in_schema=False)
_ENTRIES_PER_READ = 1000  # ledger entries
StandingsPages = Iterator[dict[str, Any]]


@router.get("/boards/{board}/standings.csv")
async def download_standings_csv(request: Request, board: Slug) -> Response:
    """Return all standings as CSV."""
    return await _download_standings(request, board, all_standings_csv, "text/csv")


@router.get("/boards/{board}/standings.json")
async def download_standings_json(request: Request, board: Slug) -> Response:
    """Return all standings as JSON, in the format of the API."""
    return await _download_standings(request, board, all_standings_json, "application/json")


async def _download_standings(
    request: Request, board: str, write: Callable[[StandingsPages], bytes], media_type: str
) -> Response:
    """Return all pages of the standings, as of one moment, in one file."""

    def read(opened_board: Board, caller: Caller) -> bytes:
        return write(opened_board.as_seen_by(caller).standings())

    content = await get_context(request).for_page(request, board, read)
    headers = _attachment_headers(f"{board}-standings.{media_type.rpartition('/')[2]}")
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

    async def read(first: int, limit: int) -> tuple[list[bytes], tuple[int, str]]:
        def read_entries(
            opened_board: Board, caller: Caller
        ) -> tuple[list[bytes], tuple[int, str]]:
            view = opened_board.as_seen_by(caller)
            head = view.head()
            return view.ledger(first=first, limit=limit), head

        return await get_context(request).for_page(request, board, read_entries)

    first_entries, (entry_count, head) = await read(0, _ENTRIES_PER_READ)

    async def lines() -> AsyncIterator[bytes]:
        sent, batch = 0, first_entries[:entry_count]
        while batch:
            yield b"".join(entry + b"\n" for entry in batch)
            sent += len(batch)
            limit = min(_ENTRIES_PER_READ, entry_count - sent)
            batch = (await read(sent, limit))[0] if limit else []
        if sent != entry_count:  # hidden meanwhile: an error, so that this is not taken for all
            raise InvalidState(
                "The ledger was hidden while it was sent; the download is incomplete."
            )

    headers = {**PRIVATE, **_attachment_headers(f"{board}-ledger.jsonl")}
    headers |= {"Ledger-Entries": str(entry_count), "Ledger-Head": head}
    return StreamingResponse(lines(), 200, headers, "application/x-ndjson")
