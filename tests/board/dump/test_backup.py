"""Backups of boards in use: complete or absent, and restored elsewhere."""

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


def save(boards, backup_folder, **options):
    return back_up(boards, backup_folder, public_key=KEY.public, **options)


def find_problems(backup):
    """Return the problems that a check finds."""
    return [result.wrong for result in check_backup(backup, secret_key=KEY) if result.wrong]


def test_a_backup_is_private_whole_and_read_back(two_boards, backup_folder):
    messages = []
    backup = save(two_boards, backup_folder, on_board=messages.append)
    assert [board.board for board in backup.boards] == ["digits", "birds"]
    assert messages == list(backup.boards)
    assert find_backup(backup_folder) == find_backup(backup.path) == backup
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (backup.path, *backup.path.iterdir())]
    assert modes == [0o700, *[0o600] * 3]
    assert list(backup_folder.iterdir()) == [backup.path]
    for saved in backup.boards:
        head = two_boards.open(saved.board).book.head()
        assert (saved.entries, saved.head) == (head.entries, head.hash.hex())
    assert find_problems(backup) == []


def test_two_backups_in_one_second_have_different_names(two_boards, backup_folder, monkeypatch):
    monkeypatch.setattr(two_boards, "environment", LedgerEnvironment(clock=lambda: 1_800_000_000))
    names = [save(two_boards, backup_folder, without=("birds",)).path.name for _ in range(3)]
    assert names == ["20270115T080000Z", "20270115T080000Z-2", "20270115T080000Z-3"]
    assert [list_backup.name for list_backup in list_backups(backup_folder)] == names
    assert len(prune_backups(find_backup(backup_folder), 1)) == 2
    last = save(two_boards, backup_folder, without=("birds",))
    assert find_backup(backup_folder) == last
    monkeypatch.setattr(two_boards, "environment", LedgerEnvironment(clock=lambda: 1_700_000_000))
    behind = save(two_boards, backup_folder, without=("birds",))  # the clock was wrong, then or now
    assert prune_backups(behind, 1)[-1] == last.path
    assert find_backup(backup_folder) == behind


@pytest.mark.parametrize("kind", ["file", "server"])
def test_all_boards_are_restored_paused(two_boards, backup_folder, make_boards, open_board, kind):
    backup = save(two_boards, backup_folder)
    old = open_board(two_boards)
    bodies = old.bodies()
    open_board(two_boards).submit(20)
    target = make_boards(kind, key=True)
    restore_backup(target, backup, secret_key=KEY)
    assert [open_board(target, slug).status for slug in target.list()] == ["restored"] * 2
    new = open_board(target)
    assert new.bodies() == bodies
    new.board.amendments.resume(Caller(Role.ORGANISER), charge=1)
    assert new.submit(20).release == old.submit(20).release
    messages = []
    restore_backup(
        target, backup, secret_key=KEY, on_board=lambda *message: messages.append(message)
    )
    assert messages == [("digits", False), ("birds", False)]


def test_a_database_with_other_boards_is_refused(
    two_boards, backup_folder, make_boards, make_board, open_board
):
    backup = save(two_boards, backup_folder)
    target = make_boards()
    make_board(target, "fish")
    with pytest.raises(Conflict, match=r"\(fish\)"):
        restore_backup(target, backup, secret_key=KEY)
    assert target.list() == ["fish"]


def test_a_moved_board_stays_moved(two_boards, backup_folder, make_boards, open_board, tmp_path):
    dump_board(two_boards, "digits", tmp_path / "digits.dump", public_key=KEY.public, move=True)
    backup = save(two_boards, backup_folder)
    assert find_problems(backup) == []
    target = make_boards()
    restore_backup(target, backup, secret_key=KEY)
    digits = open_board(target)
    assert digits.status == "moved"  # or two would answer, with the same noise
    with pytest.raises(NotOpen):
        digits.submit(20)
    empty = make_boards()
    restore_board(empty, backup.path / "digits.dump", secret_key=KEY)
    assert open_board(empty).status == "moved"  # by itself, too
    dump_board(empty, "digits", tmp_path / "again", public_key=KEY.public, move=True)
    new = make_boards()
    restore_board(new, tmp_path / "again", secret_key=KEY)
    assert open_board(new).status == "open"  # the operator states that no other copy answers


def test_old_backups_are_deleted_and_other_files_stay(two_boards, backup_folder):
    backups = [save(two_boards, backup_folder, without=("birds",)) for _ in range(4)]
    (backups[0].path / "notes.txt").write_text("mine")  # an unexpected file
    (backups[1].path / "manifest.json").write_text("")  # unreadable
    foreign = backup_folder / "20200101T000000Z"
    foreign.mkdir()
    (backup_folder / "2019").mkdir()
    link = backup_folder / "20180101T000000Z"
    link.symlink_to(backups[2].path)
    assert prune_backups(backups[3], 1) == [backups[2].path]
    expected = {
        backups[0].path,
        backups[1].path,
        backups[3].path,
        foreign,
        backup_folder / "2019",
        link,
    }
    assert set(backup_folder.iterdir()) == expected
    with pytest.raises(InvalidSetting, match="At least one"):
        prune_backups(backups[3], 0)


def test_the_last_backup_of_a_board_stays(two_boards, backup_folder, make_boards):
    backup_of_both = save(two_boards, backup_folder)
    last = save(two_boards, backup_folder)
    lacking = [save(two_boards, backup_folder, without=("digits",)) for _ in range(2)]
    assert prune_backups(lacking[-1], 1) == [backup_of_both.path, lacking[0].path]
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


def test_leftovers_of_a_killed_backup_are_deleted_and_a_running_backup_stays(
    two_boards, backup_folder
):
    code = (
        "import sys, pathlib; from ladderboard.board._backup._backup import _draft\n"
        "with _draft(pathlib.Path(sys.argv[1])) as draft: print(draft, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, backup_folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        draft = Path(running.stdout.readline().decode().strip())
        save(two_boards, backup_folder)
        assert draft.is_dir()
        running.kill()
    assert draft.is_dir()
    save(two_boards, backup_folder)
    assert not draft.is_dir()


def test_a_full_disk_keeps_the_old_backups(two_boards, backup_folder, monkeypatch):
    first = save(two_boards, backup_folder)
    files_before = {path: path.read_bytes() for path in first.path.iterdir()}
    # A limit on what a process may write stands for a disk: the kernel refuses in the same place.
    code = (
        "import resource, signal, sys; from ladderboard.board import open_boards\n"
        "from ladderboard.board._backup._backup import back_up\n"
        "from ladderboard.ledger import PublicKey\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "boards = open_boards(sys.argv[1])\n"
        "boards.list()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "back_up(boards, sys.argv[2], public_key=PublicKey(sys.argv[3]))"
    )
    command = [
        sys.executable,
        "-c",
        code,
        two_boards.storage.path,
        backup_folder,
        KEY.public.text,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "digits cannot be backed up" in result.stderr
    assert list(backup_folder.iterdir()) == [first.path]
    assert {path: path.read_bytes() for path in first.path.iterdir()} == files_before
