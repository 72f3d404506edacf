"""Boards that take scores: no labels, and evaluators who hand in what they gave each example."""

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
ROWS = [f"task {at},{'public' if at < 300 else 'private'}" for at in range(400)]
HOLDOUT = "\n".join(["id,split", *ROWS, ""])


def scores(public, private=0, wrong="0", right="1"):
    """Return a file of scores, so many of them bad on each split."""
    values = [wrong if at < public or 300 <= at < 300 + private else right for at in range(400)]
    lines = [f"task {at},{each}" for at, each in enumerate(values)]
    return "\n".join(["id,score", *lines, ""]).encode()


def contents(**files):
    return {"board.yaml": RULES, "holdout.csv": HOLDOUT, **files}


@pytest.fixture
def made(folder, boards):
    """Give a board with a baseline."""
    rules = RULES + "baselines: [{name: Half, file: half.csv}]\n"
    files = {"board.yaml": rules, "half.csv": scores(400, wrong="0.5")}
    return boards.create(read_folder(folder("first", **contents(**files))))


@pytest.fixture
def alpha(made, organiser):
    return made.teams.create(organiser, "Alpha")


def test_only_evaluators_and_organisers_hand_in_scores(boards, made, alpha, submit, organiser):
    own = boards.caller_by_token(alpha.token, "first")
    reason = r"takes scores"
    with pytest.raises(NotAllowed, match=reason):
        submit(made, own, scores(0))
    answer = submit(made, EVALUATOR, scores(60), team=alpha.id)
    assert (answer.release.value, answer.release.improved, answer.name) == (0.2, True, "Alpha")
    assert answer.describe()["display"]["released"] == pytest.approx(0.8)
    assert submit(made, organiser, scores(30), team=alpha.id).release.value == 0.1
    with pytest.raises(NotAllowed, match=reason):  # what was answered before is not told again
        submit(made, own, scores(30))
    assert made.as_seen_by(own).team()["submissions"] == 2
    with pytest.raises(InvalidSetting, match="Name the team"):
        submit(made, EVALUATOR, scores(10))


def test_scores_are_shown_and_the_baseline_is_asked(made, alpha, submit, organiser):
    submit(made, EVALUATOR, scores(60), team=alpha.id)
    view = made.as_seen_by(organiser)
    shown = {row["team"]["name"]: row["display"] for row in view.leaderboard()["rows"]}
    assert shown == {"Alpha": pytest.approx(0.8), "Half": pytest.approx(0.5)}
    summary = view.summary()
    assert (summary["takes"], summary["loss"]) == ("scores", {"name": "shortfall"})
    display = summary["display"]
    assert (display["name"], display["direction"]) == ("score", "higher")
    assert made.book.check() == 2


@pytest.mark.parametrize("bad", ["1.0000001", "-0.1", "nan", "inf", "2", "", "right"])
def test_what_is_no_score_is_refused_and_costs_nothing(made, alpha, submit, bad):
    with pytest.raises(InvalidPredictions, match="task 0"):
        submit(made, EVALUATOR, scores(1, wrong=bad), team=alpha.id)
    assert made.as_seen_by(EVALUATOR).teams()[-1]["submissions"] == 0


def test_there_are_no_labels_to_correct(made, organiser):
    with pytest.raises(InvalidSetting, match="no labels to correct"):
        made.amendments.correct_labels(organiser, made.epoch_of(made.row()).table)
    assert made.row().epoch == 0


def test_finals_are_on_the_private_split(made, alpha, submit, organiser):
    beta = made.teams.create(organiser, "Beta")
    submit(made, EVALUATOR, scores(30, private=50), team=alpha.id)
    submit(made, EVALUATOR, scores(60, private=20), team=beta.id)
    made.closer.close(organiser)
    rows = made.as_seen_by(organiser).finals()["rows"]
    shown = [(row["team"]["name"], round(row["display"], 6)) for row in rows]
    assert sorted(shown) == [("Alpha", 0.5), ("Beta", 0.8), ("Half", 0.5)]
    assert shown[0][0] == "Beta"


def test_it_moves_with_its_history(boards, made, alpha, submit, tmp_path):
    key = SecretKey.make()
    submit(made, EVALUATOR, scores(60), team=alpha.id)
    dump_board(boards, "first", tmp_path / "dump", public_key=key.public, move=True)
    storage = SqliteStorage(tmp_path / "there.db", create=True)
    there = Boards(storage, FolderStore(tmp_path / "there"), world=boards.world)
    restore_board(there, tmp_path / "dump", secret_key=key)
    board = there.open("first")
    with pytest.raises(NotAllowed, match="takes scores"):
        submit(board, there.caller_by_token(alpha.token, "first"), scores(0))
    assert submit(board, EVALUATOR, scores(30), team=alpha.id).release.value == 0.1
    assert board.book.check() == 3
    storage.close()


def test_labels_are_not_kept_whoever_brings_them(make_folder, boards):
    board = boards.create(make_folder(loss="score"))
    table = board.epoch_of(board.row()).table
    assert set(table.labels.tolist()) == {1}
    assert board.rules.takes == "scores"


def test_a_folder_without_labels_is_checked(folder):
    report = check_board(folder(**contents(**{"sample_submission.csv": scores(400, wrong="0.5")})))
    assert report.ok, str(report)
    assert any(fact.startswith("There are no labels") for fact in report.facts)
    assert not any("labels as predictions" in fact for fact in report.facts)
    assert [attack.name for attack in report.attacks] == ["majority", "sybil"]


def test_what_would_leave_nothing_to_gain_is_a_problem(folder):
    report = check_board(folder(**contents(**{"sample_submission.csv": scores(0)})))
    assert [problem.code for problem in report.problems] == ["perfect"]
    assert "every score is 1" in report.problems[0].message


def test_labels_are_refused_where_nobody_would_look_at_them(folder):
    labelled = HOLDOUT.replace("id,split", "id,label")
    with pytest.raises(InvalidRules, match=r"holdout.csv: This loss looks at no labels"):
        read_folder(folder(**contents(**{"holdout.csv": labelled})))
    with pytest.raises(InvalidRules, match="no column named label"):
        read_folder(folder("other", **contents(**{"board.yaml": RULES.replace("score", "mae")})))
    with pytest.raises(InvalidRules, match="no column named id"):
        read_folder(folder("third", **contents(**{"holdout.csv": "group\na\nb\n"})))


def test_a_baseline_is_made_of_scores_too(folder, boards):
    rules = RULES + "baselines: [{name: Odd, file: odd.csv}]\n"
    files = {"board.yaml": rules, "odd.csv": scores(3, wrong="7")}
    path = folder(**contents(**files))
    assert any("odd.csv" in problem.message for problem in check_board(path).problems)
    with pytest.raises(InvalidRules, match="'Odd' cannot be scored"):
        boards.create(read_folder(path))


def test_the_loss_cannot_change_from_predictions_to_scores():
    rules = read_rules("slug: x\nloss: accuracy\nquestions: 100\nteams: 5\n")
    assert rules.takes == "predictions"
    with pytest.raises(InvalidRules, match="Loss cannot change"):
        rules.amended({"loss": "score"})


def test_the_receipt_of_scores_is_for_who_handed_them_in(boards, made, alpha, submit):
    """Its digest would tell a team whether a guess at its scores is right."""
    own = boards.caller_by_token(alpha.token, "first")
    said = submit(made, EVALUATOR, scores(60), team=alpha.id).describe()
    assert made.as_seen_by(EVALUATOR).submission(said["id"])["receipt"] == said["receipt"]
    assert made.as_seen_by(own).submission(said["id"])["receipt"] is None
