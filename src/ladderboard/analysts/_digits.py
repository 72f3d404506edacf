"""Handwritten digits: a world of real images, from the set that scikit-learn brings along."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._world import World
from ladderboard.errors import InvalidPredictions, MissingDependency

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Digits", "Fitted", "Images"]

_SIDE = 8
_DARKEST = 16.0
_TRAINING = 1_500
_NOISES = 5  # how often every image with every shift stands for the distribution
_SHIFTS = np.array([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)])


class Images(NamedTuple):
    """Images of 8 x 8 pixels, a row each, and the digits they show."""

    pixels: NDArray[np.float32]
    digits: NDArray[np.int64]


class Fitted(NamedTuple):
    """A model: a fitted scikit-learn classifier, and the pixels it looks at."""

    estimator: Any
    pixels: NDArray[np.intp]


class Digits(World):
    """Real digits, of which there are as many as one likes.

    The 1,797 images that scikit-learn brings along are split in two halves, always the same. An
    example is an image of the second half, chosen at random, shifted by at most one pixel to one
    side, with noise on its pixels, so there are holdouts of any size. The true risk is the mean
    over 22,450 others: every image of that half with every shift, five times with new noise.
    The images for training, ``known``, are 1,500 made in the same way from the first half. A model
    is a ``Fitted``.

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
        self.n = _settings.whole("n", n, at_least=1)
        self.noise = _settings.number("noise", noise, at_least=0)
        self._holdout = _draw(_halves()[1], self.n, rng, self.noise)

    @property
    def known(self) -> Images:
        """The images for training."""
        return _training(self.noise)

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model reads another digit."""
        return _wrong(model, self._holdout).astype(np.float64)

    def true_risk(self, model: Any) -> float:
        """Return the part misread of further examples, which stand for all."""
        return float(_wrong(model, _truth(self.noise)).mean())


def _draw(images: Images, n: int, rng: np.random.Generator, noise: float) -> Images:
    """Draw n examples made from these images."""
    chosen = rng.integers(0, len(images.digits), n)
    return _make(images, chosen, rng.integers(0, len(_SHIFTS), n), rng, noise)


def _make(
    images: Images,
    chosen: NDArray[np.int64],
    shift: NDArray[np.int64],
    rng: np.random.Generator,
    noise: float,
) -> Images:
    """Make one example of each image chosen, shifted, with noise."""
    # Every image gets a border of blank pixels, and a window is cut out.
    padded = np.pad(images.pixels.reshape(-1, _SIDE, _SIDE), ((0, 0), (1, 1), (1, 1)))
    down, right = 1 + _SHIFTS[shift].T
    rows = down[:, None] + np.arange(_SIDE)
    columns = right[:, None] + np.arange(_SIDE)
    pixels = padded[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
    pixels = pixels + np.float32(noise) * rng.standard_normal(pixels.shape, dtype=np.float32)
    pixels = np.clip(pixels, 0, _DARKEST).reshape(len(chosen), -1)
    return _kept(Images(pixels, images.digits[chosen]))


def _wrong(model: Any, images: Images) -> NDArray[np.bool_]:
    if not isinstance(model, Fitted):
        raise InvalidPredictions("A model here is a Fitted: a fitted classifier and its pixels.")
    said: NDArray[np.bool_] = model.estimator.predict(images.pixels[:, model.pixels])
    return said != images.digits


@lru_cache(maxsize=1)
def _halves() -> tuple[Images, Images]:
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
    halves = [Images(pixels[half], digits[half]) for half in (training, other)]
    return _kept(halves[0]), _kept(halves[1])


def _kept(images: Images) -> Images:
    """Return images that nobody can write to: some are shared by all games."""
    for array in images:
        array.flags.writeable = False
    return images


# The same for every game: only the holdout is drawn anew.
@lru_cache(maxsize=4)
def _training(noise: float) -> Images:
    return _draw(_halves()[0], _TRAINING, np.random.default_rng(2), noise)


@lru_cache(maxsize=4)
def _truth(noise: float) -> Images:
    images = _halves()[1]
    each, shifts = len(images.digits), len(_SHIFTS)
    chosen = np.tile(np.arange(each), shifts * _NOISES)
    shift = np.tile(np.repeat(np.arange(shifts), each), _NOISES)
    return _make(images, chosen, shift, np.random.default_rng(1), noise)
