"""Receipts that were kept, or made up: the words accuse nobody of what somebody else did."""

import json
import re

import pytest

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.verify import read_receipts, verify_bundle
from support.verify.board_history import close_and_bundle, small_board, submit_predictions
from support.verify.bundles import read_records

RECEIPT = {"format": 1, "hash": "0" * 64, "submission": "1" * 64, "salt": "2" * 64, "entry": 3}


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Give a board's bundle, and the answers that its teams heard."""
    folder = tmp_path_factory.mktemp("answered")
    with small_board(folder) as (board, teams):
        answers = [
            submit_predictions(board, teams[index % 3], 10 + index).describe() for index in range(4)
        ]
        return close_and_bundle(board, folder / "bundle"), json.loads(json.dumps(answers))


@pytest.fixture
def write_receipts(tmp_path):
    """Give a function that writes what was kept, and reads it."""

    def read(*receipts):
        (tmp_path / "kept").write_text("\n".join(map(json.dumps, receipts)))
        return read_receipts(tmp_path / "kept")

    return read


def test_every_way_to_keep_a_receipt(answered, write_receipts):
    path, answers = answered
    receipts = [answer["receipt"] for answer in answers]
    for saved in (receipts, answers, [{"sent": "a.csv", "answer": answer} for answer in answers]):
        result = verify_bundle(path, receipts=write_receipts(*saved))
        assert [receipt["entry"] for receipt in result.receipts] == [
            receipt["entry"] for receipt in receipts
        ]
        assert result.unchanged == receipts[-1]["entry"]


def test_what_was_never_answered_is_passed_over(answered, write_receipts, tmp_path):
    path, answers = answered
    assert len(write_receipts({"state": "pending"}, answers[0], {"answer": None})) == 1
    (tmp_path / "kept").write_text(f'{json.dumps(answers[0])}\n{{"state": "answered", "ans')
    assert len(verify_bundle(path, receipts=read_receipts(tmp_path / "kept")).receipts) == 1


def test_an_answer_that_says_less_is_enough(answered, write_receipts):
    """Of an answer only what was kept is compared."""
    path, answers = answered
    saved = {"receipt": answers[0]["receipt"], "improved": answers[0]["improved"]}
    assert len(verify_bundle(path, receipts=write_receipts(saved)).receipts) == 1


FORGED = {
    "a hash": ({"hash": "0" * 64}, "or the receipt is not genuine"),
    "a hash, and no entry": (
        {"hash": "0" * 64, "entry": None}, "The entry that the receipt was given for is not in"
    ),
    "an entry that is not there": (
        {"hash": "0" * 64, "entry": 99}, "Entry 99 that the receipt was given for is not in"
    ),
    "predictions": ({"submission": "0" * 64}, "The receipt was changed: it has the hash of entry"),
    "a salt": ({"salt": "0" * 64}, "or other predictions"),
    "a book": ({"book": "other"}, "The receipt belongs to another ledger"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_receipt_is_not_reported_as_a_forged_ledger(answered, write_receipts, name):
    path, answers = answered
    changes, message = FORGED[name]
    receipt = answers[1]["receipt"] | changes
    with pytest.raises(BrokenLedger, match=re.escape(message)) as caught:
        verify_bundle(path, receipts=write_receipts(receipt))
    assert "of the ledger was changed" not in str(caught.value)
    assert caught.value.entry == (None if "book" in changes else receipt["entry"])


def test_a_receipt_with_the_hash_of_another_kind_of_entry(answered, write_receipts):
    path, answers = answered
    entries = [json.loads(content[0]) for kind, content in read_records(path) if kind == "entry"]
    at = next(at for at, fields in enumerate(entries) if fields["kind"] == "ladder")
    receipt = answers[1]["receipt"] | {"hash": entries[at + 1]["previous"], "entry": None}
    with pytest.raises(BrokenLedger, match=f"it has the hash of entry {at}") as caught:
        verify_bundle(path, receipts=write_receipts(receipt))
    assert caught.value.entry == at


@pytest.mark.parametrize(
    "changes", [{"score": 0.0}, {"improved": None}, {"released": 0.0}, {"question": 9}], ids=str
)
def test_another_answer_than_the_recorded_one(answered, write_receipts, changes):
    path, answers = answered
    words = "records another answer than the one saved with the receipt"
    with pytest.raises(BrokenLedger, match=words) as caught:
        verify_bundle(path, receipts=write_receipts(answers[1] | changes))
    assert caught.value.entry == answers[1]["entry"]


def test_a_receipt_of_a_newer_kind(write_receipts):
    with pytest.raises(InvalidState, match="written by a newer Ladderboard; install that one"):
        write_receipts(RECEIPT | {"book": "b", "format": 2})


def test_a_file_of_receipts_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("ladderboard.verify._receipts._MAX_RECEIPT_FILE", 10)
    (tmp_path / "kept").write_bytes(bytes(11))
    with pytest.raises(InvalidSetting, match="is too long for a file of receipts"):
        read_receipts(tmp_path / "kept")


def test_a_file_of_receipts_that_is_not_there(tmp_path):
    with pytest.raises(StorageFailed, match="cannot be read: No such file"):
        read_receipts(tmp_path / "kept")
