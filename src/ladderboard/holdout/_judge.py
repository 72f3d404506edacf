"""The judge: asks a guard about the models of a search, and says which of them won."""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ladderboard import _settings
from ladderboard.errors import BudgetSpent, InvalidSetting, RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.holdout._reply import Reply

_MODES = ("min", "max")


class Guard(Protocol):
    """Whatever can be asked about a model by its predictions: a guard, or a board's."""

    def ask(self, predictions: Any, /) -> Reply:
        """Answer."""


@dataclass(frozen=True)
class Verdict:
    """What a guard said about one model of a search.

    Parameters
    ----------
    name
        The searcher's own name for the model: a number, its parameters, a file.
    score
        The searcher's own score of it; None if it was asked about without one.
    reply
        What was said.
    """

    name: Any
    score: float | None
    reply: Reply

    @property
    def improved(self) -> bool:
        """Whether the guard saw that it is better than all before."""
        return self.reply.improved

    @property
    def question(self) -> int:
        """The number of the question on its ladder."""
        return self.reply.question

    @property
    def order(self) -> int:
        """When it was asked among all on its ladder.

        It is the question's number; on a board the submission's, as a board counts questions anew
        when labels are corrected.
        """
        return int(getattr(self.reply, "number", self.reply.question))

    def describe(self) -> dict[str, Any]:
        """Return a row for a table."""
        reply = self.reply
        return {
            "name": self.name,
            "score": self.score,
            "question": reply.question,
            "improved": reply.improved,
            "released": reply.released,
            "remaining": reply.remaining,
        }


def last_improved(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the winner: of the questions that improved, the last to be asked.

    Never the one with the least released value: what is released is the best so far, so that every
    model asked after the best one, however bad, has the same value. Verdicts may come in any order
    and from several workers, as long as they asked on one ladder.
    """
    return max((each for each in verdicts if each.improved), key=_order, default=None)


def _order(verdict: Verdict) -> int:
    return verdict.order


class Judge:
    """Asks about the models that a search believes in, and knows the winner.

    The search goes by a score of its own, on validation data that it may look at as often as it
    likes. When that score sets a record the judge asks the guard. Nothing that a guard releases is
    of use as a search's objective. Safe with threads.

    Parameters
    ----------
    guard
        What is asked: a :class:`Holdout`, one that is served elsewhere, or a board through the
        client.
    mode
        Whether the search's own score is better when it is less (``"min"``) or more (``"max"``).
    min_delta
        By how much more than this a score must beat the record to be asked about.

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
    >>> [each.name for each in judge.verdicts], judge.winner.name
    (['a', 'c'], 'c')
    >>> folder.cleanup()
    """

    def __init__(
        self, guard: Guard, *, mode: Literal["min", "max"] = "min", min_delta: float = 0.0
    ) -> None:
        if mode not in _MODES:
            raise InvalidSetting(f'mode must be "min" or "max"; got {_settings.safe_repr(mode)}.')
        if hasattr(guard, "check_ladder"):  # refused now, and not when a model was trained
            guard.check_ladder()
        self.guard = guard
        self.mode = mode
        self.min_delta = _settings.number("min_delta", min_delta, at_least=0)
        self._verdicts: list[Verdict] = []
        self._best: float | None = None
        self._stale = 0
        self._last = 0
        self._spent = False
        self._lock = Lock()

    def consider(self, score: float, predictions: Any, *, name: Any = None) -> Verdict | None:
        """Ask about a model if its own score sets a record; return None if nothing was asked.

        ``predictions`` may be a function that makes them, which is called only for a record. A
        score that is no finite number sets none. Once the budget is spent nothing is asked, and
        ``spent`` says so; where a board takes the next question only later, nothing is asked until
        then. What is refused is raised. Whatever was not answered sets no record.
        """
        score = float(score)
        with self._lock:
            self._stale += 1
            held = self._best
            if self._spent or not self._is_record(score):
                return None
            self._best = score
        try:
            return self._ask(predictions, name, score)
        except BaseException as error:
            with self._lock:
                if self._best == score:
                    self._best = held
            if isinstance(error, BudgetSpent | RateLimited):
                return None
            raise

    def ask(self, predictions: Any, *, name: Any = None, score: float | None = None) -> Verdict:
        """Ask about a model whatever its score is; raises ``BudgetSpent`` and ``RateLimited``."""
        return self._ask(predictions, name, score)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What was said, in the order of the questions."""
        with self._lock:
            return tuple(sorted(self._verdicts, key=_order))

    @property
    def winner(self) -> Verdict | None:
        """The model to take: the last question that improved. None if none did."""
        return last_improved(self.verdicts)

    @property
    def best(self) -> float | None:
        """The record of the search's own score, among models that were asked about."""
        return self._best

    @property
    def stale(self) -> int:
        """How many models were considered since the guard last saw an improvement."""
        return self._stale

    @property
    def spent(self) -> bool:
        """Whether the budget was found to be spent."""
        return self._spent

    def _is_record(self, score: float) -> bool:
        if not math.isfinite(score):
            return False
        if self._best is None:
            return True
        gain = self._best - score if self.mode == "min" else score - self._best
        return gain > self.min_delta

    def _ask(self, predictions: Any, name: Any, score: float | None) -> Verdict:
        try:
            reply = self.guard.ask(predictions() if callable(predictions) else predictions)
        except BudgetSpent:
            self._spent = True
            raise
        verdict = Verdict(name, score, reply)
        with self._lock:
            self._verdicts.append(verdict)
            # An answer given before is news to a search that was started anew, once.
            if reply.improved and verdict.order > self._last:
                self._stale, self._last = 0, verdict.order
            # On a board the next question may be for later; what was asked before is always free.
            later = getattr(reply, "next_submission_at", None) is not None
            if reply.remaining == 0 and not reply.again and not later:
                self._spent = True
        return verdict

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind: a copy elsewhere has verdicts of its own from then on."""
        return {name: each for name, each in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
