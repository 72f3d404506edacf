"""The log-loss decoder: the labels it reads under each mechanism."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import Game, LogLossDecoder

N, QUESTIONS = 1_000, 300


class RecordingGame(Game):
    """Records the last model."""

    def ask(self, model, *, account=0):
        self.last = np.asarray(model)
        return super().ask(model, account=account)


def decode(decoder, mechanism, *, n=N, questions=QUESTIONS, seeds=4):
    """Return how many labels were read in all games, how many rightly, and the questions asked."""
    read = correct = questions_asked = 0
    for seed in range(seeds):
        world = decoder.world(n, np.random.default_rng(seed))
        rng = np.random.default_rng(seed + 1_000)
        tape = lb.NumpyTape(seed=seed)
        game = RecordingGame(world, mechanism, questions=questions, tape=tape, rng=rng)
        decoder.play(game)
        sure = game.last != 0.5
        read += int(sure.sum())
        correct += int((game.last == world._labels)[sure].sum())
        questions_asked += game.asked
    return read, correct, questions_asked


def no_better_than_chance(read, correct):
    """4 standard deviations of a fair coin: a false alarm in 30,000."""
    return correct <= read / 2 + 2 * math.sqrt(read)


@pytest.mark.parametrize("clip", [1e-300, 1e-12, 0.01, 0.3])
def test_an_exact_score_gives_all_labels_away_whatever_the_clip(clip):
    read, correct, questions = decode(LogLossDecoder(clip=clip), lb.Exact())
    assert read == correct == 4 * N
    assert questions < 4 * 40


def test_the_decoder_reads_as_many_labels_as_released_digits_allow():
    for digits, labels in ((3, QUESTIONS - 1), (5, N)):
        read, correct, _ = decode(LogLossDecoder(), lb.Rounded(digits=digits))
        assert read == correct == 4 * labels
    read, correct, _ = decode(LogLossDecoder(), lb.Rounded(digits=2))
    assert correct < 0.6 * read  # a single label is a tenth of the last digit
    read, correct, _ = decode(LogLossDecoder(), lb.Noisy(sd=1e-5))
    assert correct > 0.999 * read > 0.99 * N * 4


def test_the_published_codes_fail_against_the_shipped_clip():
    published = LogLossDecoder(clip=1e-300, designed_for=1e-300)
    read, correct, _ = decode(published, lb.Exact())
    assert read == correct == 4 * N
    against_shipped = LogLossDecoder(designed_for=1e-300)
    assert against_shipped.loss == lb.loss("log")
    read, correct, _ = decode(against_shipped, lb.Exact())
    assert read == 4 * N
    assert no_better_than_chance(read, correct)


@pytest.mark.parametrize("clip", [1e-12, 0.01])
@pytest.mark.parametrize("designed_for", [None, 1e-12, 1e-300])
@pytest.mark.parametrize("per_question", [None, 5, 30])
def test_it_fails_against_any_ladder(clip, designed_for, per_question):
    decoder = LogLossDecoder(per_question=per_question, clip=clip, designed_for=designed_for)
    unit = 1 / math.sqrt(N)
    read = correct = 0
    for mechanism in (
        lb.Ladder(step=unit),
        lb.Ladder(step=unit, grid=unit / 2),
        lb.OneBit(step=unit),
        lb.ShakyLadder.calibrated(n=N, questions=QUESTIONS),
    ):
        decoded, decoded_correctly, _ = decode(decoder, mechanism, questions=60, seeds=3)
        read, correct = read + decoded, correct + decoded_correctly
    assert read <= 0.05 * 12 * N  # hardly anything was released
    assert no_better_than_chance(read, correct)


def test_a_ladder_without_a_coarse_grid_reveals_at_most_one_answer():
    # Only the first question is answered with its digits; the step keeps the others silent.
    read, correct, _ = decode(
        LogLossDecoder(), lb.Ladder(step=1 / math.sqrt(N), grid=1e-9), seeds=3
    )
    assert read == correct
    assert read < 3 * 48


def test_the_parameter_free_ladder_reveals_labels_by_its_first_answer():
    # It rounds to 1/n, which is what one label costs; then its own step keeps it silent.
    read, correct, _ = decode(LogLossDecoder(), lb.ParameterFreeLadder(), seeds=3)
    assert read == correct == 3


def test_the_score_counts_decoded_labels():
    score = LogLossDecoder().play_against(lb.Exact(), n=N, questions=QUESTIONS, seed=5)
    assert score.bias == pytest.approx(0.5)
    short = LogLossDecoder(per_question=10).play_against(lb.Exact(), n=N, questions=11, seed=5)
    assert short.bias == pytest.approx(100 / N / 2)
