"""The guard: ladders, certificates, processes, copies."""

import json
import stat

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import (
    BrokenLedger,
    InvalidSetting,
    SessionClosed,
    StaleCopy,
)

N = 200
LABELS = np.random.default_rng(1).integers(2, size=N)
LADDER = lb.Ladder(step=0.02)


def wrong(count, labels=LABELS):
    """Return predictions of which this many are wrong."""
    return np.where(np.arange(len(labels)) < count, 1 - labels, labels)


def create(path, labels=LABELS, **settings):
    return lb.Holdout.create(
        path, labels, **{"questions": 20, "ladders": 2, "mechanism": LADDER} | settings
    )


def test_ladders_share_the_budget_and_start_at_one(path):
    guard = create(path)
    guard.ask(wrong(10))
    study = guard.ladder("second study")
    reply = study.ask(wrong(50))
    assert (reply.released, reply.ladder, reply.question) == (0.24, "second study", 1)
    assert guard.remaining == study.remaining == 18
    assert guard.released == 0.04
    again = lb.Holdout.open(path).ladder("second study")
    assert again.released == 0.24
    for bad in ("", "a\nb", 7, "x" * 101):
        with pytest.raises(InvalidSetting, match="ladder's name"):
            guard.ladder(bad)


def test_certificates_count_all_ladders_together(path):
    grid = lb.Ladder(step=0.02, grid=0.01)
    guard = create(path, mechanism=grid)
    guard.ask(wrong(50))
    alone = guard.ask(wrong(49)).bound
    declared = {"released": 0.25, "ladders": 2, "opened": 2, "amendable": True}
    assert alone == lb.bounds.certificate(N, 20, 1, grid, asked=2, **declared)
    study = guard.ladder("b")
    both = study.ask(wrong(50)).bound
    assert both == lb.bounds.certificate(N, 20, 2, grid, asked=3, **declared)
    assert both.nats > alone.nats
    assert guard.certificate.nats == guard.status().certificate.nats == both.nats


def test_before_the_first_release_a_certificate_is_about_differences(path):
    guard = create(path, mechanism=lb.Ladder(step=0.02, grid=0.01))
    assert guard.certificate.differences
    assert guard.released == 1


def test_a_reply_in_a_notebook(path):
    guard = create(path, mechanism=lb.Ladder(step=0.02, grid=0.01))
    html = guard.ask(wrong(50))._repr_html_()
    assert "<b>Improved.</b> The best is now loss 0.25. 19 questions left." in html
    assert "lies in [0." in html
    assert "With confidence 95%" in html


def test_a_reply_is_json_able(path):
    reply = create(path).ask(wrong(50))
    written = json.loads(json.dumps(reply.describe(), allow_nan=False))
    assert {"released", "improved", "question", "remaining", "bound", "reason"} <= set(written)


def test_status_has_all_public_fields(path):
    guard = create(path)
    guard.ask(wrong(50))
    guard.ladder("b").ask(wrong(10))
    status = guard.status().describe()
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    assert [record["released"] for record in status["ladders"]] == [0.24, 0.04]
    assert [record["value"] for record in status["history"]] == [0.24, 0.04]
    assert status["released"] == 0.04
    assert status["remaining"] == 18
    assert status["head"] == guard.head


def breaks_on_ones(labels, predictions):
    if (predictions == 9).any():
        return labels / np.where(labels == predictions, 0, 1)
    if (predictions == 8).any():
        raise ValueError(f"labels are {labels}")
    return labels != predictions


def test_a_failing_loss_reveals_nothing(path):
    guard = create(path, loss=breaks_on_ones)
    for label in (8, 9):
        reply = guard.ask(np.where(np.arange(N) < 5, label, LABELS))
        assert not reply.improved
        assert reply.released == 1
    assert guard.remaining == 18
    assert guard.ask(LABELS).released == 0
    assert guard.check() == 3


class UnregisteredLadder(lb.Ladder):
    name = "own"


def test_a_custom_mechanism_and_loss(path):
    guard = create(path, mechanism=UnregisteredLadder(step=0.02), loss=breaks_on_ones)
    guard.ask(wrong(50))
    with pytest.raises(InvalidSetting, match="own"):
        lb.Holdout.open(path)
    again = lb.Holdout.open(path, mechanism=UnregisteredLadder(step=0.02))
    assert again.remaining == 19
    with pytest.raises(InvalidSetting, match="another loss"):
        lb.Holdout.open(path, mechanism=UnregisteredLadder(step=0.02), loss="zero_one")
    with pytest.raises(InvalidSetting, match="cannot be imported by name"):
        create(path.with_name("b.db"), loss=lambda labels, predictions: labels != predictions)


def test_closing_for_good_returns_the_withheld_value(path):
    guard = create(path, mechanism=lb.OneBit(step=0.1))
    guard.ask(wrong(50))
    assert guard.close_for_good() == 0.2
    with pytest.raises(SessionClosed):
        guard.ask(wrong(10))
    assert guard.status().describe()["closed"]


def test_a_copy_needs_to_be_restored(path, tmp_path):
    grid = lb.Ladder(step=0.02, grid=0.01)
    guard = create(path, mechanism=grid)
    guard.ask(wrong(50))
    guard.backup(tmp_path / "copy.db")
    guard.ask(wrong(30))
    with pytest.raises(StaleCopy, match=r"move .*copy.db.mark too.*guard restore .* --charge N"):
        lb.Holdout.open(tmp_path / "copy.db")
    copy = lb.Holdout.restore(tmp_path / "copy.db", charge=4)
    assert copy.remaining == 15
    assert copy.released == 0.25
    assert copy.ask(wrong(50)).again
    # Each of the four answers that are lost may have been a change, on any ladder.
    lost = {"ladders": 2, "opened": 2 + 4, "amendable": True}
    expected = lb.bounds.certificate(N, 20, 1 + 4, grid, released=0.25, asked=5, **lost)
    assert copy.certificate == expected
    assert guard.remaining == 18
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600


def test_swapped_labels_are_detected_by_check(path, tmp_path):
    guard = create(path)
    guard.ask(wrong(50))
    other = create(tmp_path / "other.db", 1 - LABELS)
    with guard._book.storage.write_transaction(guard._book.name) as book:
        book.set_value("sample", b"\0" + other._book.read_encrypted("sample"))
    with pytest.raises(BrokenLedger, match="labels differ"):
        guard.check()


def test_repr_contains_no_secret(path):
    guard = create(path)
    assert repr(guard) == f"Holdout({str(path)!r}, remaining=20)"
    scored = guard._scorer.score(guard._scorer.read(LABELS))
    assert "ScoringResult" in repr(scored)
    assert "risk" not in repr(scored)
