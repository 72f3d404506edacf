"""Hidden, anonymous and frozen boards as seen by each role."""

import json

import pytest

from ladderboard.board import PUBLIC, Caller, Role
from ladderboard.errors import InvalidSetting, LadderboardError, NotAllowed

EVALUATOR = Caller(Role.EVALUATOR)


def read_all_views(board, caller):
    """Return everything that a caller can read, as text."""
    view = board.as_seen_by(caller)
    reads = (
        view.summary,
        view.leaderboard,
        view.records,
        view.history,
        view.activity,
        view.own_history,
        lambda: [entry.decode() for entry in view.ledger(limit=1000)],
        view.head,
        view.team,
        view.teams,
        view.submissions,
        view.finals,
    )
    answers = []
    for read in reads:
        try:
            answers.append(json.dumps(read()))
        except LadderboardError as refused:
            answers.append(f"{type(refused).__name__}: {refused}")
    return "\n".join(answers)


@pytest.fixture
def board_in_use(boards, make_folder, join, submit, predict):
    """Return a board with a submission by Ada, and a function that submits as Bob."""
    board = boards.create(make_folder())
    ada, _ = join(boards, board, "Ada Lovelace")
    bob, _ = join(boards, board, "Bob Noyce")
    submit(board, ada, predict(30))
    submit(board, bob, predict(45))
    return board, ada, bob, lambda errors: submit(board, bob, predict(errors))


def test_a_frozen_board_does_not_change_for_others(board_in_use, organiser):
    board, ada, bob, submit_as_bob = board_in_use
    board.amendments.amend(organiser, {"visibility": "frozen"})
    seen_before = {
        caller: read_all_views(board, caller) for caller in (PUBLIC, ada, bob, EVALUATOR)
    }
    reply = submit_as_bob(15).describe()
    assert reply["released"] == 0.05
    assert reply["bound"] is None
    assert read_all_views(board, PUBLIC) == seen_before[PUBLIC]
    assert read_all_views(board, ada) == seen_before[ada]
    assert "0.05" in read_all_views(board, bob)
    assert read_all_views(board, bob) != seen_before[bob]
    assert read_all_views(board, EVALUATOR) != seen_before[EVALUATOR]
    row = board.as_seen_by(PUBLIC).leaderboard()["rows"][0]
    assert (row["team"]["name"], row["released"]) == ("Ada Lovelace", 0.1)
    board.amendments.amend(organiser, {"visibility": "public"})
    row = board.as_seen_by(PUBLIC).leaderboard()["rows"][0]
    assert (row["team"]["name"], row["released"]) == ("Bob Noyce", 0.05)


def test_a_hidden_board_reveals_nothing_to_others(board_in_use, organiser):
    board, ada, _, submit_as_bob = board_in_use
    board.amendments.amend(organiser, {"visibility": "hidden"})
    public_before = read_all_views(board, PUBLIC)
    team_before = read_all_views(board, ada)
    assert "Bob" not in team_before
    assert "0.15" not in team_before
    assert "0.1" in team_before
    with pytest.raises(NotAllowed, match="hidden"):
        board.as_seen_by(ada).leaderboard()
    submit_as_bob(15)
    assert read_all_views(board, PUBLIC) == public_before
    assert read_all_views(board, ada) == team_before
    assert "Ada" not in public_before
    assert "0.1" not in public_before.replace("0.01", "")
    assert "0.05" in read_all_views(board, EVALUATOR)


def test_an_anonymous_board_names_no_other_team(board_in_use, organiser):
    board, ada, _, _ = board_in_use
    board.amendments.amend(organiser, {"visibility": "anonymous"})
    assert "Ada" not in read_all_views(board, PUBLIC)
    assert "Bob" not in read_all_views(board, PUBLIC)
    assert "Ada" in read_all_views(board, ada)
    assert "Bob" not in read_all_views(board, ada)
    assert [row["released"] for row in board.as_seen_by(PUBLIC).leaderboard()["rows"]] == [
        0.1,
        0.15,
    ]
    assert "Bob" in read_all_views(board, organiser)


def test_a_disqualified_team_is_hidden_and_nothing_else_changes(board_in_use, organiser):
    board, ada, _, submit_as_bob = board_in_use
    team = board.as_seen_by(ada).team()["id"]
    state_before = board.book.chain_state()
    board.teams.disqualify(organiser, team)
    board.teams.disqualify(organiser, team)
    now = board.book.chain_state()
    assert now.entries == state_before.entries + 1
    assert (now.asked, now.changes, now.ladders) == (
        state_before.asked,
        state_before.changes,
        state_before.ladders,
    )
    assert "Ada" not in read_all_views(board, PUBLIC)
    assert board.as_seen_by(PUBLIC).leaderboard()["rows"][0]["rank"] == 1
    board.teams.disqualify(organiser, team, reinstate=True)
    assert "Ada" in read_all_views(board, PUBLIC)
    submit_as_bob(44)
    assert board.book.check() == 3


def test_pages_of_the_leaderboard_join_up(boards, make_folder, submit, predict, join, tmp_path):
    text = "baselines: [{name: Half, file: half.csv}]"  # which is as good as some teams
    folder = make_folder(text, teams="30", questions="300")
    folder.baselines["Half"] = tmp_path / "half.csv"
    folder.baselines["Half"].write_bytes(predict(9))
    board = boards.create(folder)
    for index in range(24):
        caller, _ = join(boards, board, f"Team {index}")
        if index % 4:
            submit(board, caller, predict(3 * (index % 7) if index != 5 else 40))
    view = board.as_seen_by(PUBLIC)
    all_rows = view.leaderboard(limit=100)["rows"]
    assert len(all_rows) == 25
    ranked = [row for row in all_rows if row["rank"]]
    values = [row["released"] for row in ranked]
    assert values == sorted(values)
    assert len(ranked) == 18
    assert [row["rank"] for row in ranked] == [
        1 + sum(smaller < value for smaller in values) for value in values
    ]
    assert [row["tied"] for row in all_rows] == [
        row["rank"] is not None and values.count(row["released"]) > 1 for row in all_rows
    ]
    assert {row["tied"] for row in ranked} == {True, False}
    assert [standing["rows"] for standing in view.standings()] == [all_rows]
    for size in (1, 5, 7, 18, 24):
        rows, cursor = [], None
        while True:
            page = view.leaderboard(limit=size, cursor=cursor)
            rows += page["rows"]
            cursor = page["next"]
            if cursor is None:
                break
        assert rows == all_rows


def test_a_board_whose_steps_depend_on_others_cannot_hide_them(boards, make_folder, organiser):
    """With open registration one attacker may hold all accounts: their records count together."""
    public = boards.create(make_folder(mechanism=None, registration="open"))
    assert public.book.mechanism.shared_ladders == 3
    for visibility in ("hidden", "frozen"):
        with pytest.raises(
            InvalidSetting, match="could infer other teams' results from its own answers"
        ):
            public.amendments.amend(organiser, {"visibility": visibility})
    public.amendments.amend(organiser, {"visibility": "anonymous"})
    for slug, settings in {
        "known": {"registration": "invited"},
        "hidden": {"registration": "open", "visibility": "hidden"},
    }.items():
        board = boards.create(make_folder(slug=slug, mechanism=None, **settings))
        assert board.book.mechanism.shared_ladders == 0
        board.amendments.amend(organiser, {"visibility": "frozen"})
        assert board.rules.visibility == "frozen"
