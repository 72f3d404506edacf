"""The page Data: files and links for participants, and a sample submission."""

from collections.abc import AsyncIterator
from typing import Annotated, BinaryIO

from fastapi import Path, Request
from starlette.responses import Response, StreamingResponse

from ladderboard.board import DataFileRow
from ladderboard.server._api import Slug
from ladderboard.server._context import get_context, make_response, open_page
from ladderboard.server._middleware import OWN_BODY_LIMIT
from ladderboard.server._pages._rendering import PRIVATE, page_response, page_router

router = page_router()
FileName = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
_CHUNK_BYTES = 2**18
_SAMPLE = "sample_submission.csv"


@router.get("/boards/{board}/data")
def data_page(request: Request, board: Slug) -> Response:
    """Show what there is to download."""
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
