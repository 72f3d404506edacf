"""The sentences of Play, with the numbers of what is shown."""

from typing import Any

from ladderboard.mechanisms import ShakyLadder
from ladderboard.server._pages._play_data import NOISES, Board, Choice, board_of

__all__ = ["about", "gap_words", "moments", "prices"]

_MOMENTS = 10


def gap_words(gap: float) -> str:
    """Return how much better a model looks than it is, in words.

    >>> gap_words(0.0821), gap_words(-0.004), gap_words(0.0001)
    ('looks 0.082 better than it is', 'looks 0.004 worse than it is', 'looks as good as it is')
    """
    if abs(gap) < 0.0005:
        return "looks as good as it is"
    return f"looks {abs(gap):.3f} {'better' if gap > 0 else 'worse'} than it is"


def about(board: Board, choice: Choice) -> str:
    """Return what a board does, in one sentence."""
    made: Any = board.mechanism
    if board.key == "exact":
        return "Tells every score, to the last digit."
    if board.key == "ladder":
        return f"Tells a score only if it beats the best by a step of {made.step:.3f}."
    noise = {"none": "here without its noise", "half": "with half of its noise"}
    noise |= {"calibrated": "with noise in every comparison", "double": "with twice its noise"}
    return f"A Ladder with larger steps of {made.step:.3f}, {noise[choice.noise]}."


def prices(choice: Choice) -> list[dict[str, Any]]:
    """Return what each amount of noise leaves to the attacks, and costs the honest."""
    found = []
    for noise, name in NOISES.items():
        board = board_of(choice._replace(noise=noise), "shaky_ladder")
        made = board.mechanism
        assert isinstance(made, ShakyLadder)  # noqa: S101 - it is what goes by this name
        found.append(
            {
                "noise": name,
                "here": noise == choice.noise,
                "sd": made.compare_noise,
                "patient": board.patient,
                "majority": board.majority,
                "unseen": board.unseen,
            }
        )
    return found


def moments(boards: list[Board], choice: Choice) -> list[tuple[int, list[float]]]:
    """Return the numbers of the picture at ten moments: for each board both attacks."""
    count = len(boards[0].patient.shown)
    frames = [count * at // _MOMENTS for at in range(1, _MOMENTS + 1)]
    return [
        (
            choice.questions * frame // count,
            [curve.shown[frame - 1] for board in boards for curve in board.curves],
        )
        for frame in frames
    ]
