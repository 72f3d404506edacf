"""The secrets of a closed guard can be published for verification."""

import hashlib
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BrokenLedger, InvalidState, WrongKey
from ladderboard.holdout import sample_digest
from ladderboard.ledger import Commitment, Entry
from ladderboard.verify import verify_bundle
from support.verify.board_history import read_bundle
from support.verify.second_verifier import run_second_verifier

LABELS = np.arange(200) % 2
PROGRAM = Path(__file__).parents[2] / "examples" / "check_bundle.py"


def wrong(count):
    return LABELS ^ (np.arange(200) < count)


@pytest.fixture
def guard(tmp_path):
    """An encrypted guard that was asked on two ladders."""
    key = tmp_path / "key"
    created = lb.Holdout.create(tmp_path / "guard.db", LABELS, questions=9, ladders=2, key_file=key)
    for count in (60, 40, 20):
        created.ask(wrong(count))
    created.ladder("other").ask(wrong(10))
    return created


def test_secrets_are_revealed_only_after_the_close(guard, tmp_path):
    out = tmp_path / "bundle"
    with pytest.raises(InvalidState, match="not closed"):
        guard.reveal(out, labels=True)
    assert not out.exists()
    guard.close_for_good()
    assert guard.reveal(out).hash.hex() == guard.head
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with pytest.raises(InvalidState, match="already"):
        guard.reveal(out)


@pytest.mark.parametrize("labels", [False, True])
def test_the_bundle_opens_every_commitment(guard, tmp_path, labels):
    guard.close_for_good()
    head = guard.reveal(tmp_path / "bundle", labels=labels)
    records = read_bundle(tmp_path / "bundle")
    assert records[0] == ["bundle", {
        "format": 1, "of": "guard", "book": guard._book.name, "entries": head.entries,
        "head": head.hash, "labels": labels, "submissions": False,
    }]  # fmt: skip
    entries = [content for kind, content in records if kind == "entry"]
    opened = Entry(entries[0][0]).read()
    kind, key = records[1]
    committed_key = Commitment("key", hashlib.sha256(key["key"]).digest(), key["salt"])
    assert (kind, committed_key.hash.hex()) == ("key", opened["key"])
    questions = [(Entry(form).read(), secret) for form, secret in entries if secret is not None]
    assert [fields["kind"] for fields, _ in questions] == ["question"] * 4
    for fields, secret in questions:
        committed = Commitment("secret", secret["content"], secret["salt"])
        assert committed.hash.hex() == fields["secret"]
    assert [secret["content"]["risk"] for _, secret in questions] == [0.3, 0.2, 0.1, 0.05]
    holdouts = [content for kind, content in records if kind == "holdout"]
    assert len(holdouts) == labels
    salt = guard._book.read_encrypted("salt of the holdout")
    assert (salt in (tmp_path / "bundle").read_bytes()) == labels
    for holdout in holdouts:
        committed = Commitment("holdout", sample_digest(holdout["sample"]), holdout["salt"])
        assert (holdout["epoch"], committed.hash.hex()) == (0, opened["holdout"])


def test_an_encrypted_bundle_needs_the_key(guard, tmp_path):
    guard.close_for_good()
    guard.close()
    with pytest.raises(WrongKey):
        lb.Holdout.open(tmp_path / "guard.db")
    again = lb.Holdout.open(tmp_path / "guard.db", key_file=tmp_path / "key")
    again.reveal(tmp_path / "bundle")


def test_a_missing_secret_side_is_reported(guard, tmp_path):
    guard.close_for_good()
    with guard._book.storage.write_transaction(guard._book.name) as view:
        view.execute("DELETE FROM main.secret WHERE place % 1099511627776 = 3")
    with pytest.raises(BrokenLedger, match="entry 3 "):
        guard.reveal(tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_both_verifiers_count_ladders(tmp_path):
    """More ladders than declared are detected."""
    guard = lb.Holdout.create(tmp_path / "guard.db", LABELS, questions=9, ladders=2)
    guard.ladder("one").ask(wrong(60))
    guard.ladder("two").ask(wrong(50))
    guard._book.max_ladders = None
    guard.ladder("three").ask(wrong(40))
    guard.close_for_good()
    guard.reveal(tmp_path / "bundle", labels=True)
    with pytest.raises(BrokenLedger, match=r"[Ee]ntry 7.*ladder.*than were declared"):
        verify_bundle(tmp_path / "bundle")
    command = [sys.executable, PROGRAM, tmp_path / "bundle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "entry 7: it is asked on a ladder more than were declared" in done.stdout + done.stderr


def test_both_verifiers_know_a_growing_ladder(tmp_path):
    labels = np.linspace(0, 600, 200)
    rng = np.random.default_rng(0)
    settings = {
        "value": {"labels": LABELS},
        "model": {"labels": labels, "loss": lb.loss("squared", range=(0, 600))},
    }
    for scale, setting in settings.items():
        mechanism = lb.GrowingLadder(step=1, scale=scale)
        guard = lb.Holdout.create(
            tmp_path / f"{scale}.db", questions=9, mechanism=mechanism, **setting
        )
        for size in (60, 20, 2):
            noisy = np.clip(labels + size * rng.standard_normal(200), 0, 600)
            guard.ask(wrong(size) if scale == "value" else noisy)
        guard.close_for_good()
        guard.reveal(tmp_path / scale, labels=True)
        assert verify_bundle(tmp_path / scale).releases == 3
        assert run_second_verifier(tmp_path / scale).startswith("6 entries, 3 questions")
