"""Receipts: what was sent and what was answered, one JSON line each, on the disk before it counts.

A line ``pending`` is written before anything is sent. Should the program end before the answer
comes, the same bytes to the same board take its key again, and the server answers once.
"""

from __future__ import annotations

import json
import os
import time
import uuid
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.client._config import make_folder
from ladderboard.errors import InvalidSetting, ServerUnreachable, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ladderboard.client._address import Address
    from ladderboard.client._models import SubmissionResult
    from ladderboard.client._requests import UploadBody
    from ladderboard.errors import LadderboardError

_RECENT_BYTES = 2**20  # bytes: some hundred submissions, however many there were before


def new_key() -> str:
    """Return a key under which a submission may be sent again."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class StoredReceipt:
    """A submission: its key, the SHA-256 of what was sent, and what came of it.

    ``state`` is ``pending``, ``answered`` or ``refused``; ``answer`` is the answer as it came.
    """

    state: str
    key: str
    sha256: str
    team: str | None
    time: int
    answer: dict[str, Any] | None = None


class ReceiptStore:
    """The receipts of one server; ``folder`` is where those of all servers are, None for none."""

    def __init__(self, folder: Path | None, address: Address) -> None:
        self._folder = None if folder is None else folder / address.folder_name

    def read(self, board: str) -> tuple[StoredReceipt, ...]:
        """Return what became of every submission to a board, oldest first."""
        return self._read(board)

    def file(self, board: str) -> Path | None:
        """Return where those of a board are."""
        return None if self._folder is None else self._folder / f"{board}.jsonl"

    def _read(self, board: str, last: int | None = None) -> tuple[StoredReceipt, ...]:
        found: dict[str, StoredReceipt] = {}
        for each in self._lines(board, last):
            found[each.key] = each
        return tuple(found.values())

    def start(
        self, board: str, body: UploadBody, team: str | None, key: str | None
    ) -> ReceiptWriter:
        """Note that something is about to be sent, under a key that is given, pending or new."""
        if self._folder is None:
            return ReceiptWriter(None, "", key or new_key(), team)
        digest = body.digest
        if key is None:
            pending = (
                each.key
                for each in reversed(self._read(board, _RECENT_BYTES))
                if (each.state, each.sha256, each.team) == ("pending", digest, team)
            )
            key = next(pending, None) or new_key()
        receipt = ReceiptWriter(self.file(board), digest, key, team)
        try:
            receipt.write("pending")
        except OSError as error:
            raise InvalidSetting(
                f"Receipts cannot be kept in {self._folder}: {error.strerror}. Nothing was sent; "
                "set XDG_STATE_HOME to another folder, or give receipts=None to keep none."
            ) from None
        return receipt

    def _lines(self, board: str, last: int | None) -> Iterator[StoredReceipt]:
        """Yield the lines of a board; ``last`` is of how many bytes at the end, None for all."""
        place = self.file(board)
        if place is None:
            return
        try:
            with place.open("rb") as file:
                if last is not None:
                    file.seek(max(0, file.seek(0, os.SEEK_END) - last))
                lines = file.read().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise InvalidSetting(
                f"Receipts in {self._folder} cannot be read: {error.strerror}."
            ) from None
        for line in lines:
            try:
                said = json.loads(line)
                yield StoredReceipt(
                    str(said["state"]), str(said["key"]), str(said["sha256"]), said["team"],
                    int(said["time"]), said.get("answer"),
                )  # fmt: skip
            except (ValueError, TypeError, KeyError):
                continue  # a line that a crash cut off, or half of the first of the last


@dataclass(frozen=True)
class ReceiptWriter:
    """One submission's lines."""

    file: Path | None
    digest: str
    key: str
    team: str | None

    def record_answer(self, reply: SubmissionResult) -> None:
        """Note the answer. It stands whatever the disk does."""
        self._end("answered", answer=reply.raw)

    def record_refusal(self, error: LadderboardError) -> None:
        """Note a refusal; where nothing certain was heard, the submission stays pending."""
        if not isinstance(error, ServerUnreachable | StorageFailed):
            self._end("refused", error=type(error).__name__)

    def _end(self, state: str, **more: Any) -> None:
        try:
            self.write(state, **more)
        except OSError as error:
            said = f"The receipt in {self.file} could not be written: {error.strerror}."
            warnings.warn(said, RuntimeWarning, stacklevel=4)

    def write(self, state: str, **more: Any) -> None:
        """Append a line, and wait for the disk."""
        if self.file is None:
            return
        line = {"state": state, "time": int(time.time()), "key": self.key, "sha256": self.digest}
        line |= {"team": self.team, **more}
        make_folder(self.file.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        handle = os.open(self.file, flags, 0o600)
        try:
            # A line feed goes before: the line above may have been cut off by a crash.
            rest = memoryview(b"\n" + json.dumps(line).encode())
            while rest:  # a disk that is nearly full takes a part, and refuses the next
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
