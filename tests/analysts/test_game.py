"""Games: recorded values, answers to analysts, and the risk of models."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import Analyst, CoinFlipWorld, Game, pack_bits, random_bits, unpack_bits
from ladderboard.errors import BudgetSpent, InvalidPredictions


def game_of(mechanism, *, n=100, questions=10, easy=0.0, seed=0):
    world = CoinFlipWorld(n, np.random.default_rng(seed), easy=easy)
    rng = np.random.default_rng(seed + 1)
    return world, Game(world, mechanism, questions=questions, tape=lb.NumpyTape(seed=1), rng=rng)


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 128, 1000])
def test_bits_go_in_and_out(n):
    bits = np.random.default_rng(n).integers(0, 2, n).astype(bool)
    assert (unpack_bits(pack_bits(bits), n) == bits).all()
    random = random_bits(np.random.default_rng(n), n)
    assert (pack_bits(unpack_bits(random, n)) == random).all()


def test_coins_score_packed_and_plain_models_alike():
    world = CoinFlipWorld(130, np.random.default_rng(3), easy=0.5)
    labels = unpack_bits(world._labels, 130)
    model = labels.copy()
    model[:10] ^= True  # ten easy labels wrong
    model[100:121] ^= True  # and 21 others
    for shape in (model, model.astype(int), model.astype(float), pack_bits(model)):
        assert world.risk(shape) == pytest.approx(31 / 130)
        assert world.losses(shape).sum() == 31
        assert world.true_risk(shape) == pytest.approx((10 + 65 / 2) / 130)
    assert world.known.size == 65
    assert (unpack_bits(world.known.labels, 130)[:65] == labels[:65]).all()
    assert not unpack_bits(world.known.labels, 130)[65:].any()


@pytest.mark.parametrize("model", [np.zeros(129), np.full(130, 2), np.full(3, 2**64 - 1, "u8")])
def test_coins_refuse_invalid_models(model):
    with pytest.raises(InvalidPredictions):
        CoinFlipWorld(130, np.random.default_rng(0)).risk(model)


def test_a_game_counts_and_ends():
    world, game = game_of(lb.Exact(), questions=2)
    model = np.zeros(100, dtype=int)
    assert (game.asked, game.remaining) == (0, 2)
    assert game.ask(model).score == world.risk(model)
    game.ask(1 - model)
    with pytest.raises(BudgetSpent, match="All 2 questions"):
        game.ask(model)
    score = game.finish()
    assert score.asked == 2
    assert score.bias == pytest.approx(0.5 - world.risk(1 - model))
    assert score.leaderboard_error == pytest.approx(abs(0.5 - world.risk(model)), abs=0.2)


def test_the_board_shows_the_best_over_all_accounts():
    world, game = game_of(lb.Exact(), easy=1.0, questions=6)
    labels = unpack_bits(world._labels, 100)

    def model_with_errors(count):
        model = labels.copy()
        model[:count] ^= True
        return model

    for count, account in ((50, 0), (30, 1), (40, 2), (20, 0), (60, 5)):
        game.ask(model_with_errors(count), account=account)
    assert game._released == [0.5, 0.3, 0.3, 0.2, 0.2]
    assert game.finish().leaderboard_error == 0  # all labels are known: risk is true risk


def test_a_board_that_may_rise_is_followed_up():
    # The paper's own variant may release more than before; the best of all must rise with it.
    _, game = game_of(lb.Exact())
    assert game._best_over_accounts(0, 0.3) == 0.3
    game._board = 0.3
    assert game._best_over_accounts(1, 0.4) == 0.3
    assert game._best_over_accounts(0, 0.5) == 0.4


def test_a_silent_mechanism_is_judged_by_its_last_answer():
    class EndlessGuesser(Analyst):
        name = "guesser"

        def play(self, game):
            while True:
                game.ask(random_bits(game.rng, game.n))

    score = EndlessGuesser().play_against(lb.OneBit(step=0.01), n=400, questions=30, seed=5)
    assert score.asked == 30
    assert 0 <= score.leaderboard_error < 0.2
    assert score.changes >= 1


def test_mechanisms_that_look_at_losses_or_training_can_play():
    for mechanism in (lb.ParameterFreeLadder(), lb.Thresholdout(threshold=0.1, noise=0.01)):
        score = lb.analysts.MajorityAttack().play_against(mechanism, n=200, questions=20, seed=1)
        assert score.asked == 20
