"""Studies in one process: when the guard is asked, what is stored, when a study stops."""

import numpy as np
import optuna
import pytest

import ladderboard as lb
from ladderboard.adapters.optuna import GuardCallback, guard_objective, judged_trials, winning_trial
from ladderboard.errors import InvalidPredictions, InvalidSetting

N = 1000
LABELS = np.random.default_rng(1).integers(2, size=N)


def with_error_rate(share):
    """Return predictions with this error rate."""
    return np.where(np.arange(N) < share * N, 1 - LABELS, LABELS)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def create_guard(tmp_path):
    """Return a function that creates a guard."""

    def make(questions=20, mechanism=None):
        mechanism = mechanism or lb.Ladder(step=0.01)
        path = tmp_path / "guard.db"
        settings = {"questions": questions, "ladders": min(2, questions), "mechanism": mechanism}
        return lb.Holdout.create(path, LABELS, **settings)

    return make


def objective_of(values):
    """Return an objective that returns these (own score, error rate) pairs in turn."""

    def objective(trial):
        score, error = values[trial.number]
        return score, with_error_rate(error)

    return objective


def run(study, guard, values, **options):
    study.optimize(guard_objective(objective_of(values), guard, **options), n_trials=len(values))
    return [row["trial"] for row in judged_trials(study)]


def test_records_are_asked_about_and_stored_on_the_trial(create_guard):
    study, guard = optuna.create_study(), create_guard()
    values = [(0.5, 0.4), (0.6, 0.0), (0.4, 0.3), (0.4, 0.0), (0.3, 0.35), (float("inf"), 0.0)]
    assert run(study, guard, values) == [0, 2, 4]
    assert guard.remaining == 17
    attributes = study.trials[2].user_attrs
    bound = guard.ask(with_error_rate(0.3)).bound
    assert attributes == {
        "question": 2,
        "improved": True,
        "released": 0.3,
        "remaining": 18,
        "ladder": "",
        "order": 2,
        "bound": attributes["bound"],
    }
    assert 0 <= attributes["bound"]["low"] < 0.3 < attributes["bound"]["high"] < 0.5
    assert attributes["bound"]["beta"] == bound.beta == 0.05
    assert not study.trials[1].user_attrs
    assert study.best_trial.number == 4  # by its own score, and the guard has seen that it is worse
    assert winning_trial(study).number == 2
    assert judged_trials(study)[2] == {"trial": 4, "value": 0.3, **study.trials[4].user_attrs}


def test_a_guard_with_a_metric_stores_the_value_in_it(tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "guard.db",
        LABELS,
        questions=5,
        metric="accuracy",
        mechanism=lb.Ladder(step=0.01),
    )
    study = optuna.create_study(direction="maximize")
    run(study, guard, [(0.7, 0.3)])
    (row,) = judged_trials(study)
    assert (row["released"], row["metric"], row["metric_value"]) == (0.3, "accuracy", 0.7)


def test_maximize_with_min_delta(create_guard):
    study = optuna.create_study(direction="maximize")
    values = [(0.5, 0.4), (0.4, 0.0), (0.52, 0.0), (0.6, 0.3)]
    assert run(study, create_guard(), values, min_delta=0.05) == [0, 3]


def test_the_last_question_wins_whichever_trial_began_first(create_guard):
    """Workers may finish out of order; ask and tell make the order known here."""
    study, guard = optuna.create_study(), create_guard()
    objective = guard_objective(objective_of({0: (0.3, 0.2), 1: (0.5, 0.4), 2: (0.4, 0.3)}), guard)
    begun = [study.ask() for _ in range(3)]
    for index in (1, 2, 0):
        study.tell(begun[index], objective(begun[index]))
    assert [row["trial"] for row in judged_trials(study)] == [1, 2, 0]
    assert winning_trial(study).number == 0


def test_trials_of_another_process_count_as_records(create_guard):
    study, guard = optuna.create_study(), create_guard()
    first, second = (
        guard_objective(objective_of({0: (0.3, 0.2), 1: (0.4, 0.3)}), guard) for _ in range(2)
    )
    study.tell(begun := study.ask(), first(begun))
    study.tell(begun := study.ask(), second(begun))
    assert [row["trial"] for row in judged_trials(study)] == [0]


def test_the_study_stops_when_the_budget_is_spent(create_guard):
    values = [(1 - step / 10, 0.5 - step / 25) for step in range(9)]
    study, guard = optuna.create_study(), create_guard(questions=3)
    assert run(study, guard, values) == [0, 1, 2]
    assert len(study.trials) == 3
    # Another study finds it spent; what it was at is finished.
    other = optuna.create_study()
    assert run(other, guard, [(0.5, 0.1), (0.4, 0.05)]) == []
    assert [trial.state.name for trial in other.trials] == ["COMPLETE"]
    assert winning_trial(other) is None


class Away:
    """A guard that answers, and then cannot be reached for what remains."""

    meter = None

    def __init__(self, guard):
        self.ask = guard.ask

    @property
    def remaining(self):
        raise lb.errors.GuardUnreachable("It does not answer.")


def test_an_unreachable_guard_fails_no_trial_without_a_question(create_guard):
    study = optuna.create_study()
    assert run(study, Away(create_guard()), [(0.5, 0.4), (0.6, 0.3)]) == [0]
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 2


def test_trials_in_several_threads(create_guard):
    study, guard = optuna.create_study(), create_guard(questions=50)
    rng = np.random.default_rng(0)
    values = [(score, score / 2) for score in rng.uniform(size=40)]
    study.optimize(guard_objective(objective_of(values), guard), n_trials=40, n_jobs=4)
    rows = judged_trials(study)
    assert [row["question"] for row in rows] == list(range(1, guard.meter.used + 1))
    assert winning_trial(study).number == [row["trial"] for row in rows if row["improved"]][-1]


def test_infeasible_trials_are_not_asked_about(create_guard):
    def objective(trial):
        trial.set_constraint("size", 1 if trial.number == 1 else 0)
        return 1 / (1 + trial.number), with_error_rate(0.4 - trial.number / 10)

    study = optuna.create_study()
    study.optimize(guard_objective(objective, create_guard()), n_trials=3)
    assert [row["trial"] for row in judged_trials(study)] == [0, 2]


def test_pruned_and_failed_trials_are_not_asked_about(create_guard):
    def objective(trial):
        if trial.number == 0:
            raise optuna.TrialPruned
        return (None, float("nan"), 0.3)[trial.number - 1], with_error_rate(0.2)

    study = optuna.create_study()
    study.optimize(guard_objective(objective, create_guard()), n_trials=4)
    assert [trial.state.name for trial in study.trials] == ["PRUNED", "FAIL", "FAIL", "COMPLETE"]
    assert [row["trial"] for row in judged_trials(study)] == [3]


def test_equal_predictions_belong_to_the_first_trial(create_guard):
    study = optuna.create_study()
    assert run(study, create_guard(), [(0.5, 0.3), (0.4, 0.3)]) == [0, 1]
    assert winning_trial(study).number == 0


def test_a_refusal_fails_the_trial_and_sets_no_record(create_guard):
    study, guard = optuna.create_study(), create_guard()
    values = {0: (0.5, with_error_rate(0.3)[1:]), 1: (0.5, with_error_rate(0.3))}
    objective = guard_objective(lambda trial: values[trial.number], guard)
    study.optimize(objective, n_trials=2, catch=(InvalidPredictions,))
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE"]
    assert [row["trial"] for row in judged_trials(study)] == [1]


def test_attributes_of_other_tools_are_ignored(create_guard):
    study = optuna.create_study()

    def objective(trial):
        trial.set_user_attr("question", "Why?")
        return objective_of([(0.5, 0.4), (0.6, 0.3)])(trial)

    study.optimize(guard_objective(objective, create_guard()), n_trials=2)
    assert [row["trial"] for row in judged_trials(study)] == [0]


def test_a_study_on_several_ladders_has_no_winner(create_guard):
    study, guard = optuna.create_study(), create_guard()
    study.tell(begun := study.ask(), guard_objective(objective_of({0: (0.5, 0.4)}), guard)(begun))
    other = guard_objective(objective_of({1: (0.4, 0.3)}), guard.ladder("other"))
    study.tell(begun := study.ask(), other(begun))
    with pytest.raises(InvalidSetting, match=r"on one ladder; .* on '', 'other'"):
        winning_trial(study)


def test_unsupported_studies_are_refused(create_guard):
    study, guard = optuna.create_study(directions=["minimize", "minimize"]), create_guard()
    with pytest.raises(InvalidSetting, match="one objective, and this study has 2"):
        study.optimize(guard_objective(objective_of([(0.5, 0.4)]), guard), n_trials=1)
    with pytest.raises(InvalidSetting, match="returned float"):
        optuna.create_study().optimize(guard_objective(lambda _: 0.5, guard), n_trials=1)
    with pytest.raises(InvalidSetting, match="min_delta"):
        guard_objective(objective_of([]), guard, min_delta=-1)
    assert guard.meter.used == 0


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_a_callback_stores_replies_on_the_study(create_guard, storage, request):
    study_storage = None if storage == "memory" else request.getfixturevalue("study_storage")
    study, guard = optuna.create_study(storage=study_storage), create_guard(questions=2)
    values = [(0.5, 0.4), (0.6, 0.0), (0.4, 0.3), (0.3, 0.2)]
    predicted = []

    def predictions(study, trial):
        predicted.append(trial.number)
        return with_error_rate(values[trial.number][1])

    after = GuardCallback(guard, predictions)
    study.optimize(lambda trial: values[trial.number][0], n_trials=4, callbacks=[after])
    assert predicted == [0, 2] == [row["trial"] for row in judged_trials(study)]
    assert len(study.trials) == 3
    assert winning_trial(study).number == 2
    assert study.user_attrs["guard:trial:2"]["question"] == 2
    # The reason for all this.
    with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
        study._storage.set_trial_user_attr(study.trials[0]._trial_id, "question", 1)


def test_a_callback_asks_about_complete_trials_only(create_guard):
    def objective(trial):
        if trial.number == 0:
            raise optuna.TrialPruned
        return 0.5

    study = optuna.create_study()
    after = GuardCallback(create_guard(), lambda study, trial: with_error_rate(0.3))
    study.optimize(objective, n_trials=2, callbacks=[after])
    assert [row["trial"] for row in judged_trials(study)] == [1]
