"""Receipts of submissions: access to them, and what they reveal."""

import json

import numpy as np
import pytest

from ladderboard.board import Caller, Role
from ladderboard.errors import NotFound
from ladderboard.ledger import Commitment, Entry

EVALUATOR = Caller(Role.EVALUATOR)


@pytest.fixture
def board(boards, make_folder):
    return boards.create(make_folder())


def entry_of(board, number):
    with board.reading() as view:
        return Entry(next(iter(view.entries(number, number + 1))))


def test_an_answer_holds_a_receipt_that_opens_its_entry(boards, board, join, submit, predict):
    ada, _ = join(boards, board, "Ada")
    for errors in (30, 20, 40):
        answer = submit(board, ada, predict(errors)).describe()
        receipt, entry = answer["receipt"], entry_of(board, answer["entry"])
        assert receipt["book"] == board.book.name
        assert (receipt["entry"], receipt["hash"]) == (answer["entry"], entry.hash.hex())
        digest = board.scorer().read(predict(errors)).digest
        assert receipt["submission"] == digest.hex()
        commitment = Commitment("submission", digest, bytes.fromhex(receipt["salt"]))
        assert commitment.hash.hex() == entry.read()["submission"]


def test_a_lost_receipt_is_returned_again(boards, board, join, submit, predict):
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    first = submit(board, ada, predict(30)).describe()
    submit(board, bob, predict(20))
    for repeated in (
        submit(board, ada, predict(30)),
        submit(board, ada, predict(30), idempotency_key="k"),
    ):
        assert repeated.again
        assert repeated.describe()["receipt"] == first["receipt"]
    for caller in (ada, EVALUATOR, Caller(Role.ORGANISER)):
        assert board.as_seen_by(caller).submission(first["id"])["receipt"] == first["receipt"]
    with pytest.raises(NotFound):
        board.as_seen_by(bob).submission(first["id"])
    assert "receipt" not in board.as_seen_by(ada).submissions()[0]


@pytest.mark.parametrize("visibility", ["hidden", "frozen"])
def test_a_redacted_receipt_does_not_reveal_other_submissions(
    boards, board, join, submit, predict, organiser, visibility
):
    ada, _ = join(boards, board, "Ada")
    board.amendments.amend(organiser, {"visibility": visibility})
    answer = submit(board, ada, predict(30)).describe()
    assert answer["receipt"]["entry"] is None
    own_receipt = board.as_seen_by(ada).submission(answer["id"])["receipt"]
    assert own_receipt == answer["receipt"] == submit(board, ada, predict(30)).describe()["receipt"]
    by_organiser = board.as_seen_by(organiser).submission(answer["id"])
    assert by_organiser["receipt"] == {**own_receipt, "entry": by_organiser["entry"]}
    assert entry_of(board, by_organiser["entry"]).hash.hex() == own_receipt["hash"]
    board.amendments.amend(organiser, {"visibility": "public"})
    assert board.as_seen_by(ada).submission(answer["id"])["receipt"] == by_organiser["receipt"]


def test_after_corrected_labels_the_receipt_is_that_of_the_last_answer(
    boards, board, join, submit, predict, organiser, make_folder
):
    ada, _ = join(boards, board, "Ada")
    first = submit(board, ada, predict(30)).describe()
    board.amendments.correct_labels(organiser, make_folder(labels=np.arange(400) // 2 % 2).table)
    submission = board.as_seen_by(ada).submission(first["id"])
    assert submission["receipt"]["entry"] == submission["entry"] > first["entry"]
    assert submission["receipt"]["submission"] == first["receipt"]["submission"]
    assert submission["receipt"]["salt"] != first["receipt"]["salt"]


def test_a_receipt_holds_no_salt_but_its_own(boards, board, join, submit, predict):
    ada, _ = join(boards, board, "Ada")
    answer = submit(board, ada, predict(30)).describe()
    with board.reading() as view:
        secret_salts = [
            board.book.read_encrypted(f"salt of the {name}") for name in ("holdout", "key")
        ]
        secret = view.secret_side(answer["entry"])
    own_salt = bytes.fromhex(answer["receipt"]["salt"])
    assert own_salt in secret
    assert own_salt not in secret_salts
    with board.reading() as view:
        chain = b"".join(view.entries())
    assert own_salt.hex().encode() not in chain
    assert not [salt_ for salt_ in secret_salts if salt_.hex() in json.dumps(answer)]
