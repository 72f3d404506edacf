"""The folder from which an agent's files are read, and nothing outside of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ladderboard.adapters.mcp._arguments import Folder
from ladderboard.errors import InvalidPredictions, InvalidSetting


@pytest.fixture
def place(tmp_path):
    (tmp_path / "secret.csv").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.csv").write_text("a")
    (inside / "deep/b.csv").write_text("b")
    return inside


def test_files_within_are_read_by_any_name_they_have(place, tmp_path):
    (tmp_path / "alias").symlink_to(place)
    folder = Folder(tmp_path / "alias")  # the owner's own link is the owner's affair
    for path in ("a.csv", "./a.csv", "deep/b.csv", str(place / "a.csv"), f"{tmp_path}/alias/a.csv"):
        read = folder.read(path)
        assert read.getvalue() in {b"a", b"b"}
        assert read.name == Path(path).name


@pytest.mark.parametrize(
    "path",
    ["../secret.csv", "deep/../../secret.csv", "/etc/passwd", "/dev/zero", "/proc/self/environ",
     "", ".", "deep", "missing.csv", "a.csv/x", "a\0b", "link.csv", "dangling.csv",
     "deep/out/secret.csv", "pipe", "socket", "x" * 9000, "\ud800"],
)  # fmt: skip
def test_everything_else_gets_one_and_the_same_sentence(place, path, monkeypatch):
    import socket

    (place / "link.csv").symlink_to(place / "a.csv")
    (place / "dangling.csv").symlink_to("nowhere")
    (place / "deep/out").symlink_to("../..")
    os.mkfifo(place / "pipe")
    monkeypatch.chdir(place)  # a socket's path may not be long
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    with pytest.raises(InvalidPredictions, match="must lead to a regular file in") as refused:
        Folder(place).read(path)
    assert refused.value.problems[0].code == "not_a_file"


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(place, tmp_path):
    folder = Folder(place)
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path)
    with pytest.raises(InvalidPredictions):
        folder.read("secret.csv")
    place.unlink()
    (tmp_path / "moved").rename(place)
    assert folder.read("a.csv").getvalue() == b"a"


def test_a_folder_swapped_again_and_again_never_leads_out(place, tmp_path):
    """While another thread swaps a folder for a link, a file is read from within or not at all."""
    folder = Folder(place)
    (place / "deep/secret.csv").write_text("inside")
    (place / "out").symlink_to(tmp_path)
    done = threading.Event()

    def swap():
        while not done.is_set():
            (place / "deep").rename(place / "kept")
            (place / "out").rename(place / "deep")
            (place / "deep").rename(place / "out")
            (place / "kept").rename(place / "deep")

    thread = threading.Thread(target=swap)
    thread.start()
    found = set()
    for _ in range(3000):
        try:
            found.add(folder.read("deep/secret.csv").getvalue())
        except InvalidPredictions:
            found.add(None)
    done.set()
    thread.join()
    assert b"secret" not in found
    assert b"inside" in found


def test_a_file_has_so_many_bytes_at_most(place):
    (place / "large.csv").write_bytes(b"x" * 101)
    (place / "fits.csv").write_bytes(b"x" * 100)
    folder = Folder(place, max_bytes=100)
    assert len(folder.read("fits.csv").getvalue()) == 100
    with pytest.raises(InvalidPredictions, match="at most 100 bytes"):
        folder.read("large.csv")
    os.truncate(place / "large.csv", 2**40)  # holes; nobody could read it into memory
    with pytest.raises(InvalidPredictions, match="at most 268,435,456 bytes"):
        Folder(place).read("large.csv")


def count_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_descriptor_is_left_open(place):
    folder = Folder(place)
    before = count_descriptors()
    for path in ("a.csv", "deep/b.csv", "missing/b.csv", "deep", "../x") * 20:
        try:
            folder.read(path)
        except InvalidPredictions:
            continue
    assert count_descriptors() <= before + 1


def test_a_folder_must_be_one(place):
    for wrong in (place / "a.csv", place / "nowhere"):
        with pytest.raises(InvalidSetting, match="There is no folder"):
            Folder(wrong)
