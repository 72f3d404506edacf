"""The judge: asks a guard about the candidates of a search, and selects the winner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ladderboard import _settings
from ladderboard.errors import BudgetSpent, InvalidSetting, RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.holdout._gate import Gate
    from ladderboard.holdout._remote import RemoteGate
    from ladderboard.holdout._reply import Reply

_MODES = ("min", "max")


class Guard(Protocol):
    """The interface of a guard or a board that answers questions about predictions."""

    def ask(self, predictions: Any, /) -> Reply:
        """Return the answer about a model's predictions."""


@dataclass(frozen=True)
class Judgement:
    """A guard's or a gate's answer about one candidate of a search.

    Parameters
    ----------
    name
        The search's name for the model: a number, its parameters, a file.
    score
        The search's own score of the model; None if there is none.
    reply
        The guard's :class:`Reply`, or the gate's :class:`Verdict`.
    """

    name: Any
    score: float | None
    reply: Any

    @property
    def improved(self) -> bool:
        """Whether the guard measured an improvement, or the gate proved the model better."""
        return bool(self.reply.improved)

    @property
    def question(self) -> int:
        """The number of the question on its ladder, or of the look."""
        return int(self.reply.question)

    @property
    def order(self) -> int:
        """The position among all questions on its ladder.

        This is the question's number; on a board it is the submission's number, because a board
        restarts the count of questions when labels are corrected.
        """
        return int(getattr(self.reply, "number", self.question))

    def describe(self) -> dict[str, Any]:
        """Return a row for a table."""
        reply = self.reply
        return {
            "name": self.name,
            "score": self.score,
            "question": self.question,
            "improved": reply.improved,
            "released": getattr(reply, "released", None),
            "remaining": reply.remaining,
        }


def last_improved(judgements: Iterable[Judgement]) -> Judgement | None:
    """Return the winner: the last question that improved.

    Do not select the smallest released value: the released value is the best so far, so every
    model asked after the best one has the same value, however bad it is. Judgements may come in any
    order and from several workers, if all asked on one ladder.
    """
    improved = (judgement for judgement in judgements if judgement.improved)
    return max(improved, key=_order, default=None)


def _order(judgement: Judgement) -> int:
    return judgement.order


class Judge:
    """Asks a guard about the promising models of a search, and selects the winner.

    The search optimises its own score, on validation data that it may use as often as it likes.
    When that score sets a record, the judge asks the guard. Do not use released values as the
    objective of a search. Safe with threads.

    Parameters
    ----------
    guard
        A :class:`Holdout`, a served guard, or a board through the client. Or a :class:`Gate` or a
        served one: a model then improves if it is proven better than the incumbent, which the judge
        never changes. The winner is the last such model.
    mode
        Whether smaller (``"min"``) or larger (``"max"``) scores of the search are better.
    min_delta
        A score must beat the record by more than this to be asked about.

    Examples
    --------
    >>> import tempfile, numpy as np, ladderboard as lb
    >>> folder = tempfile.TemporaryDirectory()
    >>> labels = np.random.default_rng(0).integers(2, size=1000)
    >>> guard = lb.Holdout.create(f"{folder.name}/guard.db", labels=labels, questions=100,
    ...                           mechanism=lb.Ladder(step=0.02))
    >>> judge = lb.Judge(guard)
    >>> for name, score, every in [("a", 0.25, 4), ("b", 0.30, 3), ("c", 0.21, 5)]:
    ...     _ = judge.consider(score, labels ^ (np.arange(1000) % every == 0), name=name)
    >>> [judgement.name for judgement in judge.judgements], judge.winner.name
    (['a', 'c'], 'c')
    >>> folder.cleanup()
    """

    def __init__(
        self,
        guard: Guard | Gate | RemoteGate,
        *,
        mode: Literal["min", "max"] = "min",
        min_delta: float = 0.0,
    ) -> None:
        if mode not in _MODES:
            raise InvalidSetting(f'mode must be "min" or "max"; got {_settings.safe_repr(mode)}.')
        if hasattr(guard, "check_ladder"):  # refuse now, not after a model was trained
            guard.check_ladder()
        if not hasattr(guard, "ask") and not guard.status().incumbent:
            raise InvalidSetting("The gate has no incumbent yet; promote one first.")
        self.guard = guard
        self.mode = mode
        self.min_delta = _settings.number("min_delta", min_delta, at_least=0)
        self._verdicts: list[Judgement] = []
        self._best: float | None = None
        self._checks_without_improvement = 0
        self._last = 0
        self._budget_spent = False
        self._lock = Lock()

    def consider(self, score: float, predictions: Any, *, name: Any = None) -> Judgement | None:
        """Ask about a model if its own score sets a record; return None if nothing was asked.

        ``predictions`` may be a function that returns them; it is called only for a record. A score
        that is not finite sets no record. When the budget is spent, nothing is asked and
        ``budget_spent`` is True; while a board's rate limit applies, nothing is asked. Refusals are
        raised. A question without an answer sets no record.
        """
        score = float(score)
        with self._lock:
            self._checks_without_improvement += 1
            previous_best = self._best
            if self._budget_spent or not self._is_record(score):
                return None
            self._best = score
        try:
            return self._ask(predictions, name, score)
        except BaseException as error:
            with self._lock:
                if self._best == score:
                    self._best = previous_best
            if isinstance(error, BudgetSpent | RateLimited):
                return None
            raise

    def ask(self, predictions: Any, *, name: Any = None, score: float | None = None) -> Judgement:
        """Ask about a model whatever its score is; raises ``BudgetSpent`` and ``RateLimited``."""
        return self._ask(predictions, name, score)

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """The answers, in the order of the questions."""
        with self._lock:
            return tuple(sorted(self._verdicts, key=_order))

    @property
    def winner(self) -> Judgement | None:
        """The model to select: the last question that improved; None if none did."""
        return last_improved(self.judgements)

    @property
    def best(self) -> float | None:
        """The best of the search's own scores, among the models asked about."""
        return self._best

    @property
    def checks_without_improvement(self) -> int:
        """The number of models considered since the guard last measured an improvement."""
        return self._checks_without_improvement

    @property
    def budget_spent(self) -> bool:
        """Whether the budget is spent."""
        return self._budget_spent

    def _is_record(self, score: float) -> bool:
        if not math.isfinite(score):
            return False
        if self._best is None:
            return True
        gain = self._best - score if self.mode == "min" else score - self._best
        return gain > self.min_delta

    def _ask(self, predictions: Any, name: Any, score: float | None) -> Judgement:
        try:
            predictions = predictions() if callable(predictions) else predictions
            guard = self.guard
            reply = guard.ask(predictions) if hasattr(guard, "ask") else guard.check(predictions)
        except BudgetSpent:
            self._budget_spent = True
            raise
        judgement = Judgement(name, score, reply)
        with self._lock:
            self._verdicts.append(judgement)
            # A repeated answer counts as new once, for a search that was restarted.
            if reply.improved and judgement.order > self._last:
                self._checks_without_improvement, self._last = 0, judgement.order
            # On a board the next question may be allowed later; repeated questions are always free.
            has_later_submission = getattr(reply, "next_submission_at", None) is not None
            if reply.remaining == 0 and not reply.again and not has_later_submission:
                self._budget_spent = True
        return judgement

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but the lock; the copy then collects its own judgements."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
