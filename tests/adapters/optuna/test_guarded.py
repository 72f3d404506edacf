"""Studies in one process: when the guard is asked, what is written, when it ends."""

import numpy as np
import optuna
import pytest

import ladderboard as lb
from ladderboard.adapters.optuna import GuardCallback, guard_objective, judged_trials, winning_trial
from ladderboard.errors import InvalidPredictions, InvalidSetting

N = 1000
LABELS = np.random.default_rng(1).integers(2, size=N)


def wrong(share):
    """Return predictions of which such a share is wrong."""
    return np.where(np.arange(N) < share * N, 1 - LABELS, LABELS)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def guard(tmp_path):
    """Make a guard."""

    def make(questions=20, mechanism=None):
        mechanism = mechanism or lb.Ladder(step=0.01)
        path = tmp_path / "guard.db"
        given = {"questions": questions, "ladders": min(2, questions), "mechanism": mechanism}
        return lb.Holdout.create(path, LABELS, **given)

    return make


def play(values):
    """Return an objective that gives one value after another: (its own, the truth)."""

    def objective(trial):
        own, true = values[trial.number]
        return own, wrong(true)

    return objective


def run(study, guard, values, **how):
    study.optimize(guard_objective(play(values), guard, **how), n_trials=len(values))
    return [row["trial"] for row in judged_trials(study)]


def test_records_are_asked_about_and_written_on_the_trial(guard):
    study, asked = optuna.create_study(), guard()
    values = [(0.5, 0.4), (0.6, 0.0), (0.4, 0.3), (0.4, 0.0), (0.3, 0.35), (float("inf"), 0.0)]
    assert run(study, asked, values) == [0, 2, 4]
    assert asked.remaining == 17
    said = study.trials[2].user_attrs
    bound = asked.ask(wrong(0.3)).bound
    assert said == {
        "question": 2,
        "improved": True,
        "released": 0.3,
        "remaining": 18,
        "ladder": "",
        "order": 2,
        "bound": said["bound"],
    }
    assert 0 <= said["bound"]["low"] < 0.3 < said["bound"]["high"] < 0.5
    assert said["bound"]["beta"] == bound.beta == 0.05
    assert not study.trials[1].user_attrs
    assert study.best_trial.number == 4  # by its own score, and the guard has seen that it is worse
    assert winning_trial(study).number == 2
    assert judged_trials(study)[2] == {"trial": 4, "value": 0.3, **study.trials[4].user_attrs}


def test_more_may_be_better_and_little_more_may_not_do(guard):
    study = optuna.create_study(direction="maximize")
    values = [(0.5, 0.4), (0.4, 0.0), (0.52, 0.0), (0.6, 0.3)]
    assert run(study, guard(), values, min_delta=0.05) == [0, 3]


def test_a_trial_that_began_first_may_be_asked_about_last(guard):
    """As with workers that finish out of order; asked and told by hand, so the order is known."""
    study, asked = optuna.create_study(), guard()
    objective = guard_objective(play({0: (0.3, 0.2), 1: (0.5, 0.4), 2: (0.4, 0.3)}), asked)
    begun = [study.ask() for _ in range(3)]
    for at in (1, 2, 0):
        study.tell(begun[at], objective(begun[at]))
    assert [row["trial"] for row in judged_trials(study)] == [1, 2, 0]
    assert winning_trial(study).number == 0


def test_what_another_process_has_finished_is_a_record_too(guard):
    study, asked = optuna.create_study(), guard()
    first, second = (guard_objective(play({0: (0.3, 0.2), 1: (0.4, 0.3)}), asked) for _ in range(2))
    study.tell(begun := study.ask(), first(begun))
    study.tell(begun := study.ask(), second(begun))
    assert [row["trial"] for row in judged_trials(study)] == [0]


def test_the_study_stops_when_the_budget_is_spent(guard):
    values = [(1 - at / 10, 0.5 - at / 25) for at in range(9)]
    study, asked = optuna.create_study(), guard(questions=3)
    assert run(study, asked, values) == [0, 1, 2]
    assert len(study.trials) == 3
    # Another study finds it spent; what it was at is finished.
    other = optuna.create_study()
    assert run(other, asked, [(0.5, 0.1), (0.4, 0.05)]) == []
    assert [trial.state.name for trial in other.trials] == ["COMPLETE"]
    assert winning_trial(other) is None


class Away:
    """A guard that answers, and then cannot be reached to say what remains."""

    meter = None

    def __init__(self, guard):
        self.ask = guard.ask

    @property
    def remaining(self):
        raise lb.errors.GuardUnreachable("It does not answer.")


def test_a_guard_that_is_away_fails_no_trial_that_needs_it_not(guard):
    study = optuna.create_study()
    assert run(study, Away(guard()), [(0.5, 0.4), (0.6, 0.3)]) == [0]
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 2


def test_threads(guard):
    study, asked = optuna.create_study(), guard(questions=50)
    rng = np.random.default_rng(0)
    values = [(each, each / 2) for each in rng.uniform(size=40)]
    study.optimize(guard_objective(play(values), asked), n_trials=40, n_jobs=4)
    rows = judged_trials(study)
    assert [row["question"] for row in rows] == list(range(1, asked.meter.used + 1))
    assert winning_trial(study).number == [row["trial"] for row in rows if row["improved"]][-1]


def test_what_breaks_its_constraints_is_not_asked_about(guard):
    def objective(trial):
        trial.set_constraint("size", 1 if trial.number == 1 else 0)
        return 1 / (1 + trial.number), wrong(0.4 - trial.number / 10)

    study = optuna.create_study()
    study.optimize(guard_objective(objective, guard()), n_trials=3)
    assert [row["trial"] for row in judged_trials(study)] == [0, 2]


def test_pruned_and_failed_trials_are_not_asked_about(guard):
    def objective(trial):
        if trial.number == 0:
            raise optuna.TrialPruned
        return (None, float("nan"), 0.3)[trial.number - 1], wrong(0.2)

    study = optuna.create_study()
    study.optimize(guard_objective(objective, guard()), n_trials=4)
    assert [each.state.name for each in study.trials] == ["PRUNED", "FAIL", "FAIL", "COMPLETE"]
    assert [row["trial"] for row in judged_trials(study)] == [3]


def test_the_same_model_again_belongs_to_the_trial_that_was_asked_about(guard):
    study = optuna.create_study()
    assert run(study, guard(), [(0.5, 0.3), (0.4, 0.3)]) == [0, 1]
    assert winning_trial(study).number == 0


def test_a_refusal_fails_the_trial_and_sets_no_record(guard):
    study, asked = optuna.create_study(), guard()
    values = {0: (0.5, wrong(0.3)[1:]), 1: (0.5, wrong(0.3))}
    objective = guard_objective(lambda trial: values[trial.number], asked)
    study.optimize(objective, n_trials=2, catch=(InvalidPredictions,))
    assert [each.state.name for each in study.trials] == ["FAIL", "COMPLETE"]
    assert [row["trial"] for row in judged_trials(study)] == [1]


def test_a_question_of_somebody_elses_is_none_of_ours(guard):
    study = optuna.create_study()

    def objective(trial):
        trial.set_user_attr("question", "Why?")
        return play([(0.5, 0.4), (0.6, 0.3)])(trial)

    study.optimize(guard_objective(objective, guard()), n_trials=2)
    assert [row["trial"] for row in judged_trials(study)] == [0]


def test_several_ladders_have_no_winner_between_them(guard):
    study, asked = optuna.create_study(), guard()
    study.tell(begun := study.ask(), guard_objective(play({0: (0.5, 0.4)}), asked)(begun))
    other = guard_objective(play({1: (0.4, 0.3)}), asked.ladder("other"))
    study.tell(begun := study.ask(), other(begun))
    with pytest.raises(InvalidSetting, match=r"on one ladder; .* on '', 'other'"):
        winning_trial(study)


def test_what_cannot_be_judged_is_refused(guard):
    study, asked = optuna.create_study(directions=["minimize", "minimize"]), guard()
    with pytest.raises(InvalidSetting, match="this study has 2 objectives"):
        study.optimize(guard_objective(play([(0.5, 0.4)]), asked), n_trials=1)
    with pytest.raises(InvalidSetting, match="returned float"):
        optuna.create_study().optimize(guard_objective(lambda _: 0.5, asked), n_trials=1)
    with pytest.raises(InvalidSetting, match="min_delta"):
        guard_objective(play([]), asked, min_delta=-1)
    assert asked.meter.used == 0


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_a_callback_writes_on_the_study_for_finished_trials_cannot_change(guard, storage, request):
    kept = None if storage == "memory" else request.getfixturevalue("study_storage")
    study, asked = optuna.create_study(storage=kept), guard(questions=2)
    values = [(0.5, 0.4), (0.6, 0.0), (0.4, 0.3), (0.3, 0.2)]
    made = []

    def predictions(study, trial):
        made.append(trial.number)
        return wrong(values[trial.number][1])

    after = GuardCallback(asked, predictions)
    study.optimize(lambda trial: values[trial.number][0], n_trials=4, callbacks=[after])
    assert made == [0, 2] == [row["trial"] for row in judged_trials(study)]
    assert len(study.trials) == 3
    assert winning_trial(study).number == 2
    assert study.user_attrs["guard:trial:2"]["question"] == 2
    # The reason for all this.
    with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
        study._storage.set_trial_user_attr(study.trials[0]._trial_id, "question", 1)


def test_a_callback_looks_at_complete_trials_only(guard):
    def objective(trial):
        if trial.number == 0:
            raise optuna.TrialPruned
        return 0.5

    study = optuna.create_study()
    after = GuardCallback(guard(), lambda study, trial: wrong(0.3))
    study.optimize(objective, n_trials=2, callbacks=[after])
    assert [row["trial"] for row in judged_trials(study)] == [1]
