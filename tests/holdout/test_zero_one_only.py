"""Certificates of mechanisms whose answers can be counted under zero-one loss only."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds import certificate
from ladderboard.bounds._certificate import NO_THEOREM

ABSOLUTE = lb.loss("absolute", range=(0, 1))


def play_near_ties(ask, n, questions, rng):
    """Guess 1/2 +- 1e-4, vote with the guesses that got a score, and ask about the vote."""
    vote, scores_without_change = np.zeros(n), 0
    for _ in range(questions - 1):
        signs = rng.choice([-1, 1], size=n)
        reply = ask(0.5 + 1e-4 * signs)
        if reply.score is not None:
            vote += signs
            scores_without_change += not reply.improved
    return ask((vote > 0).astype(float)), scores_without_change


@pytest.mark.parametrize("seed", range(5))
def test_a_parameter_free_ladder_releases_a_score_only_with_an_improvement(seed):
    n, rng = 100, np.random.default_rng(seed)
    labels = rng.integers(2, size=n).astype(float)
    session = lb.ParameterFreeLadder().start(n=n)
    last, scores_without_change = play_near_ties(
        lambda guess: session.ask(losses=ABSOLUTE(labels, guess)), n, 600, rng
    )
    assert scores_without_change == 0  # 43 to 60 crossings before, none of them counted as a change
    assert last.value > 0.3  # about 0.1 before, for models that are worth 0.5


def test_a_guard_of_another_loss_promises_nothing(tmp_path):
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=100).astype(float)
    guard = lb.Holdout.create(
        tmp_path / "g.db",
        labels,
        loss=ABSOLUTE,
        questions=600,
        mechanism=lb.ParameterFreeLadder(),
    )
    last, _ = play_near_ties(guard.ask, 100, 60, rng)
    assert (last.bound.theorem, last.bound.vacuous) == (NO_THEOREM, True)
    assert "under zero-one loss only" in last.bound.assumptions[0]


def test_exact_scores_with_weights_reveal_all_labels_and_promise_nothing(tmp_path):
    # Forty weights that differ in one bit each: one exact score tells the labels of a whole block.
    blocks, bits = 10, 39
    n = blocks * bits
    bit = np.tile(np.arange(bits), blocks)
    weight = 2.0**39 + 2.0**bit
    labels = np.random.default_rng(7).integers(2, size=n)
    guard = lb.Holdout.create(
        tmp_path / "g.db",
        labels,
        weight=weight,
        loss="zero_one",
        questions=blocks + 2,
        mechanism=lb.Exact(),
    )
    total = int(weight.astype(np.int64).sum())

    def sum_of(predictions):
        return round(guard.ask(predictions).score * total)

    decoded, nothing = np.zeros(n, int), np.zeros(n, int)
    base = sum_of(nothing)
    for block_number in range(blocks):
        block = slice(block_number * bits, (block_number + 1) * bits)
        flipped = nothing.copy()
        flipped[block] = 1
        # The block's weight minus twice that of its labels: solve for the labels' bits.
        block_weight = int(weight[block].astype(np.int64).sum())
        label_weight = (block_weight - (sum_of(flipped) - base)) // 2
        decoded[block] = label_weight % 2**39 >> bit[block] & 1
    assert (decoded == labels).all()
    bound = guard.ask(decoded).bound
    assert bound.theorem == NO_THEOREM  # 0 +- 0.3 before, for a model that is right by luck alone
    assert guard.status().opening["rules"]["zero_one"] is False


@pytest.mark.parametrize("mechanism", [lb.Exact(), lb.ParameterFreeLadder()])
@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({}, True),
        ({"loss": lb.loss("top_k", k=1, classes=[0, 1])}, True),
        ({"loss": ABSOLUTE}, False),
        ({"loss": lb.loss("hamming")}, False),
        ({"group": [0, 0, *range(1, 199)]}, False),
        ({"group": list(range(200))}, True),
    ],
)
def test_only_unweighted_zero_one_losses_use_counting(tmp_path, mechanism, settings, counted):
    labels = np.random.default_rng(0).integers(2, size=200)
    loss = settings.get("loss")
    if loss is not None and loss.name == "hamming":
        labels = np.stack([labels, labels[::-1]], axis=1)
    guard = lb.Holdout.create(
        tmp_path / "g.db", labels, questions=3, mechanism=mechanism, **settings
    )
    assert (guard.certificate.theorem != NO_THEOREM) is counted
    assert guard.status().opening["rules"]["zero_one"] is counted


def test_other_mechanisms_do_not_depend_on_zero_one():
    for mechanism in (lb.Ladder(0.01), lb.Rounded(digits=2), lb.ShakyLadder.calibrated(100, 10)):
        expected = certificate(100, 10, None, mechanism)
        assert certificate(100, 10, None, mechanism, zero_one=False) == expected
