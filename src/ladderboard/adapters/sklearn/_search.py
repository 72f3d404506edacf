"""The candidates of a fitted search, judged by the guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.adapters import import_library
from ladderboard.adapters.sklearn._scorer import response_function
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import Judge, Judgement

if TYPE_CHECKING:
    from ladderboard.adapters.sklearn._scorer import Response
    from ladderboard.holdout import Guard


@dataclass(frozen=True)
class JudgedSearch:
    """A search as the guard judged it.

    Parameters
    ----------
    judgements
        The judgements on candidates, in the order of the questions; a judgement's ``name`` is the
        candidate's index in ``cv_results_``, its ``score`` the search's own.
    index
        The winner's index in ``cv_results_``; None if no candidate improved.
    params
        The winner's parameters.
    estimator
        The winner itself, fitted: the very model that was asked about.
    budget_spent
        Whether the budget ended before the candidates did.
    """

    judgements: tuple[Judgement, ...]
    index: int | None
    params: dict[str, Any] | None
    estimator: Any
    budget_spent: bool


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

    Candidates are considered in the order of ``cv_results_``; one that sets a record is fitted on
    all of ``X, y`` and asked about. The winner is the last that improved. Once the budget is spent,
    no more candidates are fitted.

    Parameters
    ----------
    search
        A ``GridSearchCV``, a ``RandomizedSearchCV``, or any object with ``estimator`` and
        ``cv_results_``; with several metrics, ``refit`` names the one that counts.
    guard
        The guard to ask.
    X_holdout
        The holdout's inputs, in the guard's order.
    X, y
        The data to fit candidates on.
    response
        ``"predict"``, ``"predict_proba"``, or a function of the model and ``X_holdout``.
    min_delta
        A score must beat the record by more than this to be asked about.
    fit_params
        Arguments of the estimator's ``fit``.
    """
    clone = import_library("sklearn.base", extra="sklearn").clone
    predict = response_function(response)
    scores = _scores(search)
    judge = Judge(guard, mode="max", min_delta=min_delta)
    models: dict[int, Any] = {}
    candidates = search.cv_results_["params"]
    for index, params in enumerate(candidates):

        def predictions(index: int = index, params: Any = params) -> Any:
            model = clone(search.estimator).set_params(**clone(params, safe=False))
            models[index] = model.fit(X, y, **fit_params)
            return predict(model, X_holdout)

        judgement = judge.consider(float(scores[index]), predictions, name=index)
        if judgement is None or not judgement.improved:
            models.pop(index, None)
    winner = judge.winner
    if winner is None:
        return JudgedSearch(judge.judgements, None, None, None, judge.budget_spent)
    return JudgedSearch(
        judge.judgements,
        winner.name,
        dict(candidates[winner.name]),
        models[winner.name],
        judge.budget_spent,
    )


def _scores(search: Any) -> Any:
    """Return the search's own score of every candidate; more is better."""
    results = getattr(search, "cv_results_", None)
    if results is None:
        raise InvalidSetting(
            "judge_search needs a fitted search; this one is not. Call search.fit(X, y) first."
        )
    metric = search.refit if isinstance(getattr(search, "refit", None), str) else "score"
    if f"mean_test_{metric}" not in results:
        raise InvalidSetting(
            "This search has several metrics and does not say which one counts. "
            'Name it, as in refit="accuracy".'
        )
    return results[f"mean_test_{metric}"]
