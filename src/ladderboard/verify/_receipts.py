"""What was kept from before: heads, and the receipts of submissions."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import Commitment, broken_entry
from ladderboard.verify._strict import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

_HASH = re.compile("[0-9a-f]{64}")
_TOLD = ("time", "asker", "question", "value", "score", "improved")
_LONGEST = 2**24
_DAMAGED = object()
_NEAR = 1e-9  # digits that are left of a number in the metric
_KEPT = b'{"state": '


class WrongGiven(InvalidSetting):
    """What the person who checks gave is not what belongs there; the ledger may be right."""


@dataclass(frozen=True)
class SavedReceipt:
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
        if self.entry not in {None, number} or fields.get("submission") != self.shown:
            raise BrokenLedger(
                f"The receipt was changed: it has the hash of entry {number}, and its number or "
                "the predictions that it opens are others.",
                entry=number,
            )
        if self.answer is not None and any(_differences(self.answer, fields)):
            raise BrokenLedger(
                f"Entry {number} records another answer than the one kept with the receipt: that "
                "was changed since, or the server said one thing and recorded another.",
                entry=number,
            )


def _differences(said: dict[str, Any], fields: dict[str, Any]) -> Iterator[bool]:
    """Yield for each thing that an answer and its entry both tell whether it differs.

    Where the number of the entry was not told, some of it was told otherwise. An entry has losses.
    An answer has them beside the metric; one that is kept from before there was a ``loss`` has
    nothing else.
    """
    is_metric = "loss" in said
    told = {"score_loss" if is_metric else "score": "score", "improved": "improved"}
    if said.get("entry") is not None:
        told |= {"question": "question", "entry": "number"}
        told |= {"loss" if is_metric else "released": "value"}
    for name, field in told.items():
        yield name in said and said[name] != fields[field]
    if is_metric:
        for name, loss in (("released", "loss"), ("score", "score_loss")):
            yield _is_other(said, name, said.get(loss))
    team = said.get("team")
    yield isinstance(team, dict) and team.get("id") != fields["asker"]


def _is_other(said: dict[str, Any], name: str, loss: Any) -> bool:
    """Return whether a number in the metric is not that of its loss, where the unit is known."""
    display, value = said.get("display"), said.get(name)
    shown_as = display.get("as") if isinstance(display, dict) else None
    if value is None or loss is None:
        return value is not loss
    if shown_as not in {"loss", "complement"}:
        return False
    try:
        return abs(value - (1 - loss if shown_as == "complement" else loss)) > _NEAR
    except TypeError:
        return True


def read_receipts(path: str | PathLike[str]) -> tuple[SavedReceipt, ...]:
    """Return the receipts in a file: one as JSON, an answer that holds one, or lines of them.

    Lines are as ``ladderboard submit`` keeps them; those that were never answered hold none.
    """
    try:
        with Path(path).open("rb") as file:
            held = file.read(_LONGEST + 1)
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    if len(held) > _LONGEST:
        raise InvalidSetting(f"{path} is too long for a file of receipts.")
    read = [(line, _receipt(each)) for line, each in _values(held)]
    found = tuple(each for _, each in read if isinstance(each, SavedReceipt))
    if not found:
        raise InvalidState(f"There is no whole receipt of an answered submission in {path}.")
    for line, each in read:
        if each is _DAMAGED:
            raise InvalidState(f"The receipt in line {line} of {path} is damaged.")
    return found


def _values(held: bytes) -> Iterator[tuple[int | None, Any]]:
    """Yield what a file holds: one value, or one a line with its number."""
    with suppress(RecursionError, ValueError):
        yield None, json.loads(held)
        return
    for number, line in enumerate(held.splitlines(), start=1):
        try:
            yield number, json.loads(line)
        except (RecursionError, ValueError):
            # What a crash cut off was never answered, or will be again; lines begin with a break.
            if line and not line.startswith(_KEPT):
                yield number, _DAMAGED


def _receipt(said: Any) -> SavedReceipt | object | None:
    """Return the receipt in a value: itself, within an answer, or within a line that holds one.

    None where nothing was answered.
    """
    answer = None
    if isinstance(said, dict) and ("state" in said or "answer" in said):  # a line that was kept
        said = said.get("answer")
        if said is None:
            return None
    if isinstance(said, dict) and "receipt" in said:
        answer, said = said, said["receipt"]
    if not isinstance(said, dict) or not is_whole(said.get("format")):
        return _DAMAGED
    if said["format"] != 1:
        raise InvalidState("The receipt was written by a newer Ladderboard; install that one.")
    hashes: dict[str, Any] = {each: said.get(each) for each in ("hash", "submission", "salt")}
    book, entry = said.get("book"), said.get("entry")
    if not (isinstance(book, str) and (entry is None or is_whole(entry))):
        return _DAMAGED
    if not all(isinstance(each, str) and _HASH.fullmatch(each) for each in hashes.values()):
        return _DAMAGED
    return SavedReceipt(book, entry, answer=answer, **hashes)


class Kept:
    """Looks for what was kept while a chain goes by."""

    def __init__(
        self, heads: Iterable[str], receipts: Iterable[SavedReceipt], commitment: str | None
    ) -> None:
        self._heads = {_hash("A head", each) for each in heads}
        self._commitment = None if commitment is None else _hash("A commitment", commitment)
        self._receipts = list(receipts)
        self._by_hash: dict[str, list[SavedReceipt]] = {}
        self._by_entry: dict[int, SavedReceipt] = {}
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
            if hash_ in self._by_hash:  # once, however often the same receipt was given
                self.told.append({"entry": number, **{name: fields[name] for name in _TOLD}})

    def open(self, commitment: str) -> None:
        """Compare what the first entry commits to with what was announced then."""
        if self._commitment not in {None, commitment}:
            raise broken_entry(0, "it commits to other labels, key or rules than were announced")
        if commitment in self._heads:
            raise WrongGiven(
                "That is the commitment of this ledger and no head; give it as --commitment."
            )

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


def _hash(what: str, given: str) -> str:
    read = given.strip().lower()
    if not _HASH.fullmatch(read):
        raise InvalidSetting(f"{what} is 64 hex digits, as the board's page or status shows it.")
    return read
