"""Records that are proven better than the record before, in the ledger, in replies and verified."""

import json
import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BrokenLedger
from ladderboard.holdout._scorer import RecordProver, pack_losses, unpack_losses
from ladderboard.mechanisms import VisibleChange
from ladderboard.verify import verify_bundle
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import read_records, write_records
from support.verify.second_verifier import run_second_verifier

N = 2_000
LABELS = np.random.default_rng(0).integers(2, size=N)
KEY = b"k" * 32


def model(quality, seed=0):
    right = np.random.default_rng([seed, round(1000 * quality)]).random(N) < quality
    return np.where(right, LABELS, 1 - LABELS)


@pytest.fixture
def guard(tmp_path):
    holdout = lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=200, ladders=2, key=KEY, key_file=tmp_path / "key"
    )
    yield holdout
    holdout.close()


def questions(guard):
    return [fields for _, fields in guard._book.entries() if fields["kind"] == "question"]


def test_a_record_says_whether_it_is_proven(guard):
    replies = [guard.ask(model(quality)) for quality in (0.6, 0.7, 0.69, 0.75, 0.95)]
    assert [reply.improved for reply in replies] == [True, True, False, True, True]
    assert [reply.proven for reply in replies] == [None, True, None, False, True]
    assert [fields["proven"] for fields in questions(guard)] == [None, True, None, False, True]
    assert "It is proven better than the best before." in str(replies[1])
    assert "proven" not in str(replies[3])
    assert guard.ask(model(0.7)).proven
    assert guard.ladder("other").ask(model(0.9)).proven is None  # the first on its ladder
    assert guard.check() == 6


def test_the_price_is_that_of_the_transcript(guard):
    """ln 2 for the bit of every change so far, and what was released."""
    book = guard._book
    prover = RecordProver.of(book.mechanism, book.opening, guard._scorer)
    for quality in (0.6, 0.7, 0.8):
        guard.ask(model(quality))
    changes = book.visible_changes(book.chain_state())
    assert [(change.question, change.ladder) for change in changes] == [(1, 0), (2, 0), (3, 0)]
    assert [change.value for change in changes] == [fields["value"] for fields in questions(guard)]
    options = {"asked": 4, "ladders": 2, "opened": 2, "amendable": True}
    plain, with_bits = (
        lb.bounds.certificate(N, 200, list(changes), book.mechanism, proven=proven, **options).nats
        for proven in (False, True)
    )
    assert with_bits - plain == pytest.approx(3 * math.log(2))
    price = prover.nats(changes, book.chain_state())
    assert price == pytest.approx(with_bits - math.log(2 / 0.05))
    restored = book.chain_state()._replace(charged=1)
    assert prover.nats(changes, restored) == math.inf  # what was lost is unknown


def test_equal_models_are_not_proven_better(tmp_path):
    """Records of 40 coin flips are luck; each game may have a false mark once in twenty."""
    rng = np.random.default_rng(5)
    marks = []
    for game in range(2):
        guard = lb.Holdout.create(tmp_path / f"{game}.db", LABELS, questions=40)
        marks += [guard.ask(rng.integers(2, size=N)).proven for _ in range(40)]
        guard.close()
    assert any(mark is False for mark in marks)
    assert True not in marks


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_compared_by_groups_and_weights(tmp_path, weighted):
    labels = np.linspace(0, 1, N)
    weight = np.where(np.arange(N) < 1000, 1.0, 2.0) if weighted else None
    loss = lb.loss("absolute", range=(0, 1))
    guard = lb.Holdout.create(
        tmp_path / "a.db", labels, loss=loss, questions=50, group=np.arange(N) // 2, weight=weight
    )
    assert guard.ask(1 - labels).proven is None
    reply = guard.ask(labels)
    assert (reply.released, reply.proven) == (0, True)
    stored = guard._book.read_encrypted("record 0")
    assert unpack_losses(stored).tolist() == [0.0] * (N // 2)
    assert guard.check() == 2


def test_packed_losses_have_a_size_that_does_not_depend_on_them():
    zeros, ones = np.zeros(100), np.ones(100)
    for bits in (True, False):
        assert len({len(pack_losses(losses, bits=bits)) for losses in (zeros, ones)}) == 1


def test_both_verifiers_check_the_field(guard, tmp_path):
    for quality in (0.6, 0.7, 0.69, 0.95):
        guard.ask(model(quality))
    guard.close_for_good()
    guard.reveal(tmp_path / "bundle", labels=True)
    assert verify_bundle(tmp_path / "bundle").releases == 4
    assert run_second_verifier(tmp_path / "bundle").startswith("7 entries, 4 questions")
    for number, value in ((0, True), (1, None), (2, False), (3, 1)):
        forge = BundleForge(read_records(tmp_path / "bundle"))
        forge.of("question")[number].fields["proven"] = value
        path = write_records(tmp_path / f"forged {number}", forge.records())
        with pytest.raises(BrokenLedger, match="proven"):
            verify_bundle(path)
        assert "proven" in run_second_verifier(path)


def test_guards_with_a_mechanism_of_their_own_have_no_such_field(tmp_path):
    guard = lb.Holdout.create(tmp_path / "a.db", LABELS, questions=9, mechanism=lb.Ladder(step=0.1))
    reply = guard.ask(model(0.9))
    assert reply.proven is None
    assert "proven" not in json.dumps([questions(guard), guard.status().opening, reply.describe()])


def test_changes_are_found_among_many_questions(tmp_path):
    guard = lb.Holdout.create(tmp_path / "a.db", LABELS, questions=99, key=KEY)
    for seed in range(30):
        guard.ask(model(0.9 if seed >= 17 else 0.6, seed))
    expected = tuple(
        VisibleChange(number, fields["value"], 0)
        for number, fields in enumerate(questions(guard), start=1)
        if fields["improved"]
    )
    assert guard._book.visible_changes(guard._book.chain_state()) == expected
    assert len(expected) >= 2
