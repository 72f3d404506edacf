"""The candidates of a fitted search, judged by the guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.adapters import import_library
from ladderboard.adapters.sklearn._scorer import response_function
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import Judge, Verdict

if TYPE_CHECKING:
    from ladderboard.adapters.sklearn._scorer import Response
    from ladderboard.holdout import Guard


@dataclass(frozen=True)
class JudgedSearch:
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
) -> JudgedSearch:
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
    clone = import_library("sklearn.base", extra="sklearn").clone
    predict = response_function(response)
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
        return JudgedSearch(judge.verdicts, None, None, None, judge.spent)
    return JudgedSearch(
        judge.verdicts, won.name, dict(candidates[won.name]), models[won.name], judge.spent
    )


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
