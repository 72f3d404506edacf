"""Worlds: a distribution and a holdout drawn from it, which a game scores models on."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions
from ladderboard.losses import Loss, ZeroOne

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_WORD = 64
_ALL = np.uint64(2**64 - 1)
_LITTLE = np.dtype("<u8")

_RARE_LABEL = 2


def words_needed(n: int) -> int:
    """Return how many words hold n bits."""
    return -(-n // _WORD)


def leading_ones(count: int, n: int) -> NDArray[np.uint64]:
    """Return n bits, packed, of which the first ``count`` are one."""
    words = np.zeros(words_needed(n), dtype=np.uint64)
    full, rest = divmod(count, _WORD)
    words[:full] = _ALL
    if rest:
        words[full] = (1 << rest) - 1
    return words


def pack_bits(bits: ArrayLike) -> NDArray[np.uint64]:
    """Pack a vector of zeros and ones, the first in the lowest bit of the first word.

    >>> pack_bits([1, 0, 1, 1]).tolist()
    [13]
    """
    booleans = np.asarray(bits, dtype=np.bool_)
    packed = np.zeros(words_needed(len(booleans)) * 8, dtype=np.uint8)
    packed[: -(-len(booleans) // 8)] = np.packbits(booleans, bitorder="little")
    return packed.view(_LITTLE).astype(np.uint64, copy=sys.byteorder == "big")


def unpack_bits(words: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Undo ``pack_bits``."""
    octets = words.astype(_LITTLE, copy=False).view(np.uint8)
    return np.unpackbits(octets, count=n, bitorder="little").view(np.bool_)


def random_bits(rng: np.random.Generator, n: int) -> NDArray[np.uint64]:
    """Return n fair coin flips, packed."""
    words = rng.integers(0, 2**64, words_needed(n), dtype=np.uint64)
    if n % _WORD:
        words[-1] &= np.uint64((1 << n % _WORD) - 1)
    return words


def count_ones(words: NDArray[np.uint64]) -> int:
    """Count the ones."""
    total: Any = np.bitwise_count(words).sum()
    return int(total)


class World(ABC):
    """A distribution of examples and a holdout of ``n`` drawn from it.

    It defines what a model is (a vector of predictions, a number, ...), its loss on the holdout and
    its true risk. Only the game uses it; the analyst is given ``known`` and nothing else.
    """

    n: int

    @property
    def known(self) -> Any:
        """What the analyst may know about the holdout from the start."""
        return None

    def read(self, model: Any) -> Any:
        """Return the model in this world's own form; called once for each question."""
        return model

    @abstractmethod
    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return the model's loss on every example of the holdout."""

    @abstractmethod
    def true_risk(self, model: Any) -> float:
        """Return the model's risk on the distribution, R_D."""

    def risk(self, model: Any) -> float:
        """Return the model's mean loss on the holdout, R_S."""
        return float(self.losses(model).mean())


class PackedKnownLabels(NamedTuple):
    """What the analyst knows: the labels of the first ``size`` examples, packed; the rest zero."""

    size: int
    labels: NDArray[np.uint64]


def count_easy(easy: float, n: int) -> int:
    """Return how many of n labels are easy; 0.29 of 100 are 29 despite rounding errors."""
    share = _settings.number("easy", easy, at_least=0, at_most=1)
    return min(math.floor(share * n + 1e-9), n)


class CoinFlipWorld(World):
    """Binary labels by coin flips, of which the analyst knows the first ones, a share of ``easy``.

    A model is a vector of n zeros and ones, or the same packed by ``pack_bits``. The label of an
    example that is not easy is a coin flip, so every prediction counts one half in the true risk
    there. (The inputs of the holdout are held fixed: this is the input-conditional risk.)

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Generator for the labels.
    easy
        The share of the labels that the analyst knows, in [0, 1].
    """

    def __init__(self, n: int, rng: np.random.Generator, *, easy: float = 0.0) -> None:
        self.n = _settings.integer("n", n, at_least=1)
        self.easy = count_easy(easy, self.n)
        flips = rng.integers(0, 2**64, words_needed(self.n), dtype=np.uint64)
        self._labels = flips & leading_ones(self.n, self.n)
        self._easy = leading_ones(self.easy, self.n)

    @property
    def known(self) -> PackedKnownLabels:
        """The easy labels."""
        return PackedKnownLabels(self.easy, self._labels & self._easy)

    def read(self, model: Any) -> NDArray[np.uint64]:
        """Return the model's predictions, packed."""
        vector = np.asarray(model)
        if vector.dtype == np.uint64 and vector.shape == self._labels.shape:
            if vector[-1] & ~leading_ones(self.n, self.n)[-1]:
                raise InvalidPredictions(f"Packed predictions have bits past the {self.n}th.")
            return vector
        if vector.shape != (self.n,):
            raise InvalidPredictions(
                f"A model here is one prediction, 0 or 1, for each of the {self.n} examples; "
                f"got shape {vector.shape}."
            )
        if vector.dtype != np.bool_ and not ((vector == 0) | (vector == 1)).all():
            raise InvalidPredictions("A model here predicts 0 or 1 for every example.")
        return pack_bits(vector != 0)

    def risk(self, model: Any) -> float:
        """Return the share of the labels that the model misses."""
        return count_ones(self.read(model) ^ self._labels) / self.n

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model misses the label."""
        return unpack_bits(self.read(model) ^ self._labels, self.n).astype(np.float64)

    def true_risk(self, model: Any) -> float:
        """Return the share missed, counting half of the labels that are not easy."""
        wrong = count_ones((self.read(model) ^ self._labels) & self._easy) if self.easy else 0
        return (wrong + (self.n - self.easy) / 2) / self.n


class RareClassWorld(World):
    """Labels 0 and 1 by coin flips, and the label 2 with probability ``rare``.

    A model is a vector of n predictions 0, 1 or 2, or of zeros and ones packed by ``pack_bits``.
    With ``rare=0`` the prediction 2 is always wrong: an abstention. The first labels, a share of
    ``easy``, are known to the analyst and never 2. The true risk of a model counts its errors on
    them, and the risk of its other predictions on fresh labels.

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Generator for the labels.
    rare
        The share of labels 2 among the others, in [0, 1].
    easy
        The share of the labels that the analyst knows, in [0, 1].

    Examples
    --------
    >>> world = RareClassWorld(4, np.random.default_rng(1), rare=0.1)
    >>> round(world.true_risk([0, 1, 2, 2]), 3)
    0.725
    """

    def __init__(
        self, n: int, rng: np.random.Generator, *, rare: float = 0.0, easy: float = 0.0
    ) -> None:
        self.n = _settings.integer("n", n, at_least=1)
        self.rare = _settings.number("rare", rare, at_least=0, at_most=1)
        self.easy = count_easy(easy, self.n)
        self._easy = leading_ones(self.easy, self.n)
        self._ones = pack_bits(rng.integers(0, 2, self.n))
        self._twos: NDArray[np.uint64] = pack_bits(rng.random(self.n) < self.rare) & ~self._easy

    @property
    def known(self) -> PackedKnownLabels:
        """The easy labels."""
        return PackedKnownLabels(self.easy, self._ones & self._easy)

    def read(self, model: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where the model predicts 1, and where 2, both packed."""
        if isinstance(model, tuple):
            return model
        vector = np.asarray(model)
        if vector.dtype == np.uint64 and vector.shape == self._ones.shape:
            if vector[-1] & ~leading_ones(self.n, self.n)[-1]:
                raise InvalidPredictions(f"Packed predictions have bits past the {self.n}th.")
            return vector, np.zeros_like(vector)
        if vector.shape != (self.n,):
            raise InvalidPredictions(
                f"A model here is one prediction, 0, 1 or 2, for each of the {self.n} examples; "
                f"got shape {vector.shape}."
            )
        ones, twos = vector == 1, vector == _RARE_LABEL
        if not (ones | twos | (vector == 0)).all():
            raise InvalidPredictions("A model here predicts 0, 1 or 2 for every example.")
        return pack_bits(ones), pack_bits(twos)

    def _error_bits(self, model: Any) -> NDArray[np.uint64]:
        ones, twos = self.read(model)
        return (twos ^ self._twos) | (~twos & (ones ^ self._ones))

    def risk(self, model: Any) -> float:
        """Return the share of the labels that the model misses."""
        return count_ones(self._error_bits(model)) / self.n

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model misses the label."""
        return unpack_bits(self._error_bits(model), self.n).astype(np.float64)

    def true_risk(self, model: Any) -> float:
        """Return the errors on easy labels and the risk on fresh labels of the others."""
        twos = self.read(model)[1]
        wrong = count_ones(self._error_bits(model) & self._easy) if self.easy else 0
        abstained = count_ones(twos & ~self._easy)
        guessed = self.n - self.easy - abstained
        return (wrong + abstained * (1 - self.rare) + guessed * (1 + self.rare) / 2) / self.n


class KnownLabels(NamedTuple):
    """What the analyst knows: the labels of the first ``size`` examples; the rest are zero."""

    size: int
    labels: NDArray[np.int64]


class UniformLabelsWorld(World):
    """Labels 0, 1 .. ``classes`` - 1, all equally likely, scored by any loss.

    A model is what the loss takes: labels for zero-one loss, probabilities for log loss. The label
    of an example that is not easy cannot be known, so the true risk averages the loss over all
    labels there. (As in ``CoinFlipWorld``, this is the risk given the inputs of the holdout.)

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Generator for the labels.
    classes
        How many labels there are.
    loss
        The loss of a prediction; zero-one loss by default.
    easy
        The share of the labels that the analyst knows, in [0, 1].

    Examples
    --------
    >>> world = UniformLabelsWorld(1000, np.random.default_rng(1), classes=10)
    >>> world.true_risk(np.zeros(1000))
    0.9
    >>> world.risk(np.zeros(1000))
    0.904
    """

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        classes: int = 2,
        loss: Loss | None = None,
        easy: float = 0.0,
    ) -> None:
        self.n = _settings.integer("n", n, at_least=1)
        self.classes = _settings.integer("classes", classes, at_least=2)
        self.loss = ZeroOne() if loss is None else loss
        self.easy = count_easy(easy, self.n)
        self._labels = rng.integers(0, self.classes, self.n)
        self._read_labels = self.loss.read_labels(self._labels)
        # Every label that a hard example could have, in the form that the loss reads.
        hard = self.n - self.easy
        labels = range(self.classes) if hard else ()
        self._possible = [self.loss.read_labels(np.full(hard, label)) for label in labels]

    @property
    def known(self) -> KnownLabels:
        """The easy labels."""
        labels = self._labels.copy()
        labels[self.easy :] = 0
        return KnownLabels(self.easy, labels)

    def read(self, model: Any) -> Any:
        """Return a copy, which later changes by the analyst do not affect."""
        return np.array(model)

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return the model's loss on every label of the holdout."""
        return self.loss.score(self._read_labels, model)

    def true_risk(self, model: Any) -> float:
        """Return the mean loss, over all possible labels where the label is not easy."""
        predictions = self.loss.read_predictions(model, self._read_labels.shape)
        easy = self.easy
        total = 0.0
        if easy:
            total += float(
                np.sum(self.loss.per_example(self._read_labels[:easy], predictions[:easy]))
            )
        if self._possible:
            hard = predictions[easy:]
            losses = [float(np.sum(self.loss.per_example(y, hard))) for y in self._possible]
            total += sum(losses) / self.classes
        return total / self.n


class TrueRiskWorld(World):
    """A world where a model is its true risk, and errs on each example with that probability.

    The losses of a question are drawn when it is asked, independently of all others: a model asked
    twice counts as two models.

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Generator for the losses.

    Examples
    --------
    >>> world = TrueRiskWorld(1000, np.random.default_rng(1))
    >>> world.true_risk(0.25), world.risk(0.25), world.risk(0.25)
    (0.25, 0.246, 0.231)
    """

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = _settings.integer("n", n, at_least=1)
        self._rng = rng

    def true_risk(self, model: Any) -> float:
        """Return the model itself."""
        risk = float(model) if isinstance(model, Real) else math.nan
        if isinstance(model, bool) or not 0 <= risk <= 1:
            raise InvalidPredictions("A model here is its true risk, one number in [0, 1].")
        return risk

    def risk(self, model: Any) -> float:
        """Return the share of the holdout on which the model errs, drawn now."""
        return float(self._rng.binomial(self.n, self.true_risk(model))) / self.n

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return 1 where the model errs, drawn now."""
        return (self._rng.random(self.n) < self.true_risk(model)).astype(np.float64)
