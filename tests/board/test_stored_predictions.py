"""Stored submissions: aligned predictions, within a quota, parsed once."""

import secrets

import numpy as np
import pytest

import ladderboard.files._predictions as reader
import ladderboard.holdout._scorer as scoring
from ladderboard.board import IncomingSubmission
from ladderboard.errors import BrokenLedger, InvalidState, QuotaExceeded
from ladderboard.holdout import AlignedPredictions
from ladderboard.server import sandbox

FILES = "SELECT place, format, size FROM main.submission WHERE book = ? ORDER BY entry"
KEEP = "UPDATE main.submission SET place = ?, format = ? WHERE book = ? AND id = ?"
PACKED = AlignedPredictions.from_values(np.ones(3)).packed


@pytest.fixture
def parsed(monkeypatch):
    """Return a list that collects the calls that parse a file in this process."""
    calls = []
    for module, name in (
        (scoring, "read_predictions"),
        (reader, "open_table"),
        (reader, "read_vector"),
    ):
        real = getattr(module, name)

        def spy(*args, real=real, name=name, **kwargs):
            calls.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, spy)
    return calls


@pytest.fixture
def board_in_use(boards, make_folder, join, submit, predict):
    """Return a board with two teams and three submissions, and the first answer."""
    board = boards.create(make_folder(finals="{selections: 2}"))
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    first = submit(board, ada, predict(60, 10))
    submit(board, ada, predict(30, 20))
    submit(board, bob, predict(50, 5))
    return board, first


def rows(board):
    with board.reading() as view:
        return view.query(FILES, (view.book_id,))


def keep_as_file(board, answer, body):
    """Store a submission as older versions did: the file as it was sent."""
    prepared = board.store.prepare(secrets.token_hex(16), body)
    with board.book.storage.write_transaction(board.book.name) as view:
        prepared.commit(view)
        view.execute(KEEP, (prepared.location, "csv", view.book_id, answer.id))


def test_the_close_and_a_correction_parse_no_file(board_in_use, make_folder, organiser, parsed):
    board, _ = board_in_use
    labels = np.arange(400) // 2 % 2
    corrected = make_folder(labels=labels).table
    parsed.clear()
    assert board.amendments.correct_labels(organiser, corrected) == 2
    final = board.closer.close(organiser)
    assert parsed == []
    assert final["selected"] == 3
    assert board.book.check() == 5


def test_files_of_older_boards_are_parsed_by_another_process(
    board_in_use, predict, organiser, parsed
):
    board, first = board_in_use
    keep_as_file(board, first, predict(60, 10))
    with pytest.raises(InvalidState, match=r"sandbox=ladderboard\.server\.sandbox"):
        board.closer.close(organiser)
    parsed.clear()
    final = board.closer.close(organiser, sandbox=sandbox)
    assert parsed == []
    assert [(row["team"]["name"], row["score"]) for row in final["rows"]] == [
        ("Bob", 0.05), ("Ada", 0.1),
    ]  # fmt: skip


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_exchanged_predictions_are_detected(board_in_use, predict, organiser):
    board, first = board_in_use
    keep_as_file(board, first, predict(0, 0))
    with pytest.raises(BrokenLedger, match="entry 3"):
        board.closer.close(organiser, sandbox=sandbox)


@pytest.mark.parametrize(
    "values", [[1, 0, 300], [0.25, 1.0, 0.0], [1.0, 0.0], [[0.5, 0.5], [1.0, 0.0]], ["a", "", "é"]]
)
def test_predictions_are_kept_as_they_were_scored(values):
    array = np.array(values)
    if array.dtype.kind == "U":
        array = array.astype(np.dtypes.StringDType())
    packed = AlignedPredictions.from_values(array)
    unpacked = AlignedPredictions.unpack(packed.packed)
    assert (unpacked.digest, unpacked.values.dtype) == (packed.digest, array.dtype)
    assert unpacked.values.tolist() == array.tolist()


@pytest.mark.parametrize("packed", [b"", b"id,prediction\n1,1\n", PACKED[:-1], PACKED + b"x"])
def test_damaged_predictions_are_not_unpacked(packed):
    with pytest.raises(InvalidState, match="damaged"):
        AlignedPredictions.unpack(packed)


def test_a_team_keeps_at_most_its_quota(boards, make_folder, join, submit, predict, organiser):
    """The quota counts stored bytes, not the size of the uploaded file."""
    board = boards.create(make_folder(files="{team_quota: 2 kB}"))
    ada, _ = join(boards, board, "Ada")
    bob, _ = join(boards, board, "Bob")
    submit(board, ada, predict(9).replace(b"\n", b" " * 2000 + b"\n"))  # 800 kB
    for errors in range(2):
        submit(board, ada, predict(errors))
    message = r"kB of its 2 kB; these would need \d+ bytes more. No submission was used"
    with pytest.raises(QuotaExceeded, match=message):
        submit(board, ada, predict(30))
    assert board.book.chain_state().asked == 3
    stored = sum(size for _, _, size in rows(board))
    assert stored == board.row().stored <= 2000
    assert all(format_ == "aligned" for _, format_, _ in rows(board))
    assert not submit(board, bob, predict(1)).again  # each team has its own quota
    board.amendments.amend(organiser, {"files": {"team_quota": 4000}})
    assert not submit(board, ada, predict(20)).again


def test_a_team_over_its_quota_is_not_scored(
    boards, make_folder, join, submit, predict, monkeypatch
):
    """Also with an authorization of a moment ago, which knows no size: scoring could be timed."""
    board = boards.create(make_folder(files="{team_quota: 600}"))
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(9))
    authorized = board.submissions.authorize_upload(ada, board.book.environment.clock())
    assert authorized.fresh is not None
    monkeypatch.setattr(type(board), "score", None)
    incoming = IncomingSubmission(board.scorer().read(predict(30)), 0)
    with pytest.raises(QuotaExceeded):
        board.submit(ada, incoming, None, authorized)


def test_by_default_each_team_has_an_equal_storage_quota(make_folder):
    rules = make_folder(teams="4", files="{quota: 1 GB}").rules
    assert (rules.team_quota, "team_quota" in rules.describe()["files"]) == (250_000_000, False)
    assert make_folder(files="{team_quota: 5 MB}").rules.team_quota == 5_000_000
