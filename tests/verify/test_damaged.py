"""Bundles and ledgers that are damaged: how is said."""

import hashlib
from types import SimpleNamespace

import pytest

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.ledger import encode
from ladderboard.verify import verify_bundle
from ladderboard.verify._replay import decode_opened_secret
from support.verify.bundles import make_bundle, read_records

START = b"ladderboard bundle 1\n"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return read_records(make_bundle(tmp_path_factory.mktemp("guard"), questions=2))


def packed(*forms):
    """Return a bundle of records in canonical form, whatever they are, with its hash."""
    content = START + b"".join(len(form).to_bytes(8, "big") + form for form in forms)
    return content + hashlib.sha256(content).digest()


def bundle_of(records, *more, **counts):
    """Return a bundle, and more after its end."""
    end = {"bundle": 1, "key": 1, "holdout": 1, "entry": 5} | counts
    return packed(*map(encode, [*records, ["end", end], *more]))


def refused(tmp_path, content, message, kind=BrokenLedger):
    (tmp_path / "bundle").write_bytes(content)
    with pytest.raises(kind, match=message):
        verify_bundle(tmp_path / "bundle")


def test_what_is_not_damaged(records, tmp_path):
    (tmp_path / "bundle").write_bytes(bundle_of(records))
    assert verify_bundle(tmp_path / "bundle").releases == 2


NONE = "The bundle holds bytes that are not a record"
DAMAGED = {
    "cut off": (lambda records: bundle_of(records)[:-1], "The bundle is cut off"),
    "cut in two": (lambda records: bundle_of(records)[:400], "The bundle is cut off"),
    "nothing": (lambda records: START, "The bundle is cut off"),
    "only a hash": (lambda records: packed(), "The bundle ends too early"),
    "another hash": (lambda records: bundle_of(records)[:-1] + b"?", "hash at the end is wrong"),
    "no record": (lambda records: packed(b"x"), NONE),
    "a record of three": (lambda records: packed(encode(["bundle", 1, 2])), NONE),
    "a record without a kind": (lambda records: packed(encode(["", 1])), NONE),
    "no canonical form": (lambda records: packed(encode(["bundle", 1])[:-1] + b"x"), "'bundle' th"),
    "no entry's form": (
        lambda records: bundle_of([*records[:3], ["entry", 7]]),
        "a record 'entry' th",
    ),
    "no end": (lambda records: packed(*map(encode, records)), "The bundle ends too early"),
    "another count": (lambda records: bundle_of(records, entry=6), "as many records as it states"),
    "a count that is none": (lambda records: bundle_of(records, key=True), "as many records as it"),
    "after the end": (
        lambda records: bundle_of(records, ["end", {}]),
        "a record 'end' that is malformed",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_bundle_that_is_damaged(records, tmp_path, name):
    damage, message = DAMAGED[name]
    refused(tmp_path, damage(records), message)


def test_a_bundle_without_an_entry(records, tmp_path):
    head = [["bundle", records[0][1] | {"labels": False}], records[1]]
    refused(tmp_path, bundle_of(head), "The file holds no entry")


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"ladderboard bundle 3\n", "this file was written by a newer Ladderboard"),
        (b"ladderboard", "this file does not"),
        (b"", "is neither a bundle"),
        (b"PK", "is neither a bundle"),
    ],
)
def test_a_file_that_is_not_a_bundle_is_refused(tmp_path, start, message):
    refused(tmp_path, start, message, InvalidState)


def test_a_bundle_that_becomes_shorter(records, tmp_path, monkeypatch):
    content = bundle_of(records)
    longer = SimpleNamespace(fstat=lambda _: SimpleNamespace(st_size=2 * len(content)))
    monkeypatch.setattr("ladderboard.verify._source.os", longer)
    refused(tmp_path, content[:-100], "The bundle became shorter while it was read")


def test_a_ledger_that_is_cut_off(records, tmp_path):
    lines = b"".join(content[0] + b"\n" for kind, content in records if kind == "entry")
    refused(tmp_path, lines[:-1], "The ledger is cut off: its last line is incomplete")
    refused(
        tmp_path, lines[: len(lines) // 2], "The ledger is cut off: its last line is incomplete"
    )


def test_a_line_without_an_end_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("ladderboard.verify._source._LONGEST_LINE", 100)
    refused(tmp_path, b"{" * 1000, "The ledger is cut off: its last line is incomplete")


@pytest.mark.parametrize("risk", ["7ff8000000000000", "7ff0000000000000", "8000000000000000"])
def test_a_risk_that_is_not_a_number_is_refused(records, risk):
    """NaN, an infinity and the other zero are in no canonical form."""
    secret = next(content[1] for kind, content in records if kind == "entry" and content[1])
    form, risk_form = encode(secret), encode(secret["content"]["risk"])
    assert form.count(risk_form) == 1
    assert decode_opened_secret(form).risk == secret["content"]["risk"]
    with pytest.raises(ValueError, match=r"^$"):
        decode_opened_secret(form.replace(risk_form, b"D" + bytes.fromhex(risk)))
