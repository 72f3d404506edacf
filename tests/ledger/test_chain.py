"""Entries, the chain they make, and commitments."""

import hashlib
import json

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment, Entry, iter_checked_entries


def chain(length=4, book="b"):
    forms, previous = [], bytes(32)
    for number in range(length):
        entry = Entry.make(
            book=book, number=number, kind="question", time=100 + number, previous=previous, more=1
        )
        forms.append(entry.encoded)
        previous = entry.hash
    return forms


def written(**changed):
    fields = json.loads(chain(1)[0]) | changed
    return json.dumps(fields).encode()


def test_an_entry_is_hashed_with_its_length_as_documented():
    entry = Entry(chain(1)[0])
    prefix = b"ladderboard:1:entry\n" + len(entry.encoded).to_bytes(8, "big")
    assert entry.hash == hashlib.sha256(prefix + entry.encoded).digest()
    assert entry.encoded.isascii()


def test_a_chain_is_followed():
    read = [fields["number"] for _, fields in iter_checked_entries(chain())]
    assert read == [0, 1, 2, 3]


def test_every_changed_byte_of_a_chain_is_found_at_its_entry_or_the_next():
    forms = chain()
    for number, form in enumerate(forms[:-1]):
        for index in range(len(form)):
            changed = form[:index] + bytes([form[index] ^ 1]) + form[index + 1 :]
            with pytest.raises(BrokenLedger, match=f"Entry ({number}|{number + 1})"):
                list(iter_checked_entries([*forms[:number], changed, *forms[number + 1 :]], "b"))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([1, 2, 3], "Entry 0 .* numbered 1"),
        ([0, 2, 3], "Entry 1 .* numbered 2"),
        ([0, 1, 1, 2], "Entry 2 .* numbered 1"),
        ([0, 2, 1, 3], "Entry 1 .* numbered 2"),
    ],
)
def test_dropped_doubled_and_reordered_entries_are_named(order, message):
    forms = chain()
    with pytest.raises(BrokenLedger, match=message):
        list(iter_checked_entries(forms[name] for name in order))


def test_entries_of_another_book_are_refused():
    with pytest.raises(BrokenLedger, match="another book"):
        list(iter_checked_entries(chain(), "c"))


def test_time_does_not_run_backwards():
    first = Entry(chain(1)[0])
    second = Entry.make(book="b", number=1, kind="x", time=99, previous=first.hash)
    with pytest.raises(BrokenLedger, match="time is before"):
        list(iter_checked_entries([first.encoded, second.encoded]))


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"7",
        written(format=2),
        written(number=True),
        written(time="1"),
        chain(1)[0][:-1] + b',"kind":"question"}',  # said twice
        chain(1)[0].replace(b'"more":1', b'"more":NaN'),
    ],
)
def test_bytes_that_are_not_an_entry_are_refused(form):
    with pytest.raises(BrokenLedger, match="Entry 0"):
        list(iter_checked_entries([form]))


def test_a_commitment_hides_and_binds():
    one = Commitment.create("holdout", b"labels")
    other = Commitment.create("holdout", b"labels")
    assert one.hash != other.hash
    assert one.opens(one.hash)
    assert not other.opens(one.hash)
    assert not Commitment("holdout", b"others", one.salt).opens(one.hash)
    assert not Commitment("key", b"labels", one.salt).opens(one.hash)
