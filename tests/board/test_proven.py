"""Records of boards that are proven better than the record before on their ladder."""

import json
import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.board import Boards as OpenBoards
from ladderboard.board import (
    FolderStore,
    dump_board,
    read_rules,
    restore_board,
    write_board_bundle,
)
from ladderboard.errors import BrokenLedger
from ladderboard.files import read_holdout
from ladderboard.holdout import RecordProver
from ladderboard.ledger import SqliteStorage, make_secret_key
from ladderboard.verify import verify_bundle
from support.board_stubs import FolderContent, ManualClock
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import read_records, write_records
from support.verify.second_verifier import run_second_verifier

from .conftest import fixed_environment

N = 3_000
LABELS = np.random.default_rng(3).integers(2, size=N)
STEPS = (1_200, 900, 870, 500)


def folder(extra="", *, labels=LABELS, weight=None, group=None, **settings):
    lines = {"slug": "first", "title": "First", "metric": "accuracy", "questions": 100, "teams": 4}
    text = "\n".join(f"{key}: {value}" for key, value in {**lines, **settings}.items())
    columns = {"id": np.arange(len(labels)), "label": labels, "weight": weight, "group": group}
    table = read_holdout({name: part for name, part in columns.items() if part is not None})
    return FolderContent(read_rules(f"{text}\n{extra}"), table)


def file(values):
    return ("id,prediction\n" + "\n".join(f"{i},{v}" for i, v in enumerate(values))).encode()


def wrong(errors, shift=0, labels=LABELS):
    """Return a file with this many errors, from a row on."""
    flipped = np.zeros(N, dtype=int)
    flipped[(np.arange(errors) + shift) % N] = 1
    return file(labels ^ flipped)


def entries(board):
    return [fields for _, fields in board.book.entries() if fields["kind"] == "question"]


def test_a_record_says_whether_it_is_proven(boards, join, submit, organiser):
    board = boards.create(folder())
    (ada, _), (bob, _) = (join(boards, board, name) for name in ("Ada", "Bob"))
    answers = [submit(board, ada, wrong(errors)) for errors in (1_200, 900, 899)]
    # Better, by more than the step and all noise, and wrong elsewhere.
    answers.append(submit(board, ada, wrong(735, shift=1_500)))
    answers.append(submit(board, bob, wrong(300)))
    improved = [answer.release.improved for answer in answers]
    assert improved == [True, True, False, True, True]
    marks = [None, True, None, False, None]  # the first on a ladder has none before it
    assert [answer.release.proven for answer in answers] == marks
    assert [answer.describe()["proven"] for answer in answers] == marks
    assert [fields["proven"] for fields in entries(board)] == marks
    assert "It is proven better than the best before." in answers[1].reason
    assert "proven" not in answers[3].reason
    view = board.as_seen_by(ada)
    assert [row["proven"] for row in view.submissions()] == [False, None, True, None]
    assert view.submission(answers[1].id)["proven"] is True
    rows = view.leaderboard()["rows"]
    assert [(row["team"]["name"], row["proven"]) for row in rows] == [("Bob", None), ("Ada", False)]
    assert [record["proven"] for record in view.records()] == [None, True, False, None]
    assert submit(board, ada, wrong(900)).release.proven  # again
    assert board.book.check() == 5


def test_one_ladder_for_all_compares_with_the_record_of_another_team(boards, join, submit):
    board = boards.create(folder(ladder="board"))
    (ada, _), (bob, _) = (join(boards, board, name) for name in ("Ada", "Bob"))
    answers = [submit(board, ada, wrong(1_200)), submit(board, bob, wrong(600))]
    assert [answer.release.proven for answer in answers] == [None, True]


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_that_are_not_zero_one_groups_and_weights(boards, join, submit, weighted):
    labels = np.linspace(0, 1, N).round(6)
    weight = np.where(np.arange(N) < 1_000, 1.0, 2.0) if weighted else None
    content = folder(
        metric="{name: absolute, range: [0, 1]}", labels=labels, weight=weight,
        group=np.arange(N) // 2,
    )  # fmt: skip
    board = boards.create(content)
    ada, _ = join(boards, board, "Ada")
    answers = [submit(board, ada, file(values)) for values in (1 - labels, labels)]
    assert [answer.release.proven for answer in answers] == [None, True]


@pytest.mark.parametrize(
    "settings",
    [
        {"metric": "roc_auc"},
        {"mechanism": "{name: growing_ladder, step: 1}"},
        {"metric": "brier", "metrics": "[{name: roc_auc, show: live}]"},
    ],
    ids=["statistic", "named mechanism", "several live metrics"],
)
def test_where_nothing_is_tested_the_mark_is_absent(boards, join, submit, settings):
    board = boards.create(folder(**settings))
    ada, _ = join(boards, board, "Ada")
    answers = [submit(board, ada, wrong(errors)) for errors in (1_400, 200)]
    assert [answer.release.improved for answer in answers] == [True, True]
    assert [answer.describe()["proven"] for answer in answers] == [None, None]
    assert "proven" not in board.book.opening["rules"]
    assert all("proven" not in fields for fields in entries(board))


def test_certificates_count_a_bit_for_every_record(boards, join, submit, organiser):
    board = boards.create(folder())
    ada, _ = join(boards, board, "Ada")
    for errors in (*STEPS, 499):  # the last is no record; the records before it were seen
        submit(board, ada, wrong(errors))
    row, state = board.row(), board.book.chain_state()
    meter = board.meter(row, state)
    plain = type(meter)(
        meter.mechanism, {**meter.rules, "proven": False}, state, read_changes=meter.read_changes
    )
    bits = meter.certificate(None).nats - plain.certificate(None).nats
    assert bits == pytest.approx(state.changes * math.log(2))
    shown = board.as_seen_by(organiser).certificate()
    assert shown.nats == pytest.approx(meter.certificate(row.best).nats)


@pytest.mark.parametrize("visibility", ["hidden", "frozen"])
def test_others_cannot_be_seen_by_the_mark(boards, join, submit, organiser, visibility):
    """Its price counts what others were shown, so teams do not see it on such boards."""
    board = boards.create(folder())
    ada, _ = join(boards, board, "Ada")
    board.amendments.amend(organiser, {"visibility": visibility})
    answers = [submit(board, ada, wrong(errors)) for errors in (1_200, 600)]
    assert [fields["proven"] for fields in entries(board)] == [None, True]
    assert [answer.describe()["proven"] for answer in answers] == [None, None]
    assert "proven" not in answers[1].reason
    view = board.as_seen_by(ada)
    assert [row["proven"] for row in view.submissions()] == [None, None]
    assert board.as_seen_by(organiser).leaderboard()["rows"][0]["proven"] is True
    board.amendments.amend(organiser, {"visibility": "public"})
    assert view.leaderboard()["rows"][0]["proven"] is True


def test_a_frozen_board_keeps_the_marks_that_were_seen(boards, join, submit, organiser):
    board = boards.create(folder())
    ada, _ = join(boards, board, "Ada")
    for errors in (1_200, 900):
        submit(board, ada, wrong(errors))
    board.amendments.amend(organiser, {"visibility": "frozen"})
    submit(board, ada, wrong(720, shift=1_500))
    assert board.as_seen_by(ada).leaderboard()["rows"][0]["proven"] is True
    assert board.as_seen_by(organiser).leaderboard()["rows"][0]["proven"] is False


def test_corrected_labels_start_new_ladders(boards, join, submit, organiser):
    board = boards.create(folder())
    ada, _ = join(boards, board, "Ada")
    for errors in (1_200, 900):
        submit(board, ada, wrong(errors))
    labels = LABELS.copy()
    labels[-30:] ^= 1
    board.amendments.correct_labels(organiser, folder(labels=labels).table)
    view = board.as_seen_by(ada)
    assert view.submissions()[0]["proven"] is None
    assert view.leaderboard()["rows"][0]["proven"] is None
    assert submit(board, ada, wrong(300)).release.proven


def test_records_are_compared_after_a_move(tmp_path, join, submit, organiser):
    """The losses of the last record go with a dump."""
    key = make_secret_key(tmp_path / "key")
    source, target = (make_boards(tmp_path / name) for name in ("source", "target"))
    board = source.create(folder())
    ada, _ = join(source, board, "Ada")
    submit(board, ada, wrong(1_200))
    dump_board(source, "first", tmp_path / "dump", public_key=key.public, move=True)
    restore_board(target, tmp_path / "dump", secret_key=key)
    moved = target.open("first")
    assert submit(moved, ada, wrong(600)).release.proven is True


def make_boards(path):
    path.mkdir()
    storage = SqliteStorage(path / "boards.db", create=True)
    return OpenBoards(
        storage, FolderStore(path / "files"), environment=fixed_environment(ManualClock())
    )


# The third file is better than the second, and wrong on other examples.
FLIPPED = ((0, 1_200), (0, 1_000), (1_500, 2_360))
FILES = [LABELS ^ ((np.arange(N) >= low) & (np.arange(N) < high)) for low, high in FLIPPED]


def play(path, labels, join, submit):
    """Play the same game in a world; return all that can be seen of it."""
    boards = make_boards(path)
    board = boards.create(folder(labels=labels))
    ada, _ = join(boards, board, "Ada")
    seen = [submit(board, ada, file(values)).describe() for values in FILES]
    view = board.as_seen_by(ada)
    seen += [view.leaderboard(), view.submissions(), view.records()]
    seen += [
        {name: part for name, part in fields.items() if name in {"value", "improved", "proven"}}
        for fields in entries(board)
    ]
    boards.storage.close()
    for document in seen[: len(FILES)]:
        del document["receipt"]  # it opens a commitment to the submission, with a salt
    return json.loads(json.dumps(seen))


def other_labels():
    """Return other labels under which every file has the same risk, and every pair as many wins."""
    cells = sum(values << place for place, values in enumerate(FILES))
    labels = LABELS.copy()
    for cell in np.unique(cells):
        rows = np.flatnonzero(cells == cell)
        labels[rows] = LABELS[np.roll(rows, len(rows) // 3)]
    assert np.count_nonzero(labels != LABELS) > N / 4
    return labels


def test_two_worlds_cannot_be_told_apart(tmp_path, join, submit):
    first, second = (
        play(tmp_path / name, labels, join, submit)
        for name, labels in (("one", LABELS), ("two", other_labels()))
    )
    assert first == second
    assert [document["proven"] for document in first[: len(FILES)]] == [None, True, False]


def test_a_mark_that_depends_on_one_label_is_found(tmp_path, join, submit, monkeypatch):
    row = int(np.flatnonzero(other_labels() != LABELS)[0])
    monkeypatch.setattr(RecordProver, "is_proven", lambda *args: bool(args[2][row]))
    worlds = [
        play(tmp_path / name, labels, join, submit)
        for name, labels in (("one", LABELS), ("two", other_labels()))
    ]
    assert worlds[0] != worlds[1]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"metric": "{name: zero_one, classes: [0, 1]}"},
        {"metric": "{name: brier, classes: [0, 1]}"},
        {"metric": "{name: mae, range: [0, 1]}"},
        {"metric": "{name: rmse, range: [-1, 2]}"},
        {"ladder": "board", "accounts": 1},
    ],
    ids=["bets", "sign test", "scale of the model", "distances", "squares", "one ladder"],
)
def test_both_verifiers_test_records_again(tmp_path, join, submit, organiser, settings):
    boards = make_boards(tmp_path / "boards")
    board = boards.create(folder(**settings))
    (ada, _), (bob, _) = (join(boards, board, name) for name in ("Ada", "Bob"))
    for team, values in ((ada, FILES[0]), (bob, FILES[2]), (ada, FILES[1]), (ada, FILES[2])):
        submit(board, team, file(values))
    submit(board, bob, file(LABELS ^ (np.arange(N) < 100)))
    marks = [fields["proven"] for fields in entries(board)]
    assert True in marks
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    result = verify_bundle(tmp_path / "bundle")
    tested = sum(mark is not None for mark in marks)
    assert any(line.startswith(f"{tested} proven mark") for line in result.checked)
    assert run_second_verifier(tmp_path / "bundle").endswith(
        "5 questions: the chain and the tape hold"
    )
    for number, mark in enumerate(marks):
        if mark is None:
            continue
        forge = BundleForge(read_records(tmp_path / "bundle"))
        forge.of("question")[number].fields["proven"] = not mark
        path = write_records(tmp_path / f"forged {number}", forge.records())
        with pytest.raises(BrokenLedger, match="proven does not follow from the two submissions"):
            verify_bundle(path)
        assert "proven does not follow from the two submissions" in run_second_verifier(path)
    boards.storage.close()


def test_without_submissions_verifiers_say_that_marks_were_not_tested(
    tmp_path, join, submit, organiser
):
    boards = make_boards(tmp_path / "boards")
    board = boards.create(folder())
    ada, _ = join(boards, board, "Ada")
    for values in FILES:
        submit(board, ada, file(values))
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True)
    result = verify_bundle(tmp_path / "bundle")
    assert (
        "Whether 2 new bests were proven better was not tested: that takes submissions."
        in result.unchecked
    )
    boards.storage.close()


def test_a_guard_s_bundle_says_why_marks_were_not_tested(tmp_path):
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=LABELS, questions=10)
    assert [guard.ask(values).proven for values in FILES[:2]] == [None, True]
    guard.close_for_good()
    guard.reveal(tmp_path / "bundle", labels=True)
    result = verify_bundle(tmp_path / "bundle")
    assert (
        "Whether 1 new best was proven better was not tested: that takes submissions, and the "
        "bundle of a guard holds none." in result.unchecked
    )
