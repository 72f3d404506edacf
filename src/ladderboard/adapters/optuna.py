"""Optuna: a study optimises its own score, and the guard judges the trials that set a record.

Optuna does not change finished trials, so a callback cannot add attributes to one.
:func:`guard_objective` wraps the objective instead: it asks while the trial still runs and stores
the reply as attributes of the trial. If an objective cannot be changed, :class:`GuardCallback` asks
after the trial and stores the reply on the study.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.adapters import import_library
from ladderboard.errors import InvalidSetting, LadderboardError
from ladderboard.holdout import Judge, Judgement

if TYPE_CHECKING:
    from collections.abc import Callable

    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

    from ladderboard.bounds import Certificate
    from ladderboard.holdout import Guard

_STUDY_KEY = "guard:trial:"  # and the trial's number: the reply about a finished trial
_ATTRIBUTES = ("bound", "released", "remaining", "ladder", "order", "improved", "question")
_METRIC_ATTRIBUTES = ("metric", "metric_value")  # of guards with a metric
_BOUND_FIELDS = ("low", "high", "beta", "differences")


def guard_objective(
    objective: Callable[[Trial], tuple[float, Any]], guard: Guard, *, min_delta: float = 0.0
) -> Callable[[Trial], float]:
    """Return the objective for ``study.optimize``: it asks the guard when a trial sets a record.

    The reply becomes attributes of the trial: ``question``, ``improved``, ``released`` and
    ``bound``, which are losses, ``remaining``, ``ladder``, and ``order``, which is the number of
    the question, or of the submission on a board. With a guard that has a metric, ``metric`` is its
    name and ``metric_value`` what was released in it. The study stops when the budget is spent.

    Parameters
    ----------
    objective
        Returns its value on your own validation data, and the model's predictions for the holdout,
        or a function that returns them, which is called for records only.
    guard
        The guard to ask. Each process of a study opens or connects to the same one.
    min_delta
        A value must beat the study's best by more than this to be asked about.
    """
    return _GuardedObjective(objective, guard, min_delta)


class _StudyJudge:
    """Asks about the trials that set a record, and stops the study when the budget is spent."""

    def __init__(self, guard: Guard, min_delta: float) -> None:
        import_library("optuna", extra="optuna")
        self._guard = guard
        self._min_delta = _settings.number("min_delta", min_delta, at_least=0)
        self._judges: dict[str, Judge] = {}

    def _judge(self, study: Study) -> Judge:
        """Return this process's judge for a study; other processes may add trials to the study."""
        if len(study.directions) != 1:
            raise InvalidSetting(
                f"A guard judges one objective, and this study has {len(study.directions)}. "
                "Ask about the models you choose with ladderboard.Judge."
            )
        mode: Any = "max" if study.direction.name == "MAXIMIZE" else "min"
        judge = Judge(self._guard, mode=mode, min_delta=self._min_delta)
        return self._judges.setdefault(study.study_name, judge)

    def _consider(
        self, study: Study, trial: Trial | FrozenTrial, value: float, predictions: Any
    ) -> dict[str, Any] | None:
        """Ask if no other trial of any process is as good; return the attributes to store."""
        judge = self._judge(study)
        gain = _margin_over_others(study, trial, value)
        judgement = None
        if gain > self._min_delta and _is_feasible(trial):
            judgement = judge.consider(value, predictions, name=trial.number)
        if judge.budget_spent or _is_exhausted(self._guard):
            with suppress(RuntimeError):  # with study.ask and study.tell there is no loop to stop
                study.stop()
        return None if judgement is None else _verdict_attributes(judgement)


class _GuardedObjective(_StudyJudge):
    def __init__(self, objective: Any, guard: Guard, min_delta: float) -> None:
        super().__init__(guard, min_delta)
        self._objective = objective

    def __call__(self, trial: Trial) -> float:
        self._judge(trial.study)  # refuses a study that cannot be judged before any training
        returned = self._objective(trial)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise InvalidSetting(
                "A guarded objective returns its value and the predictions for the holdout, "
                "as in: return error, model.predict(X_holdout). "
                f"This one returned {type(returned).__name__}."
            )
        value, predictions = returned
        if value is not None:  # Optuna reports None itself
            attributes = self._consider(trial.study, trial, float(value), predictions)
            for name, attribute in (attributes or {}).items():
                trial.set_user_attr(name, attribute)
        return value


class GuardCallback(_StudyJudge):
    """A callback for ``study.optimize`` that asks about a trial that has set a record.

    For an objective that cannot be changed; otherwise use :func:`guard_objective`. Finished trials
    cannot get attributes, so the reply is stored on the study, under ``guard:trial:NUMBER``. The
    study stops when the budget is spent.

    Parameters
    ----------
    guard
        The guard to ask. Each process of a study opens or connects to the same one.
    predictions
        A function of the study and the finished trial that returns the model's predictions for the
        holdout, from a model trained again with the trial's parameters or saved by the objective.
        Called for records only.
    min_delta
        A value must beat the other trials by more than this to be asked about.
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
        attributes = self._consider(
            study, trial, trial.value, lambda: self._predictions(study, trial)
        )
        if attributes is not None:
            study.set_user_attr(f"{_STUDY_KEY}{trial.number}", attributes)


def judged_trials(study: Study) -> list[dict[str, Any]]:
    """Return a row for each trial that the guard judged, in the order of the questions.

    A row has ``trial``, ``value`` and the attributes of the reply. Trials of all processes are
    included.
    """
    study_attributes = study.user_attrs
    rows = []
    for trial in study.get_trials(deepcopy=False):
        reply = study_attributes.get(f"{_STUDY_KEY}{trial.number}", trial.user_attrs)
        # "question" is written last, so the partial attributes of a killed process are ignored.
        if "improved" in reply and isinstance(reply.get("order"), int) and "question" in reply:
            value = trial.value if trial.state.name == "COMPLETE" else None
            attributes = {name: reply.get(name) for name in _ATTRIBUTES}
            attributes |= {name: reply[name] for name in _METRIC_ATTRIBUTES if name in reply}
            rows.append({"trial": trial.number, "value": value, **attributes})
    return sorted(rows, key=lambda row: (row["order"], row["trial"]))


def winning_trial(study: Study) -> FrozenTrial | None:
    """Return the trial to take: of those that improved, the one that was asked about last.

    It does not depend on the order in which trials began or finished, or on which process asked.
    None if no trial improved.
    """
    rows = [row for row in judged_trials(study) if row["improved"]]
    ladders = {row["ladder"] for row in rows}
    if len(ladders) > 1:
        raise InvalidSetting(
            "All processes of a study ask on one ladder; these trials were asked about on "
            f"{', '.join(sorted(repr(ladder) for ladder in ladders))}. Give every worker the same."
        )
    if not rows:
        return None
    # Equal predictions share the number of one question; the first trial with them asked it.
    last = max(rows, key=lambda row: (row["order"], row["value"] is not None, -row["trial"]))
    return next(trial for trial in study.trials if trial.number == last["trial"])


def _verdict_attributes(judgement: Judgement) -> dict[str, Any]:
    """Return the attributes to store of a reply, as JSON values and with the question last."""
    reply = judgement.reply
    reply_bound: Any = reply.bound  # a board states it in its metric, or withholds it
    bound: Certificate | None = getattr(reply_bound, "loss", reply_bound)
    description = {} if bound is None else bound.describe()
    metric = getattr(reply, "metric", None)
    return {
        **(
            {}
            if metric is None
            else {"metric": metric, "metric_value": getattr(reply, "value", None)}
        ),
        "bound": {name: description[name] for name in _BOUND_FIELDS} if description else None,
        "released": reply.loss,
        "remaining": reply.remaining,
        "ladder": reply.ladder,
        "order": judgement.order,
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
    """Return whether a trial keeps its constraints; True before Optuna 5, which added them."""
    return all(violation <= 0 for violation in getattr(trial, "constraints", {}).values())


def _is_exhausted(guard: Guard) -> bool:
    """Return whether no question is left; False if the guard cannot be reached."""
    if not hasattr(type(guard), "meter"):  # a board, where more questions may be allowed tomorrow
        return False
    with suppress(LadderboardError):
        return getattr(guard, "remaining", None) == 0
    return False
