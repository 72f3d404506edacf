"""The log-loss decoder: labels are decoded from the digits of a score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._worlds import UniformLabelsWorld
from ladderboard.losses import Log

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.mechanisms import Mechanism

# A double has 53 bits; the rest absorbs the rounding of a sum.
_MAX_LABELS = 48
_ROUNDING_ERRORS = 64
_NOISE_WIDTH = 8


@dataclass(frozen=True)
class LogLossDecoder(Analyst):
    """Predict 1/2 everywhere but on a few examples, whose labels the score then reveals.

    On those few, probabilities are chosen so that every combination of labels has a sum of losses
    of its own: the cost of a label 1 halves from one example to the next. The last question is the
    decoded model: the decoded labels, and 1/2 elsewhere.

    Parameters
    ----------
    per_question
        Labels decoded from one question; by default as many as the released digits can hold.
    clip
        The clip of the log loss it plays on.
    designed_for
        The clip that the probabilities are designed for; by default the true one, since it is
        public. A tiny one, such as 1e-300, is the published attack, which relies on the huge losses
        of a log loss that is hardly clipped.

    Examples
    --------
    >>> import ladderboard as lb
    >>> decoder = LogLossDecoder()
    >>> decoder.play_against(lb.Exact(), n=1_000, questions=30, seed=1).bias  # all labels
    0.5
    >>> decoder.play_against(lb.Ladder(step=0.03), n=1_000, questions=300, seed=1).changes
    1

    References
    ----------
    Whitehill, "Climbing the Kaggle leaderboard by exploiting the log-loss oracle", 2017.
    """

    name: ClassVar[str] = "log_loss"

    per_question: int | None = None
    clip: float = 0.01
    designed_for: float | None = None

    def __post_init__(self) -> None:
        per_question, designed_for = self.per_question, self.designed_for
        _settings.set_frozen(
            self,
            per_question=per_question
            if per_question is None
            else _settings.integer("per_question", per_question, at_least=1, at_most=_MAX_LABELS),
            clip=_settings.number("clip", self.clip, above=0, below=1),
            designed_for=designed_for
            if designed_for is None
            else _settings.number("designed_for", designed_for, above=0, below=1),
        )

    @property
    def loss(self) -> Log:
        """The log loss it plays on."""
        return Log(clip=self.clip)

    def world(self, n: int, rng: np.random.Generator) -> UniformLabelsWorld:
        """Return two classes, unknown, under log loss."""
        return UniformLabelsWorld(n, rng, loss=self.loss)

    def play(self, game: Game) -> None:
        """Decode a few labels with each question, then ask about the decoded model."""
        n = game.n
        code = self._design_code(n, game.mechanism)
        decoded = np.full(n, 0.5)
        for first in range(0, n, len(code.predictions)):
            if game.remaining == 1:
                break
            block = slice(first, min(first + len(code.predictions), n))
            count = block.stop - first
            model = np.full(n, 0.5)
            model[block] = code.predictions[:count]
            score = game.ask(model).score
            if score is not None:
                decoded[block] = code.decode(score * n - (n - count) * code.indifferent, count)
        game.ask(decoded)

    def _design_code(self, n: int, mechanism: Mechanism) -> _LabelCode:
        """Return the predictions whose losses reveal labels, and what they should cost."""
        believed = Log(clip=self.designed_for or self.clip)
        scale = believed.unit / self.loss.unit  # from one loss's unit to the other's
        indifferent = math.log(2) / self.loss.unit
        size = self.per_question
        if size is None:
            precision = _release_precision(mechanism, indifferent, n)
            size = 1 + math.floor(math.log2(scale / (n * precision)) + 1e-9)
            size = min(max(size, 1), _MAX_LABELS)
        # A cost of 1, 1/2, 1/4 ... more for the label 1 than for 0: logits -unit, -unit/2 ...
        logits = believed.unit * 0.5 ** np.arange(size)
        predictions = np.exp(-logits) / (1 + np.exp(-logits))
        predictions[0] = 0.0  # the largest loss there is
        zeros = believed(np.zeros(size, dtype=int), predictions) * scale
        ones = believed(np.ones(size, dtype=int), predictions) * scale
        return _LabelCode(predictions, zeros, ones - zeros, indifferent)


class _LabelCode(NamedTuple):
    """Predictions for a few examples, what a label 0 costs there, and how much more a 1 does."""

    predictions: NDArray[np.float64]
    zeros: NDArray[np.float64]
    extra: NDArray[np.float64]
    indifferent: float

    def decode(self, total: float, count: int) -> NDArray[np.float64]:
        """Return the labels of the first ``count`` examples whose losses sum to ``total``."""
        left = total - float(self.zeros[:count].sum())
        extra = self.extra[:count].tolist()
        labels = np.zeros(count)
        for index, cost in enumerate(extra):
            if left > cost - extra[-1] / 2:
                labels[index] = 1
                left -= cost
        return labels


def _release_precision(mechanism: Mechanism, risk: float, n: int) -> float:
    """Return how precisely a mechanism releases a risk near this one, by its settings."""
    settings = mechanism.comparison(n)
    grid, noise = settings.grid or settings.step, settings.release_noise
    if mechanism.needs != "risk":
        grid, noise = 1 / n, 0.0  # they round to this, or resample
    return float(max(_ROUNDING_ERRORS * np.finfo(float).eps * risk, grid, _NOISE_WIDTH * noise))
