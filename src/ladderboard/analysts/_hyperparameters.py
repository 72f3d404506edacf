"""Hyperparameter search: an honest analyst who believes the board."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._digits import Digits, Fitted, Images

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game

__all__ = ["HyperparameterSearch"]

_KINDS = ("ridge", "discriminant", "bayes", "tree")


@dataclass(frozen=True)
class HyperparameterSearch(Analyst):
    """Search pixels and settings of classifiers of digits, led by what the board says.

    Each candidate is a kind of classifier (ridge, linear discriminant, naive Bayes, tree), one
    number that says how simple it is kept, and a subset of the pixels, fitted on training images
    with scikit-learn. The next is the best so far with a change, or now and then a new start. The
    last question hands in the best once more.

    Parameters
    ----------
    restart
        How often a candidate is drawn afresh instead.
    noise
        Of the world: see ``Digits``.

    Notes
    -----
    It means no harm, but it takes the best of many scores and builds on it, as people do; what it
    hands in looks better than it is.

    Examples
    --------
    >>> import ladderboard as lb
    >>> search = HyperparameterSearch()
    >>> search.meet(lb.Ladder(step=0.02), n=2_000, questions=20, seed=1).asked
    20
    """

    name: ClassVar[str] = "hyperparameter_search"

    restart: float = 0.2
    noise: float = 2.0

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            restart=_settings.number("restart", self.restart, at_least=0, at_most=1),
            noise=_settings.number("noise", self.noise, at_least=0),
        )

    def world(self, n: int, rng: np.random.Generator) -> Digits:
        """Return handwritten digits."""
        return Digits(n, rng, noise=self.noise)

    def play(self, game: Game) -> None:
        """Try, keep what is said to be better, and hand in the best."""
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

        # One thread: sums do not depend on how many there are, and games run side by side.
        with threadpool_limits(limits=1):
            self._search(game)

    def _search(self, game: Game) -> None:
        rng, training = game.rng, game.known
        best = _Candidate.draw(rng, training)
        handed_in = best.fit(training)
        lowest = math.inf
        while game.remaining > 1:
            new = not math.isfinite(lowest) or rng.random() < self.restart
            candidate = _Candidate.draw(rng, training) if new else best.change(rng)
            fitted = candidate.fit(training)
            release = game.ask(fitted)
            # Where nothing but the bit is told, the bit must do.
            told = release.score
            if release.improved or (told is not None and told < lowest):
                best, handed_in = candidate, fitted
                lowest = 1.0 if told is None else told
        game.ask(handed_in)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """What is searched: a kind of classifier, how simple it is kept (0 to 1), and its pixels."""

    kind: str
    simple: float
    used: NDArray[np.bool_]
    seed: int

    @classmethod
    def draw(cls, rng: np.random.Generator, training: Images) -> _Candidate:
        used: NDArray[np.bool_] = np.less(
            rng.random(training.pixels.shape[1]), rng.uniform(0.2, 0.8)
        )
        return cls(str(rng.choice(_KINDS)), float(rng.random()), used, int(rng.integers(2**31)))

    def change(self, rng: np.random.Generator) -> _Candidate:
        """Return a neighbour: other pixels, simpler or less so, or another kind."""
        which = rng.random()
        if which < 0.7:
            used = self.used.copy()
            used[rng.integers(0, len(used), rng.integers(1, 7))] ^= True
            return replace(self, used=used)
        if which < 0.9:
            return replace(self, simple=float(np.clip(self.simple + rng.normal(0, 0.15), 0, 1)))
        return replace(self, kind=str(rng.choice(_KINDS)))

    def fit(self, training: Images) -> Fitted:
        pixels = np.flatnonzero(self.used)
        if not len(pixels):
            pixels = np.arange(1)
        return Fitted(self._estimator().fit(training.pixels[:, pixels], training.digits), pixels)

    def _estimator(self) -> Any:
        # The world has seen to it that scikit-learn is there.
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: PLC0415
        from sklearn.linear_model import RidgeClassifier  # noqa: PLC0415
        from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

        simple = self.simple
        if self.kind == "ridge":
            return RidgeClassifier(alpha=10 ** (6 * simple))
        if self.kind == "discriminant":
            return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01 + 0.99 * simple)
        if self.kind == "bayes":
            return GaussianNB(var_smoothing=10 ** (3 * simple - 3))
        return DecisionTreeClassifier(
            max_depth=12 - int(8 * simple), max_features="sqrt", random_state=self.seed
        )
