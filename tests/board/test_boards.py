"""All boards of a database: the key file, and folders that are refused."""

import secrets
import time

import pytest

from ladderboard._formatting import format_time
from ladderboard.board import (
    PUBLIC,
    Boards,
    DatabaseStore,
    FolderStore,
    IncomingSubmission,
    hash_token,
)
from ladderboard.errors import InvalidRules, NotAllowed, WrongKey
from ladderboard.ledger import PostgresStorage
from ladderboard.ledger._storage import _postgres


def test_a_database_has_one_key_file_or_none(storage, boards, tmp_path):
    with pytest.raises(WrongKey, match="not encrypted"):
        Boards(storage, boards.store, key_file=tmp_path / "key")


def test_an_encrypted_database_needs_its_key_file(storage, tmp_path):
    store = FolderStore(tmp_path / "files")
    Boards(storage, store, key_file=tmp_path / "key")
    Boards(storage, store, key_file=tmp_path / "key")
    with pytest.raises(WrongKey):
        Boards(storage, store, key_file=tmp_path / "another")
    with pytest.raises(WrongKey):
        Boards(storage, store)


def test_a_baseline_that_cannot_be_scored_stops_the_creation(boards, make_folder, tmp_path):
    (tmp_path / "bad.csv").write_text("id,prediction\n0,1\n")
    folder = make_folder()
    folder.baselines["Half"] = tmp_path / "bad.csv"
    with pytest.raises(InvalidRules, match="'Half' cannot be scored"):
        boards.create(folder)
    assert boards.list() == []


def test_summaries_are_reused_until_a_board_or_its_phase_changes(
    boards, make_folder, join, submit, predict, clock
):
    ends = clock.now + 1000
    phases = f"[{{name: all, end: {format_time(ends)}}}]"
    board = boards.create(make_folder(phases=phases))
    other = boards.create(make_folder(slug="second"))

    def read():
        summaries = boards.summaries(["first", "second"], lambda _: PUBLIC)
        for opened, summary in zip((board, other), summaries, strict=True):
            assert summary.fields() == opened.as_seen_by(PUBLIC).summary()
        return summaries

    before = read()
    assert [id(summary) for summary in read()] == [id(summary) for summary in before]
    caller, _ = join(boards, board, "Ada")
    submit(board, caller, predict(30))
    first, second = read()
    assert first.fields()["best"]["loss"] == pytest.approx(0.1)
    assert second is before[1]
    clock.now = ends
    assert read()[0].fields()["phase"] is None


@pytest.mark.parametrize("visibility", ["hidden", "frozen"])
def test_summaries_of_secret_boards_are_not_kept(boards, make_folder, visibility):
    boards.create(make_folder(visibility=visibility))
    first, again = (boards.summaries(["first"], lambda _: PUBLIC)[0] for _ in range(2))
    assert first.version is None
    assert first is not again


def test_an_upload_takes_four_messages_to_a_server(
    postgres, make_folder, predict, organiser, monkeypatch
):
    storage = PostgresStorage(postgres.url(), create=True, schema=f"b_{secrets.token_hex(6)}")
    boards = Boards(storage, DatabaseStore(storage))
    created, now = boards.create(make_folder()), int(time.time())
    team, scorer = created.teams.create(organiser, "Ada"), created.scorer()

    def upload(errors):
        incoming = IncomingSubmission(scorer.read(predict(errors)), now)
        messages.clear()
        with boards.read_ahead("first", [hash_token(team.token)]):
            board = boards.open_if_public("first")
            caller = boards.caller_by_token(team.token, "first")
            board.submissions.authorize_upload(caller, now)
        return board.submit(caller, incoming)

    run, messages = _postgres.CommandRunner.run, []

    def count(runner, commands, *rest):
        messages.append(len(commands))
        return run(runner, commands, *rest)

    monkeypatch.setattr(_postgres.CommandRunner, "run", count)
    assert [upload(errors).number for errors in (40, 30, 20)] == [1, 2, 3]
    # To authorize it, before it is scored, with the lock, and with the commit.
    assert len(messages) == 4
    assert messages[:2] == [4, 3]
    created.teams.rotate_token(organiser, team.id)
    with pytest.raises(NotAllowed):
        upload(10)
    boards.close()
