"""The majority and the sybil attack on live boards, through HTTP and nothing else."""

import importlib.util
from pathlib import Path

import pytest

# Biases of 200 games in memory with the same settings, mean and standard deviation: a game over
# HTTP lies within four deviations but for a chance of 6e-5, all eight together but for 5e-4. Seeds
# are fixed, so that chance is taken only when the code changes what is drawn.
SEEN = {
    ("majority", "exact scores"): (0.212, 0.017),
    ("majority", "Ladder"): (0.033, 0.021),
    ("majority", "default, a ladder for each team"): (0.027, 0.021),
    ("majority", "default, one ladder for all"): (0.027, 0.021),
    ("sybil", "exact scores"): (0.193, 0.009),
    ("sybil", "Ladder"): (0.156, 0.011),
    ("sybil", "default, a ladder for each team"): (0.078, 0.016),
    ("sybil", "default, one ladder for all"): (0.048, 0.016),
}
SLOW = {("majority", "default, one ladder for all"), ("majority", "Ladder")}
CASES = [pytest.param(*each, marks=pytest.mark.slow) if each in SLOW else each for each in SEEN]


@pytest.fixture(scope="module")
def example():
    place = Path(__file__).parents[2] / "examples" / "attack_over_http.py"
    spec = importlib.util.spec_from_file_location("_ladderboard_attack_over_http", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("attack", "board"), CASES)
def test_the_bias_of_the_last_model_is_what_it_is_in_memory(example, attack, board):
    found = example.play(attack, example.BOARDS[board], seed=0)
    mean, spread = SEEN[attack, board]
    assert found.asked == example.QUESTIONS
    assert abs(found.bias - mean) < 4 * spread
    if board == "exact scores":
        assert found.shown >= found.bias - 1e-9  # and the board shows all of it
