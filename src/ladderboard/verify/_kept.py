"""What was kept from before: heads, and the receipts of submissions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import Commitment, differs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Kept", "KeptReceipt", "read_receipts"]

_HEX = 64
_TOLD = ("time", "asker", "question", "value", "score", "improved")
_LONGEST = 2**24


@dataclass(frozen=True)
class KeptReceipt:
    """A receipt that was kept: which entry answers which predictions, and what was said.

    ``answer`` is what the server said then, where it was kept with the receipt; ``sha256`` the hash
    of the file that was sent.
    """

    book: str
    entry: int | None
    hash: str
    submission: str
    salt: str
    answer: dict[str, Any] | None = None
    sha256: str | None = None

    @property
    def shown(self) -> str:
        """What the entry shows of the submission, if it is the truth."""
        content, salt = bytes.fromhex(self.submission), bytes.fromhex(self.salt)
        return Commitment("submission", content, salt).hash.hex()

    def match(self, number: int, fields: dict[str, Any]) -> None:
        """Refuse an entry that is another than the one that the receipt was given for."""
        if fields["kind"] != "question" or fields["submission"] != self.shown:
            raise differs(number, "it does not answer the predictions that the receipt opens")
        said = self.answer
        if said is None:
            return
        told = {"score": said["score"], "improved": said["improved"]}
        if self.entry is not None:  # else some of it was not told
            told |= {"value": said["released"], "question": said["question"]}
        if any(fields[name] != each for name, each in told.items()):
            raise differs(number, "it says something else than the answer that was kept")


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
    sha256 = None
    answer = None
    if isinstance(said, dict) and isinstance(said.get("answer"), dict):
        sha256, said = said.get("sha256"), said["answer"]
    if isinstance(said, dict) and isinstance(said.get("receipt"), dict):
        answer, said = said, said["receipt"]
    try:
        if said["format"] != 1:
            raise InvalidState("The receipt was written by a newer Ladderboard; install that one.")
        receipt = KeptReceipt(
            said["book"], said["entry"], said["hash"], said["submission"], said["salt"], answer,
            sha256,
        )  # fmt: skip
        hashes = (receipt.hash, receipt.submission, receipt.salt)
        if any(len(bytes.fromhex(each)) != _HEX // 2 or each != each.lower() for each in hashes):
            return None
    except (KeyError, TypeError, ValueError):
        return None
    return receipt


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
            raise differs(number, "the receipt was given for another entry of this number")
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
                    "entries: it is older than the receipt, or was rewritten.",
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
    if len(head) != _HEX or any(each not in "0123456789abcdef" for each in head):
        raise InvalidSetting("A head is 64 hex digits, as the board's page or status shows it.")
    return head
