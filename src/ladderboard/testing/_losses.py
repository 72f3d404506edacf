"""The conformance suite of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import BrokenLoss, InvalidPredictions
from ladderboard.losses import LOSSES, Custom, Loss, loss
from ladderboard.testing._assertions import pickled_copy, require, require_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_loss(subject: Loss, labels: Sequence[Any], predictions: Sequence[Any]) -> None:
    """Check that ``subject`` meets the requirements of a loss.

    Parameters
    ----------
    subject
        The loss to check.
    labels, predictions
        Valid examples of both, at least three rows, in any form that the loss accepts.

    Examples
    --------
    >>> import ladderboard as lb
    >>> check_loss(lb.loss("zero_one"), ["a", "b", "a"], ["a", "a", "b"])
    """
    label_rows, prediction_rows = _rows(labels), _rows(predictions)
    n = len(label_rows)
    require(n >= 3, "check_loss needs at least three rows to work with.")
    try:
        values = subject(labels, predictions)
    except BrokenLoss as error:
        raise AssertionError(str(error)) from error
    require(values.dtype == np.float64, "A loss must return doubles.")
    require(np.array_equal(values, subject(labels, predictions)), "Scoring twice must agree.")
    backwards = subject(label_rows[::-1], prediction_rows[::-1])
    require(
        np.array_equal(values[::-1], backwards),
        "An example's loss must not depend on its place among the others.",
    )
    alone = np.concatenate(
        [subject(label_rows[i : i + 1], prediction_rows[i : i + 1]) for i in range(n)]
    )
    require(
        np.allclose(values, alone, rtol=0, atol=1e-12),
        "An example's loss must not depend on the other examples.",
    )
    _check_identity(subject)
    _check_refusals(subject, labels, prediction_rows)


def _rows(values: Sequence[Any]) -> Any:
    return values if isinstance(values, np.ndarray) else list(values)


def _check_identity(subject: Loss) -> None:
    require(hash(subject) == hash(subject), "A loss must be hashable.")
    with require_refusal(
        AttributeError, "A loss must be frozen: write @dataclass(frozen=True) above its class."
    ):
        subject.name = "another"  # type: ignore[misc]
    if isinstance(subject, Custom):  # its function may not exist in other processes
        return
    if subject.name in LOSSES:
        require(
            type(subject) is LOSSES[subject.name],
            f"A loss of your own needs a name of its own; {subject.name!r} is taken.",
        )
        require(
            loss(subject.describe()) == subject, "A loss must be reconstructible from describe()."
        )
    require(pickled_copy(subject) == subject, "A loss must survive pickling.")


def _check_refusals(subject: Loss, labels: Any, predictions: Any) -> None:
    sentence = "{} must be refused as InvalidPredictions."
    shape = subject.read_labels(labels).shape
    for bad, name in ((None, "None"), (float("nan"), "NaN"), (float("inf"), "An infinity")):
        first = predictions[0]
        spoiled = [_with_bad_value(first, bad), *list(predictions)[1:]]
        with require_refusal(InvalidPredictions, sentence.format(name)):
            subject.read_predictions(spoiled, shape)
    if np.issubdtype(np.asarray(predictions).dtype, np.floating):
        for far in (-1e9, 1e9):
            spoiled = [_with_bad_value(predictions[0], far), *list(predictions)[1:]]
            try:
                subject.score(subject.read_labels(labels), spoiled)
            except InvalidPredictions:
                continue
            except BrokenLoss as error:
                raise AssertionError(
                    "A loss must stay in [0, 1] for every prediction it accepts; clip it."
                ) from error
    with require_refusal(InvalidPredictions, sentence.format("A missing row")):
        subject.read_predictions(predictions[:-1], shape)
    with require_refusal(InvalidPredictions, sentence.format("A single value")):
        subject.read_predictions(0, shape)


def _with_bad_value(row: Any, bad: Any) -> Any:
    return bad if np.ndim(row) == 0 else [bad, *list(row)[1:]]
