"""Download of a board's dump: written to the spool folder, sent, and deleted."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from starlette.responses import Response

from ladderboard.board import check_permission
from ladderboard.errors import InvalidSetting, MissingDependency
from ladderboard.server._context import get_context
from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fastapi import Request
    from starlette.types import Receive, Scope, Send

    from ladderboard.board import Board, Caller
    from ladderboard.server._context import ServerContext

_DUMP_LOCK = threading.Lock()  # deriving a key takes 128 MiB, and a dump may fill the disk
_FOLDER_PREFIX = "dump-"
_STALE_SECONDS = 3600.0  # older dumps were left by a crash
_CHUNK_BYTES = 2**18
_KEY_PREFIXES = ("age1", "AGE-SECRET-KEY-1")


class _EncryptionKey(NamedTuple):
    """The key of a dump: a passphrase or a public key."""

    passphrase: str | None
    public: str | None


def send_dump(request: Request, board: Board, caller: Caller, form: Mapping[str, str]) -> Response:
    """Return an encrypted dump of a board as a file.

    Each process makes and sends one dump at a time, because they can be large.
    """
    context = get_context(request)
    key = _read_key(form)
    if not _DUMP_LOCK.acquire(blocking=False):
        raise RequestRefused(
            503,
            "busy",
            "Another dump is under way on this server; try again when it is done.",
            {"Retry-After": "60"},
        )
    try:
        check_permission(caller, "run")
        file = _write_dump(context, board, key)
    except MissingDependency as error:
        _DUMP_LOCK.release()
        raise RequestRefused(
            503, "unavailable", f"This server cannot make dumps. {error}"
        ) from None
    except BaseException:
        _DUMP_LOCK.release()
        raise
    context.log.write("dump", request=request.scope["ladderboard.request"], board=board.slug)
    day = time.strftime("%Y-%m-%d", time.gmtime(context.boards.environment.clock()))
    return _FileDownload(file, f"{board.slug}-{day}.dump", _DUMP_LOCK.release)


def _read_key(form: Mapping[str, str]) -> _EncryptionKey:
    """Return the key from the form: a passphrase, typed twice, or a public key."""
    passphrase, repeated = form.get("passphrase", ""), form.get("again", "")
    public_key = form.get("public_key", "").strip()
    if bool(passphrase or repeated) == bool(public_key):
        raise InvalidSetting("A dump is encrypted either to a passphrase or to a public key.")
    if not public_key:
        if passphrase != repeated:
            raise InvalidSetting("The two passphrases differ; type both again.")
        return _EncryptionKey(passphrase, None)
    if not public_key.startswith(_KEY_PREFIXES):  # dump_board would read anything else as a path
        raise InvalidSetting(f"This is not a public key; one begins with {_KEY_PREFIXES[0]}.")
    return _EncryptionKey(None, public_key)


def _write_dump(context: ServerContext, board: Board, key: _EncryptionKey) -> BinaryIO:
    """Return a dump as an open file that is already unlinked, so closing it deletes it."""
    from ladderboard.board import dump_board  # noqa: PLC0415 - an optional dependency

    spool_folder = context.spool.path
    remove_stale_dumps(spool_folder)
    context.spool.check_disk(board.row().stored)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=spool_folder))  # mode 0700
    try:
        path = folder / "dump"
        dump_board(
            context.boards, board.slug, path, passphrase=key.passphrase, public_key=key.public
        )
        return path.open("rb")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_stale_dumps(spool_folder: Path) -> None:
    """Remove dumps that a crash has left behind."""
    for folder in spool_folder.glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError):
            times = [path.stat().st_mtime for path in (folder, *folder.iterdir())]
            if time.time() - max(times) >= _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


class _FileDownload(Response):
    """A file as an attachment; it is closed when it was sent or the client has gone."""

    def __init__(self, file: BinaryIO, name: str, release: Callable[[], None]) -> None:
        super().__init__(
            media_type="application/octet-stream",
            headers={
                "Cache-Control": "private, no-store",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Length": str(os.fstat(file.fileno()).st_size),
            },
        )
        self._file, self._done = file, release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file in chunks."""
        context: ServerContext = scope["app"].state.context
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            has_more = True
            while has_more:
                chunk = await context.run_in_thread(self._file.read, _CHUNK_BYTES)
                has_more = bool(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": has_more})
        finally:
            self._file.close()
            self._done()
