"""The best over time with its bound, a team's own history, and activity by team."""

import math
from itertools import pairwise

import pytest

from ladderboard.board import PUBLIC, Boards, Caller, Role
from ladderboard.board._repository import list_thinned_records
from ladderboard.board._standings import MAX_BINS, MAX_POINTS, choose_bins
from ladderboard.errors import NotAllowed, NotFound

EVALUATOR = Caller(Role.EVALUATOR)


@pytest.fixture
def board_in_use(boards, make_folder, join, submit, predict, clock):
    """Return a board with three records on two ladders, an hour apart, and two team callers."""
    board = boards.create(make_folder(loss="accuracy", ladder="team"))
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    for caller, errors in ((ada, 60), (bob, 80), (bob, 45), (ada, 59), (ada, 30)):
        clock.now += 3600
        submit(board, caller, predict(errors))
    return board, ada, bob


def times(history):
    return [point["time"] for point in history["points"]]


def test_each_record_has_the_certificate_of_its_time(board_in_use, clock):
    board, _, _ = board_in_use
    clock.now += 600
    view = board.as_seen_by(PUBLIC)
    history, records = view.history(), view.records()
    assert [point["released"] for point in history["points"]] == [0.2, 0.15, 0.1, 0.1]
    assert [point["display"] for point in history["points"]] == [0.8, 0.85, 0.9, 0.9]
    assert [point["entry"] for point in history["points"]] == [
        *(record["entry"] for record in records),
        None,
    ]
    assert times(history) == [*(record["time"] for record in records), "2027-01-15T13:10:00Z"]
    assert [point["used"] for point in history["points"]] == [1, 3, 5, 5]
    assert (history["records"], history["thinned"]) == (3, False)
    with board.reading() as reading:
        for point, record in zip(history["points"], records, strict=False):
            state = reading.chain_state_at(record["entry"] + 1)
            certificate = board.meter(board.row(), state).certificate(record["loss"])
            assert point["bound"]["low"] == certificate.low
            assert point["bound"]["high"] == certificate.high
    now = view.summary()["bound"]["loss"]
    assert history["points"][-1]["bound"]["low"] == now["low"]
    assert history["points"][-1]["bound"]["high"] == now["high"]
    assert not now["vacuous"]


def test_displayed_interval_ends_are_rounded_outwards(board_in_use):
    board, _, _ = board_in_use
    for point in board.as_seen_by(PUBLIC).history()["points"]:
        bound = point["bound"]
        low, high = bound["display"]["low"], bound["display"]["high"]
        assert 0 <= low <= 1 - bound["high"] < low + 1e-4
        assert 1 >= high >= 1 - bound["low"] > high - 1e-4
        assert low < point["display"] < high


def test_a_weighted_board_has_a_band_around_its_release(boards, make_folder, join, submit, predict):
    from ladderboard.files import read_holdout

    folder = make_folder()
    rows = "\n".join(
        f"{index},{label},{split},{1 + index % 3}"
        for index, (label, split) in enumerate(
            zip(folder.table.labels, folder.table.split, strict=True)
        )
    )
    folder.table = read_holdout(f"id,label,split,weight\n{rows}\n".encode())
    board = boards.create(folder)
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(60))
    view = board.as_seen_by(PUBLIC)
    point, now = view.history()["points"][-1], view.summary()["bound"]["loss"]
    assert now["differences"]
    assert point["bound"]["low"] == max(point["released"] + now["low"], 0)
    assert point["bound"]["high"] == min(point["released"] + now["high"], 1)


def test_a_vacuous_certificate_is_marked(boards, make_folder, join, submit, predict):
    board = boards.create(make_folder(mechanism="{name: noisy, sd: 0.01}"))
    ada, _ = join(boards, board, "Ada")
    assert board.as_seen_by(PUBLIC).history()["points"] == []
    submit(board, ada, predict(60))
    point = board.as_seen_by(PUBLIC).history()["points"][-1]
    assert point["bound"]["vacuous"]
    assert (point["bound"]["low"], point["bound"]["high"]) == (0, 1)


def test_a_frozen_or_hidden_history_reveals_nothing_new(
    board_in_use, submit, predict, organiser, clock
):
    board, _, bob = board_in_use
    board.amendments.amend(organiser, {"visibility": "frozen"})
    history_before = board.as_seen_by(PUBLIC).history()
    clock.now += 3600
    submit(board, bob, predict(6))
    assert board.as_seen_by(PUBLIC).history() == board.as_seen_by(bob).history() == history_before
    assert board.as_seen_by(EVALUATOR).history()["points"][-1]["released"] == 0.02
    board.amendments.amend(organiser, {"visibility": "hidden"})
    for caller in (PUBLIC, bob):
        with pytest.raises(NotAllowed, match="hidden"):
            board.as_seen_by(caller).history()
    assert len(board.as_seen_by(organiser).history()["points"]) == 5


def test_a_disqualified_team_leaves_the_history(board_in_use, organiser):
    board, _, bob = board_in_use
    view, team = board.as_seen_by(PUBLIC), board.as_seen_by(bob).team()["id"]
    everything = view.history()
    board.teams.disqualify(organiser, team)
    assert [point["released"] for point in view.history()["points"]] == [0.2, 0.1, 0.1]
    board.teams.disqualify(organiser, team, reinstate=True)
    assert view.history() == everything


def test_a_record_set_by_another_process_is_in_the_history(boards, board_in_use, submit, predict):
    board, ada, _ = board_in_use
    history_before = board.as_seen_by(PUBLIC).history()
    elsewhere = Boards(boards.storage, boards.store, environment=boards.environment).open(
        board.slug
    )
    submit(elsewhere, ada, predict(15))
    history_after = board.as_seen_by(PUBLIC).history()
    assert [point["released"] for point in history_after["points"][3:]] == [0.05, 0.05]
    assert history_after["points"][:3] == history_before["points"][:3]


def test_the_history_of_a_closed_board_ends_with_it(board_in_use, organiser, clock):
    board, _, _ = board_in_use
    board.closer.close(organiser)
    ended = board.as_seen_by(PUBLIC).history()
    clock.now += 10**6
    assert board.as_seen_by(PUBLIC).history() == ended


def test_an_amended_budget_changes_no_bound(board_in_use, organiser):
    """Weights that hold for any number of questions have their half from the start."""
    board, _, _ = board_in_use
    view = board.as_seen_by(PUBLIC)
    points_before = view.history()["points"]
    for questions in (200, 150, 1000):
        board.amendments.amend(organiser, {"questions": questions})
        points_after = view.history()["points"]
        assert [point["bound"] for point in points_after] == [
            point["bound"] for point in points_before
        ]
    assert points_after[-1]["bound"]["low"] == view.summary()["bound"]["loss"]["low"]


@pytest.mark.parametrize(
    "count", [1, MAX_POINTS, MAX_POINTS + 1, 3 * MAX_POINTS, 3 * MAX_POINTS + 1, 777]
)
def test_many_records_are_thinned_evenly(board_in_use, count):
    board, _, _ = board_in_use
    with board.book.storage.write_transaction(board.book.name) as view:
        view.execute("DELETE FROM main.record")
        for entry in range(count):
            row = (view.book_id, entry, 0, 0, 1, 1 - entry / 1000)
            view.execute(
                "INSERT INTO main.record (book, entry, epoch, time, team, value) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
        rows, total = list_thinned_records(view, 0, 10**6, MAX_POINTS)
    entries = [entry for entry, _ in rows]
    assert total == count
    assert (entries[0], entries[-1]) == (0, count - 1)
    assert len(entries) == len(set(entries)) <= MAX_POINTS + 1
    assert len(entries) >= min(count, MAX_POINTS // 2)
    gaps = {right - left for left, right in pairwise(entries[:-1])}
    assert len(gaps) <= 1


def test_certificates_are_computed_once(board_in_use, monkeypatch):
    from ladderboard.holdout import Meter

    board, _, _ = board_in_use
    history = board.as_seen_by(PUBLIC).history()
    monkeypatch.setattr(Meter, "certificate", None)
    assert board.as_seen_by(EVALUATOR).history() == history


def test_a_team_sees_its_own_history_and_no_other(board_in_use, organiser):
    board, ada, bob = board_in_use
    own_history = board.as_seen_by(ada).own_history()
    assert [point["number"] for point in own_history["points"]] == [1, 2, 3]
    assert [point["loss"] for point in own_history["points"]] == [0.2, 0.2, 0.1]
    assert [point["improved"] for point in own_history["points"]] == [True, False, True]
    assert [point["display"] for point in own_history["points"]] == [0.8, 0.8, 0.9]
    assert not own_history["thinned"]
    team = board.as_seen_by(ada).team()["id"]
    assert board.as_seen_by(organiser).own_history(team) == own_history
    with pytest.raises(NotFound):
        board.as_seen_by(bob).own_history(team)
    with pytest.raises(NotAllowed):
        board.as_seen_by(PUBLIC).own_history()


def test_on_one_ladder_a_team_of_a_hidden_board_does_not_see_records_of_others(
    boards, make_folder, join, submit, predict, organiser
):
    board = boards.create(make_folder(ladder="board"))
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    submit(board, ada, predict(60))
    board.amendments.amend(organiser, {"visibility": "hidden"})
    submit(board, bob, predict(30))
    submit(board, ada, predict(50))
    own_history = board.as_seen_by(ada).own_history()
    assert [point["loss"] for point in own_history["points"]] == [0.2, None]


def test_scores_are_displayed_too(boards, make_folder, join, submit, predict):
    board = boards.create(make_folder(loss="accuracy", mechanism="exact"))
    ada, _ = join(boards, board, "Ada")
    for errors in (30, 60):
        submit(board, ada, predict(errors))
    points = board.as_seen_by(ada).own_history()["points"]
    assert [(point["display"], point["shown"]) for point in points] == [(0.9, 0.9), (0.9, 0.8)]


def test_activity_counts_every_question_once(board_in_use, organiser):
    board, ada, bob = board_in_use
    activity = board.as_seen_by(EVALUATOR).activity()
    assert activity["questions"] == 5
    rows = [
        (team["team"]["name"], team["questions"], team["improved"]) for team in activity["teams"]
    ]
    assert rows == [("Ada", 3, 2), ("Bob", 2, 2)]
    assert activity["teams"][0]["last"] == "2027-01-15T13:00:00Z"
    assert activity["others"] == {"teams": 0, "questions": 0}
    bins = activity["bins"]
    assert len(bins) <= MAX_BINS
    assert sum(bin_["questions"] for bin_ in bins) == 5
    assert sum(bin_["improved"] for bin_ in bins) == 4
    assert all(previous["end"] == following["start"] for previous, following in pairwise(bins))
    assert bins[0]["start"] <= "2027-01-15T09:00:00Z"
    assert bins[-1]["end"] > "2027-01-15T13:00:00Z"
    for caller in (PUBLIC, ada, bob):
        with pytest.raises(NotAllowed):
            board.as_seen_by(caller).activity()


def test_activity_of_teams_leaves_out_baselines(
    boards, make_folder, join, submit, predict, organiser, tmp_path
):
    folder = make_folder(baselines="[{name: Half, file: half.csv}]", ladder="team")
    folder.baselines["Half"] = tmp_path / "half.csv"
    folder.baselines["Half"].write_bytes(predict(100))
    board = boards.create(folder)
    submit(board, join(boards, board, "Ada")[0], predict(60))
    activity = board.as_seen_by(organiser).activity()
    assert [team["team"]["name"] for team in activity["teams"]] == ["Ada"]
    assert activity["others"] == {"teams": 0, "questions": 0}
    assert activity["questions"] == 2


def test_activity_before_the_first_question(boards, make_folder, organiser):
    board = boards.create(make_folder())
    activity = board.as_seen_by(organiser).activity()
    assert (activity["questions"], activity["teams"], activity["bins"]) == (0, [], [])


def test_less_active_teams_are_summed_up(board_in_use, organiser, monkeypatch):
    monkeypatch.setattr("ladderboard.board._standings._MAX_TEAMS", 1)
    activity = board_in_use[0].as_seen_by(organiser).activity()
    assert [team["team"]["name"] for team in activity["teams"]] == ["Ada"]
    assert activity["others"] == {"teams": 1, "questions": 2}


@pytest.mark.parametrize("length", [0, 1, 59, 60, 3600, 86_399, 10**6, 10**8, 10**10, 10**11])
@pytest.mark.parametrize("first", [0, 59, 1_800_000_123])
def test_activity_has_few_bins_and_counts_everything(first, length):
    last = first + length
    start, width = choose_bins(first, last)
    assert start <= first
    assert 1 <= (last - start) // width + 1 <= MAX_BINS
    assert start % math.gcd(width, 86_400) == 0


def test_a_leading_baseline_is_no_point_of_the_history(
    boards, make_folder, join, submit, predict, tmp_path
):
    folder = make_folder(baselines="[{name: Good, file: good.csv}]", ladder="team")
    folder.baselines["Good"] = tmp_path / "good.csv"
    folder.baselines["Good"].write_bytes(predict(20))
    board = boards.create(folder)
    view = board.as_seen_by(PUBLIC)
    assert view.history()["points"] == []
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(100))
    assert [point["display"] for point in view.history()["points"]] == [0.33]


def test_a_release_below_0_has_an_error(boards, make_folder):
    """Without a grid, the noise of the paper's Shaky Ladder may release less than 0."""
    settings = "{name: shaky_ladder, step: 0.01, compare_noise: 0.01, release_noise: 0.02}"
    board = boards.create(make_folder(mechanism=settings))
    errors = board.as_seen_by(PUBLIC).score_errors({"below": -0.03, "none": 0.0, "above": 1.01})
    assert errors["below"] == errors["none"] == errors["above"] > 0.02
