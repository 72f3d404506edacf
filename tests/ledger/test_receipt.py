"""Receipts: what opens one's own part of an entry."""

import hashlib

import pytest

import ladderboard as lb
from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Book, Cipher, Commitment, Opening, ScoredQuestion, SqliteStorage

MECHANISM = lb.Ladder(step=0.02)


@pytest.fixture(params=[None, b"f" * 32], ids=["plain", "encrypted"])
def book(request, tmp_path):
    opening = Opening(
        n=1000,
        loss={"loss": "zero_one", "classes": None},
        mechanism=MECHANISM.describe(),
        rules={"questions": 20},
        holdout=b"h" * 32,
    )
    seal = None if request.param is None else Cipher(request.param, "b")
    return Book.create(
        SqliteStorage(tmp_path / "b.db", create=True), opening, name="b", encryption=seal
    )


def asked(number, risk=0.3):
    return ScoredQuestion(hashlib.sha256(b"%d" % number).digest(), risk)


def receipt_of(book, outcome):
    with book.storage.read_transaction(book.name) as view:
        return book.receipt_for(view, outcome)


def test_a_receipt_opens_the_entry_that_it_names(book):
    for number in range(3):
        receipt = book.ask(asked(number)).receipt
        entry, fields = list(book.entries())[receipt.entry]
        assert receipt.hash == entry.hash
        assert receipt.submission == asked(number).submission
        opened = Commitment("submission", receipt.submission, receipt.salt)
        assert opened.opens(bytes.fromhex(fields["submission"]))
        other = opened.__class__("submission", asked(number + 1).submission, receipt.salt)
        assert not other.opens(bytes.fromhex(fields["submission"]))


def test_it_is_the_same_when_it_is_read_again(book):
    first = book.ask(asked(1))
    book.ask(asked(2))
    again = book.ask(asked(1))
    assert again.repeated
    assert again.receipt is None  # who does not want it does not pay for it
    assert receipt_of(book, again) == receipt_of(book, first) == first.receipt
    assert receipt_of(book, book.find_duplicate(asked(1).submission)) == first.receipt


def test_veiled_it_tells_no_number_and_else_the_same(book):
    receipt = book.ask(asked(1)).receipt
    fields, redacted = receipt.describe(), receipt.redacted().describe()
    assert set(fields) == {"format", "book", "entry", "hash", "submission", "salt"}
    assert (fields["format"], fields["book"], fields["entry"]) == (1, "b", 2)
    assert redacted == {**fields, "entry": None}
    assert bytes.fromhex(fields["salt"]) == receipt.salt


def test_an_entry_that_is_not_a_question_has_no_receipt(book):
    with (
        book.storage.read_transaction(book.name) as view,
        pytest.raises(BrokenLedger, match="no secret"),
    ):
        book.read_receipt(view, 0)
