"""Hyperparameter search on handwritten digits: an honest analyst who believes the board."""

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
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game

_SIDE = 8
_DARKEST = 16.0
_TRAINING = 1_500
_NOISES = 5  # how often every image with every shift stands for the distribution
_SHIFTS = np.array([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)])

_KINDS = ("ridge", "discriminant", "bayes", "tree")


class LabelledImages(NamedTuple):
    """Images of 8 x 8 pixels, a row each, and the digits they show."""

    pixels: NDArray[np.float32]
    digits: NDArray[np.int64]


class FittedClassifier(NamedTuple):
    """A model: a fitted scikit-learn classifier, and the pixels it looks at."""

    estimator: Any
    pixels: NDArray[np.intp]


class DigitsWorld(World):
    """Real digits, of which there are as many as one likes.

    The 1,797 images that scikit-learn brings along are split in two halves, always the same. An
    example is an image of the second half, chosen at random, shifted by at most one pixel to one
    side, with noise on its pixels, so there are holdouts of any size. The true risk is the mean
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
    Of the true risk only the part that noise plays is sampled, the same for all games; its own
    standard error is below 0.002.
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
        """Return the part misread of further examples, which stand for all."""
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
    """Make one example of each image chosen, shifted, with noise."""
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
    said: NDArray[np.bool_] = model.estimator.predict(images.pixels[:, model.pixels])
    return said != images.digits


@lru_cache(maxsize=1)
def _split_images() -> tuple[LabelledImages, LabelledImages]:
    """Return the images that training is made of, and those that examples are made of."""
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - only those who play need it
    except ImportError:
        raise MissingDependency(
            "The digits come with scikit-learn, which is not installed; "
            "pip install 'ladderboard[sklearn]'."
        ) from None
    pixels, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    training, other = np.array_split(order, 2)
    pixels = pixels.astype(np.float32)
    halves = [LabelledImages(pixels[half], digits[half]) for half in (training, other)]
    return _freeze(halves[0]), _freeze(halves[1])


def _freeze(images: LabelledImages) -> LabelledImages:
    """Return images that nobody can write to: some are shared by all games."""
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
    each, shifts = len(images.digits), len(_SHIFTS)
    chosen = np.tile(np.arange(each), shifts * _NOISES)
    shift = np.tile(np.repeat(np.arange(shifts), each), _NOISES)
    return _make_examples(images, chosen, shift, np.random.default_rng(1), noise)


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
        """Try, keep what is said to be better, and hand in the best."""
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

        # One thread: sums do not depend on how many there are, and games run side by side.
        with threadpool_limits(limits=1):
            self._search(game)

    def _search(self, game: Game) -> None:
        rng, training = game.rng, game.known
        best = _ClassifierCandidate.draw(rng, training)
        handed_in = best.fit(training)
        lowest = math.inf
        while game.remaining > 1:
            new = not math.isfinite(lowest) or rng.random() < self.restart
            candidate = _ClassifierCandidate.draw(rng, training) if new else best.change(rng)
            fitted = candidate.fit(training)
            release = game.ask(fitted)
            # Where nothing but the bit is told, the bit must do.
            told = release.score
            if release.improved or (told is not None and told < lowest):
                best, handed_in = candidate, fitted
                lowest = 1.0 if told is None else told
        game.ask(handed_in)


@dataclass(frozen=True, eq=False)
class _ClassifierCandidate:
    """What is searched: a kind of classifier, how simple it is kept (0 to 1), and its pixels."""

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

    def change(self, rng: np.random.Generator) -> _ClassifierCandidate:
        """Return a neighbour: other pixels, simpler or less so, or another kind."""
        which = rng.random()
        if which < 0.7:
            used = self.used.copy()
            used[rng.integers(0, len(used), rng.integers(1, 7))] ^= True
            return replace(self, used=used)
        if which < 0.9:
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
