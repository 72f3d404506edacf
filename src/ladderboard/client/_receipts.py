"""Receipts: a file of JSON lines per board with every submission and its answer.

A ``pending`` line is on the disk before anything is sent. If the program ends before the answer
arrives, submitting the same bytes again reuses that line's idempotency key, and the server counts
the submission once.
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

    from ladderboard.client._config import Address
    from ladderboard.client._models import SubmissionResult
    from ladderboard.client._requests import UploadBody
    from ladderboard.errors import LadderboardError

_RECENT_BYTES = 2**20  # enough for some hundred submissions, however long the file is


def new_key() -> str:
    """Return a new idempotency key."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class StoredReceipt:
    """A submission: its idempotency key, the SHA-256 of its bytes, and the outcome.

    ``state`` is ``pending``, ``answered`` or ``refused``; ``answer`` is the server's document.
    """

    state: str
    key: str
    sha256: str
    team: str | None
    time: int
    answer: dict[str, Any] | None = None


class ReceiptStore:
    """The receipts of one server, below ``folder``; None stores none."""

    def __init__(self, folder: Path | None, address: Address) -> None:
        self._folder = None if folder is None else folder / address.folder_name

    def read(self, board: str) -> tuple[StoredReceipt, ...]:
        """Return the last state of every submission to a board, oldest first."""
        return self._read(board)

    def file(self, board: str) -> Path | None:
        """Return the file of a board's receipts."""
        return None if self._folder is None else self._folder / f"{board}.jsonl"

    def _read(self, board: str, last: int | None = None) -> tuple[StoredReceipt, ...]:
        by_key = {receipt.key: receipt for receipt in self._lines(board, last)}
        return tuple(by_key.values())

    def start(
        self, board: str, body: UploadBody, team: str | None, key: str | None
    ) -> ReceiptWriter:
        """Record a submission as pending, under the given key, a pending one's or a new one."""
        if self._folder is None:
            return ReceiptWriter(None, "", key or new_key(), team)
        digest = body.digest
        if key is None:
            pending = (
                earlier.key
                for earlier in reversed(self._read(board, _RECENT_BYTES))
                if (earlier.state, earlier.sha256, earlier.team) == ("pending", digest, team)
            )
            key = next(pending, None) or new_key()
        receipt = ReceiptWriter(self.file(board), digest, key, team)
        try:
            receipt.write("pending")
        except OSError as error:
            raise InvalidSetting(
                f"Receipts cannot be written to {self._folder}: {error.strerror}. Nothing was "
                "sent. Set XDG_STATE_HOME to another folder, or pass receipts=None to store none."
            ) from None
        return receipt

    def _lines(self, board: str, last: int | None) -> Iterator[StoredReceipt]:
        """Yield a board's receipts; ``last`` limits them to the last bytes of the file."""
        path = self.file(board)
        if path is None:
            return
        try:
            with path.open("rb") as file:
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
                fields = json.loads(line)
                yield StoredReceipt(
                    str(fields["state"]), str(fields["key"]), str(fields["sha256"]), fields["team"],
                    int(fields["time"]), fields.get("answer"),
                )  # fmt: skip
            except (ValueError, TypeError, KeyError):
                continue  # cut off by a crash, or by starting in the middle of the file


@dataclass(frozen=True)
class ReceiptWriter:
    """Writes the receipt of one submission."""

    file: Path | None
    digest: str
    key: str
    team: str | None

    def record_answer(self, reply: SubmissionResult) -> None:
        """Record the answer; a disk error only warns, since the answer counts anyway."""
        self._record("answered", answer=reply.raw)

    def record_refusal(self, error: LadderboardError) -> None:
        """Record a refusal; if the outcome is uncertain, the submission stays pending."""
        if not isinstance(error, ServerUnreachable | StorageFailed):
            self._record("refused", error=type(error).__name__)

    def _record(self, state: str, **details: Any) -> None:
        try:
            self.write(state, **details)
        except OSError as error:
            message = f"The receipt in {self.file} could not be written: {error.strerror}."
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def write(self, state: str, **details: Any) -> None:
        """Append a line and flush it to the disk."""
        if self.file is None:
            return
        line = {"state": state, "time": int(time.time()), "key": self.key, "sha256": self.digest}
        line |= {"team": self.team, **details}
        make_folder(self.file.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        handle = os.open(self.file, flags, 0o600)
        try:
            # Start with a newline: a crash may have cut off the line before.
            remaining = memoryview(b"\n" + json.dumps(line).encode())
            while remaining:  # a nearly full disk writes a part and refuses the next
                remaining = remaining[os.write(handle, remaining) :]
            os.fsync(handle)
        finally:
            os.close(handle)
