"""Grading before anybody does: the labels themselves, the sample submission, the baselines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import BrokenLoss, InvalidInput, Problem
from ladderboard.files import wanted
from ladderboard.holdout import Scorer
from ladderboard.losses import Brier, Log, TopK

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.board._folder import BoardFolder

__all__ = ["Grader"]


class Grader:
    """Grades files as the board will, and tells the organiser only whether it could be done."""

    def __init__(self, folder: BoardFolder) -> None:
        self.folder = folder
        self.loss = folder.rules.loss
        self.scorer = Scorer(folder.table, self.loss, folder.rules.files.limits)
        self.labels = self.loss.read_labels(folder.table.labels)

    def gold(self) -> list[Problem]:
        """Return what is wrong if the labels themselves are not perfect."""
        try:
            losses = self._losses(self.scorer.read(self._perfect()).aligned)
        except (InvalidInput, BrokenLoss) as error:
            said = f"The labels cannot be graded as predictions: {error}"
            return [Problem("gold", None, 1, (), said)]
        found = []
        for which in ("public", "private"):
            mask = self.folder.public if which == "public" else self.folder.private
            wrong = int(np.count_nonzero(losses[mask]))
            if wrong:
                said = (
                    f"The labels as predictions must have a loss of 0; of the {which} rows "
                    f"{wrong:,} of {int(mask.sum()):,} have another."
                )
                found.append(Problem("gold", None, wrong, (), said))
        return found

    def baseline(self) -> float | None:
        """Return the least public risk of a constant prediction, the sample and the baselines."""
        if not self.loss.labelled:
            return None
        scorer = Scorer(
            self.folder.table, self.loss, self.folder.rules.files.limits, rows=self.folder.public
        )
        risks = []
        for path in (self.folder.sample, *self.folder.baselines.values()):
            try:
                risks += [] if path is None else [scorer.score(scorer.read(path)).risk]
            except InvalidInput:  # which is told by ``file``
                continue
        constant = scorer.constant_risk()
        return min([*risks, *([] if constant is None else [constant])], default=None)

    def file(self, path: Path) -> list[Problem]:
        """Return what is wrong with a file of predictions."""
        name = str(path.relative_to(self.folder.path))
        try:
            aligned = self.scorer.read(path).aligned
            losses = self._losses(aligned)
        except BrokenLoss as error:
            return [Problem("loss", None, 1, (), f"{name}: {error}")]
        except InvalidInput as error:
            some = error.problems or (Problem("loss", None, 1, (), str(error)),)
            return [replace(each, message=f"{name}: {each.message}") for each in some]
        scored = self.folder.public | self.folder.private
        if not losses[scored].any():
            if self.folder.rules.takes == "scores":
                said = f"{name}: every score is 1. Once that was asked, nobody could be better."
                return [Problem("perfect", None, 1, (), said)]
            said = f"{name}: every prediction is right. It must not hold the labels."
            return [Problem("holds_labels", None, 1, (), said)]
        return []

    def _losses(self, aligned: NDArray[Any]) -> NDArray[np.float64]:
        return self.loss.score(self.labels, aligned)

    def _perfect(self) -> NDArray[Any]:
        """Return the best predictions there are, as the loss wants them."""
        loss, table = self.loss, self.folder.table
        want = wanted(loss, self.scorer.roster)
        if want.form == "classes" and isinstance(loss, Brier | Log | TopK):
            return np.eye(len(loss.classes or ()))[self.labels]
        if isinstance(loss, TopK):
            return np.repeat(table.labels[:, None], loss.k, axis=1)
        return table.labels
