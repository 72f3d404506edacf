"""Files are written whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from ladderboard import _atomic_file
from ladderboard._atomic_file import absolute_path, atomic_write


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_and_private(tmp_path):
    path = tmp_path / "file"
    old = os.umask(0)
    try:
        atomic_write(path, b"first")
        atomic_write(path, b"second")
        atomic_write(tmp_path / "public", b"", private=False)
    finally:
        os.umask(old)
    assert path.read_bytes() == b"second"
    assert mode(path) == 0o600
    assert mode(tmp_path / "public") == 0o666
    assert {entry.name for entry in tmp_path.iterdir()} == {"file", "public"}


def test_an_existing_file_stays_unless_it_may_be_replaced(tmp_path):
    path = tmp_path / "file"
    atomic_write(path, b"first", replace=False)
    with pytest.raises(FileExistsError):
        atomic_write(path, b"second", replace=False)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("step", ["write_bytes", "sync_path"])
def test_a_full_disk_leaves_what_there_was(tmp_path, monkeypatch, replace, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file"
    if replace:
        path.write_bytes(b"old")
    monkeypatch.setattr(Path if step == "write_bytes" else _atomic_file, step, fail)
    with pytest.raises(OSError, match="No space left"):
        atomic_write(path, b"new", replace=replace)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == (
        [("file", b"old")] if replace else []
    )


def test_without_hard_links_no_file_is_replaced_either(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "file"
    atomic_write(path, b"first", replace=False)
    with pytest.raises(FileExistsError):
        atomic_write(path, b"second", replace=False)
    assert path.read_bytes() == b"first"


def test_an_absolute_path_has_no_dots_unless_a_link_gives_them_a_meaning(tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data" / "deep")
    assert absolute_path(tmp_path / "etc" / ".." / "boards.db") == tmp_path / "boards.db"
    assert absolute_path(tmp_path / "data" / ".." / "link") == tmp_path / "link"
    through_link = tmp_path / "link" / ".." / "boards.db"  # data/boards.db, not boards.db
    assert absolute_path(through_link) == through_link
