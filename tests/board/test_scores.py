"""Score boards: no labels; evaluators submit a score for each example."""

import pytest

from ladderboard.board import (
    Boards,
    Caller,
    FolderStore,
    Role,
    check_board,
    dump_board,
    read_folder,
    read_rules,
    restore_board,
)
from ladderboard.errors import InvalidPredictions, InvalidRules, InvalidSetting, NotAllowed
from ladderboard.ledger import SecretKey, SqliteStorage

EVALUATOR = Caller(Role.EVALUATOR)
RULES = "loss: score\nquestions: 100\nteams: 5\nmechanism: {name: ladder, step: 0.01}\n"
ROWS = [f"task {row},{'public' if row < 300 else 'private'}" for row in range(400)]
HOLDOUT = "\n".join(["id,split", *ROWS, ""])


def scores(public, private=0, error_score="0", correct_score="1"):
    """Return a file of scores with a given number of failures on each split."""
    values = [
        error_score if index < public or 300 <= index < 300 + private else correct_score
        for index in range(400)
    ]
    lines = [f"task {row},{score}" for row, score in enumerate(values)]
    return "\n".join(["id,score", *lines, ""]).encode()


def contents(**files):
    return {"board.yaml": RULES, "holdout.csv": HOLDOUT, **files}


@pytest.fixture
def score_board(folder, boards):
    """Return a score board with a baseline."""
    rules = RULES + "baselines: [{name: Half, file: half.csv}]\n"
    files = {"board.yaml": rules, "half.csv": scores(400, error_score="0.5")}
    return boards.create(read_folder(folder("first", **contents(**files))))


@pytest.fixture
def alpha(score_board, organiser):
    return score_board.teams.create(organiser, "Alpha")


def test_only_evaluators_and_organisers_submit_scores(
    boards, score_board, alpha, submit, organiser
):
    team_caller = boards.caller_by_token(alpha.token, "first")
    reason = r"takes scores"
    with pytest.raises(NotAllowed, match=reason):
        submit(score_board, team_caller, scores(0))
    answer = submit(score_board, EVALUATOR, scores(60), team=alpha.id)
    assert (answer.release.value, answer.release.improved, answer.name) == (0.2, True, "Alpha")
    assert answer.describe()["display"]["released"] == pytest.approx(0.8)
    assert submit(score_board, organiser, scores(30), team=alpha.id).release.value == 0.1
    with pytest.raises(NotAllowed, match=reason):  # not even an earlier answer
        submit(score_board, team_caller, scores(30))
    assert score_board.as_seen_by(team_caller).team()["submissions"] == 2
    with pytest.raises(InvalidSetting, match="Name the team"):
        submit(score_board, EVALUATOR, scores(10))


def test_scores_are_shown_and_the_baseline_is_scored(score_board, alpha, submit, organiser):
    submit(score_board, EVALUATOR, scores(60), team=alpha.id)
    view = score_board.as_seen_by(organiser)
    display_by_team = {row["team"]["name"]: row["display"] for row in view.leaderboard()["rows"]}
    assert display_by_team == {"Alpha": pytest.approx(0.8), "Half": pytest.approx(0.5)}
    summary = view.summary()
    assert (summary["takes"], summary["loss"]) == ("scores", {"name": "shortfall"})
    display = summary["display"]
    assert (display["name"], display["direction"]) == ("score", "higher")
    assert score_board.book.check() == 2


@pytest.mark.parametrize("score", ["1.0000001", "-0.1", "nan", "inf", "2", "", "right"])
def test_an_invalid_score_is_refused_and_uses_no_question(score_board, alpha, submit, score):
    with pytest.raises(InvalidPredictions, match="task 0"):
        submit(score_board, EVALUATOR, scores(1, error_score=score), team=alpha.id)
    assert score_board.as_seen_by(EVALUATOR).teams()[-1]["submissions"] == 0


def test_there_are_no_labels_to_correct(score_board, organiser):
    with pytest.raises(InvalidSetting, match="no labels to correct"):
        score_board.amendments.correct_labels(
            organiser, score_board.epoch_of(score_board.row()).table
        )
    assert score_board.row().epoch == 0


def test_finals_are_on_the_private_split(score_board, alpha, submit, organiser):
    beta = score_board.teams.create(organiser, "Beta")
    submit(score_board, EVALUATOR, scores(30, private=50), team=alpha.id)
    submit(score_board, EVALUATOR, scores(60, private=20), team=beta.id)
    score_board.closer.close(organiser)
    rows = score_board.as_seen_by(organiser).finals()["rows"]
    ranking = [(row["team"]["name"], round(row["display"], 6)) for row in rows]
    assert sorted(ranking) == [("Alpha", 0.5), ("Beta", 0.8), ("Half", 0.5)]
    assert ranking[0][0] == "Beta"


def test_a_score_board_moves_with_its_history(boards, score_board, alpha, submit, tmp_path):
    key = SecretKey.make()
    submit(score_board, EVALUATOR, scores(60), team=alpha.id)
    dump_board(boards, "first", tmp_path / "dump", public_key=key.public, move=True)
    storage = SqliteStorage(tmp_path / "there.db", create=True)
    target = Boards(storage, FolderStore(tmp_path / "there"), environment=boards.environment)
    restore_board(target, tmp_path / "dump", secret_key=key)
    board = target.open("first")
    with pytest.raises(NotAllowed, match="takes scores"):
        submit(board, target.caller_by_token(alpha.token, "first"), scores(0))
    assert submit(board, EVALUATOR, scores(30), team=alpha.id).release.value == 0.1
    assert board.book.check() == 3
    storage.close()


def test_a_score_board_stores_no_labels(make_folder, boards):
    board = boards.create(make_folder(loss="score"))
    table = board.epoch_of(board.row()).table
    assert set(table.labels.tolist()) == {1}
    assert board.rules.takes == "scores"


def test_a_folder_without_labels_is_checked(folder):
    report = check_board(
        folder(**contents(**{"sample_submission.csv": scores(400, error_score="0.5")}))
    )
    assert report.ok, str(report)
    assert any(fact.startswith("There are no labels") for fact in report.facts)
    assert not any("labels as predictions" in fact for fact in report.facts)
    assert [attack.name for attack in report.attacks] == ["majority", "sybil"]


def test_a_sample_with_perfect_scores_is_a_problem(folder):
    report = check_board(folder(**contents(**{"sample_submission.csv": scores(0)})))
    assert [problem.code for problem in report.problems] == ["perfect"]
    assert "every score is 1" in report.problems[0].message


def test_a_score_board_refuses_a_label_column(folder):
    labelled = HOLDOUT.replace("id,split", "id,label")
    with pytest.raises(InvalidRules, match=r"holdout.csv: This loss uses no labels"):
        read_folder(folder(**contents(**{"holdout.csv": labelled})))
    with pytest.raises(InvalidRules, match="no column named label"):
        read_folder(folder("other", **contents(**{"board.yaml": RULES.replace("score", "mae")})))
    with pytest.raises(InvalidRules, match="no column named id"):
        read_folder(folder("third", **contents(**{"holdout.csv": "group\na\nb\n"})))


def test_a_baseline_is_made_of_scores_too(folder, boards):
    rules = RULES + "baselines: [{name: Odd, file: odd.csv}]\n"
    files = {"board.yaml": rules, "odd.csv": scores(3, error_score="7")}
    path = folder(**contents(**files))
    assert any("odd.csv" in problem.message for problem in check_board(path).problems)
    with pytest.raises(InvalidRules, match="'Odd' cannot be scored"):
        boards.create(read_folder(path))


def test_the_loss_cannot_change_from_predictions_to_scores():
    rules = read_rules("slug: x\nloss: accuracy\nquestions: 100\nteams: 5\n")
    assert rules.takes == "predictions"
    with pytest.raises(InvalidRules, match="Metric cannot change"):
        rules.amended({"loss": "score"})


def test_only_the_evaluator_gets_the_receipt_of_scores(boards, score_board, alpha, submit):
    """Its digest would tell a team whether a guess at its scores is right."""
    team_caller = boards.caller_by_token(alpha.token, "first")
    answer = submit(score_board, EVALUATOR, scores(60), team=alpha.id).describe()
    assert (
        score_board.as_seen_by(EVALUATOR).submission(answer["id"])["receipt"] == answer["receipt"]
    )
    assert score_board.as_seen_by(team_caller).submission(answer["id"])["receipt"] is None


def test_equal_scores_count_again_unless_they_come_with_the_same_key(score_board, alpha, submit):
    """Whether the scores of two models are equal depends on the labels."""
    answers = [
        submit(score_board, EVALUATOR, scores(60), team=alpha.id, idempotency_key=key)
        for key in ("first", "second", "first", None)
    ]
    assert [(answer.number, answer.again) for answer in answers] == [
        (1, False), (2, False), (1, True), (3, False),
    ]  # fmt: skip
