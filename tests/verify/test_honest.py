"""Boards on which nobody did anything wrong: both verifiers say so."""

import pytest

from ladderboard.board import Caller, IncomingSubmission, Role, _amendments, write_board_bundle
from ladderboard.files import read_holdout
from ladderboard.verify import verify_bundle
from support.verify.board_history import (
    LARGE,
    ORGANISER,
    PUBLIC_ROWS,
    N,
    close_and_bundle,
    holdout_table,
    small_board,
    submit_predictions,
)

HOLDS = "the chain and the tape hold"
MECHANISMS = {
    "calibrated": "calibrated",
    "shaky": {"name": "shaky_ladder", "step": 0.02, "compare_noise": 0.01, "release_noise": 0.005},
    "laplace": {"name": "shaky_ladder", "step": 0.02, "compare_noise": 0.01, "release_noise": 0.01,
                "law": "laplace"},
    "ladder": {"name": "ladder", "step": 0.02},
    "parameter free": "parameter_free_ladder",
    "exact": "exact",
    "rounded": {"name": "rounded", "digits": 2},
    "noisy": {"name": "noisy", "sd": 0.01},
    "bootstrap": {"name": "bootstrap_ladder", "test": "bayes", "replicates": 20},
    "growing": {"name": "growing_ladder", "step": 0.3},
    "shared": {"name": "growing_ladder", "step": 0.3, "accounts": 2, "sharing": 0.5},
    "model": {"name": "growing_ladder", "step": 0.3, "scale": "model"},
    "one bit": {"name": "one_bit", "step": 0.02},
}  # fmt: skip
LOSSES = {"parameter free", "bootstrap"}  # what they look at


@pytest.fixture
def check_sound(second_verifier):
    """Give a function that sees that both verifiers find all of a bundle right."""

    def see(path):
        result = verify_bundle(path)
        assert result.risks == result.releases == result.questions
        assert second_verifier(path).endswith(HOLDS)
        return result

    return see


def ask(board, teams, first, many=3):
    return [
        submit_predictions(board, teams[index % len(teams)], first + index) for index in range(many)
    ]


@pytest.mark.parametrize("ladder", ["team", "board"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_with_two_corrections(tmp_path, check_sound, second_verifier, name, ladder):
    rules = {"mechanism": MECHANISMS[name], "ladder": ladder, "questions": 90}
    with small_board(tmp_path, **rules) as (board, teams):
        ask(board, teams, 10, 4)
        board.amendments.correct_labels(ORGANISER, holdout_table(flip=5))
        ask(board, teams, 20)
        board.amendments.correct_labels(ORGANISER, holdout_table(flip=9))
        ask(board, teams, 30)
        result = check_sound(close_and_bundle(board, tmp_path / "bundle"))
        assert (
            "The final ranking was recomputed from submissions and private labels."
            in result.checked
        )
        write_board_bundle(board, tmp_path / "closed", labels=False, submissions=False)
    # Without labels and submissions releases are made of risks, if the mechanism looks at no more.
    result = verify_bundle(tmp_path / "closed")
    assert result.risks == 0
    assert result.releases == (0 if name in LOSSES else result.questions)
    assert f"The noise of {result.questions} questions was drawn from the key." in result.checked
    assert second_verifier(tmp_path / "closed").endswith(HOLDS)


@pytest.mark.parametrize("visibility", ["hidden", "anonymous", "frozen"])
@pytest.mark.parametrize("ladder", ["team", "board"])
def test_a_veiled_board(tmp_path, check_sound, visibility, ladder):
    with small_board(tmp_path, visibility=visibility, ladder=ladder) as (board, teams):
        ask(board, teams, 10)
        board.amendments.amend(ORGANISER, {"visibility": "public"})
        ask(board, teams, 20)
        board.amendments.amend(ORGANISER, {"visibility": visibility})
        board.amendments.correct_labels(ORGANISER, holdout_table(flip=5), replay="none")
        ask(board, teams, 30)
        board.closer.close(ORGANISER)
        board.amendments.amend(ORGANISER, {"visibility": "hidden"})
        write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    check_sound(tmp_path / "bundle")


def rows(*, split=True, **columns):
    """Return labels with other columns than usual."""
    table = {"id": list(range(N)), "label": [index % 2 for index in range(N)]}
    if split:
        table["split"] = ["public"] * PUBLIC_ROWS + ["private"] * (N - PUBLIC_ROWS)
    return read_holdout(table | columns)


COLUMNS = {
    "weights": {"weight": [1 + index % 3 for index in range(300)]},
    "weights that are no whole numbers": {"weight": [0.5 + index % 3 for index in range(300)]},
    "groups": {"group": [f"g{index // 5}" for index in range(300)]},
    "both": {"weight": [1 + index // 5 % 4 for index in range(300)],
             "group": [index // 5 for index in range(300)]},
    "ignored rows": {"split": ["public", "ignored", "private"] * 100},
    "ids that are text": {"id": [f"{index}" for index in range(300)]},
}  # fmt: skip


@pytest.mark.parametrize("mechanism", ["shaky", "bootstrap", "growing", "model"])
@pytest.mark.parametrize("name", COLUMNS)
def test_other_columns(tmp_path, check_sound, name, mechanism):
    if mechanism == "bootstrap" and "weight" in COLUMNS[name]:
        mechanism = "calibrated"  # who compares losses takes no weights
    table = rows(**COLUMNS[name])
    with small_board(tmp_path, table, mechanism=MECHANISMS[mechanism]) as (board, teams):
        ask(board, teams, 10, 5)
        check_sound(close_and_bundle(board, tmp_path / "bundle"))


def test_a_board_of_scores(tmp_path, check_sound):
    split = ["public"] * PUBLIC_ROWS + ["private"] * (N - PUBLIC_ROWS)
    table = read_holdout({"id": list(range(N)), "split": split}, labelled=False)
    evaluator = Caller(Role.EVALUATOR)
    with small_board(tmp_path, table, loss="score", baselines=None) as (board, _):
        team = board.teams.create(ORGANISER, "Judged").id
        for at in range(3):
            lines = [f"{index},{(index + at) % 4 / 3}" for index in range(N)]
            body = "\n".join(["id,score", *lines, ""]).encode()
            sent = IncomingSubmission(board.scorer().read(body), 1_800_000_000)
            board.submit(evaluator, sent, team)
        check_sound(close_and_bundle(board, tmp_path / "bundle"))


DISPLAYED = {
    "root": {"name": "rmse", "range": [0, 10]},
    "scaled": {"name": "mae", "range": [0, 10]},
    "complement": "accuracy",
    "loss": "zero_one",
}


@pytest.mark.parametrize("name", DISPLAYED)
def test_every_way_to_show_a_loss(tmp_path, check_sound, name):
    with small_board(tmp_path, loss=DISPLAYED[name]) as (board, teams):
        assert board.rules.describe()["display"]["as"] == name
        ask(board, teams, 10)
        check_sound(close_and_bundle(board, tmp_path / "bundle"))


def test_files_that_are_not_held_in_memory(tmp_path, check_sound, monkeypatch):
    monkeypatch.setattr("ladderboard.verify._source._MAX_BODY_IN_MEMORY", 100)
    with small_board(tmp_path) as (board, teams):
        ask(board, teams, LARGE - 1)  # the second of them has several parts
        check_sound(close_and_bundle(board, tmp_path / "bundle"))


BASELINES = {
    "a value": [{"name": "Paper", "value": 0.3, "source": "a paper"}],
    "a value and a file": [{"name": "Paper", "value": 0.3}, {"name": "Coin", "file": "coin.csv"}],
    "two files": [{"name": "Coin", "file": "coin.csv"}, {"name": "Same", "file": "coin.csv"}],
    "two blanks": [{"name": "Coin  flip", "file": "coin.csv"}],
    "a blank first": [{"name": " Coin", "file": "coin.csv"}],
    "a blank that breaks no line": [{"name": "Coin\N{NO-BREAK SPACE}flip", "file": "coin.csv"}],
    "an accent of its own": [{"name": "Cafe\N{COMBINING ACUTE ACCENT}", "file": "coin.csv"}],
    "none": None,
}


@pytest.mark.parametrize("name", BASELINES)
def test_baselines(tmp_path, check_sound, name):
    with small_board(tmp_path, baselines=BASELINES[name]) as (board, teams):
        ask(board, teams, 10)
        result = check_sound(close_and_bundle(board, tmp_path / "bundle"))
    files = [baseline for baseline in BASELINES[name] or () if "file" in baseline]
    assert result.questions == 3 + len(files)


def test_a_board_without_a_private_split(tmp_path, check_sound):
    table = rows(split=False)
    with small_board(tmp_path, table, finals=None, ladder="team") as (board, teams):
        ask(board, teams, 10)
        result = check_sound(close_and_bundle(board, tmp_path / "bundle"))
    assert not any("final ranking" in line for line in (*result.checked, *result.unchecked))


@pytest.mark.parametrize("names", [("Red",), ()])
def test_a_board_without_questions_verifies(tmp_path, check_sound, names):
    with small_board(tmp_path, baselines=None, names=names) as (board, _):
        result = check_sound(close_and_bundle(board, tmp_path / "bundle"))
    assert str(result) == "verified: 0 releases"


def test_disqualified_and_reinstated(tmp_path, check_sound):
    with small_board(tmp_path) as (board, teams):
        ask(board, teams, 10)
        red, blue = (board.teams.create(ORGANISER, team_name).id for team_name in ("Late", "Later"))
        ask(board, range(teams[-1] + 1, teams[-1] + 3), 20)
        for team in (red, blue):
            board.teams.disqualify(ORGANISER, team)
        board.teams.disqualify(ORGANISER, blue, reinstate=True)
        ask(board, teams, 30)
        board.closer.close(ORGANISER)
        board.teams.disqualify(ORGANISER, blue)
        board.teams.disqualify(ORGANISER, red, reinstate=True)
        write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    check_sound(tmp_path / "bundle")


def test_selected_paused_amended_and_full(tmp_path, check_sound):
    """Every limit is reached: each team asks all that it may, in the last places there are."""
    rules = {"teams": 2, "questions": 9, "per_team": 3, "ladder": "board"}
    with small_board(tmp_path, names=("Red", "Blue"), **rules) as (board, teams):
        answers = ask(board, teams, 10, 6)
        red = Caller(Role.TEAM, teams[0])
        board.closer.select_submissions(red, [answers[0].id, answers[4].id])
        amend = board.amendments.amend
        amend(ORGANISER, {"questions": 20, "per_team": 4, "teams": 3, "play": True})
        board.amendments.pause(ORGANISER)
        board.amendments.correct_labels(ORGANISER, holdout_table(flip=5))
        board.amendments.resume(ORGANISER)
        submit_predictions(board, teams[1], 30)
        amend(ORGANISER, {"play": False, "finals": {"selections": 1}, "per_team": 2})
        check_sound(close_and_bundle(board, tmp_path / "bundle"))


@pytest.mark.parametrize("name", ["shaky", "bootstrap"])
def test_a_file_that_was_lost(tmp_path, second_verifier, name):
    """One of six is gone: what it costs is said, and no more than that."""
    rules = {"mechanism": MECHANISMS[name], "baselines": None, "finals": {"selections": 1}}
    with small_board(tmp_path, **rules) as (board, teams):
        ask(board, teams, 10, 6)
        board.closer.close(ORGANISER)
        with board.book.storage.write_transaction(board.book.name) as view:
            lost = (
                "UPDATE main.submission SET place = '' WHERE book = ? AND team = ? AND number = 1"
            )
            view.execute(lost, (view.book_id, teams[0]))
        path = tmp_path / "bundle"
        write_board_bundle(board, path, labels=True, submissions=True)
    result = verify_bundle(path)
    # A mechanism that looks at losses cannot go on with the ladder of the team that lost it.
    lacks = "2 releases were not checked: the mechanism needs the losses of examples"
    assert str(result) == f"verified: {'6' if name == 'shaky' else '4 of 6'} releases"
    assert result.risks == 5
    assert "1 risk was not checked: the submissions are not in the bundle." in result.unchecked
    assert any(line.startswith(lacks) for line in result.unchecked) == (name == "bootstrap")
    assert "The final ranking was compared only with its commitment." in result.unchecked
    assert second_verifier(path).endswith(HOLDS)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_correction_that_was_cut_short(tmp_path, monkeypatch, resumed):
    """Who is asked again may have used up all of its questions."""
    with small_board(tmp_path, per_team=2) as (board, teams):
        for at in range(6):
            submit_predictions(board, teams[at % 3], 10 + at)
        asked, left = _amendments._replay_one, iter([True])

        def cut(*args):
            if not next(left, False):
                raise KeyboardInterrupt
            asked(*args)

        with monkeypatch.context() as patch:
            patch.setattr(_amendments, "_replay_one", cut)
            with pytest.raises(KeyboardInterrupt):
                board.amendments.correct_labels(ORGANISER, holdout_table(flip=5))
        if resumed:
            board.amendments.resume(ORGANISER)
        assert board.amendments.correct_labels(ORGANISER, holdout_table(flip=5)) > 0
        result = verify_bundle(close_and_bundle(board, tmp_path / "bundle"))
    assert result.risks == result.questions > 7
