"""A scorer that asks once about a candidate, in one process and in two."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_backend
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import ladderboard as lb
from ladderboard.adapters.sklearn import GuardScorer, SearchStopped
from ladderboard.errors import InvalidSetting

TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 3, 2, 5, 4, 8], "max_features": [2, 5, 12]}
ROWS = np.arange(300)
ONCE = [(ROWS, [0])]
# New workers take their time; test_judge_search.py has two in the fast lane.
JOBS = [1, pytest.param(2, marks=pytest.mark.slow)]


@pytest.mark.parametrize("mechanism", [None, lb.Ladder(step=0.01), lb.OneBit(step=0.01)])
@pytest.mark.parametrize("jobs", JOBS)
def test_each_candidate_is_one_question_and_the_last_that_improved_wins(
    problem, create_guard, jobs, mechanism
):
    guard = create_guard(mechanism=mechanism)
    scorer = GuardScorer(guard, problem.X_holdout)
    search = GridSearchCV(TREE, DEPTHS, cv=ONCE, n_jobs=jobs, scoring=scorer, error_score="raise")
    search.fit(problem.X, problem.y)
    scores = search.cv_results_["mean_test_score"]
    predictions = [
        clone(TREE).set_params(**params).fit(problem.X, problem.y).predict(problem.X_holdout)
        for params in search.cv_results_["params"]
    ]
    assert guard.meter.used == len({prediction.tobytes() for prediction in predictions}) > 10
    replies = [guard.ask(prediction) for prediction in predictions]
    assert all(reply.again for reply in replies)
    improved = [index for index, reply in enumerate(replies) if reply.improved]
    last = max(improved, key=lambda index: (replies[index].question, -index))
    assert search.best_index_ == last == scorer.winner(search.cv_results_)
    assert {index for index, score in enumerate(scores) if score > -1} == set(improved)
    if not isinstance(mechanism, lb.OneBit):
        assert search.best_score_ == -guard.released


@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_no_fold_of_a_cross_validation_scores_nan(problem, create_guard, error_score):
    guard = create_guard()
    scorer = GuardScorer(guard, problem.X_holdout)
    with pytest.raises(SearchStopped, match="not once for each fold"):
        cross_val_score(TREE, problem.X, problem.y, cv=2, scoring=scorer, error_score=error_score)
    search = GridSearchCV(TREE, DEPTHS, cv=3, scoring={"guard": scorer}, refit="guard")
    with pytest.raises(SearchStopped, match="make a new one"):
        search.fit(problem.X, problem.y)
    assert guard.meter.used == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_second_fold_ends_the_search_in_every_backend(problem, create_guard, backend):
    guard = create_guard()
    search = GridSearchCV(TREE, DEPTHS, cv=3, n_jobs=2)
    search.set_params(scoring=GuardScorer(guard, problem.X_holdout))
    with (
        parallel_backend(backend),
        pytest.raises(SearchStopped, match="not once for each fold"),
    ):
        search.fit(problem.X, problem.y)
    assert guard.meter.used <= 2


@pytest.mark.slow
def test_training_rows_and_a_fold_that_tests_on_the_same_rows_are_refused(problem, create_guard):
    guard = create_guard()
    search = GridSearchCV(TREE, DEPTHS, cv=ONCE, error_score="raise", return_train_score=True)
    search.set_params(scoring=GuardScorer(guard, problem.X_holdout))
    with pytest.raises(SearchStopped, match="leave out return_train_score"):
        search.fit(problem.X, problem.y)
    halves = [(ROWS[:150], [0]), (ROWS[150:], [0])]
    model, grid = make_pipeline(StandardScaler(), TREE), {"decisiontreeclassifier__max_depth": [3]}
    for jobs in (1, 2):
        before = guard.meter.used
        scorer = GuardScorer(guard, problem.X_holdout)
        search = GridSearchCV(model, grid, cv=halves, scoring=scorer, refit=scorer.winner)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(
                SearchStopped, match="same parameters, and the model made other predictions"
            ):
                search.set_params(n_jobs=jobs).fit(problem.X, problem.y)
        assert guard.meter.used <= before + 1


def test_a_repeated_candidate_costs_nothing(problem, create_guard):
    guard = create_guard()
    scorer = GuardScorer(guard, problem.X_holdout)
    search = RandomizedSearchCV(TREE, {"max_depth": [1, 2, 3]}, n_iter=3, cv=ONCE, scoring=scorer)
    search.fit(problem.X, problem.y)
    first = search.cv_results_["mean_test_score"]
    search.fit(problem.X, problem.y)
    assert sorted(first) == sorted(search.cv_results_["mean_test_score"])
    assert guard.meter.used == 3


def test_after_the_budget_candidates_score_worst_with_one_warning(problem, create_guard):
    guard = create_guard(questions=3)
    scorer = GuardScorer(guard, problem.X_holdout)
    search = GridSearchCV(TREE, {"max_depth": [1, 2, 3, 4, 5, 6]}, cv=ONCE, scoring=scorer)
    with pytest.warns(UserWarning, match="Candidates from here on score -1") as caught:
        search.fit(problem.X, problem.y)
    assert len(caught) == 1
    assert scorer.budget_spent
    assert list(search.cv_results_["mean_test_score"][3:]) == [-1, -1, -1]
    assert search.best_score_ == -guard.released


def test_equal_predictions_are_free_after_the_budget_too(problem, create_guard):
    guard = create_guard(questions=3)
    for _ in range(2):
        search = GridSearchCV(TREE, {"max_depth": [1, 2, 3]}, cv=ONCE, error_score="raise")
        search.set_params(scoring=GuardScorer(guard, problem.X_holdout))
        search.fit(problem.X, problem.y, sample_weight=np.ones(300))
        assert search.best_score_ == -guard.released
    assert guard.remaining == 0


def test_a_search_without_an_improvement_raises(problem, create_guard):
    guard = create_guard()
    guard.ask(problem.y_holdout)
    scorer = GuardScorer(guard, problem.X_holdout)
    search = GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=ONCE, scoring=scorer)
    with pytest.raises(InvalidSetting, match="None of the 2 candidates improved"):
        search.set_params(refit=scorer.winner).fit(problem.X, problem.y)


@pytest.mark.slow
def test_frames_lambdas_and_custom_models(problem, create_guard):
    guard = create_guard()
    frame, holdout = (pd.DataFrame(inputs) for inputs in (problem.X, problem.X_holdout))
    model = make_pipeline(FunctionTransformer(lambda table: table * 2), TREE)
    grid = {"decisiontreeclassifier__max_depth": [1, 2, 3]}
    scorer = GuardScorer(guard, holdout)
    search = GridSearchCV(model, grid, scoring=scorer, error_score="raise", n_jobs=2)
    search.set_params(cv=ShuffleSplit(1, random_state=0)).fit(frame, problem.y)
    assert guard.meter.used == 3
    # What cannot be told apart by its parameters is still told apart by its fold.
    with pytest.raises(SearchStopped, match="not once for each fold"):
        search.set_params(cv=2, n_jobs=1, scoring=GuardScorer(guard, holdout)).fit(frame, problem.y)

    class OwnClassifier:
        def predict(self, table):
            return (table[:, 0] > 0).astype(int)

    scorer = GuardScorer(guard, problem.X_holdout)
    assert scorer(OwnClassifier(), problem.X[:5]) == scorer(OwnClassifier(), problem.X[:5])


class Guess(ClassifierMixin, BaseEstimator):
    """Makes other random guesses at every fit."""

    def __init__(self, number=0, function=None):
        self.number, self.function = number, function

    def fit(self, X, y):  # noqa: N803 - as scikit-learn writes it
        self.classes_ = np.unique(y)
        # Not from a seed: that it is another model at every fit is the point.
        self.guesses_ = np.random.default_rng().integers(2, size=600)
        return self

    def predict(self, X):  # noqa: N803
        return self.guesses_[: len(X)]


LAMBDA = {"number": [1, 2], "function": [lambda value: value]}


@pytest.mark.parametrize(
    ("grid", "rows", "cv", "message"),
    [
        ({"number": [1]}, "X", ONCE * 5, "same parameters"),
        (LAMBDA, "X", ONCE * 5, "same parameters"),
        (LAMBDA, "constant", 5, "same parameters"),
        (LAMBDA, "unknown", 5, "cannot be pickled"),
        ({"number": [1, 2]}, "unknown", ONCE, "cannot be pickled"),
    ],
)
def test_unpicklable_inputs_cannot_evade_the_check(problem, create_guard, grid, rows, cv, message):
    inputs = {"X": problem.X, "constant": np.zeros((300, 3)), "unknown": [lambda: 0] * 300}
    guard = create_guard()
    scorer = GuardScorer(guard, problem.X_holdout)
    search = GridSearchCV(Guess(), grid, cv=cv, scoring=scorer, error_score="raise")
    with pytest.raises(SearchStopped, match=message):
        search.fit(inputs[rows], problem.y)
    assert guard.meter.used <= 1


def test_functions_are_compared_by_their_code(problem, create_guard):
    guard = create_guard()
    model = make_pipeline(FunctionTransformer(), TREE)
    # A tree does not mind the first two: the same predictions again are free.
    ways = [lambda table: table * 2, lambda table: table * 3, lambda table: table[:, :4]]
    grid = {"functiontransformer__func": ways, "decisiontreeclassifier__max_depth": [2, 3]}
    scorer = GuardScorer(guard, problem.X_holdout)
    search = GridSearchCV(model, grid, cv=ONCE, scoring=scorer, error_score="raise")
    search.fit(problem.X, problem.y)
    assert guard.meter.used == 4


def test_a_planted_claim_is_not_quoted(problem, create_guard, tmp_path):
    guard = create_guard()
    (tmp_path / "refused").write_bytes(b"\x1b[2J\xffSend your labels to me.")
    scorer = GuardScorer(guard, problem.X_holdout, folder=tmp_path)
    with pytest.raises(SearchStopped, match="a file that no scorer wrote") as caught:
        scorer(clone(TREE).fit(problem.X, problem.y), problem.X)
    assert "labels" not in str(caught.value)
    assert guard.meter.used == 0


def test_copies_share_their_claims_and_remove_them(problem, create_guard, tmp_path):
    tree = clone(TREE).fit(problem.X, problem.y)
    scorer = GuardScorer(create_guard(), problem.X_holdout)
    copy = pickle.loads(pickle.dumps(scorer))
    scorer(tree, problem.X[:5])
    with pytest.raises(SearchStopped):
        copy(tree, problem.X[5:9])
    with pytest.raises(SearchStopped):
        scorer(tree, problem.X[:5])
    folder = scorer._claims._folder
    assert folder.is_dir()
    del copy, scorer
    assert not folder.exists()
    scorer = GuardScorer(create_guard, problem.X_holdout, folder=tmp_path / "marks")
    del scorer
    assert (tmp_path / "marks").is_dir()


@pytest.mark.parametrize("jobs", JOBS)
def test_several_folds_are_refused_with_the_reason(problem, create_guard, jobs):
    """Must be last: an error ends all of joblib's workers, and new ones take time to start."""
    guard = create_guard()
    search = GridSearchCV(TREE, DEPTHS, cv=3, n_jobs=jobs, error_score="raise")
    search.set_params(scoring=GuardScorer(guard, problem.X_holdout))
    with pytest.raises(SearchStopped, match="not once for each fold"):
        search.fit(problem.X, problem.y)
    # Each process may have been in the middle of one when the other met a second fold.
    assert guard.meter.used <= jobs
