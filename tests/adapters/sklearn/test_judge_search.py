"""Candidates of real searches that set a record are judged, and nothing else is."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ladderboard.adapters.sklearn import judge_search
from ladderboard.errors import InvalidSetting

TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 3, 2, 5, 4, 8], "max_features": [2, 5, 12]}


def records(scores):
    """Return the places at which a list sets a record."""
    best = np.maximum.accumulate(np.concatenate([[-np.inf], scores]))
    return [index for index, score in enumerate(scores) if score > best[index]]


def test_a_grid_search_in_two_processes(problem, create_guard):
    search = GridSearchCV(TREE, DEPTHS, cv=3, n_jobs=2, refit=False).fit(problem.X, problem.y)
    guard = create_guard()
    judged = judge_search(search, guard, problem.X_holdout, problem.X, problem.y)
    assert [judgement.name for judgement in judged.judgements] == records(
        search.cv_results_["mean_test_score"]
    )
    assert 2 <= len(judged.judgements) == guard.meter.used < len(search.cv_results_["params"]) / 2
    assert [judgement.question for judgement in judged.judgements] == list(
        range(1, len(judged.judgements) + 1)
    )
    last = [judgement for judgement in judged.judgements if judgement.improved][-1]
    assert judged.index == last.name != search.cv_results_["mean_test_score"].argmax()
    assert judged.params == search.cv_results_["params"][last.name]
    assert last.score == search.cv_results_["mean_test_score"][last.name]
    # The estimator is the very model that was asked about.
    assert guard.ask(judged.estimator.predict(problem.X_holdout)).question == last.question
    assert not judged.budget_spent


def test_probabilities_of_a_random_search_over_a_pipeline(problem, create_guard):
    model = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": list(10.0 ** np.arange(-4, 3))}
    search = RandomizedSearchCV(model, space, n_iter=6, cv=3, scoring="neg_brier_score")
    search.set_params(random_state=5, refit=False).fit(problem.X, problem.y)
    guard = create_guard(loss="brier")
    judged = judge_search(
        search, guard, problem.X_holdout, problem.X, problem.y, response="predict_proba"
    )
    assert [judgement.name for judgement in judged.judgements] == records(
        search.cv_results_["mean_test_score"]
    )
    won = judged.estimator.predict_proba(problem.X_holdout)
    assert np.mean((won[:, 1] - problem.y_holdout) ** 2) < 0.25
    # A function may choose the column itself: the model is the same, the file is another.
    again = judge_search(
        search,
        guard.ladder("second"),
        problem.X_holdout,
        problem.X,
        problem.y,
        response=lambda model, inputs: model.predict_proba(inputs)[:, 1],
    )
    assert again.params == judged.params


class Counted(DecisionTreeClassifier):
    fits = 0

    def fit(self, X, y, **fit_params):  # noqa: N803 - as scikit-learn has it
        type(self).fits += 1
        return super().fit(X, y, **fit_params)


def test_nothing_is_fitted_after_the_budget_is_spent(problem, create_guard):
    search = GridSearchCV(Counted(random_state=0), DEPTHS, cv=3, refit=False)
    search.fit(problem.X, problem.y)
    assert len(records(search.cv_results_["mean_test_score"])) > 2
    Counted.fits = 0
    judged = judge_search(
        search, create_guard(questions=2), problem.X_holdout, problem.X, problem.y
    )
    assert (len(judged.judgements), Counted.fits, judged.budget_spent) == (2, 2, True)
    assert judged.index in {judgement.name for judgement in judged.judgements}


def test_min_delta_saves_questions(problem, create_guard):
    search = GridSearchCV(TREE, DEPTHS, cv=3, refit=False).fit(problem.X, problem.y)
    judged = judge_search(
        search, create_guard(), problem.X_holdout, problem.X, problem.y, min_delta=0.9
    )
    assert [judgement.name for judgement in judged.judgements] == [0]


def test_fit_params_reach_the_fit(problem, create_guard):
    search = GridSearchCV(TREE, {"max_depth": [2]}, cv=3, refit=False).fit(problem.X, problem.y)
    weight = (problem.y == 1).astype(float)
    judged = judge_search(
        search, create_guard(), problem.X_holdout, problem.X, problem.y, sample_weight=weight
    )
    assert set(judged.estimator.predict(problem.X_holdout)) == {1}


def test_there_is_no_winner_if_no_candidate_improves(problem, create_guard):
    guard = create_guard()
    guard.ask(problem.y_holdout)
    search = GridSearchCV(TREE, DEPTHS, cv=3, refit=False).fit(problem.X, problem.y)
    judged = judge_search(search, guard, problem.X_holdout, problem.X, problem.y)
    assert judged.judgements
    assert (judged.index, judged.params, judged.estimator) == (None, None, None)


def test_refit_names_the_metric_that_counts(problem, create_guard):
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    options = {"cv": 3, "scoring": ["accuracy", "roc_auc"]}
    guard = create_guard()
    search = GridSearchCV(forest, {"max_depth": [1, 2, 4]}, refit="roc_auc", **options)
    search.fit(problem.X, problem.y)
    judged = judge_search(search, guard, problem.X_holdout, problem.X, problem.y)
    assert [judgement.score for judgement in judged.judgements] == [
        search.cv_results_["mean_test_roc_auc"][judgement.name] for judgement in judged.judgements
    ]
    search = GridSearchCV(forest, {"max_depth": [1, 2]}, refit=False, **options)
    search.fit(problem.X, problem.y)
    with pytest.raises(InvalidSetting, match='Name it, as in refit="accuracy"'):
        judge_search(search, guard, problem.X_holdout, problem.X, problem.y)


def test_unsupported_searches_are_refused(problem, create_guard):
    search = GridSearchCV(TREE, {"max_depth": [1]})
    with pytest.raises(InvalidSetting, match=r"Call search\.fit"):
        judge_search(search, create_guard(), problem.X_holdout, problem.X, problem.y)
    with pytest.raises(InvalidSetting, match="got 'decision_function'"):
        judge_search(search, None, problem.X_holdout, problem.X, response="decision_function")
