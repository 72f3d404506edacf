"""Losses of free text and sequences: edit distances, overlap of words, ROUGE."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ladderboard import _settings
from ladderboard.losses._base import CostLoss
from ladderboard.losses._cells import FreeText

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

ROUGE_TYPES = ("1", "2", "l")


def edit_distance(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and substitutions (Levenshtein).

    Bit-parallel: the differences along a column of the table are the bits of two integers.

    >>> edit_distance("kitten", "sitting"), edit_distance("", "abc")
    (3, 3)
    """
    if not left or not right:
        return max(len(left), len(right))
    places = _bit_places(left)
    full, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    rises, falls, distance = full, 0, len(left)
    for item in right:
        equal = places.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal
        across_rises = falls | (full & ~(diagonal | rises))
        across_falls = rises & diagonal
        distance += bool(across_rises & last) - bool(across_falls & last)
        across_rises = (across_rises << 1) | 1
        same = equal | falls
        rises = ((across_falls << 1) | ~(same | across_rises)) & full
        falls = across_rises & same & full
    return distance


def longest_common_subsequence(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence.

    >>> longest_common_subsequence("abcbdab", "bdcaba")
    4
    """
    places, full = _bit_places(left), (1 << len(left)) - 1
    row = full
    for item in right:
        matches = row & places.get(item, 0)
        row = ((row + matches) | (row - matches)) & full
    return len(left) - row.bit_count()


def _bit_places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for position, item in enumerate(items):
        places[item] = places.get(item, 0) | 1 << position
    return places


@dataclass(frozen=True)
class TextLoss(FreeText, CostLoss):
    """A loss of free text by a cost of each pair."""

    @abstractmethod
    def pair_cost(self, label: str, prediction: str) -> float:
        """Return the cost of one example in the metric's own unit."""

    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """Return the cost of each pair."""
        pairs = zip(labels.tolist(), predictions.tolist(), strict=True)
        return np.array([self.pair_cost(*pair) for pair in pairs], dtype=np.float64)


@dataclass(frozen=True)
class Levenshtein(TextLoss):
    """The edit distance of two texts in characters, at most ``cap``.

    Examples
    --------
    >>> Levenshtein(cap=10)(["kitten", ""], ["sitting", "a"]).tolist()
    [0.3, 0.1]
    """

    name: ClassVar[str] = "levenshtein"

    cap: int = 256

    def __post_init__(self) -> None:
        _settings.set_frozen(self, cap=_settings.integer("cap", self.cap, at_least=1))

    @property
    def explanation(self) -> str:
        """The edit distance."""
        return f"a prediction costs its edit distance from the label, at most {self.cap}"

    @property
    def unit(self) -> float:
        """A loss of 1 is the cap."""
        return float(self.cap)

    def pair_cost(self, label: str, prediction: str) -> float:
        """The number of edits."""
        return edit_distance(label, prediction)


@dataclass(frozen=True)
class EditDissimilarity(TextLoss):
    """The edit distance as a part of the longer text's length; 1 - it is edit similarity.

    Examples
    --------
    >>> EditDissimilarity()(["abcd", ""], ["abxd", ""]).tolist()
    [0.25, 0.0]
    """

    name: ClassVar[str] = "edit_dissimilarity"

    @property
    def explanation(self) -> str:
        """The relative edit distance."""
        return "a prediction costs its edit distance as a part of the longer text"

    def pair_cost(self, label: str, prediction: str) -> float:
        """Edits / the longer length."""
        longest = max(len(label), len(prediction))
        return edit_distance(label, prediction) / longest if longest else 0.0


@dataclass(frozen=True)
class WordJaccard(TextLoss):
    """1 - the Jaccard index of the sets of words, in lower case; 0 if both are empty.

    Examples
    --------
    >>> WordJaccard()(["very good", ""], ["Good", ""]).tolist()
    [0.5, 0.0]
    """

    name: ClassVar[str] = "word_jaccard"

    @property
    def explanation(self) -> str:
        """The words that are not shared."""
        return "a prediction costs the part of all words that it does not share with the label"

    def pair_cost(self, label: str, prediction: str) -> float:
        """1 - shared / all."""
        words, others = set(label.lower().split()), set(prediction.lower().split())
        union = len(words | others)
        return 1 - len(words & others) / union if union else 0.0


def rouge_words(text: str) -> list[str]:
    """Return the words that ROUGE compares: runs of letters a to z and digits, in lower case."""
    return re.findall(r"[a-z0-9]+", text.lower())


def ngrams(items: Sequence[Any], order: int) -> Counter[Any]:
    """Return how often each run of ``order`` items occurs."""
    return Counter(tuple(items[start : start + order]) for start in range(len(items) - order + 1))


@dataclass(frozen=True)
class Rouge(TextLoss):
    """1 - ROUGE, the F-score of shared words (``type="1"``), pairs (``"2"``) or of the longest
    common subsequence of words (``"l"``).

    Examples
    --------
    >>> Rouge(type="1")(["the cat sat"], ["the cat"]).round(4).tolist()
    [0.2]
    """  # noqa: D205 - one sentence

    name: ClassVar[str] = "rouge"

    type: str = "l"

    def __post_init__(self) -> None:
        _settings.choice("type", self.type, ROUGE_TYPES)

    @property
    def explanation(self) -> str:
        """1 - ROUGE."""
        return f"a prediction costs 1 minus its ROUGE-{self.type.upper()} F-score"

    def pair_cost(self, label: str, prediction: str) -> float:
        """1 - F-score."""
        words, guessed = rouge_words(label), rouge_words(prediction)
        if self.type == "l":
            shared, total, guesses = (
                longest_common_subsequence(words, guessed), len(words), len(guessed)
            )  # fmt: skip
        else:
            left, right = (ngrams(part, int(self.type)) for part in (words, guessed))
            shared, total, guesses = (left & right).total(), left.total(), right.total()
        return 1 - 2 * shared / (total + guesses) if shared else 1.0
