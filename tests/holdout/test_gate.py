"""The gate: verdicts, what they cost, what is shown, and that its ledger verifies."""

import json
import pickle
import sqlite3

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds import LookPrices, required_net_wins
from ladderboard.errors import (
    BudgetSpent,
    InvalidPredictions,
    InvalidSetting,
    InvalidState,
    SessionClosed,
    StaleCopy,
)
from ladderboard.holdout import export_entries
from ladderboard.verify import verify_bundle

N = 400
LABELS = np.random.default_rng(5).integers(0, 2, N)


def wrong_on(*rows):
    """Return predictions that are wrong on these rows and right elsewhere."""
    predictions = LABELS.copy()
    predictions[list(rows)] ^= 1
    return predictions


def pair(wins, losses, common=60):
    """Return an incumbent and a candidate that wins and loses on this many examples."""
    incumbent = wrong_on(*range(wins), *range(N - common, N))
    candidate = wrong_on(*range(wins, wins + losses), *range(N - common, N))
    return incumbent, candidate


@pytest.fixture
def gate(tmp_path):
    """Return a gate of 50 looks with an incumbent."""
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=50, margin=0.05)
    assert gate.promote(pair(40, 0)[0]) == 1
    return gate


def test_a_clear_gain_is_better_and_noise_is_not(gate):
    better = gate.check(pair(40, 4)[1])
    assert (better.outcome, better.look, better.remaining) == ("better", 1, 49)
    assert (better.differing, better.again, better.incumbent) == (44, False, 1)
    unclear = gate.check(pair(40, 36)[1])
    assert (unclear.outcome, unclear.differing, unclear.look) == ("cannot_tell", 76, 2)
    assert unclear.nats > better.nats
    assert unclear.needed == required_net_wins(76, unclear.nats, 0.05)
    with pytest.raises(TypeError, match=r"'cannot_tell'.*verdict\.not_worse"):
        assert unclear
    assert str(unclear) == (
        'Cannot tell. The two differ on 76 examples. "Not worse" needed '
        f'{unclear.needed_not_worse} more wins than losses; "better" needed {unclear.needed} more '
        "wins than losses among them. 48 looks left."
    )


def test_verdicts_follow_the_net_wins_exactly(tmp_path):
    for net_over in (-2, 0):
        gate = lb.Gate.create(tmp_path / f"{net_over}.db", LABELS, looks=10)
        needed = required_net_wins(60, LookPrices(10).nats(1), 0.05)
        wins = (60 + needed + net_over) // 2
        incumbent, candidate = pair(wins, 60 - wins)
        gate.promote(incumbent)
        verdict = gate.check(candidate)
        assert verdict.needed == needed
        assert verdict.outcome == ("cannot_tell" if net_over else "better")


def test_the_incumbents_own_predictions_are_not_worse_for_free(gate, tmp_path):
    before = gate.head
    incumbent = pair(40, 0)[0]
    for margin in (None, 0.0):
        verdict = gate.check(incumbent, margin=margin)
        assert (verdict.outcome, verdict.look, verdict.differing) == ("not_worse", 0, 0)
        assert (verdict.remaining, verdict.incumbent, verdict.again) == (50, 1, False)
    assert str(verdict) == (
        "The predictions are the incumbent's own, so they are not worse. No look was used. 50 "
        "looks left."
    )
    assert (gate.head, gate.remaining, gate.verify_ledger()) == (before, 50, 0)
    gate.promote(pair(40, 4)[1])
    assert gate.check(incumbent).look == 1
    scores = lb.Gate.create(
        tmp_path / "scores.db", ids=np.arange(N), looks=9, scores=True, margin=0.05
    )
    passed = {"id": np.arange(N), "score": np.arange(N) % 2}
    scores.promote(passed)
    # Whether scores are equal is data.
    assert [scores.check(passed).look for _ in range(2)] == [1, 2]
    assert not scores.check(passed).again
    assert [scores.promote(passed) for _ in range(2)] == [2, 3]
    assert scores.verify_ledger() == 3


def test_not_worse_needs_a_margin(gate):
    candidate = pair(40, 36)[1]
    verdict = gate.check(candidate, margin=0.0)
    assert verdict.outcome == "cannot_tell"
    assert 'The margin is 0, so "not worse" means "better".' in verdict.reason
    verdict = gate.check(candidate, margin=0.15)
    assert (verdict.outcome, verdict.margin) == ("not_worse", 0.15)
    assert verdict.not_worse
    assert not verdict.better
    assert verdict.needed_not_worse < 0 < verdict.needed
    assert str(verdict).startswith("Not worse than the incumbent, within the margin of 0.15.")
    unclear = gate.check(pair(40, 80)[1], margin=0.15)
    assert unclear.outcome == "cannot_tell"
    allowed = f"at most {-unclear.needed_not_worse} more losses than wins"
    assert f'"Not worse" needed {allowed}; "better" needed {unclear.needed} more' in str(unclear)
    # Differing on so few examples, it cannot be worse by so much: known without a label.
    assert gate.check(wrong_on(), margin=0.3).outcome in {"better", "not_worse"}


def test_a_verdict_that_is_certain_costs_nothing_later(gate):
    """Models that differ on fewer examples than the margin allows cannot be worse by more."""
    incumbent = pair(40, 0)[0]
    for row in (50, 60, 70):
        candidate = incumbent.copy()
        candidate[[row, row + 1]] ^= 1
        verdict = gate.check(candidate)
        assert (verdict.outcome, verdict.needed_not_worse) == ("not_worse", -2)
    assert gate.status().next_nats == LookPrices(50).nats(4)
    gate.check(pair(40, 4)[1])
    assert gate.status().next_nats == LookPrices(50).nats(5, [2])
    assert gate.verify_ledger() == 4


def test_worse_is_a_verdict_if_it_was_declared(tmp_path):
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=5, worse=True)
    incumbent, candidate = pair(2, 40)
    gate.promote(incumbent)
    verdict = gate.check(candidate)
    assert (verdict.outcome, str(verdict)) == (
        "worse",
        "Worse than the incumbent. 4 looks left.",
    )


def test_the_same_look_again_is_free(gate):
    candidate = pair(40, 4)[1]
    first = gate.check(candidate)
    again = gate.check(list(candidate))
    assert again.again
    assert (again.outcome, again.look, again.remaining) == (first.outcome, 1, 49)
    assert str(again).startswith("Same as look 1; not counted.")
    assert gate.check(candidate, margin=0.01).look == 2
    assert gate.promote(candidate) == 2
    assert gate.promote(candidate) == 2
    assert gate.check(pair(40, 0)[0]).look == 3
    # The first incumbent comes back: what was said about the candidate beside it still holds.
    assert gate.promote(pair(40, 0)[0]) == 3
    assert gate.check(candidate).look == 1
    assert gate.remaining == 47


def test_refusals_cost_nothing(tmp_path):
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=2)
    head = gate.head
    with pytest.raises(InvalidSetting, match="promote one first"):
        gate.check(LABELS)
    with pytest.raises(InvalidPredictions):
        gate.promote(LABELS[:-1])
    with pytest.raises(InvalidPredictions):
        gate.check(np.where(LABELS == 0, 7, LABELS))
    for margin in (-0.1, 1, float("nan"), "0.1"):
        with pytest.raises(InvalidSetting, match="margin"):
            gate.check(LABELS, margin=margin)
    assert gate.head == head
    gate.promote(LABELS)
    for every in (3, 5):
        gate.check(wrong_on(*range(0, N, every)))
    with pytest.raises(BudgetSpent, match="All 2 looks were used"):
        gate.check(wrong_on(1))
    assert gate.check(wrong_on(*range(0, N, 3))).again
    gate.close_for_good()
    with pytest.raises(SessionClosed):
        gate.promote(wrong_on(1))


def test_a_guard_and_a_gate_keep_to_their_files(tmp_path):
    lb.Gate.create(tmp_path / "gate.db", LABELS, looks=2)
    lb.Holdout.create(tmp_path / "guard.db", LABELS, questions=2)
    with pytest.raises(InvalidState, match="a gate's file"):
        lb.Holdout.open(tmp_path / "gate.db")
    with pytest.raises(InvalidState, match="a guard's file"):
        lb.Gate.open(tmp_path / "guard.db")


def test_a_gate_can_be_opened_and_pickled(gate, tmp_path):
    candidate = pair(40, 4)[1]
    first = gate.check(candidate)
    for other in (
        lb.Gate.open(tmp_path / "gate.db", labels=LABELS),
        pickle.loads(pickle.dumps(gate)),
    ):
        assert other.check(candidate).again
        assert (other.margin, other.looks, other.remaining) == (0.05, 50, first.remaining)


def test_multiclass_and_real_losses_have_their_own_tests(tmp_path):
    classes = np.random.default_rng(1).integers(0, 4, N)
    gate = lb.Gate.create(tmp_path / "classes.db", classes, looks=20)
    assert gate.status().test == "convex"
    gate.promote(np.where(np.arange(N) < 60, (classes + 1) % 4, classes))
    both_wrong = np.where(np.arange(N) < 20, (classes + 2) % 4, classes)
    verdict = gate.check(both_wrong)
    assert (verdict.differing, verdict.outcome) == (60, "better")
    assert verdict.needed == required_net_wins(60, verdict.nats, 0.05, binary=False)

    numbers = np.random.default_rng(2).normal(0, 1, N).clip(-3, 3)
    gate = lb.Gate.create(
        tmp_path / "numbers.db", numbers, looks=20, loss=lb.loss("absolute", range=(-3, 3))
    )
    assert gate.status().test == "bets"
    gate.promote(np.zeros(N))
    verdict = gate.check(numbers * 0.5)
    assert (verdict.outcome, verdict.needed) == ("better", None)
    assert verdict.differing == N - (numbers == 0).sum()


def test_scores_hide_how_many_differ(tmp_path):
    ids = [f"case{index}" for index in range(N)]
    gate = lb.Gate.create(tmp_path / "gate.db", ids=ids, looks=20, scores=True)
    gate.promote({"id": ids, "score": np.repeat([0, 1], [80, N - 80])})
    verdict = gate.check({"id": ids, "score": np.repeat([0, 1], [20, N - 20])})
    assert verdict.outcome == "better"
    assert (verdict.differing, verdict.needed, verdict.needed_not_worse) == (None, None, None)
    export_entries(tmp_path / "gate.db", tmp_path / "ledger.jsonl")
    look = json.loads((tmp_path / "ledger.jsonl").read_text().splitlines()[-1])
    assert (look["kind"], look["differing"]) == ("look", None)


def test_groups_and_weights_use_bets(tmp_path):
    patients = np.repeat(np.arange(N // 4), 4)
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=20, group=patients)
    assert (gate.status().test, gate.status().n) == ("bets", N // 4)
    gate.promote(wrong_on(*range(0, N, 2)))
    assert gate.check(LABELS).outcome == "better"
    weighted = lb.Gate.create(tmp_path / "w.db", LABELS, looks=20, weight=1 + np.arange(N) % 3)
    assert weighted.status().test == "bets"


def test_nothing_that_depends_on_labels_is_public(tmp_path):
    """Two worlds with other labels and the same verdicts have the same public ledger."""
    lines = []
    for world in (0, 1):
        labels = LABELS.copy()
        labels[:40:2] ^= world  # other wins, few enough to prove nothing
        path = tmp_path / f"{world}.db"
        gate = lb.Gate.create(path, labels, looks=20, classes=[0, 1])
        gate.promote(wrong_on(*range(40)))
        gate.check(wrong_on(*range(20, 60)))
        export_entries(path, tmp_path / f"{world}.jsonl")
        entries = [
            json.loads(line) for line in (tmp_path / f"{world}.jsonl").read_text().splitlines()
        ]
        hidden = {
            "book",
            "time",
            "previous",
            "submission",
            "secret",
            "holdout",
            "key",
            "commitment",
        }
        lines.append([{k: v for k, v in entry.items() if k not in hidden} for entry in entries])
        with sqlite3.connect(path) as database:
            lines[-1].append(database.execute("SELECT length(packed) FROM secret").fetchall())
    assert lines[0] == lines[1]


def test_the_price_counts_looks_and_verdicts(gate):
    prices = LookPrices(50)
    first = gate.check(pair(40, 4)[1], margin=0.0)
    second = gate.check(pair(40, 36)[1])
    third = gate.check(pair(40, 34)[1])
    assert (first.nats, second.nats) == (prices.nats(1), prices.nats(2, [1]))
    assert third.nats == prices.nats(3, [1])
    assert gate.status().next_nats == prices.nats(4, [1])


def test_a_restored_copy_pays_for_lost_looks(gate, tmp_path):
    copy = tmp_path / "copy.db"
    gate.backup(copy)
    for losses in (30, 31, 32):
        gate.check(pair(40, losses)[1])
    with pytest.raises(StaleCopy):
        lb.Gate.open(copy)
    gate.close()
    restored = lb.Gate.restore(tmp_path / "gate.db", 3, copy=copy)
    verdict = restored.check(pair(40, 30)[1])
    assert (verdict.look, verdict.remaining) == (4, 46)
    assert verdict.nats == LookPrices(50).nats(4, lost=3)
    assert restored.verify_ledger() == 1


def test_the_ledger_verifies_at_the_close(gate, tmp_path):
    for losses in (4, 30, 36):
        gate.check(pair(40, losses)[1], margin=0.1)
    gate.promote(pair(40, 4)[1])
    gate.check(wrong_on(1, 2, 3))
    assert gate.verify_ledger() == 4
    gate.close_for_good()
    gate.reveal(tmp_path / "bundle", labels=True)
    result = verify_bundle(tmp_path / "bundle")
    assert (result.looks, result.questions, str(result)) == (4, 0, "verified: 4 verdicts")


def test_the_status_is_public(gate):
    gate.check(pair(40, 4)[1])
    status = gate.status()
    assert (status.remaining, status.incumbent, status.count("better")) == (49, 1, 1)
    described = json.loads(json.dumps(status.describe()))
    assert described["history"][0]["outcome"] == "better"
    assert not {"net", "risk", "losses", "wins"} & set(json.dumps(described).split('"'))


def test_a_shared_file_has_one_budget_and_one_beta(tmp_path):
    path = tmp_path / "both.db"
    gate = lb.Gate.create(
        path, LABELS, looks=30, guard=True, mechanism=lb.Ladder(step=0.05, grid=0.05)
    )
    gate.promote(pair(40, 0)[0])
    alone = lb.Gate.create(tmp_path / "alone.db", LABELS, looks=30)
    guard = lb.Holdout.open(path)
    width_before = guard.certificate.half_width
    first = gate.check(pair(40, 4)[1])
    assert first.nats == pytest.approx(alone.status().next_nats + np.log(3))
    assert guard.remaining == gate.remaining == 29
    assert guard.certificate.half_width > width_before
    reply = guard.ask(wrong_on(*range(100)))
    assert reply.improved
    assert reply.bound.beta == 0.05
    later = gate.check(pair(40, 30)[1])
    assert later.nats > LookPrices(30).nats(2, [1]) + np.log(3) + 3
    assert later.look == 2
    assert gate.verify_ledger() == 3
    gate.close_for_good()
    gate.reveal(tmp_path / "bundle", labels=True)
    assert str(verify_bundle(tmp_path / "bundle")) == "verified: 1 release and 2 verdicts"


def test_a_shared_file_needs_releases_that_can_be_counted(tmp_path):
    with pytest.raises(InvalidSetting, match="gives no guarantee together with a gate"):
        lb.Gate.create(
            tmp_path / "both.db", LABELS, looks=30, guard=True, mechanism=lb.Noisy(sd=0.1)
        )
