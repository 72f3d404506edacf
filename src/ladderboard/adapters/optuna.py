"""Optuna: a study goes by its own score, and the guard judges the trials that set a record.

Optuna changes no trial that has finished, so a callback, which comes after that, can write nothing
on it. :func:`guarded` wraps the objective instead: it asks while the trial still runs, and what was
said becomes attributes of the trial. Where an objective must stay as it is, :class:`GuardCallback`
asks afterwards, and writes on the study.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.adapters import import_library
from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.holdout import Judge, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

    from ladderboard.bounds import Certificate
    from ladderboard.holdout import Guard

_STUDY_KEY = "guard:trial:"  # and a number: what was said about a trial after it had finished
_ATTRIBUTES = ("bound", "released", "remaining", "ladder", "order", "improved", "question")
_BOUND_FIELDS = ("low", "high", "beta", "differences")


def guarded(
    objective: Callable[[Trial], tuple[float, Any]], guard: Guard, *, min_delta: float = 0.0
) -> Callable[[Trial], float]:
    """Return the objective for ``study.optimize``: it asks the guard when a trial sets a record.

    What was said becomes attributes of the trial: ``question``, ``improved``, ``released``,
    ``bound``, ``remaining``, ``ladder``, and ``order``, which is the question's number, or on a
    board the submission's. The study stops when the budget is spent.

    Parameters
    ----------
    objective
        Returns its value, on validation data of your own, and the model's predictions for the
        holdout; they may be a function that makes them, called for records only.
    guard
        What is asked. Each process of a study opens or connects to the same one.
    min_delta
        By how much more than this a value must beat the study's best to be asked about.
    """
    return _GuardedObjective(objective, guard, min_delta)


class _StudyJudge:
    """Knows a record of a study when it sees one, asks about it, and ends what has no budget."""

    def __init__(self, guard: Guard, min_delta: float) -> None:
        import_library("optuna", extra="optuna")
        self._guard = guard
        self._min_delta = _settings.number("min_delta", min_delta, at_least=0)
        self._judges: dict[str, Judge] = {}

    def _judge(self, study: Study) -> Judge:
        """Return the judge of this process for a study; the study's trials are everybody's."""
        if len(study.directions) != 1:
            raise InvalidSetting(
                f"A guard judges the records of one score; this study has {len(study.directions)} "
                "objectives. Ask about the models you choose with ladderboard.Judge."
            )
        mode: Any = "max" if study.direction.name == "MAXIMIZE" else "min"
        made = Judge(self._guard, mode=mode, min_delta=self._min_delta)
        return self._judges.setdefault(study.study_name, made)

    def _consider(
        self, study: Study, trial: Trial | FrozenTrial, value: float, predictions: Any
    ) -> dict[str, Any] | None:
        """Ask if no other trial of any process is as good; return what to write down."""
        judge = self._judge(study)
        gain = _margin_over_others(study, trial, value)
        verdict = None
        if gain > self._min_delta and _is_feasible(trial):
            verdict = judge.consider(value, predictions, name=trial.number)
        if judge.spent or _is_exhausted(self._guard):
            with suppress(RuntimeError):  # asked and told by hand: there is no loop to end
                study.stop()
        return None if verdict is None else _verdict_attributes(verdict)


class _GuardedObjective(_StudyJudge):
    def __init__(self, objective: Any, guard: Guard, min_delta: float) -> None:
        super().__init__(guard, min_delta)
        self._objective = objective

    def __call__(self, trial: Trial) -> float:
        self._judge(trial.study)  # before any work: whether this study can be judged
        returned = self._objective(trial)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise InvalidSetting(
                "A guarded objective returns its value and the predictions for the holdout, "
                "as in: return error, model.predict(X_holdout). "
                f"This one returned {type(returned).__name__}."
            )
        value, predictions = returned
        if value is not None:  # Optuna has words of its own for that
            said = self._consider(trial.study, trial, float(value), predictions)
            for name, each in (said or {}).items():
                trial.set_user_attr(name, each)
        return value


class GuardCallback(_StudyJudge):
    """A callback for ``study.optimize`` that asks about a trial that has set a record.

    For an objective that cannot be changed; otherwise use :func:`guarded`. Finished trials take no
    attributes, so what was said is written on the study, under ``guard:trial:NUMBER``. The study
    stops when the budget is spent.

    Parameters
    ----------
    guard
        What is asked. Each process of a study opens or connects to the same one.
    predictions
        A function of the study and the finished trial that returns the model's predictions for the
        holdout: made anew from the trial's parameters, or kept by the objective. Called for records
        only.
    min_delta
        By how much more than this a value must beat the other trials to be asked about.
    """

    def __init__(
        self,
        guard: Guard,
        predictions: Callable[[Study, FrozenTrial], Any],
        *,
        min_delta: float = 0.0,
    ) -> None:
        super().__init__(guard, min_delta)
        self._predictions = predictions

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Ask if the trial is the study's best."""
        self._judge(study)
        if trial.state.name != "COMPLETE" or trial.value is None:
            return
        said = self._consider(study, trial, trial.value, lambda: self._predictions(study, trial))
        if said is not None:
            study.set_user_attr(f"{_STUDY_KEY}{trial.number}", said)


def judged(study: Study) -> list[dict[str, Any]]:
    """Return what the guard said about trials, a row each, in the order of the questions.

    A row has ``trial``, ``value`` and the attributes; trials of all processes are in it.
    """
    afterwards = study.user_attrs
    rows = []
    for trial in study.get_trials(deepcopy=False):
        said = afterwards.get(f"{_STUDY_KEY}{trial.number}", trial.user_attrs)
        # The question is written last: what a process that died left half done counts for nothing.
        if "improved" in said and isinstance(said.get("order"), int) and "question" in said:
            value = trial.value if trial.state.name == "COMPLETE" else None
            told = {name: said.get(name) for name in _ATTRIBUTES}
            rows.append({"trial": trial.number, "value": value, **told})
    return sorted(rows, key=lambda row: (row["order"], row["trial"]))


def winner(study: Study) -> FrozenTrial | None:
    """Return the trial to take: of those that improved, the one that was asked about last.

    Whatever the order in which trials began, finished or were written, and whoever asked. None if
    no trial improved.
    """
    rows = [row for row in judged(study) if row["improved"]]
    ladders = {row["ladder"] for row in rows}
    if len(ladders) > 1:
        raise InvalidSetting(
            "All processes of a study ask on one ladder; these trials were asked about on "
            f"{', '.join(sorted(repr(ladder) for ladder in ladders))}. Give every worker the same."
        )
    if not rows:
        return None
    # The same predictions again have the number of the question that was asked: the first is it.
    last = max(rows, key=lambda row: (row["order"], row["value"] is not None, -row["trial"]))
    return next(trial for trial in study.trials if trial.number == last["trial"])


def _verdict_attributes(verdict: Verdict) -> dict[str, Any]:
    """Return what is kept of a reply: JSON, and the question last."""
    reply = verdict.reply
    found: Any = reply.bound  # a board may keep it back, and says it in its metric
    bound: Certificate | None = getattr(found, "loss", found)
    said = {} if bound is None else bound.describe()
    return {
        "bound": {name: said[name] for name in _BOUND_FIELDS} if said else None,
        "released": reply.loss,
        "remaining": reply.remaining,
        "ladder": reply.ladder,
        "order": verdict.order,
        "improved": reply.improved,
        "question": reply.question,
    }


def _margin_over_others(study: Study, trial: Trial | FrozenTrial, value: float) -> float:
    """Return by how much a value beats all other trials that are complete and feasible."""
    states = import_library("optuna.trial", extra="optuna").TrialState
    others = study.get_trials(deepcopy=False, states=(states.COMPLETE,))
    values = [
        other.value
        for other in others
        if other.number != trial.number and other.value is not None and _is_feasible(other)
    ]
    if not values:
        return float("inf")
    return value - max(values) if study.direction.name == "MAXIMIZE" else min(values) - value


def _is_feasible(trial: Trial | FrozenTrial) -> bool:
    """Return whether a trial keeps its constraints; before Optuna 5 it does not say."""
    return all(each <= 0 for each in getattr(trial, "constraints", {}).values())


def _is_exhausted(guard: Guard) -> bool:
    """Return whether others have spent what there was; a guard that is away may still have it."""
    if not hasattr(type(guard), "meter"):  # a board's: what remains today says nothing of tomorrow
        return False
    with suppress(LadderboardError):
        return getattr(guard, "remaining", None) == 0
    return False
