"""Uniform labels over several classes, and any loss on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._coins import part_of
from ladderboard.analysts._world import World
from ladderboard.losses import Loss, ZeroOne

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EasyLabels", "Labels"]


class EasyLabels(NamedTuple):
    """What the analyst knows: the labels of the first ``until`` examples; the rest are zero."""

    until: int
    labels: NDArray[np.int64]


class Labels(World):
    """Labels 0, 1 .. ``classes`` - 1, all equally likely, scored by a loss of one's choice.

    A model is whatever the loss takes: labels for zero-one loss, probabilities for log loss. Nobody
    can foresee the label of an example that is not easy, so the true risk averages the loss over
    all of them there. (As in ``Coins``, this is the risk given the inputs of the holdout.)

    Parameters
    ----------
    n
        Examples in the holdout.
    rng
        Where the labels come from.
    classes
        How many labels there are.
    loss
        What a prediction costs; zero-one loss if left out.
    easy
        The part of the labels that the analyst knows, in [0, 1].

    Examples
    --------
    >>> world = Labels(1000, np.random.default_rng(1), classes=10)
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
        self.n = _settings.whole("n", n, at_least=1)
        self.classes = _settings.whole("classes", classes, at_least=2)
        self.loss = ZeroOne() if loss is None else loss
        self.easy = part_of(easy, self.n)
        self._labels = rng.integers(0, self.classes, self.n)
        self._read_labels = self.loss.read_labels(self._labels)
        # Every label that a hard example could have, in the loss's own form.
        hard = self.n - self.easy
        labels = range(self.classes) if hard else ()
        self._possible = [self.loss.read_labels(np.full(hard, label)) for label in labels]

    @property
    def known(self) -> EasyLabels:
        """The easy labels."""
        shown = self._labels.copy()
        shown[self.easy :] = 0
        return EasyLabels(self.easy, shown)

    def read(self, model: Any) -> Any:
        """Return a copy that stays as it is."""
        return np.array(model)

    def losses(self, model: Any) -> NDArray[np.float64]:
        """Return the model's loss on every label of the holdout."""
        return self.loss.score(self._read_labels, model)

    def true_risk(self, model: Any) -> float:
        """Return the mean loss, over all possible labels where the label is not easy."""
        read = self.loss.read_predictions(model, self._read_labels.shape)
        easy = self.easy
        total = 0.0
        if easy:
            total += float(np.sum(self.loss.per_example(self._read_labels[:easy], read[:easy])))
        if self._possible:
            hard = read[easy:]
            each = [float(np.sum(self.loss.per_example(y, hard))) for y in self._possible]
            total += sum(each) / self.classes
        return total / self.n
