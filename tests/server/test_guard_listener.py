"""Sockets, tokens and files: created safely, and refused if other users could change them."""

import os
import socket
import stat
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting, StorageFailed
from ladderboard.server import check_private_files, listen_on_unix_socket, read_or_create_token

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes need POSIX")


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize("expected", [0o600, 0o660, 0o666])
def test_a_socket_has_its_mode_from_the_start_whatever_the_umask(
    tmp_path, monkeypatch, umask, expected
):
    path = tmp_path / "s"
    modes = []
    listen = socket.socket.listen
    monkeypatch.setattr(
        socket.socket, "listen", lambda self, *n: (modes.append(mode(path)), listen(self, *n))
    )
    umask_before = os.umask(umask)
    try:
        listener = listen_on_unix_socket(path, expected)
        assert os.umask(umask) == umask  # it was restored
    finally:
        os.umask(umask_before)
    assert modes == [expected]  # before a client could connect
    assert listener.url == f"unix:{path}"
    listener.close()
    assert not path.exists()


def test_a_socket_that_was_left_behind_is_replaced(tmp_path):
    path = tmp_path / "s"
    listener = listen_on_unix_socket(path)
    listener.socket.close()  # as a kill does
    assert path.exists()
    listen_on_unix_socket(path).close()


def test_a_socket_in_use_is_not_replaced(tmp_path):
    first = listen_on_unix_socket(tmp_path / "s")
    with pytest.raises(InvalidSetting, match="Another process listens"):
        listen_on_unix_socket(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tmp_path / "s"))  # still there
    first.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_other_files_are_not_replaced_by_a_socket(tmp_path, kind):
    path = tmp_path / "s"
    listener = listen_on_unix_socket(tmp_path / "left")
    listener.socket.close()
    makers = {
        "file": path.touch,
        "folder": path.mkdir,
        "link": lambda: path.symlink_to("left"),
        "pipe": lambda: os.mkfifo(path),
    }
    makers[kind]()
    with pytest.raises(InvalidSetting, match="not a stale socket"):
        listen_on_unix_socket(path)
    assert os.path.lexists(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown")
def test_a_socket_of_another_user_is_not_replaced(tmp_path):
    listener = listen_on_unix_socket(tmp_path / "s")
    listener.socket.close()
    os.chown(tmp_path / "s", 12345, 12345)
    with pytest.raises(InvalidSetting, match="not a stale socket"):
        listen_on_unix_socket(tmp_path / "s")


def test_closing_removes_only_the_own_socket(tmp_path):
    first = listen_on_unix_socket(tmp_path / "s")
    (tmp_path / "s").unlink()
    second = listen_on_unix_socket(tmp_path / "s")
    first.close()
    assert (tmp_path / "s").exists()
    second.close()
    second.close()


@pytest.mark.parametrize(("folder", "fine"), [(0o755, True), (0o777, False), (0o1777, True)])
def test_a_folder_in_which_others_replace_files_is_refused(tmp_path, folder, fine):
    (tmp_path / "f").mkdir()
    (tmp_path / "f").chmod(folder)
    if fine:
        listen_on_unix_socket(tmp_path / "f/s").close()
    else:
        with pytest.raises(InvalidSetting, match="impersonate the guard"):
            listen_on_unix_socket(tmp_path / "f/s")


def test_invalid_socket_paths_and_modes_are_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="107 bytes"):
        listen_on_unix_socket(tmp_path / ("s" * 120))
    with pytest.raises(StorageFailed, match="cannot be opened"):
        listen_on_unix_socket(tmp_path / "nowhere/s")
    for bad in (0o060, 0o1660, -1):
        with pytest.raises(InvalidSetting, match="socket-mode"):
            listen_on_unix_socket(tmp_path / "s", bad)


def test_a_token_is_created_once_and_private(tmp_path):
    path = tmp_path / "token"
    token = read_or_create_token(path)
    assert len(token) >= 32
    assert mode(path) == 0o600
    assert read_or_create_token(path) == token
    assert read_or_create_token(tmp_path / "other") != token


@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o620])
def test_a_token_that_others_can_open_is_refused(tmp_path, open_to):
    read_or_create_token(tmp_path / "token")
    (tmp_path / "token").chmod(open_to)
    with pytest.raises(InvalidSetting, match="chmod 600"):
        read_or_create_token(tmp_path / "token")


@pytest.mark.parametrize("text", ["", "short", "two words of some length", "\xe9" * 40, "x" * 5000])
def test_an_invalid_token_is_refused_without_being_shown(tmp_path, text):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(InvalidSetting, match="one word") as refused:
        read_or_create_token(path)
    assert not text or text not in str(refused.value)


def test_a_token_must_be_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(InvalidSetting, match="must be a file"):
        read_or_create_token(tmp_path / "pipe")
    with pytest.raises(StorageFailed, match="cannot be created"):
        read_or_create_token(tmp_path / "nowhere/token")


@pytest.fixture
def guard_folder(tmp_path):
    tmp_path.chmod(0o755)
    lb.Holdout.create(
        tmp_path / "g.db", [0, 1, 1], questions=1, mechanism=lb.Exact(), key_file=tmp_path / "key"
    )
    return tmp_path


def test_files_as_create_makes_them_are_private(guard_folder):
    check_private_files(guard_folder / "g.db", guard_folder / "key")


@pytest.mark.parametrize("name", ["g.db", "g.db.mark", "g.db-wal", "key"])
@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o622])
def test_files_that_others_can_open_are_refused(guard_folder, name, open_to):
    Path(guard_folder / name).touch()
    Path(guard_folder / name).chmod(open_to)
    with pytest.raises(InvalidSetting, match=f"chmod 600 {guard_folder / name}"):
        check_private_files(guard_folder / "g.db", guard_folder / "key")


@pytest.mark.parametrize("folder", [0o775, 0o757, 0o1777])
def test_a_folder_into_which_others_can_put_files_is_refused(guard_folder, folder):
    guard_folder.chmod(folder)
    with pytest.raises(InvalidSetting, match="chmod go-w"):
        check_private_files(guard_folder / "g.db")


only_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown"
)


@only_root
@pytest.mark.parametrize("name", ["g.db", "g.db.mark", "key", "token", "."])
def test_files_of_another_user_are_refused(guard_folder, name):
    read_or_create_token(guard_folder / "token")
    check_private_files(guard_folder / "g.db", guard_folder / "key", guard_folder / "token")
    os.chown(guard_folder / name, 12345, 12345)
    with pytest.raises(InvalidSetting, match="belongs to another user, number 12345"):
        check_private_files(guard_folder / "g.db", guard_folder / "key", guard_folder / "token")


@only_root
def test_a_token_of_another_user_is_not_read(tmp_path):
    read_or_create_token(tmp_path / "token")
    os.chown(tmp_path / "token", 12345, 12345)
    with pytest.raises(InvalidSetting, match="a file of yours"):
        read_or_create_token(tmp_path / "token")


@pytest.mark.parametrize(("mode", "fine"), [(0o755, True), (0o1777, True), (0o775, False)])
def test_a_parent_folder_that_others_can_write_is_refused(guard_folder, mode, fine):
    inner = guard_folder / "a/b"
    inner.mkdir(parents=True)
    lb.Holdout.create(inner / "g.db", [0, 1], questions=1, mechanism=lb.Exact())
    guard_folder.chmod(mode)
    if fine:
        check_private_files(inner / "g.db")
    else:
        with pytest.raises(InvalidSetting, match=f"replace files in {guard_folder}"):
            check_private_files(inner / "g.db")


def test_the_folder_behind_a_link_is_checked(guard_folder):
    (guard_folder / "open").mkdir()
    (guard_folder / "open").chmod(0o777)
    (guard_folder / "key").rename(guard_folder / "open/key")
    (guard_folder / "key").symlink_to("open/key")
    with pytest.raises(InvalidSetting, match=f"users can write to {guard_folder / 'open'}"):
        check_private_files(guard_folder / "g.db", guard_folder / "key")


@only_root
def test_a_link_of_another_user_is_refused(guard_folder):
    (guard_folder / "link").symlink_to("key")
    os.chown(guard_folder / "link", 12345, 12345, follow_symlinks=False)
    with pytest.raises(InvalidSetting, match="belongs to another user"):
        check_private_files(guard_folder / "g.db", guard_folder / "link")
