"""A board that was moved goes on elsewhere as it would have here; a copy waits."""

import stat

import pytest

from ladderboard.board import Caller, IncomingSubmission, Role, dump_board, restore_board
from ladderboard.board._backup._dump import BOARD, TABLES
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


def dump(boards, to, slug="digits", **more):
    return dump_board(boards, slug, to, public_key=KEY.public, **more)


def restore(boards, source):
    return restore_board(boards, source, secret_key=KEY)


def rows(made):
    """Return all rows, without what is a database's own."""
    found = {each.name: made.rows(each) for each in (BOARD, *TABLES)}
    at = list(TABLES[2].columns).index("place")
    found["submission"] = [(*row[:at], *row[at + 1 :]) for row in found["submission"]]
    return found


@pytest.fixture
def moved(source_and_target, make_board, open_board, tmp_path):
    """Give a board that was moved, the same where it is now, and the head of the dump."""
    source, target = source_and_target
    made = make_board(source)
    make_board(source, "other")
    head = dump(source, tmp_path / "dump", move=True)
    assert restore(target, tmp_path / "dump") == "digits"
    return made, open_board(target), head


def test_everything_of_the_board_is_there(moved):
    here, there, head = moved
    assert there.book.head() == here.book.head() == head
    assert [each for each, _ in there.book.entries()] == [each for each, _ in here.book.entries()]
    before, after = rows(here), rows(there)
    assert all(before.values())
    status = list(BOARD.columns).index("status")
    assert (before["board"][0][status], after["board"][0][status]) == ("moved", "open")
    here.set_status("open")
    assert rows(there) == rows(here)
    assert len(there.bodies()) == 11
    assert there.bodies() == here.bodies()
    assert there.book.check() == here.book.check() > 12
    assert there.book.ladder_names() == here.book.ladder_names()
    assert len(there.book.ladder_names()) == 7


def test_the_board_is_sealed_where_it_was(moved):
    here, there, _ = moved
    with pytest.raises(NotOpen, match="moved to another server"):
        here.submit(20)
    fields = [fields for _, fields in there.book.entries()][-1]
    assert (fields["kind"], fields["status"]) == ("moved", "open")


def test_the_next_answers_are_what_the_source_would_have_said(moved):
    here, there, _ = moved
    here.set_status("open")  # as if nothing had happened
    for at in range(12, 24):
        told, would = there.submit(at), here.submit(at)
        assert told.release == would.release
        assert told.quota.limits == would.quota.limits
        assert (told.number, told.entry, told.team) == (would.number, would.entry, would.team)
        assert not told.again
    assert there.book.check() == here.book.check()
    improved = [row[-2] for row in there.rows(TABLES[2])]
    assert 0 < sum(improved) < len(improved)


def test_what_was_sent_before_is_known(moved):
    here, there, _ = moved
    asked = there.book.chain_state().asked
    assert there.submit(8).again
    with pytest.raises(IdempotencyKeyReused):
        there.board.submit(Caller(Role.TEAM, 3), _sent(there, at=30, retry="key 8"))
    assert there.book.chain_state().asked == asked
    assert here.book.chain_state().asked == asked


def _sent(made, at, retry):
    body = b"id,prediction\n" + b"".join(b"%d,%d\n" % (index, at % 2) for index in range(200))
    return IncomingSubmission(made.board.scorer().read(body), 1_800_000_000, retry=retry)


def test_tokens_of_the_board_go_along_and_those_of_the_server_stay(moved, source_and_target):
    here, _, _ = moved
    target = source_and_target[1]
    for name, role in (("organiser", Role.ORGANISER), ("R\u00e9d", Role.TEAM), ("Blue", Role.TEAM)):
        assert target.caller_by_token(here.tokens[name], "digits").role == role
    with pytest.raises(NotAllowed):
        target.caller_by_token(here.tokens["server"], "digits")
    with target.storage.read_transaction("server") as view:
        assert view.query("SELECT count(*) FROM main.credential") == [(5,)]


def test_an_invitation_is_good_on_the_other_side(moved):
    here, there, _ = moved
    with pytest.raises(Conflict, match="has 3 teams"):  # it was found, but there is no place
        there.board.teams.register("Late", here.tokens["invitation"])
    with pytest.raises(NotAllowed, match="This invitation is unknown"):
        there.board.teams.register("Late", "lb_invitation_made-up")


def test_a_copy_stays_paused_until_a_charge_is_named(
    source_and_target, make_board, open_board, tmp_path
):
    source, target = source_and_target
    made = make_board(source)
    asked = made.book.chain_state().asked
    head = dump(source, tmp_path / "dump")
    made.submit(40)
    assert made.status == "open"
    restore(target, tmp_path / "dump")
    there = open_board(target)
    assert there.status == "restored"
    at = there.book.chain_state()
    assert (at.entries, at.asked, at.lost, at.charged) == (head.entries + 1, asked, 1, 0)
    fields = [fields for _, fields in there.book.entries()][-1]
    assert (fields["kind"], fields["charged"]) == ("restored", 0)
    with pytest.raises(NotOpen, match="waits for its organiser"):
        there.submit(20)
    with pytest.raises(InvalidSetting, match="how many questions"):
        there.board.amendments.resume(ORGANISER)
    with pytest.raises(NotOpen, match="--charge"):  # it would ask before the charge
        there.board.amendments.correct_labels(
            ORGANISER, there.board.epoch_of(there.board.row()).table
        )
    there.board.amendments.resume(ORGANISER, charge=3)
    assert there.book.chain_state().charged == 3
    there.submit(20)
    assert there.book.check() == asked + 1


@pytest.mark.parametrize(
    ("status", "move"), [("closing", True), ("closed", True), ("closed", False)]
)
def test_a_board_that_is_over_stays_so(make_boards, make_board, open_board, tmp_path, status, move):
    source, target = make_boards(), make_boards()
    make_board(source, status=status)
    dump(source, tmp_path / "dump", move=move)
    restore(target, tmp_path / "dump")
    assert open_board(target).status == status


def test_a_copy_of_a_close_that_was_cut_short_waits(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    made = make_board(source, status="closing")
    dump(source, tmp_path / "dump")
    made.board.amendments.resume(ORGANISER)  # from there it can go on,
    made.submit(40)  # and answer
    restore(target, tmp_path / "dump")
    there = open_board(target)
    with pytest.raises(InvalidSetting, match="how many questions"):
        there.board.amendments.resume(ORGANISER)
    there.board.closer.close(ORGANISER)
    assert there.status == "closed"


def test_a_close_that_is_cut_short_spares_nobody_the_charge(
    make_boards, make_board, open_board, tmp_path, monkeypatch
):
    source, target = make_boards(), make_boards()
    make_board(source)
    dump(source, tmp_path / "dump")
    restore(target, tmp_path / "dump")
    there = open_board(target)
    with monkeypatch.context() as patched:

        def fail(*_, **__):
            raise KeyboardInterrupt

        patched.setattr(type(there.board.closer), "_score_finalists", fail)
        with pytest.raises(KeyboardInterrupt):
            there.board.closer.close(ORGANISER)
    with pytest.raises(InvalidSetting, match="how many questions"):
        there.board.amendments.resume(ORGANISER)
    there.board.amendments.resume(ORGANISER, charge=3)
    there.submit(20)


@pytest.mark.parametrize("status", ["paused", "restored"])
def test_a_board_that_moves_is_as_it_was(make_boards, make_board, open_board, tmp_path, status):
    source, target = make_boards(), make_boards()
    make_board(source, status=status)
    dump(source, tmp_path / "dump", move=True)
    restore(target, tmp_path / "dump")
    assert open_board(target).status == status


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
    made = make_board(source)
    (tmp_path / "dump").write_bytes(b"mine")
    with pytest.raises(InvalidState, match="there already"):
        dump(source, tmp_path / "dump", move=True)
    with pytest.raises(StorageFailed, match="cannot be made"):
        dump(source, tmp_path / "none" / "dump", move=True)
    with pytest.raises(InvalidSetting, match="at least 8"):
        dump_board(source, "digits", tmp_path / "new", passphrase=random_secret()[:7], move=True)
    assert made.status == "open"
    assert (tmp_path / "dump").read_bytes() == b"mine"


def test_a_dump_that_fails_after_the_seal_says_what_to_do(
    make_boards, make_board, open_board, tmp_path, monkeypatch
):
    source, target = make_boards(), make_boards()
    made = make_board(source)
    real = source.store.get
    monkeypatch.setattr(type(source.store), "get", lambda *_: _full())
    with pytest.raises(StorageFailed, match=r"No space left.*dump it again in the same way"):
        dump(source, tmp_path / "dump", move=True)
    assert made.status == "moved"
    assert not (tmp_path / "dump").exists()
    monkeypatch.setattr(type(source.store), "get", lambda _, make_boards: real(make_boards))
    dump(source, tmp_path / "dump", move=True)
    restore(target, tmp_path / "dump")
    assert open_board(target).status == "open"


def _full():
    raise OSError(28, "No space left on device")


def test_the_file_is_its_owners_alone(make_boards, make_board, open_board, tmp_path):
    make_board(source := make_boards())
    dump(source, tmp_path / "dump")
    assert stat.S_IMODE((tmp_path / "dump").stat().st_mode) == 0o600


def test_a_passphrase_or_a_key_but_not_both(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    both = {"passphrase": "correct horse", "public_key": KEY.public}
    for given in ({}, both):
        with pytest.raises(InvalidSetting, match="either"):
            dump_board(source, "digits", tmp_path / "dump", **given)
    secret = make_secret_key(tmp_path / "key")
    dump_board(
        source, "digits", tmp_path / "dump", public_key=write_public_key(secret.public), move=True
    )
    for given in ({}, {"passphrase": "correct horse", "secret_key": KEY}):
        with pytest.raises(InvalidSetting, match="either"):
            restore_board(target, tmp_path / "dump", **given)
    with pytest.raises(WrongKey, match="another key"):
        restore(target, tmp_path / "dump")
    assert restore_board(target, tmp_path / "dump", secret_key=str(tmp_path / "key")) == "digits"


def test_a_passphrase_opens_it(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    words = {"passphrase": "correct horse battery"}
    assert isinstance(dump_board(source, "digits", tmp_path / "dump", **words), ChainHead)
    with pytest.raises(WrongKey, match="passphrase is another"):
        restore_board(target, tmp_path / "dump", passphrase=random_secret())
    assert restore_board(target, tmp_path / "dump", **words) == "digits"


def test_a_board_that_is_there_is_not_restored(source_and_target, make_board, open_board, tmp_path):
    source, target = source_and_target
    make_board(source)
    dump(source, tmp_path / "dump", move=True)
    restore(target, tmp_path / "dump")
    before = rows(open_board(target))
    for each in (source, target):
        with pytest.raises(Conflict, match="in this database already"):
            restore(each, tmp_path / "dump")
    assert rows(open_board(target)) == before


def test_a_slug_that_is_taken_is_refused(source_and_target, make_board, tmp_path):
    source, target = source_and_target
    make_board(source)
    there = make_board(target)
    dump(source, tmp_path / "dump", move=True)
    with pytest.raises(Conflict, match="There is a board 'digits' here already"):
        restore(target, tmp_path / "dump")
    assert target.storage.books() == ["server", there.book.name]


def everything(boards, folder):
    """Return what a restore might leave behind."""
    counted = ["board", "team", "credential", "submission", "record", "upload", "entry", "mark"]
    with boards.storage.read_transaction("server") as view:
        found = [view.query(f"SELECT count(*) FROM main.{each}") for each in counted]
    files = sorted(path.name for path in folder.glob("place-*-files/*/*/*"))
    marks = sorted(path.name for path in folder.glob("*.mark"))
    return boards.storage.books(), found, files, marks


@pytest.fixture(params=["file", "server"])
def target(request, make_boards):
    return make_boards(request.param)


def test_damage_is_found_and_leaves_nothing(target, moved_dump, tmp_path):
    path, key = moved_dump
    before = everything(target, tmp_path)
    form = path.read_bytes()
    damaged = {"longer": form + b"x"}
    for share in (0.0001, 0.3, 0.6, 0.9999):
        at = int(share * len(form))
        damaged[f"flipped at {share}"] = form[:at] + bytes([form[at] ^ 4]) + form[at + 1 :]
        damaged[f"cut at {share}"] = form[:at]
    for name, changed in damaged.items():
        (tmp_path / name).write_bytes(changed)
        with pytest.raises((BrokenDump, InvalidState)):
            restore_board(target, tmp_path / name, secret_key=key)
        assert everything(target, tmp_path) == before, name
    assert restore_board(target, path, secret_key=key) == "digits"


def test_a_failure_on_the_way_leaves_nothing(target, moved_dump, tmp_path, monkeypatch):
    path, key = moved_dump
    before = everything(target, tmp_path)

    def fail(*_):
        raise KeyboardInterrupt

    for step in ("import_book", "restore_rows", "restore_bodies", "check_book", "decode_sample"):
        with monkeypatch.context() as patch:
            patch.setattr(f"ladderboard.board._backup._restore.{step}", fail)
            with pytest.raises(KeyboardInterrupt):
                restore_board(target, path, secret_key=key)
        assert everything(target, tmp_path) == before, step
    assert restore_board(target, path, secret_key=key) == "digits"


def test_a_commit_without_an_answer_is_looked_up(target, moved_dump, monkeypatch):
    path, key = moved_dump
    held = target.storage._pool.acquire()
    target.storage._pool.release(held)
    link, real = type(held), type(held).commit

    def lost(self):
        real(self)
        raise StorageFailed("nothing heard", uncertain=True)

    with monkeypatch.context() as patch:
        patch.setattr(link, "commit", lost)
        assert restore_board(target, path, secret_key=key) == "digits"
    assert target.open("digits").book.check() > 12


def test_a_board_that_is_not_there_is_not_dumped(make_boards, tmp_path):
    with pytest.raises(NotFound):
        dump(make_boards(), tmp_path / "dump")
    assert not (tmp_path / "dump").exists()


def test_the_restored_book_has_its_mark(make_boards, make_board, open_board, tmp_path):
    source, target = make_boards(), make_boards()
    make_board(source)
    dump(source, tmp_path / "dump")
    restore(target, tmp_path / "dump")
    book = open_board(target).book
    assert target.high_water_mark(book.name).read().entries == book.chain_state().entries
