"""Heads and receipts that were saved earlier, and the search for them in a chain."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import Commitment, broken_entry
from ladderboard.verify._chain import is_int

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

_HASH = re.compile("[0-9a-f]{64}")
_REPORTED_FIELDS = ("time", "asker", "question", "value", "score", "improved")
_MAX_RECEIPT_FILE = 2**24
_DAMAGED = object()
_ROUNDING = 1e-9  # digits that are left of a number in the metric
_SAVED_LINE_START = b'{"state": '


class WrongArgument(InvalidSetting):
    """An argument of the check is wrong; the ledger may be right."""


@dataclass(frozen=True)
class SavedReceipt:
    """A saved receipt: which entry answers which predictions.

    ``answer`` is the server's reply, if it was saved with the receipt.
    """

    book: str
    entry: int | None
    hash: str
    submission: str
    salt: str
    answer: dict[str, Any] | None = None

    @property
    def commitment_hash(self) -> str:
        """The commitment to the submission that the entry must hold."""
        content, salt = bytes.fromhex(self.submission), bytes.fromhex(self.salt)
        return Commitment("submission", content, salt).hash.hex()

    def check_entry(self, number: int, fields: dict[str, Any]) -> None:
        """Refuse a receipt that does not match the entry of its hash, or an answer that differs.

        The entry has the receipt's hash, so the entry is unchanged: the receipt is wrong.
        """
        if self.entry not in {None, number} or fields.get("submission") != self.commitment_hash:
            raise BrokenLedger(
                f"The receipt was changed: it has the hash of entry {number}, but another number "
                "or other predictions.",
                entry=number,
            )
        if self.answer is not None and any(_differences(self.answer, fields)):
            raise BrokenLedger(
                f"Entry {number} records another answer than the one saved with the receipt: the "
                "saved answer was changed, or the server recorded another answer than it sent.",
                entry=number,
            )


def _differences(answer: dict[str, Any], fields: dict[str, Any]) -> Iterator[bool]:
    """Yield, for each field that an answer and its entry share, whether the two differ.

    An answer without the entry's number has other values in some fields. An entry has losses. An
    answer has them beside the metric; an old answer without ``loss`` has only losses.
    """
    is_metric = "loss" in answer
    fields_by_name = {"score_loss" if is_metric else "score": "score", "improved": "improved"}
    if answer.get("entry") is not None:
        fields_by_name |= {"question": "question", "entry": "number"}
        fields_by_name |= {"loss" if is_metric else "released": "value"}
    for name, field in fields_by_name.items():
        yield name in answer and answer[name] != fields[field]
    if is_metric:
        for name, loss in (("released", "loss"), ("score", "score_loss")):
            yield _differs_from_loss(answer, name, answer.get(loss))
    team = answer.get("team")
    yield isinstance(team, dict) and team.get("id") != fields["asker"]


def _differs_from_loss(answer: dict[str, Any], name: str, loss: Any) -> bool:
    """Return whether a metric's value contradicts its loss, if the unit is known."""
    display, value = answer.get("display"), answer.get(name)
    shown_as = display.get("as") if isinstance(display, dict) else None
    if value is None or loss is None:
        return value is not loss
    if shown_as not in {"loss", "complement"}:
        return False
    try:
        return abs(value - (1 - loss if shown_as == "complement" else loss)) > _ROUNDING
    except TypeError:
        return True


def read_receipts(path: str | PathLike[str]) -> tuple[SavedReceipt, ...]:
    """Return the receipts in a file: a JSON receipt, an answer that holds one, or lines of them.

    Lines are as ``ladderboard submit`` saves them; lines of unanswered submissions hold none.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_RECEIPT_FILE + 1)
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > _MAX_RECEIPT_FILE:
        raise InvalidSetting(f"{path} is too long for a file of receipts.")
    parsed = [(line, _parse_receipt(value)) for line, value in _iter_json_values(content)]
    receipts = tuple(receipt for _, receipt in parsed if isinstance(receipt, SavedReceipt))
    if not receipts:
        raise InvalidState(f"{path} holds no complete receipt of an answered submission.")
    for line, receipt in parsed:
        if receipt is _DAMAGED:
            raise InvalidState(f"The receipt in line {line} of {path} is damaged.")
    return receipts


def _iter_json_values(content: bytes) -> Iterator[tuple[int | None, Any]]:
    """Yield the JSON value of a file, or the value of every line with its number."""
    with suppress(RecursionError, ValueError):
        yield None, json.loads(content)
        return
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            yield number, json.loads(line)
        except (RecursionError, ValueError):
            # A line that a crash cut off was never answered, or will be answered again.
            if line and not line.startswith(_SAVED_LINE_START):
                yield number, _DAMAGED


def _parse_receipt(value: Any) -> SavedReceipt | object | None:
    """Return the receipt in a JSON value: the value itself, or inside an answer or a saved line.

    None for a line without an answer.
    """
    answer = None
    if isinstance(value, dict) and ("state" in value or "answer" in value):  # a saved line
        value = value.get("answer")
        if value is None:
            return None
    if isinstance(value, dict) and "receipt" in value:
        answer, value = value, value["receipt"]
    if not isinstance(value, dict) or not is_int(value.get("format")):
        return _DAMAGED
    if value["format"] != 1:
        raise InvalidState("The receipt was written by a newer Ladderboard; install that one.")
    hashes: dict[str, Any] = {name: value.get(name) for name in ("hash", "submission", "salt")}
    book, entry = value.get("book"), value.get("entry")
    if not (isinstance(book, str) and (entry is None or is_int(entry))):
        return _DAMAGED
    if not all(isinstance(hash_, str) and _HASH.fullmatch(hash_) for hash_ in hashes.values()):
        return _DAMAGED
    return SavedReceipt(book, entry, answer=answer, **hashes)


class SavedEvidence:
    """Compares the entries of a chain with saved heads, receipts and a commitment."""

    def __init__(
        self, heads: Iterable[str], receipts: Iterable[SavedReceipt], commitment: str | None
    ) -> None:
        self._heads = {_parse_hash("A head", head) for head in heads}
        self._commitment = None if commitment is None else _parse_hash("A commitment", commitment)
        self._receipts = list(receipts)
        self._by_hash: dict[str, list[SavedReceipt]] = {}
        self._by_entry: dict[int, SavedReceipt] = {}
        for receipt in self._receipts:
            self._by_hash.setdefault(receipt.hash, []).append(receipt)
            if receipt.entry is not None:
                self._by_entry[receipt.entry] = receipt
        self.entry_by_hash: dict[str, int] = {}
        """The number of the entry with each saved hash."""
        self.matched_receipts: list[dict[str, Any]] = []
        """What the entry of each receipt records."""
        self.has_hashes = bool(self._heads or self._receipts)

    @property
    def last_unchanged(self) -> int | None:
        """The last entry that is known to be unchanged, if any."""
        return max(self.entry_by_hash.values(), default=None)

    def compare_entry(self, number: int, hash_: str, fields: dict[str, Any]) -> None:
        """Compare the next entry with the saved hashes and receipts."""
        if number in self._by_entry and self._by_entry[number].hash != hash_:
            raise BrokenLedger(
                f"Entry {number} has another hash than the receipt: the ledger was rewritten, "
                "or the receipt is not genuine.",
                entry=number,
            )
        if hash_ in self._heads or hash_ in self._by_hash:
            self.entry_by_hash[hash_] = number
            for receipt in self._by_hash.get(hash_, ()):
                receipt.check_entry(number, fields)
            if hash_ in self._by_hash:  # once, even if the same receipt was given twice
                self.matched_receipts.append(
                    {"entry": number, **{name: fields[name] for name in _REPORTED_FIELDS}}
                )

    def check_commitment(self, commitment: str) -> None:
        """Compare the commitment of the first entry with the announced one."""
        if self._commitment not in {None, commitment}:
            raise broken_entry(0, "it commits to other labels, key or rules than were announced")
        if commitment in self._heads:
            raise WrongArgument(
                "This is the ledger's commitment, not a head; use --commitment for it."
            )

    def check_all_found(self, book: str, entries: int) -> None:
        """Refuse a chain that lacks a saved head or receipt."""
        for receipt in self._receipts:
            if receipt.book != book:
                raise BrokenLedger("The receipt belongs to another ledger.")
            if receipt.hash not in self.entry_by_hash:
                where = "The entry" if receipt.entry is None else f"Entry {receipt.entry:,}"
                size = format_count(entries, "entry", "entries")
                hint = ""
                if receipt.entry is not None and receipt.entry >= entries:
                    hint = (
                        " The ledger of a hidden or frozen board ends early until its standings "
                        "are published; check the receipt then."
                    )
                raise BrokenLedger(
                    f"{where} that the receipt was given for is not in this ledger of {size}: the "
                    "ledger is older than the receipt or was rewritten, or the receipt is not "
                    f"genuine.{hint}",
                    entry=receipt.entry,
                )
        for head in self._heads:
            if head not in self.entry_by_hash:
                raise BrokenLedger(
                    f"No entry of this ledger has the saved hash {head[:16]}...: the ledger is "
                    "older than that head, or was rewritten."
                )


def _parse_hash(what: str, text: str) -> str:
    digits = text.strip().lower()
    if not _HASH.fullmatch(digits):
        raise InvalidSetting(
            f"{what} must be 64 hex digits, as on the board's page or in the status."
        )
    return digits
