"""Hyperparameter search on handwritten digits: an honest analyst that trusts the leaderboard."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._worlds import World
from ladderboard.errors import InvalidPredictions, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game

_SIDE = 8
_DARKEST = 16.0
_TRAINING = 1_500
_NOISES = 5  # noisy copies of every shifted image that make up the population
_SHIFTS = np.array([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)])

_KINDS = ("ridge", "discriminant", "bayes", "tree")
_STRONGER_KINDS = ("ridge", "discriminant", "kernel", "neighbours", "forest", "tree")


class LabelledImages(NamedTuple):
    """Images of 8 x 8 pixels, a row each, and the digits they show."""

    pixels: NDArray[np.float32]
    digits: NDArray[np.int64]


class FittedClassifier(NamedTuple):
    """A model: a fitted scikit-learn classifier, and the pixels it looks at."""

    estimator: Any
    pixels: NDArray[np.intp]


class DigitsWorld(World):
    """Real digits, resampled to holdouts of any size.

    The 1,797 images that come with scikit-learn are split in two fixed halves. An
    example is an image of the second half, chosen at random, shifted by at most one pixel to one
    side, with noise on its pixels. The true risk is the mean
    over 22,450 others: every image of that half with every shift, five times with new noise.
    The images for training, ``known``, are 1,500 made in the same way from the first half. A model
    is a ``FittedClassifier``.

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Where they come from.
    noise
        Standard deviation of the noise on a pixel, whose darkest value is 16.

    Notes
    -----
    The true risk averages over sampled noise, the same for all games; its standard error is below
    0.002.
    """

    def __init__(self, n: int, rng: np.random.Generator, *, noise: float = 2.0) -> None:
        self.n = _settings.integer("n", n, at_least=1)
        self.noise = _settings.number("noise", noise, at_least=0)
        self._holdout = _draw_examples(_split_images()[1], self.n, rng, self.noise)

    @property
    def known(self) -> LabelledImages:
        """The images for training."""
        return _training_images(self.noise)

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model reads another digit."""
        return _misread(model, self._holdout).astype(np.float64)

    def true_risk(self, model: Any) -> float:
        """Return the share that the model misreads of a large sample, the same for all games."""
        return float(_misread(model, _population_images(self.noise)).mean())


def _draw_examples(
    images: LabelledImages, n: int, rng: np.random.Generator, noise: float
) -> LabelledImages:
    """Draw n examples made from these images."""
    chosen = rng.integers(0, len(images.digits), n)
    return _make_examples(images, chosen, rng.integers(0, len(_SHIFTS), n), rng, noise)


def _make_examples(
    images: LabelledImages,
    chosen: NDArray[np.int64],
    shift: NDArray[np.int64],
    rng: np.random.Generator,
    noise: float,
) -> LabelledImages:
    """Return one example of each chosen image, shifted, with noise."""
    # Every image gets a border of blank pixels, and a window is cut out.
    padded = np.pad(images.pixels.reshape(-1, _SIDE, _SIDE), ((0, 0), (1, 1), (1, 1)))
    down, right = 1 + _SHIFTS[shift].T
    rows = down[:, None] + np.arange(_SIDE)
    columns = right[:, None] + np.arange(_SIDE)
    pixels = padded[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
    pixels = pixels + np.float32(noise) * rng.standard_normal(pixels.shape, dtype=np.float32)
    pixels = np.clip(pixels, 0, _DARKEST).reshape(len(chosen), -1)
    return _freeze(LabelledImages(pixels, images.digits[chosen]))


def _misread(model: Any, images: LabelledImages) -> NDArray[np.bool_]:
    if not isinstance(model, FittedClassifier):
        raise InvalidPredictions(
            "A model here is a FittedClassifier: a fitted classifier and its pixels."
        )
    digits: NDArray[np.int64] = model.estimator.predict(images.pixels[:, model.pixels])
    return digits != images.digits


@lru_cache(maxsize=1)
def _split_images() -> tuple[LabelledImages, LabelledImages]:
    """Return the images for training, and those for the holdout and the population."""
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingDependency(
            "This analyst needs scikit-learn, which is not installed: "
            "pip install 'ladderboard[sklearn]'."
        ) from None
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    training, other = np.array_split(order, 2)
    pixels = pixels.astype(np.float32)
    halves = [LabelledImages(pixels[half], digits[half]) for half in (training, other)]
    return _freeze(halves[0]), _freeze(halves[1])


def _freeze(images: LabelledImages) -> LabelledImages:
    """Make the arrays read-only, since games share them, and return the images."""
    for array in images:
        array.flags.writeable = False
    return images


# The same for every game: only the holdout is drawn anew.
@lru_cache(maxsize=4)
def _training_images(noise: float) -> LabelledImages:
    return _draw_examples(_split_images()[0], _TRAINING, np.random.default_rng(2), noise)


@lru_cache(maxsize=4)
def _population_images(noise: float) -> LabelledImages:
    images = _split_images()[1]
    count, shifts = len(images.digits), len(_SHIFTS)
    chosen = np.tile(np.arange(count), shifts * _NOISES)
    shift = np.tile(np.repeat(np.arange(shifts), count), _NOISES)
    return _make_examples(images, chosen, shift, np.random.default_rng(1), noise)


def draw_classifiers(
    count: int, rng: np.random.Generator, *, noise: float = 2.0
) -> list[FittedClassifier]:
    """Return classifiers with random settings, fitted on the training images of ``DigitsWorld``.

    They are of the kinds that people try on such data: linear models, also on features of a kernel,
    nearest neighbours, trees and forests. Each looks at a random part of the pixels, 60 to 100%.
    """
    training = _training_images(noise)
    return [
        replace(
            _ClassifierCandidate.draw(rng, training),
            kind=str(rng.choice(_STRONGER_KINDS)),
            used=np.less(rng.random(training.pixels.shape[1]), rng.uniform(0.6, 1.0)),
        ).fit(training)
        for _ in range(count)
    ]


@dataclass(frozen=True)
class HyperparameterSearch(Analyst):
    """Search pixels and settings of digit classifiers, guided by the releases.

    Each candidate is a kind of classifier (ridge, linear discriminant, naive Bayes, tree), one
    number for how strongly it is regularised, and a subset of the pixels, fitted on training images
    with scikit-learn. The next one is a change of the best so far, or sometimes a new start. The
    last question asks about the best again.

    Parameters
    ----------
    restart
        The probability of a new start.
    noise
        Standard deviation of the noise on a pixel, see ``DigitsWorld``.

    Notes
    -----
    It is not an attack, but it takes the best of many scores and builds on it, as people do, so its
    final model looks better on the holdout than it is.

    Examples
    --------
    >>> import ladderboard as lb
    >>> search = HyperparameterSearch()
    >>> search.play_against(lb.Ladder(step=0.02), n=2_000, questions=20, seed=1).asked
    20
    """

    name: ClassVar[str] = "hyperparameter_search"

    restart: float = 0.2
    noise: float = 2.0

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            restart=_settings.number("restart", self.restart, at_least=0, at_most=1),
            noise=_settings.number("noise", self.noise, at_least=0),
        )

    def world(self, n: int, rng: np.random.Generator) -> DigitsWorld:
        """Return handwritten digits."""
        return DigitsWorld(n, rng, noise=self.noise)

    def play(self, game: Game) -> None:
        """Try candidates, keep those that score better, and ask about the best again."""
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

        # One thread: games already run in parallel, and sums do not depend on the core count.
        with threadpool_limits(limits=1):
            self._search(game)

    def _search(self, game: Game) -> None:
        rng, training = game.rng, game.known
        best = _ClassifierCandidate.draw(rng, training)
        best_fitted = best.fit(training)
        lowest = math.inf
        while game.remaining > 1:
            new = not math.isfinite(lowest) or rng.random() < self.restart
            candidate = _ClassifierCandidate.draw(rng, training) if new else best.mutate(rng)
            fitted = candidate.fit(training)
            release = game.ask(fitted)
            score = release.score
            # A mechanism may release only whether the model improved.
            if release.improved or (score is not None and score < lowest):
                best, best_fitted = candidate, fitted
                lowest = 1.0 if score is None else score
        game.ask(best_fitted)


@dataclass(frozen=True, eq=False)
class _ClassifierCandidate:
    """A kind of classifier, how strongly it is regularised (0 to 1), and its pixels."""

    kind: str
    simple: float
    used: NDArray[np.bool_]
    seed: int

    @classmethod
    def draw(cls, rng: np.random.Generator, training: LabelledImages) -> _ClassifierCandidate:
        used: NDArray[np.bool_] = np.less(
            rng.random(training.pixels.shape[1]), rng.uniform(0.2, 0.8)
        )
        return cls(str(rng.choice(_KINDS)), float(rng.random()), used, int(rng.integers(2**31)))

    def mutate(self, rng: np.random.Generator) -> _ClassifierCandidate:
        """Return a neighbour: other pixels, other regularisation, or another kind."""
        action = rng.random()
        if action < 0.7:
            used = self.used.copy()
            used[rng.integers(0, len(used), rng.integers(1, 7))] ^= True
            return replace(self, used=used)
        if action < 0.9:
            return replace(self, simple=float(np.clip(self.simple + rng.normal(0, 0.15), 0, 1)))
        return replace(self, kind=str(rng.choice(_KINDS)))

    def fit(self, training: LabelledImages) -> FittedClassifier:
        pixels = np.flatnonzero(self.used)
        if not len(pixels):
            pixels = np.arange(1)
        return FittedClassifier(
            self._estimator().fit(training.pixels[:, pixels], training.digits), pixels
        )

    def _estimator(self) -> Any:
        # DigitsWorld has checked that scikit-learn is installed.
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: PLC0415
        from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
        from sklearn.kernel_approximation import Nystroem  # noqa: PLC0415
        from sklearn.linear_model import RidgeClassifier  # noqa: PLC0415
        from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415
        from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

        simple = self.simple
        kinds: dict[str, Callable[[], Any]] = {
            "ridge": lambda: RidgeClassifier(alpha=10 ** (6 * simple)),
            "discriminant": lambda: LinearDiscriminantAnalysis(
                solver="lsqr", shrinkage=0.01 + 0.99 * simple
            ),
            "bayes": lambda: GaussianNB(var_smoothing=10 ** (3 * simple - 3)),
            "kernel": lambda: make_pipeline(
                Nystroem(gamma=10 ** (-2 - 2 * simple), n_components=300, random_state=self.seed),
                RidgeClassifier(alpha=0.01),
            ),
            "neighbours": lambda: KNeighborsClassifier(1 + int(30 * simple)),
            "forest": lambda: RandomForestClassifier(
                100 - int(90 * simple), max_depth=14 - int(10 * simple), random_state=self.seed
            ),
            "tree": lambda: DecisionTreeClassifier(
                max_depth=12 - int(8 * simple), max_features="sqrt", random_state=self.seed
            ),
        }
        return kinds[self.kind]()
