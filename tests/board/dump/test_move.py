"""A moved board continues elsewhere as it would have here; a copy stays paused."""

import stat

import pytest

from ladderboard.board import Caller, IncomingSubmission, Role, dump_board, restore_board
from ladderboard.board._model import BOARD, SUBMISSION, TABLES
from ladderboard.errors import (
    BrokenDump,
    Conflict,
    IdempotencyKeyReused,
    InvalidSetting,
    InvalidState,
    NotAllowed,
    NotFound,
    NotOpen,
    StorageFailed,
    WrongKey,
)
from ladderboard.ledger import ChainHead, SecretKey, make_secret_key, write_public_key
from support.credentials import random_secret

KEY = SecretKey.make()
ORGANISER = Caller(Role.ORGANISER)


def dump(boards, to, slug="digits", **options):
    return dump_board(boards, slug, to, public_key=KEY.public, **options)


def restore(boards, source):
    return restore_board(boards, source, secret_key=KEY)


def rows(history):
    """Return all rows without values that differ between databases."""
    by_table = {table.name: history.rows(table) for table in TABLES}
    column = list(SUBMISSION.columns).index("place")
    by_table["submission"] = [(*row[:column], *row[column + 1 :]) for row in by_table["submission"]]
    return by_table


@pytest.fixture
def moved(source_and_target, make_board, open_board, tmp_path):
    """Return the source board, the restored board, and the head of the dump."""
    source, target = source_and_target
    history = make_board(source)
    make_board(source, "other")
    head = dump(source, tmp_path / "dump", move=True)
    assert restore(target, tmp_path / "dump") == "digits"
    return history, open_board(target), head


def test_a_moved_board_is_complete(moved):
    source, target, head = moved
    assert target.book.head() == source.book.head() == head
    assert [entry for entry, _ in target.book.entries()] == [
        entry for entry, _ in source.book.entries()
    ]
    source_rows, target_rows = rows(source), rows(target)
    # Nobody signed in here, and there are no files for participants (tests/board/test_data.py).
    empty = {name for name, table in source_rows.items() if not table}
    assert empty <= {"identity", "session", "datafile"}
    status = list(BOARD.columns).index("status")
    assert (source_rows["board"][0][status], target_rows["board"][0][status]) == ("moved", "open")
    source.set_status("open")
    assert rows(target) == rows(source)
    assert len(target.bodies()) == 11
    assert target.bodies() == source.bodies()
    assert target.book.check() == source.book.check() > 12
    assert target.book.ladder_names() == source.book.ladder_names()
    assert len(target.book.ladder_names()) == 7


def test_the_source_is_sealed_after_a_move(moved):
    source, target, _ = moved
    with pytest.raises(NotOpen, match="moved to another server"):
        source.submit(20)
    fields = [fields for _, fields in target.book.entries()][-1]
    assert (fields["kind"], fields["status"]) == ("moved", "open")


def test_the_next_answers_are_what_the_source_would_have_said(moved):
    source, target, _ = moved
    source.set_status("open")  # as if nothing had happened
    for index in range(12, 24):
        answer, expected = target.submit(index), source.submit(index)
        assert answer.release == expected.release
        assert answer.quota.limits == expected.quota.limits
        assert (answer.number, answer.entry, answer.team) == (
            expected.number,
            expected.entry,
            expected.team,
        )
        assert not answer.again
    assert target.book.check() == source.book.check()
    column = list(SUBMISSION.columns).index("improved")
    improved = [row[column] for row in target.rows(SUBMISSION)]
    assert 0 < sum(improved) < len(improved)


def test_earlier_submissions_are_recognised_after_a_move(moved):
    source, target, _ = moved
    asked = target.book.chain_state().asked
    assert target.submit(8).again
    with pytest.raises(IdempotencyKeyReused):
        target.board.submit(
            Caller(Role.TEAM, 3), _incoming(target, number=30, idempotency_key="key 8")
        )
    assert target.book.chain_state().asked == asked
    assert source.book.chain_state().asked == asked


def _incoming(history, number, idempotency_key):
    body = b"id,prediction\n" + b"".join(b"%d,%d\n" % (index, number % 2) for index in range(200))
    return IncomingSubmission(
        history.board.scorer().read(body), 1_800_000_000, idempotency_key=idempotency_key
    )


def test_board_tokens_move_and_server_tokens_stay(moved, source_and_target):
    source, _, _ = moved
    target = source_and_target[1]
    for name, role in (("organiser", Role.ORGANISER), ("R\u00e9d", Role.TEAM), ("Blue", Role.TEAM)):
        assert target.caller_by_token(source.tokens[name], "digits").role == role
    with pytest.raises(NotAllowed):
        target.caller_by_token(source.tokens["server"], "digits")
    with target.storage.read_tables() as view:
        assert view.query("SELECT count(*) FROM main.credential") == [(5,)]


def test_an_invitation_works_after_a_move(moved):
    source, target, _ = moved
    with pytest.raises(
        Conflict, match="has 3 teams"
    ):  # the invitation is valid, but the board is full
        target.board.teams.register("Late", source.tokens["invitation"])
    with pytest.raises(NotAllowed, match="This invitation is unknown"):
        target.board.teams.register("Late", "lb_invitation_made-up")


def test_a_copy_stays_paused_until_a_charge_is_named(
    source_and_target, make_board, open_board, tmp_path
):
    source, target = source_and_target
    history = make_board(source)
    asked = history.book.chain_state().asked
    head = dump(source, tmp_path / "dump")
    history.submit(40)
    assert history.status == "open"
    restore(target, tmp_path / "dump")
    restored = open_board(target)
    assert restored.status == "restored"
    state = restored.book.chain_state()
    assert (state.entries, state.asked, state.lost, state.charged) == (
        head.entries + 1,
        asked,
        1,
        0,
    )
    fields = [fields for _, fields in restored.book.entries()][-1]
    assert (fields["kind"], fields["charged"]) == ("restored", 0)
    with pytest.raises(NotOpen, match="waits for its organiser"):
        restored.submit(20)
    with pytest.raises(InvalidSetting, match="Give charge"):
        restored.board.amendments.resume(ORGANISER)
    with pytest.raises(NotOpen, match="--charge"):  # it would ask before the charge
        restored.board.amendments.correct_labels(
            ORGANISER, restored.board.epoch_of(restored.board.row()).table
        )
    restored.board.amendments.resume(ORGANISER, charge=3)
    assert restored.book.chain_state().charged == 3
    restored.submit(20)
    assert restored.book.check() == asked + 1


@pytest.mark.parametrize(
    ("status", "move"),
    [("paused", True), ("restored", True), ("closing", True), ("closed", True), ("closed", False)],
)
def test_a_moved_or_closed_board_keeps_its_status(
    make_boards, make_board, open_board, tmp_path, status, move
):
    source, target = make_boards(), make_boards()
    make_board(source, status=status)
    dump(source, tmp_path / "dump", move=move)
    restore(target, tmp_path / "dump")
    assert open_board(target).status == status


def test_a_copy_of_an_interrupted_close_stays_paused(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    history = make_board(source, status="closing")
    dump(source, tmp_path / "dump")
    history.board.amendments.resume(ORGANISER)  # from there it can go on,
    history.submit(40)  # and answer
    restore(target, tmp_path / "dump")
    restored = open_board(target)
    with pytest.raises(InvalidSetting, match="Give charge"):
        restored.board.amendments.resume(ORGANISER)
    restored.board.closer.close(ORGANISER)
    assert restored.status == "closed"


def test_an_interrupted_close_still_needs_the_charge(
    make_boards, make_board, open_board, tmp_path, monkeypatch
):
    source, target = make_boards(), make_boards()
    make_board(source)
    dump(source, tmp_path / "dump")
    restore(target, tmp_path / "dump")
    restored = open_board(target)
    with monkeypatch.context() as patched:

        def fail(*_, **__):
            raise KeyboardInterrupt

        patched.setattr(type(restored.board.closer), "_score_finalists", fail)
        with pytest.raises(KeyboardInterrupt):
            restored.board.closer.close(ORGANISER)
    with pytest.raises(InvalidSetting, match="Give charge"):
        restored.board.amendments.resume(ORGANISER)
    restored.board.amendments.resume(ORGANISER, charge=3)
    restored.submit(20)


def test_a_board_that_has_moved_may_be_dumped_again(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    head = dump(source, tmp_path / "first", move=True)
    assert dump(source, tmp_path / "second", move=True) == head
    assert dump(source, tmp_path / "third") == head
    restore(target, tmp_path / "third")
    assert open_board(target).status == "open"


def test_a_dump_that_cannot_be_written_seals_nothing(make_boards, make_board, open_board, tmp_path):
    source = make_boards()
    history = make_board(source)
    (tmp_path / "dump").write_bytes(b"mine")
    with pytest.raises(InvalidState, match="already"):
        dump(source, tmp_path / "dump", move=True)
    with pytest.raises(StorageFailed, match="cannot be created"):
        dump(source, tmp_path / "none" / "dump", move=True)
    with pytest.raises(InvalidSetting, match="at least 8"):
        dump_board(source, "digits", tmp_path / "new", passphrase=random_secret()[:7], move=True)
    assert history.status == "open"
    assert (tmp_path / "dump").read_bytes() == b"mine"


def test_a_dump_that_fails_after_the_seal_says_what_to_do(
    make_boards, make_board, open_board, tmp_path, monkeypatch
):
    source, target = make_boards(), make_boards()
    history = make_board(source)
    real = source.store.get
    monkeypatch.setattr(type(source.store), "get", lambda *_: _raise_disk_full())
    with pytest.raises(StorageFailed, match=r"No space left.*dump it again in the same way"):
        dump(source, tmp_path / "dump", move=True)
    assert history.status == "moved"
    assert not (tmp_path / "dump").exists()
    monkeypatch.setattr(type(source.store), "get", lambda _, make_boards: real(make_boards))
    dump(source, tmp_path / "dump", move=True)
    restore(target, tmp_path / "dump")
    assert open_board(target).status == "open"


def _raise_disk_full():
    raise OSError(28, "No space left on device")


def test_a_dump_is_private(make_boards, make_board, open_board, tmp_path):
    make_board(source := make_boards())
    dump(source, tmp_path / "dump")
    assert stat.S_IMODE((tmp_path / "dump").stat().st_mode) == 0o600


def test_a_passphrase_or_a_key_but_not_both(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    both = {"passphrase": "correct horse", "public_key": KEY.public}
    for keys in ({}, both):
        with pytest.raises(InvalidSetting, match="either"):
            dump_board(source, "digits", tmp_path / "dump", **keys)
    secret = make_secret_key(tmp_path / "key")
    dump_board(
        source, "digits", tmp_path / "dump", public_key=write_public_key(secret.public), move=True
    )
    for keys in ({}, {"passphrase": "correct horse", "secret_key": KEY}):
        with pytest.raises(InvalidSetting, match="either"):
            restore_board(target, tmp_path / "dump", **keys)
    with pytest.raises(WrongKey, match="another key"):
        restore(target, tmp_path / "dump")
    assert restore_board(target, tmp_path / "dump", secret_key=str(tmp_path / "key")) == "digits"


@pytest.mark.slow  # scrypt takes seconds
def test_a_passphrase_opens_it(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    passphrase = {"passphrase": "correct horse battery"}
    assert isinstance(dump_board(source, "digits", tmp_path / "dump", **passphrase), ChainHead)
    with pytest.raises(WrongKey, match="passphrase is wrong"):
        restore_board(target, tmp_path / "dump", passphrase=random_secret())
    assert restore_board(target, tmp_path / "dump", **passphrase) == "digits"


def test_an_existing_board_is_not_restored(source_and_target, make_board, open_board, tmp_path):
    source, target = source_and_target
    make_board(source)
    dump(source, tmp_path / "dump", move=True)
    restore(target, tmp_path / "dump")
    rows_before = rows(open_board(target))
    for boards in (source, target):
        with pytest.raises(Conflict, match="This database already has"):
            restore(boards, tmp_path / "dump")
    assert rows(open_board(target)) == rows_before


def test_a_slug_that_is_taken_is_refused(source_and_target, make_board, tmp_path):
    source, target = source_and_target
    make_board(source)
    existing = make_board(target)
    dump(source, tmp_path / "dump", move=True)
    with pytest.raises(Conflict, match="There is a board 'digits' here already"):
        restore(target, tmp_path / "dump")
    assert target.storage.books() == [existing.book.name]


def contents_of(boards, folder):
    """Return everything that a failed restore might leave behind."""
    counted = ["board", "team", "credential", "submission", "record", "upload", "entry", "mark"]
    with boards.storage.read_tables() as view:
        counts = [view.query(f"SELECT count(*) FROM main.{table}") for table in counted]
    files = sorted(path.name for path in folder.glob("place-*-files/*/*/*"))
    marks = sorted(path.name for path in folder.glob("*.mark"))
    return boards.storage.books(), counts, files, marks


@pytest.fixture(params=["file", "server"])
def target(request, make_boards):
    return make_boards(request.param)


def test_damage_is_found_and_leaves_nothing(target, moved_dump, tmp_path):
    path, key = moved_dump
    contents_before = contents_of(target, tmp_path)
    form = path.read_bytes()
    damaged = {"longer": form + b"x"}
    for share in (0.0001, 0.3, 0.6, 0.9999):
        position = int(share * len(form))
        damaged[f"flipped at {share}"] = (
            form[:position] + bytes([form[position] ^ 4]) + form[position + 1 :]
        )
        damaged[f"cut at {share}"] = form[:position]
    for name, changed in damaged.items():
        (tmp_path / name).write_bytes(changed)
        with pytest.raises((BrokenDump, InvalidState)):
            restore_board(target, tmp_path / name, secret_key=key)
        assert contents_of(target, tmp_path) == contents_before, name
    assert restore_board(target, path, secret_key=key) == "digits"


def test_a_failure_on_the_way_leaves_nothing(target, moved_dump, tmp_path, monkeypatch):
    path, key = moved_dump
    contents_before = contents_of(target, tmp_path)

    def fail(*_):
        raise KeyboardInterrupt

    for step in (
        "import_book",
        "insert_dumped_row",
        "restore_bodies",
        "check_book",
        "decode_sample",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"ladderboard.board._backup._restore.{step}", fail)
            with pytest.raises(KeyboardInterrupt):
                restore_board(target, path, secret_key=key)
        assert contents_of(target, tmp_path) == contents_before, step
    assert restore_board(target, path, secret_key=key) == "digits"


def test_an_unacknowledged_commit_is_looked_up(target, moved_dump, monkeypatch):
    path, key = moved_dump
    connection = target.storage._pool.acquire()
    target.storage._pool.release(connection)
    link, real = type(connection), type(connection).commit

    def commit_without_answer(self):
        real(self)
        raise StorageFailed("nothing heard", uncertain=True)

    with monkeypatch.context() as patch:
        patch.setattr(link, "commit", commit_without_answer)
        assert restore_board(target, path, secret_key=key) == "digits"
    assert target.open("digits").book.check() > 12


def test_an_unknown_board_cannot_be_dumped(make_boards, tmp_path):
    with pytest.raises(NotFound):
        dump(make_boards(), tmp_path / "dump")
    assert not (tmp_path / "dump").exists()


def test_a_restored_book_has_its_high_water_mark(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    dump(source, tmp_path / "dump")
    restore(target, tmp_path / "dump")
    book = open_board(target).book
    assert target.high_water_mark(book.name).read().entries == book.chain_state().entries
