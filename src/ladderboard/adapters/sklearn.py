"""scikit-learn: the candidates of a search, judged by the guard.

:func:`judge_search` asks about those candidates of a fitted search that set a record of its own
cross-validated score: a few questions. :class:`GuardScorer` asks about every candidate, where no
data are left to validate on: one question each, and never one for each fold.
"""

from __future__ import annotations

import secrets
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.adapters._library import library
from ladderboard.adapters._marks import Marks
from ladderboard.errors import BudgetSpent, InvalidSetting
from ladderboard.holdout import Judge, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ladderboard.holdout import Guard, Reply

    Response = Literal["predict", "predict_proba"] | Callable[[Any, Any], Any]

__all__ = ["GuardScorer", "Judged", "judge_search"]

_WORST = -1.0
_RESPONSES = ("predict", "predict_proba")
_SEVERAL = (
    "A guard is asked once about a candidate, not once for each fold; this scorer was called for a "
    "second fold, or for the training rows. Give the search one split, as in "
    "cv=[(np.arange(len(X)), [0])], and leave out return_train_score; or search on a score of "
    "your own and call judge_search."
)
_TWICE = (
    "A guard is asked once about a candidate; this scorer was called again for the same "
    "parameters, and the model predicted otherwise. Give the search one split, as in "
    "cv=[(np.arange(len(X)), [0])], and the estimator a random_state."
)


@dataclass(frozen=True)
class Judged:
    """A search as the guard judged it.

    Parameters
    ----------
    verdicts
        What was said about candidates, in the order of the questions; a verdict's ``name`` is the
        candidate's place in ``cv_results_``, its ``score`` the search's own.
    index
        The winner's place in ``cv_results_``; None if no candidate improved.
    params
        The winner's parameters.
    estimator
        The winner itself, fitted: the very model that was asked about.
    spent
        Whether the budget ended before the candidates did.
    """

    verdicts: tuple[Verdict, ...]
    index: int | None
    params: dict[str, Any] | None
    estimator: Any
    spent: bool


def judge_search(
    search: Any,
    guard: Guard,
    X_holdout: Any,  # noqa: N803 - as scikit-learn writes it
    X: Any,  # noqa: N803
    y: Any = None,
    *,
    response: Response = "predict",
    min_delta: float = 0.0,
    **fit_params: Any,
) -> Judged:
    """Ask about the candidates of a fitted search that set a record of its own score.

    They are taken in the order of ``cv_results_``; one that sets a record is fitted on all of
    ``X, y`` and asked about. The winner is the last that improved. Once the budget is spent nothing
    is fitted and nothing is asked.

    Parameters
    ----------
    search
        A ``GridSearchCV``, a ``RandomizedSearchCV``, or whatever has ``estimator`` and
        ``cv_results_``; with several metrics, ``refit`` says which one counts.
    guard
        What is asked.
    X_holdout
        The holdout's inputs, in the guard's order.
    X, y
        What candidates are fitted on.
    response
        ``"predict"``, ``"predict_proba"``, or a function of the model and ``X_holdout``.
    min_delta
        By how much more than this a score must beat the record to be asked about.
    fit_params
        For the estimator's ``fit``.
    """
    clone = library("sklearn.base", extra="sklearn").clone
    predict = _response(response)
    scores = _scores(search)
    judge = Judge(guard, mode="max", min_delta=min_delta)
    models: dict[int, Any] = {}
    candidates = search.cv_results_["params"]
    for at, params in enumerate(candidates):

        def predictions(at: int = at, params: Any = params) -> Any:
            model = clone(search.estimator).set_params(**clone(params, safe=False))
            models[at] = model.fit(X, y, **fit_params)
            return predict(model, X_holdout)

        verdict = judge.consider(float(scores[at]), predictions, name=at)
        if verdict is None or not verdict.improved:
            models.pop(at, None)
    won = judge.winner
    if won is None:
        return Judged(judge.verdicts, None, None, None, judge.spent)
    return Judged(
        judge.verdicts, won.name, dict(candidates[won.name]), models[won.name], judge.spent
    )


class GuardScorer:
    """A scorer, for ``scoring=``, that asks the guard about a candidate: once, not once a fold.

    The score is minus what was released for a model that improved, and -1 for every other one, so
    the best score is that of the last that improved, whoever was asked first. Use it where the
    candidates are known beforehand; a search that goes by it has nothing to go by. A second fold is
    refused, and so is everything after it, in all processes. Past the budget every candidate has
    -1, and a warning says so once.

    Parameters
    ----------
    guard
        What is asked.
    X_holdout
        The holdout's inputs, in the guard's order.
    response
        ``"predict"``, ``"predict_proba"``, or a function of the model and ``X_holdout``.
    folder
        Where the processes of a search note what they asked; a temporary one if not given. On
        several machines, one that they share.
    """

    def __init__(
        self,
        guard: Guard,
        X_holdout: Any,  # noqa: N803 - as scikit-learn writes it
        *,
        response: Response = "predict",
        folder: Path | str | None = None,
    ) -> None:
        library("sklearn", extra="sklearn")
        _response(response)
        self._guard, self._inputs, self._how = guard, X_holdout, response
        self._marks = Marks(folder)

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803
        y: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Score a fitted candidate; of ``X`` only counts that it is always the same.

        ``y`` and weights of the search's rows say nothing about the holdout's, and are not used.
        """
        self._go_on()
        self._claim("fold", X, _SEVERAL)
        predictions = _response(self._how)(estimator, self._inputs)
        name = _hash(_unfitted(estimator))
        if name is not None:
            self._claim(f"candidate-{name}", predictions, _TWICE)
        try:
            return _points(self._guard.ask(predictions))
        except BudgetSpent as error:
            if self._marks.claim("spent", secrets.token_hex()):
                warnings.warn(f"{error} Candidates from here on score -1.", stacklevel=2)
            return _WORST

    @property
    def spent(self) -> bool:
        """Whether the budget was found to be spent."""
        return self._marks.read("spent") is not None

    def winner(self, results: Any) -> int:
        """Return the place in ``cv_results_`` of the last candidate that improved.

        For ``refit=scorer.winner``: where several folds were refused, or no candidate improved, the
        search then ends with the reason, and not with a model that is as good as any.
        """
        self._go_on()
        scores = np.asarray(results["mean_test_score"], dtype=float)
        found = np.where(np.isfinite(scores), scores, _WORST)
        if not np.any(found > _WORST):
            raise InvalidSetting(
                f"None of the {len(found)} candidates improved on what the guard had seen before, "
                "so none has won. With refit=False the search keeps its cv_results_."
            )
        return int(found.argmax())

    def _go_on(self) -> None:
        refused = self._marks.read("refused")
        if refused is not None:
            raise InvalidSetting(refused)

    def _claim(self, name: str, of: Any, reason: str) -> None:
        text = _hash(of)
        if text is not None and not self._marks.claim(name, text):
            self._marks.claim("refused", reason)
            raise InvalidSetting(reason)


def _points(reply: Reply) -> float:
    if not reply.improved:
        return _WORST
    if reply.released is None:  # OneBit keeps it back, but what improved later is better
        return -1.0 / (1 + reply.question)
    return -reply.released


def _unfitted(estimator: Any) -> Any:
    """Return what makes a candidate: its parameters, without what it learnt."""
    try:
        return library("sklearn.base", extra="sklearn").clone(estimator)
    except Exception:  # noqa: BLE001 - a model of somebody's own; the fold is still looked at
        return None


def _hash(thing: Any) -> str | None:
    """Return a hash that is the same in all processes; None of what cannot be written down."""
    if thing is None:
        return None
    if hasattr(thing, "to_numpy"):  # a frame's hash may tell how it was put together
        thing = thing.to_numpy()
    if isinstance(thing, np.ndarray):
        thing = np.array(thing)  # also if it lay in a file that workers share
    try:
        return str(library("joblib", extra="sklearn").hash(thing))
    except Exception:  # noqa: BLE001 - a lambda among the parameters, or a class of a notebook
        return None


def _scores(search: Any) -> Any:
    """Return the search's own score of every candidate; more is better."""
    results = getattr(search, "cv_results_", None)
    if results is None:
        raise InvalidSetting(
            "judge_search takes a search that was fitted; got one that was not. "
            "Call search.fit(X, y) first."
        )
    metric = search.refit if isinstance(getattr(search, "refit", None), str) else "score"
    if f"mean_test_{metric}" not in results:
        raise InvalidSetting(
            "Of several metrics one must count; this search does not say which. "
            'Name it, as in refit="accuracy".'
        )
    return results[f"mean_test_{metric}"]


def _response(response: Any) -> Callable[[Any, Any], Any]:
    if callable(response):
        return response
    if response not in _RESPONSES:
        raise InvalidSetting(
            'response must be "predict", "predict_proba" or a function of the model and the '
            f"holdout's inputs; got {_settings.shown(response)}."
        )
    return lambda model, inputs: getattr(model, response)(inputs)
