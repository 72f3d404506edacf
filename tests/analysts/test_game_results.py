"""Results of games: the question that the bias is of, silent mechanisms, and visible values."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import CoinFlipWorld, Game, MajorityAttack, unpack_bits
from ladderboard.analysts._worlds import World


class TableWorld(World):
    """A model is a pair: its risk on the holdout and its true risk, in hundredths."""

    n = 100

    def losses(self, model):
        return (np.arange(self.n) < model[0]).astype(float)

    def true_risk(self, model):
        return model[1] / 100


class WorldWithKnown(TableWorld):
    known = ("what", "is", "known")


def game_of(mechanism, world=None, *, seed=1):
    return Game(
        TableWorld() if world is None else world,
        mechanism,
        questions=10,
        tape=lb.NumpyTape(seed=seed),
        rng=np.random.default_rng(seed),
    )


@pytest.mark.parametrize("mechanism", [lb.Exact(), lb.OneBit(step=0.01), lb.ParameterFreeLadder()])
def test_the_bias_is_that_of_the_last_question(mechanism):
    game = game_of(mechanism)
    for model in ((50, 90), (10, 30), (40, 35), (30, 42)):  # neither the best nor the worst is last
        game.ask(model)
    assert game.finish().bias == pytest.approx(0.12)


def test_a_silent_mechanism_is_judged_by_the_smallest_answer_and_true_risk():
    game = game_of(lb.OneBit(step=0.01))
    # The last words are 0.40, 0.20 and 0.30; the least true risk is neither first nor last.
    for account, model in ((0, (40, 55)), (1, (60, 25)), (1, (20, 70)), (2, (30, 45))):
        assert game.ask(model, account=account).value is None
    score = game.finish()
    assert score.leaderboard_error == pytest.approx(abs(0.25 - 0.20))
    assert score.changes == 4


def test_the_last_answer_may_be_too_high_or_too_low():
    for risk, true_risk in ((20, 70), (70, 20)):
        game = game_of(lb.OneBit(step=0.01))
        game.ask((risk, true_risk))
        assert game.finish().leaderboard_error == pytest.approx(0.5)


class ThresholdoutOnLosses(lb.Thresholdout):
    needs = "losses"


@pytest.mark.parametrize("kind", [lb.Thresholdout, ThresholdoutOnLosses])
def test_the_training_risk_is_the_true_risk(kind):
    # A threshold of one is never passed, so whatever is given as training comes back.
    game = game_of(kind(threshold=1, noise=0))
    for model in ((50, 47), (20, 90), (90, 20)):
        assert game.ask(model).score == model[1] / 100


def test_every_account_has_its_own_noise():
    game = game_of(lb.Noisy(sd=0.1))
    scores = [game.ask((50, 50), account=account).score for account in range(5)]
    assert len(set(scores)) == 5


def test_an_accounts_noise_does_not_depend_on_other_accounts():
    one_account, crowded = game_of(lb.Noisy(sd=0.1)), game_of(lb.Noisy(sd=0.1))
    crowded.ask((50, 50), account=1)
    assert crowded.ask((50, 50), account=3) == one_account.ask((50, 50), account=3)


def test_what_is_known_is_what_the_world_says_and_no_more():
    assert game_of(lb.Exact()).known is None
    assert game_of(lb.Exact(), WorldWithKnown()).known is WorldWithKnown.known
    world = CoinFlipWorld(100, np.random.default_rng(1), easy=0.3)
    known = game_of(lb.Exact(), world).known
    assert known.size == 30
    assert (unpack_bits(known.labels, 100)[:30] == unpack_bits(world._labels, 100)[:30]).all()
    assert not unpack_bits(known.labels, 100)[30:].any()


def test_a_game_exposes_only_public_names():
    game = game_of(lb.Exact())
    game.ask((50, 50))
    public_names = {name for name in dir(game) if not name.startswith("_")}
    allowed = {"n", "questions", "mechanism", "known", "rng", "asked", "remaining", "ask"}
    allowed |= {"register_final_model", "finish", "value_of", "changes_of", "changes_of_others"}
    assert public_names == allowed


def test_the_majority_attack_is_right_on_all_that_is_known_to_the_last_question():
    for seed in range(20):
        game = game_of(
            lb.Exact(), CoinFlipWorld(40, np.random.default_rng(seed), easy=0.5), seed=seed
        )
        MajorityAttack(easy=0.5).play(game)
        assert game._true_risks == [0.25] * 10
