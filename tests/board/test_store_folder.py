"""A store in a folder: files are complete or absent, durable and private."""

import os
import secrets
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ladderboard.board import FolderStore, _store
from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed

ID = "00c0ffee"
PLACE = "00/c0/00c0ffee"


@pytest.fixture
def store(tmp_path):
    """Return an empty store."""
    return FolderStore(tmp_path / "new" / "store")


def read(store, location):
    with store.get(location) as file:
        return file.read()


def files(store):
    return sorted(
        path.relative_to(store.path).as_posix() for path in store.path.rglob("*") if path.is_file()
    )


def make_old(path, seconds=4000):
    past = time.time() - seconds
    os.utime(path, (past, past))


def test_a_file_is_kept_and_removed(store, tmp_path):
    stored = store.prepare(ID, b"one")
    stored.commit(None)
    assert stored.location == PLACE
    assert read(store, PLACE) == b"one"
    body = tmp_path / "body"
    body.write_bytes(os.urandom(3 * 2**20))
    second = store.prepare("abcdef0123", body)
    assert read(store, second.location) == body.read_bytes()
    assert body.exists()
    reopened = FolderStore(store.path)
    assert files(reopened) == [PLACE, "ab/cd/abcdef0123"]
    second.abandon()
    second.abandon()
    reopened.delete(PLACE)
    reopened.delete(PLACE)
    assert files(store) == []
    with pytest.raises(InvalidState, match="There is no file"):
        store.get(PLACE)


def test_stored_files_are_private(store):
    umask = os.umask(0)
    try:
        store.prepare(ID, b"one")
    finally:
        os.umask(umask)
    for path in store.path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    assert store.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "bad_id", ["", "abc", "00C0FFEE", "../../../x", "00c0ffee/x", "0" * 129, "00c0ffee\n", None]
)
def test_ids_and_locations_stay_in_the_folder(store, bad_id):
    with pytest.raises(InvalidSetting, match="hex digits"):
        store.prepare(bad_id, b"")
    for location in (f"00/c0/{bad_id}", f"{bad_id}", "00/c0/../../incoming", "11/c0/00c0ffee"):
        for use in (store.get, store.delete):
            with pytest.raises(InvalidState, match="location"):
                use(location)


def test_files_and_folders_are_synced_in_the_right_order(store, monkeypatch):
    calls = []

    def sync(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        calls.append(path.relative_to(store.path).as_posix())

    rename = Path.rename

    def renamed(path, to):
        calls.append("rename")
        return rename(path, to)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "rename", renamed)
    store.prepare(ID, b"one")
    assert calls[0].startswith(f"incoming/{ID}-")
    assert calls[1:] == [".", "00", "rename", "00/c0"]
    calls.clear()
    store.prepare("00c0ffef", b"two")
    assert calls[1:] == ["rename", "00/c0"]  # the folders are there for good


def test_a_full_disk_raises_and_leaves_nothing(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    for name in ("write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(StorageFailed, match="No space left"):
                store.prepare(ID, b"one")
        assert files(store) == []
    with pytest.raises(StorageFailed, match="Not a directory"):
        FolderStore("/dev/null/x")


def test_orphans_are_swept_when_they_are_old(store):
    ids = [f"{index:08x}" for index in range(4)]
    places = [store.prepare(id_, b"x").location for id_ in ids]
    drafts = [store.path / "incoming" / path for path in ("00c0ffee-0", "00c0ffee-1")]
    for path in (*drafts, store.path / "00/00/readme"):
        path.write_bytes(b"")
    for path in (store.path / places[0], store.path / places[1], drafts[0]):
        make_old(path)
    locations = []

    def known(location):
        locations.append(location)
        return location == places[0]

    assert store.sweep(known) == 2
    assert sorted(locations) == places[:2]  # the row of a young one may be on the way
    assert files(store) == ["00/00/00000000", *places[2:], "00/00/readme", "incoming/00c0ffee-1"]
    assert store.sweep(known, older=0) == 3
    assert files(store) == ["00/00/00000000", "00/00/readme"]


KILLED = """
import os, signal, sys
from pathlib import Path
from ladderboard.board._store import FolderStore
rename = Path.rename
def die(path, to):
    if sys.argv[2] == "after":
        rename(path, to)
    os.kill(os.getpid(), signal.SIGKILL)
Path.rename = die
FolderStore(sys.argv[1]).prepare("00c0ffee", b"x" * 1000)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_process_leaves_only_orphans_that_are_swept(store, moment):
    result = subprocess.run([sys.executable, "-c", KILLED, store.path, moment], check=False)
    assert result.returncode == -signal.SIGKILL
    (orphan,) = files(store)
    assert (orphan == PLACE) == (moment == "after")
    if moment == "after":
        assert len(read(store, PLACE)) == 1000
    assert store.sweep(lambda _: False) == 0
    make_old(store.path / orphan)
    assert store.sweep(lambda _: False) == 1
    assert files(store) == []


def test_many_threads_lose_nothing(store):
    bodies = {secrets.token_hex(16): os.urandom(1000) for _ in range(60)}
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(store.prepare, bodies, bodies.values()))
    assert [read(store, entry.location) for entry in stored] == list(bodies.values())
    assert _store._INCOMING not in {file.split("/")[0] for file in files(store)}
