"""The one-bit attack: a search that sees only whether the board improved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._worlds import CoinFlipWorld, pack_bits, random_bits, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.mechanisms import Mechanism

# Choices of how far above its expectation the bar is set, in standard deviations.
_BARS = np.linspace(-0.5, 4.0, 28)
_MAX_BELIEF = 0.999  # the surest belief about a label
_MIN_CHANCE = 1e-9
# The normal distribution on 41 points.
_NORMAL_POINTS = np.linspace(-4, 4, 41)
_NORMAL_WEIGHTS = np.exp(-(_NORMAL_POINTS**2) / 2) / np.exp(-(_NORMAL_POINTS**2) / 2).sum()

_TAIL_KNOTS = np.linspace(-8, 8, 4_001)
_TAIL_VALUES = np.array([math.erfc(knot / math.sqrt(2)) / 2 for knot in _TAIL_KNOTS.tolist()])


@dataclass(frozen=True)
class OneBitAttack(Analyst):
    """Flip blocks of a guess, keep flips that improved, and learn from those that did not.

    It uses only ``release.improved``. Deliberate mistakes on the easy examples set the bar for
    every question: a block of hard labels is flipped, and as many easy mistakes are corrected as
    the ladder's step costs, less what the flip should gain to be worth a step. The board then moves
    only if the block was mostly wrong. The attack keeps for each label the odds that it is right,
    raises them a little when the board stays, reverses them when it moves, and flips the least
    likely labels next.

    Parameters
    ----------
    easy
        The share of the labels known from the start, which pays for the steps.

    Notes
    -----
    Let s_i = 1 where the guess is right and -1 where it is wrong, with means m_i and treated as
    independent. Flipping a block adds D = sum s_i errors, of mean sum m_i and variance
    sum (1 - m_i^2). The board moves if D + e + (noise) is below a bar that the easy labels set, e
    being what rounding took from the risk of the last model that moved it. Given the bit, this sum
    is a normal variable cut off at the bar, and the means of the s_i and of e follow by regression.
    The board's values are multiples of the grid, so e is that model's risk up to cells of the grid,
    and stays known from move to move, though no value is released.

    Each question takes the block and the bar that win most, among those that would not spend the
    easy labels before the questions run out: a high bar is rarely passed but pays more.

    Examples
    --------
    >>> import ladderboard as lb
    >>> attack = OneBitAttack()
    >>> attack.play_against(lb.OneBit(step=0.03), n=1_000, questions=1_000, seed=1).bias > 0.07
    True
    >>> ladder = lb.ShakyLadder.calibrated(n=1_000, questions=1_000)
    >>> attack.play_against(ladder, n=1_000, questions=1_000, seed=1).bias < 0.06
    True

    References
    ----------
    Blum, Hardt, "The Ladder: A reliable leaderboard for machine learning competitions", 2015.
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation", 2017.
    """

    name: ClassVar[str] = "one_bit"

    easy: float = 0.5

    def __post_init__(self) -> None:
        _settings.set_frozen(self, easy=_settings.number("easy", self.easy, at_least=0, at_most=1))

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Search, then ask about the likeliest labels."""
        search = _OneBitSearch(game)
        while game.remaining > 1 and len(search.guess):
            if search.started:
                search.try_flip()
            else:
                search.ask_first_model()
        search.ask(search.guess ^ (search.means < 0), mistakes=0)


class _LadderSettings(NamedTuple):
    """A mechanism's public settings, in examples: a risk of 1 is n of them."""

    step: float
    grid: float
    release: float  # variance of the noise on the board's value
    slack: float  # variance of the noise that stays in comparisons until the next move
    noise: float  # variance of the noise of one question
    noise_kept: bool  # whether that noise stays in the board's value after a move

    def scaled(self, factor: float) -> _LadderSettings:
        """Return the settings of a rung that is this many times as large."""
        square = factor * factor
        return self._replace(
            step=factor * self.step,
            grid=factor * self.grid,
            release=square * self.release,
            slack=square * self.slack,
            noise=square * self.noise,
        )

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, n: int) -> _LadderSettings:
        if mechanism.needs != "risk" or mechanism.needs_training:
            # Its step depends on the data: about a standard error, learned on the way.
            return cls(0.0, 0.0, 0.0, float(n), 0.0, noise_kept=False)
        settings = mechanism.comparison(n)
        release, noise = (n * settings.release_noise) ** 2, (n * settings.compare_noise) ** 2
        if settings.compares_released:
            release, noise = 0.0, release
        return cls(
            n * settings.step,
            n * (settings.grid or settings.step),
            release,
            (n * settings.standing_noise) ** 2,
            noise,
            noise_kept=settings.compares_released,
        )


class _OneBitSearch:
    """The state of the search: a guess, how likely its labels are, and what is left to spend."""

    def __init__(self, game: Game) -> None:
        n, easy = game.n, game.known.size
        bits = unpack_bits(random_bits(game.rng, n), n)
        self.game = game
        self.easy = unpack_bits(game.known.labels, n)[:easy]
        self.guess: NDArray[np.bool_] = bits[easy:]
        self.means = np.zeros(n - easy)
        self._first_rules = _LadderSettings.from_mechanism(game.mechanism, n)
        self.rules = self._first_rules
        self._moves = 0
        self.started = False
        # Mean and variance of e, and of the noise that stays until the next move.
        self.offset = self.doubt = self.slack = self.slack_doubt = 0.0
        # Easy labels missed by the last model that moved the board.
        self.wrong = min(easy, self._affordable_misses(n))
        self.sizes = np.unique(np.geomspace(1, max(len(self.guess) / 2, 1), 24).astype(int))

    def _affordable_misses(self, n: int) -> int:
        """Return how many easy labels the first model may miss and still beat R_0 = 1."""
        hard = len(self.guess)
        slack = n - self.rules.step - 3 * math.sqrt(self.rules.noise + self.rules.slack)
        return max(int(slack - hard / 2 - 1.5 * math.sqrt(hard)) - 1, 0)

    def ask(self, guess: NDArray[np.bool_], mistakes: int) -> bool:
        """Ask a guess with a given number of mistakes on the easy labels."""
        easy = self.easy.copy()
        easy[:mistakes] ^= True
        return self.game.ask(pack_bits(np.concatenate((easy, guess)))).improved

    def ask_first_model(self) -> None:
        """Ask the first guess; correct half of the easy mistakes if the board does not move."""
        self.started = self.ask(self.guess, self.wrong)
        if self.started:
            hard = len(self.guess)
            self._restart_from(self.wrong + hard / 2, hard / 4)
        else:
            self.wrong //= 2

    def _restart_from(self, mean: float, variance: float) -> None:
        """Start from a model that moved the board, with this mean and variance of its errors."""
        grid = self.rules.grid
        self._climb_rung()
        self.offset = self.doubt = self.slack = 0.0
        self.slack_doubt = self.rules.slack
        if grid:
            left = mean + math.sqrt(variance + self.rules.release) * _NORMAL_POINTS
            left -= grid * np.round(left / grid)
            self.offset = float(_NORMAL_WEIGHTS @ left)
            self.doubt = float(_NORMAL_WEIGHTS @ (left - self.offset) ** 2)

    def _climb_rung(self) -> None:
        """Take the settings of the next rung, which may grow with every move."""
        self._moves += 1
        growth = self.game.mechanism.rung_growth(self._moves + 1)
        if growth is not None:  # in standard errors; that of a risk above one half is the largest
            hard = len(self.guess)
            risk = (self.wrong + (hard - float(np.abs(self.means).sum())) / 2) / self.game.n
            share = min(max(risk, 1 / self.game.n), 0.5)
            self.rules = self._first_rules.scaled(growth[-1] * 2 * math.sqrt(share * (1 - share)))

    def try_flip(self) -> None:
        """Flip the labels least likely to be right, and learn from the release."""
        order = np.argsort(self.means + 1e-6 * self.game.rng.random(len(self.means)))
        size, bar = self._choose_block(self.means[order])
        block = order[:size]
        proposal = self.guess.copy()
        proposal[block] ^= True
        # The board moves if (mistakes now) + D + e is below (mistakes then) - step.
        mistakes = math.ceil(self.wrong - self.rules.step - bar)
        mistakes = min(max(mistakes, 0), len(self.easy))
        bar = self.wrong - self.rules.step - mistakes
        moved = self.ask(proposal, mistakes)
        self._learn(block, bar, moved, corrected=self.wrong - mistakes)
        if moved:
            self.guess = proposal
            self.wrong = mistakes

    def _choose_block(self, means: NDArray[np.float64]) -> tuple[int, float]:
        """Return how many labels to flip, and below which sum the board should move."""
        size = self.sizes[:, None]
        mean = np.cumsum(means)[self.sizes - 1][:, None]
        variance = np.cumsum(1 - means**2)[self.sizes - 1][:, None]
        deviation = np.sqrt(variance + self.doubt + self.slack_doubt + self.rules.noise + 0.25)
        centre = mean + self.offset + self.slack
        bar = centre - _BARS * deviation
        # At best no easy mistake is left.
        bar = np.minimum(bar, self.wrong - self.rules.step)
        z = (centre - bar) / deviation
        chance = _upper_tail(z)
        win = -(mean - variance / deviation * _normal_density(z) / np.maximum(chance, _MIN_CHANCE))
        win = np.minimum(win, size)
        cost = chance * np.maximum(self.rules.step + bar, 0)
        left = max(self.game.remaining - 1, 1)
        worth = chance * win
        # Easy labels that run out before the questions do limit what a plan is worth.
        worth = worth * np.minimum(1, self.wrong / np.maximum(cost * left, _MIN_CHANCE))
        best = np.unravel_index(np.argmax(worth), worth.shape)
        return int(self.sizes[best[0]]), float(bar[best])

    def _learn(self, block: NDArray[np.intp], bar: float, moved: bool, corrected: int) -> None:
        """Update the odds: the sum was below the bar if the board moved, above it if not."""
        variances = 1 - self.means[block] ** 2
        total, noise = float(variances.sum()), self.rules.noise
        variance = total + self.doubt + self.slack_doubt + noise
        if variance <= 0:
            return
        deviation = math.sqrt(variance)
        mean = float(self.means[block].sum())
        z = (mean + self.offset + self.slack - bar) / deviation
        shift = -_upper_tail_mean(z) if moved else _upper_tail_mean(-z)
        narrowing = min(max(shift * (shift + z), 0.0), 1.0)
        self.means[block] += variances * shift / deviation
        self.offset += self.doubt * shift / deviation
        self.slack += self.slack_doubt * shift / deviation
        if moved:
            self.means[block] *= -1
            both = total + self.doubt
            self._restart_from(
                mean + total * shift / deviation + self.offset - corrected,
                both - both**2 / variance * narrowing,
            )
            if self.rules.noise_kept:  # the noise that helped to move the board stays in its value
                self.slack = -noise * shift / deviation
                self.slack_doubt = noise * (1 - noise / variance * narrowing)
        else:
            self.doubt -= self.doubt**2 / variance * narrowing
            self.slack_doubt -= self.slack_doubt**2 / variance * narrowing
        self.means[block] = np.clip(self.means[block], -_MAX_BELIEF, _MAX_BELIEF)


def _upper_tail_mean(z: float) -> float:
    """Return the mean of a normal variable above z."""
    point = np.array(z)
    return float(_normal_density(point) / _upper_tail(point)) if z < 6 else z


def _normal_density(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _upper_tail(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal probability above z, interpolated in a table for speed."""
    return np.interp(z, _TAIL_KNOTS, _TAIL_VALUES)
