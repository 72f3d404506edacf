"""The majority and the sybil attack on served boards, over HTTP only."""

import importlib.util
from pathlib import Path

import pytest

# Biases of 200 games in memory with the same settings, mean and standard deviation: a game over
# HTTP lies outside four deviations with probability 6e-5, any of the eight with 5e-4. Seeds are
# fixed, so a false alarm is possible only when the code changes what is drawn.
EXPECTED = {
    ("majority", "exact scores"): (0.212, 0.017),
    ("majority", "Ladder"): (0.033, 0.021),
    ("majority", "default, a ladder for each team"): (0.027, 0.021),
    ("majority", "default, one ladder for all"): (0.027, 0.021),
    ("sybil", "exact scores"): (0.193, 0.009),
    ("sybil", "Ladder"): (0.156, 0.011),
    ("sybil", "default, a ladder for each team"): (0.078, 0.016),
    ("sybil", "default, one ladder for all"): (0.048, 0.016),
}
SLOW = {
    (attack, board)
    for attack in ("majority", "sybil")
    for board in ("default, one ladder for all", "Ladder")
}
CASES = [pytest.param(*case, marks=pytest.mark.slow) if case in SLOW else case for case in EXPECTED]


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).parents[2] / "examples" / "attack_over_http.py"
    spec = importlib.util.spec_from_file_location("_ladderboard_attack_over_http", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("attack", "board"), CASES)
def test_the_bias_over_http_is_the_same_as_in_memory(example, attack, board):
    result = example.play(attack, example.BOARDS[board], seed=0)
    mean, spread = EXPECTED[attack, board]
    assert result.asked == example.QUESTIONS
    assert abs(result.bias - mean) < 4 * spread
    if board == "exact scores":
        assert result.shown >= result.bias - 1e-9  # the board shows all of it
