"""A board from its start to its end."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ladderboard.board import PUBLIC, Boards, MixedStore
from ladderboard.errors import (
    BudgetSpent,
    Conflict,
    IdempotencyKeyReused,
    InvalidSetting,
    NotAllowed,
    NotOpen,
    RateLimited,
    StaleCopy,
)
from ladderboard.ledger import SqliteStorage


@pytest.fixture
def board(boards, make_folder):
    return boards.create(make_folder(window="{questions: 3, hours: 1}"))


def test_a_submission_is_answered_and_ranked(boards, board, join, submit, predict):
    ada, _ = join(boards, board, "Ada")
    bob, bob_team = join(boards, board, "Bob")
    first = submit(board, ada, predict(30), message="forest").describe()
    assert (first["released"], first["improved"], first["question"]) == (0.1, True, 1)
    assert (first["remaining"], first["limit"]) == (2, "window")
    assert first["bound"]["low"] < 0.1 < first["bound"]["high"]
    second = submit(board, ada, predict(60)).describe()
    assert (second["released"], second["improved"], second["score"]) == (0.1, False, None)
    bobs_answer = submit(board, bob, predict(15)).describe()
    assert bobs_answer["released"] == 0.05  # each team has its own ladder
    page = board.as_seen_by(PUBLIC).leaderboard()
    assert [(row["rank"], row["team"]["name"], row["released"]) for row in page["rows"]] == [
        (1, "Bob", 0.05),
        (2, "Ada", 0.1),
    ]
    own_row = board.as_seen_by(bob).leaderboard()["rows"][0]
    assert own_row["you"]
    assert own_row["team"]["id"] == bob_team.id
    assert [submission["message"] for submission in board.as_seen_by(ada).submissions()] == [
        "",
        "forest",
    ]
    assert board.book.check() == 3
    records = board.as_seen_by(PUBLIC).records()
    assert [record["released"] for record in records] == [0.1, 0.05]
    json.dumps(board.as_seen_by(PUBLIC).summary())


def test_a_teams_own_row_has_the_rank_of_the_leaderboard(
    boards, make_folder, join, submit, predict, tmp_path
):
    folder = make_folder("baselines: [{name: Worst, file: w}, {name: Good, file: g}]", teams="6")
    for name, wrong in (("Worst", 150), ("Good", 9)):
        folder.baselines[name] = tmp_path / name
        folder.baselines[name].write_bytes(predict(wrong))
    board, teams = boards.create(folder), []
    for number, wrong in enumerate((3, 21, 21, 60, 200, None)):
        teams.append(join(boards, board, f"Team {number}")[0])
        if wrong is not None:
            submit(board, teams[-1], predict(wrong))
    listed = [row for row in board.as_seen_by(PUBLIC).leaderboard()["rows"] if not row["baseline"]]
    assert [row["rank"] for row in listed] == [1, 2, 2, 4, 5, None]
    for caller, row in zip(teams, listed, strict=True):
        assert board.as_seen_by(caller).own_standing() == {**row, "you": True}


def test_a_certificate_that_cannot_be_computed_does_not_lose_the_reply(
    boards, make_folder, join, submit, predict, monkeypatch
):
    def fail(*_, **__):
        raise InvalidSetting("no")

    board = boards.create(make_folder(beta=0.0123))  # which no certificate in a cache is for
    ada, _ = join(boards, board, "Ada")
    monkeypatch.setattr("ladderboard.bounds.certificate_of_record", fail)
    answer = submit(board, ada, predict(30)).describe()
    assert (answer["improved"], answer["question"]) == (True, 1)
    assert answer["bound"]["assumptions"] == ["No certificate could be computed: no"]
    page = board.as_seen_by(PUBLIC)
    assert page.history()["points"][-1]["bound"]["vacuous"]
    assert page.certificate().vacuous
    assert page.leaderboard()["rows"]


def test_a_duplicate_submission_is_free_for_the_same_team_only(
    boards, board, join, submit, predict
):
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    first = submit(board, ada, predict(30), idempotency_key="a")
    repeated = submit(board, ada, predict(30), idempotency_key="a")
    assert repeated.again
    assert (repeated.id, repeated.release) == (first.id, first.release)
    assert not submit(board, bob, predict(30), idempotency_key="a").again
    with pytest.raises(IdempotencyKeyReused):
        submit(board, ada, predict(31), idempotency_key="a")
    assert board.book.chain_state().asked == 2


def test_exhausted_limits_are_named_with_the_time_they_end(
    boards, board, join, submit, predict, clock, organiser
):
    ada, _ = join(boards, board, "Ada")
    for errors in (30, 20, 10):
        last = submit(board, ada, predict(errors))
        clock.now += 60
    assert last.describe()["next_submission_at"] is not None
    with pytest.raises(RateLimited) as soon:
        submit(board, ada, predict(5))
    assert soon.value.wait == 3600 - 180
    clock.now += 3600 - 180
    assert submit(board, ada, predict(5)).quota.tightest.remaining == 0
    board.amendments.amend(organiser, {"per_team": 4})
    clock.now += 7200
    with pytest.raises(BudgetSpent, match=" 4 submissions"):
        submit(board, ada, predict(4))


def test_a_share_is_reserved_and_the_pool_is_not(boards, make_folder, join, submit, predict):
    rules = {"questions": "11", "teams": "3", "per_team": "11"}
    board = boards.create(make_folder(**rules))
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    for errors in range(5):  # a share of 3, and the pool of 2
        submit(board, ada, predict(100 + errors))
    with pytest.raises(BudgetSpent, match="shared pool is empty"):
        submit(board, ada, predict(1))
    for errors in range(3):
        submit(board, bob, predict(100 + errors))
    with pytest.raises(BudgetSpent):
        submit(board, bob, predict(1))
    assert board.book.chain_state().asked == 8


def test_the_time_of_receipt_decides_about_the_deadline(
    boards, make_folder, join, submit, predict, clock
):
    clock.now = 1_800_000_000 - 1
    board = boards.create(make_folder(start="2027-01-15T08:00:00Z", end="2027-01-15T08:10:00Z"))
    ada, _ = join(boards, board, "Ada")
    with pytest.raises(NotOpen, match="opens at 2027-01-15 08:00 UTC"):
        submit(board, ada, predict(30))
    clock.now = 1_800_000_000 + 700
    submit(board, ada, predict(30), received=1_800_000_000 + 599)
    with pytest.raises(NotOpen, match="The deadline was 2027-01-15 08:10 UTC"):
        submit(board, ada, predict(20), received=1_800_000_000 + 600)
    assert submit(board, ada, predict(30), received=1_800_000_000 + 700).again


def test_budgets_hold_for_many_threads(boards, make_folder, join, submit, predict):
    board = boards.create(make_folder(questions="20", teams="2", per_team="20"))
    callers = [join(boards, board, name)[0] for name in ("Ada", "Bob")]

    def ask(errors):
        try:
            return submit(board, callers[errors % 2], predict(errors)).entry
        except BudgetSpent:
            return None

    with ThreadPoolExecutor(8) as threads:
        answered = [answer for answer in threads.map(ask, range(60)) if answer is not None]
    assert len(answered) == board.book.chain_state().asked == 20
    assert board.book.check() == 20


def test_team_places_are_limited_and_names_are_unique(boards, board, organiser):
    board.teams.create(organiser, "Ada")
    for name in ("ada", " A d a ", "ＡＤＡ"):
        with pytest.raises(Conflict, match="name"):
            board.teams.create(organiser, name)
    with pytest.raises(NotAllowed, match="invitation"):
        board.teams.register("Eve")
    invitation = board.teams.invite_team(organiser)
    registered = board.teams.register("Eve", invitation)
    assert boards.caller_by_token(registered.token, board.slug).team == 2
    with pytest.raises(NotAllowed, match="used before"):
        board.teams.register("Mallory", invitation)
    board.teams.create(organiser, "Third")
    board.teams.create(organiser, "Fourth")
    with pytest.raises(Conflict, match="has 4 teams"):
        board.teams.create(organiser, "Fifth")


def test_tokens_are_revoked_and_belong_to_one_board(boards, board, make_folder, organiser, clock):
    second = boards.create(make_folder(slug="second"))
    team = board.teams.create(organiser, "Ada")
    with pytest.raises(NotAllowed, match="unknown"):
        boards.caller_by_token(team.token, second.slug)
    caller = boards.caller_by_token(team.token, board.slug)
    fresh = board.teams.rotate_token(caller)
    with pytest.raises(NotAllowed, match="unknown"):
        boards.caller_by_token(team.token, board.slug)
    assert boards.caller_by_token(fresh.token, board.slug).team == caller.team
    first = boards.create_first_token()
    assert boards.create_first_token() is None
    assert boards.caller_by_token(first, board.slug).role.name == "ORGANISER"
    board.teams.revoke_team_tokens(organiser, team.id)
    with pytest.raises(NotAllowed):
        boards.caller_by_token(fresh.token, board.slug)


def test_the_finals_are_scored_once_on_the_private_split(
    boards, make_folder, join, submit, predict, organiser
):
    board = boards.create(make_folder(finals="{selections: 2}"))
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    submit(board, ada, predict(10, 30))
    best_public = submit(board, bob, predict(20, 20))
    best_private = submit(board, bob, predict(40, 5))
    board.closer.select_submissions(bob, [best_private.id])
    with pytest.raises(NotAllowed):
        board.closer.close(ada)
    final = board.closer.close(organiser)
    assert [
        (row["rank"], row["team"]["name"], row["score"], row["move"]) for row in final["rows"]
    ] == [
        (1, "Bob", 0.05, 1),
        (2, "Ada", 0.3, -1),
    ]
    assert final["rows"][0]["low"] < 0.05 < final["rows"][0]["high"]
    finals = board.as_seen_by(PUBLIC).finals()
    assert [row.pop("loss") for row in finals["rows"]] == [0.05, 0.3]
    assert finals.pop("prizes") == []
    # The public sees what was committed to and more; this board shows losses.
    pairs = zip(finals["rows"], final["rows"], strict=True)
    rows = [{name: shown[name] for name in stored} for shown, stored in pairs]
    assert {**{name: finals[name] for name in final}, "rows": rows} == final
    with pytest.raises(NotOpen, match="closed"):
        submit(board, ada, predict(1))
    with pytest.raises(NotOpen):
        board.closer.select_submissions(bob, [best_public.id])
    with pytest.raises(NotOpen):
        board.closer.close(organiser)
    assert board.book.check() == 3


def test_labels_are_corrected_in_a_new_epoch(boards, make_folder, join, submit, predict, organiser):
    board = boards.create(make_folder())
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(30))
    submit(board, ada, predict(60))
    labels = np.arange(400) % 2
    labels[:15] ^= 1
    count = board.amendments.correct_labels(organiser, make_folder(labels=labels).table)
    assert count == 1
    rows = board.as_seen_by(PUBLIC).leaderboard()["rows"]
    assert [(row["released"], row["submissions"]) for row in rows] == [(0.05, 2)]
    assert board.book.chain_state().asked == 3
    assert board.book.chain_state().ladders == 3
    assert submit(board, ada, predict(30)).again
    assert submit(board, ada, predict(15)).release.value == 0.0
    assert board.row().status == "open"
    assert board.book.check() == 4
    assumptions = board.as_seen_by(PUBLIC).certificate().assumptions
    assert any(
        "each new label depends on its own example, its old label" in assumption
        for assumption in assumptions
    )
    assert any(
        "nothing that the owner does in public, depends on" in assumption
        for assumption in assumptions
    )


def test_a_restored_old_file_is_noticed_and_charged(tmp_path, make_folder, join, submit, predict):
    storage = SqliteStorage(tmp_path / "boards.db", create=True)
    boards = Boards(storage, MixedStore(storage, tmp_path / "files"))
    board = boards.create(make_folder())
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(30))
    boards.close()
    shutil.copy(tmp_path / "boards.db", tmp_path / "copy.db")
    for errors in (20, 10):
        submit(board, ada, predict(errors))
    boards.close()
    shutil.copy(tmp_path / "copy.db", tmp_path / "boards.db")
    storage = SqliteStorage(tmp_path / "boards.db")
    boards = Boards(storage, MixedStore(storage, tmp_path / "files"))
    with pytest.raises(StaleCopy):
        boards.open("first")
    with pytest.raises(InvalidSetting, match="at least 2"):
        boards.adopt_old_copy("first", 1)
    board = boards.adopt_old_copy("first", 5)
    assert submit(board, ada, predict(20)).quota.limits[-1].remaining
    state = board.book.chain_state()
    assert (state.asked, state.charged, state.lost) == (2, 5, 1)
    assert board.book.check() == 2
    boards.close()


def test_an_interrupted_close_or_correction_is_completed(
    boards, make_folder, join, submit, predict, organiser, monkeypatch
):
    board = boards.create(make_folder(finals="{selections: 1}"))
    callers = [join(boards, board, name)[0] for name in ("Ada", "Bob", "Cyd")]
    for index, caller in enumerate(callers):
        submit(board, caller, predict(30 + index))
    labels = np.arange(400) % 2
    labels[:15] ^= 1
    table = make_folder(labels=labels).table
    read_stored, calls = board.read_stored_file, iter(range(100))

    def stored(location):
        if next(calls) == 4:  # three were looked at before anything changed, one was asked again
            raise RuntimeError("power cut")
        return read_stored(location)

    monkeypatch.setattr(board, "read_stored_file", stored)
    with pytest.raises(RuntimeError):
        board.amendments.correct_labels(organiser, table)
    monkeypatch.setattr(board, "read_stored_file", read_stored)
    assert (board.row().status, board.row().epoch, board.row().replayed) == ("paused", 1, 1)
    assert board.amendments.correct_labels(organiser, table) == 2
    rows = board.as_seen_by(PUBLIC).leaderboard()["rows"]
    assert [row["released"] for row in rows] == [0.05, 0.05, 0.06]
    assert board.row().status == "open"

    monkeypatch.setattr(board, "read_stored_file", lambda location: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        board.closer.close(organiser)
    monkeypatch.setattr(board, "read_stored_file", read_stored)
    with pytest.raises(NotOpen, match="being closed"):
        submit(board, callers[0], predict(1))
    board.amendments.resume(organiser)
    submit(board, callers[0], predict(1))
    assert len(board.closer.close(organiser)["rows"]) == 3
    assert board.book.check() == 7


def test_a_disqualified_team_has_no_rank_in_the_finals(
    boards, make_folder, join, submit, predict, organiser
):
    board = boards.create(make_folder(finals="{selections: 3}"))
    callers = {name: join(boards, board, name)[0] for name in ("Ada", "Bob", "Cyd")}
    for position, caller in enumerate(callers.values()):
        submit(board, caller, predict(10 * position, 10 * position))
    selected = [
        submit(board, callers["Cyd"], predict(60 + index, 5 - index)).id for index in range(3)
    ]
    board.closer.select_submissions(callers["Cyd"], selected)
    board.amendments.amend(organiser, {"finals": {"selections": 1}})
    board.closer.close(organiser)
    board.teams.disqualify(organiser, board.as_seen_by(callers["Ada"]).team()["id"])
    rows = board.as_seen_by(PUBLIC).finals()["rows"]
    ranking = [(row["rank"], row["team"]["name"], row["public_rank"], row["move"]) for row in rows]
    assert ranking == [(1, "Cyd", 2, 1), (2, "Bob", 1, -1)]
    assert rows[0]["submission"] == selected[0]  # the best of them on the public rows


def test_without_a_selection_the_best_exact_public_scores_take_part(
    boards, make_folder, join, submit, predict, organiser
):
    board = boards.create(
        make_folder(mechanism="{name: ladder, step: 0.1}", finals="{selections: 2}")
    )
    ada, bob = (join(boards, board, name)[0] for name in ("Ada", "Bob"))
    answers = [
        submit(board, ada, predict(*wrong))
        for wrong in ((90, 0), (45, 30), (38, 20), (39, 10), (41, 0))
    ]
    assert [answer.release.improved for answer in answers] == [True, True, False, False, False]
    choice = submit(board, bob, predict(60, 40))
    submit(board, bob, predict(5, 0))
    board.closer.select_submissions(bob, [choice.id])
    labels = np.arange(400) % 2
    labels[38] ^= 1  # the third has 39 errors now, the fourth 38; neither is scored again
    assert board.amendments.correct_labels(organiser, make_folder(labels=labels).table) == 2

    rows = board.closer.close(organiser)["rows"]
    assert [(row["team"]["name"], row["submission"], row["score"]) for row in rows] == [
        ("Ada", answers[3].id, 0.1),
        ("Bob", choice.id, 0.4),
    ]
    assert board.as_seen_by(ada).selections() == [answers[2].id, answers[3].id]
    assert board.as_seen_by(bob).selections() == [choice.id]
    seen = board.as_seen_by(ada).submissions()
    assert [row["number"] for row in seen if row["selected"]] == [4, 3]
