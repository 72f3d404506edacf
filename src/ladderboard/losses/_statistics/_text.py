"""Statistics of a whole corpus: word and character error rates, BLEU, chrF, order of items."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.losses._arrays import ExpectedColumns
from ladderboard.losses._cells import CellLoss, FreeText, split_cell
from ladderboard.losses._sequences import edit_distance, ngrams
from ladderboard.losses._statistics._base import Estimate, Statistic, function_of_means

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLEU_ORDERS = 4
_CHRF_ORDERS = 6
_CHRF_BETA = 2
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}


@dataclass(frozen=True)
class TextStatistic(FreeText, Statistic):
    """A statistic of texts."""

    @property
    def explanation(self) -> str:
        """Over the whole corpus."""
        return "all texts together"

    @abstractmethod
    def features(self, label: str, prediction: str) -> list[float]:
        """Return the counts of one example."""

    @abstractmethod
    def combine(self, means: NDArray[Any], texts: int) -> Any:
        """Return the value from the mean counts of some texts; accepts complex numbers."""

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """A function of the mean counts."""
        pairs = zip(labels.tolist(), predictions.tolist(), strict=True)
        counts = np.array([self.features(*pair) for pair in pairs], dtype=np.float64)
        return function_of_means(counts, lambda means: self.combine(means, len(counts)))


@dataclass(frozen=True)
class TokenErrorRate(TextStatistic):
    """The edits of all texts, as a part of the length of all labels. It may exceed 1.

    Parameters
    ----------
    cap
        The largest rate that is told apart; more counts as much.
    """

    higher: ClassVar[bool] = False

    cap: float = 1.0

    def __post_init__(self) -> None:
        _settings.set_frozen(self, cap=_settings.number("cap", self.cap, above=0, at_most=1e6))

    @property
    def unit(self) -> float:
        """A risk of 1 is the cap."""
        return self.cap

    @abstractmethod
    def tokens(self, text: str) -> Any:
        """Return what edits count."""

    def features(self, label: str, prediction: str) -> list[float]:
        """Edits and length."""
        truth = self.tokens(label)
        return [edit_distance(truth, self.tokens(prediction)), len(truth)]

    def combine(self, means: NDArray[Any], texts: int) -> Any:
        """Edits / length; without any length the edits."""
        return means[0] / means[1] if means[1].real else means[0]


@dataclass(frozen=True)
class WordErrorRate(TokenErrorRate):
    """WER: the edits in words.

    Examples
    --------
    >>> wer = WordErrorRate()
    >>> wer.estimate(wer.read_labels(["a b c", "d"]), wer.read_labels(["a x c", ""])).value
    0.5
    """

    name: ClassVar[str] = "wer"

    def tokens(self, text: str) -> list[str]:
        """Words."""
        return text.split()


@dataclass(frozen=True)
class CharacterErrorRate(TokenErrorRate):
    """CER: the edits in characters."""

    name: ClassVar[str] = "cer"

    def tokens(self, text: str) -> str:
        """Characters."""
        return text


def bleu_words(text: str) -> list[str]:
    """Return the words of the WMT evaluation (mteval-v13a): punctuation apart, numbers whole.

    >>> bleu_words("It's 1,000.5 (about).")
    ["It's", '1,000.5', '(', 'about', ')', '.']
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    text = re.sub(r"([!-&(-+/:-@\[-`{-~])", r" \1 ", f" {text} ")
    text = re.sub(r"([^0-9])([.,])", r"\1 \2 ", text)
    text = re.sub(r"([.,])([^0-9])", r" \1 \2", text)
    return re.sub(r"([0-9])(-)", r"\1 \2 ", text).split()


@dataclass(frozen=True)
class Bleu(TextStatistic):
    """BLEU with up to four words, one reference, and exponential smoothing of empty matches."""

    name: ClassVar[str] = "bleu"

    def features(self, label: str, prediction: str) -> list[float]:
        """Matches and totals of each order, and the two lengths."""
        truth, guess = bleu_words(label), bleu_words(prediction)
        matches, totals = [], []
        for order in range(1, _BLEU_ORDERS + 1):
            guessed = ngrams(guess, order)
            matches.append((guessed & ngrams(truth, order)).total())
            totals.append(guessed.total())
        return [*matches, *totals, len(guess), len(truth)]

    def combine(self, means: NDArray[Any], texts: int) -> Any:
        """The geometric mean of the precisions, shortened if too short."""
        matches, totals = means[:_BLEU_ORDERS], means[_BLEU_ORDERS : 2 * _BLEU_ORDERS]
        guessed, length = means[-2:]
        if not matches.real.any() or not totals.real.all():
            return 0.0 * guessed
        product, smoothing = 1.0, 1.0
        for match, total in zip(matches, totals, strict=True):
            if not match.real:
                smoothing *= 2
                product = product / (smoothing * total * texts)
            else:
                product = product * match / total
        brevity = np.exp(1 - length / guessed) if guessed.real < length.real else 1.0
        return brevity * product**0.25


@dataclass(frozen=True)
class Chrf(TextStatistic):
    """chrF2: the F-score of runs of up to six characters, blanks left out."""

    name: ClassVar[str] = "chrf"

    def features(self, label: str, prediction: str) -> list[float]:
        """Runs in the prediction, in the label, and in both, of each order."""
        truth, guess = ("".join(text.split()) for text in (label, prediction))
        counts: list[float] = []
        for order in range(1, _CHRF_ORDERS + 1):
            expected, guessed = ngrams(truth, order), ngrams(guess, order)
            total = guessed.total() if expected else 0
            counts += [total, expected.total(), (expected & guessed).total()]
        return counts

    def combine(self, means: NDArray[Any], texts: int) -> Any:
        """The F-score of the mean precision and the mean recall over the orders."""
        guessed, expected, matches = means[0::3], means[1::3], means[2::3]
        used = (guessed.real > 0) & (expected.real > 0)
        if not matches[used].real.any():
            return 0.0 * means[0]
        precision = (matches[used] / guessed[used]).mean()
        recall = (matches[used] / expected[used]).mean()
        factor = _CHRF_BETA**2
        return (1 + factor) * precision * recall / (factor * precision + recall)


@dataclass(frozen=True)
class OrderCorrelation(CellLoss, Statistic):
    """Kendall's tau of lists of items against their right order, over all lists together.

    1 - 4 (swaps of neighbours) / sum of m (m - 1), m being the length of a list. A list that is not
    made of the label's items counts as the reverse order.
    """

    name: ClassVar[str] = "order_correlation"

    separator: str | None = None

    @property
    def explanation(self) -> str:
        """Over all lists together."""
        return "the order of the items in all lists, from -1 to 1"

    @property
    def unit(self) -> float:
        """From -1 to 1."""
        return 2.0

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """One column of lists."""
        rules = ("prediction: the items in order, with blanks between them.",)
        return ExpectedColumns("text", "one", rules=rules, example=("x y z",), empty=True)

    def read_cell(self, cell: Any) -> list[str]:
        """The items in order."""
        return split_cell(cell, self.separator)

    def estimate(self, labels: NDArray[Any], predictions: NDArray[Any]) -> Estimate:
        """A ratio of sums."""
        pairs = zip(labels.tolist(), predictions.tolist(), strict=True)
        counts = np.array([_count_swaps(*pair) for pair in pairs], dtype=np.float64)
        if not counts[:, 1].any():
            return Estimate(1.0, np.zeros(len(counts)))
        return function_of_means(counts, lambda means: 1 - 4 * means[0] / means[1])


def _count_swaps(label: list[str], prediction: list[str]) -> tuple[int, int]:
    """Return the pairs in the wrong order, and m (m - 1)."""
    size = len(label)
    if sorted(label) != sorted(prediction) or len(set(label)) < size:
        return size * (size - 1) // 2, size * (size - 1)
    place = {item: position for position, item in enumerate(label)}
    order = np.array([place[item] for item in prediction], dtype=np.int64)
    swaps = sum(int((order[:position] > order[position]).sum()) for position in range(size))
    return swaps, size * (size - 1)
