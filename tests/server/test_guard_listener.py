"""Sockets, tokens and files on the disk: made safely, refused where others could meddle."""

import os
import socket
import stat
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting, StorageFailed
from ladderboard.server import check_private_files, listen_on_unix_socket, read_or_create_token

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no modes here")


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize("wanted", [0o600, 0o660, 0o666])
def test_a_socket_has_its_mode_from_the_start_whatever_the_umask(
    tmp_path, monkeypatch, umask, wanted
):
    path = tmp_path / "s"
    seen = []
    listen = socket.socket.listen
    monkeypatch.setattr(
        socket.socket, "listen", lambda self, *n: (seen.append(mode(path)), listen(self, *n))
    )
    before = os.umask(umask)
    try:
        listener = listen_on_unix_socket(path, wanted)
        assert os.umask(umask) == umask  # it was put back
    finally:
        os.umask(before)
    assert seen == [wanted]  # before anybody could connect
    assert listener.url == f"unix:{path}"
    listener.close()
    assert not path.exists()


def test_a_socket_that_was_left_behind_is_replaced(tmp_path):
    path = tmp_path / "s"
    left = listen_on_unix_socket(path)
    left.socket.close()  # as a kill does
    assert path.exists()
    listen_on_unix_socket(path).close()


def test_a_socket_in_use_is_not(tmp_path):
    first = listen_on_unix_socket(tmp_path / "s")
    with pytest.raises(InvalidSetting, match="Somebody listens"):
        listen_on_unix_socket(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(tmp_path / "s"))  # still there
    first.close()


@pytest.mark.parametrize("what", ["file", "folder", "link", "pipe"])
def test_nothing_else_is_replaced(tmp_path, what):
    path = tmp_path / "s"
    left = listen_on_unix_socket(tmp_path / "left")
    left.socket.close()
    makers = {
        "file": path.touch,
        "folder": path.mkdir,
        "link": lambda: path.symlink_to("left"),
        "pipe": lambda: os.mkfifo(path),
    }
    makers[what]()
    with pytest.raises(InvalidSetting, match="no socket that a guard left"):
        listen_on_unix_socket(path)
    assert os.path.lexists(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown")
def test_nor_is_a_socket_of_somebody_else(tmp_path):
    left = listen_on_unix_socket(tmp_path / "s")
    left.socket.close()
    os.chown(tmp_path / "s", 12345, 12345)
    with pytest.raises(InvalidSetting, match="no socket that a guard left"):
        listen_on_unix_socket(tmp_path / "s")


def test_at_the_end_only_its_own_socket_is_removed(tmp_path):
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
        with pytest.raises(InvalidSetting, match="pretend to be the guard"):
            listen_on_unix_socket(tmp_path / "f/s")


def test_sockets_that_cannot_be(tmp_path):
    with pytest.raises(InvalidSetting, match="107 bytes"):
        listen_on_unix_socket(tmp_path / ("s" * 120))
    with pytest.raises(StorageFailed, match="cannot be opened"):
        listen_on_unix_socket(tmp_path / "nowhere/s")
    for bad in (0o060, 0o1660, -1):
        with pytest.raises(InvalidSetting, match="socket-mode"):
            listen_on_unix_socket(tmp_path / "s", bad)


def test_a_token_is_made_once_for_its_owner_alone(tmp_path):
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
def test_what_is_no_token_is_refused_without_being_shown(tmp_path, text):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(InvalidSetting, match="one word") as refused:
        read_or_create_token(path)
    assert not text or text not in str(refused.value)


def test_a_token_is_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(InvalidSetting, match="must be a file"):
        read_or_create_token(tmp_path / "pipe")
    with pytest.raises(StorageFailed, match="cannot be made"):
        read_or_create_token(tmp_path / "nowhere/token")


@pytest.fixture
def made(tmp_path):
    tmp_path.chmod(0o755)
    lb.Holdout.create(
        tmp_path / "g.db", [0, 1, 1], questions=1, mechanism=lb.Exact(), key_file=tmp_path / "key"
    )
    return tmp_path


def test_files_as_create_makes_them_are_private(made):
    check_private_files(made / "g.db", made / "key")


@pytest.mark.parametrize("name", ["g.db", "g.db.mark", "g.db-wal", "key"])
@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o622])
def test_files_that_others_can_open_are_refused(made, name, open_to):
    Path(made / name).touch()
    Path(made / name).chmod(open_to)
    with pytest.raises(InvalidSetting, match=f"chmod 600 {made / name}"):
        check_private_files(made / "g.db", made / "key")


@pytest.mark.parametrize("folder", [0o775, 0o757, 0o1777])
def test_a_folder_into_which_others_can_put_files_is_refused(made, folder):
    made.chmod(folder)
    with pytest.raises(InvalidSetting, match="chmod go-w"):
        check_private_files(made / "g.db")


only_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can chown"
)


@only_root
@pytest.mark.parametrize("name", ["g.db", "g.db.mark", "key", "token", "."])
def test_what_belongs_to_another_user_is_refused(made, name):
    read_or_create_token(made / "token")
    check_private_files(made / "g.db", made / "key", made / "token")
    os.chown(made / name, 12345, 12345)
    with pytest.raises(InvalidSetting, match="belongs to another user, number 12345"):
        check_private_files(made / "g.db", made / "key", made / "token")


@only_root
def test_a_token_of_another_user_is_not_read(tmp_path):
    read_or_create_token(tmp_path / "token")
    os.chown(tmp_path / "token", 12345, 12345)
    with pytest.raises(InvalidSetting, match="a file of yours"):
        read_or_create_token(tmp_path / "token")


@pytest.mark.parametrize(("mode", "fine"), [(0o755, True), (0o1777, True), (0o775, False)])
def test_nobody_can_put_another_folder_in_the_place_of_the_guards(made, mode, fine):
    inner = made / "a/b"
    inner.mkdir(parents=True)
    lb.Holdout.create(inner / "g.db", [0, 1], questions=1, mechanism=lb.Exact())
    made.chmod(mode)
    if fine:
        check_private_files(inner / "g.db")
    else:
        with pytest.raises(InvalidSetting, match=f"replace what is in {made}"):
            check_private_files(inner / "g.db")


def test_a_link_is_followed_to_the_folder_it_leads_to(made):
    (made / "open").mkdir()
    (made / "open").chmod(0o777)
    (made / "key").rename(made / "open/key")
    (made / "key").symlink_to("open/key")
    with pytest.raises(InvalidSetting, match=f"Others can put files into {made / 'open'}"):
        check_private_files(made / "g.db", made / "key")


@only_root
def test_a_link_of_another_user_is_refused(made):
    (made / "link").symlink_to("key")
    os.chown(made / "link", 12345, 12345, follow_symlinks=False)
    with pytest.raises(InvalidSetting, match="belongs to another user"):
        check_private_files(made / "g.db", made / "link")
