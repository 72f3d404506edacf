"""Receipts of submissions to a board: whose they are, and what they tell."""

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
    for wrong in (30, 20, 40):
        said = submit(board, ada, predict(wrong)).describe()
        receipt, entry = said["receipt"], entry_of(board, said["entry"])
        assert receipt["book"] == board.book.name
        assert (receipt["entry"], receipt["hash"]) == (said["entry"], entry.hash.hex())
        digest = board.scorer().read(predict(wrong)).digest
        assert receipt["submission"] == digest.hex()
        opened = Commitment("submission", digest, bytes.fromhex(receipt["salt"]))
        assert opened.hash.hex() == entry.read()["submission"]


def test_a_receipt_that_was_lost_is_told_again(boards, board, join, submit, predict):
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    first = submit(board, ada, predict(30)).describe()
    submit(board, bob, predict(20))
    for again in (submit(board, ada, predict(30)), submit(board, ada, predict(30), retry="k")):
        assert again.again
        assert again.describe()["receipt"] == first["receipt"]
    for caller in (ada, EVALUATOR, Caller(Role.ORGANISER)):
        assert board.as_seen_by(caller).submission(first["id"])["receipt"] == first["receipt"]
    with pytest.raises(NotFound):
        board.as_seen_by(bob).submission(first["id"])
    assert "receipt" not in board.as_seen_by(ada).submissions()[0]


@pytest.mark.parametrize("visibility", ["hidden", "frozen"])
def test_a_veiled_receipt_does_not_tell_how_often_others_asked(
    boards, board, join, submit, predict, organiser, visibility
):
    ada, _ = join(boards, board, "Ada")
    board.amendments.amend(organiser, {"visibility": visibility})
    said = submit(board, ada, predict(30)).describe()
    assert said["receipt"]["entry"] is None
    own = board.as_seen_by(ada).submission(said["id"])["receipt"]
    assert own == said["receipt"] == submit(board, ada, predict(30)).describe()["receipt"]
    seen = board.as_seen_by(organiser).submission(said["id"])
    assert seen["receipt"] == {**own, "entry": seen["entry"]}
    assert entry_of(board, seen["entry"]).hash.hex() == own["hash"]
    board.amendments.amend(organiser, {"visibility": "public"})
    assert board.as_seen_by(ada).submission(said["id"])["receipt"] == seen["receipt"]


def test_after_corrected_labels_the_receipt_is_that_of_the_last_answer(
    boards, board, join, submit, predict, organiser, make_folder
):
    ada, _ = join(boards, board, "Ada")
    first = submit(board, ada, predict(30)).describe()
    board.amendments.correct_labels(organiser, make_folder(labels=np.arange(400) // 2 % 2).table)
    own = board.as_seen_by(ada).submission(first["id"])
    assert own["receipt"]["entry"] == own["entry"] > first["entry"]
    assert own["receipt"]["submission"] == first["receipt"]["submission"]
    assert own["receipt"]["salt"] != first["receipt"]["salt"]


def test_a_receipt_holds_no_salt_but_its_own(boards, board, join, submit, predict):
    ada, _ = join(boards, board, "Ada")
    said = submit(board, ada, predict(30)).describe()
    with board.reading() as view:
        kept = [board.book.read_encrypted(f"salt of the {what}") for what in ("holdout", "key")]
        secret = view.secret_side(said["entry"])
    own = bytes.fromhex(said["receipt"]["salt"])
    assert own in secret
    assert own not in kept
    with board.reading() as view:
        chain = b"".join(view.entries())
    assert own.hex().encode() not in chain
    assert not [each for each in kept if each.hex() in json.dumps(said)]
