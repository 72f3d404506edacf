"""What was kept from before: heads, and the receipts of submissions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import Commitment
from ladderboard.verify._strict import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Kept", "KeptReceipt", "read_receipts"]

_HASH = re.compile("[0-9a-f]{64}")
_TOLD = ("time", "asker", "question", "value", "score", "improved")
_LONGEST = 2**24


@dataclass(frozen=True)
class KeptReceipt:
    """A receipt that was kept: which entry answers which predictions, and what was said.

    ``answer`` is what the server said then, where it was kept with the receipt.
    """

    book: str
    entry: int | None
    hash: str
    submission: str
    salt: str
    answer: dict[str, Any] | None = None

    @property
    def shown(self) -> str:
        """What the entry shows of the submission, if it is the truth."""
        content, salt = bytes.fromhex(self.submission), bytes.fromhex(self.salt)
        return Commitment("submission", content, salt).hash.hex()

    def match(self, number: int, fields: dict[str, Any]) -> None:
        """Refuse a receipt that does not open the entry of its hash, or an answer that differs.

        The entry has the hash of the receipt, so it is as it was then: this is not about it.
        """
        if fields["kind"] != "question" or fields["submission"] != self.shown:
            raise BrokenLedger(
                f"The receipt was changed: it has the hash of entry {number}, and opens other "
                "predictions than those that were answered there.",
                entry=number,
            )
        said = self.answer or {}
        told = {"score": "score", "improved": "improved"}
        if self.entry is not None:  # else some of it was not told
            told |= {"released": "value", "question": "question"}
        if any(name in said and said[name] != fields[field] for name, field in told.items()):
            raise BrokenLedger(
                f"Entry {number} records another answer than the one kept with the receipt: that "
                "was changed since, or the server said one thing and recorded another.",
                entry=number,
            )


def read_receipts(path: Path) -> tuple[KeptReceipt, ...]:
    """Return the receipts in a file: one as JSON, an answer that holds one, or lines of them.

    Lines are as ``ladderboard submit`` keeps them; those that were never answered hold none.
    """
    try:
        with path.open("rb") as file:
            held = file.read(_LONGEST + 1)
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    if len(held) > _LONGEST:
        raise InvalidSetting(f"{path} is too long for a file of receipts.")
    found = [receipt for each in _values(held) if (receipt := _receipt(each)) is not None]
    if not found:
        raise InvalidState(f"There is no receipt of an answered submission in {path}.")
    return tuple(found)


def _values(held: bytes) -> Iterable[Any]:
    """Return what a file holds: one value, or one a line, of which a crash may have cut one off."""
    try:
        return [json.loads(held)]
    except (RecursionError, ValueError):
        pass
    found = []
    for line in held.splitlines():
        try:
            found.append(json.loads(line))
        except (RecursionError, ValueError):
            continue
    return found


def _receipt(said: Any) -> KeptReceipt | None:
    """Return the receipt in a value: itself, within an answer, or within a line that holds one."""
    answer = None
    if isinstance(said, dict) and isinstance(said.get("answer"), dict):
        said = said["answer"]
    if isinstance(said, dict) and isinstance(said.get("receipt"), dict):
        answer, said = said, said["receipt"]
    if not isinstance(said, dict) or not is_whole(said.get("format")):
        return None
    if said["format"] != 1:
        raise InvalidState("The receipt was written by a newer Ladderboard; install that one.")
    hashes: dict[str, Any] = {each: said.get(each) for each in ("hash", "submission", "salt")}
    book, entry = said.get("book"), said.get("entry")
    if not (isinstance(book, str) and (entry is None or is_whole(entry))):
        return None
    if not all(isinstance(each, str) and _HASH.fullmatch(each) for each in hashes.values()):
        return None
    return KeptReceipt(book, entry, answer=answer, **hashes)


class Kept:
    """Looks for what was kept while a chain goes by."""

    def __init__(self, heads: Iterable[str], receipts: Iterable[KeptReceipt]) -> None:
        self._heads = {_head(each): each for each in heads}
        self._receipts = list(receipts)
        self._by_hash: dict[str, list[KeptReceipt]] = {}
        self._by_entry: dict[int, KeptReceipt] = {}
        for each in self._receipts:
            self._by_hash.setdefault(each.hash, []).append(each)
            if each.entry is not None:
                self._by_entry[each.entry] = each
        self.found: dict[str, int] = {}
        """The number of the entry that has each hash."""
        self.told: list[dict[str, Any]] = []
        """What the entry of each receipt says."""
        self.any = bool(self._heads or self._receipts)

    @property
    def last(self) -> int | None:
        """The last entry that is known not to have been rewritten; None if none is."""
        return max(self.found.values(), default=None)

    def see(self, number: int, hash_: str, fields: dict[str, Any]) -> None:
        """Compare an entry that goes by."""
        if number in self._by_entry and self._by_entry[number].hash != hash_:
            raise BrokenLedger(
                f"Entry {number} has another hash than the receipt says: the ledger was rewritten, "
                "or the receipt is not one that was given.",
                entry=number,
            )
        if hash_ in self._heads or hash_ in self._by_hash:
            self.found[hash_] = number
            for each in self._by_hash.get(hash_, ()):
                each.match(number, fields)
                self.told.append({"entry": number, **{name: fields[name] for name in _TOLD}})

    def end(self, book: str, entries: int) -> None:
        """Refuse a chain that does not lead through everything that was kept."""
        for each in self._receipts:
            if each.book != book:
                raise BrokenLedger("The receipt belongs to another board's ledger than this.")
            if each.hash not in self.found:
                where = "The entry" if each.entry is None else f"Entry {each.entry}"
                raise BrokenLedger(
                    f"{where} that the receipt was given for is not in this ledger of {entries} "
                    "entries: it is older than the receipt, or was rewritten; or the receipt is "
                    "not one that was given.",
                    entry=each.entry,
                )
        for head in self._heads:
            if head not in self.found:
                raise BrokenLedger(
                    f"No entry of this ledger has the hash {head[:16]}... that was kept: it is "
                    "older than that head, or was rewritten."
                )


def _head(given: str) -> str:
    head = given.strip().lower()
    if not _HASH.fullmatch(head):
        raise InvalidSetting("A head is 64 hex digits, as the board's page or status shows it.")
    return head
