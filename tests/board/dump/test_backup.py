"""Backups: all boards while they are in use, whole or not there at all, and restored elsewhere."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ladderboard.board import Caller, Role, dump_board, restore_board
from ladderboard.board._backup._backup import (
    back_up,
    check_backup,
    find_backup,
    list_backups,
    prune_backups,
    restore_backup,
)
from ladderboard.errors import Conflict, InvalidSetting, NotOpen, StorageFailed
from ladderboard.ledger import LedgerEnvironment, SecretKey

KEY = SecretKey.make()


@pytest.fixture
def backup_folder(tmp_path):
    """A folder for backups."""
    path = tmp_path / "shelf"
    path.mkdir()
    return path


@pytest.fixture
def two_boards(make_boards, make_board):
    """Two boards in a file."""
    boards = make_boards()
    for slug in ("digits", "birds"):
        make_board(boards, slug)
    return boards


def save(boards, backup_folder, **more):
    return back_up(boards, backup_folder, public_key=KEY.public, **more)


def wrong(backup):
    """Return what the drill finds wrong."""
    return [each.wrong for each in check_backup(backup, secret_key=KEY) if each.wrong]


def test_a_backup_is_private_whole_and_read_back(two_boards, backup_folder):
    told = []
    made = save(two_boards, backup_folder, tell=told.append)
    assert [board.board for board in made.boards] == ["digits", "birds"]
    assert told == list(made.boards)
    assert find_backup(backup_folder) == find_backup(made.path) == made
    assert [stat.S_IMODE(each.stat().st_mode) for each in (made.path, *made.path.iterdir())] == [
        0o700, *[0o600] * 3
    ]  # fmt: skip
    assert list(backup_folder.iterdir()) == [made.path]
    for kept in made.boards:
        head = two_boards.open(kept.board).book.head()
        assert (kept.entries, kept.head) == (head.entries, head.hash.hex())
    assert wrong(made) == []


def test_two_in_the_same_second_have_names_of_their_own(two_boards, backup_folder, monkeypatch):
    monkeypatch.setattr(two_boards, "world", LedgerEnvironment(clock=lambda: 1_800_000_000))
    made = [save(two_boards, backup_folder, without=("birds",)).path.name for _ in range(3)]
    assert made == ["20270115T080000Z", "20270115T080000Z-2", "20270115T080000Z-3"]
    assert [list_backup.name for list_backup in list_backups(backup_folder)] == made
    assert len(prune_backups(find_backup(backup_folder), 1)) == 2
    last = save(two_boards, backup_folder, without=("birds",))
    assert find_backup(backup_folder) == last
    monkeypatch.setattr(two_boards, "world", LedgerEnvironment(clock=lambda: 1_700_000_000))
    behind = save(two_boards, backup_folder, without=("birds",))  # the clock was wrong, then or now
    assert prune_backups(behind, 1)[-1] == last.path
    assert find_backup(backup_folder) == behind


@pytest.mark.parametrize("kind", ["file", "server"])
def test_all_boards_go_into_another_database_and_wait(
    two_boards, backup_folder, make_boards, open_board, kind
):
    made = save(two_boards, backup_folder)
    old = open_board(two_boards)
    bodies = old.bodies()
    open_board(two_boards).submit(20)
    other = make_boards(kind, key=True)
    restore_backup(other, made, secret_key=KEY)
    assert [open_board(other, slug).status for slug in other.list()] == ["restored"] * 2
    new = open_board(other)
    assert new.bodies() == bodies
    new.board.amendments.resume(Caller(Role.ORGANISER), charge=1)
    assert new.submit(20).release == old.submit(20).release
    again = []
    restore_backup(other, made, secret_key=KEY, tell=lambda *said: again.append(said))
    assert again == [("digits", False), ("birds", False)]


def test_a_database_with_other_boards_is_refused(
    two_boards, backup_folder, make_boards, make_board, open_board
):
    made = save(two_boards, backup_folder)
    other = make_boards()
    make_board(other, "fish")
    with pytest.raises(Conflict, match=r"\(fish\)"):
        restore_backup(other, made, secret_key=KEY)
    assert other.list() == ["fish"]


def test_a_board_that_has_moved_away_stays_so(
    two_boards, backup_folder, make_boards, open_board, tmp_path
):
    dump_board(two_boards, "digits", tmp_path / "digits.dump", public_key=KEY.public, move=True)
    made = save(two_boards, backup_folder)
    assert wrong(made) == []
    other = make_boards()
    restore_backup(other, made, secret_key=KEY)
    digits = open_board(other)
    assert digits.status == "moved"  # or two would answer, with the same noise
    with pytest.raises(NotOpen):
        digits.submit(20)
    alone = make_boards()
    restore_board(alone, made.path / "digits.dump", secret_key=KEY)
    assert open_board(alone).status == "moved"  # by itself, too
    dump_board(alone, "digits", tmp_path / "again", public_key=KEY.public, move=True)
    new = make_boards()
    restore_board(new, tmp_path / "again", secret_key=KEY)
    assert open_board(new).status == "open"  # on the word of who knows that no other answers


def test_old_ones_go_and_what_is_not_ours_stays(two_boards, backup_folder):
    made = [save(two_boards, backup_folder, without=("birds",)) for _ in range(4)]
    (made[0].path / "notes.txt").write_text("mine")  # somebody put something there
    (made[1].path / "manifest.json").write_text("")  # nobody can tell what it was
    other = backup_folder / "20200101T000000Z"
    other.mkdir()
    (backup_folder / "2019").mkdir()
    link = backup_folder / "20180101T000000Z"
    link.symlink_to(made[2].path)
    assert prune_backups(made[3], 1) == [made[2].path]
    left = {made[0].path, made[1].path, made[3].path, other, backup_folder / "2019", link}
    assert set(backup_folder.iterdir()) == left
    with pytest.raises(InvalidSetting, match="At least one"):
        prune_backups(made[3], 0)


def test_the_last_backup_of_a_board_stays(two_boards, backup_folder, make_boards):
    both = save(two_boards, backup_folder)
    last = save(two_boards, backup_folder)
    lacking = [save(two_boards, backup_folder, without=("digits",)) for _ in range(2)]
    assert prune_backups(lacking[-1], 1) == [both.path, lacking[0].path]
    assert list_backups(backup_folder) == [last.path, lacking[1].path]
    empty = back_up(
        make_boards(), backup_folder, public_key=KEY.public
    )  # of a database that was made anew
    assert prune_backups(empty, 1) == []
    assert set(list_backups(backup_folder)) == {last.path, lacking[1].path, empty.path}


def test_a_board_that_cannot_be_dumped_is_named_and_may_be_left_out(
    two_boards, backup_folder, open_board
):
    first = save(two_boards, backup_folder)
    with two_boards.storage.write_transaction(open_board(two_boards).book.name) as view:
        view.execute("UPDATE main.submission SET place = 'abcdef0123456789' WHERE number = 1", ())
    with pytest.raises(StorageFailed, match=r"digits cannot be backed up: .* --without digits"):
        save(two_boards, backup_folder)
    assert list(backup_folder.iterdir()) == [first.path]
    with pytest.raises(InvalidSetting, match="no board 'fish' to leave out"):
        save(two_boards, backup_folder, without=("fish",))
    assert save(two_boards, backup_folder, without=("digits", "birds")).without == (
        "digits",
        "birds",
    )


def test_what_a_killed_backup_left_goes_and_one_that_is_made_stays(two_boards, backup_folder):
    code = (
        "import sys, pathlib; from ladderboard.board._backup._backup import _draft\n"
        "with _draft(pathlib.Path(sys.argv[1])) as each: print(each, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, backup_folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        draft = Path(other.stdout.readline().decode().strip())
        save(two_boards, backup_folder)
        assert draft.is_dir()
        other.kill()
    assert draft.is_dir()
    save(two_boards, backup_folder)
    assert not draft.is_dir()


def test_a_disk_that_is_full_leaves_the_old_ones(two_boards, backup_folder, monkeypatch):
    first = save(two_boards, backup_folder)
    before = {path: path.read_bytes() for path in first.path.iterdir()}
    # A limit on what a process may write stands for a disk: the kernel refuses in the same place.
    code = (
        "import resource, signal, sys; from ladderboard.board import open_boards\n"
        "from ladderboard.board._backup._backup import back_up\n"
        "from ladderboard.ledger import PublicKey\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "boards = open_boards(sys.argv[1])\n"
        "boards.list()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "back_up(boards, sys.argv[2], public_key=PublicKey(bytes.fromhex(sys.argv[3])))"
    )
    words = [
        sys.executable,
        "-c",
        code,
        two_boards.storage.path,
        backup_folder,
        KEY.public.key.hex(),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "digits cannot be backed up" in done.stderr
    assert list(backup_folder.iterdir()) == [first.path]
    assert {path: path.read_bytes() for path in first.path.iterdir()} == before
